//! A client's conditions, evaluated for a stored response according to RFC 9110 §13 and RFC 9111
//! §4.3.2.
//!
//! The conditions of the policy `varnish` are in `conditional`. If-Match and If-Unmodified-Since
//! are for origins: a cache does not evaluate them.

use crate::date::{self, DateForms};
use message::Message;

/// Fields that describe the body and have no place in a 304. Source: RFC 9110 §15.4.5.
pub const OF_BODY: [&str; 6] =
    ["Content-Encoding", "Content-Language", "Content-Length", "Content-Range", "Content-Type", "Accept-Ranges"];

/// True if the client already has the response, so that a 304 answers it. Without a `Last-Modified`
/// the response counts as modified at its `Date`, else at `received` (seconds since 1970).
#[must_use]
pub fn not_modified(request: &Message, response: &Message, received: f64, forms: DateForms) -> bool {
    if !matches!(request.method(), b"GET" | b"HEAD") || !matches!(response.status() % 1000, 200 | 203 | 206) {
        return false;
    }
    if request.has("If-None-Match") {
        let stored = response.get("ETag").map(opaque);
        return request.get_all("If-None-Match").any(|value| names(value, stored));
    }
    let mut lines = request.get_all("If-Modified-Since");
    let (Some(since), None) = (lines.next(), lines.next()) else { return false };
    let Some(since) = date::parse(since, forms) else { return false };
    let modified = match response.get("Last-Modified") {
        Some(value) => date::parse(value, forms),
        None => Some(response.get("Date").and_then(|value| date::parse(value, forms)).unwrap_or(received)),
    };
    modified.is_some_and(|modified| modified <= since)
}

/// A tag without the mark of weakness.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// True if a list of tags names a stored one, compared weakly; `*` matches every stored response.
fn names(list: &[u8], stored: Option<&[u8]>) -> bool {
    list.trim_ascii() == b"*" || stored.is_some_and(|stored| tags(list).any(|tag| opaque(tag) == stored))
}

/// The tags of a list. Commas within the quotes of a tag belong to it; nothing escapes there. A tag
/// without quotes ends at the next comma.
fn tags(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_ascii_start();
            match rest {
                [] => return None,
                [b',', tail @ ..] => rest = tail,
                _ => break,
            }
        }
        let prefix = if rest.starts_with(b"W/") { 2 } else { 0 };
        let behind = &rest[prefix..];
        let end = match behind.strip_prefix(b"\"").map(|body| body.iter().position(|byte| *byte == b'"')) {
            Some(Some(quote)) => prefix + quote + 2,
            _ => rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len()),
        };
        let (tag, tail) = rest.split_at(end);
        rest = tail;
        Some(tag.trim_ascii_end())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVED: f64 = 1_700_000_000.0;

    fn at(seconds: f64) -> String {
        date::text(RECEIVED + seconds)
    }

    fn message(lines: &[(&str, &str)]) -> Message {
        let mut message = Message::new();
        for (name, value) in lines {
            message.append(name.as_bytes(), value.as_bytes());
        }
        message
    }

    fn judged(request: &[(&str, &str)], response: &[(&str, &str)]) -> bool {
        let mut request = message(request);
        request.set_method(b"GET");
        let mut response = message(response);
        response.set_status(200);
        not_modified(&request, &response, RECEIVED, DateForms::Exact)
    }

    #[test]
    fn tags_are_compared_weakly_anywhere_in_the_list() {
        let cases = [
            ("\"a\"", "\"a\"", true),
            ("W/\"a\"", "\"a\"", true),
            ("\"a\"", "W/\"a\"", true),
            ("\"b\", \"a\"", "\"a\"", true),
            ("\"b\" ,\t, W/\"a\",", "\"a\"", true),
            ("\"a,b\"", "\"a\"", false),
            ("\"x\", \"a,b\"", "\"a,b\"", true),
            ("\"x\\\", \"a\"", "\"a\"", true),
            ("\"b\"", "\"a\"", false),
            ("*", "\"a\"", true),
            ("\"*\"", "\"a\"", false),
            ("a", "a", true),
            ("a, b", "b", true),
            ("a", "\"a\"", false),
            ("\"a", "\"a", true),
            ("", "\"a\"", false),
            ("\"ü\"", "\"ü\"", true),
        ];
        for (asked, stored, expected) in cases {
            assert_eq!(judged(&[("If-None-Match", asked)], &[("ETag", stored)]), expected, "{asked} {stored}");
        }
        assert!(judged(&[("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")], &[("ETag", "\"a\"")]));
        assert!(judged(&[("If-None-Match", "*")], &[]), "whatever is stored exists");
        assert!(!judged(&[("If-None-Match", "\"a\"")], &[]));
        assert!(judged(&[("If-None-Match", "W/\"a\""), ("Range", "bytes=0-1")], &[("ETag", "\"a\"")]));
    }

    #[test]
    fn tags_come_before_dates() {
        let modified = at(-5000.0);
        let stored = [("ETag", "\"a\""), ("Last-Modified", modified.as_str())];
        assert!(judged(&[("If-None-Match", "\"a\""), ("If-Modified-Since", &at(-10000.0))], &stored));
        assert!(!judged(&[("If-None-Match", "\"b\""), ("If-Modified-Since", &at(0.0))], &stored));
    }

    #[test]
    fn dates_of_all_three_forms_are_compared() {
        let since =
            |value: &str, modified: &str| judged(&[("If-Modified-Since", value)], &[("Last-Modified", modified)]);
        let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert!(since(modified, modified));
        assert!(since("Sunday, 06-Nov-94 08:49:37 GMT", modified));
        assert!(since("Sun Nov  6 08:49:37 1994", modified));
        assert!(since("Sun, 06 Nov 1994 08:49:38 GMT", modified));
        assert!(!since("Sun, 06 Nov 1994 08:49:36 GMT", modified));
        assert!(!since("yesterday", modified));
        assert!(!since(modified, "yesterday"));
        let twice = [("If-Modified-Since", modified), ("If-Modified-Since", modified)];
        assert!(!judged(&twice, &[("Last-Modified", modified)]));
    }

    #[test]
    fn date_stands_in_for_a_missing_last_modified() {
        assert!(!judged(&[("If-Modified-Since", &at(-3000.0))], &[("Date", &at(0.0))]));
        assert!(judged(&[("If-Modified-Since", &at(0.0))], &[("Date", &at(0.0))]));
        assert!(judged(&[("If-Modified-Since", &at(0.0))], &[]));
        assert!(!judged(&[("If-Modified-Since", &at(-1.0))], &[]));
    }

    #[test]
    fn only_a_get_of_something_found_is_judged() {
        let mut request = message(&[("If-None-Match", "*")]);
        let mut response = message(&[]);
        for (method, status, expected) in [
            ("GET", 200, true),
            ("HEAD", 203, true),
            ("POST", 200, false),
            ("GET", 404, false),
            ("GET", 206, true),
            ("GET", 204, false),
        ] {
            request.set_method(method.as_bytes());
            response.set_status(status);
            assert_eq!(not_modified(&request, &response, RECEIVED, DateForms::Exact), expected, "{method} {status}");
        }
    }
}
