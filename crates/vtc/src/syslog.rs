//! `syslog SNAME`: a server that receives syslog datagrams.
//!
//! Source: vtc(7), syslog; RFC 5424 §6.2.1 for the priority.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use socket2::{Socket, Type};

use crate::address;
use crate::journal::Journal;
use crate::lex::Word;
use crate::matching;
use crate::specification::{self, Actor, Arguments};
use crate::test::{Cancel, Outcome, Waited};
use crate::threads;

const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
/// Largest datagram.
const DATAGRAM_BYTES_MAX: usize = 64 << 10;

/// A syslog server.
pub struct Syslog {
    journal: Journal,
    block: Option<Word>,
    repeat: u64,
    level: Option<usize>,
    bind: String,
    socket: Option<Socket>,
    running: Option<(JoinHandle<Outcome>, Arc<Cancel>)>,
}

impl Syslog {
    /// Creates a server that will use a port chosen by the system.
    pub fn new(journal: Journal) -> Syslog {
        let bind = journal.test.settings.listen_address.clone();
        Syslog { journal, block: None, repeat: 1, level: None, bind, socket: None, running: None }
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments) -> Outcome {
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-wait" if self.running.is_none() => return Err(self.journal.fail("Syslog server not -started")),
                "-stop" => {
                    self.journal.log(2, "Stopping for syslog server");
                    self.stop();
                    continue;
                }
                _ => {}
            }
            // A running server is not changed.
            self.wait()?;
            match option.as_str() {
                "-wait" => {}
                "-repeat" => self.repeat = arguments.number("the count")?,
                "-bind" => {
                    self.bind = arguments.text("the address")?;
                    self.bind()?;
                }
                "-level" => self.level = Some(level(&self.journal, &arguments.text("the level")?)?),
                "-start" => self.start()?,
                _ if option.starts_with('-') => {
                    return Err(self.journal.fail(format!("Unknown syslog argument: {option}")));
                }
                _ => self.block = Some(word),
            }
        }
        Ok(())
    }

    fn bind(&mut self) -> Outcome {
        self.socket = None;
        let failed = |reason: &dyn std::fmt::Display| {
            self.journal.fail(format!("Syslog server bind address ({}) cannot be resolved: {reason}", self.bind))
        };
        let found = address::resolve(&self.bind, Some(0)).map_err(|reason| failed(&reason))?;
        let address: SocketAddr = found.first().copied().ok_or_else(|| failed(&"no address"))?;
        let bound = address::bind(address, Type::DGRAM).and_then(|socket| {
            socket.set_nonblocking(true)?;
            let name = address::name(&socket)?;
            Ok((socket, name))
        });
        let (socket, name) = bound.map_err(|error| failed(&error))?;
        let own = self.journal.name.clone();
        self.journal.define(&own, "addr", &name.address);
        self.journal.define(&own, "port", &name.port);
        self.journal.define(&own, "sock", &name.socket);
        self.bind = name.socket;
        self.socket = Some(socket);
        Ok(())
    }

    fn start(&mut self) -> Outcome {
        self.journal.log(2, "Starting syslog server");
        let Some(block) = self.block.clone() else { return Err(self.journal.fail("syslog has no block")) };
        if self.socket.is_none() {
            self.bind()?;
        }
        let Some(socket) = self.socket.take() else { return Ok(()) };
        self.journal.log(1, format!("Bound on {}", self.bind));
        let cancel = threads::cancel(&self.journal)?;
        let journal = self.journal.forked();
        let mut actor = SyslogActor { socket, cancel: Arc::clone(&cancel), level: self.level, datagram: Vec::new() };
        let repeat = self.repeat;
        let work = move || {
            for _ in 0..repeat {
                specification::run(&journal, &block.bytes, block.line, &mut actor)?;
            }
            journal.log(2, "Ending");
            Ok(())
        };
        self.running = Some((threads::start(&self.journal, work)?, cancel));
        Ok(())
    }

    /// Waits for the end of a running server.
    ///
    /// # Errors
    /// It has failed.
    pub fn wait(&mut self) -> Outcome {
        let Some((thread, _)) = self.running.take() else { return Ok(()) };
        self.journal.log(2, "Waiting for syslog server");
        threads::join(&self.journal, thread)
    }

    /// Stops a running server wherever it is.
    pub fn stop(&mut self) {
        if let Some((thread, cancel)) = self.running.take() {
            cancel.set();
            let _ = thread.join();
        }
    }
}

fn level(journal: &Journal, name: &str) -> Outcome<usize> {
    let found = LEVELS.iter().position(|level| *level == name);
    found.ok_or_else(|| journal.fail(format!("wrong syslog level '{name}'")))
}

struct SyslogActor {
    socket: Socket,
    cancel: Arc<Cancel>,
    level: Option<usize>,
    datagram: Vec<u8>,
}

impl Actor for SyslogActor {
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        match name {
            "recv" => {
                let wanted = match arguments.next() {
                    Some(word) => Some(level(journal, &word.text())?),
                    None => self.level,
                };
                arguments.end()?;
                self.receive(journal, wanted)?;
            }
            "expect" => {
                let operator = arguments.text("the operator")?;
                let written = arguments.need("the regex")?.bytes;
                arguments.end()?;
                let regex = matching::regex(journal, &written)?;
                let text = format!("{operator} \"{}\"", regex.as_str());
                let wanted = match operator.as_str() {
                    "~" => true,
                    "!~" => false,
                    _ => return Err(journal.fail(format!("EXPECT {text}: there is no such operator"))),
                };
                if matching::occurs(&regex, &self.datagram) != wanted {
                    return Err(journal.fail(format!("EXPECT FAILED {text}")));
                }
                journal.log(4, format!("EXPECT MATCH {text}"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl SyslogActor {
    /// Waits for a datagram with this level. Compat: without a level none matches.
    fn receive(&mut self, journal: &Journal, wanted: Option<usize>) -> Outcome {
        let timeout = journal.test.settings.time_max() / 2;
        loop {
            if self.cancel.readable(self.socket.as_fd(), Some(timeout))? == Waited::TimedOut {
                return Err(journal.fail(format!("syslog rx timeout ({:.3}s)", timeout.as_secs_f64())));
            }
            let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
            let count = match std::io::Read::read(&mut &self.socket, &mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(journal.fail(format!("syslog recv failed: {error}"))),
            };
            buffer.truncate(count);
            journal.dump(4, "syslog", &buffer);
            let text = String::from_utf8_lossy(&buffer).into_owned();
            let priority = text.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(number, _)| number);
            let Some(priority) = priority.and_then(|number| number.parse::<usize>().ok()) else {
                return Err(journal.fail("syslog PRI: a datagram does not start with <NUMBER>"));
            };
            self.datagram = buffer;
            if wanted == Some(priority % LEVELS.len()) {
                return Ok(());
            }
        }
    }
}
