//! Request bodies: origins that answer before they have read them, and clients that exploit that.

use super::{backend, reasons, vbe};
use crate::support::{OriginRequest, OriginStream, World, run_with};
use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::{Main, Vbe};
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

const PASS: &str = "sub vcl_recv { return (pass); }";
const REFUSAL: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";

fn rfc(parameters: &mut Parameters) {
    parameters.http_policy = "rfc".to_owned();
}

/// Reads the next head; `None` if the connection has ended.
async fn read_head(stream: &mut OriginStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// An origin that gives `answer` to each head, and then closes the connection or does nothing more.
fn hasty(world: &World, answer: &'static str, closes: bool) {
    world.origin(move |mut stream| async move {
        while let Some(head) = read_head(&mut stream).await {
            if head.starts_with("GET ") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                continue;
            }
            let _ = stream.write_all(answer.as_bytes()).await;
            if closes {
                return;
            }
            pending::<()>().await;
        }
    });
}

fn head(bytes: usize) -> String {
    format!("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n")
}

#[test]
fn a_refusal_that_comes_before_the_end_of_an_upload_reaches_its_client_at_once() {
    for case in 0..32 {
        let bytes = [20_000, 100_000, 300_000, 5 << 20][case / 8];
        let (closes, is_kept, is_stream) = (case & 1 > 0, case & 2 > 0, case & 4 > 0);
        let kept = if is_kept { "import std; sub vcl_recv { std.cache_req_body(10MB); }" } else { "" };
        run_with(rfc, &format!("{kept} {PASS}"), async |world| {
            hasty(&world, REFUSAL, closes);
            let asked = Instant::now();
            let body = vec![b'x'; bytes];
            let response = match is_stream {
                true => world.stream_client().ask(&head(bytes), &body).await,
                false => world.client().post(head(bytes), body).await,
            };
            let what = format!("{bytes} closes: {closes} kept: {is_kept} stream: {is_stream}");
            assert_eq!((response.status(), response.text().as_str()), (413, "big"), "{what}\n{}", world.story());
            assert!(asked.elapsed() < Duration::from_secs(1), "{:?} {what}", asked.elapsed());
            assert_eq!(world.count(Main::FetchFailed), 0, "{what}");
        });
    }
}

#[test]
fn a_client_that_is_slow_gets_its_refusal_before_it_has_sent_all_and_its_connection_ends() {
    run_with(rfc, PASS, async |world| {
        hasty(&world, REFUSAL, false);
        let mut client = world.client();
        client.send(head(1000)).await;
        client.send("some of it").await;
        let response = client.response().await;
        assert_eq!((response.status(), response.header("connection")), (413, Some("close")), "{}", world.story());
        let call = world.stream_client();
        let call = call.call(&head(1000));
        call.send(b"some of it");
        assert_eq!(call.response().await.unwrap().status(), 413, "{}", world.story());
        world.expect_log("BackendClose -1 default close");
    });
}

#[test]
fn a_connection_goes_on_after_an_early_answer_if_the_body_has_come() {
    run_with(rfc, PASS, async |world| {
        // It answers at once, reads the body anyway, and serves the next request.
        world.origin(|mut stream| async move {
            while let Some(head) = read_head(&mut stream).await {
                if head.starts_with("GET ") {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                    continue;
                }
                let _ = stream.write_all(REFUSAL.as_bytes()).await;
                let mut body = vec![0; 40_000];
                if stream.read_exact(&mut body).await.is_err() {
                    return;
                }
            }
        });
        let mut client = world.client_with(1 << 20);
        client.send(head(40_000)).await;
        client.send(vec![b'x'; 40_000]).await;
        assert_eq!(client.response().await.status(), 413);
        assert_eq!(client.get("/next", "").await.text(), "ok", "{}", world.story());
    });
}

#[test]
fn an_origin_that_accepts_early_gets_the_whole_body_as_long_as_it_reads() {
    run_with(rfc, PASS, async |world| {
        let read = Rc::new(RefCell::new(0));
        let counted = Rc::clone(&read);
        world.origin(move |mut stream| {
            let counted = Rc::clone(&counted);
            async move {
                if read_head(&mut stream).await.is_none() {
                    return;
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                let mut piece = vec![0; 1 << 20];
                while let Ok(count @ 1..) = stream.read(&mut piece).await {
                    *counted.borrow_mut() += count;
                    sleep(Duration::from_millis(400)).await;
                }
            }
        });
        let response = world.client().post(head(2_000_000), vec![b'x'; 2_000_000]).await;
        assert_eq!(response.text(), "ok", "{}", world.story());
        // Data in flight arrives.
        sleep(Duration::from_secs(10)).await;
        assert_eq!(*read.borrow(), 2_000_000, "{}", world.story());
    });
}

#[test]
fn an_origin_that_accepts_early_and_reads_nothing_is_not_waited_for() {
    run_with(rfc, PASS, async |world| {
        hasty(&world, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
        let asked = Instant::now();
        let response = world.client().post(head(5 << 20), vec![b'x'; 5 << 20]).await;
        assert_eq!((response.status(), response.text().as_str()), (200, "ok"), "{}", world.story());
        assert!(asked.elapsed() <= Duration::from_secs(2), "{:?}", asked.elapsed());
    });
}

#[test]
fn interim_responses_reach_the_client_while_it_sends_its_body() {
    const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    run_with(rfc, PASS, async |world| {
        world.origin(|mut stream| async move {
            while let Some(head) = read_head(&mut stream).await {
                let _ = stream.write_all(HINT.as_bytes()).await;
                let length = if head.contains("Content-Length: 8") { 8 } else { 0 };
                let mut body = vec![0; length];
                if stream.read_exact(&mut body).await.is_err() {
                    return;
                }
                let body = String::from_utf8(body).unwrap();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let mut client = world.client();
        for _ in 0..2 {
            client.send(head(8)).await;
            client.send("abcd").await;
            assert_eq!(client.response().await.head, HINT, "before the body is whole");
            client.send("efgh").await;
            assert_eq!(client.response().await.text(), "abcdefgh", "{}", world.story());
        }
        assert_eq!((world.count(Main::Fetch1xx), world.dialled()), (2, 1));
    });
}

#[test]
fn answers_to_requests_that_are_still_sent_are_read_after_a_write_has_failed() {
    run_with(rfc, PASS, async |world| {
        let own = Rc::clone(&world);
        world.origin(move |mut stream| {
            let world = Rc::clone(&own);
            async move {
                let _ = read_head(&mut stream).await;
                // The next piece cannot be written, and the answer comes a moment later.
                world.refuse_next_write();
                sleep(Duration::from_millis(5)).await;
                let _ = stream.write_all(REFUSAL.as_bytes()).await;
            }
        });
        let response = world.client().post(head(100_000), vec![b'x'; 100_000]).await;
        assert_eq!(response.status(), 413, "{}", world.story());
    });
}

const LIMITED: &str =
    "vcl 4.1; backend default { .host = \"10.0.0.1\"; .fail_limit = 3; .fail_5xx = true; .first_byte_timeout = 5s; }
    sub vcl_recv { return (pass); }";

/// Plays uploads to an origin with a limit of failures, and then requests another page.
fn uploads(answer: &'static str, closes: bool, play: impl AsyncFn(&World)) {
    run_with(rfc, LIMITED, async |world| {
        hasty(&world, answer, closes);
        for _ in 0..6 {
            play(&world).await;
        }
        assert_eq!(vbe(&world, "default", Vbe::Aside), 0, "{answer} {closes} {}", world.story());
        assert!(backend(&world, "default").is_healthy());
        assert_eq!(world.client().get("/ok", "").await.text(), "ok", "{answer} {closes} {:?}", reasons(&world));
    });
}

#[test]
fn client_faults_in_request_bodies_do_not_open_the_breaker() {
    let long = async |world: &World| {
        world.client().post(head(1 << 20), vec![b'x'; 1 << 20]).await;
        world.stream_client().ask(&head(1 << 20), &vec![b'x'; 1 << 20]).await;
    };
    let slow = async |world: &World| {
        let mut client = world.client();
        client.send(head(1000)).await;
        client.send("x").await;
        sleep(Duration::from_secs(60)).await;
        client.response().await;
    };
    let leaving = async |world: &World| {
        let mut client = world.client();
        client.send(head(1000)).await;
        client.send("x").await;
        sleep(Duration::from_millis(10)).await;
        drop(client);
        let call = world.stream_client().call(&head(1000));
        call.send(b"x");
        sleep(Duration::from_millis(10)).await;
        call.reset();
        sleep(Duration::from_secs(10)).await;
    };
    for answer in [
        "",
        REFUSAL,
        "HTTP/1.1 503 Too Much\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 413 Big\r\nContent-Length: 9\r\n\r\nhalf",
    ] {
        for closes in [true, false] {
            uploads(answer, closes, long);
            uploads(answer, closes, slow);
            uploads(answer, closes, leaving);
        }
    }
}

#[test]
fn an_origin_that_closes_after_a_short_body_that_it_has_whole_counts_as_for_any_request() {
    run_with(rfc, LIMITED, async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
        });
        for _ in 0..3 {
            assert_eq!(world.client().post(head(3), b"abc".to_vec()).await.status(), 503);
        }
        assert_eq!(vbe(&world, "default", Vbe::Aside), 1, "{}", world.story());
    });
}

#[test]
fn a_post_without_a_body_is_sent_once_to_an_origin_that_drops_a_fresh_connection() {
    for policy in ["rfc", "varnish"] {
        for attributes in ["", ".http2 = true;"] {
            let vcl = format!("vcl 4.1; backend default {{ .host = \"10.0.0.1\"; {attributes} }} {PASS}");
            run_with(
                |parameters| parameters.http_policy = policy.to_owned(),
                &vcl,
                async |world| {
                    world.origin(|mut stream| async move {
                        let _ = stream.read(&mut [0; 1024]).await;
                    });
                    let response = world.client().post(head(0), Vec::new()).await;
                    assert_eq!(
                        (response.status(), world.dialled()),
                        (503, 1),
                        "{policy} {attributes} {}",
                        world.story()
                    );
                },
            );
        }
    }
}

#[test]
fn a_connection_is_not_used_for_longer_than_its_origin_keeps_it() {
    for (says, dialled) in
        [("timeout=1", 3), ("max=100, timeout=\"4\"", 2), ("timeout=30", 1), ("max=7", 1), ("timeout=0", 4)]
    {
        run_with(rfc, PASS, async |world| {
            world.origin(move |mut stream| async move {
                while read_head(&mut stream).await.is_some() {
                    let answer = format!("HTTP/1.1 200 OK\r\nKeep-Alive: {says}\r\nContent-Length: 0\r\n\r\n");
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
            for pause in [0, 2000, 400, 3000] {
                sleep(Duration::from_millis(pause)).await;
                assert_eq!(world.client().post(head(0), Vec::new()).await.status(), 200);
            }
            assert_eq!(world.dialled(), dialled, "{says}");
        });
    }
}

/// An origin that answers each head with `leave`, reads a body of five bytes, and returns it with
/// the expectation it received.
fn expectant(world: &World, leave: &'static str) {
    world.origin(move |mut stream| async move {
        while let Some(head) = read_head(&mut stream).await {
            let _ = stream.write_all(leave.as_bytes()).await;
            let mut body = [0; 5];
            if stream.read_exact(&mut body).await.is_err() {
                return;
            }
            let expects = head.contains("Expect: 100-continue\r\n");
            let text = format!("{} {expects}", String::from_utf8_lossy(&body));
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
}

const EXPECTING: &str = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[test]
fn a_client_that_expects_100_continue_gets_that_of_the_origin() {
    run_with(rfc, PASS, async |world| {
        expectant(&world, CONTINUE);
        let mut client = world.client();
        for _ in 0..2 {
            let asked = Instant::now();
            client.send(EXPECTING).await;
            assert_eq!(client.response().await.head, CONTINUE);
            assert_eq!(asked.elapsed().as_secs(), 0);
            client.send("hello").await;
            assert_eq!(client.response().await.text(), "hello true", "{}", world.story());
        }
    });
}

#[test]
fn refused_expectation_keeps_the_client_from_sending_its_body() {
    run_with(rfc, PASS, async |world| {
        hasty(&world, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n", false);
        let mut client = world.client();
        client.send(EXPECTING).await;
        let response = client.response().await;
        assert_eq!((response.status(), response.header("connection")), (417, Some("close")), "{}", world.story());
        assert_eq!(client.rest().await, "");
    });
}

#[test]
fn origin_without_a_100_continue_gets_the_body_after_a_second() {
    run_with(rfc, PASS, async |world| {
        expectant(&world, "");
        let mut client = world.client();
        let asked = Instant::now();
        client.send(EXPECTING).await;
        assert_eq!(client.response().await.head, CONTINUE);
        assert_eq!(asked.elapsed().as_secs(), 1);
        client.send("hello").await;
        assert_eq!(client.response().await.text(), "hello true", "{}", world.story());
    });
}

#[test]
fn an_expectation_is_met_here_as_in_varnish_or_if_vcl_reads_the_body_or_takes_the_header_away() {
    for (policy, vcl) in [
        ("varnish", ""),
        ("rfc", "import std; sub vcl_recv { std.cache_req_body(1KB); }"),
        ("rfc", "sub vcl_backend_fetch { unset bereq.http.expect; }"),
    ] {
        run_with(
            |parameters| parameters.http_policy = policy.to_owned(),
            &format!("{vcl} {PASS}"),
            async |world| {
                expectant(&world, "");
                let mut client = world.client();
                let asked = Instant::now();
                client.send(EXPECTING).await;
                assert_eq!(client.response().await.head, CONTINUE, "{policy} {vcl}");
                assert_eq!(asked.elapsed().as_secs(), 0);
                client.send("hello").await;
                assert_eq!(client.response().await.text(), "hello false", "{policy} {vcl}");
            },
        );
    }
}
