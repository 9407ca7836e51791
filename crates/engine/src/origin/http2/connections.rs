//! The HTTP/2 connections of one event loop, by destination.
//!
//! A request goes to the first connection that has room, so that the others become idle and close.
//! If none has room, one request opens a further connection, and requests that arrive during that
//! wait for it; they share its outcome. The TLS handshake shows if an origin supports HTTP/2. If it
//! does not, its requests get connections of their own, and that is remembered, so that they don't
//! wait for one another. A connection that begins with a PROXY header belongs to one client, and
//! serves one request. The addresses of a followed name are separate destinations, which take
//! turns; a connection is kept under its own address, even if it was opened for another address of
//! the name that could not be reached.
//!
//! `max_connections` of a backend bounds its requests in flight: a request that waits or sends
//! holds a slot (`docs/decisions/origins-count-requests.md`). *Invariant:* at most one connection
//! to a destination is being opened at a time, unless the origin uses HTTP/1.1. Next file:
//! `connection.rs`.

use super::connection::{Got, Lease, Shared};
use backend::open::{Place, admit, connect, connect_limit, reuse};
use backend::pool_key::PoolKey;
use backend::{Backend, BackendConnection, OpenError, OpenRequest};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use surface::counter::Main;
use surface::limits::IDLE_BACKEND_CONNECTIONS_MAX;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// ETIMEDOUT.
const TIMED_OUT: i32 = 110;

/// The connections of one event loop.
#[derive(Default)]
pub(crate) struct Connections {
    /// By the address of the key, which exists as long as its entry.
    kept: RefCell<HashMap<*const PoolKey, Kept>>,
}

/// The connections to one destination.
struct Kept {
    key: Arc<PoolKey>,
    open: Vec<Rc<Shared>>,
    /// The idle timeout of the most recently used backend, if it has its own, in seconds.
    own_timeout: Option<f64>,
    /// A request opens a further one.
    is_opening: bool,
    /// Number of failed openings, and the last error.
    failures: u64,
    last_failure: Option<OpenError>,
    /// The origin preferred HTTP/1.1 in the last handshake.
    speaks_http1: bool,
    /// Notified when one of these has changed, and when a request may find room.
    changed: Rc<Notify>,
}

/// Next action of a request.
enum Way {
    Use(Rc<Shared>),
    Open,
    Wait,
}

impl Kept {
    fn new(key: &Arc<PoolKey>) -> Kept {
        Kept {
            key: Arc::clone(key),
            open: Vec::new(),
            own_timeout: None,
            is_opening: false,
            failures: 0,
            last_failure: None,
            speaks_http1: false,
            changed: Rc::default(),
        }
    }

    /// True if there is nothing to wait for.
    fn is_empty(&self) -> bool {
        !self.is_opening && self.open.iter().all(|shared| shared.is_retired())
    }

    fn way(&mut self, backend: &Backend) -> Way {
        self.open.retain(|shared| !shared.is_retired());
        self.own_timeout = backend.definition().idle_timeout;
        if let Some(shared) = self.open.iter().find(|shared| shared.has_room()) {
            return Way::Use(Rc::clone(shared));
        }
        let is_coming = self.is_opening || self.open.iter().any(|shared| shared.is_settling());
        if is_coming && !self.speaks_http1 { Way::Wait } else { Way::Open }
    }
}

/// Ends the opening of a connection, whatever its result.
struct Opening<'a> {
    connections: &'a Connections,
    key: &'a Arc<PoolKey>,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.connections.with(self.key, |kept| {
            kept.is_opening = false;
            kept.changed.notify_waiters();
        });
    }
}

impl Connections {
    fn with<R>(&self, key: &Arc<PoolKey>, action: impl FnOnce(&mut Kept) -> R) -> R {
        let mut all = self.kept.borrow_mut();
        action(all.entry(Arc::as_ptr(key)).or_insert_with(|| Kept::new(key)))
    }

    /// Gets a stream or a connection to send a request on.
    ///
    /// # Errors
    /// See [`OpenError`]; the failure is already counted.
    pub(crate) async fn get(&self, request: &OpenRequest<'_>) -> Result<Got, OpenError> {
        let mut place = admit(request).await?;
        if request.backend.definition().proxy_header != 0 {
            return self.open(request, place).await;
        }
        let deadline = Instant::now() + connect_limit(request);
        loop {
            let key = place.key();
            let (failures, changed) = self.with(&key, |kept| (kept.failures, Rc::clone(&kept.changed)));
            let news = changed.notified();
            match self.with(&key, |kept| kept.way(request.backend)) {
                Way::Use(shared) => {
                    place.count_shared(request.counters);
                    return Ok(Got::Stream(Lease::new(&shared, place, true, 0)));
                }
                Way::Open => return self.open(request, place).await,
                Way::Wait => {}
            }
            if timeout_at(deadline, news).await.is_err() {
                request.counters.add(Main::BackendFail, 1);
                return Err(OpenError::Failed(request.backend.name().to_owned(), TIMED_OUT));
            }
            let failure = self.with(&key, |kept| kept.last_failure.clone().filter(|_| kept.failures > failures));
            if let Some(failure) = failure {
                request.counters.add(Main::BackendFail, 1);
                return Err(failure);
            }
            if self.with(&key, |kept| kept.is_empty()) {
                place.turn_anew(request.parameters);
            }
        }
    }

    /// Opens a connection, for this request first.
    async fn open(&self, request: &OpenRequest<'_>, place: Place) -> Result<Got, OpenError> {
        let key = &place.key();
        let is_for_all = request.backend.definition().proxy_header == 0;
        let mut place = place;
        if is_for_all && self.with(key, |kept| kept.speaks_http1) {
            place = match reuse(request, place) {
                Ok(connection) => return Ok(Got::Connection(connection)),
                Err(place) => place,
            };
        }
        let _opening = is_for_all.then(|| {
            self.with(key, |kept| kept.is_opening = true);
            Opening { connections: self, key }
        });
        let got = self.open_now(request, place, is_for_all).await;
        if let (Err(error), true) = (&got, is_for_all) {
            self.with(key, |kept| {
                kept.failures += 1;
                kept.last_failure = Some(error.clone());
            });
        }
        got
    }

    async fn open_now(&self, request: &OpenRequest<'_>, place: Place, is_for_all: bool) -> Result<Got, OpenError> {
        let deadline = Instant::now() + connect_limit(request);
        let connection = connect(request, place).await?;
        let key = &Arc::clone(connection.key());
        let has_agreed = speaks_http2(&connection);
        let changed = self.with(key, |kept| {
            kept.speaks_http1 = !has_agreed;
            Rc::clone(&kept.changed)
        });
        if !has_agreed {
            return Ok(Got::Connection(connection));
        }
        let proxy_header_bytes = connection.proxy_header_bytes;
        let (stream, place) = connection.into_parts();
        let shared = Shared::start(stream, request.parameters, &changed, deadline).await.map_err(|errno| {
            request.counters.add(Main::BackendFail, 1);
            OpenError::Failed(request.backend.name().to_owned(), errno)
        })?;
        let lease = Lease::new(&shared, place, false, proxy_header_bytes);
        if is_for_all {
            self.with(key, |kept| kept.open.push(shared));
        } else {
            shared.retire();
        }
        Ok(Got::Stream(lease))
    }

    /// Closes connections that have been idle for `idle_timeout` seconds, whose destination no
    /// backend has any more, or that exceed the number kept for later. Returns their number.
    pub(crate) fn close_idle(&self, now: f64, idle_timeout: f64) -> usize {
        let mut closed = 0;
        self.kept.borrow_mut().retain(|_, kept| {
            let before = kept.open.len();
            let limit = if kept.key.is_used() { kept.own_timeout.unwrap_or(idle_timeout) } else { 0.0 };
            let mut idle = 0;
            kept.open.retain(|shared| {
                idle += usize::from(shared.is_unused());
                let is_one_too_many = shared.is_unused() && idle > IDLE_BACKEND_CONNECTIONS_MAX;
                !shared.is_retired() && !shared.is_idle(now, limit) && !is_one_too_many
            });
            closed += before - kept.open.len();
            kept.key.is_used() || !kept.open.is_empty() || kept.is_opening
        });
        closed
    }

    /// Number of connections that may be used by further requests.
    pub(crate) fn len(&self) -> usize {
        self.kept.borrow().values().flat_map(|kept| &kept.open).filter(|shared| !shared.is_retired()).count()
    }
}

/// In clear there is no negotiation: the backend's definition decides.
fn speaks_http2(connection: &BackendConnection) -> bool {
    connection.stream.tls().is_none_or(|facts| facts.alpn.as_deref() == Some("h2"))
}
