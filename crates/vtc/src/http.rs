//! The HTTP/1 end of clients and servers: executes the commands of their blocks.
//!
//! This is not an HTTP implementation: it sends exactly what the script specifies, valid or not,
//! and accepts anything that can be parsed. Heads are in `http/head.rs`, receiving in
//! `http/receive.rs`, sending in `http/transmit.rs`; the change to HTTP/2 is in `http/switch.rs`,
//! and the HTTP/2 part in `http2.rs`.
//!
//! *Invariant:* a command takes exactly the bytes that it needs from a socket: the unread rest
//! determines how a close appears to the peer, and when it must stop sending. Source: vtc(7),
//! client/server; the stock 7.1.1 runner for everything that is not HTTP.

mod head;
mod receive;
mod switch;
mod transmit;

use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::MsgFlags;
use socket2::Socket;
use surface::test_script::{self, Place};

use crate::address::{self, Name};
use crate::http2::Http2;
use crate::journal::Journal;
use crate::matching::{self, Side};
use crate::payload::hex_bytes;
use crate::specification::{self, Actor, Arguments};
use crate::test::{Cancel, Outcome, Waited};
use head::Head;

/// The end of the connection.
#[derive(Clone)]
pub enum End {
    /// Sends requests.
    Client,
    /// Answers them; `accept` takes further connections from here.
    Server(Arc<Socket>),
}

/// One end of a connection.
pub struct Http {
    journal: Journal,
    cancel: Arc<Cancel>,
    end: End,
    socket: Option<Socket>,
    peer: Name,
    path: Option<String>,
    timeout: Duration,
    is_fatal: bool,
    request: Head,
    response: Head,
    /// `None` before the first message.
    body: Option<Vec<u8>>,
    body_length: String,
    chunk_length: String,
    head_was_asked_for: bool,
    gzip_level: u32,
    gzip_residual: Option<usize>,
    /// Set after the preface.
    http2: Option<Http2>,
}

/// Parameters of one block on a connection.
pub struct BlockContext<'a> {
    /// The commands to execute.
    pub block: &'a [u8],
    /// The line it starts on.
    pub line: u32,
    /// The end of the connection.
    pub end: End,
    /// The listening address, or the address connected to.
    pub address: &'a str,
    /// Size of the receive buffer, in bytes; `None` for the system's choice.
    pub receive_buffer_bytes: Option<usize>,
}

/// Executes a block on a connection; returns the connection, or the one that `accept` replaced it
/// with.
///
/// # Errors
/// The test has failed, or the thread must stop.
pub fn talk(journal: &Journal, cancel: &Arc<Cancel>, socket: Socket, talk: &BlockContext) -> Outcome<Option<Socket>> {
    let mut peer = Name::of_path("");
    if !address::is_local(talk.address)
        && let Ok(Some(address)) = socket.peer_addr().map(|address| address.as_socket())
    {
        peer = Name::of(address);
    }
    if let Some(wanted) = talk.receive_buffer_bytes {
        let old = socket.recv_buffer_size().unwrap_or(0);
        if let Err(error) = socket.set_recv_buffer_size(wanted) {
            return Err(journal.fail(format!("-rcvbuf {wanted}: {error}")));
        }
        let actual = socket.recv_buffer_size().unwrap_or(0);
        journal.log(3, format!("-rcvbuf old={old} new={wanted} actual={actual}"));
    }
    let mut http = Http {
        journal: journal.clone(),
        cancel: Arc::clone(cancel),
        end: talk.end.clone(),
        socket: Some(socket),
        peer,
        path: address::is_local(talk.address).then(|| talk.address.to_owned()),
        timeout: journal.test.settings.time_max() / 2,
        is_fatal: true,
        request: Head::default(),
        response: Head::default(),
        body: None,
        body_length: String::new(),
        chunk_length: String::new(),
        head_was_asked_for: false,
        gzip_level: 0,
        gzip_residual: None,
        http2: None,
    };
    specification::run(journal, talk.block, talk.line, &mut http)?;
    http.leave_http2()?;
    Ok(http.socket)
}

impl Actor for Http {
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        let Some(row) = test_script::COMMANDS
            .iter()
            .find(|row| row.name == name && matches!(row.place, Place::Http | Place::Client | Place::Server))
        else {
            return Ok(false);
        };
        match (row.place, &self.end) {
            (Place::Client, End::Server(_)) => {
                return Err(journal.fail(format!("\"{name}\" is only possible in a client")));
            }
            (Place::Server, End::Client) => {
                return Err(journal.fail(format!("\"{name}\" is only possible in a server")));
            }
            // Compat: these two end HTTP/2, the others belong into a stream.
            (Place::Client | Place::Server, _) if self.http2.is_some() && !matches!(name, "accept" | "close") => {
                return Err(journal.fail(format!("\"{name}\" is only possible before HTTP/2")));
            }
            _ => {}
        }
        self.carry_out(name, arguments)?;
        Ok(true)
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Http {
    fn carry_out(&mut self, name: &str, arguments: &mut Arguments) -> Outcome {
        match name {
            "accept" => {
                arguments.end()?;
                self.accept()
            }
            "close" => {
                arguments.end()?;
                self.leave_http2()?;
                self.socket = None;
                self.journal.log(4, "Closed");
                Ok(())
            }
            "shutdown" => self.shut_down(arguments),
            "recv" => self.receive_bytes(arguments),
            "send" => {
                let bytes = arguments.need("the text")?.bytes;
                arguments.end()?;
                self.journal.dump(4, "send", &bytes);
                self.send(&bytes)
            }
            "send_n" => self.send_repeatedly(arguments),
            "send_urgent" => self.send_urgent(arguments),
            "sendhex" => {
                let bytes = hex_bytes(&self.journal, &arguments.need("the bytes")?.bytes)?;
                arguments.end()?;
                self.journal.hexdump(4, "sendhex", &bytes);
                self.send(&bytes)
            }
            "timeout" => {
                self.timeout = arguments.seconds("the time")?;
                self.configure_http2();
                arguments.end()
            }
            "fatal" | "non_fatal" => {
                self.is_fatal = name == "fatal";
                self.configure_http2();
                arguments.end()
            }
            "txpri" | "rxpri" | "stream" | "settings" | "upgrade" => self.switch(name, arguments),
            "gunzip" => {
                arguments.end()?;
                self.gunzip()
            }
            "write_body" => {
                let path = arguments.text("the file")?;
                arguments.end()?;
                let written = std::fs::write(&path, self.body.as_deref().unwrap_or_default());
                written.map_err(|error| self.journal.fail(format!("failed to write body: {path}: {error}")))
            }
            "chunked" => {
                let bytes = arguments.need("the text")?.bytes;
                arguments.end()?;
                self.send_chunk(&bytes)
            }
            "chunkedlen" => {
                let length = arguments.number("the length")?;
                arguments.end()?;
                self.send_patterned_chunk(length)
            }
            "rxchunk" => self.receive_one_chunk(arguments),
            "rxresp" => self.receive_response(arguments),
            "rxresphdrs" => {
                arguments.end()?;
                self.receive_response_head()
            }
            "rxrespbody" => self.receive_response_body(arguments),
            "rxreq" => {
                arguments.end()?;
                self.receive_request_head()?;
                self.receive_request_body()
            }
            "rxreqhdrs" => {
                arguments.end()?;
                self.receive_request_head()
            }
            "rxreqbody" => {
                arguments.end()?;
                self.receive_request_body()
            }
            "txreq" => self.send_request(arguments),
            "txresp" => self.send_response(arguments),
            "expect" => self.expect(arguments),
            "expect_close" => {
                arguments.end()?;
                self.expect_close()
            }
            "expect_pattern" => {
                arguments.end()?;
                self.expect_pattern()
            }
            _ => Err(self.journal.fail(format!("Unknown command: \"{name}\""))),
        }
    }

    /// Reports a fault that `non_fatal` ignores.
    fn fault(&self, text: impl AsRef<str>) -> Outcome {
        if self.is_fatal { Err(self.journal.fail(text)) } else { Ok(()) }
    }

    /// The connection, or a failure if there is none.
    fn socket(&self) -> Outcome<&Socket> {
        self.socket.as_ref().ok_or_else(|| self.journal.fail("there is no connection"))
    }

    fn send(&self, bytes: &[u8]) -> Outcome {
        match address::send_all(self.socket()?, bytes, &self.cancel)? {
            Ok(()) => Ok(()),
            Err(error) => self.fault(format!("Write failed: {error}")),
        }
    }

    fn send_repeatedly(&mut self, arguments: &mut Arguments) -> Outcome {
        let count = arguments.number("the count")?;
        let bytes = arguments.need("the text")?.bytes;
        arguments.end()?;
        self.journal.dump(4, "send_n", &bytes);
        for _ in 0..count {
            self.send(&bytes)?;
        }
        Ok(())
    }

    fn send_urgent(&mut self, arguments: &mut Arguments) -> Outcome {
        let bytes = arguments.need("the text")?.bytes;
        arguments.end()?;
        self.journal.dump(4, "send_urgent", &bytes);
        match self.socket()?.send_out_of_band(&bytes) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(count) => self.fault(format!("Write failed: {count} of {} bytes", bytes.len())),
            Err(error) => self.fault(format!("Write failed: {error}")),
        }
    }

    fn shut_down(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut how = Shutdown::Write;
        while let Some(word) = arguments.next() {
            how = match word.text().as_str() {
                "-read" => Shutdown::Read,
                "-write" => Shutdown::Write,
                "-both" => Shutdown::Both,
                other => return Err(self.journal.fail(format!("shutdown: unknown argument {other}"))),
            };
        }
        match self.socket()?.shutdown(how) {
            Ok(()) => Ok(()),
            Err(error) => self.fault(format!("Shutdown failed: {error}")),
        }
    }

    fn accept(&mut self) -> Outcome {
        self.leave_http2()?;
        let End::Server(listener) = &self.end else { return Ok(()) };
        self.socket = None;
        self.journal.log(4, "Accepting");
        match address::accept(listener, &self.cancel)? {
            Ok(socket) => {
                self.journal.log(3, "Accepted a connection");
                self.socket = Some(socket);
                Ok(())
            }
            Err(error) => self.fault(format!("Accept failed: {error}")),
        }
    }

    fn expect_close(&mut self) -> Outcome {
        self.leave_http2()?;
        let socket = self.socket()?;
        self.journal.log(4, "Expecting close");
        let mut byte = [0];
        loop {
            if self.cancel.readable(socket.as_fd(), Some(self.timeout))? == Waited::TimedOut {
                self.fault("Expected close: timeout")?;
                continue;
            }
            match nix::sys::socket::recv(std::os::fd::AsRawFd::as_raw_fd(socket), &mut byte, MsgFlags::empty()) {
                Ok(0) => break,
                Ok(_) if byte[0].is_ascii_whitespace() => {}
                Ok(_) => self.fault(format!("Expecting close: received 0x{:02x} instead", byte[0]))?,
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {}
                // A reset is a close too.
                Err(_) => break,
            }
        }
        self.journal.log(4, "EOF, as expected");
        Ok(())
    }

    /// `expect LEFT OPERATOR RIGHT`.
    fn expect(&mut self, arguments: &mut Arguments) -> Outcome {
        let left = arguments.need("the left side")?.bytes;
        let operator = arguments.text("the operator")?;
        let right = arguments.need("the right side")?.bytes;
        arguments.end()?;
        let left = Side { value: self.resolve(&left), written: left };
        let right = Side { value: self.resolve(&right), written: right };
        matching::expect(&self.journal, &left, &operator, &right)
    }

    /// The value of a word in a comparison: a field, a header, or the word itself.
    fn resolve(&self, word: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(word);
        if let Some(name) = text.strip_prefix("req.http.") {
            return self.request.header(name.as_bytes());
        }
        if let Some(name) = text.strip_prefix("resp.http.") {
            return self.response.header(name.as_bytes());
        }
        match text.as_ref() {
            "remote.ip" => Some(self.peer.address.clone().into_bytes()),
            "remote.port" => Some(self.peer.port.clone().into_bytes()),
            "remote.path" => self.path.clone().map(String::into_bytes),
            "req.method" => self.request.first.clone(),
            "req.url" => self.request.second.clone(),
            "req.proto" => self.request.third.clone(),
            "resp.proto" => self.response.first.clone(),
            "resp.status" => self.response.second.clone(),
            "resp.reason" => self.response.third.clone(),
            "resp.chunklen" => Some(self.chunk_length.clone().into_bytes()),
            "req.bodylen" | "resp.bodylen" => Some(self.body_length.clone().into_bytes()),
            "req.body" | "resp.body" => Some(self.body.clone().unwrap_or_else(|| word.to_vec())),
            "h2.state" => Some(self.http2.is_some().to_string().into_bytes()),
            _ => Some(word.to_vec()),
        }
    }
}
