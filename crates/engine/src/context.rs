//! What a request machine works with: [`Engine`], shared by all event loops, and [`Loop`], private to one.
//!
//! Owners: the worker makes one `Engine` (in an `Arc`) and one `Loop` (in an `Rc`) per event loop thread; sessions and
//! fetches hold clones. Nothing here is locked on the path of a hit: parameters and the VCL table are swapped whole.
//! Next file: `session.rs`.

use arc_swap::ArcSwap;
use backend::{Dial, Pool, TestableRandom};
use cache::Cache;
use shm::counters::MainCounters;
use shm::log::LogRing;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use surface::counter::{Main, Mempool};
use surface::parameter::Parameters;
use vmods::{NoSockets, SocketOptions};

use crate::clock::Clock;
use crate::loaded_vcl::VclTable;
use crate::memory::{Bound, Ledger, RequestMemory};
use crate::mempool_counts::{Counted, PoolCounters};
use crate::panics::PanicHook;
use crate::request::pool::RequestPool;
use crate::storages::Storages;
use crate::vxid::VxidSource;

/// What all event loops share.
pub struct Engine {
    /// Current parameter values.
    pub parameters: ArcSwap<Parameters>,
    /// The cache.
    pub cache: Cache,
    /// What it stores in.
    pub storages: Storages,
    /// The shared-memory log.
    pub ring: LogRing,
    /// Loaded VCLs, labels and which one is active.
    pub vcl: ArcSwap<VclTable>,
    /// Transaction ids.
    pub vxids: VxidSource,
    /// `server.identity`.
    pub identity: String,
    /// `server.hostname`.
    pub hostname: String,
    /// Concurrent pipes (gauge `n_pipe`, limit `pipe_sess_max`).
    pub pipes: AtomicU32,
    /// Set when the worker stops: sessions close after the request in flight.
    pub draining: AtomicBool,
    /// `debug.fragfetch`: most bytes a fetch reads at once; 0 = no limit.
    pub fragment_fetch_bytes: AtomicU64,
    /// The generator of directors and of `std.random`, which `debug.srandom` seeds.
    pub random: TestableRandom,
    /// What VMODs keep across VCLs and requests.
    pub vmod_state: vmods::SharedState,
    /// Told about every panic that cost a request.
    pub panics: PanicHook,
    /// What all requests hold.
    pub memory: RequestMemory,
}

impl Bound for Engine {
    fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    fn limit_bytes(&self) -> u64 {
        self.parameters.load().requests_memory_max
    }
}

/// What one event loop has for itself.
pub struct Loop {
    /// The shared part.
    pub engine: Arc<Engine>,
    /// This loop's counters; the worker sums them into the segment.
    pub counters: Arc<MainCounters>,
    /// Opens connections to origins.
    pub dial: Rc<dyn Dial>,
    /// Idle connections to origins.
    pub pool: Pool,
    /// Options of client sockets; see [`Loop::with_sockets`].
    pub sockets: Rc<dyn SocketOptions>,
    /// Time.
    pub clock: Clock,
    /// Buffers of requests that are over, for the next ones.
    pub requests: RequestPool,
    /// Counters of its sessions and fetches.
    pub(crate) sessions: Arc<PoolCounters>,
    pub(crate) fetches: Arc<PoolCounters>,
    /// What its requests and fetches hold.
    pub(crate) memory: Rc<Ledger>,
    /// Requests and fetches being worked on: what a stop waits for. See [`Loop::work`].
    in_flight: Cell<usize>,
}

/// Counters of the sections MEMPOOL, for what one loop has of each.
#[derive(Clone, Default)]
pub struct LoopPools {
    /// `req`: requests.
    pub requests: Arc<PoolCounters>,
    /// `sess`: sessions.
    pub sessions: Arc<PoolCounters>,
    /// `busyobj`: fetches.
    pub fetches: Arc<PoolCounters>,
}

impl Loop {
    /// A loop's own part. `counters` are summed up by whoever publishes them.
    #[must_use]
    pub fn new(engine: Arc<Engine>, counters: Arc<MainCounters>, dial: Rc<dyn Dial>, clock: Clock) -> Loop {
        Loop {
            memory: Ledger::new(Arc::<Engine>::clone(&engine), Arc::clone(&counters)),
            engine,
            counters,
            dial,
            pool: Pool::new(),
            sockets: Rc::new(NoSockets),
            clock,
            requests: RequestPool::default(),
            sessions: Arc::default(),
            fetches: Arc::default(),
            in_flight: Cell::new(0),
        }
    }

    /// The same with somebody who knows the options of client sockets.
    #[must_use]
    pub fn with_sockets(self, sockets: Rc<dyn SocketOptions>) -> Loop {
        Loop { sockets, ..self }
    }

    /// The same with requests, sessions and fetches counted where somebody publishes it. How large the last two are says
    /// `mempool_sizes.rs`, which knows them.
    #[must_use]
    pub fn with_pool_counters(self, pools: LoopPools) -> Loop {
        let LoopPools { requests, sessions, fetches } = pools;
        Loop { requests: RequestPool::counting(requests), sessions, fetches, ..self }
    }

    /// Counts a session for as long as the result lives.
    #[must_use]
    pub fn count_session(&self) -> Counted {
        Counted::new(&self.sessions)
    }

    /// Sessions that are counted at present.
    #[must_use]
    pub fn open_sessions(&self) -> u64 {
        self.sessions.get(Mempool::Live as usize)
    }

    /// Requests and fetches being worked on.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Marks a request or fetch as being worked on for as long as the result lives. Idle connections hold none.
    #[must_use]
    pub fn work(self: &Rc<Self>) -> Work {
        self.in_flight.set(self.in_flight.get() + 1);
        self.memory.begin();
        Work(Rc::clone(self))
    }

    /// Adds one to a counter.
    pub fn count(&self, counter: Main) {
        self.counters.add(counter, 1);
    }
}

/// A request or fetch being worked on, see [`Loop::work`].
pub struct Work(Rc<Loop>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.memory.end();
    }
}
