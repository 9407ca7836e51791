//! One connection: accepts its requests, handles its unidirectional streams, and decides when it is
//! over.
//!
//! ```text
//! Open ─ worker stops, client leaves, VCL closes ─→ Leaving (GOAWAY) ─ nothing left ─→ closed
//!   └ nothing for timeout_idle, an error, the client closes ─────────────────────────→ closed
//! ```
//!
//! *Invariant:* a connection without a fault is closed only when its client has all its responses,
//! accepts no bytes of them for idle_send_timeout, or a worker that stops can wait no longer.
//! Requests that arrive after GOAWAY are refused unprocessed, so a client may send them elsewhere.
//! Source: RFC 9114 §5.2, §8.

use super::quic::{Connection, ConnectionEnd, ReceiveStream, SendStream};
use super::request;
use super::shared::Shared;
use super::unacknowledged::Unacknowledged;
use super::unidirectional::UnidirectionalStreams;
use crate::context::{Loop, Presence};
use crate::deadline::{Deadline, duration};
use crate::session::{Session, SessionEnd, SessionView};
use ::http2::Priority;
use ::http3::{Code, control, frames};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::{HTTP3_GOODBYE_MILLISECONDS, HTTP3_LEAVE_MILLISECONDS_MAX, HTTP3_STREAMS_MAX};
use surface::tag::Tag;
use tokio::time::Instant;

/// Most streams that are accepted before other tasks of the event loop get their turn.
const ACCEPTED_AT_ONCE_MAX: usize = 16;
/// Time that a client has to close once it knows that it is not served any more, and has all its
/// responses.
const LEAVE: Duration = Duration::from_millis(HTTP3_LEAVE_MILLISECONDS_MAX);
/// Increment of the numbers of a client's requests.
const ID_STEP: u64 = 4;

/// Serves a connection until it ends. It leaves once `leaving` is ready.
pub(in crate::transport) async fn serve<C: Connection>(
    context: Rc<Loop>,
    session: Session,
    connection: C,
    leaving: impl Future<Output = ()>,
) {
    context.count(Main::H3Sess);
    let mut leaving = pin!(leaving);
    let shared = Rc::new(Shared::new(&context));
    let mut driver = Driver::new(Rc::clone(&context), connection, session.view(), Rc::clone(&shared));
    let (reason, code) = poll_fn(|wait| driver.poll(wait, leaving.as_mut())).await;
    if let Some(left) = driver.close(reason, code) {
        // The worker exits when nothing is under way, and sending the final GOAWAY to the client
        // takes a moment.
        tokio::time::sleep(Duration::from_millis(HTTP3_GOODBYE_MILLISECONDS)).await;
        drop(left);
    }
    // Requests notice that their streams are gone; their records are logged before the session's
    // end.
    poll_fn(|wait| {
        shared.listen(wait);
        if shared.live() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    session.close(&context, SessionEnd { reason, is_by_request: shared.closes().is_some() });
}

/// The connection's task.
struct Driver<C: Connection> {
    context: Rc<Loop>,
    connection: C,
    view: SessionView,
    shared: Rc<Shared>,
    unidirectional: UnidirectionalStreams<C::Receive>,
    /// Copal's control stream, and the bytes to be sent on it.
    control: Option<C::Send>,
    unsaid: Vec<u8>,
    /// The number after that of the last request.
    next_id: u64,
    /// The number after that of the last stream, including those that were refused at once.
    streams_end: u64,
    leaving: Option<Leaving>,
    /// Deadline of a stopping worker: at that time clients must have been notified that the
    /// connection is closed, whatever they have not received.
    stops_at: Option<Instant>,
    /// Unacknowledged responses.
    unacknowledged: Rc<Unacknowledged<C::Send>>,
    idle: Deadline,
    /// Time since which there is nothing to do, and nothing known to arrive at the client.
    quiet_since: Option<Instant>,
}

/// The connection takes no more requests.
struct Leaving {
    reason: CloseReason,
    /// Keeps the worker alive until the client has its responses.
    _presence: Presence,
}

impl<C: Connection> Driver<C> {
    fn new(context: Rc<Loop>, connection: C, view: SessionView, shared: Rc<Shared>) -> Driver<C> {
        let unsaid = control::beginning(request::field_section_bytes_max(&context));
        Driver {
            context,
            connection,
            view,
            shared,
            unidirectional: UnidirectionalStreams::new(),
            control: None,
            unsaid,
            next_id: 0,
            streams_end: 0,
            leaving: None,
            stops_at: None,
            unacknowledged: Rc::default(),
            idle: Deadline::new(),
            quiet_since: None,
        }
    }

    /// Ready when the connection is over, with the close reason and the code for the client.
    fn poll(
        &mut self,
        wait: &mut Context<'_>,
        leaving: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<(CloseReason, Code)> {
        self.shared.listen(wait);
        if self.stops_at.is_none() && leaving.poll(wait).is_ready() {
            let drain = duration(self.context.engine.parameters.load().drain_timeout);
            self.stops_at = Some(Instant::now() + drain.saturating_sub(LEAVE));
            self.leave(CloseReason::ReqClose);
        }
        if let Some(reason) = self.shared.closes() {
            self.leave(reason);
        }
        match self.poll_streams(wait) {
            Ok(()) => {}
            Err(Over::Gone(end)) => return Poll::Ready((self.reason(end), Code::NoError)),
            Err(Over::Fault(code)) => self.shared.fail(code),
        }
        match self.shared.fault() {
            Some(code) => Poll::Ready((reason_of(code), code)),
            None => self.poll_idle(wait).map(|reason| (reason, Code::NoError)),
        }
    }

    fn poll_streams(&mut self, wait: &mut Context<'_>) -> Result<(), Over> {
        let has_all_unidirectional = self.accept_unidirectional(wait)?;
        if self.unidirectional.poll(wait, &self.context, self.next_id / ID_STEP).map_err(Over::Fault)? {
            self.leave(CloseReason::RemClose);
        }
        for (stream, value) in self.unidirectional.take_priorities() {
            // The client has no credit for such a stream. Source: RFC 9218 §7.2.
            if stream >= self.streams_end + ID_STEP * HTTP3_STREAMS_MAX as u64 {
                return Err(Over::Fault(Code::IdError));
            }
            self.shared.prioritise(stream, Priority::of_field(&value), self.next_id);
        }
        if !self.accept_requests(wait)? || !has_all_unidirectional {
            // There may be more, or the end of the connection.
            wait.waker().wake_by_ref();
            return Ok(());
        }
        // After those, which report if the connection is gone: then the client has not closed
        // Copal's stream.
        self.poll_control(wait)
    }

    /// Accepts the client's unidirectional streams. Returns true if there are no more for the
    /// moment.
    fn accept_unidirectional(&mut self, wait: &mut Context<'_>) -> Result<bool, Over> {
        for _ in 0..ACCEPTED_AT_ONCE_MAX {
            match self.connection.poll_accept_one_way(wait) {
                Poll::Ready(stream) => self.unidirectional.add(stream.map_err(Over::Gone)?),
                Poll::Pending => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Begins requests. Returns true if there are no more for the moment.
    fn accept_requests(&mut self, wait: &mut Context<'_>) -> Result<bool, Over> {
        for _ in 0..ACCEPTED_AT_ONCE_MAX {
            match self.connection.poll_accept(wait) {
                Poll::Ready(stream) => {
                    let (send, receive) = stream.map_err(Over::Gone)?;
                    self.accept(send, receive);
                }
                Poll::Pending => return Ok(true),
            }
        }
        Ok(false)
    }

    fn accept(&mut self, mut send: C::Send, mut receive: C::Receive) {
        self.quiet_since = None;
        let id = send.id();
        self.streams_end = self.streams_end.max(id.saturating_add(ID_STEP));
        if self.leaving.is_some() && id >= self.next_id || self.shared.live() >= HTTP3_STREAMS_MAX {
            self.context.count(Main::H3Refused);
            receive.stop(Code::RequestRejected.number());
            send.reset(Code::RequestRejected.number());
            return;
        }
        self.next_id = self.next_id.max(id.saturating_add(ID_STEP));
        let live = self.shared.begin(id);
        let (context, shared, view) = (Rc::clone(&self.context), Rc::clone(&self.shared), self.view.clone());
        let unacknowledged = Rc::clone(&self.unacknowledged);
        // Created inside: a future that is moved reserves its memory twice.
        tokio::task::spawn_local(async move {
            request::serve(context, shared, unacknowledged, view, send, receive, &live).await;
            drop(live);
        });
    }

    /// Sends the pending bytes of the control stream, which the client must not close. Source: RFC
    /// 9114 §6.2.1.
    fn poll_control(&mut self, wait: &mut Context<'_>) -> Result<(), Over> {
        if self.control.is_none() {
            match self.connection.poll_open_one_way(wait) {
                Poll::Ready(stream) => self.control = Some(stream.map_err(Over::Gone)?),
                Poll::Pending => return Ok(()),
            }
        }
        let Some(control) = &mut self.control else { return Ok(()) };
        if control.poll_stopped(wait).is_ready() {
            return Err(Over::Fault(Code::ClosedCriticalStream));
        }
        while !self.unsaid.is_empty() {
            match control.poll_write(wait, &self.unsaid) {
                Poll::Ready(Ok(count)) => drop(self.unsaid.drain(..count)),
                Poll::Ready(Err(_)) => return Err(Over::Fault(Code::ClosedCriticalStream)),
                Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    /// Takes no more requests.
    fn leave(&mut self, reason: CloseReason) {
        if self.leaving.is_none() {
            frames::write_goaway(self.next_id, &mut self.unsaid);
            self.leaving = Some(Leaving { reason, _presence: self.context.stay() });
            self.shared.wake();
        }
    }

    /// Ready when there is nothing to do and nothing to wait for.
    fn poll_idle(&mut self, wait: &mut Context<'_>) -> Poll<CloseReason> {
        if self.shared.live() > 0 {
            self.quiet_since = None;
            return Poll::Pending;
        }
        let parameters = self.context.engine.parameters.load();
        let (allowed, reason) = match &self.leaving {
            Some(leaving) => (LEAVE, leaving.reason),
            None => (duration(parameters.timeout_idle), CloseReason::RxCloseIdle),
        };
        let mut since = *self.quiet_since.get_or_insert_with(Instant::now);
        self.idle.set(since + allowed);
        if self.leaving.is_none() && !self.connection.holds_room() {
            ready!(self.idle.poll(wait));
        }
        let (arrived, left) = self.unacknowledged.poll(wait);
        if arrived > 0 {
            since = Instant::now();
            self.quiet_since = Some(since);
        }
        if left > 0 {
            let due = since + duration(parameters.idle_send_timeout);
            self.idle.set(self.stops_at.map_or(due, |stop| stop.min(due)));
            return self.idle.poll(wait).map(|()| CloseReason::TxError);
        }
        self.connection.give_room_back();
        self.idle.set(since + allowed);
        self.idle.poll(wait).map(|()| reason)
    }

    fn reason(&self, end: ConnectionEnd) -> CloseReason {
        match (end, &self.leaving) {
            (ConnectionEnd::Broken, _) => CloseReason::RxJunk,
            (ConnectionEnd::TimedOut, _) => CloseReason::RxTimeout,
            (ConnectionEnd::ByClient | ConnectionEnd::ByUs, Some(leaving)) => leaving.reason,
            (ConnectionEnd::ByClient | ConnectionEnd::ByUs, None) => CloseReason::RemClose,
        }
    }

    /// Closes the connection. Returns the guard that keeps a stopping worker alive.
    fn close(mut self, reason: CloseReason, code: Code) -> Option<Leaving> {
        if code != Code::NoError {
            self.context.count(Main::H3Errors);
            self.view.log(&self.context, Tag::Error, format_args!("HTTP/3 connection ended: {code}"));
        }
        if reason == CloseReason::Overload {
            self.context.count(Main::H3Abuse);
        }
        self.connection.close(code.number());
        self.leaving
    }
}

/// Reason why nothing more will follow.
enum Over {
    Gone(ConnectionEnd),
    Fault(Code),
}

fn reason_of(code: Code) -> CloseReason {
    match code {
        Code::ExcessiveLoad => CloseReason::Overload,
        Code::InternalError => CloseReason::VclFailure,
        _ => CloseReason::RxJunk,
    }
}
