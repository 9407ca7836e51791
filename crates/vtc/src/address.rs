//! Addresses as written in scripts, and sockets that listen on them or connect to them.
//!
//! | written | means |
//! | --- | --- |
//! | `127.0.0.1:80`, `127.0.0.1 80`, `[::1]:80`, `localhost 80` | TCP |
//! | `/path` | a socket of that name |
//! | `@name` | an abstract socket |
//!
//! *Invariant:* every socket made here is non-blocking: readers and writers wait with their
//! thread's cancel.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::PollFlags;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::test::{Cancel, Outcome, Waited};

/// A socket's address, for logs and macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The IP address; `0.0.0.0` if there is none.
    pub address: String,
    /// The port; `0` if there is none.
    pub port: String,
    /// Both in a form for connecting, or the path.
    pub socket: String,
}

impl Name {
    /// The name of a TCP address.
    #[must_use]
    pub fn of(address: SocketAddr) -> Name {
        Name { address: address.ip().to_string(), port: address.port().to_string(), socket: address.to_string() }
    }

    /// The name of a socket that has no IP address.
    #[must_use]
    pub fn of_path(path: &str) -> Name {
        Name { address: "0.0.0.0".to_owned(), port: "0".to_owned(), socket: path.to_owned() }
    }
}

/// True for a path or an abstract name.
#[must_use]
pub fn is_local(text: &str) -> bool {
    text.starts_with('/') || text.starts_with('@')
}

/// The TCP addresses that a text denotes.
///
/// # Errors
/// The error in the text.
pub fn resolve(text: &str, default_port: Option<u16>) -> Result<Vec<SocketAddr>, String> {
    let (host, port) = split(text)?;
    let port = match (port, default_port) {
        (Some(port), _) => port.parse().map_err(|_| format!("'{port}' is no port"))?,
        (None, Some(port)) => port,
        (None, None) => return Err("a port is missing".to_owned()),
    };
    let addresses: Vec<_> = (host, port).to_socket_addrs().map_err(|error| error.to_string())?.collect();
    if addresses.is_empty() { Err("no such host".to_owned()) } else { Ok(addresses) }
}

fn split(text: &str) -> Result<(&str, Option<&str>), String> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("IPv6 address lacks ']'")?;
        let port = rest.trim_start_matches([':', ' ']);
        return Ok((host, (!port.is_empty()).then_some(port)));
    }
    if let Some((host, port)) = text.split_once(' ') {
        return Ok((host, Some(port.trim())));
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Ok((host, Some(port))),
        _ => Ok((text, None)),
    }
}

fn local_address(text: &str) -> Result<SockAddr, String> {
    // An abstract name starts with a NUL.
    let name = text.strip_prefix('@').map_or_else(|| text.to_owned(), |name| format!("\0{name}"));
    SockAddr::unix(name).map_err(|error| error.to_string())
}

/// Listens; port 0 lets the system choose. Removes any file at the path.
///
/// # Errors
/// The error in the address, or the system's error.
pub fn listen(text: &str, backlog: i32) -> Result<(Socket, Name), String> {
    if is_local(text) {
        let address = local_address(text)?;
        if text.starts_with('/') {
            match std::fs::remove_file(text) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("could not unlink it before bind: {error}"));
                }
                _ => {}
            }
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(|error| error.to_string())?;
        let bound = socket.bind(&address).and_then(|()| socket.listen(backlog)).and_then(|()| {
            if text.starts_with('/') {
                // The daemon may run as another user.
                let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
                std::fs::set_permissions(text, mode)?;
            }
            socket.set_nonblocking(true)
        });
        bound.map_err(|error| error.to_string())?;
        return Ok((socket, Name::of_path(text)));
    }
    let mut reason = String::new();
    for address in resolve(text, Some(0))? {
        let bound = bind(address, Type::STREAM).and_then(|socket| {
            socket.listen(backlog)?;
            socket.set_nonblocking(true)?;
            let name = name(&socket)?;
            Ok((socket, name))
        });
        match bound {
            Ok(bound) => return Ok(bound),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

/// Creates a socket bound to an address.
///
/// # Errors
/// The system's error.
pub fn bind(address: SocketAddr, kind: Type) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// The name of a TCP or UDP socket.
///
/// # Errors
/// The system's error.
pub fn name(socket: &Socket) -> std::io::Result<Name> {
    let address = socket.local_addr()?.as_socket();
    Ok(address.map_or_else(|| Name::of_path(""), Name::of))
}

/// Accepts a connection.
///
/// # Errors
/// The thread must stop; inside, the system's error.
pub fn accept(listener: &Socket, cancel: &Cancel) -> Outcome<std::io::Result<Socket>> {
    loop {
        cancel.readable(listener.as_fd(), None)?;
        match listener.accept() {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Ok((socket, _)) => return Ok(socket.set_nonblocking(true).map(|()| socket)),
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Connects.
///
/// # Errors
/// The thread must stop; inside, the error in the address or the system's error.
pub fn connect(text: &str, timeout: Duration, cancel: &Cancel) -> Outcome<Result<Socket, String>> {
    if is_local(text) {
        let address = match local_address(text) {
            Ok(address) => address,
            Err(reason) => return Ok(Err(reason)),
        };
        return connect_one(Domain::UNIX, &address, timeout, cancel)
            .map(|made| made.map_err(|error| error.to_string()));
    }
    let addresses = match resolve(text, None) {
        Ok(addresses) => addresses,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut reason = String::new();
    for address in addresses {
        match connect_one(Domain::for_address(address), &address.into(), timeout, cancel)? {
            Ok(socket) => return Ok(Ok(socket)),
            Err(error) => reason = error.to_string(),
        }
    }
    Ok(Err(reason))
}

fn connect_one(
    domain: Domain,
    address: &SockAddr,
    timeout: Duration,
    cancel: &Cancel,
) -> Outcome<std::io::Result<Socket>> {
    let socket = match Socket::new(domain, Type::STREAM, None) {
        Ok(socket) => socket,
        Err(error) => return Ok(Err(error)),
    };
    if let Err(error) = socket.set_nonblocking(true) {
        return Ok(Err(error));
    }
    match socket.connect(address) {
        Ok(()) => return Ok(Ok(socket)),
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::EINPROGRESS as i32) => {}
        Err(error) => return Ok(Err(error)),
    }
    if cancel.wait(&[(socket.as_fd(), PollFlags::POLLOUT)], Some(timeout))? == Waited::TimedOut {
        return Ok(Err(std::io::ErrorKind::TimedOut.into()));
    }
    Ok(match socket.take_error() {
        Ok(None) => Ok(socket),
        Ok(Some(error)) | Err(error) => Err(error),
    })
}

/// Sends all the bytes.
///
/// # Errors
/// The thread must stop; inside, the system's error.
pub fn send_all(socket: &Socket, mut bytes: &[u8], cancel: &Cancel) -> Outcome<std::io::Result<()>> {
    while !bytes.is_empty() {
        match socket.send(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                cancel.wait(&[(socket.as_fd(), PollFlags::POLLOUT)], None)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_several_ways() {
        for text in ["127.0.0.1:80", "127.0.0.1 80"] {
            assert_eq!(resolve(text, None).unwrap(), [SocketAddr::from(([127, 0, 0, 1], 80))], "{text}");
        }
        for text in ["[::1]:80", "[::1] 80", "::1 80"] {
            assert_eq!(resolve(text, None).unwrap()[0].to_string(), "[::1]:80", "{text}");
        }
        assert_eq!(resolve("127.0.0.1", Some(7)).unwrap()[0].port(), 7);
        for wrong in ["127.0.0.1", "127.0.0.1:x", "[::1", "127.0.0.1:99999"] {
            assert!(resolve(wrong, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_listener_is_named_with_the_port_it_got() {
        let (_socket, name) = listen("127.0.0.1:0", 1).unwrap();
        assert_eq!(name.socket, format!("127.0.0.1:{}", name.port));
        assert_ne!(name.port, "0");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket").display().to_string();
        std::fs::write(&path, "in the way").unwrap();
        assert_eq!(listen(&path, 1).unwrap().1, Name::of_path(&path));
        assert!(listen("/nonexistent/folder/socket", 1).is_err());
        assert!(listen("@copal-test-abstract-name", 1).is_ok());
    }
}
