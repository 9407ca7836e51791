//! Answers that depend on a property of the request that is neither in the key nor in Vary are not
//! stored for other requests.

use crate::support::{OriginRequest, World, run_with, serve_each};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::limits::ERROR_CAUSE_BYTES_MAX;
use surface::parameter::Parameters;
use tokio::time::sleep;

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

fn fresh(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nCache-Control: max-age=100\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
        .into()
}

/// An origin that answers with a status if a request fulfils a condition, and with 200 otherwise.
fn answering(
    status: u16,
    headers: &'static str,
    condition: impl Fn(&OriginRequest) -> bool + Clone + 'static,
) -> impl Fn(&OriginRequest) -> Vec<u8> + Clone {
    move |request| if condition(request) { fresh(status, headers, "no") } else { fresh(200, headers, "hello") }
}

fn says_unkeyed(world: &World) -> bool {
    world.log().iter().any(|line| line.contains("Witness why not-stored-unkeyed"))
}

#[test]
fn a_field_of_one_client_decides_nothing_for_the_others() {
    let long = format!("X-Long: {}\r\n", "x".repeat(ERROR_CAUSE_BYTES_MAX));
    // Status, the client's header lines, the name of the significant one.
    let cases = [
        (416, "Range: bytes=20-30\r\n", "range"),
        (400, long.as_str(), "x-long"),
        (431, "X-Any: 1\r\n", "x-any"),
        (500, long.as_str(), "x-long"),
        (404, long.as_str(), "x-long"),
        (403, "User-Agent: b\u{e4}d\r\n", "user-agent"),
        (406, "Accept: text/nothing\r\n", "accept"),
        (406, "Accept-Language: tlh\r\n", "accept-language"),
        (415, "Content-Type: text/nothing\r\n", "content-type"),
        (405, "X-HTTP-Method-Override: DELETE\r\n", "x-http-method-override"),
        (501, "X-HTTP-Method: FOO\r\n", "x-http-method"),
        (200, "X-Method-Override: POST\r\n", "x-method-override"),
        (226, "A-IM: vcdiff\r\n", "a-im"),
    ];
    for (status, headers, name) in cases {
        for vcl in ["", "sub vcl_backend_response { set beresp.ttl = 2m; }"] {
            run_with(rfc, vcl, async |world| {
                let name = name.to_owned();
                world.origin(serve_each(answering(status, "", move |request| request.header(&name).is_some())));
                let odd = world.client().get("/", headers).await;
                assert_eq!(odd.status(), status, "{status} {}", world.story());
                for _ in 0..2 {
                    let usual = world.client().get("/", "").await;
                    assert_eq!((usual.status(), usual.text()), (200, "hello".to_owned()), "{status} {vcl}");
                }
                assert!(says_unkeyed(&world), "{status} {vcl}: {}", world.story());
                let markers = world.count(Main::CacheHitmiss);
                assert_eq!((world.count(Main::CacheHit), markers), (1, 0), "{status} {vcl}: {}", world.story());
            });
        }
    }
}

#[test]
fn early_data_decides_nothing_for_the_others() {
    run_with(rfc, "", async |world| {
        let is_early = |request: &OriginRequest| request.header("early-data").is_some();
        world.origin(serve_each(answering(425, "", is_early)));
        assert_eq!(world.client().get("/", "Early-Data: 1\r\n").await.status(), 425);
        for _ in 0..2 {
            assert_eq!(world.client().get("/", "").await.status(), 200);
        }
        assert_eq!(world.count(Main::CacheHit), 1, "{}", world.story());
    });
}

#[test]
fn transient_statuses_are_not_stored() {
    for status in [401, 407, 408, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 505, 506, 510, 511] {
        for vcl in ["", "sub vcl_backend_response { set beresp.ttl = 2m; }"] {
            run_with(rfc, vcl, async |world| {
                let asked = Rc::new(Cell::new(0));
                world.origin(serve_each(move |_| {
                    asked.set(asked.get() + 1);
                    fresh(if asked.get() == 1 { status } else { 200 }, "", "x")
                }));
                let answers = [world.client().get("/", "").await, world.client().get("/", "").await];
                assert_eq!(answers.map(|answer| answer.status()), [status, 200], "{vcl}: {}", world.story());
                assert!(says_unkeyed(&world), "{status}");
            });
        }
    }
}

#[test]
fn errors_about_the_request_line_are_stored_for_as_long_as_they_say() {
    for status in [400, 402, 403, 404, 405, 410, 414, 422, 451, 500, 501, 502, 503, 504] {
        run_with(rfc, "", async |world| {
            world.origin(serve_each(move |_| fresh(status, "", "x")));
            for _ in 0..2 {
                let browser = "User-Agent: Mozilla/5.0\r\nAccept: */*\r\nCookie: a=b\r\n";
                assert_eq!(world.client().get("/", browser).await.status(), status);
            }
            assert_eq!(world.count(Main::CacheHit), 1, "{status}: {}", world.story());
        });
    }
}

#[test]
fn a_field_that_vary_names_is_keyed() {
    for (status, headers, name, vary) in [
        (401, "Authorization: Basic YQ==\r\n", "authorization", "Cache-Control: public\r\nVary: Authorization\r\n"),
        (406, "Accept: text/nothing\r\n", "accept", "Vary: accept\r\n"),
        (405, "X-HTTP-Method-Override: PUT\r\n", "x-http-method-override", "Vary: x-http-method-override\r\n"),
    ] {
        run_with(rfc, "", async |world| {
            world.origin(serve_each(answering(status, vary, move |request| request.header(name).is_some())));
            for _ in 0..2 {
                assert_eq!(world.client().get("/", headers).await.status(), status);
                assert_eq!(world.client().get("/", "").await.status(), 200);
            }
            assert_eq!(world.count(Main::CacheHit), 2, "{status}: {}", world.story());
        });
    }
}

#[test]
fn a_preference_that_was_applied_is_keyed_or_not_stored() {
    for (vary, hits) in [("", 0), ("Vary: Prefer\r\n", 1)] {
        run_with(rfc, "", async |world| {
            let headers = format!("Preference-Applied: return=minimal\r\n{vary}");
            world.origin(serve_each(move |_| fresh(200, &headers, "x")));
            for _ in 0..2 {
                world.client().get("/", "Prefer: return=minimal\r\n").await;
            }
            assert_eq!(world.count(Main::CacheHit), hits, "{}", world.story());
        });
    }
}

#[test]
fn a_416_leaves_the_stored_response_unchanged() {
    run_with(rfc, "", async |world| {
        world.origin(serve_each(|request| match request.header("range") {
            Some("bytes=0-1") => fresh(206, "ETag: \"a\"\r\nContent-Range: bytes 0-1/*\r\n", "he"),

            Some(_) => fresh(416, "Content-Range: bytes */5\r\n", ""),
            None => fresh(200, "ETag: \"a\"\r\n", "whole"),
        }));
        assert_eq!(world.client().get("/", "Range: bytes=0-1\r\n").await.text(), "he");
        assert_eq!(world.client().get("/", "Range: bytes=20-30\r\n").await.status(), 416);
        assert_eq!(world.client().get("/", "Range: bytes=0-1\r\n").await.text(), "he");
        assert_eq!(world.count(Main::CacheHit), 1, "{}", world.story());
    });
}

#[test]
fn a_word_of_vcl_stores_even_those() {
    let vcl = "sub vcl_backend_response { set beresp.uncacheable = false; set beresp.ttl = 2m; }";
    run_with(rfc, vcl, async |world| {
        world.origin(serve_each(|_| fresh(429, "", "x")));
        world.client().get("/", "").await;
        sleep(Duration::from_secs(1)).await;
        world.client().get("/", "").await;
        assert_eq!(world.count(Main::CacheHit), 1, "{}", world.story());
    });
}
