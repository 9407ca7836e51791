//! Stale objects: validated, refreshed in the background, replaced.

use crate::support::{OriginRequest, run_with, serve_each};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::Duration;

const KEPT: &str = "sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 100s; }";

fn revalidating(request: &OriginRequest) -> Vec<u8> {
    if request.header("if-none-match") == Some("\"x\"") {
        b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nX-New: 1\r\nContent-Length: 77\r\n\r\n".to_vec()
    } else {
        b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nLast-Modified: Tue, 29 Oct 2019 19:06:53 GMT\r\nX-Old: 1\r\nContent-Length: 5\r\n\r\nhello"
            .to_vec()
    }
}

#[test]
fn a_304_makes_the_stale_object_good_again() {
    run_with(
        |_| {},
        KEPT,
        |world| async move {
            world.origin(serve_each(revalidating));
            let mut client = world.client();
            assert_eq!(client.get("/a", "").await.text(), "hello");
            tokio::time::sleep(Duration::from_secs(3)).await;
            let response = client.get("/a", "").await;
            assert_eq!((response.status(), response.text().as_str()), (200, "hello"), "{}", world.story());
            assert_eq!(response.header("x-new"), Some("1"));
            assert_eq!(response.header("x-old"), Some("1"));
            assert_eq!(response.header("content-length"), Some("5"));
            assert_eq!(world.count(Main::Fetch304), 1);
            let log = world.transaction(5);
            let from = log.iter().position(|line| line == "Timestamp Beresp").unwrap();
            let expected = "Timestamp Beresp
            BerespProtocol HTTP/1.1
            BerespStatus 304
            BerespReason Not Modified
            BerespHeader ETag: \"x\"
            BerespHeader X-New: 1
            BerespHeader Content-Length: 77
            BerespHeader Date: Fri, 20 Nov 2026 19:20:03 GMT
            TTL RFC 120 10 0 1795202403 1795202403 1795202403 0 0 cacheable
            BerespUnset Content-Length: 77
            BerespProtocol HTTP/1.1
            BerespStatus 200
            BerespReason OK
            BerespHeader Last-Modified: Tue, 29 Oct 2019 19:06:53 GMT
            BerespHeader X-Old: 1
            BerespHeader Content-Length: 5
            VCL_call BACKEND_RESPONSE
            TTL VCL 1 10 0 1795202403 cacheable
            TTL VCL 1 0 0 1795202403 cacheable
            TTL VCL 1 0 100 1795202403 cacheable
            VCL_return deliver
            Timestamp Process
            Storage malloc s0
            BackendClose -1 default recycle
            Timestamp BerespBody
            Length 5";
            let expected: Vec<_> = expected.lines().map(str::trim).collect();
            assert_eq!(log[from..from + expected.len()], expected, "{}", world.story());
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(client.get("/a", "").await.text(), "hello");
            assert_eq!(world.count(Main::CacheHit), 1);
            assert_eq!(world.engine.cache.object_count(), 1, "the old one is gone");
        },
    );
}

#[test]
fn object_purged_during_validation_is_not_renewed() {
    let vcl = format!("sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }} }}\n{KEPT}");
    run_with(
        |_| {},
        &vcl,
        |world| async move {
            let asked = Rc::new(RefCell::new(Vec::new()));
            let seen = Rc::clone(&asked);
            world.origin(move |mut stream| {
                let asked = Rc::clone(&seen);
                async move {
                    while let Some(request) = OriginRequest::read(&mut stream).await {
                        let tag = request.header("if-none-match").map(str::to_owned);
                        asked.borrow_mut().push(tag.clone());
                        let answer = if tag.is_some() {
                            tokio::time::sleep(Duration::from_secs(5)).await;
                            "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nX-New: 1\r\n\r\n".to_owned()
                        } else {
                            let count = asked.borrow().len();
                            format!("HTTP/1.1 200 OK\r\nETag: \"x\"\r\nContent-Length: 1\r\n\r\n{count}")
                        };
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                }
            });
            assert_eq!(world.client().get("/a", "").await.text(), "1");
            tokio::time::sleep(Duration::from_secs(3)).await;
            let asking = tokio::task::spawn_local({
                let world = Rc::clone(&world);
                async move { world.client().get("/a", "").await }
            });
            tokio::time::sleep(Duration::from_secs(2)).await;
            let mut purging = world.client();
            purging.send("PURGE /a HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            assert_eq!(purging.response().await.status(), 200);
            let response = asking.await.unwrap();
            assert_eq!((response.text().as_str(), response.header("x-new")), ("3", None), "{}", world.story());
            assert_eq!(*asked.borrow(), [None, Some("\"x\"".to_owned()), None]);
            world.expect_log("why stale-removed");
            assert_eq!(world.client().get("/a", "").await.text(), "3");
        },
    );
}

#[test]
fn a_200_replaces_the_stale_object() {
    run_with(
        |_| {},
        KEPT,
        |world| async move {
            let count = Rc::new(Cell::new(0));
            world.origin(serve_each(move |_| {
                count.set(count.get() + 1);
                format!("HTTP/1.1 200 OK\r\nETag: \"{0}\"\r\nContent-Length: 1\r\n\r\n{0}", count.get()).into_bytes()
            }));
            let mut client = world.client();
            assert_eq!(client.get("/a", "").await.text(), "1");
            tokio::time::sleep(Duration::from_secs(3)).await;
            assert_eq!(client.get("/a", "").await.text(), "2");
            assert_eq!(client.get("/a", "").await.text(), "2");
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(world.engine.cache.object_count(), 1);
        },
    );
}

#[test]
fn unsolicited_304_is_a_503() {
    run_with(
        |_| {},
        "",
        |world| async move {
            world.origin(serve_each(|_| b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()));
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            world.expect_log("Error 304 response but not conditional fetch");
        },
    );
}

#[test]
fn an_object_in_grace_is_served_while_one_fetch_refreshes_it() {
    let vcl = "sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 60s; set beresp.http.X-Bg = bereq.is_bgfetch; }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let count = Rc::new(Cell::new(0));
            let counted = Rc::clone(&count);
            world.origin(move |mut stream| {
                let count = Rc::clone(&counted);
                async move {
                    while OriginRequest::read(&mut stream).await.is_some() {
                        count.set(count.get() + 1);
                        tokio::time::sleep(Duration::from_secs(5)).await;
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}", count.get());
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                }
            });
            let mut client = world.client();
            assert_eq!(client.get("/a", "").await.text(), "1");
            tokio::time::sleep(Duration::from_secs(3)).await;
            let before = world.context.clock.now();
            for _ in 0..3 {
                assert_eq!(client.get("/a", "").await.text(), "1");
            }
            assert!(world.context.clock.now() - before < 0.1, "nobody waits");
            tokio::time::sleep(Duration::from_secs(5) + Duration::from_millis(500)).await;
            let response = world.client().get("/a", "").await;
            assert_eq!(response.text(), "2", "{}", world.story());
            assert_eq!(response.header("x-bg"), Some("true"));
            assert_eq!(count.get(), 2);
            assert_eq!(world.count(Main::SBgfetch), 1);
            world.expect_log(" bgfetch");
        },
    );
}

#[test]
fn a_refresh_that_fails_leaves_the_stale_object() {
    let vcl = "sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 60s; }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let count = Rc::new(Cell::new(0));
            world.origin(move |mut stream| {
                count.set(count.get() + 1);
                let is_first = count.get() == 1;
                async move {
                    if OriginRequest::read(&mut stream).await.is_some() && is_first {
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                    }
                }
            });
            assert_eq!(world.client().get("/a", "").await.text(), "ok");
            for _ in 0..3 {
                tokio::time::sleep(Duration::from_secs(3)).await;
                assert_eq!(world.client().get("/a", "").await.text(), "ok", "{}", world.story());
            }
            tokio::time::sleep(Duration::from_secs(100)).await;
            assert_eq!(world.client().get("/a", "").await.status(), 503, "beyond grace");
        },
    );
}
