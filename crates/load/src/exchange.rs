//! A request and its answer, in the form that all protocols share.

use crate::failure::{Failure, Kind};

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// A method without a body.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Host and port.
    pub authority: &'a str,
    /// More headers; a `Host` among them replaces the authority.
    pub headers: &'a [(String, String)],
    /// True if the request announces the end of the connection (HTTP/1).
    pub is_last: bool,
}

/// A complete answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// True if it came from a cache; `None` if `X-Varnish` does not show it.
    pub hit: Option<bool>,
    /// Length of the body as sent, without framing.
    pub body_bytes: u64,
}

/// The absolute form of the requested URL.
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

/// Varnish and Copal name two transactions if the second one fetched the object.
pub(crate) fn is_hit(value: &[u8]) -> bool {
    value.trim_ascii().contains(&b' ')
}
