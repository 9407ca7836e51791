//! What the request and fetch machines work with: [`Engine`], shared by all event loops, and [`Loop`], private to one.
//!
//! Ownership: the worker makes one `Engine` (in an `Arc`), and one `Loop` (in an `Rc`) per event loop thread; sessions and
//! fetches hold clones. A hit locks nothing here: parameters and the VCL table are replaced as a whole. Next file:
//! `session.rs`.

use arc_swap::ArcSwap;
use backend::{Dial, Pool, TestableRandom};
use cache::Cache;
use shm::counters::MainCounters;
use shm::log::LogRing;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::task::Waker;
use surface::counter::{Main, Mempool};
use surface::parameter::Parameters;
use vmods::{NoSockets, SocketOptions};

use crate::challenges::Challenges;
use crate::clock::Clock;
use crate::fetch::spare::Spares;
use crate::idle_sessions::IdleSessions;
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

/// What all event loops share.
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
    /// The current number of pipes (gauge `n_pipe`, limit `pipe_sess_max`).
    pub pipes: AtomicU32,
    /// Set when the worker stops: sessions then close after the current request.
    pub draining: AtomicBool,
    /// `debug.fragfetch`: most bytes a fetch reads at a time; 0 = no limit.
    pub fragment_fetch_bytes: AtomicU64,
    /// The random generator for directors and `std.random`; `debug.srandom` seeds it.
    pub random: TestableRandom,
    /// What VMODs keep across VCLs and requests.
    pub vmod_state: vmods::SharedState,
    /// Is told about every panic that cost a request.
    pub panics: PanicHook,
    /// A compressed copy of an object is being made; there is one at a time.
    pub is_copying: AtomicBool,
    /// What responses have said about the queries of their resources.
    pub query_rules: QueryRules,
    /// What a certificate authority that asks over HTTP is told.
    pub challenges: Challenges,
    /// The memory held by all requests.
    pub memory: RequestMemory,
    /// The current number of requests that wait for another's fetch (gauge `n_waiting`, limit `waiting_requests_max`).
    pub waiting: AtomicU32,
}

impl Bound for Engine {
    fn memory(&self) -> &RequestMemory {
        &self.memory
    }

    fn limit_bytes(&self) -> u64 {
        self.parameters.load().requests_memory_max
    }
}

/// What each event loop has for itself.
pub struct Loop {
    /// The shared part.
    pub engine: Arc<Engine>,
    /// This loop's counters; the worker sums them into the segment.
    pub counters: Arc<MainCounters>,
    /// Opens connections to origins.
    pub dial: Rc<dyn Dial>,
    /// Idle connections to origins.
    pub pool: Pool,
    /// Connections to origins that requests share.
    pub(crate) connections: Connections,
    /// What responses over HTTP/1 are received into.
    pub(crate) receive_buffers: Rc<ReceiveBuffers>,
    /// What finished fetches have left for the next ones.
    pub(crate) spares: Spares,
    /// Options of client sockets; see [`Loop::with_sockets`].
    pub sockets: Rc<dyn SocketOptions>,
    /// Its sessions that wait for a request.
    pub idle_sessions: IdleSessions,
    /// The clock.
    pub clock: Clock,
    /// Which resources cannot be had in slices.
    pub(crate) slice_refusals: Refusals,
    vxids: VxidBlock,
    /// Finished requests with their buffers, for reuse.
    pub requests: RequestPool,
    /// Counters of this loop's sessions and fetches.
    pub(crate) sessions: Arc<PoolCounters>,
    pub(crate) fetches: Arc<PoolCounters>,
    /// The memory held by this loop's requests and fetches.
    pub(crate) memory: Rc<Ledger>,
    /// The number of requests and fetches in progress, for which a stop waits. See [`Loop::work`].
    in_flight: Cell<usize>,
    /// A body that lies in a file is being copied to memory.
    pub(crate) is_promoting: Cell<bool>,
    /// Who is woken by a stop, by session.
    stop_listeners: RefCell<HashMap<u32, Waker>>,
}

/// The MEMPOOL counters of one loop.
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
    /// A loop. Whoever publishes `counters` adds up those of all loops.
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
            clock,
            slice_refusals: Refusals::default(),
            vxids: VxidBlock::default(),
            requests: RequestPool::default(),
            sessions: Arc::default(),
            fetches: Arc::default(),
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

    /// Sets the published counters for requests, sessions and fetches. `mempool_sizes.rs` supplies the sizes of the latter two.
    #[must_use]
    pub fn with_pool_counters(self, pools: LoopPools) -> Loop {
        let LoopPools { requests, sessions, fetches } = pools;
        Loop { requests: RequestPool::counting(requests), sessions, fetches, ..self }
    }

    /// What counts the bytes that a connection has encrypted ahead of its client.
    #[must_use]
    pub fn sent_ahead(&self) -> SentAhead {
        SentAhead::new(Rc::clone(&self.memory))
    }

    /// The next transaction id.
    pub(crate) fn next_vxid(&self) -> u32 {
        self.vxids.next(&self.engine.vxids)
    }

    /// Counts a session for as long as the result lives.
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

    /// Marks a request or fetch as in progress for as long as the result lives. Idle connections hold none.
    #[must_use]
    pub fn work(self: &Rc<Self>) -> Work {
        self.memory.begin();
        Work(self.stay())
    }

    /// Keeps a worker that stops for as long as the result lives, without being a request: it does not count as memory.
    #[must_use]
    pub(crate) fn stay(self: &Rc<Self>) -> Presence {
        self.in_flight.set(self.in_flight.get() + 1);
        Presence(Rc::clone(self))
    }

    /// Has a stop wake the task of that session for as long as the result lives. What it then looks at is [`Engine::draining`].
    #[must_use]
    pub(crate) fn listen_for_stop(self: &Rc<Self>, session: u32, waker: &Waker) -> StopListener {
        self.stop_listeners.borrow_mut().insert(session, waker.clone());
        StopListener { context: Rc::clone(self), session }
    }

    /// Wakes the sessions whose clients want to be told of a stop, after [`Engine::draining`] was set. Returns whether there are any.
    pub fn tell_of_stop(&self) -> bool {
        let listeners: Vec<Waker> = self.stop_listeners.borrow().values().cloned().collect();
        let is_anybody = !listeners.is_empty();
        listeners.into_iter().for_each(Waker::wake);
        is_anybody
    }

    /// Whether requests hold nearly as much memory as all of them may: what can do with less has to.
    #[must_use]
    pub fn is_memory_short(&self) -> bool {
        self.memory.is_short()
    }

    /// Closes connections to origins that are not used: see [`Pool::sweep`]. Call it about once a second.
    pub fn sweep_origins(&self, now: f64, idle_timeout: f64) {
        self.pool.sweep(now, idle_timeout);
        self.connections.sweep(now, idle_timeout);
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

/// What a stop waits for, see [`Loop::stay`].
pub(crate) struct Presence(Rc<Loop>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}

/// A session that is woken by a stop, see [`Loop::listen_for_stop`].
pub(crate) struct StopListener {
    context: Rc<Loop>,
    session: u32,
}

impl Drop for StopListener {
    fn drop(&mut self) {
        let waker = self.context.stop_listeners.borrow_mut().remove(&self.session);
        // After the table is free again: a waker may be the last that holds a task.
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
