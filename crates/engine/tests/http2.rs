//! HTTP/2 for clients, driven by the client half of the library `h2`.

use super::support::World;
use super::support::{OriginRequest, always, run_with, serve_each};
use bytes::Bytes;
use engine::transport::FirstProtocol;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, Request, Response};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

fn on(parameters: &mut Parameters) {
    parameters.feature |= feature::HTTP2;
}

/// A client with these settings, whose connection is driven until it ends.
async fn client_of(world: &World, builder: &Builder) -> SendRequest<Bytes> {
    let (sender, connection) = builder.handshake(world.wire(64 << 10, FirstProtocol::Either)).await.unwrap();
    tokio::task::spawn_local(async move { _ = connection.await });
    sender.ready().await.unwrap()
}

async fn client(world: &World) -> SendRequest<Bytes> {
    client_of(world, &Builder::new()).await
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://example.com{path}")).body(()).unwrap()
}

/// The complete body, and the trailers.
async fn body_of(mut stream: RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len())?;
    }
    let trailers = stream.trailers().await?;
    Ok((body, trailers))
}

async fn ask(sender: &SendRequest<Bytes>, request: Request<()>) -> Result<(Response<()>, Vec<u8>), h2::Error> {
    let mut sender = sender.clone().ready().await?;
    let (response, _) = sender.send_request(request, true)?;
    let (head, stream) = response.await?.into_parts();
    let (body, _) = body_of(stream).await?;
    Ok((Response::from_parts(head, ()), body))
}

#[test]
fn streams_are_requests_of_their_own_and_none_waits_for_a_slow_one() {
    let vcl = "sub vcl_deliver { set resp.http.X-Is = req.proto + \" \" + req.transport + \" \" + req.http.scheme; }";
    run_with(on, vcl, async |world| {
        world.origin(|mut stream| async move {
            while let Some(request) = OriginRequest::read(&mut stream).await {
                if request.target() == "/slow" {
                    sleep(Duration::from_secs(20)).await;
                }
                let body = request.target().repeat(1000);
                let head =
                    format!("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all((head + &body).as_bytes()).await.unwrap();
            }
        });
        let sender = client(&world).await;
        let slow = tokio::task::spawn_local({
            let sender = sender.clone();
            async move { ask(&sender, get("/slow")).await.unwrap().1.len() }
        });
        let start = tokio::time::Instant::now();
        for round in 0..2 {
            for number in 0..50 {
                let path = format!("/{number}");
                let (head, body) = ask(&sender, get(&path)).await.unwrap();
                assert_eq!((head.status().as_u16(), body), (200, path.repeat(1000).into_bytes()), "{round}");
                assert_eq!(head.headers()["x-is"], "HTTP/2.0 HTTP/2 http");
                assert!(!head.headers().contains_key("connection"));
            }
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!(slow.await.unwrap(), 5000);
        assert_eq!((world.count(Main::SSess), world.count(Main::ClientReq), world.count(Main::CacheHit)), (1, 101, 50));
        world.expect_log("Begin sess 0 HTTP/1");
        world.expect_log("ReqProtocol HTTP/2.0");
        world.expect_log("RespProtocol HTTP/2.0");
        world.expect_log("ReqHeader host: example.com");
    });
}

#[test]
fn without_the_feature_a_preface_ends_the_session() {
    run_with(
        |_| {},
        "",
        async |world| {
            let mut wire = world.wire(64 << 10, FirstProtocol::Either);
            wire.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
            let mut rest = Vec::new();
            wire.read_to_end(&mut rest).await.unwrap();
            assert_eq!(rest, b"");
            world.expect_log("SessClose REQ_HTTP20");
        },
    );
}

#[test]
fn a_request_that_asks_for_the_upgrade_is_the_first_stream() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let mut wire = world.wire(64 << 10, FirstProtocol::Either);
        let head = "GET /a HTTP/1.1\r\nHost: b\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
        wire.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 71];
        wire.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 101 ") && answer.ends_with(b"\r\n\r\n"));
        let mut settings = [0; 9];
        wire.read_exact(&mut settings).await.unwrap();
        assert_eq!(settings[3..], [4, 0, 0, 0, 0, 0], "settings come without waiting for the client's");
        wire.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        world.expect_log("ReqURL /a");
        world.expect_log("ReqHeader host: b");
        assert!(!world.log().iter().any(|line| line.contains("ReqHeader upgrade")));
        assert_eq!((world.count(Main::ClientReq), world.count(Main::ClientReq400)), (1, 0));
    });
}

#[test]
fn a_request_with_two_hosts_is_refused_although_it_asks_for_the_upgrade() {
    run_with(on, "", async |world| {
        let mut wire = world.wire(64 << 10, FirstProtocol::Either);
        let head = "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
        wire.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        wire.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        world.expect_log("BogoHeader Multiple Host: headers");
    });
}

#[test]
fn an_upload_that_stalls_is_given_up_and_leaves_its_connection() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let mut sender = client(&world).await;
        let request = Request::post("http://a/").header("content-length", 100).body(()).unwrap();
        let (response, mut sending) = sender.send_request(request, false).unwrap();
        sending.send_data(Bytes::from_static(b"0123456789"), false).unwrap();
        let begin = tokio::time::Instant::now();
        assert_eq!(response.await.unwrap().status(), 503);
        assert!((4..8).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
        world.expect_log("FetchError req.body read error: nothing came for timeout_idle");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn a_body_reaches_the_origin_and_one_of_the_wrong_length_does_not_as_a_whole() {
    run_with(on, "", async |world| {
        let whole = Rc::new(Cell::new(0));
        let seen = Rc::clone(&whole);
        world.origin(serve_each(move |_| {
            seen.set(seen.get() + 1);
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()
        }));
        let sender = client(&world).await;
        for (length, is_right) in [(Some(200_000), true), (None, true), (Some(200_001), false), (Some(199_999), false)]
        {
            let mut request = Request::post("http://a/");
            if let Some(length) = length {
                request = request.header("content-length", length);
            }
            let mut sender = sender.clone().ready().await.unwrap();
            let (response, mut sending) = sender.send_request(request.body(()).unwrap(), false).unwrap();
            let before = whole.get();
            tokio::task::spawn_local(async move {
                for place in 0..20 {
                    sending.reserve_capacity(10_000);
                    while sending.capacity() < 10_000 {
                        let assigned = std::future::poll_fn(|task| sending.poll_capacity(task)).await;
                        if !matches!(assigned, Some(Ok(_))) {
                            return;
                        }
                    }
                    if sending.send_data(Bytes::from(vec![7; 10_000]), place == 19).is_err() {
                        return;
                    }
                }
            });
            match response.await {
                Ok(response) => assert!(is_right && response.status() == 200, "{length:?}"),
                Err(error) => {
                    assert!(!is_right && error.reason() == Some(Reason::PROTOCOL_ERROR), "{length:?} {error}")
                }
            }
            sleep(Duration::from_secs(1)).await;
            assert_eq!(whole.get() - before, u32::from(is_right), "{length:?}");
        }
    });
}

#[test]
fn a_response_that_the_origin_cuts_off_is_reset_and_never_ended() {
    run_with(on, "", async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await.unwrap();
            sleep(Duration::from_secs(1)).await;
        });
        let sender = client(&world).await;
        let error = ask(&sender, get("/")).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        assert!(sender.ready().await.is_ok(), "the session goes on");
    });
}

#[test]
fn a_client_that_opens_no_window_is_given_up_and_others_of_the_connection_are_served() {
    run_with(on, "", async |world| {
        let body: &'static str = "x".repeat(1 << 20).leak();
        world.origin(always("Cache-Control: max-age=60\r\n", body));
        let mut builder = Builder::new();
        builder.initial_window_size(1000).initial_connection_window_size(1 << 20);
        let sender = client_of(&world, &builder).await;
        let mut stalled = Vec::new();
        for _ in 0..20 {
            let mut sender = sender.clone().ready().await.unwrap();
            stalled.push(sender.send_request(get("/"), true).unwrap().0.await.unwrap().into_body());
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(ask(&sender, get("/")).await.unwrap().1.len(), 1 << 20);
        sleep(Duration::from_secs(6)).await;
        for mut stream in stalled {
            assert_eq!(stream.data().await.unwrap().unwrap().len(), 1000);
            assert_eq!(stream.data().await.unwrap().unwrap_err().reason(), Some(Reason::CANCEL));
        }
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn reset_stream_counts_until_its_work_has_ended() {
    let change = |parameters: &mut Parameters| {
        on(parameters);
        parameters.h2_max_concurrent_streams = 10;
        parameters.h2_rapid_reset_limit = 0;
    };
    run_with(change, "sub vcl_recv { return (pass); }", async |world| {
        let (now, peak) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let counts = (Rc::clone(&now), Rc::clone(&peak));
        world.origin(move |mut stream| {
            let (now, peak) = (Rc::clone(&counts.0), Rc::clone(&counts.1));
            async move {
                OriginRequest::read(&mut stream).await;
                now.set(now.get() + 1);
                peak.set(peak.get().max(now.get()));
                sleep(Duration::from_secs(5)).await;
                now.set(now.get() - 1);
                _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        });
        let sender = client(&world).await;
        for _ in 0..60 {
            let mut sender = sender.clone().ready().await.unwrap();
            let (response, mut sending) = sender.send_request(get("/"), false).unwrap();
            sleep(Duration::from_millis(1)).await;
            sending.send_reset(Reason::CANCEL);
            drop(response);
        }
        sleep(Duration::from_secs(60)).await;
        assert!((1..=10).contains(&peak.get()), "{} at once", peak.get());
        assert_eq!((now.get(), world.context.in_flight()), (0, 0));
    });
}

#[test]
fn a_session_ends_with_a_goaway_when_vcl_closes_it_or_nothing_happens() {
    let vcl = "sub vcl_deliver { if (req.url == \"/close\") { set resp.http.Connection = \"close\"; } }";
    run_with(on, vcl, async |world| {
        world.origin(always("", "x"));
        for (path, seconds, reason) in [("/close", 1, "RESP_CLOSE"), ("/", 6, "RX_CLOSE_IDLE")] {
            let (sender, connection) =
                h2::client::handshake(world.wire(64 << 10, FirstProtocol::Either)).await.unwrap();
            let ended = tokio::task::spawn_local(connection);
            assert_eq!(ask(&sender, get(path)).await.unwrap().1, b"x");
            sleep(Duration::from_secs(seconds)).await;
            assert!(ended.is_finished(), "{path}");
            ended.await.unwrap().unwrap();
            world.expect_log(&format!("SessClose {reason}"));
        }
    });
}

#[test]
fn a_head_that_is_too_large_gets_431_and_a_strange_one_400() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let sender = client(&world).await;
        let mut large = get("/");
        large.headers_mut().insert("x", "y".repeat(9000).parse().unwrap());
        assert_eq!(ask(&sender, large).await.unwrap().0.status(), 431);
        let strange = Request::get("http://user@a/").body(()).unwrap();
        assert_eq!(ask(&sender, strange).await.unwrap().0.status(), 400);
        world.expect_log("limit=http_req_hdr_len");
        assert_eq!(ask(&sender, get("/")).await.unwrap().0.status(), 200);
    });
}

#[test]
fn unread_head_is_logged_and_counted() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let sender = client(&world).await;
        let mut huge = get("/");
        for number in 0..2000 {
            huge.headers_mut().insert(HeaderName::try_from(format!("x{number}")).unwrap(), "y".parse().unwrap());
        }
        assert_eq!(ask(&sender, huge).await.unwrap().0.status(), 431);
        assert_eq!(ask(&sender, get("/")).await.unwrap().0.status(), 200);
        world.expect_log("Error HTTP/2: the head of stream 1 is too large, answered with 431");
        world.expect_log("why request-head-too-large limit=http_req_size max=69632");
        assert_eq!(world.context.counters.get(Main::ClientReq400), 1);
        assert_eq!(world.context.counters.get(Main::H2Streams), 2);
    });
}

#[test]
fn pipe_becomes_a_pass_and_is_logged_as_one() {
    run_with(on, "sub vcl_recv { return (pipe); }", async |world| {
        world.origin(always("", "x"));
        let sender = client(&world).await;
        assert_eq!(ask(&sender, get("/")).await.unwrap().1, b"x");
        world.expect_log("VCL_Error vcl_recv{} returns pipe for HTTP/2 request.  Doing pass.");
    });
}

#[test]
fn trailers_and_interim_responses_of_the_origin_are_passed_on() {
    let change = |parameters: &mut Parameters| {
        on(parameters);
        parameters.http_policy = "rfc".to_owned();
    };
    run_with(change, "", async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await;
            let head = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(b"4\r\nbody\r\n0\r\nX-Sum: 7\r\n\r\n").await.unwrap();
        });
        let mut sender = client(&world).await;
        let mut request = get("/");
        request.headers_mut().insert("te", "trailers".parse().unwrap());
        let (mut response, _) = sender.send_request(request, true).unwrap();
        let interim = std::future::poll_fn(|task| response.poll_informational(task)).await.unwrap().unwrap();
        assert_eq!((interim.status().as_u16(), interim.headers()["link"].as_bytes()), (103, &b"</a>"[..]));
        let (body, trailers) = body_of(response.await.unwrap().into_body()).await.unwrap();
        assert_eq!((body, trailers.unwrap()["x-sum"].as_bytes()), (b"body".to_vec(), &b"7"[..]));
    });
}

#[test]
fn an_urgent_response_overtakes_a_large_one() {
    run_with(on, "", async |world| {
        let body: &'static str = "x".repeat(1 << 20).leak();
        world.origin(always("Cache-Control: max-age=60\r\n", body));
        let mut builder = Builder::new();
        builder.initial_window_size(2 << 20).initial_connection_window_size(8 << 20);
        let sender = client_of(&world, &builder).await;
        ask(&sender, get("/")).await.unwrap();
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let asks: Vec<_> = ["u=5", "u=5", "u=5", "u=0"]
            .into_iter()
            .map(|wish| {
                let (sender, order) = (sender.clone(), Rc::clone(&order));
                tokio::task::spawn_local(async move {
                    let mut request = get("/");
                    request.headers_mut().insert("priority", wish.parse().unwrap());
                    ask(&sender, request).await.unwrap();
                    order.borrow_mut().push(wish);
                })
            })
            .collect();
        for ask in asks {
            ask.await.unwrap();
        }
        assert_eq!(order.borrow()[0], "u=0", "{order:?}");
    });
}

#[test]
fn a_connection_that_is_given_up_waits_for_its_requests_without_turning() {
    run_with(on, "", async |world| {
        world.origin(|mut stream| async move {
            OriginRequest::read(&mut stream).await.unwrap();
            sleep(Duration::from_secs(50)).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        });
        let mut wire = world.wire(4096, FirstProtocol::Either);
        let mut said = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        // GET, http, /, and the host; then the beginning of a frame whose rest never comes.
        said.extend(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01a\0\0\x08\x06");
        wire.write_all(&said).await.unwrap();
        // This clock stands still while any task runs.
        sleep(Duration::from_secs(100)).await;
        world.expect_log("RespStatus 200");
        world.expect_log("SessClose RX_TIMEOUT");
    });
}
