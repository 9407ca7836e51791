//! Opening of connections to an origin, without sockets: [`Dial`] and [`Stream`] are implemented by
//! `net` over TCP and Unix-domain sockets, and by tests over memory.
//!
//! Neither is `Send`: a connection belongs to one event loop. Next file: `open.rs`.

use crate::tls_settings::TlsSettings;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use vcl_run::tls::TlsFacts;

/// The two ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ends {
    /// The origin's address; `None` for a Unix-domain socket.
    pub remote: Option<SocketAddr>,
    /// The local address; `None` for a Unix-domain socket.
    pub local: Option<SocketAddr>,
    /// Descriptor number for the log; −1 in memory.
    pub fd: i32,
}

/// An open connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// Its addresses and descriptor number.
    fn ends(&self) -> Ends;

    /// The results of its TLS handshake; `None` in clear.
    fn tls(&self) -> Option<&TlsFacts> {
        None
    }

    /// True if it ended without the origin's close_notify, so that something may be missing; in
    /// clear this cannot be detected.
    fn was_cut_off(&self) -> bool {
        false
    }
}

/// The target of a connect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DialTarget {
    /// A TCP address, or one of each family; the second is tried when the first fails.
    Ip {
        /// IPv4 address and port.
        v4: Option<SocketAddr>,
        /// IPv6 address and port.
        v6: Option<SocketAddr>,
        /// The family that comes first of the two (parameter `prefer_ipv6`).
        prefer_v6: bool,
    },
    /// A Unix-domain socket.
    Unix(PathBuf),
}

/// A connect in progress.
pub type Dialling<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + 'a>>;

/// Opens connections on the event loop on which it is called.
pub trait Dial {
    /// Opens a connection; all attempts together take at most `timeout`. A connect that takes
    /// longer fails with ETIMEDOUT.
    ///
    /// # Errors
    /// The operating system's error, with its number if there is one.
    fn dial<'a>(&'a self, target: &'a DialTarget, timeout: Duration) -> Dialling<'a>;

    /// Performs a TLS handshake over a connection: the returned stream is encrypted. `protocols`
    /// are offered (ALPN), the preferred one first.
    ///
    /// # Errors
    /// A [`TlsFailure`] inside the error, or else the operating system's error.
    fn secure<'a>(
        &'a self,
        stream: Box<dyn Stream>,
        settings: &'a TlsSettings,
        protocols: &'a [&'static [u8]],
        timeout: Duration,
    ) -> Dialling<'a> {
        let _ = (stream, settings, protocols, timeout);
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
}

/// The reason why a handshake with an origin failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFailure {
    /// Text for the log: the check that failed.
    pub text: String,
    /// One side refused the other, which an immediate retry will hardly change; as opposed to a
    /// broken connection or a timeout.
    pub is_refusal: bool,
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TlsFailure {}
