//! One connection of any protocol, and the requests over it.

use crate::exchange::{Answer, Ask};
use crate::failure::Failure;
use crate::http1_client::Http1;
use crate::http2_client::Http2;
use crate::http3_client::{Door, Http3};
use crate::plan::{Plan, Protocol};
use crate::wire::Opener;

/// Resources for opening connections; one for each thread.
pub struct Connector(ConnectorKind);

enum ConnectorKind {
    Http1(Opener),
    Http2(Opener, bool),
    Http3(Door),
}

impl Connector {
    /// The way to a plan's target. Must be called on an event loop.
    ///
    /// # Errors
    /// No socket, or a host that cannot be named in a handshake.
    pub fn new(plan: &Plan) -> Result<Connector, Failure> {
        Ok(Connector(match plan.protocol {
            Protocol::Http1 => ConnectorKind::Http1(Opener::new(plan, b"http/1.1")?),
            Protocol::Http2 => ConnectorKind::Http2(Opener::new(plan, b"h2")?, plan.target.tls),
            Protocol::Http3 => ConnectorKind::Http3(Door::new(plan)?),
        }))
    }

    /// Opens a connection. Must be called within a `LocalSet`.
    ///
    /// # Errors
    /// It was not opened.
    pub async fn open(&self) -> Result<Client, Failure> {
        Ok(Client(match &self.0 {
            ConnectorKind::Http1(opener) => ClientKind::Http1(Box::new(Http1::open(opener).await?)),
            ConnectorKind::Http2(opener, tls) => ClientKind::Http2(Http2::open(opener, *tls).await?),
            ConnectorKind::Http3(door) => ClientKind::Http3(Http3::open(door).await?),
        }))
    }
}

/// A connection.
pub struct Client(ClientKind);

enum ClientKind {
    Http1(Box<Http1>),
    Http2(Http2),
    Http3(Http3),
}

impl Client {
    /// Another handle of the same connection; `None` for HTTP/1, which carries one request at a
    /// time.
    #[must_use]
    pub fn share(&self) -> Option<Client> {
        match &self.0 {
            ClientKind::Http1(_) => None,
            ClientKind::Http2(client) => Some(Client(ClientKind::Http2(client.clone()))),
            ClientKind::Http3(client) => Some(Client(ClientKind::Http3(client.clone()))),
        }
    }

    /// True if no more requests are possible over it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.0 {
            ClientKind::Http1(client) => client.is_over,
            ClientKind::Http2(client) => client.is_over(),
            ClientKind::Http3(client) => client.is_over(),
        }
    }

    /// True if any byte of the latest answer has arrived (HTTP/1): if not, a kept connection may
    /// have ended regularly.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match &self.0 {
            ClientKind::Http1(client) => client.has_begun,
            ClientKind::Http2(_) | ClientKind::Http3(_) => true,
        }
    }

    /// True if the handshake resumed an earlier session (TLS over TCP with HTTP/1).
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        matches!(&self.0, ClientKind::Http1(client) if client.is_resumed())
    }

    /// Sends a request and waits for the whole answer; its body is appended to `keep`, or dropped.
    ///
    /// # Errors
    /// No complete answer arrived. The connection of HTTP/1 is over then.
    pub async fn ask(&mut self, ask: &Ask<'_>, keep: Option<&mut Vec<u8>>) -> Result<Answer, Failure> {
        match &mut self.0 {
            ClientKind::Http1(client) => client.ask(ask, keep).await,
            ClientKind::Http2(client) => client.ask(ask, keep).await,
            ClientKind::Http3(client) => client.ask(ask, keep).await,
        }
    }

    /// Closes the connection gracefully.
    pub async fn close(self) {
        match self.0 {
            ClientKind::Http1(client) => client.close().await,
            ClientKind::Http2(client) => drop(client),
            ClientKind::Http3(client) => client.close(),
        }
    }
}
