//! Framing of the protocol: a head with `Content-Length`, an empty line, a body of JSON.
//!
//! A message never takes more memory than [`LSP_MESSAGE_BYTES_MAX`], however long it
//! says it is. That is why the reader of the crate `lsp-server` is not used: it allocates the
//! announced length first. After a wrong length the reader finds the next head by its field.

use std::io::{self, BufRead, Read, Write};
use surface::limits::LSP_MESSAGE_BYTES_MAX;

/// Longest line of a head, in bytes; a longer one is read in pieces.
const LINE_BYTES_MAX: u64 = 1024;
/// The field, in lower case.
const LENGTH: &[u8] = b"content-length:";

/// Something that the client sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Received {
    /// A body.
    Body(Vec<u8>),
    /// A message that cannot be read, with the reason.
    Unreadable(&'static str),
}

/// Reads a message; `None` at the end of the input.
///
/// # Errors
/// As reported by the input.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Received>> {
    let mut length: Option<u64> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let text = line.trim_ascii().to_ascii_lowercase();
        if text.is_empty() {
            let Some(length) = length else {
                return Ok(Some(Received::Unreadable("a message without a valid Content-Length")));
            };
            return body(input, length).map(Some);
        }
        // The end of a body may precede the field if the length before was too short.
        if let Some(at) = text.windows(LENGTH.len()).rposition(|window| window == LENGTH) {
            let value = text[at + LENGTH.len()..].trim_ascii();
            length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
        }
    }
}

fn body(input: &mut impl BufRead, length: u64) -> io::Result<Received> {
    if length > LSP_MESSAGE_BYTES_MAX as u64 {
        io::copy(&mut input.by_ref().take(length), &mut io::sink())?;
        return Ok(Received::Unreadable("a message that is too long"));
    }
    let mut body = Vec::new();
    input.by_ref().take(length).read_to_end(&mut body)?;
    Ok(Received::Body(body))
}

/// Writes a message.
///
/// # Errors
/// As reported by the output.
pub(super) fn write(output: &mut dyn Write, message: &serde_json::Value) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Received> {
        std::iter::from_fn(|| read(&mut input).unwrap()).collect()
    }

    #[test]
    fn a_wrong_length_costs_one_message() {
        let body = |text: &str| Received::Body(text.as_bytes().to_vec());
        let good = "Content-Length: 2\r\n\r\n{}";
        assert_eq!(all(good.repeat(2).as_bytes()), [body("{}"), body("{}")]);
        let short = format!("Content-Length: 1\r\n\r\n{{}}{good}");
        assert_eq!(all(short.as_bytes()), [body("{"), body("{}")]);
        let without = format!("X: y\r\n\r\n{good}");
        assert!(matches!(all(without.as_bytes())[..], [Received::Unreadable(_), Received::Body(_)]));
        let negative = format!("Content-Length: -5\r\n\r\n{good}");
        assert!(matches!(all(negative.as_bytes())[..], [Received::Unreadable(_), Received::Body(_)]));
    }

    #[test]
    fn an_announced_length_takes_no_memory() {
        assert_eq!(all(b"Content-Length: 100000000\r\n\r\nabc"), [Received::Unreadable("a message that is too long")]);
        assert_eq!(all(b"Content-Length: 900000\r\n\r\nabc"), [Received::Body(b"abc".to_vec())]);
    }
}
