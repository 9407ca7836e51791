//! The thread that reads a program's output and detects its end.

use std::fs::{File, OpenOptions};
use std::io::{PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::poll::PollFlags;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::screen::Screen;
use crate::journal::Journal;
use crate::test::{Cancel, Outcome};
use crate::varnish::{Wanted, check_status};

/// Interval at which the end of the program is checked.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Log format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logged {
    Nothing,
    Lines,
    Dump,
    Hexadecimal,
}

/// Shared between the program's thread and the script's.
#[derive(Default)]
pub(super) struct Shared {
    pub screen: Mutex<Screen>,
    output_bytes: AtomicU64,
    error_bytes: AtomicU64,
    /// 0 if it does not run.
    pid: AtomicU32,
    /// See [`super::Process`].
    signal: AtomicI32,
    /// The expected exit status; a script may set it after the start.
    exit_status: AtomicI32,
}

impl Shared {
    pub fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn output_bytes(&self) -> u64 {
        self.output_bytes.load(Ordering::SeqCst)
    }

    pub fn error_bytes(&self) -> u64 {
        self.error_bytes.load(Ordering::SeqCst)
    }

    pub fn pid(&self) -> Option<u32> {
        Some(self.pid.load(Ordering::SeqCst)).filter(|pid| *pid > 0)
    }

    pub fn set_pid(&self, pid: Option<u32>) {
        self.pid.store(pid.unwrap_or(0), Ordering::SeqCst);
    }

    pub fn set_exit_status(&self, status: i32) {
        self.exit_status.store(status, Ordering::SeqCst);
    }

    pub fn set_signal(&self, signal: i32) {
        self.signal.store(signal, Ordering::SeqCst);
    }

    /// If the test sends a signal, the program may die of it.
    pub fn expect_signal_unless_told(&self, signal: i32) {
        let _ = self.signal.compare_exchange(0, -signal, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// Data of the thread.
pub(super) struct Reader {
    pub journal: Journal,
    pub cancel: Arc<Cancel>,
    pub shared: Arc<Shared>,
    pub terminal: File,
    pub errors: PipeReader,
    pub folder: PathBuf,
    pub logged: Logged,
    pub answers: bool,
    pub child: Child,
    pub allows_core: bool,
}

impl Reader {
    pub fn run(mut self) -> Outcome {
        let read = self.read_all();
        if read.is_err() {
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        }
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if read.is_ok() && self.cancel.sleep(LOOK_AGAIN).is_ok() => {}
                Ok(None) => {
                    let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
                    break self.child.wait().map_err(|error| self.journal.fail(format!("wait failed: {error}")))?;
                }
                Err(error) => return Err(self.journal.fail(format!("wait failed: {error}"))),
            }
        };
        self.shared.set_pid(None);
        self.journal.forget(&self.journal.name, "pid");
        read?;
        let signal = match self.shared.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => Some((signal.abs(), signal > 0)),
        };
        let wanted =
            Wanted { status: self.shared.exit_status.load(Ordering::SeqCst), signal, allows_core: self.allows_core };
        check_status(&self.journal, self.child.id(), status, &wanted)
    }

    /// Reads until both the terminal and the standard error have ended.
    fn read_all(&mut self) -> Outcome {
        let open = |name: &str| {
            let path = self.folder.join(name);
            let opened = OpenOptions::new().append(true).create(true).open(&path);
            opened.map_err(|error| self.journal.fail(format!("cannot write {}: {error}", path.display())))
        };
        let (mut out, mut err) = (open("term")?, open("stderr")?);
        let (mut has_terminal, mut has_errors) = (true, true);
        let mut buffer = [0; 8192];
        let mut line = Vec::new();
        while has_terminal || has_errors {
            let mut wanted = Vec::new();
            if has_terminal {
                wanted.push((self.terminal.as_fd(), PollFlags::POLLIN));
            }
            if has_errors {
                wanted.push((self.errors.as_fd(), PollFlags::POLLIN));
            }
            self.cancel.wait(&wanted, None)?;
            if has_terminal && is_ready(self.terminal.as_fd()) {
                // The end of a terminal is reported as an error.
                let count = self.terminal.read(&mut buffer).unwrap_or(0);
                has_terminal = count > 0;
                self.take_output(&buffer[..count], &mut out, &mut line);
            }
            if has_errors && is_ready(self.errors.as_fd()) {
                let count = self.errors.read(&mut buffer).unwrap_or(0);
                has_errors = count > 0;
                if has_errors {
                    self.shared.error_bytes.fetch_add(count as u64, Ordering::SeqCst);
                    self.journal.dump(4, "stderr", &buffer[..count]);
                    let _ = err.write_all(&buffer[..count]);
                }
            }
        }
        if !line.is_empty() {
            self.journal.dump(4, "output", &line);
        }
        Ok(())
    }

    fn take_output(&mut self, bytes: &[u8], out: &mut File, line: &mut Vec<u8>) {
        if bytes.is_empty() {
            self.journal.log(4, "stdout has ended");
            return;
        }
        match self.logged {
            Logged::Nothing => {}
            Logged::Dump => self.journal.dump(4, "stdout", bytes),
            Logged::Hexadecimal => self.journal.hexdump(4, "stdout", bytes),
            Logged::Lines => {
                line.extend_from_slice(bytes);
                while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                    let mut whole: Vec<u8> = line.drain(..=end).collect();
                    whole.pop();
                    if whole.last() == Some(&b'\r') {
                        whole.pop();
                    }
                    self.journal.dump(4, "output", &whole);
                }
            }
        }
        let _ = out.write_all(bytes);
        let answer = self.shared.screen().show(bytes);
        self.shared.output_bytes.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        if !answer.is_empty() {
            self.journal.dump(4, "term_response", &answer);
            if self.answers {
                let _ = self.terminal.write_all(&answer);
            }
        }
    }
}

fn is_ready(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    let mut polled = [nix::poll::PollFd::new(fd, PollFlags::POLLIN)];
    matches!(nix::poll::poll(&mut polled, 0_u8), Ok(1..))
}
