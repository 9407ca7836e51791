//! Connections to origins over TCP and Unix-domain sockets.
//!
//! Addresses are tried in the order that `prefer_ipv6` requests, the second if the first fails, or
//! does not answer within half of the time allowed. `TCP_NODELAY` is set, since requests are
//! written whole. A TLS handshake follows if the backend uses TLS. Next file: `dial/secured.rs`.

mod secured;

use crate::descriptors::Complaints;
use backend::{Connected, Dial, DialTarget, Dialling, Ends, Stream, TlsSettings};
use engine::clock::Clock;
use secured::Secured;
use std::borrow::Cow;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tls::origin::OriginTls;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

/// Opens connections on the event loop it is called from.
#[derive(Default)]
pub struct SocketDial {
    complaints: Option<(Arc<Complaints>, Clock)>,
    tls: Arc<OriginTls>,
}

impl SocketDial {
    /// Creates a dialler that reports to `complaints` when descriptors run out, and uses the TLS
    /// configurations of `tls`, which all dialers share.
    #[must_use]
    pub fn new(complaints: Arc<Complaints>, clock: Clock, tls: Arc<OriginTls>) -> SocketDial {
        SocketDial { complaints: Some((complaints, clock)), tls }
    }

    fn hear(&self, error: &io::Error) {
        if let Some((complaints, clock)) = &self.complaints {
            complaints.hear(error, clock.now());
        }
    }
}

/// Tries one address after the other. Each gets its share of the remaining time, so that an address
/// whose packets are lost leaves some for the next. Varnish gives each the full time; here it is
/// the limit that an operator or a probe sets for all of them.
async fn in_turn<T>(
    addresses: &[SocketAddr],
    timeout: Duration,
    connect: impl AsyncFn(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let deadline = Instant::now() + timeout;
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (index, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / (addresses.len() - index) as u32;
        match tokio::time::timeout(share, connect(*address)).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::Error::from_raw_os_error(nix::libc::ETIMEDOUT),
        }
    }
    Err(failure)
}

impl Dial for SocketDial {
    fn dial<'a>(
        &'a self,
        target: &'a DialTarget,
        timeout: Duration,
    ) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + 'a>> {
        Box::pin(async move {
            match target {
                DialTarget::Ip { v4, v6, prefer_v6 } => {
                    let (first, second) = if *prefer_v6 { (v6, v4) } else { (v4, v6) };
                    let addresses: Vec<SocketAddr> = [*first, *second].into_iter().flatten().collect();
                    let stream =
                        in_turn(&addresses, timeout, TcpStream::connect).await.inspect_err(|error| self.hear(error))?;
                    stream.set_nodelay(true)?;
                    let ends = Ends {
                        remote: stream.peer_addr().ok(),
                        local: stream.local_addr().ok(),
                        fd: stream.as_raw_fd(),
                    };
                    Ok(Box::new(Connected { stream, ends }) as Box<dyn Stream>)
                }
                DialTarget::Unix(path) => {
                    match tokio::time::timeout(timeout, UnixStream::connect(unix_name(path))).await {
                        Ok(Ok(stream)) => {
                            let ends = Ends { remote: None, local: None, fd: stream.as_raw_fd() };
                            Ok(Box::new(Connected { stream, ends }) as Box<dyn Stream>)
                        }
                        Ok(Err(error)) => {
                            self.hear(&error);
                            Err(error)
                        }
                        Err(_) => Err(io::Error::from_raw_os_error(nix::libc::ETIMEDOUT)),
                    }
                }
            }
        })
    }

    fn secure<'a>(
        &'a self,
        stream: Box<dyn Stream>,
        settings: &'a TlsSettings,
        protocols: &'a [&'static [u8]],
        timeout: Duration,
    ) -> Dialling<'a> {
        Box::pin(async move {
            let secured = Secured::shake_hands(&self.tls, stream, settings, protocols, timeout).await;
            Ok(Box::new(secured.map_err(io::Error::other)?) as Box<dyn Stream>)
        })
    }
}

/// The name of a Unix-domain socket as the system expects it: an abstract name, written with `@`,
/// begins with a NUL.
fn unix_name(path: &Path) -> Cow<'_, Path> {
    match path.as_os_str().as_bytes().split_first() {
        Some((b'@', name)) => Cow::Owned(PathBuf::from(OsString::from_vec([b"\0", name].concat()))),
        _ => Cow::Borrowed(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::UnixListener;

    #[tokio::test]
    async fn a_name_that_begins_with_an_at_sign_is_an_abstract_socket() {
        let name = format!("copal-dial-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let target = DialTarget::Unix(PathBuf::from(format!("@{name}")));
        let connected = SocketDial::default().dial(&target, Duration::from_secs(5)).await;
        assert!(connected.is_ok_and(|stream| stream.ends().remote.is_none()));
        drop(listener);
        let missing = DialTarget::Unix(PathBuf::from(format!("@{name}-missing")));
        assert!(SocketDial::default().dial(&missing, Duration::from_secs(5)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_whose_packets_are_lost_leaves_half_of_the_time_for_the_next() {
        let both = ["192.0.2.1:80", "[2001:db8::1]:80"].map(|text| text.parse().unwrap());
        let began = Instant::now();
        let second = in_turn(&both, Duration::from_secs(4), async |address: SocketAddr| match address.is_ipv4() {
            true => std::future::pending().await,
            false => Ok(address),
        });
        assert_eq!((second.await.unwrap(), began.elapsed().as_secs()), (both[1], 2));
        let lost = in_turn(&both, Duration::from_secs(4), async |_| std::future::pending::<io::Result<()>>().await);
        assert_eq!(lost.await.unwrap_err().raw_os_error(), Some(nix::libc::ETIMEDOUT));
        assert_eq!(began.elapsed().as_secs(), 6, "all attempts together");
    }
}
