//! Shared state of the request and fetch machines: [`Engine`], shared by all event loops, and
//! [`Loop`], private to one.
//!
//! Ownership: the worker makes one `Engine` (in an `Arc`), and one `Loop` (in an `Rc`) per event
//! loop thread; sessions and fetches hold clones. A hit takes no lock here: parameters and the VCL
//! table are replaced as a whole. Next file: `session.rs`.

use arc_swap::ArcSwap;
use backend::{Dial, Pool, TestableRandom};
use cache::Cache;
use http2::head::HeadPool;
use shm::counters::MainCounters;
use shm::histogram::LoopHistograms;
use shm::log::LogRing;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::task::Waker;
use surface::counter::{Main, Mempool};
use surface::parameter::Parameters;
use surface::program::Called;
use vmods::{NoSockets, SocketOptions};

use crate::challenges::Challenges;
use crate::clock::Clock;
use crate::fetch::spare::Spares;
use crate::fleet::FleetConditions;
use crate::idle_sessions::IdleSessions;
use crate::leak_guard::LeakGuard;
use crate::loaded_vcl::VclTable;
use crate::memory::{Bound, Ledger, RequestMemory, SentAhead};
use crate::mempool_counts::{Counted, PoolCounters};
use crate::origin::http1::received::ReceiveBuffers;
use crate::origin::http2::connections::Connections;
use crate::panics::PanicHook;
use crate::query_rules::QueryRules;
use crate::request::pool::RequestPool;
use crate::slicing::Refusals;
use crate::storages::Storages;
use crate::vxid::{VxidBlock, VxidSource};

/// State shared by all event loops.
pub struct Engine {
    /// Current parameter values.
    pub parameters: ArcSwap<Parameters>,
    /// The cache.
    pub cache: Cache,
    /// The storages of the cache.
    pub storages: Storages,
    /// The shared-memory log.
    pub ring: LogRing,
    /// The loaded VCLs, the labels, and the active VCL.
    pub vcl: ArcSwap<VclTable>,
    /// Source of transaction ids.
    pub vxids: VxidSource,
    /// `server.identity`.
    pub identity: String,
    /// `server.hostname`.
    pub hostname: String,
    /// The unique name of this worker in `Via` towards origins.
    pub pseudonym: String,
    /// Name of the server in responses.
    pub name: Called,
    /// The current number of pipes (gauge `n_pipe`, limit `pipe_sess_max`).
    pub pipes: AtomicU32,
    /// Set when the worker stops: sessions then close after the current request.
    pub draining: AtomicBool,
    /// `debug.fragfetch`: most bytes a fetch reads at a time; 0 = no limit.
    pub fragment_fetch_bytes: AtomicU64,
    /// The random generator for directors and `std.random`; `debug.srandom` seeds it.
    pub random: TestableRandom,
    /// State that VMODs keep across VCLs and requests.
    pub vmod_state: vmods::SharedState,
    /// Called with every panic in a request.
    pub panics: PanicHook,
    /// A compressed copy of an object is being made; there is one at a time.
    pub is_copying: AtomicBool,
    /// Rules of responses about the queries of their resources.
    pub query_rules: QueryRules,
    /// Keys that were fetched with credentials lately.
    pub leaks: LeakGuard,
    /// Answers to HTTP-01 challenges.
    pub challenges: Challenges,
    /// The memory held by all requests.
    pub memory: RequestMemory,
    /// The current number of requests that wait for another's fetch (gauge `n_waiting`, limit
    /// `waiting_requests_max`).
    pub waiting: AtomicU32,
    /// Conditions under which a node of a fleet serves from its cache.
    pub fleet: FleetConditions,
}

impl Bound for Engine {
    fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    fn limit_bytes(&self) -> u64 {
        self.parameters.load().requests_memory_max
    }
}

/// State of one event loop.
pub struct Loop {
    /// The shared part.
    pub engine: Arc<Engine>,
    /// This event loop's counters; the worker sums them into the segment.
    pub counters: Arc<MainCounters>,
    /// Opens connections to origins.
    pub dial: Rc<dyn Dial>,
    /// Idle connections to origins.
    pub pool: Pool,
    /// Connections to origins that requests share.
    pub(crate) connections: Connections,
    /// Buffers for HTTP/1 responses.
    pub(crate) receive_buffers: Rc<ReceiveBuffers>,
    /// Memory that finished fetches have left for the next ones.
    pub(crate) spares: Spares,
    /// Options of client sockets; see [`Loop::with_sockets`].
    pub sockets: Rc<dyn SocketOptions>,
    /// The loop's sessions that wait for a request.
    pub idle_sessions: IdleSessions,
    /// Memory of the heads of requests over HTTP/2.
    pub(crate) http2_heads: Rc<HeadPool>,
    /// The clock.
    pub clock: Clock,
    /// Resources that are not available in slices.
    pub(crate) slice_refusals: Refusals,
    vxids: VxidBlock,
    /// Finished requests with their buffers, for reuse.
    pub requests: RequestPool,
    /// Counters of this loop's sessions and fetches.
    pub(crate) sessions: Arc<PoolCounters>,
    pub(crate) fetches: Arc<PoolCounters>,
    /// Histograms of this loop, and its counts of reasons.
    pub(crate) histograms: Arc<LoopHistograms>,
    /// The memory held by this loop's requests and fetches.
    pub(crate) memory: Rc<Ledger>,
    /// The number of requests and fetches in progress, for which a stop waits. See [`Loop::work`].
    in_flight: Cell<usize>,
    /// A body in a file is being copied to memory.
    pub(crate) is_promoting: Cell<bool>,
    /// Wakers of sessions that a stop wakes, by session.
    stop_listeners: RefCell<HashMap<u64, Waker>>,
}

/// Measurements of one loop: its MEMPOOL counters, histograms and reasons.
#[derive(Clone, Default)]
pub struct LoopPools {
    /// `req`: requests.
    pub requests: Arc<PoolCounters>,
    /// `sess`: sessions.
    pub sessions: Arc<PoolCounters>,
    /// `busyobj`: fetches.
    pub fetches: Arc<PoolCounters>,
    /// Histograms and counts of reasons.
    pub histograms: Arc<LoopHistograms>,
}

impl Loop {
    /// Creates a loop. The publisher of `counters` adds up those of all loops.
    #[must_use]
    pub fn new(engine: Arc<Engine>, counters: Arc<MainCounters>, dial: Rc<dyn Dial>, clock: Clock) -> Loop {
        Loop {
            memory: Ledger::new(Arc::<Engine>::clone(&engine), Arc::clone(&counters)),
            engine,
            counters,
            dial,
            pool: Pool::new(),
            connections: Connections::default(),
            receive_buffers: Rc::default(),
            spares: Spares::default(),
            sockets: Rc::new(NoSockets),
            idle_sessions: IdleSessions::default(),
            http2_heads: Rc::default(),
            clock,
            slice_refusals: Refusals::default(),
            vxids: VxidBlock::default(),
            requests: RequestPool::default(),
            sessions: Arc::default(),
            fetches: Arc::default(),
            histograms: Arc::default(),
            in_flight: Cell::new(0),
            is_promoting: Cell::new(false),
            stop_listeners: RefCell::default(),
        }
    }

    /// Sets the access to options of client sockets.
    #[must_use]
    pub fn with_sockets(self, sockets: Rc<dyn SocketOptions>) -> Loop {
        Loop { sockets, ..self }
    }

    /// Sets the published counters for requests, sessions and fetches. `mempool_sizes.rs` supplies
    /// the sizes of the latter two.
    #[must_use]
    pub fn with_pool_counters(self, pools: LoopPools) -> Loop {
        let LoopPools { requests, sessions, fetches, histograms } = pools;
        Loop { requests: RequestPool::counting(requests), sessions, fetches, histograms, ..self }
    }

    /// Counter of the bytes that a connection has encrypted ahead of its client.
    #[must_use]
    pub fn sent_ahead(&self) -> SentAhead {
        SentAhead::new(Rc::clone(&self.memory))
    }

    /// The next transaction id.
    pub(crate) fn next_vxid(&self) -> u64 {
        self.vxids.next(&self.engine.vxids)
    }

    /// Counts a session for as long as the result exists.
    #[must_use]
    pub(crate) fn count_session(&self) -> Counted {
        Counted::new(&self.sessions)
    }

    /// The number of sessions currently counted.
    #[must_use]
    pub fn open_sessions(&self) -> u64 {
        self.sessions.get(Mempool::Live as usize)
    }

    /// The number of requests and fetches in progress.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Marks a request or fetch as in progress for as long as the result exists. Idle connections
    /// hold none.
    #[must_use]
    pub fn work(self: &Rc<Self>) -> Work {
        self.memory.begin();
        Work(self.stay())
    }

    /// Keeps a worker that stops for as long as the result exists, without being a request: it does
    /// not count as memory.
    #[must_use]
    pub(crate) fn stay(self: &Rc<Self>) -> Presence {
        self.in_flight.set(self.in_flight.get() + 1);
        Presence(Rc::clone(self))
    }

    /// Has a stop wake the task of that session for as long as the result exists. The task then
    /// checks [`Engine::draining`].
    #[must_use]
    pub(crate) fn listen_for_stop(self: &Rc<Self>, session: u64, waker: &Waker) -> StopListener {
        self.stop_listeners.borrow_mut().insert(session, waker.clone());
        StopListener { context: Rc::clone(self), session }
    }

    /// Wakes the sessions whose clients must be notified of a stop, after [`Engine::draining`] was
    /// set. Returns true if there are any.
    pub fn tell_of_stop(&self) -> bool {
        let listeners: Vec<Waker> = self.stop_listeners.borrow().values().cloned().collect();
        let is_anybody = !listeners.is_empty();
        listeners.into_iter().for_each(Waker::wake);
        is_anybody
    }

    /// True if requests hold nearly as much memory as all of them may: then everything that can use
    /// less memory must.
    #[must_use]
    pub fn is_memory_short(&self) -> bool {
        self.memory.is_short()
    }

    /// Closes connections to origins that are not used: see [`Pool::close_idle`]. Must be called
    /// about once a second.
    pub fn close_idle_origins(&self, now: f64, idle_timeout: f64) {
        self.pool.close_idle(now, idle_timeout);
        self.connections.close_idle(now, idle_timeout);
    }

    /// The number of connections to origins that requests share.
    #[must_use]
    pub fn shared_connections(&self) -> usize {
        self.connections.len()
    }

    /// Adds one to a counter.
    pub fn count(&self, counter: Main) {
        self.counters.add(counter, 1);
    }
}

/// Keeps a stopping worker alive, see [`Loop::stay`].
pub(crate) struct Presence(Rc<Loop>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}

/// A session that is woken by a stop, see [`Loop::listen_for_stop`].
pub(crate) struct StopListener {
    context: Rc<Loop>,
    session: u64,
}

impl Drop for StopListener {
    fn drop(&mut self) {
        let waker = self.context.stop_listeners.borrow_mut().remove(&self.session);
        // Dropped after the table is free again: a waker may be the last reference to a task.
        drop(waker);
    }
}

/// A request or fetch in progress, see [`Loop::work`].
pub struct Work(Presence);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.0.memory.end();
    }
}
