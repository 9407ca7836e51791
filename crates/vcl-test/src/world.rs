//! One engine with one event loop, an empty cache and a virtual clock, for one case.

use crate::case::{Ready, Step};
use crate::facts::Facts;
use crate::wire::{CONNECTION_BYTES, DialInMemory, Origins, exchange};
use arc_swap::ArcSwap;
use backend::TestableRandom;
use backend::health::AdminHealth;
use backend::listing::set_health;
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
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;
use surface::closed_set::VclState;
use surface::parameter::Parameters;
use surface::program::Called;
use tokio::io::DuplexStream;
use tokio::task::{JoinHandle, LocalSet};
use vcl_run::program::Program;

/// Time at which the clock of every case starts, seconds since 1970.
const START: f64 = 1_795_202_400.0;
/// Size of the storage, in bytes. Only what is used takes memory.
const STORAGE_BYTES: u64 = 64 << 20;
/// Size of the log, in bytes.
const LOG_BYTES: usize = 4 << 20;
/// Virtual time after a response, in which background work ends.
const SETTLE: Duration = Duration::from_millis(1);
/// Name of the VCL.
pub(crate) const VCL_NAME: &str = "test";

/// The address of a client that names none.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The results of a case.
pub(crate) struct Ran {
    /// Facts of each request.
    pub(crate) facts: Vec<Facts>,
    /// Records of vcl_init.
    pub(crate) init: Vec<OwnedRecord>,
}

/// Runs a case from the start to its end.
///
/// # Errors
/// The VCL cannot be loaded, or there is no memory for the case; in words.
pub(crate) fn run(program: &Program, parameters: &Parameters, case: &Ready) -> Result<Ran, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async {
        let origins = Rc::new(Origins::new(&program.backends));
        let dial = Rc::new(DialInMemory(Rc::clone(&origins)));
        let world = World::new(program, parameters, dial, &Setting::default())?;
        let init = world.engine.ring.records();
        let mut facts = Vec::new();
        for step in &case.steps {
            facts.push(world.step(step, &origins).await);
        }
        Ok(Ran { facts, init })
    })
}

/// Time and room of a world.
pub(crate) struct Setting {
    /// Time at which the clock starts, in seconds since 1970.
    pub(crate) start: f64,
    /// Size of the cache, in bytes. Only what is used takes memory.
    pub(crate) storage_bytes: u64,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting { start: START, storage_bytes: STORAGE_BYTES }
    }
}

/// An engine with a VCL.
pub(crate) struct World {
    context: Rc<Loop>,
    pub(crate) engine: Arc<Engine>,
    vcl: Arc<LoadedVcl>,
}

impl World {
    /// A world whose backends are reached through `dial`.
    ///
    /// # Errors
    /// The VCL cannot be loaded, or there is no memory, in words.
    pub(crate) fn new(
        program: &Program,
        parameters: &Parameters,
        dial: Rc<dyn backend::Dial>,
        setting: &Setting,
    ) -> Result<World, String> {
        let start = setting.start;
        let cache = Cache::in_memory(setting.storage_bytes, start).map_err(|error| error.to_string())?;
        let ring = LogRing::in_memory(LOG_BYTES);
        ring.configure(&LogConfiguration::from(parameters));
        cache.configure(parameters);
        let engine = Arc::new(Engine {
            storages: Storages::of(cache.stores()),
            cache,
            parameters: ArcSwap::from_pointee(parameters.clone()),
            ring,
            vcl: ArcSwap::from_pointee(VclTable::default()),
            vxids: VxidSource::new(30),
            identity: "test".into(),
            hostname: "test.example".into(),
            pseudonym: engine::via::pseudonym(1),
            name: Called::Copal,
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
        let clock = Clock::starting_at(start);
        let context = Rc::new(Loop::new(Arc::clone(&engine), Arc::new(MainCounters::new()), dial, clock));
        let vcl = vcl_life::load(&engine, VCL_NAME, program.clone(), VclState::Auto, start)?;
        let mut table = VclTable::default();
        table.loaded.insert(VCL_NAME.to_owned(), Arc::clone(&vcl));
        table.active = Some(Arc::clone(&vcl));
        engine.vcl.store(Arc::new(table));
        Ok(World { context, engine, vcl })
    }

    /// One request, and everything that it causes.
    async fn step(&self, step: &Step, origins: &Origins) -> Facts {
        tokio::time::sleep(Duration::from_secs_f64(step.after)).await;
        self.set_health(&step.sick);
        origins.answer(step.origin.clone(), step.origins.clone());
        let before = self.engine.ring.records().len();
        let address = step.request.client.as_ref().and_then(|client| client.parse().ok()).unwrap_or(CLIENT);
        let (near, _) = self.connect(address, "a0");
        let response = exchange(near, &step.request).await;
        tokio::time::sleep(SETTLE).await;
        let mut records = self.engine.ring.records();
        // A ring that has wrapped has fewer records than before.
        records.drain(..before.min(records.len()));
        Facts::new(response, origins.take_received(), records)
    }

    /// A connection of a client, and the session that serves it.
    pub(crate) fn connect(&self, client: IpAddr, listener: &str) -> (DuplexStream, JoinHandle<()>) {
        let (near, far) = tokio::io::duplex(CONNECTION_BYTES);
        let context = Rc::clone(&self.context);
        let either = engine::transport::FirstProtocol::Either;
        let session = engine::transport::serve(context, far, peer(client, listener), Vec::new(), either);
        (near, tokio::task::spawn_local(session))
    }

    /// Probes do not run: every backend is healthy unless the case says otherwise.
    pub(crate) fn set_health(&self, sick: &[String]) {
        let directors = [&self.vcl.directors];
        let now = self.context.clock.now();
        let set = |pattern: &str, health| set_health(pattern, health, &directors, Some(VCL_NAME), now);
        set("*", AdminHealth::Healthy);
        for name in sick {
            set(name, AdminHealth::Sick);
        }
    }
}

/// The addresses of a client's connection.
fn peer(client: IpAddr, listener: &str) -> Peer {
    let listener = Listener { name: listener.to_owned(), endpoint: ":80".into(), ..Listener::default() };
    Peer::direct(Rc::new(listener), SocketAddr::new(client, 4711), SocketAddr::new(SERVER, 80), -1)
}
