//! One request and its response, as a transport passes them to the request machine: [`Exchange`].
//!
//! The machine knows nothing of the wire. It gets the head, a body to read, and something to write a response to. How bytes are
//! framed, what `Connection` and `Expect` mean, and how the next request follows on the same connection is up to the transport.
//! HTTP/1 is one transport (`transport/http1.rs`); a stream of another protocol, or a page that includes a fragment, would be
//! others.
//!
//! Methods that wait are poll functions, so that a transport can be used as `dyn` without boxed futures and the machine is
//! compiled only once. Several exchanges of one connection may run at the same time: each has its own [`Exchange`],
//! `SessionView` and `Request`. `request::run` runs an exchange from start to end. Next file: `request.rs`.

use message::Message;
use shm::log::LogBuffer;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// What a head announces about its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BodyAnnounced {
    /// There is no body.
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

    /// Whether no body bytes will come.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, BodyAnnounced::None | BodyAnnounced::Length(0))
    }
}

/// What was received is not a valid request.
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
    /// Why the session ends after the answer.
    pub close: CloseReason,
}

/// The body of a request ended early: the payload of a `FetchError` record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyBroken(pub &'static str);

/// The response was not sent completely: the peer is gone or takes too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendError;

/// How long sending a response may take.
#[derive(Clone, Copy, Debug)]
pub struct SendLimits {
    /// For each write to make some progress, in seconds. A timeout is logged, but sending goes on, as in Varnish.
    pub idle: f64,
    /// For everything from `since` on, in seconds, including the time spent waiting for the origin.
    pub total: f64,
    /// When the delivery began.
    pub since: Instant,
}

/// What is heard of a client that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// It has broken the connection, or given the request up.
    Gone,
    /// It will send nothing more. Compat: it may still want its answer, unless the parameter `client_half_close` says otherwise.
    End,
    /// It sends ahead.
    More,
}

/// How much of a response was sent.
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

/// A connection handed over to a pipe.
pub struct Wire<'a> {
    /// The connection.
    pub stream: &'a mut dyn Duplex,
    /// What was received after the request's head.
    pub ahead: Vec<u8>,
}

/// Most pieces that [`Gathering::poll_send_pieces`] takes: a body of a megabyte whose length was not known lies in nine, each
/// twice as long as the one before it.
pub const PIECES_MAX: usize = 10;

/// A transport that sends several pieces of a body at once.
pub trait Gathering {
    /// As [`Exchange::poll_send`], for up to [`PIECES_MAX`] pieces, none of them empty. Call it with the same pieces until it is
    /// ready.
    fn poll_send_pieces(
        &mut self,
        context: &mut Context<'_>,
        pieces: &[&[u8]],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>>;
}

/// One request and its response on some transport. The machine calls the methods of each group in the order given here.
pub trait Exchange {
    /// The protocol, as `req.transport` shows it: `HTTP/1`.
    fn protocol(&self) -> &'static str;

    /// The protocol of a response as the log shows it.
    fn response_protocol(&self) -> &'static [u8] {
        b"HTTP/1.1"
    }

    /// Turns the head into what the machine should see, and returns what body follows.
    ///
    /// # Errors
    /// The head is malformed, or the end of its body cannot be determined.
    fn open(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed>;

    /// What was received of a malformed request, for the log.
    fn garbage(&self) -> &[u8];

    /// Checks what the protocol demands of a request. Returns why the session ends after it, if it does.
    ///
    /// # Errors
    /// The answer that the protocol prescribes.
    fn admit(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal>;

    /// Whether the client still waits for `100 Continue`; afterwards none is owed any more.
    fn take_continue(&mut self) -> bool;

    /// Waits for bytes of the request's body. Returns how many are in [`Exchange::body`], for the caller to consume; 0 at the
    /// end of the body. A wait that is given up loses nothing.
    fn poll_body(&mut self, context: &mut Context<'_>, idle_seconds: f64) -> Poll<Result<usize, BodyBroken>>;

    /// The bytes of the body that were received and not consumed.
    fn body(&self) -> &[u8];

    /// Marks `count` of these bytes as used.
    fn consume_body(&mut self, count: usize);

    /// Asks for the trailers of the request's body, before any of it is read.
    fn keep_trailers(&mut self) {}

    /// These trailers, once the body has ended; `None` if there are none.
    fn take_trailers(&mut self) -> Option<Message> {
        None
    }

    /// Whether any of the body was read from the wire. If so, the rest is no longer a complete body that could be forwarded.
    fn is_body_begun(&self) -> bool;

    /// Whether the unread rest of the body must be read before the connection can carry another request.
    fn must_drain(&self, response: &Message) -> bool;

    /// How the body is received, for its `VfpAcct` record.
    fn body_source(&self) -> &'static str;

    /// Adds the headers of an error response that is made here, before VCL sees it.
    fn describe_synthetic(&self, response: &mut Message, log: &mut LogBuffer);

    /// Adds the headers that describe the framing of the response, after VCL has run. `close` is why the session ends after it.
    fn frame(&mut self, response: &mut Message, log: &mut LogBuffer, has_body: bool, close: &mut Option<CloseReason>);

    /// Accepts a response head; it is sent with the next [`Exchange::poll_send`].
    fn begin(&mut self, response: &Message, limits: SendLimits);

    /// As [`Exchange::begin`], for a status without headers or body, interim (1xx) or final.
    fn begin_bare(&mut self, status: u16, limits: SendLimits);

    /// Whether the request's body can be received while the response is sent. Then [`Exchange::poll_hear`] also tells at any
    /// time that the client has given this request up.
    fn is_duplex(&self) -> bool {
        false
    }

    /// Whether the client can be sent interim responses (1xx) with headers.
    fn takes_interim(&self) -> bool {
        false
    }

    /// As [`Exchange::begin`], for an interim response. Call it only if the client takes them, and as often as there are some.
    fn begin_interim(&mut self, _response: &Message, _limits: SendLimits) {}

    /// Whether trailers can be sent after the body of the response that has been framed.
    fn sends_trailers(&self) -> bool {
        false
    }

    /// The trailers of the response, to be sent with its end.
    fn put_trailers(&mut self, _trailers: &Message) {}

    /// Sends the rest of the head, a piece of body (perhaps empty) and, if `is_last`, the end of the response. Call it with the
    /// same piece until it is ready.
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

    /// How much was sent.
    fn sent(&self) -> Sent;

    /// How the body is sent, for its `VdpAcct` record.
    fn body_sink(&self) -> &'static str;

    /// Ready when something is heard of the client while nobody reads from it.
    fn poll_hear(&mut self, context: &mut Context<'_>) -> Poll<Heard>;

    /// Lets the client's TLS handshake go on, whose end somebody waits for. Only for transports on whose connection nobody else
    /// reads meanwhile.
    fn drive_handshake(&mut self, _context: &mut Context<'_>) {}

    /// Whether there is a connection to hand over, which a pipe needs.
    fn has_wire(&self) -> bool;

    /// Whether the client asks for nothing but a connection: to any other request than a piped one the answer is no.
    fn wants_wire(&self) -> bool {
        false
    }

    /// The connection; `None` if it is shared with other exchanges.
    fn wire(&mut self) -> Option<Wire<'_>>;
}
