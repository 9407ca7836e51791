//! Abuse by HTTP/2 clients, in raw frames: each ends with the right error, a counter and a bounded
//! cost, and others are served meanwhile.

use crate::support::{OriginRequest, Response, World, always, run_with, serve_each};
use engine::transport::{FirstProtocol, serve};
use http2::frame::{ErrorCode, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use surface::counter::Main;
use surface::limits::{H2_CONTINUATIONS_MAX, H2_EMPTY_FRAMES_MAX, REQUEST_BASE_BYTES};
use surface::parameter::{Parameters, feature};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf};

/// `GET http://h/`, in the static table except for the host.
const GET: &[u8] = &[0x82, 0x84, 0x86, 0x41, 1, b'h'];
/// The same with POST.
const POST: &[u8] = &[0x83, 0x84, 0x86, 0x41, 1, b'h'];
/// Buffer size of a connection in memory.
const CONNECTION_BYTES: usize = 64 << 10;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

fn setting(identifier: u16, value: u32) -> Vec<u8> {
    [&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

fn get(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, GET)
}

fn cancel(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &(ErrorCode::Cancel as u32).to_be_bytes())
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// The numbers of a client's streams.
fn streams() -> impl Iterator<Item = u32> {
    (0..).map(|number| 2 * number + 1)
}

/// Everything that a client received until its connection ended.
#[derive(Default, Debug)]
struct Received {
    /// The code of the last GOAWAY.
    goaway_code: Option<ErrorCode>,
    /// Frames by kind.
    frames: HashMap<u8, usize>,
    /// The codes of RST_STREAM by stream.
    resets: HashMap<u32, u32>,
}

impl Received {
    fn count(&self, kind: u8) -> usize {
        self.frames.get(&kind).copied().unwrap_or(0)
    }

    /// Reads frames until the connection ends; reports when it receives a GOAWAY with an error.
    async fn all(mut from: ReadHalf<DuplexStream>, has_notice: &Cell<bool>) -> Received {
        let mut received = Received::default();
        loop {
            let mut head = [0; HEAD_BYTES];
            if from.read_exact(&mut head).await.is_err() {
                return received;
            }
            let head = FrameHead::parse(&head);
            let mut payload = vec![0; head.payload_bytes as usize];
            if from.read_exact(&mut payload).await.is_err() {
                return received;
            }
            *received.frames.entry(head.kind).or_default() += 1;
            match (head.kind, &payload[..]) {
                (kind::GOAWAY, [_, _, _, _, code @ ..]) => {
                    received.goaway_code = ErrorCode::of(u32::from_be_bytes(code[..4].try_into().unwrap()));
                    has_notice.set(received.goaway_code != Some(ErrorCode::NoError));
                }
                (kind::RST_STREAM, code) => {
                    received.resets.insert(head.stream, u32::from_be_bytes(code.try_into().unwrap()));
                }
                _ => {}
            }
        }
    }
}

fn connect(world: &World, bytes: usize) -> DuplexStream {
    let (near, far) = tokio::io::duplex(bytes);
    tokio::task::spawn_local(serve(Rc::clone(&world.context), far, world.peer(), Vec::new(), FirstProtocol::Http2));
    near
}

/// Sends all pieces on one connection, as fast as they are accepted, while reading; returns when
/// the daemon has ended the connection, with the number of pieces it accepted.
async fn attack(world: &World, pieces: impl IntoIterator<Item = Vec<u8>>) -> (Received, usize) {
    let (reader, mut writer) = tokio::io::split(connect(world, CONNECTION_BYTES));
    let has_notice = Cell::new(false);
    let write = async {
        let start = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[])].concat();
        writer.write_all(&start).await.unwrap();
        let mut count = 0;
        for piece in pieces {
            if has_notice.get() || writer.write_all(&piece).await.is_err() {
                break;
            }
            count += 1;
            // Lets other tasks run.
            tokio::task::yield_now().await;
        }
        count
    };
    tokio::join!(Received::all(reader, &has_notice), write)
}

/// Once all connections of a test have ended. The loop's grant may be larger: it is kept for later
/// requests.
fn expect_nothing_held(world: &World) {
    let held = world.count(Main::ReqBytes);
    assert!(held <= REQUEST_BASE_BYTES as u64, "{held} bytes are still held");
}

fn with_http2(parameters: &mut Parameters) {
    parameters.feature |= feature::HTTP2;
}

/// Runs a test in which `/` is in the cache, and requests it by another client before and after.
fn while_others_are_served<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    story: impl FnOnce(Rc<World>) -> F,
) {
    let parameters = |parameters: &mut Parameters| {
        with_http2(parameters);
        change(parameters);
    };
    run_with(parameters, "", async |world| {
        world.origin(always("Cache-Control: max-age=1000\r\n", "hello"));
        served(&world).await;
        story(Rc::clone(&world)).await;
        served(&world).await;
        settle().await;
        expect_nothing_held(&world);
    });
}

async fn served(world: &World) {
    let response: Response = world.client().get("/", "").await;
    assert_eq!((response.status(), response.text().as_str()), (200, "hello"));
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The daemon has ended one connection for abuse, and logged it.
fn ended_for(world: &World, received: &Received, counter: Main) {
    assert_eq!(received.goaway_code, Some(ErrorCode::EnhanceYourCalm), "{received:?} {}", world.story());
    let (close, reason) = match counter {
        Main::H2AbuseResets => (Main::ScRapidReset, "SessClose RAPID_RESET"),
        _ => (Main::ScOverload, "SessClose OVERLOAD"),
    };
    assert_eq!((world.count(counter), world.count(close)), (1, 1), "{}", world.story());
    world.expect_log("SessError HTTP/2: ");
    world.expect_log(reason);
}

#[test]
fn requests_that_are_taken_back_at_once_end_the_connection() {
    while_others_are_served(
        |_| {},
        async |world| {
            let pieces = streams().map(|stream| [get(stream), cancel(stream)].concat());
            let (received, taken) = attack(&world, pieces).await;
            ended_for(&world, &received, Main::H2AbuseResets);
            assert!(taken < 10_000, "{taken}");
            assert!(world.count(Main::ClientReq) <= 102, "{}", world.count(Main::ClientReq));
        },
    );
}

#[test]
fn vcl_can_allow_a_client_fewer_resets() {
    let vcl = "import h2; sub vcl_recv { if (h2.is()) { h2.rapid_reset_limit(3); set req.http.left = h2.rapid_reset_budget(); } }
        sub vcl_deliver { set resp.http.left = req.http.left; }";
    run_with(with_http2, vcl, async |world| {
        world.origin(always("", "hello"));
        // The first one is answered: from then on the limit holds.
        let first = vec![get(1)];
        let rest = streams().skip(1).map(|stream| [get(stream), cancel(stream)].concat());
        let (received, _) = attack(&world, first.into_iter().chain(rest)).await;
        ended_for(&world, &received, Main::H2AbuseResets);
        world.expect_log("ReqHeader left: 3.000");
        assert!(world.count(Main::ClientReq) <= 7, "{}", world.story());
    });
}

#[test]
fn requests_that_we_are_made_to_reset_end_the_connection() {
    // One piece of a request, and the one that makes it wrong.
    let provocations: [fn(u32) -> Vec<u8>; 2] = [
        // A window of more than 2^31 - 1.
        |stream| [frame(kind::HEADERS, flag::END_HEADERS, stream, POST), window_update(stream, 0x7fff_ffff)].concat(),
        // A body that is longer than announced: content-length: 1.
        |stream| {
            let head = [POST, &[0x0f, 13, 1, b'1']].concat();
            let body = frame(kind::DATA, flag::END_STREAM, stream, b"22");
            [frame(kind::HEADERS, flag::END_HEADERS, stream, &head), body].concat()
        },
    ];
    for (number, provoke) in provocations.into_iter().enumerate() {
        run_with(with_http2, "sub vcl_recv { return (pass); }", async |world| {
            let at_work = Rc::new(Cell::new(0_usize));
            let most = Rc::new(Cell::new(0));
            world.origin(slow(&at_work, &most));
            let (received, taken) = attack(&world, streams().map(provoke)).await;
            ended_for(&world, &received, Main::H2AbuseResets);
            assert!(taken < 10_000, "{number}: {taken}");
            assert!(most.get() <= 100, "{number}: {} at a time", most.get());
        });
    }
}

#[test]
fn a_body_after_its_end_costs_the_stream_and_a_few_of_them_the_connection() {
    while_others_are_served(
        |_| {},
        async |world| {
            let pieces = streams().map(|stream| [get(stream), frame(kind::DATA, 0, stream, b"more")].concat());
            let (received, _) = attack(&world, pieces).await;
            assert!(
                matches!(received.goaway_code, Some(ErrorCode::ProtocolError | ErrorCode::StreamClosed)),
                "{received:?}"
            );
            assert_eq!(world.count(Main::ScRxJunk), 1, "{}", world.story());
        },
    );
}

/// An origin that answers slowly, and records its number of concurrent requests.
fn slow(
    at_work: &Rc<Cell<usize>>,
    most: &Rc<Cell<usize>>,
) -> impl Fn(DuplexStream) -> std::pin::Pin<Box<dyn Future<Output = ()>>> + use<> {
    let (at_work, most) = (Rc::clone(at_work), Rc::clone(most));
    move |mut stream| {
        let (at_work, most) = (Rc::clone(&at_work), Rc::clone(&most));
        Box::pin(async move {
            let mut byte = [0; 1];
            while let Ok(1) = stream.read(&mut byte).await {
                at_work.set(at_work.get() + 1);
                most.set(most.get().max(at_work.get()));
                let mut rest = [0; 4096];
                let gone = tokio::time::timeout(Duration::from_secs(2), async {
                    while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
                })
                .await;
                at_work.set(at_work.get() - 1);
                if gone.is_ok() || stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.is_err() {
                    return;
                }
            }
        })
    }
}

#[test]
fn an_endless_header_block_ends_the_connection() {
    let blocks: [(Vec<u8>, usize); 3] = [
        (frame(kind::CONTINUATION, 0, 1, &[]), H2_CONTINUATIONS_MAX),
        (frame(kind::CONTINUATION, 0, 1, &[0x82]), H2_CONTINUATIONS_MAX),
        // One field that never ends.
        (frame(kind::CONTINUATION, 0, 1, &[b'a'; 16384]), 8),
    ];
    for (continuation, most) in blocks {
        while_others_are_served(
            |_| {},
            async |world| {
                let field = [GET, &[0x40, 1, b'x', 0x7f, 0xff, 0xff, 0xff, 0x07]].concat();
                let start = frame(kind::HEADERS, flag::END_STREAM, 1, &field);
                let pieces = std::iter::once(start).chain(std::iter::repeat(continuation.clone()));
                let (received, taken) = attack(&world, pieces).await;
                assert_eq!(received.goaway_code, Some(ErrorCode::EnhanceYourCalm));
                assert_eq!(world.count(Main::H2AbuseHeaders), 1);
                let pending = CONNECTION_BYTES / continuation.len() + 2;
                assert!(taken <= most + pending, "{taken}");
            },
        );
    }
}

#[test]
fn fields_that_unpack_a_thousandfold_are_not_kept() {
    while_others_are_served(
        |_| {},
        async |world| {
            // A field of 4,000 bytes enters the dynamic table; then each byte repeats it.
            let mut bomb = GET.to_vec();
            bomb.extend_from_slice(&[0x40, 1, b'x', 0x7f]);
            let mut length = 3_900 - 127;
            while length >= 128 {
                bomb.push((length % 128) as u8 | 0x80);
                length /= 128;
            }
            bomb.push(length as u8);
            bomb.extend_from_slice(&[b'a'; 3_900]);
            bomb.extend_from_slice(&vec![0xbe; 12_000]);
            let pieces = streams()
                .take(1000)
                .map(|stream| frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &bomb));
            let (received, _) = attack(&world, pieces).await;
            assert_eq!(received.goaway_code, Some(ErrorCode::EnhanceYourCalm), "{received:?}");
            assert_eq!(world.count(Main::H2AbuseHeaders), 1);
            let (peak, _) = world.engine.memory.peak_and_now();
            assert!(peak < 4 << 20, "{peak}");
        },
    );
}

#[test]
fn frames_that_carry_nothing_end_the_connection() {
    let floods = [
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::PING, flag::ACK, 0, &[0; 8]),
        frame(kind::SETTINGS, 0, 0, &[]),
        frame(kind::SETTINGS, 0, 0, &setting(4, 65535)),
        frame(kind::PRIORITY, 0, 5, &[0, 0, 0, 3, 1]),
        frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=1"),
        frame(0xfe, 0, 0, b"what is this"),
        window_update(0, 1),
    ];
    for flood in floods {
        while_others_are_served(
            |_| {},
            async |world| {
                let (received, taken) = attack(&world, std::iter::repeat(flood.clone())).await;
                ended_for(&world, &received, Main::H2AbuseFrames);
                let pending = CONNECTION_BYTES / flood.len() + 2;
                assert!(taken <= H2_EMPTY_FRAMES_MAX as usize + pending, "{taken}");
                let answers = received.count(kind::PING) + received.count(kind::SETTINGS);
                assert!(answers <= H2_EMPTY_FRAMES_MAX as usize + 2, "{answers}");
            },
        );
    }
}

#[test]
fn a_window_that_opens_byte_by_byte_ends_the_connection() {
    run_with(with_http2, "", async |world| {
        let body = "x".repeat(1 << 20);
        let answer = always("Cache-Control: max-age=1000\r\n", &body);
        world.origin(answer);
        assert_eq!(world.client().get("/", "").await.body.len(), body.len());
        let start = [frame(kind::SETTINGS, 0, 0, &setting(4, 0)), get(1)].concat();
        let bytes = std::iter::repeat(window_update(1, 1));
        let (received, taken) = attack(&world, std::iter::once(start).chain(bytes)).await;
        ended_for(&world, &received, Main::H2AbuseFrames);
        let pending = CONNECTION_BYTES / window_update(1, 1).len() + 2;
        assert!(taken <= H2_EMPTY_FRAMES_MAX as usize + pending, "{taken}");
    });
}

#[test]
fn heads_that_wait_are_counted_and_end_the_connection_when_memory_is_short() {
    const STREAMS: usize = 30;
    let with_few = |parameters: &mut Parameters| {
        with_http2(parameters);
        parameters.h2_max_concurrent_streams = STREAMS as u64;
        parameters.h2_rapid_reset_limit = 0;
    };
    let with_little = |parameters: &mut Parameters| {
        with_few(parameters);
        parameters.requests_memory_max = 7 << 19;
    };
    for (parameters, is_short) in [(&with_few as &dyn Fn(&mut Parameters), false), (&with_little, true)] {
        run_with(parameters, "sub vcl_recv { return (pass); }", async |world| {
            world.origin(slow(&Rc::default(), &Rc::default()));
            // The work on streams that were reset goes on, so the requests after them wait. Their
            // heads take 21 times 3,000 bytes when decoded.
            let large = [GET, &[0x40, 1, b'a', 0x7f, 0xb9, 0x16], &[b'x'; 3_000], &[0xbe; 20]].concat();
            let given_up = streams().take(STREAMS).map(get).chain(streams().take(STREAMS).map(cancel));
            let waiting = streams().skip(STREAMS).take(STREAMS);
            let waiting =
                waiting.map(|stream| frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &large));
            let attack = attack(&world, given_up.chain(waiting));
            // A connection that is ended waits for its work.
            let limit = Duration::from_millis(if is_short { 10_000 } else { 500 });
            let attack = tokio::time::timeout(limit, attack).await;
            let (peak, _) = world.engine.memory.peak_and_now();
            if is_short {
                let (received, _) = attack.unwrap_or_else(|_| panic!("it goes on: {peak} {}", world.story()));
                assert_eq!(received.goaway_code, Some(ErrorCode::EnhanceYourCalm), "{received:?}");
                world.expect_log("SessError HTTP/2: Out of memory for requests");
                assert!(peak < 4 << 20, "{peak}");
            } else {
                assert!(peak > 3 << 20, "{peak}");
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            expect_nothing_held(&world);
        });
    }
}

#[test]
fn an_upload_of_nothing_ends_the_connection() {
    run_with(with_http2, "", async |world| {
        world.origin(slow(&Rc::default(), &Rc::default()));
        let start = frame(kind::HEADERS, flag::END_HEADERS, 1, POST);
        let nothing = std::iter::repeat(frame(kind::DATA, 0, 1, &[]));
        let (received, _) = attack(&world, std::iter::once(start).chain(nothing)).await;
        ended_for(&world, &received, Main::H2AbuseFrames);
    });
}

#[test]
fn client_that_does_not_read_is_no_longer_read_from_and_times_out() {
    while_others_are_served(
        |_| {},
        async |world| {
            let began = tokio::time::Instant::now();
            let mut client = connect(&world, 4096);
            client.write_all(PREFACE).await.unwrap();
            client.write_all(&frame(kind::SETTINGS, 0, 0, &[])).await.unwrap();
            let mut taken = 0;
            for stream in streams() {
                let sent = tokio::time::timeout(Duration::from_secs(1), client.write_all(&get(stream))).await;
                if sent.is_err() {
                    break;
                }
                taken += 1;
            }
            // A response's head takes more than twenty bytes; the part not accepted waits in one
            // buffer of 16 KiB.
            assert!(taken < 5_000, "{taken}");
            let (_, now) = world.engine.memory.peak_and_now();
            assert!(now <= 110 * REQUEST_BASE_BYTES as u64, "{now}");
            while world.count(Main::ScTxError) == 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let parameters = world.engine.parameters.load();
                let longest = 2.0 * parameters.idle_send_timeout + parameters.send_timeout;
                assert!(began.elapsed().as_secs_f64() < longest, "{}", world.story());
            }
            assert!(client.write_all(&get(1)).await.is_err(), "it is closed");
        },
    );
}

#[test]
fn windows_that_never_open_hold_little_and_end_in_time() {
    run_with(with_http2, "", async |world| {
        let body = "x".repeat(1 << 20);
        let answer =
            format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        world.origin(serve_each(move |_: &OriginRequest| answer.clone().into_bytes()));
        assert_eq!(world.client().get("/", "").await.body.len(), body.len());
        let (before, _) = world.engine.memory.peak_and_now();
        let closed = frame(kind::SETTINGS, 0, 0, &setting(4, 0));
        let pieces = std::iter::once(closed).chain(streams().take(100).map(get));
        let began = tokio::time::Instant::now();
        let (received, _) = attack(&world, pieces).await;
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
        assert_eq!((received.count(kind::HEADERS), received.count(kind::DATA)), (100, 0));
        let (peak, _) = world.engine.memory.peak_and_now();
        assert!(peak - before <= 101 * REQUEST_BASE_BYTES as u64 + (1 << 20), "{peak} {before}");
        expect_nothing_held(&world);
    });
}

#[test]
fn half_of_something_ends_in_time() {
    let whole = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &setting(3, 100)), get(1)].concat();
    let block = [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[]), frame(kind::HEADERS, 0, 1, GET)].concat();
    let halves =
        [Vec::new(), whole[..3].to_vec(), whole[..27].to_vec(), whole[..40].to_vec(), whole[..46].to_vec(), block];
    for half in halves {
        while_others_are_served(
            |_| {},
            async |world| {
                let idle = world.engine.parameters.load().timeout_idle;
                let began = tokio::time::Instant::now();
                let (reader, mut writer) = tokio::io::split(connect(&world, CONNECTION_BYTES));
                writer.write_all(&half).await.unwrap();
                Received::all(reader, &Cell::new(false)).await;
                let lasted = began.elapsed().as_secs_f64();
                assert!(lasted <= 3.0 * idle + 1.0, "{lasted} s for {half:?}");
                settle().await;
                let ended = [Main::ScRxTimeout, Main::ScRxCloseIdle].map(|counter| world.count(counter));
                assert_eq!(ended.iter().sum::<u64>(), 1, "{half:?} {}", world.story());
            },
        );
    }
}
