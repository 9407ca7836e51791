//! Opening of a connection from a backend definition, or the reason why there is none.
//!
//! The checks are made in the order sick, busy, held down, failed. An idle connection is preferred,
//! unless the caller requests a new one (a second try after a reused one broke) or the backend
//! receives client addresses in a PROXY header, whose connections serve only one request. A new
//! connection starts with the header for the proxy that it passes through (`.via`), the preamble
//! and the PROXY header; only then follows the TLS handshake, if the backend uses TLS
//! ([`secured`]). If all of a backend's connections are in use, some fetches may wait
//! (`.wait_limit`). Compat: FetchError texts of Varnish 7.1.1. Next file: `pool.rs`.

use crate::addresses::Route;
use crate::backend::{Backend, NoPlace, error_number, error_text, is_local};
use crate::breaker::Permit;
use crate::dial::{Dial, Ends, Stream, TlsFailure};
use crate::pool::Pool;
use crate::pool_key::PoolKey;
use crate::tls_settings::TlsSettings;
use shm::counters::MainCounters;
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use surface::counter::{Main, Vbe};
use surface::parameter::Parameters;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;

/// The timeout that means "no limit".
const UNLIMITED: Duration = Duration::from_secs(366 * 86_400);

/// A request for a connection.
pub struct OpenRequest<'a> {
    /// The backend to connect to.
    pub backend: &'a Arc<Backend>,
    /// The loop's idle connections.
    pub pool: &'a Pool,
    /// Makes new connections.
    pub dial: &'a dyn Dial,
    /// Current parameters.
    pub parameters: &'a Parameters,
    /// The loop's counters.
    pub counters: &'a MainCounters,
    /// The clock, in seconds since 1970.
    pub clock: &'a dyn Fn() -> f64,
    /// `bereq.connect_timeout` if VCL set it, in seconds; `None` and 0: the backend's own or the
    /// parameter applies.
    pub connect_timeout: Option<f64>,
    /// Don't use an idle connection.
    pub fresh: bool,
    /// `client.ip` and `server.ip`, for a PROXY header.
    pub client: Option<(SocketAddr, SocketAddr)>,
    /// HTTP/2 may be agreed on in a TLS handshake.
    pub offers_http2: bool,
    /// The connection slot of a request that is sent once more; `None` = it takes one.
    pub held: Cell<Option<Place>>,
    /// The number of the circuit breaker's trial that this fetch is, once it is admitted; kept
    /// whatever the outcome. `None` = not a trial.
    pub trial: Cell<Option<u64>>,
}

/// The reason why there is no connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The definition has no address.
    None,
    /// The backend is sick.
    Unhealthy(String),
    /// Its circuit breaker is open.
    BreakerOpen(String),
    /// `max_connections` are in use.
    Busy(String),
    /// All connections are in use, and the maximum number of fetches waits.
    QueueFull(String),
    /// All connections are in use, and none became free in time.
    WaitTimeout(String),
    /// The connect failed, with this error number; 0 = not tried, because another one failed
    /// recently.
    Failed(String, i32),
    /// The PROXY header could not be sent.
    ProxyWrite(String, i32),
    /// The TLS handshake failed, for this reason.
    Tls(String, String),
}

impl OpenError {
    /// True if the connect failed, so that another address of the same name may be reachable.
    /// Nothing of the request was sent.
    #[must_use]
    pub fn is_of_address(&self) -> bool {
        match self {
            OpenError::Failed(..) | OpenError::ProxyWrite(..) | OpenError::Tls(..) => true,
            OpenError::None
            | OpenError::Unhealthy(_)
            | OpenError::BreakerOpen(_)
            | OpenError::Busy(_)
            | OpenError::QueueFull(_)
            | OpenError::WaitTimeout(_) => false,
        }
    }

    /// The text of the `FetchError` record.
    #[must_use]
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// The payload of the `BackendSSL` record; `None` if no handshake has failed.
    #[must_use]
    pub fn tls_record(&self) -> Option<String> {
        match self {
            OpenError::Tls(_, why) => Some(format!("failed: {why}")),
            _ => None,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::None => f.write_str("No backend"),
            OpenError::Unhealthy(name) => write!(f, "backend {name}: unhealthy"),
            OpenError::BreakerOpen(name) => write!(f, "backend {name}: set aside"),
            OpenError::Busy(name) => write!(f, "backend {name}: busy"),
            OpenError::QueueFull(name) => write!(f, "backend {name}: busy (queue full)"),
            OpenError::WaitTimeout(name) => write!(f, "backend {name}: busy (waited too long)"),
            OpenError::Failed(name, errno) => write!(f, "backend {name}: fail errno {errno} ({})", error_text(*errno)),
            OpenError::ProxyWrite(name, errno) => {
                write!(f, "backend {name}: proxy write errno {errno} ({})", error_text(*errno))
            }
            OpenError::Tls(name, why) => write!(f, "backend {name}: TLS: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// A slot among the backend's connections in use, released when dropped. A request on a connection
/// shared with others holds one too, so `max_connections` bounds the requests in flight.
#[derive(Debug)]
pub struct Place {
    backend: Arc<Backend>,
    permit: Permit,
    /// The routes to it, the one whose turn it is first; empty once one was taken, so that an
    /// address that leaves is not kept.
    routes: Vec<Route>,
}

impl Place {
    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// The number of the circuit breaker's trial that its holder is; `None` = not a trial.
    #[must_use]
    pub fn trial(&self) -> Option<u64> {
        match self.permit {
            Permit::Trial(number) => Some(number),
            Permit::Granted | Permit::Refused => None,
        }
    }

    /// The key of the route whose turn it is.
    #[must_use]
    pub fn key(&self) -> Arc<PoolKey> {
        Arc::clone(self.routes.first().map_or_else(|| self.backend.pool_key(), |route| &route.key))
    }

    /// Reads the routes anew: they may have changed while it waited.
    pub fn turn_anew(&mut self, parameters: &Parameters) {
        self.routes = self.backend.routes(parameters.prefer_ipv6);
    }

    /// Counts a request that is sent on a connection opened for another one.
    pub fn count_shared(&mut self, counters: &MainCounters) {
        self.routes = Vec::new();
        counters.add(Main::BackendReuse, 1);
        self.backend.count(Vbe::Req, 1);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.backend.leave();
        if let (Some(number), Some(breaker)) = (self.trial(), self.backend.breaker()) {
            breaker.end_trial(number);
        }
    }
}

/// A connection in use. Dropping it closes it.
pub struct BackendConnection {
    /// The bytes.
    pub stream: Box<dyn Stream>,
    /// It has served a request before.
    pub reused: bool,
    /// Time for which the origin keeps it open when idle, in seconds; infinite if that is not
    /// known.
    pub kept_seconds: f64,
    /// Length of the PROXY header that was sent, which counts as request header bytes.
    pub proxy_header_bytes: u64,
    recyclable: bool,
    /// The key of its destination.
    key: Arc<PoolKey>,
    place: Place,
}

impl BackendConnection {
    /// The backend it is connected to.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        &self.place.backend
    }

    /// The number of the circuit breaker's trial that its holder is; `None` = not a trial.
    #[must_use]
    pub fn trial(&self) -> Option<u64> {
        self.place.trial()
    }

    /// The pool key of its destination.
    #[must_use]
    pub fn key(&self) -> &Arc<PoolKey> {
        &self.key
    }

    /// Its addresses and descriptor.
    #[must_use]
    pub fn ends(&self) -> Ends {
        self.stream.ends()
    }

    /// The payload of its `BackendOpen` record.
    #[must_use]
    pub fn open_record(&self) -> OpenRecord<'_> {
        OpenRecord { backend: self.backend(), ends: self.ends(), reused: self.reused }
    }

    /// The results of its handshake; `None` in clear.
    #[must_use]
    pub fn tls(&self) -> Option<&TlsFacts> {
        self.stream.tls()
    }

    /// The payload of its `BackendSSL` record; `None` in clear, and for later requests on the
    /// connection.
    #[must_use]
    pub fn tls_record(&self) -> Option<String> {
        self.stream.tls().filter(|_| !self.reused).map(|facts| facts.record(false))
    }

    /// The payload of its `BackendClose` record. `reason` is the reason of the close, if it is to
    /// be logged.
    #[must_use]
    pub fn close_record<'a>(&'a self, recycled: bool, reason: Option<&'a str>) -> CloseRecord<'a> {
        CloseRecord { backend: self.backend(), ends: self.ends(), recycled, reason }
    }

    /// The byte stream and the slot, for a connection that several requests share.
    #[must_use]
    pub fn into_parts(self) -> (Box<dyn Stream>, Place) {
        (self.stream, self.place)
    }

    /// True if [`BackendConnection::recycle`] would keep it; a connection that began with a PROXY
    /// header is closed, and one to an address that the backend no longer has.
    #[must_use]
    pub fn is_recyclable(&self) -> bool {
        self.recyclable && self.key.is_used()
    }

    /// Returns it to the pool for the next request. Call this only when both messages are complete
    /// and neither side asked to close. Returns true if it was kept.
    pub fn recycle(self, pool: &Pool, counters: &MainCounters, now: f64) -> bool {
        if !self.is_recyclable() {
            return false;
        }
        counters.add(Main::BackendRecycle, 1);
        let own_timeout = self.place.backend.definition().idle_timeout;
        pool.put(&self.key, self.stream, now, own_timeout, self.kept_seconds);
        true
    }
}

/// The payload of a `BackendOpen` record: a connection was opened, or one that was open is used for
/// another request.
pub struct OpenRecord<'a> {
    /// The backend it belongs to.
    pub backend: &'a Backend,
    /// Its addresses and its descriptor.
    pub ends: Ends,
    /// True if it was open before.
    pub reused: bool,
}

impl fmt::Display for OpenRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.reused { "reuse" } else { "connect" };
        put_start(f, &self.ends, self.backend)?;
        put_address(f, self.ends.remote)?;
        put_address(f, self.ends.local)?;
        f.write_str(how)
    }
}

/// The payload of a `BackendClose` record.
pub struct CloseRecord<'a> {
    /// The backend it belongs to.
    pub backend: &'a Backend,
    /// Its addresses and its descriptor.
    pub ends: Ends,
    /// True if it is kept for other requests.
    pub recycled: bool,
    /// The reason of the close, if it is to be logged.
    pub reason: Option<&'a str>,
}

impl fmt::Display for CloseRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.recycled { "recycle" } else { "close" };
        put_start(f, &self.ends, self.backend)?;
        f.write_str(how)?;
        let Some(reason) = self.reason else { return Ok(()) };
        f.write_str(" ")?;
        f.write_str(reason)
    }
}

/// Writes the common start of both records. There is one for each fetch, so nothing here is
/// formatted that can be copied.
fn put_start(f: &mut fmt::Formatter<'_>, ends: &Ends, backend: &Backend) -> fmt::Result {
    f.write_str(itoa::Buffer::new().format(ends.fd))?;
    f.write_str(" ")?;
    f.write_str(backend.name())?;
    f.write_str(" ")
}

/// Address and port in the form of records, and a blank.
fn put_address(f: &mut fmt::Formatter<'_>, address: Option<SocketAddr>) -> fmt::Result {
    let mut number = itoa::Buffer::new();
    match address {
        Some(SocketAddr::V4(address)) => {
            let octets = address.ip().octets();
            for (octet, behind) in octets.iter().zip([".", ".", ".", " "]) {
                f.write_str(number.format(*octet))?;
                f.write_str(behind)?;
            }
        }
        Some(SocketAddr::V6(address)) => write!(f, "{} ", address.ip())?,
        None => f.write_str("0.0.0.0 ")?,
    }
    f.write_str(number.format(address.map_or(0, |address| address.port())))?;
    f.write_str(" ")
}

/// Gets a connection for exclusive use. Counts it as in use, and counts the request that will be
/// sent (`VBE.*.req`, `MAIN.backend_req`).
///
/// # Errors
/// See [`OpenError`]; the failure is already counted.
pub async fn open(request: &OpenRequest<'_>) -> Result<BackendConnection, OpenError> {
    let place = admit(request).await?;
    match reuse(request, place) {
        Ok(connection) => Ok(connection),
        Err(place) => connect(request, place).await,
    }
}

/// Notes that a new connection failed, if the cause is the address and not this machine.
fn note_unreachable(backend: &Backend, error: &OpenError) {
    let is_own = matches!(error, OpenError::Failed(_, errno) if *errno == 0 || is_local(*errno));
    if error.is_of_address() && !is_own {
        backend.note_unreachable();
    }
}

/// Takes a slot among the backend's connections in use, if it is healthy; waits for one if that is
/// allowed. A slot already held is kept: a request that is sent once more has waited already.
///
/// # Errors
/// See [`OpenError`]; the failure is already counted.
pub async fn admit(request: &OpenRequest<'_>) -> Result<Place, OpenError> {
    let backend = request.backend;
    let name = || backend.name().to_owned();
    let refused = |of_backend: Vbe, counter: Main, error: OpenError| {
        backend.count(of_backend, 1);
        request.counters.add(counter, 1);
        error
    };
    let unhealthy = || match backend.health().is_healthy() {
        // The cause is its circuit breaker, rather than its probe or the operator.
        true => refused(Vbe::AsideRefused, Main::BackendAside, OpenError::BreakerOpen(name())),
        false => refused(Vbe::Unhealthy, Main::BackendUnhealthy, OpenError::Unhealthy(name())),
    };
    if !backend.has_address() {
        return Err(OpenError::None);
    }
    if let Some(mut place) = request.held.take().filter(|place| Arc::ptr_eq(&place.backend, backend)) {
        if !backend.health().is_healthy() {
            return Err(unhealthy());
        }
        request.trial.set(place.trial());
        place.turn_anew(request.parameters);
        return Ok(place);
    }
    if !backend.is_healthy() {
        return Err(unhealthy());
    }
    let entered = backend.enter_or_wait(request.parameters, request.clock).await;
    if matches!(entered, Ok(true) | Err(NoPlace::TimedOut | NoPlace::Sick)) {
        request.counters.add(Main::BackendWait, 1);
        request.counters.add(Main::BackendWaitFail, u64::from(entered.is_err()));
    }
    entered.map_err(|why| {
        let error = match why {
            NoPlace::Sick => return unhealthy(),
            NoPlace::Busy => OpenError::Busy(name()),
            NoPlace::QueueFull => refused(Vbe::QueueFull, Main::BackendQueueFull, OpenError::QueueFull(name())),
            NoPlace::TimedOut => refused(Vbe::WaitTimeout, Main::BackendWaitTimeout, OpenError::WaitTimeout(name())),
        };
        // Compat: all of these are counted there.
        refused(Vbe::Busy, Main::BackendBusy, error)
    })?;
    let routes = backend.routes(request.parameters.prefer_ipv6);
    let place = Place { backend: Arc::clone(backend), permit: backend.ask(), routes };
    if place.permit == Permit::Refused {
        return Err(unhealthy());
    }
    request.trial.set(place.trial());
    Ok(place)
}

/// Takes an idle connection, if the request allows that and there is one.
///
/// # Errors
/// The slot, if there is no such connection.
pub fn reuse(request: &OpenRequest<'_>, mut place: Place) -> Result<BackendConnection, Place> {
    let backend = request.backend;
    if request.fresh || backend.definition().proxy_header != 0 {
        return Err(place);
    }
    let now = (request.clock)();
    let idle_timeout = request.parameters.backend_idle_timeout;
    // Only for the route that a connect would use: all addresses of a name get their share.
    let Some(key) = place.routes.first().map(|route| Arc::clone(&route.key)) else { return Err(place) };
    let Some(stream) = request.pool.take(&key, now, idle_timeout) else { return Err(place) };
    place.routes = Vec::new();
    request.counters.add(Main::BackendReuse, 1);
    count_request(request);
    let kept_seconds = f64::INFINITY;
    Ok(BackendConnection { stream, reused: true, proxy_header_bytes: 0, recyclable: true, kept_seconds, key, place })
}

/// Opens a new connection.
///
/// # Errors
/// See [`OpenError`]; the failure is already counted.
pub async fn connect(request: &OpenRequest<'_>, place: Place) -> Result<BackendConnection, OpenError> {
    connect_once(request, place).await.inspect_err(|error| note_unreachable(request.backend, error))
}

async fn connect_once(request: &OpenRequest<'_>, mut place: Place) -> Result<BackendConnection, OpenError> {
    let backend = request.backend;
    let parameters = request.parameters;
    let name = || backend.name().to_owned();
    let is_proxied = backend.definition().proxy_header != 0;
    if backend.is_held_down() {
        backend.count(Vbe::Helddown, 1);
        request.counters.add(Main::BackendFail, 1);
        return Err(OpenError::Failed(name(), 0));
    }
    let limit = connect_limit(request);
    let deadline = Instant::now() + limit;
    let failed = |errno| {
        backend.note_failure(errno, parameters);
        request.counters.add(Main::BackendFail, 1);
        OpenError::Failed(name(), errno)
    };
    let routes = std::mem::take(&mut place.routes);
    let (mut stream, key) = {
        let (stream, route) =
            dial(request.dial, &routes, deadline).await.map_err(|error| failed(error_number(&error)))?;
        (stream, Arc::clone(&route.key))
    };
    drop(routes);
    let mut opening = Vec::new();
    backend.write_opening(parameters.prefer_ipv6, &mut opening);
    if !opening.is_empty() {
        send(&mut stream, &opening, deadline).await.map_err(failed)?;
    }
    request.counters.add(Main::BackendConn, 1);
    let mut header = Vec::new();
    write_proxy_header(request, &mut header);
    if !header.is_empty() {
        send(&mut stream, &header, deadline).await.map_err(|errno| {
            request.counters.add(Main::BackendFail, 1);
            OpenError::ProxyWrite(name(), errno)
        })?;
    }
    if let Some(settings) = backend.tls() {
        stream = secured(request.dial, stream, (settings, backend.protocols(request.offers_http2)), deadline)
            .await
            .map_err(|why| {
                backend.note_no_handshake(&why, parameters);
                request.counters.add(Main::BackendFail, 1);
                request.counters.add(Main::BackendTlsFailed, 1);
                OpenError::Tls(name(), why.text)
            })?;
        request.counters.add(Main::BackendTls, 1);
        let is_resumed = stream.tls().is_some_and(|facts| facts.is_resumed);
        request.counters.add(Main::BackendTlsResumed, u64::from(is_resumed));
    }
    count_request(request);
    Ok(BackendConnection {
        stream,
        reused: false,
        kept_seconds: f64::INFINITY,
        proxy_header_bytes: header.len() as u64,
        recyclable: !is_proxied,
        key,
        place,
    })
}

/// Connects by the first route that works before the deadline, and returns that route too.
///
/// # Errors
/// The error of the last attempt.
pub(crate) async fn dial<'a>(
    dial: &dyn Dial,
    routes: &'a [Route],
    deadline: Instant,
) -> io::Result<(Box<dyn Stream>, &'a Route)> {
    let mut last = io::Error::from_raw_os_error(0);
    for (index, route) in routes.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() && index > 0 {
            break;
        }
        // An address that does not answer must leave time for the others.
        let limit = left / (routes.len() - index) as u32;
        match dial.dial(&route.target, limit).await {
            Ok(stream) => return Ok((stream, route)),
            Err(error) => {
                last = error;
                route.note_failure();
            }
        }
    }
    Err(last)
}

/// Performs a TLS handshake over a new connection before the deadline, offering these protocols.
///
/// # Errors
/// The reason of the failure, for the log.
pub(crate) async fn secured(
    dial: &dyn Dial,
    stream: Box<dyn Stream>,
    (settings, protocols): (&TlsSettings, &[&'static [u8]]),
    deadline: Instant,
) -> Result<Box<dyn Stream>, TlsFailure> {
    let left = deadline.saturating_duration_since(Instant::now());
    dial.secure(stream, settings, protocols, left).await.map_err(|error| {
        let own = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsFailure>());
        own.cloned().unwrap_or_else(|| TlsFailure { text: error_text(error_number(&error)), is_refusal: false })
    })
}

fn count_request(request: &OpenRequest<'_>) {
    request.backend.count(Vbe::Req, 1);
}

/// Time limit of a connect.
#[must_use]
pub fn connect_limit(request: &OpenRequest<'_>) -> Duration {
    // Compat: 0 means not set (FIND_TMO), and the parameter counts.
    let own = [request.connect_timeout, request.backend.definition().connect_timeout];
    let own = own.into_iter().flatten().find(|seconds| *seconds > 0.0);
    let seconds = own.unwrap_or(request.parameters.connect_timeout);
    if seconds > 0.0 { Duration::try_from_secs_f64(seconds).unwrap_or(UNLIMITED).min(UNLIMITED) } else { UNLIMITED }
}

fn write_proxy_header(request: &OpenRequest<'_>, out: &mut Vec<u8>) {
    match (request.backend.definition().proxy_header, request.client) {
        (1, Some((client, server))) => proxy_protocol::write_version_1(client, server, out),
        (1, None) => proxy_protocol::write_version_1_unknown(out),
        (2, Some((client, server))) => proxy_protocol::write_version_2(client, server, b"", out),
        (2, None) => proxy_protocol::write_version_2_local(out),
        _ => {}
    }
}

async fn send(stream: &mut Box<dyn Stream>, bytes: &[u8], deadline: Instant) -> Result<(), i32> {
    match tokio::time::timeout_at(deadline, stream.write_all(bytes)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error_number(&error)),
        Err(_) => Err(crate::backend::ETIMEDOUT),
    }
}

#[cfg(test)]
mod tests;
