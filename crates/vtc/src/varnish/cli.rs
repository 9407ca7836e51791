//! Commands to the daemon's CLI, and the expected answers.

use std::io::Read;
use std::os::fd::AsFd;
use std::time::Instant;

use cli_proto::response::{BODY_BYTES_MAX, Response, ResponseReader, status};
use socket2::Socket;

use super::Varnish;
use crate::address;
use crate::journal::Journal;
use crate::matching;
use crate::test::{Cancel, Outcome, Waited};

/// The test's end of the CLI connection.
pub(super) struct Cli {
    socket: Socket,
    reader: ResponseReader,
}

impl Cli {
    pub fn new(socket: Socket) -> Cli {
        Cli { socket, reader: ResponseReader::new(BODY_BYTES_MAX) }
    }

    /// Sends a command, if there is one, and waits for the answer.
    pub fn ask(&mut self, journal: &Journal, command: Option<&[u8]>, cancel: &Cancel) -> Outcome<Response> {
        if let Some(command) = command {
            journal.dump(4, "CLI TX", command);
            let line = [command, b"\n"].concat();
            if let Err(error) = address::send_all(&self.socket, &line, cancel)? {
                return Err(journal.fail(format!("CLI write failed: {error}")));
            }
        }
        let deadline = Instant::now() + journal.test.settings.time_max();
        let mut buffer = [0; 8192];
        loop {
            match self.reader.next() {
                Ok(Some(response)) => {
                    journal.log(3, format!("CLI RX  {}", response.status));
                    journal.dump(4, "CLI RX", response.body.as_bytes());
                    return Ok(response);
                }
                Ok(None) => {}
                Err(error) => return Err(journal.fail(format!("CLI failed: no answer but noise ({error:?})"))),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if cancel.readable(self.socket.as_fd(), Some(left))? == Waited::TimedOut {
                return Err(journal.fail("CLI failed: no answer in time"));
            }
            match (&self.socket).read(&mut buffer) {
                Ok(0) => return Err(journal.fail("CLI failed: the daemon closed the connection")),
                Ok(count) => self.reader.push(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(journal.fail(format!("CLI failed: {error}"))),
            }
        }
    }
}

impl Varnish {
    /// Sends a command and waits for the answer.
    pub(super) fn ask(&mut self, command: &[u8], cancel: &Cancel) -> Outcome<Response> {
        let journal = self.journal.clone();
        self.launched(cancel)?.cli.ask(&journal, Some(command), cancel)
    }

    /// The answer's text; the command must succeed.
    pub(super) fn ask_ok(&mut self, command: &str, cancel: &Cancel) -> Outcome<String> {
        let reply = self.ask(command.as_bytes(), cancel)?;
        if reply.is_ok() {
            return Ok(reply.body);
        }
        Err(self.journal.fail(format!("CLI {command} command failed: {} {}", reply.status, reply.body)))
    }

    /// Sends a command whose answer must have a status or match a regex.
    pub(super) fn ask_expecting(
        &mut self,
        command: &[u8],
        wanted: Option<u16>,
        regex: Option<&pcre2::bytes::Regex>,
        cancel: &Cancel,
    ) -> Outcome {
        let reply = self.ask(command, cancel)?;
        self.journal.log(2, format!("CLI {:03} <{}>", reply.status, String::from_utf8_lossy(command)));
        if let Some(wanted) = wanted.filter(|wanted| *wanted != reply.status) {
            let said = format!("FAIL CLI response {} expected {wanted}: {}", reply.status, reply.body.trim_end());
            return Err(self.journal.fail(said));
        }
        if let Some(regex) = regex.filter(|regex| !matching::occurs(regex, reply.body.as_bytes())) {
            return Err(self.journal.fail(format!("Expect failed: the answer does not match \"{}\"", regex.as_str())));
        }
        Ok(())
    }

    pub(super) fn ask_for_json(&mut self, command: &[u8], cancel: &Cancel) -> Outcome {
        let reply = self.ask(command, cancel)?;
        self.journal.log(2, format!("CLI {:03} <{}>", reply.status, String::from_utf8_lossy(command)));
        if !reply.is_ok() {
            return Err(self.journal.fail(format!("FAIL CLI response {} expected {}", reply.status, status::OK)));
        }
        match serde_json::from_str::<serde::de::IgnoredAny>(&reply.body) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.journal.fail(format!("FAIL CLI, not good JSON: {error}"))),
        }
    }
}
