//! A connection that several streams share: coordination of readers, writers and waiters.
//!
//! There is no thread that reads. A stream that needs a frame reads until one of its own arrives,
//! and queues those of the others; other streams wait for it. So nothing is read while no stream
//! needs a frame, which scripts about slow peers rely on. A frame of a stream that the script has
//! not made yet stops the reading until it is made.
//!
//! *Invariants:* one thread reads at a time (`is_reading`); one writes at a time, and encodes while
//! it does, so that the peer sees the changes of the table in their order. Locks: `writing` before
//! `shared`; no thread waits for a socket with `shared` locked.

use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use socket2::Socket;

use super::frame::{Frame, HEAD_BYTES};
use super::state::State;
use crate::address;
use crate::journal::Journal;
use crate::test::{Cancel, Outcome, Waited};

/// Interval at which a thread that waits for the reader checks for the end of the test.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Most bytes that are taken at a time.
const STEP_BYTES: usize = 16 << 10;

/// A connection.
pub struct Connection {
    /// The client's or server's, for records that concern no single stream.
    journal: Journal,
    cancel: Arc<Cancel>,
    socket: Socket,
    /// The end of the connection.
    pub is_server: bool,
    shared: Mutex<Shared>,
    changed: Condvar,
    writing: Mutex<()>,
}

/// State under the lock.
pub struct Shared {
    /// The streams and tables.
    pub state: State,
    is_reading: bool,
    has_ended: bool,
    /// The frame of a stream that does not exist yet.
    homeless: Option<Frame>,
    is_fatal: bool,
    timeout: Duration,
}

impl Connection {
    /// A connection without streams.
    pub fn new(
        journal: &Journal,
        cancel: &Arc<Cancel>,
        socket: Socket,
        is_server: bool,
        is_fatal: bool,
        timeout: Duration,
    ) -> Connection {
        let shared = Shared {
            state: State::new(is_server),
            is_reading: false,
            has_ended: false,
            homeless: None,
            is_fatal,
            timeout,
        };
        Connection {
            journal: journal.clone(),
            cancel: Arc::clone(cancel),
            socket,
            is_server,
            shared: Mutex::new(shared),
            changed: Condvar::new(),
            writing: Mutex::new(()),
        }
    }

    /// Locks the shared state.
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cancel of this connection's threads.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Sets the mode for faults (fail the test or not), and the timeout for received bytes.
    pub fn configure(&self, is_fatal: bool, timeout: Duration) {
        let mut shared = self.lock();
        (shared.is_fatal, shared.timeout) = (is_fatal, timeout);
    }

    /// Reports a fault that `non_fatal` ignores.
    ///
    /// # Errors
    /// It is not ignored: the test fails.
    pub fn fault(&self, journal: &Journal, text: impl AsRef<str>) -> Outcome {
        let is_fatal = self.lock().is_fatal;
        if is_fatal {
            return Err(journal.fail(text));
        }
        journal.log(4, text);
        Ok(())
    }

    /// Makes a stream, which may be the one that a frame waits for.
    ///
    /// # Errors
    /// That frame is wrong: the test fails.
    pub fn open(&self, id: u32) -> Outcome {
        let mut shared = self.lock();
        shared.state.open(id);
        let taken = match shared.homeless.take_if(|frame| frame.stream == id) {
            Some(frame) => self.take_in(shared, frame),
            None => Ok(()),
        };
        self.changed.notify_all();
        taken
    }

    /// Sends the bytes that `assemble` makes of the state.
    ///
    /// # Errors
    /// The connection is broken, and that is not ignored: the test fails.
    pub fn send(&self, journal: &Journal, assemble: impl FnOnce(&mut State) -> Vec<Frame>) -> Outcome {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let frames = assemble(&mut self.lock().state);
        for frame in frames {
            journal.log(
                3,
                format!(
                    "tx: stream: {}, type: {} ({}), flags: 0x{:02x}, size: {}",
                    frame.stream,
                    frame.kind_name(),
                    frame.kind,
                    frame.flags,
                    frame.payload.len()
                ),
            );
            self.send_locked(journal, &frame.bytes())?;
        }
        Ok(())
    }

    /// Sends bytes unchanged.
    ///
    /// # Errors
    /// The connection is broken, and that is not ignored: the test fails.
    pub fn send_bytes(&self, journal: &Journal, bytes: &[u8]) -> Outcome {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_locked(journal, bytes)
    }

    fn send_locked(&self, journal: &Journal, bytes: &[u8]) -> Outcome {
        match address::send_all(&self.socket, bytes, &self.cancel)? {
            Ok(()) => Ok(()),
            Err(error) => self.fault(journal, format!("Write failed: {error}")),
        }
    }

    /// The next frame of a stream; `None` if the connection has ended and that is ignored.
    ///
    /// # Errors
    /// The test has failed, or the thread must stop.
    pub fn next_frame(&self, id: u32) -> Outcome<Option<Frame>> {
        let mut shared = self.lock();
        loop {
            if let Some(frame) = shared.state.next_frame(id) {
                return Ok(Some(frame));
            }
            if self.cancel.is_set() {
                return Err(self.journal.test.stop_reason());
            }
            if shared.has_ended {
                return Ok(None);
            }
            if shared.is_reading || shared.homeless.is_some() {
                let waited = self.changed.wait_timeout(shared, LOOK_INTERVAL);
                shared = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            shared.is_reading = true;
            let timeout = shared.timeout;
            drop(shared);
            let read = self.read(timeout);
            shared = self.lock();
            shared.is_reading = false;
            self.changed.notify_all();
            match read? {
                Ok(frame) if shared.state.has(frame.stream) => {
                    self.take_in(shared, frame)?;
                    shared = self.lock();
                }
                Ok(frame) => shared.homeless = Some(frame),
                Err(reason) => {
                    shared.has_ended = true;
                    drop(shared);
                    self.fault(&self.journal, reason)?;
                    shared = self.lock();
                }
            }
        }
    }

    fn take_in(&self, mut shared: MutexGuard<'_, Shared>, frame: Frame) -> Outcome {
        let (notes, taken) = shared.state.take_in(frame);
        drop(shared);
        for note in notes {
            self.journal.log(4, note);
        }
        match taken {
            Ok(()) => Ok(()),
            Err(fault) if fault.is_always_fatal => Err(self.journal.fail(fault.text)),
            Err(fault) => self.fault(&self.journal, fault.text),
        }
    }

    /// Reads one frame, or returns the reason why there is none.
    fn read(&self, timeout: Duration) -> Outcome<Result<Frame, String>> {
        let head = match self.read_bytes(HEAD_BYTES, timeout)? {
            Ok(head) => head,
            Err(reason) => return Ok(Err(format!("could not get frame header: {reason}"))),
        };
        let (mut frame, length) = Frame::of_head(head.try_into().unwrap_or_default());
        self.journal.log(
            3,
            format!(
                "rx: stream: {}, type: {} ({}), flags: 0x{:02x}, size: {length}",
                frame.stream,
                frame.kind_name(),
                frame.kind,
                frame.flags
            ),
        );
        Ok(self.read_bytes(length, timeout)?.map_err(|reason| format!("could not get frame body: {reason}")).map(
            |payload| {
                frame.payload = payload;
                frame
            },
        ))
    }

    /// Reads exactly this many bytes: at most a frame's 16 MB.
    fn read_bytes(&self, count: usize, timeout: Duration) -> Outcome<Result<Vec<u8>, String>> {
        let mut bytes = Vec::new();
        let mut buffer = [0; STEP_BYTES];
        while bytes.len() < count {
            if self.cancel.readable(self.socket.as_fd(), Some(timeout))? == Waited::TimedOut {
                return Ok(Err(format!("HTTP2 rx timeout ({} ms)", timeout.as_millis())));
            }
            let room = (count - bytes.len()).min(STEP_BYTES);
            let socket = std::os::fd::AsRawFd::as_raw_fd(&self.socket);
            match nix::sys::socket::recv(socket, &mut buffer[..room], MsgFlags::empty()) {
                Ok(0) => return Ok(Err("HTTP2 rx EOF".to_owned())),
                Ok(got) => bytes.extend_from_slice(&buffer[..got]),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Ok(Err(format!("HTTP2 rx failed: {}", error.desc()))),
            }
        }
        Ok(Ok(bytes))
    }
}
