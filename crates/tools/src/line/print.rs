//! Output of the line from the facts.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use surface::legible;

use super::facts::Facts;
use super::format::{Format, Part, Unit};
use super::safety::Safety;
use super::strftime;

/// Escaping of text from peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Escapes {
    /// C escapes.
    Text,
    /// `-j`: JSON escapes; bytes that are not UTF-8 stay.
    Json,
    /// `--json`: JSON escapes; the line is UTF-8 whatever the bytes.
    StrictJson,
}

impl Escapes {
    /// Records that may appear in the line.
    pub fn safety(self) -> Safety {
        if self == Escapes::Text { Safety::Text } else { Safety::Json }
    }
}

/// Appends the line, without its newline. If the format needs a time and the log has none, appends
/// nothing and returns false.
pub(super) fn line(format: &Format, facts: &Facts, escapes: Escapes, out: &mut Vec<u8>) -> bool {
    let timed = format.parts.iter().any(|part| matches!(part, Part::Duration(_) | Part::Time | Part::TimeFormat(_)));
    if timed && facts.start.is_none() {
        return false;
    }
    let mut printer = Printer { facts, json: escapes != Escapes::Text, strict: escapes == Escapes::StrictJson, out };
    for part in &format.parts {
        printer.part(part);
    }
    true
}

struct Printer<'a, 'b> {
    facts: &'a Facts<'a>,
    json: bool,
    strict: bool,
    out: &'b mut Vec<u8>,
}

impl Printer<'_, '_> {
    fn part(&mut self, part: &Part) {
        let facts = self.facts;
        match part {
            Part::Text(text) => self.out.extend_from_slice(text),
            Part::BodyBytes => self.number(facts.body_bytes, "-"),
            Part::BytesIn => self.number(facts.bytes_in, "-"),
            Part::BytesOut => self.number(facts.bytes_out, "-"),
            Part::Status => self.number(facts.status, "-"),
            Part::Duration(unit) => self.duration(*unit),
            Part::Protocol => self.text(facts.protocol, "HTTP/1.0"),
            Part::Host => self.text(facts.host, self.nothing()),
            Part::LogName => self.out.push(b'-'),
            Part::Method => self.text(facts.method, self.nothing()),
            Part::Query => self.text(facts.query, ""),
            Part::Url => self.text(facts.url, self.nothing()),
            Part::RequestLine => self.request_line(),
            Part::Time => self.time("[%d/%b/%Y:%T %z]"),
            Part::TimeFormat(format) => self.time_format(format),
            Part::User => self.user(),
            Part::FirstByte => self.number(facts.first_byte, "-"),
            Part::HitMiss => self.word(facts.hit_miss),
            Part::Handling => self.word(facts.handling),
            Part::Side => self.out.push(if facts.is_backend { b'b' } else { b'c' }),
            Part::Vxid => {
                let _ = write!(self.out, "{}", facts.vxid);
            }
            Part::RequestHeader(index) => self.optional(facts.request_headers.get(*index)),
            Part::ResponseHeader(index) => self.optional(facts.response_headers.get(*index)),
            Part::LogKey(index) => self.text(facts.log_values.get(*index).copied().flatten(), ""),
            Part::Record(index) => self.optional(facts.records.get(*index)),
        }
    }

    /// Replacement for a missing text.
    fn nothing(&self) -> &'static str {
        if self.json { "" } else { "-" }
    }

    fn optional(&mut self, value: Option<&Option<&[u8]>>) {
        self.text(value.copied().flatten(), self.nothing());
    }

    fn word(&mut self, value: Option<&'static str>) {
        self.text(value.map(str::as_bytes), "-");
    }

    fn number(&mut self, value: Option<&[u8]>, missing: &str) {
        match value {
            None if self.json => self.out.push(b'0'),
            // If a damaged log has another text instead of a number, the line must stay valid JSON.
            Some(value) if self.strict && serde_json::from_slice::<serde_json::Number>(value).is_err() => {
                self.out.push(b'0');
            }
            _ => self.text(value, missing),
        }
    }

    /// A text with escapes for bytes that could break the line.
    fn text(&mut self, value: Option<&[u8]>, missing: &str) {
        let Some(value) = value else { return self.out.extend_from_slice(missing.as_bytes()) };
        if !self.json {
            value.iter().for_each(|byte| self.byte(*byte));
            return;
        }
        for chunk in value.utf8_chunks() {
            for letter in chunk.valid().chars() {
                self.letter(letter);
            }
            match chunk.invalid() {
                [] => {}
                _ if self.strict => self.letter(char::REPLACEMENT_CHARACTER),
                bytes => bytes.iter().for_each(|byte| self.stray(*byte)),
            }
        }
    }

    /// Appends a byte, with C escapes.
    fn byte(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' => self.out.extend_from_slice(&[b'\\', byte]),
            b'\n' => self.out.extend_from_slice(b"\\n"),
            b'\r' => self.out.extend_from_slice(b"\\r"),
            b'\t' => self.out.extend_from_slice(b"\\t"),
            0x20..=0x7e => self.out.push(byte),
            _ => {
                let _ = write!(self.out, "\\x{byte:02x}");
            }
        }
    }

    /// Appends a character, with JSON escapes.
    fn letter(&mut self, letter: char) {
        match letter {
            '"' | '\\' | '\n' | '\r' | '\t' => self.byte(letter as u8),
            letter if legible::is_commanding(letter) => {
                let _ = write!(self.out, "\\u{:04x}", u32::from(letter));
            }
            letter => self.out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    /// `-j`: a byte that is not UTF-8 stays, unless a terminal with single-byte characters would
    /// interpret it.
    fn stray(&mut self, byte: u8) {
        match byte {
            0x80..=0x9f => self.letter(char::from(byte)),
            byte => self.out.push(byte),
        }
    }

    fn request_line(&mut self) {
        let facts = self.facts;
        self.text(facts.method, "-");
        self.out.push(b' ');
        let is_secured = facts.scheme == Some(b"https");
        let scheme: &[u8] = if is_secured { b"https://" } else { b"http://" };
        let host = facts.host_header.unwrap_or(b"localhost");
        if !host.starts_with(b"http://") && !host.starts_with(scheme) {
            self.out.extend_from_slice(scheme);
        }
        self.text(Some(host), "");
        self.text(facts.url, "");
        self.text(facts.query, "");
        self.out.push(b' ');
        self.text(facts.protocol, "HTTP/1.0");
    }

    fn duration(&mut self, unit: Unit) {
        let (start, end) = (self.facts.start, self.facts.end);
        let seconds = match (start, end) {
            (Some(start), Some(end)) => end - start,
            _ => 0.0,
        };
        let scale = match unit {
            Unit::Seconds => 1.0,
            Unit::Milliseconds => 1e3,
            Unit::Microseconds => 1e6,
        };
        let _ = write!(self.out, "{}", (seconds * scale) as i64);
    }

    fn time_format(&mut self, format: &str) {
        let Some(start) = self.facts.start else { return self.out.push(b'-') };
        let fraction = start - start.trunc();
        let _ = match format {
            "sec" => write!(self.out, "{}", start as i64),
            "msec" => write!(self.out, "{}", (start * 1e3) as i64),
            "usec" => write!(self.out, "{}", (start * 1e6) as i64),
            "msec_frac" => write!(self.out, "{:03}", (fraction * 1e3) as i64),
            "usec_frac" => write!(self.out, "{:06}", (fraction * 1e6) as i64),
            _ => return self.time(format),
        };
    }

    fn time(&mut self, format: &str) {
        match self.facts.start.and_then(|start| strftime::format(start, format)) {
            Some(text) => self.out.extend_from_slice(text.as_bytes()),
            None => self.out.push(b'-'),
        }
    }

    fn user(&mut self) {
        let user = self.facts.credentials.and_then(user);
        self.text(user.as_deref(), "-");
    }
}

/// Longest name and password, with their colon, in bytes. Compat: the stock program has no room for
/// more.
const CREDENTIALS_BYTES_MAX: usize = 127;

/// The user in basic credentials.
pub(super) fn user(credentials: &[u8]) -> Option<Vec<u8>> {
    decode_base64(credentials).filter(|both| both.len() <= CREDENTIALS_BYTES_MAX).map(|both| user_of(&both).to_vec())
}

fn user_of(credentials: &[u8]) -> &[u8] {
    credentials.split(|byte| matches!(byte, b':' | 0)).next().unwrap_or_default()
}

/// Decodes base64 with optional padding; `None` if it is invalid.
fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut letters = text.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
    let count = letters.len() * 3 / 4;
    // The last group may be of any length.
    letters.resize(letters.len().next_multiple_of(4), b'A');
    let mut bytes = STANDARD.decode(letters).ok()?;
    bytes.truncate(count);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decode_base64;

    #[test]
    fn base64_is_decoded_with_and_without_padding() {
        assert_eq!(decode_base64(b"am9lOnNlY3JldA==").unwrap(), b"joe:secret");
        assert_eq!(decode_base64(b"am9lOnNlY3JldA").unwrap(), b"joe:secret");
        assert_eq!(decode_base64(b"").unwrap(), b"");
        assert_eq!(decode_base64(b"a").unwrap(), b"");
        assert_eq!(decode_base64(b"a:b"), None);
    }
}
