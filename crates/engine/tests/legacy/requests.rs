//! The client's request: bereq before the fetch, restarts, and the header added to it.

use super::{Asked, noting, page, run_old};
use crate::support::{run, run_with};

#[test]
fn vcl_miss_and_vcl_pass_change_the_request_to_the_origin() {
    let vcl = r#"
sub vcl_miss { set bereq.http.X-From = "miss"; set bereq.url = "/b" + bereq.url; set req.http.X-Late = "1"; }
sub vcl_pass { set bereq.http.X-From = "pass"; set bereq.request = "PUT"; unset bereq.http.Cookie; }
sub vcl_fetch { set beresp.http.X-Bereq = bereq.url + " " + bereq.http.X-From; }"#;
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "", "x")));
        let mut client = world.client();
        assert_eq!(client.get("/a", "").await.header("x-bereq"), Some("/b/a miss"), "{}", world.story());
        assert_eq!(client.get("/c", "Cookie: d\r\n").await.header("x-bereq"), Some("/c pass"));
        let asked = asked.borrow();
        assert_eq!((asked[0].line(), asked[0].header("x-from")), ("GET /b/a", Some("miss")));
        assert_eq!(asked[0].header("x-late"), None, "the request to the origin was made before");
        assert_eq!((asked[1].line(), asked[1].header("cookie")), ("PUT /c", None));
        world.expect_log("BereqURL /b/a");
    });
}

#[test]
fn timeouts_set_in_vcl_miss_count() {
    let vcl = "sub vcl_miss { set bereq.first_byte_timeout = 2s; }";
    run_old(vcl, |world| async move {
        world.origin(|mut stream| async move {
            crate::support::OriginRequest::read(&mut stream).await;
            std::future::pending::<()>().await;
        });
        let start = tokio::time::Instant::now();
        assert_eq!(world.client().get("/", "").await.status(), 503);
        assert_eq!(start.elapsed().as_secs(), 2, "{}", world.story());
    });
}

#[test]
fn a_restart_begins_with_the_first_backend_again() {
    let vcl = r#"
backend other { .host = "10.0.0.2"; .port = "80"; }
sub vcl_recv { if (req.restarts == 0) { set req.backend = other; } set req.http.X-Went = req.http.X-Went + req.backend; }
sub vcl_fetch { if (beresp.status == 500) { return (restart); } }"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&Asked::default(), |_| page("200 OK", "", "first")));
        world.origin_at("10.0.0.2:80", noting(&Asked::default(), |_| page("500 Oops", "", "other")));
        assert_eq!(world.client().get("/", "").await.text(), "first", "{}", world.story());
        world.expect_log("ReqHeader X-Went: otherdefault");
    });
}

#[test]
fn x_forwarded_for_is_written_once() {
    let asked = Asked::default();
    let count = Asked::clone(&asked);
    // By the built-in VCL of 3.0 and 2.1, once, even with restarts; requests that do not reach it
    // have none.
    let vcl = r#"
sub vcl_recv { if (req.url == "/own") { return (lookup); } }
sub vcl_fetch { if (req.restarts == 0 && req.url == "/again") { return (restart); } }"#;
    run_old(vcl, |world| async move {
        world.origin(noting(&count, |_| page("200 OK", "", "x")));
        let mut client = world.client();
        client.get("/again", "X-Forwarded-For: 198.51.100.1\r\n").await;
        client.get("/own", "").await;
    });
    let forwarded = |number: usize| asked.borrow()[number].header("x-forwarded-for").map(str::to_owned);
    assert_eq!(forwarded(1).as_deref(), Some("198.51.100.1, 192.0.2.7"));
    assert_eq!(forwarded(2), None);

    // By the core, in a line of its own, in 2.0.
    let count = Asked::clone(&asked);
    run_old("sub vcl_recv { if (req.http.X-Forwarded-For) { remove req.http.X-Seen; } lookup; }", |world| async move {
        world.origin(noting(&count, |_| page("200 OK", "", "x")));
        world.client().get("/", "X-Forwarded-For: 198.51.100.1\r\n").await;
        let head = count.borrow()[3].head.to_ascii_lowercase();
        assert!(head.contains("x-forwarded-for: 198.51.100.1\r\n"), "{head}");
        assert!(head.contains("x-forwarded-for: 192.0.2.7\r\n"), "{head}");
    });
}

#[test]
fn only_3_0_asks_for_gzip_on_its_own() {
    for (vcl, expected) in [
        ("sub vcl_fetch { set beresp.grace = 1s; return (hit_for_pass); }", "gzip"),
        ("sub vcl_fetch { if (beresp.cacheable) { set beresp.grace = 1s; } }", "deflate, gzip"),
    ] {
        run_old(vcl, |world| async move {
            let asked = Asked::default();
            world.origin(noting(&asked, |_| page("200 OK", "", "x")));
            world.client().get("/", "Accept-Encoding: deflate, gzip\r\n").await;
            assert_eq!(asked.borrow()[0].header("accept-encoding"), Some(expected), "{}", world.story());
        });
    }
}

#[test]
fn pipe_of_an_old_dialect_gets_no_connection_close() {
    let vcl = "sub vcl_recv { return (pipe); } sub vcl_pipe { set bereq.http.X-Piped = \"1\"; return (pipe); }";
    run_old(vcl, |world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "", "piped")));
        assert_eq!(world.client().get("/", "").await.text(), "piped", "{}", world.story());
        assert_eq!(asked.borrow()[0].header("x-piped"), Some("1"));
        assert_eq!(asked.borrow()[0].header("connection"), None);
    });
}

#[test]
fn the_oldest_dialect_runs() {
    let vcl = r#"
backend default { set backend.host = "10.0.0.1"; set backend.port = "80"; }
sub vcl_recv { if (req.request == "GET") { lookup; } pass; }
sub vcl_fetch { if (obj.http.X-No) { pass; } set obj.ttl = 10s; insert; }"#;
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let asked = Asked::default();
            world.origin(noting(&asked, |_| page("200 OK", "", "x")));
            let mut client = world.client();
            for _ in 0..2 {
                assert_eq!(client.get("/", "Cookie: a\r\n").await.text(), "x", "{}", world.story());
            }
            assert_eq!(asked.borrow().len(), 1);
            tokio::time::sleep(std::time::Duration::from_secs(11)).await;
            let mut client = world.client();
            client.get("/", "").await;
            assert_eq!(asked.borrow().len(), 2, "it knew no grace");
        },
    );
}

#[test]
fn vcl_4_still_forwards_the_address_by_itself() {
    run(|world| async move {
        let asked = Asked::default();
        world.origin(noting(&asked, |_| page("200 OK", "", "x")));
        world.client().get("/", "").await;
        assert_eq!(asked.borrow()[0].header("x-forwarded-for"), Some("192.0.2.7"));
    });
}
