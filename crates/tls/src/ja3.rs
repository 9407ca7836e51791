//! The JA3 fingerprint of a client: [`ja3`], of the bytes of its first message.
//!
//! rustls exposes the content of a ClientHello but not its order, on which the fingerprint depends.
//! The bytes are hostile; if they do not parse there is no fingerprint. Values of GREASE (RFC 8701)
//! are left out, as in other implementations. Source: RFC 8446 §4.1.2, §5.1, and the method that
//! Salesforce published.

use crate::certificate::hexadecimal;
use md5::{Digest, Md5};
use surface::limits::TLS_HELLO_BYTES_MAX;

/// Type of the records of a handshake.
const HANDSHAKE: u8 = 22;
/// Type of the message.
const CLIENT_HELLO: u8 = 1;
/// Extension supported_groups.
const GROUPS: u16 = 10;
/// Extension ec_point_formats.
const POINT_FORMATS: u16 = 11;

/// The fingerprint of a client that begins with these bytes, 32 hexadecimal digits. `None` unless
/// they hold a whole ClientHello.
#[must_use]
pub fn ja3(bytes: &[u8]) -> Option<String> {
    Some(hexadecimal(&Md5::digest(ja3_text(bytes)?)))
}

/// Input of the fingerprint: version, suites, extensions, groups, point formats.
fn ja3_text(bytes: &[u8]) -> Option<String> {
    let message = message(bytes)?;
    let mut hello = Reader(&message);
    let version = hello.number()?;
    hello.take(32)?;
    let _session = hello.block8()?;
    let suites = numbers(hello.block16()?)?;
    let _compression = hello.block8()?;
    let (mut extensions, mut groups, mut formats) = (Vec::new(), Vec::new(), Vec::new());
    if !hello.0.is_empty() {
        let mut all = Reader(hello.block16()?);
        while !all.0.is_empty() {
            let kind = all.number()?;
            let mut data = Reader(all.block16()?);
            match kind {
                GROUPS => groups = numbers(data.block16()?)?,
                POINT_FORMATS => formats = data.block8()?.iter().map(|byte| u16::from(*byte)).collect(),
                _ => {}
            }
            extensions.push(kind);
        }
    }
    let lists = [suites, extensions, groups, formats];
    let [suites, extensions, groups, formats] = lists.map(|list| joined(&list));
    Some(format!("{version},{suites},{extensions},{groups},{formats}"))
}

/// The body of the first message of a handshake, assembled from its records.
fn message(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut records = Reader(bytes);
    let mut message = Vec::new();
    loop {
        if records.take(1)? != [HANDSHAKE] {
            return None;
        }
        records.take(2)?;
        message.extend_from_slice(records.block16()?);
        if message.len() > TLS_HELLO_BYTES_MAX {
            return None;
        }
        let [kind, one, two, three, body @ ..] = &message[..] else { continue };
        if *kind != CLIENT_HELLO {
            return None;
        }
        let length = u32::from_be_bytes([0, *one, *two, *three]) as usize;
        if let Some(body) = body.get(..length) {
            return Some(body.to_vec());
        }
    }
}

/// Numbers in decimal, with dashes between them, without those of GREASE.
fn joined(numbers: &[u16]) -> String {
    let is_grease = |number: u16| number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff;
    let kept: Vec<String> = numbers.iter().filter(|number| !is_grease(**number)).map(u16::to_string).collect();
    kept.join("-")
}

/// A list of numbers of two bytes.
fn numbers(bytes: &[u8]) -> Option<Vec<u16>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
}

/// The unread bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from(bytes[0]) << 8 | u16::from(bytes[1]))
    }

    /// Bytes after a length of one byte.
    fn block8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    /// Bytes after a length of two bytes.
    fn block16(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block16(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &block16(data)].concat()
    }

    fn hello() -> Vec<u8> {
        let extensions = [
            extension(0x2a2a, b""),
            extension(0, b"x"),
            extension(GROUPS, &block16(&[0x3a, 0x3a, 0, 29, 0, 23])),
            extension(POINT_FORMATS, &[2, 0, 1]),
        ]
        .concat();
        let mut body = vec![3, 3];
        body.extend_from_slice(&[7; 32]);
        body.push(0);
        body.extend(block16(&[0x0a, 0x0a, 0x13, 1, 0xc0, 0x2b]));
        body.extend_from_slice(&[1, 0]);
        body.extend(block16(&extensions));
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend(block16(&body));
        message
    }

    fn record(part: &[u8]) -> Vec<u8> {
        [&[HANDSHAKE, 3, 1][..], &block16(part)].concat()
    }

    #[test]
    fn the_fingerprint_is_made_of_what_the_client_says_without_grease() {
        let text = ja3_text(&record(&hello())).unwrap();
        assert_eq!(text, "771,4865-49195,0-10-11,29-23,0-1");
        assert_eq!(ja3(&record(&hello())).unwrap().len(), 32);
    }

    #[test]
    fn records_of_one_byte_make_no_difference() {
        let hello = hello();
        let bytes: Vec<u8> = hello.iter().flat_map(|byte| record(&[*byte])).collect();
        assert_eq!(ja3(&bytes), ja3(&record(&hello)));
    }

    #[test]
    fn truncated_hello_has_no_fingerprint() {
        let whole = record(&hello());
        for end in 0..whole.len() {
            assert_eq!(ja3(&whole[..end]), None, "{end}");
        }
        assert_eq!(ja3(b"GET / HTTP/1.1\r\n\r\n"), None);
    }
}
