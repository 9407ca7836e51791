//! From the manager's configuration to a worker that is ready to accept: gives up rights, writes shared memory, adopts
//! the cache, starts the event loops.

use crate::control::{Advice, Configuration, ListenerConfiguration, Reply, Step, StorageConfiguration};
use crate::event_loop::{self, Datagrams, Listening, LoopCommand, LoopHandle, Shared};
use crate::fence;
use crate::lifeline::Lifeline;
use crate::notes::{Notebook, Notes};
use crate::panic_text;
use crate::seat::Seat;
use crate::statistics::Statistics;
use arc_swap::ArcSwap;
use backend::TestableRandom;
use backend::random::DEFAULT_SEED;
use cache::Cache;
use engine::challenges::Challenges;
use engine::clock::Clock;
use engine::context::{Engine, Loop};
use engine::loaded_vcl::{LoadedVcl, VclTable};
use engine::memory::RequestMemory;
use engine::panics::PanicHook;
use engine::peer::Listener;
use engine::query_rules::QueryRules;
use engine::storages::Storages;
use engine::vxid::VxidSource;
use net::descriptors::Complaints;
use net::handshake::SharedTls;
use net::inheritance::inherited;
use net::quic::{Mailboxes, QuicConfiguration, WorkerIds};
use net::resolve::Resolver;
use nix::sys::resource::{Resource, setrlimit};
use shm::log::{LogConfiguration, LogRing};
use shm::vsm::VsmWriter;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::SystemTime;
use store::{FileOptions, Journal, Recovered, Store};
use surface::parameter::{Parameters, debug, feature};
use tls::origin::OriginTls;
use tls::quic::QuicKeys;
use tls::table::TlsTable;
use vmods::SharedState;

/// A configured worker; everything here belongs to the main thread.
pub struct Worker {
    /// Shared with the loops.
    pub engine: Arc<Engine>,
    /// The loops.
    pub loops: Vec<LoopHandle>,
    /// The main thread's own loop context, for probes, vcl_init and vcl_fini.
    pub own: Rc<Loop>,
    /// Published counters.
    pub statistics: Rc<Statistics>,
    /// Listening addresses as configured, for `debug.listen_address`.
    pub listeners: Vec<ListenerConfiguration>,
    /// Looks names up.
    pub resolver: Rc<Resolver>,
    /// Running lookups of names, by VCL name.
    pub lookups: RefCell<BTreeMap<String, tokio::task::JoinHandle<()>>>,
    /// Running probes by VCL name.
    pub probes: RefCell<BTreeMap<String, Vec<tokio::task::JoinHandle<()>>>>,
    /// `debug.shutdown.delay`, seconds.
    pub shutdown_delay: Cell<f64>,
    /// Discarded VCLs that have not ended, and what their counters are called.
    pub discarded: RefCell<Vec<(Arc<LoadedVcl>, String)>>,
    /// When discarded VCLs were last ended, seconds since 1970.
    pub swept_at: Cell<f64>,
    /// Addresses of the listeners, in their order; `None` for Unix-domain sockets.
    pub addresses: Vec<Option<SocketAddr>>,
    tls: Arc<SharedTls>,
    /// The connection ids of this worker, and the keys of QUIC.
    quic: (WorkerIds, Arc<QuicKeys>),
    short_panics: Arc<AtomicBool>,
    started: Cell<bool>,
    _vsm: VsmWriter,
    seat: Seat,
    /// What the last worker left.
    pub inherited: Rc<Notes>,
    /// Until a stop has come to the end of the VCLs.
    notebook: RefCell<Option<Notebook>>,
}

/// Seconds since 1970.
pub fn wall_clock() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map(|time| time.as_secs_f64()).unwrap_or(0.0)
}

/// The log settings among the parameters.
fn log_configuration(parameters: &Parameters) -> LogConfiguration {
    LogConfiguration {
        mask: parameters.vsl_mask,
        reclen_bytes: parameters.vsl_reclen as usize,
        buffer_bytes: parameters.vsl_buffer as usize,
        sync: parameters.debug & debug::SYNCVSL != 0,
    }
}

/// The message for something that could not be taken over. Unless the content is to blame, tells `say` first that it is
/// not.
fn refused(say: &dyn Fn(Step), what: &str, error: &io::Error) -> String {
    if error.kind() != std::io::ErrorKind::InvalidData {
        say(Step::Surroundings);
    }
    format!("{what}: {error}")
}

/// Opens a storage; `journal` is the identity of the journal of bans.
fn open_storage(storage: &StorageConfiguration, journal: u64) -> io::Result<(Store, Recovered)> {
    let arena = inherited(storage.descriptor)?;
    let Some(file) = &storage.file else {
        return Store::open_to_grow(arena, &storage.name, storage.limit_bytes, storage.grows_to_bytes);
    };
    let options = FileOptions {
        bytes: file.bytes,
        metadata_bytes: storage.grows_to_bytes,
        granularity_bytes: file.granularity_bytes,
        advice: match file.advice {
            Advice::Normal => store::Advice::Normal,
            Advice::Random => store::Advice::Random,
            Advice::Sequential => store::Advice::Sequential,
        },
        journal,
    };
    Store::open_filed(arena, inherited(file.descriptor)?, &storage.name, &options)
}

/// Opens every storage; returns everything that survived in them together.
fn open_storages(
    storages: &[StorageConfiguration],
    journal: u64,
    say: &dyn Fn(Step),
) -> Result<(Vec<Store>, Recovered), String> {
    let (mut stores, mut all) = (Vec::with_capacity(storages.len()), Recovered::default());
    for (place, storage) in storages.iter().enumerate() {
        say(Step::Storage(place));
        let (store, recovered) = open_storage(storage, journal)
            .map_err(|error| refused(say, &format!("storage {}", storage.name), &error))?;
        if let Some(why) = recovered.anew {
            println!("Storage {} begins empty: {why}", storage.name);
        }
        store.show_unlimited(!storage.is_limit_given);
        stores.push(store);
        all.objects.extend(recovered.objects);
        all.torn += recovered.torn;
        all.evicted += recovered.evicted;
    }
    Ok((stores, all))
}

/// Does everything that precedes loading VCL; before each step, `step` is told what comes next.
pub fn configure(configuration: Configuration, lifeline: Lifeline, step: &dyn Fn(Step)) -> Result<Worker, String> {
    let say = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let identity = configuration.identity.clone();
    let panic_file = inherited(configuration.panic_descriptor).map_err(|e| say("panic text", &e))?;
    let short_panics = panic_text::install(std::fs::File::from(panic_file), identity.clone());
    if configuration.parameters.feature & feature::NO_COREDUMP != 0 {
        setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| say("no core dumps", &error))?;
    }
    let fence = fence::confine(&configuration.work_directory, configuration.run_as, configuration.is_fenced)?;
    lifeline.tie()?;
    for remark in fence.remarks {
        eprintln!("No fence: {remark}");
    }
    let parameters = configuration.parameters;
    short_panics.store(parameters.feature & feature::SHORT_PANIC != 0, Ordering::Relaxed);
    let now = wall_clock();
    let clock = Clock::starting_at(now);
    let directory = configuration.work_directory.join("_.vsm_child");
    let vsm = VsmWriter::create(&directory).map_err(|e| say(&directory.display().to_string(), &e))?;
    let ring = LogRing::publish(&vsm, parameters.vsl_space as usize).map_err(|e| say("log segment", &e))?;
    ring.configure(&log_configuration(&parameters));
    let seat = inherited(configuration.seat_descriptor).map_err(|e| say("seat", &e))?;
    let seat = Seat::take(seat)?;
    let (notebook, inherited_notes) = Notebook::open(&seat);
    step(Step::Bans);
    let journal = inherited(configuration.journal_descriptor).map_err(|e| refused(step, "ban journal", &e))?;
    let journal = Journal::open(journal).map_err(|e| refused(step, "ban journal", &e))?;
    let (stores, recovered) = open_storages(&configuration.storages, journal.identity(), step)?;
    step(Step::Bans);
    let cache = Cache::new(stores, journal, now).map_err(|e| refused(step, "ban journal", &e))?;
    step(Step::Index);
    cache.store().set_transient_limit(configuration.transient_limit_bytes);
    let policies: Vec<_> = configuration.storages.iter().map(|storage| storage.policy).collect();
    cache.set_policies(&policies);
    cache.configure(&parameters);
    let of_log = ring.clone();
    cache.set_log_sink(Box::new(move |tag, payload| of_log.write(tag, shm::log::LogId::NONE, payload)));
    let (torn, evicted) = (recovered.torn, recovered.evicted);
    let kept = cache.adopt(recovered.objects, now, configuration.event_loops);
    for (store, storage) in cache.stores().iter().zip(&configuration.storages).filter(|(store, _)| store.is_filed()) {
        // The file is divided for as much memory as it is meant to have; there may be less now.
        store.set_limit(storage.limit_bytes);
    }
    if kept + torn + evicted > 0 {
        let and = if evicted > 0 { format!(", {evicted} beyond a smaller limit dropped") } else { String::new() };
        println!("Storage: {kept} objects kept, {torn} incomplete ones dropped{and}");
    }
    step(Step::Surroundings);
    let storages = Storages::of(cache.stores());
    let statistics =
        Statistics::publish(&vsm, &storages, (configuration.event_loops.max(1), parameters.thread_pools), now)
            .map_err(|e| say("counters", &e))?;
    let engine = Arc::new(Engine {
        parameters: ArcSwap::from_pointee(parameters),
        cache,
        storages,
        ring,
        vcl: ArcSwap::from_pointee(VclTable::default()),
        vxids: VxidSource::new(),
        identity,
        hostname: configuration.hostname,
        pipes: AtomicU32::new(0),
        draining: AtomicBool::new(false),
        fragment_fetch_bytes: AtomicU64::new(0),
        random: TestableRandom::new(DEFAULT_SEED),
        vmod_state: SharedState::new(),
        panics: PanicHook::default(),
        is_copying: AtomicBool::new(false),
        query_rules: QueryRules::default(),
        challenges: challenges(configuration.tls.as_ref()),
        memory: RequestMemory::default(),
        waiting: AtomicU32::new(0),
    });
    let complaints = Arc::new(Complaints::default());
    // The manager has checked the table. Should it not do all the same, what is in clear is served.
    let tls = configuration.tls.as_ref().map(tls::server::build).transpose().unwrap_or_else(|why| {
        eprintln!("TLS cannot be served: {why}");
        None
    });
    let tls = tls.unwrap_or_default();
    let tls = Arc::new(SharedTls::from_pointee(tls));
    let keys = Arc::new(QuicKeys::of(&configuration.quic_secret));
    let quic = (WorkerIds::new(keys.ids), keys);
    let shared = Shared { complaints, origin_tls: Arc::new(OriginTls::new()), tls: Arc::clone(&tls) };
    let loops = (0..configuration.event_loops.max(1))
        .map(|number| LoopHandle::start(number, &engine, &clock, &shared))
        .collect::<Result<Vec<_>, _>>()?;
    let addresses = configuration.listeners.iter().map(address).collect();
    let own = event_loop::context(Arc::clone(&engine), clock, &shared, Default::default(), Rc::default());
    Ok(Worker {
        engine,
        loops,
        own,
        statistics: Rc::new(statistics),
        resolver: Rc::new(Resolver::default()),
        lookups: RefCell::new(BTreeMap::new()),
        listeners: configuration.listeners,
        probes: RefCell::new(BTreeMap::new()),
        shutdown_delay: Cell::new(0.0),
        discarded: RefCell::new(Vec::new()),
        swept_at: Cell::new(0.0),
        addresses,
        tls,
        quic,
        short_panics,
        started: Cell::new(false),
        _vsm: vsm,
        seat,
        inherited: Rc::new(inherited_notes),
        notebook: RefCell::new(Some(notebook)),
    })
}

/// The sockets of a listener, one for each loop.
fn sockets_of(configured: &ListenerConfiguration, loops: usize) -> io::Result<Vec<OwnedFd>> {
    let mut sockets: Vec<_> = configured.descriptors.iter().copied().map(inherited).collect::<Result<_, _>>()?;
    // A single socket is shared by all loops.
    if let [shared] = &sockets[..] {
        let further = (1..loops).map(|_| shared.try_clone()).collect::<Result<Vec<_>, _>>()?;
        sockets.extend(further);
    }
    Ok(sockets)
}

/// What `local.endpoint` shows: the address as given; if the system chose the port, with that port.
fn endpoint(configured: &ListenerConfiguration, address: Option<SocketAddr>) -> String {
    match (configured.endpoint.strip_suffix(":0"), address) {
        (Some(host), Some(address)) => format!("{host}:{}", address.port()),
        (None, _) | (_, None) => configured.endpoint.clone(),
    }
}

/// The address that a listening socket is bound to.
fn address(listener: &ListenerConfiguration) -> Option<SocketAddr> {
    let socket: nix::sys::socket::SockaddrStorage =
        listener.descriptors.first().and_then(|raw| nix::sys::socket::getsockname(*raw).ok())?;
    match (socket.as_sockaddr_in(), socket.as_sockaddr_in6()) {
        (Some(v4), _) => Some(SocketAddr::new(v4.ip().into(), v4.port())),
        (None, Some(v6)) => Some(SocketAddr::new(v6.ip().into(), v6.port())),
        (None, None) => None,
    }
}

/// What an authority that asks about a name is told: an order may be under way.
fn challenges(table: Option<&TlsTable>) -> Challenges {
    let challenges = Challenges::default();
    challenges.set(answers(table));
    challenges
}

fn answers(table: Option<&TlsTable>) -> impl Iterator<Item = (&str, &str)> {
    let all = table.into_iter().flat_map(|table| &table.http_challenges);
    all.map(|challenge| (challenge.token.as_str(), challenge.answer.as_str()))
}

impl Worker {
    /// New parameter values.
    pub fn set_parameters(&self, parameters: Parameters) {
        self.engine.ring.configure(&log_configuration(&parameters));
        self.engine.cache.configure(&parameters);
        self.short_panics.store(parameters.feature & feature::SHORT_PANIC != 0, Ordering::Relaxed);
        self.engine.parameters.store(Arc::new(parameters));
    }

    /// Gives the backends of a VCL what an operator had set for them in the last worker, unless that was another VCL of the same name:
    /// before anything is accepted, VCLs are those that the last worker had.
    pub fn set_as_before(&self, vcl: &LoadedVcl) {
        if self.started.get() {
            return;
        }
        for (name, admin) in self.inherited.set_for(&vcl.name) {
            backend::listing::set_health(name, admin, &[&vcl.directors], None, self.own.clock.now());
        }
    }

    /// Writes down what the next worker is to know. Before the first start not all VCLs are there.
    pub fn note(&self) {
        let mut notebook = self.notebook.borrow_mut();
        let Some(notebook) = notebook.as_mut().filter(|_| self.started.get()) else { return };
        let notes = Notes::of(&self.engine.vcl.load(), self.own.clock.now());
        // One that finds nothing asks its probes.
        let _ = notebook.write(&self.seat, &notes);
    }

    /// The same for the last time: the VCLs end now.
    pub fn note_last(&self) {
        self.note();
        *self.notebook.borrow_mut() = None;
    }

    /// New limits of the storages. What is beyond them goes now.
    pub async fn set_limits(&self, limits: Vec<u64>) -> Reply {
        let engine = Arc::clone(&self.engine);
        // It may take its time: millions of objects go.
        let changed = tokio::task::spawn_blocking(move || {
            let stores = engine.cache.stores().iter().zip(limits);
            stores.map(|(store, limit)| store.set_limit(limit).to_string()).collect::<Vec<_>>().join(" ")
        });
        changed.await.map_or_else(|error| Reply::status(300, error.to_string()), Reply::ok)
    }

    /// What TLS is served with from now on. A table that cannot be used changes nothing.
    pub fn set_tls(&self, table: &TlsTable) -> Reply {
        match tls::server::build_after(table, &self.tls.load()) {
            Ok(served) => {
                self.tls.store(Arc::new(served));
                self.engine.challenges.set(answers(Some(table)));
                Reply::ok("")
            }
            Err(why) => Reply::status(300, why),
        }
    }

    /// Hands the listening sockets to the loops.
    pub fn start(&self) -> Reply {
        if self.started.replace(true) {
            return Reply::status(300, "Already accepting");
        }
        let mut of_loop: Vec<Vec<Listening>> = self.loops.iter().map(|_| Vec::new()).collect();
        for (configured, address) in self.listeners.iter().zip(&self.addresses) {
            let listener = Listener {
                name: configured.name.clone(),
                endpoint: endpoint(configured, *address),
                path: configured.path.clone(),
                proxy: configured.proxy,
                tls: configured.tls,
                names_scheme: self.listeners.iter().any(|one| one.tls),
                http3_port: address.filter(|_| !configured.udp_descriptors.is_empty()).map(|it| it.port()),
            };
            let datagrams = match self.datagrams_of(configured, of_loop.len()) {
                Ok(datagrams) => datagrams,
                Err(error) => return Reply::status(300, format!("listener {}, UDP: {error}", configured.name)),
            };
            let sockets = match sockets_of(configured, of_loop.len()) {
                Ok(sockets) => sockets,
                Err(error) => return Reply::status(300, format!("listener {}: {error}", configured.name)),
            };
            for ((given, descriptor), datagrams) in of_loop.iter_mut().zip(sockets).zip(datagrams) {
                given.push(Listening { descriptor, listener: listener.clone(), datagrams });
            }
        }
        for (one, listening) in self.loops.iter().zip(of_loop) {
            one.send(LoopCommand::Accept(listening));
        }
        Reply::ok("")
    }

    /// The UDP sockets of a listener, one for each loop; none where HTTP/3 is not spoken.
    fn datagrams_of(&self, configured: &ListenerConfiguration, loops: usize) -> io::Result<Vec<Option<Datagrams>>> {
        let (ids, keys) = &self.quic;
        let mailboxes = Mailboxes::new(loops);
        let configuration = QuicConfiguration { ids: ids.clone(), keys: Arc::clone(keys), mailboxes };
        let mut sockets = configured.udp_descriptors.iter().copied().map(inherited);
        let one = |number| {
            let descriptor = sockets.next().transpose()?;
            Ok(descriptor.map(|descriptor| Datagrams { descriptor, number, configuration: configuration.clone() }))
        };
        (0..loops).map(one).collect()
    }
}
