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
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use surface::counter::{Main, Mempool};
use surface::parameter::Parameters;
use tokio::time::Instant;
use vmods::{NoSockets, SocketOptions};

use crate::fetch::Fetch;
use crate::loaded_vcl::VclTable;
use crate::memory::{Ledger, RequestMemory};
use crate::mempool_counts::{self, Counted};
use crate::request::{PoolCounters, RequestPool};
use crate::session::{Session, SessionFacts};
use crate::storages::Storages;

/// Wall-clock time that follows tokio's (pausable) clock.
#[derive(Clone, Debug)]
pub struct Clock {
    base: Instant,
    /// Seconds since 1970 at `base`, as bits of an `f64`; shared, so that a resync reaches every loop.
    wall_at_base: Arc<AtomicU64>,
}

impl Clock {
    /// A clock that shows `wall` (seconds since 1970) now.
    #[must_use]
    pub fn starting_at(wall: f64) -> Clock {
        Clock { base: Instant::now(), wall_at_base: Arc::new(AtomicU64::new(wall.to_bits())) }
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn now(&self) -> f64 {
        self.at(Instant::now())
    }

    /// What it shows at that moment, seconds since 1970.
    #[must_use]
    pub fn at(&self, moment: Instant) -> f64 {
        let since_base = moment.saturating_duration_since(self.base);
        f64::from_bits(self.wall_at_base.load(Ordering::Relaxed)) + since_base.as_secs_f64()
    }

    /// Corrects the clock to show `wall` now; the worker does so every second, since the machine's clock may be adjusted.
    pub fn resync(&self, wall: f64) {
        let at_base = wall - self.base.elapsed().as_secs_f64();
        self.wall_at_base.store(at_base.to_bits(), Ordering::Relaxed);
    }
}

/// The one source of transaction ids: sessions, requests and backend requests.
#[derive(Debug)]
pub struct VxidSource {
    next: AtomicU32,
}

impl VxidSource {
    /// Ids beginning with 1.
    #[must_use]
    pub fn new() -> Self {
        VxidSource { next: AtomicU32::new(1) }
    }

    /// The next id: below 2^30 and never 0.
    #[must_use]
    pub fn next(&self) -> u32 {
        loop {
            let id = self.next.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
            if id != 0 {
                return id;
            }
        }
    }

    /// What `debug.xid` shows: the id handed out last.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1) & 0x3fff_ffff
    }

    /// Makes `last + 1` the next id (`debug.xid`).
    pub fn set_last(&self, last: u32) {
        self.next.store(last.wrapping_add(1) & 0x3fff_ffff, Ordering::Relaxed);
    }
}

impl Default for VxidSource {
    fn default() -> Self {
        Self::new()
    }
}

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

/// Takes the text of a panic.
pub type PanicListener = Box<dyn Fn(&str) + Send + Sync>;

/// Who is told when a request panics; nobody at first.
#[derive(Default)]
pub struct PanicHook(OnceLock<PanicListener>);

impl PanicHook {
    /// Sets who is told; only the first call counts.
    pub fn set(&self, hook: PanicListener) {
        let _ = self.0.set(hook);
    }

    /// Tells it.
    pub(crate) fn tell(&self, text: &str) {
        if let Some(hook) = self.0.get() {
            hook(text);
        }
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
            memory: Ledger::new(Arc::clone(&engine), Arc::clone(&counters)),
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

    /// The same with requests, sessions and fetches counted where somebody publishes it.
    #[must_use]
    pub fn with_pool_counters(self, pools: LoopPools) -> Loop {
        let LoopPools { requests, sessions, fetches } = pools;
        mempool_counts::set_size(&sessions, size_of::<Session>() + size_of::<SessionFacts>());
        mempool_counts::set_size(&fetches, size_of::<Fetch>());
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

/// The two ends of a client connection, and how it came in. Addresses of a Unix-domain socket are `0.0.0.0:0`.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `client.ip`: the client as PROXY says, else the TCP peer.
    pub client: SocketAddr,
    /// `server.ip`: the address the client connected to, as PROXY says, else ours.
    pub server: SocketAddr,
    /// `remote.ip`: the TCP peer.
    pub remote: SocketAddr,
    /// `local.ip`: our end of the TCP connection.
    pub local: SocketAddr,
    /// Facts about the listener.
    pub listener: Rc<Listener>,
    /// Descriptor number, for `SessOpen`; −1 in memory.
    pub descriptor: i32,
    /// User and group of the peer of a Unix-domain socket, where the system told.
    pub credentials: Option<(u32, u32)>,
    /// The type-length-value elements of a PROXY header of version 2.
    pub proxy_elements: Option<Rc<[u8]>>,
}

impl Peer {
    /// The connection as VMODs see it.
    pub(crate) fn connection(&self) -> vmods::ClientConnection<'_> {
        vmods::ClientConnection {
            client: self.client,
            is_unix: self.listener.path.is_some(),
            credentials: self.credentials,
            proxy_elements: self.proxy_elements.as_deref().unwrap_or(&[]),
        }
    }
}

/// A listening address.
#[derive(Clone, Debug)]
pub struct Listener {
    /// `-a` name; `local.socket`.
    pub name: String,
    /// Address part of `-a`; `local.endpoint`.
    pub endpoint: String,
    /// Path when it is a Unix-domain socket.
    pub path: Option<PathBuf>,
    /// Whether connections begin with a PROXY header.
    pub proxy: bool,
}
