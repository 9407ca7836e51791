//! The connection of `varnishadm` to a server's CLI: finds the server, proves knowledge of the
//! secret, and gets one reply per command.
//!
//! Address and secret are looked up in the server's shared memory unless `-T` (and `-S`) are given.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cli_proto::client::{ClientEvent, ClientSession, answer_line};
use cli_proto::response::Response;
use shm::read::vsm::Vsm;
use surface::program::Called;

use super::{Failure, UNREACHABLE};
use crate::attach_timeout::{AttachTimeout, not_running};
use crate::follow::reason;

/// Longest reply in bytes.
const REPLY_BYTES_MAX: usize = cli_proto::response::BODY_BYTES_MAX;

/// An authenticated connection to a CLI.
pub(super) struct CliConnection {
    stream: Stream,
    session: ClientSession,
    /// Replies that are still expected, including those whose timeout has passed.
    owed: usize,
    /// The server's greeting.
    pub banner: String,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn set_timeout(&self, limit: Option<Duration>) {
        let _ = match self {
            Stream::Tcp(stream) => stream.set_read_timeout(limit),
            Stream::Unix(stream) => stream.set_read_timeout(limit),
        };
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }
}

impl CliConnection {
    /// Connects to the server with that name; its CLI addresses and secret are found in its shared
    /// memory.
    pub fn by_name(
        name: Option<&OsStr>,
        secret: Option<&OsStr>,
        timeout: AttachTimeout,
        called: Called,
    ) -> Result<CliConnection, Failure> {
        let Some(mut vsm) = timeout.attach(name) else {
            return Err((UNREACHABLE, not_running(name, called)));
        };
        let mut addresses = Vec::new();
        timeout.wait_for(|| {
            vsm.poll();
            addresses = listed_addresses(&vsm);
            !addresses.is_empty()
        });
        if addresses.is_empty() {
            return Err((UNREACHABLE, "No -T arg in shared memory: see also -T option.".to_owned()));
        }
        let listed = vsm.argument("-S").ok().filter(|path| !path.is_empty()).map(PathBuf::from);
        let secret = secret.map(PathBuf::from).or(listed);
        let mut failure = None;
        for address in addresses {
            match CliConnection::open(&address, secret.as_deref(), timeout) {
                Ok(connection) => return Ok(connection),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or((UNREACHABLE, "Connection failed".to_owned())))
    }

    /// Connects to `address` (`host:port`, `host port` or the path of a socket) and authenticates.
    pub fn open(address: &str, secret: Option<&Path>, timeout: AttachTimeout) -> Result<CliConnection, Failure> {
        let limit = timeout.0.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).filter(|d| !d.is_zero());
        let stream = connect(address, limit)
            .map_err(|error| (UNREACHABLE, format!("Connection failed ({address}): {}", reason(&error))))?;
        let session = ClientSession::new(REPLY_BYTES_MAX);
        let mut connection = CliConnection { stream, session, owed: 0, banner: String::new() };
        // The time to find the server is limited; the duration of a command is up to the server.
        connection.stream.set_timeout(limit);
        connection.authenticate(secret)?;
        connection.ping()?;
        connection.stream.set_timeout(None);
        Ok(connection)
    }

    /// Sets the timeout for a reply; one that takes longer is dropped on arrival.
    pub fn limit_replies(&mut self, limit: Option<Duration>) {
        self.stream.set_timeout(limit);
    }

    fn authenticate(&mut self, secret: Option<&Path>) -> Result<(), Failure> {
        let mut answered = None;
        loop {
            match self.event()? {
                ClientEvent::Challenge(challenge) => {
                    let Some(path) = secret else {
                        return Err((
                            UNREACHABLE,
                            "Authentication required: which file is the secret? (-S)".to_owned(),
                        ));
                    };
                    let content = std::fs::read(path).map_err(|error| {
                        (UNREACHABLE, format!("Cannot open \"{}\": {}", path.display(), reason(&error)))
                    })?;
                    self.send(answer_line(&challenge, &content).as_bytes())?;
                    answered = Some(path);
                }
                ClientEvent::Ready(banner) => {
                    self.banner = banner;
                    return Ok(());
                }
                ClientEvent::Rejected(response) | ClientEvent::Reply(response) => {
                    let text = response.body.split_whitespace().collect::<Vec<_>>().join(" ");
                    let message = match answered {
                        Some(path) if text.is_empty() => format!("the secret in \"{}\" is wrong", path.display()),
                        _ => text,
                    };
                    return Err((UNREACHABLE, format!("Rejected {}: {message}", response.status)));
                }
            }
        }
    }

    /// Checks that the server answers. Compat: the stock program does so before every command, and
    /// also without one.
    fn ping(&mut self) -> Result<(), Failure> {
        self.send(b"ping\n")?;
        let pong = self.reply()?;
        if pong.is_ok() && pong.body.contains("PONG") {
            return Ok(());
        }
        Err((UNREACHABLE, "No pong received from server".to_owned()))
    }

    /// Sends whole lines.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream
            .write_all(bytes)
            .map_err(|error| (UNREACHABLE, format!("Write error CLI socket: {}", reason(&error))))
    }

    /// Waits for the next reply, after those that have timed out.
    pub fn reply(&mut self) -> Result<Response, Failure> {
        self.owed += 1;
        loop {
            let response = match self.event()? {
                ClientEvent::Reply(response) | ClientEvent::Rejected(response) => response,
                ClientEvent::Challenge(_) | ClientEvent::Ready(_) => {
                    return Err((UNREACHABLE, "The CLI server does not follow the protocol".to_owned()));
                }
            };
            self.owed -= 1;
            if self.owed == 0 {
                return Ok(response);
            }
        }
    }

    fn event(&mut self) -> Result<ClientEvent, Failure> {
        let mut bytes = [0; 8192];
        loop {
            match self.session.next() {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(_) => return Err((UNREACHABLE, "The CLI server does not follow the protocol".to_owned())),
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err((UNREACHABLE, "CLI connection closed by the server".to_owned())),
                Ok(count) => self.session.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err((UNREACHABLE, "Read error CLI socket: no answer in time".to_owned()));
                }
                Err(error) => return Err((UNREACHABLE, format!("Read error CLI socket: {}", reason(&error)))),
            }
        }
    }
}

/// The `addr port` lines of the server's `-T` argument.
fn listed_addresses(vsm: &Vsm) -> Vec<String> {
    let text = vsm.argument("-T").unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn connect(address: &str, limit: Option<Duration>) -> io::Result<Stream> {
    if address.starts_with('/') {
        let path = address.strip_suffix(" -").unwrap_or(address);
        return UnixStream::connect(path).map(Stream::Unix);
    }
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "not an address with a port");
    for target in resolve(address)? {
        let connected = match limit {
            Some(limit) => TcpStream::connect_timeout(&target, limit),
            None => TcpStream::connect(target),
        };
        match connected {
            Ok(stream) => return Ok(Stream::Tcp(stream)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The socket addresses of `host:port`, `[host]:port`, `host port` or `:port`.
fn resolve(address: &str) -> io::Result<Vec<std::net::SocketAddr>> {
    let no_port = || io::Error::new(io::ErrorKind::InvalidInput, "no port in the address");
    let (host, port) = match address.rsplit_once(' ') {
        Some((host, port)) => (host.trim(), port),
        None => address.rsplit_once(':').ok_or_else(no_port)?,
    };
    let port: u16 = port.parse().map_err(|_| no_port())?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let host = if host.is_empty() { "localhost" } else { host };
    Ok((host, port).to_socket_addrs()?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cli_proto::response::status;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    /// A server with late answers: `server` gets the lines of the client after its ping.
    fn connected(server: impl FnOnce(&mut TcpStream, &mut dyn FnMut() -> String) + Send + 'static) -> CliConnection {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut line = move || lines.next().unwrap().unwrap();
            stream.write_all(&Response::ok("hello").encode()).unwrap();
            assert_eq!(line(), "ping");
            stream.write_all(&Response::ok("PONG 1 1.0").encode()).unwrap();
            server(&mut stream, &mut line);
        });
        CliConnection::open(&address, None, AttachTimeout(Some(60.0))).unwrap()
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_that_of_the_next_command() {
        let mut connection = connected(|stream, line| {
            let answers: Vec<u8> = (0..3).flat_map(|_| Response::ok(line()).encode()).collect();
            stream.write_all(&answers).unwrap();
            stream.write_all(&Response::new(status::CANNOT, line()).encode()).unwrap();
        });
        connection.limit_replies(Some(Duration::from_millis(10)));
        for command in ["first\n", "second\n"] {
            connection.send(command.as_bytes()).unwrap();
            assert!(connection.reply().is_err());
        }
        connection.limit_replies(None);
        for (command, status) in [("third", status::OK), ("fourth", status::CANNOT)] {
            connection.send(format!("{command}\n").as_bytes()).unwrap();
            assert_eq!(connection.reply().unwrap(), Response::new(status, command));
        }
    }

    #[test]
    fn addresses_are_read_in_every_spelling() {
        for (text, expected) in [
            ("127.0.0.1:6082", "127.0.0.1:6082"),
            ("127.0.0.1 6082", "127.0.0.1:6082"),
            ("[::1]:6082", "[::1]:6082"),
            ("::1 6082", "[::1]:6082"),
        ] {
            assert_eq!(resolve(text).unwrap()[0].to_string(), expected);
        }
        for text in ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ""] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }
}
