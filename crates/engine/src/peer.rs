//! The peer of a client's connection, and the listener through which it connected.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use tokio::sync::Notify;
use vcl_run::tls::TlsFacts;

/// The two ends of a client connection, and its listener. Addresses of a Unix-domain socket are `0.0.0.0:0`.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `client.ip`: the client as PROXY says, else the TCP peer.
    pub client: SocketAddr,
    /// `server.ip`: the address the client connected to, as PROXY says, else ours.
    pub server: SocketAddr,
    /// `remote.ip`: the TCP peer.
    pub remote: SocketAddr,
    /// `local.ip`: our end of the TCP connection.
    pub local: SocketAddr,
    /// Facts about the listener.
    pub listener: Rc<Listener>,
    /// Descriptor number, for `SessOpen`; −1 in memory.
    pub descriptor: i32,
    /// User and group of the peer of a Unix-domain socket, if the system reports them.
    pub credentials: Option<(u32, u32)>,
    /// The type-length-value elements of a PROXY header of version 2.
    pub proxy_elements: Option<Rc<[u8]>>,
    /// What was agreed in the TLS handshake (also that of QUIC); `None` in clear.
    pub tls: Option<Rc<TlsFacts>>,
    /// Set if requests may arrive before the TLS handshake is complete (early data).
    pub early: Option<Rc<EarlyPhase>>,
}

/// Whether a TLS handshake is still under way on a connection that has brought early data: what arrives until it ends might be
/// somebody's recording of what another client has sent (RFC 8470). Whoever owns the handshake says how it ended.
#[derive(Debug)]
pub struct EarlyPhase {
    /// How it ended: whether it is complete; `None` while it is under way.
    end: Cell<Option<bool>>,
    ended: Notify,
}

impl EarlyPhase {
    /// A handshake that is under way.
    #[must_use]
    pub fn begun() -> Rc<EarlyPhase> {
        Rc::new(EarlyPhase { end: Cell::new(None), ended: Notify::new() })
    }

    /// The handshake is complete: what came early came from this client.
    pub fn complete(&self) {
        self.end(true);
    }

    /// The handshake will never be complete. Without effect if it is.
    pub fn fail(&self) {
        self.end(false);
    }

    fn end(&self, is_complete: bool) {
        if self.end.get().is_none() {
            self.end.set(Some(is_complete));
            self.ended.notify_waiters();
        }
    }

    /// Whether the handshake is under way.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.end.get().is_none()
    }

    /// Waits for the end of the handshake: whether it is complete then.
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
#[derive(Clone, Debug)]
pub struct Listener {
    /// `-a` name; `local.socket`.
    pub name: String,
    /// Address part of `-a`; `local.endpoint`.
    pub endpoint: String,
    /// Path when it is a Unix-domain socket.
    pub path: Option<PathBuf>,
    /// Whether connections begin with a PROXY header.
    pub proxy: bool,
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Whether `ReqStart` names the scheme: that is so on every listener as soon as one of them speaks TLS.
    pub names_scheme: bool,
    /// The port of HTTP/3, to be announced in `Alt-Svc`; `None` = it is not spoken here.
    pub http3_port: Option<u16>,
}
