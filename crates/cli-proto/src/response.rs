//! Replies and their frame: `SSS LLLLLLLL\n`, the body, a newline.

use serde::{Deserialize, Serialize};

/// Statuses of replies.
#[allow(missing_docs)]
pub mod status {
    pub const SYNTAX: u16 = 100;
    pub const UNKNOWN: u16 = 101;
    pub const UNIMPLEMENTED: u16 = 102;
    pub const TOO_FEW: u16 = 104;
    pub const TOO_MANY: u16 = 105;
    pub const PARAMETER: u16 = 106;
    pub const AUTHENTICATE: u16 = 107;
    pub const OK: u16 = 200;
    pub const TRUNCATED: u16 = 201;
    pub const CANNOT: u16 = 300;
    pub const COMMUNICATION: u16 = 400;
    pub const CLOSE: u16 = 500;
}

/// Length of the line before the body, in bytes.
pub const FRAME_LINE_BYTES: usize = 13;
/// Longest body that the frame can announce, in bytes.
pub const BODY_BYTES_MAX: usize = 99_999_999;

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// Three digits, see [`status`].
    pub status: u16,
    /// Text.
    pub body: String,
}

impl Response {
    /// A reply of any status.
    #[must_use]
    pub fn new(status: u16, body: impl Into<String>) -> Response {
        Response { status, body: body.into() }
    }

    /// Status 200.
    #[must_use]
    pub fn ok(body: impl Into<String>) -> Response {
        Response::new(status::OK, body)
    }

    /// True if the command succeeded (200 or 201).
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.status == status::OK || self.status == status::TRUNCATED
    }

    /// Truncates the body to less than `limit_bytes` (parameter `cli_limit`); a truncated 200
    /// becomes 201.
    pub fn truncate(&mut self, limit_bytes: usize) {
        let keep = limit_bytes.clamp(1, BODY_BYTES_MAX + 1) - 1;
        if self.body.len() <= keep {
            return;
        }
        let mut end = keep;
        while !self.body.is_char_boundary(end) {
            end -= 1;
        }
        self.body.truncate(end);
        if self.status == status::OK {
            self.status = status::TRUNCATED;
        }
    }

    /// The reply in wire format.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = format!("{:03} {:<8}\n", self.status, self.body.len()).into_bytes();
        out.extend_from_slice(self.body.as_bytes());
        out.push(b'\n');
        out
    }
}

/// Error in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The first line is not a status, a blank and a length.
    Line,
    /// The body is longer than this end accepts.
    TooLong,
    /// No newline after the body.
    End,
}

/// Extracts replies from the bytes received.
#[derive(Debug)]
pub struct ResponseReader {
    buffer: Vec<u8>,
    limit_bytes: usize,
}

impl ResponseReader {
    /// A reader that accepts bodies of up to `limit_bytes`.
    #[must_use]
    pub fn new(limit_bytes: usize) -> ResponseReader {
        ResponseReader { buffer: Vec::new(), limit_bytes }
    }

    /// Takes bytes as they arrive.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next reply, `None` when more bytes are needed.
    ///
    /// # Errors
    /// See [`FrameError`]; after an error nothing more can be read.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Response>, FrameError> {
        let Some(line) = self.buffer.get(..FRAME_LINE_BYTES) else {
            return Ok(None);
        };
        let (status, length) = parse_frame_line(line).ok_or(FrameError::Line)?;
        if length > self.limit_bytes {
            return Err(FrameError::TooLong);
        }
        let end = FRAME_LINE_BYTES + length;
        let Some(last) = self.buffer.get(end) else {
            return Ok(None);
        };
        if *last != b'\n' {
            return Err(FrameError::End);
        }
        let body = String::from_utf8_lossy(&self.buffer[FRAME_LINE_BYTES..end]).into_owned();
        self.buffer.drain(..=end);
        Ok(Some(Response { status, body }))
    }
}

fn parse_frame_line(line: &[u8]) -> Option<(u16, usize)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (status, length) = line.split_once(' ')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let length = length.trim_end_matches(' ');
    if status.len() != 3 || !digits(status) || !digits(length) {
        return None;
    }
    Some((status.parse().ok()?, length.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_survives_the_wire_in_any_pieces() {
        let replies = [Response::ok("PONG 1 1.0"), Response::new(300, ""), Response::ok("é\n\n")];
        let wire: Vec<u8> = replies.iter().flat_map(Response::encode).collect();
        assert!(wire.starts_with(b"200 10      \nPONG 1 1.0\n300 0       \n\n"));
        for piece in 1..wire.len() {
            let mut reader = ResponseReader::new(100);
            let mut seen = Vec::new();
            for part in wire.chunks(piece) {
                reader.push(part);
                while let Some(reply) = reader.next().unwrap() {
                    seen.push(reply);
                }
            }
            assert_eq!(seen, replies);
        }
    }

    #[test]
    fn reply_over_the_limit_is_truncated_with_a_note() {
        let mut reply = Response::ok("0123456789");
        reply.truncate(11);
        assert_eq!(reply, Response::ok("0123456789"));
        reply.truncate(10);
        assert_eq!(reply, Response::new(201, "012345678"));
        let mut refusal = Response::new(300, "ééé");
        refusal.truncate(4);
        assert_eq!(refusal, Response::new(300, "é"));
    }

    #[test]
    fn a_broken_frame_is_an_error() {
        let check = |wire: &[u8], expected| {
            let mut reader = ResponseReader::new(100);
            reader.push(wire);
            assert_eq!(reader.next(), expected);
        };
        check(b"HTTP/1.1 200 OK\r\n", Err(FrameError::Line));
        check(b"200 -1      \n", Err(FrameError::Line));
        check(b"1075 1      \n", Err(FrameError::Line));
        check(b"20 1        \n", Err(FrameError::Line));
        check(b"200 101     \n", Err(FrameError::TooLong));
        check(b"200 2       \nabc", Err(FrameError::End));
        check(b"200 2       \nab", Ok(None));
    }
}
