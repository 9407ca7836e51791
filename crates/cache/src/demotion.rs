//! Demotion: an object that memory has no room for is moved to a file instead of being evicted.
//!
//! With storages in memory and in files (`storage_placement=tiers`, parameter `storage_demote`), an
//! object that has to leave memory gets a second record in a storage with a file, which takes its
//! place in the index: in the same slot, so tags, timers, the order of variants and any walk
//! through the slots see one of the two. Copies of other objects, objects that VCL has put into
//! memory, and objects that expire soon are evicted as usual; so is everything while the disk does
//! not keep up.
//!
//! *Invariant*: a removed object never comes back. The second record counts for a later process
//! only once it is in the index, the first one is marked as removed before that, and both happen
//! under the shard's lock, where no other handle exists: a purge or a ban comes before, and then
//! there is nothing to move, or after, and then it finds the second record.

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

/// Objects that expire sooner than this are not worth writing.
const LEFT_SECONDS_MIN: f64 = 10.0;
/// Longer bodies are not copied while a request waits for room.
const BODY_BYTES_MAX: u64 = 1 << 20;
/// The index's handle and this function's own.
const HANDLES: usize = 2;

impl Inner {
    /// Moves an object from memory to a file; returns the approximate number of bytes freed. `None`
    /// = it has to be evicted, or is in use.
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
        // A disk that fails may have failed already: the writer has then marked the second record,
        // and not found it in the index.
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
        !object.is_on_disk()
            && object.is_whole()
            && object.available_bytes() <= BODY_BYTES_MAX
            && !excluded.iter().any(|kind| object.flags().has(*kind))
            && dies_at(object) >= self.recent() + LEFT_SECONDS_MIN
            && !is_copy(object.head())
            && !is_pinned(object)
    }

    /// The storage with a file for an object: always the same one for an object; objects are spread
    /// about evenly.
    fn file_for(&self, object: &Object) -> Option<&Store> {
        let on_disk = || self.stores.iter().filter(|store| store.is_on_disk());
        on_disk().nth(object.xid() as usize % on_disk().count().max(1))
    }
}
