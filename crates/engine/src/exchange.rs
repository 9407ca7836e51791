//! One request and its response, as a transport hands them to the request machine: [`Exchange`], and [`run`], which takes one
//! through its life.
//!
//! The machine knows no wire. What it gets of one is the head, a body to read, and something to write a response to; how bytes
//! are framed, what `Connection` and `Expect` mean, how the next request follows on the same connection, are the transport's.
//! HTTP/1 is one (`transport/http1.rs`); a stream of another protocol, or a page that includes a fragment, are others.
//!
//! What waits is polled, so that a transport is used behind `dyn` without a box, and the machine is compiled once. Several
//! exchanges of one connection may run at once: each has its own [`Exchange`], [`SessionView`] and [`Request`].
//!
//! *Invariant:* a panic costs one exchange: what it had is thrown away, and its client gets a 500 unless it has had anything.
//! Next file: `request.rs`.

use crate::caught::caught;
use crate::context::Loop;
use crate::request::{Run, Task};
use crate::session::SessionView;
use message::Message;
use shm::log::{LogBuffer, LogId};
use std::rc::Rc;
use std::task::{Context, Poll};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

pub use crate::request::Request;

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

/// What an exchange came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Why the session is to end after it; `None` when it may go on.
    pub close: Option<CloseReason>,
    /// The request panicked: throw it away.
    pub is_ruined: bool,
}

/// Takes an exchange through its life. The head lies in the request ([`Request::head`]), which has arrived
/// ([`Request::arrive`]).
pub async fn run(
    context: &Rc<Loop>,
    session: &mut SessionView,
    exchange: &mut dyn Exchange,
    request: &mut Request,
) -> Outcome {
    let _work = context.work();
    begin(context, session, request);
    let is_answered = match caught(live(context, session, exchange, request)).await {
        Ok(()) => return Outcome { close: request.task.life.close, is_ruined: false },
        Err(panic) => {
            context.engine.panics.tell(&panic);
            context.count(Main::ClientResp500);
            request.log.record_parts(Tag::Error, &[b"Panic: ", panic.as_bytes()]);
            request.task.life.is_answered
        }
    };
    // Nothing of it can be trusted.
    request.task = Task::default();
    request.task.settings = (&**context.engine.parameters.load()).into();
    let mut run = Run { context, session, exchange, request };
    if !is_answered {
        run.send_bare(500).await;
    }
    run.finish();
    Outcome { close: Some(CloseReason::TxError), is_ruined: true }
}

async fn live(context: &Rc<Loop>, session: &mut SessionView, exchange: &mut dyn Exchange, request: &mut Request) {
    match exchange.open(&mut request.task.request, &mut request.log) {
        Ok(announced) => {
            request.task.life.protocol = exchange.protocol();
            request.task.life.body = announced.into();
            request.vcl.clone_from(&context.engine.vcl.load().active);
            if let Some(vcl) = &request.vcl {
                request.log.record(Tag::VCLUse, vcl.name.as_bytes());
            }
            Run { context, session, exchange, request }.run().await;
        }
        Err(malformed) => refuse(context, session, exchange, request, &malformed).await,
    }
}

/// Gives the request its transaction.
fn begin(context: &Loop, session: &SessionView, request: &mut Request) {
    let vxid = context.engine.vxids.next();
    let mut number = itoa::Buffer::new();
    let life = &mut request.task.life;
    life.vxid = vxid;
    life.previous = life.received_at;
    let mut link = [0; 32];
    let link = joined(&mut link, &[b"req ", number.format(vxid).as_bytes(), b" rxreq"]);
    context.engine.ring.write(Tag::Link, LogId::client(session.vxid), link);
    let log = &mut request.log;
    log.start(LogId::client(vxid), life.started);
    log.record_parts(Tag::Begin, &[b"req ", number.format(session.vxid).as_bytes(), b" rxreq"]);
    log.timestamp("Start", life.started);
    log.timestamp("Req", life.received_at);
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

/// Answers what is not HTTP with a bare 400 and has the session close.
async fn refuse(
    context: &Rc<Loop>,
    session: &mut SessionView,
    exchange: &mut dyn Exchange,
    request: &mut Request,
    malformed: &Malformed,
) {
    if let Some(text) = &malformed.bogo_header {
        request.log.record(Tag::BogoHeader, text.as_bytes());
    }
    let garbage = exchange.garbage();
    request.log.record(Tag::HttpGarbage, garbage);
    request.task.life.account.request_head = garbage.len() as u64;
    context.count(Main::ClientReq400);
    request.task.life.close = Some(CloseReason::RxJunk);
    let mut run = Run { context, session, exchange, request };
    match &malformed.limit {
        Some(details) => run.why(Reason::RequestTooLarge, details.as_bytes()),
        None => run.why(Reason::BadRequest, b""),
    }
    run.send_bare(400).await;
    run.finish();
}
