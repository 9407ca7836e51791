//! Turns: lets the other tasks of an event loop run while a long body is processed.
//!
//! A filter step does not necessarily wait for anything (a storage accepts everything at once, and so does a fast client), so a
//! body that inflates to a gigabyte would block the loop for a second.

use surface::limits::FILTER_STEPS_AT_ONCE_MAX;

/// Counts steps, and yields now and then.
#[derive(Default)]
pub(crate) struct Turns(usize);

impl Turns {
    /// Counts a step, and yields if it is time to.
    pub(crate) async fn take(&mut self) {
        self.0 += 1;
        if self.0 >= FILTER_STEPS_AT_ONCE_MAX {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}
