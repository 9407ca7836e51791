//! `varnishadm`: one command from the command line, commands from a stream, or a conversation at a terminal.
//!
//! The protocol is `cli-proto`'s; here are the options, the connection and what is printed. Where the server listens and
//! which secret it wants is looked up in its shared memory unless `-T` (and `-S`) say so.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cli_proto::client::{ClientEvent, ClientSession, answer_line, typed_line};
use cli_proto::request::RequestReader;
use cli_proto::response::Response;
use shm::read::vsm::Vsm;

use crate::Streams;
use crate::follow::reason;
use crate::options::{Given, OptionRow, Program, option};
use crate::patience::Patience;

const OPTIONS: &[OptionRow] = &[
    option('h', "", "This text"),
    option('n', "<dir>", "Work directory of the server"),
    option('p', "", "Print replies as the protocol frames them"),
    option('S', "<file>", "Secret file, with -T"),
    option('t', "<seconds>", "How long to wait for the server (default: 5)"),
    option('T', "<address:port>", "Where the server's CLI listens"),
    option('V', "", "Version"),
];

const PROGRAM: Program =
    Program { name: "varnishadm", options: OPTIONS, rest: "[command [...]]", usage_status: 1, stops_at_word: true };

/// Exit status when the server refused a command.
const REFUSED: i32 = 1;
/// Exit status when there is no talking to the server.
const UNREACHABLE: i32 = 2;
/// Longest reply, and longest command, in bytes.
const REPLY_BYTES_MAX: usize = cli_proto::response::BODY_BYTES_MAX;

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let given = match PROGRAM.parse(args, streams) {
        Ok(given) => given,
        Err(status) => return status,
    };
    match try_run(&given, streams) {
        Ok(status) => status,
        Err((status, message)) => {
            let _ = streams.output.flush();
            let _ = writeln!(streams.error, "{message}");
            status
        }
    }
}

type Failure = (i32, String);

fn try_run(given: &Given, streams: &mut Streams) -> Result<i32, Failure> {
    let patience = match given.last('t') {
        None => Patience::default(),
        Some(text) => Patience::parse(text)
            .ok_or_else(|| (UNREACHABLE, format!("-t: Invalid argument: {}", text.to_string_lossy())))?,
    };
    if given.has('n') && (given.has('T') || given.has('S')) {
        return Err((REFUSED, "varnishadm: -n is mutually exclusive with -S and -T".to_owned()));
    }
    let mut connection = match given.last('T') {
        Some(address) => {
            let secret = given.last('S').map(PathBuf::from);
            Connection::open(&address.to_string_lossy(), secret.as_deref(), patience)?
        }
        None => Connection::by_name(given.last('n'), given.last('S'), patience)?,
    };
    if !given.rest.is_empty() {
        let words: Vec<_> = given.rest.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        return one_command(&mut connection, &words, given.has('p'), streams);
    }
    if !given.has('p') && streams.program && io::stdin().is_terminal() {
        return converse(&mut connection, streams);
    }
    pass(&mut connection, given.has('p'), streams)
}

fn one_command(
    connection: &mut Connection,
    words: &[String],
    framed: bool,
    streams: &mut Streams,
) -> Result<i32, Failure> {
    if words.iter().all(|word| word.trim().is_empty()) {
        // A server skips an empty line, and we would wait for its answer for ever.
        return Err((REFUSED, "varnishadm: the command is empty".to_owned()));
    }
    connection.send(typed_line(words).as_bytes())?;
    let response = connection.reply()?;
    print(&response, framed, streams)?;
    if response.is_ok() {
        return Ok(0);
    }
    Err((REFUSED, format!("Command failed with error code {}", response.status)))
}

/// Commands from a stream, replies to another.
fn pass(connection: &mut Connection, framed: bool, streams: &mut Streams) -> Result<i32, Failure> {
    let mut commands = RequestReader::new(surface::limits::CLI_COMMAND_BYTES_MAX);
    let mut bytes = vec![0; 1 << 16];
    let mut ended = false;
    while !ended {
        let count = streams.input.read(&mut bytes).unwrap_or(0);
        ended = count == 0;
        // A last line without its newline is a command all the same.
        let piece: &[u8] = if ended { b"\n" } else { &bytes[..count] };
        commands.push(piece);
        connection.send(piece)?;
        while commands.next().is_some() {
            let response = match connection.reply() {
                Ok(response) => response,
                Err(_) => return Ok(0),
            };
            print(&response, framed, streams)?;
            streams.output.flush().map_err(|_| (REFUSED, "Cannot write".to_owned()))?;
            if response.status == cli_proto::response::status::CLOSE {
                return Ok(0);
            }
        }
    }
    Ok(0)
}

/// A conversation at a terminal: prompt, command, status and reply.
fn converse(connection: &mut Connection, streams: &mut Streams) -> Result<i32, Failure> {
    let broken = |_: io::Error| (REFUSED, "Cannot write".to_owned());
    write!(streams.output, "200        \n{}\n", connection.banner).map_err(broken)?;
    let mut commands = RequestReader::new(surface::limits::CLI_COMMAND_BYTES_MAX);
    let mut input = BufReader::new(&mut *streams.input);
    let mut line = Vec::new();
    loop {
        let prompt: &[u8] = if commands.is_partial() { b"" } else { b"varnish> " };
        streams.output.write_all(prompt).and_then(|()| streams.output.flush()).map_err(broken)?;
        line.clear();
        if input.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return Ok(0);
        }
        commands.push(&line);
        connection.send(&line)?;
        while commands.next().is_some() {
            let response = connection.reply()?;
            writeln!(streams.output, "{:<3}        ", response.status).map_err(broken)?;
            if !response.body.is_empty() {
                writeln!(streams.output, "{}", response.body).map_err(broken)?;
            }
            if response.status == cli_proto::response::status::CLOSE {
                return Ok(0);
            }
        }
    }
}

fn print(response: &Response, framed: bool, streams: &mut Streams) -> Result<(), Failure> {
    let written = if framed {
        write!(streams.output, "{:<3} {:<8}\n{}", response.status, response.body.len(), response.body)
    } else {
        writeln!(streams.output, "{}", response.body)
    };
    written.map_err(|_| (REFUSED, "Cannot write".to_owned()))
}

/// An authenticated connection to a CLI.
struct Connection {
    stream: TcpStream,
    session: ClientSession,
    banner: String,
}

impl Connection {
    /// Connects to the server of that name; its CLI addresses and secret are found in its shared memory.
    fn by_name(name: Option<&OsStr>, secret: Option<&OsStr>, patience: Patience) -> Result<Connection, Failure> {
        let Some(mut vsm) = patience.attach(name) else {
            return Err((UNREACHABLE, "Could not get hold of varnishd, is it running?".to_owned()));
        };
        let mut addresses = Vec::new();
        patience.wait_for(|| {
            vsm.poll();
            addresses = listed_addresses(&vsm);
            !addresses.is_empty()
        });
        if addresses.is_empty() {
            return Err((UNREACHABLE, "No -T arg in shared memory: see also -T option.".to_owned()));
        }
        let listed = vsm.text("Arg", "-S").ok().filter(|path| !path.is_empty()).map(PathBuf::from);
        let secret = secret.map(PathBuf::from).or(listed);
        let mut failure = None;
        for address in addresses {
            match Connection::open(&address, secret.as_deref(), patience) {
                Ok(connection) => return Ok(connection),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or((UNREACHABLE, "Connection failed".to_owned())))
    }

    /// Connects to `address` (`host:port` or `host port`) and authenticates.
    fn open(address: &str, secret: Option<&Path>, patience: Patience) -> Result<Connection, Failure> {
        let failed = |error: &io::Error| (UNREACHABLE, format!("Connection failed ({address}): {}", reason(error)));
        let limit = patience.0.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).filter(|d| !d.is_zero());
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "not an address with a port");
        let targets = match resolve(address) {
            Ok(targets) => targets,
            Err(error) => return Err(failed(&error)),
        };
        for target in targets {
            let connected = match limit {
                Some(limit) => TcpStream::connect_timeout(&target, limit),
                None => TcpStream::connect(target),
            };
            match connected {
                Ok(stream) => {
                    let session = ClientSession::new(REPLY_BYTES_MAX);
                    let mut connection = Connection { stream, session, banner: String::new() };
                    // The time to find the server is bounded; the time a command takes is the server's affair.
                    let _ = connection.stream.set_read_timeout(limit);
                    connection.authenticate(secret)?;
                    let _ = connection.stream.set_read_timeout(None);
                    return Ok(connection);
                }
                Err(error) => last = error,
            }
        }
        Err(failed(&last))
    }

    fn authenticate(&mut self, secret: Option<&Path>) -> Result<(), Failure> {
        loop {
            match self.event()? {
                ClientEvent::Challenge(challenge) => {
                    let Some(path) = secret else { return Err((UNREACHABLE, "Authentication required".to_owned())) };
                    let content = std::fs::read(path).map_err(|error| {
                        (UNREACHABLE, format!("Cannot open \"{}\": {}", path.display(), reason(&error)))
                    })?;
                    self.send(answer_line(&challenge, &content).as_bytes())?;
                }
                ClientEvent::Ready(banner) => {
                    self.banner = banner;
                    return Ok(());
                }
                ClientEvent::Rejected(response) | ClientEvent::Reply(response) => {
                    return Err((UNREACHABLE, format!("Rejected {}\n{}", response.status, response.body)));
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream
            .write_all(bytes)
            .map_err(|error| (UNREACHABLE, format!("Write error CLI socket: {}", reason(&error))))
    }

    fn reply(&mut self) -> Result<Response, Failure> {
        match self.event()? {
            ClientEvent::Reply(response) | ClientEvent::Rejected(response) => Ok(response),
            ClientEvent::Challenge(_) | ClientEvent::Ready(_) => {
                Err((UNREACHABLE, "The CLI server does not follow the protocol".to_owned()))
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

/// `addr port` lines of the server's `-T` argument.
fn listed_addresses(vsm: &Vsm) -> Vec<String> {
    let text = vsm.text("Arg", "-T").unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
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
    use super::resolve;

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
