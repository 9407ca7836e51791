//! One request of a connection and its response: framing, `Connection`, `Expect`.
//!
//! A hit of usual size is one write: of one buffer, if the body is so small that copying it costs
//! less than a vectored write does, else of head and body from where they are. *Invariant:* bytes
//! that a client sends after a body are never taken for part of it. Source: RFC 9112 §6, §7, §9.3;
//! RFC 9110 §7.6.1, §10.1.1.

use super::connection::{Connection, ReceiveError};
use crate::deadline::duration;
use crate::exchange::{
    BodyAnnounced, BodyBroken, ClientEvent, Exchange, Gathering, Malformed, PIECES_MAX, Refusal, SendError, SendLimits,
    Sent, Wire,
};
use crate::logged::{self, REQ, RESP};
use crate::request::Buffers;
use ::http1::{
    BodyDecoder, BodyError, BodyLength, FramingError, HeadLimits, START_LINE_SLOTS, chunk_header, connection_options,
    parse_trailers, request_body_length, split_absolute_form, write_response_head, write_trailers,
};
use message::Message;
use shm::log::LogBuffer;
use std::task::{Context, Poll, ready};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::{CHUNK_TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX};
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// The protocol's name for sessions and `req.transport`.
const NAME: &str = "HTTP/1";

/// Largest piece of body, in bytes, that is copied behind the head.
const FLAT_BYTES_MAX: usize = 4 << 10;

/// Most bytes of a body read at a time.
const READ_BYTES: usize = 16 << 10;

/// Limits for a trailer section of a request.
const TRAILER_LIMITS: HeadLimits = HeadLimits {
    total_bytes: CHUNK_TRAILER_BYTES_MAX,
    line_bytes: CHUNK_TRAILER_BYTES_MAX,
    headers_max: TRAILER_FIELDS_MAX + START_LINE_SLOTS,
};

/// Marking of the end of a response's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Framing {
    /// Marked by its length, or by closing the connection.
    Plain,
    /// Marked by an empty chunk.
    Chunked,
}

/// The body of the request as it is received.
struct Incoming {
    decoder: BodyDecoder,
    is_chunked: bool,
    is_begun: bool,
    /// The trailer section, if it is kept.
    trailers: Option<Vec<u8>>,
    /// The time limit of the current wait for more; `None` without a wait.
    due: Option<Instant>,
}

/// A received request, and the connection it arrived on.
pub(super) struct Http1Exchange<'a, S> {
    connection: &'a mut Connection<S>,
    buffers: &'a mut Buffers,
    /// The fault of the head, if there is one.
    malformed: Option<Malformed>,
    /// Reason why the client does not get the HTTP/2 that it requested, for the log.
    note: Option<&'static str>,
    incoming: Option<Incoming>,
    is_http11: bool,
    expects_continue: bool,
    owes_continue: bool,
    framing: Framing,
    /// The body ends with the connection.
    is_until_close: bool,
    /// End of a chunked body with trailers, beginning with the end of its last chunk; empty without
    /// trailers.
    end: Vec<u8>,
    /// A piece is being sent.
    is_sending: bool,
    /// The piece was copied behind the head, with the end of the body.
    is_flat: bool,
    /// The head being sent is a bare one: only the bytes that are really sent count.
    is_bare: bool,
    sent: Sent,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Http1Exchange<'a, S> {
    /// True if the client has sent its whole request, and has sent nothing after it.
    pub(super) fn is_all_read(&self) -> bool {
        let is_body_over = self.incoming.as_ref().is_none_or(|incoming| incoming.decoder.is_done());
        is_body_over && self.malformed.is_none() && self.buffers.unread().is_empty()
    }

    /// True if only the end of the connection marks the end of the response's body.
    pub(super) fn is_until_close(&self) -> bool {
        self.is_until_close
    }

    pub(super) fn new(
        connection: &'a mut Connection<S>,
        buffers: &'a mut Buffers,
        malformed: Option<Malformed>,
        note: Option<&'static str>,
    ) -> Self {
        Http1Exchange {
            connection,
            buffers,
            malformed,
            note,
            incoming: None,
            is_http11: false,
            expects_continue: false,
            owes_continue: false,
            framing: Framing::Plain,
            is_until_close: false,
            end: Vec::new(),
            is_sending: false,
            is_flat: false,
            is_bare: false,
            sent: Sent::default(),
        }
    }

    /// Begins a head of which only the bytes that are really sent count. Returns the buffer to
    /// write it to.
    fn begin_uncounted(&mut self, limits: SendLimits) -> &mut Vec<u8> {
        self.connection.begin_sending(limits);
        self.is_bare = true;
        self.framing = Framing::Plain;
        let head = &mut self.buffers.head;
        head.clear();
        head
    }
}

/// `GET http://host/path` means the host and path of the target, whatever the value of `Host`.
fn apply_absolute_form(head: &mut Message, log: &mut LogBuffer) {
    if head.target().first() == Some(&b'/') {
        return;
    }
    let Ok(Some(form)) = split_absolute_form(head.method(), head.target()) else { return };
    let (host, path) = (form.host.to_vec(), form.origin_form(head.method()));
    logged::set(log, REQ, head, "Host", &host);
    head.set_target(&path);
}

/// The bytes that follow a piece of body. `trailing` is the end of a chunked body with trailers.
fn ending(framing: Framing, is_alone: bool, is_last: bool, trailing: &[u8]) -> &[u8] {
    match (framing, is_alone, is_last) {
        (Framing::Plain, ..) | (Framing::Chunked, true, false) => b"",
        (Framing::Chunked, is_alone, true) => {
            let end = if trailing.is_empty() { b"\r\n0\r\n\r\n" } else { trailing };
            if is_alone { &end[2..] } else { end }
        }
        (Framing::Chunked, false, false) => b"\r\n",
    }
}

fn says_close(response: &Message) -> bool {
    response.get("Connection").is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gathering for Http1Exchange<'_, S> {
    fn poll_send_pieces(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[&[u8]],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let head = &mut self.buffers.head;
        if !std::mem::replace(&mut self.is_sending, true) {
            self.is_flat = false;
            if self.framing == Framing::Chunked {
                chunk_header(bytes, head);
            }
        }
        let mut parts = [&b""[..]; PIECES_MAX + 2];
        parts[0] = head;
        parts[1..=pieces.len()].copy_from_slice(pieces);
        parts[pieces.len() + 1] = ending(self.framing, false, is_last, &self.end);
        let (sent, result) = ready!(self.connection.poll_send(context, &parts, log));
        self.is_sending = false;
        let missing = parts.iter().map(|part| part.len()).sum::<usize>().saturating_sub(sent);
        self.sent.pieces += pieces.len() as u64;
        self.sent.body_bytes += bytes.saturating_sub(missing) as u64;
        head.clear();
        Poll::Ready(result)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Exchange for Http1Exchange<'_, S> {
    fn protocol(&self) -> &'static str {
        NAME
    }

    fn open(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed> {
        if let Some(malformed) = self.malformed.take() {
            return Err(malformed);
        }
        if let Some(note) = self.note {
            log.record(Tag::Debug, note.as_bytes());
        }
        let length = match request_body_length(head) {
            Ok(length) => length,
            // Refused as well, but with its own record after the headers: see Receive.
            Err(FramingError::SeveralLengths) => BodyLength::None,
            Err(_) => return Err(Malformed::default()),
        };
        self.is_http11 = head.protocol() == b"HTTP/1.1";
        let announced = match length {
            BodyLength::None | BodyLength::UntilClose | BodyLength::Length(0) => BodyAnnounced::None,
            BodyLength::Length(bytes) => BodyAnnounced::Length(bytes),
            BodyLength::Chunked => BodyAnnounced::Unknown,
        };
        if announced != BodyAnnounced::None {
            let is_chunked = length == BodyLength::Chunked;
            self.incoming = Some(Incoming {
                decoder: BodyDecoder::new(length),
                is_chunked,
                is_begun: false,
                trailers: None,
                due: None,
            });
        }
        apply_absolute_form(head, log);
        Ok(announced)
    }

    fn garbage(&self) -> &[u8] {
        &self.buffers.received
    }

    fn admit(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal> {
        if let Some(expected) = head.get("Expect") {
            if !expected.eq_ignore_ascii_case(b"100-continue") {
                return Err(Refusal {
                    status: 417,
                    counter: Main::ClientReq417,
                    reason: Reason::ExpectationUnknown,
                    close: CloseReason::RxJunk,
                });
            }
            // A client that has continued to send without waiting needs no answer.
            self.expects_continue = self.is_http11;
            self.owes_continue = self.buffers.unread().is_empty() && self.is_http11;
            logged::unset(log, REQ, head, "Expect");
        }
        match connection_options(head) {
            Ok(options) if options.close => {
                let is_http10 = head.protocol() == b"HTTP/1.0";
                let is_asked = head.has("Connection");
                Ok(Some(if is_http10 && !is_asked { CloseReason::ReqHttp10 } else { CloseReason::ReqClose }))
            }
            Ok(_) => Ok(None),
            Err(_) => Err(Refusal {
                status: 400,
                counter: Main::ClientReq400,
                reason: Reason::BadRequest,
                close: CloseReason::RxBad,
            }),
        }
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
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(Ok(0)) };
        loop {
            if incoming.decoder.is_done() {
                return Poll::Ready(Ok(0));
            }
            let step = match incoming.decoder.step(self.buffers.unread()) {
                Ok(step) => step,
                Err(error) => return Poll::Ready(Err(BodyBroken(error.text()))),
            };
            incoming.is_begun |= step.skip > 0 || step.data > 0;
            if let Some(trailers) = &mut incoming.trailers {
                // The decoder bounds their length.
                trailers.extend_from_slice(&self.buffers.unread()[step.skip - step.trailer..step.skip]);
            }
            self.buffers.consume(step.skip);
            if step.data > 0 || step.done {
                return Poll::Ready(Ok(step.data));
            }
            if step.skip > 0 {
                continue;
            }
            self.buffers.compact();
            self.buffers.received.reserve(READ_BYTES);
            let due = *incoming.due.get_or_insert_with(|| Instant::now() + duration(idle_seconds));
            let received = ready!(self.connection.poll_receive(context, &mut self.buffers.received, due));
            incoming.due = None;
            match received {
                Ok(_) => {}
                Err(ReceiveError::TimedOut) => return Poll::Ready(Err(BodyBroken("timeout"))),
                Err(ReceiveError::Closed) => {
                    let error = incoming.decoder.end_of_input().err().unwrap_or(BodyError::LengthShort);
                    return Poll::Ready(Err(BodyBroken(error.text())));
                }
            }
        }
    }

    fn body(&self) -> &[u8] {
        self.buffers.unread()
    }

    fn consume_body(&mut self, count: usize) {
        self.buffers.consume(count);
    }

    fn keep_trailers(&mut self) {
        if let Some(incoming) = &mut self.incoming {
            incoming.trailers = (incoming.is_chunked && !incoming.is_begun).then(Vec::new);
        }
    }

    fn take_trailers(&mut self) -> Option<Message> {
        let incoming = self.incoming.as_mut().filter(|incoming| incoming.decoder.is_done())?;
        let bytes = incoming.trailers.take()?;
        let mut trailers = Message::new();
        let parsed = parse_trailers(&bytes, &TRAILER_LIMITS, &mut trailers);
        (parsed.is_ok() && trailers.header_count() > 0).then_some(trailers)
    }

    fn is_body_begun(&self) -> bool {
        self.incoming.as_ref().is_some_and(|incoming| incoming.is_begun)
    }

    fn must_drain(&self, response: &Message) -> bool {
        !says_close(response)
    }

    fn body_source(&self) -> &'static str {
        match &self.incoming {
            Some(Incoming { is_chunked: true, .. }) => "V1F_CHUNKED",
            Some(_) | None => "V1F_STRAIGHT",
        }
    }

    fn describe_synthetic(&self, response: &mut Message, log: &mut LogBuffer) {
        if self.owes_continue {
            // The client gets no `100 Continue`, and its body is not read. VCL may decide otherwise
            // by removing this header.
            logged::append(log, RESP, response, "Connection", &[b"close"]);
        }
    }

    fn frame(&mut self, response: &mut Message, log: &mut LogBuffer, has_body: bool, close: &mut Option<CloseReason>) {
        match (*close, says_close(response)) {
            (None, true) => *close = Some(CloseReason::RespClose),
            (Some(_), true) => {}
            (Some(_), false) => logged::set(log, RESP, response, "Connection", b"close"),
            (None, false) if response.has("Connection") => {}
            (None, false) => logged::append(log, RESP, response, "Connection", &[b"keep-alive"]),
        }
        self.framing = Framing::Plain;
        if !has_body || response.has("Content-Length") {
            return;
        }
        if self.is_http11 {
            logged::append(log, RESP, response, "Transfer-Encoding", &[b"chunked"]);
            self.framing = Framing::Chunked;
        } else {
            // This reason takes precedence over the one of an HTTP/1.0 client's close.
            *close = Some(CloseReason::TxEof);
            self.is_until_close = true;
        }
    }

    fn begin(&mut self, response: &Message, limits: SendLimits) {
        self.connection.begin_sending(limits);
        self.is_bare = false;
        let head = &mut self.buffers.head;
        head.clear();
        write_response_head(response, head);
        self.sent.head_bytes += head.len() as u64;
    }

    fn begin_bare(&mut self, status: u16, limits: SendLimits) {
        let head = self.begin_uncounted(limits);
        let phrase = semantics::reason::phrase(status);
        head.extend_from_slice(b"HTTP/1.1 ");
        head.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        head.extend_from_slice(b" ");
        head.extend_from_slice(phrase.as_bytes());
        head.extend_from_slice(b"\r\n\r\n");
    }

    /// Source: RFC 9110 §15.2: a 1xx must not be sent to an HTTP/1.0 client.
    fn takes_interim(&self) -> bool {
        self.is_http11
    }

    fn begin_interim(&mut self, response: &Message, limits: SendLimits) {
        write_response_head(response, self.begin_uncounted(limits));
    }

    fn sends_trailers(&self) -> bool {
        self.framing == Framing::Chunked
    }

    fn put_trailers(&mut self, trailers: &Message) {
        self.end.clear();
        self.end.extend_from_slice(b"\r\n");
        write_trailers(trailers, &mut self.end);
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>> {
        let head = &mut self.buffers.head;
        let end = ending(self.framing, piece.is_empty(), is_last, &self.end);
        if !self.is_sending {
            if self.framing == Framing::Chunked && !piece.is_empty() {
                chunk_header(piece.len(), head);
            }
            if head.is_empty() && piece.is_empty() && end.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.is_sending = true;
            self.is_flat = !head.is_empty() && !piece.is_empty() && piece.len() <= FLAT_BYTES_MAX;
            if self.is_flat {
                head.extend_from_slice(piece);
                head.extend_from_slice(end);
            }
        }
        let parts = if self.is_flat { [&head[..], b"", b""] } else { [&head[..], piece, end] };
        let (sent, result) = ready!(self.connection.poll_send(context, &parts, log));
        self.is_sending = false;
        let missing = parts.iter().map(|part| part.len()).sum::<usize>().saturating_sub(sent);
        if self.is_bare {
            debug_assert!(piece.is_empty(), "a bare head has no body");
            self.sent.head_bytes += head.len().saturating_sub(missing) as u64;
        }
        self.sent.pieces += u64::from(!piece.is_empty());
        self.sent.body_bytes += piece.len().saturating_sub(missing) as u64;
        head.clear();
        Poll::Ready(result)
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn sent(&self) -> Sent {
        self.sent
    }

    fn body_sink(&self) -> &'static str {
        "V1B"
    }

    fn poll_client_event(&mut self, context: &mut Context<'_>) -> Poll<ClientEvent> {
        self.connection.poll_client_event(context, &mut self.buffers.received)
    }

    fn drive_handshake(&mut self, context: &mut Context<'_>) {
        self.connection.drive_handshake(context);
    }

    fn has_wire(&self) -> bool {
        true
    }

    fn wire(&mut self) -> Option<Wire<'_>> {
        let ahead = self.buffers.unread().to_vec();
        self.buffers.consume(ahead.len());
        Some(Wire { stream: self.connection.stream(), ahead })
    }
}
