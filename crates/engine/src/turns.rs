//! Turns: who works on a long body lets the others of its event loop have theirs.
//!
//! A step of a filter need not wait for anybody (a storage takes everything at once, a fast client too), so a body that
//! inflates to a gigabyte would hold the loop for a second.

use surface::limits::FILTER_STEPS_AT_ONCE_MAX;

/// Counts steps, and pauses now and then.
#[derive(Default)]
pub(crate) struct Turns(usize);

impl Turns {
    /// One more step was made.
    pub(crate) async fn take(&mut self) {
        self.0 += 1;
        if self.0 >= FILTER_STEPS_AT_ONCE_MAX {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}
