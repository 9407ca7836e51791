//! Receiving side: heads up to their blank line; bodies by length, in chunks or to the end of the
//! connection.

use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;

use super::{Head, Http};
use crate::payload::{self, BODY_BYTES_MAX};
use crate::specification::Arguments;
use crate::test::{Outcome, Waited};

/// Most bytes of one head, and of the line before a chunk.
const HEAD_BYTES_MAX: usize = 16 << 20;
/// Most bytes that are examined or taken at a time.
const STEP_BYTES: usize = 16 << 10;

/// The result of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Everything that was requested.
    All,
    /// The connection ended where it may.
    End,
    /// Invalid data, but `non_fatal` is set.
    Broken,
}

impl Http {
    /// Waits for bytes and either examines or takes them. `None`: the connection has ended or is
    /// broken.
    fn step(&self, buffer: &mut [u8], takes: bool, may_end: bool) -> Outcome<Result<usize, Received>> {
        let socket = self.socket()?;
        let flags = if takes { MsgFlags::empty() } else { MsgFlags::MSG_PEEK };
        loop {
            if self.cancel.readable(socket.as_fd(), Some(self.timeout))? == Waited::TimedOut {
                self.fault(format!("HTTP rx timeout ({} ms)", self.timeout.as_millis()))?;
                continue;
            }
            return Ok(match nix::sys::socket::recv(socket.as_raw_fd(), buffer, flags) {
                Ok(0) if may_end => Err(Received::End),
                Ok(0) => {
                    self.fault("HTTP rx EOF: the connection was closed, more was expected")?;
                    Err(Received::Broken)
                }
                Ok(count) => Ok(count),
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(error) => {
                    self.fault(format!("HTTP rx failed: {}", error.desc()))?;
                    Err(Received::Broken)
                }
            });
        }
    }

    /// Takes exactly this many bytes.
    pub(super) fn take(&self, count: usize, into: &mut Vec<u8>, may_end: bool) -> Outcome<Received> {
        if into.len().saturating_add(count) > BODY_BYTES_MAX {
            self.fault(format!("more than {BODY_BYTES_MAX} bytes of body"))?;
            return Ok(Received::Broken);
        }
        let mut buffer = [0; STEP_BYTES];
        let mut left = count;
        while left > 0 {
            match self.step(&mut buffer[..left.min(STEP_BYTES)], true, may_end)? {
                Ok(got) => {
                    into.extend_from_slice(&buffer[..got]);
                    left -= got;
                }
                Err(other) => return Ok(other),
            }
        }
        Ok(Received::All)
    }

    /// Takes bytes up to the position found by `is_end`; looks ahead so that no later byte is
    /// taken.
    fn take_until(&self, into: &mut Vec<u8>, may_end: bool, mut is_end: impl FnMut(u8) -> bool) -> Outcome<Received> {
        let mut buffer = [0; STEP_BYTES];
        loop {
            let seen = match self.step(&mut buffer, false, may_end)? {
                Ok(seen) => seen,
                Err(other) => return Ok(other),
            };
            let end = buffer[..seen].iter().position(|byte| is_end(*byte));
            let received = self.take(end.map_or(seen, |end| end + 1), into, may_end)?;
            if received != Received::All || end.is_some() {
                return Ok(received);
            }
            if into.len() > HEAD_BYTES_MAX {
                self.fault(format!("more than {HEAD_BYTES_MAX} bytes before the end of the head"))?;
                return Ok(Received::Broken);
            }
        }
    }

    fn receive_head(&mut self) -> Outcome<Head> {
        self.body = None;
        "<undef>".clone_into(&mut self.body_length);
        let mut bytes = Vec::new();
        // 0: inside a line, 1: after CR, 2: after a line, 3: after a line and CR.
        let mut state = 0;
        let received = self.take_until(&mut bytes, true, |byte| {
            let ends = state >= 2 && byte == b'\n';
            state = match (state, byte) {
                (0, b'\r') => 1,
                (0 | 1, b'\n') => 2,
                (2, b'\r') => 3,
                _ => 0,
            };
            ends
        })?;
        self.journal.dump(4, "rxhdr", &bytes);
        self.journal.log(4, format!("rxhdrlen = {}", bytes.len()));
        self.body = Some(Vec::new());
        if received != Received::All {
            self.fault("HTTP header is incomplete")?;
        }
        let head = Head::cut(&bytes);
        if head.first.is_none() {
            self.journal.log(4, "No headers");
        }
        let words = [&head.first, &head.second, &head.third];
        for (number, word) in words.into_iter().enumerate() {
            match word {
                Some(word) => self.journal.dump(4, &format!("http[{number:2}] "), word),
                None => self.journal.log(4, format!("http[{number:2}] (null)")),
            }
        }
        for (number, line) in head.lines.iter().enumerate() {
            self.journal.dump(4, &format!("http[{:2}] ", number + 3), line);
        }
        if head.count(b"Content-Length") > 1 {
            return Err(self.journal.fail("Multiple Content-Length headers."));
        }
        Ok(head)
    }

    pub(super) fn receive_request_head(&mut self) -> Outcome {
        self.request = self.receive_head()?;
        Ok(())
    }

    pub(super) fn receive_response_head(&mut self) -> Outcome {
        self.response = self.receive_head()?;
        Ok(())
    }

    pub(super) fn receive_response(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut has_body = true;
        while let Some(word) = arguments.next() {
            match word.text().as_str() {
                "-no_obj" => has_body = false,
                other => return Err(self.journal.fail(format!("Unknown http rxresp spec: {other}"))),
            }
        }
        self.receive_response_head()?;
        let has_status = self.response.first.is_some() && self.response.second.is_some();
        if !has_body || !has_status || self.head_was_asked_for {
            return Ok(());
        }
        let until_close = self.response.second.as_deref() == Some(b"200");
        let head = std::mem::take(&mut self.response);
        let received = self.receive_body(&head, until_close, None);
        self.response = head;
        received
    }

    pub(super) fn receive_response_body(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut max = None;
        while let Some(word) = arguments.next() {
            match word.text().as_str() {
                "-max" => max = usize::try_from(arguments.number("the limit")?).ok().filter(|max| *max > 0),
                other => return Err(self.journal.fail(format!("Unknown http rxrespbody spec: {other}"))),
            }
        }
        let head = std::mem::take(&mut self.response);
        let received = self.receive_body(&head, true, max);
        self.response = head;
        received
    }

    pub(super) fn receive_request_body(&mut self) -> Outcome {
        let head = std::mem::take(&mut self.request);
        let received = self.receive_body(&head, false, None);
        self.request = head;
        received
    }

    /// Receives a body, or about `max` more bytes of it. Without a length or chunks the body
    /// extends to the end of the connection, or there is none.
    fn receive_body(&mut self, head: &Head, until_close: bool, max: Option<usize>) -> Outcome {
        let mut body = self.body.take().unwrap_or_default();
        let before = body.len();
        let received = self.receive_body_into(&mut body, head, until_close, max);
        self.body = Some(body);
        if let Some((how, length)) = received? {
            let body = self.body.as_deref().unwrap_or_default();
            self.journal.dump(4, how, body.get(before..).unwrap_or_default());
            self.body_length = length.unwrap_or(body.len()).to_string();
            self.journal.log(4, format!("bodylen = {}", self.body_length));
        }
        Ok(())
    }

    /// The framing of the body, and its length if that differs from the collected bytes; `None` if
    /// it is broken.
    fn receive_body_into(
        &mut self,
        body: &mut Vec<u8>,
        head: &Head,
        until_close: bool,
        max: Option<usize>,
    ) -> Outcome<Option<(&'static str, Option<usize>)>> {
        let before = body.len();
        let is_enough = |body: &Vec<u8>| max.is_some_and(|max| body.len() - before >= max);
        let length = head.header(b"content-length");
        if head.header(b"transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
            if length.is_some() {
                self.fault("Both Transfer-Encoding: chunked and Content-Length")?;
                return Ok(None);
            }
            while self.receive_chunk(body)?.is_some_and(|size| size > 0) && !is_enough(body) {}
            return Ok(Some(("chunked", None)));
        }
        if let Some(length) = length {
            let digits: String =
                String::from_utf8_lossy(&length).trim_start().chars().take_while(char::is_ascii_digit).collect();
            let length = digits.parse::<usize>().unwrap_or(if digits.is_empty() { 0 } else { usize::MAX });
            let wanted = match max {
                Some(max) if length > before + max => max,
                _ => length.saturating_sub(before),
            };
            let received = self.take(wanted, body, false)?;
            return Ok((received == Received::All).then_some(("c-l", None)));
        }
        if !until_close {
            return Ok(Some(("none", Some(0))));
        }
        while !is_enough(body) {
            if body.len() >= BODY_BYTES_MAX {
                self.fault(format!("more than {BODY_BYTES_MAX} bytes of body"))?;
                return Ok(None);
            }
            let mut buffer = [0; STEP_BYTES];
            let room = max.map_or(STEP_BYTES, |max| STEP_BYTES.min(max - (body.len() - before)));
            match self.step(&mut buffer[..room], true, true)? {
                Ok(got) => body.extend_from_slice(&buffer[..got]),
                Err(Received::Broken) => return Ok(None),
                Err(_) => break,
            }
        }
        Ok(Some(("eof", None)))
    }

    pub(super) fn receive_one_chunk(&mut self, arguments: &mut Arguments) -> Outcome {
        arguments.end()?;
        let mut body = self.body.take().unwrap_or_default();
        let received = self.receive_chunk(&mut body);
        let length = body.len();
        self.body = Some(body);
        if received? == Some(0) {
            self.body_length = length.to_string();
            self.journal.log(4, format!("bodylen = {length}"));
        }
        Ok(())
    }

    /// Receives one chunk; returns its size, or `None` if it is broken.
    fn receive_chunk(&mut self, body: &mut Vec<u8>) -> Outcome<Option<usize>> {
        let mut line = Vec::new();
        if self.take_until(&mut line, false, |byte| byte == b'\n')? != Received::All {
            return Ok(None);
        }
        self.journal.dump(4, "len", &line);
        let text = String::from_utf8_lossy(&line).into_owned();
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_hexdigit).collect();
        let behind = text.trim_start().chars().nth(digits.len());
        let size = usize::from_str_radix(&digits, 16).ok();
        let Some(size) = size.filter(|_| behind.is_none_or(|byte| byte.is_ascii_whitespace())) else {
            self.fault(format!("Chunklen fail: {:?}", text.trim_end()))?;
            return Ok(None);
        };
        self.chunk_length = size.to_string();
        let before = body.len();
        if self.take(size, body, false)? != Received::All {
            return Ok(None);
        }
        if size > 0 {
            self.journal.dump(4, "chunk", &body[before..]);
        }
        let mut end = Vec::new();
        if self.take(2, &mut end, false)? != Received::All {
            return Ok(None);
        }
        if end != b"\r\n" && end[0] != b'\n' {
            self.fault("Chunklen without CRLF")?;
            return Ok(None);
        }
        Ok(Some(size))
    }

    pub(super) fn receive_bytes(&mut self, arguments: &mut Arguments) -> Outcome {
        let count = usize::try_from(arguments.number("the count")?).unwrap_or(usize::MAX);
        arguments.end()?;
        let mut bytes = Vec::new();
        let received = self.take(count, &mut bytes, false)?;
        self.journal.dump(4, "recv", &bytes);
        if received == Received::All { Ok(()) } else { self.fault("recv: too few bytes") }
    }

    pub(super) fn gunzip(&mut self) -> Outcome {
        let Some(body) = self.body.take() else { return Err(self.journal.fail("gunzip: there is no body")) };
        let (plain, problem) = payload::gunzip(&body);
        if let Some(problem) = problem {
            self.fault(problem)?;
        }
        self.body_length = plain.len().to_string();
        self.journal.log(3, format!("new bodylen {}", plain.len()));
        self.journal.dump(4, "body", &plain);
        self.body = Some(plain);
        Ok(())
    }

    /// The body must be `0123456701234567…`, as generated by `chunkedlen`.
    pub(super) fn expect_pattern(&mut self) -> Outcome {
        let body = self.body.as_deref().unwrap_or_default();
        for (index, byte) in body.iter().take_while(|byte| **byte != 0).enumerate() {
            let wanted = b'0' + (index % 8) as u8;
            if *byte != wanted {
                return Err(self
                    .journal
                    .fail(format!("EXPECT PATTERN FAIL @{index} should be 0x{wanted:02x} is 0x{byte:02x}")));
            }
        }
        self.journal.log(4, "EXPECT PATTERN SUCCESS");
        Ok(())
    }
}
