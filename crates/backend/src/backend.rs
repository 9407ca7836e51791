//! One backend: its definition, counters, health, the connections in use, and the hold-down after
//! failed connects.
//!
//! Shared by all event loops in an `Arc`; everything that changes is atomic. A fetch keeps the
//! `Arc` while it uses a connection, so discarding a VCL leaves no count wrong. Next file:
//! `open.rs`.

use crate::addresses::{Addresses, Route};
use crate::breaker::{Breaker, Permit, Transition};
use crate::dial::{DialTarget, TlsFailure};
use crate::health::Health;
use crate::hold::{ADDRESS_FAILED, Hold};
use crate::pool_key::{PoolKey, SharedKey};
use crate::probe::ProbeState;
use crate::retry_budget::RetryBudget;
use crate::saint_mode::TroubleList;
use crate::tls_settings::TlsSettings;
use shm::counters::SharedCounters;
use shm::histogram::{Example, Histogram};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use surface::counter::{VBE, Vbe};
use surface::histogram::{FIRST_BYTE_CELLS, Scale, status_class};
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
    tls: Option<TlsSettings>,
    probe: Option<ProbeState>,
    health: Health,
    /// The circuit breaker fed by its fetches; `None` = no circuit breaker.
    breaker: Option<Breaker>,
    /// `None` = any number of fetches may be repeated.
    retries: Option<RetryBudget>,
    /// `None` = its address does not change.
    addresses: Option<Addresses>,
    counters: SharedCounters<VBE_COUNT>,
    /// Times until the heads of responses, once there is one.
    first_bytes: OnceLock<Box<[Histogram; FIRST_BYTE_CELLS]>>,
    connections: AtomicU32,
    /// Number of fetches that wait for a connection.
    waiting: AtomicU32,
    /// Notified when a connection becomes free while a fetch waits for one.
    freed: Notify,
    /// No connects are tried until this expires.
    held: Hold,
    /// For a backend with a fixed address of each family: failed connects to each, IPv4 first.
    families: [Arc<Hold>; 2],
    /// Set after a failed connect: other addresses of the same name come first for a while.
    unreachable: Hold,
    troubles: TroubleList,
}

impl Backend {
    /// A backend of the VCL with this name. `probe` is the definition that `definition.probe`
    /// refers to.
    #[must_use]
    pub fn new(vcl: &str, definition: BackendDefinition, probe: Option<&ProbeDefinition>, now: f64) -> Arc<Backend> {
        let health = Health::new(now);
        let tls = definition.tls.as_deref().cloned().map(TlsSettings::new);
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
            breaker: definition.breaker.as_deref().cloned().map(Breaker::new),
            retries: definition.retry_budget.map(RetryBudget::new),
            addresses,
            tls,
            probe,
            health,
            counters,
            first_bytes: OnceLock::new(),
            connections: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
            held: Hold::new(),
            families: [(); 2].map(|()| Arc::new(Hold::new())),
            unreachable: Hold::new(),
            troubles: TroubleList::default(),
            definition,
        })
    }

    /// The VCL name, as in the log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// `vcl.name`, as in counters and `backend.list`.
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

    /// The TLS settings of its connections; `None` in clear.
    #[must_use]
    pub fn tls(&self) -> Option<&TlsSettings> {
        self.tls.as_ref()
    }

    /// The protocols to offer in a TLS handshake (ALPN), the preferred one first; HTTP/2 only if
    /// VCL requests it and the caller supports it.
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

    /// True if it may be used: the operator's setting if there is one, else the results of its
    /// probe and of its circuit breaker.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.health.overridden().unwrap_or_else(|| self.is_good())
    }

    /// The same, without the operator's setting.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.health.probed() && self.breaker.as_ref().is_none_or(Breaker::is_usable)
    }

    /// Its circuit breaker; `None` if it has none.
    #[must_use]
    pub fn breaker(&self) -> Option<&Breaker> {
        self.breaker.as_ref()
    }

    /// Asks the circuit breaker for permission for one fetch; the operator's setting takes
    /// precedence.
    pub(crate) fn ask(&self) -> Permit {
        match &self.breaker {
            Some(breaker) if self.health.overridden().is_none() => breaker.ask(),
            _ => Permit::Granted,
        }
    }

    /// Notes that the origin has begun to answer a fetch, which is this trial if it is one. `now`:
    /// seconds since 1970.
    pub fn note_answer(&self, trial: Option<u64>, now: f64) -> Option<Transition> {
        let is_closed = self.breaker.as_ref()?.answered(trial);
        is_closed.then(|| {
            self.health.note_breaker(true, now);
            Transition::Closed
        })
    }

    /// Notes that a fetch was answered completely.
    pub fn note_success(&self) {
        if let Some(breaker) = &self.breaker {
            breaker.succeeded();
        }
    }

    /// Notes that a fetch, which is this trial if it is one, has failed by the origin's fault.
    /// `now`: seconds since 1970.
    pub fn note_fault(&self, trial: Option<u64>, now: f64) -> Option<Transition> {
        let transition = self.breaker.as_ref()?.failed(trial)?;
        self.count(Vbe::Aside, 1);
        self.health.note_breaker(false, now);
        Some(transition)
    }

    /// Returns true if a fetch may be repeated, and counts that.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        let may = self.retries.as_ref().is_none_or(RetryBudget::spend);
        self.count(Vbe::RetryRefused, u64::from(!may));
        may
    }

    /// The share of its load that it gets: less than 1 for a while after it has recovered. `now`:
    /// seconds since 1970.
    #[must_use]
    pub fn warmth(&self, now: f64) -> f64 {
        let time = self.definition.slow_start;
        let since = now - self.health.recovered();
        if (0.0..time).contains(&since) { (since / time).max(SLOW_START_SHARE_MIN) } else { 1.0 }
    }

    /// The addresses in use, if its name is looked up repeatedly.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.as_ref().map(Addresses::list).unwrap_or_default()
    }

    /// Replaces them; returns true if they differ from those before. An empty list changes nothing.
    pub fn set_addresses(&self, found: &[SocketAddr]) -> bool {
        let Some(addresses) = &self.addresses else { return false };
        let is_news = addresses.set(found, &self.definition, self.tls.as_ref());
        self.counters.set(Vbe::Addresses as usize, addresses.list().len() as u64);
        is_news
    }

    /// All routes to it, the one to use first first; none for `backend x none`.
    pub(crate) fn routes(&self, prefer_v6: bool) -> Vec<Route> {
        match &self.addresses {
            Some(addresses) => addresses.routes(prefer_v6),
            None => match self.fixed_target(prefer_v6) {
                Some(DialTarget::Ip { v4: Some(v4), v6: Some(v6), prefer_v6 }) => {
                    Route::of_families((v4, v6), prefer_v6, self.pool_key(), &self.families)
                }
                Some(target) => vec![Route::fixed(target, self.pool_key())],
                None => Vec::new(),
            },
        }
    }

    /// The requests for which it counts as sick, in VCL that uses saint mode.
    #[must_use]
    pub fn troubles(&self) -> &TroubleList {
        &self.troubles
    }

    /// Its `VBE` counters.
    #[must_use]
    pub fn counters(&self) -> &SharedCounters<VBE_COUNT> {
        &self.counters
    }

    /// Times until the heads of responses by class of status; `None` if there was none.
    #[must_use]
    pub fn first_bytes(&self) -> Option<&[Histogram; FIRST_BYTE_CELLS]> {
        self.first_bytes.get().map(|cells| &**cells)
    }

    /// Counts the time until the head of a response with this status.
    pub fn count_first_byte(&self, status: u16, example: Example) {
        let cells = self.first_bytes.get_or_init(Box::default);
        if let Some(histogram) = cells.get(status_class(status)) {
            histogram.count(Scale::Seconds.bucket(example.value), example);
        }
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

    /// True if requests wait for one of its connections to become free.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// True if it has an address: `backend x none` has not.
    pub(crate) fn has_address(&self) -> bool {
        !matches!(self.endpoint(), Endpoint::None)
    }

    /// The endpoint of its connections: the proxy of `.via`, if there is one.
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

    /// Writes the start of a new connection: the header with the destination for the proxy of
    /// `.via`, then the preamble.
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

    /// Takes one of the `max_connections` slots, waiting for one if that is allowed; true if it
    /// waited. `clock`: seconds since 1970.
    ///
    /// # Errors
    /// [`NoPlace`].
    pub(crate) async fn enter_or_wait(
        &self,
        parameters: &Parameters,
        clock: &dyn Fn() -> f64,
    ) -> Result<bool, NoPlace> {
        // Fetches that already wait come first.
        let mut is_turn = self.waiting.load(Relaxed) == 0;
        if is_turn && self.enter(clock()) {
            return Ok(false);
        }
        let limit = self.definition.wait_limit.map_or(parameters.backend_wait_limit, u64::from);
        let seconds = self.definition.wait_timeout.unwrap_or(parameters.backend_wait_timeout);
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or(WAIT_MAX).min(WAIT_MAX);
        if limit == 0 || patience.is_zero() {
            return Err(NoPlace::Busy);
        }
        let Some(waiter) = Waiter::enter(self, limit) else { return Err(NoPlace::QueueFull) };
        // The fetches that waited a moment ago may have left, and a slot become free without a
        // notification.
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
                    // The slot stays free for others, should the backend recover at once.
                    self.freed.notify_one();
                }
                return Err(NoPlace::Sick);
            }
            if is_turn && self.enter(clock()) {
                return Ok(true);
            }
            // While the limit rises after a recovery, a slot can become free without any fetch
            // ending.
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

    /// Takes one of the `max_connections` slots; returns false if there is none. There are fewer of
    /// them during a slow start. `now`: seconds since 1970.
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

    /// Releases the slot.
    pub(crate) fn leave(&self) {
        let _ = self.connections.fetch_update(Relaxed, Relaxed, |used| used.checked_sub(1));
        self.counters.sub(Vbe::Conn as usize, 1);
        // Pairs with the fence in `Waiter::enter`: either the waiter sees the free slot, or this
        // code sees the waiter.
        fence(SeqCst);
        if self.waiting.load(Relaxed) > 0 {
            self.freed.notify_one();
        }
    }

    /// True if a connect failed so recently that no other is tried.
    pub(crate) fn is_held_down(&self) -> bool {
        self.held.is_on()
    }

    /// Counts a failed connect. After an error that is likely to last, no connects are tried for a
    /// while.
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

    /// Notes that a connect failed. Other addresses of the same name come first for a while.
    pub(crate) fn note_unreachable(&self) {
        self.unreachable.set(ADDRESS_FAILED);
    }

    /// True if a connect failed recently.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.unreachable.is_on()
    }

    fn hold_down(&self, seconds: f64) {
        if seconds > 0.0 {
            self.held.set(Duration::try_from_secs_f64(seconds).unwrap_or(HOLD_MAX).min(HOLD_MAX));
        }
    }
}

/// Longest time for which no connects are tried.
const HOLD_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Longest time that a fetch may wait for a connection.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

/// Interval at which a waiting fetch checks if the limit has risen.
const RISING_INTERVAL: Duration = Duration::from_millis(100);

/// The reason why a fetch got no connection slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoPlace {
    /// All are in use, and no fetch may wait.
    Busy,
    /// All are in use, and the maximum number of fetches waits.
    QueueFull,
    /// None became free in time.
    TimedOut,
    /// The backend has become sick while the fetch waited.
    Sick,
}

/// A place among the fetches that wait for a connection, released when dropped.
struct Waiter<'a> {
    backend: &'a Backend,
    /// No other fetch waited when it came.
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

/// True if a connect failure with this number is caused by this machine rather than by the origin.
#[must_use]
pub fn is_local(errno: i32) -> bool {
    matches!(errno, EPERM | ENOMEM | EACCES | ENFILE | EMFILE | EAFNOSUPPORT | EADDRNOTAVAIL | ENOBUFS)
}

/// The error number of an I/O error. Errors without one (from memory, in tests) get the number for
/// their kind, or 0 if there is none.
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
    fn only_the_first_waiter_is_next_in_turn() {
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
