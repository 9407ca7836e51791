//! Copies: objects that hold another object in another coding.
//!
//! A copy is stored under a key that no request can look up: it is derived from the original's key,
//! transaction id and time. So it can only be found by way of its original, and a purge, a ban or
//! the expiry of the original hides it at once, even after a restart of the worker. Apart from that
//! it is an object like others: it is counted, is evicted, and expires. Bans are not tested: the
//! lookup that found the original has just passed all of them.
//!
//! *Invariant:* a compressed copy, or one in memory, never delivers an outdated response: bans,
//! purges and lifetimes are checked on the original alone.

use crate::removal_history::RemovalCause;
use crate::{Cache, USE_UNITS};
use smallvec::SmallVec;
use std::sync::Arc;
use store::Object;
use surface::reason::RemovalReason;

/// True if a stored head is that of a copy: it contains only the coding.
pub(crate) fn is_copy(head: &[u8]) -> bool {
    let mut others = message::stored_headers(head).filter(|header| !header.is("Content-Encoding"));
    others.next().is_none() && message::stored_notes(head).next().is_none()
}

impl Cache {
    /// The copy under a key, if it is complete and has not expired at `now`, seconds since 1970.
    /// Counts as a use of it.
    #[must_use]
    pub fn copy(&self, key: &[u8; 32], now: f64) -> Option<Arc<Object>> {
        let inner = &*self.inner;
        let digest = inner.digest(key);
        let shard = inner.lock(&digest);
        let slot = shard.variants(shard.find(&digest)).next()?;
        let object = shard.slots.get(slot)?;
        // A long copy from an earlier process is made anew rather than checked.
        let is_sound = object.is_usable() && object.is_whole() && !object.is_unchecked();
        if !is_sound || object.origin() + object.ttl() <= now {
            return None;
        }
        inner.bans.pass(object);
        let interval = (self.inner.parameters.lru_interval.get() * USE_UNITS) as u32;
        object.touch(inner.use_units(now), 1, interval.max(1));
        Some(Arc::clone(object))
    }

    /// Puts a complete copy into the index; it replaces any other under its key.
    pub fn keep_copy(&self, copy: &Arc<Object>) {
        let inner = &*self.inner;
        let digest = inner.digest_of_object(copy);
        inner.bans.refer_copy(copy);
        let mut shard = inner.lock(&digest);
        let old: SmallVec<[u32; 2]> = shard.variants(shard.find(&digest)).collect();
        let cause = || RemovalCause::Other(RemovalReason::Dropped);
        let removed: SmallVec<[Arc<Object>; 2]> =
            old.into_iter().filter_map(|slot| inner.discard(&mut shard, &digest, slot, cause())).collect();
        inner.insert(&mut shard, &digest, copy);
        shard.settle(&inner.stores);
        drop(shard);
        drop(removed);
        inner.keep_to_limit(inner.store_of(copy));
    }
}
