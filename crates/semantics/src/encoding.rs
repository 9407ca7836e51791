//! Content codings: whether a client accepts gzip, and what changes with the coding. Source: RFC 9110 §12.5.3, §8.8.1.

use crate::list::{members, split_unquoted};
use message::Message;

/// Whether the request's Accept-Encoding admits gzip (or x-gzip).
///
/// Compat: as Varnish 7.1.1 reads it: the coding must be named (`*` does not count), one member with a weight above 0 is
/// enough, an invalid weight counts as 0.
#[must_use]
pub fn accepts_gzip(request: &Message) -> bool {
    request.get_all("Accept-Encoding").flat_map(members).any(|member| {
        let (coding, mut parameters) = split_unquoted(member, b';');
        let coding = coding.trim_ascii();
        if !coding.eq_ignore_ascii_case(b"gzip") && !coding.eq_ignore_ascii_case(b"x-gzip") {
            return false;
        }
        while !parameters.is_empty() {
            let (parameter, rest) = split_unquoted(parameters, b';');
            parameters = rest;
            let (name, value) = split_unquoted(parameter, b'=');
            if name.trim_ascii() == b"q" {
                return is_positive(value.trim_ascii());
            }
        }
        true
    })
}

/// A decimal number above 0.
fn is_positive(value: &[u8]) -> bool {
    let mut points = 0;
    let mut is_zero = true;
    for &byte in value {
        match byte {
            b'0' => {}
            b'1'..=b'9' => is_zero = false,
            b'.' if points == 0 => points = 1,
            _ => return false,
        }
    }
    !is_zero
}

/// Makes a strong ETag weak: it no longer stands for the same bytes.
pub fn weaken_etag(message: &mut Message) {
    let Some(tag) = message.get("ETag") else { return };
    if tag.is_empty() || tag.starts_with(b"W/") {
        return;
    }
    let weak = [b"W/", tag].concat();
    message.set("ETag", &weak);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_when_named_with_a_weight() {
        let accepts = |value: &str| {
            let mut request = Message::new();
            request.append(b"Accept-Encoding", value.as_bytes());
            accepts_gzip(&request)
        };
        for value in [
            "gzip",
            "GZIP",
            "x-gzip",
            "deflate,gzip;q=0.1,br",
            "gzip;q=0.001",
            "gzip; q=0.5",
            "gzip;q=1.5",
            "gzip;q=.5",
            "gzip;foo=bar",
            "gzip;q=0, x-gzip",
            "gzip, gzip;q=0",
        ] {
            assert!(accepts(value), "{value}");
        }
        for value in [
            "",
            "deflate",
            "gzipx",
            "br gzip",
            "*",
            "*;q=0.5",
            "identity",
            "gzip;q=0",
            "GZIP;q=0.0,deflate",
            "gzip ; q = 0",
            "gzip;q=",
            "gzip;q=abc",
            "gzip;q=-1",
            "gzip;foo=bar;q=0",
        ] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!accepts_gzip(&Message::new()));
    }

    #[test]
    fn an_etag_is_weakened_once() {
        let weak = |tag: &str| {
            let mut message = Message::new();
            message.append(b"ETag", tag.as_bytes());
            weaken_etag(&mut message);
            String::from_utf8(message.get("ETag").unwrap().to_vec()).unwrap()
        };
        assert_eq!(weak("\"a\""), "W/\"a\"");
        assert_eq!(weak("W/\"a\""), "W/\"a\"");
        assert_eq!(weak(""), "");
    }
}
