//! Removal of objects from the index: one by one, purged by key, or by shorter lifetimes.
//!
//! *Order*: first the mark in the arena, then the index, and the memory when the last reader has
//! finished. A kill in between brings nothing back.
//!
//! *Invariant:* no purged or banned object returns after a crash: its commit mark is cleared before
//! its removal is reported.

use crate::digest::Digest;
use crate::removal_history::RemovalCause;
use crate::shard::Shard;
use crate::{Cache, Inner, SHARDS};
use semantics::Purge;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::Object;
use surface::counter::Main;
use surface::reason::RemovalReason;

/// The time at which an object can be discarded, seconds since 1970.
pub(crate) fn dies_at(object: &Object) -> f64 {
    object.origin() + object.ttl().max(0.0) + object.grace().max(0.0) + object.keep().max(0.0)
}

impl Cache {
    /// Takes an object out of the index, durably. Readers keep it until they are done.
    pub fn remove(&self, object: &Arc<Object>) {
        object.remove();
        if let Some(removed) = self.inner.take_out(object, RemovalReason::Dropped) {
            self.inner.log_removal(&removed);
        }
    }

    /// Changes the lifetime of an object, durably: seconds from its origin, longer or shorter than
    /// before.
    pub fn set_lifetime(&self, object: &Arc<Object>, ttl: f64, grace: f64, keep: f64) {
        let died_at = dies_at(object);
        object.set_lifetime(ttl, grace, keep);
        let inner = &*self.inner;
        let digest = inner.digest_of_object(object);
        let mut shard = inner.lock(&digest);
        if shard.holds(object) {
            inner.log_change(object, died_at);
            shard.reschedule(object.slot(), inner.tick_of(dies_at(object)));
        }
    }

    /// Removes every variant under a key, or changes their lifetimes. Returns the number of
    /// objects; the caller counts `n_purges` and `n_obj_purged`. A fetch under way is not touched.
    pub fn purge(&self, key: &[u8; 32], purge: Purge, now: f64) -> usize {
        let inner = &*self.inner;
        inner.see(now);
        let digest = inner.digest(key);
        let mut shard = inner.lock(&digest);
        let slots: SmallVec<[u32; 8]> = shard.variants(shard.find(&digest)).collect();
        let mut removed = Vec::new();
        for slot in &slots {
            match purge {
                Purge::Hard => {
                    removed.extend(inner.discard(
                        &mut shard,
                        &digest,
                        *slot,
                        RemovalCause::Other(RemovalReason::Purged),
                    ));
                }
                Purge::Soft { .. } => inner.set_life(&mut shard, *slot, purge, now),
            }
        }
        shard.settle(&inner.stores);
        drop(shard);
        for object in &removed {
            inner.log_purge(object, now, -0.0);
        }
        slots.len()
    }

    /// Like [`Cache::purge`], and the responses of fetches under way are not kept.
    pub fn purge_with_fetches(&self, key: &[u8; 32], purge: Purge, now: f64) -> usize {
        let digest = self.inner.digest(key);
        if let Some(head) = self.inner.lock(&digest).existing_head(&digest) {
            for mark in &mut head.busy {
                mark.is_outdated = true;
            }
        }
        self.purge(key, purge, now)
    }

    /// Removes every variant under a key because a request has changed the resource, but not
    /// `except`, which is the answer to that request. Fetches under way may have begun before the
    /// change, so their responses are not kept. Returns the number of objects removed. Source: RFC
    /// 9111 §4.4.
    pub fn invalidate(&self, key: &[u8; 32], except: Option<&Arc<Object>>, now: f64) -> usize {
        let inner = &*self.inner;
        inner.see(now);
        let digest = inner.digest(key);
        let mut shard = inner.lock(&digest);
        if let Some(head) = shard.existing_head(&digest) {
            for mark in &mut head.busy {
                mark.is_outdated = true;
            }
        }
        let slots: SmallVec<[u32; 8]> = shard.variants(shard.find(&digest)).collect();
        let mut removed = Vec::new();
        for slot in slots {
            if shard.slots.get(slot).is_some_and(|object| except.is_none_or(|except| !Arc::ptr_eq(object, except))) {
                removed.extend(inner.discard(
                    &mut shard,
                    &digest,
                    slot,
                    RemovalCause::Other(RemovalReason::Invalidated),
                ));
            }
        }
        shard.settle(&inner.stores);
        drop(shard);
        for object in &removed {
            inner.log_purge(object, now, -0.0);
        }
        removed.len()
    }
}

impl Inner {
    /// Changes the lifetime of the object in a slot, as for a soft purge.
    pub(crate) fn set_life(&self, shard: &mut Shard, slot: u32, purge: Purge, now: f64) {
        let (Some(object), Purge::Soft { ttl, grace, keep }) = (shard.slots.get(slot), purge) else { return };
        let chosen = |old: f64, new: f64| if new < 0.0 { old } else { new };
        let died_at = dies_at(object);
        object.set_lifetime(now - object.origin() + ttl, chosen(object.grace(), grace), chosen(object.keep(), keep));
        self.log_change(object, died_at);
        let due = self.tick_of(dies_at(object));
        shard.reschedule(slot, due);
    }

    /// Takes an object out of the index, if it is in it.
    pub(crate) fn take_out(&self, object: &Arc<Object>, reason: RemovalReason) -> Option<Arc<Object>> {
        let digest = self.digest_of_object(object);
        let mut shard = self.lock(&digest);
        let removed = if shard.holds(object) {
            self.discard(&mut shard, &digest, object.slot(), RemovalCause::Other(reason))
        } else {
            None
        };
        shard.settle(&self.stores);
        removed
    }

    /// Marks the object in a slot as removed and takes it out. The caller must drop it after
    /// releasing the lock.
    pub(crate) fn discard(
        &self,
        shard: &mut Shard,
        digest: &Digest,
        slot: u32,
        cause: RemovalCause<'_>,
    ) -> Option<Arc<Object>> {
        shard.slots.get(slot)?.remove();
        let (object, key_is_gone) = shard.remove(digest, slot)?;
        shard.removal_history.note(digest, cause, self.recent());
        self.untag(&object, digest.shard(SHARDS), slot);
        if object.flags().is_sliced() {
            self.orphan(&object);
        }
        self.bans.release(object.ban());
        self.objects_of(&object).fetch_sub(1, Relaxed);
        self.totals.sub(Main::NObject, 1);
        self.totals.sub(Main::NObjectcore, 1);
        self.totals.sub(Main::NObjecthead, u64::from(key_is_gone));
        self.totals.add(Main::ExpMailed, 1);
        self.totals.add(Main::ExpReceived, 1);
        Some(object)
    }
}
