//! One backend: its definition, counters, health, the connections in use, and the hold-down after failed connects.
//!
//! Shared by all event loops in an `Arc`; everything that changes is atomic. A fetch keeps the `Arc` while it uses a
//! connection, so discarding a VCL leaves no count wrong. Next file: `open.rs`.

use crate::dial::{DialTarget, TlsFailure};
use crate::health::Health;
use crate::pool_key::{PoolKey, SharedKey};
use crate::probe::ProbeState;
use crate::saint_mode::TroubleList;
use crate::terms::TlsTerms;
use shm::counters::SharedCounters;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::time::Duration;
use surface::counter::{VBE, Vbe};
use surface::parameter::Parameters;
use tokio::sync::Notify;
use tokio::time::Instant;
use vcl_run::program::{BackendDefinition, Endpoint, ProbeDefinition};

/// Number of counters in section `VBE`.
pub const VBE_COUNT: usize = VBE.counters.len();

/// A backend of a loaded VCL.
pub struct Backend {
    definition: BackendDefinition,
    display_name: String,
    pool_key: SharedKey,
    tls: Option<TlsTerms>,
    probe: Option<ProbeState>,
    health: Health,
    counters: SharedCounters<VBE_COUNT>,
    connections: AtomicU32,
    /// Number of fetches that wait for a connection.
    waiting: AtomicU32,
    /// Notified when a connection becomes free while a fetch waits for one.
    freed: Notify,
    /// No connects are tried until this time; seconds since 1970, as the bits of an `f64`.
    held_until: AtomicU64,
    troubles: TroubleList,
}

impl Backend {
    /// A backend of the VCL with this name. `probe` is the definition that `definition.probe` refers to.
    #[must_use]
    pub fn new(vcl: &str, definition: BackendDefinition, probe: Option<&ProbeDefinition>, now: f64) -> Arc<Backend> {
        let health = Health::new(now);
        let tls = definition.tls.as_deref().cloned().map(TlsTerms::new);
        let counters = SharedCounters::new();
        let probe = probe.map(|probe| ProbeState::new(probe.clone()));
        if let Some(probe) = &probe {
            let window = probe.window();
            health.set_probed(window.is_healthy(), now);
            counters.set(Vbe::Happy as usize, window.happy());
        }
        Arc::new(Backend {
            display_name: format!("{vcl}.{}", definition.name),
            pool_key: SharedKey::new(&definition, tls.as_ref()),
            tls,
            probe,
            health,
            counters,
            connections: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
            held_until: AtomicU64::new(0f64.to_bits()),
            troubles: TroubleList::default(),
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

    /// The key of its idle connections.
    #[must_use]
    pub fn pool_key(&self) -> &Arc<PoolKey> {
        self.pool_key.key()
    }

    /// How its connections speak TLS; `None` in clear.
    #[must_use]
    pub fn tls(&self) -> Option<&TlsTerms> {
        self.tls.as_ref()
    }

    /// The protocols to offer in a TLS handshake (ALPN), the preferred one first; HTTP/2 only if VCL wants it and whoever
    /// asks can speak it.
    #[must_use]
    pub fn protocols(&self, offers_http2: bool) -> &'static [&'static [u8]] {
        if self.definition.http2 && offers_http2 { &[b"h2", b"http/1.1"] } else { &[b"http/1.1"] }
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

    /// Whether it may be used, according to its health.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.health.is_healthy()
    }

    /// The requests for which it counts as sick, for code that respects saint mode.
    #[must_use]
    pub fn troubles(&self) -> &TroubleList {
        &self.troubles
    }

    /// Its `VBE` counters.
    #[must_use]
    pub fn counters(&self) -> &SharedCounters<VBE_COUNT> {
        &self.counters
    }

    /// Adds `amount` to one of its counters.
    pub fn count(&self, counter: Vbe, amount: u64) {
        self.counters.add(counter as usize, amount);
    }

    /// Connections in use on all event loops.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(Relaxed)
    }

    /// Where to connect to; `None` for `backend x none`.
    #[must_use]
    pub fn target(&self, prefer_v6: bool) -> Option<DialTarget> {
        match self.definition.via.as_ref().map_or(&self.definition.endpoint, |via| &via.endpoint) {
            Endpoint::None => None,
            Endpoint::Ip { v4, v6 } => Some(DialTarget::Ip { v4: *v4, v6: *v6, prefer_v6 }),
            Endpoint::Unix(path) => Some(DialTarget::Unix(path.clone())),
        }
    }

    /// Writes the start of a new connection: the header that tells the proxy of `.via` where to connect, then the preamble.
    pub(crate) fn write_opening(&self, prefer_v6: bool, out: &mut Vec<u8>) {
        if let (Some(via), Endpoint::Ip { v4, v6 }) = (&self.definition.via, &self.definition.endpoint) {
            let (first, second) = if prefer_v6 { (v6, v4) } else { (v4, v6) };
            if let Some(destination) = first.or(*second) {
                let nobody: IpAddr =
                    if destination.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
                let source = SocketAddr::new(nobody, 0);
                proxy_protocol::write_version_2(source, destination, via.authority.as_bytes(), out);
            }
        }
        out.extend_from_slice(&self.definition.preamble);
    }

    /// Takes one of the `max_connections` places, waiting for one if that is allowed; false if there is none or the backend
    /// has become sick meanwhile.
    pub(crate) async fn enter_or_wait(&self, parameters: &Parameters) -> bool {
        if self.enter() {
            return true;
        }
        let limit = self.definition.wait_limit.map_or(parameters.backend_wait_limit, u64::from);
        let seconds = self.definition.wait_timeout.unwrap_or(parameters.backend_wait_timeout);
        let Some(patience) = Duration::try_from_secs_f64(seconds).ok().filter(|patience| !patience.is_zero()) else {
            return false;
        };
        let Some(_waiter) = Waiter::enter(&self.waiting, limit) else { return false };
        let due = Instant::now() + patience.min(WAIT_MAX);
        loop {
            let freed = self.freed.notified();
            let changed = self.health.changes().notified();
            tokio::pin!(freed, changed);
            // From here on no notification is missed.
            freed.as_mut().enable();
            changed.as_mut().enable();
            if !self.is_healthy() {
                break;
            }
            if self.enter() {
                return true;
            }
            tokio::select! {
                () = freed => {}
                () = changed => {}
                () = tokio::time::sleep_until(due) => break,
            }
        }
        false
    }

    /// Takes one of the `max_connections` places; false if there is none.
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

    /// Releases the place.
    pub(crate) fn leave(&self) {
        let _ = self.connections.fetch_update(Relaxed, Relaxed, |used| used.checked_sub(1));
        self.counters.sub(Vbe::Conn as usize, 1);
        // Pairs with the fence in `Waiter::enter`: either the waiter sees the free place, or this code sees the waiter.
        fence(SeqCst);
        if self.waiting.load(Relaxed) > 0 {
            self.freed.notify_one();
        }
    }

    /// Whether a connect failed so recently that no other is tried.
    pub(crate) fn is_held_down(&self, now: f64) -> bool {
        now < f64::from_bits(self.held_until.load(Relaxed))
    }

    /// Counts a failed connect. After an error that is likely to last, no connects are tried for a while.
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
        self.hold_down(hold_seconds, now);
    }

    /// Counts a failed TLS handshake. After a refusal none is tried for a while.
    pub(crate) fn note_no_handshake(&self, why: &TlsFailure, now: f64, parameters: &Parameters) {
        self.count(Vbe::Fail, 1);
        self.count(Vbe::FailOther, 1);
        self.hold_down(if why.is_refusal { parameters.backend_remote_error_holddown } else { 0.0 }, now);
    }

    fn hold_down(&self, seconds: f64, now: f64) {
        if seconds > 0.0 {
            self.held_until.store((now + seconds).to_bits(), Relaxed);
        }
    }
}

/// The longest time that a fetch may wait for a connection.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// A place among the fetches that wait for a connection, released when dropped.
struct Waiter<'a>(&'a AtomicU32);

impl<'a> Waiter<'a> {
    fn enter(waiting: &'a AtomicU32, limit: u64) -> Option<Waiter<'a>> {
        waiting
            .fetch_update(Relaxed, Relaxed, |count| (u64::from(count) < limit).then(|| count.saturating_add(1)))
            .ok()?;
        fence(SeqCst);
        Some(Waiter(waiting))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
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

/// The error number of an I/O error. Errors without one (from memory, in tests) get the number for their kind, or 0 if
/// there is none.
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
