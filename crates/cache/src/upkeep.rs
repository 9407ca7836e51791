//! Periodic work: expired objects are removed, the ban lurker takes its steps.

use crate::departure::Leaving;
use crate::{Cache, Inner};
use store::Object;
use surface::counter::Main;
use surface::reason::Departure;

/// Ticks of the wheels per second.
const TICKS: f64 = 8.0;
/// Longest time between two calls, seconds: something added meanwhile may be due.
const CALL_INTERVAL_MAX: f64 = 0.5;
/// Shortest time between two calls, seconds.
const CALL_INTERVAL_MIN: f64 = 0.005;

impl Cache {
    /// Does what is due: expiry, ban lurker. Returns when to call again, seconds since 1970. Any thread may call it, one
    /// at a time.
    pub fn tick(&self, now: f64) -> f64 {
        let inner = &*self.inner;
        inner.see(now);
        let due = inner.expire(now).min(inner.lurk(now));
        due.clamp(now + CALL_INTERVAL_MIN, now + CALL_INTERVAL_MAX)
    }
}

impl Inner {
    /// The tick at which something due at `time` is over.
    pub(crate) fn tick_of(&self, time: f64) -> u32 {
        // Saturates: infinity is the last tick, the past the first.
        ((time - self.base) * TICKS).ceil() as u32
    }

    /// Removes what has died; returns when the next removal may be due.
    fn expire(&self, now: f64) -> f64 {
        // Rounded down: a tick is over only when all of it has passed.
        let now_tick = ((now - self.base) * TICKS).floor() as u32;
        let mut next = u32::MAX;
        let (mut dead, mut removed) = (Vec::new(), Vec::new());
        for shard in &self.shards {
            let mut shard = shard.lock();
            let due_of = |object: &Object| self.tick_of(crate::removal::dies_at(object));
            shard.advance(now_tick, due_of, &mut dead);
            for slot in dead.drain(..) {
                let Some(object) = shard.slots.get(slot) else { continue };
                let digest = self.digest_of_object(object);
                removed.extend(self.discard(&mut shard, &digest, slot, Leaving::As(Departure::Expired)));
            }
            next = next.min(shard.next_tick().unwrap_or(u32::MAX));
            shard.settle(&self.stores);
        }
        for object in &removed {
            let left = object.origin() + object.ttl() - now;
            self.log_expiry(object, left);
        }
        self.totals.add(Main::NExpired, removed.len() as u64);
        if next == u32::MAX { f64::INFINITY } else { self.base + f64::from(next) / TICKS }
    }
}
