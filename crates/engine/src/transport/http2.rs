//! HTTP/2 for clients, spoken by the library `h2`: one task a connection, in which the connection and the requests on its streams
//! take turns.
//!
//! ```text
//! Handshake ─preface→ Open ─GOAWAY, error, end of the connection→ Gone ─last request ended, farewell→ over
//! ```
//!
//! *Invariants:* each stream is an exchange of its own, and counts against `h2_max_concurrent_streams` until its work has ended,
//! whoever reset it: a stream more is not looked at before. Between the library and the client stand a guard
//! (`http2/watch.rs`) and a collector of writes (`http2/socket.rs`). What bodies wait to be sent is bounded for the connection
//! (`http2/queue.rs`), and how a connection ends is `http2/farewell.rs`. A worker that stops is kept while anything waits to be
//! sent. Source: RFC 9113. Next files: `http2/request_stream.rs`, `http2/settings.rs`.

mod farewell;
mod mended;
mod queue;
mod request_stream;
mod settings;
mod socket;
mod watch;

use super::http1::head_limits;
use super::stream::exchange::{StreamExchange, StreamNames};
use super::stream::priority::{Priority, WaitingPriorities};
use super::stream::request_head::Circumstances;
use super::stream::shows_scheme;
use super::stream::websocket::WebSocketWish;
use crate::context::{Loop, Presence, StopListener};
use crate::deadline::{Deadline, duration};
use crate::memory::{Held, MEMORY_SHORT};
use crate::request::{self, RequestSlot};
use crate::session::{Session, SessionEnd, SessionView};
use ::http1::HeadLimits;
use ::http2::Mending;
use ::http2::frame::ErrorCode;
use farewell::Farewell;
use futures_util::Stream as _;
use futures_util::stream::FuturesUnordered;
use h2::server::{Connection, Handshake, SendResponse};
use h2::{FlowControl, RecvStream};
use http::Request;
use http::request::Parts;
use mended::Mended;
use queue::{Piece, Queue};
use request_stream::{Http2Stream, Lane, Shared};
pub(super) use socket::Opening;
use socket::Socket;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::H2_HEADS_HELD_BYTES;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use watch::{Watch, Watched, close_reason};

/// The protocol in the log and in VCL.
static NAMES: StreamNames =
    StreamNames { transport: "HTTP/2", protocol: b"HTTP/2.0", body_source: "H2_BODY", body_sink: "H2B" };

/// How many requests of a connection begin before the others of the event loop have their turn: a client that sends as many as it may,
/// and resets them, must not hold them up.
const BEGUN_A_TURN: usize = 32;

/// Serves a session on which the client speaks HTTP/2 until it ends.
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
        let Rest { watch, socket, farewell, presence } = serving.rest();
        let (received, sent) = watch.traffic();
        drop(watch);
        end_of(&context, &session, [received.head_bytes, received.other_bytes, sent.head_bytes, sent.other_bytes], end);
        if let Some(farewell) = farewell {
            farewell.listen(&context, socket, session.view.peer.descriptor).await;
        }
        drop((presence, session));
    }
}

/// What is left of a connection when its session has ended for the log.
struct Rest<S> {
    watch: Rc<Watch>,
    socket: Socket<S>,
    farewell: Option<Farewell>,
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

/// The connection as the library sees it.
type Wire<S> = Watched<Socket<S>>;

enum Phase<S: AsyncRead + AsyncWrite + Unpin> {
    /// The preface is awaited.
    Handshake(Handshake<Wire<S>, Piece>),
    Open(Connection<Wire<S>, Piece>),
    /// The connection is over; requests may still be at work, and the farewell under way.
    Gone,
}

/// The end of a stream's work.
struct StreamEnd {
    id: u32,
    /// Why the session ends with it, if it does.
    close: Option<CloseReason>,
}

type Work = Pin<Box<dyn Future<Output = StreamEnd>>>;

/// What is known of a stream at work.
struct Stream {
    id: u32,
    shared: Rc<Shared>,
    /// Of its request's body, if it has one.
    flow: Option<FlowControl>,
}

/// A connection being served.
struct Serving<S: AsyncRead + AsyncWrite + Unpin> {
    context: Rc<Loop>,
    session: SessionView,
    socket: Socket<S>,
    watch: Rc<Watch>,
    mending: Rc<RefCell<Mending>>,
    phase: Phase<S>,
    lane: Rc<Lane>,
    work: FuturesUnordered<Work>,
    streams: Vec<Stream>,
    streams_max: usize,
    /// The connection's window has been raised.
    is_window_raised: bool,
    /// Priorities of streams that have not begun.
    priorities: WaitingPriorities,
    /// Why the session ends, from when on that is certain.
    end: Option<SessionEnd>,
    /// A GOAWAY was sent, or asked for.
    is_leaving: bool,
    /// Once the connection is over.
    farewell: Option<Farewell>,
    /// Keeps a worker that stops, while there is something to send.
    presence: Option<Presence>,
    /// Since the first turn.
    stop_listener: Option<StopListener>,
    deadline: Deadline,
    /// Since when no stream is at work.
    quiet_since: Instant,
    /// Bytes of bodies that requests have not used, and heads and trailers that they have not taken.
    held: Held,
    read_bytes: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Serving<S> {
    fn new(context: &Rc<Loop>, mut session: SessionView, stream: S, opening: Opening) -> Serving<S> {
        let parameters = context.engine.parameters.load();
        // Compat: a VCL under `http_policy=rfc` forgives nothing.
        let is_lenient = shows_scheme(context);
        let watch = Watch::new(context, session.vxid, &parameters, is_lenient);
        let mending = Rc::new(RefCell::new(Mending::new(is_lenient)));
        session.http2 = Some(Rc::clone(watch.resets()));
        let socket = Socket::new(stream, opening);
        let mended = Mended::new(Rc::clone(&mending));
        let windows = if is_lenient { settings::windows(&parameters) } else { None };
        let settings = settings::of(&parameters, windows.as_ref());
        let windows = windows.map(|windows| Rc::new(RefCell::new(windows)));
        let watched = Watched::new(socket.clone(), Rc::clone(&watch), mended, windows.clone());
        let handshake = settings.handshake(watched);
        let lane = Lane {
            queue: Rc::new(Queue::default()),
            is_blocked: Cell::new(false),
            window_seconds: parameters.h2_window_timeout,
            lump_bytes: if windows.is_some() { 1 } else { settings::lump_bytes(&parameters) },
            watch: Rc::clone(&watch),
            windows,
        };
        Serving {
            context: Rc::clone(context),
            session,
            socket,
            watch,
            mending,
            phase: Phase::Handshake(handshake),
            lane: Rc::new(lane),
            work: FuturesUnordered::new(),
            streams: Vec::new(),
            streams_max: usize::try_from(parameters.h2_max_concurrent_streams).unwrap_or(usize::MAX),
            is_window_raised: false,
            priorities: WaitingPriorities::default(),
            end: None,
            is_leaving: false,
            farewell: None,
            presence: None,
            stop_listener: None,
            deadline: Deadline::new(),
            quiet_since: Instant::now(),
            held: Held::default(),
            read_bytes: 0,
        }
    }

    /// Gives everybody a turn. Ready when the connection is over, all work on its streams, and all is said.
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<SessionEnd> {
        let mut begun = 0;
        let descriptor = self.session.peer.descriptor;
        if self.stop_listener.is_none() {
            self.stop_listener = Some(self.context.listen_for_stop(self.session.vxid, task.waker()));
        }
        if self.context.idle_sessions.work(descriptor) {
            self.leave_now(ErrorCode::NoError, CloseReason::Overload);
        }
        loop {
            let begun_now = self.poll_connection(task, BEGUN_A_TURN - begun);
            let has_ended = self.poll_work(task);
            begun += begun_now;
            let is_turn_over = begun >= BEGUN_A_TURN;
            if !is_turn_over && (begun_now > 0 || has_ended || self.leave_at_stop()) {
                continue;
            }
            let mut is_flushed = self.socket.poll_flush_collected(task).is_ready();
            if is_flushed && self.open_windows() {
                is_flushed = self.socket.poll_flush_collected(task).is_ready();
            }
            if self.lane.is_blocked.replace(!is_flushed) && is_flushed {
                // What kept it busy was its client.
                self.quiet_since = Instant::now();
            }
            if is_turn_over {
                task.waker().wake_by_ref();
                return Poll::Pending;
            }
            let has_spoken = self.has_spoken(task, is_flushed);
            self.keep_worker(is_flushed);
            if has_spoken && self.work.is_empty() {
                return Poll::Ready(self.end.unwrap_or(SessionEnd::waiting(CloseReason::RemClose)));
            }
            if self.count_memory() {
                continue;
            }
            if self.work.is_empty() && is_flushed && self.lane.queue.queued_bytes() == 0 {
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

    /// What the farewell needs; all else is given up.
    fn rest(self) -> Rest<S> {
        let Serving { watch, socket, farewell, presence, .. } = self;
        Rest { watch, socket, farewell, presence }
    }

    /// Begins the farewell if the connection is over. Returns whether all is said.
    fn has_spoken(&mut self, task: &mut Context<'_>, is_flushed: bool) -> bool {
        if !matches!(self.phase, Phase::Gone) {
            return false;
        }
        let patience = || duration(self.context.engine.parameters.load().idle_send_timeout);
        let farewell = self.farewell.get_or_insert_with(|| Farewell::new(patience()));
        let _ = farewell.poll(task, &self.socket, is_flushed && self.work.is_empty());
        farewell.has_spoken()
    }

    /// Has a worker that stops wait for what is not sent yet, and for a client that is about to leave after its last response.
    fn keep_worker(&mut self, is_flushed: bool) {
        let is_leaving = self.farewell.is_some() || self.end.is_some_and(|end| end.is_by_request);
        if is_flushed && !is_leaving && self.lane.queue.queued_bytes() == 0 {
            self.presence = None;
        } else if self.presence.is_none() {
            self.presence = Some(self.context.stay());
        }
    }

    /// Lets the library read and write, until so many requests have begun. Returns how many have.
    fn poll_connection(&mut self, task: &mut Context<'_>, most: usize) -> usize {
        let mut begun = 0;
        while begun < most {
            let polled = match &mut self.phase {
                Phase::Handshake(handshake) => match Pin::new(handshake).poll(task) {
                    Poll::Ready(Ok(connection)) => {
                        self.phase = Phase::Open(connection);
                        continue;
                    }
                    Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
                    Poll::Pending => Poll::Pending,
                },
                Phase::Open(connection) if self.streams.len() < self.streams_max => connection.poll_accept(task),
                Phase::Open(connection) => connection.poll_closed(task).map(|closed| closed.err().map(Err)),
                Phase::Gone => return begun,
            };
            match polled {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.begin(request, respond);
                    begun += 1;
                }
                Poll::Ready(None) => self.lost(CloseReason::RemClose),
                Poll::Ready(Some(Err(error))) => self.failed(&error),
                Poll::Pending => {
                    if !self.obey_watch() {
                        return begun;
                    }
                }
            }
        }
        begun
    }

    /// Tells the client of its windows. Returns whether there was anything to tell.
    fn open_windows(&mut self) -> bool {
        let (Some(windows), Phase::Open(_)) = (&self.lane.windows, &self.phase) else { return false };
        let mut windows = windows.borrow_mut();
        let mut mending = self.mending.borrow_mut();
        windows.received(mending.take_data_frames(), mending.is_acknowledged());
        let is_at_work = |id| self.streams.iter().any(|stream| stream.id == id);
        let updates = windows.take_updates(|stream| mending.has_ended(stream) || !is_at_work(stream));
        if !updates.is_empty() {
            self.watch.send(&updates);
            self.socket.collect(&updates);
        }
        !updates.is_empty()
    }

    /// Ends the connection, or streams, if the guard or the mending says so. Returns whether there is something new to send.
    fn obey_watch(&mut self) -> bool {
        let mut is_news = false;
        for update in self.watch.take_priorities() {
            let priority = Priority::of_field(&update.value);
            match self.streams.iter().find(|stream| stream.id == update.stream) {
                Some(stream) => stream.shared.priority.set(priority),
                None => self.priorities.put(update.stream.into(), priority),
            }
        }
        for (id, code) in self.mending.borrow_mut().take_resets() {
            if let Some(stream) = self.streams.iter().find(|stream| stream.id == id) {
                stream.shared.respond.borrow_mut().send_reset((code as u32).into());
                is_news = true;
            }
        }
        if self.end.is_some() {
            return is_news;
        }
        let Some(verdict) = self.watch.verdict() else { return is_news };
        self.leave_now(verdict.code, verdict.close);
        true
    }

    /// Sends a GOAWAY and ends the connection, whatever its streams do.
    fn leave_now(&mut self, code: ErrorCode, reason: CloseReason) {
        self.end.get_or_insert(SessionEnd::waiting(reason));
        self.is_leaving = true;
        match &mut self.phase {
            Phase::Open(connection) => connection.abrupt_shutdown((code as u32).into()),
            Phase::Handshake(_) => self.lost(reason),
            Phase::Gone => {}
        }
    }

    /// The library has ended the connection for an error.
    fn failed(&mut self, error: &h2::Error) {
        let code = error.reason().and_then(|reason| ErrorCode::of(reason.into()));
        if error.is_remote() && self.work.is_empty() {
            // Compat: a client that has said GOAWAY hears none.
            self.socket.discard_goaway();
        }
        let reason = match code {
            None => CloseReason::RemClose,
            Some(code) if error.is_remote() => close_reason(code),
            Some(code) => self.watch.library_ended(code),
        };
        self.lost(reason);
    }

    /// The connection is over.
    fn lost(&mut self, reason: CloseReason) {
        self.end.get_or_insert(SessionEnd::waiting(reason));
        self.phase = Phase::Gone;
    }

    /// Begins the work on a request.
    fn begin(&mut self, request: Request<RecvStream>, respond: SendResponse<Piece>) {
        self.context.count(Main::H2Streams);
        let (parts, mut body) = request.into_parts();
        let id = respond.stream_id().as_u32();
        self.watch.take(id);
        let is_last = body.is_end_stream();
        let announced = self.priorities.take(id.into()).or_else(|| Priority::of_head(&parts.headers));
        let flow = (!is_last).then(|| body.flow_control().clone());
        if flow.is_some()
            && !std::mem::replace(&mut self.is_window_raised, true)
            && let Phase::Open(connection) = &mut self.phase
        {
            let parameters = self.context.engine.parameters.load();
            connection.set_target_window_size(settings::connection_window_bytes(&parameters));
        }
        let shared = Rc::new(Shared::new(announced.unwrap_or_default(), respond));
        let stream = Http2Stream::new(&self.lane, &shared, id, body);
        self.streams.push(Stream { id, shared, flow });
        let slot = self.context.requests.take(&self.context.engine.ring);
        let view = self.session.clone();
        self.work.push(Box::pin(work(Rc::clone(&self.context), view, slot, stream, id, parts, is_last)));
    }

    /// Lets the requests work. Returns whether one has ended.
    fn poll_work(&mut self, task: &mut Context<'_>) -> bool {
        let mut has_ended = false;
        while let Poll::Ready(Some(end)) = Pin::new(&mut self.work).poll_next(task) {
            has_ended = true;
            self.streams.retain(|stream| stream.id != end.id);
            self.mending.borrow_mut().forget(end.id);
            self.watch.forget(end.id);
            self.quiet_since = Instant::now();
            let close = end.close.or(self.is_draining().then_some(CloseReason::RespClose));
            if let Some(reason) = close {
                self.leave(SessionEnd { reason, is_by_request: true });
            }
        }
        has_ended
    }

    fn is_draining(&self) -> bool {
        self.context.engine.draining.load(Ordering::Relaxed)
    }

    /// Has an idle client told that the worker stops. Returns whether there is something new to send.
    fn leave_at_stop(&mut self) -> bool {
        let is_news = matches!(self.phase, Phase::Open(_)) && self.work.is_empty() && self.is_draining();
        is_news && self.leave(SessionEnd::waiting(CloseReason::RespClose))
    }

    /// Sends a GOAWAY, and ends the connection after the streams that are open, and those that the client has begun before it hears
    /// of it. Returns whether that is news.
    fn leave(&mut self, end: SessionEnd) -> bool {
        if std::mem::replace(&mut self.is_leaving, true) {
            return false;
        }
        self.end.get_or_insert(end);
        self.quiet_since = Instant::now();
        if let Phase::Open(connection) = &mut self.phase {
            connection.graceful_shutdown();
        }
        true
    }

    /// When the connection must end unless something happens; `None` if it waits for its requests alone.
    fn due(&self) -> Option<Instant> {
        if let Some(farewell) = &self.farewell {
            return (!farewell.has_spoken()).then(|| farewell.due());
        }
        let parameters = self.context.engine.parameters.load();
        let idle = duration(parameters.timeout_idle);
        if let Some(since) = self.socket.blocked_since() {
            return Some(since + duration(parameters.idle_send_timeout));
        }
        let queued = self.lane.queue.queued_bytes() > 0;
        match (self.work.is_empty(), self.watch.incomplete_since()) {
            // The last bytes of a response wait for the client's windows.
            (true, _) if queued => Some(self.quiet_since + duration(parameters.idle_send_timeout)),
            (true, _) => Some(self.quiet_since + idle),
            (false, Some(_)) => Some(self.socket.read_at() + idle),
            (false, None) => None,
        }
    }

    /// What was due has not happened.
    fn time_is_up(&mut self) {
        if let Some(farewell) = &mut self.farewell {
            farewell.time_is_up(self.context.sockets.undelivered(self.session.peer.descriptor).ok());
        } else if self.socket.blocked_since().is_some() {
            self.lost(CloseReason::TxError);
            self.farewell = Some(Farewell::given_up());
        } else if self.is_leaving && self.work.is_empty() {
            // The client does not react to a GOAWAY.
            self.lost(CloseReason::RemClose);
        } else {
            let is_idle = self.work.is_empty() && self.watch.incomplete_since().is_none();
            let reason = if is_idle { CloseReason::RxCloseIdle } else { CloseReason::RxTimeout };
            self.leave_now(ErrorCode::NoError, reason);
            self.quiet_since = Instant::now();
        }
    }

    /// Counts the bytes of bodies that the client has sent and no request has used, and heads and trailers that no request has. Returns
    /// whether the connection ends for them.
    fn count_memory(&mut self) -> bool {
        let read = self.socket.read_bytes();
        if std::mem::replace(&mut self.read_bytes, read) == read && self.held.bytes() == 0 {
            return false;
        }
        let bodies: usize =
            self.streams.iter().filter_map(|stream| stream.flow.as_ref()).map(FlowControl::used_capacity).sum();
        let heads = self.watch.held_bytes();
        self.held.set(&self.context.memory, bodies + heads);
        let is_too_much = heads > H2_HEADS_HELD_BYTES && self.end.is_none() && self.context.memory.is_short();
        if is_too_much {
            self.session.log(&self.context, Tag::SessError, format_args!("HTTP/2: {MEMORY_SHORT}"));
            self.leave_now(ErrorCode::EnhanceYourCalm, CloseReason::Overload);
        }
        is_too_much
    }
}

/// Works on one request. What it needs to begin with is used outside of the future, which would hold it as long as it lives.
fn work(
    context: Rc<Loop>,
    mut session: SessionView,
    mut slot: Box<RequestSlot>,
    stream: Http2Stream,
    id: u32,
    parts: Parts,
    is_last: bool,
) -> impl Future<Output = StreamEnd> {
    let now = session.now(&context);
    let request = &mut slot.request;
    request.arrive(&context.engine.parameters.load(), now);
    let settings = &request.task.settings;
    let websocket = websocket(&context, &parts);
    let circumstances = Circumstances {
        protocol: NAMES.protocol,
        is_last,
        limits: head_limits(settings),
        shows_scheme: shows_scheme(&context),
        scheme: if session.peer.tls.is_some() { "https" } else { "http" },
        websocket: websocket.as_ref(),
    };
    let mut exchange = StreamExchange::new(stream, &NAMES, parts, &circumstances, request);
    async move {
        let outcome = request::run(&context, &mut session, &mut exchange, &mut slot.request).await;
        let close = exchange.end(&outcome, &context);
        if !outcome.is_ruined {
            context.requests.put(slot);
        }
        StreamEnd { id, close }
    }
}

/// What a request asks for if it is an extended CONNECT for a WebSocket. The library refuses those that were not offered.
fn websocket(context: &Loop, parts: &Parts) -> Option<WebSocketWish> {
    let protocol = parts.extensions.get::<h2::ext::Protocol>()?;
    if !protocol.as_str().eq_ignore_ascii_case("websocket") {
        return None;
    }
    let parameters = context.engine.parameters.load();
    let limits = HeadLimits {
        total_bytes: usize::try_from(parameters.http_resp_size).unwrap_or(usize::MAX),
        line_bytes: usize::try_from(parameters.http_resp_hdr_len).unwrap_or(usize::MAX),
        headers_max: usize::try_from(parameters.http_max_hdr).unwrap_or(usize::MAX),
    };
    let random = &context.engine.random;
    Some(WebSocketWish::new(std::array::from_fn(|_| random.next_bits()), limits))
}
