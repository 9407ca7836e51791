//! One client connection: reads requests one after the other, runs each, until somebody closes.
//!
//! ```text
//! Idle ─bytes→ Head ─complete→ Request ─keep-alive→ Idle
//!   └ nothing for timeout_idle, closed ┴ malformed, closed ┴ must close ─→ over
//! ```
//!
//! A session that waits for its next request holds no buffers: the request that carries them is taken from the loop's pool when
//! bytes arrive and given back when it is over. *Invariants:* the log of a session is written record by record, that of a
//! request in batches; a request that panics ends its session and nothing else. Next file: `request.rs`.

pub(crate) mod caught;
mod connection;
mod deadline;
mod proxied;

pub(crate) use connection::{Connection, ReceiveError, SendLimits};
pub(crate) use deadline::{Deadline, duration};
pub use proxied::{ProxiedSession, ProxyFacts};

use crate::context::{Loop, Peer};
use crate::logged::{self, REQ};
use crate::memory::MEMORY_SHORT;
use crate::request::{ClientBody, Request, Run, SessionTimeouts, Settings};
use caught::caught;
use http1::{FramingError, HeadError, HeadLimits, HeadStatus, parse_request, request_body_length, split_absolute_form};
use shm::log::LogId;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::WHY_TEXT_BYTES_MAX;
use surface::reason::{self, Reason};
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// What all requests of a connection share.
pub(crate) struct Session {
    /// Transaction id.
    pub(crate) vxid: u32,
    /// The two ends.
    pub(crate) peer: Peer,
    /// Limits that VCL has set.
    pub(crate) timeouts: SessionTimeouts,
    /// `return(vcl(label))` has been taken by the running request.
    pub(crate) is_under_label: bool,
    /// `address port listener`, the payload of ReqStart; made once.
    start_record: Box<str>,
    address_len: u8,
    /// When it began, seconds since 1970.
    opened_at: f64,
    /// When [`Session::now`] was asked last: while it waits for a request, the end of the last response.
    pub(crate) clock_read_at: Instant,
}

impl Session {
    fn new(context: &Loop, peer: Peer) -> Session {
        let (start_record, address_len) = start_record(&peer);
        let clock_read_at = Instant::now();
        Session {
            vxid: context.engine.vxids.next(),
            timeouts: SessionTimeouts::default(),
            is_under_label: false,
            address_len,
            start_record,
            opened_at: context.clock.at(clock_read_at),
            clock_read_at,
            peer,
        }
    }

    /// Reads the clock: seconds since 1970.
    pub(crate) fn now(&mut self, context: &Loop) -> f64 {
        self.clock_read_at = Instant::now();
        context.clock.at(self.clock_read_at)
    }

    /// The payload of `ReqStart`.
    pub(crate) fn start_record(&self) -> &[u8] {
        self.start_record.as_bytes()
    }

    /// `client.ip` as text.
    pub(crate) fn client_address(&self) -> &[u8] {
        &self.start_record.as_bytes()[..usize::from(self.address_len)]
    }

    fn log(&self, context: &Loop, tag: Tag, arguments: std::fmt::Arguments<'_>) {
        context.engine.ring.write_fmt(tag, LogId::client(self.vxid), arguments);
    }

    /// Begin and SessOpen.
    fn log_open(&self, context: &Loop, kind: &str) {
        context.count(Main::SSess);
        self.log(context, Tag::Begin, format_args!("sess 0 {kind}"));
        let (remote, local) = (self.peer.remote, self.peer.local);
        self.log(
            context,
            Tag::SessOpen,
            format_args!(
                "{} {} {} {} {} {:.6} {}",
                remote.ip(),
                remote.port(),
                self.peer.listener.name,
                local.ip(),
                local.port(),
                self.opened_at,
                self.peer.descriptor
            ),
        );
    }

    /// SessClose and End, and the counters.
    fn log_close(&self, context: &Loop, end: SessionEnd) {
        let lasted = context.clock.now() - self.opened_at;
        self.log(context, Tag::SessClose, format_args!("{} {lasted:.3}", end.reason.name()));
        self.log(context, Tag::End, format_args!(""));
        context.count(end.reason.counter());
        if end.is_by_request {
            context.count(Main::SessClosed);
        }
        if end.reason.is_error() {
            context.count(Main::SessClosedErr);
        }
    }
}

/// The payload of ReqStart, and how much of it is the client's address.
fn start_record(peer: &Peer) -> (Box<str>, u8) {
    let address = peer.client.ip().to_string();
    let record = format!("{address} {} {}", peer.client.port(), peer.listener.name).into_boxed_str();
    (record, address.len() as u8)
}

/// How a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SessionEnd {
    reason: CloseReason,
    /// A request asked for it, rather than the wait for one.
    is_by_request: bool,
}

impl SessionEnd {
    fn waiting(reason: CloseReason) -> SessionEnd {
        SessionEnd { reason, is_by_request: false }
    }
}

/// Serves a connection to its end. `preread` are bytes already read from it.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(context: Rc<Loop>, stream: S, peer: Peer, preread: Vec<u8>) {
    let session = Session::new(&context, peer);
    session.log_open(&context, "HTTP/1");
    run(context, session, stream, preread).await;
}

async fn run<S: AsyncRead + AsyncWrite + Unpin>(context: Rc<Loop>, mut session: Session, stream: S, preread: Vec<u8>) {
    let mut connection = Connection::new(stream);
    let end = requests(&context, &mut session, &mut connection, preread).await;
    connection.shut_down().await;
    session.log_close(&context, end);
}

/// Runs requests until the session must end.
async fn requests<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut Session,
    connection: &mut Connection<S>,
    preread: Vec<u8>,
) -> SessionEnd {
    let mut held: Option<Box<Request>> = None;
    if !preread.is_empty() {
        let mut request = context.requests.take(&context.engine.ring);
        request.received.extend_from_slice(&preread);
        held = Some(request);
    }
    drop(preread);
    loop {
        let (mut request, parsed) = match receive_head(context, session, connection, held.take()).await {
            Ok(received) => received,
            Err(reason) => return SessionEnd::waiting(reason),
        };
        let work = context.work();
        begin(context, session, &mut request);
        let outcome = caught(async {
            match parsed {
                Ok(consumed) => {
                    request.consume(consumed);
                    request.task.life.account.request_head = consumed as u64;
                    run_parsed(context, session, connection, &mut request).await;
                }
                Err(error) => refuse(context, session, connection, &mut request, Some(&error)).await,
            }
        })
        .await;
        if let Err(panic) = outcome {
            bury(context, session, connection, request, &panic).await;
            return SessionEnd { reason: CloseReason::TxError, is_by_request: true };
        }
        drop(work);
        if let Some(reason) = request.task.life.close {
            context.requests.put(request);
            return SessionEnd { reason, is_by_request: true };
        }
        if request.unread().is_empty() {
            context.requests.put(request);
        } else {
            context.count(Main::SessReadahead);
            request.clear();
            held = Some(request);
        }
    }
}

type Parsed = Result<usize, HeadError>;

/// Waits for a request head. `held` has bytes that were sent ahead. Gives the request and where its head ends, or what is wrong
/// with it.
async fn receive_head<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut Session,
    connection: &mut Connection<S>,
    held: Option<Box<Request>>,
) -> Result<(Box<Request>, Parsed), CloseReason> {
    let (timeout, linger) = {
        let parameters = context.engine.parameters.load();
        let timeouts = &session.timeouts;
        (
            duration(timeouts.idle.unwrap_or(parameters.timeout_idle)),
            timeouts.linger.unwrap_or(parameters.timeout_linger),
        )
    };
    // The clock was read a moment ago: at the end of the last response, or when the session began.
    let waits_since = session.clock_read_at;
    let due = waits_since + timeout;
    let now;
    let mut request = match held {
        Some(request) => {
            now = session.now(context);
            request
        }
        None => {
            let ring = &context.engine.ring;
            let mut has_waited = false;
            let received = connection
                .receive_first(
                    due,
                    || context.requests.take(ring),
                    |request| {
                        has_waited = true;
                        context.requests.put_unused(request);
                    },
                )
                .await;
            now = session.now(context);
            let waited = session.clock_read_at.saturating_duration_since(waits_since);
            if has_waited && waited.as_secs_f64() > linger.max(0.0) {
                context.count(Main::SessHerd);
            }
            received.map_err(|error| match error {
                ReceiveError::Closed => CloseReason::RemClose,
                ReceiveError::TimedOut => CloseReason::RxCloseIdle,
            })?
        }
    };
    // A request lives under the parameters of the moment its first bytes came.
    let settings = Settings::from(&**context.engine.parameters.load());
    request.task.life.started = now;
    request.task.life.received_at = now;
    request.task.settings = settings;
    let limits = HeadLimits {
        total_bytes: settings.http_req_size,
        line_bytes: settings.http_req_hdr_len,
        headers_max: settings.http_max_hdr,
    };
    let mut seen = 0;
    loop {
        // After an incomplete head only the end of a head makes another look worth while.
        if seen == 0 || may_end_head(&request.received, seen) {
            if request.received.starts_with(HTTP_2_PREFACE) {
                return Err(give_up(context, request, CloseReason::ReqHttp20));
            }
            match parse_request(&request.received, &limits, &mut request.task.request) {
                Ok(HeadStatus::Complete { consumed }) => return Ok((request, Ok(consumed))),
                Ok(HeadStatus::Partial) => {}
                Err(HeadError::Overflow) => {
                    why_overflow(context, session, &request);
                    return Err(give_up(context, request, CloseReason::RxOverflow));
                }
                Err(error) => return Ok((request, Err(error))),
            }
        }
        if request.received.len() >= limits.total_bytes {
            why_overflow(context, session, &request);
            return Err(give_up(context, request, CloseReason::RxOverflow));
        }
        // A head that comes bit by bit is counted before it is a request.
        request.task.life.held.set_at_least(&context.memory, request.received.capacity());
        if context.memory.is_full() {
            context.count(Main::ReqRefused);
            session.log(context, Tag::Error, format_args!("{MEMORY_SHORT}"));
            return Err(give_up(context, request, CloseReason::Overload));
        }
        seen = request.received.len();
        let room = limits.total_bytes - seen;
        match connection.receive(&mut request.received, room.min(READ_BYTES), due).await {
            Ok(_) => request.task.life.received_at = session.now(context),
            Err(error) => {
                let is_blank = request.received.iter().all(u8::is_ascii_whitespace);
                let reason = match error {
                    ReceiveError::Closed => CloseReason::RemClose,
                    ReceiveError::TimedOut if is_blank => CloseReason::RxCloseIdle,
                    ReceiveError::TimedOut => CloseReason::RxTimeout,
                };
                return Err(give_up(context, request, reason));
            }
        }
    }
}

/// How a client begins that takes us for a server of HTTP/2.
const HTTP_2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Most bytes read at once while a head is incomplete.
const READ_BYTES: usize = 4 << 10;

/// Whether the bytes from `seen` on may hold the empty line that ends a head, or its refusal is due anyway.
fn may_end_head(received: &[u8], seen: usize) -> bool {
    let from = seen.saturating_sub(3);
    let fresh = &received[from..];
    fresh.windows(2).any(|pair| pair == b"\n\n") || fresh.windows(3).any(|three| three == b"\n\r\n")
}

/// Bytes that became no request still count as received.
fn give_up(context: &Loop, request: Box<Request>, reason: CloseReason) -> CloseReason {
    context.counters.add(Main::SReqHdrbytes, request.received.len() as u64);
    context.requests.put(request);
    reason
}

/// Gives the request its transaction.
fn begin(context: &Loop, session: &mut Session, request: &mut Request) {
    let vxid = context.engine.vxids.next();
    session.is_under_label = false;
    let mut number = itoa::Buffer::new();
    let task = &mut request.task;
    task.life.vxid = vxid;
    task.life.previous = task.life.received_at;
    let mut link = [0; 32];
    let link = joined(&mut link, &[b"req ", number.format(vxid).as_bytes(), b" rxreq"]);
    context.engine.ring.write(Tag::Link, LogId::client(session.vxid), link);
    let log = &mut request.log;
    log.start(LogId::client(vxid), task.life.started);
    log.record_parts(Tag::Begin, &[b"req ", number.format(session.vxid).as_bytes(), b" rxreq"]);
    log.timestamp("Start", task.life.started);
    log.timestamp("Req", task.life.received_at);
}

fn joined<'a>(room: &'a mut [u8; 32], parts: &[&[u8]]) -> &'a [u8] {
    let mut len = 0;
    for part in parts {
        let take = part.len().min(room.len() - len);
        room[len..len + take].copy_from_slice(&part[..take]);
        len += take;
    }
    &room[..len]
}

/// Runs a request whose head is complete: framing first, then the machine.
async fn run_parsed<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut Session,
    connection: &mut Connection<S>,
    request: &mut Request,
) {
    match request_body_length(&request.task.request) {
        Ok(length) => request.task.life.body = ClientBody::announced(length),
        // Refused as well, but with its own record after the headers: see Receive.
        Err(FramingError::SeveralLengths) => {}
        Err(_) => return refuse(context, session, connection, request, None).await,
    }
    apply_absolute_form(request);
    request.vcl.clone_from(&context.engine.vcl.load().active);
    if let Some(vcl) = &request.vcl {
        request.log.record(Tag::VCLUse, vcl.name.as_bytes());
    }
    Run { context, session, connection, request }.run().await;
}

/// `GET http://host/path` means the host of the target and its path, whatever `Host` says.
fn apply_absolute_form(request: &mut Request) {
    let message = &mut request.task.request;
    if message.target().first() == Some(&b'/') {
        return;
    }
    let Ok(Some(form)) = split_absolute_form(message.method(), message.target()) else { return };
    let (host, path) = (form.host.to_vec(), form.origin_form(message.method()));
    logged::set(&mut request.log, REQ, message, "Host", &host);
    message.set_target(&path);
}

/// Answers what is not HTTP with a bare 400 and has the session close.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut Session,
    connection: &mut Connection<S>,
    request: &mut Request,
    error: Option<&HeadError>,
) {
    if let Some(text) = error.and_then(HeadError::bogo_header) {
        request.log.record(Tag::BogoHeader, text.as_bytes());
    }
    request.log.record(Tag::HttpGarbage, &request.received);
    request.task.life.account.request_head = request.received.len() as u64;
    context.count(Main::ClientReq400);
    request.task.life.close = Some(CloseReason::RxJunk);
    let mut run = Run { context, session, connection, request };
    match error.and_then(|error| broken_limit(error, &run.request.task.settings)) {
        Some(details) => run.why(Reason::RequestTooLarge, details.as_bytes()),
        None => run.why(Reason::BadRequest, b""),
    }
    run.send_minimal(400).await;
    run.finish();
}

/// The parameter that a head broke, as a detail of the reason.
fn broken_limit(error: &HeadError, settings: &Settings) -> Option<String> {
    let (name, max) = match error {
        HeadError::Overflow => ("http_req_size", settings.http_req_size),
        HeadError::LineTooLong(_) => ("http_req_hdr_len", settings.http_req_hdr_len),
        HeadError::TooManyHeaders(_) => ("http_max_hdr", settings.http_max_hdr),
        _ => return None,
    };
    Some(format!("limit={name} max={max}"))
}

/// Notes in the session why it ends: what it sent is too large to be a request, so there is none to note it in.
fn why_overflow(context: &Loop, session: &Session, request: &Request) {
    let settings = &request.task.settings;
    if !settings.reasons {
        return;
    }
    let details = broken_limit(&HeadError::Overflow, settings).unwrap_or_default();
    let line = request.received.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    let line = &line[..line.len().min(WHY_TEXT_BYTES_MAX)];
    let word = Reason::RequestTooLarge.row().word;
    let payload = [format!("{}{word} {details} text=", reason::RECORD).as_bytes(), line].concat();
    context.engine.ring.write(reason::TAG, LogId::client(session.vxid), &payload);
}

/// After a panic: nothing of the request can be trusted, so it is thrown away; the client gets a 500 if it has not got anything
/// yet.
async fn bury<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut Session,
    connection: &mut Connection<S>,
    mut request: Box<Request>,
    panic: &str,
) {
    context.engine.panics.tell(panic);
    context.count(Main::ClientResp500);
    request.log.record_parts(Tag::Error, &[b"Panic: ", panic.as_bytes()]);
    let is_answered = request.task.life.is_answered;
    request.task = crate::request::Task::default();
    request.task.settings = Settings::from(&**context.engine.parameters.load());
    let mut run = Run { context, session, connection, request: &mut request };
    if !is_answered {
        run.send_minimal(500).await;
    }
    run.finish();
}
