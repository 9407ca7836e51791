//! HTTP/2 to origins: one exchange is a stream of a connection that others share.
//!
//! The request's body is sent as the origin's windows allow, and the response's body is received as
//! it is used: at most a window of it is held, so a fetch that waits delays the origin, and no
//! other stream. Dropping an exchange before its response is complete resets the stream; the
//! connection stays. A stream that the origin has not processed (REFUSED_STREAM, or beyond the last
//! one of a GOAWAY) may be sent again. Source: RFC 9113 §5, §6.8, §8.1. Next files:
//! `origin/http2/connections.rs`, `origin/http2/head.rs`.

pub(crate) mod connection;
pub(crate) mod connections;
mod fault;
mod guard;
mod head;
mod pseudo;
mod sender;

use super::types::{
    BodySettings, Carriage, CutShort, Early, ExchangeProgress, HeadFailure, ReceiveLimits, ResponseBody, Unsent,
};
use crate::context::Loop;
use crate::exchange::BodyAnnounced;
use crate::fetch::interest::Interested;
use crate::logged::{self, BEREQ};
use backend::Ends;
use backend::open::{CloseRecord, OpenRecord, Place};
use bytes::{Buf, Bytes};
use connection::Lease;
use fault::Fault;
use guard::Progress;
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::{HeaderMap, Request, Response};
use message::Message;
pub(crate) use sender::Sender;
use shm::log::LogBuffer;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::counter::Main;
use surface::limits::{EARLY_ANSWER_STALL_SECONDS, HTTP2_ORIGIN_WINDOW_BYTES, INTERIM_MAX};
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};
use vcl_run::tls::TlsFacts;

/// Bytes of a body that may be held.
pub(super) const BUFFER_BYTES: usize = HTTP2_ORIGIN_WINDOW_BYTES;

/// The `FetchError` record of a head that has `:method`, `:path` or another request pseudo-header.
const MALFORMED: &str = "pseudo-header of a request in the response";

/// EPIPE.
const BROKEN: i32 = 32;
/// Operators recognise its text as that of a stalled origin: EAGAIN.
const STALLED: i32 = 11;

/// Longest time in which an origin that has begun to answer may accept no bytes of the request.
const EARLY_ANSWER_STALL: Duration = Duration::from_secs(EARLY_ANSWER_STALL_SECONDS);

/// Interval at which a wait for a response checks if its client is silent.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The kinds of body transfer, with Varnish's names where they exist: frames are a kind of chunks.
const FRAMES: Carriage = Carriage { counter: Main::FetchChunked, fetch_body: "2 chunked", account: "H2F" };
const LENGTH: Carriage = Carriage { counter: Main::FetchLength, fetch_body: "3 length", account: "H2F" };

/// One request and its response.
pub(crate) struct Http2Exchange {
    /// Declared first: the rest of the stream is dropped before the right to use the connection.
    sender: Sender,
    response: Option<ResponseFuture>,
    /// Interim responses that arrived before a wait for them.
    interim: VecDeque<Response<()>>,
    /// The final response, once received.
    last: Option<Result<Response<RecvStream>, h2::Error>>,
    body: Option<RecvStream>,
    /// The head of the request, until it is sent.
    head: Option<Request<()>>,
    /// The piece of the body that is being used.
    piece: Bytes,
    /// Bytes that must still be received; `None` = any number.
    expected: Option<u64>,
    /// The body has ended.
    is_over: bool,
    keeps_trailers: bool,
    trailers: Option<HeaderMap>,
    has_answered: bool,
    /// Time for which the client was awaited before the answer began.
    client_time: Duration,
    /// The origin has not processed the request.
    is_unprocessed: bool,
    /// Ends waiting when no client needs the response any more.
    interest: Option<Interested>,
    /// Handle of the task that sends the request's body.
    upload: Option<AbortHandle>,
    /// The number of the stream, once there is one.
    stream: Option<u32>,
    lease: Lease,
}

impl Http2Exchange {
    pub(super) fn new(lease: Lease) -> Http2Exchange {
        Http2Exchange {
            sender: Sender::default(),
            response: None,
            interim: VecDeque::new(),
            last: None,
            body: None,
            head: None,
            piece: Bytes::new(),
            expected: None,
            is_over: false,
            keeps_trailers: false,
            trailers: None,
            has_answered: false,
            client_time: Duration::ZERO,
            is_unprocessed: false,
            interest: None,
            upload: None,
            stream: None,
            lease,
        }
    }

    pub(super) fn ends(&self) -> Ends {
        self.lease.ends()
    }

    pub(super) fn proxy_header_bytes(&self) -> u64 {
        self.lease.proxy_header_bytes
    }

    pub(super) fn open_record(&self) -> OpenRecord<'_> {
        OpenRecord { backend: self.lease.backend(), ends: self.lease.ends(), reused: self.lease.is_reused }
    }

    fn log_close(&self, recycled: bool, reason: Option<&str>, log: &mut LogBuffer) {
        let record = CloseRecord { backend: self.lease.backend(), ends: self.lease.ends(), recycled, reason };
        log.record_fmt(Tag::BackendClose, format_args!("{record}"));
    }

    pub(super) fn tls_record(&self) -> Option<String> {
        self.lease.tls().filter(|_| !self.lease.is_reused).map(|facts| facts.record(false))
    }

    pub(super) fn tls(&self) -> Option<&TlsFacts> {
        self.lease.tls()
    }

    pub(super) fn describe_body(&mut self, body: BodyAnnounced, bereq: &mut Message, log: &mut LogBuffer) {
        if bereq.protocol() != b"HTTP/2.0" {
            bereq.set_protocol(b"HTTP/2.0");
            log.record(BEREQ.protocol, b"HTTP/2.0");
        }
        logged::unset(log, BEREQ, bereq, "Transfer-Encoding");
        match body {
            BodyAnnounced::None => {
                if bereq.get("Content-Length").is_some_and(|value| value != b"0") {
                    logged::unset(log, BEREQ, bereq, "Content-Length");
                }
            }
            BodyAnnounced::Length(length) => {
                logged::force(log, BEREQ, bereq, "Content-Length", itoa::Buffer::new().format(length).as_bytes());
            }
            BodyAnnounced::Unknown => logged::unset(log, BEREQ, bereq, "Content-Length"),
        }
        self.sender.announce(body);
    }

    pub(super) fn put_head(&mut self, bereq: &Message) -> Result<u64, &'static str> {
        let is_secure = self.lease.backend().definition().tls.is_some();
        let (head, bytes) = head::request(bereq, is_secure)?;
        self.head = Some(head);
        Ok(bytes)
    }

    /// Opens the stream, if that has not been done.
    fn open(&mut self) -> Result<(), i32> {
        let Some(request) = self.head.take() else { return Ok(()) };
        match self.lease.requests().send_request(request, self.sender.is_complete()) {
            Ok((response, stream)) => {
                let number = response.stream_id().as_u32();
                self.lease.seen().streams.borrow_mut().insert(number, Progress::default());
                self.stream = Some(number);
                self.response = Some(response);
                self.sender.open(stream);
                Ok(())
            }
            Err(_) => {
                // The connection ended a moment ago, or has no more numbers for streams.
                self.lease.retire();
                self.is_unprocessed = true;
                Err(BROKEN)
            }
        }
    }

    pub(super) async fn send(&mut self, piece: &[u8], stall: Duration) -> Result<u64, Unsent> {
        self.open().map_err(Unsent::Broken)?;
        let mut rest = piece;
        while !rest.is_empty() {
            let count = self.await_room(rest.len(), stall).await?;
            let (now, later) = rest.split_at(count);
            self.sender.put(now).map_err(Unsent::Broken)?;
            rest = later;
        }
        Ok(piece.len() as u64)
    }

    /// Waits until the origin accepts some of `wanted` bytes. An origin that has begun to answer is
    /// given less time for that.
    async fn await_room(&mut self, wanted: usize, stall: Duration) -> Result<usize, Unsent> {
        loop {
            let is_accepted = self.early() == Some(Early::Accepted);
            let stall = if is_accepted { stall.min(EARLY_ANSWER_STALL) } else { stall };
            let room = poll_fn(|context| {
                let _ = self.poll_response(context);
                match (self.early(), self.sender.poll_room(context, wanted)) {
                    (Some(Early::Declined), _) => Poll::Ready(Some(Err(Unsent::Answered))),
                    (_, Poll::Ready(Ok(count))) => Poll::Ready(Some(Ok(count))),
                    (_, Poll::Ready(Err(error))) => Poll::Ready(Some(Err(Unsent::Broken(self.sending_failed(error))))),
                    // The time limit has changed.
                    (Some(Early::Accepted), Poll::Pending) if !is_accepted => Poll::Ready(None),
                    (_, Poll::Pending) => Poll::Pending,
                }
            });
            match timeout_at(Instant::now() + stall, room).await {
                Ok(Some(room)) => return room,
                Ok(None) => {}
                Err(_) if is_accepted => return Err(Unsent::Answered),
                Err(_) => {
                    self.lease.doubt();
                    return Err(Unsent::Broken(backend::backend::error_number(&std::io::ErrorKind::TimedOut.into())));
                }
            }
        }
    }

    /// The answer so far, if it matters for the rest of the request.
    fn early(&self) -> Option<Early> {
        match &self.last {
            Some(Ok(response)) => Some(Early::of_status(response.status().as_u16())),
            // The cause is reported where the head is received.
            Some(Err(_)) => Some(Early::Declined),
            None => (!self.interim.is_empty()).then_some(Early::Interim),
        }
    }

    pub(super) fn poll_early(&mut self, context: &mut Context<'_>) -> Poll<Early> {
        if self.response.is_none() && self.last.is_none() {
            return Poll::Pending;
        }
        let _ = self.poll_response(context);
        match self.early() {
            Some(Early::Accepted) if !self.interim.is_empty() => Poll::Ready(Early::Interim),
            Some(early @ (Early::Interim | Early::Declined)) => Poll::Ready(early),
            Some(Early::Accepted) | None => Poll::Pending,
        }
    }

    pub(super) async fn await_answer(&mut self, patience: Duration) {
        if self.response.is_some() {
            let answered = poll_fn(|context| {
                let _ = self.poll_response(context);
                if self.last.is_some() { Poll::Ready(()) } else { Poll::Pending }
            });
            let _ = timeout_at(Instant::now() + patience, answered).await;
        }
    }

    pub(super) fn end(&mut self, trailers: Option<&Message>) -> Result<u64, i32> {
        self.open()?;
        self.sender.end(trailers)
    }

    /// Detaches the sender: another task sends the request's body from now on, while the response
    /// is received here.
    pub(super) fn detach_sender(&mut self) -> Option<Sender> {
        self.open().ok()?;
        self.sender.detach()
    }

    pub(super) fn serves(&mut self, interest: Option<Interested>) {
        self.interest = interest;
    }

    pub(super) fn ends_upload(&mut self, upload: AbortHandle) {
        self.upload = Some(upload);
    }

    fn poll_lost(&self, context: &mut Context<'_>) -> Poll<()> {
        self.interest.as_ref().map_or(Poll::Pending, |interest| interest.poll_lost(context))
    }

    /// Handles an origin that was silent for too long, if it was its turn to send.
    fn doubt(&self) {
        if !self.sender.awaits_client() {
            self.lease.doubt();
        }
    }

    fn sending_failed(&mut self, error: Option<h2::Error>) -> i32 {
        if let Some(error) = error {
            self.note_fault(&error);
        }
        BROKEN
    }

    fn note_fault(&mut self, error: &h2::Error) -> Fault {
        let fault = fault::of(error, self.lease.seen(), self.stream);
        self.is_unprocessed |= fault.is_unprocessed;
        if fault.is_unprocessed {
            // Other requests would meet the same.
            self.lease.retire();
        }
        fault
    }

    /// Takes the received heads of the response; ready when the final one is received, or some are
    /// waiting to be used.
    fn poll_response(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(response) = &mut self.response else { return Poll::Ready(()) };
        while let Poll::Ready(Some(interim)) = response.poll_informational(context) {
            let Ok(interim) = interim else { break };
            self.has_answered = true;
            // One more than allowed shows that there are too many.
            if self.interim.len() <= INTERIM_MAX {
                self.interim.push_back(interim);
            }
        }
        if let Poll::Ready(last) = Pin::new(response).poll(context) {
            self.has_answered |= last.is_ok();
            self.last = Some(last);
            self.response = None;
            return Poll::Ready(());
        }
        if self.interim.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    pub(super) async fn receive_head(
        &mut self,
        beresp: &mut Message,
        limits: &ReceiveLimits,
    ) -> Result<u64, HeadFailure> {
        let of_head = limits.of_head();
        loop {
            if (self.last.is_some() || !self.interim.is_empty()) && self.is_malformed() {
                return Err(HeadFailure::Broken { reason: Reason::ResponseGarbled, text: MALFORMED });
            }
            if let Some(interim) = self.interim.pop_front() {
                return head::take_response(&interim, of_head, beresp).map_err(HeadFailure::TooLarge);
            }
            match self.last.take() {
                Some(Ok(response)) => {
                    let taken = head::take_response(&response, of_head, beresp);
                    self.body = Some(response.into_body());
                    return taken.map_err(HeadFailure::TooLarge);
                }
                Some(Err(error)) => {
                    let Fault { reason, text, .. } = self.note_fault(&error);
                    let reason = self.sender.failure().unwrap_or(reason);
                    return Err(HeadFailure::Broken { reason, text });
                }
                None if self.response.is_none() => return Err(HeadFailure::ENDED),
                None => {}
            }
            let mut deadline = limits.first_byte_by;
            loop {
                // While the request's body is still being sent, the origin need not send anything.
                deadline = self.sender.extended(deadline, limits.first_byte);
                let mut due = limits.later_by(self.sender.client_time()).at_most(deadline);
                if self.sender.awaits_client() {
                    due = due.max(deadline.min(Instant::now() + LOOK_AGAIN));
                }
                let news = poll_fn(|context| match self.poll_response(context) {
                    Poll::Ready(()) => Poll::Ready(true),
                    Poll::Pending => self.poll_lost(context).map(|()| false),
                });
                match timeout_at(due, news).await {
                    Ok(true) => break,
                    Ok(false) => return Err(HeadFailure::Abandoned),
                    Err(_) if limits.later_by(self.sender.client_time()).is_over() => {
                        return Err(HeadFailure::LastByteTimeout);
                    }
                    Err(_) => {}
                }
                if self.sender.extended(deadline, limits.first_byte) <= Instant::now() {
                    self.doubt();
                    return Err(HeadFailure::FirstByteTimeout);
                }
            }
        }
    }

    pub(super) fn begin_body(
        &mut self,
        bereq: &Message,
        beresp: &Message,
        settings: BodySettings,
    ) -> Option<ResponseBody> {
        self.client_time = self.sender.client_time();
        let body = self.body.as_ref()?;
        let mut lengths = beresp.get_all("Content-Length");
        let length = lengths.next().map(|value| std::str::from_utf8(value).ok()?.parse::<u64>().ok());
        let length = match length {
            Some(None) => return None,
            Some(Some(length)) => Some(length),
            None => None,
        };
        if beresp.get_all("Content-Length").any(|other| Some(other) != beresp.get("Content-Length")) {
            return None;
        }
        let is_bare = bereq.method() == b"HEAD" || matches!(beresp.status(), 204 | 304);
        if is_bare || body.is_end_stream() {
            if !is_bare && length.is_some_and(|length| length > 0) {
                return None;
            }
            self.is_over = true;
            let size = if length == Some(0) && !is_bare { BodyAnnounced::Length(0) } else { BodyAnnounced::None };
            let carriage = (size != BodyAnnounced::None).then_some(&LENGTH);
            return Some(ResponseBody { size, carriage });
        }
        self.expected = length;
        self.keeps_trailers = settings.keeps_trailers;
        let (size, carriage) = match length {
            Some(length) => (BodyAnnounced::Length(length), &LENGTH),
            None => (BodyAnnounced::Unknown, &FRAMES),
        };
        Some(ResponseBody { size, carriage: Some(carriage) })
    }

    pub(super) async fn more_body(&mut self, limits: &ReceiveLimits) -> Result<usize, CutShort> {
        let limits = limits.later_by(self.client_time);
        while self.piece.is_empty() && !self.is_over {
            let mut deadline = Instant::now() + limits.between_bytes;
            let next = loop {
                let next = poll_fn(|context| match &mut self.body {
                    None => Poll::Ready(Err(CutShort::GONE)),
                    Some(body) => match poll_next(body, context) {
                        Poll::Ready(next) => Poll::Ready(Ok(next)),
                        Poll::Pending => self.poll_lost(context).map(|()| Err(CutShort::ABANDONED)),
                    },
                });
                if let Ok(next) = timeout_at(limits.at_most(deadline), next).await {
                    break next?;
                }
                if limits.is_over() {
                    return Err(CutShort::LATE);
                }
                // Progress of the request's body counts as progress of the exchange.
                let later = self.sender.extended(deadline, limits.between_bytes);
                if later <= deadline {
                    self.doubt();
                    let text = "no data on the stream";
                    return Err(CutShort { errno: Some(STALLED), reason: Reason::BetweenBytesTimeout, text });
                }
                deadline = later;
            };
            match next {
                Ok(Piece::Data(bytes)) => self.take_piece(bytes)?,
                Ok(Piece::End(trailers)) => {
                    self.trailers = trailers.filter(|_| self.keeps_trailers);
                    self.finish()?;
                }
                Err(error) => self.body_broken(&error)?,
            }
        }
        Ok(self.piece.len())
    }

    fn take_piece(&mut self, bytes: Bytes) -> Result<(), CutShort> {
        if let Some(expected) = &mut self.expected {
            *expected = expected.checked_sub(bytes.len() as u64).ok_or(CutShort {
                errno: None,
                reason: Reason::BodyBroken,
                text: "body longer than content-length",
            })?;
        }
        self.piece = bytes;
        Ok(())
    }

    /// A head, or the trailers, had fields that only a request may have.
    fn is_malformed(&self) -> bool {
        self.stream.is_some_and(|stream| self.lease.seen().is_malformed(stream))
    }

    /// Ends the body: nothing more will follow.
    fn finish(&mut self) -> Result<(), CutShort> {
        if self.is_malformed() {
            return Err(CutShort { errno: None, reason: Reason::BodyBroken, text: MALFORMED });
        }
        if self.expected.is_some_and(|missing| missing > 0) {
            let text = "body shorter than content-length";
            return Err(CutShort { errno: None, reason: Reason::BodyCutShort, text });
        }
        self.is_over = true;
        Ok(())
    }

    /// An origin that has answered completely may reset the stream, if it does not need the rest of
    /// the request.
    fn body_broken(&mut self, error: &h2::Error) -> Result<(), CutShort> {
        if self.stream.is_some_and(|stream| self.lease.seen().has_ended(stream)) && !error.is_library() {
            return self.finish();
        }
        let Fault { reason, text, .. } = self.note_fault(error);
        // The head is complete.
        let reason = if reason == Reason::OriginClosed { Reason::BodyCutShort } else { reason };
        let reason = self.sender.failure().unwrap_or(reason);
        Err(CutShort { errno: None, reason, text })
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.piece
    }

    pub(super) fn consume_body(&mut self, count: usize) {
        let count = count.min(self.piece.len());
        self.piece.advance(count);
        if let Some(body) = &mut self.body
            && count > 0
        {
            // This fails only if the stream is gone.
            let _ = body.flow_control().release_capacity(count);
        }
    }

    pub(super) fn may_have_trailers(&self) -> bool {
        self.keeps_trailers
    }

    pub(super) fn take_trailers(&mut self, limits: &ReceiveLimits) -> Option<Message> {
        let trailers = self.trailers.take().filter(|_| self.is_over)?;
        head::take_trailers(&trailers, limits.of_head()).filter(|trailers| trailers.header_count() > 0)
    }

    pub(super) fn progress(&self) -> ExchangeProgress {
        ExchangeProgress {
            is_reused: self.lease.is_reused,
            has_sent: self.stream.is_some(),
            has_answered: self.has_answered,
            is_unprocessed: self.is_unprocessed && !self.has_answered,
            unused_bytes: u64::from(matches!(self.last, Some(Ok(_)))),
            awaits_client: self.sender.awaits_client(),
            client_time: self.sender.client_time(),
        }
    }

    pub(super) fn close(mut self, why: &'static str, log: &mut LogBuffer) -> Option<Place> {
        self.log_close(false, Some(why), log);
        self.lease.take_place()
    }

    pub(super) fn release(self, context: &Loop, log: &mut LogBuffer) {
        self.log_close(true, None, log);
        context.count(Main::BackendRecycle);
    }
}

impl Drop for Http2Exchange {
    fn drop(&mut self) {
        if let Some(upload) = &self.upload {
            upload.abort();
        }
        if let Some(stream) = self.stream {
            self.lease.seen().streams.borrow_mut().remove(&stream);
        }
    }
}

/// Next event of a body.
enum Piece {
    Data(Bytes),
    End(Option<HeaderMap>),
}

fn poll_next(body: &mut RecvStream, context: &mut Context<'_>) -> Poll<Result<Piece, h2::Error>> {
    match body.poll_data(context) {
        Poll::Ready(Some(Ok(bytes))) => return Poll::Ready(Ok(Piece::Data(bytes))),
        Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
        Poll::Ready(None) => {}
        Poll::Pending => return Poll::Pending,
    }
    body.poll_trailers(context).map_ok(Piece::End)
}
