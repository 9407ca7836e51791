//! Accepting clients on one event loop.
//!
//! Every loop has its own listening socket (SO_REUSEPORT) and keeps each connection it accepts; nothing is handed to
//! another thread. The manager owns the descriptors: closing ours ends nothing, and connections wait in the kernel while
//! no worker runs.

use crate::accepted::AcceptedOptions;
use crate::descriptors::Complaints;
use crate::handshake::{Secured, Terms, TlsService, time_allowed};
use crate::options::{Connected, ConnectedSockets};
use engine::context::Loop;
use engine::peer::{Listener, Peer};
use engine::transport::{OpeningSession, ProxyFacts, Speaks};
use proxy_protocol::Parsed;
use shm::log::LogId;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
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

/// How long the debug bit `slow_acceptor` makes clients wait after the worker has started.
const SLOW_START: Duration = Duration::from_secs(2);

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
    /// When the descriptor is not a listening socket.
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

/// Accepts until the task is dropped. Every connection becomes a task of this loop, and is in `sockets` while it is
/// open.
pub async fn accept_loop(context: Rc<Loop>, listening: ListenSocket, sockets: Rc<ConnectedSockets>) {
    let listener = listening.listener;
    let mut pause = 0.0;
    let mut options = AcceptedOptions::default();
    if let Socket::Tcp { socket, .. } = &listening.socket {
        options.set(socket, &context.engine.parameters.load());
    }
    if context.engine.parameters.load().debug & debug::SLOW_ACCEPTOR != 0 {
        tokio::time::sleep(SLOW_START).await;
    }
    loop {
        let accepted = match &listening.socket {
            Socket::Tcp { socket, local } => match accept(socket, &mut options).await {
                Ok((stream, remote)) => {
                    let local =
                        if local.ip().is_unspecified() { stream.local_addr().unwrap_or(*local) } else { *local };
                    options.prepare(socket, &stream, &context.engine.parameters.load());
                    let descriptor = stream.as_raw_fd();
                    let stream = Connected::new(&sockets, stream);
                    spawn(&context, stream, ends(&listener, remote, local, descriptor), &listening.tls);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Socket::Unix(socket) => match socket.accept().await {
                Ok((stream, _)) => {
                    let mut peer = ends(&listener, NO_ADDRESS, NO_ADDRESS, stream.as_raw_fd());
                    peer.credentials = stream.peer_cred().ok().map(|peer| (peer.uid(), peer.gid()));
                    spawn(&context, Connected::new(&sockets, stream), peer, &listening.tls);
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        let parameters = context.engine.parameters.load();
        match accepted {
            Ok(()) => pause *= parameters.acceptor_sleep_decay,
            Err(error) => {
                count_failure(&context, &listener, &error);
                listening.complaints.hear(&error, context.clock.now());
                pause = (pause + parameters.acceptor_sleep_incr.max(0.001)).min(parameters.acceptor_sleep_max);
                tokio::time::sleep(Duration::from_secs_f64(pause)).await;
            }
        }
    }
}

/// Accepts the next connection; notes when there is none in the queue.
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

fn ends(listener: &Rc<Listener>, remote: SocketAddr, local: SocketAddr, descriptor: RawFd) -> Peer {
    Peer {
        client: remote,
        server: local,
        remote,
        local,
        listener: Rc::clone(listener),
        descriptor,
        credentials: None,
        proxy_elements: None,
        tls: None,
        early: None,
    }
}

fn spawn<S>(context: &Rc<Loop>, stream: S, peer: Peer, tls: &TlsService)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    context.count(Main::SessConn);
    let context = Rc::clone(context);
    if peer.listener.tls {
        // In a box, and what follows in another: an idle session is not to have room for its handshake.
        let opening = Box::pin(open_encrypted(context, stream, peer, tls.clone()));
        tokio::task::spawn_local(async move {
            if let Some(serving) = opening.await {
                serving.await;
            }
        });
    } else if peer.listener.proxy {
        tokio::task::spawn_local(serve_proxied(context, stream, peer));
    } else {
        tokio::task::spawn_local(engine::transport::serve(context, stream, peer, Vec::new(), Speaks::Either));
    }
}

/// Shakes hands, behind a PROXY header where there is to be one. Returns what serves the session, unless that is over.
async fn open_encrypted<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    context: Rc<Loop>,
    mut stream: S,
    peer: Peer,
    tls: TlsService,
) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
    let listener = Rc::clone(&peer.listener);
    let mut session = OpeningSession::open(&context, peer, if listener.proxy { "PROXY" } else { "HTTP/1" });
    let terms = {
        let parameters = context.engine.parameters.load();
        Terms {
            due: session.opened_at() + time_allowed(&parameters),
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
    match tls.shake_hands(stream, received, &listener.name, terms).await {
        Ok(Secured { is_challenge: true, facts, .. }) => {
            session.hear_tls(&context, facts, None);
            session.end_with_handshake(&context);
            None
        }
        Ok(Secured { stream, facts, early, is_challenge: false }) => {
            let is_http2 = facts.alpn.as_deref() == Some("h2");
            session.hear_tls(&context, facts, early);
            let speaks = if is_http2 { Speaks::Http2 } else { Speaks::Either };
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
            session.serve(context, stream, received, Speaks::Either).await;
        }
        Err((reason, garbage)) => session.refuse(&context, reason, &garbage),
    }
}

/// Reads the PROXY header. Returns it with the bytes that follow it, or why the session ends and what the log says of that.
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
