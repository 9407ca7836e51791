//! The test's end of the CLI connection.

use std::io::Read;
use std::os::fd::AsFd;
use std::time::Instant;

use cli_proto::response::{BODY_BYTES_MAX, Response, ResponseReader};
use socket2::Socket;

use crate::address;
use crate::journal::Journal;
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
