//! `server sNAME`: listens, accepts a connection, executes its block, closes; repeated as
//! requested.
//!
//! Starting it again listens on the same port. `s0 -dispatch` accepts any number of connections at
//! once; each is a separate server called s1, s2 and so on.

use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use socket2::Socket;

use crate::address::{self, Name};
use crate::http::{self, BlockContext, End};
use crate::journal::Journal;
use crate::lex::Word;
use crate::rounds::Rounds;
use crate::specification::Arguments;
use crate::test::{Cancel, Outcome, Stop};
use crate::threads;

/// Number of connections that may wait to be accepted.
const BACKLOG: i32 = 10;

/// A server.
pub struct Server {
    journal: Journal,
    block: Option<Word>,
    rounds: Rounds,
    listen: String,
    listener: Option<Arc<Socket>>,
    /// The name of its socket, once it has listened.
    pub name: Option<Name>,
    running: Option<Running>,
}

struct Running {
    thread: JoinHandle<Outcome>,
    cancel: Arc<Cancel>,
    dispatched: Arc<Dispatched>,
}

/// The servers that a dispatching server has started.
#[derive(Default)]
struct Dispatched {
    threads: Mutex<Vec<(JoinHandle<Outcome>, Arc<Cancel>)>>,
    count: AtomicU64,
}

impl Server {
    /// Creates a server that will listen on a port chosen by the system.
    pub fn new(journal: Journal) -> Server {
        let listen = journal.test.settings.listen_address.clone();
        Server { journal, block: None, rounds: Rounds::default(), listen, listener: None, name: None, running: None }
    }

    /// Its name in the script.
    pub fn script_name(&self) -> &str {
        &self.journal.name
    }

    /// Its declaration as a backend in VCL.
    pub fn declaration(&self) -> String {
        let name = self.script_name();
        if address::is_local(&self.listen) {
            return format!("backend {name} {{ .path = \"{}\"; }}\n", self.listen);
        }
        let (host, port) = self.name.as_ref().map_or(("", ""), |name| (name.address.as_str(), name.port.as_str()));
        format!("backend {name} {{ .host = \"{host}\"; .port = \"{port}\"; }}\n")
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments) -> Outcome {
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-wait" => {
                    if self.running.is_none() {
                        return Err(self.journal.fail("Server not -started"));
                    }
                    self.wait()?;
                    continue;
                }
                "-break" => {
                    self.journal.log(2, "Breaking for server");
                    if self.running.is_none() {
                        return Err(self.journal.fail("Server not -started"));
                    }
                    self.stop();
                    self.listener = None;
                    continue;
                }
                _ => {}
            }
            // A running server is not changed.
            self.wait()?;
            if self.rounds.option(&option, arguments)? {
                continue;
            }
            match option.as_str() {
                "-listen" => {
                    self.listener = None;
                    self.listen = arguments.text("the address")?;
                }
                "-start" => self.start(false)?,
                "-dispatch" if self.script_name() == "s0" => self.start(true)?,
                "-dispatch" => return Err(self.journal.fail("server -dispatch only works on s0")),
                _ if option.starts_with('-') => {
                    return Err(self.journal.fail(format!("Unknown server argument: {option}")));
                }
                _ => self.block = Some(word),
            }
        }
        Ok(())
    }

    fn start(&mut self, dispatches: bool) -> Outcome {
        self.journal.log(2, if dispatches { "Starting dispatch server" } else { "Starting server" });
        // A server without clients needs no block.
        let block = self.block.clone().unwrap_or(Word { bytes: Vec::new(), line: 0 });
        let listener = self.listen()?;
        self.journal.log(1, format!("Listen on {}", self.listen));
        let cancel = threads::cancel(&self.journal)?;
        let dispatched = Arc::new(Dispatched::default());
        let session = Session {
            journal: self.journal.forked(),
            cancel: Arc::clone(&cancel),
            listener,
            address: self.listen.clone(),
            block,
            rounds: self.rounds.clone(),
        };
        let spawned = Arc::clone(&dispatched);
        let work = move || if dispatches { session.dispatch(&spawned) } else { session.run() };
        self.running = Some(Running { thread: threads::start(&self.journal, work)?, cancel, dispatched });
        Ok(())
    }

    fn listen(&mut self) -> Outcome<Arc<Socket>> {
        // The old socket must be closed before its port is available again.
        self.listener = None;
        let (socket, name) = address::listen(&self.listen, BACKLOG).map_err(|reason| {
            self.journal.fail(format!("Server listen address ({}) cannot be resolved: {reason}", self.listen))
        })?;
        if !address::is_local(&self.listen) {
            self.listen.clone_from(&name.socket);
        }
        let own = self.script_name().to_owned();
        self.journal.define(&own, "addr", &name.address);
        self.journal.define(&own, "port", &name.port);
        self.journal.define(&own, "sock", &name.socket);
        self.name = Some(name);
        let socket = Arc::new(socket);
        self.listener = Some(Arc::clone(&socket));
        Ok(socket)
    }

    /// Waits for the end of a running server.
    ///
    /// # Errors
    /// It has failed.
    pub fn wait(&mut self) -> Outcome {
        let Some(running) = self.running.take() else { return Ok(()) };
        self.journal.log(2, "Waiting for server");
        threads::join(&self.journal, running.thread)
    }

    /// Stops a running server wherever it is.
    pub fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.cancel.set();
        let _ = running.thread.join();
        let dispatched =
            std::mem::take(&mut *running.dispatched.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for (thread, cancel) in dispatched {
            cancel.set();
            let _ = thread.join();
        }
    }

    /// Removes its macros: the test is over.
    pub fn forget(&self) {
        for name in ["addr", "port", "sock"] {
            self.journal.forget(self.script_name(), name);
        }
    }
}

/// Data of a server's thread.
struct Session {
    journal: Journal,
    cancel: Arc<Cancel>,
    listener: Arc<Socket>,
    address: String,
    block: Word,
    rounds: Rounds,
}

impl Session {
    fn run(&self) -> Outcome {
        self.rounds.announce(&self.journal, &self.address);
        let mut kept = None;
        for _ in 0..self.rounds.repeat {
            let socket = match kept.take() {
                Some(socket) => socket,
                None => self.accept()?,
            };
            let socket = self.talk(&self.journal, &self.cancel, socket)?;
            if self.rounds.keepalive {
                kept = socket;
            } else {
                close(&self.journal, socket.as_ref());
            }
        }
        close(&self.journal, kept.as_ref());
        self.journal.log(2, "Ending");
        Ok(())
    }

    fn accept(&self) -> Outcome<Socket> {
        let socket = address::accept(&self.listener, &self.cancel)?
            .map_err(|error| self.journal.fail(format!("Accept failed: {error}")))?;
        let peer = socket.peer_addr().ok().and_then(|address| address.as_socket());
        let peer = peer.map_or_else(|| Name::of_path(""), Name::of);
        self.journal.log(3, format!("accepted {} {}", peer.address, peer.port));
        Ok(socket)
    }

    fn talk(&self, journal: &Journal, cancel: &Arc<Cancel>, socket: Socket) -> Outcome<Option<Socket>> {
        let talk = BlockContext {
            block: &self.block.bytes,
            line: self.block.line,
            end: End::Server(Arc::clone(&self.listener)),
            address: &self.address,
            receive_buffer_bytes: self.rounds.receive_buffer_bytes,
        };
        http::talk(journal, cancel, socket, &talk)
    }

    fn dispatch(self, dispatched: &Dispatched) -> Outcome {
        self.journal.log(2, format!("Dispatch started on {}", self.address));
        let shared = Arc::new(self);
        while !shared.journal.test.is_over() {
            let socket = shared.accept()?;
            let name = format!("s{}", dispatched.count.fetch_add(1, Ordering::Relaxed) + 1);
            shared.journal.log(3, format!("dispatch -> {name}"));
            let journal = shared.journal.named(&name).forked();
            let cancel = threads::cancel(&shared.journal)?;
            let (session, own) = (Arc::clone(&shared), Arc::clone(&cancel));
            let work = move || -> Outcome {
                let socket = session.talk(&journal, &own, socket)?;
                close(&journal, socket.as_ref());
                journal.log(2, "Ending");
                Ok::<(), Stop>(())
            };
            let thread = threads::start(&shared.journal, work)?;
            let mut threads = dispatched.threads.lock().unwrap_or_else(PoisonError::into_inner);
            threads.retain(|(thread, _)| !thread.is_finished());
            threads.push((thread, cancel));
        }
        Ok(())
    }
}

/// Announces that nothing more will be sent; the connection is closed when it is dropped.
fn close(journal: &Journal, socket: Option<&Socket>) {
    if let Some(socket) = socket {
        journal.log(3, "shutting the connection");
        // The peer may already have closed.
        let _ = socket.shutdown(Shutdown::Write);
    }
}
