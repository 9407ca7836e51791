//! The peer of a client's connection, and the listener through which it connected.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::sync::Notify;
use vcl_run::tls::TlsFacts;

/// The two ends of a client connection, and its listener. Addresses of a Unix-domain socket are
/// `0.0.0.0:0`.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `client.ip`: the client according to PROXY, else the TCP peer.
    pub client: SocketAddr,
    /// `server.ip`: the address that the client connected to, according to PROXY, else the local
    /// one.
    pub server: SocketAddr,
    /// `remote.ip`: the TCP peer.
    pub remote: SocketAddr,
    /// `local.ip`: the local end of the TCP connection.
    pub local: SocketAddr,
    /// Facts about the listener.
    pub listener: Rc<Listener>,
    /// Descriptor number, for `SessOpen`; −1 in memory.
    pub descriptor: i32,
    /// User and group of the peer of a Unix-domain socket, if the system reports them.
    pub credentials: Option<(u32, u32)>,
    /// The type-length-value elements of a PROXY header of version 2.
    pub proxy_elements: Option<Rc<[u8]>>,
    /// TLS parameters of the handshake (also that of QUIC); `None` in clear.
    pub tls: Option<Rc<TlsFacts>>,
    /// Set if requests may arrive before the TLS handshake is complete (early data).
    pub early: Option<Rc<EarlyPhase>>,
}

/// State of a TLS handshake on a connection that has received early data: bytes that arrive until
/// its end may be a replay of another client's (RFC 8470). The owner of the handshake reports its
/// end.
#[derive(Debug)]
pub struct EarlyPhase {
    /// End of the handshake: true if it is complete; `None` while it is under way.
    end: Cell<Option<bool>>,
    ended: Notify,
}

impl EarlyPhase {
    /// Creates the state of a handshake that is under way.
    #[must_use]
    pub fn begun() -> Rc<EarlyPhase> {
        Rc::new(EarlyPhase { end: Cell::new(None), ended: Notify::new() })
    }

    /// Marks the handshake as complete: the early data was sent by this client.
    pub fn complete(&self) {
        self.end(true);
    }

    /// Marks that the handshake will never be complete. Without effect if it is.
    pub fn fail(&self) {
        self.end(false);
    }

    fn end(&self, is_complete: bool) {
        if self.end.get().is_none() {
            self.end.set(Some(is_complete));
            self.ended.notify_waiters();
        }
    }

    /// True if the handshake is under way.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.end.get().is_none()
    }

    /// Waits for the end of the handshake: true if it is complete then.
    pub async fn ended(&self) -> bool {
        loop {
            if let Some(is_complete) = self.end.get() {
                return is_complete;
            }
            self.ended.notified().await;
        }
    }
}

impl Peer {
    /// A connection in clear and without a PROXY header, of which nothing else is known.
    #[must_use]
    pub fn direct(listener: Rc<Listener>, client: SocketAddr, server: SocketAddr, descriptor: i32) -> Peer {
        Peer {
            client,
            server,
            remote: client,
            local: server,
            listener,
            descriptor,
            credentials: None,
            proxy_elements: None,
            tls: None,
            early: None,
        }
    }

    /// The connection as VMODs see it.
    pub(crate) fn connection(&self) -> vmods::ClientConnection<'_> {
        vmods::ClientConnection {
            client: self.client,
            is_unix: self.listener.path.is_some(),
            credentials: self.credentials,
            proxy_elements: self.proxy_elements.as_deref().unwrap_or(&[]),
            tls: self.tls.as_deref(),
            is_early: self.early.as_ref().is_some_and(|phase| phase.is_under_way()),
        }
    }
}

/// A listening address.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// `-a` name; `local.socket`.
    pub name: String,
    /// Address part of `-a`; `local.endpoint`.
    pub endpoint: String,
    /// Path when it is a Unix-domain socket.
    pub path: Option<PathBuf>,
    /// Connections begin with a PROXY header.
    pub proxy: bool,
    /// The listener uses TLS.
    pub tls: bool,
    /// `ReqStart` has the scheme: this applies to every listener as soon as one of them uses TLS.
    pub names_scheme: bool,
    /// The port of https that requests in clear are redirected to; `None` = they are served.
    pub redirect_port: Option<u16>,
    /// The port of HTTP/3, to be announced in `Alt-Svc`; `None` = not supported here.
    pub http3_port: Option<u16>,
}
