//! Accepting clients on one event loop.
//!
//! If descriptors run out, or only those reserved for other uses are left, clients wait in the
//! kernel, and idle connections are closed to make room ([`Acceptor::wait_for_room`]).
//!
//! Every loop has its own listening socket (SO_REUSEPORT) and keeps each connection it accepts;
//! none moves to another thread. The manager owns the descriptors: closing ours ends nothing, and
//! connections wait in the kernel while no worker runs.
//!
//! *Invariant:* a connection stays on the loop that accepted it, and no hit crosses threads.

use crate::accepted::AcceptedOptions;
use crate::descriptors::{Complaints, Reserve, is_lack};
use crate::handshake::{HandshakeParameters, Secured, TlsService, time_allowed};
use crate::options::{Connected, ConnectedSockets};
use engine::context::Loop;
use engine::peer::{Listener, Peer};
use engine::transport::{FirstProtocol, OpeningSession, ProxyFacts};
use proxy_protocol::Parsed;
use shm::log::LogId;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::parameter::{debug, feature};
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};

/// Time that the debug bit `slow_acceptor` makes clients wait after the worker has started.
const SLOW_START: Duration = Duration::from_secs(2);

/// Shortest pause of an acceptor that waits for a descriptor.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The address shown for both ends of a Unix-domain socket.
pub const NO_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A listening socket registered with the event loop that made it.
pub struct ListenSocket {
    listener: Rc<Listener>,
    socket: Socket,
    complaints: Arc<Complaints>,
    tls: TlsService,
}

enum Socket {
    Tcp { socket: TcpListener, local: SocketAddr },
    Unix(UnixListener),
}

impl ListenSocket {
    /// Registers a listening descriptor with the current event loop.
    ///
    /// # Errors
    /// The descriptor is not a listening socket.
    pub fn new(
        descriptor: OwnedFd,
        listener: Rc<Listener>,
        complaints: Arc<Complaints>,
        tls: TlsService,
    ) -> io::Result<ListenSocket> {
        let socket = if listener.path.is_some() {
            let socket = std::os::unix::net::UnixListener::from(descriptor);
            socket.set_nonblocking(true)?;
            Socket::Unix(UnixListener::from_std(socket)?)
        } else {
            let socket = std::net::TcpListener::from(descriptor);
            socket.set_nonblocking(true)?;
            let local = socket.local_addr()?;
            Socket::Tcp { socket: TcpListener::from_std(socket)?, local }
        };
        Ok(ListenSocket { listener, socket, complaints, tls })
    }
}

impl Socket {
    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Tcp { socket, .. } => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Accepts until the task is dropped. Every connection becomes a task of this loop, and is in
/// `sockets` while it is open.
pub async fn accept_loop(context: Rc<Loop>, listening: ListenSocket, sockets: Rc<ConnectedSockets>) {
    let mut options = AcceptedOptions::default();
    if let Socket::Tcp { socket, .. } = &listening.socket {
        options.set(socket, &context.engine.parameters.load());
    }
    if context.engine.parameters.load().debug & debug::SLOW_ACCEPTOR != 0 {
        tokio::time::sleep(SLOW_START).await;
    }
    let mut acceptor = Acceptor { context, listening, sockets, options, reserve: Reserve::new(), pause: 0.0 };
    loop {
        match acceptor.accept().await {
            Ok(newest) => {
                acceptor.pause *= acceptor.context.engine.parameters.load().acceptor_sleep_decay;
                if acceptor.reserve.is_reached(newest) {
                    acceptor.wait_for_room().await;
                }
            }
            Err(error) => {
                if is_lack(&error) {
                    acceptor.reserve.read_limit();
                    acceptor.make_room();
                }
                acceptor.fail(&error).await;
            }
        }
    }
}

/// Acceptor of one socket.
struct Acceptor {
    context: Rc<Loop>,
    listening: ListenSocket,
    sockets: Rc<ConnectedSockets>,
    options: AcceptedOptions,
    reserve: Reserve,
    /// Pause after a failure, in seconds; longer with each that follows.
    pause: f64,
}

impl Acceptor {
    /// Accepts the next connection and begins to serve it. Returns its descriptor.
    async fn accept(&mut self) -> io::Result<RawFd> {
        let ListenSocket { listener, socket, tls, .. } = &self.listening;
        match socket {
            Socket::Tcp { socket, local } => {
                let (stream, remote) = accept(socket, &mut self.options).await?;
                let local = if local.ip().is_unspecified() { stream.local_addr().unwrap_or(*local) } else { *local };
                self.options.prepare(socket, &stream, &self.context.engine.parameters.load());
                let descriptor = stream.as_raw_fd();
                let stream = Connected::new(&self.sockets, stream);
                spawn(&self.context, stream, Peer::direct(Rc::clone(listener), remote, local, descriptor), tls);
                Ok(descriptor)
            }
            Socket::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                let descriptor = stream.as_raw_fd();
                let mut peer = Peer::direct(Rc::clone(listener), NO_ADDRESS, NO_ADDRESS, descriptor);
                peer.credentials = stream.peer_cred().ok().map(|peer| (peer.uid(), peer.gid()));
                spawn(&self.context, Connected::new(&self.sockets, stream), peer, tls);
                Ok(descriptor)
            }
        }
    }

    /// Only the reserved descriptors are left: clients wait until others are free. It counts as a
    /// failure to accept if there is no connection that can be closed.
    async fn wait_for_room(&mut self) {
        let lack = io::Error::from_raw_os_error(nix::libc::EMFILE);
        while !self.reserve.has_room(self.listening.socket.descriptor()) {
            if self.make_room() == 0 {
                self.fail(&lack).await;
            } else {
                self.listening.complaints.hear(&lack, self.context.clock.now());
                tokio::time::sleep(PAUSE_MIN).await;
            }
        }
    }

    /// Closes connections of this loop that have no request, those in a handshake first. Returns
    /// their number. Sessions are not closed for a burst of handshakes that outnumbers them:
    /// handshakes get old, too.
    fn make_room(&self) -> usize {
        let now = tokio::time::Instant::now();
        let tls = &self.listening.tls;
        match tls.give_up_oldest(now) {
            0 => {
                self.context.idle_sessions.dismiss(now, tls.under_way(), |descriptor| self.sockets.hang_up(descriptor))
            }
            given_up => given_up,
        }
    }

    /// Counts and reports a failure to accept, and waits before the next attempt.
    async fn fail(&mut self, error: &io::Error) {
        count_failure(&self.context, &self.listening.listener, error);
        self.listening.complaints.hear(error, self.context.clock.now());
        let parameters = self.context.engine.parameters.load();
        self.pause = (self.pause + parameters.acceptor_sleep_incr.max(PAUSE_MIN.as_secs_f64()))
            .min(parameters.acceptor_sleep_max);
        drop(parameters);
        tokio::time::sleep(Duration::from_secs_f64(self.pause)).await;
    }
}

/// Accepts the next connection; records an empty queue.
async fn accept(socket: &TcpListener, options: &mut AcceptedOptions) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|context| {
        let accepted = socket.poll_accept(context);
        if accepted.is_pending() {
            options.settle();
        }
        accepted
    })
    .await
}

fn spawn<S>(context: &Rc<Loop>, stream: S, peer: Peer, tls: &TlsService)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    context.count(Main::SessConn);
    let context = Rc::clone(context);
    if peer.listener.tls {
        // In a box, and the session in another: an idle session must not reserve memory for its
        // handshake.
        let opening = Box::pin(open_encrypted(context, stream, peer, tls.clone()));
        tokio::task::spawn_local(async move {
            if let Some(serving) = opening.await {
                serving.await;
            }
        });
    } else if peer.listener.proxy {
        tokio::task::spawn_local(serve_proxied(context, stream, peer));
    } else {
        tokio::task::spawn_local(engine::transport::serve(context, stream, peer, Vec::new(), FirstProtocol::Either));
    }
}

/// Performs the handshake, after a PROXY header if one is expected. Returns the future that serves
/// the session, unless the session has ended.
async fn open_encrypted<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    context: Rc<Loop>,
    mut stream: S,
    peer: Peer,
    tls: TlsService,
) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
    let listener = Rc::clone(&peer.listener);
    let mut session = OpeningSession::open(&context, peer, if listener.proxy { "PROXY" } else { "HTTP/1" });
    let parameters = {
        let parameters = context.engine.parameters.load();
        HandshakeParameters {
            due: session.opened_at() + time_allowed(&parameters),
            now: context.clock.now(),
            http2: parameters.feature & feature::HTTP2 != 0,
            ja3: parameters.tls_ja3,
        }
    };
    let mut received = Vec::new();
    if listener.proxy {
        match read_proxy(&context, &session, &mut stream).await {
            Ok((facts, rest)) => {
                session.hear_proxy(&context, facts);
                received = rest;
            }
            Err((reason, garbage)) => {
                session.refuse(&context, reason, &garbage);
                return None;
            }
        }
    }
    match tls.shake_hands(stream, received, &listener.name, parameters).await {
        Ok(Secured { is_challenge: true, facts, .. }) => {
            session.hear_tls(&context, facts, None);
            session.end_with_handshake(&context);
            None
        }
        Ok(Secured { mut stream, facts, early, is_challenge: false }) => {
            stream.count_ahead(context.sent_ahead());
            let is_http2 = facts.alpn.as_deref() == Some("h2");
            session.hear_tls(&context, facts, early);
            let speaks = if is_http2 { FirstProtocol::Http2 } else { FirstProtocol::Either };
            Some(session.serve(context, stream, Vec::new(), speaks))
        }
        Err(failure) => {
            session.fail_handshake(&context, failure.reason, &failure.cause, failure.is_refused);
            None
        }
    }
}

/// Reads the PROXY header, then serves the session with the addresses it names.
async fn serve_proxied<S: AsyncRead + AsyncWrite + Unpin + 'static>(context: Rc<Loop>, mut stream: S, peer: Peer) {
    let mut session = OpeningSession::open(&context, peer, "PROXY");
    match read_proxy(&context, &session, &mut stream).await {
        Ok((facts, received)) => {
            session.hear_proxy(&context, facts);
            session.serve(context, stream, received, FirstProtocol::Either).await;
        }
        Err((reason, garbage)) => session.refuse(&context, reason, &garbage),
    }
}

/// Reads the PROXY header. Returns it with the bytes that follow it, or the close reason with its
/// text for the log.
async fn read_proxy<S: AsyncRead + Unpin>(
    context: &Loop,
    session: &OpeningSession,
    stream: &mut S,
) -> Result<(ProxyFacts, Vec<u8>), (CloseReason, String)> {
    let mut received = Vec::with_capacity(256);
    let read = async {
        loop {
            match proxy_protocol::parse(&received) {
                Parsed::Complete { header, consumed } => return Ok((header, consumed)),
                Parsed::Bad(text) => return Err((CloseReason::RxJunk, text)),
                Parsed::BadElements { addresses, text } => {
                    session.name_ends(context, 2, addresses);
                    return Err((CloseReason::RxJunk, text));
                }
                Parsed::Overflow => return Err((CloseReason::RxOverflow, String::new())),
                Parsed::Partial => match stream.read_buf(&mut received).await {
                    Ok(0) | Err(_) => return Err((CloseReason::RemClose, String::new())),
                    Ok(_) => {}
                },
            }
        }
    };
    let (header, consumed) = match tokio::time::timeout_at(session.header_due(context), read).await {
        Ok(result) => result?,
        Err(_) => return Err((CloseReason::RxTimeout, String::new())),
    };
    received.drain(..consumed);
    let facts = ProxyFacts {
        version: header.version,
        addresses: header.addresses,
        elements: (!header.elements.is_empty()).then(|| Rc::from(header.elements)),
        ignored: header.ignored,
    };
    Ok((facts, received))
}

fn count_failure(context: &Loop, listener: &Listener, error: &io::Error) {
    use nix::libc;
    context.count(Main::SessFail);
    context.count(match error.raw_os_error() {
        Some(libc::ECONNABORTED) => Main::SessFailEconnaborted,
        Some(libc::EINTR) => Main::SessFailEintr,
        Some(libc::EMFILE) => Main::SessFailEmfile,
        Some(libc::EBADF) => Main::SessFailEbadf,
        Some(libc::ENOMEM | libc::ENOBUFS) => Main::SessFailEnomem,
        _ => Main::SessFailOther,
    });
    let number = error.raw_os_error().unwrap_or(0);
    context.engine.ring.write_fmt(
        Tag::SessError,
        LogId::NONE,
        format_args!("{} {} {} -1 {number} \"{error}\"", listener.name, listener.endpoint, 0),
    );
}
