//! One HTTP/2 connection to an origin, on which several requests run at a time.
//!
//! A task of its own drives it. It ends when the origin ends it, or when it is unused: when it is
//! out of the table (`connections.rs`), and its last request is over. *Invariants:* the task holds
//! nothing that keeps the connection in use; a connection that is ended by Copal sends GOAWAY
//! within a limit of a few seconds. Next file: `guard.rs`.

use super::guard::{Guarded, Seen};
use backend::open::Place;
use backend::{BackendConnection, Ends, Stream};
use bytes::Bytes;
use h2::client::{self, SendRequest};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use surface::limits::{
    HTTP2_ORIGIN_CLOSE_SECONDS_MAX, HTTP2_ORIGIN_SEND_BYTES_MAX, HTTP2_ORIGIN_STREAMS_MAX, HTTP2_ORIGIN_WINDOW_BYTES,
};
use surface::parameter::Parameters;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, timeout_at};
use vcl_run::tls::TlsFacts;

type Driven = client::Connection<Guarded<Box<dyn Stream>>, Bytes>;

/// Largest frame that Copal accepts, in bytes.
const FRAME_BYTES_MAX: u32 = 16 << 10;
/// Overhead that RFC 9113 §6.5.2 adds to the size of each field.
const FIELD_OVERHEAD_BYTES: u64 = 32;

/// A connection that requests share.
pub(super) struct Shared {
    requests: SendRequest<Bytes>,
    /// Addresses of the connection.
    ends: Ends,
    /// TLS parameters of the connection; `None` in clear.
    tls: Option<TlsFacts>,
    /// Observations of the connection guard.
    seen: Rc<Seen>,
    state: Rc<State>,
    /// The requests in progress.
    streams: Cell<usize>,
    /// Time when it was first found to be idle, seconds since 1970; `None` while it is in use.
    idle_since: Cell<Option<f64>>,
}

/// State shared with the driving task.
struct State {
    /// Number of requests that the origin allows at a time.
    streams_max: Cell<usize>,
    /// No further request may use it.
    is_retired: Cell<bool>,
    /// Notified when requests may find room.
    changed: Rc<Notify>,
}

impl Shared {
    /// Makes an HTTP/2 connection of an open connection. `changed` is notified when there may be
    /// room for more requests.
    ///
    /// # Errors
    /// The error number.
    pub(super) async fn start(
        stream: Box<dyn Stream>,
        parameters: &Parameters,
        changed: &Rc<Notify>,
        deadline: Instant,
    ) -> Result<Rc<Shared>, i32> {
        let (ends, tls) = (stream.ends(), stream.tls().cloned());
        let seen = Seen::new();
        let guarded = Guarded::new(stream, Rc::clone(&seen));
        let shaking = settings(parameters).handshake(guarded);
        let timed_out = || std::io::Error::from(std::io::ErrorKind::TimedOut);
        let shaken = match timeout_at(deadline, shaking).await {
            Ok(shaken) => shaken.map_err(|error| error.into_io().unwrap_or_else(timed_out)),
            Err(_) => Err(timed_out()),
        };
        let (requests, connection) = shaken.map_err(|error| backend::backend::error_number(&error))?;
        let state =
            Rc::new(State { streams_max: Cell::new(1), is_retired: Cell::new(false), changed: Rc::clone(changed) });
        let shared = Rc::new(Shared {
            requests,
            ends,
            tls,
            seen,
            state: Rc::clone(&state),
            streams: Cell::new(0),
            idle_since: Cell::new(None),
        });
        tokio::task::spawn_local(drive(connection, Rc::downgrade(&shared), state));
        Ok(shared)
    }

    /// True if a further request may use it now.
    pub(super) fn has_room(&self) -> bool {
        !self.is_retired() && self.streams.get() < self.state.streams_max.get()
    }

    /// True if it may have room soon: the origin has not yet sent its limit.
    pub(super) fn is_settling(&self) -> bool {
        !self.is_retired() && !self.seen.is_settled.get()
    }

    /// True if no further request will ever use it.
    pub(super) fn is_retired(&self) -> bool {
        self.state.is_retired.get() || self.seen.last_stream.get().is_some() || self.seen.is_worn()
    }

    /// Lets no further request use it.
    pub(super) fn retire(&self) {
        self.state.is_retired.set(true);
    }

    /// True if no request uses it.
    pub(super) fn is_unused(&self) -> bool {
        self.streams.get() == 0
    }

    /// True if it has been idle for `idle_timeout` seconds. Must be called periodically.
    pub(super) fn is_idle(&self, now: f64, idle_timeout: f64) -> bool {
        if self.streams.get() > 0 {
            return false;
        }
        let since = self.idle_since.get().unwrap_or(now);
        self.idle_since.set(Some(since));
        now - since >= idle_timeout
    }
}

/// Number of reset streams that are remembered for each stream that may be open.
const RESET_STREAMS_A_PLACE: usize = 10;

/// The settings that Copal sends.
fn settings(parameters: &Parameters) -> client::Builder {
    // Somewhat larger heads than allowed are received, to be refused with the right message.
    let head_bytes = 2 * parameters.http_resp_size + FIELD_OVERHEAD_BYTES * parameters.http_max_hdr;
    let mut builder = client::Builder::new();
    builder
        .enable_push(false)
        .max_concurrent_streams(0)
        .initial_max_send_streams(1)
        .initial_window_size(HTTP2_ORIGIN_WINDOW_BYTES as u32)
        // No stream waits for a window because another one does not read.
        .initial_connection_window_size((HTTP2_ORIGIN_WINDOW_BYTES * (HTTP2_ORIGIN_STREAMS_MAX + 1)) as u32)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .max_send_buffer_size(HTTP2_ORIGIN_SEND_BYTES_MAX)
        // Streams that Copal resets are remembered only briefly; frames that still arrive on them
        // are dropped. Later frames are refused, each time. Otherwise the library would end the
        // connection after a certain number of them, and break the responses of other requests.
        .max_concurrent_reset_streams(RESET_STREAMS_A_PLACE * HTTP2_ORIGIN_STREAMS_MAX)
        .max_local_error_reset_streams(None)
        .reset_stream_duration(Duration::from_secs(HTTP2_ORIGIN_CLOSE_SECONDS_MAX));
    builder
}

/// Drives a connection to its end.
async fn drive(connection: Driven, shared: Weak<Shared>, state: Rc<State>) {
    let mut connection = pin!(connection);
    let mut closing: Option<Pin<Box<Sleep>>> = None;
    let mut was_settled = false;
    poll_fn(|context| {
        let polled = connection.as_mut().poll(context);
        let streams_max = connection.max_concurrent_send_streams().min(HTTP2_ORIGIN_STREAMS_MAX);
        let is_settled = shared.upgrade().is_none_or(|shared| !shared.is_settling());
        // Requests that wait for the settings must be notified of them, even if they allow no more
        // than was assumed.
        let is_news = !std::mem::replace(&mut was_settled, is_settled);
        if is_settled && (state.streams_max.replace(streams_max) != streams_max || is_news) {
            state.changed.notify_waiters();
        }
        if polled.is_ready() {
            return Poll::Ready(());
        }
        if shared.strong_count() > 0 {
            return Poll::Pending;
        }
        let limit = Duration::from_secs(HTTP2_ORIGIN_CLOSE_SECONDS_MAX);
        closing.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit))).as_mut().poll(context)
    })
    .await;
    state.is_retired.set(true);
    state.changed.notify_waiters();
}

/// The right of one request to use a connection.
pub(crate) struct Lease {
    shared: Rc<Shared>,
    backend: Arc<backend::Backend>,
    /// `None` once the slot was taken for another exchange.
    place: Option<Place>,
    /// The connection existed before the request.
    pub(super) is_reused: bool,
    /// Length of the PROXY header that was sent for it.
    pub(super) proxy_header_bytes: u64,
    /// Time when the lease was given.
    since: Instant,
}

impl Lease {
    /// Must be called only if the connection has room, or was made for this request.
    pub(super) fn new(shared: &Rc<Shared>, place: Place, is_reused: bool, proxy_header_bytes: u64) -> Lease {
        shared.streams.set(shared.streams.get() + 1);
        shared.idle_since.set(None);
        Lease {
            shared: Rc::clone(shared),
            backend: Arc::clone(place.backend()),
            place: Some(place),
            is_reused,
            proxy_header_bytes,
            since: Instant::now(),
        }
    }

    /// Sender of requests.
    pub(super) fn requests(&self) -> SendRequest<Bytes> {
        self.shared.requests.clone()
    }

    /// TLS parameters of the connection; `None` in clear.
    pub(super) fn tls(&self) -> Option<&TlsFacts> {
        self.shared.tls.as_ref()
    }

    /// Observations of the connection guard.
    pub(super) fn seen(&self) -> &Seen {
        &self.shared.seen
    }

    /// The addresses of the connection.
    pub(super) fn ends(&self) -> Ends {
        self.shared.ends
    }

    /// The backend.
    pub(super) fn backend(&self) -> &backend::Backend {
        &self.backend
    }

    /// Takes the connection slot, so that it outlives the exchange.
    pub(super) fn take_place(&mut self) -> Option<Place> {
        self.place.take()
    }

    /// Lets no further request use the connection.
    pub(super) fn retire(&self) {
        self.shared.retire();
    }

    /// Handles an origin that took too long: if no bytes at all arrived on the connection in that
    /// time, it may be dead.
    pub(super) fn doubt(&self) {
        if self.shared.seen.received_at.get() < self.since {
            self.retire();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.streams.set(self.shared.streams.get().saturating_sub(1));
        self.shared.state.changed.notify_waiters();
    }
}

/// Connection or stream for one request.
pub(crate) enum Got {
    /// A stream of an HTTP/2 connection.
    Stream(Lease),
    /// A connection of its own, since the origin prefers HTTP/1.1.
    Connection(BackendConnection),
}
