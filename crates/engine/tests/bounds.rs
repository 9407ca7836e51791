//! What clients and origins can make the engine hold: bodies that inflate a thousandfold, and readers that don't read.

use crate::support::{OriginRequest, OriginStream, World, run_with, serve_each};
use flate2::write::GzEncoder;
use std::io::Write;
use std::rc::Rc;
use surface::limits::{FILTER_STEP_BYTES_MAX, PASS_IN_FLIGHT_BYTES_MAX};

/// What the bomb inflates to; as a thousandth of that it comes in.
const INFLATED_BYTES: usize = 32 << 20;
/// What a connection in memory holds.
const CONNECTION_BYTES: usize = 64 << 10;

/// A small body that becomes a large one.
fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = [0; 64 << 10];
    for _ in 0..INFLATED_BYTES / zeros.len() {
        encoder.write_all(&zeros).unwrap();
    }
    let bytes = encoder.finish().unwrap();
    assert!(bytes.len() < INFLATED_BYTES / 900, "{}", bytes.len());
    bytes
}

/// An origin that answers everything with that body, gzipped as it is; `headers` have their line ends.
fn answering(
    headers: &str,
    body: Vec<u8>,
) -> impl Fn(OriginStream) -> std::pin::Pin<Box<dyn Future<Output = ()>>> + use<> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n{headers}Content-Length: {}\r\n\r\n", body.len())
            .into_bytes();
    answer.extend_from_slice(&body);
    serve_each(move |_: &OriginRequest| answer.clone())
}

/// Lets everybody work until nobody can go on.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// The plain bytes that the gunzip of a record `Gzip U …` has made: `side` is `D` for a delivery, `F` for a fetch.
fn unpacked(world: &World, side: &str) -> Option<usize> {
    let log = world.log();
    let line = log.iter().find(|line| line.contains(&format!("Gzip U {side} - ")))?;
    line.split(' ').nth(6)?.parse().ok()
}

async fn hang_up_after(world: &Rc<World>, bytes: usize) {
    let mut client = world.client();
    client.send("GET /bomb HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
    client.receive(bytes).await;
    settle().await;
    drop(client);
    settle().await;
}

#[test]
fn a_bomb_inflates_no_faster_than_its_client_reads() {
    run_with(
        |_| {},
        "",
        |world| async move {
            world.origin(answering("", bomb()));
            let read = 100_000;
            hang_up_after(&world, read).await;
            let made = unpacked(&world, "D").unwrap_or_else(|| panic!("{}", world.story()));
            assert!(made > read / 2 && made <= read + CONNECTION_BYTES + FILTER_STEP_BYTES_MAX, "{made}");
        },
    );
}

#[test]
fn a_bomb_that_passes_inflates_no_faster_than_its_client_reads() {
    let vcl = "sub vcl_recv { return (pass); } sub vcl_backend_response { set beresp.do_gunzip = true; }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            world.origin(answering("", bomb()));
            let read = 100_000;
            hang_up_after(&world, read).await;
            let made = unpacked(&world, "F").unwrap_or_else(|| panic!("{}", world.story()));
            let under_way = PASS_IN_FLIGHT_BYTES_MAX + FILTER_STEP_BYTES_MAX;
            assert!(made > read / 2 && made <= read + CONNECTION_BYTES + under_way, "{made}");
        },
    );
}

#[test]
fn a_bomb_that_the_storage_does_not_hold_inflates_no_further() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let storage_bytes = 1 << 20;
        let world = Rc::new(World::with_storage(Default::default(), storage_bytes));
        world.load("boot", "sub vcl_backend_response { set beresp.do_gunzip = true; set beresp.ttl = 1h; }");
        world.origin(answering("", bomb()));
        hang_up_after(&world, 0).await;
        let made = unpacked(&world, "F").unwrap_or_else(|| panic!("{}", world.story()));
        let held = storage_bytes as usize + PASS_IN_FLIGHT_BYTES_MAX + CONNECTION_BYTES + 2 * FILTER_STEP_BYTES_MAX;
        assert!(made <= held, "{made}");
    });
}

#[test]
fn a_range_far_inside_a_bomb_lets_others_have_their_turn() {
    run_with(
        |_| {},
        "",
        |world| async move {
            world.origin(answering("", bomb()));
            let first = INFLATED_BYTES - 10;
            let mut client = world.client();
            client.get("/bomb", "Accept-Encoding: gzip\r\n").await;
            client.send(format!("GET /bomb HTTP/1.1\r\nHost: example.com\r\nRange: bytes={first}-\r\n\r\n")).await;
            let turns = Rc::new(std::cell::Cell::new(0));
            let counted = Rc::clone(&turns);
            let other = tokio::task::spawn_local(async move {
                loop {
                    counted.set(counted.get() + 1);
                    tokio::task::yield_now().await;
                }
            });
            let response = client.response().await;
            other.abort();
            assert_eq!((response.status(), response.body.len()), (206, 10), "{}", world.story());
            assert!(turns.get() > INFLATED_BYTES / (2 << 20), "{} turns", turns.get());
        },
    );
}
