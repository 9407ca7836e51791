//! Ranges and parts according to RFC 9110.

use message::Message;
use semantics::part::{Joint, Part, Received, is_same_version, join, judge, merge, range_to_pass_on};
use semantics::ranges::{Selection, Span, Wanted, if_range_holds, select, strong_validator};

const MODIFIED: &str = "Sun, 22 Nov 2026 10:00:00 GMT";

fn message(lines: &[(&str, &str)]) -> Message {
    let mut message = Message::new();
    message.set_method(b"GET");
    for (name, value) in lines {
        message.append(name.as_bytes(), value.as_bytes());
    }
    message
}

fn partial(lines: &[(&str, &str)]) -> Message {
    let mut message = message(lines);
    message.set_status(206);
    message
}

fn span(first: u64, last: u64) -> Span {
    Span { first, last }
}

fn part(first: u64, last: u64, total: u64) -> Part {
    Part { span: span(first, last), total: Some(total) }
}

fn parts(spans: &[(u64, u64)]) -> Selection {
    Selection::Parts(spans.iter().map(|&(first, last)| span(first, last)).collect())
}

#[test]
fn ranges_are_joined_and_put_in_order_and_mistakes_are_ignored() {
    let many = format!("bytes=0-0{}", ",2-2".repeat(64));
    let cases = [
        ("bytes=0-1", parts(&[(0, 1)])),
        ("BYTES=8-", parts(&[(8, 9)])),
        ("bytes=-3", parts(&[(7, 9)])),
        ("bytes=-20", parts(&[(0, 9)])),
        ("bytes=0-99999999999999999999", parts(&[(0, 9)])),
        ("bytes=0-1, 4-5", parts(&[(0, 1), (4, 5)])),
        ("bytes=,0-1,,4-5,", parts(&[(0, 1), (4, 5)])),
        ("bytes=4-5,0-1", parts(&[(0, 1), (4, 5)])),
        ("bytes=0-3,2-5", parts(&[(0, 5)])),
        ("bytes=0-3,4-5", parts(&[(0, 5)])),
        ("bytes=0-8,1-2,3-4", parts(&[(0, 8)])),
        ("bytes=0-1,20-30", parts(&[(0, 1)])),
        ("bytes=0-,0-,0-,0-", parts(&[(0, 9)])),
        ("bytes=10-", Selection::Unsatisfiable),
        ("bytes=99999999999999999999-", Selection::Unsatisfiable),
        ("bytes=-0", Selection::Unsatisfiable),
        ("bytes=20-30,40-50", Selection::Unsatisfiable),
        ("bytes=5-3", Selection::Whole),
        ("bytes=0-1,5-3", Selection::Whole),
        ("bytes=0-1 4-5", Selection::Whole),
        ("bytes=a-b", Selection::Whole),
        ("bytes=-", Selection::Whole),
        ("bytes=", Selection::Whole),
        ("bytes", Selection::Whole),
        ("lines=0-1", Selection::Whole),
        (&many, Selection::Whole),
    ];
    for (range, expect) in cases {
        assert_eq!(select(&message(&[("Range", range)]), &message(&[]), Some(10)), expect, "{range}");
    }
    assert_eq!(select(&message(&[]), &message(&[]), Some(10)), Selection::Whole);
    let twice = message(&[("Range", "bytes=0-1"), ("Range", "bytes=3-4")]);
    assert_eq!(select(&twice, &message(&[]), Some(10)), Selection::Whole);
}

#[test]
fn of_an_unknown_length_only_ranges_with_two_ends_are_granted_and_of_nothing_none() {
    let of = |range, total| select(&message(&[("Range", range)]), &message(&[]), total);
    assert_eq!(of("bytes=2-3", None), parts(&[(2, 3)]));
    assert_eq!(of("bytes=2-3,7-", None), Selection::Whole);
    assert_eq!(of("bytes=-3", None), Selection::Whole);
    assert_eq!(of("bytes=-3", Some(0)), Selection::Whole);
    assert_eq!(of("bytes=0-", Some(0)), Selection::Unsatisfiable);
}

#[test]
fn only_a_strong_validator_that_still_holds_grants_a_range() {
    let response =
        message(&[("ETag", "\"a\""), ("Last-Modified", MODIFIED), ("Date", "Sun, 22 Nov 2026 11:00:00 GMT")]);
    for (validator, expect) in [
        ("\"a\"", true),
        ("\"b\"", false),
        ("W/\"a\"", false),
        ("a", false),
        ("", false),
        (MODIFIED, true),
        ("Sunday, 22-Nov-26 10:00:00 GMT", true),
        ("Sun, 22 Nov 2026 10:00:01 GMT", false),
    ] {
        assert_eq!(if_range_holds(validator.as_bytes(), &response), expect, "{validator}");
        let request = message(&[("Range", "bytes=0-1"), ("If-Range", validator)]);
        let expect = if expect { parts(&[(0, 1)]) } else { Selection::Whole };
        assert_eq!(select(&request, &response, Some(10)), expect, "{validator}");
    }
    assert!(!if_range_holds(b"W/\"a\"", &message(&[("ETag", "W/\"a\"")])));
    let of_that_second = message(&[("Last-Modified", MODIFIED), ("Date", MODIFIED)]);
    assert!(!if_range_holds(MODIFIED.as_bytes(), &of_that_second), "it may have changed within the second");
    assert_eq!(strong_validator(&of_that_second), None);
    assert_eq!(strong_validator(&response), Some(&b"\"a\""[..]));
    assert_eq!(strong_validator(&message(&[("ETag", "W/\"a\""), ("Last-Modified", MODIFIED)])), None);
}

#[test]
fn content_range_is_read_strictly() {
    for (value, expect) in [
        ("bytes 0-4/10", Some(part(0, 4, 10))),
        ("Bytes 9-9/10", Some(part(9, 9, 10))),
        ("bytes 0-4/*", Some(Part { span: span(0, 4), total: None })),
        ("bytes 4-0/10", None),
        ("bytes 0-10/10", None),
        ("bytes */10", None),
        ("bytes 0-4", None),
        ("bytes=0-4/10", None),
        ("bytes 0-4/10 ", None),
        ("bytes 0-4/*x", None),
        ("bytes 0 - 4/10", None),
        ("bytes -4/10", None),
        ("bytes 0-99999999999999999999/999999999999999999999", None),
        ("lines 0-4/10", None),
        ("", None),
    ] {
        assert_eq!(Part::parse(value.as_bytes()), expect, "{value}");
    }
}

#[test]
fn inconsistent_206_is_refused() {
    let ok = |first, last| Ok(Received::Part(part(first, last, 10)));
    let bad = |text: &str| Err(text.to_owned());
    for (range, sent, length, expect) in [
        ("bytes=0-4", "bytes 0-4/10", Some(5), ok(0, 4)),
        ("bytes=0-4", "bytes 0-4/10", None, ok(0, 4)),
        ("bytes=0-40", "bytes 0-9/10", Some(10), ok(0, 9)),
        ("bytes=0-8", "bytes 0-4/10", Some(5), ok(0, 4)),
        ("bytes=5-", "bytes 5-9/10", Some(5), ok(5, 9)),
        ("bytes=-5", "bytes 5-9/10", Some(5), ok(5, 9)),
        ("bytes=-50", "bytes 0-9/10", Some(10), ok(0, 9)),
        ("bytes=0-4", "bytes 0-4/10", Some(4), bad("Expected content length 5, got 4")),
        ("bytes=0-4", "bytes 0-4/10", Some(6), bad("Expected content length 5, got 6")),
        ("bytes=0-4", "bytes 1-4/10", Some(4), bad("Expected low range 0, got 1")),
        ("bytes=0-4", "bytes 0-5/10", Some(6), bad("Expected high range 4 at most, got 5")),
        ("bytes=-5", "bytes 0-4/10", Some(5), bad("Expected low range 5, got 0")),
        ("bytes=0-4", "bytes 0-4/3", Some(5), bad("Invalid content-range header")),
        ("bytes=0-4", "bytes */10", Some(5), bad("Invalid content-range header")),
        ("bytes=0-4", "lines 0-4/10", Some(5), bad("Invalid content-range header")),
        ("bytes=0-1,3-4", "bytes 0-4/10", Some(5), Ok(Received::Foreign)),
        ("lines=0-4", "lines 0-4/10", Some(5), Ok(Received::Foreign)),
    ] {
        let answer = judge(&message(&[("Range", range)]), &partial(&[("Content-Range", sent)]), length, false);
        assert_eq!(answer, expect, "{range} {sent}");
    }
    let asked = message(&[("Range", "bytes=0-4")]);
    let fine = partial(&[("Content-Range", "bytes 0-4/10")]);
    assert!(judge(&message(&[]), &fine, Some(5), true).is_err(), "nobody asked for a part");
    assert!(judge(&asked, &partial(&[]), Some(5), true).is_err(), "which part?");
    let twice = partial(&[("Content-Range", "bytes 0-4/10"), ("Content-Range", "bytes 0-4/10")]);
    assert!(judge(&asked, &twice, Some(5), true).is_err());
    let several = ("Content-Type", "Multipart/ByteRanges; boundary=x");
    assert!(judge(&asked, &partial(&[several]), Some(5), true).is_err());
    assert!(judge(&asked, &partial(&[several, ("Content-Range", "bytes 0-4/10")]), Some(5), true).is_err());
    let asked_several = message(&[("Range", "bytes=0-1,3-4")]);
    assert_eq!(judge(&asked_several, &partial(&[several]), Some(99), false), Ok(Received::Foreign));
    assert_eq!(judge(&asked, &message(&[("Content-Range", "nonsense")]), Some(99), false), Ok(Received::Whole));
}

#[test]
fn a_lenient_cache_believes_the_body_rather_than_its_length() {
    let asked = message(&[("Range", "bytes=-5")]);
    let short = partial(&[("Content-Range", "bytes 4-9/10")]);
    assert_eq!(judge(&asked, &short, Some(5), true), Ok(Received::Part(part(4, 9, 10))));
    assert_eq!(Part::of_message(&short, Some(5)), Some(part(4, 8, 9)), "the end was not where it was said");
    assert!(judge(&asked, &short, Some(7), true).is_err());
    assert!(judge(&asked, &short, Some(0), true).is_err());
    assert_eq!(Part::of_message(&short, Some(0)), None);
    let other = partial(&[("Content-Range", "bytes 0-4/10")]);
    assert_eq!(judge(&asked, &other, Some(5), true), Ok(Received::Part(part(0, 4, 10))));
    assert_eq!(Part::of_message(&other, Some(3)), Some(part(0, 2, 10)));
    assert_eq!(Part::of_message(&message(&[("Content-Range", "bytes 0-4/10")]), Some(5)), None, "no 206");
}

#[test]
fn part_answers_ranges_within_it() {
    let head = partial(&[("Content-Range", "bytes 2-6/10"), ("ETag", "\"a\"")]);
    let stored = part(2, 6, 10);
    for (range, expect) in [
        ("bytes=2-6", true),
        ("bytes=3-3", true),
        ("bytes=2-2,4-5", true),
        ("bytes=10-", true),
        ("bytes=1-3", false),
        ("bytes=3-7", false),
        ("bytes=3-", false),
        ("bytes=-3", false),
        ("bytes=x", false),
    ] {
        assert_eq!(stored.suffices(&message(&[("Range", range)]), &head), expect, "{range}");
    }
    assert!(!stored.suffices(&message(&[]), &head));
    let conditional = |tag| message(&[("Range", "bytes=3-4"), ("If-Range", tag)]);
    assert!(stored.suffices(&conditional("\"a\""), &head));
    assert!(!stored.suffices(&conditional("\"b\""), &head));
    assert!(part(7, 9, 10).suffices(&message(&[("Range", "bytes=8-")]), &head));
    let endless = Part { span: span(2, 6), total: None };
    assert!(endless.suffices(&message(&[("Range", "bytes=3-4")]), &head));
    assert!(!endless.suffices(&message(&[("Range", "bytes=3-")]), &head));
}

#[test]
fn a_part_helps_where_it_can_be_completed_or_joined() {
    let head = message(&[("ETag", "\"a\"")]);
    let helps = |part: Part, range: &[(&str, &str)]| part.helps(&message(range), &head);
    assert_eq!(part(0, 4, 10).rest(), Some(Wanted::From(5)));
    assert_eq!(part(5, 9, 10).rest(), Some(Wanted::FromTo(0, 4)));
    assert_eq!(part(2, 4, 10).rest(), None, "two things are missing");
    assert_eq!(part(0, 9, 10).rest(), None);
    assert_eq!(helps(part(0, 4, 10), &[]), Some(5));
    assert_eq!(helps(part(2, 4, 10), &[]), None);
    assert_eq!(helps(part(0, 4, 10), &[("Range", "bytes=5-6")]), Some(5));
    assert_eq!(helps(part(0, 4, 10), &[("Range", "bytes=6-7")]), None, "a gap");
    assert_eq!(helps(part(0, 4, 10), &[("Range", "bytes=0-1,6-7")]), Some(5), "the whole is fetched for that");
    assert_eq!(part(0, 4, 10).helps(&message(&[("Range", "bytes=5-6")]), &message(&[])), None);
    assert_eq!(range_to_pass_on(&message(&[("Range", "bytes=5-6")])), Some(&b"bytes=5-6"[..]));
    assert_eq!(range_to_pass_on(&message(&[("Range", "bytes=5-6,8-9")])), None);
    let mut head = message(&[("Range", "bytes=5-6")]);
    head.set_method(b"HEAD");
    assert_eq!(range_to_pass_on(&head), None);
}

#[test]
fn parts_are_joined_where_they_meet_and_only_if_that_is_worth_it() {
    let joint = |part, before_bytes, after_offset| Some(Joint { part, before_bytes, after_offset });
    for (stored, new, expect) in [
        (part(0, 4, 10), part(5, 9, 10), joint(part(0, 9, 10), 5, None)),
        (part(5, 9, 10), part(0, 4, 10), joint(part(0, 9, 10), 0, Some(0))),
        (part(0, 6, 10), part(4, 7, 10), joint(part(0, 7, 10), 4, None)),
        (part(2, 8, 10), part(4, 5, 10), joint(part(2, 8, 10), 2, Some(4))),
        (part(4, 8, 10), part(2, 5, 10), joint(part(2, 8, 10), 0, Some(2))),
        (part(0, 3, 10), part(5, 9, 10), None),
        (part(0, 4, 10), part(5, 8, 9), None),
        (part(0, 15, 100), part(16, 16, 100), joint(part(0, 16, 100), 16, None)),
        (part(0, 16, 100), part(17, 17, 100), None),
        (part(0, 98, 100), part(99, 99, 100), joint(part(0, 99, 100), 99, None)),
    ] {
        assert_eq!(join(stored, new), expect, "{stored:?} {new:?}");
    }
    let endless = Part { span: span(5, 9), total: None };
    assert_eq!(join(part(0, 4, 10), endless).map(|joint| joint.part), Some(part(0, 9, 10)));
    assert_eq!(join(part(0, 4, 8), endless), None, "it goes on beyond the end");
}

#[test]
fn only_parts_of_one_version_belong_together() {
    let tag = |tag| message(&[("ETag", tag)]);
    assert!(is_same_version(&tag("\"a\""), &tag("\"a\"")));
    assert!(!is_same_version(&tag("\"a\""), &tag("\"b\"")));
    assert!(!is_same_version(&tag("W/\"a\""), &tag("W/\"a\"")));
    assert!(!is_same_version(&message(&[]), &message(&[])));
}

#[test]
fn the_joined_body_has_the_new_fields_and_those_that_only_the_old_part_had() {
    let stored = partial(&[("Content-Range", "bytes 0-4/10"), ("Content-Length", "5"), ("A", "old"), ("B", "old")]);
    let fresh = partial(&[("Content-Range", "bytes 5-9/10"), ("Content-Length", "5"), ("A", "new")]);
    let mut whole = fresh.clone();
    merge(&stored, &mut whole, part(0, 9, 10));
    assert_eq!(
        (whole.status(), whole.get("Content-Range"), whole.get("Content-Length")),
        (200, None, Some(&b"10"[..]))
    );
    assert_eq!((whole.get("A"), whole.get("B")), (Some(&b"new"[..]), Some(&b"old"[..])));
    let mut longer = fresh;
    merge(&stored, &mut longer, part(0, 9, 20));
    assert_eq!((longer.status(), longer.get("Content-Range")), (206, Some(&b"bytes 0-9/20"[..])));
}
