//! Copies: objects that stand for another object in another coding.
//!
//! A copy lies under a key that nobody can ask for: it is derived from the original's key, transaction id and time. So it
//! can only be found by way of its original, and a purge, a ban or the expiry of that hides it at once, even after a
//! restart of the worker. Apart from that it is an object like others: it counts, is evicted, and dies of age. Bans
//! are not tested: the lookup that found the original has just passed all of them.

use crate::departure::Leaving;
use crate::{Cache, USE_UNITS};
use smallvec::SmallVec;
use std::sync::Arc;
use store::Object;
use surface::reason::Departure;

/// Whether a stored head is that of a copy: it says nothing but the coding.
pub(crate) fn is_copy(head: &[u8]) -> bool {
    let mut others = message::stored_headers(head).filter(|header| !header.is("Content-Encoding"));
    others.next().is_none() && message::stored_notes(head).next().is_none()
}

impl Cache {
    /// The copy under a key, if it is whole and still lives at `now`, seconds since 1970. Counts as a use of it.
    #[must_use]
    pub fn copy(&self, key: &[u8; 32], now: f64) -> Option<Arc<Object>> {
        let inner = &*self.inner;
        let digest = inner.digest(key);
        let shard = inner.lock(&digest);
        let slot = shard.variants(shard.find(&digest)).next()?;
        let object = shard.slots.get(slot)?;
        // A long one from an earlier process is rather made anew than checked.
        let is_sound = object.is_usable() && object.is_whole() && !object.is_unchecked();
        if !is_sound || object.origin() + object.ttl() <= now {
            return None;
        }
        inner.bans.pass(object);
        let interval = (self.inner.parameters.lru_interval.get() * USE_UNITS) as u32;
        object.touch(inner.use_units(now), 1, interval.max(1));
        Some(Arc::clone(object))
    }

    /// Puts a complete copy into the index, in place of any other under its key.
    pub fn keep_copy(&self, copy: &Arc<Object>) {
        let inner = &*self.inner;
        let digest = inner.digest_of_object(copy);
        inner.bans.refer_copy(copy);
        let mut shard = inner.lock(&digest);
        let old: SmallVec<[u32; 2]> = shard.variants(shard.find(&digest)).collect();
        let leaving = || Leaving::As(Departure::Dropped);
        let removed: SmallVec<[Arc<Object>; 2]> =
            old.into_iter().filter_map(|slot| inner.discard(&mut shard, &digest, slot, leaving())).collect();
        inner.insert(&mut shard, &digest, copy);
        shard.settle(&inner.stores);
        drop(shard);
        drop(removed);
        inner.keep_to_limit(inner.store_of(copy));
    }
}
