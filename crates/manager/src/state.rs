//! The state of the manager: one value, shared by all tasks of its single thread.
//!
//! No borrow of a cell is held across an `.await`. Whatever changes the worker or the set of VCLs holds `changes`
//! meanwhile, so that a start, a load and a stop come one after the other; everything else (ping, status, param.show)
//! waits for nobody.

use crate::acme::table::Acme;
use crate::arguments::{Arguments, Mode};
use crate::cli_connections::{Connections, HeldCliListener};
use crate::directory::{WorkDirectory, aside_text};
use crate::link::Link;
use crate::listeners::Listener;
use crate::memory_files::MemoryFiles;
use crate::program::Program;
use crate::recovery::Failures;
use crate::report::{Level, Reporter};
use crate::shortage::Deaths;
use crate::tls::registry::Registry;
use crate::vcl_table::VclTable;
use shm::vsc::{CounterBlock, Publisher};
use shm::vsm::VsmWriter;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use surface::counter::MGT;
use surface::parameter::{Parameters, debug};
use tokio::sync::{Mutex, Notify, watch};

/// The manager's counters have document ids from here on; a worker's are smaller.
const DOCUMENT_ID_BASE: u64 = 1 << 40;

/// The state of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// There is none, and none is wanted.
    Stopped,
    /// It is being set up.
    Starting,
    /// It serves.
    Running,
    /// It was told to end.
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
    /// When it was started.
    pub since: Instant,
    /// Becomes true when the process is gone and its end has been reported.
    pub gone: watch::Receiver<bool>,
}

/// The manager's own counters, by their position in section MGT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Count {
    Uptime = 0,
    ChildStart = 1,
    ChildExit = 2,
    ChildStop = 3,
    ChildDied = 4,
    ChildDump = 5,
    ChildPanic = 6,
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
    /// Listening sockets.
    pub listeners: RefCell<Vec<Listener>>,
    /// Certificates and what else TLS needs. It is changed by `tls::apply` only.
    pub tls: RefCell<Registry>,
    /// Certificates that are ordered, if any are.
    pub acme: Option<Acme>,
    /// Memory that outlives workers.
    pub memory: RefCell<MemoryFiles>,
    /// Limit of each storage in bytes, as the command line and the memory that there is would have it.
    pub storage_limits_bytes: RefCell<Vec<u64>>,
    /// The limits for the next worker: smaller after one that ran out of memory.
    pub limits_now_bytes: RefCell<Vec<u64>>,
    /// Workers that were killed.
    pub deaths: RefCell<Deaths>,
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
    /// Held by whatever changes the worker or the VCLs.
    pub changes: Mutex<()>,
    /// How the last worker ended.
    pub last_end: Cell<Option<ExitStatus>>,
    /// Starts that failed because of the stored content.
    pub failures: RefCell<Failures>,
    /// How many workers in a row died young.
    pub short_lives: Cell<u32>,
    /// A worker was stopped before, so the next start is not the first.
    pub was_stopped: Cell<bool>,
    /// Status bits for our own exit.
    pub exit_status: Cell<i32>,
    /// Triggers the end of the manager.
    pub end: Notify,
    /// The end is wanted at once, regardless of what is in flight.
    pub hurry: Notify,
    /// The manager is ending: no more workers are started.
    pub ending: Cell<bool>,
    /// systemd waits for our first worker.
    pub is_awaited: Cell<bool>,
    /// Present CLI connections.
    pub connections: Connections,
    /// The sockets of `-T`, for a successor.
    pub cli_sockets: Vec<HeldCliListener>,
    /// How we were started.
    pub program: Program,
    /// The process of a successor that does not serve yet.
    pub successor: Cell<Option<u32>>,
    /// The command `upgrade` has been answered.
    pub upgrade_answered: Notify,
    index: VsmWriter,
    counters: CounterBlock,
    counts: RefCell<[u64; 7]>,
    begun: Instant,
}

/// What is created before the manager itself.
pub struct Parts {
    /// The work directory, locked.
    pub directory: WorkDirectory,
    /// Sockets, bound.
    pub listeners: Vec<Listener>,
    /// What TLS is served with.
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
    /// How we were started.
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
        if let Some(aside) = parts.directory.forget_worker()? {
            reporter.say(Level::Error, &aside_text(&aside));
        }
        let index = VsmWriter::create(&parts.directory.make_manager_directory()?)?;
        index.add_text("Arg", "-i", &identity)?;
        let publisher = Publisher::new(&index, DOCUMENT_ID_BASE);
        let counters = publisher.publish(&MGT, "MGT")?;
        Ok(Manager {
            parameters: RefCell::new(arguments.parameters.clone()),
            arguments,
            reporter,
            identification,
            identity,
            vcls: RefCell::new(VclTable::default()),
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
            program: parts.program,
            successor: Cell::new(None),
            upgrade_answered: Notify::new(),
            index,
            counters,
            counts: RefCell::new([0; 7]),
            begun: Instant::now(),
        })
    }

    /// Publishes where the CLI listens (`address port`, `path -`) and where its secret is, for varnishadm.
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
    pub fn count(&self, count: Count) {
        let mut counts = self.counts.borrow_mut();
        counts[count as usize] += 1;
        self.counters.set(count as usize, counts[count as usize]);
    }

    /// Sets a counter to zero.
    pub fn clear_count(&self, count: Count) {
        self.counts.borrow_mut()[count as usize] = 0;
        self.counters.set(count as usize, 0);
    }

    /// Publishes how long the manager runs.
    pub fn count_uptime(&self) {
        self.counters.set(Count::Uptime as usize, self.begun.elapsed().as_secs());
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

    /// How long a stop waits for requests in flight.
    #[must_use]
    pub fn drain(&self) -> Duration {
        Duration::try_from_secs_f64(self.parameters.borrow().drain_timeout).unwrap_or_default()
    }

    /// How long the worker may take for a reply.
    #[must_use]
    pub fn reply_timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.parameters.borrow().cli_timeout.max(0.1)).unwrap_or(Duration::from_secs(60))
    }

    /// Whether a debug bit is set.
    #[must_use]
    pub fn debug(&self, bit: u64) -> bool {
        self.parameters.borrow().debug & bit != 0
    }

    /// Whether the shared memory of a worker stays readable after its end.
    #[must_use]
    pub fn keeps_memory(&self) -> bool {
        self.debug(debug::VTC_MODE | debug::VSM_KEEP)
    }

    /// How many event loops a worker gets.
    #[must_use]
    pub fn event_loops(&self) -> usize {
        event_loops(&self.parameters.borrow())
    }

    /// Whether standard input is the CLI.
    #[must_use]
    pub fn is_debug_mode(&self) -> bool {
        self.arguments.mode == Mode::Debug
    }
}

/// The parameter `event_loops`; 0 means one for each core that we may use. A test script's server answers one connection
/// at a time, and each loop keeps its own connections to origins: so under debug bit `vtc_mode` 0 means a single loop.
#[must_use]
pub fn event_loops(parameters: &Parameters) -> usize {
    match usize::try_from(parameters.event_loops) {
        Ok(0) if parameters.debug & debug::VTC_MODE != 0 => 1,
        Ok(0) | Err(_) => std::thread::available_parallelism().map_or(1, usize::from),
        Ok(loops) => loops,
    }
}
