//! Bodies that turn out too large to be kept while they are received: all clients get them
//! completely, and no other objects are evicted.

use crate::support::{OriginRequest, OriginStream, Response, World, serve_each};
use flate2::read::GzDecoder;
use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;

const STORAGE_BYTES: u64 = 2 << 20;
const LARGE_BYTES: usize = 3 << 20;

/// Runs a test in a world with a small storage.
fn run<F: Future<Output = ()>>(vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    run_with(&[STORAGE_BYTES], vcl, story);
}

fn run_with<F: Future<Output = ()>>(storages_bytes: &[u64], vcl: &str, story: impl FnOnce(Rc<World>) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::with_storages(Parameters::default(), storages_bytes));
        world.load("boot", vcl);
        story(Rc::clone(&world)).await;
    });
}

/// A body whose positions are all distinguishable.
fn body_of(bytes: usize) -> Vec<u8> {
    (0..bytes.div_ceil(8)).flat_map(|word| format!("{word:07}\n").into_bytes()).take(bytes).collect()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(10_000) {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// Answers `/large…` with a chunked body that is larger than the storage, everything else with a
/// small page.
fn origin(world: &World) {
    let large = chunked(&body_of(LARGE_BYTES));
    world.origin(serve_each(move |request: &OriginRequest| {
        if request.target().starts_with("/large") {
            let mut answer = b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            answer.extend_from_slice(&large);
            answer
        } else {
            format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}", "p".repeat(1000)).into_bytes()
        }
    }));
}

/// Fetches small pages, which fit into a storage of [`STORAGE_BYTES`] together with the share of a
/// large body.
async fn store_pages(world: &World) {
    let mut client = world.client();
    for page in 0..100 {
        assert_eq!(client.get(&format!("/page{page}"), "").await.status(), 200);
    }
}

/// Asserts that all of those are still stored.
async fn expect_pages(world: &World) {
    let mut client = world.client();
    let before = world.count(Main::CacheHit);
    for page in 0..100 {
        client.get(&format!("/page{page}"), "").await;
    }
    assert_eq!(world.count(Main::CacheHit) - before, 100, "somebody else's objects have gone");
}

#[track_caller]
fn expect_whole(response: &Response, body: &[u8]) {
    assert_eq!(response.status(), 200, "{}", response.head);
    assert!(response.is_whole, "cut after {} bytes", response.body.len());
    assert!(response.body == body, "{} bytes, and not those that were sent", response.body.len());
}

fn nuked(world: &World) -> u64 {
    let mut nuked = 0;
    world.engine.cache.counters(&mut |counter, count| {
        if counter == Main::NLruNuked {
            nuked = count;
        }
    });
    nuked
}

#[test]
fn chunked_body_larger_than_the_storage_is_complete_and_evicts_nothing() {
    run("", async |world| {
        origin(&world);
        store_pages(&world).await;
        let mut client = world.client();
        let response = client.get("/large", "").await;
        expect_whole(&response, &body_of(LARGE_BYTES));
        assert_eq!(nuked(&world), 0);
        world.expect_log("Error Could not get storage for the whole body: passed on, not cached");
        world.expect_log("Witness why not-stored-too-large");
        // The next one is not stored on trial again, and is delivered completely as well.
        let held = world.engine.cache.store().usage().c_bytes;
        let response = client.get("/large", "").await;
        expect_whole(&response, &body_of(LARGE_BYTES));
        assert_eq!(world.count(Main::CacheHitmiss), 1, "{}", world.story());
        assert_eq!(world.engine.cache.store().usage().c_bytes, held, "nothing was asked of the storage");
        expect_pages(&world).await;
        // After a while it is tried again.
        tokio::time::sleep(Duration::from_secs(121)).await;
        world.engine.cache.tick(world.context.clock.now());
        expect_whole(&world.client().get("/large", "").await, &body_of(LARGE_BYTES));
        assert_eq!((world.count(Main::CacheHitmiss), world.count(Main::SFetch)), (1, 103));
    });
}

#[test]
fn full_storage_gives_about_the_share_to_such_a_body_and_once() {
    run("", async |world| {
        origin(&world);
        let mut client = world.client();
        // More than there is room for. Contiguous room costs more of such small objects than their
        // bytes.
        for page in 0..2000 {
            client.get(&format!("/page{page}"), "").await;
        }
        let objects = world.engine.cache.object_count();
        expect_whole(&client.get("/large", "").await, &body_of(LARGE_BYTES));
        expect_whole(&client.get("/large", "").await, &body_of(LARGE_BYTES));
        let left = world.engine.cache.object_count();
        assert!(left * 2 > objects, "{left} of {objects} objects are left");
    });
}

/// Reads a response slowly: this many bytes a virtual second.
async fn read_slowly(stream: &mut tokio::io::DuplexStream, step: usize, until: usize) -> Vec<u8> {
    let mut got = Vec::new();
    let mut buffer = vec![0; step];
    while got.len() < until {
        let count = stream.read(&mut buffer).await.unwrap();
        if count == 0 || got.ends_with(b"0\r\n\r\n") {
            break;
        }
        got.extend_from_slice(&buffer[..count]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    got
}

/// The body in the bytes of a complete chunked response.
fn unchunk(bytes: &[u8]) -> Vec<u8> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let (mut rest, mut body) = (&bytes[head..], Vec::new());
    loop {
        let line = rest.windows(2).position(|end| end == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[line + 2..line + 2 + length]);
        rest = &rest[line + 4 + length..];
    }
}

#[test]
fn readers_at_any_speed_and_those_who_join_get_all_of_it_and_late_ones_their_own() {
    run("", async |world| {
        origin(&world);
        store_pages(&world).await;
        let wanted = body_of(LARGE_BYTES);
        let connect = || {
            let (near, far) = tokio::io::duplex(16 << 10);
            tokio::task::spawn_local(engine::transport::serve(
                Rc::clone(&world.context),
                far,
                world.peer(),
                Vec::new(),
                engine::transport::FirstProtocol::Either,
            ));
            near
        };
        let readers: Vec<_> = [50_000, 100_000, 200_000]
            .into_iter()
            .map(|step| {
                let mut stream = connect();
                tokio::task::spawn_local(async move {
                    // The first misses, the others hit the object being fetched.
                    stream.write_all(b"GET /large HTTP/1.1\r\nHost: example.com\r\n\r\n").await.unwrap();
                    unchunk(&read_slowly(&mut stream, step, usize::MAX).await)
                })
            })
            .collect();
        // One that aborts, and one that comes when the beginning is gone.
        let mut gone = connect();
        gone.write_all(b"GET /large HTTP/1.1\r\nHost: example.com\r\n\r\n").await.unwrap();
        read_slowly(&mut gone, 20_000, 300_000).await;
        drop(gone);
        while world.engine.cache.store().held_bytes() > 600 << 10 || world.count(Main::SFetch) < 101 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        expect_whole(&world.client().get("/large", "").await, &wanted);
        for reader in readers {
            assert!(reader.await.unwrap() == wanted, "a body came out wrong");
        }
        assert_eq!((world.count(Main::CacheHit), world.count(Main::CacheHitmiss)), (3, 1), "{}", world.story());
        assert_eq!(world.dialled(), 2, "{}", world.story());
        expect_pages(&world).await;
        assert_eq!(world.context.in_flight(), 0);
    });
}

#[test]
fn body_that_should_have_come_whole_first_is_streamed_when_it_cannot() {
    let old = r#"backend default { .host = "10.0.0.1"; .port = "80"; }
        sub vcl_fetch { set beresp.ttl = 100s; }"#;
    for vcl in ["sub vcl_backend_response { set beresp.do_stream = false; }", old] {
        run(vcl, async |world| {
            origin(&world);
            store_pages(&world).await;
            let mut client = world.client();
            for _ in 0..2 {
                expect_whole(&client.get("/large", "").await, &body_of(LARGE_BYTES));
            }
            assert_eq!((world.count(Main::CacheHitmiss), nuked(&world)), (1, 0), "{}", world.story());
            expect_pages(&world).await;
        });
    }
}

#[test]
fn private_body_that_should_have_come_whole_first_is_streamed_too() {
    let vcl = "sub vcl_recv { if (req.url ~ \"pass\") { return (pass); } }
        sub vcl_backend_response { set beresp.do_stream = false; if (bereq.url ~ \"mine\") { set beresp.uncacheable = true; } }";
    run(vcl, async |world| {
        origin(&world);
        let mut client = world.client();
        for url in ["/large/pass", "/large/mine", "/large/mine"] {
            expect_whole(&client.get(url, "").await, &body_of(LARGE_BYTES));
        }
        assert_eq!(world.count(Main::CacheHitmiss), 1);
        assert_eq!(world.engine.cache.object_count(), 1, "the marker");
    });
}

#[test]
fn ranges_and_compression_work_on_such_a_body() {
    let vcl = "sub vcl_backend_response { if (bereq.url ~ \"zip\") { set beresp.do_gzip = true; } }";
    run(vcl, async |world| {
        // Does not compress well, so that it stays too large.
        let mut state = 1u64;
        let noise: Vec<u8> = (0..LARGE_BYTES)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        let answer = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), chunked(&noise)].concat();
        world.origin(serve_each(move |_| answer.clone()));
        let mut client = world.client();
        // A range with both ends is cut out of a body of unknown length.
        for _ in 0..2 {
            let response = client.get("/range", "Range: bytes=2000000-2000999\r\n").await;
            assert_eq!(response.status(), 206);
            assert!(response.body == noise[2_000_000..2_001_000]);
        }
        for _ in 0..2 {
            let response = client.get("/zip", "Accept-Encoding: gzip\r\n").await;
            assert_eq!(response.header("content-encoding"), Some("gzip"));
            let mut plain = Vec::new();
            GzDecoder::new(response.body.as_slice()).read_to_end(&mut plain).unwrap();
            assert!(plain == noise);
        }
        // Compressed on receipt, decompressed on delivery.
        expect_whole(&client.get("/zip/other", "").await, &noise);
        expect_whole(&client.get("/zip/other", "").await, &noise);
    });
}

#[test]
fn background_refresh_that_cannot_be_kept_stops_and_the_old_object_stays() {
    let vcl = "sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 1h; }";
    run(vcl, async |world| {
        let grown = Rc::new(Cell::new(false));
        let (switch, large) = (Rc::clone(&grown), chunked(&body_of(LARGE_BYTES)));
        world.origin(serve_each(move |_| {
            let body = if switch.get() { large.clone() } else { b"5\r\nsmall\r\n0\r\n\r\n".to_vec() };
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), body].concat()
        }));
        let mut client = world.client();
        assert_eq!(client.get("/large", "").await.text(), "small");
        grown.set(true);
        tokio::time::sleep(Duration::from_secs(2)).await;
        for _ in 0..3 {
            assert_eq!(client.get("/large", "").await.text(), "small");
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        assert_eq!(world.context.in_flight(), 0);
        assert_eq!(world.engine.cache.object_count(), 1);
        world.expect_log("Witness why not-stored-too-large");
    });
}

#[test]
fn fetch_whose_readers_all_leave_stops() {
    run("", async |world| {
        let sent = Rc::new(Cell::new(0));
        let count = Rc::clone(&sent);
        world.origin(move |mut stream: OriginStream| {
            let count = Rc::clone(&count);
            async move {
                OriginRequest::read(&mut stream).await;
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                stream.write_all(head).await.unwrap();
                // An endless body.
                while stream.write_all(format!("2710\r\n{}\r\n", "x".repeat(10_000)).as_bytes()).await.is_ok() {
                    count.set(count.get() + 10_000);
                }
            }
        });
        let mut client = world.client();
        client.send("GET /large HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        client.receive(LARGE_BYTES).await;
        drop(client);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.context.in_flight(), 0, "{}", world.story());
        assert!(sent.get() < 2 * LARGE_BYTES);
        let held = world.engine.cache.store().usage().g_bytes;
        assert!(held < 10_000, "{held} bytes are still held");
    });
}

#[test]
fn several_at_once_in_a_small_storage_all_come_whole() {
    run("", async |world| {
        origin(&world);
        store_pages(&world).await;
        let clients: Vec<_> = (0..12)
            .map(|number| {
                let mut client = world.client();
                tokio::task::spawn_local(async move { client.get(&format!("/large{number}"), "").await })
            })
            .collect();
        for client in clients {
            expect_whole(&client.await.unwrap(), &body_of(LARGE_BYTES));
        }
        expect_pages(&world).await;
    });
}

#[test]
fn known_length_that_finds_the_storage_taken_by_others_under_way_passes_on_as_well() {
    run("", async |world| {
        let whole = body_of(900_000);
        let answer = whole.clone();
        world.origin(serve_each(move |_| {
            [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len()).into_bytes(), answer.clone()]
                .concat()
        }));
        // Slow readers keep all objects being fetched from being evicted.
        let clients: Vec<_> = (0..6)
            .map(|number| {
                let (mut near, far) = tokio::io::duplex(16 << 10);
                let serving = engine::transport::serve(
                    Rc::clone(&world.context),
                    far,
                    world.peer(),
                    Vec::new(),
                    engine::transport::FirstProtocol::Either,
                );
                tokio::task::spawn_local(serving);
                tokio::task::spawn_local(async move {
                    let request = format!("GET /{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                    near.write_all(request.as_bytes()).await.unwrap();
                    read_slowly(&mut near, 60_000, usize::MAX).await
                })
            })
            .collect();
        for client in clients {
            let got = client.await.unwrap();
            assert!(got.ends_with(&whole), "{} bytes", got.len());
        }
    });
}

#[test]
fn purge_forgets_that_it_was_too_large() {
    run("sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }", async |world| {
        origin(&world);
        let mut client = world.client();
        client.get("/large", "").await;
        client.send("PURGE /large HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
        client.response().await;
        client.get("/large", "").await;
        assert_eq!(world.count(Main::CacheHitmiss), 0);
    });
}
