//! HTTP/1.1 to origins: the framing of both messages, and the reuse of the connection.
//!
//! Copal chooses the framing of the request's body, whatever VCL did to the headers: exactly the
//! announced length, or chunked. The connection is closed if the response's body ends only with it,
//! if the request or response has the option `close`, or if bytes follow the end of the response.
//! Source: RFC 9112 §6, §7 and §9. Next file: `origin/http1/wire.rs`.

pub(crate) mod received;
mod wire;

use super::types::{
    BodySettings, BrokenLimit, Carriage, CutShort, Early, ExchangeProgress, HeadFailure, ReceiveLimits, ResponseBody,
    Unsent, close_reason,
};
use crate::context::Loop;
use crate::exchange::BodyAnnounced;
use crate::fetch::interest::Interested;
use crate::logged::{self, BEREQ};
use backend::open::{OpenRecord, Place};
use backend::{BackendConnection, Ends};
use http1::{BodyDecoder, BodyError, BodyLength, HeadError, HeadStatus, LAST_CHUNK};
use message::Message;
pub(super) use received::BUFFER_BYTES_LONG;
use shm::log::LogBuffer;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;
use wire::{OriginWire, ReceiveError};

/// Largest body that is sent in one piece with the head, in bytes.
const JOINED_BODY_BYTES_MAX: usize = 16 << 10;

/// Operators recognise its text as that of a stalled origin.
const EAGAIN: i32 = 11;
const ECONNRESET: i32 = 104;

/// The kinds of body transfer, with Varnish's names.
const CHUNKED: Carriage = Carriage { counter: Main::FetchChunked, fetch_body: "2 chunked", account: "V1F_CHUNKED" };
const LENGTH: Carriage = Carriage { counter: Main::FetchLength, fetch_body: "3 length", account: "V1F_STRAIGHT" };
const UNTIL_CLOSE: Carriage = Carriage { counter: Main::FetchEof, fetch_body: "4 eof", account: "V1F_EOF" };

/// An encrypted connection that ended without close_notify, where the end of the connection is the
/// end of the body.
const CUT_OFF: CutShort =
    CutShort { errno: None, reason: Reason::BodyCutShort, text: "TLS connection cut off (no close_notify)" };

/// One request and its response on a connection that carries no other exchange at that time.
pub(crate) struct Http1Exchange {
    wire: OriginWire,
    /// The request's head until it is sent, then chunks.
    out: Vec<u8>,
    /// The request's body is sent in chunks.
    is_chunked: bool,
    /// Finds the end of the response's body.
    decoder: BodyDecoder,
    /// The trailer section of the response, if it is kept.
    trailers: Option<Box<TrailerSection>>,
    /// Number of unframed bytes of the body at the front of the received bytes.
    piece_bytes: usize,
    /// The body ends with the connection, which is encrypted: its end requires close_notify.
    needs_close_notify: bool,
    /// Reason why the connection must not be used again.
    must_close: Option<&'static str>,
}

/// The bytes of a trailer section; the decoder bounds their number. Boxed, since few responses have
/// one.
#[derive(Default)]
struct TrailerSection {
    bytes: Vec<u8>,
}

impl Http1Exchange {
    pub(super) fn new(connection: BackendConnection, context: &Loop) -> Http1Exchange {
        Http1Exchange {
            wire: OriginWire::new(connection, Rc::clone(&context.receive_buffers)),
            out: Vec::new(),
            is_chunked: false,
            decoder: BodyDecoder::new(BodyLength::None),
            trailers: None,
            piece_bytes: 0,
            needs_close_notify: false,
            must_close: None,
        }
    }

    pub(super) fn ends(&self) -> Ends {
        self.wire.connection().ends()
    }

    pub(super) fn proxy_header_bytes(&self) -> u64 {
        self.wire.connection().proxy_header_bytes
    }

    pub(super) fn open_record(&self) -> OpenRecord<'_> {
        self.wire.connection().open_record()
    }

    pub(super) fn tls_record(&self) -> Option<String> {
        self.wire.connection().tls_record()
    }

    pub(super) fn tls(&self) -> Option<&TlsFacts> {
        self.wire.connection().tls()
    }

    pub(super) fn describe_body(&mut self, body: BodyAnnounced, bereq: &mut Message, log: &mut LogBuffer) {
        if bereq.protocol() == b"HTTP/2.0" {
            // An earlier attempt used HTTP/2.
            bereq.set_protocol(b"HTTP/1.1");
            log.record(BEREQ.protocol, b"HTTP/1.1");
        }
        self.is_chunked = body == BodyAnnounced::Unknown;
        self.wire.watches(!body.is_empty());
        match body {
            BodyAnnounced::None => {
                logged::unset(log, BEREQ, bereq, "Transfer-Encoding");
                if bereq.get("Content-Length").is_some_and(|value| value != b"0") {
                    logged::unset(log, BEREQ, bereq, "Content-Length");
                }
            }
            BodyAnnounced::Length(length) => {
                logged::unset(log, BEREQ, bereq, "Transfer-Encoding");
                logged::force(log, BEREQ, bereq, "Content-Length", itoa::Buffer::new().format(length).as_bytes());
            }
            BodyAnnounced::Unknown => {
                logged::unset(log, BEREQ, bereq, "Content-Length");
                logged::force(log, BEREQ, bereq, "Transfer-Encoding", b"chunked");
            }
        }
    }

    pub(super) fn serves(&mut self, interest: Option<Interested>) {
        self.wire.serves(interest);
    }

    pub(super) fn put_head(&mut self, bereq: &Message) -> u64 {
        if self.out.capacity() == 0 {
            self.out = self.wire.buffers().take_head();
        }
        http1::write_request_head(bereq, &mut self.out);
        self.out.len() as u64
    }

    pub(super) async fn send(&mut self, piece: &[u8], stall: Duration) -> Result<u64, Unsent> {
        let head_bytes = self.out.len();
        if self.is_chunked && !piece.is_empty() {
            http1::chunk_header(piece.len(), &mut self.out);
            self.out.extend_from_slice(piece);
            self.out.extend_from_slice(b"\r\n");
            let sent = (self.out.len() - head_bytes) as u64;
            self.send_out(stall).await?;
            return Ok(sent);
        }
        if head_bytes > 0 && piece.len() <= JOINED_BODY_BYTES_MAX {
            self.out.extend_from_slice(piece);
            self.send_out(stall).await?;
        } else {
            self.send_out(stall).await?;
            self.wire.send(piece, stall).await?;
        }
        Ok(piece.len() as u64)
    }

    pub(super) async fn end(&mut self, trailers: Option<&Message>, stall: Duration) -> Result<u64, Unsent> {
        if !self.is_chunked {
            return Ok(0);
        }
        match trailers {
            None => self.out.extend_from_slice(LAST_CHUNK),
            Some(trailers) => http1::write_trailers(trailers, &mut self.out),
        }
        let sent = self.out.len() as u64;
        self.send_out(stall).await?;
        Ok(sent)
    }

    async fn send_out(&mut self, stall: Duration) -> Result<(), Unsent> {
        let sent = self.wire.send(&self.out, stall).await;
        self.out.clear();
        sent
    }

    pub(super) fn poll_early(&mut self, context: &mut Context<'_>) -> Poll<Early> {
        self.wire.poll_early(context)
    }

    pub(super) async fn await_answer(&mut self, patience: Duration) {
        if self.wire.received().is_empty() {
            // The error recurs when the head is received.
            let _ = self.wire.receive(0, Instant::now() + patience).await;
        }
    }

    pub(super) async fn receive_head(
        &mut self,
        beresp: &mut Message,
        limits: &ReceiveLimits,
    ) -> Result<u64, HeadFailure> {
        let of_head = limits.of_head();
        // The request is sent, and the answer may take long.
        self.wire.buffers().put_head(std::mem::take(&mut self.out));
        loop {
            let is_first = self.wire.received().is_empty();
            if !is_first {
                match http1::parse_response(self.wire.received(), &of_head, beresp) {
                    Ok(HeadStatus::Complete { consumed }) => {
                        self.wire.consume(consumed);
                        return Ok(consumed as u64);
                    }
                    Ok(HeadStatus::Partial) => {}
                    Err(HeadError::Overflow) => return Err(HeadFailure::TooLarge(BrokenLimit::of_total(&of_head))),
                    Err(error) => return Err(self.garbage(&error, &of_head)),
                }
            }
            let deadline = if is_first { limits.first_byte_by } else { Instant::now() + limits.between_bytes };
            match self.wire.receive(limits.at_once_bytes, limits.at_most(deadline)).await {
                Ok(0) => return Err(HeadFailure::ENDED),
                Err(ReceiveError::Broken(errno)) => {
                    let broken = if errno == ECONNRESET { HeadFailure::RESET } else { HeadFailure::ENDED };
                    return Err(self.wire.take_tls_failure().map_or(broken, HeadFailure::Tls));
                }
                Ok(_) => {}
                Err(ReceiveError::Abandoned) => return Err(HeadFailure::Abandoned),
                Err(ReceiveError::Timeout) if limits.is_over() => return Err(HeadFailure::LastByteTimeout),
                Err(ReceiveError::Timeout) if is_first => return Err(HeadFailure::FirstByteTimeout),
                Err(ReceiveError::Timeout) => return Err(HeadFailure::Timeout),
            }
        }
    }

    fn garbage(&self, error: &HeadError, limits: &http1::HeadLimits) -> HeadFailure {
        let limit = match error {
            HeadError::LineTooLong(_) => Some(BrokenLimit::of_line(limits)),
            HeadError::TooManyHeaders(_) => Some(BrokenLimit::of_headers(limits)),
            _ => None,
        };
        let garbage = self.wire.received();
        let line = garbage.split(|&byte| byte == b'\n').next().unwrap_or(garbage);
        HeadFailure::Garbage { header: error.bogo_header(), line: line.trim_ascii_end().to_vec(), limit }
    }

    pub(super) fn begin_body(
        &mut self,
        bereq: &Message,
        beresp: &Message,
        settings: BodySettings,
    ) -> Option<ResponseBody> {
        let length = match http1::response_body_length(beresp, bereq.method()) {
            Ok(BodyLength::None)
                if settings.reads_until_close && bereq.method() != b"HEAD" && http1::is_unframed_keep_alive(beresp) =>
            {
                BodyLength::UntilClose
            }
            Ok(length) => length,
            Err(_) if settings.takes_unknown_coding && http1::is_coded_until_close(beresp) => BodyLength::UntilClose,
            Err(_) => return None,
        };
        match http1::connection_options(beresp) {
            Err(_) => self.must_close(close_reason::BAD),
            // Compat: a body that ends with the connection is a request to close it.
            Ok(options)
                if options.close
                    && length != BodyLength::UntilClose
                    && http1::is_http10(beresp)
                    && !http1::lists_close(beresp) =>
            {
                self.must_close(close_reason::PROTOCOL);
            }
            Ok(options) if options.close => self.must_close(close_reason::REQUESTED),
            Ok(_) => {}
        }
        if http1::is_http10(beresp) && beresp.has("Transfer-Encoding") {
            // Its framing cannot be trusted. Source: RFC 9112 §6.1.
            self.must_close(close_reason::PROTOCOL);
        }
        // Decided now: VCL may remove the header, but that does not keep the origin from closing.
        if length == BodyLength::UntilClose || http1::lists_close(beresp) {
            self.must_close(close_reason::REQUESTED);
        }
        if let Some(seconds) = http1::keep_alive_seconds(beresp) {
            // A request takes some of that time to reach the origin.
            let seconds = f64::from(seconds);
            self.wire.kept_for(seconds - (seconds / 2.0).min(1.0));
        }
        let asked = http1::connection_options(bereq);
        if asked.is_ok_and(|options| options.close) || http1::lists_close(bereq) {
            self.must_close(close_reason::REQUEST);
        }
        self.decoder = BodyDecoder::new(length);
        self.needs_close_notify = settings.needs_close_notify;
        self.trailers = (settings.keeps_trailers && length == BodyLength::Chunked).then(Box::default);
        let (size, carriage) = match length {
            BodyLength::None => (BodyAnnounced::None, None),
            BodyLength::Length(bytes) => (BodyAnnounced::Length(bytes), Some(&LENGTH)),
            BodyLength::Chunked => (BodyAnnounced::Unknown, Some(&CHUNKED)),
            BodyLength::UntilClose => (BodyAnnounced::Unknown, Some(&UNTIL_CLOSE)),
        };
        Some(ResponseBody { size, carriage })
    }

    pub(super) async fn more_body(&mut self, limits: &ReceiveLimits) -> Result<usize, CutShort> {
        while self.piece_bytes == 0 && !self.decoder.is_done() {
            if self.wire.received().is_empty() {
                let deadline = Instant::now() + limits.between_bytes;
                match self.wire.receive(limits.at_once_bytes, limits.at_most(deadline)).await {
                    Ok(0) => {
                        self.decoder.end_of_input().map_err(|error| broken(None, error))?;
                        if self.needs_close_notify && self.wire.connection().stream.was_cut_off() {
                            return Err(CUT_OFF);
                        }
                        break;
                    }
                    Ok(_) => {}
                    Err(ReceiveError::Abandoned) => return Err(CutShort::ABANDONED),
                    Err(ReceiveError::Timeout) if limits.is_over() => return Err(CutShort::LATE),
                    Err(error) => return Err(self.broken_off(error)),
                }
            }
            let step = self.decoder.step(self.wire.received()).map_err(|error| broken(None, error))?;
            if let Some(trailers) = &mut self.trailers {
                trailers.bytes.extend_from_slice(&self.wire.received()[step.skip - step.trailer..step.skip]);
            }
            self.wire.consume(step.skip);
            self.piece_bytes = step.data;
        }
        Ok(self.piece_bytes)
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.wire.received()[..self.piece_bytes]
    }

    pub(super) fn consume_body(&mut self, count: usize) {
        let count = count.min(self.piece_bytes);
        self.wire.consume(count);
        self.piece_bytes -= count;
    }

    /// The piece of body that was received last in a buffer of its own, if the buffer contains
    /// nothing else.
    pub(super) fn take_body(&mut self) -> Option<Vec<u8>> {
        if self.piece_bytes == 0 || self.piece_bytes != self.wire.received().len() {
            return None;
        }
        let piece = self.wire.take_received()?;
        self.piece_bytes = 0;
        Some(piece)
    }

    pub(super) fn skip_body(&mut self) -> bool {
        self.consume_body(self.piece_bytes);
        while !self.decoder.is_done() && !self.wire.received().is_empty() {
            let Ok(step) = self.decoder.step(self.wire.received()) else { return false };
            self.wire.consume(step.skip + step.data);
        }
        self.decoder.is_done()
    }

    pub(super) fn may_have_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    pub(super) fn take_trailers(&mut self, limits: &ReceiveLimits) -> Option<Message> {
        let section = self.trailers.take().filter(|_| self.decoder.is_done())?;
        let mut trailers = Message::new();
        let parsed = http1::parse_trailers(&section.bytes, &limits.of_head(), &mut trailers);
        (parsed.is_ok() && trailers.header_count() > 0).then_some(trailers)
    }

    /// The error for a body whose connection broke or stalled. Some bodies end only with the
    /// connection.
    fn broken_off(&mut self, error: ReceiveError) -> CutShort {
        let (errno, reason) = match error {
            ReceiveError::Timeout => (EAGAIN, Reason::BetweenBytesTimeout),
            ReceiveError::Abandoned => return CutShort::ABANDONED,
            ReceiveError::Broken(ECONNRESET) => (ECONNRESET, Reason::OriginReset),
            ReceiveError::Broken(errno) => (errno, Reason::BodyCutShort),
        };
        let text = self.decoder.end_of_input().map_or_else(BodyError::text, |()| "eof socket fail");
        CutShort { errno: Some(errno), reason, text }
    }

    pub(super) fn progress(&self) -> ExchangeProgress {
        ExchangeProgress {
            is_reused: self.wire.connection().reused,
            has_sent: self.wire.has_sent(),
            has_answered: self.wire.has_answered(),
            is_unprocessed: false,
            unused_bytes: self.wire.received().len() as u64,
            awaits_client: false,
            client_time: Duration::ZERO,
        }
    }

    pub(super) fn must_close(&mut self, why: &'static str) {
        self.must_close.get_or_insert(why);
    }

    pub(super) fn close(self, why: &'static str, log: &mut LogBuffer) -> Place {
        let record = self.wire.connection().close_record(false, Some(why));
        log.record_fmt(Tag::BackendClose, format_args!("{record}"));
        self.wire.into_connection().into_parts().1
    }

    pub(super) fn release(mut self, beresp: &Message, context: &Loop, log: &mut LogBuffer) {
        if http1::lists_close(beresp) {
            self.must_close(close_reason::REQUESTED);
        }
        let leftover = (!self.wire.received().is_empty()).then_some(close_reason::JUNK);
        let why = self.must_close.or(leftover);
        let connection = self.wire.into_connection();
        let why = why.or((!connection.is_recyclable()).then_some(close_reason::SINGLE));
        let is_kept = why.is_none();
        log.record_fmt(Tag::BackendClose, format_args!("{}", connection.close_record(is_kept, why)));
        if is_kept {
            connection.recycle(&context.pool, &context.counters, context.clock.now());
        }
    }
}

/// The error for a body that is framed wrongly or ends too early.
fn broken(errno: Option<i32>, error: BodyError) -> CutShort {
    let reason = match error {
        BodyError::LengthShort | BodyError::ChunkShort | BodyError::ChunkedShort => Reason::BodyCutShort,
        BodyError::ChunkHeaderTooLong
        | BodyError::ChunkHeaderNotHex
        | BodyError::ChunkHeaderNoLineEnd
        | BodyError::ChunkTailNoLineEnd
        | BodyError::ChunkTooLarge
        | BodyError::Trailer => Reason::BodyBroken,
    };
    CutShort { errno, reason, text: error.text() }
}

#[cfg(test)]
mod tests;
