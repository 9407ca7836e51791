//! The listening sockets. The manager opens them and keeps them for its whole life, so that the
//! death of a worker costs no connection: clients that connect meanwhile wait in the kernel.
//!
//! A TCP address has one socket for each event loop (SO_REUSEPORT), a Unix-domain address has a
//! single one. Port 0 is resolved once, with a socket that is closed when the real ones, bound to
//! that port number, exist: a socket whose port the kernel chose would lose it when it stops
//! listening.
//!
//! With HTTP/3 there are as many UDP sockets (`listeners/datagrams.rs`), bound to the same port.
//! They are closed while connections are turned away: the kernel then rejects clients at once,
//! whereas an unread socket would let them wait.
//!
//! They can be passed to a successor (`listeners/handed.rs`).
//!
//! States of each: *bound* → `listen` → *listening* → `refuse` → *bound*. While refusing,
//! connections are turned away instead of waiting for a worker that an operator has stopped.

mod datagrams;
mod handed;

pub use handed::{HandedListener, check as check_handed};

use crate::arguments::listen::{DEFAULT_ADDRESS, ListenAddress, ListenArgument, parse};
use crate::arguments::{ArgumentError, reason};
use crate::port_holder;
use crate::socket_file::{self, SocketFile};
use crate::systemd::PassedSocket;
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between attempts to bind an address that another process is about to release.
const ADDRESS_RETRY: Duration = Duration::from_millis(10);
/// Number of ports that the kernel may choose until one is free for UDP as well.
const FREE_PORT_ATTEMPTS: usize = 16;

/// One listening address.
#[derive(Debug)]
pub struct Listener {
    /// The `-a` name.
    pub name: String,
    /// The address as written.
    pub endpoint: String,
    /// PROXY protocol expected.
    pub proxy: bool,
    /// TLS is enabled.
    pub tls: bool,
    /// The https port that plain requests are redirected to.
    pub redirect_port: Option<u16>,
    http3: bool,
    place: Place,
    /// The file of a Unix-domain socket; dropped before its socket.
    file: Option<SocketFile>,
    sockets: Vec<Socket>,
    /// For HTTP/3; none while connections are turned away.
    datagram_sockets: Vec<Socket>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    Tcp(SocketAddr),
    Unix {
        path: PathBuf,
        user: Option<u32>,
        group: Option<u32>,
        mode: Option<u32>,
    },
    /// Opened by our starter; with the path if it is a Unix-domain socket.
    Passed(Option<PathBuf>),
}

impl Place {
    /// True if a socket is bound to this place.
    fn is_of(&self, socket: &Socket) -> bool {
        let Ok(bound) = socket.local_addr() else { return false };
        match self {
            Place::Tcp(address) => bound.as_socket() == Some(*address),
            Place::Unix { path, .. } => bound.as_pathname() == Some(path),
            Place::Passed(_) => false,
        }
    }
}

/// Opens and binds the sockets of every `-a`, `loops` for each TCP address; sockets that were
/// already passed to us are used instead. Without any `-a` all passed sockets are served, or else
/// [`DEFAULT_ADDRESS`]. An address in use is retried until `patience` is over, which is zero unless
/// a dying process is known to hold it.
///
/// # Errors
/// The message for the operator. A passed socket that no `-a` names is a mistake too: systemd would
/// continue to accept connections on it, and no process would ever answer them.
pub fn open(
    arguments: &[ListenArgument],
    loops: usize,
    mut passed: Vec<PassedSocket>,
    patience: Duration,
) -> Result<Vec<Listener>, ArgumentError> {
    if let Some(one) = passed.iter().find(|one| !one.socket.is_listener().unwrap_or(false)) {
        let what = described(one);
        return Err(format!("systemd passed {what}, which is no listening stream socket: use ListenStream=").into());
    }
    if arguments.is_empty() && !passed.is_empty() {
        return Ok(passed.into_iter().map(adopt).collect());
    }
    let deadline = Instant::now() + patience;
    let default = [parse(DEFAULT_ADDRESS, &mut 0)?];
    let arguments = if arguments.is_empty() { &default[..] } else { arguments };
    let mut all = Vec::new();
    for argument in arguments {
        let places = match &argument.address {
            ListenAddress::Tcp(addresses) => addresses.iter().copied().map(Place::Tcp).collect(),
            ListenAddress::Unix { path, user, group, mode } => {
                vec![Place::Unix { path: path.clone(), user: *user, group: *group, mode: *mode }]
            }
        };
        let several = places.len() > 1;
        let both: Vec<SocketAddr> = passed.iter().filter_map(|one| of_both_families(&one.socket)).collect();
        let before = all.len();
        for place in places {
            // `ListenStream=80` is one socket for both families, while `-a :80` means two.
            if several && matches!(place, Place::Tcp(address) if both.contains(&address)) {
                continue;
            }
            if let Some(at) = passed.iter().position(|one| place.is_of(&one.socket)) {
                let mut given = adopt(passed.swap_remove(at));
                given.name.clone_from(&argument.name);
                given.endpoint.clone_from(&argument.endpoint);
                given.proxy = argument.proxy;
                given.tls = argument.tls;
                given.redirect_port = argument.redirect_port;
                given.http3 = argument.http3;
                if let Err(error) = given.resize(loops) {
                    return Err(no_socket(argument, &place, &error));
                }
                all.push(given);
                continue;
            }
            match open_until(deadline, argument, &place, loops) {
                Ok(listener) => all.push(listener),
                // A host without IPv6 still serves `:80`.
                Err(error) if several && error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT) => {}
                Err(error) if several && error.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(error) => {
                    return Err(no_socket(argument, &place, &error));
                }
            }
        }
        if all.len() == before {
            return Err(format!("Got no socket(s) for {}", argument.endpoint).into());
        }
    }
    match passed.first() {
        None => Ok(all),
        Some(one) => {
            let (what, place) = (described(one), place_of(one));
            Err(format!(
                "systemd passed {what}, which no -a names: add -a {place}, or give no -a to serve all that is passed"
            )
            .into())
        }
    }
}

fn no_socket(argument: &ListenArgument, place: &Place, error: &io::Error) -> ArgumentError {
    let detail = match (place, error.kind()) {
        (Place::Tcp(address), io::ErrorKind::AddrInUse) => port_holder::of(*address).map(|name| format!("by {name}")),
        (Place::Tcp(address), io::ErrorKind::PermissionDenied) if address.port() < 1024 => {
            Some("ports below 1024 need root or CAP_NET_BIND_SERVICE".to_owned())
        }
        _ => None,
    };
    let text = format!("Could not get socket {}: {}", argument.endpoint, reason(error));
    ArgumentError::of_system(text).with_detail(detail)
}

/// The message when sockets are passed to a daemon in the background.
#[must_use]
pub fn only_in_foreground(passed: &PassedSocket) -> String {
    format!("systemd passed {}, which is served with -F only", described(passed))
}

/// The address of a passed socket, in the form of `-a`.
fn place_of(passed: &PassedSocket) -> String {
    let address = passed.socket.local_addr().ok();
    let path = address.as_ref().and_then(|address| address.as_pathname().map(|path| path.display().to_string()));
    let tcp = address.as_ref().and_then(SockAddr::as_socket).map(|address| {
        if of_both_families(&passed.socket).is_some() { format!(":{}", address.port()) } else { address.to_string() }
    });
    path.or(tcp).unwrap_or_else(|| passed.name.clone())
}

fn described(passed: &PassedSocket) -> String {
    format!("the socket '{}' ({})", passed.name, place_of(passed))
}

/// The IPv4 address that an IPv6 socket serves as well: any address, at the same port.
fn of_both_families(socket: &Socket) -> Option<SocketAddr> {
    let address = socket.local_addr().ok()?.as_socket_ipv6()?;
    let is_both = address.ip().is_unspecified() && !socket.only_v6().ok()?;
    is_both.then(|| SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, address.port())))
}

/// Takes a socket that another process opened; it listens even if no worker runs.
fn adopt(passed: PassedSocket) -> Listener {
    let address = passed.socket.local_addr().ok();
    let path = address.as_ref().and_then(|address| address.as_pathname().map(Path::to_owned));
    let endpoint = match (&path, address.as_ref().and_then(SockAddr::as_socket)) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(address)) => address.to_string(),
        (None, None) => passed.name.clone(),
    };
    Listener {
        name: passed.name,
        endpoint,
        proxy: false,
        tls: false,
        redirect_port: None,
        http3: false,
        place: Place::Passed(path),
        file: None,
        sockets: vec![passed.socket],
        datagram_sockets: Vec::new(),
    }
}

fn open_until(deadline: Instant, argument: &ListenArgument, place: &Place, loops: usize) -> io::Result<Listener> {
    loop {
        match open_one(argument, place.clone(), loops) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(ADDRESS_RETRY);
            }
            result => return result,
        }
    }
}

fn open_one(argument: &ListenArgument, place: Place, loops: usize) -> io::Result<Listener> {
    let is_free_port = matches!(place, Place::Tcp(address) if address.port() == 0);
    let mut left = if is_free_port && argument.http3 { FREE_PORT_ATTEMPTS } else { 1 };
    loop {
        left -= 1;
        match open_at(argument, place.clone(), loops) {
            // A port that is free for TCP may be taken for UDP.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && left > 0 => {}
            result => return result,
        }
    }
}

fn open_at(argument: &ListenArgument, mut place: Place, loops: usize) -> io::Result<Listener> {
    let mut kept = None;
    if let Place::Tcp(address) = &mut place {
        // Without SO_REUSEPORT, so that a port that another program serves is an error rather than
        // shared with it.
        let probe = tcp_socket(*address, false)?;
        if let Some(bound) = probe.local_addr()?.as_socket() {
            address.set_port(bound.port());
        }
        if argument.http3 {
            datagrams::bind(*address, false, false)?;
        }
        kept = Some(probe);
    }
    drop(kept);
    let mut listener = Listener {
        name: argument.name.clone(),
        endpoint: argument.endpoint.clone(),
        proxy: argument.proxy,
        tls: argument.tls,
        redirect_port: argument.redirect_port,
        http3: argument.http3,
        place,
        file: None,
        sockets: Vec::new(),
        datagram_sockets: Vec::new(),
    };
    listener.resize(loops)?;
    Ok(listener)
}

impl Listener {
    /// The path of a Unix-domain socket.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Tcp(_) => None,
            Place::Unix { path, .. } => Some(path),
            Place::Passed(path) => path.as_deref(),
        }
    }

    /// The sockets: one for each event loop, or a single one.
    #[must_use]
    pub fn sockets(&self) -> &[Socket] {
        &self.sockets
    }

    /// The UDP sockets of HTTP/3: one for each event loop; none if HTTP/3 is not enabled here.
    #[must_use]
    pub fn datagram_sockets(&self) -> &[Socket] {
        &self.datagram_sockets
    }

    /// The IP address, with the port; `None` for a Unix-domain socket.
    #[must_use]
    pub fn ip_address(&self) -> Option<SocketAddr> {
        match &self.place {
            Place::Tcp(address) => Some(*address),
            Place::Unix { .. } => None,
            Place::Passed(_) => self.sockets.first()?.local_addr().ok()?.as_socket(),
        }
    }

    /// From now on the file of a passed Unix-domain socket is ours.
    pub fn own(&self) {
        self.file.iter().for_each(SocketFile::own);
    }

    /// Adapts the number of sockets to the number of event loops.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn resize(&mut self, loops: usize) -> io::Result<()> {
        let wanted = match self.place {
            Place::Tcp(_) => loops,
            Place::Unix { .. } | Place::Passed(_) => 1,
        };
        self.sockets.truncate(wanted);
        while self.sockets.len() < wanted {
            let socket = match &self.place {
                Place::Tcp(address) => tcp_socket(*address, true)?,
                Place::Unix { path, user, group, mode } => {
                    let (file, socket) = socket_file::bind(path, *user, *group, *mode)?;
                    self.file = Some(file);
                    socket
                }
                Place::Passed(_) => return Err(io::ErrorKind::NotConnected.into()),
            };
            self.sockets.push(socket);
        }
        if self.http3 {
            self.resize_datagram_sockets(loops)?;
        }
        Ok(())
    }

    fn resize_datagram_sockets(&mut self, loops: usize) -> io::Result<()> {
        let address = self.ip_address().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let is_of_both = self.sockets.first().is_some_and(|socket| of_both_families(socket).is_some());
        self.datagram_sockets.truncate(loops);
        while self.datagram_sockets.len() < loops {
            self.datagram_sockets.push(datagrams::bind(address, true, is_of_both)?);
        }
        Ok(())
    }

    /// Makes the kernel accept connections, with up to `depth` of them waiting.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn listen(&self, depth: u64) -> io::Result<()> {
        let depth = i32::try_from(depth).unwrap_or(i32::MAX);
        self.sockets.iter().try_for_each(|socket| socket.listen(depth))
    }

    /// Lets returning clients send their request with the first packet; at most `depth` of them
    /// wait.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn enable_fast_open(&self, depth: u64) -> io::Result<()> {
        let depth = i32::try_from(depth).unwrap_or(i32::MAX);
        match self.place {
            Place::Unix { .. } => Ok(()),
            Place::Tcp(_) | Place::Passed(_) => {
                self.sockets.iter().try_for_each(|socket| control::listening::enable_fast_open(socket.as_fd(), depth))
            }
        }
    }

    /// Turns connections away. The address stays ours.
    pub fn refuse(&mut self) {
        self.datagram_sockets.clear();
        match self.place {
            Place::Tcp(_) => self.sockets.iter().for_each(|socket| drop(socket.shutdown(Shutdown::Read))),
            // A Unix-domain socket can't listen again: the next start creates a new one.
            Place::Unix { .. } => {
                self.file = None;
                self.sockets.clear();
            }
            // Its opener expects it to accept connections; they wait for the next worker.
            Place::Passed(_) => {}
        }
    }
}

fn tcp_socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;
    use surface::limits::TEST_HANG_SECONDS;
    use surface::program::Called;

    fn open_text(text: &str, loops: usize) -> Result<Vec<Listener>, ArgumentError> {
        open(&[parse(text, &mut 0).unwrap()], loops, Vec::new(), Duration::ZERO)
    }

    fn passed() -> (PassedSocket, SocketAddr) {
        let socket = tcp_socket("127.0.0.1:0".parse().unwrap(), false).unwrap();
        socket.listen(10).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        (PassedSocket { name: "web".into(), socket }, address)
    }

    #[test]
    fn sockets_passed_by_the_system_are_served_and_go_on_taking_connections() {
        let (socket, address) = passed();
        let mut listeners = open(&[], 3, vec![socket], Duration::ZERO).unwrap();
        assert_eq!((listeners.len(), listeners[0].name.as_str()), (1, "web"));
        assert_eq!(listeners[0].endpoint, address.to_string());
        listeners[0].resize(3).unwrap();
        assert_eq!(listeners[0].sockets().len(), 1);
        listeners[0].refuse();
        assert!(TcpStream::connect(address).is_ok());
    }

    #[test]
    fn passed_socket_belongs_to_the_address_it_is_bound_to() {
        let (socket, address) = passed();
        let arguments = ["127.0.0.1:0".to_owned(), format!("edge={address},PROXY")];
        let arguments: Vec<_> = arguments.iter().map(|text| parse(text, &mut 0).unwrap()).collect();
        let listeners = open(&arguments, 2, vec![socket], Duration::ZERO).unwrap();
        assert_eq!((listeners[0].sockets().len(), listeners[1].sockets().len()), (2, 1));
        assert_eq!((listeners[1].name.as_str(), listeners[1].proxy), ("edge", true));
    }

    #[test]
    fn a_port_chosen_by_the_system_is_the_same_for_every_loop_and_kept() {
        let mut listeners = open_text("127.0.0.1:0", 3).unwrap();
        let listener = &mut listeners[0];
        let addresses: Vec<SocketAddr> =
            listener.sockets().iter().map(|socket| socket.local_addr().unwrap().as_socket().unwrap()).collect();
        assert_eq!(addresses.len(), 3);
        assert!(addresses.iter().all(|address| *address == addresses[0] && address.port() != 0));
        assert!(TcpStream::connect(addresses[0]).is_err());
        listener.listen(10).unwrap();
        assert!(TcpStream::connect(addresses[0]).is_ok());
        listener.refuse();
        assert!(TcpStream::connect(addresses[0]).is_err());
        listener.resize(2).unwrap();
        listener.listen(10).unwrap();
        assert!(TcpStream::connect(addresses[0]).is_ok());
        assert_eq!(listener.sockets()[1].local_addr().unwrap().as_socket(), Some(addresses[0]));
    }

    #[test]
    fn http_3_has_a_udp_socket_for_each_loop_at_the_port_of_tcp_and_none_while_stopped() {
        let mut listeners = open_text("127.0.0.1:0,https,h3", 3).unwrap();
        let listener = &mut listeners[0];
        let address = listener.ip_address().unwrap();
        let bound = |listener: &Listener| -> Vec<SocketAddr> {
            let sockets = listener.datagram_sockets().iter();
            sockets.map(|socket| socket.local_addr().unwrap().as_socket().unwrap()).collect()
        };
        assert_eq!(bound(listener), [address; 3]);
        listener.resize(2).unwrap();
        assert_eq!(bound(listener), [address; 2]);
        listener.refuse();
        let freed = std::net::UdpSocket::bind(address).unwrap();
        let taken = listener.resize(2).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(freed);
        listener.resize(2).unwrap();
        assert_eq!(bound(listener), [address; 2]);
        assert_eq!(open_text("127.0.0.1:0,https", 2).unwrap()[0].datagram_sockets().len(), 0);
    }

    #[test]
    fn a_udp_port_of_another_program_is_not_shared() {
        // Below the ports that the system hands out, so that no connection of another test takes
        // the one of TCP.
        let first = 12_000 + (std::process::id() % 8_000) as u16;
        let bind = |port: u16| {
            let taken = std::net::UdpSocket::bind(("127.0.0.1", port)).ok()?;
            std::net::TcpListener::bind(("127.0.0.1", port)).ok().map(|_| taken)
        };
        let taken = (first..20_000).chain(12_000..first).find_map(bind).unwrap();
        let address = taken.local_addr().unwrap();
        let refused = open_text(&format!("{address},https,h3"), 1).unwrap_err();
        assert_eq!(refused.text, format!(" Could not get socket {address}: Address already in use"));
        assert_eq!(open_text(&format!("{address},https"), 1).map(|all| all.len()), Ok(1));
    }

    #[test]
    fn passed_socket_gets_matching_udp_sockets() {
        let (socket, address) = passed();
        let arguments = [parse(&format!("{address},https,h3"), &mut 0).unwrap()];
        let listeners = open(&arguments, 2, vec![socket], Duration::ZERO).unwrap();
        assert_eq!((listeners[0].sockets().len(), listeners[0].datagram_sockets().len()), (1, 2));
        assert!(listeners[0].tls);
    }

    #[test]
    fn busy_address_is_retried_and_an_unusable_one_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = tcp.local_addr().unwrap().to_string();
        let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        for (text, holder) in [(place, OwnedFd::from(tcp)), (path.display().to_string(), OwnedFd::from(unix))] {
            let arguments = [parse(&text, &mut 0).unwrap()];
            let refused = open(&arguments, 1, Vec::new(), Duration::ZERO).unwrap_err();
            assert!(refused.text.contains("Address already in use"), "{}", refused.text);
            // The failed attempt has not taken the socket's path from its owner.
            assert!(!text.starts_with('/') || path.exists());
            let (let_go, told) = std::sync::mpsc::channel();
            let dying = std::thread::spawn(move || told.recv().map(|()| drop(holder)));
            let_go.send(()).unwrap();
            assert!(open(&arguments, 1, Vec::new(), Duration::from_secs(TEST_HANG_SECONDS)).is_ok());
            dying.join().unwrap().unwrap();
        }
    }

    #[test]
    fn fast_open_is_a_property_of_tcp() {
        let directory = tempfile::tempdir().unwrap();
        for text in ["127.0.0.1:0".to_owned(), directory.path().join("s").display().to_string()] {
            let listeners = open_text(&text, 2).unwrap();
            listeners[0].listen(10).unwrap();
            listeners[0].enable_fast_open(10).unwrap();
        }
    }

    #[test]
    fn a_unix_socket_is_made_anew_after_refusing_and_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let mut listeners = open_text(&format!("{},mode=600", path.display()), 4).unwrap();
        let listener = &mut listeners[0];
        listener.listen(10).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        listener.refuse();
        assert!(UnixStream::connect(&path).is_err());
        listener.resize(4).unwrap();
        listener.listen(10).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(listeners);
        assert!(!path.exists());
    }

    #[test]
    fn an_address_in_use_or_not_ours_is_named() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let text = taken.local_addr().unwrap().to_string();
        let refused = open_text(&text, 1).unwrap_err();
        let stock = format!(" Could not get socket {text}: Address already in use\n(-? gives usage)");
        assert_eq!(refused.shown(Called::Stock), stock);
        let (process, shown) = (std::process::id(), refused.shown(Called::Copal));
        assert!(shown.ends_with(&format!(", process {process}")) && !shown.contains("usage"), "{shown}");
        let refused = |address: &str| open_text(address, 1).unwrap_err().text;
        assert_eq!(refused("192.0.2.1:0"), " Could not get socket 192.0.2.1:0: Cannot assign requested address");
        assert_eq!(refused("/nonexistent/s"), " Could not get socket /nonexistent/s: No such file or directory");
    }
}
