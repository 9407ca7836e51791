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

mod plain;

use crate::authority::is_host;
use crate::connection::mark_hops;
use crate::framing::merge_equal_lengths;
use crate::sample::Sample;
use crate::target::{MalformedTarget, split_absolute_form};
use crate::token::{is_blank, is_control, is_token};
use memchr::memchr;
use message::Message;
use std::ops::Range;

/// Size limits of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadLimits {
    /// Largest head, line ends and leading blank lines included, in bytes (`http_req_size`,
    /// `http_resp_size`).
    pub total_bytes: usize,
    /// Longest header line, line end not counted, in bytes (`http_req_hdr_len`,
    /// `http_resp_hdr_len`). At most 65,535, even if configured larger.
    pub line_bytes: usize,
    /// `http_max_hdr`: header lines, of which the start line takes [`START_LINE_SLOTS`].
    pub headers_max: usize,
}

/// Number of the lines that `http_max_hdr` allows that are not header lines. Compat: the default of
/// 64 admits 59.
pub const START_LINE_SLOTS: usize = 5;

/// Offsets within a line are kept in 16 bits.
const LINE_BYTES_MAX: usize = u16::MAX as usize;

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

/// Reason for refusing a head. Always the peer's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeadError {
    /// Larger than [`HeadLimits::total_bytes`].
    Overflow,
    /// A missing or malformed start line; this includes a method that is not a token and a URI
    /// without a valid host.
    StartLine,
    /// A protocol that is not HTTP/1.0 or HTTP/1.1 (in a response: not HTTP at all).
    Version,
    /// A response status that is not three digits, from 100 on.
    Status,
    /// A control character in a header line.
    ControlCharacter(u8),
    /// A header line longer than [`HeadLimits::line_bytes`].
    LineTooLong(Sample),
    /// The first header line starts with a blank, so there is nothing it could continue.
    FirstLineFolded(Sample),
    /// A folded Host, Content-Length or Transfer-Encoding.
    FramingFolded(Sample),
    /// A header line that starts with its colon.
    NameMissing(Sample),
    /// A character that may not appear in a header name; a blank before the colon is one.
    NameCharacter(u8),
    /// A header line without a colon.
    ColonMissing(Sample),
    /// More than [`HeadLimits::headers_max`] header lines.
    TooManyHeaders(Sample),
    /// Connection lines that name more than
    /// [`CONNECTION_OPTIONS_MAX`](surface::limits::CONNECTION_OPTIONS_MAX) options.
    TooManyOptions(Sample),
    /// A Host that is not a host with an optional port.
    Host(Sample),
}

impl HeadError {
    /// The payload of the `BogoHeader` record for this error; `None` if there is none.
    #[must_use]
    pub fn bogo_header(&self) -> Option<String> {
        let sampled = |text: &str, sample: &Sample| {
            // The record is bytes; latin-1 keeps each of them visible.
            let shown: String = sample.as_bytes().iter().map(|&byte| char::from(byte)).collect();
            Some(format!("{text} {shown}"))
        };
        match self {
            HeadError::Overflow | HeadError::StartLine | HeadError::Version | HeadError::Status => None,
            HeadError::ControlCharacter(byte) => Some(format!("Header has ctrl char 0x{byte:02x}")),
            HeadError::LineTooLong(sample) => sampled("Header too long:", sample),
            HeadError::FirstLineFolded(sample) => sampled("1st header has white space:", sample),
            HeadError::FramingFolded(sample) => sampled("Folded framing header:", sample),
            HeadError::NameMissing(sample) => sampled("Missing header name:", sample),
            HeadError::NameCharacter(byte) => Some(format!("Illegal char 0x{byte:02x} in header name")),
            HeadError::ColonMissing(sample) => sampled("Header without ':'", sample),
            HeadError::TooManyHeaders(sample) => sampled("Too many headers:", sample),
            HeadError::TooManyOptions(sample) => sampled("Too many Connection options:", sample),
            HeadError::Host(sample) => sampled("Malformed Host:", sample),
        }
    }

    /// A description for Copal's own reports.
    #[must_use]
    pub fn text(&self) -> &'static str {
        match self {
            HeadError::Overflow => "head too large",
            HeadError::StartLine => "malformed start line",
            HeadError::Version => "unsupported HTTP version",
            HeadError::Status => "malformed status",
            HeadError::ControlCharacter(_) => "control character in a header",
            HeadError::LineTooLong(_) => "header line too long",
            HeadError::FirstLineFolded(_) => "folded line without a line before it",
            HeadError::FramingFolded(_) => "folded framing header",
            HeadError::NameMissing(_) => "header without a name",
            HeadError::NameCharacter(_) => "illegal character in a header name",
            HeadError::ColonMissing(_) => "header without a colon",
            HeadError::TooManyHeaders(_) => "too many headers",
            HeadError::TooManyOptions(_) => "too many options in Connection",
            HeadError::Host(_) => "malformed Host",
        }
    }
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

/// Cuts off and returns the next word, up to a space. The spaces after it are dropped.
fn word<'a>(line: &mut &'a [u8]) -> Result<&'a [u8], HeadError> {
    let end = memchr(b' ', line).unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    if word.is_empty() || word.iter().fold(false, |found, &byte| found | is_control(byte) | (byte == b'\t')) {
        return Err(HeadError::StartLine);
    }
    *line = &rest[rest.iter().take_while(|&&byte| byte == b' ').count()..];
    Ok(word)
}

/// `method target protocol`, separated by one or more spaces. Source: RFC 9112 §3, RFC 9110 §9.1;
/// Compat: several spaces are accepted, a space after the protocol is not.
fn request_line(line: &[u8], message: &mut Message) -> Result<(), HeadError> {
    let mut rest = line;
    let method = word(&mut rest)?;
    if !is_method(method) {
        return Err(HeadError::StartLine);
    }
    let target_at = line.len() - rest.len();
    let target = word(&mut rest)?;
    split_absolute_form(method, target).map_err(|MalformedTarget| HeadError::StartLine)?;
    let has_version = rest.len() == 8 && rest[..7].eq_ignore_ascii_case(b"HTTP/1.") && matches!(rest[7], b'0' | b'1');
    if !has_version {
        return Err(HeadError::Version);
    }
    // The line begins the head.
    message.set_request_line(0..method.len(), target_at..target_at + target.len(), line.len() - 8..line.len());
    Ok(())
}

/// True if this is a token. Compat: a leading colon is accepted (r03830); it cannot be mistaken for
/// a header line, since the name would be missing.
fn is_method(method: &[u8]) -> bool {
    let token = method.strip_prefix(b":").unwrap_or(method);
    !token.is_empty() && token.iter().all(|&byte| is_token(byte))
}

/// `protocol status reason`. Source: RFC 9112 §4.
fn status_line(mut line: &[u8], message: &mut Message) -> Result<(), HeadError> {
    let protocol = word(&mut line)?;
    match protocol {
        [name @ .., major, b'.', minor]
            if name.eq_ignore_ascii_case(b"HTTP/") && major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            let is_known = *major == b'1' && *minor <= b'1';
            message.set_protocol(if is_known { protocol } else { b"HTTP/1.1" });
        }
        _ => return Err(HeadError::Version),
    }
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = *word(&mut line)? else {
        return Err(HeadError::Status);
    };
    let status = u16::from(hundreds - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
    if line.iter().any(|&byte| is_control(byte)) {
        return Err(HeadError::StartLine);
    }
    message.set_status(status);
    message.set_reason(if line.is_empty() { surface::status::phrase(status).as_bytes() } else { line });
    Ok(())
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
