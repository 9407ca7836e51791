//! Turns: lets the other tasks of an event loop run while a long body is processed.
//!
//! A filter step does not necessarily wait for anything (a storage accepts everything at once, and
//! so does a fast client), so a body that inflates to a gigabyte would block the loop for a second.

use crate::bodies::filters::Filters;

/// Counts steps, and yields at intervals.
pub(crate) struct Turns {
    steps: usize,
    at_once: usize,
}

impl Turns {
    /// Creates a counter for a body that passes these filters.
    pub(crate) fn through(filters: &Filters) -> Turns {
        Turns { steps: 0, at_once: filters.steps_at_once() }
    }

    /// Counts a step, and yields if it is due.
    pub(crate) async fn take(&mut self) {
        self.steps += 1;
        if self.steps >= self.at_once {
            self.steps = 0;
            tokio::task::yield_now().await;
        }
    }
}
