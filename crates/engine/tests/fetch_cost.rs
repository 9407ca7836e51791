//! Cost of a miss and of a pass: number of allocations, against a budget, and number of
//! instructions.
//!
//! Client and origin are in memory; the origin's own part allocates nothing. As in `hit_cost.rs`,
//! this is one process.

mod support;

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use support::World;
use support::counting::{self, Counting};
use support::measured::{Measured, OtherLoops};
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::task::LocalSet;

#[global_allocator]
static COUNTING: Counting = Counting;

/// A client that requests another page each time.
#[derive(Clone, Default)]
struct Wire(Rc<WireState>);

#[derive(Default)]
struct WireState {
    asked: Cell<u64>,
    wanted: Cell<u64>,
    received_bytes: Cell<usize>,
    waker: RefCell<Option<Waker>>,
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        use std::io::Write as _;
        let state = &self.0;
        if state.asked.get() == state.wanted.get() {
            *state.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        state.asked.set(state.asked.get() + 1);
        let mut line = [0; 64];
        let mut rest = &mut line[..];
        write!(rest, "GET /{} HTTP/1.1\r\n", state.asked.get()).unwrap();
        let left = rest.len();
        room.put_slice(&line[..64 - left]);
        room.put_slice(
            b"Host: example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) load/1.0\r\n\
            Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\n\r\n",
        );
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.received_bytes.set(self.0.received_bytes.get() + bytes.len());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

const BODY_BYTES: usize = 1024;

/// Answers each request with the same bytes.
async fn answer(mut stream: support::OriginStream, response: &'static [u8]) {
    let mut room = [0; 4096];
    let mut filled = 0;
    while let Ok(read @ 1..) = stream.read(&mut room[filled..]).await {
        filled += read;
        if room[..filled].ends_with(b"\r\n\r\n") {
            filled = 0;
            if stream.write_all(response).await.is_err() {
                return;
            }
        }
    }
}

/// Serves that many requests, each of which is fetched, once everything has grown to its size.
/// Returns the allocations.
fn serve_fetches(policy: &str, vcl: &str, counter: Main, count: u64) -> u64 {
    const WARM_UP: u64 = 300;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::new(Parameters { http_policy: policy.to_owned(), ..Parameters::default() }));
        world.load("boot", vcl);
        let body = "x".repeat(BODY_BYTES);
        let response = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Type: text/plain\r\nContent-Length: {BODY_BYTES}\r\n\r\n{body}"
        );
        let response: &'static [u8] = response.into_bytes().leak();
        world.origin(move |stream| answer(stream, response));
        let wire = Wire::default();
        let session = engine::transport::serve(
            Rc::clone(&world.context),
            wire.clone(),
            world.peer(),
            Vec::new(),
            engine::transport::FirstProtocol::Either,
        );
        tokio::task::spawn_local(session);
        fetch_all(&wire, WARM_UP).await;
        let (fetches, allocations) = (world.count(counter), counting::allocations());
        fetch_all(&wire, count).await;
        let allocations = counting::allocations() - allocations;
        assert_eq!(world.count(counter) - fetches, count);
        allocations
    })
}

/// Sends that many requests, one after the other.
async fn fetch_all(wire: &Wire, count: u64) {
    for _ in 0..count {
        let received = wire.0.received_bytes.get();
        wire.0.wanted.set(wire.0.wanted.get() + 1);
        if let Some(waker) = wire.0.waker.borrow_mut().take() {
            waker.wake();
        }
        while wire.0.received_bytes.get() < received + BODY_BYTES || wire.0.waker.borrow().is_none() {
            tokio::task::yield_now().await;
        }
    }
}

const PASS: &str = "sub vcl_recv { return (pass); }";

/// Allocations that a miss and a pass may make: state that survives a turn of the event loop has
/// memory of its own, since a fetch that waits should hold no more than it needs. Tables that grow
/// now and then count as fractions.
const BUDGET: [(&str, &str, Main, u64); 2] = [("miss", "", Main::CacheMiss, 24), ("pass", PASS, Main::SPass, 17)];

#[test]
fn fetches_allocate_no_more_than_their_budget() {
    const COUNT: u64 = 1000;
    for (name, vcl, counter, budget) in BUDGET {
        let allocations = serve_fetches("varnish", vcl, counter, COUNT);
        assert!(allocations <= budget * COUNT, "{name}: {allocations} allocations in {COUNT} fetches");
    }
}

#[test]
#[ignore = "a measurement, to be run under callgrind"]
fn fetches_in_memory() {
    let measured = Measured::from_environment();
    let is_pass = std::env::var("COST_ROW").is_ok_and(|row| row == "pass");
    let (vcl, counter) = if is_pass { (PASS, Main::SPass) } else { ("", Main::CacheMiss) };
    let _others = OtherLoops::start(measured.loops - 1, move || _ = serve_fetches("rfc", vcl, counter, 1));
    serve_fetches(&measured.policy, vcl, counter, measured.requests);
}
