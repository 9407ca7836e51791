//! How connections of HTTP/2 end, told in raw frames: a client has all of its response before, however slowly it reads.

use crate::support::{World, always, run_with};
use engine::transport::{Speaks, serve};
use http2::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream, DuplexStream};
use tokio::time::{Instant, sleep};

/// `GET http://h/`, in the static table but for the host.
const GET: &[u8] = &[0x82, 0x84, 0x86, 0x41, 1, b'h'];
/// What an encrypted connection takes ahead of its client.
const AHEAD_BYTES: usize = 64 << 10;
const BODY_BYTES: usize = 60_000;

fn on(parameters: &mut Parameters) {
    parameters.feature |= feature::HTTP2;
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

/// A connection that takes more than its client reads, as one with TLS does, and a client that has sent one request.
async fn asked(world: &World) -> DuplexStream {
    let (mut near, far) = tokio::io::duplex(512);
    let far = BufStream::with_capacity(512, AHEAD_BYTES, far);
    tokio::task::spawn_local(serve(Rc::clone(&world.context), far, world.peer(), Vec::new(), Speaks::Http2));
    let hello = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[]), frame(kind::SETTINGS, flag::ACK, 0, &[])].concat();
    near.write_all(&[hello, frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, GET)].concat())
        .await
        .unwrap();
    near
}

/// Reads to the end. Returns how many bytes of bodies there were, and whether the last frame was a GOAWAY.
async fn read(near: &mut DuplexStream) -> (usize, bool) {
    let (mut bytes, mut is_goaway) = (0, false);
    let mut head = [0; HEAD_BYTES];
    while near.read_exact(&mut head).await.is_ok() {
        let head = FrameHead::parse(&head);
        let mut payload = vec![0; head.payload_bytes as usize];
        near.read_exact(&mut payload).await.expect("the frame is whole");
        bytes += if head.kind == kind::DATA { payload.len() } else { 0 };
        is_goaway = head.kind == kind::GOAWAY;
    }
    (bytes, is_goaway)
}

fn body() -> &'static str {
    "x".repeat(BODY_BYTES).leak()
}

#[test]
fn a_client_that_reads_slowly_has_all_of_its_response_before_it_is_idle() {
    run_with(on, "", async |world| {
        world.origin(always("", body()));
        let mut near = asked(&world).await;
        sleep(Duration::from_secs(30)).await;
        assert_eq!(world.context.in_flight(), 1, "a stop waits for what is not sent");
        assert_eq!(read(&mut near).await, (BODY_BYTES, true));
        world.expect_log("SessClose RX_CLOSE_IDLE");
        drop(near);
        sleep(Duration::from_millis(1)).await;
        assert_eq!((world.context.in_flight(), world.context.open_sessions()), (0, 0));
    });
}

#[test]
fn a_client_that_takes_nothing_is_given_up() {
    run_with(on, "", async |world| {
        world.origin(always("", body()));
        let near = asked(&world).await;
        let patience = world.engine.parameters.load().idle_send_timeout;
        sleep(Duration::from_secs_f64(patience - 1.0)).await;
        assert_eq!(world.context.open_sessions(), 1);
        sleep(Duration::from_secs(2)).await;
        assert_eq!((world.context.in_flight(), world.context.open_sessions()), (0, 0));
        world.expect_log("SessClose TX_ERROR");
        drop(near);
    });
}

#[test]
fn what_a_client_says_after_the_end_is_taken_for_a_while() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let mut near = asked(&world).await;
        assert_eq!(read(&mut near).await, (1, true));
        let ended_at = Instant::now();
        world.expect_log("SessClose RX_CLOSE_IDLE");
        let update = frame(kind::WINDOW_UPDATE, 0, 0, &100_u32.to_be_bytes());
        while near.write_all(&update).await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
        let lasted = ended_at.elapsed().as_secs_f64();
        assert!((1.0..1.2).contains(&lasted), "{lasted}");
        assert_eq!((world.context.in_flight(), world.context.open_sessions()), (0, 0));
    });
}

#[test]
fn an_idle_client_is_told_of_a_stop() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let (mut sender, connection) = h2::client::handshake(world.wire(AHEAD_BYTES, Speaks::Either)).await.unwrap();
        let ended = tokio::task::spawn_local(connection);
        let (response, _) = sender.send_request(http::Request::get("http://h/").body(()).unwrap(), true).unwrap();
        response.await.unwrap().into_body().data().await.unwrap().unwrap();
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        world.engine.draining.store(true, Ordering::Release);
        assert!(world.context.tell_of_stop());
        ended.await.unwrap().unwrap();
        sleep(Duration::from_millis(1)).await;
        assert!(began.elapsed() < Duration::from_secs(1));
        assert_eq!((world.context.in_flight(), world.context.open_sessions()), (0, 0));
        assert!(!world.context.tell_of_stop(), "nobody is left");
        world.expect_log("SessClose RESP_CLOSE");
    });
}
