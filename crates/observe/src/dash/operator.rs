//! The way to the manager: a socket that it has given this process, or the CLI.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use surface::limits::{DASH_ANSWER_BYTES_MAX, DASH_TOKEN_SECONDS_MAX};
use surface::operation::{Operation, Order, parts};
use tools::CliClient;

/// Time limit of an operation. A worker may take long to answer.
const LIMIT: Duration = Duration::from_secs(60);
/// Status of the CLI for a command that cannot be executed.
const CANNOT: u16 = 300;

/// Executes orders.
pub(crate) trait Operator: Send {
    /// The status of the CLI, and its text.
    fn execute(&mut self, order: &Order) -> (u16, String);
}

/// The socket to the manager.
pub(crate) struct Socket(Option<UnixStream>);

impl Socket {
    pub fn new(stream: UnixStream) -> Socket {
        let is_usable = stream.set_read_timeout(Some(LIMIT)).and_then(|()| stream.set_write_timeout(Some(LIMIT)));
        Socket(is_usable.is_ok().then_some(stream))
    }

    fn exchange(stream: &mut UnixStream, order: &Order) -> std::io::Result<(u16, String)> {
        let damaged = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        stream.write_all(&order.encode())?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > DASH_ANSWER_BYTES_MAX {
            return Err(damaged());
        }
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes)?;
        match parts(&bytes).as_deref() {
            Some([status, text]) => Ok((status.parse().map_err(|_| damaged())?, (*text).to_owned())),
            _ => Err(damaged()),
        }
    }
}

impl Operator for Socket {
    fn execute(&mut self, order: &Order) -> (u16, String) {
        let Some(stream) = &mut self.0 else { return (CANNOT, "there is no way to the manager".to_owned()) };
        match Socket::exchange(stream, order) {
            Ok(answer) => answer,
            Err(error) => {
                // A late answer would be taken for that of the next order.
                self.0 = None;
                (CANNOT, format!("the manager does not answer: {error}"))
            }
        }
    }
}

/// The CLI, with the rights of this process's user.
pub(crate) struct Cli {
    work_directory: OsString,
    client: Option<CliClient>,
    /// Token of the one login, until it is used, and the time at which it was made.
    token: Option<(String, Instant)>,
}

impl Cli {
    /// The CLI of the server with this work directory. `token` logs in once.
    pub fn new(work_directory: &OsStr, token: &str) -> Cli {
        Cli { work_directory: work_directory.to_owned(), client: None, token: Some((token.to_owned(), Instant::now())) }
    }
}

impl Operator for Cli {
    fn execute(&mut self, order: &Order) -> (u16, String) {
        if let Operation::Login(token) = &order.operation {
            let life = Duration::from_secs(DASH_TOKEN_SECONDS_MAX);
            return match self.token.take_if(|(wanted, made)| wanted == token && made.elapsed() < life) {
                Some(_) => (200, String::new()),
                None => (CANNOT, "the token is wrong".to_owned()),
            };
        }
        let words = order.operation.command();
        if words.is_empty() {
            return (CANNOT, "sessions are not kept".to_owned());
        }
        // The connection may be one to a server that has ended.
        for _ in 0..2 {
            if self.client.is_none() {
                match CliClient::open(&self.work_directory) {
                    Ok(client) => self.client = Some(client),
                    Err(why) => return (CANNOT, why),
                }
            }
            match self.client.as_mut().map(|client| client.ask(&words)) {
                Some(Ok(answer)) => return answer,
                _ => self.client = None,
            }
        }
        (CANNOT, "the server does not answer".to_owned())
    }
}
