//! Purges by tag that also hit fetches under way, for orders of a fleet: an object whose fetch
//! began before the order must not be stored after it.
//!
//! Each order takes a number of the ban journal, so that it is newer than every fetch that refers
//! to an older ban. It is kept as long as such a fetch is under way. *Lock*: one short mutex, taken
//! inside a shard's. *Invariant:* an object arrives under the lock of its shard, and an order goes
//! through all shards between its entry here and its search of the index: so an object is either
//! refused here or found there.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use surface::limits::FLEET_ARRIVALS_MAX;

/// The tags of an order.
pub(crate) type Tags = Box<[Box<[u8]>]>;

/// Orders that arriving objects are tested against.
#[derive(Default)]
pub(crate) struct Arrivals {
    is_any: AtomicBool,
    orders: Mutex<Orders>,
}

#[derive(Default)]
struct Orders {
    /// Number in the ban journal, and tags; the oldest first.
    of_tags: VecDeque<(u64, Tags)>,
    /// All fetches that refer to an older ban than this one are hit: orders were dropped.
    all_before: u64,
}

impl Arrivals {
    /// True if an order hits an object with these tags, whose fetch began when `since` was the
    /// newest ban.
    pub(crate) fn hit<'a>(&self, since: u64, tags: impl FnOnce() -> Vec<&'a [u8]>) -> bool {
        if !self.is_any.load(Ordering::Acquire) {
            return false;
        }
        let orders = self.orders.lock();
        if since < orders.all_before {
            return true;
        }
        let mut newer = orders.of_tags.iter().rev().take_while(|(at, _)| *at > since).peekable();
        if newer.peek().is_none() {
            return false;
        }
        let tags = tags();
        newer.any(|(_, of_order)| of_order.iter().any(|tag| tags.contains(&&**tag)))
    }

    /// Adds an order; `oldest` is the oldest ban that a fetch under way refers to.
    pub(crate) fn add(&self, at: u64, tags: Tags, oldest: Option<u64>) {
        let mut orders = self.orders.lock();
        while orders.of_tags.front().is_some_and(|(at, _)| oldest.is_none_or(|oldest| *at <= oldest)) {
            orders.of_tags.pop_front();
        }
        if orders.of_tags.len() >= FLEET_ARRIVALS_MAX
            && let Some((dropped, _)) = orders.of_tags.pop_front()
        {
            orders.all_before = orders.all_before.max(dropped);
        }
        orders.of_tags.push_back((at, tags));
        self.is_any.store(true, Ordering::Release);
    }
}
