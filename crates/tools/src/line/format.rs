//! The format of a line, as given by `-F`.

use shm::read::tags::{TagListError, TagSet};
use surface::tag::Tag;

use super::safety::{Safety, is_unsafe};

/// A format, and the records that it needs.
#[derive(Debug, Default)]
pub(super) struct Format {
    /// The parts of a line.
    pub parts: Vec<Part>,
    /// Request headers by name, in order of first mention.
    pub request_headers: Vec<String>,
    /// Response headers by name.
    pub response_headers: Vec<String>,
    /// `VCL_Log` keys.
    pub log_keys: Vec<String>,
    /// Records by tag, prefix and field.
    pub records: Vec<RecordPattern>,
}

/// `%{VSL:tag:prefix[field]}x`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RecordPattern {
    pub tag: Tag,
    pub prefix: Option<String>,
    pub field: Option<usize>,
}

/// A unit of `%{X}T`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
}

/// A part of a line. Indices refer to the lists of [`Format`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Text(Vec<u8>),
    BodyBytes,
    Duration(Unit),
    Protocol,
    Host,
    BytesIn,
    BytesOut,
    RequestHeader(usize),
    ResponseHeader(usize),
    LogName,
    Method,
    Query,
    RequestLine,
    Status,
    Time,
    TimeFormat(String),
    Url,
    User,
    FirstByte,
    HitMiss,
    Handling,
    Side,
    Vxid,
    LogKey(usize),
    Record(usize),
}

impl Format {
    /// Parses a format for lines with such escaping; the error is a message.
    pub fn parse(text: &str, safety: Safety) -> Result<Format, String> {
        let mut format = Format::default();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let after = &rest[letter.len_utf8()..];
            if letter == '\\' {
                let Some(escaped) = after.chars().next() else {
                    literal.push(b'\\');
                    break;
                };
                match escaped {
                    'n' => literal.push(b'\n'),
                    't' => literal.push(b'\t'),
                    _ => literal.extend_from_slice(&after.as_bytes()[..escaped.len_utf8()]),
                }
                rest = &after[escaped.len_utf8()..];
            } else if letter == '%' {
                if !literal.is_empty() {
                    format.parts.push(Part::Text(std::mem::take(&mut literal)));
                }
                rest = format.directive(rest, safety)?;
            } else {
                literal.extend_from_slice(&rest.as_bytes()[..letter.len_utf8()]);
                rest = after;
            }
        }
        if !literal.is_empty() {
            format.parts.push(Part::Text(literal));
        }
        Ok(format)
    }

    /// Parses the directive at the start of `text`, and returns the rest.
    fn directive<'a>(&mut self, text: &'a str, safety: Safety) -> Result<&'a str, String> {
        let unknown = || format!("Unknown format specifier at: {text}");
        let (argument, rest) = match text[1..].strip_prefix('{') {
            Some(inner) => {
                let (argument, rest) = in_brackets(inner).ok_or_else(|| format!("Unmatched bracket at: {text}"))?;
                (Some(argument), rest)
            }
            None => (None, &text[1..]),
        };
        let letter = rest.chars().next().ok_or_else(unknown)?;
        let part = match (argument, letter) {
            (None, 'b') => Part::BodyBytes,
            (None, 'D') => Part::Duration(Unit::Microseconds),
            (None, 'H') => Part::Protocol,
            (None, 'h') => Part::Host,
            (None, 'I') => Part::BytesIn,
            (None, 'l') => Part::LogName,
            (None, 'm') => Part::Method,
            (None, 'O') => Part::BytesOut,
            (None, 'q') => Part::Query,
            (None, 'r') => Part::RequestLine,
            (None, 's') => Part::Status,
            (None, 't') => Part::Time,
            (None, 'T') => Part::Duration(Unit::Seconds),
            (None, 'U') => Part::Url,
            (None, 'u') => Part::User,
            (Some(name), 'i') => {
                Part::RequestHeader(index_of(&mut self.request_headers, name, str::eq_ignore_ascii_case))
            }
            (Some(name), 'o') => {
                Part::ResponseHeader(index_of(&mut self.response_headers, name, str::eq_ignore_ascii_case))
            }
            (Some(time), 't') => Part::TimeFormat(time.to_owned()),
            (Some(unit), 'T') => Part::Duration(match unit {
                "s" => Unit::Seconds,
                "ms" => Unit::Milliseconds,
                "us" => Unit::Microseconds,
                _ => return Err(format!("Unknown specifier: %{{{unit}}}T")),
            }),
            (Some(name), 'x') => self.extension(name, safety)?,
            _ => return Err(unknown()),
        };
        self.parts.push(part);
        Ok(&rest[letter.len_utf8()..])
    }

    fn extension(&mut self, name: &str, safety: Safety) -> Result<Part, String> {
        Ok(match name {
            "Varnish:time_firstbyte" => Part::FirstByte,
            "Varnish:hitmiss" => Part::HitMiss,
            "Varnish:handling" => Part::Handling,
            "Varnish:side" => Part::Side,
            "Varnish:vxid" => Part::Vxid,
            _ => {
                if let Some(key) = name.strip_prefix("VCL_Log:") {
                    return Ok(Part::LogKey(index_of(&mut self.log_keys, key, str::eq)));
                }
                let Some(pattern) = name.strip_prefix("VSL:") else {
                    return Err(format!("Unknown formatting extension: {name}"));
                };
                self.records.push(record_pattern(pattern, safety)?);
                Part::Record(self.records.len() - 1)
            }
        })
    }
}

/// The text up to the bracket that closes the one before `text`, and the rest.
fn in_brackets(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

fn record_pattern(text: &str, safety: Safety) -> Result<RecordPattern, String> {
    if text.is_empty() {
        return Err("Missing tag in VSL:".to_owned());
    }
    let (selector, field) = match text.strip_suffix(']') {
        Some(inner) => {
            let syntax = || format!("Syntax error: VSL:{text}");
            let (selector, number) =
                inner.rsplit_once('[').filter(|(selector, _)| !selector.is_empty()).ok_or_else(syntax)?;
            let number: i64 = number.trim_ascii_start().parse().map_err(|_| syntax())?;
            let field = usize::try_from(number).ok().filter(|field| (1..=255).contains(field));
            let field =
                field.ok_or_else(|| format!("Syntax error. Field specifier must be between 1 and 255: {text}"))?;
            (selector, Some(field))
        }
        None => (text, None),
    };
    let (name, prefix) = match selector.split_once(':') {
        Some((name, prefix)) => (name, Some(prefix.to_owned())),
        None => (selector, None),
    };
    let tag = match TagSet::parse_name(name) {
        Ok(tag) => tag,
        Err(TagListError::Several) => return Err(format!("Tag not unique: {selector}")),
        Err(_) => return Err(format!("Unknown log tag: {selector}")),
    };
    if is_unsafe(tag) && safety == Safety::Text {
        return Err(format!("Tag {} can contain control characters", tag.name()));
    }
    Ok(RecordPattern { tag, prefix, field })
}

fn index_of(names: &mut Vec<String>, name: &str, same: impl Fn(&str, &str) -> bool) -> usize {
    match names.iter().position(|known| same(known, name)) {
        Some(index) => index,
        None => {
            names.push(name.to_owned());
            names.len() - 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_and_text_come_in_order() {
        let format =
            Format::parse("a\\n%h \\%{X-a}i%{x-A}i%{us}T%{VSL:Timestamp:Resp[2]}x%{VCL_Log:k}x\\", Safety::Text)
                .unwrap();
        assert_eq!(
            format.parts,
            [
                Part::Text(b"a\n".to_vec()),
                Part::Host,
                Part::Text(b" %{X-a}i".to_vec()),
                Part::RequestHeader(0),
                Part::Duration(Unit::Microseconds),
                Part::Record(0),
                Part::LogKey(0),
                Part::Text(b"\\".to_vec()),
            ]
        );
        assert_eq!(
            format.records,
            [RecordPattern { tag: Tag::Timestamp, prefix: Some("Resp".into()), field: Some(2) }]
        );
    }

    #[test]
    fn a_wrong_directive_is_named() {
        for (text, message) in [
            ("%Z", "Unknown format specifier at: %Z"),
            ("%", "Unknown format specifier at: %"),
            ("x%{x", "Unmatched bracket at: %{x"),
            ("%{x}", "Unknown format specifier at: %{x}"),
            ("%{Foo}x", "Unknown formatting extension: Foo"),
            ("%{VSL:foo}x", "Unknown log tag: foo"),
            ("%{VSL:ReqURL[0]}x", "Syntax error. Field specifier must be between 1 and 255: ReqURL[0]"),
            ("%{VSL:ReqURL[1}x", "Unknown log tag: ReqURL[1"),
            ("%{X}T", "Unknown specifier: %{X}T"),
            ("%\u{e9}", "Unknown format specifier at: %\u{e9}"),
        ] {
            assert_eq!(Format::parse(text, Safety::Text).unwrap_err(), message);
        }
    }
}
