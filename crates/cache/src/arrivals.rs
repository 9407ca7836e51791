//! Purges by tag that also hit fetches under way, for orders of a fleet: an object whose fetch
//! began before the order must not be stored after it.
//!
//! Each order takes a number of the ban journal, so that it is newer than every fetch that refers
//! to an older ban. It is kept as long as such a fetch is under way. *Lock*: one short mutex, taken
//! inside a shard's. *Invariant:* an object arrives under the lock of its shard, and an order goes
//! through all shards between its entry here and its search of the index: so an object is either
//! refused here or found there.

use crate::ban::specification::BanSpecification;
use crate::tag::{TagPurge, names, names_of};
use crate::{Cache, Inner};
use parking_lot::Mutex;
use semantics::Purge;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Object;
use surface::limits::FLEET_ARRIVALS_MAX;

/// The tags of an order.
type Tags = Box<[Box<[u8]>]>;

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
    /// True if an order hits the object, whose fetch began when `since` was the newest ban.
    pub(crate) fn hit(&self, object: &Object, since: u64) -> bool {
        if !self.is_any.load(Ordering::Acquire) {
            return false;
        }
        let orders = self.orders.lock();
        let mut tags: Option<Vec<&[u8]>> = None;
        let is_hit = |(_, of_order): &(u64, Tags)| {
            let tags = tags.get_or_insert_with(|| names_of(object).collect());
            of_order.iter().any(|tag| tags.contains(&&**tag))
        };
        since < orders.all_before || orders.of_tags.iter().rev().take_while(|(at, _)| *at > since).any(is_hit)
    }

    /// Adds an order; `oldest` is the oldest ban that a fetch under way refers to.
    fn add(&self, at: u64, list: &[u8], oldest: Option<u64>) {
        let mut orders = self.orders.lock();
        while orders.of_tags.front().is_some_and(|(at, _)| oldest.is_none_or(|oldest| *at <= oldest)) {
            orders.of_tags.pop_front();
        }
        if orders.of_tags.len() >= FLEET_ARRIVALS_MAX
            && let Some((dropped, _)) = orders.of_tags.pop_front()
        {
            orders.all_before = orders.all_before.max(dropped);
        }
        orders.of_tags.push_back((at, names(list).map(Box::from).collect()));
        self.is_any.store(true, Ordering::Release);
    }
}

impl Cache {
    /// Starts to remove the objects that carry any of the tags in a list, or to shorten their
    /// lives; those whose fetch is under way are not stored.
    ///
    /// # Errors
    /// The ban journal cannot be written; the text is for the operator.
    pub fn purge_tags_and_fetches(&self, list: &[u8], purge: Purge, now: f64) -> Result<TagPurge, String> {
        let inner = &*self.inner;
        let at = inner.bans.add_nothing(now).map_err(|error| format!("Cannot record the purge: {error}"))?;
        inner.arrivals.add(at, list, inner.bans.oldest_fetch());
        self.pass_through_shards();
        Ok(self.purge_tags(list, purge, now))
    }

    /// Removes everything whose fetch began before this call. Returns the number of objects at its
    /// time, some of which are removed when they are next looked up.
    ///
    /// # Errors
    /// The ban journal cannot be written; the text is for the operator.
    pub fn ban_everything(&self, now: f64) -> Result<u64, String> {
        let objects = self.inner.totals.get(surface::counter::Main::NObject);
        self.ban(BanSpecification::everything(), now)?;
        Ok(objects)
    }

    /// The identity of the ban journal, and the number of the newest entry. A later state of the
    /// same cache has the same identity and no smaller number.
    #[must_use]
    pub fn mark(&self) -> (u64, u64) {
        (self.inner.bans.journal_identity(), self.inner.bans.newest())
    }

    /// Waits until the arrivals that are in progress have ended.
    fn pass_through_shards(&self) {
        let Inner { shards, .. } = &*self.inner;
        shards.iter().for_each(|shard| drop(shard.lock()));
    }
}
