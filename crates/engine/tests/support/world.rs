//! One engine with one event loop.

use super::client::Client;
use super::origin::{DialInMemory, Handler, OriginStream};
use super::streams::StreamClient;
use arc_swap::ArcSwap;
use backend::TestableRandom;
use cache::Cache;
use engine::clock::Clock;
use engine::context::{Engine, Loop};
use engine::loaded_vcl::{LoadedVcl, VclTable};
use engine::memory::RequestMemory;
use engine::panics::PanicHook;
use engine::peer::{Listener, Peer};
use engine::query_rules::QueryRules;
use engine::storages::Storages;
use engine::vcl_life;
use engine::vxid::VxidSource;
use shm::counters::MainCounters;
use shm::log::{LogConfiguration, LogRing, OwnedRecord};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use surface::closed_set::VclState;
use surface::counter::Main;
use surface::parameter::Parameters;
use tokio::task::LocalSet;

/// The address of the backend `default` of [`World::load`].
pub const ORIGIN: &str = "10.0.0.1:80";

/// The time at which a test's clock starts, seconds since 1970: a Friday.
pub const START: f64 = 1_795_202_400.0;

/// Buffer size of a connection between a client and the engine, in bytes.
const CONNECTION_BYTES: usize = 64 << 10;

/// One engine and its surroundings.
pub struct World {
    pub context: Rc<Loop>,
    pub engine: Arc<Engine>,
    dial: Rc<DialInMemory>,
}

/// Runs a test in a world with default parameters and a VCL that only defines the origin.
pub fn run<F: Future<Output = ()>>(story: impl FnOnce(Rc<World>) -> F) {
    run_with(|_| {}, "", story);
}

/// Runs a test in a world with other parameters and a VCL text, which is put after `vcl 4.1;` and
/// the backend `default`. A text with its own version or its own backend `default` is used
/// unchanged.
pub fn run_with<F: Future<Output = ()>>(
    change: impl FnOnce(&mut Parameters),
    vcl: &str,
    story: impl FnOnce(Rc<World>) -> F,
) {
    let mut parameters = Parameters::default();
    change(&mut parameters);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let world = Rc::new(World::new(parameters));
        world.load("boot", vcl);
        story(Rc::clone(&world)).await;
    });
}

impl World {
    /// A world without VCL. Call it inside a runtime with paused time.
    pub fn new(parameters: Parameters) -> World {
        World::with_storage(parameters, 64 << 20)
    }

    /// As [`World::new`], with a storage of that size.
    pub fn with_storage(parameters: Parameters, storage_bytes: u64) -> World {
        World::with_storages(parameters, &[storage_bytes])
    }

    /// As [`World::new`], with one storage of each size.
    pub fn with_storages(parameters: Parameters, storages_bytes: &[u64]) -> World {
        let cache = Cache::in_memory_of(storages_bytes, START).unwrap();
        World::over(parameters, cache)
    }

    /// As [`World::new`], with a cache that may already have objects.
    pub fn over(parameters: Parameters, cache: Cache) -> World {
        let ring = LogRing::in_memory(8 << 20);
        ring.configure(&LogConfiguration::from(&parameters));
        cache.configure(&parameters);
        let engine = Arc::new(Engine {
            storages: Storages::of(cache.stores()),
            cache,
            parameters: ArcSwap::from_pointee(parameters),
            ring,
            vcl: ArcSwap::from_pointee(VclTable::default()),
            vxids: VxidSource::new(30),
            identity: "here".into(),
            hostname: "here.example".into(),
            pseudonym: engine::via::pseudonym(1),
            name: surface::program::Called::Stock,
            pipes: AtomicU32::new(0),
            draining: AtomicBool::new(false),
            fragment_fetch_bytes: AtomicU64::new(0),
            random: TestableRandom::new(1),
            vmod_state: vmods::SharedState::new(),
            panics: PanicHook::default(),
            is_copying: AtomicBool::new(false),
            query_rules: QueryRules::default(),
            leaks: engine::leak_guard::LeakGuard::default(),
            challenges: engine::challenges::Challenges::default(),
            memory: RequestMemory::default(),
            waiting: AtomicU32::new(0),
            fleet: Default::default(),
        });
        let dial = Rc::new(DialInMemory::default());
        let context = Rc::new(Loop::new(
            Arc::clone(&engine),
            Arc::new(MainCounters::new()),
            Rc::clone(&dial) as Rc<dyn backend::Dial>,
            Clock::starting_at(START),
        ));
        World { context, engine, dial }
    }

    /// Compiles a text after `vcl 4.1;` and the backend `default`, loads it as `name` and makes it
    /// the active VCL.
    pub fn load(&self, name: &str, text: &str) {
        let vcl = self.compile(name, text);
        let mut table = VclTable::clone(&self.engine.vcl.load());
        table.loaded.insert(name.to_owned(), Arc::clone(&vcl));
        table.active = Some(vcl);
        self.engine.vcl.store(Arc::new(table));
    }

    /// As [`World::load`], but instead of making it active, points a label at it.
    pub fn load_under_label(&self, name: &str, label: &str, text: &str) {
        let vcl = self.compile(name, text);
        let mut table = VclTable::clone(&self.engine.vcl.load());
        table.loaded.insert(name.to_owned(), vcl);
        table.labels.insert(label.to_owned(), name.to_owned());
        self.engine.vcl.store(Arc::new(table));
    }

    /// Returns an error if a text cannot be loaded; the loaded VCL is dropped.
    pub fn try_load(&self, name: &str, text: &str) -> Result<(), String> {
        self.try_compile(name, text).map(drop)
    }

    fn compile(&self, name: &str, text: &str) -> Arc<LoadedVcl> {
        self.try_compile(name, text).unwrap()
    }

    fn try_compile(&self, name: &str, text: &str) -> Result<Arc<LoadedVcl>, String> {
        let (host, port) = ORIGIN.split_once(':').unwrap();
        let is_whole = ["vcl 4.", "backend default", "\ndirector "].iter().any(|sign| text.contains(sign));
        let source = if is_whole {
            text.to_owned()
        } else {
            format!("vcl 4.1; backend default {{ .host = \"{host}\"; .port = \"{port}\"; }} {text}")
        };
        let labels: Vec<String> = self.engine.vcl.load().labels.keys().cloned().collect();
        let storages = &self.engine.storages;
        let storages: Vec<String> = storages.all().map(|index| storages.name(index).unwrap().name.clone()).collect();
        let follows_rfc = self.engine.parameters.load().http_policy == "rfc";
        let follows_names = self.engine.parameters.load().backend_follow_dns != "off";
        let options = vcl::CompileOptions {
            labels: &labels,
            storages: &storages,
            err_unref: false,
            follows_rfc,
            follows_names,
            resolver: &OneName,
            ..Default::default()
        };
        let source = vcl::SourceText { name: "<test>", text: source.as_bytes() };
        let program = vcl::compile(&source, &options).unwrap_or_else(|error| panic!("{error}")).program;
        vcl_life::load(&self.engine, name, program, VclState::Auto, self.context.clock.now())
    }

    /// Serves connections to the origin of `default` with `handler`, each in its own task.
    pub fn origin<F: Future<Output = ()> + 'static>(&self, handler: impl Fn(OriginStream) -> F + 'static) {
        self.origin_at(ORIGIN, handler);
    }

    /// As [`World::origin`], for another address.
    pub fn origin_at<F: Future<Output = ()> + 'static>(
        &self,
        address: &str,
        handler: impl Fn(OriginStream) -> F + 'static,
    ) {
        let address: SocketAddr = address.parse().unwrap();
        let handler: Handler = Rc::new(move |stream| {
            tokio::task::spawn_local(handler(stream));
        });
        self.dial.set(address, handler);
    }

    /// Makes an address unresponsive: connects to it time out.
    pub fn silence(&self, address: &str) {
        self.dial.silence(address.parse().unwrap());
    }

    /// Number of connections to origins that were opened so far.
    pub fn dialled(&self) -> usize {
        self.dial.count()
    }

    /// Sets the end of an origin's connections: true if it reads as a reset.
    pub fn ends_are_resets(&self, are_they: bool) {
        self.dial.breaks().ends_are_resets.set(are_they);
    }

    /// Refuses the next write to an origin, as if the connection had been reset.
    pub fn refuse_next_write(&self) {
        self.dial.breaks().next_write.set(true);
    }

    /// A newly connected client.
    pub fn client(&self) -> Client {
        self.client_with(CONNECTION_BYTES)
    }

    /// As [`World::client`], on a connection with a buffer of that size.
    pub fn client_with(&self, connection_bytes: usize) -> Client {
        self.connect(connection_bytes, self.peer())
    }

    /// A client that can have many requests in progress on one connection.
    pub fn stream_client(&self) -> StreamClient {
        StreamClient::new(&self.context, self.peer())
    }

    /// A client with other addresses.
    pub fn client_from(&self, peer: Peer) -> Client {
        self.connect(CONNECTION_BYTES, peer)
    }

    fn connect(&self, connection_bytes: usize, peer: Peer) -> Client {
        let (near, far) = tokio::io::duplex(connection_bytes);
        tokio::task::spawn_local(engine::transport::serve(
            Rc::clone(&self.context),
            far,
            peer,
            Vec::new(),
            engine::transport::FirstProtocol::Either,
        ));
        Client::new(near)
    }

    /// The client's end of a connection with a buffer of that size, for a client of its own kind.
    pub fn wire(&self, connection_bytes: usize, speaks: engine::transport::FirstProtocol) -> tokio::io::DuplexStream {
        let (near, far) = tokio::io::duplex(connection_bytes);
        tokio::task::spawn_local(engine::transport::serve(
            Rc::clone(&self.context),
            far,
            self.peer(),
            Vec::new(),
            speaks,
        ));
        near
    }

    /// The addresses of a client's connection.
    pub fn peer(&self) -> Peer {
        let listener = Listener { name: "a0".into(), endpoint: ":80".into(), ..Listener::default() };
        Peer::direct(Rc::new(listener), "192.0.2.7:4711".parse().unwrap(), "192.0.2.1:80".parse().unwrap(), -1)
    }

    /// The value of a counter.
    pub fn count(&self, counter: Main) -> u64 {
        self.context.counters.get(counter)
    }

    /// The log so far.
    pub fn records(&self) -> Vec<OwnedRecord> {
        self.engine.ring.records()
    }

    /// The log so far: one line per record, `vxid Tag payload`, in the order in which the
    /// transactions ended.
    pub fn log(&self) -> Vec<String> {
        let lines = self.records().into_iter().map(|record| {
            format!("{} {} {}", record.id.vxid(), record.tag.name(), String::from_utf8_lossy(&record.payload))
        });
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    /// The records of one transaction without vxids and times: `Tag payload`, timestamps as
    /// `Timestamp Label`. The records of reasons, which Varnish does not have, are left out.
    pub fn transaction(&self, vxid: u64) -> Vec<String> {
        let mut lines = Vec::new();
        for record in self.records().into_iter().filter(|record| record.id.vxid() == vxid) {
            let payload = String::from_utf8_lossy(&record.payload).into_owned();
            if record.tag == surface::reason::TAG && payload.starts_with(surface::reason::RECORD) {
                continue;
            }
            let payload = match record.tag {
                surface::tag::Tag::Timestamp => payload.split(':').next().unwrap_or_default().to_owned(),
                _ => payload,
            };
            lines.push(format!("{} {payload}", record.tag.name()).trim_end().to_owned());
        }
        lines
    }

    /// All log lines by transaction, to print when a test fails.
    pub fn story(&self) -> String {
        let mut transactions: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for record in self.records() {
            let line = format!("  {} {}", record.tag.name(), String::from_utf8_lossy(&record.payload));
            transactions.entry(record.id.vxid()).or_default().push(line);
        }
        transactions.into_iter().map(|(vxid, lines)| format!("{vxid}\n{}\n", lines.join("\n"))).collect()
    }

    /// Asserts that the log has a line that contains the text.
    #[track_caller]
    pub fn expect_log(&self, text: &str) {
        assert!(self.log().iter().any(|line| line.contains(text)), "no record with {text:?} in\n{}", self.story());
    }
}

/// Resolves one name for the compiler, besides those of the system.
struct OneName;

impl vcl::Resolve for OneName {
    fn addresses(&self, host: &str) -> Result<Vec<std::net::IpAddr>, String> {
        match host {
            "origin.example" => Ok(vec!["192.0.2.80".parse().unwrap()]),
            _ => vcl::SystemResolver.addresses(host),
        }
    }

    fn port(&self, name: &str) -> Option<u16> {
        vcl::SystemResolver.port(name)
    }
}
