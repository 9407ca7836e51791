//! debug: a counter of its own (`DEBUG.count`), which VCL creates and removes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counter, which all VCLs share.
#[derive(Debug, Default)]
pub(crate) struct DebugCounter {
    is_shown: AtomicBool,
    value: AtomicU64,
}

impl DebugCounter {
    /// Its value, while there is one.
    pub(crate) fn shown(&self) -> Option<u64> {
        self.is_shown.load(Ordering::Acquire).then(|| self.value.load(Ordering::Relaxed))
    }

    /// Creates the counter, unless there is one.
    pub(crate) fn create(&self) {
        if !self.is_shown.load(Ordering::Acquire) {
            self.value.store(0, Ordering::Relaxed);
            self.is_shown.store(true, Ordering::Release);
        }
    }

    /// Adds to the counter. Returns false if there is none.
    pub(crate) fn add(&self, number: u64) -> bool {
        let is_shown = self.shown().is_some();
        if is_shown {
            self.value.fetch_add(number, Ordering::Relaxed);
        }
        is_shown
    }

    /// Removes the counter.
    pub(crate) fn remove(&self) {
        self.is_shown.store(false, Ordering::Release);
    }
}
