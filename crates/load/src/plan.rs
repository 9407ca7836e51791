//! The definition of a load.

use crate::choice::Choice;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Most connections of a plan; each takes a descriptor and some memory.
pub const CONNECTIONS_MAX: usize = 200_000;
/// Most requests at a time on a connection of HTTP/2 or HTTP/3.
pub const STREAMS_MAX: usize = 1_000;
/// Most threads.
pub const THREADS_MAX: usize = 256;
/// Longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Protocol of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2: by ALPN over TLS, by prior knowledge without TLS.
    Http2,
    /// HTTP/3.
    Http3,
}

/// The server under load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// True if TLS is used.
    pub tls: bool,
    /// The host as written in the URL, for SNI.
    pub host: String,
    /// Host and port (unless it is the scheme's default): the `Host` header.
    pub authority: String,
    /// Address of the server.
    pub address: SocketAddr,
    /// Path and query, beginning with `/`.
    pub path: String,
}

impl Target {
    /// Parses a URL; a name is looked up.
    ///
    /// # Errors
    /// It is not a URL of `http` or `https`, or the name has no address.
    pub fn parse(url: &str) -> Result<Target, String> {
        let (tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(format!("'{url}' does not begin with http:// or https://")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = path.split('#').next().unwrap_or_default();
        if !is_clean(rest) {
            return Err(format!("'{url}' has blanks or control characters in it"));
        }
        if authority.contains('@') {
            return Err(format!("'{url}' names a user: use a header"));
        }
        let port_at = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
        let (host, port) = match port_at {
            None => (authority, if tls { 443 } else { 80 }),
            Some(at) => {
                let port = authority[at + 1..].parse().map_err(|_| format!("'{url}' has no such port"))?;
                (&authority[..at], port)
            }
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.is_empty() {
            return Err(format!("'{url}' has no host"));
        }
        let address = (bare, port)
            .to_socket_addrs()
            .map_err(|error| format!("{bare}: {error}"))?
            .next()
            .ok_or_else(|| format!("{bare} has no address"))?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Target { tls, host: bare.to_owned(), authority: authority.to_owned(), address, path })
    }

    /// A port on loopback, with or without TLS, whose host is `localhost`.
    #[must_use]
    pub fn local(port: u16, tls: bool) -> Target {
        Target {
            tls,
            host: "localhost".to_owned(),
            authority: format!("localhost:{port}"),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            path: "/".to_owned(),
        }
    }
}

/// True if text can occur in the first line or a header of a request without ending it.
#[must_use]
pub fn is_clean(text: &str) -> bool {
    !text.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
}

/// Rate of the requests.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Each client sends the next request after its answer.
    Closed,
    /// Requests are due at a rate.
    Open {
        /// Requests per second.
        per_second: f64,
        /// Number of requests that are due at the same time; 1 spreads them evenly.
        burst: u64,
    },
}

/// A load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server under load.
    pub target: Target,
    /// The requested paths.
    pub choice: Choice,
    /// The protocol.
    pub protocol: Protocol,
    /// `GET`, `HEAD` or another method without a body.
    pub method: String,
    /// More headers; a `Host` among them replaces the target's.
    pub headers: Vec<(String, String)>,
    /// Connections, all threads together.
    pub connections: usize,
    /// Requests at a time on each connection of HTTP/2 or HTTP/3.
    pub streams: usize,
    /// Requests before a connection is closed and replaced; `None` for the server's limit, 0 to
    /// open connections (with their handshakes) and nothing else.
    pub per_connection: Option<u64>,
    /// Connections that are opened before the load begins, answer one request, and are held to the
    /// end. HTTP/1 only.
    pub idle: usize,
    /// The rate.
    pub pace: Pace,
    /// Time before the measured time, which is not counted.
    pub warm_up: Duration,
    /// The measured time.
    pub duration: Duration,
    /// Limit of requests, which ends the load earlier.
    pub requests_max: Option<u64>,
    /// Time limit of a request, its connection included.
    pub timeout: Duration,
    /// Event loops.
    pub threads: usize,
    /// TLS sessions are resumed.
    pub resume: bool,
    /// The only correct status; `None` for any below 400.
    pub expect_status: Option<u16>,
    /// The only correct length of a body.
    pub expect_bytes: Option<u64>,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Plan {
    /// A closed loop of 50 connections over HTTP/1 for ten seconds, on one thread.
    #[must_use]
    pub fn new(target: Target) -> Plan {
        let choice = Choice::InTurn([target.path.clone()].into());
        Plan {
            target,
            choice,
            protocol: Protocol::Http1,
            method: "GET".to_owned(),
            headers: Vec::new(),
            connections: 50,
            streams: 1,
            per_connection: None,
            idle: 0,
            pace: Pace::Closed,
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(10),
            requests_max: None,
            timeout: Duration::from_secs(10),
            threads: 1,
            resume: false,
            expect_status: None,
            expect_bytes: None,
            seed: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let target = Target::parse("http://127.0.0.1:8080/a?b#c").unwrap();
        assert_eq!((target.tls, target.authority.as_str(), target.path.as_str()), (false, "127.0.0.1:8080", "/a?b"));
        let target = Target::parse("https://[::1]?q").unwrap();
        assert_eq!((target.host.as_str(), target.address.port(), target.path.as_str()), ("::1", 443, "/?q"));
        assert_eq!(Target::parse("http://127.0.0.1").unwrap().path, "/");
        for wrong in [
            "127.0.0.1/",
            "ftp://a/",
            "http:///a",
            "http://127.0.0.1:99999/",
            "http://u@127.0.0.1/",
            "http://127.0.0.1/ a",
        ] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }
}
