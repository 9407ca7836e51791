//! Requests received before the handshake is complete: run at once, delayed, or sent again; the
//! same for all protocols.

use crate::support::quic::{Outcome, QuicClient};
use crate::support::{Client, OriginRequest, World, always, run_with, serve_each};
use bytes::Bytes;
use engine::peer::{EarlyPhase, Peer};
use engine::transport::FirstProtocol;
use http::Request;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

/// Returns to the client VCL's view of its request.
const VCL: &str = "import tls;
    sub vcl_recv { set req.http.X-Early = tls.is_early(); return (pass); }
    sub vcl_deliver { set resp.http.X-Early = req.http.X-Early; }";

fn early_peer(world: &World) -> (Peer, Rc<EarlyPhase>) {
    let phase = EarlyPhase::begun();
    (Peer { early: Some(Rc::clone(&phase)), ..world.peer() }, phase)
}

fn early_client(world: &World) -> (Client, Rc<EarlyPhase>) {
    let (peer, phase) = early_peer(world);
    (world.client_from(peer), phase)
}

/// The requests that an origin received: target, and `Early-Data`.
type Asked = Rc<RefCell<Vec<(String, Option<String>)>>>;

/// An origin that answers 425 as long as a request is marked as early, or always.
fn picky_origin(world: &World, always: bool) -> Asked {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let heard = Rc::clone(&asked);
    world.origin(move |mut stream| {
        let heard = Rc::clone(&heard);
        async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                let early = request.header("early-data").map(str::to_owned);
                let is_refused = always || early.is_some();
                heard.borrow_mut().push((request.target().to_owned(), early));
                let head = if is_refused { "425 Too Early" } else { "200 OK" };
                let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\n\r\nok");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    asked
}

fn http2(parameters: &mut Parameters) {
    parameters.feature |= feature::HTTP2;
}

#[test]
fn safe_early_request_runs_at_once_and_is_marked_for_the_origin() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            world.origin(always("", "x"));
            let (mut client, phase) = early_client(&world);
            let answer = client.get("/", "").await;
            assert_eq!((answer.status(), answer.header("x-early")), (200, Some("true")));
            world.expect_log("ReqHeader Early-Data: 1");
            world.expect_log("BereqHeader Early-Data: 1");
            phase.complete();
            let answer = client.get("/", "").await;
            assert_eq!((answer.status(), answer.header("x-early")), (200, Some("false")));
            let told = world.log().iter().filter(|line| line.contains("BereqHeader Early-Data")).count();
            assert_eq!((told, world.count(Main::ReqEarly), world.count(Main::ReqEarlyHeld)), (1, 1, 0));
        },
    );
}

#[test]
fn a_request_that_changes_something_waits_for_the_handshake() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            world.origin(always("", "x"));
            for head in
                ["POST / HTTP/1.1\r\nContent-Length: 4", "GET / HTTP/1.1\r\nContent-Length: 4", "BREW / HTTP/1.1"]
            {
                let (mut client, phase) = early_client(&world);
                client.send(format!("{head}\r\nHost: a\r\n\r\n")).await;
                if head.contains("Length") {
                    client.send("body").await;
                }
                let dialled = world.dialled();
                sleep(Duration::from_secs(1)).await;
                assert_eq!(world.dialled(), dialled, "{head}");
                phase.complete();
                let answer = client.response().await;
                assert_eq!((answer.status(), answer.header("x-early")), (200, Some("false")), "{head}");
            }
            assert!(!world.log().iter().any(|line| line.contains("Early-Data")));
            world.expect_log("Timestamp Handshake:");
            assert_eq!((world.count(Main::ReqEarly), world.count(Main::ReqEarlyHeld)), (0, 3));
        },
    );
}

#[test]
fn a_request_that_waits_for_a_handshake_that_fails_was_never_sent() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            world.origin(always("", "x"));
            let (mut client, phase) = early_client(&world);
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            phase.fail();
            assert_eq!(client.rest().await, "");
            assert_eq!(world.dialled(), 0);
            world.expect_log("SessClose RX_BAD");
        },
    );
}

#[test]
fn a_request_whose_head_is_complete_after_the_handshake_is_like_any_other() {
    run_with(
        |_| {},
        VCL,
        async |world| {
            world.origin(always("", "x"));
            let (mut client, phase) = early_client(&world);
            client.send("GET / HTTP/1.1\r\nHo").await;
            sleep(Duration::from_secs(1)).await;
            phase.complete();
            client.send("st: a\r\n\r\n").await;
            assert_eq!(client.response().await.header("x-early"), Some("false"));
            assert_eq!(world.count(Main::ReqEarly), 0);
        },
    );
}

#[test]
fn an_origin_that_finds_it_too_early_is_asked_once_more_after_the_handshake() {
    let vcl = "sub vcl_backend_response { set beresp.http.X-Seen = beresp.status + bereq.http.Early-Data; }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let asked = picky_origin(&world, false);
            let (mut client, phase) = early_client(&world);
            client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            assert_eq!(*asked.borrow(), [("/page".to_owned(), Some("1".to_owned()))]);
            phase.complete();
            let answer = client.response().await;
            assert_eq!((answer.status(), answer.header("x-seen")), (200, Some("200")));
            assert_eq!(asked.borrow()[1..], [("/page".to_owned(), None)]);
            assert_eq!(world.count(Main::ReqEarlyAgain), 1);
            world.expect_log("BereqUnset Early-Data: 1");
            client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n").await;
            assert_eq!(client.response().await.status(), 200);
            assert_eq!((world.count(Main::CacheHit), asked.borrow().len()), (1, 2), "it was stored");
        },
    );
}

#[test]
fn no_other_client_waits_for_a_handshake_and_a_425_is_not_stored() {
    run_with(
        |_| {},
        "sub vcl_backend_response { if (beresp.status == 200) { set beresp.ttl = 10s; set beresp.grace = 1h; } }",
        async |world| {
            let asked = picky_origin(&world, false);
            let (mut early, phase) = early_client(&world);
            let (mut other, mut late) = (world.client(), world.client());
            early.send("GET /page HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            other.send("GET /page HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
            let began = tokio::time::Instant::now();
            let waited = tokio::time::timeout(Duration::from_secs(1), other.response()).await;
            assert_eq!(waited.expect("nobody waits for it").status(), 200, "it waited already");
            assert_eq!(late.get("/page", "").await.status(), 200, "it came later");
            assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
            phase.fail();
            assert_eq!(early.response().await.status(), 425);
            assert_eq!((asked.borrow().len(), world.count(Main::CacheHit)), (2, 1), "{}", world.story());
            assert_eq!(late.get("/page", "").await.status(), 200);
            assert_eq!((asked.borrow().len(), world.count(Main::CacheHit)), (2, 2), "what is stored stays");
            // A stale object stays, too, when a background request is sent too early.
            sleep(Duration::from_secs(11)).await;
            let mut late = world.client();
            assert_eq!(late.get("/page", "Early-Data: 1\r\n").await.status(), 200);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(asked.borrow().len(), 3);
            assert_eq!(late.get("/page", "").await.status(), 200);
            assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheHitmiss)), (4, 0), "{}", world.story());
        },
    );
}

#[test]
fn an_origin_that_finds_it_too_early_for_ever_is_asked_twice() {
    run_with(
        |_| {},
        "",
        async |world| {
            let asked = picky_origin(&world, true);
            let (mut client, phase) = early_client(&world);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            phase.complete();
            assert_eq!(client.response().await.status(), 425);
            assert_eq!(asked.borrow().len(), 2);
        },
    );
}

#[test]
fn request_with_early_data_header_receives_the_425() {
    run_with(
        |_| {},
        "",
        async |world| {
            let asked = picky_origin(&world, false);
            let mut client = world.client();
            assert_eq!(client.get("/", "Early-Data: 1\r\n").await.status(), 425);
            let (mut client, _phase) = early_client(&world);
            assert_eq!(client.get("/", "Early-Data: 1\r\n").await.status(), 425);
            assert_eq!((asked.borrow().len(), world.count(Main::ReqEarlyAgain)), (2, 0));
        },
    );
}

#[test]
fn origin_receives_exactly_one_early_data_header() {
    for own in [
        "Early-Data: 0\r\n",
        "Early-Data: 0\r\nConnection: early-data\r\n",
        "Early-Data: 1\r\nConnection: Early-Data\r\n",
        "Early-Data: 0\r\nEarly-Data: 1\r\n",
        "Early-Data: 1, 1\r\n",
        "Early-Data:\r\n",
    ] {
        for (policy, is_early) in [("rfc", true), ("rfc", false), ("varnish", true), ("varnish", false)] {
            run_with(
                |parameters| parameters.http_policy = policy.into(),
                "sub vcl_recv { if (req.url ~ \"pass\") { return (pass); } }",
                async |world| {
                    let asked = Rc::new(RefCell::new(Vec::new()));
                    let heard = Rc::clone(&asked);
                    world.origin(serve_each(move |request| {
                        let lines = request.head.lines().filter(|line| line.to_lowercase().starts_with("early-data"));
                        heard.borrow_mut().extend(lines.map(str::to_owned));
                        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
                    }));
                    for target in ["/pass", "/stored"] {
                        let (early, _phase) = early_client(&world);
                        let mut client = if is_early { early } else { world.client() };
                        assert_eq!(client.get(target, own).await.status(), 200);
                    }
                    assert_eq!(*asked.borrow(), ["Early-Data: 1", "Early-Data: 1"], "{policy} {is_early}: {own}");
                },
            );
        }
    }
}

#[test]
fn client_that_never_completes_the_handshake_gets_the_425() {
    run_with(
        |_| {},
        "",
        async |world| {
            let asked = picky_origin(&world, false);
            let (mut client, phase) = early_client(&world);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            phase.fail();
            assert_eq!(client.response().await.status(), 425);
            assert_eq!(asked.borrow().len(), 1);
        },
    );
}

#[test]
fn fragments_of_a_page_are_asked_for_after_the_handshake() {
    let vcl = "sub vcl_backend_response { if (bereq.url == \"/page\") { set beresp.do_esi = true; } }";
    run_with(
        |_| {},
        vcl,
        async |world| {
            let asked = Rc::new(RefCell::new(Vec::new()));
            let heard = Rc::clone(&asked);
            world.origin(serve_each(move |request| {
                heard.borrow_mut().push((request.target().to_owned(), request.header("early-data").is_some()));
                let body = if request.target() == "/page" { "<esi:include src=\"/part\"/>" } else { "part" };
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
            }));
            let (mut client, phase) = early_client(&world);
            client.send("GET /page HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            assert_eq!(*asked.borrow(), [("/page".to_owned(), true)]);
            phase.complete();
            assert_eq!(client.response().await.text(), "part");
            assert_eq!(asked.borrow()[1..], [("/part".to_owned(), false)]);
        },
    );
}

#[test]
fn nothing_is_piped_before_the_handshake_is_complete() {
    run_with(
        |_| {},
        "sub vcl_recv { return (pipe); }",
        async |world| {
            let asked = picky_origin(&world, false);
            let (mut client, phase) = early_client(&world);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            sleep(Duration::from_secs(1)).await;
            assert_eq!(world.dialled(), 0);
            phase.complete();
            assert_eq!(client.response().await.status(), 200);
            assert_eq!(*asked.borrow(), [("/".to_owned(), None)]);
        },
    );
}

#[test]
fn streams_of_http2_wait_each_for_itself() {
    run_with(http2, VCL, async |world| {
        world.origin(always("", "x"));
        let (peer, phase) = early_peer(&world);
        let (near, far) = tokio::io::duplex(64 << 10);
        let serving = engine::transport::serve(Rc::clone(&world.context), far, peer, Vec::new(), FirstProtocol::Either);
        tokio::task::spawn_local(serving);
        let (sender, connection) = h2::client::handshake(near).await.unwrap();
        tokio::task::spawn_local(async move { _ = connection.await });
        let mut sender = sender.ready().await.unwrap();
        let post = Request::post("http://a/").body(()).unwrap();
        let (posted, mut body) = sender.send_request(post, false).unwrap();
        body.send_data(Bytes::from_static(b"body"), true).unwrap();
        let mut sender = sender.ready().await.unwrap();
        let (got, _) = sender.send_request(Request::get("http://a/").body(()).unwrap(), true).unwrap();
        let got = got.await.unwrap();
        assert_eq!((got.status().as_u16(), &got.headers()["x-early"]), (200, &"true".parse().unwrap()));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.dialled(), 1);
        phase.complete();
        let posted = posted.await.unwrap();
        assert_eq!((posted.status().as_u16(), &posted.headers()["x-early"]), (200, &"false".parse().unwrap()));
        assert_eq!((world.count(Main::ReqEarly), world.count(Main::ReqEarlyHeld)), (1, 1));
    });
}

#[test]
fn streams_of_http3_are_sent_again_after_the_handshake() {
    run_with(
        |_| {},
        "",
        async |world| {
            let asked = picky_origin(&world, false);
            let client = QuicClient::connect(&world.context, world.peer(), true);
            let stream = client.begin(&[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")]);
            client.finish(stream);
            sleep(Duration::from_secs(1)).await;
            assert_eq!(asked.borrow().len(), 1);
            client.establish();
            let answer: Outcome = client.outcome(stream).await;
            assert_eq!((answer.status(), asked.borrow().len()), (200, 2));
        },
    );
}

#[test]
fn waiting_request_ends_with_its_client() {
    run_with(http2, VCL, async |world| {
        let (peer, phase) = early_peer(&world);
        let (mut near, far) = tokio::io::duplex(64 << 10);
        let serving = engine::transport::serve(Rc::clone(&world.context), far, peer, Vec::new(), FirstProtocol::Either);
        let serving = tokio::task::spawn_local(serving);
        near.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        // As a TLS connection does when its client has left.
        phase.fail();
        serving.await.unwrap();
        let mut nothing = Vec::new();
        near.read_to_end(&mut nothing).await.unwrap();
        assert_eq!((nothing.len(), world.dialled()), (0, 0));
    });
}
