//! Listening sockets of `-o metrics` and `-o dash`, for `copal observe`.
//!
//! They are opened here, with the rights of the daemon's start, so that they outlive each process
//! that serves on them, and pass to a successor. Next file: `observer.rs`.

use crate::arguments::jail::Jail;
use crate::arguments::metrics::MetricsAddress;
use crate::arguments::reason;
use crate::socket_file::{self, SocketFile};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Listen backlog.
const BACKLOG: i32 = 64;
/// Permission bits of a Unix-domain socket: its group may read the counters too.
const UNIX_MODE: u32 = 0o660;

/// A listening socket for metrics or the dashboard.
#[derive(Debug)]
pub struct MetricsSocket {
    // Dropped before its socket: see `socket_file`.
    file: Option<SocketFile>,
    socket: Socket,
}

impl MetricsSocket {
    /// The path, if it has one, and another descriptor of the socket, for a successor.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn hand_over(&self) -> io::Result<(Option<PathBuf>, OwnedFd)> {
        let path = self.file.as_ref().map(|file| file.path().to_owned());
        Ok((path, self.socket.try_clone()?.into()))
    }

    /// The socket that a predecessor handed over. Its file is not removed before
    /// [`MetricsSocket::own`].
    ///
    /// # Errors
    /// The descriptor is not the expected socket.
    pub fn take_over(path: Option<PathBuf>, descriptor: OwnedFd) -> Result<MetricsSocket, String> {
        let socket = Socket::from(descriptor);
        let address = socket.local_addr().ok().filter(|_| socket.is_listener().unwrap_or(false));
        let is_tcp = address.as_ref().is_some_and(|address| address.as_socket().is_some());
        let is_of_path = address.is_some_and(|address| address.as_pathname() == path.as_deref());
        match path {
            None if is_tcp => Ok(MetricsSocket { file: None, socket }),
            Some(path) if is_of_path => {
                let file = SocketFile::of(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(MetricsSocket { file: Some(file), socket })
            }
            _ => Err("a socket for metrics is not what it should be".to_owned()),
        }
    }

    /// From now on a path is removed with the socket.
    pub fn own(&self) {
        self.file.iter().for_each(SocketFile::own);
    }

    /// The address; `None` for a path.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok().and_then(|address| address.as_socket())
    }

    /// The address, as Prometheus or an operator would write it.
    #[must_use]
    pub fn shown(&self) -> String {
        match (&self.file, self.socket.local_addr().ok().and_then(|address| address.as_socket())) {
            (Some(file), _) => format!("unix:{}", file.path().display()),
            (None, Some(address)) => format!("http://{address}/metrics"),
            (None, None) => "an unknown address".to_owned(),
        }
    }
}

impl AsFd for MetricsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Opens the sockets of the option `key`. Addresses of one argument that are not available are
/// skipped as long as one is.
///
/// # Errors
/// The message for the operator.
pub fn listen(key: &str, arguments: &[MetricsAddress], jail: &Jail) -> Result<Vec<MetricsSocket>, String> {
    let mut sockets = Vec::new();
    for argument in arguments {
        let failed =
            |error: &io::Error| format!("-o {key}={} could not be listened on: {}.", argument.text, reason(error));
        if let Some(path) = &argument.path {
            sockets.push(open_path(path, jail).map_err(|error| failed(&error))?);
            continue;
        }
        let (opened, failures): (Vec<_>, Vec<_>) =
            argument.addresses.iter().map(|address| open(*address)).partition(Result::is_ok);
        if let (true, Some(Err(error))) = (opened.is_empty(), failures.first()) {
            return Err(failed(error));
        }
        sockets.extend(opened.into_iter().flatten());
    }
    Ok(sockets)
}

fn open(address: SocketAddr) -> io::Result<MetricsSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(MetricsSocket { file: None, socket })
}

fn open_path(path: &Path, jail: &Jail) -> io::Result<MetricsSocket> {
    let group = jail.worker().map(|(_, group)| group);
    let (file, socket) = socket_file::bind(path, None, group, Some(UNIX_MODE))?;
    socket.listen(BACKLOG)?;
    Ok(MetricsSocket { file: Some(file), socket })
}
