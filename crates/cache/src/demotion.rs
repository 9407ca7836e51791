//! What memory has no room for goes into a file, rather than out of the cache.
//!
//! With storages in memory and in files (`storage_placement=tiers`, parameter `storage_demote`), an object that has to leave memory gets a second
//! record in a storage with a file, which takes its place in the index: in the same slot, so tags, timers, the order of variants and
//! whoever walks through the slots see the one or the other. Copies of other objects, what VCL has put into memory, and what
//! dies soon are evicted as ever; so is everything while the disk does not keep up.
//!
//! *Invariant*: nothing that was removed comes back. The second record counts for a later process only once it is in the index, the
//! first one is marked as removed before that, and both happen under the shard's lock, where nobody else has a handle: a purge or a
//! ban comes before, and then there is nothing to move, or after, and then it finds the second one.

use crate::Inner;
use crate::copies::is_copy;
use crate::eviction::Candidate;
use crate::ranking::weight;
use crate::removal::dies_at;
use crate::tag::is_pinned;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{Object, ObjectFlags, Store};
use surface::counter::Main;

/// What dies sooner than this is not worth writing.
const LEFT_SECONDS_MIN: f64 = 10.0;
/// Longer bodies are not copied while a request waits for room.
const BODY_BYTES_MAX: u64 = 1 << 20;
/// The index's handle, and ours.
const HANDLES: usize = 2;

impl Inner {
    /// Moves an object from memory to a file; returns about how many bytes that frees. `None` = it has to be evicted, or is in use.
    pub(crate) fn demote(&self, candidate: Candidate) -> Option<u64> {
        if !self.parameters.storage_demote.load(Relaxed) {
            return None;
        }
        let object = {
            let shard = self.shards[candidate.shard].lock();
            let object = shard.unused(candidate.slot, candidate.xid.0)?;
            Arc::clone(Some(object).filter(|object| self.may_move(object))?)
        };
        let target = self.file_for(&object)?;
        let moved = target.demoted(&object).ok()?;
        let mut shard = self.shards[candidate.shard].lock();
        // A disk that fails may have failed already: whoever wrote has marked the second record, and not found it in the index.
        let is_unchanged = shard.holds(&object) && !object.is_removed() && !moved.is_removed();
        if !is_unchanged || Arc::strong_count(&object) > HANDLES {
            return None;
        }
        moved.live_on(&object);
        object.remove();
        moved.enter_index();
        shard.exchange(object.slot(), Arc::clone(&moved));
        self.charge_tags(&object, self.store_of(&object), target);
        self.objects_of(&object).fetch_sub(1, Relaxed);
        self.objects_of(&moved).fetch_add(1, Relaxed);
        shard.settle(&self.stores);
        drop(shard);
        self.totals.add(Main::Demoted, 1);
        Some(weight(&object))
    }

    fn may_move(&self, object: &Object) -> bool {
        let excluded =
            [ObjectFlags::TRANSIENT, ObjectFlags::PRIVATE, ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS];
        !object.is_filed()
            && object.is_whole()
            && object.available_bytes() <= BODY_BYTES_MAX
            && !excluded.iter().any(|kind| object.flags().has(*kind))
            && dies_at(object) >= self.recent() + LEFT_SECONDS_MIN
            && !is_copy(object.head())
            && !is_pinned(object)
    }

    /// The storage with a file for an object: always the same one for the same object, about as many for each.
    fn file_for(&self, object: &Object) -> Option<&Store> {
        let filed = || self.stores.iter().filter(|store| store.is_filed());
        filed().nth(object.xid() as usize % filed().count().max(1))
    }
}
