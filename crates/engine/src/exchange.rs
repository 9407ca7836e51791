//! One request and its response, as a transport hands them to the request machine: [`Exchange`].
//!
//! The machine knows no wire. What it gets of one is the head, a body to read, and something to write a response to; how bytes
//! are framed, what `Connection` and `Expect` mean, how the next request follows on the same connection, are the transport's.
//! HTTP/1 is one (`transport/http1.rs`); a stream of another protocol, or a page that includes a fragment, are others.
//!
//! What waits is polled, so that a transport is used behind `dyn` without a box, and the machine is compiled once. Several
//! exchanges of one connection may run at once: each has its own [`Exchange`], `SessionView` and `Request`. Who takes one
//! through its life is `request::run`. Next file: `request.rs`.

use message::Message;
use shm::log::LogBuffer;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// What a head announces of its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BodyAnnounced {
    /// There is none.
    #[default]
    None,
    /// So many bytes.
    Length(u64),
    /// It ends when it ends.
    Unknown,
}

impl BodyAnnounced {
    /// How many bytes, when that is said.
    #[must_use]
    pub fn length(self) -> Option<u64> {
        match self {
            BodyAnnounced::Length(bytes) => Some(bytes),
            BodyAnnounced::None | BodyAnnounced::Unknown => None,
        }
    }

    /// Whether nothing will come.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, BodyAnnounced::None | BodyAnnounced::Length(0))
    }
}

/// What came is no request.
#[derive(Clone, Debug, Default)]
pub struct Malformed {
    /// The payload of a `BogoHeader` record; `None` for none.
    pub bogo_header: Option<String>,
    /// The limit that it broke, as a detail of the reason: `limit=<parameter> max=<value>`.
    pub limit: Option<String>,
}

/// A request is answered by the transport's own rules, before VCL sees it.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// Of the answer, which has no body.
    pub status: u16,
    /// Counts it.
    pub counter: Main,
    /// Why, for the log.
    pub reason: Reason,
    /// Why the session ends with it.
    pub close: CloseReason,
}

/// The body of a request broke off: the payload of a `FetchError` record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyBroken(pub &'static str);

/// Not everything was sent: the peer is gone, or takes too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendError;

/// How long sending a response may take.
#[derive(Clone, Copy, Debug)]
pub struct SendLimits {
    /// For each write to make some progress, in seconds. That it made none is logged; sending goes on, as in Varnish.
    pub idle: f64,
    /// For everything from `since` on, in seconds, however long the origin takes for it.
    pub total: f64,
    /// When the delivery began.
    pub since: Instant,
}

/// What has gone out of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Bytes of heads; of a full head all, whatever became of it.
    pub head_bytes: u64,
    /// Bytes of body, without their framing.
    pub body_bytes: u64,
    /// Pieces of body.
    pub pieces: u64,
}

/// A byte stream in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// A connection given away to a pipe.
pub struct Wire<'a> {
    /// The connection.
    pub stream: &'a mut dyn Duplex,
    /// What was received behind the request's head.
    pub ahead: Vec<u8>,
}

/// One request and its response on some transport. The machine calls the methods of each group in their order.
pub trait Exchange {
    /// The protocol, as `req.transport` shows it: `HTTP/1`.
    fn protocol(&self) -> &'static str;

    /// Makes of the head what the machine is to see, and says what body follows.
    ///
    /// # Errors
    /// The head is malformed, or nobody can say where its body ends.
    fn open(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<BodyAnnounced, Malformed>;

    /// What was received of a request that turned out malformed, for the log.
    fn garbage(&self) -> &[u8];

    /// What the protocol demands of a request. Gives why the session ends after it, if it does.
    ///
    /// # Errors
    /// The answer that the protocol has for it.
    fn admit(&mut self, head: &mut Message, log: &mut LogBuffer) -> Result<Option<CloseReason>, Refusal>;

    /// Whether the client waits for `100 Continue`.
    fn owes_continue(&self) -> bool;

    /// The same, once.
    fn take_continue(&mut self) -> bool;

    /// Waits for bytes of the request's body: so many lie in [`Exchange::body`] then, for the caller to consume; 0 at its end. A wait
    /// that is given up loses nothing.
    fn poll_body(&mut self, context: &mut Context<'_>, idle_seconds: f64) -> Poll<Result<usize, BodyBroken>>;

    /// Received bytes of the body.
    fn body(&self) -> &[u8];

    /// So many of them were used.
    fn consume_body(&mut self, count: usize);

    /// Whether anything of the body was taken off the wire: what is left is no body that anybody could be sent.
    fn is_body_begun(&self) -> bool;

    /// Whether what nobody took of the body has to be read, for something to follow on the same connection.
    fn must_drain(&self, response: &Message) -> bool;

    /// How the body comes, for its `VfpAcct` record.
    fn body_source(&self) -> &'static str;

    /// The headers of an error made here, before VCL sees it.
    fn describe_synthetic(&self, response: &mut Message, log: &mut LogBuffer);

    /// The headers that say how the response is framed, when VCL has had its say. `close` is why the session ends after it.
    fn frame(&mut self, response: &mut Message, log: &mut LogBuffer, has_body: bool, close: &mut Option<CloseReason>);

    /// Takes a response head; it goes out with the next [`Exchange::poll_send`].
    fn begin(&mut self, response: &Message, limits: SendLimits);

    /// The same for a status without headers or body, interim (1xx) or final.
    fn begin_bare(&mut self, status: u16, limits: SendLimits);

    /// Sends what is left of the head, a piece of body (perhaps empty), and with the last one the end of the response. Call it with the
    /// same piece until it is ready.
    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
        log: &mut LogBuffer,
    ) -> Poll<Result<(), SendError>>;

    /// What has gone out.
    fn sent(&self) -> Sent;

    /// How the body goes out, for its `VdpAcct` record.
    fn body_sink(&self) -> &'static str;

    /// Ready with false when the connection breaks, with true when something comes. Compat: a client that only ends its side may still
    /// want its answer, so that is not noticed.
    fn poll_hear(&mut self, context: &mut Context<'_>) -> Poll<bool>;

    /// Whether there is a connection to give away: the right to pipe.
    fn has_wire(&self) -> bool;

    /// The connection; `None` where it is shared with others.
    fn wire(&mut self) -> Option<Wire<'_>>;
}
