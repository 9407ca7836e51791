//! A time during which an action is suspended, such as connecting to an address that has just
//! failed. Shared by all event loops.
//!
//! It does not use the time of day: that may be set back, and a hold of a second would last an
//! hour.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// Time for which an address that could not be reached comes after the others of its name.
pub(crate) const ADDRESS_FAILED: Duration = Duration::from_secs(10);

/// A hold, initially off.
pub(crate) struct Hold {
    began: Instant,
    /// Seconds since the start, as the bits of an `f64`; 0 = never held.
    until: AtomicU64,
}

impl Hold {
    pub(crate) fn new() -> Hold {
        Hold { began: Instant::now(), until: AtomicU64::new(0f64.to_bits()) }
    }

    /// Holds for this time from now on.
    pub(crate) fn set(&self, time: Duration) {
        self.until.store((self.began.elapsed() + time).as_secs_f64().to_bits(), Relaxed);
    }

    /// True if the time has not passed.
    pub(crate) fn is_on(&self) -> bool {
        let until = f64::from_bits(self.until.load(Relaxed));
        until > 0.0 && self.began.elapsed().as_secs_f64() < until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_holds_for_its_time_and_the_latest_word_counts() {
        let hold = Hold::new();
        assert!(!hold.is_on());
        hold.set(Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(hold.is_on());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!hold.is_on());
    }
}
