//! HTTP/2 for clients, by the machine of the crate `http2`: one task per connection, in which the
//! connection and the requests on its streams take turns.
//!
//! ```text
//! Open ─GOAWAY, error, end of the connection→ Gone ─last request ended, graceful close→ over
//! ```
//!
//! A turn reads what the client has sent, begins its requests, lets those that can continue do so,
//! and writes the frames of all streams at once. *Invariants:* each stream is an exchange of its
//! own, and counts against `h2_max_concurrent_streams` until its work has ended, even if it was
//! reset: a further request is not begun before. While the client accepts no bytes no more are read
//! than make a full output. The graceful close is in `http2/graceful_close.rs`. A worker that stops
//! is kept while anything waits to be sent. Source: RFC 9113. Next files: `http2/lane.rs`,
//! `http2/request_stream.rs`, `http2/socket.rs`, `http2/settings.rs`.

mod frame_log;
mod graceful_close;
mod lane;
mod request_stream;
mod settings;
mod socket;

use super::http1::head_limits;
use super::stream::exchange::{StreamExchange, StreamNames};
use super::stream::request_head::Circumstances;
use super::stream::shows_scheme;
use super::stream::websocket::WebSocketRequest;
use crate::context::{Loop, Presence, StopListener};
use crate::deadline::{Deadline, duration};
use crate::memory::{Held, MEMORY_SHORT};
use crate::request::{self, RequestSlot};
use crate::session::{Session, SessionEnd, SessionView};
use ::http1::HeadLimits;
use ::http2::NewRequest;
use ::http2::frame::ErrorCode;
use ::http2::head::RequestHead;
use futures_util::Stream as _;
use futures_util::stream::FuturesUnordered;
use graceful_close::GracefulClose;
use lane::{Lane, close_reason};
use request_stream::Http2Stream;
pub(super) use socket::Opening;
use socket::Socket;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::{H2_HEADS_HELD_BYTES, H2_QUEUED_BYTES_MAX};
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// The protocol in the log and in VCL.
static NAMES: StreamNames =
    StreamNames { transport: "HTTP/2", protocol: b"HTTP/2.0", body_source: "H2_BODY", body_sink: "H2B" };

/// Number of requests of a connection that begin before the others of the event loop have their
/// turn: a client that sends as many as allowed, and resets them, must not delay them.
const BEGUN_A_TURN: usize = 32;
/// Most pieces that are read in a turn.
const READS_A_TURN: usize = 8;
/// While that many bytes wait to be sent, no more are read: the answers to frames, and the heads of
/// responses, must not grow without limit if the client does not read.
const UNSENT_BYTES_MAX: usize = H2_QUEUED_BYTES_MAX + (16 << 10);

/// Serves a session in which the client uses HTTP/2, until it ends.
pub(super) fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<Loop>,
    session: Session,
    stream: S,
    opening: Opening,
) -> impl Future<Output = ()> {
    context.count(Main::H2Sess);
    let mut serving = Serving::new(&context, session.view(), stream, opening);
    async move {
        let end = poll_fn(|task| serving.poll(task)).await;
        let Rest { lane, socket, graceful_close, presence } = serving.rest();
        let (received, sent) = lane.machine.borrow().traffic();
        drop(lane);
        end_of(&context, &session, [received.head_bytes, received.other_bytes, sent.head_bytes, sent.other_bytes], end);
        if let Some(graceful_close) = graceful_close {
            graceful_close.discard_rest(&context, socket, session.view.peer.descriptor).await;
        }
        drop((presence, session));
    }
}

/// Rest of a connection whose session has ended for the log.
struct Rest<S> {
    lane: Rc<Lane>,
    socket: Socket<S>,
    graceful_close: Option<GracefulClose>,
    presence: Option<Presence>,
}

/// Logs and counts the end of a session that was served.
fn end_of(context: &Loop, session: &Session, numbers: [u64; 4], end: SessionEnd) {
    let [from_head, from_other, to_head, to_other] = numbers;
    for (counter, bytes) in
        [Main::SReqHdrbytes, Main::SReqBodybytes, Main::SRespHdrbytes, Main::SRespBodybytes].into_iter().zip(numbers)
    {
        context.counters.add(counter, bytes);
    }
    let (from, to) = (from_head + from_other, to_head + to_other);
    session.view.log(context, Tag::ReqAcct, format_args!("{from_head} {from_other} {from} {to_head} {to_other} {to}"));
    session.end(context, end);
}

/// The end of a stream's work.
struct StreamEnd {
    id: u32,
    /// Reason why the session ends with it, if it does.
    close: Option<CloseReason>,
}

type Work = Pin<Box<dyn Future<Output = StreamEnd>>>;

/// A connection being served.
struct Serving<S> {
    context: Rc<Loop>,
    session: SessionView,
    socket: Socket<S>,
    lane: Rc<Lane>,
    /// Requests that have to wait for something. Most are over when they are polled for the first
    /// time, and never get here.
    work: FuturesUnordered<Work>,
    /// The connection is over; requests may still be running, and the graceful close under way.
    is_gone: bool,
    /// Result of the session, once it is certain.
    end: Option<SessionEnd>,
    /// A GOAWAY was sent, or requested.
    is_leaving: bool,
    /// The graceful close, once the connection is over.
    graceful_close: Option<GracefulClose>,
    /// Keeps a stopping worker alive while there is something to send.
    presence: Option<Presence>,
    /// Set since the first turn.
    stop_listener: Option<StopListener>,
    deadline: Deadline,
    /// Start of the time without an active stream.
    quiet_since: Instant,
    /// Memory of body bytes that requests have not used, and of heads and trailers that they have
    /// not taken.
    held: Held,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Serving<S> {
    fn new(context: &Rc<Loop>, mut session: SessionView, stream: S, opening: Opening) -> Serving<S> {
        // Compat: a VCL under `http_policy=rfc` is never lenient.
        let lane = Rc::new(Lane::new(context, &mut session, shows_scheme(context)));
        Serving {
            context: Rc::clone(context),
            session,
            socket: Socket::new(stream, opening),
            lane,
            work: FuturesUnordered::new(),
            is_gone: false,
            end: None,
            is_leaving: false,
            graceful_close: None,
            presence: None,
            stop_listener: None,
            deadline: Deadline::new(),
            quiet_since: Instant::now(),
            held: Held::default(),
        }
    }

    /// Gives the connection and all streams a turn. Ready when the connection and all work on its
    /// streams are over, and everything is sent.
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<SessionEnd> {
        let descriptor = self.session.peer.descriptor;
        if self.stop_listener.is_none() {
            self.stop_listener = Some(self.context.listen_for_stop(self.session.vxid, task.waker()));
        }
        self.lane.begin_turn();
        if self.context.idle_sessions.work(descriptor) {
            self.leave_now(ErrorCode::NoError, CloseReason::Overload);
        }
        loop {
            let is_turn_over = self.poll_streams(task);
            let is_flushed = self.flush(task);
            if self.lane.wake_streams() && !is_turn_over {
                continue;
            }
            if is_turn_over {
                task.waker().wake_by_ref();
                return Poll::Pending;
            }
            let is_everything_sent = self.is_everything_sent(task, is_flushed);
            self.keep_worker(is_flushed);
            if is_everything_sent && self.work.is_empty() {
                return Poll::Ready(self.end.unwrap_or(SessionEnd::waiting(CloseReason::RemClose)));
            }
            if self.count_memory() {
                continue;
            }
            if is_flushed {
                self.lane.machine.borrow_mut().shrink();
            }
            if self.work.is_empty() && is_flushed {
                self.context.idle_sessions.wait(descriptor, self.quiet_since);
            }
            let Some(due) = self.due() else { return Poll::Pending };
            self.deadline.set(due);
            if self.deadline.poll(task).is_pending() {
                return Poll::Pending;
            }
            self.context.idle_sessions.work(descriptor);
            self.time_is_up();
        }
    }

    /// Reads, begins requests and lets all of them run, until nothing more can be done without the
    /// client or the origins. Returns true if others must have their turn first.
    fn poll_streams(&mut self, task: &mut Context<'_>) -> bool {
        let (mut begun, mut reads) = (0, 0);
        loop {
            let begun_now = self.begin_requests(task, BEGUN_A_TURN - begun);
            let has_ended = self.poll_work(task);
            let is_woken = self.lane.wake_streams();
            begun += begun_now;
            if begun >= BEGUN_A_TURN {
                return true;
            }
            let is_news = begun_now > 0 || has_ended || is_woken || self.leave_at_stop();
            if is_news {
                continue;
            }
            if reads >= READS_A_TURN {
                return true;
            }
            if !self.read(task) {
                return false;
            }
            reads += 1;
        }
    }

    /// Reads a piece. Returns false if there is none at the moment.
    fn read(&mut self, task: &mut Context<'_>) -> bool {
        let unsent_bytes = self.lane.machine.borrow().output().len();
        if self.is_gone || unsent_bytes >= UNSENT_BYTES_MAX {
            return false;
        }
        let Poll::Ready(count) = self.socket.poll_read(task, |bytes| self.lane.receive(bytes)) else { return false };
        if count == 0 {
            self.lane.machine.borrow_mut().end();
            self.lost(CloseReason::RemClose);
        }
        self.obey_machine();
        true
    }

    /// Notes the end of the connection by the machine, or by the client.
    fn obey_machine(&mut self) {
        if self.is_gone || !self.lane.machine.borrow().is_finished() {
            return;
        }
        let verdict = self.lane.verdict();
        let left = self.lane.machine.borrow().left_by_client();
        let reason = match (verdict, left) {
            (Some(reason), _) => reason,
            (None, Some(code)) => ErrorCode::of(code).map_or(CloseReason::RxJunk, close_reason),
            (None, None) => CloseReason::RemClose,
        };
        self.lost(reason);
    }

    /// Writes the frames of all streams. Returns true if the client has accepted all of them.
    fn flush(&mut self, task: &mut Context<'_>) -> bool {
        self.lane.machine.borrow_mut().announce_credit();
        self.lane.log_output();
        let flushed = self.socket.poll_flush(task, &mut self.lane.machine.borrow_mut());
        if let Poll::Ready(Err(_)) = flushed {
            let mut machine = self.lane.machine.borrow_mut();
            machine.end();
            machine.discard_output();
            drop(machine);
            self.lost(CloseReason::RemClose);
        }
        self.lane.note_sent();
        let is_flushed = flushed.is_ready();
        if self.lane.is_blocked.replace(!is_flushed) && is_flushed {
            // Its client kept it busy.
            self.quiet_since = Instant::now();
        }
        if is_flushed {
            self.lane.note_flushed();
        }
        is_flushed
    }

    /// The parts that the graceful close needs; everything else is dropped.
    fn rest(self) -> Rest<S> {
        let Serving { lane, socket, graceful_close, presence, .. } = self;
        Rest { lane, socket, graceful_close, presence }
    }

    /// Begins the graceful close if the connection is over. Returns true if everything is sent.
    fn is_everything_sent(&mut self, task: &mut Context<'_>, is_flushed: bool) -> bool {
        if !self.is_gone {
            return false;
        }
        let timeout = || duration(self.context.engine.parameters.load().idle_send_timeout);
        let graceful_close = self.graceful_close.get_or_insert_with(|| GracefulClose::new(timeout()));
        let _ = graceful_close.poll(task, &mut self.socket, is_flushed && self.work.is_empty());
        graceful_close.is_everything_sent()
    }

    /// Makes a stopping worker wait for unsent bytes, and for a client that is about to leave after
    /// its last response.
    fn keep_worker(&mut self, is_flushed: bool) {
        let is_leaving = self.graceful_close.is_some() || self.end.is_some_and(|end| end.is_by_request);
        if is_flushed && !is_leaving {
            self.presence = None;
        } else if self.presence.is_none() {
            self.presence = Some(self.context.stay());
        }
    }

    /// Begins requests that have arrived, at most `most`. Returns their number.
    fn begin_requests(&mut self, task: &mut Context<'_>, most: usize) -> usize {
        for begun in 0..most {
            let Some(request) = self.lane.machine.borrow_mut().take_request() else { return begun };
            let mut work = self.begin(request);
            match work.as_mut().poll(task) {
                Poll::Ready(end) => self.ended(&end),
                Poll::Pending => self.work.push(work),
            }
        }
        most
    }

    /// Begins the work on a request.
    fn begin(&mut self, request: NewRequest) -> Work {
        self.context.count(Main::H2Streams);
        let stream = Http2Stream::new(&self.lane, request.stream);
        let slot = self.context.requests.take(&self.context.engine.ring);
        Box::pin(work(Rc::clone(&self.context), self.session.clone(), slot, stream, request))
    }

    /// Lets the requests run that have waited. Returns true if one has ended.
    fn poll_work(&mut self, task: &mut Context<'_>) -> bool {
        let mut has_ended = false;
        while !self.work.is_empty()
            && let Poll::Ready(Some(end)) = Pin::new(&mut self.work).poll_next(task)
        {
            has_ended = true;
            self.ended(&end);
        }
        has_ended
    }

    /// Handles the end of the work on a stream.
    fn ended(&mut self, end: &StreamEnd) {
        self.lane.forget(end.id);
        self.quiet_since = self.lane.began_at + self.lane.now.get();
        let close = end.close.or(self.is_draining().then_some(CloseReason::RespClose));
        if let Some(reason) = close {
            self.leave(SessionEnd { reason, is_by_request: true });
        }
        self.obey_machine();
    }

    fn is_draining(&self) -> bool {
        self.context.engine.draining.load(Ordering::Relaxed)
    }

    /// Has an idle client notified that the worker stops. Returns true if there is something new to
    /// send.
    fn leave_at_stop(&mut self) -> bool {
        let is_news = !self.is_gone && self.work.is_empty() && self.is_draining();
        is_news && self.leave(SessionEnd::waiting(CloseReason::RespClose))
    }

    /// Sends a GOAWAY, and ends the connection after the streams that are open, and those that the
    /// client has begun before it receives the GOAWAY. Returns true if there is something new to
    /// send.
    fn leave(&mut self, end: SessionEnd) -> bool {
        if std::mem::replace(&mut self.is_leaving, true) {
            return false;
        }
        self.end.get_or_insert(end);
        self.quiet_since = Instant::now();
        self.lane.machine.borrow_mut().leave();
        true
    }

    /// Sends a GOAWAY and ends the connection, whatever the state of its streams.
    fn leave_now(&mut self, code: ErrorCode, reason: CloseReason) {
        self.is_leaving = true;
        self.lane.machine.borrow_mut().go_away(code);
        self.lost(reason);
    }

    /// Marks the connection as over.
    fn lost(&mut self, reason: CloseReason) {
        self.end.get_or_insert(SessionEnd::waiting(reason));
        self.is_gone = true;
    }

    /// Time at which the connection must end unless something happens; `None` if it waits for its
    /// requests alone.
    fn due(&self) -> Option<Instant> {
        if let Some(graceful_close) = &self.graceful_close {
            return (!graceful_close.is_everything_sent()).then(|| graceful_close.due());
        }
        let parameters = self.context.engine.parameters.load();
        let idle = duration(parameters.timeout_idle);
        if let Some(since) = self.socket.blocked_since() {
            return Some(since + duration(parameters.idle_send_timeout));
        }
        match (self.work.is_empty(), self.lane.machine.borrow().incomplete_since()) {
            (true, _) => Some(self.quiet_since + idle),
            (false, Some(_)) => Some(self.socket.read_at() + idle),
            (false, None) => None,
        }
    }

    /// Handles a deadline that has passed.
    fn time_is_up(&mut self) {
        if let Some(graceful_close) = &mut self.graceful_close {
            graceful_close.time_is_up(self.context.sockets.undelivered(self.session.peer.descriptor).ok());
        } else if self.socket.blocked_since().is_some() {
            self.lane.machine.borrow_mut().end();
            self.lost(CloseReason::TxError);
            self.graceful_close = Some(GracefulClose::abandoned());
        } else if self.is_leaving && self.work.is_empty() {
            // The client does not react to a GOAWAY.
            self.lane.machine.borrow_mut().end();
            self.lost(CloseReason::RemClose);
        } else {
            let is_idle = self.work.is_empty() && self.lane.machine.borrow().incomplete_since().is_none();
            let reason = if is_idle { CloseReason::RxCloseIdle } else { CloseReason::RxTimeout };
            self.leave_now(ErrorCode::NoError, reason);
            self.quiet_since = Instant::now();
        }
    }

    /// Counts the body bytes that the client has sent and no request has used, and heads and
    /// trailers that no request has taken. Returns true if the connection ends because of them.
    fn count_memory(&mut self) -> bool {
        let (bodies, heads) = {
            let machine = self.lane.machine.borrow();
            (machine.body_bytes(), machine.head_bytes())
        };
        if bodies + heads == 0 && self.held.bytes() == 0 {
            return false;
        }
        self.held.set(&self.context.memory, bodies + heads);
        let is_too_much = heads > H2_HEADS_HELD_BYTES && !self.is_gone && self.context.memory.is_short();
        if is_too_much {
            self.session.log(&self.context, Tag::SessError, format_args!("HTTP/2: {MEMORY_SHORT}"));
            self.leave_now(ErrorCode::EnhanceYourCalm, CloseReason::Overload);
        }
        is_too_much
    }
}

/// Runs one request. Its initial values are used outside of the future, which would reserve memory
/// for them as long as it exists.
fn work(
    context: Rc<Loop>,
    mut session: SessionView,
    mut slot: Box<RequestSlot>,
    stream: Http2Stream,
    request: NewRequest,
) -> impl Future<Output = StreamEnd> {
    let NewRequest { stream: id, head, is_last } = request;
    let now = session.now(&context);
    let request = &mut slot.request;
    request.arrive(&context.engine.parameters.load(), now);
    let settings = &request.task.settings;
    let websocket = websocket(&context, &head);
    let circumstances = Circumstances {
        protocol: NAMES.protocol,
        is_last,
        limits: head_limits(settings),
        shows_scheme: shows_scheme(&context),
        scheme: if session.peer.tls.is_some() { "https" } else { "http" },
        websocket: websocket.as_ref(),
    };
    let mut exchange = StreamExchange::new(stream, &NAMES, &head, &circumstances, request);
    exchange.stream().give_back(head);
    async move {
        let outcome = request::run(&context, &mut session, &mut exchange, &mut slot.request).await;
        if !outcome.is_ruined {
            context.requests.put(slot);
        }
        exchange.flush_before_reset().await;
        let close = exchange.end(&outcome, &context);
        StreamEnd { id, close }
    }
}

/// The WebSocket request, if a request is an extended CONNECT for a WebSocket. The machine refuses
/// extended CONNECT if it was not offered.
fn websocket(context: &Loop, head: &RequestHead) -> Option<WebSocketRequest> {
    if !head.protocol()?.eq_ignore_ascii_case(b"websocket") {
        return None;
    }
    let parameters = context.engine.parameters.load();
    let limits = HeadLimits {
        total_bytes: usize::try_from(parameters.http_resp_size).unwrap_or(usize::MAX),
        line_bytes: usize::try_from(parameters.http_resp_hdr_len).unwrap_or(usize::MAX),
        headers_max: usize::try_from(parameters.http_max_hdr).unwrap_or(usize::MAX),
    };
    let random = &context.engine.random;
    Some(WebSocketRequest::new(std::array::from_fn(|_| random.next_bits()), limits))
}
