//! vcl_backend_refresh (8.0): VCL decides about a 304.

use crate::support::{OriginRequest, Response, World, run_with, serve_each};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::sleep;

/// The origin's first answer is complete, the second a 304 with other headers.
fn revalidating(request: &OriginRequest) -> Vec<u8> {
    match request.header("if-none-match") {
        Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\nX-New: 1\r\nContent-Length: 77\r\n\r\n".to_vec(),
        None => b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nX-Old: 1\r\nContent-Length: 5\r\n\r\nhello".to_vec(),
    }
}

const KEPT: &str = "sub vcl_backend_response {
    set beresp.http.X-304 = beresp.was_304;
    set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 100s;
}\n";

/// The second answer to a request whose object has become stale, under a VCL with such a
/// vcl_backend_refresh.
fn refreshed(body: &str, check: impl FnOnce(&Rc<World>, Response)) {
    run_with(
        |_| {},
        &format!("{KEPT}sub vcl_backend_refresh {{ {body} }}"),
        async |world| {
            world.origin(serve_each(revalidating));
            let mut client = world.client();
            assert_eq!(client.get("/", "").await.header("x-304"), Some("false"), "{}", world.story());
            client.get("/", "").await;
            sleep(Duration::from_secs(3)).await;
            let response = client.get("/", "").await;
            check(&world, response);
        },
    );
}

#[test]
fn merge_puts_the_new_headers_over_the_stale_ones() {
    for said in ["", "return (merge);"] {
        refreshed(said, |world, response| {
            assert_eq!((response.status(), response.text().as_str()), (200, "hello"), "{}", world.story());
            assert_eq!((response.header("x-new"), response.header("x-old")), (Some("1"), Some("1")));
            assert_eq!((response.header("etag"), response.header("content-length")), (Some("\"other\""), Some("5")));
            assert_eq!(response.header("x-304"), Some("true"));
            world.expect_log("VCL_call BACKEND_REFRESH");
            world.expect_log("VCL_return merge");
        });
    }
}

#[test]
fn obj_stale_keeps_the_stale_headers_alone() {
    refreshed("return (obj_stale);", |world, response| {
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"), "{}", world.story());
        assert_eq!((response.header("x-new"), response.header("x-old")), (None, Some("1")));
        assert_eq!(response.header("etag"), Some("\"x\""));
        assert_eq!(response.header("x-304"), Some("true"));
    });
}

#[test]
fn beresp_keeps_the_new_headers_except_those_of_the_body() {
    refreshed("set beresp.http.Made = \"here\"; return (beresp);", |world, response| {
        assert_eq!((response.status(), response.text().as_str()), (200, "hello"), "{}", world.story());
        assert_eq!((response.header("x-new"), response.header("x-old")), (Some("1"), None));
        assert_eq!(response.header("made"), Some("here"));
        assert_eq!((response.header("etag"), response.header("content-length")), (Some("\"x\""), Some("5")));
    });
}

#[test]
fn the_stale_object_can_be_read() {
    let body = "set beresp.http.Stale = obj_stale.status + \" \" + obj_stale.reason + \" \" + obj_stale.proto + \" \" +
            obj_stale.http.X-Old + \" \" + obj_stale.hits + \" \" + obj_stale.is_valid + \" \" + obj_stale.uncacheable;
        set beresp.http.Lives = obj_stale.ttl + \" \" + obj_stale.grace + \" \" + obj_stale.keep + \" \" + obj_stale.age;
        set beresp.http.Where = obj_stale.storage;
        if (obj_stale.can_esi || obj_stale.time > now) { return (fail); }";
    refreshed(body, |world, response| {
        assert_eq!(response.header("stale"), Some("200 OK HTTP/1.1 1 1 true false"), "{}", world.story());
        assert_eq!(response.header("lives"), Some("-2.000 0.000 100.000 3.000"));
        assert_eq!(response.header("where"), Some("storage.s0"));
    });
}

#[test]
fn error_abandon_and_fail_end_the_fetch_and_retry_begins_it_anew() {
    refreshed("return (error(599, \"Not like that\"));", |world, response| {
        assert_eq!(response.status(), 599, "{}", world.story());
    });
    for said in ["return (abandon);", "return (fail);"] {
        refreshed(said, |world, response| assert_eq!(response.status(), 503, "{said} {}", world.story()));
    }
    let once = "if (bereq.retries == 0) { return (retry); } set beresp.http.Retries = bereq.retries; return (merge);";
    refreshed(once, |world, response| assert_eq!(response.header("retries"), Some("1"), "{}", world.story()));
}

#[test]
fn vcl_adds_to_the_builtin_refresh_checks() {
    let vcl =
        format!("{KEPT}sub vcl_refresh_status {{ if (obj_stale.http.X-Old) {{ return (error(500, \"Mine\")); }} }}");
    run_with(
        |_| {},
        &vcl,
        async |world| {
            world.origin(serve_each(revalidating));
            let mut client = world.client();
            client.get("/", "").await;
            sleep(Duration::from_secs(3)).await;
            assert_eq!(client.get("/", "").await.status(), 500, "{}", world.story());
        },
    );
}

#[test]
fn without_conditions_the_builtin_refuses_a_304() {
    let vcl = format!(
        "{KEPT}sub vcl_backend_refresh {{ }} sub vcl_backend_fetch {{ unset bereq.http.If-None-Match; set bereq.http.Not = \"1\"; }}"
    );
    run_with(
        |_| {},
        &vcl,
        async |world| {
            let answers = Rc::new(std::cell::Cell::new(0));
            world.origin(serve_each(move |request| {
                answers.set(answers.get() + 1);
                if answers.get() == 1 { revalidating(request) } else { b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec() }
            }));
            let mut client = world.client();
            client.get("/", "").await;
            sleep(Duration::from_secs(3)).await;
            assert_eq!(client.get("/", "").await.status(), 503, "{}", world.story());
            world.expect_log("VCL_return error");
        },
    );
}
