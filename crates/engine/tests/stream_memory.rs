//! How much memory connections of HTTP/2 and their waiting requests take: measured on this process, which is why it is one test in
//! a binary of its own.

mod support;

use engine::transport::Speaks;
use std::rc::Rc;
use std::time::Duration;
use support::{OriginRequest, World, run_with};
use surface::parameter::feature;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::sleep;

/// Connections of a kind, and requests that wait on one of them.
const CONNECTIONS: usize = 200;
const STREAMS: u32 = 10;

/// The most that a connection may take on which nothing is under way, and each request that waits for an origin.
const IDLE_BYTES_MAX: u64 = 24 << 10;
const STREAM_BYTES_MAX: u64 = 12 << 10;

/// What is resident now, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A request as browsers send it, with nothing that the other side would have to remember.
fn request(stream: u32) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, 5];
    block.extend_from_slice(b"/slow");
    block.extend_from_slice(&[0x01, 11]);
    block.extend_from_slice(b"example.com");
    for (name, value) in [
        (58, "Mozilla/5.0 (X11; Linux x86_64) load/1.0"),
        (19, "text/html,application/xhtml+xml,*/*;q=0.8"),
        (17, "en-US,en;q=0.5"),
        (16, "gzip, br"),
    ] {
        block.extend_from_slice(&[0x0f, name - 15, value.len() as u8]);
        block.extend_from_slice(value.as_bytes());
    }
    let mut frame = vec![0, 0, block.len() as u8, 1, 5];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(&block);
    frame
}

/// Opens connections on which so many requests wait. No library of the client's takes memory for them.
async fn hold(world: &World, count: usize, streams: u32) -> Vec<DuplexStream> {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut wire = world.wire(4 << 10, Speaks::Http2);
        wire.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0").await.unwrap();
        for number in 0..streams {
            wire.write_all(&request(2 * number + 1)).await.unwrap();
        }
        held.push(wire);
    }
    sleep(Duration::from_millis(100)).await;
    held
}

/// What each connection of so many takes, bytes.
async fn each(world: &World, streams: u32) -> u64 {
    // What the first ones cost once is not counted.
    let first = hold(world, 20, streams).await;
    let before = resident();
    let rest = hold(world, CONNECTIONS, streams).await;
    let bytes = (resident() - before) / CONNECTIONS as u64;
    // Kept, so that the next ones find no room that is free.
    std::mem::forget((first, rest));
    bytes
}

#[test]
fn waiting_requests_hold_little() {
    let change = |parameters: &mut surface::parameter::Parameters| parameters.feature |= feature::HTTP2;
    run_with(change, "", async |world: Rc<World>| {
        world.origin(|mut stream| async move {
            while OriginRequest::read(&mut stream).await.is_some() {
                sleep(Duration::from_secs(30)).await;
            }
        });
        let idle = each(&world, 0).await;
        let busy = each(&world, STREAMS).await;
        assert_eq!(world.count(surface::counter::Main::SSess), 2 * (20 + CONNECTIONS as u64));
        let stream = (busy - idle) / u64::from(STREAMS);
        println!("an idle connection {idle}, with {STREAMS} streams {busy}, a stream {stream}");
        assert!(idle <= IDLE_BYTES_MAX, "{idle} bytes for an idle connection");
        assert!(stream <= STREAM_BYTES_MAX, "{stream} bytes for a request that waits");
    });
}
