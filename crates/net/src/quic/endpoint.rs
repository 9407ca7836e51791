//! QUIC endpoint of one event loop: admission, handshake and service of its clients.
//!
//! ```text
//! first datagram ─┬ too many connections, or too many handshakes → ignored
//!                 ├ many handshakes, address not proven          → Retry
//!                 └ handshake ─┬ complete → session
//!                              └ failed, or tls_handshake_timeout passed
//! ```
//!
//! *Invariant:* handshakes, connections, streams and windows of each are bounded
//! (`surface::limits`), so memory held for unauthenticated peers is, too.

use super::ids::{LoopIds, WorkerIds};
use super::socket::{LoopSocket, Mailboxes};
use super::streams::{Connection, SendRoom};
use crate::handshake::{EXPIRED, client_certificate, has_expired, time_allowed};
use engine::context::Loop;
use engine::peer::{EarlyPhase, Listener, Peer};
use engine::transport::OpeningSession;
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{
    ConnectionError, EndpointConfig, IdleTimeout, Incoming, ServerConfig, TokioRuntime, TransportConfig, VarInt,
    ZeroRttAccepted,
};
use rustls::pki_types::CertificateDer;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::{
    HTTP3_STREAMS_BESIDE_MAX, HTTP3_STREAMS_MAX, QUIC_CONNECTION_WINDOW_BYTES, QUIC_CONNECTIONS_MAX,
    QUIC_HANDSHAKES_MAX, QUIC_HANDSHAKES_TRUSTED_MAX, QUIC_RESET_MICROSECONDS_MIN, QUIC_SEND_BYTES_MIN,
    QUIC_SILENCE_SECONDS_MAX, QUIC_STREAM_WINDOW_BYTES, QUIC_WAITING_BYTES_MAX, QUIC_WAITING_BYTES_SUM_MAX,
};
use tls::quic::QuicKeys;
use tls::server::Frontend;
use tokio::sync::watch;
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;

/// TLS version of QUIC.
const TLS_VERSION: &str = "TLSv1.3";

/// Configuration that all endpoints of a port share.
#[derive(Clone)]
pub struct QuicConfiguration {
    /// The ids of this worker's connections.
    pub ids: WorkerIds,
    /// The keys of all workers.
    pub keys: Arc<QuicKeys>,
    /// Datagrams that arrived at the wrong loop.
    pub mailboxes: Mailboxes,
}

/// The endpoint of one listener on one event loop.
pub struct QuicEndpoint {
    endpoint: quinn::Endpoint,
    keys: Arc<QuicKeys>,
    local: SocketAddr,
    descriptor: i32,
    /// Set once the worker stops.
    leaving: watch::Sender<bool>,
    handshakes: Rc<Cell<usize>>,
    connections: Rc<Cell<usize>>,
    room: Rc<SendRoom>,
    /// Configuration of the latest handshake: the frontend, and the configuration made from it.
    served: RefCell<Option<(Arc<Frontend>, Arc<ServerConfig>)>>,
}

impl QuicEndpoint {
    /// Begins to receive on a UDP socket of the event loop with this number alone.
    ///
    /// # Errors
    /// It is not a UDP socket.
    pub fn new(
        context: &Loop,
        descriptor: OwnedFd,
        number: usize,
        configuration: &QuicConfiguration,
    ) -> io::Result<QuicEndpoint> {
        let (ids, keys) = (configuration.ids.of_loop(number), Arc::clone(&configuration.keys));
        let raw = descriptor.as_raw_fd();
        let counters = Arc::clone(&context.counters);
        let socket = LoopSocket::new(descriptor, ids.clone(), number, configuration.mailboxes.clone(), counters)?;
        let local = quinn::AsyncUdpSocket::local_addr(&socket)?;
        let endpoint = endpoint(socket, ids, &keys)?;
        Ok(QuicEndpoint {
            endpoint,
            keys,
            local,
            descriptor: raw,
            leaving: watch::Sender::new(false),
            handshakes: Rc::default(),
            connections: Rc::default(),
            room: Rc::default(),
            served: RefCell::new(None),
        })
    }

    /// Accepts no new clients. Existing ones may finish their requests.
    pub fn leave(&self) {
        self.endpoint.set_server_config(None);
        self.leaving.send_replace(true);
    }

    /// The handshake configuration for a frontend, from the present TLS table.
    fn config(&self, frontend: &Arc<Frontend>) -> Result<Arc<ServerConfig>, String> {
        let mut served = self.served.borrow_mut();
        if let Some((of, config)) = &*served
            && Arc::ptr_eq(of, frontend)
        {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(server_config(frontend, &self.keys)?);
        self.endpoint.set_server_config(Some((*config).clone()));
        *served = Some((Arc::clone(frontend), Arc::clone(&config)));
        Ok(config)
    }
}

/// An endpoint that does not accept clients yet.
fn endpoint(socket: LoopSocket, ids: LoopIds, keys: &QuicKeys) -> io::Result<quinn::Endpoint> {
    let mut config = EndpointConfig::new(Arc::<_>::clone(&keys.reset) as _);
    config.cid_generator(move || Box::new(ids.clone()));
    config.min_reset_interval(Duration::from_micros(QUIC_RESET_MICROSECONDS_MIN));
    quinn::Endpoint::new_with_abstract_socket(config, None, Arc::new(socket), Arc::new(TokioRuntime))
}

/// The handshake configuration of a frontend.
fn server_config(frontend: &Frontend, keys: &QuicKeys) -> Result<ServerConfig, String> {
    let crypto = QuicServerConfig::try_from(frontend.quic_config()).map_err(|error| error.to_string())?;
    let token = Arc::clone(&keys.token);
    let mut config = ServerConfig::new(Arc::new(crypto), token);
    config
        .transport_config(Arc::new(transport()))
        .max_incoming(QUIC_HANDSHAKES_MAX)
        .incoming_buffer_size(QUIC_WAITING_BYTES_MAX)
        .incoming_buffer_size_total(QUIC_WAITING_BYTES_SUM_MAX);
    Ok(config)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    let silence = VarInt::from_u32(QUIC_SILENCE_SECONDS_MAX as u32 * 1000);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(HTTP3_STREAMS_MAX as u32))
        .max_concurrent_uni_streams(VarInt::from_u32(HTTP3_STREAMS_BESIDE_MAX))
        .stream_receive_window(VarInt::from_u32(QUIC_STREAM_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(QUIC_CONNECTION_WINDOW_BYTES))
        .send_window(QUIC_SEND_BYTES_MIN)
        .max_idle_timeout(Some(IdleTimeout::from(silence)))
        .datagram_receive_buffer_size(None);
    transport
}

/// Serves new clients until the task is dropped. `frontend` returns the frontend of a handshake at
/// that moment.
pub async fn accept_loop(
    context: Rc<Loop>,
    quic: Rc<QuicEndpoint>,
    listener: Rc<Listener>,
    frontend: impl Fn() -> Option<Arc<Frontend>>,
) {
    let served = || match frontend() {
        Some(frontend) => Ok((quic.config(&frontend)?, frontend)),
        None => Err("nothing to shake hands with".to_owned()),
    };
    // No client can connect before the endpoint has a handshake configuration.
    let mut complained = false;
    while let Err(why) = served() {
        if !std::mem::replace(&mut complained, true) {
            eprintln!("listener {}: no HTTP/3: {why}", listener.name);
        }
        tokio::time::sleep(RETRY).await;
    }
    while let Some(incoming) = quic.endpoint.accept().await {
        let Some(incoming) = quic.admit(&context, incoming) else { continue };
        // The certificates may have changed since the first packet.
        let Ok((config, frontend)) = served() else { continue };
        let place = Place::take(&quic.handshakes);
        let client = Client { quic: Rc::clone(&quic), listener: Rc::clone(&listener), place };
        tokio::task::spawn_local(client.serve(Rc::clone(&context), incoming, config, frontend.has_early_data()));
    }
}

/// Time to wait for a usable certificate.
const RETRY: Duration = Duration::from_secs(1);

impl QuicEndpoint {
    /// Decides on the start of a handshake; if refused, the client was informed, or will try again.
    fn admit(&self, context: &Loop, incoming: Incoming) -> Option<Incoming> {
        let handshakes = self.handshakes.get();
        if handshakes >= QUIC_HANDSHAKES_MAX || self.connections.get() >= QUIC_CONNECTIONS_MAX {
            context.count(Main::H3HandshakesIgnored);
            incoming.ignore();
            return None;
        }
        if handshakes >= QUIC_HANDSHAKES_TRUSTED_MAX && !incoming.remote_address_validated() {
            context.count(Main::H3Retries);
            // It fails only for an address that is already validated.
            let _ = incoming.retry();
            return None;
        }
        Some(incoming)
    }
}

/// Counts a handshake or connection while it exists.
struct Place(Rc<Cell<usize>>);

impl Place {
    fn take(all: &Rc<Cell<usize>>) -> Place {
        all.set(all.get() + 1);
        Place(Rc::clone(all))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A client whose handshake may begin.
struct Client {
    quic: Rc<QuicEndpoint>,
    listener: Rc<Listener>,
    /// Its place among the handshakes.
    place: Place,
}

impl Client {
    async fn serve(self, context: Rc<Loop>, incoming: Incoming, config: Arc<ServerConfig>, has_early_data: bool) {
        let Client { quic, listener, place } = self;
        let _connection = Place::take(&quic.connections);
        let remote = canonical(incoming.remote_address());
        let local = match incoming.local_ip() {
            Some(ip) => canonical(SocketAddr::new(ip, quic.local.port())),
            None => quic.local,
        };
        let due = Instant::now() + time_allowed(&context.engine.parameters.load());
        // In a box: an idle connection must not reserve memory for it.
        let handshake =
            Box::pin(shake_hands(&context, &quic.room, incoming, config, has_early_data.then_some(due), place));
        let done = tokio::time::timeout_at(due, handshake).await;
        context.count(Main::SessConn);
        let peer = Peer::direct(listener, remote, local, quic.descriptor);
        let mut session = OpeningSession::open(&context, peer, "HTTP/3");
        let Agreed { connection, facts, early } = match done {
            Ok(Ok(Some(done))) => done,
            failed => {
                context.count(Main::H3HandshakesFailed);
                let (reason, cause) = match failed {
                    Ok(Err(error)) => (CloseReason::RxBad, error.to_string()),
                    Ok(Ok(_)) => (CloseReason::RxBad, EXPIRED.to_owned()),
                    Err(_) => (CloseReason::RxTimeout, "tls_handshake_timeout passed".to_owned()),
                };
                return session.fail_handshake(&context, reason, &cause, false);
            }
        };
        session.hear_tls(&context, facts, early);
        let mut leaving = quic.leaving.subscribe();
        let leaving = async move { drop(leaving.wait_for(|leaving| *leaving).await) };
        session.serve_http3(context, connection, leaving).await;
    }
}

/// A connection that accepts streams.
struct Agreed {
    connection: Connection,
    facts: TlsFacts,
    /// The handshake is under way.
    early: Option<Rc<EarlyPhase>>,
}

/// With early data, requests may arrive before the handshake is complete: then it continues
/// concurrently with the returned connection, and keeps its place until it is complete or its time
/// is up. `None` for a client that has resumed a session with a certificate that has expired since.
async fn shake_hands(
    context: &Rc<Loop>,
    room: &Rc<SendRoom>,
    incoming: Incoming,
    config: Arc<ServerConfig>,
    early_until: Option<Instant>,
    place: Place,
) -> Result<Option<Agreed>, ConnectionError> {
    let mut connecting = incoming.accept_with(config)?;
    let agreed = connecting.handshake_data().await?;
    let agreed = agreed.downcast::<HandshakeData>().ok();
    let Some(due) = early_until else {
        return Ok(complete(context, room, agreed.as_deref(), connecting.await?));
    };
    let (connection, mut over) = match connecting.into_0rtt() {
        Ok(begun) => begun,
        Err(connecting) => return Ok(complete(context, room, agreed.as_deref(), connecting.await?)),
    };
    // quinn does not report early data directly: either some arrives now, or the handshake ends.
    let mut serving = Connection::new(context, room, connection.clone());
    let is_early = tokio::select! {
        biased;
        _ = &mut over => false,
        () = poll_fn(|wait| serving.poll_any_stream(wait)) => true,
    };
    if !is_early {
        return match connection.close_reason() {
            Some(error) => Err(error),
            None => Ok(complete(context, room, agreed.as_deref(), connection)),
        };
    }
    let facts = facts(agreed.as_deref(), &connection, context.clock.now(), true);
    let Some(facts) = facts else { return Ok(None) };
    let phase = EarlyPhase::begun();
    tokio::task::spawn_local(see_to_the_end(Rc::clone(context), connection, over, due, Rc::clone(&phase), place));
    Ok(Some(Agreed { connection: serving, facts, early: Some(phase) }))
}

/// Result of a complete handshake; `None` as for [`shake_hands`].
fn complete(
    context: &Rc<Loop>,
    room: &Rc<SendRoom>,
    agreed: Option<&HandshakeData>,
    connection: quinn::Connection,
) -> Option<Agreed> {
    let facts = facts(agreed, &connection, context.clock.now(), false)?;
    context.count(Main::H3Handshakes);
    Some(Agreed { connection: Connection::new(context, room, connection), facts, early: None })
}

/// Waits for the end of a handshake with early data, and returns its result.
async fn see_to_the_end(
    context: Rc<Loop>,
    connection: quinn::Connection,
    over: ZeroRttAccepted,
    due: Instant,
    phase: Rc<EarlyPhase>,
    _place: Place,
) {
    if tokio::time::timeout_at(due, over).await.is_err() {
        connection.close(VarInt::from_u32(0), b"");
    }
    // The wait also ends if the connection ends before its handshake does.
    if connection.close_reason().is_none() {
        context.count(Main::H3Handshakes);
        phase.complete();
    } else {
        context.count(Main::H3HandshakesFailed);
        phase.fail();
    }
}

/// Facts about the handshake. QUIC has one version of TLS; quinn does not expose the suite, nor
/// resumption unless there was early data. `None` if the client's certificate has expired at `now`,
/// in seconds since 1970.
fn facts(
    agreed: Option<&HandshakeData>,
    connection: &quinn::Connection,
    now: f64,
    is_resumed: bool,
) -> Option<TlsFacts> {
    let identity = connection.peer_identity().and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    if identity.as_ref().is_some_and(|chain| has_expired(chain, now)) {
        return None;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into();
    Some(TlsFacts {
        version: TLS_VERSION,
        cipher: "-",
        server_name: agreed.and_then(|agreed| agreed.server_name.as_deref()).map(Into::into),
        alpn: agreed.and_then(|agreed| agreed.protocol.as_deref()).map(text),
        is_resumed,
        client_certificate: identity.and_then(|chain| client_certificate(&chain)),
        ..TlsFacts::default()
    })
}

/// An IPv4 address in its own form, on a socket for both families.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests;
