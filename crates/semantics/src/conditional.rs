//! The decision between a response and `304 Not Modified`.
//!
//! Compat: as observed of Varnish 7.1.1. If-None-Match is taken for a single tag: neither lists nor
//! `*` are understood; if it is present, If-Modified-Since is ignored. Source: RFC 9110 §13.1.2,
//! §13.1.3.

use crate::date::{self, DateForms};
use message::Message;

/// True if the conditions of the request turn the (200) response into a 304. `now` is the time of
/// the request, `object_origin` replaces a missing `Last-Modified`; both in seconds since 1970.
#[must_use]
pub fn not_modified(request: &Message, response: &Message, now: f64, object_origin: f64, forms: DateForms) -> bool {
    if let Some(wanted) = request.get("If-None-Match") {
        let Some(tag) = response.get("ETag") else { return false };
        return if request.has("Range") { is_same_strong(wanted, tag) } else { is_same_weak(wanted, tag) };
    }
    let Some(since) = request.get("If-Modified-Since").and_then(|value| date::parse(value, forms)) else {
        return false;
    };
    let modified = match response.get("Last-Modified") {
        Some(value) => date::parse(value, forms),
        None => Some(object_origin),
    };
    since <= now && modified.is_some_and(|modified| modified <= since)
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn is_same_weak(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b)
}

/// Parts of a representation may be combined only if the bytes are the same. Source: RFC 9110
/// §8.8.3.2.
pub(crate) fn is_same_strong(a: &[u8], b: &[u8]) -> bool {
    a == b && !a.starts_with(b"W/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_700_000_000.5;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn message(lines: Lines) -> Message {
        let mut message = Message::new();
        for (name, value) in lines {
            message.append(name.as_bytes(), value.as_bytes());
        }
        message
    }

    fn at(seconds: f64) -> String {
        let mut out = [0; 29];
        date::format(NOW + seconds, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn tags_are_compared_whole_and_weakly_but_for_ranges() {
        let range = ("Range", "bytes=0-1");
        let cases: &[(&str, Lines, bool)] = &[
            ("\"a\"", &[("If-None-Match", "\"a\"")], true),
            ("\"a\"", &[("If-None-Match", "W/\"a\"")], true),
            ("W/\"a\"", &[("If-None-Match", "\"a\"")], true),
            ("W/\"a\"", &[("If-None-Match", "W/\"a\"")], true),
            ("\"a\"", &[("If-None-Match", "w/\"a\"")], false),
            ("\"a\"", &[("If-None-Match", "\"b\"")], false),
            ("\"a\"", &[("If-None-Match", "\"b\", \"a\"")], false),
            ("\"a\"", &[("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")], false),
            ("\"a\"", &[("If-None-Match", "*")], false),
            ("\"a\"", &[("If-None-Match", "")], false),
            ("a", &[("If-None-Match", "a")], true),
            ("\"a\"", &[("If-None-Match", "\"a\""), range], true),
            ("\"a\"", &[("If-None-Match", "W/\"a\""), range], false),
            ("W/\"a\"", &[("If-None-Match", "W/\"a\""), range], false),
            ("\"a\"", &[], false),
        ];
        for (tag, request, expect) in cases {
            let answer = not_modified(&message(request), &message(&[("ETag", tag)]), NOW, NOW, DateForms::Exact);
            assert_eq!(answer, *expect, "{tag} {request:?}");
        }
        assert!(!not_modified(&message(&[("If-None-Match", "\"a\"")]), &message(&[]), NOW, NOW, DateForms::Exact));
    }

    #[test]
    fn dates_are_compared_with_last_modified_or_the_origin() {
        let old = at(-1000.0);
        let ask = |since: &str, response: &[(&str, &str)], origin: f64| {
            not_modified(
                &message(&[("If-Modified-Since", since)]),
                &message(response),
                NOW,
                NOW + origin,
                DateForms::Exact,
            )
        };
        let modified = [("Last-Modified", old.as_str())];
        assert!(ask(&old, &modified, 0.0));
        assert!(ask(&at(-1.0), &modified, 0.0));
        assert!(!ask(&at(-1001.0), &modified, 0.0));
        assert!(!ask(&at(100.0), &modified, 0.0), "a date to come is no date");
        assert!(!ask("foo", &modified, 0.0));
        assert!(!ask(&format!("{old}; length=3"), &modified, 0.0));
        assert!(!ask(&at(-1.0), &[("Last-Modified", "foo")], -1000.0));
        assert!(ask(&at(-400.0), &[], -500.0));
        assert!(!ask(&at(-600.0), &[], -500.0));
    }

    #[test]
    fn a_tag_decides_even_when_the_date_would_say_otherwise() {
        let old = at(-1000.0);
        let request = message(&[("If-None-Match", "\"b\""), ("If-Modified-Since", &old)]);
        assert!(!not_modified(
            &request,
            &message(&[("ETag", "\"a\""), ("Last-Modified", &old)]),
            NOW,
            NOW,
            DateForms::Exact
        ));
        assert!(!not_modified(&request, &message(&[("Last-Modified", &old)]), NOW, NOW, DateForms::Exact));
    }
}
