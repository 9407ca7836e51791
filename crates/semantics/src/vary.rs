//! Variants: the parts of a request on which a stored response depends.
//!
//! The key of a variant is a list of entries, each a header name and the value the request had:
//!
//! ```text
//! name length (1 byte) │ name │ value length (2 bytes, little endian; 0xFFFF: no header) │ value
//! ```
//!
//! Values are compared according to [`Sameness`]; several headers of a name count as one, joined by
//! `, `. (Compat: Varnish compares only the first, and so may deliver a variant that was made for
//! another request.) With gzip support on, Accept-Encoding is left out: the cache itself gives each
//! client the coding it accepts. Source: RFC 9111 §4.1.

use crate::language;
use crate::list::members;
use message::Message;
use surface::limits::COMPARED_LANGUAGES_MAX;

/// Longest name of a header in Vary, in bytes. Compat: `Vary header name length exceeded` beyond
/// it.
pub const NAME_BYTES_MAX: usize = 127;
/// Longest value kept of a request header, in bytes.
pub const VALUE_BYTES_MAX: usize = 0xFFFE;
/// Longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 0xFFFF;

const ABSENT: u16 = 0xFFFF;

/// The criterion by which two values of a header count as the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sameness {
    /// Byte by byte. Compat: Varnish 7.1.
    #[default]
    Bytes,
    /// Lists are compared member by member, without the blanks around them, and languages without
    /// regard to case. Source: RFC 9111 §4.1.
    Meaning {
        /// The order of the languages in `Accept-Language` does not matter either.
        any_language_order: bool,
    },
}

/// The reason why a `Vary` header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VaryError {
    /// A name longer than [`NAME_BYTES_MAX`].
    NameTooLong,
    /// A value longer than [`VALUE_BYTES_MAX`], or a key longer than [`KEY_BYTES_MAX`].
    TooLong,
    /// Not a list of names.
    Malformed,
    /// `*`, alone or in the list: matches no request. Not an error of the backend.
    Star,
}

impl VaryError {
    /// The payload of the `Error` record; `None` for [`VaryError::Star`], which is not reported.
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

/// True if the response's Vary names this request header.
#[must_use]
pub fn depends_on(response: &Message, name: &str) -> bool {
    response.get_all("Vary").flat_map(members).any(|member| member.eq_ignore_ascii_case(name.as_bytes()))
}

/// The variant key of a response: the names in its `Vary` with the request's values. `None` if it
/// depends on nothing.
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

/// The key of the variant that this request would get from a response that varies on the names in
/// `key`: the variant that a fetch can expect before its response arrives. `None` if the key is
/// damaged or the request's values are too long.
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

/// The names in a key for which this request differs from the one that the key was made for; stops
/// where the key is damaged.
pub fn differing<'a>(key: &'a [u8], request: &'a Message, sameness: Sameness) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = key;
    let entries = std::iter::from_fn(move || if rest.is_empty() { None } else { take_entry(&mut rest) });
    entries.filter(move |(name, value)| !means_same(name, *value, request, sameness)).map(|(name, _)| name)
}

/// True if a request would have led to the same variant. A damaged key matches nothing, an empty
/// one everything.
#[must_use]
pub fn matches(key: &[u8], request: &Message, gzip_support: bool, sameness: Sameness) -> bool {
    let mut rest = key;
    while !rest.is_empty() {
        let Some((name, value)) = take_entry(&mut rest) else { return false };
        if gzip_support && is_accept_encoding(name) {
            continue;
        }
        if !means_same(name, value, request, sameness) {
            return false;
        }
    }
    true
}

/// True if the request's value of a header is the one in a key.
fn means_same(name: &[u8], expect: Option<&[u8]>, request: &Message, sameness: Sameness) -> bool {
    if is_same(expect, values(request, name)) {
        return true;
    }
    match (sameness, expect) {
        (Sameness::Bytes, _) | (_, None) => false,
        (Sameness::Meaning { any_language_order }, Some(expect)) => {
            let is_language = name.eq_ignore_ascii_case(b"Accept-Language");
            values(request, name).next().is_some()
                && means_same_list(expect, request, name, (is_language, is_language && any_language_order))
        }
    }
}

fn means_same_list(expect: &[u8], request: &Message, name: &[u8], (is_language, any_order): (bool, bool)) -> bool {
    let is_member = |one: &[u8], other: &[u8]| if is_language { language::is_same(one, other) } else { one == other };
    let asked = || values(request, name).flat_map(members);
    if !any_order {
        let mut asked = asked();
        return members(expect).all(|one| asked.next().is_some_and(|other| is_member(one, other)))
            && asked.next().is_none();
    }
    let count = members(expect).count();
    let times = |all: &mut dyn Iterator<Item = &[u8]>, one: &[u8]| all.filter(|other| is_member(one, other)).count();
    count <= COMPARED_LANGUAGES_MAX
        && count == asked().take(COMPARED_LANGUAGES_MAX + 1).count()
        && members(expect).all(|one| times(&mut members(expect), one) == times(&mut asked(), one))
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

/// True if the values, joined, are the expected one. Nothing is allocated: this runs for every
/// variant examined.
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
            assert_eq!(matches(&key, &message(asked), true, Sameness::Bytes), *expect, "{vary}: {stored:?} {asked:?}");
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
        assert!(matches(&key, &message(&[("Foo", "a")]), true, Sameness::Bytes));
        assert!(!matches(&key, &message(&[("Foo", "a"), ("Bar", "b")]), true, Sameness::Bytes));
    }

    #[test]
    fn accept_encoding_counts_only_without_gzip_support() {
        let response = message(&[("Vary", "accept-encoding, Foo")]);
        let key = encode(&response, &message(&[("Accept-Encoding", "br")]), false).unwrap().unwrap();
        assert!(matches(&key, &message(&[("Accept-Encoding", "br")]), false, Sameness::Bytes));
        assert!(!matches(&key, &message(&[("Accept-Encoding", "gzip")]), false, Sameness::Bytes));
        assert!(matches(&key, &message(&[("Accept-Encoding", "gzip")]), true, Sameness::Bytes));
    }

    #[test]
    fn invalid_vary_headers_are_refused() {
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
            assert!(!matches(&key[..cut], &request, true, Sameness::Bytes), "{cut}");
        }
        assert!(matches(&[], &request, true, Sameness::Bytes));
    }

    #[test]
    fn values_that_mean_the_same_select_the_same_variant() {
        let exact = Sameness::Meaning { any_language_order: false };
        let any_order = Sameness::Meaning { any_language_order: true };
        let language = "Accept-Language";
        let cases: &[(&str, Lines, Lines, Sameness, bool)] = &[
            ("Foo", &[("Foo", "1, 2")], &[("Foo", "1"), ("Foo", "2")], exact, true),
            ("Foo", &[("Foo", "1,2")], &[("Foo", " 1 ,\t2")], exact, true),
            ("Foo", &[("Foo", "1,2")], &[("Foo", "1 ,2")], Sameness::Bytes, false),
            ("Foo", &[("Foo", "1, 2")], &[("Foo", "2, 1")], any_order, false),
            ("Foo", &[("Foo", "1, 2")], &[("Foo", "1")], exact, false),
            ("Foo", &[("Foo", "1")], &[("Foo", "1, 2")], exact, false),
            ("Foo", &[("Foo", "a")], &[("Foo", "A")], exact, false),
            ("Foo", &[("Foo", "\"a, b\"")], &[("Foo", "\"a,b\"")], exact, false),
            ("Foo", &[("Foo", "")], &[], exact, false),
            ("Foo", &[], &[("Foo", "")], exact, false),
            ("Foo", &[], &[], exact, true),
            (language, &[(language, "en, de")], &[(language, "eN,De")], exact, true),
            (language, &[(language, "en, de;q=0.5")], &[(language, " en ,   de ; q=0.5")], exact, true),
            (language, &[(language, "en, de")], &[(language, "de, en")], exact, false),
            (language, &[(language, "en, de")], &[(language, "de, en")], any_order, true),
            (language, &[(language, "en, en, de")], &[(language, "de, de, en")], any_order, false),
            (language, &[(language, "en, de")], &[(language, "de, en, fr")], any_order, false),
        ];
        for (vary, stored, asked, sameness, expect) in cases {
            let key = key(vary, stored).unwrap().unwrap_or_default();
            assert_eq!(matches(&key, &message(asked), true, *sameness), *expect, "{vary}: {stored:?} {asked:?}");
            let differs = differing(&key, &message(asked), *sameness).next().is_some();
            assert_eq!(differs, !*expect, "{vary}: {stored:?} {asked:?}");
        }
    }

    #[test]
    fn order_of_very_many_languages_is_not_compared() {
        let forth: Vec<_> = (0..COMPARED_LANGUAGES_MAX + 1).map(|number| format!("x{number}")).collect();
        let back: Vec<_> = forth.iter().rev().cloned().collect();
        let (forth, back) = (forth.join(","), back.join(","));
        let stored = key("Accept-Language", &[("Accept-Language", &forth)]).unwrap().unwrap();
        let asked = message(&[("Accept-Language", &back)]);
        assert!(!matches(&stored, &asked, true, Sameness::Meaning { any_language_order: true }));
    }
}
