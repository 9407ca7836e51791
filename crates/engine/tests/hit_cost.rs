//! Cost of a hit: it allocates nothing, and its number of instructions can be measured. The counts
//! are per process, so these tests have a binary of their own.
//!
//! The connection is in memory, and only the engine runs between a request and its response: no
//! event loop, no sockets.
//!
//! ```text
//! cargo test --profile dist -p engine --test hit_cost --no-run
//! COST_REQUESTS=2000 COST_POLICY=rfc valgrind --tool=callgrind --toggle-collect='*hit_cost*measured*' \
//!     target/dist/deps/hit_cost-… --ignored --exact hits_in_memory --test-threads=1
//! ```

mod support;

use engine::transport::FirstProtocol;
use http2::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use support::counting::{self, Counting};
use support::measured::{Measured, OtherLoops};
use support::{World, always};
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::LocalSet;

/// The request of load generators.
const REQUEST: &[u8] = b"GET /b1 HTTP/1.1\r\nHost: example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) load/1.0\r\n\
    Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\r\n";

/// Streams that an HTTP/2 client opens at once.
const STREAMS_AT_ONCE: usize = 10;

/// The beginning of an HTTP/2 connection, with a window for all responses. Its first request fills
/// the compression table.
fn http2_opening() -> Vec<u8> {
    let window = frame(kind::WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes());
    [PREFACE.to_vec(), frame(kind::SETTINGS, 0, 0, &[]), window].concat()
}

/// A request like [`REQUEST`], whose fields are in the table from the second one on.
fn http2_request(stream: u32) -> Vec<u8> {
    let mut block = b"\x82\x86\x04\x03/b1".to_vec();
    if stream == 1 {
        let fields: [(u8, &[u8]); 4] = [
            (1, b"example.com"),
            (58, b"Mozilla/5.0 (X11; Linux x86_64) load/1.0"),
            (19, b"text/html,application/xhtml+xml,*/*;q=0.8"),
            (17, b"en-US,en;q=0.5"),
        ];
        for (name, value) in fields {
            block.extend_from_slice(&[0x40 | name, value.len() as u8]);
            block.extend_from_slice(value);
        }
    } else {
        block.extend_from_slice(&[0xc1, 0xc0, 0xbf, 0xbe]);
    }
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &block)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A client that sends the given bytes, and drops the responses.
#[derive(Clone, Default)]
struct Wire(Rc<WireState>);

#[derive(Default)]
struct WireState {
    said: RefCell<Vec<u8>>,
    received_bytes: Cell<usize>,
    last: RefCell<Vec<u8>>,
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut said = self.0.said.borrow_mut();
        if said.is_empty() {
            return Poll::Pending;
        }
        room.put_slice(&said);
        said.clear();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.received_bytes.set(self.0.received_bytes.get() + bytes.len());
        let mut last = self.0.last.borrow_mut();
        last.clear();
        last.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A connection and the task that serves it.
type Session = (Wire, Pin<Box<dyn Future<Output = ()>>>);

/// Sends requests one at a time, over one connection after the other.
fn send_hits(sessions: &mut [Session], context: &mut Context<'_>, count: u64) -> Poll<()> {
    let connections = sessions.len() as u64;
    for at in 0..count {
        let (wire, session) = &mut sessions[(at % connections) as usize];
        wire.0.said.borrow_mut().extend_from_slice(REQUEST);
        assert!(session.as_mut().poll(context).is_pending());
    }
    Poll::Ready(())
}

/// Serves that many hits of an object with a body of 1 KiB over some connections, once everything
/// has grown to its size.
fn serve_hits(policy: &str, count: u64, connections: usize) -> (u64, Vec<u8>) {
    const BODY_BYTES: usize = 1024;
    const WARM_UP: u64 = 200;
    // Time runs, as in production: a paused clock costs a lock and a check for each reading.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::new(Parameters { http_policy: policy.to_owned(), ..Parameters::default() }));
        world.load("boot", "");
        let body: &'static str = "x".repeat(BODY_BYTES).leak();
        world.origin(always("Cache-Control: max-age=3600\r\nContent-Type: text/plain\r\n", body));
        world.client().get("/b1", "").await;
        let serve = || -> Session {
            let (context, wire) = (Rc::clone(&world.context), Wire::default());
            let speaks = engine::transport::FirstProtocol::Either;
            (wire.clone(), Box::pin(engine::transport::serve(context, wire, world.peer(), Vec::new(), speaks)))
        };
        let mut sessions: Vec<Session> = (0..connections).map(|_| serve()).collect();
        let warm_up = WARM_UP.max(2 * connections as u64);
        std::future::poll_fn(|context| send_hits(&mut sessions, context, warm_up)).await;
        let (hits, allocations) = (world.count(Main::CacheHit), counting::allocations());
        std::future::poll_fn(|context| measured(&mut sessions, context, count)).await;
        let allocations = counting::allocations() - allocations;
        assert_eq!(world.count(Main::CacheHit) - hits, count);
        let last = sessions[0].0.0.last.take();
        assert!(last.ends_with(&[b'x'; BODY_BYTES]), "{}", String::from_utf8_lossy(&last));
        (allocations, last)
    })
}

/// Sends requests over an HTTP/2 connection, ten at a time.
fn send_http2_hits((wire, session): &mut Session, context: &mut Context<'_>, numbers: Range<u32>) -> Poll<()> {
    let mut request = http2_request(3);
    for round in numbers.step_by(STREAMS_AT_ONCE) {
        for number in round..round + STREAMS_AT_ONCE as u32 {
            request[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&(2 * number + 1).to_be_bytes());
            wire.0.said.borrow_mut().extend_from_slice(&request);
        }
        assert!(session.as_mut().poll(context).is_pending());
    }
    Poll::Ready(())
}

/// As [`send_http2_hits`], under a name by which callgrind finds it.
#[inline(never)]
fn measured_http2(session: &mut Session, context: &mut Context<'_>, numbers: Range<u32>) -> Poll<()> {
    send_http2_hits(session, context, numbers)
}

/// Serves that many hits, as [`serve_hits`] does, over an HTTP/2 connection. Returns the number of
/// allocations.
fn serve_http2_hits(policy: &str, count: u32) -> u64 {
    const WARM_UP: u32 = 201;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let feature = surface::parameter::feature::HTTP2 | Parameters::default().feature;
        let world =
            Rc::new(World::new(Parameters { http_policy: policy.to_owned(), feature, ..Parameters::default() }));
        world.load("boot", "");
        let body: &'static str = "x".repeat(1024).leak();
        world.origin(always("Cache-Control: max-age=3600\r\nContent-Type: text/plain\r\n", body));
        world.client().get("/b1", "").await;
        let wire = Wire::default();
        wire.0.said.borrow_mut().extend_from_slice(&[http2_opening(), http2_request(1)].concat());
        let context = Rc::clone(&world.context);
        let serving = engine::transport::serve(context, wire.clone(), world.peer(), Vec::new(), FirstProtocol::Http2);
        let mut session: Session = (wire, Box::pin(serving));
        std::future::poll_fn(|context| send_http2_hits(&mut session, context, 1..WARM_UP)).await;
        let (hits, allocations) = (world.count(Main::CacheHit), counting::allocations());
        let numbers = WARM_UP..WARM_UP + count;
        std::future::poll_fn(|context| measured_http2(&mut session, context, numbers.clone())).await;
        let allocations = counting::allocations() - allocations;
        assert_eq!(world.count(Main::CacheHit) - hits, u64::from(count));
        assert!(session.0.0.last.take().ends_with(&[b'x'; 1024]));
        allocations
    })
}

/// As [`send_hits`], under a name by which callgrind finds it.
#[inline(never)]
fn measured(sessions: &mut [Session], context: &mut Context<'_>, count: u64) -> Poll<()> {
    send_hits(sessions, context, count)
}

#[test]
fn a_hit_allocates_nothing() {
    for policy in ["varnish", "rfc"] {
        let (allocations, response) = serve_hits(policy, 1000, 1);
        assert_eq!(allocations, 0, "{policy}");
        let has_status = String::from_utf8_lossy(&response).contains("Cache-Status: copal; hit; ttl=3");
        assert_eq!(has_status, policy == "rfc");
    }
}

#[test]
fn a_hit_over_http2_allocates_little() {
    for policy in ["varnish", "rfc"] {
        let allocations = serve_http2_hits(policy, 1000);
        // The future of the request, the fields of its response, and for ten of them the output.
        assert!(allocations <= 3 * 1000, "{policy}: {allocations} for 1000 requests");
    }
}

#[test]
#[ignore = "a measurement, to be run under callgrind"]
fn http2_hits_in_memory() {
    let measured = Measured::from_environment();
    serve_http2_hits(&measured.policy, u32::try_from(measured.requests).unwrap());
}

#[test]
#[ignore = "a measurement, to be run under callgrind"]
fn hits_in_memory() {
    let measured = Measured::from_environment();
    let connections = std::env::var("HIT_CONNECTIONS").map_or(1, |number| number.parse().unwrap());
    let _others = OtherLoops::start(measured.loops - 1, || _ = serve_hits("rfc", 1, 1));
    serve_hits(&measured.policy, measured.requests, connections);
}
