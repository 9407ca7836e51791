//! Lines of access logs in the formats of the NCSA server: common, combined, and with the virtual
//! host in front.
//!
//! ```text
//! [host] client ident user [time] "GET /url HTTP/1.1" 200 1234 …
//! ```
//!
//! Text after the size is ignored.

use std::io::{self, BufRead};

/// Longer lines are bad.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Format of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Client first.
    Combined,
    /// Virtual host first.
    VirtualHost,
}

impl Format {
    pub(crate) fn named(name: &str) -> Option<Format> {
        match name {
            // The fields that are read are the same in both.
            "combined" | "common" => Some(Format::Combined),
            "vhost" => Some(Format::VirtualHost),
            _ => None,
        }
    }
}

/// A GET that was answered with 200.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Got<'a> {
    /// The virtual host; empty if the format has none.
    pub host: &'a [u8],
    /// The URL as requested.
    pub url: &'a [u8],
    /// Bytes of the body.
    pub bytes: u64,
}

/// Content of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line<'a> {
    /// A GET that was answered with 200.
    Got(Got<'a>),
    /// Another method or status.
    Other,
    /// Not in the format.
    Bad,
}

/// Goes through a log line by line.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn each(input: &mut dyn BufRead, format: Format, mut said: impl FnMut(Line<'_>)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        if io::Read::take(&mut *input, limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() as u64 == limit && line.last() != Some(&b'\n') {
            input.skip_until(b'\n')?;
            said(Line::Bad);
        } else {
            said(parse(&line, format));
        }
    }
}

pub(crate) fn parse(line: &[u8], format: Format) -> Line<'_> {
    read(line, format).unwrap_or(Line::Bad)
}

/// `None`: not in the format.
fn read(line: &[u8], format: Format) -> Option<Line<'_>> {
    let (host, line) = match format {
        Format::Combined => (&[][..], line),
        Format::VirtualHost => split(line, b' ')?,
    };
    let (client, rest) = split(line, b' ')?;
    if client.is_empty() {
        return None;
    }
    // User names may contain blanks, times and quotes; the time is the first field in brackets.
    let (_, rest) = split(rest, b'[')?;
    let (_, rest) = split(rest, b']')?;
    let rest = rest.strip_prefix(b" \"")?;
    let end = closing_quote(rest)?;
    let (request, rest) = (&rest[..end], rest[end + 1..].strip_prefix(b" ")?);
    let mut fields = rest.split(|byte| byte.is_ascii_whitespace());
    let status = number(fields.next()?)?;
    let bytes = match fields.next()? {
        b"-" => 0,
        digits => number(digits)?,
    };
    if !(100..1000).contains(&status) {
        return None;
    }
    let Some((method, rest)) = split(request, b' ') else { return Some(Line::Other) };
    if method != b"GET" || status != 200 {
        return Some(Line::Other);
    }
    // Without the protocol; HTTP/0.9 has none.
    let url = rest.iter().rposition(|byte| *byte == b' ').map_or(rest, |end| &rest[..end]);
    Some(Line::Got(Got { host, url, bytes }))
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|byte| *byte == at)?;
    Some((&text[..place], &text[place + 1..]))
}

/// End of quoted text; a quote after a backslash belongs to the text.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    })
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}
