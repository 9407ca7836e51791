//! State of a barrier, which its test holds.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::outcome::Outcome;

/// A barrier.
pub struct Barrier {
    pub(crate) name: String,
    pub(crate) expected: usize,
    pub(crate) is_cyclic: AtomicBool,
    pub(crate) kind: Kind,
    /// The present number of waiters, and the number of times that all have arrived.
    pub(crate) count: Mutex<(usize, u64)>,
}

pub(crate) enum Kind {
    Condition,
    Socket(Mutex<Option<JoinHandle<Outcome>>>),
}

impl Barrier {
    /// Number of waiters, and of times that all have arrived.
    pub(crate) fn count(&self) -> (usize, u64) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
