//! Ranges asked for and ranges received: each expectation was observed of Varnish 7.1.1.

use message::Message;
use semantics::date::DateForms;
use semantics::range::{RangeResult, check_backend, content_range, content_range_unsatisfied, resolve};

fn message(lines: &[(&str, &str)]) -> Message {
    let mut message = Message::new();
    for (name, value) in lines {
        message.append(name.as_bytes(), value.as_bytes());
    }
    message
}

fn part(first: u64, last: u64) -> RangeResult {
    RangeResult::Part { first, last }
}

#[test]
fn one_range_of_bytes_is_served_and_all_else_is_unsatisfiable() {
    let cases = [
        ("bytes=0-1", part(0, 1)),
        ("Bytes=0-", part(0, 9)),
        ("bytes=3-", part(3, 9)),
        ("bytes=-3", part(7, 9)),
        ("bytes=-20", part(0, 9)),
        ("bytes=0-10", part(0, 9)),
        ("bytes=9-9", part(9, 9)),
        ("bytes=00-01", part(0, 1)),
        ("bytes=10-", RangeResult::Unsatisfiable("low range beyond object")),
        ("bytes=10-11", RangeResult::Unsatisfiable("low range beyond object")),
        ("bytes=-0", RangeResult::Unsatisfiable("No low, high is zero")),
        ("bytes=5-3", RangeResult::Unsatisfiable("high smaller than low")),
        ("bytes=0-0,2-3", RangeResult::Unsatisfiable("Trailing stuff")),
        ("bytes=0- 1", RangeResult::Unsatisfiable("Trailing stuff")),
        ("bytes=0-x", RangeResult::Unsatisfiable("Trailing stuff")),
        ("bytes= 0-1", RangeResult::Unsatisfiable("Missing hyphen")),
        ("bytes=+1-2", RangeResult::Unsatisfiable("Missing hyphen")),
        ("bytes=0", RangeResult::Unsatisfiable("Missing hyphen")),
        ("bytes=", RangeResult::Unsatisfiable("Missing hyphen")),
        ("bytes=-", RangeResult::Unsatisfiable("Neither high nor low")),
        ("bytes=18446744073709551615-", RangeResult::Unsatisfiable("low range beyond object")),
        ("bytes=99999999999999999999-", RangeResult::Unsatisfiable("low range beyond object")),
        ("bytes=99999999999999999999-99999999999999999998", RangeResult::Unsatisfiable("low range beyond object")),
        ("bytes=99999999999999999999-1", RangeResult::Unsatisfiable("high smaller than low")),
        ("bytes=0-9223372036854775807", RangeResult::Part { first: 0, last: 9 }),
        ("bytes=0-9223372036854775808", RangeResult::Part { first: 0, last: 9 }),
        ("bytes=0-18446744073709551616", RangeResult::Part { first: 0, last: 9 }),
        ("bytes=0-99999999999999999999", RangeResult::Part { first: 0, last: 9 }),
        ("bytes=5-99999999999999999999", RangeResult::Part { first: 5, last: 9 }),
        ("bytes=-99999999999999999999", RangeResult::Part { first: 0, last: 9 }),
        ("bytes 0-1", RangeResult::Unsatisfiable("Missing '='")),
        ("", RangeResult::Unsatisfiable("Missing '='")),
        ("bytes =0-1", RangeResult::Unsatisfiable("Not Bytes")),
        ("lines=0-1", RangeResult::Unsatisfiable("Not Bytes")),
    ];
    for (range, expect) in cases {
        assert_eq!(resolve(range.as_bytes(), None, &Message::new(), Some(10), DateForms::Exact), expect, "{range}");
    }
    assert_eq!(
        resolve(b"bytes=0-", None, &Message::new(), Some(0), DateForms::Exact),
        RangeResult::Unsatisfiable("low range beyond object")
    );
}

#[test]
fn without_a_length_only_a_range_with_both_ends_of_an_uncoded_body_is_a_part() {
    for (response, expect) in
        [(Message::new(), part(3, 9)), (message(&[("Content-Encoding", "gzip")]), RangeResult::Whole)]
    {
        assert_eq!(resolve(b"bytes=3-9", None, &response, None, DateForms::Exact), expect);
    }
    for range in ["bytes=3-", "bytes=-3", "bytes=12-"] {
        assert_eq!(
            resolve(range.as_bytes(), None, &Message::new(), None, DateForms::Exact),
            RangeResult::Whole,
            "{range}"
        );
    }
    let answer = resolve(b"bytes=5-3", None, &Message::new(), None, DateForms::Exact);
    assert_eq!(answer, RangeResult::Unsatisfiable("high smaller than low"));
}

#[test]
fn if_range_needs_a_strong_match() {
    let then = "Wed, 09 Nov 2022 23:12:40 GMT";
    let is_part = |validator: &str, response: &[(&str, &str)]| {
        resolve(b"bytes=0-1", Some(validator.as_bytes()), &message(response), Some(10), DateForms::Exact) == part(0, 1)
    };
    assert!(is_part("\"a\"", &[("ETag", "\"a\"")]));
    assert!(!is_part("\"b\"", &[("ETag", "\"a\"")]));
    assert!(!is_part("W/\"a\"", &[("ETag", "W/\"a\"")]));
    assert!(!is_part("\"a\"", &[("ETag", "W/\"a\"")]));
    assert!(!is_part("a", &[("ETag", "a")]));
    assert!(!is_part("", &[("ETag", "\"a\"")]));
    let dated = |date| [("Last-Modified", then), ("Date", date)];
    assert!(is_part(then, &dated("Wed, 09 Nov 2022 23:12:10 GMT")));
    assert!(is_part(then, &dated("Wed, 09 Nov 2022 23:13:41 GMT")));
    assert!(!is_part(then, &dated("Wed, 09 Nov 2022 23:11:39 GMT")));
    assert!(!is_part(then, &dated("foo")));
    assert!(!is_part("Wed, 09 Nov 2022 23:12:41 GMT", &dated("Wed, 09 Nov 2022 23:13:41 GMT")));
    assert!(!is_part("foo", &dated("Wed, 09 Nov 2022 23:13:41 GMT")));
}

#[test]
fn a_backend_must_send_the_part_that_was_asked_for() {
    let check = |range: Option<&str>, status: u16, sent: Option<&str>, length: Option<u64>| {
        let mut bereq = Message::new();
        if let Some(range) = range {
            bereq.append(b"Range", range.as_bytes());
        }
        let mut response = Message::new();
        response.set_status(status);
        if let Some(sent) = sent {
            response.append(b"Content-Range", sent.as_bytes());
        }
        check_backend(&bereq, &response, length).err().unwrap_or_default()
    };
    let part = Some("bytes=0-1");
    assert_eq!(check(part, 206, Some("bytes 0-1/10"), Some(2)), "");
    assert_eq!(check(part, 206, Some("Bytes 0-1/10"), None), "");
    assert_eq!(check(part, 206, Some("bytes 0-0/10"), Some(1)), "");
    assert_eq!(check(part, 206, Some("bytes 0-1/*"), Some(2)), "");
    assert_eq!(check(part, 206, None, Some(2)), "");
    assert_eq!(check(part, 200, None, Some(10)), "");
    assert_eq!(check(Some("bytes=0-"), 206, Some("bytes 0-5/10"), Some(6)), "");
    assert_eq!(check(Some("bytes=-3"), 206, Some("bytes 6-9/10"), Some(4)), "");
    assert_eq!(check(Some("bytes=20-"), 416, Some("bytes */10"), Some(0)), "");
    assert_eq!(check(None, 206, None, Some(2)), "");
    assert_eq!(check(Some("bytes=0-99999999999999999999"), 206, Some("bytes 0-9/10"), Some(10)), "");
    assert_eq!(check(Some("bytes=-99999999999999999999"), 206, Some("bytes 0-9/10"), Some(10)), "");

    assert_eq!(check(part, 206, Some("bytes 0-1/10"), Some(3)), "Expected content length 2, got 3");
    assert_eq!(check(part, 200, Some("bytes 0-1/10"), Some(10)), "Expected content length 2, got 10");
    assert_eq!(check(part, 206, Some("bytes */10"), Some(2)), "Expected content length 10, got 2");
    assert_eq!(check(Some("bytes=20-"), 416, Some("bytes 0-1/10"), Some(0)), "Expected content length 2, got 0");
    assert_eq!(check(part, 206, Some("bytes 1-2/10"), Some(2)), "Expected low range 1, got 0");
    assert_eq!(check(part, 206, Some("bytes 0-2/10"), Some(3)), "Expected minimum high range 2, got 1");
    assert_eq!(check(None, 206, Some("bytes 0-1/10"), Some(2)), "Unexpected content-range header");
    let invalid = [
        "foo",
        "bytes=0-1/10",
        "bytes 0-1",
        "bytes 0-1/*x",
        "bytes 5-3/10",
        "bytes 0-10/10",
        "lines 0-1/10",
        "bytes 0-1/10x",
        "bytes 0-1/99999999999999999999",
        "bytes ",
        "",
    ];
    for sent in invalid {
        assert_eq!(check(part, 206, Some(sent), Some(2)), "Invalid content-range header", "{sent}");
        assert_eq!(check(None, 200, Some(sent), Some(2)), "Invalid content-range header", "{sent}");
    }
    assert_eq!(check(Some("bytes=0-1,3-4"), 200, None, Some(2)), "Invalid range header (Trailing stuff)");
    assert_eq!(check(Some("foo"), 200, None, Some(2)), "Invalid range header (Missing '=')");
}

#[test]
fn content_ranges_are_written_as_they_are_read() {
    let mut out = Vec::new();
    content_range(0, 1, Some(10), &mut out);
    assert_eq!(out, b"bytes 0-1/10");
    out.clear();
    content_range_unsatisfied(Some(10), &mut out);
    assert_eq!(out, b"bytes */10");
    out.clear();
    content_range_unsatisfied(None, &mut out);
    assert_eq!(out, b"");
}
