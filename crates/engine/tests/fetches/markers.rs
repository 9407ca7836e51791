//! Markers of hit-for-miss and hit-for-pass: which bans remove them, and how much they keep.

use crate::support::{World, always, run_with};
use cache::BanSpecification;
use surface::counter::Main;
use surface::limits::MARKER_HEAD_BYTES_MAX;

const HIT_FOR_PASS: &str = "sub vcl_backend_response { set beresp.http.x-url = bereq.url; return (pass(60s)); }";
const HIT_FOR_MISS: &str =
    "sub vcl_backend_response { set beresp.http.x-url = bereq.url; set beresp.uncacheable = true;
    set beresp.ttl = 60s; return (deliver); }";

fn ban(world: &World, text: &str) {
    let ban = BanSpecification::parse_text(text).unwrap();
    world.engine.cache.ban(ban, world.context.clock.now()).unwrap();
}

/// Number of lookups that found a marker.
fn marked(world: &World) -> u64 {
    world.count(Main::CacheHitpass) + world.count(Main::CacheHitmiss)
}

/// Makes a marker of a response with these headers, bans, and looks it up again; returns true if
/// the ban removed the marker.
fn removes(vcl: &str, headers: &'static str, text: &'static str) -> bool {
    let (told, removed) = std::sync::mpsc::channel();
    run_with(
        |parameters| {
            (parameters.default_grace, parameters.default_keep) = (17.0, 13.0);
            // The lookup applies the ban.
            parameters.ban_lurker_sleep = 0.0;
        },
        vcl,
        async move |world| {
            world.origin(always(headers, "hello"));
            let mut client = world.client();
            client.get("/x", "").await;
            client.get("/x", "").await;
            assert_eq!(marked(&world), 1, "{}", world.story());
            ban(&world, text);
            client.get("/x", "").await;
            told.send(marked(&world) == 1).unwrap();
        },
    );
    removed.recv().unwrap()
}

/// The fields and their values were compared with varnishd 7.1.1.
#[test]
fn bans_remove_markers_by_the_fields_that_varnish_keeps() {
    let cases = [
        // Ban, removes hit-for-pass, removes hit-for-miss.
        ("obj.http.x-url ~ /x", true, true),
        ("obj.http.x-url == /y", false, false),
        ("obj.http.foo == bar", true, true),
        ("obj.http.content-length == 5", true, true),
        ("obj.http.accept-ranges == bytes", true, true),
        ("obj.http.etag ~ .", true, true),
        ("obj.http.age ~ .", false, false),
        ("obj.http.keep-alive ~ .", false, false),
        ("obj.http.connection ~ .", false, false),
        ("obj.status == 200", true, true),
        ("obj.status != 200", false, false),
        ("obj.age >= 5s", true, true),
        ("obj.age < 5s", false, false),
        ("obj.ttl > 55s", false, true),
        ("obj.ttl < 56s", true, false),
        ("obj.grace == 0s", true, false),
        ("obj.grace == 17s", false, true),
        ("obj.keep == 0s", true, false),
        ("obj.keep == 13s", false, true),
        ("req.url ~ /x", true, true),
    ];
    let headers = "Foo: bar\r\nAge: 5\r\nAccept-Ranges: bytes\r\nKeep-Alive: timeout=5\r\nETag: \"a\"\r\n";
    for (text, pass, miss) in cases {
        assert_eq!(removes(HIT_FOR_PASS, headers, text), pass, "hit-for-pass, {text}");
        assert_eq!(removes(HIT_FOR_MISS, headers, text), miss, "hit-for-miss, {text}");
    }
}

#[test]
fn a_marker_that_the_built_in_vcl_makes_is_banned_by_its_fields() {
    assert!(removes("", "Set-Cookie: a=b\r\nX-Tags: one,two\r\n", "obj.http.x-tags ~ (^|,)two(,|$)"));
    assert!(!removes("", "Set-Cookie: a=b\r\nX-Tags: one,two\r\n", "obj.http.x-tags ~ (^|,)three(,|$)"));
}

#[test]
fn the_lurker_removes_markers_too() {
    run_with(
        |parameters| parameters.ban_lurker_age = 1.0,
        HIT_FOR_PASS,
        async |world| {
            world.origin(always("", "hello"));
            world.client().get("/x", "").await;
            assert_eq!(world.engine.cache.object_count(), 1);
            ban(&world, "obj.http.x-url == /x");
            for _ in 0..10 {
                tokio::time::sleep(tokio::time::Duration::from_secs(1)).await;
                world.engine.cache.tick(world.context.clock.now());
            }
            assert_eq!(world.engine.cache.object_count(), 0);
        },
    );
}

#[test]
fn credentials_are_not_kept_for_bans() {
    for header in ["Set-Cookie", "set-cookie2", "WWW-Authenticate", "Authentication-Info"] {
        let headers: &'static str = format!("{header}: a=b\r\n").leak();
        let text: &'static str = format!("obj.http.{header} ~ .").leak();
        assert!(!removes(HIT_FOR_MISS, headers, text), "{header}");
    }
}

#[test]
fn of_a_response_that_must_not_be_stored_a_marker_keeps_only_the_tags() {
    let removes = |text: &'static str| {
        let (told, removed) = std::sync::mpsc::channel();
        run_with(
            |parameters| {
                parameters.http_policy = "rfc".to_owned();
                parameters.ban_lurker_sleep = 0.0;
            },
            "",
            async move |world| {
                world.origin(always("Cache-Control: no-store\r\nX-Name: a\r\nxkey: k\r\n", "hello"));
                world.client().get("/x", "").await;
                ban(&world, text);
                world.client().get("/x", "").await;
                told.send(marked(&world) == 0).unwrap();
            },
        );
        removed.recv().unwrap()
    };
    assert!(removes("obj.http.xkey == k"));
    assert!(removes("obj.status == 200"));
    assert!(!removes("obj.http.x-name ~ ."));
}

#[test]
fn a_marker_keeps_a_bounded_number_of_bytes_and_tags_first() {
    let long = "x".repeat(1000);
    let fields: String =
        (0..MARKER_HEAD_BYTES_MAX / 1000 + 3).map(|number| format!("X-{number}: {long}\r\n")).collect();
    let headers: &'static str = format!("X-First: a\r\n{fields}X-Last: b\r\nxkey: {long}\r\n").leak();
    run_with(
        |parameters| parameters.vsl_mask = [0; 32],
        HIT_FOR_PASS,
        async move |world| {
            world.origin(always(headers, "hello"));
            world.client().get("/x", "").await;
            let bytes = world.engine.cache.store().transient_usage().g_bytes;
            assert!(
                (MARKER_HEAD_BYTES_MAX as u64 - 2000..MARKER_HEAD_BYTES_MAX as u64 + 512).contains(&bytes),
                "{bytes}"
            );
        },
    );
    let cases = [("x-first", true), ("xkey", true), ("x-last", true), ("x-5", true), ("x-9", false)];
    for (name, is_kept) in cases {
        let text: &'static str = format!("obj.http.{name} ~ .").leak();
        assert_eq!(removes(HIT_FOR_PASS, headers, text), is_kept, "{name}");
    }
}
