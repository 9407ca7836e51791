//! Client side of HTTP/1.1: one request, one answer, repeated.

use crate::exchange::{Answer, Ask, is_hit};
use crate::failure::{Failure, Kind};
use crate::wire::{Opener, Wire};
use http1::{BodyDecoder, HeadLimits, HeadStatus, connection_options, parse_response, response_body_length};
use message::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Heads larger than this are a failure.
const LIMITS: HeadLimits = HeadLimits { total_bytes: 256 << 10, line_bytes: 65_535, headers_max: 1_000 };
/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;

/// A connection.
pub(crate) struct Http1 {
    wire: Wire,
    request: Vec<u8>,
    received: Vec<u8>,
    head: Message,
    /// True if the server closes, or if the end of the answer cannot be determined.
    pub(crate) is_over: bool,
    /// A byte of the current answer has arrived.
    pub(crate) has_begun: bool,
}

impl Http1 {
    pub(crate) async fn open(opener: &Opener) -> Result<Http1, Failure> {
        let wire = opener.open().await?;
        let (request, received) = (Vec::new(), Vec::new());
        Ok(Http1 { wire, request, received, head: Message::new(), is_over: false, has_begun: false })
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.wire.is_resumed()
    }

    /// Announces the end; only TLS has a message for that.
    pub(crate) async fn close(mut self) {
        if matches!(self.wire, Wire::Secured(_)) {
            let _ = self.wire.shutdown().await;
        }
    }

    /// Sends a request, and reads the answer to its end; a body is appended to `keep` or dropped.
    pub(crate) async fn ask(&mut self, ask: &Ask<'_>, keep: Option<&mut Vec<u8>>) -> Result<Answer, Failure> {
        self.has_begun = false;
        let begin = [ask.method, " ", ask.path, " HTTP/1.1\r\n"];
        self.request.clear();
        begin.iter().for_each(|part| self.request.extend_from_slice(part.as_bytes()));
        if !ask.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            self.line("Host", ask.authority);
        }
        for (name, value) in ask.headers {
            self.line(name, value);
        }
        if ask.is_last {
            self.line("Connection", "close");
        }
        self.request.extend_from_slice(b"\r\n");
        self.wire.write_all(&self.request).await?;
        self.wire.flush().await?;
        let result = self.answer(ask, keep).await;
        self.is_over |= result.is_err() || ask.is_last;
        result
    }

    fn line(&mut self, name: &str, value: &str) {
        [name, ": ", value, "\r\n"].iter().for_each(|part| self.request.extend_from_slice(part.as_bytes()));
    }

    async fn read(&mut self) -> Result<usize, Failure> {
        self.received.reserve(READ_BYTES);
        let count = self.wire.read_buf(&mut self.received).await?;
        self.has_begun |= count > 0;
        Ok(count)
    }

    async fn answer(&mut self, ask: &Ask<'_>, mut keep: Option<&mut Vec<u8>>) -> Result<Answer, Failure> {
        let wrong = |what: &dyn std::fmt::Debug| Failure::new(Kind::Protocol, format!("{what:?}"));
        self.received.clear();
        loop {
            match parse_response(&self.received, &LIMITS, &mut self.head).map_err(|error| wrong(&error))? {
                HeadStatus::Complete { consumed } => {
                    self.received.drain(..consumed);
                    if self.head.status() >= 200 {
                        break;
                    }
                }
                HeadStatus::Partial => {
                    if self.read().await? == 0 {
                        let at = if self.has_begun { "in a head" } else { "before an answer" };
                        return Err(Failure::new(Kind::Closed, format!("the connection ended {at}")));
                    }
                }
            }
        }
        let length = response_body_length(&self.head, ask.method.as_bytes()).map_err(|error| wrong(&error))?;
        self.is_over |= connection_options(&self.head).map_err(|error| wrong(&error))?.close;
        let mut answer = Answer { status: self.head.status(), hit: None, body_bytes: 0 };
        answer.hit = self.head.get("X-Varnish").map(is_hit);
        let mut decoder = BodyDecoder::new(length);
        loop {
            let mut at = 0;
            while at < self.received.len() && !decoder.is_done() {
                let step =
                    decoder.step(&self.received[at..]).map_err(|error| Failure::new(Kind::Length, error.text()))?;
                let body = at + step.skip..at + step.skip + step.data;
                if let Some(keep) = keep.as_deref_mut() {
                    keep.extend_from_slice(&self.received[body.clone()]);
                }
                answer.body_bytes += step.data as u64;
                at = body.end;
            }
            let rest = self.received.len() - at;
            self.received.clear();
            if decoder.is_done() {
                if rest > 0 {
                    self.is_over = true;
                    return Err(Failure::new(Kind::Length, format!("{rest} bytes behind the end of the body")));
                }
                return Ok(answer);
            }
            // A body of known length that is dropped need not be inspected.
            if let (None, Some(missing)) = (&keep, decoder.remaining()) {
                let mut left = missing;
                while left > 0 {
                    match self.wire.discard(left).await? {
                        0 => return Err(Failure::new(Kind::Length, format!("the body is {left} bytes short"))),
                        count => left -= count as u64,
                    }
                }
                answer.body_bytes += missing;
                return Ok(answer);
            }
            if self.read().await? == 0 {
                decoder.end_of_input().map_err(|error| Failure::new(Kind::Length, error.text()))?;
                self.is_over = true;
                return Ok(answer);
            }
        }
    }
}
