//! One backend: its definition, counters, health, the connections in use and the hold-down after failed connects.
//!
//! Shared by all event loops in an `Arc`; whatever changes is atomic. A fetch holds the `Arc` for as long as it uses a
//! connection, so a discarded VCL leaves no dangling count. Next file: `open.rs`.

use crate::dial::DialTarget;
use crate::health::Health;
use crate::pool_key::{PoolKey, SharedKey};
use crate::probe::ProbeState;
use crate::trouble::Troubles;
use shm::counters::SharedCounters;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use surface::counter::{VBE, Vbe};
use surface::parameter::Parameters;
use vcl_run::program::{BackendDefinition, Endpoint, ProbeDefinition};

/// How many counters section `VBE` has.
pub const VBE_COUNT: usize = VBE.counters.len();

/// A backend of a loaded VCL.
pub struct Backend {
    definition: BackendDefinition,
    display_name: String,
    pool_key: SharedKey,
    probe: Option<ProbeState>,
    health: Health,
    counters: SharedCounters<VBE_COUNT>,
    connections: AtomicU32,
    /// Until when connects are not tried, seconds since 1970 as bits.
    held_until: AtomicU64,
    troubles: Troubles,
}

impl Backend {
    /// A backend of the VCL of that name. `probe` is the definition that `definition.probe` refers to.
    #[must_use]
    pub fn new(vcl: &str, definition: BackendDefinition, probe: Option<&ProbeDefinition>, now: f64) -> Arc<Backend> {
        let health = Health::new(now);
        let counters = SharedCounters::new();
        let probe = probe.map(|probe| ProbeState::new(probe.clone()));
        if let Some(probe) = &probe {
            let window = probe.window();
            health.set_probed(window.is_healthy(), now);
            counters.set(Vbe::Happy as usize, window.happy());
        }
        Arc::new(Backend {
            display_name: format!("{vcl}.{}", definition.name),
            pool_key: SharedKey::new(definition.endpoint.clone(), definition.preamble.clone()),
            probe,
            health,
            counters,
            connections: AtomicU32::new(0),
            held_until: AtomicU64::new(0f64.to_bits()),
            troubles: Troubles::default(),
            definition,
        })
    }

    /// The VCL name, as the log shows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// `vcl.name`, as counters and `backend.list` show it.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.display_name
    }

    /// The definition.
    #[must_use]
    pub fn definition(&self) -> &BackendDefinition {
        &self.definition
    }

    /// What its idle connections are kept under.
    #[must_use]
    pub fn pool_key(&self) -> &Arc<PoolKey> {
        self.pool_key.key()
    }

    /// The probe; `None` when it has none.
    #[must_use]
    pub fn probe(&self) -> Option<&ProbeState> {
        self.probe.as_ref()
    }

    /// Its health.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Whether it may be used.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.health.is_healthy()
    }

    /// The requests that it counts as sick for, for those who heed saint mode.
    #[must_use]
    pub fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// Its `VBE` counters.
    #[must_use]
    pub fn counters(&self) -> &SharedCounters<VBE_COUNT> {
        &self.counters
    }

    /// Adds to one of its counters.
    pub fn count(&self, counter: Vbe, amount: u64) {
        self.counters.add(counter as usize, amount);
    }

    /// Connections in use, all loops together.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(Relaxed)
    }

    /// Where to connect to; `None` for `backend x none`.
    #[must_use]
    pub fn target(&self, prefer_v6: bool) -> Option<DialTarget> {
        match &self.definition.endpoint {
            Endpoint::None => None,
            Endpoint::Ip { v4, v6 } => Some(DialTarget::Ip { v4: *v4, v6: *v6, prefer_v6 }),
            Endpoint::Unix(path) => Some(DialTarget::Unix(path.clone())),
        }
    }

    /// Takes a place among `max_connections`; false when there is none.
    pub(crate) fn enter(&self) -> bool {
        let limit = match self.definition.max_connections {
            0 => u32::MAX,
            limit => limit,
        };
        let entered = self
            .connections
            .fetch_update(Relaxed, Relaxed, |used| (used < limit).then(|| used.saturating_add(1)))
            .is_ok();
        if entered {
            self.counters.add(Vbe::Conn as usize, 1);
        }
        entered
    }

    /// Gives the place back.
    pub(crate) fn leave(&self) {
        let _ = self.connections.fetch_update(Relaxed, Relaxed, |used| used.checked_sub(1));
        self.counters.sub(Vbe::Conn as usize, 1);
    }

    /// Whether a failed connect is so recent that another is not tried.
    pub(crate) fn is_held_down(&self, now: f64) -> bool {
        now < f64::from_bits(self.held_until.load(Relaxed))
    }

    /// Counts a failed connect and, for errors that won't go away at once, holds further attempts down.
    pub(crate) fn note_failure(&self, errno: i32, now: f64, parameters: &Parameters) {
        let (counter, hold_seconds) = match errno {
            EACCES | EPERM => (Vbe::FailEacces, parameters.backend_local_error_holddown),
            EADDRNOTAVAIL => (Vbe::FailEaddrnotavail, parameters.backend_local_error_holddown),
            ECONNREFUSED => (Vbe::FailEconnrefused, parameters.backend_remote_error_holddown),
            ENETUNREACH => (Vbe::FailEnetunreach, parameters.backend_remote_error_holddown),
            ETIMEDOUT => (Vbe::FailEtimedout, 0.0),
            _ => (Vbe::FailOther, 0.0),
        };
        self.count(Vbe::Fail, 1);
        self.count(counter, 1);
        if hold_seconds > 0.0 {
            self.held_until.store((now + hold_seconds).to_bits(), Relaxed);
        }
    }
}

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const EPIPE: i32 = 32;
const EADDRNOTAVAIL: i32 = 99;
const ENETUNREACH: i32 = 101;
const ECONNABORTED: i32 = 103;
const ECONNRESET: i32 = 104;
pub(crate) const ETIMEDOUT: i32 = 110;
const ECONNREFUSED: i32 = 111;

/// The error number of an I/O error. Errors without one (from memory, in tests) get the number of their kind; 0 when there
/// is none.
#[must_use]
pub fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_else(|| match error.kind() {
        io::ErrorKind::PermissionDenied => EACCES,
        io::ErrorKind::AddrNotAvailable => EADDRNOTAVAIL,
        io::ErrorKind::ConnectionRefused => ECONNREFUSED,
        io::ErrorKind::ConnectionReset => ECONNRESET,
        io::ErrorKind::ConnectionAborted => ECONNABORTED,
        io::ErrorKind::NetworkUnreachable => ENETUNREACH,
        io::ErrorKind::TimedOut => ETIMEDOUT,
        io::ErrorKind::BrokenPipe => EPIPE,
        _ => 0,
    })
}

/// The C library's text of an error number, e.g. `Connection refused`.
#[must_use]
pub fn error_text(errno: i32) -> String {
    if errno == 0 {
        return "Success".to_owned();
    }
    let text = io::Error::from_raw_os_error(errno).to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backend").field("name", &self.display_name).finish_non_exhaustive()
    }
}
