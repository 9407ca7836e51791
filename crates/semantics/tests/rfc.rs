//! Cacheability of responses under RFC 9111, as tables.

use message::Message;
use semantics::date;
use semantics::rfc::{Cacheability, Refusal, Settings, Times, answers_get, judge};

const NOW: f64 = 1_700_000_000.0;
const SETTINGS: Settings<'_> =
    Settings { keep: 10.0, targets: "CDN-Cache-Control, Surrogate-Control", stores_set_cookie: true };
const TIMES: Times = Times { requested: NOW, received: NOW };

type Lines<'a> = &'a [(&'a str, &'a str)];

fn message(status: u16, lines: Lines) -> Message {
    let mut response = Message::new();
    response.set_status(status);
    for (name, value) in lines {
        // `@-60` is the date a minute ago.
        let value = match value.strip_prefix('@') {
            Some(offset) => date::text(NOW + offset.parse::<f64>().unwrap()),
            None => (*value).to_owned(),
        };
        response.append(name.as_bytes(), value.as_bytes());
    }
    response
}

fn of(status: u16, lines: Lines) -> Cacheability {
    judge(&message(status, lines), false, TIMES, &SETTINGS)
}

/// Remaining freshness in seconds; negative if it is stale.
fn fresh_for(status: u16, lines: Lines) -> f64 {
    let judged = of(status, lines);
    judged.lifetime.origin + judged.lifetime.ttl - NOW
}

#[test]
fn the_lifetime_is_that_of_the_strongest_that_speaks() {
    let cases: &[(Lines, f64)] = &[
        (&[("Cache-Control", "max-age=60")], 60.0),
        (&[("Cache-Control", "max-age=0, s-maxage=60"), ("Expires", "@-5")], 60.0),
        (&[("Cache-Control", "max-age=60"), ("Cache-Control", "s-maxage=0")], 0.0),
        (&[("Cache-Control", "max-age=60"), ("Expires", "0")], 60.0),
        (&[("Cache-Control", "max-age=0"), ("Expires", "@60"), ("Date", "@0")], 0.0),
        (&[("Cache-Control", "max-age=-1"), ("Expires", "@60"), ("Date", "@0")], 0.0),
        (&[("Expires", "@60"), ("Date", "@0")], 60.0),
        (&[("Expires", "@60"), ("Date", "foo")], 60.0),
        (&[("Expires", "@60")], 60.0),
        (&[("Expires", "@0"), ("Date", "@0")], 0.0),
        (&[("Expires", "@60"), ("Date", "@120")], 0.0),
        (&[("Expires", "@60"), ("Expires", "@60"), ("Date", "@0")], 0.0),
        (&[("Expires", "tomorrow"), ("Last-Modified", "@-1000")], 0.0),
        (&[("Cache-Control", "max-age=60"), ("Age", "70")], -10.0),
        (&[("Cache-Control", "max-age=60"), ("Date", "@-71")], -10.0),
        (&[("Cache-Control", "max-age=60"), ("Date", "@1000"), ("Age", "70")], -10.0),
        (&[("Last-Modified", "@-1000"), ("Date", "@0")], 100.0),
        (&[("Last-Modified", "@1000"), ("Date", "@0")], 0.0),
        (&[("ETag", "\"a\"")], 0.0),
        (&[("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "no-store"), ("Expires", "0")], 60.0),
        (&[("CDN-Cache-Control", "&"), ("Cache-Control", "max-age=60")], 60.0),
        (&[("CDN-Cache-Control", "public"), ("Expires", "@60"), ("Last-Modified", "@-100")], 10.0),
    ];
    for (lines, expect) in cases {
        assert_eq!(fresh_for(200, lines), *expect, "{lines:?}");
    }
}

#[test]
fn a_lifetime_is_guessed_for_the_statuses_that_allow_it() {
    let old: Lines = &[("Last-Modified", "@-1000"), ("Date", "@0")];
    let public: Lines = &[("Last-Modified", "@-1000"), ("Date", "@0"), ("Cache-Control", "public")];
    for status in 200..600 {
        let may = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(&status);
        assert_eq!(of(status, old).lifetime.ttl, if may { 100.0 } else { 0.0 }, "{status}");
        assert_eq!(of(status, old).refusal, (!may).then_some(Refusal::NotCacheable), "{status}");
        assert_eq!(of(status, public).lifetime.ttl, 100.0, "{status}");
        assert_eq!(of(status, &[("Expires", "@60")]).refusal, None, "{status}: any status may have a lifetime");
    }
}

#[test]
fn unstorable_responses_are_refused_with_the_reason() {
    let fresh = ("Expires", "@60");
    let cases: &[(u16, Lines, Option<Refusal>)] = &[
        (200, &[fresh], None),
        (200, &[fresh, ("Cache-Control", "No-Store")], Some(Refusal::NoStore)),
        (200, &[fresh, ("Cache-Control", "PRIVATE")], Some(Refusal::Private)),
        (200, &[fresh, ("Cache-Control", "private=\"x-a\"")], None),
        (200, &[fresh, ("Cache-Control", "must-understand, no-store")], None),
        (599, &[fresh, ("Cache-Control", "must-understand")], Some(Refusal::NotUnderstood)),
        (200, &[fresh, ("Set-Cookie", "a=b"), ("Vary", "*")], None),
        (200, &[fresh, ("Surrogate-Control", "no-store")], Some(Refusal::NoStore)),
        (200, &[fresh, ("Cache-Control", "no-cache")], Some(Refusal::Useless)),
        (200, &[fresh, ("Cache-Control", "no-cache"), ("ETag", "\"a\"")], None),
        (200, &[], Some(Refusal::Useless)),
        (403, &[("ETag", "\"a\"")], Some(Refusal::NotCacheable)),
        (200, &[("Cache-Control", "max-age=0")], Some(Refusal::Useless)),
        (200, &[("Cache-Control", "max-age=0, stale-while-revalidate=5")], None),
        (200, &[("Cache-Control", "max-age=0, stale-if-error=5")], None),
        (200, &[("Cache-Control", "max-age=0, stale-if-error=5, must-revalidate")], Some(Refusal::Useless)),
    ];
    for (status, lines, expect) in cases {
        assert_eq!(of(*status, lines).refusal, *expect, "{status} {lines:?}");
    }
    let timid = Settings { stores_set_cookie: false, ..SETTINGS };
    let of_timid = |lines: Lines| judge(&message(200, lines), false, TIMES, &timid).refusal;
    assert_eq!(of_timid(&[fresh, ("Set-Cookie", "a")]), Some(Refusal::SetCookie));
    assert_eq!(of_timid(&[fresh, ("Set-Cookie", "a"), ("Cache-Control", "no-cache=set-cookie")]), None);
}

#[test]
fn authorized_responses_are_shared_only_with_permission() {
    let cases = [
        ("max-age=60", Some(Refusal::Authorization)),
        ("max-age=60, proxy-revalidate", Some(Refusal::Authorization)),
        ("max-age=60, public", None),
        ("max-age=60, must-revalidate", None),
        ("s-maxage=60", None),
    ];
    for (control, expect) in cases {
        let response = message(200, &[("Cache-Control", control)]);
        assert_eq!(judge(&response, true, TIMES, &SETTINGS).refusal, expect, "{control}");
        assert_eq!(judge(&response, false, TIMES, &SETTINGS).refusal, None, "{control}");
    }
}

#[test]
fn staleness_is_bounded_by_the_response() {
    // Cache-Control, must be validated, never stale, grace, keep
    let cases = [
        ("max-age=60", false, false, 0.0, 10.0),
        ("max-age=60, stale-while-revalidate=30", false, false, 30.0, 10.0),
        ("max-age=60, stale-if-error=300", false, false, 0.0, 300.0),
        ("max-age=60, must-revalidate, stale-while-revalidate=30", false, true, 0.0, 10.0),
        ("max-age=60, proxy-revalidate, stale-if-error=300", false, true, 0.0, 10.0),
        ("s-maxage=60", false, true, 0.0, 10.0),
        ("s-maxage=60, stale-while-revalidate=30", false, false, 30.0, 10.0),
        ("max-age=60, stale-while-revalidate=x", false, false, 0.0, 10.0),
        ("max-age=60, no-cache=\"x-a\"", false, false, 0.0, 10.0),
    ];
    for (control, must_validate, never_stale, grace, keep) in cases {
        let judged = of(200, &[("Cache-Control", control), ("ETag", "\"a\"")]);
        assert_eq!((judged.must_validate, judged.never_stale), (must_validate, never_stale), "{control}");
        assert_eq!((judged.lifetime.grace, judged.lifetime.keep), (grace, keep), "{control}");
    }
    let always = of(200, &[("Cache-Control", "no-cache, max-age=60"), ("ETag", "\"a\"")]);
    assert!(always.must_validate && always.never_stale);
    assert_eq!(always.lifetime.ttl, 0.0);
}

#[test]
fn response_stale_on_arrival_is_kept_for_validation() {
    let judged = of(200, &[("Cache-Control", "max-age=60"), ("Age", "1000"), ("ETag", "\"a\"")]);
    let lifetime = judged.lifetime;
    assert_eq!(lifetime.origin + lifetime.ttl + lifetime.grace + lifetime.keep, NOW + 10.0);
}

#[test]
fn fields_for_one_client_are_named() {
    let judged = of(200, &[("Cache-Control", "max-age=60, private=\"Set-Cookie\", no-cache=\"x-a, x-b\"")]);
    assert_eq!(judged.refusal, None);
    assert!([b"set-cookie".as_slice(), b"X-A", b"X-B"].iter().all(|name| judged.unshared.contain(name)));
    assert!(!judged.unshared.contain(b"etag"));
}

#[test]
fn the_answer_to_a_post_is_that_to_a_get_only_if_it_says_so() {
    let mut post = message(0, &[("Host", "Example.com")]);
    post.set_method(b"POST");
    post.set_target(b"/a?b");
    let fresh = ("Cache-Control", "max-age=60");
    let cases: &[(Lines, bool)] = &[
        (&[fresh, ("Content-Location", "/a?b")], true),
        (&[fresh, ("Content-Location", "HTTP://example.COM/a?b")], true),
        (&[fresh, ("Content-Location", "//example.com/a?b")], true),
        (&[fresh, ("Content-Location", "http://other.com/a?b")], false),
        (&[fresh, ("Content-Location", "/a")], false),
        (&[fresh, ("Content-Location", "a?b")], false),
        (&[fresh], false),
        (&[("Content-Location", "/a?b")], false),
        (&[("Content-Location", "/a?b"), ("Expires", "@60")], true),
    ];
    for (lines, expect) in cases {
        assert_eq!(answers_get(&post, &message(200, lines), &SETTINGS), *expect, "{lines:?}");
        assert!(!answers_get(&post, &message(201, lines), &SETTINGS));
    }
    post.set_method(b"PUT");
    assert!(!answers_get(&post, &message(200, cases[0].0), &SETTINGS));
}
