//! A session whose connection begins with bytes other than HTTP: a PROXY header, a TLS handshake,
//! or both. It opens as soon as the connection is accepted: timeouts count from then on, and the
//! log shows its start even if nothing more ever arrives.
//!
//! The owner of the socket reads the header (`proxy_protocol`) and performs the handshake (`tls`).

use super::detect::{self, FirstProtocol};
use super::http3::{self, quic::Connection};
use crate::context::Loop;
use crate::deadline::duration;
use crate::peer::{EarlyPhase, Peer};
use crate::session::{Session, SessionEnd};
use futures_util::future::Either;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;

/// A session that is open and not being served yet.
pub struct OpeningSession {
    session: Session,
}

/// The content of a PROXY header.
#[derive(Clone, Debug, Default)]
pub struct ProxyFacts {
    /// Version of the protocol, 1 or 2.
    pub version: u8,
    /// Client and server; `None` if the sender connects on its own behalf or names no usable
    /// addresses.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// The type-length-value elements of version 2, if there are any.
    pub elements: Option<Rc<[u8]>>,
    /// Reason why addresses were ignored: the payload of a `ProxyGarbage` record that replaces the
    /// `Proxy` record.
    pub ignored: Option<String>,
}

impl OpeningSession {
    /// Opens the session and logs that. `kind` is the beginning of the connection: `PROXY`, or
    /// `HTTP/1` for TLS without it.
    #[must_use]
    pub fn open(context: &Loop, peer: Peer, kind: &str) -> OpeningSession {
        OpeningSession { session: Session::open(context, peer, kind) }
    }

    /// Time when the session opened.
    #[must_use]
    pub fn opened_at(&self) -> Instant {
        self.session.view.clock_read_at
    }

    /// Deadline for a PROXY header and the first bytes of a request.
    #[must_use]
    pub fn header_due(&self, context: &Loop) -> Instant {
        self.opened_at() + duration(context.engine.parameters.load().timeout_idle)
    }

    /// Ends a session without a usable header. `garbage` is the payload of its `ProxyGarbage`
    /// record; empty for no record.
    pub fn refuse(self, context: &Loop, reason: CloseReason, garbage: &str) {
        if !garbage.is_empty() {
            self.session.view.log(context, Tag::ProxyGarbage, format_args!("{garbage}"));
        }
        self.session.close(context, SessionEnd::waiting(reason));
    }

    /// Logs client and server as named by a header.
    pub fn name_ends(&self, context: &Loop, version: u8, (client, server): (SocketAddr, SocketAddr)) {
        let (from, to) = ((client.ip(), client.port()), (server.ip(), server.port()));
        let text = format_args!("{version} {} {} {} {}", from.0, from.1, to.0, to.1);
        self.session.view.log(context, Tag::Proxy, text);
    }

    /// Handles a received header: the session continues with the client that it names.
    pub fn hear_proxy(&mut self, context: &Loop, facts: ProxyFacts) {
        let version = facts.version;
        let log = |tag, text: std::fmt::Arguments<'_>| self.session.view.log(context, tag, text);
        match (facts.ignored, facts.addresses) {
            (Some(text), _) => log(Tag::ProxyGarbage, format_args!("{text}")),
            (None, Some(addresses)) => self.name_ends(context, version, addresses),
            (None, None) => log(Tag::Proxy, format_args!("{version} local local local local")),
        }
        let mut peer = self.session.view.peer.clone();
        if let Some((client, server)) = facts.addresses {
            (peer.client, peer.server) = (client, server);
        }
        peer.proxy_elements = facts.elements;
        self.session.set_peer(context, peer);
    }

    /// Handles a handshake that is complete, or will be once the `early` phase ends. From now on
    /// the time limit of the client's first request counts.
    pub fn hear_tls(&mut self, context: &Loop, facts: TlsFacts, early: Option<Rc<EarlyPhase>>) {
        let record = facts.record(early.is_some());
        self.session.view.log(context, Tag::TLS, format_args!("{record}"));
        context.count(Main::TlsHandshakes);
        if facts.is_resumed {
            context.count(Main::TlsResumed);
        }
        let mut peer = self.session.view.peer.clone();
        peer.tls = Some(Rc::new(facts));
        peer.early = early;
        self.session.set_peer(context, peer);
        self.session.view.now(context);
    }

    /// Ends a session whose connection existed only for its handshake: the challenge of a
    /// certificate authority.
    pub fn end_with_handshake(self, context: &Loop) {
        self.session.close(context, SessionEnd::waiting(CloseReason::RespClose));
    }

    /// Ends a session whose handshake failed; `cause` is for the log. `is_refused` means that it
    /// was cancelled in favour of others.
    pub fn fail_handshake(self, context: &Loop, reason: CloseReason, cause: &str, is_refused: bool) {
        context.count(Main::TlsFailed);
        if is_refused {
            context.count(Main::TlsRefused);
        }
        self.session.view.log(context, Tag::TLS, format_args!("failed: {cause}"));
        self.session.close(context, SessionEnd::waiting(reason));
    }

    /// Serves the session over QUIC until it ends, for the client that [`OpeningSession::hear_tls`]
    /// was called with. It takes no more requests once `leaving` is ready.
    pub async fn serve_http3<C: Connection>(self, context: Rc<Loop>, connection: C, leaving: impl Future<Output = ()>) {
        http3::serve(context, self.session, connection, leaving).await;
    }

    /// Serves the session until it ends. `preread` are bytes already read. Boxed, since the size of
    /// the future depends on the client's protocol.
    pub fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
        self,
        context: Rc<Loop>,
        stream: S,
        preread: Vec<u8>,
        speaks: FirstProtocol,
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        match detect::serve(context, self.session, stream, preread, speaks) {
            Either::Left(serving) => Box::pin(serving),
            Either::Right(serving) => serving,
        }
    }
}
