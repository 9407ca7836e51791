//! Origins that refuse, stall, abort, or send false or malformed responses: the client gets a clean
//! 503 or a broken connection, the log the reason, and the cache nothing.

use crate::support::{OriginRequest, OriginStream, World, always, run, run_with, serve_each};
use std::cell::Cell;
use std::rc::Rc;
use surface::counter::{Main, Vbe};
use tokio::io::AsyncWriteExt;
use tokio::time::Duration;

/// An origin that answers the first request of each connection with these bytes, and then closes
/// it, or stalls.
fn once(
    answer: &'static [u8],
    then_stalls: bool,
) -> impl Fn(OriginStream) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    move |mut stream| {
        Box::pin(async move {
            if OriginRequest::read(&mut stream).await.is_some() {
                let _ = stream.write_all(answer).await;
                if then_stalls {
                    tokio::time::sleep(Duration::from_secs(100_000)).await;
                }
            }
        })
    }
}

/// Requests `/a`, expects a 503 and this reason in the log, then that a sound origin is used again.
async fn expect_503_for(world: &World, answer: &'static [u8], then_stalls: bool, reason: &str) {
    world.origin(once(answer, then_stalls));
    let response = world.client().get("/a", "").await;
    assert_eq!(response.status(), 503, "{}", world.story());
    world.expect_log(reason);
    assert_eq!(world.count(Main::FetchFailed), 1);
    expect_sound_again(world).await;
}

async fn expect_sound_again(world: &World) {
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.origin(always("", "sound"));
    let response = world.client().get("/a", "").await;
    assert_eq!((response.status(), response.text().as_str()), (200, "sound"), "{}", world.story());
}

#[test]
fn a_refused_connection_is_a_503_with_the_reason_in_the_log() {
    run(|world| async move {
        let response = world.client().get("/a", "").await;
        assert_eq!(response.status(), 503, "{}", world.story());
        assert!(response.head.starts_with("HTTP/1.1 503 Backend fetch failed"), "{}", response.head);
        world.expect_log("FetchError backend default: fail errno 111 (Connection refused)");
        let backend = world.engine.vcl.load().active.as_ref().unwrap().directors.backends()[0].clone();
        assert_eq!(backend.counters().get(Vbe::FailEconnrefused as usize), 1);
        let log = world.transaction(3);
        let from = log.iter().position(|line| line == "Timestamp Fetch").unwrap();
        let expected = "Timestamp Fetch
            FetchError backend default: fail errno 111 (Connection refused)
            Timestamp Beresp
            Timestamp Error
            BerespProtocol HTTP/1.1
            BerespStatus 503
            BerespReason Backend fetch failed
            BerespHeader Date: Fri, 20 Nov 2026 19:20:00 GMT
            BerespHeader Server: Varnish
            VCL_call BACKEND_ERROR
            BerespHeader Content-Type: text/html; charset=utf-8
            BerespHeader Retry-After: 5
            VCL_return deliver
            Storage malloc Transient";
        let expected: Vec<_> = expected.lines().map(str::trim).collect();
        assert_eq!(log[from..from + expected.len()], expected);
        expect_sound_again(&world).await;
    });
}

#[test]
fn no_backend_at_all_is_a_503() {
    run_with(
        |_| {},
        "vcl 4.1; backend default none;",
        |world| async move {
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            world.expect_log("FetchError No backend");
        },
    );
}

#[test]
fn a_hint_at_no_backend_is_not_taken_for_the_default() {
    let vcl = "backend nobody none; sub vcl_recv { set req.backend_hint = nobody; }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            world.origin(always("", "hello"));
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            world.expect_log("FetchError No backend");
        },
    );
}

#[test]
fn a_silent_origin_is_given_up_after_first_byte_timeout() {
    run_with(
        |parameters| parameters.first_byte_timeout = 7.0,
        "",
        |world| async move {
            let before = world.context.clock.now();
            world.origin(once(b"", true));
            assert_eq!(world.client().get("/a", "").await.status(), 503);
            let waited = world.context.clock.now() - before;
            assert!((7.0..7.1).contains(&waited), "{waited}");
            world.expect_log("FetchError first byte timeout");
            world.expect_log("close Receive timeout");
        },
    );
}

#[test]
fn a_head_that_stops_in_the_middle_is_a_503() {
    run(|world| async move {
        expect_503_for(&world, b"HTTP/1.1 200 OK\r\nFoo: b", true, "FetchError timeout").await;
    });
}

#[test]
fn a_head_that_breaks_off_is_a_503() {
    run(|world| async move {
        expect_503_for(&world, b"HTTP/1.1 200 OK\r\nFoo: b", false, "FetchError HTC eof (-1)").await;
    });
}

#[test]
fn a_connection_closed_without_a_word_is_a_503() {
    run(|world| async move {
        expect_503_for(&world, b"", false, "FetchError HTC eof (-1)").await;
    });
}

#[test]
fn nonsense_is_a_503() {
    run(|world| async move {
        expect_503_for(&world, b"garbage garbage\r\n\r\n", false, "FetchError http format error").await;
        world.expect_log("HttpGarbage garbage garbage");
    });
}

#[test]
fn a_control_character_in_a_header_is_a_503() {
    run(|world| async move {
        expect_503_for(&world, b"HTTP/1.1 200 OK\r\nFoo\x01: x\r\n\r\n", false, "BogoHeader").await;
    });
}

#[test]
fn lengths_that_contradict_are_a_503() {
    run(|world| async move {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd";
        expect_503_for(&world, answer, false, "Error Body cannot be fetched").await;
    });
}

#[test]
fn interim_responses_without_end_are_a_503() {
    run(|world| async move {
        let answer: &'static [u8] = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100).leak();
        expect_503_for(&world, answer, true, "FetchError http format error").await;
    });
}

#[test]
fn a_head_too_large_is_a_503() {
    run(|world| async move {
        let answer: &'static [u8] =
            format!("HTTP/1.1 200 OK\r\n{}", format!("Foo: {}\r\n", "x".repeat(1000)).repeat(40)).into_bytes().leak();
        expect_503_for(&world, answer, true, "FetchError overflow").await;
    });
}

/// Requests `/a`, whose streamed body breaks; the client must notice, and nothing may stay in the
/// cache.
async fn expect_broken_stream(world: &World, answer: &'static [u8], then_stalls: bool, reason: &str) {
    world.origin(once(answer, then_stalls));
    let response = world.client().get("/a", "").await;
    assert!(response.status() == 503 || !response.is_whole, "{}", world.story());
    world.expect_log(reason);
    world.expect_log("close Failure receiving req.body");
    assert_eq!(world.count(Main::FetchFailed), 1);
    expect_sound_again(world).await;
    assert_eq!(world.engine.cache.object_count(), 1, "only the sound one");
}

#[test]
fn a_body_shorter_than_announced_is_never_taken_for_whole() {
    run(|world| async move {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
        expect_broken_stream(&world, answer, false, "FetchError straight insufficient bytes").await;
    });
}

#[test]
fn a_chunked_body_that_breaks_off_is_never_taken_for_whole() {
    run(|world| async move {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc";
        expect_broken_stream(&world, answer, false, "FetchError chunked insufficient bytes").await;
    });
}

#[test]
fn invalid_chunks_fail_the_object() {
    run(|world| async move {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc";
        expect_broken_stream(&world, answer, false, "FetchError chunked header non-hex").await;
    });
}

#[test]
fn a_body_that_stalls_is_given_up_after_between_bytes_timeout() {
    run_with(
        |parameters| parameters.between_bytes_timeout = 3.0,
        "",
        |world| async move {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
            expect_broken_stream(&world, answer, true, "FetchError straight insufficient bytes").await;
            world.expect_log("FetchError Resource temporarily unavailable");
        },
    );
}

#[test]
fn without_streaming_a_broken_body_is_a_503() {
    run_with(
        |_| {},
        "sub vcl_backend_response { set beresp.do_stream = false; }",
        |world| async move {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
            expect_503_for(&world, answer, false, "FetchError straight insufficient bytes").await;
            world.expect_log("Fetch_Body 3 length -");
        },
    );
}

#[test]
fn a_reused_connection_that_turns_out_dead_is_replaced_once() {
    run(|world| async move {
        let connections = Rc::new(Cell::new(0));
        let count = Rc::clone(&connections);
        world.origin(move |mut stream| {
            count.set(count.get() + 1);
            let is_first = count.get() == 1;
            async move {
                while OriginRequest::read(&mut stream).await.is_some() {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                    if is_first {
                        // It receives the next request, but has already decided to close.
                        let _ = OriginRequest::read(&mut stream).await;
                        return;
                    }
                }
            }
        });
        let mut client = world.client();
        assert_eq!(client.get("/1", "").await.text(), "ok");
        assert_eq!(client.get("/2", "").await.text(), "ok", "{}", world.story());
        assert_eq!(connections.get(), 2);
        assert_eq!(world.count(Main::BackendRetry), 1);
        assert_eq!(world.count(Main::FetchFailed), 0);
    });
}

#[test]
fn a_new_connection_that_dies_is_not_tried_again() {
    run(|world| async move {
        world.origin(once(b"", false));
        assert_eq!(world.client().get("/1", "").await.status(), 503);
        assert_eq!(world.dialled(), 1);
        assert_eq!(world.count(Main::BackendRetry), 0);
    });
}

#[test]
fn bytes_after_the_body_cost_the_connection() {
    run(|world| async move {
        world.origin(serve_each(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n".to_vec()));
        let mut client = world.client();
        assert_eq!(client.get("/1", "").await.text(), "hello");
        assert_eq!(client.get("/2", "").await.text(), "hello");
        assert_eq!(world.dialled(), 2);
        world.expect_log("close Received junk data");
    });
}

#[test]
fn early_answer_of_an_origin_is_received() {
    run(|world| async move {
        world.origin(|mut stream: OriginStream| async move {
            let _ =
                stream.write_all(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno").await;
            tokio::time::sleep(Duration::from_secs(1000)).await;
        });
        let mut client = world.client_with(16 << 20);
        client.send("POST /a HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000000\r\n\r\n").await;
        client.send(vec![b'x'; 1_000_000]).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.text().as_str()), (413, "no"), "{}", world.story());
    });
}

#[test]
fn waiting_requests_get_the_error_of_the_one_fetch_too() {
    run(|world| async move {
        world.origin(once(b"", true));
        let ask = || async { world.client().get("/a", "").await.status() };
        let statuses = tokio::join!(ask(), ask(), ask());
        assert_eq!(statuses, (503, 503, 503), "{}", world.story());
        assert_eq!(world.dialled(), 1, "one fetch for all");
    });
}

#[test]
fn panic_costs_one_request_and_leaves_no_waiter() {
    run(|world| async move {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        world.origin(|_stream: OriginStream| -> std::future::Ready<()> { panic!("the origin's fault") });
        let ask = || async { world.client().get("/a", "").await.status() };
        let statuses = tokio::join!(ask(), ask());
        std::panic::set_hook(hook);
        assert_eq!(statuses, (503, 503), "{}", world.story());
        world.expect_log("Internal error: the origin's fault");
        assert_eq!(world.context.in_flight(), 0);
        expect_sound_again(&world).await;
    });
}
