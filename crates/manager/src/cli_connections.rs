//! The sockets of the CLI, TCP and Unix-domain, and its limited number of connections.
//!
//! When all places are taken, a new client replaces the oldest connection that has not
//! authenticated; only if all have authenticated, the new client is refused. So unauthorized
//! clients cannot keep out authorized ones.

use crate::arguments::CliAddress;
use crate::socket_file::{self, SocketFile};
use cli_proto::response::Response;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use surface::limits::{CLI_COMMAND_BYTES_MAX, CLI_CONNECTIONS_MAX};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Notify;

/// Listen backlog.
const BACKLOG: i32 = 10;
/// Permission bits of a Unix-domain socket.
const UNIX_MODE: u32 = 0o660;

/// A bound `-T` socket.
#[derive(Debug)]
pub enum CliListener {
    /// An address.
    Tcp(std::net::TcpListener),
    /// A path; the file is removed with the socket.
    Unix(SocketFile, std::os::unix::net::UnixListener),
}

/// Another descriptor of a `-T` socket, with its path if it has one.
#[derive(Debug)]
pub struct HeldCliListener {
    /// The path of a Unix-domain socket.
    pub path: Option<PathBuf>,
    /// The socket.
    pub descriptor: OwnedFd,
}

impl HeldCliListener {
    /// The listener again, in the process that now owns it.
    ///
    /// # Errors
    /// The descriptor is not the expected socket.
    pub fn take_over(self) -> Result<CliListener, String> {
        let socket = socket2::Socket::from(self.descriptor);
        let address = socket.local_addr().ok().filter(|_| socket.is_listener().unwrap_or(false));
        let is_tcp = address.as_ref().is_some_and(|address| address.as_socket().is_some());
        match (self.path, address) {
            (None, Some(_)) if is_tcp => Ok(CliListener::Tcp(socket.into())),
            (Some(path), Some(address)) if address.as_pathname() == Some(&path) => {
                let file = SocketFile::of(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(CliListener::Unix(file, socket.into()))
            }
            _ => Err("a socket of the CLI is not what it should be".to_owned()),
        }
    }
}

/// Opens every `-T` address; addresses of one argument that are not available are skipped as long
/// as one is.
///
/// # Errors
/// The message for the operator.
pub fn listen(arguments: &[CliAddress], administrators: Option<u32>) -> Result<Vec<CliListener>, String> {
    let mut all = Vec::new();
    for argument in arguments {
        if let Some(path) = &argument.path {
            let listener = open_unix(path, administrators).map_err(|error| {
                format!("-T {} could not be listened on: {}.", argument.text, crate::arguments::reason(&error))
            })?;
            all.push(listener);
            continue;
        }
        let opened: Vec<_> = argument.addresses.iter().filter_map(|address| open(*address).ok()).collect();
        if opened.is_empty() {
            return Err(format!("-T {} could not be listened on.", argument.text));
        }
        all.extend(opened.into_iter().map(CliListener::Tcp));
    }
    // Stock tools understand only addresses, and try them in order.
    all.sort_by_key(|listener| matches!(listener, CliListener::Unix(..)));
    Ok(all)
}

fn open(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn open_unix(path: &Path, administrators: Option<u32>) -> io::Result<CliListener> {
    let (file, socket) = socket_file::bind(path, None, administrators, None)?;
    fs::set_permissions(path, fs::Permissions::from_mode(UNIX_MODE))?;
    socket.listen(BACKLOG)?;
    Ok(CliListener::Unix(file, socket.into()))
}

impl CliListener {
    /// The address line by which tools find the CLI.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        match self {
            CliListener::Tcp(listener) => {
                listener.local_addr().ok().map(|address| format!("{} {}", address.ip(), address.port()))
            }
            CliListener::Unix(file, _) => Some(format!("{} -", file.path().display())),
        }
    }

    /// From now on the file of a passed Unix-domain socket is ours.
    pub fn own(&self) {
        if let CliListener::Unix(file, _) = self {
            file.own();
        }
    }

    /// Another descriptor, for a successor.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn hold(&self) -> io::Result<HeldCliListener> {
        Ok(match self {
            CliListener::Tcp(listener) => HeldCliListener { path: None, descriptor: listener.try_clone()?.into() },
            CliListener::Unix(file, listener) => {
                HeldCliListener { path: Some(file.path().to_owned()), descriptor: listener.try_clone()?.into() }
            }
        })
    }

    /// Registers the socket with the event loop.
    ///
    /// # Errors
    /// The socket can't be watched.
    pub fn watch(self) -> io::Result<WatchedListener> {
        Ok(match self {
            CliListener::Tcp(listener) => WatchedListener::Tcp(TcpListener::from_std(listener)?),
            CliListener::Unix(file, listener) => WatchedListener::Unix(file, UnixListener::from_std(listener)?),
        })
    }
}

/// A `-T` socket on the event loop.
#[derive(Debug)]
pub enum WatchedListener {
    /// An address.
    Tcp(TcpListener),
    /// A path.
    Unix(SocketFile, UnixListener),
}

impl WatchedListener {
    /// Accepts the next client.
    ///
    /// # Errors
    /// As accept(2).
    pub async fn accept(&self) -> io::Result<CliStream> {
        Ok(match self {
            WatchedListener::Tcp(listener) => CliStream::Tcp(listener.accept().await?.0),
            WatchedListener::Unix(file, listener) => {
                CliStream::Unix(listener.accept().await?.0, file.path().to_owned())
            }
        })
    }
}

/// Target of a `-M` connection.
#[derive(Debug)]
pub enum CliTarget {
    /// To an address.
    Address(SocketAddr),
    /// To a socket.
    Path(PathBuf),
}

impl CliTarget {
    /// All targets that an argument names.
    #[must_use]
    pub fn of(argument: &CliAddress) -> Vec<CliTarget> {
        let addresses = argument.addresses.iter().copied().map(CliTarget::Address);
        addresses.chain(argument.path.clone().map(CliTarget::Path)).collect()
    }

    /// Connects.
    ///
    /// # Errors
    /// As connect(2).
    pub async fn connect(&self) -> io::Result<CliStream> {
        Ok(match self {
            CliTarget::Address(address) => CliStream::Tcp(TcpStream::connect(address).await?),
            CliTarget::Path(path) => CliStream::Unix(UnixStream::connect(path).await?, path.clone()),
        })
    }
}

/// A connection.
#[derive(Debug)]
pub enum CliStream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over the socket at this path.
    Unix(UnixStream, PathBuf),
}

impl CliStream {
    /// Both ends, as shown in messages.
    #[must_use]
    pub fn ends(&self) -> String {
        match self {
            CliStream::Unix(_, path) => format!("unix {}", path.display()),
            CliStream::Tcp(stream) => match (stream.local_addr(), stream.peer_addr()) {
                (Ok(ours), Ok(theirs)) => {
                    format!("telnet {} {} {} {}", theirs.ip(), theirs.port(), ours.ip(), ours.port())
                }
                _ => "telnet".to_owned(),
            },
        }
    }

    /// Sends a last reply, if that is possible without waiting, and closes.
    pub fn refuse(self, response: &Response) {
        let bytes = response.encode();
        let _ = match &self {
            CliStream::Tcp(stream) => stream.try_write(&bytes),
            CliStream::Unix(stream, _) => stream.try_write(&bytes),
        };
    }

    /// Splits the connection into its two directions.
    #[must_use]
    pub fn split(self) -> (Box<dyn AsyncRead + Unpin>, Box<dyn AsyncWrite + Unpin>) {
        match self {
            CliStream::Tcp(stream) => {
                let _ = stream.set_nodelay(true);
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            CliStream::Unix(stream, _) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
        }
    }
}

/// The limited number of connections.
#[derive(Debug, Default)]
pub struct Connections {
    inner: Rc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    count: Cell<usize>,
    next: Cell<u64>,
    /// Bytes of incomplete commands, for all connections together.
    pending_bytes: Cell<usize>,
    /// Connections that have not authenticated yet, oldest first.
    strangers: RefCell<VecDeque<(u64, Rc<Notify>)>>,
}

impl Connections {
    /// Takes a place for a new connection, if necessary from one that has not authenticated; `None`
    /// if there is none.
    #[must_use]
    pub fn enter(&self) -> Option<Place> {
        if self.inner.count.get() >= CLI_CONNECTIONS_MAX {
            let (_, oldest) = self.inner.strangers.borrow_mut().pop_front()?;
            oldest.notify_one();
            // The displaced task gives its place back when it next runs.
        }
        let number = self.inner.next.replace(self.inner.next.get() + 1);
        let displaced = Rc::new(Notify::new());
        self.inner.strangers.borrow_mut().push_back((number, Rc::clone(&displaced)));
        self.inner.count.set(self.inner.count.get() + 1);
        Some(Place { inner: Rc::clone(&self.inner), number, displaced, pending_bytes: Cell::new(0) })
    }
}

/// The place that one connection takes.
#[derive(Debug)]
pub struct Place {
    inner: Rc<Inner>,
    number: u64,
    displaced: Rc<Notify>,
    pending_bytes: Cell<usize>,
}

impl Place {
    /// Reports the bytes of an incomplete command that its connection holds; `false` if the total
    /// of all connections is over the limit.
    pub fn hold(&self, bytes: usize) -> bool {
        let others = self.inner.pending_bytes.get() - self.pending_bytes.replace(bytes);
        self.inner.pending_bytes.set(others + bytes);
        others + bytes <= CLI_COMMAND_BYTES_MAX
    }

    /// The client has authenticated: its place can no longer be taken.
    pub fn keep(&self) {
        self.inner.strangers.borrow_mut().retain(|(number, _)| *number != self.number);
    }

    /// Waits until the place is given to another connection.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.keep();
        self.hold(0);
        self.inner.count.set(self.inner.count.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_commands_is_bounded_over_all_connections() {
        let connections = Connections::default();
        let (one, other) = (connections.enter().unwrap(), connections.enter().unwrap());
        assert!(one.hold(CLI_COMMAND_BYTES_MAX) && !other.hold(1));
        assert!(one.hold(10) && other.hold(CLI_COMMAND_BYTES_MAX - 10) && !one.hold(11));
        drop(other);
        assert!(one.hold(CLI_COMMAND_BYTES_MAX));
        drop(one);
        assert_eq!(connections.inner.pending_bytes.get(), 0);
    }

    #[test]
    fn new_connection_replaces_only_the_oldest_unauthenticated_one() {
        let connections = Connections::default();
        let mut places: Vec<Place> = (0..CLI_CONNECTIONS_MAX).map(|_| connections.enter().unwrap()).collect();
        places[0].keep();
        let newcomer = connections.enter().expect("a stranger gives way");
        assert_eq!(connections.inner.strangers.borrow().front().map(|(number, _)| *number), Some(2));
        drop(places.remove(1));
        newcomer.keep();
        places.iter().for_each(Place::keep);
        assert!(connections.enter().is_none(), "all may command");
        drop(places.pop());
        assert!(connections.enter().is_some());
    }
}
