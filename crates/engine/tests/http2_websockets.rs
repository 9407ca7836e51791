//! WebSockets on streams of HTTP/2 (extended CONNECT, RFC 8441).

use super::support::{OriginRequest, OriginStream, World, always, run_with};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::transport::FirstProtocol;
use h2::client::{Builder, SendRequest};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt, SeedableRng};
use sha1::{Digest, Sha1};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use surface::counter::Main;
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A site's VCL for WebSockets over any protocol.
const VCL: &str = r#"
    sub vcl_recv { if (req.http.upgrade ~ "(?i)websocket") { return (pipe); } }
    sub vcl_pipe {
        if (req.http.upgrade) {
            set bereq.http.upgrade = req.http.upgrade;
            set bereq.http.connection = req.http.connection;
        }
    }
"#;

fn on(parameters: &mut Parameters) {
    parameters.feature |= feature::HTTP2;
    parameters.h2_extended_connect = true;
}

async fn client(world: &World) -> SendRequest<Bytes> {
    let wire = world.wire(64 << 10, FirstProtocol::Either);
    let (sender, connection) = Builder::new().handshake(wire).await.unwrap();
    tokio::task::spawn_local(async move { _ = connection.await });
    // The offer comes with the server's settings.
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    sender.ready().await.unwrap()
}

fn connect(protocol: &'static str) -> Request<()> {
    let request = Request::connect("http://example.com/chat").header("sec-websocket-version", "13");
    request.extension(Protocol::from_static(protocol)).body(()).unwrap()
}

type Opened = Result<(Response<RecvStream>, SendStream<Bytes>), h2::Error>;

async fn open(sender: &SendRequest<Bytes>, protocol: &'static str) -> Opened {
    let mut sender = sender.clone().ready().await?;
    let (response, sending) = sender.send_request(connect(protocol), false)?;
    Ok((response.await?, sending))
}

/// The answer of an origin that accepts.
fn agreement(request: &OriginRequest) -> String {
    let key = request.header("sec-websocket-key").unwrap();
    let digest = Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    let accept = STANDARD.encode(digest);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
}

/// Accepts, and returns everything it receives, until its client ends.
async fn echo(mut stream: OriginStream) {
    let request = OriginRequest::read(&mut stream).await.unwrap();
    // The line is shown without the protocol if that is HTTP/1.1.
    assert_eq!(request.line(), "GET /chat");
    assert_eq!(request.header("connection").map(str::to_lowercase).as_deref(), Some("upgrade"));
    assert_eq!((request.header("upgrade"), request.header("host")), (Some("websocket"), Some("example.com")));
    assert_eq!(request.header("sec-websocket-version"), Some("13"));
    stream.write_all(agreement(&request).as_bytes()).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    tokio::io::copy(&mut read, &mut write).await.unwrap();
    write.shutdown().await.unwrap();
}

/// The next `count` bytes.
async fn receive(stream: &mut RecvStream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let piece = stream.data().await.unwrap().unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        bytes.extend_from_slice(&piece);
    }
    bytes
}

/// Sends as the windows allow.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let count = poll_fn(|context| stream.poll_capacity(context)).await.unwrap().unwrap();
        stream.send_data(bytes.split_to(count.min(bytes.len())), false).unwrap();
    }
}

#[test]
fn websocket_on_a_stream_is_piped_by_http1_vcl_and_ends_from_both_sides() {
    run_with(on, VCL, async |world| {
        world.origin(echo);
        let sender = client(&world).await;
        let (response, mut sending) = open(&sender, "websocket").await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
        for name in ["upgrade", "connection", "sec-websocket-accept"] {
            assert!(!response.headers().contains_key(name), "{name}");
        }
        let mut body = response.into_body();
        send(&mut sending, Bytes::from_static(b"hello")).await;
        assert_eq!(receive(&mut body, 5).await, b"hello");
        assert_eq!(world.count(Main::NPipe), 1);
        // More than all windows and buffers on the path.
        let large = Bytes::from((0..1_000_000u32).map(|number| number as u8).collect::<Vec<_>>());
        let (received, ()) = tokio::join!(receive(&mut body, large.len()), send(&mut sending, large.clone()));
        assert!(received == large);
        sending.send_data(Bytes::new(), true).unwrap();
        while let Some(piece) = body.data().await {
            assert_eq!(piece.unwrap(), b""[..], "nothing but the end of the stream");
        }
        assert!(body.trailers().await.unwrap().is_none());
        world.expect_log("ReqMethod GET");
        world.expect_log("ReqHeader upgrade: websocket");
        assert_eq!((world.count(Main::NPipe), world.count(Main::SPipe)), (0, 1));
        // The connection continues.
        assert_eq!(open(&sender, "websocket").await.unwrap().0.status(), 200);
    });
}

#[test]
fn other_answers_of_an_origin_are_passed_on_and_none_as_a_websocket() {
    for (answer, status, body) in [
        ("HTTP/1.1 403 Forbidden\r\nX-A: b\r\nContent-Length: 2\r\n\r\nno", 403, "no"),
        ("HTTP/1.1 302 Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n", 302, "no"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 502, ""),
        ("HTTP/1.1 101 S\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: guessed\r\n\r\n", 502, ""),
        ("", 502, ""),
    ] {
        run_with(on, VCL, async |world| {
            world.origin(move |mut stream: OriginStream| async move {
                OriginRequest::read(&mut stream).await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                if answer.is_empty() {
                    return;
                }
                // The pipe ends although the origin does not.
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                assert_eq!(rest, b"", "nothing is sent to an origin that has not agreed");
            });
            let sender = client(&world).await;
            let mut ready = sender.clone().ready().await.unwrap();
            let (response, mut sending) = ready.send_request(connect("websocket"), false).unwrap();
            sending.send_data(Bytes::from_static(b"GET /secret HTTP/1.1\r\n\r\n"), false).unwrap();
            let response = response.await.unwrap();
            assert_eq!(response.status(), status, "{answer}");
            assert_eq!(receive(&mut response.into_body(), body.len()).await, body.as_bytes());
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            assert_eq!(world.count(Main::NPipe), 0, "{answer}");
        });
    }
}

#[test]
fn a_stream_that_its_client_resets_ends_the_pipe_and_an_origin_that_breaks_resets_the_stream() {
    run_with(on, VCL, async |world| {
        world.origin(echo);
        let sender = client(&world).await;
        let (_response, mut sending) = open(&sender, "websocket").await.unwrap();
        sending.send_reset(Reason::CANCEL);
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(world.count(Main::NPipe), 0);
        world.expect_log("BackendClose");
    });
}

#[test]
fn without_an_origin_the_answer_is_503() {
    run_with(on, VCL, async |world| {
        let sender = client(&world).await;
        assert_eq!(open(&sender, "websocket").await.unwrap().0.status(), 503);
        world.expect_log("FetchError");
    });
}

#[test]
fn vcl_that_does_not_pipe_refuses_and_no_success_looks_like_a_websocket() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let sender = client(&world).await;
        assert_eq!(open(&sender, "websocket").await.unwrap().0.status(), 501);
        assert_eq!(world.dialled(), 0);
        world.expect_log("VCL_Error vcl_recv{} does not return pipe for a WebSocket.");
    });
    run_with(on, "sub vcl_recv { return (synth(200)); }", async |world| {
        let sender = client(&world).await;
        assert_eq!(open(&sender, "websocket").await.unwrap().0.status(), 501);
    });
    run_with(on, "sub vcl_recv { return (synth(403)); }", async |world| {
        let sender = client(&world).await;
        assert_eq!(open(&sender, "websocket").await.unwrap().0.status(), 403);
        assert_eq!(open(&sender, "connect-udp").await.unwrap().0.status(), 400);
    });
}

#[test]
fn websocket_without_offer_is_refused() {
    run_with(
        |parameters| parameters.feature |= feature::HTTP2,
        VCL,
        async |world| {
            world.origin(echo);
            let sender = client(&world).await;
            assert!(!sender.is_extended_connect_protocol_enabled());
            assert!(open(&sender, "websocket").await.is_err());
            assert_eq!((world.dialled(), world.count(Main::SPipe)), (0, 0));
        },
    );
}

/// A message with a byte or two changed, lost or added, or truncated.
fn damaged(good: &[u8], random: &mut SmallRng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..random.random_range(1..3) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] = random.random(),
            1 => _ = bytes.remove(at),
            2 => bytes.insert(at, *b"\r\n :".choose(random).unwrap()),
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

#[test]
fn no_damage_to_an_answer_opens_a_websocket_that_the_origin_did_not_agree_to() {
    run_with(on, VCL, async |world| {
        let random = Rc::new(RefCell::new(SmallRng::seed_from_u64(37)));
        let sent = Rc::new(RefCell::new((String::new(), Vec::new())));
        let said = Rc::clone(&sent);
        world.origin(move |mut stream: OriginStream| {
            let (random, said) = (Rc::clone(&random), Rc::clone(&said));
            async move {
                let request = OriginRequest::read(&mut stream).await.unwrap();
                let good = agreement(&request);
                let accept = good.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Accept: ")).unwrap();
                let bytes = damaged(good.as_bytes(), &mut random.borrow_mut());
                *said.borrow_mut() = (accept.to_owned(), bytes.clone());
                let _ = stream.write_all(&bytes).await;
            }
        });
        let (mut opened, mut refused) = (0, 0);
        for _ in 0..500 {
            let sender = client(&world).await;
            let Ok((response, _sending)) = open(&sender, "websocket").await else {
                refused += 1;
                continue;
            };
            if !response.status().is_success() {
                refused += 1;
                continue;
            }
            opened += 1;
            let (accept, bytes) = sent.borrow().clone();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let agrees = text.split_whitespace().nth(1) == Some("101")
                && text.lines().any(|line| {
                    let parts = line.split_once(':');
                    parts.is_some_and(|(name, value)| {
                        name.eq_ignore_ascii_case("sec-websocket-accept") && value.trim() == accept
                    })
                });
            assert!(agrees && text.starts_with("HTTP/1."), "{text:?} answers {accept}");
        }
        assert!(opened > 20 && refused > 100, "{opened} {refused}");
    });
}
