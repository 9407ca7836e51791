//! Sends one request to a collector, over HTTP/1.1 and perhaps TLS.
//!
//! *Invariant:* a collector costs at most the time limit and [`ANSWER_BYTES_MAX`] of memory,
//! whatever it answers. Redirects are not followed, and the body of the answer is not read. Names
//! are looked up once, at the start: the sandbox has no resolver.

use crate::deadline::Deadline;
use http1::{HeadLimits, HeadStatus};
use message::Message;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use surface::otlp::Endpoint;

/// Longest head of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;
const LIMITS: HeadLimits = HeadLimits { total_bytes: ANSWER_BYTES_MAX, line_bytes: ANSWER_BYTES_MAX, headers_max: 64 };
/// Longest time that a collector can ask to wait.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The collector has taken it.
    Taken,
    /// It may take it later; perhaps after this time.
    Later(Option<Duration>),
    /// It does not take it.
    Refused(u16),
}

/// A collector, and the way to it.
pub(super) struct Client {
    pub endpoint: Endpoint,
    pub addresses: Vec<SocketAddr>,
    /// Additional lines of the head, each with its end.
    pub headers: String,
    /// `None`: without TLS.
    pub tls: Option<Arc<ClientConfig>>,
    /// Time limit of a request.
    pub limit: Duration,
}

impl Client {
    /// Sends a message of protobuf, compressed with gzip.
    ///
    /// # Errors
    /// There is no connection, or no answer that is HTTP.
    pub fn send(&self, body: &[u8]) -> io::Result<Sent> {
        let deadline = Deadline::after(self.limit);
        let mut failure = io::ErrorKind::NotConnected.into();
        for address in &self.addresses {
            match TcpStream::connect_timeout(address, deadline.left()?) {
                Ok(stream) => return self.exchange(&Limited { stream, deadline }, body),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn exchange(&self, stream: &Limited, body: &[u8]) -> io::Result<Sent> {
        match &self.tls {
            None => self.converse(&mut &*stream, body),
            Some(config) => {
                let name = ServerName::try_from(self.endpoint.host.clone()).map_err(io::Error::other)?;
                let connection = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
                self.converse(&mut StreamOwned::new(connection, stream), body)
            }
        }
    }

    fn converse(&self, stream: &mut (impl Read + Write), body: &[u8]) -> io::Result<Sent> {
        let Endpoint { host, port, path, .. } = &self.endpoint;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-protobuf\r\n\
             Content-Encoding: gzip\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
            body.len(),
            self.headers
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()?;
        let mut received = Vec::new();
        let mut room = [0; 4096];
        let mut answer = Message::new();
        while received.len() < ANSWER_BYTES_MAX {
            let count = stream.read(&mut room)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received.extend_from_slice(&room[..count]);
            match http1::parse_response(&received, &LIMITS, &mut answer) {
                Ok(HeadStatus::Complete { .. }) => return Ok(judge(&answer)),
                Ok(HeadStatus::Partial) => {}
                Err(_) => break,
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// The meaning of an answer. Source: OTLP specification, OTLP/HTTP response.
fn judge(answer: &Message) -> Sent {
    match answer.status() {
        200..=299 => Sent::Taken,
        429 | 502..=504 => {
            let seconds =
                answer.get("Retry-After").and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
            Sent::Later(seconds.map(|seconds: u32| Duration::from_secs(u64::from(seconds)).min(RETRY_AFTER_MAX)))
        }
        status => Sent::Refused(status),
    }
}

/// A connection with a time limit for all that happens on it.
struct Limited {
    stream: TcpStream,
    deadline: Deadline,
}

impl Read for &Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.deadline.left()?))?;
        (&self.stream).read(buffer)
    }
}

impl Write for &Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.deadline.left()?))?;
        (&self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
