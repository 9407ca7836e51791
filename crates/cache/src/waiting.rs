//! One request on the waiting list of a key. `busy.rs` parks and wakes it.

use std::sync::atomic::{AtomicU8, AtomicU64};
use tokio::sync::Notify;

/// It waits.
pub(crate) const PARKED: u8 = 0;
/// It was woken for another lookup.
pub(crate) const WOKEN: u8 = 1;
/// It no longer waits.
pub(crate) const GONE: u8 = 2;

/// A request on a waiting list.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Increases from each waiter to the next.
    pub(crate) number: u64,
    /// [`PARKED`], [`WOKEN`] or [`GONE`].
    pub(crate) state: AtomicU8,
    /// The object that it waited for (`lookup_conditions::identity`); 0 = none.
    pub(crate) granted: AtomicU64,
    pub(crate) wake: Notify,
}
