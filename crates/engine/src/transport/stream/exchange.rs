//! A stream of HTTP/2 or HTTP/3 as an [`Exchange`]: the body counted against its length, the
//! response's head, body and end.
//!
//! There is no `Connection` header here: the transport ends the session, according to
//! [`StreamExchange::end`]. Bytes of a body are held by the client's window only: they are released
//! as the machine consumes them, and sent in place. *Invariant:* only a response that is complete
//! ends its stream; all others are reset. Source: RFC 9113 §8.1, RFC 9114 §4.1. Next file:
//! `request_head.rs`.

use super::request_head::ReceivedHead;
use super::request_head::{Circumstances, translate};
use super::response_head::{ResponseHead, fields, trailers};
use super::tunnel::Tunnel;
use super::{RequestStream, Reset, StreamGone};
use crate::context::Loop;
use crate::deadline::{Deadline, duration};
use crate::exchange::{
    BodyAnnounced, BodyBroken, ClientEvent, Exchange, Malformed, Refusal, SendError, SendLimits, Sent, Wire,
};
use crate::logged::{self, REQ, RESP};
use crate::request::{Outcome, Request};
use bytes::Bytes;
use field_coding::FieldList;
use message::Message;
use shm::log::LogBuffer;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

/// Names of the protocols in the log and in VCL.
#[derive(Debug)]
pub(in crate::transport) struct StreamNames {
    /// `req.transport`.
    pub(in crate::transport) transport: &'static str,
    /// `req.proto`: `HTTP/2.0`.
    pub(in crate::transport) protocol: &'static [u8],
    /// Kind of receiving a body, for `VfpAcct`.
    pub(in crate::transport) body_source: &'static str,
    /// Kind of sending a body, for `VdpAcct`.
    pub(in crate::transport) body_sink: &'static str,
}

/// Progress of reading the request's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Incoming {
    Data,
    /// The data is over; trailers are awaited, because they are needed.
    Trailers,
    Over,
}

/// A received request, and the stream that it arrived on.
pub(in crate::transport) struct StreamExchange<S> {
    pub(super) stream: S,
    names: &'static StreamNames,
    announced: Result<BodyAnnounced, Malformed>,
    /// The received part of a malformed request.
    garbage: Vec<u8>,
    expects_continue: bool,
    owes_continue: bool,

    incoming: Incoming,
    /// The request ended with its head.
    is_bodyless: bool,
    is_begun: bool,
    received_bytes: u64,
    /// The received bytes of the body that were not consumed.
    pub(super) piece: Bytes,
    keeps_trailers: bool,
    trailers: Option<Box<Message>>,

    /// A head that has not been sent yet.
    pub(super) head: Option<ResponseHead>,
    /// Nothing follows the head.
    is_head_last: bool,
    /// Trailers that follow the body.
    end: Option<Box<FieldList>>,
    /// Number of bytes of the current piece that have been sent.
    pub(super) gone: usize,
    sent: Sent,
    /// The response is complete.
    pub(super) is_complete: bool,
    /// The client cancelled the stream, or Copal did.
    pub(super) is_gone: bool,
    /// The client cancelled it, before it had the whole response.
    is_given_up: bool,
    /// The client requests a WebSocket.
    pub(super) tunnel: Option<Box<Tunnel>>,

    limits: SendLimits,
    deadline: Deadline,
    /// Time when the current wait began: for bytes of the body, or for room to send.
    waits_since: Option<Instant>,
}

impl<S: RequestStream> StreamExchange<S> {
    /// Creates an exchange for a request with this head. Fills in the head of `request`, for which
    /// [`Request::arrive`] has been called.
    pub(in crate::transport) fn new(
        stream: S,
        names: &'static StreamNames,
        head: &impl ReceivedHead,
        circumstances: &Circumstances<'_>,
        request: &mut Request,
    ) -> StreamExchange<S> {
        let mut garbage = Vec::new();
        let announced = match translate(head, circumstances, request.head()) {
            Ok(translated) => {
                request.complete(translated.bytes as u64);
                Ok(translated.announced)
            }
            Err(refused) => {
                garbage = refused.garbage;
                Err(refused.malformed)
            }
        };
        StreamExchange {
            stream,
            names,
            announced,
            garbage,
            expects_continue: false,
            owes_continue: false,
            incoming: if circumstances.is_last { Incoming::Over } else { Incoming::Data },
            is_bodyless: circumstances.is_last,
            is_begun: false,
            received_bytes: 0,
            piece: Bytes::new(),
            keeps_trailers: false,
            trailers: None,
            head: None,
            is_head_last: false,
            end: None,
            gone: 0,
            sent: Sent::default(),
            is_complete: false,
            is_gone: false,
            is_given_up: false,
            tunnel: circumstances.websocket.cloned().map(Tunnel::new).map(Box::new),
            limits: SendLimits { idle: f64::INFINITY, total: f64::INFINITY, since: Instant::now() },
            deadline: Deadline::new(),
            waits_since: None,
        }
    }

    /// True if the head is that of a request, and not refused.
    pub(in crate::transport) fn is_sound(&self) -> bool {
        self.announced.is_ok()
    }

    /// The stream, before the machine has begun.
    pub(in crate::transport) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The request has ended with its head, after [`StreamExchange::new`]. A length was not
    /// announced.
    pub(in crate::transport) fn end_with_head(&mut self) {
        self.announced = self.announced.clone().map(|_| BodyAnnounced::None);
        self.incoming = Incoming::Over;
        self.is_bodyless = true;
    }

    /// Waits until a response that is complete before its request has left for the client, within
    /// the time limit of a send. A client that reads the reset with it may drop the response: curl
    /// 7.88 does.
    pub(in crate::transport) async fn flush_before_reset(&mut self) {
        if !self.is_complete || self.incoming == Incoming::Over || self.is_gone {
            return;
        }
        self.deadline.set(Instant::now() + duration(self.limits.idle));
        poll_fn(|context| match self.stream.poll_flushed(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => self.deadline.poll(context),
        })
        .await;
    }

    /// Ends the stream after the machine has finished. Returns the reason to end the session with
    /// it, if there is one.
    pub(in crate::transport) fn end(mut self, outcome: &Outcome, context: &Loop) -> Option<CloseReason> {
        if self.is_given_up {
            context.count(Main::ReqReset);
        }
        if self.tunnel.is_some() && !self.is_complete {
            self.end_tunnel();
        }
        if !self.is_complete {
            self.give_up(Reset::Incomplete);
        } else if self.incoming != Incoming::Over {
            self.give_up(Reset::Enough);
        }
        outcome.close.filter(|reason| *reason == CloseReason::RespClose)
    }

    pub(super) fn give_up(&mut self, why: Reset) {
        if !std::mem::replace(&mut self.is_gone, true) {
            self.stream.reset(why);
        }
    }

    /// Number of bytes of the body to follow, if the head announces it.
    fn length(&self) -> Option<u64> {
        match self.announced {
            Ok(BodyAnnounced::None) => Some(0),
            Ok(announced) => announced.length(),
            Err(_) => None,
        }
    }

    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, BodyBroken>> {
        loop {
            if !self.piece.is_empty() {
                return Poll::Ready(Ok(self.piece.len()));
            }
            match self.incoming {
                Incoming::Over => return Poll::Ready(Ok(0)),
                Incoming::Data => match ready!(self.stream.poll_data(context)) {
                    Some(Ok(bytes)) => {
                        self.is_begun = true;
                        self.waits_since = None;
                        self.received_bytes += bytes.len() as u64;
                        self.piece = bytes;
                        if self.length().is_some_and(|length| self.received_bytes > length) {
                            return Poll::Ready(Err(self.broken_length()));
                        }
                    }
                    None if self.length().is_some_and(|length| self.received_bytes < length) => {
                        return Poll::Ready(Err(self.broken_length()));
                    }
                    None => self.incoming = if self.keeps_trailers { Incoming::Trailers } else { Incoming::Over },
                    Some(Err(StreamGone)) => return Poll::Ready(Err(self.broken_off())),
                },
                Incoming::Trailers => match ready!(self.stream.poll_trailers(context)) {
                    Ok(received) => {
                        self.trailers = received.and_then(|received| trailers(&received)).map(Box::new);
                        self.incoming = Incoming::Over;
                    }
                    Err(StreamGone) => return Poll::Ready(Err(self.broken_off())),
                },
            }
        }
    }

    fn broken_length(&mut self) -> BodyBroken {
        self.piece = Bytes::new();
        self.give_up(Reset::Malformed);
        BodyBroken("Received data and Content-Length mismatch")
    }

    /// Handles a stream that the client has cancelled.
    fn given_up(&mut self) {
        self.is_given_up |= !self.is_gone && !self.is_complete;
        self.is_gone = true;
    }

    fn broken_off(&mut self) -> BodyBroken {
        self.given_up();
        BodyBroken("stream reset")
    }

    /// Waits for bytes of a WebSocket; there are none at its end.
    pub(super) fn poll_tunnelled(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamGone>> {
        while self.piece.is_empty() && self.incoming != Incoming::Over {
            match ready!(self.stream.poll_data(context)) {
                Some(bytes) => self.piece = bytes?,
                None => self.incoming = Incoming::Over,
            }
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_send_now(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
    ) -> Poll<Result<(), StreamGone>> {
        if let Some(head) = &self.head {
            let is_final = !head.is_interim();
            let is_end = is_final && (self.is_head_last || (is_last && piece.is_empty() && self.end.is_none()));
            ready!(self.stream.poll_send_head(context, head, is_end))?;
            self.waits_since = None;
            self.head = None;
            self.is_complete |= is_end;
        }
        let ends_with_data = is_last && self.end.is_none();
        while !self.is_complete && (self.gone < piece.len() || ends_with_data) {
            let count = ready!(self.stream.poll_send_data(context, &piece[self.gone..], ends_with_data))?;
            self.waits_since = None;
            self.gone += count;
            self.sent.body_bytes += count as u64;
            self.is_complete = ends_with_data && self.gone == piece.len();
        }
        if is_last
            && !self.is_complete
            && let Some(trailers) = &self.end
        {
            ready!(self.stream.poll_send_trailers(context, trailers))?;
            self.is_complete = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Waits for room within the time limits. Ready when one is reached: then the wait for the
    /// client ends.
    fn poll_limits(&mut self, context: &mut Context<'_>, log: &mut LogBuffer) -> Poll<()> {
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let window = self.stream.window_seconds().filter(|seconds| *seconds < self.limits.idle);
        let idle = since + duration(window.unwrap_or(self.limits.idle));
        let total = self.limits.since + duration(self.limits.total);
        self.deadline.set(idle.min(total));
        ready!(self.deadline.poll(context));
        let limit = match (total <= idle, window) {
            (true, _) => "send_timeout",
            (false, None) => "idle_send_timeout",
            (false, Some(_)) => "h2_window_timeout",
        };
        log.record_fmt(Tag::Debug, format_args!("Hit {limit}, wrote = {}; not retrying", self.sent.body_bytes));
        Poll::Ready(())
    }
}

impl<S: RequestStream> Exchange for StreamExchange<S> {
    fn protocol(&self) -> &'static str {
        self.names.transport
    }

    fn response_protocol(&self) -> &'static [u8] {
        self.names.protocol
    }

    fn open(&mut self, _head: &mut Message, _log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed> {
        self.announced.clone()
    }

    fn garbage(&self) -> &[u8] {
        &self.garbage
    }

    fn admit(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal> {
        let Some(expected) = head.get("Expect") else { return Ok(None) };
        if !expected.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal {
                status: 417,
                counter: Main::ClientReq417,
                reason: Reason::ExpectationUnknown,
                close: CloseReason::RxJunk,
            });
        }
        self.expects_continue = !self.is_bodyless;
        self.owes_continue = !self.is_bodyless;
        logged::unset(log, REQ, head, "Expect");
        Ok(None)
    }

    fn take_continue(&mut self) -> bool {
        std::mem::take(&mut self.owes_continue)
    }

    fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    fn owes_continue(&self) -> bool {
        self.owes_continue
    }

    fn poll_body(&mut self, context: &mut Context<'_>, idle_seconds: f64) -> Poll<Result<usize, BodyBroken>> {
        if let Poll::Ready(read) = self.poll_incoming(context) {
            self.waits_since = None;
            return Poll::Ready(read);
        }
        if idle_seconds.is_infinite() {
            // The response may be sent at the same time, and its limits are the ones that count.
            return Poll::Pending;
        }
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        self.deadline.set(since + duration(idle_seconds));
        ready!(self.deadline.poll(context));
        self.waits_since = None;
        Poll::Ready(Err(BodyBroken("timeout")))
    }

    fn body(&self) -> &[u8] {
        &self.piece
    }

    fn consume_body(&mut self, count: usize) {
        let count = count.min(self.piece.len());
        let _ = self.piece.split_to(count);
        self.stream.release(count);
    }

    fn keep_trailers(&mut self) {
        self.keeps_trailers = !self.is_begun;
    }

    fn take_trailers(&mut self) -> Option<Message> {
        self.trailers.take().map(|trailers| *trailers)
    }

    fn is_body_begun(&self) -> bool {
        self.is_begun
    }

    /// An unread body is not sent, since no window is opened for it.
    fn must_drain(&self, _response: &Message) -> bool {
        false
    }

    fn body_source(&self) -> &'static str {
        self.names.body_source
    }

    fn describe_synthetic(&self, _response: &mut Message, _log: &mut LogBuffer) {}

    /// Compat: `Connection: close` set by VCL ends the session.
    fn frame(&mut self, response: &mut Message, log: &mut LogBuffer, has_body: bool, close: &mut Option<CloseReason>) {
        log.record(Tag::RespProtocol, self.names.protocol);
        if self.tunnel.is_some() && response.status() / 100 % 10 == 2 {
            // The client would take it for a WebSocket.
            logged::set_status_line(log, RESP, response, b"HTTP/1.1", 501, b"Not Implemented");
        }
        if close.is_none() && ::http1::lists_close(response) {
            *close = Some(CloseReason::RespClose);
        }
        self.is_head_last = !has_body;
    }

    fn begin(&mut self, message: &Message, limits: SendLimits) {
        self.begin_head(ResponseHead::of(message), limits);
    }

    fn begin_bare(&mut self, status: u16, limits: SendLimits) {
        self.begin_head(ResponseHead::bare(status), limits);
    }

    fn is_duplex(&self) -> bool {
        true
    }

    fn refuse(&mut self) {
        self.give_up(Reset::Refused);
    }

    fn takes_interim(&self) -> bool {
        true
    }

    fn begin_interim(&mut self, message: &Message, limits: SendLimits) {
        self.begin_head(ResponseHead::of(message), limits);
    }

    fn sends_trailers(&self) -> bool {
        !self.is_head_last
    }

    fn put_trailers(&mut self, trailers: &Message) {
        let trailers = fields(trailers);
        self.end = (!trailers.is_empty()).then(|| Box::new(trailers));
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>> {
        if self.is_complete {
            return Poll::Ready(Ok(()));
        }
        let result = match self.poll_send_now(context, piece, is_last) {
            _ if self.is_gone => Err(SendError),
            Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(StreamGone)) => {
                self.given_up();
                Err(SendError)
            }
            Poll::Pending => {
                ready!(self.poll_limits(context, log));
                self.give_up(Reset::Stalled);
                Err(SendError)
            }
        };
        self.sent.pieces += u64::from(!piece.is_empty());
        self.gone = 0;
        Poll::Ready(result)
    }

    fn sent(&self) -> Sent {
        self.sent
    }

    fn body_sink(&self) -> &'static str {
        self.names.body_sink
    }

    fn poll_client_event(&mut self, context: &mut Context<'_>) -> Poll<ClientEvent> {
        ready!(self.stream.poll_gone(context));
        self.is_given_up |= !self.is_gone && !self.is_complete;
        Poll::Ready(ClientEvent::Gone)
    }

    fn has_wire(&self) -> bool {
        self.tunnel.is_some()
    }

    fn wants_wire(&self) -> bool {
        self.tunnel.is_some()
    }

    fn wire(&mut self) -> Option<Wire<'_>> {
        self.tunnel.is_some().then_some(Wire { stream: self, ahead: Vec::new() })
    }
}

impl<S> StreamExchange<S> {
    fn begin_head(&mut self, head: ResponseHead, limits: SendLimits) {
        self.sent.head_bytes += head.http1_bytes() as u64;
        self.limits = limits;
        self.head = Some(head);
        self.waits_since = None;
    }
}
