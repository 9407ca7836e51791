//! Variants: the parts of a request on which a stored response depends.
//!
//! The key of a variant is a list of entries, each a header name and the value the request had:
//!
//! ```text
//! name length (1 byte) │ name │ value length (2 bytes, little endian; 0xFFFF: there was no such header) │ value
//! ```
//!
//! Values are compared byte by byte; several headers of a name count as one, joined by `, `. (Compat: Varnish compares
//! only the first, and so may deliver a variant that was made for another request.) With gzip support on,
//! Accept-Encoding is left out: the cache itself gives each client the coding it accepts. Source: RFC 9111 §4.1.

use crate::list::members;
use message::Message;

/// Longest name of a header in Vary, in bytes. Compat: `Vary header name length exceeded` beyond it.
pub const NAME_BYTES_MAX: usize = 127;
/// Longest value kept of a request header, in bytes.
pub const VALUE_BYTES_MAX: usize = 0xFFFE;
/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 0xFFFF;

const ABSENT: u16 = 0xFFFF;

/// Why a `Vary` header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VaryError {
    /// A name longer than [`NAME_BYTES_MAX`].
    NameTooLong,
    /// A value longer than [`VALUE_BYTES_MAX`], or a key longer than [`KEY_BYTES_MAX`].
    TooLong,
    /// Not a list of names.
    Malformed,
    /// `*`, alone or in the list: matches no request. No fault of the backend's.
    Star,
}

impl VaryError {
    /// The payload of the `Error` record; `None` for [`VaryError::Star`], which is no error to report.
    #[must_use]
    pub fn text(self) -> Option<&'static str> {
        match self {
            VaryError::NameTooLong => Some("Vary header name length exceeded"),
            VaryError::TooLong => Some("Vary header maximum length exceeded"),
            VaryError::Malformed => Some("Malformed Vary header"),
            VaryError::Star => None,
        }
    }
}

/// The variant key of a response: the names in its `Vary` with the request's values. `None` when it depends on nothing.
///
/// # Errors
/// [`VaryError`]: the response must not be shared.
pub fn encode(response: &Message, request: &Message, gzip_support: bool) -> Result<Option<Vec<u8>>, VaryError> {
    let mut key = Vec::new();
    for name in response.get_all("Vary").flat_map(members) {
        if name == b"*" {
            return Err(VaryError::Star);
        }
        if name.iter().any(|&byte| byte == b' ' || byte == b'\t') {
            return Err(VaryError::Malformed);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(VaryError::NameTooLong);
        }
        if gzip_support && is_accept_encoding(name) {
            continue;
        }
        push_entry(&mut key, name, request)?;
    }
    Ok((!key.is_empty()).then_some(key))
}

/// The key of the variant that this request would get from a response that varies on the names in `key`: what a fetch
/// can expect before its response arrives. `None` when the key is damaged or the request's values are too long.
#[must_use]
pub fn of_request(key: &[u8], request: &Message) -> Option<Vec<u8>> {
    let (mut expected, mut rest) = (Vec::new(), key);
    while !rest.is_empty() {
        let (name, _) = take_entry(&mut rest)?;
        push_entry(&mut expected, name, request).ok()?;
    }
    Some(expected)
}

/// Appends a name and the request's value.
fn push_entry(key: &mut Vec<u8>, name: &[u8], request: &Message) -> Result<(), VaryError> {
    key.push(name.len() as u8);
    key.extend_from_slice(name);
    let length_at = key.len();
    key.extend_from_slice(&ABSENT.to_le_bytes());
    let value_at = key.len();
    let mut count = 0;
    for value in values(request, name) {
        if count > 0 {
            key.extend_from_slice(b", ");
        }
        key.extend_from_slice(value);
        count += 1;
    }
    if count > 0 {
        let length = key.len() - value_at;
        let length = u16::try_from(length).ok().filter(|&length| length != ABSENT).ok_or(VaryError::TooLong)?;
        key[length_at..value_at].copy_from_slice(&length.to_le_bytes());
    }
    if key.len() > KEY_BYTES_MAX { Err(VaryError::TooLong) } else { Ok(()) }
}

/// The names in a key for which this request differs from the one that the key was made for; stops where the key is
/// damaged.
pub fn differing<'a>(key: &'a [u8], request: &'a Message) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = key;
    let entries = std::iter::from_fn(move || if rest.is_empty() { None } else { take_entry(&mut rest) });
    entries.filter(|(name, value)| !is_same(*value, values(request, name))).map(|(name, _)| name)
}

/// Whether a request would have led to the same variant. A damaged key matches nothing, an empty one everything.
#[must_use]
pub fn matches(key: &[u8], request: &Message, gzip_support: bool) -> bool {
    let mut rest = key;
    while !rest.is_empty() {
        let Some((name, value)) = take_entry(&mut rest) else { return false };
        if gzip_support && is_accept_encoding(name) {
            continue;
        }
        if !is_same(value, values(request, name)) {
            return false;
        }
    }
    true
}

fn take_entry<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let (&name_len, tail) = rest.split_first()?;
    let (name, tail) = tail.split_at_checked(usize::from(name_len))?;
    let (length, tail) = tail.split_first_chunk::<2>()?;
    let length = u16::from_le_bytes(*length);
    let (value, tail) = if length == ABSENT {
        (None, tail)
    } else {
        let (value, tail) = tail.split_at_checked(usize::from(length))?;
        (Some(value), tail)
    };
    *rest = tail;
    Some((name, value))
}

/// Whether the values, joined, are the expected one. Nothing is allocated: this runs for every variant looked at.
fn is_same<'a>(expect: Option<&[u8]>, values: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut rest = expect;
    let mut count = 0;
    for value in values {
        if count > 0 {
            rest = rest.and_then(|rest| rest.strip_prefix(b", "));
        }
        let Some(tail) = rest.and_then(|rest| rest.strip_prefix(value)) else { return false };
        rest = Some(tail);
        count += 1;
    }
    if count == 0 { expect.is_none() } else { rest.is_some_and(<[u8]>::is_empty) }
}

fn values<'a>(request: &'a Message, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    request.headers().filter(move |header| header.name().eq_ignore_ascii_case(name)).map(|header| header.value())
}

fn is_accept_encoding(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"Accept-Encoding")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn message(lines: Lines) -> Message {
        let mut message = Message::new();
        for (name, value) in lines {
            message.append(name.as_bytes(), value.as_bytes());
        }
        message
    }

    fn key(vary: &str, request: &[(&str, &str)]) -> Result<Option<Vec<u8>>, VaryError> {
        encode(&message(&[("Vary", vary)]), &message(request), true)
    }

    #[test]
    fn a_variant_serves_the_requests_that_say_the_same() {
        let a = [("Foo", "a")];
        let cases: &[(&str, Lines, Lines, bool)] = &[
            ("Foo", &a, &[("foo", "a")], true),
            ("foo", &a, &[("FOO", "a"), ("Bar", "x")], true),
            ("Foo", &a, &[("Foo", "A")], false),
            ("Foo", &a, &[("Foo", "ab")], false),
            ("Foo", &a, &[("Foo", "")], false),
            ("Foo", &a, &[], false),
            ("Foo", &[], &[], true),
            ("Foo", &[], &[("Foo", "")], false),
            ("Foo", &[("Foo", "")], &[], false),
            ("Foo", &[("Foo", "")], &[("Foo", "")], true),
            ("Foo", &a, &[("Foo", "a"), ("Foo", "b")], false),
            ("Foo", &[("Foo", "a, b")], &[("Foo", "a"), ("Foo", "b")], true),
            ("Foo", &[("Foo", "a"), ("Foo", "b")], &[("Foo", "a, b")], true),
            ("Foo", &[("Foo", "a"), ("Foo", "b")], &[("Foo", "a")], false),
            ("Foo, Bar", &[("Foo", "a"), ("Bar", "b")], &[("Bar", "b"), ("Foo", "a")], true),
            ("Foo, Bar", &[("Foo", "a"), ("Bar", "b")], &a, false),
            (" ,,Foo,", &a, &[("Foo", "b")], false),
            ("Accept-Encoding", &[("Accept-Encoding", "gzip")], &[], true),
        ];
        for (vary, stored, asked, expect) in cases {
            let key = key(vary, stored).unwrap().unwrap_or_default();
            assert_eq!(matches(&key, &message(asked), true), *expect, "{vary}: {stored:?} {asked:?}");
        }
    }

    #[test]
    fn the_key_that_a_request_would_get_is_foretold_from_another_variant() {
        let other = key("Foo, Bar", &[("Foo", "a")]).unwrap().unwrap();
        let asked = [("Bar", "x"), ("Foo", "b")];
        assert_eq!(of_request(&other, &message(&asked)), key("Foo, Bar", &asked).unwrap());
        assert_eq!(of_request(&[], &message(&asked)), Some(vec![]));
        assert_eq!(of_request(&[200, 1], &message(&asked)), None);
    }

    #[test]
    fn several_vary_headers_are_one_list() {
        let response = message(&[("Vary", "Foo"), ("vary", "Bar")]);
        let key = encode(&response, &message(&[("Foo", "a")]), true).unwrap().unwrap();
        assert!(matches(&key, &message(&[("Foo", "a")]), true));
        assert!(!matches(&key, &message(&[("Foo", "a"), ("Bar", "b")]), true));
    }

    #[test]
    fn accept_encoding_counts_only_without_gzip_support() {
        let response = message(&[("Vary", "accept-encoding, Foo")]);
        let key = encode(&response, &message(&[("Accept-Encoding", "br")]), false).unwrap().unwrap();
        assert!(matches(&key, &message(&[("Accept-Encoding", "br")]), false));
        assert!(!matches(&key, &message(&[("Accept-Encoding", "gzip")]), false));
        assert!(matches(&key, &message(&[("Accept-Encoding", "gzip")]), true));
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        assert_eq!(key("*", &[]), Err(VaryError::Star));
        assert_eq!(key("Foo, *", &[]), Err(VaryError::Star));
        assert_eq!(key("Foo Bar", &[]), Err(VaryError::Malformed));
        assert_eq!(key(&long, &[]), Err(VaryError::NameTooLong));
        assert!(key(&long[1..], &[]).unwrap().is_some());
        assert_eq!(key("Foo", &[("Foo", &"x".repeat(70_000))]), Err(VaryError::TooLong));
        assert_eq!(key("Foo, foo", &[("Foo", &"x".repeat(40_000))]), Err(VaryError::TooLong));
        assert_eq!(key("", &[]), Ok(None));
        assert_eq!(encode(&Message::new(), &Message::new(), true), Ok(None));
    }

    #[test]
    fn a_damaged_key_matches_nothing_and_an_empty_one_everything() {
        let request = message(&[("Foo", "a")]);
        let key = key("Foo", &[("Foo", "a")]).unwrap().unwrap();
        for cut in 1..key.len() {
            assert!(!matches(&key[..cut], &request, true), "{cut}");
        }
        assert!(matches(&[], &request, true));
    }
}
