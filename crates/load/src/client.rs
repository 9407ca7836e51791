//! One connection of any protocol, and what is asked over it.

use crate::failure::{Failure, Kind};
use crate::http1_client::Http1;
use crate::http2_client::Http2;
use crate::http3_client::{Door, Http3};
use crate::plan::{Plan, Protocol};
use crate::wire::Opener;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Without a body.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Host and port.
    pub authority: &'a str,
    /// More headers; a `Host` among them takes the place of the authority.
    pub headers: &'a [(String, String)],
    /// The connection is told to end with this one (HTTP/1).
    pub is_last: bool,
}

/// An answer that came whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Whether it came from a cache, as far as `X-Varnish` tells.
    pub hit: Option<bool>,
    /// Length of the body as it was sent, without framing.
    pub body_bytes: u64,
}

/// What it takes to open connections; one for each thread.
pub struct Way(Road);

enum Road {
    Http1(Opener),
    Http2(Opener, bool),
    Http3(Door),
}

impl Way {
    /// The way to a plan's target. Must be called on an event loop.
    ///
    /// # Errors
    /// No socket, or a host that cannot be named in a handshake.
    pub fn new(plan: &Plan) -> Result<Way, Failure> {
        Ok(Way(match plan.protocol {
            Protocol::Http1 => Road::Http1(Opener::new(plan, b"http/1.1")?),
            Protocol::Http2 => Road::Http2(Opener::new(plan, b"h2")?, plan.target.tls),
            Protocol::Http3 => Road::Http3(Door::new(plan)?),
        }))
    }

    /// Opens a connection. Must be called within a `LocalSet`.
    ///
    /// # Errors
    /// It was not opened.
    pub async fn open(&self) -> Result<Client, Failure> {
        Ok(Client(match &self.0 {
            Road::Http1(opener) => Spoken::Http1(Box::new(Http1::open(opener).await?)),
            Road::Http2(opener, tls) => Spoken::Http2(Http2::open(opener, *tls).await?),
            Road::Http3(door) => Spoken::Http3(Http3::open(door).await?),
        }))
    }
}

/// A connection.
pub struct Client(Spoken);

enum Spoken {
    Http1(Box<Http1>),
    Http2(Http2),
    Http3(Http3),
}

impl Client {
    /// Another hold on the same connection; `None` for HTTP/1, which takes one request at a time.
    #[must_use]
    pub fn share(&self) -> Option<Client> {
        match &self.0 {
            Spoken::Http1(_) => None,
            Spoken::Http2(client) => Some(Client(Spoken::Http2(client.clone()))),
            Spoken::Http3(client) => Some(Client(Spoken::Http3(client.clone()))),
        }
    }

    /// Whether nothing more can be asked over it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.0 {
            Spoken::Http1(client) => client.is_over,
            Spoken::Http2(client) => client.is_over(),
            Spoken::Http3(client) => client.is_over(),
        }
    }

    /// Whether any byte of the latest answer has come (HTTP/1): if not, a connection that was kept may have ended at its time.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        match &self.0 {
            Spoken::Http1(client) => client.has_begun,
            Spoken::Http2(_) | Spoken::Http3(_) => true,
        }
    }

    /// Whether the handshake took up an earlier session (TLS over TCP with HTTP/1).
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        matches!(&self.0, Spoken::Http1(client) if client.is_resumed())
    }

    /// Asks and waits for the whole answer; its body is added to `keep`, or dropped.
    ///
    /// # Errors
    /// No whole answer came. The connection of HTTP/1 is over then.
    pub async fn ask(&mut self, ask: &Ask<'_>, keep: Option<&mut Vec<u8>>) -> Result<Answer, Failure> {
        match &mut self.0 {
            Spoken::Http1(client) => client.ask(ask, keep).await,
            Spoken::Http2(client) => client.ask(ask, keep).await,
            Spoken::Http3(client) => client.ask(ask, keep).await,
        }
    }

    /// Ends the connection in good order.
    pub async fn close(self) {
        match self.0 {
            Spoken::Http1(client) => client.close().await,
            Spoken::Http2(client) => drop(client),
            Spoken::Http3(client) => client.close(),
        }
    }
}

/// The absolute form of what is asked for.
pub(crate) fn uri(ask: &Ask<'_>, scheme: &str) -> Result<http::Uri, Failure> {
    let host = ask.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let authority = host.map_or(ask.authority, |(_, value)| value.as_str());
    http::Uri::try_from([scheme, "://", authority, ask.path].concat())
        .map_err(|error| Failure::new(Kind::Protocol, format!("{}: {error}", ask.path)))
}

/// The head of a request for HTTP/2 and HTTP/3.
pub(crate) fn fields(ask: &Ask<'_>, uri: http::Uri) -> Result<http::Request<()>, Failure> {
    let mut request = http::Request::builder().method(ask.method).uri(uri);
    for (name, value) in ask.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        request = request.header(name, value);
    }
    request.body(()).map_err(|error| Failure::new(Kind::Protocol, error.to_string()))
}
