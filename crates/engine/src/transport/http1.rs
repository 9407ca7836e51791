//! HTTP/1: one request after the other on a connection, until one side closes it.
//!
//! ```text
//! Idle ─bytes→ Head ─complete→ Exchange ─keep-alive→ Idle
//!   └ nothing for timeout_idle, closed ┴ malformed, closed ┴ must close ─→ over
//! ```
//!
//! A session that waits for its next request holds no buffers. The slot with the buffers and the
//! request is taken from the event loop's pool when bytes arrive, and is returned when the request
//! is over. Bytes that a client sends ahead stay in the slot in which they were received. Only the
//! code here is generic over the stream, so only it is compiled once per kind of socket. A client
//! that turns out to use HTTP/2, or requests it, is handed over ([`Over::Protocol`]). Source: RFC
//! 9112. Next files: `http1/exchange.rs`, `http1/connection.rs`.

mod connection;
mod exchange;

use crate::context::Loop;
use crate::deadline::duration;
use crate::exchange::{Malformed, SendLimits};
use crate::memory::MEMORY_SHORT;
use crate::request::{self, RequestSlot, Settings};
use crate::session::{SessionEnd, SessionView};
use ::http1::{BodyLength, HeadError, HeadLimits, HeadStatus, connection_options, parse_request, request_body_length};
use ::http2::frame::PREFACE;
pub(super) use connection::Connection;
use connection::ReceiveError;
use exchange::Http1Exchange;
use shm::log::LogId;
use std::future::poll_fn;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::WHY_TEXT_BYTES_MAX;
use surface::parameter::feature;
use surface::reason::{self, Reason};
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// Change of the protocol by a client.
pub(super) enum Switch {
    /// It has begun with the preface of HTTP/2: the bytes from there on.
    Preface(Vec<u8>),
    /// It requests HTTP/2 in the head of a request without a body; the bytes that it sent after the
    /// head are in the slot, too.
    Upgrade(Box<RequestSlot>),
}

/// Bytes already read, in a slot; `None` if there are none.
pub(super) fn hold(context: &Loop, preread: &[u8]) -> Option<Box<RequestSlot>> {
    if preread.is_empty() {
        return None;
    }
    let mut slot = context.requests.take(&context.engine.ring);
    slot.buffers.received.extend_from_slice(preread);
    Some(slot)
}

/// Reason why no more requests are read.
pub(super) enum Over {
    /// The session ends.
    Session(SessionEnd),
    /// The connection continues with another protocol.
    Protocol(Switch),
}

/// Runs exchanges until the session must end, or changes its protocol. `held` contains bytes
/// already read.
pub(super) async fn exchanges<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut SessionView,
    connection: &mut Connection<S>,
    mut held: Option<Box<RequestSlot>>,
) -> Over {
    loop {
        let (mut slot, malformed) = match receive_head(context, session, connection, held.take()).await {
            Ok(received) => received,
            Err(Unread::Over(reason)) => return Over::Session(SessionEnd::waiting(reason)),
            Err(Unread::Preface(mut slot)) => {
                let received = std::mem::take(&mut slot.buffers.received);
                context.requests.put(slot);
                return Over::Protocol(Switch::Preface(received));
            }
        };
        let mut note = None;
        if slot.request.task.request.may_have("Upgrade") && malformed.is_none() {
            note = match upgrade(&slot, session) {
                Upgrade::Granted => return Over::Protocol(Switch::Upgrade(slot)),
                Upgrade::Refused(note) => Some(note),
                Upgrade::Other => None,
            };
        }
        let RequestSlot { buffers, request } = &mut *slot;
        let mut exchange = Http1Exchange::new(connection, buffers, malformed, note);
        let outcome = request::run(context, session, &mut exchange, request).await;
        let is_all_read = exchange.is_all_read();
        connection.is_cut =
            exchange.is_until_close() && (outcome.is_ruined || outcome.close != Some(CloseReason::TxEof));
        if outcome.is_ruined {
            return Over::Session(SessionEnd { reason: CloseReason::TxError, is_by_request: true });
        }
        if let Some(reason) = outcome.close {
            connection.has_unread = !is_all_read && !matches!(reason, CloseReason::TxError | CloseReason::RemClose);
            context.requests.put(slot);
            return Over::Session(SessionEnd { reason, is_by_request: true });
        }
        if slot.buffers.unread().is_empty() {
            context.requests.put(slot);
        } else {
            context.count(Main::SessReadahead);
            slot.clear();
            held = Some(slot);
        }
    }
}

/// Decision about a client's request for another protocol.
enum Upgrade {
    Granted,
    /// Refused; the text is for the log.
    Refused(&'static str),
    /// The requested protocol is not HTTP/2, or the request may not upgrade.
    Other,
}

/// Compat: a request with a body is served without an upgrade.
#[cold]
fn upgrade(slot: &RequestSlot, session: &SessionView) -> Upgrade {
    let head = &slot.request.task.request;
    let asks = head.get("Upgrade").is_some_and(|value| value.eq_ignore_ascii_case(b"h2c"));
    // The host of a request with several must not depend on the protocol: over HTTP/1 it is
    // refused.
    let has_hosts = head.get_all("Host").nth(1).is_some();
    if !asks
        || has_hosts
        || session.peer.tls.is_some()
        || !connection_options(head).is_ok_and(|options| options.upgrade)
    {
        return Upgrade::Other;
    }
    if slot.request.task.settings.feature & feature::HTTP2 == 0 {
        return Upgrade::Refused("H2 upgrade attempt");
    }
    if request_body_length(head) != Ok(BodyLength::None) {
        return Upgrade::Refused("H2 upgrade attempt has body");
    }
    Upgrade::Granted
}

/// Reason for a missing head.
enum Unread {
    /// The session is over.
    Over(CloseReason),
    /// The received bytes begin with the preface of HTTP/2, and may be served as HTTP/2.
    Preface(Box<RequestSlot>),
}

impl From<CloseReason> for Unread {
    fn from(reason: CloseReason) -> Unread {
        Unread::Over(reason)
    }
}

/// Waits for a request head. `held` contains bytes that were sent ahead.
async fn receive_head<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Rc<Loop>,
    session: &mut SessionView,
    connection: &mut Connection<S>,
    held: Option<Box<RequestSlot>>,
) -> Result<(Box<RequestSlot>, Option<Malformed>), Unread> {
    let (timeout, linger) = {
        let parameters = context.engine.parameters.load();
        let timeouts = &session.timeouts;
        (
            duration(timeouts.idle.unwrap_or(parameters.timeout_idle)),
            timeouts.linger.unwrap_or(parameters.timeout_linger),
        )
    };
    // The clock was read a moment ago, at the end of the last response or when the session began.
    let waits_since = session.clock_read_at;
    let due = waits_since + timeout;
    let now;
    let mut slot = match held {
        Some(slot) => {
            now = session.now(context);
            slot
        }
        None => {
            let ring = &context.engine.ring;
            let descriptor = session.peer.descriptor;
            let mut has_waited = false;
            let received = connection
                .receive_first(
                    due,
                    || context.requests.take_to_read(ring),
                    |slot| {
                        has_waited = true;
                        context.requests.put_unused(slot);
                        context.idle_sessions.wait(descriptor, waits_since);
                    },
                )
                .await;
            let is_dismissed = has_waited && context.idle_sessions.work(descriptor);
            now = session.now(context);
            let waited = session.clock_read_at.saturating_duration_since(waits_since);
            if has_waited && waited.as_secs_f64() > linger.max(0.0) {
                context.count(Main::SessHerd);
            }
            received.map_err(|error| match error {
                ReceiveError::Closed if is_dismissed => CloseReason::Overload,
                ReceiveError::Closed => CloseReason::RemClose,
                ReceiveError::TimedOut => CloseReason::RxCloseIdle,
            })?
        }
    };
    let RequestSlot { buffers, request } = &mut *slot;
    request.arrive(&context.engine.parameters.load(), now);
    let limits = head_limits(&request.task.settings);
    let mut seen = 0;
    loop {
        let speaks_http2 = buffers.received.starts_with(HTTP_2_REQUEST);
        if speaks_http2 && request.task.settings.feature & feature::HTTP2 == 0 {
            return Err(give_up(context, slot, CloseReason::ReqHttp20).into());
        }
        if buffers.received.starts_with(PREFACE) {
            return Err(Unread::Preface(slot));
        }
        let awaits_preface = speaks_http2 && PREFACE.starts_with(&buffers.received);
        // After an incomplete head, parsing again is only worthwhile once its end may have been
        // received.
        if !awaits_preface && (seen == 0 || speaks_http2 || may_end_head(&buffers.received, seen)) {
            match parse_request(&buffers.received, &limits, &mut request.task.request) {
                Ok(HeadStatus::Complete { .. }) if speaks_http2 => {
                    // Only the beginning resembles the preface.
                    return Ok((slot, Some(Malformed { bogo_header: None, limit: None, is_oversize: false })));
                }
                Ok(HeadStatus::Complete { consumed }) => {
                    buffers.consume(consumed);
                    request.complete(consumed as u64);
                    return Ok((slot, None));
                }
                Ok(HeadStatus::Partial) => {}
                Err(HeadError::Overflow) => {
                    return Err(Box::pin(overflow(context, session, connection, slot)).await.into());
                }
                Err(error) => {
                    let limit = broken_limit(&error, &limits);
                    let is_oversize = limit.is_some();
                    return Ok((slot, Some(Malformed { bogo_header: error.bogo_header(), limit, is_oversize })));
                }
            }
        }
        if buffers.received.len() >= limits.total_bytes {
            return Err(Box::pin(overflow(context, session, connection, slot)).await.into());
        }
        // The memory of a head that arrives in small pieces counts before it has become a request.
        request.task.life.held.set_at_least(&context.memory, buffers.received.capacity());
        if context.memory.is_full() {
            context.count(Main::ReqRefused);
            session.log(context, Tag::Error, format_args!("{MEMORY_SHORT}"));
            return Err(give_up(context, slot, CloseReason::Overload).into());
        }
        seen = buffers.received.len();
        let room = limits.total_bytes - seen;
        match connection.receive(&mut buffers.received, room.min(READ_BYTES), due).await {
            Ok(_) => request.receive_more(session.now(context)),
            Err(error) => {
                let is_blank = buffers.received.iter().all(u8::is_ascii_whitespace);
                let reason = match error {
                    ReceiveError::Closed => CloseReason::RemClose,
                    ReceiveError::TimedOut if is_blank => CloseReason::RxCloseIdle,
                    ReceiveError::TimedOut => CloseReason::RxTimeout,
                };
                return Err(give_up(context, slot, reason).into());
            }
        }
    }
}

/// The preface of HTTP/2, as a server without HTTP/2 reads it.
const HTTP_2_REQUEST: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// Most bytes read at a time while a head is incomplete.
const READ_BYTES: usize = 4 << 10;

/// True if the bytes from `seen` on may contain the empty line that ends a head, or the head must
/// be refused anyway.
fn may_end_head(received: &[u8], seen: usize) -> bool {
    let from = seen.saturating_sub(3);
    let fresh = &received[from..];
    fresh.windows(2).any(|pair| pair == b"\n\n") || fresh.windows(3).any(|three| three == b"\n\r\n")
}

/// Counts bytes that never became a request as received.
fn give_up(context: &Loop, slot: Box<RequestSlot>, reason: CloseReason) -> CloseReason {
    context.counters.add(Main::SReqHdrbytes, slot.buffers.received.len() as u64);
    context.requests.put(slot);
    reason
}

/// Answers 431 to a head that is too large. The session logs that, since there is no request to log
/// it.
#[cold]
async fn overflow<S: AsyncRead + AsyncWrite + Unpin>(
    context: &Loop,
    session: &SessionView,
    connection: &mut Connection<S>,
    mut slot: Box<RequestSlot>,
) -> CloseReason {
    session.log(context, Tag::Error, format_args!("The head of a request is too large, answered with 431"));
    context.count(Main::ClientReq400);
    let settings = &slot.request.task.settings;
    if settings.reasons {
        let details = broken_limit(&HeadError::Overflow, &head_limits(settings)).unwrap_or_default();
        let received = &slot.buffers.received;
        let line = received.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        let line = &line[..line.len().min(WHY_TEXT_BYTES_MAX)];
        let word = Reason::RequestTooLarge.row().word;
        let payload = [format!("{}{word} {details} text=", reason::RECORD).as_bytes(), line].concat();
        context.engine.ring.write(reason::TAG, LogId::client(session.vxid), &payload);
    }
    let limits = {
        let parameters = context.engine.parameters.load();
        SendLimits { idle: parameters.idle_send_timeout, total: parameters.send_timeout, since: Instant::now() }
    };
    let answer = format!("HTTP/1.1 431 {}\r\n\r\n", semantics::reason::phrase(431));
    connection.begin_sending(limits);
    let log = &mut slot.request.log;
    let (sent, result) = poll_fn(|task| connection.poll_send(task, &[answer.as_bytes()], log)).await;
    context.counters.add(Main::SRespHdrbytes, sent as u64);
    // The client may be in the middle of sending; a reset would make it lose the answer.
    connection.has_unread = result.is_ok();
    give_up(context, slot, CloseReason::RxOverflow)
}

/// Limits for the size of a head.
pub(super) fn head_limits(settings: &Settings) -> HeadLimits {
    HeadLimits {
        total_bytes: settings.http_req_size,
        line_bytes: settings.http_req_hdr_len,
        headers_max: settings.http_max_hdr,
    }
}

/// The parameter whose limit a head exceeded, as a detail of the reason.
fn broken_limit(error: &HeadError, limits: &HeadLimits) -> Option<String> {
    let (name, max) = match error {
        HeadError::Overflow => ("http_req_size", limits.total_bytes),
        HeadError::LineTooLong(_) => ("http_req_hdr_len", limits.line_bytes),
        HeadError::TooManyHeaders(_) => ("http_max_hdr", limits.headers_max),
        _ => return None,
    };
    Some(format!("limit={name} max={max}"))
}
