//! Memory that clients and origins can make the engine use: bodies that inflate a thousandfold, and
//! readers that don't read.

use crate::support::{Client, OriginRequest, OriginStream, World, always, run_with, serve_each};
use flate2::write::GzEncoder;
use std::io::Write;
use std::rc::Rc;
use surface::counter::Main;
use surface::limits::{FILTER_STEP_BYTES_MAX, GUNZIP_STATE_BYTES, PASS_IN_FLIGHT_BYTES_MAX, REQUEST_BASE_BYTES};
use tokio::io::AsyncWriteExt as _;

/// Inflated size of the bomb; it is received as a thousandth of that.
const INFLATED_BYTES: usize = 32 << 20;
/// Buffer size of a connection in memory.
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

/// An origin that answers everything with that body, already gzipped; `headers` have their line
/// ends.
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

/// Lets all tasks run until none can proceed.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// The plain bytes that the gunzip of a record `Gzip U …` has produced: `side` is `D` for a
/// delivery, `F` for a fetch.
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

#[test]
fn packers_let_others_have_their_turn_after_each_step() {
    for filter in ["brotli", "zstd"] {
        run_with(
            |parameters| (parameters.brotli_level, parameters.zstd_level) = (11, 19),
            &format!("sub vcl_backend_response {{ set beresp.filters = \"{filter}\"; }}"),
            |world| async move {
                let text: String = (0..100_000).map(|number| format!("{number} items ")).take(80_000).collect();
                let steps = text.len() / FILTER_STEP_BYTES_MAX;
                world.origin(always("", &text));
                let turns = Rc::new(std::cell::Cell::new(0));
                let counted = Rc::clone(&turns);
                let other = tokio::task::spawn_local(async move {
                    loop {
                        counted.set(counted.get() + 1);
                        tokio::task::yield_now().await;
                    }
                });
                let begun = turns.get();
                let response = world.client().get("/", "Accept-Encoding: br, zstd\r\n").await;
                other.abort();
                assert_eq!(response.status(), 200);
                world.expect_log("BerespHeader Content-Encoding: ");
                assert!(turns.get() - begun > steps, "{filter}: {} turns, {steps} steps", turns.get());
            },
        );
    }
}

/// A hundred bytes of a response are read, the rest is not.
async fn slow_client(world: &World, target: &str) -> Client {
    let mut client = world.client_with(1024);
    client.send(format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
    client.receive(100).await;
    client
}

async fn slow_clients(world: &World, target: &str, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(slow_client(world, target).await);
    }
    settle().await;
    clients
}

fn held(world: &World) -> usize {
    usize::try_from(world.count(Main::ReqBytes)).unwrap()
}

#[test]
fn memory_of_slow_clients_is_counted_until_they_leave() {
    run_with(
        |_| {},
        "sub vcl_recv { if (req.url == \"/pass\") { return (pass); } }",
        |world| async move {
            world.origin(answering("", bomb()));
            let mut client = world.client();
            client.get("/bomb", "Accept-Encoding: gzip\r\n").await;
            settle().await;
            assert_eq!(held(&world), 0, "nothing is held between requests");
            let clients = slow_clients(&world, "/bomb", 20).await;
            let each = REQUEST_BASE_BYTES + GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX;
            assert_eq!(held(&world), 20 * each);
            drop(clients);
            settle().await;
            assert_eq!(held(&world), 0);
            let clients = slow_clients(&world, "/pass", 20).await;
            let each = 2 * REQUEST_BASE_BYTES + bomb().len() / 2;
            assert!(held(&world) > 20 * each, "{}", held(&world));
            drop(clients);
            settle().await;
            assert_eq!(held(&world), 0);
            assert_eq!(world.count(Main::ReqRefused), 0);
        },
    );
}

#[test]
fn a_client_that_leaves_is_not_waited_for_where_a_vmod_waits() {
    run_with(
        |parameters| parameters.client_half_close = true,
        "import vtc; sub vcl_recv { vtc.sleep(1000s); return (synth(200)); }",
        |world| async move {
            let mut clients = Vec::new();
            for _ in 0..600 {
                let mut client = world.client();
                client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
                clients.push(client);
            }
            settle().await;
            assert_eq!(world.context.in_flight(), 600);
            drop(clients);
            settle().await;
            assert_eq!((world.context.in_flight(), world.count(Main::VclFail)), (0, 0));
            world.expect_log("Witness why client-gone");
        },
    );
}

#[test]
fn vmod_memory_is_counted_until_the_request_is_answered() {
    let vcl = "import cookie; sub vcl_recv { cookie.parse(req.http.Cookie); return (pass); }";
    run_with(
        |_| {},
        vcl,
        |world| async move {
            let answer = Rc::new(tokio::sync::Notify::new());
            let told = Rc::clone(&answer);
            world.origin(move |mut stream: OriginStream| {
                let told = Rc::clone(&told);
                async move {
                    OriginRequest::read(&mut stream).await;
                    told.notified().await;
                    let body = "x".repeat(100_000);
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                }
            });
            let cookies: String = (0..1000).map(|number| format!("c{number}=1;")).collect();
            let mut clients = Vec::new();
            for _ in 0..100 {
                let mut client = world.client_with(1024);
                client.send(format!("GET / HTTP/1.1\r\nHost: example.com\r\nCookie: {cookies}\r\n\r\n")).await;
                clients.push(client);
            }
            settle().await;
            assert!(held(&world) > 100 * 1000 * 200, "{}", held(&world));
            answer.notify_waiters();
            settle().await;
            // They read slowly, but VCL no longer uses cookies.
            assert!(held(&world) < 100 * 1000 * 200, "{}", held(&world));
            drop(clients);
            settle().await;
            assert_eq!(held(&world), 0);
        },
    );
}

#[test]
fn a_request_for_which_there_is_no_memory_is_refused_and_service_goes_on() {
    let limit = 2 << 20;
    run_with(
        |parameters| parameters.requests_memory_max = limit,
        "",
        |world| async move {
            world.origin(answering("", bomb()));
            let mut client = world.client();
            client.get("/bomb", "Accept-Encoding: gzip\r\n").await;
            let each = REQUEST_BASE_BYTES + GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX;
            let most = limit as usize / each;
            let clients = slow_clients(&world, "/bomb", most).await;
            assert!(held(&world) <= limit as usize + each, "{}", held(&world));
            // Decompression and fetches are refused.
            let refused = world.count(Main::ReqRefused);
            assert_eq!(client.get("/bomb", "").await.status(), 503, "{}", world.story());
            assert_eq!(client.get("/other", "").await.status(), 503);
            assert_eq!(world.count(Main::ReqRefused), refused + 2);
            world.expect_log("Error Out of memory for requests (parameter requests_memory_max)");
            world.expect_log("Witness why memory-short");
            // A plain hit is not.
            let plain = client.get("/bomb", "Accept-Encoding: gzip\r\n").await;
            assert!(plain.status() == 200 && plain.is_whole, "{}", world.story());
            drop(clients);
            settle().await;
            let response = client.get("/bomb", "").await;
            assert_eq!((response.status(), response.body.len()), (200, INFLATED_BYTES));
            assert_eq!(client.get("/other", "Accept-Encoding: gzip\r\n").await.status(), 200);
        },
    );
}

#[test]
fn a_body_is_not_filtered_and_kept_when_memory_is_short() {
    let limit = 2 << 20;
    run_with(
        |parameters| parameters.requests_memory_max = limit,
        "import std;
        sub vcl_recv {
            if (req.method == \"POST\") { set req.filters = \"gunzip\"; std.cache_req_body(100KB); return (synth(200)); }
        }",
        |world| async move {
            world.origin(answering("", bomb()));
            world.client().get("/bomb", "Accept-Encoding: gzip\r\n").await;
            let each = REQUEST_BASE_BYTES + GUNZIP_STATE_BYTES + FILTER_STEP_BYTES_MAX;
            let clients = slow_clients(&world, "/bomb", limit as usize / each).await;
            let (held_before, refused) = (held(&world), world.count(Main::ReqRefused));
            let head = "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\n";
            let mut client = world.client();
            client.send(head).await;
            settle().await;
            assert!(held(&world) < held_before + each, "{}", held(&world));
            assert_eq!(world.count(Main::ReqRefused), refused + 1, "{}", world.story());
            world.expect_log("FetchError Out of memory for requests (parameter requests_memory_max)");
            drop(clients);
        },
    );
}

/// The origin sends the first half of each body, waits, and sends the rest.
fn pausing(world: &World) -> Rc<tokio::sync::Notify> {
    let go_on = Rc::new(tokio::sync::Notify::new());
    let gate = Rc::clone(&go_on);
    world.origin(move |mut stream| {
        let gate = Rc::clone(&gate);
        async move {
            OriginRequest::read(&mut stream).await;
            let half = "a short body. ".repeat(70);
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", 2 * half.len());
            let _ = stream.write_all(format!("{head}{half}").as_bytes()).await;
            gate.notified().await;
            let _ = stream.write_all(half.as_bytes()).await;
        }
    });
    go_on
}

#[test]
fn thousand_short_bodies_are_compressed_at_once() {
    const CLIENTS: usize = 1000;
    for filter in ["brotli", "zstd"] {
        for pause in [1, 100] {
            run_with(
                |parameters| {
                    let all = surface::encoding::Encodings::parse("zstd br gzip").unwrap();
                    parameters.http_encodings = all.parameter();
                },
                &format!("sub vcl_backend_response {{ set beresp.filters = \"{filter}\"; }}"),
                |world| async move {
                    let go_on = pausing(&world);
                    let mut clients = Vec::new();
                    for number in 0..CLIENTS {
                        let mut client = world.client();
                        client.send(format!("GET /{number} HTTP/1.1\r\nHost: example.com\r\n\r\n")).await;
                        clients.push(client);
                    }
                    // After a longer pause the encoders are flushed to the clients.
                    tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
                    let each = held(&world) / CLIENTS;
                    assert!(each > REQUEST_BASE_BYTES && each < 3 << 20, "{filter} {pause}: {each}");
                    assert_eq!(world.count(Main::ReqRefused), 0, "{filter} {pause}");
                    go_on.notify_waiters();
                    for client in &mut clients {
                        let response = client.response().await;
                        assert!(response.status() == 200 && response.is_whole, "{}", world.story());
                    }
                    drop(clients);
                    settle().await;
                    assert_eq!(held(&world), 0);
                },
            );
        }
    }
}

#[test]
fn even_plain_requests_are_refused_when_the_memory_is_gone_and_those_under_way_finish() {
    let limit = 2 << 20;
    run_with(
        |parameters| parameters.requests_memory_max = limit,
        "",
        |world| async move {
            let body = "x".repeat(100_000);
            world.origin(always("", &body));
            let mut client = world.client();
            client.get("/a", "").await;
            let most = limit as usize / REQUEST_BASE_BYTES;
            let mut clients = slow_clients(&world, "/a", most).await;
            assert!(held(&world) <= limit as usize + 2 * REQUEST_BASE_BYTES, "{}", held(&world));
            let refused = client.get("/a", "").await;
            assert_eq!((refused.status(), world.count(Main::ReqRefused)), (503, 1), "{}", world.story());
            world.expect_log("SessClose OVERLOAD");
            // So is a head that is received bit by bit.
            let mut half = world.client();
            half.send("GET /a HTTP/1.1\r\n").await;
            assert_eq!(half.rest().await, "");
            for client in &mut clients {
                assert!(client.rest_of_length(100, body.len()).await, "what is under way finishes");
            }
            drop(clients);
            settle().await;
            assert_eq!(world.client().get("/a", "").await.status(), 200);
            assert_eq!(held(&world), 0);
        },
    );
}

#[test]
fn passing_bodies_run_ahead_less_when_memory_is_short_and_arrive_whole() {
    let limit = 4 << 20;
    run_with(
        |parameters| parameters.requests_memory_max = limit,
        "sub vcl_recv { return (pass); }",
        |world| async move {
            let body = "x".repeat(1_000_000);
            world.origin(always("", &body));
            let mut clients = Vec::new();
            while world.count(Main::ReqRefused) == 0 {
                let mut client = world.client_with(1024);
                client.send("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").await;
                settle().await;
                clients.push(client);
            }
            settle().await;
            assert!(
                clients.len() > 8 && held(&world) < limit as usize + (1 << 20),
                "{} {}",
                clients.len(),
                held(&world)
            );
            clients.pop();
            for client in &mut clients {
                let response = client.response().await;
                assert!(response.status() == 200 && response.body.len() == body.len(), "{}", world.story());
            }
            drop(clients);
            settle().await;
            assert_eq!(held(&world), 0);
        },
    );
}

#[test]
fn synthetic_body_of_vcl_backend_error_is_bounded() {
    // Constants take no room in the string memory of VCL, only in the body.
    let text = "x".repeat(30_000);
    let more = format!("set beresp.body += \"{text}\";").repeat(3);
    let vcl = format!("sub vcl_backend_error {{ synthetic(\"{text}\"); {more} return (deliver); }}");
    run_with(
        |parameters| parameters.request_memory_max = 64 << 10,
        &vcl,
        |world| async move {
            let response = world.client().get("/", "").await;
            assert_eq!((response.status(), response.body.len() < 1000), (503, true), "{}", world.story());
            world.expect_log("Out of request memory (parameter request_memory_max)");
        },
    );
}
