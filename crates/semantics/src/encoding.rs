//! Content codings: the codings a client accepts, the bodies worth compressing, and the fields that
//! change with the coding. Source: RFC 9110 §12.5.3, §8.8.1.

use crate::list::{members, split_unquoted};
use message::Message;
use surface::encoding::{ENCODINGS, Encoding, Encodings};

/// True if the request's Accept-Encoding admits gzip (or x-gzip), as [`accepts`] reads it.
#[must_use]
pub fn accepts_gzip(request: &Message) -> bool {
    accepts(request, Encoding::Gzip)
}

/// True if the request's Accept-Encoding names a coding.
///
/// Compat: as Varnish 7.1.1 reads it for gzip: the coding must be named (`*` does not count), one
/// member with a weight above 0 is enough, an invalid weight counts as 0.
#[must_use]
pub fn accepts(request: &Message, encoding: Encoding) -> bool {
    weights(request).any(|(name, weight)| Encoding::of_name(name) == Some(encoding) && weight.is_none_or(is_positive))
}

/// The codings of `known` that the request names with a weight above 0, in its order: for a request
/// whose Accept-Encoding was set from [`preferred`].
#[must_use]
pub fn named(request: &Message, known: Encodings) -> Encodings {
    let mut list = Encodings::NONE;
    for (name, weight) in weights(request) {
        if let Some(encoding) = Encoding::of_name(name).filter(|encoding| known.has(*encoding))
            && weight.is_none_or(is_positive)
        {
            list.push(encoding);
        }
    }
    list
}

/// The codings of `known` that the request accepts: those with the greatest weight first, those of
/// equal weight in the order of `known`. A named coding has the weight given there, others have
/// that of `*`; a coding with less weight than no coding at all (`identity`) is not accepted.
/// Without Accept-Encoding, none is. Of several members for one coding the one with the greatest
/// weight counts; an invalid weight counts as 0. Source: RFC 9110 §12.5.3.
#[must_use]
pub fn preferred(request: &Message, known: Encodings) -> Encodings {
    let (mut others, mut plain) = (0, 0);
    let mut told: [Option<u16>; ENCODINGS.len()] = [None; ENCODINGS.len()];
    for (name, weight) in weights(request) {
        let weight = weight.map_or(WEIGHT_MAX, thousandths);
        if let Some(encoding) = Encoding::of_name(name) {
            let told = &mut told[encoding as usize - 1];
            *told = (*told).max(Some(weight));
        } else if name == b"*" {
            others = weight.max(others);
        } else if name.eq_ignore_ascii_case(b"identity") {
            plain = weight.max(plain);
        }
    }
    let weight_of = |encoding: Encoding| told[encoding as usize - 1].unwrap_or(others);
    let mut list = Encodings::NONE;
    let mut above = WEIGHT_MAX + 1;
    // The next lower weight each time: there are no more weights than codings.
    while let Some(next) = known.iter().map(weight_of).filter(|weight| *weight < above).max() {
        if next == 0 || next < plain {
            break;
        }
        known.iter().filter(|encoding| weight_of(*encoding) == next).for_each(|encoding| list.push(encoding));
        above = next;
    }
    list
}

/// The members of Accept-Encoding: names, and unparsed weights.
fn weights(request: &Message) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    request.get_all("Accept-Encoding").flat_map(members).map(|member| {
        let (coding, mut parameters) = split_unquoted(member, b';');
        let mut weight = None;
        while !parameters.is_empty() && weight.is_none() {
            let (parameter, rest) = split_unquoted(parameters, b';');
            parameters = rest;
            let (name, value) = split_unquoted(parameter, b'=');
            if name.trim_ascii() == b"q" {
                weight = Some(value.trim_ascii());
            }
        }
        (coding.trim_ascii(), weight)
    })
}

/// The greatest weight, in thousandths.
const WEIGHT_MAX: u16 = 1000;

/// A weight in thousandths; a number above 0 is at least 1, and an invalid number is 0.
fn thousandths(value: &[u8]) -> u16 {
    if !is_positive(value) {
        return 0;
    }
    let point = value.iter().position(|byte| *byte == b'.').unwrap_or(value.len());
    let (whole, fraction) = value.split_at(point);
    if whole.iter().any(|digit| *digit != b'0') {
        return WEIGHT_MAX;
    }
    let digits = fraction.iter().skip(1).chain(std::iter::repeat(&b'0'));
    digits.take(3).fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')).max(1)
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

/// Types of media that are text, or as compressible as text.
const COMPRESSIBLE: &[&str] = &[
    "application/atom+xml",
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/rss+xml",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/xhtml+xml",
    "application/xml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// True if a body of the media type in a Content-Type is likely to become shorter by compression.
#[must_use]
pub fn is_compressible(content_type: &[u8]) -> bool {
    let kind = split_unquoted(content_type, b';').0.trim_ascii().to_ascii_lowercase();
    let has_suffix = [&b"+json"[..], b"+xml", b"+text"].iter().any(|suffix| kind.ends_with(suffix));
    kind.starts_with(b"text/") || has_suffix || COMPRESSIBLE.iter().any(|known| known.as_bytes() == kind)
}

/// True if the stored body of a response may be sent in another coding: no field of the head
/// describes its exact bytes (RFC 9530), and [`may_be_compressed_by_default`].
#[must_use]
pub fn may_be_recoded(response: &Message) -> bool {
    const OF_BYTES: [&str; 5] = ["Content-MD5", "Content-Digest", "Digest", "Repr-Digest", "Content-Range"];
    !OF_BYTES.iter().any(|name| response.has(name)) && may_be_compressed_by_default(response)
}

/// True if a response may get a content coding without being asked by name: it is not marked
/// `no-transform` (RFC 9110 §7.7), and is not an event stream, whose readers wait for each line.
#[must_use]
pub fn may_be_compressed_by_default(response: &Message) -> bool {
    let forbids = |member: &[u8]| member.eq_ignore_ascii_case(b"no-transform");
    let kind = response.get("Content-Type").map(|value| split_unquoted(value, b';').0.trim_ascii());
    let is_events = kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/event-stream"));
    !is_events && !response.get_all("Cache-Control").flat_map(members).any(forbids)
}

/// Makes a strong ETag weak: it no longer identifies the same bytes.
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
    fn codings_are_preferred_by_weight_and_then_in_our_order() {
        let known = Encodings::parse("zstd br gzip").unwrap();
        let preferred = |value: &str| {
            let mut request = Message::new();
            request.append(b"Accept-Encoding", value.as_bytes());
            super::preferred(&request, known).join(", ")
        };
        for (value, expected) in [
            ("gzip, deflate, br, zstd", "zstd, br, gzip"),
            ("gzip, deflate, br", "br, gzip"),
            ("x-gzip", "gzip"),
            ("GZIP, BR", "br, gzip"),
            ("gzip;q=1.0, br;q=0.5", "gzip, br"),
            ("br;q=0.001, gzip;q=0.003, zstd;q=0.002", "gzip, zstd, br"),
            ("br;q=0, gzip", "gzip"),
            ("br;q=0.000;x=y, gzip", "gzip"),
            ("*", "zstd, br, gzip"),
            ("*;q=0", ""),
            ("br;q=0, *", "zstd, gzip"),
            ("gzip, *;q=0.5", "gzip, zstd, br"),
            ("gzip, *;q=0", "gzip"),
            ("identity;q=0, br", "br"),
            ("identity, gzip;q=0.5, br", "br"),
            ("identity;q=0.5, gzip;q=0.2", ""),
            ("br;q=x, gzip", "gzip"),
            ("br;q=7, gzip", "br, gzip"),
            ("br;q=0, br;q=0.5", "br"),
            ("br;q=\"1\"", ""),
            ("", ""),
            ("deflate", ""),
            (",;q=1,,=;", ""),
        ] {
            assert_eq!(preferred(value), expected, "{value}");
        }
        assert_eq!(super::preferred(&Message::new(), known), Encodings::NONE);
    }

    #[test]
    fn preferred_encodings_keep_their_order() {
        let known = Encodings::parse("zstd br gzip").unwrap();
        for value in ["gzip, br", "zstd", "br, zstd, gzip", ""] {
            let mut request = Message::new();
            request.append(b"Accept-Encoding", value.as_bytes());
            assert_eq!(named(&request, known).join(", "), value);
        }
    }

    #[test]
    fn text_is_worth_compressing() {
        for kind in ["text/html; charset=utf-8", "Application/JSON", "image/svg+xml", "application/ld+json", "font/ttf"]
        {
            assert!(is_compressible(kind.as_bytes()), "{kind}");
        }
        for kind in ["image/png", "video/mp4", "application/octet-stream", "font/woff2", "", "textile/x"] {
            assert!(!is_compressible(kind.as_bytes()), "{kind}");
        }
    }

    #[test]
    fn a_body_that_something_names_or_protects_stays_as_it_is() {
        let may = |name: &str, value: &str| {
            let mut response = Message::new();
            response.append(name.as_bytes(), value.as_bytes());
            may_be_recoded(&response)
        };
        assert!(may("Cache-Control", "public, max-age=10"));
        assert!(!may("Cache-Control", "public, No-Transform"));
        assert!(!may("Content-Digest", "sha-256=:abc=:"));
        assert!(!may("Content-Range", "bytes 0-1/2"));
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
