//! The queue of the writer, and the tasks that wait for it.

use super::DiskWrite;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The work that the writer takes at a time.
#[derive(Default)]
pub(super) struct Work {
    /// Payloads of log entries, in order. They precede the bodies.
    pub(super) entries: Vec<Vec<u8>>,
    pub(super) disk_writes: Vec<Arc<DiskWrite>>,
    /// Notified when everything before is on the disk; with `false` if that failed.
    pub(super) waiting: Vec<oneshot::Sender<bool>>,
    pub(super) is_over: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.disk_writes.is_empty() && self.waiting.is_empty() && !self.is_over
    }
}

#[derive(Default)]
struct State {
    work: Work,
    /// The writer has ended and takes nothing more.
    is_closed: bool,
}

/// The queue; see the module header.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    ready: Condvar,
}

impl Queue {
    fn add(&self, add: impl FnOnce(&mut Work)) {
        let mut state = self.state.lock();
        if !state.is_closed {
            add(&mut state.work);
            drop(state);
            self.ready.notify_one();
        }
    }

    pub(crate) fn log(&self, payload: Vec<u8>) {
        // The log is written at intervals, so no wake-up is needed.
        let mut state = self.state.lock();
        if !state.is_closed {
            state.work.entries.push(payload);
        }
    }

    pub(crate) fn write(&self, disk_write: Arc<DiskWrite>) {
        self.add(|work| work.disk_writes.push(disk_write));
    }

    /// Resolves when everything before is on the disk; to an error if the writer has gone.
    pub(crate) fn settle(&self) -> oneshot::Receiver<bool> {
        let (sender, receiver) = oneshot::channel();
        self.add(|work| work.waiting.push(sender));
        receiver
    }

    /// Writes everything queued so far; then the writer ends.
    pub(crate) fn end(&self) {
        self.add(|work| work.is_over = true);
    }

    /// Drops the entries that have not been taken yet.
    pub(super) fn forget_entries(&self) {
        self.state.lock().work.entries.clear();
    }

    /// For the writer: the queued work; waits for it, but not beyond `until`.
    pub(super) fn take(&self, until: Instant) -> Work {
        let mut state = self.state.lock();
        while state.work.is_empty() {
            if self.ready.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        std::mem::take(&mut state.work)
    }

    /// Closes the queue at the end of the writer: later work is dropped.
    pub(super) fn close(&self) -> Work {
        let mut state = self.state.lock();
        state.is_closed = true;
        std::mem::take(&mut state.work)
    }
}

/// Time that a log entry may wait to be written together with others.
pub(super) const LOG_INTERVAL: Duration = Duration::from_millis(200);
