//! One request and its response, as a transport passes them to the request machine: [`Exchange`].
//!
//! The machine is independent of the wire format. It gets the head, a body to read, and a sink for
//! the response. The transport handles the framing of bytes, the meaning of `Connection` and
//! `Expect`, and the sequence of requests on one connection. HTTP/1 is one transport
//! (`transport/http1.rs`); a stream of another protocol, or a page that includes a fragment, would
//! be others.
//!
//! Methods that wait are poll functions, so that a transport can be used as `dyn` without boxed
//! futures and the machine is compiled only once. Several exchanges of one connection may run at
//! the same time: each has its own [`Exchange`], `SessionView` and `Request`. `request::run` runs
//! an exchange from start to end. Next file: `request.rs`.
//!
//! *Invariant:* the request machine is independent of the wire format: only `transport` and
//! `origin` handle framing, `Connection`, `Expect` and pipelining. No exchange sees data of another
//! one: each has its own request, body, delivery and view of the session.

use message::Message;
use shm::log::LogBuffer;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// Announcement of a body in a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BodyAnnounced {
    /// No body.
    #[default]
    None,
    /// A body of this many bytes.
    Length(u64),
    /// A body of unknown length.
    Unknown,
}

impl BodyAnnounced {
    /// The announced length in bytes, if there is one.
    #[must_use]
    pub fn length(self) -> Option<u64> {
        match self {
            BodyAnnounced::Length(bytes) => Some(bytes),
            BodyAnnounced::None | BodyAnnounced::Unknown => None,
        }
    }

    /// True if no body bytes will follow.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, BodyAnnounced::None | BodyAnnounced::Length(0))
    }
}

/// A malformed request.
#[derive(Clone, Debug, Default)]
pub struct Malformed {
    /// The payload of a `BogoHeader` record; `None` for no record.
    pub bogo_header: Option<String>,
    /// The limit that was exceeded, as a detail of the reason: `limit=<parameter> max=<value>`.
    pub limit: Option<String>,
    /// The answer is 431 (Request Header Fields Too Large) instead of 400.
    pub is_oversize: bool,
}

/// The transport's own rules answer a request, before VCL sees it.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Status of the answer, which has no body.
    pub status: u16,
    /// The counter for such requests.
    pub counter: Main,
    /// The reason, for the log.
    pub reason: Reason,
    /// Reason for ending the session after the answer.
    pub close: CloseReason,
}

/// The body of a request ended early: the payload of a `FetchError` record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyBroken(pub &'static str);

/// The response was not sent completely: the peer is gone or takes too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendError;

/// Time limits for sending a response.
#[derive(Clone, Copy, Debug)]
pub struct SendLimits {
    /// Limit for each write to make some progress, in seconds. A timeout is logged, but sending
    /// continues, as in Varnish.
    pub idle: f64,
    /// Limit for everything from `since` on, in seconds, including the time spent waiting for the
    /// origin.
    pub total: f64,
    /// Time when the delivery began.
    pub since: Instant,
}

/// Event on the connection of a waiting client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// The client has broken the connection, or cancelled the request.
    Gone,
    /// The client will send nothing more. Compat: it may still expect its answer, unless the
    /// parameter `client_half_close` says otherwise.
    End,
    /// The client sends bytes ahead.
    More,
}

/// Amount of a response that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Bytes of heads. A full head counts completely, even if sending it failed.
    pub head_bytes: u64,
    /// Bytes of body, without their framing.
    pub body_bytes: u64,
    /// Pieces of body.
    pub pieces: u64,
}

/// A byte stream that can be read and written.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// A connection that is handed over to a pipe.
pub struct Wire<'a> {
    /// The connection.
    pub stream: &'a mut dyn Duplex,
    /// Bytes received after the request's head.
    pub ahead: Vec<u8>,
}

/// Most pieces that [`Gathering::poll_send_pieces`] takes: a body of a megabyte whose length was
/// unknown is stored in nine, each twice as long as the one before it.
pub const PIECES_MAX: usize = 10;

/// A transport that sends several pieces of a body at once.
pub trait Gathering {
    /// As [`Exchange::poll_send`], for up to [`PIECES_MAX`] pieces, none of them empty. Must be
    /// called with the same pieces until it is ready.
    fn poll_send_pieces(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[&[u8]],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>>;
}

/// One request and its response on some transport. The machine calls the methods of each group in
/// the order given here.
pub trait Exchange {
    /// The protocol, as `req.transport` shows it: `HTTP/1`.
    fn protocol(&self) -> &'static str;

    /// The protocol of a response as the log shows it.
    fn response_protocol(&self) -> &'static [u8] {
        b"HTTP/1.1"
    }

    /// Changes the head into the form for the machine, and returns the announcement of the body
    /// that follows.
    ///
    /// # Errors
    /// The head is malformed, or the end of its body cannot be determined.
    fn open(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed>;

    /// The received part of a malformed request, for the log.
    fn garbage(&self) -> &[u8];

    /// Checks the protocol's requirements on a request. Returns the reason to end the session after
    /// it, if there is one.
    ///
    /// # Errors
    /// The answer that the protocol prescribes.
    fn admit(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal>;

    /// True if the client still waits for `100 Continue`; after this call it counts as sent.
    fn take_continue(&mut self) -> bool;

    /// True if the client expects `100 Continue`, which it may have been sent.
    fn expects_continue(&self) -> bool {
        false
    }

    /// True if the client still waits for `100 Continue`.
    fn owes_continue(&self) -> bool {
        false
    }

    /// Waits for bytes of the request's body. Returns the number of bytes in [`Exchange::body`],
    /// for the caller to consume; 0 at the end of the body. Cancelling a wait loses nothing.
    fn poll_body(&mut self, context: &mut Context<'_>, idle_seconds: f64) -> Poll<Result<usize, BodyBroken>>;

    /// The bytes of the body that were received and not consumed.
    fn body(&self) -> &[u8];

    /// Marks `count` of these bytes as used.
    fn consume_body(&mut self, count: usize);

    /// Requests the trailers of the request's body, before any of it is read.
    fn keep_trailers(&mut self) {}

    /// The trailers of the request's body, once it has ended; `None` if there are none.
    fn take_trailers(&mut self) -> Option<Message> {
        None
    }

    /// True if any of the body was read from the wire. If so, the rest is no longer a complete body
    /// that could be forwarded.
    fn is_body_begun(&self) -> bool;

    /// True if the unread rest of the body must be read before the connection can carry another
    /// request.
    fn must_drain(&self, response: &Message) -> bool;

    /// Kind of receiving the body, for its `VfpAcct` record.
    fn body_source(&self) -> &'static str;

    /// Adds the headers of an error response that is made here, before VCL sees it.
    fn describe_synthetic(&self, response: &mut Message, log: &mut LogBuffer);

    /// Adds the headers that describe the framing of the response, after VCL has run. `close` is
    /// the reason to end the session after it.
    fn frame(&mut self, response: &mut Message, log: &mut LogBuffer, has_body: bool, close: &mut Option<CloseReason>);

    /// Accepts a response head; it is sent with the next [`Exchange::poll_send`].
    fn begin(&mut self, response: &Message, limits: SendLimits);

    /// As [`Exchange::begin`], for a status without headers or body, interim (1xx) or final.
    fn begin_bare(&mut self, status: u16, limits: SendLimits);

    /// True if the request's body can be received while the response is sent. Then
    /// [`Exchange::poll_client_event`] also reports at any time that the client has cancelled this
    /// request.
    fn is_duplex(&self) -> bool {
        false
    }

    /// Ends the request without a response, if the client is then allowed to send it again whatever
    /// its method.
    fn refuse(&mut self) {}

    /// True if the client can be sent interim responses (1xx) with headers.
    fn takes_interim(&self) -> bool {
        false
    }

    /// As [`Exchange::begin`], for an interim response. Must be called only if the client accepts
    /// them; may be called several times.
    fn begin_interim(&mut self, _response: &Message, _limits: SendLimits) {}

    /// True if trailers can be sent after the body of the response that has been framed.
    fn sends_trailers(&self) -> bool {
        false
    }

    /// The trailers of the response, to be sent with its end.
    fn put_trailers(&mut self, _trailers: &Message) {}

    /// Sends the rest of the head, a piece of body (perhaps empty) and, if `is_last`, the end of
    /// the response. Must be called with the same piece until it is ready.
    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>>;

    /// The transport, if it can send several pieces of a body at once.
    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        None
    }

    /// Amount that was sent.
    fn sent(&self) -> Sent;

    /// Kind of sending the body, for its `VdpAcct` record.
    fn body_sink(&self) -> &'static str;

    /// Ready at an event of the client during a time without reads.
    fn poll_client_event(&mut self, context: &mut Context<'_>) -> Poll<ClientEvent>;

    /// Drives the client's TLS handshake, while a task waits for its end. Only for transports on
    /// whose connection no other task reads at that time.
    fn drive_handshake(&mut self, _context: &mut Context<'_>) {}

    /// True if there is a connection to hand over, which a pipe needs.
    fn has_wire(&self) -> bool;

    /// True if the client requests nothing but a connection: unless it is piped, the request is
    /// refused.
    fn wants_wire(&self) -> bool {
        false
    }

    /// The connection; `None` if it is shared with other exchanges.
    fn wire(&mut self) -> Option<Wire<'_>>;
}
