//! `tunnel tNAME`: accepts a connection, opens another one for it, and moves bytes between them, or
//! stops moving them.
//!
//! ```text
//! running ──pause──► paused ──send N, recv N──► paused (N bytes further)
//!    ▲                  └──resume──┐
//!    └──────────────────────────────┘
//! ```
//!
//! One thread moves bytes, the other executes the block and sets the number of bytes that may pass.
//! They share [`State`], under the test's monitor. *Invariant:* a block that ends while paused
//! resumes; if a side closes before the end of the block, the test fails when the next command
//! needs the tunnel.

use std::io::Read;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::PollFlags;
use socket2::Socket;

use crate::address::{self, Name};
use crate::journal::Journal;
use crate::lex::Word;
use crate::specification::{self, Actor, Arguments};
use crate::test::{Cancel, Outcome};
use crate::threads;

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Polling interval of a waiting thread.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Most bytes that are moved at a time.
const STEP_BYTES: usize = 1024;

/// A tunnel.
pub struct Tunnel {
    journal: Journal,
    block: Option<Word>,
    connect: Vec<u8>,
    listen: String,
    running: Option<(JoinHandle<Outcome>, Arc<Cancel>)>,
}

impl Tunnel {
    /// Creates a tunnel to the daemon `v1`.
    pub fn new(journal: Journal) -> Tunnel {
        let listen = journal.test.settings.listen_address.clone();
        Tunnel { journal, block: None, connect: b"${v1_sock}".to_vec(), listen, running: None }
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments) -> Outcome {
        while let Some(word) = arguments.next() {
            let option = word.text();
            if option == "-wait" && self.running.is_none() {
                return Err(self.journal.fail("Tunnel not -started"));
            }
            // A running tunnel is not changed.
            self.wait()?;
            match option.as_str() {
                "-wait" => {}
                "-connect" => self.connect = arguments.need("the address")?.bytes,
                "-listen" => self.listen = arguments.text("the address")?,
                "-start" => self.start(false)?,
                "-start+pause" => self.start(true)?,
                _ if option.starts_with('-') => {
                    return Err(self.journal.fail(format!("Unknown tunnel argument: {option}")));
                }
                _ => self.block = Some(word),
            }
        }
        Ok(())
    }

    fn start(&mut self, is_paused: bool) -> Outcome {
        self.journal.log(2, "Starting tunnel");
        let (listener, name) = address::listen(&self.listen, 1).map_err(|reason| {
            self.journal.fail(format!("Tunnel listen address ({}) cannot be resolved: {reason}", self.listen))
        })?;
        self.listen.clone_from(&name.socket);
        self.journal.log(1, format!("Listen on {}", self.listen));
        self.define(&name);
        let cancel = threads::cancel(&self.journal)?;
        let session = Session {
            journal: self.journal.forked(),
            cancel: Arc::clone(&cancel),
            block: self.block.clone(),
            connect: self.connect.clone(),
            is_paused,
        };
        self.running = Some((threads::start(&self.journal, move || session.run(&listener))?, cancel));
        Ok(())
    }

    fn define(&self, name: &Name) {
        let own = self.journal.name.clone();
        self.journal.define(&own, "addr", &name.address);
        self.journal.define(&own, "port", &name.port);
        self.journal.define(&own, "sock", &format!("{} {}", name.address, name.port));
    }

    /// Waits for the end of a running tunnel.
    ///
    /// # Errors
    /// It has failed.
    pub fn wait(&mut self) -> Outcome {
        let Some((thread, _)) = self.running.take() else { return Ok(()) };
        self.journal.log(2, "Waiting for tunnel");
        threads::join(&self.journal, thread)
    }

    /// Stops a running tunnel wherever it is.
    pub fn stop(&mut self) {
        if let Some((thread, cancel)) = self.running.take() {
            cancel.set();
            let _ = thread.join();
        }
    }
}

/// Data of the block's thread.
struct Session {
    journal: Journal,
    cancel: Arc<Cancel>,
    block: Option<Word>,
    connect: Vec<u8>,
    is_paused: bool,
}

/// State shared by both threads.
struct State {
    is_paused: bool,
    /// Number of bytes that may pass during a pause: forward, and back.
    allowance: [usize; 2],
    /// The mover has acknowledged the pause, or moved all it may, and is not moving anything.
    is_at_rest: bool,
    is_closed: bool,
}

struct Shared {
    journal: Journal,
    state: Mutex<State>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        drop(self.journal.test.lock_monitor());
        self.journal.test.changed.notify_all();
    }

    /// Waits until a condition holds.
    fn wait_until(&self, cancel: &Cancel, holds: impl Fn(&State) -> bool) -> Outcome {
        let mut monitor = self.journal.test.lock_monitor();
        while !holds(&self.state()) {
            if cancel.is_set() {
                return Err(self.journal.test.stop_reason());
            }
            let waited = self.journal.test.changed.wait_timeout(monitor, LOOK_INTERVAL);
            monitor = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

impl Session {
    fn run(self, listener: &Socket) -> Outcome {
        self.journal.log(4, "Accepting");
        let near = address::accept(listener, &self.cancel)?
            .map_err(|error| self.journal.fail(format!("Accept failed: {error}")))?;
        self.journal.log(3, "Accepted a connection");
        let address = String::from_utf8_lossy(&self.journal.expand(&self.connect)?).into_owned();
        let far = address::connect(&address, CONNECT_TIMEOUT, &self.cancel)?
            .map_err(|reason| self.journal.fail(format!("Failed to open {address}: {reason}")))?;
        self.journal.log(3, format!("Connected to {address}"));
        let state = State { is_paused: self.is_paused, allowance: [0; 2], is_at_rest: false, is_closed: false };
        let shared = Arc::new(Shared { journal: self.journal.forked(), state: Mutex::new(state) });
        let (mover, own) = (Arc::clone(&shared), threads::cancel(&self.journal)?);
        let stopped = Arc::clone(&own);
        let moving = threads::start(&self.journal, move || move_bytes(&mover, &near, &far, &stopped))?;
        let mut actor = TunnelActor { shared: Arc::clone(&shared), cancel: Arc::clone(&self.cancel) };
        let done = match &self.block {
            Some(block) => specification::run(&self.journal, &block.bytes, block.line, &mut actor),
            None => Ok(()),
        };
        shared.state().is_paused = false;
        shared.changed();
        if done.is_err() {
            own.set();
            let _ = moving.join();
            return done;
        }
        self.journal.log(2, "Ending");
        // Bytes continue to be moved until a side closes or the test is over.
        while !moving.is_finished() {
            if let Err(stop) = self.cancel.sleep(LOOK_INTERVAL) {
                own.set();
                let _ = moving.join();
                return Err(stop);
            }
            if self.journal.test.is_over() {
                own.set();
                let _ = moving.join();
                return Ok(());
            }
        }
        threads::join(&self.journal, moving)
    }
}

struct TunnelActor {
    shared: Arc<Shared>,
    cancel: Arc<Cancel>,
}

impl Actor for TunnelActor {
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        if !matches!(name, "pause" | "send" | "recv" | "resume") {
            return Ok(false);
        }
        let count = match name {
            "send" | "recv" => usize::try_from(arguments.number("the number of bytes")?).unwrap_or(usize::MAX),
            _ => 0,
        };
        arguments.end()?;
        let mut state = self.shared.state();
        if state.is_closed {
            return Err(journal.fail("Tunnel already closed"));
        }
        match (name, state.is_paused) {
            ("pause", true) => return Err(journal.fail("Tunnel already paused")),
            ("resume", false) => return Err(journal.fail("Tunnel already running")),
            ("send" | "recv", false) => return Err(journal.fail("Tunnel still running")),
            ("resume", true) => state.is_paused = false,
            ("pause", false) => {
                state.is_paused = true;
                state.is_at_rest = false;
            }
            _ => {
                state.allowance[usize::from(name == "recv")] = count;
                state.is_at_rest = false;
            }
        }
        drop(state);
        self.shared.changed();
        if name != "resume" {
            self.shared.wait_until(&self.cancel, |state| state.is_at_rest || state.is_closed)?;
            if self.shared.state().allowance != [0; 2] {
                return Err(journal.fail("the tunnel was closed before that many bytes came"));
            }
        }
        Ok(true)
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

/// The thread that moves bytes, until a side closes.
fn move_bytes(shared: &Shared, near: &Socket, far: &Socket, cancel: &Cancel) -> Outcome {
    let lanes = [(near, far, "Sending"), (far, near, "Receiving")];
    let moved = loop {
        let (is_paused, allowance) = {
            let mut state = shared.state();
            if state.is_paused && state.allowance == [0; 2] && !state.is_at_rest {
                state.is_at_rest = true;
                drop(state);
                shared.changed();
                continue;
            }
            (state.is_paused, state.allowance)
        };
        if is_paused && allowance == [0; 2] {
            if let Err(stop) = shared.wait_until(cancel, |state| !state.is_paused || state.allowance != [0; 2]) {
                break Err(stop);
            }
            continue;
        }
        let open = |lane: usize| !is_paused || allowance[lane] > 0;
        let wanted: Vec<_> =
            (0..2).filter(|lane| open(*lane)).map(|lane| (lanes[lane].0.as_fd(), PollFlags::POLLIN)).collect();
        if let Err(stop) = cancel.wait(&wanted, Some(LOOK_INTERVAL)) {
            break Err(stop);
        }
        let mut is_over = Ok(false);
        for lane in (0..2).filter(|lane| open(*lane)) {
            let most = if is_paused { allowance[lane].min(STEP_BYTES) } else { STEP_BYTES };
            is_over = move_some(shared, &lanes[lane], most, cancel).map(|moved| {
                let mut state = shared.state();
                if let Some(count) = moved.filter(|_| is_paused) {
                    state.allowance[lane] = state.allowance[lane].saturating_sub(count);
                }
                moved.is_none()
            });
            if !matches!(is_over, Ok(false)) {
                break;
            }
        }
        match is_over {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(stop) => break Err(stop),
        }
    };
    shared.state().is_closed = true;
    shared.changed();
    moved
}

/// Moves available bytes in one direction; `None` if the source has closed.
fn move_some(
    shared: &Shared,
    (source, target, action): &(&Socket, &Socket, &str),
    most: usize,
    cancel: &Cancel,
) -> Outcome<Option<usize>> {
    let mut buffer = [0; STEP_BYTES];
    match Read::read(&mut &**source, &mut buffer[..most]) {
        Ok(0) => Ok(None),
        Ok(count) => {
            shared.journal.log(3, format!("{action} {count} bytes"));
            match address::send_all(target, &buffer[..count], cancel)? {
                Ok(()) => Ok(Some(count)),
                Err(error) => Err(shared.journal.fail(format!("Write failed: {error}"))),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(Some(0)),
        Err(error) => Err(shared.journal.fail(format!("Read failed: {error}"))),
    }
}
