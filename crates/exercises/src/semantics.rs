//! Arbitrary headers of a request and a response, through all code that reads headers.

mod ranges;

use message::Message;
use semantics::date::DateForms;
use semantics::filter::{Class, copy_filtered};
use semantics::range::{RangeResult, check_backend, content_range, resolve};
use semantics::trace_context::{SAMPLED, TraceParent};
use semantics::vary::Sameness;
use semantics::{
    HttpPolicy, LifetimeDefaults, RequestDirectives, conditional, date, encoding, groups, language, lifetime,
    lifetime_of_pass, list, precondition, reference, revalidate, vary,
};

use surface::limits::{CACHE_GROUP_CHARACTERS_MAX, CACHE_GROUPS_MAX};

pub use ranges::ranges;

/// The ways to compare the values of a header.
const SAMENESS: [Sameness; 3] =
    [Sameness::Bytes, Sameness::Meaning { any_language_order: false }, Sameness::Meaning { any_language_order: true }];

/// The time, in seconds since 1970.
const NOW: f64 = 1.7e9;

/// Reads the first two bytes as a status and the length of a body, the rest as the lines of a
/// request's headers, an empty line, and the lines of a response's headers.
///
/// # Panics
/// When a range is outside of the body, groups exceed their number or length, a reference leads to
/// something other than a path, a lifetime is not a number, a date changes when it is written and
/// read again, a variant does not match the request it was made for, or a header passes a filter
/// that removed it before.
pub fn headers(bytes: &[u8]) {
    let [status, length, text @ ..] = bytes else { return };
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut request = message_of(&mut lines);
    let mut response = message_of(&mut lines);
    response.set_status([200, 203, 204, 206, 301, 302, 304, 307, 404, 416, 500, 503][usize::from(*status) % 12]);
    let length = (*length < 0xf0).then(|| u64::from(*length) * u64::from(*length));
    values(&request);
    values(&response);
    trace_contexts(&request);
    one_range(&request, &response, length);
    lives(&response);
    variants(&request, &response, text);
    let _ = conditional::not_modified(&request, &response, NOW, NOW - 10.0, DateForms::Tolerant);
    conditions(&mut request, &response);
    request_directives(&request);
    references(&request, &response, text);
    groups_of(&request, &response);
    let _ = encoding::accepts_gzip(&request);
    encoding::weaken_etag(&mut response);
    let weak = response.get("ETag").map(<[u8]>::to_vec);
    encoding::weaken_etag(&mut response);
    assert_eq!(response.get("ETag").map(<[u8]>::to_vec), weak, "a weak tag stays as it is");
    filters(&request);
    filters(&response);
    if revalidate::is_possible(&response) {
        revalidate::conditions(&response, &mut request);
        assert!(request.has("If-None-Match") || request.has("If-Modified-Since"));
    }
    let mut merged = request.clone();
    revalidate::merge(&response, &mut merged);
    assert!(
        response.headers().all(|header| merged.has(&String::from_utf8_lossy(header.name()))),
        "nothing stored is lost"
    );
}

fn conditions(request: &mut Message, response: &Message) {
    request.set_method(b"GET");
    let judged = |request: &Message| precondition::not_modified(request, response, NOW, DateForms::Exact);
    let is_judged = judged(request);
    assert!(!is_judged || matches!(response.status(), 200 | 203 | 206), "only a representation can be unchanged");
    let _ = revalidate::is_about(response, request);
    let _ = language::preferred(request);
    assert!(revalidate::stale_if_error(response).is_none_or(|seconds| seconds.is_finite() && seconds >= 0.0));
}

fn request_directives(request: &Message) {
    let request_directives = RequestDirectives::of(request);
    for seconds in [
        request_directives.max_age,
        request_directives.max_stale,
        request_directives.min_fresh,
        request_directives.stale_if_error,
    ]
    .into_iter()
    .flatten()
    {
        assert!(seconds >= 0.0, "{request_directives:?}");
    }
}

fn references(request: &Message, response: &Message, text: &[u8]) {
    let host = request.get("Host").unwrap_or_default();
    for base in [b"/a/b?c".as_slice(), text] {
        for location in response.get_all("Location").chain(response.get_all("Content-Location")) {
            let Some(target) = reference::target(location, host, base) else { continue };
            if base.starts_with(b"/") {
                assert!(target.starts_with(b"/"), "a target is a path");
            }
            assert!(target.len() <= location.len() + base.len() + 1, "a target does not grow");
        }
    }
}

fn groups_of(request: &Message, response: &Message) {
    for field in [groups::CACHE_GROUPS, groups::CACHE_GROUP_INVALIDATION] {
        let names = groups::named(response, field);
        assert!(names.len() <= CACHE_GROUPS_MAX, "groups are counted");
        assert!(names.iter().all(|name| name.len() <= CACHE_GROUP_CHARACTERS_MAX && !name.contains('\0')));
    }
    if let Some(origin) = request.get("Host").and_then(groups::origin) {
        assert!(groups::origin(&origin).is_some(), "an origin is one");
        assert!(!origin.contains(&0));
    }
}

fn message_of<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Message {
    let mut message = Message::new();
    message.set_protocol(b"HTTP/1.1");
    for line in lines.take_while(|line| !line.is_empty()) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // The codec accepts no other names.
        if !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            message.append(name, value);
        }
    }
    message
}

fn values(message: &Message) {
    for header in message.headers() {
        if let Some(seconds) = date::parse(header.value(), DateForms::Tolerant) {
            let mut text = [0; 29];
            date::format(seconds, &mut text);
            let shown = String::from_utf8_lossy(header.value());
            assert_eq!(date::parse(&text, DateForms::Exact), Some(seconds), "{shown}");
            let exact = date::parse(header.value(), DateForms::Exact);
            assert!(exact.is_none_or(|exact| exact == seconds), "{shown}");
        }
        let members: Vec<&[u8]> = list::members(header.value()).collect();
        let joined = members.join(&b", "[..]);
        assert!(list::members(&joined).eq(members.iter().copied()), "a list is the same when it is written anew");
        let _ = list::directive(header.value(), "max-age");
    }
}

fn one_range(request: &Message, response: &Message, length: Option<u64>) {
    let Some(range) = request.get("Range") else { return };
    if let RangeResult::Part { first, last } =
        resolve(range, request.get("If-Range"), response, length, DateForms::Tolerant)
    {
        assert!(first <= last && length.is_none_or(|length| last < length));
        // A range response for a client must be accepted from a backend, too.
        let mut value = Vec::new();
        content_range(first, last, length, &mut value);
        let mut part = Message::new();
        part.set_status(206);
        part.set("Content-Range", &value);
        assert_eq!(check_backend(request, &part, Some(last - first + 1)), Ok(()));
    }
    let _ = check_backend(request, response, length);
}

fn lives(response: &Message) {
    let defaults =
        LifetimeDefaults { ttl: 120.0, grace: 10.0, keep: 0.0, clock_skew: 10.0, dates: DateForms::Tolerant };
    let of = |policy| lifetime(policy, response.status(), response, NOW, &defaults);
    for life in
        [of(HttpPolicy::Varnish), of(HttpPolicy::Varnish3), of(HttpPolicy::Varnish2), lifetime_of_pass(response, NOW)]
    {
        for seconds in [life.origin, life.ttl, life.grace, life.keep, life.age_seconds] {
            assert!(seconds.is_finite(), "{life:?}");
        }
        assert!(life.age_seconds >= 0.0 && life.grace >= 0.0 && life.keep >= 0.0, "{life:?}");
    }
}

fn variants(request: &Message, response: &Message, key: &[u8]) {
    for gzip_support in [false, true] {
        // A key may come from a damaged arena.
        let _ = vary::of_request(key, request);
        let own = vary::encode(response, request, gzip_support).ok().flatten();
        for sameness in SAMENESS {
            let matches = |key: &[u8]| vary::matches(key, request, gzip_support, sameness);
            let is_same = vary::differing(key, request, sameness).next().is_none();
            assert!(
                !matches(key) || gzip_support || is_same,
                "a variant that is for a request does not differ from it"
            );
            assert!(own.as_ref().is_none_or(|own| matches(own)), "a variant is for the request it was made for");
        }
        if let Some(own) = own {
            assert_eq!(vary::of_request(&own, request), Some(own));
        }
    }
}

fn filters(message: &Message) {
    for class in [Class::Pass, Class::Fetch, Class::InsertStored, Class::StorePass, Class::Deliver] {
        let (mut once, mut twice) = (Message::new(), Message::new());
        copy_filtered(message, &mut once, class);
        copy_filtered(&once, &mut twice, class);
        assert!(once.header_count() <= message.header_count());
        assert!(once.headers().eq(twice.headers()), "what has passed a filter passes it again");
    }
}

/// A trace context that was read is the same when it is written and read again.
fn trace_contexts(message: &Message) {
    for header in message.headers() {
        if let Some(read) = TraceParent::parse(header.value()) {
            let again = TraceParent::parse(read.to_string().as_bytes());
            assert_eq!(again, Some(TraceParent { flags: read.flags & SAMPLED, ..read }));
        }
    }
}
