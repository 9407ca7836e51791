//! Memory of connections and their waiting requests: the allocations of this process, which is why
//! it is one test in a binary of its own.

mod support;

use engine::transport::FirstProtocol;
use std::rc::Rc;
use std::time::Duration;
use store::process::allocated_bytes;
use support::{World, run_with};
use surface::parameter::feature;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::sleep;

/// Connections of a kind, and requests that wait on one of them.
const CONNECTIONS: usize = 100;
const STREAMS: u32 = 10;
/// Bytes that the test's own connection holds of the data sent through it.
const WIRE_BYTES: usize = 256;

/// Maximum bytes of an idle connection.
const IDLE_BYTES_MAX: u64 = 3 << 10;
/// The same over HTTP/2.
const IDLE_HTTP2_BYTES_MAX: u64 = 6 << 10;
/// Maximum bytes of a request on it that waits for another one's fetch.
const WAITING_BYTES_MAX: u64 = 6 << 10;
/// Maximum bytes of one that waits for its own fetch, with its connection to the origin.
const FETCHING_BYTES_MAX: u64 = 14 << 10;

/// The requests of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// One page, once, over HTTP/1; the response has come.
    Idle,
    /// Nothing, over HTTP/2.
    Nothing,
    /// The same page in all its requests.
    ForOne,
    /// A page of its own in each.
    ForMany,
}

/// A request as browsers send it, without fields that enter the dynamic table.
fn request(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, path.len() as u8];
    block.extend_from_slice(path.as_bytes());
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

/// Opens a connection with its requests. Without a client library, which would take memory.
async fn open(world: &World, asks: Asks, number: usize) -> DuplexStream {
    let speaks = if asks == Asks::Idle { FirstProtocol::Either } else { FirstProtocol::Http2 };
    let mut wire = world.wire(WIRE_BYTES, speaks);
    if asks == Asks::Idle {
        wire.write_all(b"GET /quick HTTP/1.1\r\nHost: example.com\r\n\r\n").await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"quick!") {
            wire.read_buf(&mut received).await.unwrap();
        }
        return wire;
    }
    wire.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0").await.unwrap();
    for stream in 0..if asks == Asks::Nothing { 0 } else { STREAMS } {
        let path = if asks == Asks::ForOne { "/slow".to_owned() } else { format!("/slow{number}-{stream}") };
        wire.write_all(&request(2 * stream + 1, &path)).await.unwrap();
    }
    wire
}

/// Bytes of each connection, averaged over many.
async fn each(world: &World, asks: Asks) -> u64 {
    let mut held = Vec::new();
    let mut before = 0;
    // One-time costs of the first ones are not counted.
    for number in 0..20 + CONNECTIONS {
        if number == 20 {
            sleep(Duration::from_millis(100)).await;
            before = allocated_bytes().unwrap();
        }
        held.push(open(world, asks, number).await);
    }
    sleep(Duration::from_millis(100)).await;
    let bytes = (allocated_bytes().unwrap() - before) / CONNECTIONS as u64;
    // Kept, so that the next ones find no free memory to reuse.
    std::mem::forget(held);
    bytes
}

/// Answers `/quick`, and nothing else.
async fn answer(mut stream: DuplexStream) {
    let mut some = [0; 64];
    let mut is_first = true;
    while let Ok(count @ 1..) = stream.read(&mut some).await {
        if std::mem::take(&mut is_first) && some[..count].starts_with(b"GET /quick") {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nquick!")
                .await;
        }
    }
}

#[test]
fn connections_and_waiting_requests_hold_little() {
    if allocated_bytes().is_none() {
        return;
    }
    let change = |parameters: &mut surface::parameter::Parameters| parameters.feature |= feature::HTTP2;
    run_with(change, "", async |world: Rc<World>| {
        world.origin(answer);
        let idle = each(&world, Asks::Idle).await;
        let idle_http2 = each(&world, Asks::Nothing).await;
        let per_stream = |bytes: u64| (bytes - idle_http2) / u64::from(STREAMS);
        let waiting = per_stream(each(&world, Asks::ForOne).await);
        let fetching = per_stream(each(&world, Asks::ForMany).await);
        let opened = 4 * (20 + CONNECTIONS as u64);
        assert_eq!(world.count(surface::counter::Main::SSess), opened, "all of them are there");
        assert_eq!(world.context.open_sessions(), opened, "and stay");
        println!("idle {idle}, over HTTP/2 {idle_http2}; a request that waits {waiting}, that fetches {fetching}");
        for (what, bytes, most) in [
            ("an idle connection", idle, IDLE_BYTES_MAX),
            ("an idle connection of HTTP/2", idle_http2, IDLE_HTTP2_BYTES_MAX),
            ("a request that waits for another's fetch", waiting, WAITING_BYTES_MAX),
            ("a request that waits for its fetch", fetching, FETCHING_BYTES_MAX),
        ] {
            assert!(bytes <= most, "{what} takes {bytes} bytes");
        }
    });
}
