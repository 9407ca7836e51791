//! A running test: the state that its threads share, and their shutdown.
//!
//! ```text
//! running ──(the script's end)──► ending ──► over
//!    │ a command fails: failed, all threads are woken
//!    └ a feature is missing: skipped, all threads are woken
//! ```
//!
//! Every wait in this crate (for a socket, a child, a barrier, or a time) also waits for the
//! [`Cancel`] of its thread. There is no other way to stop a thread, and none is left behind.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::barrier_state::Barrier;
use crate::log::Log;
use crate::macros::Macros;
pub use crate::outcome::{Outcome, Stop};
use crate::settings::TestSettings;

const RUNNING: u8 = 0;
const ENDING: u8 = 1;
const SKIPPED: u8 = 2;

/// State that the threads of one test share.
pub struct Test {
    /// The log of all threads.
    pub log: Log,
    /// The macros.
    pub macros: Macros,
    /// The settings of the test.
    pub settings: TestSettings,
    environment: Mutex<Vec<(String, String)>>,
    course: AtomicU8,
    failed: AtomicBool,
    keeps_unknown_macros: AtomicBool,
    cancels: Mutex<Vec<Weak<Cancel>>>,
    /// Wakes threads that wait for a condition: barriers, tunnels.
    pub changed: Condvar,
    /// The mutex for `changed`.
    pub monitor: Mutex<()>,
    /// The barriers by name.
    pub barriers: Mutex<Vec<Arc<Barrier>>>,
}

impl Test {
    /// Creates a test that is about to run.
    #[must_use]
    pub fn new(settings: TestSettings, log: Log) -> Arc<Test> {
        let macros = Macros::new(settings.macros.iter().cloned());
        Arc::new(Test {
            log,
            macros,
            settings,
            environment: Mutex::default(),
            course: AtomicU8::new(RUNNING),
            failed: AtomicBool::new(false),
            keeps_unknown_macros: AtomicBool::new(false),
            cancels: Mutex::default(),
            changed: Condvar::new(),
            monitor: Mutex::new(()),
            barriers: Mutex::default(),
        })
    }

    /// Fails the test and wakes all threads.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// Skips the rest of the test and wakes all threads.
    pub fn skip(&self) {
        self.course.store(SKIPPED, Ordering::SeqCst);
        self.wake_all();
    }

    /// The script has ended: threads finish their present command.
    pub fn end(&self) {
        let _ = self.course.compare_exchange(RUNNING, ENDING, Ordering::SeqCst, Ordering::SeqCst);
        drop(self.lock_monitor());
        self.changed.notify_all();
    }

    /// True if no further command may be started.
    pub fn is_over(&self) -> bool {
        self.is_stopping() || self.course.load(Ordering::SeqCst) != RUNNING
    }

    /// True if the test has failed or is skipped.
    pub fn is_stopping(&self) -> bool {
        self.has_failed() || self.is_skipped()
    }

    /// True if the test has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// True if the test is skipped.
    pub fn is_skipped(&self) -> bool {
        self.course.load(Ordering::SeqCst) == SKIPPED
    }

    /// Reason for threads to stop.
    pub fn stop_reason(&self) -> Stop {
        if self.has_failed() { Stop::Failed } else { Stop::Ended }
    }

    /// From now on an unknown `${…}` stays unchanged.
    pub fn keep_unknown_macros(&self) {
        self.keeps_unknown_macros.store(true, Ordering::SeqCst);
    }

    /// True if an unknown `${…}` stays unchanged.
    pub fn keeps_unknown_macros(&self) -> bool {
        self.keeps_unknown_macros.load(Ordering::SeqCst)
    }

    /// Sets a variable for processes started from now on.
    pub fn set_variable(&self, name: &str, value: &str) {
        let mut environment = self.environment.lock().unwrap_or_else(PoisonError::into_inner);
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value.to_owned()));
    }

    /// A variable as the started processes see it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = self.environment.lock().unwrap_or_else(PoisonError::into_inner);
        let set = environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        set.or_else(|| std::env::var(name).ok())
    }

    /// A shell that will run `line` with the test's variables and empty input.
    pub fn shell(&self, line: &[u8]) -> std::process::Command {
        use std::os::unix::ffi::OsStrExt;
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg(std::ffi::OsStr::from_bytes(line)).stdin(std::process::Stdio::null());
        self.with_variables(command)
    }

    /// A command with the test's variables.
    pub fn with_variables(&self, mut command: std::process::Command) -> std::process::Command {
        let environment = self.environment.lock().unwrap_or_else(PoisonError::into_inner);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Locks the mutex for `changed`.
    pub fn lock_monitor(&self) -> MutexGuard<'_, ()> {
        self.monitor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        let cancels = std::mem::take(&mut *self.cancels.lock().unwrap_or_else(PoisonError::into_inner));
        for cancel in cancels.iter().filter_map(Weak::upgrade) {
            cancel.set();
        }
        drop(self.lock_monitor());
        self.changed.notify_all();
    }

    /// A new thread's cancel.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn cancel(&self) -> std::io::Result<Arc<Cancel>> {
        let event = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let cancel = Arc::new(Cancel { event, is_set: AtomicBool::new(false) });
        self.cancels.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&cancel));
        if self.is_stopping() {
            cancel.set();
        }
        Ok(cancel)
    }
}

/// Stops one thread, wherever it waits.
pub struct Cancel {
    event: EventFd,
    is_set: AtomicBool,
}

/// The result of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is something to do, or the peer has closed.
    Ready,
    /// Time is up.
    TimedOut,
}

impl Cancel {
    /// Stops the thread.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        let _ = self.event.write(1);
    }

    /// True if the thread must stop.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    /// Waits until one of the descriptors is readable (or writable), for at most `timeout`.
    ///
    /// # Errors
    /// The thread must stop.
    pub fn wait(&self, wanted: &[(BorrowedFd<'_>, PollFlags)], timeout: Option<Duration>) -> Outcome<Waited> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if self.is_set() {
                return Err(Stop::Ended);
            }
            let mut polled: Vec<PollFd> = wanted.iter().map(|(fd, flags)| PollFd::new(*fd, *flags)).collect();
            polled.push(PollFd::new(self.event.as_fd(), PollFlags::POLLIN));
            let left = match deadline {
                None => PollTimeout::NONE,
                // Rounded up, so that the last wait is longer than zero.
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
                }
            };
            match nix::poll::poll(&mut polled, left) {
                Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return Ok(Waited::Ready),
                Ok(0) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => return Ok(Waited::TimedOut),
                Ok(_) if self.is_set() => return Err(Stop::Ended),
                Ok(0) => {}
                Ok(_) => return Ok(Waited::Ready),
            }
        }
    }

    /// Waits until the descriptor can be read.
    ///
    /// # Errors
    /// The thread must stop.
    pub fn readable(&self, fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Outcome<Waited> {
        self.wait(&[(fd, PollFlags::POLLIN)], timeout)
    }

    /// Sleeps.
    ///
    /// # Errors
    /// The thread must stop.
    pub fn sleep(&self, time: Duration) -> Outcome {
        self.wait(&[], Some(time)).map(|_| ())
    }
}
