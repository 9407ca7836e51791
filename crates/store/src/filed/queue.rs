//! What the writer has to do, and who waits for it.

use super::Filing;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What the writer takes at a time.
#[derive(Default)]
pub(super) struct Work {
    /// Payloads of log entries, in order. They precede the bodies.
    pub(super) entries: Vec<Vec<u8>>,
    pub(super) filings: Vec<Arc<Filing>>,
    /// Told when everything before is on the disk; whether it is.
    pub(super) waiting: Vec<oneshot::Sender<bool>>,
    pub(super) is_over: bool,
}

impl Work {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.filings.is_empty() && self.waiting.is_empty() && !self.is_over
    }
}

#[derive(Default)]
struct State {
    work: Work,
    /// Nobody takes anything out any more.
    is_closed: bool,
}

/// See the module header.
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
        // The log is written at intervals, so nobody is woken.
        let mut state = self.state.lock();
        if !state.is_closed {
            state.work.entries.push(payload);
        }
    }

    pub(crate) fn write(&self, filing: Arc<Filing>) {
        self.add(|work| work.filings.push(filing));
    }

    /// Resolves when everything before is on the disk; to an error if the writer has gone.
    pub(crate) fn settle(&self) -> oneshot::Receiver<bool> {
        let (sender, receiver) = oneshot::channel();
        self.add(|work| work.waiting.push(sender));
        receiver
    }

    /// Everything before is to be written; then the writer ends.
    pub(crate) fn end(&self) {
        self.add(|work| work.is_over = true);
    }

    /// Drops the entries that nobody has taken yet.
    pub(super) fn forget_entries(&self) {
        self.state.lock().work.entries.clear();
    }

    /// For the writer: what there is; waits for it, but not beyond `until`.
    pub(super) fn take(&self, until: Instant) -> Work {
        let mut state = self.state.lock();
        while state.work.is_empty() {
            if self.ready.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        std::mem::take(&mut state.work)
    }

    /// The writer ends: what comes now is dropped.
    pub(super) fn close(&self) -> Work {
        let mut state = self.state.lock();
        state.is_closed = true;
        std::mem::take(&mut state.work)
    }
}

/// How long the log may wait for company.
pub(super) const LOG_INTERVAL: Duration = Duration::from_millis(200);
