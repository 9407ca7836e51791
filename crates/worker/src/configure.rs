//! Configuration of the worker until it is ready to accept: drops rights, writes shared memory,
//! adopts the cache, starts the event loops.

use crate::directory_lock::DirectoryLock;
use crate::event_loop::{self, Datagrams, Listening, LoopCommand, LoopHandle, Shared};
use crate::health_record::{HealthRecord, RecordSlots};
use crate::log_space;
use crate::manager_process::ManagerProcess;
use crate::panic_text;
use crate::statistics::Statistics;
use arc_swap::ArcSwap;
use backend::TestableRandom;
use backend::random::DEFAULT_SEED;
use cache::Cache;
use cli_proto::response::Response;
use cli_proto::response::status::CANNOT;
use control::inheritance::inherited;
use control::messages::{Configuration, ListenerConfiguration, Step, StorageConfiguration};
use engine::challenges::Challenges;
use engine::clock::Clock;
use engine::context::{Engine, Loop};
use engine::fleet::FleetConditions;
use engine::loaded_vcl::{LoadedVcl, VclTable};
use engine::memory::RequestMemory;
use engine::panics::PanicHook;
use engine::peer::Listener;
use engine::query_rules::QueryRules;
use engine::storages::Storages;
use engine::vxid::VxidSource;
use net::descriptors::Complaints;
use net::handshake::SharedTls;
use net::quic::{Mailboxes, QuicConfiguration, WorkerIds};
use net::resolve::Resolver;
use nix::sys::resource::{Resource, setrlimit};
use sandbox::Access;
use shm::log::LogConfiguration;
use shm::vsm::VsmWriter;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
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
    /// Resolves names.
    pub resolver: Rc<Resolver>,
    /// Running lookups of names, by VCL name.
    pub lookups: RefCell<BTreeMap<String, tokio::task::JoinHandle<()>>>,
    /// Running probes by VCL name.
    pub probes: RefCell<BTreeMap<String, Vec<tokio::task::JoinHandle<()>>>>,
    /// `debug.shutdown.delay`, seconds.
    pub shutdown_delay: Cell<f64>,
    /// Discarded VCLs that have not ended, and the names of their counters.
    pub discarded: RefCell<Vec<(Arc<LoadedVcl>, String)>>,
    /// Time when discarded VCLs were last ended, seconds since 1970.
    pub swept_at: Cell<f64>,
    /// Addresses of the listeners, in their order; `None` for Unix-domain sockets.
    pub addresses: Vec<Option<SocketAddr>>,
    tls: Arc<SharedTls>,
    /// The connection ids of this worker, and the keys of QUIC.
    quic: (WorkerIds, Arc<QuicKeys>),
    short_panics: Arc<AtomicBool>,
    started: Cell<bool>,
    _vsm: VsmWriter,
    directory_lock: DirectoryLock,
    /// Backend health record of the last worker.
    pub inherited: Rc<HealthRecord>,
    /// Present until a stop has reached the end of the VCLs.
    record_slots: RefCell<Option<RecordSlots>>,
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

/// The message for storage that could not be taken over. Unless its content is the cause, first
/// reports through `say` that it is not.
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
        advice: file.advice,
        journal,
    };
    Store::open_disk_tier(arena, inherited(file.descriptor)?, &storage.name, &options)
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

/// Does everything that precedes loading VCL; reports each step through `step` before it begins.
pub fn configure(
    configuration: Configuration,
    manager_process: ManagerProcess,
    step: &dyn Fn(Step),
) -> Result<Worker, String> {
    let say = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let identity = configuration.identity.clone();
    let panic_file = inherited(configuration.panic_descriptor).map_err(|e| say("panic text", &e))?;
    let short_panics = panic_text::install(std::fs::File::from(panic_file), identity.clone());
    if configuration.parameters.feature & feature::NO_COREDUMP != 0 {
        setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| say("no core dumps", &error))?;
    }
    let sandbox = sandbox::confine(
        &configuration.work_directory,
        configuration.run_as,
        configuration.is_sandboxed,
        Access::Serve,
    )?;
    manager_process.set_death_signal()?;
    for remark in sandbox.remarks {
        eprintln!("No fence: {remark}");
    }
    let parameters = configuration.parameters;
    short_panics.store(parameters.feature & feature::SHORT_PANIC != 0, Ordering::Relaxed);
    let now = wall_clock();
    let clock = Clock::starting_at(now);
    let directory = configuration.work_directory.join("_.vsm_child");
    let vsm = VsmWriter::create(&directory).map_err(|e| say(&directory.display().to_string(), &e))?;
    let ring = log_space::publish(&vsm, parameters.vsl_space, configuration.log_layout)?;
    ring.configure(&log_configuration(&parameters));
    let directory_lock = inherited(configuration.directory_lock_descriptor).map_err(|e| say("seat", &e))?;
    let directory_lock = DirectoryLock::take(directory_lock)?;
    let (record_slots, inherited_record) = RecordSlots::open(&directory_lock);
    step(Step::Bans);
    let journal = inherited(configuration.journal_descriptor).map_err(|e| refused(step, "ban journal", &e))?;
    let journal = Journal::open(journal).map_err(|e| refused(step, "ban journal", &e))?;
    let (stores, recovered) = open_storages(&configuration.storages, journal.identity(), step)?;
    step(Step::Bans);
    let cache = Cache::new(stores, journal, now).map_err(|e| refused(step, "ban journal", &e))?;
    step(Step::Index);
    cache.store().set_transient_limit(configuration.transient_limit_bytes);
    cache.store().keep_room_for_markers();
    let policies: Vec<_> = configuration.storages.iter().map(|storage| storage.policy).collect();
    cache.set_policies(&policies);
    cache.configure(&parameters);
    let of_log = ring.clone();
    cache.set_log_sink(Box::new(move |tag, payload| of_log.write(tag, shm::log::LogId::NONE, payload)));
    let (torn, evicted) = (recovered.torn, recovered.evicted);
    let kept = cache.adopt(recovered.objects, now, configuration.event_loops);
    for (store, storage) in cache.stores().iter().zip(&configuration.storages).filter(|(store, _)| store.is_on_disk()) {
        // The file is divided for the memory that it should have; there may be less now.
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
        vxids: VxidSource::new(configuration.log_layout.vxid_bits()),
        identity,
        hostname: configuration.hostname,
        pseudonym: engine::via::pseudonym(RandomState::new().build_hasher().finish()),
        name: configuration.name,
        pipes: AtomicU32::new(0),
        draining: AtomicBool::new(false),
        fragment_fetch_bytes: AtomicU64::new(0),
        random: TestableRandom::new(DEFAULT_SEED),
        vmod_state: SharedState::new(),
        panics: PanicHook::default(),
        is_copying: AtomicBool::new(false),
        query_rules: QueryRules::default(),
        leaks: engine::leak_guard::LeakGuard::default(),
        challenges: challenges(configuration.tls.as_ref()),
        memory: RequestMemory::default(),
        waiting: AtomicU32::new(0),
        fleet: FleetConditions::default(),
    });
    let complaints = Arc::new(Complaints::default());
    // The manager has checked the table. If it is unusable anyway, only listeners without TLS are
    // served.
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
        directory_lock,
        inherited: Rc::new(inherited_record),
        record_slots: RefCell::new(Some(record_slots)),
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

/// Address in `local.endpoint`: as configured; if the system chose the port, with that port.
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

/// The answers to challenges of authorities: an order may be under way.
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

    /// Sets the backends of a VCL as an operator had set them in the last worker, unless that was
    /// another VCL of the same name: before anything is accepted, VCLs are those that the last
    /// worker had.
    pub fn set_as_before(&self, vcl: &LoadedVcl) {
        if self.started.get() {
            return;
        }
        for (name, admin) in self.inherited.set_for(&vcl.name) {
            backend::listing::set_health(name, admin, &[&vcl.directors], None, self.own.clock.now());
        }
    }

    /// Writes the backend health record for the next worker. Before the first start not all VCLs
    /// are loaded.
    pub fn note(&self) {
        let mut record_slots = self.record_slots.borrow_mut();
        let Some(record_slots) = record_slots.as_mut().filter(|_| self.started.get()) else { return };
        let record = HealthRecord::of(&self.engine.vcl.load(), self.own.clock.now());
        // A worker without a record runs its probes.
        let _ = record_slots.write(&self.directory_lock, &record);
    }

    /// Writes the record for the last time: the VCLs end now.
    pub fn note_last(&self) {
        self.note();
        *self.record_slots.borrow_mut() = None;
    }

    /// Applies new limits of the storages. Objects beyond them are evicted now.
    pub async fn set_limits(&self, limits: Vec<u64>) -> Response {
        let engine = Arc::clone(&self.engine);
        // This may take long: millions of objects may be evicted.
        let changed = tokio::task::spawn_blocking(move || {
            let stores = engine.cache.stores().iter().zip(limits);
            stores.map(|(store, limit)| store.set_limit(limit).to_string()).collect::<Vec<_>>().join(" ")
        });
        changed.await.map_or_else(|error| Response::new(CANNOT, error.to_string()), Response::ok)
    }

    /// Replaces the TLS table. An unusable table changes nothing.
    pub fn set_tls(&self, table: &TlsTable) -> Response {
        match tls::server::build_after(table, &self.tls.load()) {
            Ok(served) => {
                self.tls.store(Arc::new(served));
                self.engine.challenges.set(answers(Some(table)));
                Response::ok("")
            }
            Err(why) => Response::new(CANNOT, why),
        }
    }

    /// Passes the listening sockets to the loops.
    pub fn start(&self) -> Response {
        if self.started.replace(true) {
            return Response::new(CANNOT, "Already accepting");
        }
        let mut of_loop: Vec<Vec<Listening>> = self.loops.iter().map(|_| Vec::new()).collect();
        for (configured, address) in self.listeners.iter().zip(&self.addresses) {
            let listener = Listener {
                name: configured.name.clone(),
                endpoint: endpoint(configured, *address),
                path: configured.path.clone(),
                proxy: configured.proxy,
                tls: configured.tls,
                redirect_port: configured.redirect_port,
                names_scheme: self.listeners.iter().any(|one| one.tls),
                http3_port: address.filter(|_| !configured.udp_descriptors.is_empty()).map(|it| it.port()),
            };
            let datagrams = match self.datagrams_of(configured, of_loop.len()) {
                Ok(datagrams) => datagrams,
                Err(error) => return Response::new(CANNOT, format!("listener {}, UDP: {error}", configured.name)),
            };
            let sockets = match sockets_of(configured, of_loop.len()) {
                Ok(sockets) => sockets,
                Err(error) => return Response::new(CANNOT, format!("listener {}: {error}", configured.name)),
            };
            for ((given, descriptor), datagrams) in of_loop.iter_mut().zip(sockets).zip(datagrams) {
                given.push(Listening { descriptor, listener: listener.clone(), datagrams });
            }
        }
        for (one, listening) in self.loops.iter().zip(of_loop) {
            one.send(LoopCommand::Accept(listening));
        }
        Response::ok("")
    }

    /// The UDP sockets of a listener, one for each loop; none without HTTP/3.
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
