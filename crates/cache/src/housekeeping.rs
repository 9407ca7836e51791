//! Periodic work: removal of expired objects and of slices without a head, and the steps of the ban
//! lurker.

use crate::removal_history::RemovalCause;
use crate::{Cache, Inner};
use smallvec::SmallVec;
use std::sync::Arc;
use store::Object;
use surface::counter::Main;
use surface::reason::RemovalReason;

/// Ticks of the wheels per second.
const TICKS: f64 = 8.0;
/// Longest time between two calls, seconds: something added in between may be due.
const CALL_INTERVAL_MAX: f64 = 0.5;
/// Shortest time between two calls, seconds.
const CALL_INTERVAL_MIN: f64 = 0.005;
/// Number of objects that expire while a shard is locked; this bounds the time that a lookup waits.
const EXPIRY_BATCH: usize = 32;

impl Cache {
    /// Does the work that is due: expiry, slices without a head, ban lurker. Returns the time of
    /// the next call, seconds since 1970. Any thread may call it, one at a time.
    pub fn tick(&self, now: f64) -> f64 {
        let inner = &*self.inner;
        inner.see(now);
        let due = inner.expire(now).min(inner.lurk(now));
        self.remove_orphaned_slices(now);
        due.clamp(now + CALL_INTERVAL_MIN, now + CALL_INTERVAL_MAX)
    }
}

impl Inner {
    /// The first tick at which an event due at `time` has passed.
    pub(crate) fn tick_of(&self, time: f64) -> u32 {
        // Saturates: infinity is the last tick, the past the first.
        ((time - self.base) * TICKS).ceil() as u32
    }

    /// Removes expired objects; returns the time at which the next removal may be due. Even if many
    /// expire at once, a shard is locked only for [`EXPIRY_BATCH`] objects at a time.
    fn expire(&self, now: f64) -> f64 {
        // Rounded down: a tick is over only when all of it has passed.
        let now_tick = ((now - self.base) * TICKS).floor() as u32;
        let due_of = |object: &Object| self.tick_of(crate::removal::dies_at(object));
        let mut next = u32::MAX;
        let mut dead = Vec::new();
        for shard in &self.shards {
            {
                let mut shard = shard.lock();
                shard.advance(now_tick, due_of, &mut dead);
                next = next.min(shard.next_tick().unwrap_or(u32::MAX));
            }
            for batch in dead.chunks(EXPIRY_BATCH) {
                let mut removed = SmallVec::<[Arc<Object>; EXPIRY_BATCH]>::new();
                let mut shard = shard.lock();
                for slot in batch {
                    // Between two batches another object may have got the slot, or the object
                    // another lifetime.
                    let Some(object) = shard.slots.get(*slot).filter(|object| due_of(object) <= now_tick) else {
                        continue;
                    };
                    let digest = self.digest_of_object(object);
                    removed.extend(self.discard(
                        &mut shard,
                        &digest,
                        *slot,
                        RemovalCause::Other(RemovalReason::Expired),
                    ));
                }
                shard.settle(&self.stores);
                drop(shard);
                for object in &removed {
                    self.log_expiry(object, now);
                }
                self.totals.add(Main::NExpired, removed.len() as u64);
            }
            dead.clear();
        }
        if next == u32::MAX { f64::INFINITY } else { self.base + f64::from(next) / TICKS }
    }
}
