//! Periodic work: expired objects are removed, and slices without a head; the ban lurker takes its steps.

use crate::departure::Leaving;
use crate::{Cache, Inner};
use smallvec::SmallVec;
use std::sync::Arc;
use store::Object;
use surface::counter::Main;
use surface::reason::Departure;

/// Ticks of the wheels per second.
const TICKS: f64 = 8.0;
/// Longest time between two calls, seconds: something added meanwhile may be due.
const CALL_INTERVAL_MAX: f64 = 0.5;
/// Shortest time between two calls, seconds.
const CALL_INTERVAL_MIN: f64 = 0.005;
/// How many objects expire while a shard is locked: a lookup waits no longer than that takes.
const EXPIRY_BATCH: usize = 32;

impl Cache {
    /// Does what is due: expiry, slices without a head, ban lurker. Returns when to call again, seconds since 1970. Any thread may call it, one
    /// at a time.
    pub fn tick(&self, now: f64) -> f64 {
        let inner = &*self.inner;
        inner.see(now);
        let due = inner.expire(now).min(inner.lurk(now));
        self.sweep_slices(now);
        due.clamp(now + CALL_INTERVAL_MIN, now + CALL_INTERVAL_MAX)
    }
}

impl Inner {
    /// The tick at which something due at `time` is over.
    pub(crate) fn tick_of(&self, time: f64) -> u32 {
        // Saturates: infinity is the last tick, the past the first.
        ((time - self.base) * TICKS).ceil() as u32
    }

    /// Removes what has died; returns when the next removal may be due. However much dies at once, a shard is locked only
    /// for [`EXPIRY_BATCH`] objects at a time.
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
                    // Between two batches a slot may have got another object, or the object another life.
                    let Some(object) = shard.slots.get(*slot).filter(|object| due_of(object) <= now_tick) else {
                        continue;
                    };
                    let digest = self.digest_of_object(object);
                    removed.extend(self.discard(&mut shard, &digest, *slot, Leaving::As(Departure::Expired)));
                }
                shard.settle(&self.stores);
                drop(shard);
                for object in &removed {
                    let left = object.origin() + object.ttl() - now;
                    self.log_expiry(object, left);
                }
                self.totals.add(Main::NExpired, removed.len() as u64);
            }
            dead.clear();
        }
        if next == u32::MAX { f64::INFINITY } else { self.base + f64::from(next) / TICKS }
    }
}
