//! Arbitrary headers of a response, through all rules of RFC 9111 about it.

use message::Message;
use semantics::rfc::directives::Directives;
use semantics::rfc::{Cacheability, PrivateMark, Refusal, Settings, Times, answers_get, judge};

/// Time at which the request was sent, in seconds since 1970.
const NOW: f64 = 1.7e9;
/// More seconds than any number in a header can mean.
const SECONDS_MAX: f64 = 1e12;

/// Reads the first byte as a status, the second as the duration of the response in seconds, the
/// rest as the lines of its headers.
///
/// # Panics
/// When a lifetime is not a number, is negative or without bound; when a response with `no-store`
/// or `private` and nothing else is stored, or one to a login without permission; when a response
/// that must be validated is fresh, or one that must not be stale has grace; when a response for
/// one client has no mark for the leak guard; or when two evaluations of one response differ.
pub fn cacheability(bytes: &[u8]) {
    let [status, seconds, text @ ..] = bytes else { return };
    let mut response = Message::new();
    response.set_status(200 + u16::from(*status) * 2);
    for line in text.split(|&byte| byte == b'\n').take(100) {
        let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':').unwrap_or(line.len()));
        response.append(name, value.strip_prefix(b":").unwrap_or(value).trim_ascii());
    }
    let times = Times { requested: NOW, received: NOW + f64::from(*seconds) };
    let settings = Settings { keep: 10.0, targets: "CDN-Cache-Control, Surrogate-Control", stores_set_cookie: true };
    let judged = judge(&response, false, times, &settings);
    is_sound(&judged, times);
    assert_eq!(judge(&response, false, times, &settings), judged);
    let timid = judge(&response, false, times, &Settings { stores_set_cookie: false, targets: "", ..settings });
    is_sound(&timid, times);
    assert!(timid.refusal.is_some() || !response.has("Set-Cookie") || timid.unshared.contain(b"Set-Cookie"));

    let directives = Directives::of_cache_control(&response);
    let is_forbidden = directives.no_store && !directives.must_understand;
    assert!(!is_forbidden || timid.refusal == Some(Refusal::NoStore) || timid.refusal == Some(Refusal::NotUnderstood));
    let mark = PrivateMark::of(&response, "");
    assert!(!is_forbidden || mark == Some(PrivateMark::NoStore), "{mark:?}");
    assert!(timid.refusal != Some(Refusal::Private) || mark == Some(PrivateMark::Private), "{mark:?}");
    assert!(!response.has("Set-Cookie") || mark.is_some() || timid.unshared.contain(b"Set-Cookie"));
    let may_be_shared = directives.public || directives.must_revalidate || directives.s_maxage.is_some();
    let to_login = judge(&response, true, times, &Settings { targets: "", ..settings });
    assert!(may_be_shared || to_login.refusal.is_some(), "{to_login:?}");

    let mut request = Message::new();
    request.set_method(b"POST");
    request.set_target(b"/a");
    request.append(b"Host", b"example.com");
    let _ = answers_get(&request, &response, &settings);
}

fn is_sound(judged: &Cacheability, times: Times) {
    let lifetime = &judged.lifetime;
    for seconds in [lifetime.ttl, lifetime.grace, lifetime.keep, lifetime.age_seconds] {
        assert!((0.0..SECONDS_MAX).contains(&seconds), "{judged:?}");
    }
    assert!(lifetime.origin <= times.received && lifetime.origin > -SECONDS_MAX, "{judged:?}");
    assert!(!judged.must_validate || (lifetime.ttl <= 0.0 && judged.never_stale), "{judged:?}");
    assert!(!judged.never_stale || lifetime.grace <= 0.0, "{judged:?}");
}
