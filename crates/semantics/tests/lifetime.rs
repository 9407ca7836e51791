//! Lifetimes under the policy `varnish`: each expectation was observed of Varnish 7.1.1 in its
//! `TTL` records.

use message::Message;
use semantics::date::DateForms;
use semantics::{
    HttpPolicy, Lifetime, LifetimeDefaults, date, is_cacheable_of_old, lifetime, lifetime_of_pass, log_ttl_rfc,
};

const NOW: f64 = 1_700_000_000.25;
const DEFAULTS: LifetimeDefaults =
    LifetimeDefaults { ttl: 120.0, grace: 10.0, keep: 0.0, clock_skew: 10.0, dates: DateForms::Exact };

fn at(seconds: f64) -> String {
    let mut out = [0; 29];
    date::format(NOW + seconds, &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

fn response(lines: &[(&str, String)]) -> Message {
    let mut message = Message::new();
    for (name, value) in lines {
        message.append(name.as_bytes(), value.as_bytes());
    }
    message
}

fn of(status: u16, lines: &[(&str, String)]) -> Lifetime {
    lifetime(HttpPolicy::Varnish, status, &response(lines), NOW, &DEFAULTS)
}

#[test]
fn cache_control_decides_the_ttl() {
    let cases = [
        ("max-age=10", 10.0),
        ("max-age=10, s-maxage=20", 20.0),
        ("MAX-AGE=10", 10.0),
        ("max-age= 10", 10.0),
        ("max-age =10", 10.0),
        ("max-age=+10", 10.0),
        ("max-age=10.5", 10.0),
        ("max-age=10, max-age=20", 10.0),
        ("max-age=0", 0.0),
        ("max-age=\"10\"", 0.0),
        ("max-age=10x", 0.0),
        ("max-age=10; public", 0.0),
        ("max-age=-10", 0.0),
        ("max-age=", 0.0),
        ("s-maxage=x, max-age=10", 0.0),
        ("max-age", 120.0),
        ("s-maxage, max-age=10", 120.0),
        ("public max-age=10", 120.0),
        ("xmax-age=10", 120.0),
        ("ext=\"max-age=3600\", max-age=1", 1.0),
        ("max-age=2147483648", 2_147_483_648.0),
        ("max-age=99999999999", 4_294_967_295.0),
        ("max-age=99999999999999999999999999", 4_294_967_295.0),
        // Not even no-store: under this policy that is left to VCL.
        ("no-store, max-age=10", 10.0),
    ];
    for (value, ttl) in cases {
        assert_eq!(of(200, &[("Cache-Control", value.to_owned())]).ttl, ttl, "{value}");
    }
    let two = [("Cache-Control", "max-age=10".to_owned()), ("cache-control", "s-maxage=20".to_owned())];
    assert_eq!(of(200, &two).ttl, 20.0);
}

#[test]
fn the_status_decides_what_silence_means() {
    for status in [200, 203, 204, 300, 301, 304, 404, 410, 414] {
        assert_eq!(of(status, &[]).ttl, 120.0, "{status}");
    }
    let max_age = [("Cache-Control", "max-age=5".to_owned())];
    for status in [302, 307] {
        assert_eq!(of(status, &[]).ttl, -1.0, "{status}");
        assert_eq!(of(status, &max_age).ttl, 5.0, "{status}");
        assert_eq!(of(status, &[("Expires", at(-100.0))]).ttl, 0.0, "{status}");
    }
    for status in [206, 303, 308, 400, 405, 451, 500, 501, 503] {
        assert_eq!(of(status, &max_age).ttl, -1.0, "{status}");
    }
}

#[test]
fn expires_counts_from_our_clock_or_from_the_origins() {
    let ttl = |lines: &[(&str, String)]| of(200, lines).ttl;
    assert_eq!(ttl(&[("Expires", at(100.0))]), 99.75);
    assert_eq!(ttl(&[("Date", at(-5.0)), ("Expires", at(100.0))]), 99.75);
    assert_eq!(ttl(&[("Date", at(-50.0)), ("Expires", at(100.0))]), 150.0);
    assert_eq!(ttl(&[("Date", at(50.0)), ("Expires", at(40.0))]), 0.0);
    assert_eq!(ttl(&[("Date", "foo".to_owned()), ("Expires", at(100.0))]), 99.75);
    assert_eq!(ttl(&[("Expires", at(-100.0))]), 0.0);
    assert_eq!(ttl(&[("Date", at(-50.0)), ("Expires", at(-50.0))]), 0.0);
    assert_eq!(ttl(&[("Expires", "0".to_owned())]), 120.0);
    assert_eq!(ttl(&[("Expires", at(100.0)), ("Cache-Control", "max-age=7".to_owned())]), 7.0);
    assert_eq!(ttl(&[("Expires", at(100.0)), ("Cache-Control", "max-age=x".to_owned())]), 0.0);
    assert_eq!(ttl(&[("Expires", at(100.0)), ("Cache-Control", "max-age".to_owned())]), 99.75);
}

#[test]
fn age_moves_the_origin_back() {
    let cases = [
        ("5", 5.0),
        ("5.7", 5.0),
        ("5, 7", 5.0),
        ("-5", 0.0),
        ("5x", 0.0),
        ("", 0.0),
        ("99999999999", 4_294_967_295.0),
    ];
    for (age, seconds) in cases {
        let lifetime = of(200, &[("Age", age.to_owned())]);
        assert_eq!((lifetime.origin, lifetime.age_seconds, lifetime.ttl), (NOW - seconds, seconds, 120.0), "{age}");
    }
    let passed = lifetime_of_pass(&response(&[("Age", "5".to_owned())]), NOW);
    assert_eq!((passed.origin, passed.ttl, passed.grace, passed.keep), (NOW - 5.0, -1.0, 0.0, 0.0));
}

#[test]
fn stale_while_revalidate_is_the_grace() {
    let grace = |status, value: &str| of(status, &[("Cache-Control", value.to_owned())]).grace;
    assert_eq!(grace(200, "max-age=10, stale-while-revalidate=33"), 33.0);
    assert_eq!(grace(200, "stale-while-revalidate=33"), 33.0);
    assert_eq!(grace(200, "max-age=10, stale-while-revalidate=x"), 0.0);
    assert_eq!(grace(200, "max-age=10, stale-while-revalidate"), 10.0);
    assert_eq!(grace(302, "stale-while-revalidate=33"), 10.0);
    assert_eq!(grace(500, "max-age=5, stale-while-revalidate=33"), 10.0);
}

#[test]
fn the_ttl_record_shows_whole_seconds() {
    let record = |lines: &[(&str, String)], cacheable| {
        let mut out = Vec::new();
        log_ttl_rfc(&of(200, lines), NOW, cacheable, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(record(&[], true), "RFC 120 10 0 1700000000 1700000000 0 0 0 cacheable");
    let lines = [("Age", "7".to_owned()), ("Date", at(-1.0)), ("Cache-Control", "max-age=9".to_owned())];
    assert_eq!(record(&lines, false), "RFC 9 10 0 1700000000 1699999993 1699999999 0 9 uncacheable");
}

#[test]
fn the_old_policies_give_302_and_307_the_default_ttl_and_know_no_stale_while_revalidate() {
    let old = |policy, status, lines: &[(&str, String)]| lifetime(policy, status, &response(lines), NOW, &DEFAULTS);
    for status in [200, 203, 300, 301, 302, 307, 404, 410] {
        assert_eq!(old(HttpPolicy::Varnish3, status, &[]).ttl, 120.0, "{status}");
    }
    for status in [204, 206, 303, 304, 403, 414, 500, 503] {
        assert_eq!(old(HttpPolicy::Varnish3, status, &[]).ttl, -1.0, "{status}");
        assert_eq!(old(HttpPolicy::Varnish2, status, &[]).ttl, 120.0, "{status}: its VCL asks for cacheable");
    }
    let swr = [("Cache-Control", "max-age=5, stale-while-revalidate=99".to_owned())];
    assert_eq!(old(HttpPolicy::Varnish3, 200, &swr).grace, 10.0);
    assert!(!is_cacheable_of_old(307) && !is_cacheable_of_old(500) && is_cacheable_of_old(302));
}

#[test]
fn the_old_policies_take_age_off_max_age_only() {
    let old = |lines: &[(&str, String)]| lifetime(HttpPolicy::Varnish3, 200, &response(lines), NOW, &DEFAULTS);
    let left = |lifetime: Lifetime| lifetime.origin + lifetime.ttl - NOW;
    let aged = |name, value: String| [("Age", "30".to_owned()), (name, value)];
    assert_eq!(left(old(&aged("Cache-Control", "max-age=100".to_owned()))), 70.0);
    assert_eq!(left(old(&aged("X", String::new()))), 120.0);
    assert!((left(old(&aged("Expires", at(50.0)))) - 50.0).abs() < 1.0);
    assert!(left(old(&aged("Expires", at(-50.0)))) <= 0.0);
}
