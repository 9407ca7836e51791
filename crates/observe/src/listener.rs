//! Listening sockets and their connections, over TCP or in the file system.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Port if an address has none: that of other exporters for Varnish.
const DEFAULT_PORT: u16 = 9131;

/// A listening socket; accepting from it does not block.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on `<host>:<port>`, `:<port>`, `<host>` or `unix:<path>`. A name may have several
    /// addresses.
    ///
    /// # Errors
    /// The address cannot be parsed, resolved or used.
    pub fn bind(address: &str) -> io::Result<Vec<Listener>> {
        let listeners = match address.strip_prefix("unix:") {
            Some(path) => vec![bind_path(Path::new(path))?],
            None => bind_name(address)?,
        };
        listeners.iter().try_for_each(Listener::set_nonblocking)?;
        Ok(listeners)
    }

    /// A socket that another process has opened.
    ///
    /// # Errors
    /// It is not a listening socket of TCP or of the file system.
    pub fn inherit(socket: OwnedFd) -> io::Result<Listener> {
        let tcp = TcpListener::from(socket);
        let listener = if tcp.local_addr().is_ok() {
            Listener::Tcp(tcp)
        } else {
            let unix = UnixListener::from(OwnedFd::from(tcp));
            let path = unix.local_addr()?.as_pathname().map(Path::to_owned);
            Listener::Unix(unix, path.unwrap_or_default())
        };
        listener.set_nonblocking()?;
        Ok(listener)
    }

    /// The port; `None` for a path.
    pub fn port(&self) -> Option<u16> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.port()),
            Listener::Unix(..) => None,
        }
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Listener::Tcp(listener) => listener.set_nonblocking(true),
            Listener::Unix(listener, _) => listener.set_nonblocking(true),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    /// `WouldBlock` if there is none, and those of the system.
    pub fn accept(&self) -> io::Result<Stream> {
        let stream = match self {
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
            Listener::Unix(listener, _) => Stream::Unix(listener.accept()?.0),
        };
        Ok(stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp(listener) => match listener.local_addr() {
                Ok(address) => write!(f, "http://{address}/metrics"),
                Err(error) => write!(f, "{error}"),
            },
            Listener::Unix(_, path) => write!(f, "unix:{}", path.display()),
        }
    }
}

fn bind_name(address: &str) -> io::Result<Vec<Listener>> {
    let is_bare_ipv6 = address.matches(':').count() > 1 && !address.starts_with('[');
    let has_port = !is_bare_ipv6 && !address.ends_with(']') && address.contains(':');
    let host = address.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<_> = match address.strip_prefix(':') {
        Some(port) if !is_bare_ipv6 => [format!("0.0.0.0:{port}"), format!("[::]:{port}")]
            .iter()
            .map(|one| one.to_socket_addrs())
            .collect::<io::Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect(),
        _ if has_port => address.to_socket_addrs()?.collect(),
        _ => (host, DEFAULT_PORT).to_socket_addrs()?.collect(),
    };
    let (mut listeners, mut failure) = (Vec::new(), None);
    for address in found {
        match TcpListener::bind(address) {
            Ok(listener) => listeners.push(Listener::Tcp(listener)),
            // A machine may lack one of the two families.
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if listeners.is_empty() => Err(error),
        _ if listeners.is_empty() => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        _ => Ok(listeners),
    }
}

/// Listens on a path. The socket of a process that has ended is replaced.
fn bind_path(path: &Path) -> io::Result<Listener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
        std::fs::remove_file(path)?;
    }
    Ok(Listener::Unix(UnixListener::bind(path)?, path.to_owned()))
}

/// A connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// The addresses of the client and of this end; `None` in the file system.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        match self {
            Stream::Tcp(stream) => Some((stream.peer_addr().ok()?.ip(), stream.local_addr().ok()?.ip())),
            Stream::Unix(_) => None,
        }
    }

    pub fn set_nonblocking(&self, is_nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(is_nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(is_nonblocking),
        }
    }

    /// Limits the time of each read and write.
    pub fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)))
            }
        }
    }

    /// Closes the sending side.
    pub fn finish(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_default_port_or_a_path() {
        let listeners = Listener::bind("127.0.0.1:0").unwrap();
        assert!(listeners[0].to_string().starts_with("http://127.0.0.1:"), "{}", listeners[0]);
        for wrong in ["127.0.0.1:x", ":", "", "no such host:1"] {
            assert!(Listener::bind(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn inherited_sockets_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(&path).unwrap();
        assert!(matches!(Listener::inherit(tcp.into()).unwrap(), Listener::Tcp(_)));
        assert!(matches!(Listener::inherit(unix.into()).unwrap(), Listener::Unix(_, found) if found == path));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Listener::inherit(file.into()).is_err());
    }

    #[test]
    fn socket_of_a_dead_process_is_replaced_and_that_of_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("unix:{}", folder.path().join("socket").display());
        let first = Listener::bind(&address).unwrap();
        assert!(Listener::bind(&address).is_err());
        drop(first);
        Listener::bind(&address).unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Listener::bind(&format!("unix:{}", file.display())).is_err());
        assert!(file.exists());
    }
}
