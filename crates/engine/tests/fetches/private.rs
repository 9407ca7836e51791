//! Responses that must not be shared: passed, marked as such, and never in the cache.

use crate::support::{OriginRequest, always, run, run_with, serve_each};
use std::cell::Cell;
use std::rc::Rc;
use surface::counter::Main;
use tokio::io::AsyncWriteExt;
use tokio::time::Duration;

fn counting(headers: &'static str) -> (Rc<Cell<u32>>, impl Fn(&OriginRequest) -> Vec<u8> + Clone + 'static) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let answer = move |_: &OriginRequest| {
        counted.set(counted.get() + 1);
        let body = format!("for client {}", counted.get());
        format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    (count, answer)
}

#[test]
fn a_response_with_a_cookie_goes_to_its_client_only() {
    run(|world| async move {
        let (count, answer) = counting("Set-Cookie: id=1\r\n");
        world.origin(serve_each(answer));
        let mut client = world.client();
        assert_eq!(client.get("/a", "").await.text(), "for client 1");
        assert_eq!(client.get("/a", "").await.text(), "for client 2", "{}", world.story());
        assert_eq!(count.get(), 2);
        assert_eq!(world.count(Main::CacheHitmiss), 1);
        assert_eq!(world.count(Main::BerespUncacheable), 2);
        world.expect_log("TTL VCL 120 10 0 1795202400 uncacheable");
        world.expect_log("Storage malloc Transient");
    });
}

#[test]
fn a_marker_keeps_neither_body_nor_credentials() {
    run(|world| async move {
        let secret = "x".repeat(2000);
        let headers = ["Set-Cookie: id", "set-cookie2: id", "WWW-Authenticate: Negotiate a", "Authentication-Info: a"];
        let headers: String = headers.iter().map(|header| format!("{header}={secret}\r\n")).collect();
        world.origin(always(&headers, &secret));
        world.client().get("/a", "").await;
        let bytes = world.engine.cache.store().usage().g_bytes + world.engine.cache.store().transient_usage().g_bytes;
        assert!(bytes < 1024, "{bytes}");
        assert_eq!(world.engine.cache.object_count(), 1);
    });
}

#[test]
fn requests_for_what_is_known_not_to_be_shared_do_not_wait_for_each_other() {
    run(|world| async move {
        world.origin(|mut stream| async move {
            while OriginRequest::read(&mut stream).await.is_some() {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok").await;
            }
        });
        world.client().get("/a", "").await;
        let before = world.context.clock.now();
        let ask = || async { world.client().get("/a", "").await.text() };
        let texts = tokio::join!(ask(), ask(), ask());
        assert_eq!(texts, ("ok".into(), "ok".into(), "ok".into()));
        let waited = world.context.clock.now() - before;
        assert!(waited < 11.0, "one after the other: {waited}");
    });
}

#[test]
fn a_long_private_body_is_streamed_through_bounded_memory() {
    run(|world| async move {
        let body = "0123456789abcdef".repeat(200_000);
        world.origin(always("Set-Cookie: a=b\r\n", &body));
        let response = world.client().get("/a", "").await;
        assert!(response.is_whole, "{}", world.story());
        assert!(response.text() == body);
        let bytes = world.engine.cache.store().usage().g_bytes + world.engine.cache.store().transient_usage().g_bytes;
        assert!(bytes < 1024, "{bytes}");
    });
}

#[test]
fn a_private_body_without_streaming_is_whole_and_not_kept() {
    let vcl = "sub vcl_backend_response { set beresp.do_stream = false; }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let body = "0123456789abcdef".repeat(100_000);
            world.origin(always("Set-Cookie: a=b\r\n", &body));
            let mut client = world.client();
            assert!(client.get("/a", "").await.text() == body, "{}", world.story());
            assert!(client.get("/a", "").await.text() == body);
            world.expect_log("Fetch_Body 3 length -");
            assert_eq!(world.count(Main::CacheHitmiss), 1);
            tokio::time::sleep(Duration::from_secs(1)).await;
            let bytes =
                world.engine.cache.store().usage().g_bytes + world.engine.cache.store().transient_usage().g_bytes;
            assert!(bytes < 1024, "{bytes}");
        },
    );
}

#[test]
fn hit_for_pass_is_remembered_for_its_time() {
    run_with(
        |_| {},
        "sub vcl_backend_response { return (pass(10s)); }",
        |world| async move {
            let (count, answer) = counting("");
            world.origin(serve_each(answer));
            let mut client = world.client();
            client.get("/a", "").await;
            let log = world.log();
            let record = log.iter().position(|line| line.ends_with("TTL HFP 10 0 0 1795202400 uncacheable")).unwrap();
            assert!(log[record + 1].ends_with("VCL_return pass"), "{log:?}");
            client.get("/a", "").await;
            assert_eq!(world.count(Main::CacheHitpass), 1, "{}", world.story());
            tokio::time::sleep(Duration::from_secs(11)).await;
            world.client().get("/a", "").await;
            assert_eq!(world.count(Main::CacheHitpass), 1);
            assert_eq!(count.get(), 3);
        },
    );
}

#[test]
fn a_vary_that_cannot_be_read_makes_the_response_private() {
    run(|world| async move {
        let (count, answer) = counting("Vary: foo bar\r\n");
        world.origin(serve_each(answer));
        let mut client = world.client();
        client.get("/a", "").await;
        client.get("/a", "").await;
        assert_eq!(count.get(), 2);
        world.expect_log("Error Malformed Vary header");
        world.expect_log("Error Illegal 'Vary' header from backend, making this a pass.");
    });
}

#[test]
fn variants_are_kept_apart() {
    run(|world| async move {
        world.origin(serve_each(|request| {
            let language = request.header("accept-language").unwrap_or("none");
            format!("HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nContent-Length: {}\r\n\r\n{language}", language.len())
                .into_bytes()
        }));
        let mut client = world.client();
        for _ in 0..2 {
            for language in ["de", "fr"] {
                let response = client.get("/a", &format!("Accept-Language: {language}\r\n")).await;
                assert_eq!(response.text(), language);
            }
        }
        assert_eq!(world.count(Main::CacheHit), 2);
        assert_eq!(world.engine.cache.object_count(), 2);
    });
}

#[test]
fn a_client_that_leaves_a_pass_stops_the_fetch() {
    run_with(
        |parameters| parameters.vsl_mask = [0; 32],
        "sub vcl_recv { return (pass); }",
        |world| async move {
            world.origin(|mut stream| async move {
                OriginRequest::read(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").await;
                while stream.write_all(&[b'x'; 10_000]).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            let mut client = world.client();
            client.send("GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            client.receive(50_000).await;
            drop(client);
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.expect_log("close Failure receiving req.body");
            world.expect_log("Fetch: Pass delivery abandoned");
            assert_eq!(world.count(Main::FetchFailed), 0, "it was the client's wish");
            assert_eq!(world.context.in_flight(), 0);
        },
    );
}

#[test]
fn a_client_that_leaves_does_not_stop_a_fetch_for_the_cache() {
    run(|world| async move {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc").await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            let _ = stream.write_all(b"def").await;
        });
        let mut client = world.client();
        client.send("GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        client.receive(20).await;
        drop(client);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(world.client().get("/a", "").await.text(), "abcdef");
        assert_eq!(world.count(Main::CacheHit), 1);
        assert_eq!(world.dialled(), 1);
    });
}

#[test]
fn a_store_that_is_full_costs_the_caching_and_not_the_response() {
    run(|world| async move {
        let body = "x".repeat(80 << 20);
        world.origin(always("", &body));
        let response = world.client().get("/a", "").await;
        assert_eq!(response.body.len(), body.len(), "{}", world.story());
        assert_eq!(world.engine.cache.object_count(), 0);
    });
}
