//! The state of the manager: one value, shared by all tasks of its single thread.
//!
//! No borrow of a cell is held across an `.await`. Every change of the worker or of the set of VCLs
//! holds `changes`, so that a start, a load and a stop come one after the other; everything else
//! (ping, status, param.show) never waits.

use crate::acme::table::Acme;
use crate::arguments::{Arguments, Mode};
use crate::canary::Running;
use crate::cli_connections::{Connections, HeldCliListener};
use crate::dash_sessions::Sessions;
use crate::dash_tokens::Tokens;
use crate::directory::{WorkDirectory, quarantine_text};
use crate::fleet::Fleet;
use crate::link::Link;
use crate::listeners::Listener;
use crate::memory_files::MemoryFiles;
use crate::metrics_sockets::MetricsSocket;
use crate::program::Program;
use crate::published_state::PublishedState;
use crate::recovery::Failures;
use crate::report::{Level, Reporter};
use crate::shortage::DeathHistory;
use crate::tls::registry::Registry;
use crate::vcl_history::VclHistory;
use crate::vcl_table::VclTable;
use shm::vsc::{CounterBlock, Publisher};
use shm::vsm::VsmWriter;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use surface::counter::{MGT, Mgt};
use surface::parameter::{Parameters, debug};
use tokio::sync::{Mutex, Notify, watch};

/// The manager's counters have document ids from here on; a worker's are smaller.
const DOCUMENT_ID_BASE: u64 = 1 << 40;

/// The state of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// No worker runs, and none should.
    Stopped,
    /// It is being set up.
    Starting,
    /// It serves.
    Running,
    /// The worker was ordered to end.
    Stopping,
    /// It died; the next one will follow.
    Died,
}

impl ChildState {
    /// The word that `status` shows.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ChildState::Stopped => "stopped",
            ChildState::Starting => "starting",
            ChildState::Running => "running",
            ChildState::Stopping => "stopping",
            ChildState::Died => "died, (restarting)",
        }
    }
}

/// A worker process.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Process number.
    pub pid: u32,
    /// The control connection.
    pub link: Link,
    /// Start time of the worker.
    pub since: Instant,
    /// Becomes true when the process is gone and its end has been reported.
    pub gone: watch::Receiver<bool>,
}

/// Canaries.
#[derive(Debug, Default)]
pub struct Trials {
    /// The one that runs.
    pub running: Option<Running>,
    /// End of the last one, in a sentence.
    pub last: Option<String>,
}

/// Everything.
pub struct Manager {
    /// The command line.
    pub arguments: Arguments,
    /// Messages to the operator.
    pub reporter: Reporter,
    /// Platform and options, for the banner.
    pub identification: String,
    /// `-i`, or the host's name.
    pub identity: String,
    /// Current parameters.
    pub parameters: RefCell<Parameters>,
    /// VCLs and labels.
    pub vcls: RefCell<VclTable>,
    /// Changes of the active VCL.
    pub history: RefCell<VclHistory>,
    /// Canaries.
    pub trials: RefCell<Trials>,
    /// Listening sockets.
    pub listeners: RefCell<Vec<Listener>>,
    /// Certificates and other TLS state. Only `tls::apply` changes it.
    pub tls: RefCell<Registry>,
    /// Certificates that are ordered, if any are.
    pub acme: Option<Acme>,
    /// Memory that outlives workers.
    pub memory: RefCell<MemoryFiles>,
    /// Limit of each storage in bytes, from the command line and the available memory.
    pub storage_limits_bytes: RefCell<Vec<u64>>,
    /// The limits for the next worker: smaller after one that ran out of memory.
    pub limits_now_bytes: RefCell<Vec<u64>>,
    /// Workers that were killed.
    pub deaths: RefCell<DeathHistory>,
    /// The last worker died because memory ran out.
    pub memory_ran_out: Cell<bool>,
    /// We are sending the worker its SIGKILL.
    pub killed_by_us: Cell<bool>,
    /// The work directory.
    pub directory: RefCell<WorkDirectory>,
    /// Path of the CLI's secret; `None` = no authentication.
    pub secret: Option<PathBuf>,
    /// The last panic, with its date.
    pub panic: RefCell<Option<String>>,
    /// State of the worker.
    pub state: Cell<ChildState>,
    /// The worker, while there is one.
    pub worker: RefCell<Option<Worker>>,
    /// Held by every task that changes the worker or the VCLs.
    pub changes: Mutex<()>,
    /// Held while recorded requests are replayed for `vcl.use --compare`.
    pub replaying: Mutex<()>,
    /// Exit status of the last worker.
    pub last_end: Cell<Option<ExitStatus>>,
    /// Starts that failed because of the stored content.
    pub failures: RefCell<Failures>,
    /// Number of consecutive workers that died young.
    pub short_lives: Cell<u32>,
    /// A worker was stopped before, so the next start is not the first.
    pub was_stopped: Cell<bool>,
    /// Status bits for our own exit.
    pub exit_status: Cell<i32>,
    /// Triggers the end of the manager.
    pub end: Notify,
    /// An immediate end was requested, regardless of requests in flight.
    pub hurry: Notify,
    /// The manager is ending: no more workers are started.
    pub ending: Cell<bool>,
    /// systemd waits for our first worker.
    pub is_awaited: Cell<bool>,
    /// Present CLI connections.
    pub connections: Connections,
    /// The sockets of `-T`, for a successor.
    pub cli_sockets: Vec<HeldCliListener>,
    /// The sockets of `-o metrics`.
    pub metrics: Vec<MetricsSocket>,
    /// The sockets of `-o dash`.
    pub dash: Vec<MetricsSocket>,
    /// Tokens that log in to the dashboard.
    pub tokens: Tokens,
    /// The fleet, if there is one.
    pub fleet: Option<Fleet>,
    /// Sessions of the dashboard.
    pub dash_sessions: Sessions,
    /// Our command line.
    pub program: Program,
    /// The process of a successor that does not serve yet.
    pub successor: Cell<Option<u32>>,
    /// The command `upgrade` has been answered.
    pub upgrade_answered: Notify,
    index: VsmWriter,
    counters: CounterBlock,
    /// VCLs, certificates and loads as counters.
    pub published: PublishedState,
    counts: RefCell<Box<[u64]>>,
    begun: Instant,
}

/// Resources that are created before the manager itself.
pub struct Parts {
    /// The work directory, locked.
    pub directory: WorkDirectory,
    /// Sockets, bound.
    pub listeners: Vec<Listener>,
    /// TLS state.
    pub tls: Registry,
    /// Certificates that are ordered.
    pub acme: Option<Acme>,
    /// The secret's path.
    pub secret: Option<PathBuf>,
    /// Limit of each storage in bytes.
    pub storage_limits_bytes: Vec<u64>,
    /// The memory that outlives workers.
    pub memory: MemoryFiles,
    /// The sockets of `-T`.
    pub cli_sockets: Vec<HeldCliListener>,
    /// The sockets of `-o metrics`.
    pub metrics: Vec<MetricsSocket>,
    /// The sockets of `-o dash`.
    pub dash: Vec<MetricsSocket>,
    /// Our command line.
    pub program: Program,
}

impl Manager {
    /// Assembles the manager and publishes its part of the shared memory.
    ///
    /// # Errors
    /// The shared memory can't be made.
    pub fn new(arguments: Arguments, reporter: Reporter, parts: Parts) -> std::io::Result<Manager> {
        let identification = crate::platform::identification(&arguments);
        let identity = arguments.identity.clone().unwrap_or_else(crate::platform::host_name);
        if let Some(quarantined) = parts.directory.forget_worker()? {
            reporter.say(Level::Error, &quarantine_text(&quarantined));
        }
        let index = VsmWriter::create(&parts.directory.make_manager_directory()?)?;
        index.add_text("Arg", "-i", &identity)?;
        let publisher = Publisher::new(&index, DOCUMENT_ID_BASE);
        let counters = publisher.publish(&MGT, "MGT")?;
        let fleet = arguments.fleet.clone().map(Fleet::new);
        Ok(Manager {
            parameters: RefCell::new(arguments.parameters.clone()),
            arguments,
            reporter,
            identification,
            identity,
            vcls: RefCell::new(VclTable::default()),
            history: RefCell::default(),
            trials: RefCell::default(),
            listeners: RefCell::new(parts.listeners),
            tls: RefCell::new(parts.tls),
            acme: parts.acme,
            memory: RefCell::new(parts.memory),
            limits_now_bytes: RefCell::new(parts.storage_limits_bytes.clone()),
            storage_limits_bytes: RefCell::new(parts.storage_limits_bytes),
            deaths: RefCell::default(),
            memory_ran_out: Cell::new(false),
            killed_by_us: Cell::new(false),
            directory: RefCell::new(parts.directory),
            secret: parts.secret,
            panic: RefCell::new(None),
            state: Cell::new(ChildState::Stopped),
            worker: RefCell::new(None),
            changes: Mutex::new(()),
            replaying: Mutex::new(()),
            last_end: Cell::new(None),
            failures: RefCell::default(),
            short_lives: Cell::new(0),
            was_stopped: Cell::new(false),
            exit_status: Cell::new(0),
            end: Notify::new(),
            hurry: Notify::new(),
            ending: Cell::new(false),
            is_awaited: Cell::new(false),
            connections: Connections::default(),
            cli_sockets: parts.cli_sockets,
            metrics: parts.metrics,
            dash: parts.dash,
            tokens: Tokens::default(),
            fleet,
            dash_sessions: Sessions::default(),
            program: parts.program,
            successor: Cell::new(None),
            upgrade_answered: Notify::new(),
            index,
            counters,
            published: PublishedState::new(publisher)?,
            counts: RefCell::new(vec![0; MGT.counters.len()].into()),
            begun: Instant::now(),
        })
    }

    /// Publishes where the CLI listens (`address port`, `path -`) and where its secret is, for
    /// varnishadm.
    ///
    /// # Errors
    /// The shared memory can't be written.
    pub fn publish_cli(&self, places: &[String], secret: Option<&Path>) -> std::io::Result<()> {
        if !places.is_empty() {
            self.index.add_text("Arg", "-T", &places.iter().map(|place| format!("{place}\n")).collect::<String>())?;
        }
        if let Some(secret) = secret {
            self.index.add_text("Arg", "-S", &secret.to_string_lossy())?;
        }
        self.directory.borrow().share_manager_files();
        Ok(())
    }

    /// Sends a message to the operator.
    pub fn say(&self, level: Level, text: impl AsRef<str>) {
        self.reporter.say(level, text.as_ref());
    }

    /// Adds one to a counter.
    pub fn count(&self, count: Mgt) {
        let mut counts = self.counts.borrow_mut();
        counts[count as usize] += 1;
        self.counters.set(count as usize, counts[count as usize]);
    }

    /// Sets a counter to zero.
    pub fn clear_count(&self, count: Mgt) {
        self.counts.borrow_mut()[count as usize] = 0;
        self.counters.set(count as usize, 0);
    }

    /// Publishes the uptime of the manager.
    pub fn count_uptime(&self) {
        self.counters.set(Mgt::Uptime as usize, self.begun.elapsed().as_secs());
    }

    /// The worker and its connection, when it runs or is being set up.
    #[must_use]
    pub fn worker(&self) -> Option<Worker> {
        self.worker.borrow().clone()
    }

    /// The worker if it is serving and can take commands.
    #[must_use]
    pub fn running_worker(&self) -> Option<Worker> {
        (self.state.get() == ChildState::Running).then(|| self.worker()).flatten()
    }

    /// Time that a stop waits for requests in flight.
    #[must_use]
    pub fn drain(&self) -> Duration {
        Duration::try_from_secs_f64(self.parameters.borrow().drain_timeout).unwrap_or_default()
    }

    /// Time limit for a reply of the worker.
    #[must_use]
    pub fn reply_timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.parameters.borrow().cli_timeout.max(0.1)).unwrap_or(Duration::from_secs(60))
    }

    /// True if a debug bit is set.
    #[must_use]
    pub fn debug(&self, bit: u64) -> bool {
        self.parameters.borrow().debug & bit != 0
    }

    /// True if the shared memory of a worker stays readable after its end.
    #[must_use]
    pub fn keeps_memory(&self) -> bool {
        self.debug(debug::VTC_MODE | debug::VSM_KEEP)
    }

    /// Number of event loops of a worker.
    #[must_use]
    pub fn event_loops(&self) -> usize {
        event_loops(&self.parameters.borrow())
    }

    /// True if standard input is the CLI.
    #[must_use]
    pub fn is_debug_mode(&self) -> bool {
        self.arguments.mode == Mode::Debug
    }
}

/// The parameter `event_loops`; 0 means one for each core that we may use. A test script's server
/// answers one connection at a time, and each loop keeps its own connections to origins: so under
/// debug bit `vtc_mode` 0 means a single loop.
#[must_use]
pub fn event_loops(parameters: &Parameters) -> usize {
    match usize::try_from(parameters.event_loops) {
        Ok(0) if parameters.debug & debug::VTC_MODE != 0 => 1,
        Ok(0) | Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
        Ok(loops) => loops,
    }
}
