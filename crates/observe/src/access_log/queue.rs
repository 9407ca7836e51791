//! The queue of lines between the log reader and a writer.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use surface::limits::ACCESS_LOG_QUEUE_BYTES_MAX;

/// Lines on their way.
#[derive(Default, Debug)]
pub(crate) struct Batch {
    /// The text of the lines.
    pub text: Vec<u8>,
    /// The end of each line in the text.
    pub ends: Vec<usize>,
    /// The file is to be opened again.
    pub reopens: bool,
}

#[derive(Default)]
struct State {
    batch: Batch,
    ended: bool,
}

/// A queue with one writer and one reader.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    /// Adds a line; false if there is no room for it. Does not wait.
    pub fn put(&self, line: &[u8]) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = &mut state.batch;
        if batch.text.len() + line.len() > ACCESS_LOG_QUEUE_BYTES_MAX {
            return false;
        }
        batch.text.extend_from_slice(line);
        batch.ends.push(batch.text.len());
        // A writer that is busy takes all lines at once when it is done.
        if batch.ends.len() == 1 {
            self.changed.notify_one();
        }
        true
    }

    /// Passes on the wish to open the file again.
    pub fn reopen(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).batch.reopens = true;
        self.changed.notify_one();
    }

    /// No more lines follow.
    pub fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.changed.notify_one();
    }

    /// All lines of the queue, perhaps none after a wait of this length. `None` at the end.
    pub fn take(&self, wait: Duration) -> Option<Batch> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |state: &mut State| state.batch.ends.is_empty() && !state.batch.reopens && !state.ended;
        let waited = self.changed.wait_timeout_while(state, wait, is_idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let batch = std::mem::take(&mut state.batch);
        (!state.ended || !batch.ends.is_empty()).then_some(batch)
    }
}
