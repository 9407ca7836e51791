//! A session whose connection begins with a PROXY header. It opens as soon as the connection is accepted: timeouts count from
//! then on, and the log shows its start even if no header ever arrives.
//!
//! The owner of the socket reads and parses the header itself (`proxy_protocol`).

use super::http1;
use crate::context::Loop;
use crate::deadline::duration;
use crate::peer::Peer;
use crate::session::{Session, SessionEnd};
use std::net::SocketAddr;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

/// An open session that has not received its header yet.
pub struct ProxiedSession {
    session: Session,
}

/// The content of a PROXY header.
#[derive(Clone, Debug, Default)]
pub struct ProxyFacts {
    /// Version of the protocol, 1 or 2.
    pub version: u8,
    /// Client and server; `None` when the sender speaks for itself or names no addresses we can use.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// The type-length-value elements of version 2, if there are any.
    pub elements: Option<Rc<[u8]>>,
    /// Why addresses were ignored: the payload of a `ProxyGarbage` record that replaces the `Proxy` record.
    pub ignored: Option<String>,
}

impl ProxiedSession {
    /// Opens the session and logs that.
    #[must_use]
    pub fn open(context: &Loop, peer: Peer) -> ProxiedSession {
        ProxiedSession { session: Session::open(context, peer, "PROXY") }
    }

    /// The time by which the header and the first bytes of a request must have arrived.
    #[must_use]
    pub fn header_due(&self, context: &Loop) -> Instant {
        self.session.view.clock_read_at + duration(context.engine.parameters.load().timeout_idle)
    }

    /// Ends a session without a usable header. `garbage` is the payload of its `ProxyGarbage` record; empty for no record.
    pub fn refuse(self, context: &Loop, reason: CloseReason, garbage: &str) {
        if !garbage.is_empty() {
            self.session.view.log(context, Tag::ProxyGarbage, format_args!("{garbage}"));
        }
        self.session.close(context, SessionEnd::waiting(reason));
    }

    /// Serves the session until it ends, for the client that the header names. `preread` is what was received after the header.
    pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        context: Rc<Loop>,
        stream: S,
        facts: ProxyFacts,
        preread: Vec<u8>,
    ) {
        let mut session = self.session;
        let version = facts.version;
        let log = |tag, text: std::fmt::Arguments<'_>| session.view.log(&context, tag, text);
        match (facts.ignored, facts.addresses) {
            (Some(text), _) => log(Tag::ProxyGarbage, format_args!("{text}")),
            (None, Some((client, server))) => {
                let (from, to) = ((client.ip(), client.port()), (server.ip(), server.port()));
                log(Tag::Proxy, format_args!("{version} {} {} {} {}", from.0, from.1, to.0, to.1));
            }
            (None, None) => log(Tag::Proxy, format_args!("{version} local local local local")),
        }
        let mut peer = session.view.peer.clone();
        if let Some((client, server)) = facts.addresses {
            (peer.client, peer.server) = (client, server);
        }
        peer.proxy_elements = facts.elements;
        session.set_peer(peer);
        http1::serve_session(context, session, stream, preread).await;
    }
}
