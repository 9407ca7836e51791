//! What a hit costs: it allocates nothing, and how many instructions it takes can be measured. What is counted is one
//! process, which is why these tests have a binary of their own.
//!
//! The connection is in memory, and nothing but the engine runs between a request and its response: no event loop, no sockets.
//!
//! ```text
//! cargo test --release -p engine --test hit_cost --no-run
//! HITS=2000 HIT_POLICY=rfc valgrind --tool=callgrind --toggle-collect='*hit_cost*measured*' \
//!     target/release/deps/hit_cost-… --ignored --exact hits_in_memory --test-threads=1
//! ```

mod support;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use support::counting::{self, Counting};
use support::{World, always};
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::LocalSet;

/// What load generators send.
const REQUEST: &[u8] = b"GET /b1 HTTP/1.1\r\nHost: example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) load/1.0\r\n\
    Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\r\n";

#[global_allocator]
static COUNTING: Counting = Counting;

/// A client that has as many requests as it was given, and drops the responses.
#[derive(Clone, Default)]
struct Wire(Rc<WireState>);

#[derive(Default)]
struct WireState {
    requests: Cell<u64>,
    received_bytes: Cell<usize>,
    last: RefCell<Vec<u8>>,
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(left) = self.0.requests.get().checked_sub(1) else { return Poll::Pending };
        self.0.requests.set(left);
        room.put_slice(REQUEST);
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

/// A connection and what serves it.
type Session = (Wire, Pin<Box<dyn Future<Output = ()>>>);

/// Sends requests one at a time, over one connection after the other.
fn send_hits(sessions: &mut [Session], context: &mut Context<'_>, count: u64) -> Poll<()> {
    let connections = sessions.len() as u64;
    for at in 0..count {
        let (wire, session) = &mut sessions[(at % connections) as usize];
        wire.0.requests.set(1);
        assert!(session.as_mut().poll(context).is_pending());
    }
    Poll::Ready(())
}

/// Serves that many hits of an object with a body of 1 KiB over some connections, once everything has grown to its size.
fn serve_hits(policy: &str, count: u64, connections: usize) -> (u64, Vec<u8>) {
    const BODY_BYTES: usize = 1024;
    const WARM_UP: u64 = 200;
    // Time runs, as in production: a paused clock is a lock and a test of its own with each reading.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::new(Parameters { http_policy: policy.to_owned(), ..Parameters::default() }));
        world.load("boot", "");
        let body: &'static str = "x".repeat(BODY_BYTES).leak();
        world.origin(always("Cache-Control: max-age=3600\r\nContent-Type: text/plain\r\n", body));
        world.client().get("/b1", "").await;
        let serve = || -> Session {
            let (context, wire) = (Rc::clone(&world.context), Wire::default());
            let speaks = engine::transport::Speaks::Either;
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
#[ignore = "a measurement, to be run under callgrind"]
fn hits_in_memory() {
    let policy = std::env::var("HIT_POLICY").unwrap_or_else(|_| "varnish".to_owned());
    let count = std::env::var("HITS").map_or(1000, |hits| hits.parse().unwrap());
    let connections = std::env::var("HIT_CONNECTIONS").map_or(1, |number| number.parse().unwrap());
    serve_hits(&policy, count, connections);
}
