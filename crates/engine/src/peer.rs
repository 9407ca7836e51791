//! The peer of a client's connection, and the listener through which it connected.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

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
}

impl Peer {
    /// The connection as VMODs see it.
    pub(crate) fn connection(&self) -> vmods::ClientConnection<'_> {
        vmods::ClientConnection {
            client: self.client,
            is_unix: self.listener.path.is_some(),
            credentials: self.credentials,
            proxy_elements: self.proxy_elements.as_deref().unwrap_or(&[]),
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
}
