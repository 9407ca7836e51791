//! `client cNAME`: connects, executes its block, closes; repeated as requested.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::Socket;

use crate::address;
use crate::http::{self, BlockContext, End};
use crate::journal::Journal;
use crate::lex::Word;
use crate::proxy_header;
use crate::rounds::Rounds;
use crate::specification::Arguments;
use crate::test::{Cancel, Outcome, Stop};
use crate::threads;

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client.
pub struct Client {
    journal: Journal,
    block: Option<Word>,
    rounds: Rounds,
    connect: Vec<u8>,
    proxy: Option<(u8, String)>,
    running: Option<JoinHandle<Outcome>>,
}

impl Client {
    /// A client that connects to the daemon `v1`.
    pub fn new(journal: Journal) -> Client {
        Client {
            journal,
            block: None,
            rounds: Rounds::default(),
            connect: b"${v1_sock}".to_vec(),
            proxy: None,
            running: None,
        }
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments) -> Outcome {
        while let Some(word) = arguments.next() {
            let option = word.text();
            if option == "-wait" {
                if self.running.is_none() {
                    return Err(self.journal.fail("Client not -started"));
                }
                self.wait()?;
                continue;
            }
            // A running client is not changed.
            self.wait()?;
            if self.rounds.option(&option, arguments)? {
                continue;
            }
            match option.as_str() {
                "-connect" => self.connect = arguments.need("the address")?.bytes,
                "-proxy1" => self.proxy = Some((1, arguments.text("the addresses")?)),
                "-proxy2" => self.proxy = Some((2, arguments.text("the addresses")?)),
                "-start" => self.start()?,
                "-run" => {
                    self.start()?;
                    self.wait()?;
                }
                _ if option.starts_with('-') => {
                    return Err(self.journal.fail(format!("Unknown client argument: {option}")));
                }
                _ => self.block = Some(word),
            }
        }
        Ok(())
    }

    fn start(&mut self) -> Outcome {
        self.journal.log(2, "Starting client");
        let Some(block) = self.block.clone() else { return Err(self.journal.fail("Client has no block")) };
        let address = String::from_utf8_lossy(&self.journal.expand(&self.connect)?).into_owned();
        let session = Session {
            journal: self.journal.forked(),
            cancel: threads::cancel(&self.journal)?,
            address,
            block,
            rounds: self.rounds.clone(),
            proxy: self.proxy.clone(),
        };
        self.running = Some(threads::start(&self.journal, move || session.run())?);
        Ok(())
    }

    /// Waits for the end of a running client.
    ///
    /// # Errors
    /// It has failed.
    pub fn wait(&mut self) -> Outcome {
        let Some(thread) = self.running.take() else { return Ok(()) };
        self.journal.log(2, "Waiting for client");
        threads::join(&self.journal, thread)
    }
}

/// Data of a client's thread.
struct Session {
    journal: Journal,
    cancel: Arc<Cancel>,
    address: String,
    block: Word,
    rounds: Rounds,
    proxy: Option<(u8, String)>,
}

impl Session {
    fn run(&self) -> Outcome {
        self.rounds.announce(&self.journal, &self.address);
        let mut kept = None;
        for _ in 0..self.rounds.repeat {
            let socket = match kept.take() {
                Some(socket) => socket,
                None => self.connect()?,
            };
            let talk = BlockContext {
                block: &self.block.bytes,
                line: self.block.line,
                end: End::Client,
                address: &self.address,
                receive_buffer_bytes: self.rounds.receive_buffer_bytes,
            };
            let socket = http::talk(&self.journal, &self.cancel, socket, &talk)?;
            if self.rounds.keepalive {
                kept = socket;
            } else {
                self.journal.log(3, "closing the connection");
            }
        }
        self.journal.log(2, "Ending");
        Ok(())
    }

    fn connect(&self) -> Outcome<Socket> {
        let address = &self.address;
        self.journal.log(3, format!("Connect to {address}"));
        let socket = address::connect(address, CONNECT_TIMEOUT, &self.cancel)?
            .map_err(|reason| self.journal.fail(format!("Failed to open {address}: {reason}")))?;
        let own = address::name(&socket).map(|name| format!("{} {}", name.address, name.port)).unwrap_or_default();
        self.journal.log(3, format!("connected from {own} to {address}"));
        if let Some((version, addresses)) = &self.proxy {
            let header = proxy_header::header(*version, addresses).map_err(|reason| self.journal.fail(reason))?;
            match address::send_all(&socket, &header, &self.cancel) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(self.journal.fail(format!("Write failed: {error}"))),
                Err(stop) => return Err::<Socket, Stop>(stop),
            }
        }
        Ok(socket)
    }
}
