//! Circuit breakers: backends that are excluded for their failures, tried again, started slowly,
//! and not overloaded.

use super::{backend, reasons, vbe};
use crate::support::{OriginRequest, World, always, run_with, serve_each};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::{Main, Vbe};
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

async fn wait(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

fn with(attributes: &str, rest: &str) -> String {
    format!("vcl 4.1; backend default {{ .host = \"10.0.0.1\"; {attributes} }} {rest}")
}

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
    parameters.backend_remote_error_holddown = 0.0;
}

/// An origin that closes every connection on which it gets a request.
fn dead(world: &World) {
    world.origin(|mut stream| async move {
        OriginRequest::read(&mut stream).await;
    });
}

#[test]
fn failing_fetches_open_the_breaker_and_an_answered_trial_closes_it() {
    run_with(
        |parameters| parameters.backend_error_reasons = true,
        &with(
            ".fail_limit = 3; .aside_time = 20s;",
            "sub vcl_recv { return (pass); } sub vcl_backend_error { set beresp.http.said = beresp.reason; }",
        ),
        async |world| {
            dead(&world);
            for _ in 0..3 {
                assert_eq!(world.client().get("/", "").await.header("said"), Some("Backend closed connection"));
            }
            assert_eq!((world.dialled(), vbe(&world, "default", Vbe::Aside)), (3, 1));
            world.expect_log("Backend_health default Went sick -------- 0 0 0 0.000000 0.000000 \"aside for 20.000s: 3 failures in a row");
            for _ in 0..5 {
                assert_eq!(world.client().get("/", "").await.header("said"), Some("Backend set aside"));
            }
            assert_eq!((world.dialled(), vbe(&world, "default", Vbe::AsideRefused)), (3, 5));
            assert_eq!(world.count(Main::BackendAside), 5);
            assert!(reasons(&world).contains(&"backend-aside".to_owned()));

            wait(20).await;
            assert_eq!(world.client().get("/", "").await.header("said"), Some("Backend closed connection"));
            assert_eq!(world.client().get("/", "").await.header("said"), Some("Backend set aside"));
            world.origin(always("", "sound"));
            wait(39).await;
            assert_eq!(world.client().get("/", "").await.header("said"), Some("Backend set aside"), "twice as long");
            wait(1).await;
            assert_eq!(world.client().get("/", "").await.text(), "sound", "{}", world.story());
            assert!(backend(&world, "default").is_healthy());
            world.expect_log("Backend_health default Went healthy");
        },
    );
}

#[test]
fn open_breaker_serves_stale_objects_without_delay() {
    run_with(
        rfc,
        &with(".fail_limit = 2; .first_byte_timeout = 5s;", "sub vcl_backend_response { set beresp.keep = 1h; }"),
        async |world| {
            let is_silent = Rc::new(Cell::new(false));
            let silent = Rc::clone(&is_silent);
            world.origin(move |mut stream| {
                let silent = Rc::clone(&silent);
                async move {
                    while OriginRequest::read(&mut stream).await.is_some() {
                        if silent.get() {
                            wait(1000).await;
                        }
                        let _ = stream
                            .write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=2\r\nContent-Length: 2\r\n\r\nok")
                            .await;
                    }
                }
            });
            for target in ["/1", "/2", "/3"] {
                assert_eq!(world.client().get(target, "").await.text(), "ok");
            }
            wait(60).await;
            is_silent.set(true);
            let seconds = async |target: &str| {
                let began = world.context.clock.now();
                assert_eq!(world.client().get(target, "").await.text(), "ok", "{}", world.story());
                (world.context.clock.now() - began).round() as u64
            };
            assert_eq!((seconds("/1").await, seconds("/2").await), (5, 5), "these find out");
            assert_eq!(seconds("/3").await, 0, "{}", world.story());
            assert!(reasons(&world).contains(&"stale-on-error".to_owned()));
            assert_eq!(world.count(Main::BackendAside), 1);
        },
    );
}

#[test]
fn origin_errors_count_only_if_vcl_enables_them() {
    for (attribute, dialled) in [("", 4), (".fail_5xx = 1;", 2)] {
        run_with(
            |_| {},
            &with(&format!(".fail_limit = 2; {attribute}"), "sub vcl_recv { return (pass); }"),
            async |world| {
                let asked = Rc::new(Cell::new(0));
                let counted = Rc::clone(&asked);
                world.origin(serve_each(move |_| {
                    counted.set(counted.get() + 1);
                    b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n".to_vec()
                }));
                for _ in 0..4 {
                    world.client().get("/", "").await;
                }
                assert_eq!(asked.get(), dialled, "{attribute}");
            },
        );
    }
}

#[test]
fn directors_skip_an_open_backend_and_raise_its_share_after_recovery() {
    let vcl = "vcl 4.1; import directors;
        backend weak { .host = \"10.0.0.2\"; .fail_limit = 1; .aside_time = 5s; .slow_start = 100s; }
        backend strong { .host = \"10.0.0.3\"; }
        sub vcl_init { new both = directors.round_robin(); both.add_backend(weak); both.add_backend(strong); }
        sub vcl_recv { set req.backend_hint = both.backend(); return (pass); }";
    run_with(
        |parameters| parameters.backend_remote_error_holddown = 0.0,
        vcl,
        async |world| {
            world.origin_at("10.0.0.3:80", always("", "strong"));
            let mut failed = 0;
            for _ in 0..20 {
                failed += u32::from(world.client().get("/", "").await.status() == 503);
            }
            assert_eq!(failed, 1, "only the first one: {}", world.story());
            world.origin_at("10.0.0.2:80", always("", "weak"));
            wait(5).await;
            let share = async || {
                let mut weak = 0;
                for _ in 0..200 {
                    let text = world.client().get("/", "").await.text();
                    assert!(text == "weak" || text == "strong", "{text}");
                    weak += u32::from(text == "weak");
                }
                weak
            };
            let first = share().await;
            wait(50).await;
            let middle = share().await;
            wait(60).await;
            let last = share().await;
            assert!((5..=45).contains(&first), "a tenth of its turns: {first} of 200");
            assert!(first < middle && middle < last, "{first} {middle} {last}");
            assert_eq!(last, 100);
        },
    );
}

#[test]
fn retries_stay_within_the_retry_budget() {
    for (attribute, asked_for_20, refused) in [("", 100, 0), (".retry_budget = 20;", 36, 20)] {
        run_with(
            |parameters| parameters.backend_error_reasons = true,
            &with(
                attribute,
                "sub vcl_recv { return (pass); }
                 sub vcl_backend_response { return (retry); }
                 sub vcl_backend_error { set beresp.http.said = beresp.reason; return (deliver); }",
            ),
            async |world| {
                let asked = Rc::new(Cell::new(0));
                let counted = Rc::clone(&asked);
                world.origin(serve_each(move |_| {
                    counted.set(counted.get() + 1);
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
                }));
                let mut said = 0;
                for _ in 0..20 {
                    let response = world.client().get("/", "").await;
                    assert_eq!(response.status(), 503);
                    said += usize::from(response.header("said") == Some("Backend retry budget spent"));
                }
                assert!((asked_for_20..=asked_for_20 + 2).contains(&asked.get()), "{attribute} {}", asked.get());
                assert!(said as u64 <= refused && vbe(&world, "default", Vbe::RetryRefused) == said as u64, "{said}");
                assert_eq!(world.count(Main::BackendRetryRefused), said as u64);
                assert_eq!(said > 0, refused > 0, "{}", world.story());
            },
        );
    }
}

#[test]
fn without_attributes_failing_backends_receive_every_fetch() {
    run_with(
        |_| {},
        &with("", "sub vcl_recv { return (pass); }"),
        async |world| {
            dead(&world);
            for _ in 0..20 {
                assert_eq!(world.client().get("/", "").await.status(), 503);
            }
            assert_eq!(world.dialled(), 20);
        },
    );
}

/// Waits until a backend with `.fail_limit = 1; .aside_time = 10s;` may be tried again.
async fn until_the_open_time_is_over(world: &World) {
    dead(world);
    assert_eq!(world.client().get("/", "").await.status(), 503);
    wait(10).await;
    world.origin(|mut stream| async move {
        while let Some(request) = OriginRequest::read(&mut stream).await {
            let answer: &[u8] = match request.header("upgrade") {
                Some(_) => b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
                None => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            };
            let _ = stream.write_all(answer).await;
        }
    });
}

const TRIED: &str = ".fail_limit = 1; .aside_time = 10s;";
const PASS_AND_PIPE: &str = "sub vcl_recv { if (req.http.Upgrade) { return (pipe); } return (pass); }
    sub vcl_pipe { set bereq.http.Upgrade = req.http.Upgrade; }";

#[test]
fn answered_pipe_closes_the_breaker() {
    run_with(
        |_| {},
        &with(TRIED, PASS_AND_PIPE),
        async |world| {
            until_the_open_time_is_over(&world).await;
            let mut socket = world.client();
            socket.send("GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").await;
            assert_eq!(socket.response().await.status(), 101, "{}", world.story());
            assert_eq!(world.client().get("/", "").await.text(), "ok", "{}", world.story());
            world.expect_log("Backend_health default Went healthy");
        },
    );
}

#[test]
fn trial_with_a_slow_client_is_followed_by_another_after_the_open_time() {
    run_with(
        |_| {},
        &with(TRIED, PASS_AND_PIPE),
        async |world| {
            until_the_open_time_is_over(&world).await;
            let mut slow = world.client();
            slow.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n").await;
            for byte in 0..2 {
                slow.send("x").await;
                assert_eq!(world.client().get("/", "").await.status(), 503, "{byte}");
                wait(4).await;
            }
            slow.send("x").await;
            wait(2).await;
            assert_eq!(world.client().get("/", "").await.text(), "ok", "{}", world.story());
        },
    );
}

#[test]
fn trial_without_a_connection_extends_the_open_time() {
    run_with(
        |parameters| parameters.backend_remote_error_holddown = 0.0,
        &with(TRIED, "sub vcl_recv { return (pass); }"),
        async |world| {
            for (seconds, dialled) in [(0, 1), (10, 2), (10, 2), (10, 3)] {
                wait(seconds).await;
                assert_eq!(world.client().get("/", "").await.status(), 503);
                assert_eq!(world.dialled(), dialled, "{}", world.story());
            }
        },
    );
}

#[test]
fn complete_slice_resets_the_failure_count() {
    run_with(
        |parameters| parameters.slice_bytes = 65_536,
        &with(
            ".fail_limit = 2;",
            "sub vcl_recv { set req.slice_bytes = 64KB; } sub vcl_backend_response { set beresp.ttl = 60s; }",
        ),
        async |world| {
            world.origin(|mut stream| async move {
                while let Some(request) = OriginRequest::read(&mut stream).await {
                    let Some(range) = request.header("range").filter(|_| request.target() == "/sliced") else { return };
                    let range = range.trim_start_matches("bytes=");
                    let head = format!(
                        "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes {range}/262144\r\nContent-Length: 65536\r\n\r\n"
                    );
                    let _ = stream.write_all(head.as_bytes()).await;
                    let _ = stream.write_all(&[b'x'; 65_536]).await;
                }
            });
            for first in [0, 65_536, 131_072] {
                let range = format!("Range: bytes={first}-{}\r\n", first + 9);
                assert_eq!(world.client().get("/sliced", &range).await.text(), "xxxxxxxxxx", "{}", world.story());
                assert_eq!(world.client().get("/broken", "").await.status(), 503);
            }
            assert_eq!(vbe(&world, "default", Vbe::Aside), 0, "{}", world.story());
        },
    );
}
