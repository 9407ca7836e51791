//! Request and response heads: bytes to [`Message`].
//!
//! A head is parsed only once it is complete (the empty line was seen), so a refusal never depends
//! on the way in which the bytes were cut into packets. Then it is copied into the message, and one
//! pass over the lines finds the line feed, checks the bytes, and finds the colon. Nothing is
//! allocated except for folded lines. A request without anything unusual is parsed in fewer steps
//! (`head/plain.rs`); all others here.
//!
//! Lines end in CR LF or LF; a CR anywhere else is a control character. A folded line is joined to
//! the one before it: the blanks and line ends between them become spaces. A folded Host,
//! Content-Length or Transfer-Encoding is refused.
//!
//! Compat: answers and `BogoHeader` texts are those observed of Varnish 7.1.1, see
//! `tests/smuggling.rs` and `docs/reference/request-smuggling.md`. Source: RFC 9112 §2 to §5.

mod error;
mod limits;
mod plain;
mod start_line;

use crate::authority::is_host;
use crate::connection::mark_hops;
use crate::framing::merge_equal_lengths;
use crate::sample::Sample;
use crate::token::{is_blank, is_control, is_token};
use memchr::memchr;
use message::Message;
use start_line::{request_line, status_line};
use std::ops::Range;

pub use error::HeadError;
use limits::LINE_BYTES_MAX;
pub use limits::{HeadLimits, START_LINE_SLOTS};

/// Progress of the parser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadStatus {
    /// The head is not complete; call again from the same start when there are more bytes.
    Partial,
    /// The message is filled; the body starts after `consumed` bytes.
    Complete {
        /// Bytes of the head, leading blank lines and the empty line at the end included.
        consumed: usize,
    },
}

/// Parses a request head from the start of `buffer` into `message`, which is cleared first. Blank
/// lines and blanks before the head are skipped.
///
/// Protocol (`http/1.0` is possible) and target are kept unchanged; see
/// [`split_absolute_form`](crate::split_absolute_form).
///
/// # Errors
/// [`HeadError`]: answer 431 if a limit is exceeded, else 400, and close.
pub fn parse_request(buffer: &[u8], limits: &HeadLimits, message: &mut Message) -> Result<HeadStatus, HeadError> {
    let status = match plain::parse_request(buffer, limits, message) {
        Some(consumed) => HeadStatus::Complete { consumed },
        None => parse(buffer, limits, message, request_line)?,
    };
    if status != HeadStatus::Partial {
        // Checked even where an absolute target replaces Host: another parser may have used the
        // header.
        if let Some(value) = message.get_all("Host").find(|value| !is_host(value)) {
            return Err(HeadError::Host(Sample::of(value)));
        }
    }
    Ok(status)
}

/// Parses a response head from the start of `buffer` into `message`, which is cleared first.
///
/// Every HTTP version except 1.0 is stored as 1.1, and a missing reason as the standard phrase.
/// Compat: observed. Repeated equal lengths become one (RFC 9112 §6.3).
///
/// # Errors
/// [`HeadError`]: `http format error`.
pub fn parse_response(buffer: &[u8], limits: &HeadLimits, message: &mut Message) -> Result<HeadStatus, HeadError> {
    let status = parse(buffer, limits, message, status_line)?;
    if status != HeadStatus::Partial {
        merge_equal_lengths(message);
    }
    Ok(status)
}

/// Parses the trailer section of a chunked body into `message`, which is cleared first. `bytes` are
/// all those that [`Step::trailer`](crate::Step::trailer) has counted. Semantic checks of trailer
/// fields are the caller's.
///
/// # Errors
/// [`HeadError`]: drop the trailers.
pub fn parse_trailers(bytes: &[u8], limits: &HeadLimits, message: &mut Message) -> Result<(), HeadError> {
    message.begin_received(bytes);
    headers(&mut Lines { bytes, at: 0 }, limits, message)
}

fn parse(
    buffer: &[u8],
    limits: &HeadLimits,
    message: &mut Message,
    start_line: impl Fn(&[u8], &mut Message) -> Result<(), HeadError>,
) -> Result<HeadStatus, HeadError> {
    let start = buffer.iter().position(|&byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(buffer.len());
    let Some(len) = head_len(&buffer[start..]) else {
        message.clear();
        return if buffer.len() >= limits.total_bytes { Err(HeadError::Overflow) } else { Ok(HeadStatus::Partial) };
    };
    let consumed = start + len;
    if consumed > limits.total_bytes {
        message.clear();
        return Err(HeadError::Overflow);
    }
    let head = &buffer[start..consumed];
    message.begin_received(head);
    let mut lines = Lines { bytes: head, at: 0 };
    start_line(&head[lines.next().unwrap_or_default()], message)?;
    headers(&mut lines, limits, message)?;
    mark_hops(message).map_err(HeadError::TooManyOptions)?;
    Ok(HeadStatus::Complete { consumed })
}

/// The length of the head, including the empty line at its end.
fn head_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'\n', &bytes[at..])? + 1;
        match bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

/// The lines of a complete head, without their ends, as ranges of its bytes.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Lines<'_> {
    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.bytes[self.at..];
        let end = memchr(b'\n', rest)?;
        let start = self.at;
        self.at += end + 1;
        let has_return = end > 0 && rest[end - 1] == b'\r';
        Some(start..start + end - usize::from(has_return))
    }

    /// True if the next line continues the present one.
    #[inline]
    fn is_folded(&self) -> bool {
        matches!(self.bytes.get(self.at), Some(b' ' | b'\t'))
    }

    /// Joins a line with the lines that continue it. Every byte of a line end and every blank
    /// between them becomes a space.
    fn unfold(&mut self, line: &Range<usize>) -> Vec<u8> {
        let mut joined = self.bytes[line.clone()].to_vec();
        let mut end_bytes = self.at - line.end;
        while self.is_folded() {
            let Some(range) = self.next() else { break };
            let more = &self.bytes[range.clone()];
            let blanks = more.iter().take_while(|&&byte| is_blank(byte)).count();
            joined.resize(joined.len() + end_bytes + blanks, b' ');
            joined.extend_from_slice(&more[blanks..]);
            end_bytes = self.at - range.end;
        }
        joined
    }
}

/// Adds the header lines of a head that the message has begun with.
fn headers(lines: &mut Lines<'_>, limits: &HeadLimits, message: &mut Message) -> Result<(), HeadError> {
    let line_bytes_max = limits.line_bytes.min(LINE_BYTES_MAX);
    let headers_max = limits.headers_max.saturating_sub(START_LINE_SLOTS);
    let check = |line: &[u8], message: &Message| {
        if line.len() > line_bytes_max {
            return Err(HeadError::LineTooLong(Sample::of(line)));
        }
        if message.header_count() >= headers_max {
            return Err(HeadError::TooManyHeaders(Sample::of(line)));
        }
        Ok(())
    };
    if lines.is_folded() {
        let sample = Sample::of(lines.next().map(|line| &lines.bytes[line]).unwrap_or_default());
        return Err(HeadError::FirstLineFolded(sample));
    }
    loop {
        let Some(range) = lines.next() else { return Ok(()) };
        if range.is_empty() {
            return Ok(());
        }
        if lines.is_folded() {
            let joined = lines.unfold(&range);
            let parts = header(&joined, || check(&joined, message))?;
            message.append_raw(&joined[..parts.end], parts.name_len, parts.value_start);
            let name = &joined[..parts.name_len];
            if [&b"Host"[..], b"Content-Length", b"Transfer-Encoding"].iter().any(|it| it.eq_ignore_ascii_case(name)) {
                return Err(HeadError::FramingFolded(Sample::of(&joined)));
            }
        } else {
            let line = &lines.bytes[range.clone()];
            let parts = header(line, || check(line, message))?;
            message.append_received(range.start..range.start + parts.end, parts.name_len, parts.value_start);
        }
    }
}

/// The parts of a header line, as offsets in it.
struct Parts {
    name_len: usize,
    value_start: usize,
    end: usize,
}

/// Splits a header line; `check` decides if there may be such a line at all.
#[inline]
fn header(line: &[u8], check: impl FnOnce() -> Result<(), HeadError>) -> Result<Parts, HeadError> {
    // A fold over the whole line rather than a search: without branches it runs sixteen bytes at a
    // time.
    if line.iter().fold(false, |found, &byte| found | is_control(byte)) {
        let byte = line.iter().copied().find(|&byte| is_control(byte)).unwrap_or(0);
        return Err(HeadError::ControlCharacter(byte));
    }
    check()?;
    let name_len = line.iter().position(|&byte| !is_token(byte)).unwrap_or(line.len());
    match line.get(name_len) {
        Some(b':') if name_len == 0 => return Err(HeadError::NameMissing(Sample::of(line))),
        Some(b':') => {}
        Some(&byte) => return Err(HeadError::NameCharacter(byte)),
        None => return Err(HeadError::ColonMissing(Sample::of(line))),
    }
    let end = line.len() - line.iter().rev().take_while(|&&byte| is_blank(byte)).count();
    let value_start = name_len + 1 + line[name_len + 1..end].iter().take_while(|&&byte| is_blank(byte)).count();
    Ok(Parts { name_len, value_start, end })
}
