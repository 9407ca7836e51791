//! One backend: its definition, counters, health, the connections in use, and the hold-down after failed connects.
//!
//! Shared by all event loops in an `Arc`; everything that changes is atomic. A fetch keeps the `Arc` while it uses a
//! connection, so discarding a VCL leaves no count wrong. Next file: `open.rs`.

use crate::addresses::{Addresses, Route};
use crate::dial::{DialTarget, TlsFailure};
use crate::health::Health;
use crate::hold::Hold;
use crate::pool_key::{PoolKey, SharedKey};
use crate::probe::ProbeState;
use crate::retry_budget::RetryBudget;
use crate::saint_mode::TroubleList;
use crate::terms::TlsTerms;
use crate::trust::{Leave, Trust, Turn};
use shm::counters::SharedCounters;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};
use std::time::Duration;
use surface::counter::{VBE, Vbe};
use surface::limits::SLOW_START_SHARE_MIN;
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
    /// What its fetches say about it; `None` = they never set it aside.
    trust: Option<Trust>,
    /// `None` = any number of fetches may be repeated.
    retries: Option<RetryBudget>,
    /// `None` = its address stays as it is.
    addresses: Option<Addresses>,
    counters: SharedCounters<VBE_COUNT>,
    connections: AtomicU32,
    /// Number of fetches that wait for a connection.
    waiting: AtomicU32,
    /// Notified when a connection becomes free while a fetch waits for one.
    freed: Notify,
    /// No connects are tried for a while.
    held: Hold,
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
            if !window.is_healthy() {
                health.set_probed(false, now);
            }
            counters.set(Vbe::Happy as usize, window.happy());
        }
        let addresses = definition.follows.is_some().then(|| Addresses::new(&definition, tls.as_ref()));
        counters.set(Vbe::Addresses as usize, addresses.as_ref().map_or(0, |addresses| addresses.list().len() as u64));
        Arc::new(Backend {
            display_name: format!("{vcl}.{}", definition.name),
            pool_key: SharedKey::new(&definition, tls.as_ref()),
            trust: definition.trust.as_deref().cloned().map(Trust::new),
            retries: definition.retry_budget.map(RetryBudget::new),
            addresses,
            tls,
            probe,
            health,
            counters,
            connections: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
            held: Hold::new(),
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

    /// Whether it may be used: the operator's word if there is one, else its probe's and that of its fetches.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.health.overridden().unwrap_or_else(|| self.is_good())
    }

    /// The same, whatever the operator says.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.health.probed() && self.trust.as_ref().is_none_or(Trust::is_usable)
    }

    /// What its fetches say about it; `None` if they never set it aside.
    #[must_use]
    pub fn trust(&self) -> Option<&Trust> {
        self.trust.as_ref()
    }

    /// Leave for one fetch, from those before it; the operator's word is above theirs.
    pub(crate) fn ask(&self) -> Leave {
        match &self.trust {
            Some(trust) if self.health.overridden().is_none() => trust.ask(),
            _ => Leave::Granted,
        }
    }

    /// The origin has begun to answer a fetch, which is this trial if it is one. `now`: seconds since 1970.
    pub fn note_answer(&self, trial: Option<u64>, now: f64) -> Option<Turn> {
        let is_back = self.trust.as_ref()?.answered(trial);
        is_back.then(|| {
            self.health.note_trust(true, now);
            Turn::Back
        })
    }

    /// A fetch was answered completely.
    pub fn note_success(&self) {
        if let Some(trust) = &self.trust {
            trust.succeeded();
        }
    }

    /// A fetch, which is this trial if it is one, has failed by the origin's fault. `now`: seconds since 1970.
    pub fn note_fault(&self, trial: Option<u64>, now: f64) -> Option<Turn> {
        let turn = self.trust.as_ref()?.failed(trial)?;
        self.count(Vbe::Aside, 1);
        self.health.note_trust(false, now);
        Some(turn)
    }

    /// Whether a fetch may be repeated; if so, that is counted.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        let may = self.retries.as_ref().is_none_or(RetryBudget::spend);
        self.count(Vbe::RetryRefused, u64::from(!may));
        may
    }

    /// The share of its load that it gets: less than 1 for a while after it has recovered. `now`: seconds since 1970.
    #[must_use]
    pub fn warmth(&self, now: f64) -> f64 {
        let time = self.definition.slow_start;
        let since = now - self.health.recovered();
        if (0.0..time).contains(&since) { (since / time).max(SLOW_START_SHARE_MIN) } else { 1.0 }
    }

    /// The addresses that are used, if its name is followed.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.as_ref().map(Addresses::list).unwrap_or_default()
    }

    /// Replaces them; returns whether they differ from those before. An empty list changes nothing.
    pub fn set_addresses(&self, found: &[SocketAddr]) -> bool {
        let Some(addresses) = &self.addresses else { return false };
        let is_news = addresses.set(found, &self.definition, self.tls.as_ref());
        self.counters.set(Vbe::Addresses as usize, addresses.list().len() as u64);
        is_news
    }

    /// All ways to it, the one to take first first; none for `backend x none`.
    pub(crate) fn routes(&self, prefer_v6: bool) -> Vec<Route> {
        match &self.addresses {
            Some(addresses) => addresses.routes(prefer_v6),
            None => {
                self.fixed_target(prefer_v6).map(|target| Route::fixed(target, self.pool_key())).into_iter().collect()
            }
        }
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
        // All event loops write to the same counters.
        if amount > 0 {
            self.counters.add(counter as usize, amount);
        }
    }

    /// Connections in use on all event loops.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.connections.load(Relaxed)
    }

    /// Whether requests wait for one of its connections to become free.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Whether it leads anywhere: `backend x none` does not.
    pub(crate) fn has_address(&self) -> bool {
        !matches!(self.endpoint(), Endpoint::None)
    }

    /// Where connections go: to the proxy of `.via`, if there is one.
    fn endpoint(&self) -> &Endpoint {
        self.definition.via.as_ref().map_or(&self.definition.endpoint, |via| &via.endpoint)
    }

    fn fixed_target(&self, prefer_v6: bool) -> Option<DialTarget> {
        match self.endpoint() {
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

    /// Takes one of the `max_connections` places, waiting for one if that is allowed. `clock`: seconds since 1970.
    ///
    /// # Errors
    /// Why it got none.
    pub(crate) async fn enter_or_wait(&self, parameters: &Parameters, clock: &dyn Fn() -> f64) -> Result<(), NoPlace> {
        // Whoever waits already comes first.
        let mut is_turn = self.waiting.load(Relaxed) == 0;
        if is_turn && self.enter(clock()) {
            return Ok(());
        }
        let limit = self.definition.wait_limit.map_or(parameters.backend_wait_limit, u64::from);
        let seconds = self.definition.wait_timeout.unwrap_or(parameters.backend_wait_timeout);
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(WAIT_MAX).min(WAIT_MAX);
        if limit == 0 || patience.is_zero() {
            return Err(NoPlace::Busy);
        }
        let Some(waiter) = Waiter::enter(self, limit) else { return Err(NoPlace::QueueFull) };
        // Those that were there a moment ago may have gone, and a place become free for which nobody was told.
        is_turn |= waiter.is_first;
        let due = Instant::now() + patience;
        loop {
            let freed = self.freed.notified();
            let changed = self.health.changes().notified();
            tokio::pin!(freed, changed);
            // From here on no notification is missed.
            freed.as_mut().enable();
            changed.as_mut().enable();
            if !self.is_healthy() {
                if is_turn {
                    // The place stays free for others, should it recover at once.
                    self.freed.notify_one();
                }
                return Err(NoPlace::Sick);
            }
            if is_turn && self.enter(clock()) {
                return Ok(());
            }
            // While the limit rises after a recovery, nobody need leave for a place to become free.
            let rising = if self.warmth(clock()) < 1.0 { Instant::now() + RISING_INTERVAL } else { due };
            tokio::select! {
                () = freed => is_turn = true,
                () = changed => {}
                () = tokio::time::sleep_until(rising.min(due)) => {
                    if Instant::now() >= due {
                        return Err(NoPlace::TimedOut);
                    }
                    is_turn = true;
                }
            }
        }
    }

    /// Takes one of the `max_connections` places; false if there is none. There are fewer of them while it starts slowly. `now`:
    /// seconds since 1970.
    pub(crate) fn enter(&self, now: f64) -> bool {
        let limit = match self.definition.max_connections {
            0 => u32::MAX,
            limit if self.definition.slow_start > 0.0 => (f64::from(limit) * self.warmth(now)).ceil() as u32,
            limit => limit,
        };
        let entered = self
            .connections
            .fetch_update(Relaxed, Relaxed, |used| (used < limit).then(|| used.saturating_add(1)))
            .is_ok();
        if entered {
            self.counters.add(Vbe::Conn as usize, 1);
            if let Some(retries) = &self.retries {
                retries.earn();
            }
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
    pub(crate) fn is_held_down(&self) -> bool {
        self.held.is_on()
    }

    /// Counts a failed connect. After an error that is likely to last, no connects are tried for a while.
    pub(crate) fn note_failure(&self, errno: i32, parameters: &Parameters) {
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
        self.count(Vbe::LocalError, u64::from(is_local(errno)));
        self.hold_down(hold_seconds);
    }

    /// Counts a failed TLS handshake. After a refusal none is tried for a while.
    pub(crate) fn note_no_handshake(&self, why: &TlsFailure, parameters: &Parameters) {
        self.count(Vbe::Fail, 1);
        self.count(Vbe::FailOther, 1);
        self.hold_down(if why.is_refusal { parameters.backend_remote_error_holddown } else { 0.0 });
    }

    fn hold_down(&self, seconds: f64) {
        if seconds > 0.0 {
            self.held.set(Duration::try_from_secs_f64(seconds).unwrap_or(HOLD_MAX).min(HOLD_MAX));
        }
    }
}

/// The longest time for which no connects are tried.
const HOLD_MAX: Duration = Duration::from_secs(366 * 86_400);

/// The longest time that a fetch may wait for a connection.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// How often a fetch that waits looks whether the limit has risen.
const RISING_INTERVAL: Duration = Duration::from_millis(100);

/// Why a fetch got no place among the connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoPlace {
    /// All are in use, and nobody may wait.
    Busy,
    /// All are in use, and as many wait as may.
    QueueFull,
    /// None became free in time.
    TimedOut,
    /// The backend has become sick meanwhile.
    Sick,
}

/// A place among the fetches that wait for a connection, released when dropped.
struct Waiter<'a> {
    backend: &'a Backend,
    /// Nobody else waited when it came.
    is_first: bool,
}

impl<'a> Waiter<'a> {
    fn enter(backend: &'a Backend, limit: u64) -> Option<Waiter<'a>> {
        let before = backend
            .waiting
            .fetch_update(Relaxed, Relaxed, |count| (u64::from(count) < limit).then(|| count.saturating_add(1)))
            .ok()?;
        backend.counters.add(Vbe::Waiting as usize, 1);
        fence(SeqCst);
        Some(Waiter { backend, is_first: before == 0 })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.backend.waiting.fetch_sub(1, Relaxed);
        self.backend.counters.sub(Vbe::Waiting as usize, 1);
    }
}

const EPERM: i32 = 1;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EPIPE: i32 = 32;
const EAFNOSUPPORT: i32 = 97;
const EADDRNOTAVAIL: i32 = 99;
const ENETUNREACH: i32 = 101;
const ECONNABORTED: i32 = 103;
const ECONNRESET: i32 = 104;
const ENOBUFS: i32 = 105;
pub(crate) const ETIMEDOUT: i32 = 110;
const ECONNREFUSED: i32 = 111;

/// Whether a connect that fails with this number says something about this machine, and nothing about the origin.
#[must_use]
pub fn is_local(errno: i32) -> bool {
    matches!(errno, EPERM | ENOMEM | EACCES | ENFILE | EMFILE | EAFNOSUPPORT | EADDRNOTAVAIL | ENOBUFS)
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::definition;

    #[test]
    fn who_finds_nobody_else_waiting_knows_that_it_is_its_turn() {
        let backend = Backend::new("vcl1", definition("b"), None, 0.0);
        let first = Waiter::enter(&backend, 2).unwrap();
        let second = Waiter::enter(&backend, 2).unwrap();
        assert!(Waiter::enter(&backend, 2).is_none());
        drop(first);
        assert!(!second.is_first);
        drop(second);
        assert!(Waiter::enter(&backend, 2).unwrap().is_first);
    }
}
