//! The TLS handshake with a client: [`shake_hands`], and the handshakes under way on an event loop
//! ([`Handshakes`]).
//!
//! ```text
//! hello ─whole→ choose ─configuration→ flights ─complete→ stream
//!   └ no TLS, too long └ no certificate    └ alert, wrong certificate …
//! Each failure: an alert, and a cause for the log.
//! ```
//!
//! Untrusted input: one deadline for all of it, a limit for the first message, and one computation
//! per turn of the event loop, so that a flood of handshakes delays requests by one of them at
//! most. Next file: `tls_stream.rs`.

mod facts;

use crate::tls_stream::TlsStream;
use arc_swap::ArcSwap;
use engine::peer::EarlyPhase;
use engine::transport::poll_discard;
use facts::HelloFacts;
pub(crate) use facts::{client_certificate, has_expired};
use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::{ProtocolVersion, ServerConnection};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::limits::{
    DISMISSED_AT_ONCE_MAX, DISMISSED_IDLE_SECONDS_MIN, DISMISSED_PART, GRACEFUL_CLOSE_BYTES_MAX,
    GRACEFUL_CLOSE_SECONDS, TLS_HANDSHAKES_MAX, TLS_HELLO_BYTES_MAX,
};
use surface::parameter::Parameters;
use tls::server::{ALPN_CHALLENGE, Frontend, Refusal, ServedTls};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;

/// Longest time that a handshake may be given, in seconds.
const HANDSHAKE_SECONDS_MAX: f64 = 86_400.0;
/// Log text for a client that resumes a session with a certificate that has expired since.
pub(crate) const EXPIRED: &str = "the client's certificate has expired";

/// Time limit of a handshake, over TCP and over QUIC.
pub(crate) fn time_allowed(parameters: &Parameters) -> Duration {
    Duration::from_secs_f64(parameters.tls_handshake_timeout.clamp(0.0, HANDSHAKE_SECONDS_MAX))
}

/// Current TLS configuration. It is replaced as a whole; connections keep the one they began with.
pub type SharedTls = ArcSwap<ServedTls>;

/// TLS services for the listeners of an event loop.
#[derive(Clone)]
pub struct TlsService {
    served: Arc<SharedTls>,
    handshakes: Rc<Handshakes>,
}

impl TlsService {
    /// For one event loop.
    #[must_use]
    pub fn new(served: Arc<SharedTls>) -> TlsService {
        TlsService { served, handshakes: Rc::default() }
    }

    /// Number of handshakes under way.
    pub(crate) fn under_way(&self) -> usize {
        self.handshakes.under_way.borrow().len()
    }

    /// Ends handshakes for lack of descriptors: a part of those that have taken a while, the oldest
    /// first. Returns their number.
    pub(crate) fn give_up_oldest(&self, now: Instant) -> usize {
        self.handshakes.give_up_oldest(now)
    }

    /// Performs the handshake with a client of `listener`; see [`shake_hands`].
    pub(crate) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        io: S,
        received: Vec<u8>,
        listener: &str,
        parameters: HandshakeParameters,
    ) -> Result<Secured<S>, Failure> {
        let frontend = self.served.load().of(listener);
        shake_hands(io, received, frontend, parameters, &self.handshakes).await
    }
}

/// Parameters of one handshake.
pub(crate) struct HandshakeParameters {
    /// Deadline.
    pub(crate) due: Instant,
    /// Current time for client certificates, in seconds since 1970.
    pub(crate) now: f64,
    /// HTTP/2 is offered.
    pub(crate) http2: bool,
    /// The client's fingerprint is requested.
    pub(crate) ja3: bool,
}

/// A handshake that is complete, or whose client has sent early data.
pub(crate) struct Secured<S> {
    pub(crate) stream: TlsStream<S>,
    pub(crate) facts: TlsFacts,
    /// Requests arrive before the handshake is complete.
    pub(crate) early: Option<Rc<EarlyPhase>>,
    /// The connection was a challenge of an authority, and is over.
    pub(crate) is_challenge: bool,
}

/// A failed handshake.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The close reason of the session.
    pub(crate) reason: CloseReason,
    /// The cause, for the log.
    pub(crate) cause: String,
    /// It was ended because too many were under way.
    pub(crate) is_refused: bool,
}

impl Failure {
    fn new(reason: CloseReason, cause: impl Into<String>) -> Failure {
        Failure { reason, cause: cause.into(), is_refused: false }
    }
}

/// The handshakes under way on one event loop.
pub(crate) struct Handshakes {
    /// The oldest first.
    under_way: RefCell<VecDeque<UnderWay>>,
    /// Held while one of them computes.
    turn: Semaphore,
}

impl Default for Handshakes {
    fn default() -> Self {
        Handshakes { under_way: RefCell::default(), turn: Semaphore::new(1) }
    }
}

/// One handshake under way.
struct UnderWay {
    began_at: Instant,
    given_up: Rc<Notify>,
}

/// A handshake's place among those under way.
struct Place<'a> {
    all: &'a Handshakes,
    given_up: Rc<Notify>,
}

impl Handshakes {
    /// Begins one more handshake; the oldest is ended if there are too many.
    fn begin(&self) -> Place<'_> {
        let mut under_way = self.under_way.borrow_mut();
        if under_way.len() >= TLS_HANDSHAKES_MAX
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.given_up.notify_one();
        }
        let given_up = Rc::new(Notify::new());
        under_way.push_back(UnderWay { began_at: Instant::now(), given_up: Rc::clone(&given_up) });
        Place { all: self, given_up }
    }

    fn give_up_oldest(&self, now: Instant) -> usize {
        let mut under_way = self.under_way.borrow_mut();
        let while_ago = Duration::from_secs(DISMISSED_IDLE_SECONDS_MIN);
        let old = under_way.partition_point(|one| now.duration_since(one.began_at) >= while_ago);
        let most = (old / DISMISSED_PART).clamp(1, DISMISSED_AT_ONCE_MAX).min(old);
        under_way.drain(..most).for_each(|one| one.given_up.notify_one());
        most
    }

    /// Does `work` after those that wait already; then the loop's other tasks get a turn.
    async fn compute<T>(&self, work: impl FnOnce() -> T) -> T {
        let turn = self.turn.acquire().await;
        let done = work();
        if self.under_way.borrow().len() > 1 {
            tokio::task::yield_now().await;
        }
        drop(turn);
        done
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut under_way = self.all.under_way.borrow_mut();
        // Nearly always one of the first: the oldest take longest.
        if let Some(place) = under_way.iter().position(|one| Rc::ptr_eq(&one.given_up, &self.given_up)) {
            under_way.remove(place);
        }
    }
}

/// Performs the handshake with a client. `received` are bytes that were read already.
///
/// # Errors
/// See [`Failure`]. The client has received an alert if TLS defines one for the failure.
pub(crate) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    io: S,
    received: Vec<u8>,
    frontend: Option<Arc<Frontend>>,
    parameters: HandshakeParameters,
    handshakes: &Handshakes,
) -> Result<Secured<S>, Failure> {
    let place = handshakes.begin();
    let due = parameters.due;
    tokio::select! {
        done = tokio::time::timeout_at(due, negotiate(io, received, frontend, parameters, handshakes)) => match done {
            Ok(done) => done,
            Err(_) => Err(Failure::new(CloseReason::RxTimeout, "tls_handshake_timeout passed")),
        },
        () = place.given_up.notified() => Err(Failure {
            is_refused: true,
            ..Failure::new(CloseReason::Overload, "too many handshakes in progress")
        }),
    }
}

async fn negotiate<S: AsyncRead + AsyncWrite + Unpin>(
    mut io: S,
    received: Vec<u8>,
    frontend: Option<Arc<Frontend>>,
    parameters: HandshakeParameters,
    handshakes: &Handshakes,
) -> Result<Secured<S>, Failure> {
    let due = parameters.due;
    let (accepted, received, seen) = read_hello(&mut io, received, due).await?;
    let hello = HelloFacts::new(&accepted.client_hello(), parameters.ja3.then_some(&received));
    let chosen = match &frontend {
        Some(frontend) => frontend.choose(&accepted.client_hello(), parameters.http2),
        None => Err(Refusal::NoCertificates),
    };
    let (Some(frontend), Ok(config)) = (&frontend, &chosen) else {
        let refusal = chosen.err().unwrap_or(Refusal::NoCertificates);
        send(&mut io, &alert(refusal.alert()), due).await;
        let name = hello.server_name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        return Err(Failure::new(CloseReason::RxBad, format!("{refusal}{name}")));
    };
    let begun = handshakes.compute(|| accepted.into_connection(Arc::clone(config))).await;
    let mut session = match begun {
        Ok(session) => Box::new(session),
        Err((error, alert)) => {
            send_alert(&mut io, alert, due).await;
            return Err(broken(&error));
        }
    };
    let rest = received.get(seen..).unwrap_or_default().to_vec();
    drop(received);
    complete(&mut io, &mut session, handshakes, rest, due).await?;
    if session.peer_certificates().is_some_and(|chain| has_expired(chain, parameters.now)) {
        // TLS has no alert of its own for this.
        session.send_close_notify();
        let _ = flush(&mut io, &mut session).await;
        part(&mut io, due).await;
        return Err(Failure::new(CloseReason::RxBad, EXPIRED));
    }
    let facts = hello.agreed(&session, frontend);
    let early = session.is_handshaking().then(EarlyPhase::begun);
    let is_challenge = session.alpn_protocol() == Some(ALPN_CHALLENGE);
    Ok(Secured {
        stream: TlsStream::new(io, session, early.clone().map(|phase| (phase, due))),
        facts,
        early,
        is_challenge,
    })
}

/// Reads until the first message is complete. Returns all bytes read so far, too, and the number of
/// those that rustls has consumed.
async fn read_hello<S: AsyncRead + AsyncWrite + Unpin>(
    io: &mut S,
    mut received: Vec<u8>,
    due: Instant,
) -> Result<(Accepted, Vec<u8>, usize), Failure> {
    let mut acceptor = Acceptor::default();
    let mut seen = 0;
    loop {
        if received.first().is_some_and(u8::is_ascii_uppercase) {
            send(io, IN_CLEAR, due).await;
            return Err(Failure::new(CloseReason::RxJunk, "this is HTTP in clear"));
        }
        while seen < received.len() {
            let count = acceptor.read_tls(&mut &received[seen..]);
            seen += count.map_err(|_| Failure::new(CloseReason::RxOverflow, "ClientHello too long"))?;
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Ok((accepted, received, seen)),
                Err((error, alert)) => {
                    send_alert(io, alert, due).await;
                    return Err(broken(&error));
                }
            }
        }
        if received.len() >= TLS_HELLO_BYTES_MAX {
            return Err(Failure::new(CloseReason::RxOverflow, "ClientHello too long"));
        }
        match io.read_buf(&mut received).await {
            Ok(0) | Err(_) => return Err(Failure::new(CloseReason::RemClose, "the client closed")),
            Ok(_) => {}
        }
    }
}

/// Exchanges flights until the handshake is complete, or early data may arrive that need not wait
/// for it. `received` are bytes after the first message.
async fn complete<S: AsyncRead + AsyncWrite + Unpin>(
    io: &mut S,
    session: &mut ServerConnection,
    handshakes: &Handshakes,
    mut received: Vec<u8>,
    due: Instant,
) -> Result<(), Failure> {
    let closed = || Failure::new(CloseReason::RemClose, "the client closed");
    loop {
        let processed = handshakes.compute(|| process(session, &received)).await;
        if let Err(error) = processed {
            let _ = flush(io, session).await;
            part(io, due).await;
            return Err(broken(&error));
        }
        // In TLS 1.3 only tickets remain to be sent then: they are sent with the response, or in
        // the first pause.
        if !session.is_handshaking() && session.protocol_version() == Some(ProtocolVersion::TLSv1_3) {
            return Ok(());
        }
        if session.wants_write() {
            flush(io, session).await.map_err(|_| closed())?;
        }
        if !session.is_handshaking() {
            return Ok(());
        }
        if session.early_data().is_some() {
            return Ok(());
        }
        received.clear();
        received.reserve(READ_BYTES);
        match io.read_buf(&mut received).await {
            Ok(0) | Err(_) => return Err(closed()),
            Ok(_) => {}
        }
    }
}

/// Most bytes read at a time.
const READ_BYTES: usize = 4 << 10;

/// Processes received bytes, after those that remained from before.
fn process(session: &mut ServerConnection, mut bytes: &[u8]) -> Result<(), rustls::Error> {
    loop {
        if !bytes.is_empty() {
            session.read_tls(&mut bytes).map_err(|error| rustls::Error::General(error.to_string()))?;
        }
        session.process_new_packets()?;
        if bytes.is_empty() {
            return Ok(());
        }
    }
}

/// Sends the pending output of the session.
async fn flush<S: AsyncWrite + Unpin>(io: &mut S, session: &mut ServerConnection) -> io::Result<()> {
    let mut flight = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut flight)?;
    }
    io.write_all(&flight).await?;
    io.flush().await
}

/// The answer to a client that sends plain HTTP to a TLS port.
const IN_CLEAR: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 37\r\n\
    Connection: close\r\n\r\nThis port speaks HTTPS, and not HTTP\n";

/// Sends bytes on a connection that ends anyway; a failure to deliver them is ignored.
async fn send<S: AsyncRead + AsyncWrite + Unpin>(io: &mut S, bytes: &[u8], due: Instant) {
    let _ = io.write_all(bytes).await;
    part(io, due).await;
}

async fn send_alert<S: AsyncRead + AsyncWrite + Unpin>(io: &mut S, mut alert: AcceptedAlert, due: Instant) {
    let mut bytes = Vec::new();
    let _ = alert.write_all(&mut bytes as &mut dyn Write);
    send(io, &bytes, due).await;
}

/// Stops sending, and reads for a while: closing a connection with unread bytes would reset it, and
/// the client would lose the last alert or response.
async fn part<S: AsyncRead + AsyncWrite + Unpin>(io: &mut S, due: Instant) {
    let _ = io.shutdown().await;
    let mut bytes_left = GRACEFUL_CLOSE_BYTES_MAX;
    let due = due.min(Instant::now() + Duration::from_secs(GRACEFUL_CLOSE_SECONDS));
    let discarded = async {
        while bytes_left > 0
            && let count @ 1.. = poll_fn(|context| poll_discard(io, context)).await
        {
            bytes_left = bytes_left.saturating_sub(count);
        }
    };
    let _ = tokio::time::timeout_at(due, discarded).await;
}

/// A fatal alert without encryption. Source: RFC 8446 §5.1, §6.
fn alert(number: u8) -> [u8; 7] {
    [21, 3, 3, 0, 2, 2, number]
}

/// Log text and close reason for an error.
fn broken(error: &rustls::Error) -> Failure {
    let reason = match error {
        rustls::Error::AlertReceived(_) => CloseReason::RemClose,
        rustls::Error::InvalidMessage(_) => CloseReason::RxJunk,
        _ => CloseReason::RxBad,
    };
    Failure::new(reason, error.to_string())
}

#[cfg(test)]
mod tests;
