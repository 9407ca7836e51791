//! Endings of HTTP/2 connections, in raw frames: a client first gets all of its response, even if
//! it reads slowly.

use crate::support::{World, always, run_with};
use engine::transport::{FirstProtocol, serve};
use http2::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream, DuplexStream, ReadBuf};
use tokio::time::{Instant, sleep};

/// `GET http://h/`, in the static table except for the host.
const GET: &[u8] = &[0x82, 0x84, 0x86, 0x41, 1, b'h'];
/// Bytes that an encrypted connection accepts ahead of its client.
const AHEAD_BYTES: usize = 64 << 10;
const BODY_BYTES: usize = 60_000;

fn on(parameters: &mut Parameters) {
    parameters.feature |= feature::HTTP2;
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

/// A connection that accepts more than its client reads, as one with TLS does, and a client that
/// has sent one request.
async fn asked(world: &World) -> DuplexStream {
    let (mut near, far) = tokio::io::duplex(512);
    let far = BufStream::with_capacity(512, AHEAD_BYTES, far);
    tokio::task::spawn_local(serve(Rc::clone(&world.context), far, world.peer(), Vec::new(), FirstProtocol::Http2));
    let hello = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[]), frame(kind::SETTINGS, flag::ACK, 0, &[])].concat();
    near.write_all(&[hello, frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, GET)].concat())
        .await
        .unwrap();
    near
}

/// Reads to the end. Returns the number of body bytes, and true if the last frame was a GOAWAY.
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
fn client_bytes_after_the_end_are_discarded_for_a_limited_time() {
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
fn idle_client_is_notified_of_a_stop() {
    run_with(on, "", async |world| {
        world.origin(always("", "x"));
        let (mut sender, connection) =
            h2::client::handshake(world.wire(AHEAD_BYTES, FirstProtocol::Either)).await.unwrap();
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

/// A connection that records each write: with TLS it is a record of its own.
struct Noting {
    stream: DuplexStream,
    writes: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl AsyncRead for Noting {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(task, buffer)
    }
}

impl AsyncWrite for Noting {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(task, bytes);
        if let Poll::Ready(Ok(count)) = &written {
            self.writes.borrow_mut().push(bytes[..*count].to_vec());
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }
}

/// The frames in these writes: kind, flags, and the writes that its first and its last byte were
/// in.
fn frames_of(writes: &[Vec<u8>]) -> Vec<(u8, u8, usize, usize)> {
    let of_byte: Vec<usize> = writes.iter().enumerate().flat_map(|(index, write)| vec![index; write.len()]).collect();
    let all = writes.concat();
    let (mut at, mut frames) = (0, Vec::new());
    while let Some(head) = all[at..].first_chunk::<HEAD_BYTES>() {
        let head = FrameHead::parse(head);
        let end = at + HEAD_BYTES + head.payload_bytes as usize;
        frames.push((head.kind, head.flags, of_byte[at], of_byte[end - 1]));
        at = end;
    }
    frames
}

#[test]
fn a_response_before_the_end_of_an_upload_is_written_before_the_reset() {
    for (policy, body) in [("rfc", "refused"), ("varnish", "refused"), ("rfc", ""), ("rfc", "twenty thousand")] {
        let size = if body == "twenty thousand" { 20_000 } else { body.len() };
        let vcl = format!(
            "sub vcl_recv {{ return (synth(403)); }} sub vcl_synth {{ set resp.body = \"{}\"; return (deliver); }}",
            "x".repeat(size)
        );
        let set = |parameters: &mut Parameters| {
            on(parameters);
            parameters.http_policy = policy.to_owned();
        };
        run_with(set, vcl.leak(), async |world| {
            let writes = Rc::new(RefCell::new(Vec::new()));
            let (mut near, far) = tokio::io::duplex(1 << 20);
            let far = Noting { stream: far, writes: Rc::clone(&writes) };
            tokio::task::spawn_local(serve(
                Rc::clone(&world.context),
                far,
                world.peer(),
                Vec::new(),
                FirstProtocol::Http2,
            ));
            // A POST whose body does not end.
            let post = [&[0x83, 0x84, 0x86, 0x41, 1, b'h'][..], &[0x0f, 13, 4], b"1000"].concat();
            let hello = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[])].concat();
            let upload = [frame(kind::HEADERS, flag::END_HEADERS, 1, &post), frame(kind::DATA, 0, 1, b"some")].concat();
            near.write_all(&[hello, frame(kind::SETTINGS, flag::ACK, 0, &[]), upload].concat()).await.unwrap();
            let mut head = [0; HEAD_BYTES];
            loop {
                near.read_exact(&mut head).await.expect("a reset comes");
                let head = FrameHead::parse(&head);
                let mut payload = vec![0; head.payload_bytes as usize];
                near.read_exact(&mut payload).await.unwrap();
                if head.kind == kind::RST_STREAM {
                    assert_eq!((head.stream, payload), (1, vec![0; 4]), "NO_ERROR");
                    break;
                }
            }
            let frames = frames_of(&writes.borrow());
            let is_end = |kind, flags| matches!(kind, kind::DATA | kind::HEADERS) && flags & flag::END_STREAM != 0;
            let end = frames.iter().find(|(kind, flags, ..)| is_end(*kind, *flags)).expect("the response is whole").3;
            let reset = frames.iter().find(|(kind, ..)| *kind == kind::RST_STREAM).expect("it was read").2;
            assert!(end < reset, "{policy} {size}: {frames:?}");
        });
    }
}

#[test]
fn an_upload_whose_refusal_is_not_taken_holds_its_stream_no_longer_than_a_send() {
    run_with(on, "sub vcl_recv { return (synth(403)); }", async |world| {
        let (mut near, far) = tokio::io::duplex(512);
        tokio::task::spawn_local(serve(Rc::clone(&world.context), far, world.peer(), Vec::new(), FirstProtocol::Http2));
        let post = [0x83, 0x84, 0x86, 0x41, 1, b'h'];
        // The client gives no window for the body of the response.
        let hello = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat();
        near.write_all(&[hello, frame(kind::HEADERS, flag::END_HEADERS, 1, &post)].concat()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.context.open_sessions(), 1);
        sleep(Duration::from_secs(180)).await;
        assert_eq!((world.context.in_flight(), world.context.open_sessions()), (0, 0));
        drop(near);
    });
}
