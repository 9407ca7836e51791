//! haproxy's command line: sends a command, closes the sending side, reads the answer to its end.

use std::io::Read;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::Socket;

use crate::address;
use crate::journal::Journal;
use crate::lex::Word;
use crate::matching;
use crate::specification::{self, Actor, Arguments};
use crate::test::{Cancel, Outcome};

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// Executes a block; `address_macro` is the macro with the address.
pub(super) fn talk(journal: &Journal, block: &Word, address_macro: &str, cancel: &Cancel) -> Outcome {
    journal.log(2, "CLI starting");
    let address = String::from_utf8_lossy(&journal.expand(format!("${{{address_macro}}}").as_bytes())?).into_owned();
    let mut talk = CliContext { address, socket: None, cancel };
    specification::run(journal, &block.bytes, block.line, &mut talk)?;
    journal.log(2, "CLI ending");
    Ok(())
}

struct CliContext<'a> {
    address: String,
    socket: Option<Socket>,
    cancel: &'a Cancel,
}

impl Actor for CliContext<'_> {
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        match name {
            "send" => {
                let line = [&arguments.need("the command")?.bytes[..], b"\n"].concat();
                arguments.end()?;
                journal.dump(4, "CLI send", &line);
                let socket = match self.socket.take() {
                    Some(socket) => socket,
                    None => address::connect(&self.address, CONNECT_TIMEOUT, self.cancel)?
                        .map_err(|reason| journal.fail(format!("CLI failed to open {}: {reason}", self.address)))?,
                };
                if let Err(error) = address::send_all(&socket, &line, self.cancel)? {
                    return Err(journal.fail(format!("CLI send error {error}")));
                }
                // haproxy closes after the answer if nothing more can follow.
                let _ = socket.shutdown(Shutdown::Write);
                self.socket = Some(socket);
            }
            "expect" => {
                let operator = arguments.text("the operator")?;
                let regex = matching::regex(journal, &arguments.need("the regex")?.bytes)?;
                arguments.end()?;
                let answer = self.receive(journal)?;
                let text = format!("{operator} \"{}\"", regex.as_str());
                let wanted = match operator.as_str() {
                    "~" => true,
                    "!~" => false,
                    _ => return Err(journal.fail(format!("CLI expect {text}: there is no such operator"))),
                };
                if matching::occurs(&regex, &answer) != wanted {
                    return Err(journal.fail(format!("CLI expect failed {text}")));
                }
                journal.log(4, format!("CLI expect match {text}"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn cancel(&self) -> &Cancel {
        self.cancel
    }
}

impl CliContext<'_> {
    fn receive(&mut self, journal: &Journal) -> Outcome<Vec<u8>> {
        let Some(socket) = self.socket.take() else { return Err(journal.fail("CLI expect: nothing was sent")) };
        let mut answer = Vec::new();
        let mut buffer = [0; 16384];
        loop {
            self.cancel.readable(socket.as_fd(), None)?;
            match (&socket).read(&mut buffer) {
                Ok(0) => break,
                Ok(count) if answer.len() < ANSWER_BYTES_MAX => answer.extend_from_slice(&buffer[..count]),
                Ok(_) => return Err(journal.fail("CLI answer too long")),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(journal.fail(format!("CLI recv failed ({error})"))),
            }
        }
        journal.dump(4, "CLI recv", &answer);
        if answer.last() == Some(&b'\n') { Ok(answer) } else { Err(journal.fail("CLI answer is not complete")) }
    }
}
