//! Making room: the policy of the storage names an object to evict, or the least recently used
//! object of a sample is evicted.
//!
//! With a policy other than LRU (`ranking.rs`), each shard decides for itself: of the shards drawn,
//! the one under most pressure gives an object. Sampling is used where the policy is LRU, where
//! there are few objects, and where only transient ones may be evicted. There is no list in which
//! objects are moved: a hit stores the time in the object, and eviction examines a few objects at
//! random and takes the one used longest ago. The best of those not taken are remembered
//! ([`Pool`]), so that a few are enough. When there are few objects it examines all of them, and is
//! exact. Objects that are being read or written are skipped, since their memory would not be
//! freed. To make room in a storage, only objects of that storage are evicted; when Transient has
//! reached a limit of its own, only transient ones; for a marker, only markers (`markers.rs`).
//!
//! *Invariant:* no policy is notified of a hit: it reads the hit count, which is in the object
//! already. Space in one storage is never made by evicting from another, except that a file takes
//! objects evicted from memory.

use crate::ranking::weight;
use crate::removal_history::RemovalCause;
use crate::{Cache, Inner};
use ::eviction::{EvictionPolicy, parts_to_draw};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::{Evictable, Object, ObjectFlags, Store};
use surface::counter::Main;
use surface::reason::RemovalReason;

/// With at most this many objects in the storage, all are examined and the least recently used one
/// is evicted, whatever the policy: shards with one object each have nothing to choose from.
const EXACT_OBJECTS_MAX: u64 = 256;
/// Number of objects in a sample.
const SAMPLE_OBJECTS: usize = 16;
/// Number of objects in a sample where the best of earlier samples are remembered, and number of
/// those. Examining an object costs misses of the CPU's caches.
const SAMPLE_OBJECTS_POOLED: usize = 5;
const POOL_OBJECTS: usize = 16;
/// Number of shards tried for a sample before all of them are searched.
const SAMPLE_SHARDS_MAX: usize = 64;
/// Number of objects that one search through a large index evicts.
const SCAN_HARVEST: usize = 64;
/// Number of shards drawn for a marker to evict. If one of them has none, there are few markers,
/// and all shards are examined.
const MARKER_SHARDS: usize = 8;
/// Number of objects sampled from one shard.
const SAMPLE_PER_SHARD: usize = 4;

/// A small random generator; the choice of a sample need not be unpredictable.
pub(crate) struct Sampler(AtomicU64);

impl Default for Sampler {
    fn default() -> Self {
        Sampler(AtomicU64::new(0x9e37_79b9_7f4a_7c15))
    }
}

impl Sampler {
    /// A number below `bound`, which is not 0.
    fn below(&self, bound: u32) -> u32 {
        // A mixed Weyl sequence: threads can draw without waiting.
        let mut word = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((word >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The objects of a storage that were used longest ago, of those that samples have shown; the
/// oldest last. An entry that was used since then, or was removed, is detected when its turn comes.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Remembered>>);

/// An object that may be evicted.
struct Remembered {
    last_use: u32,
    xid: u32,
    shard: usize,
    slot: u32,
}

/// The policies of the storages.
pub(crate) struct Policies(Mutex<Choice>);

struct Choice {
    /// By storage; `None` = the value of the parameter.
    own: Box<[Option<EvictionPolicy>]>,
    /// By storage: the policy that the shards follow.
    followed: Box<[EvictionPolicy]>,
}

impl Policies {
    pub(crate) fn new(stores: usize) -> Policies {
        let (own, followed) = (vec![None; stores].into(), vec![EvictionPolicy::Lru; stores].into());
        Policies(Mutex::new(Choice { own, followed }))
    }
}

impl Cache {
    /// Gives storages, by number, eviction policies of their own, regardless of the parameter. Call
    /// it before [`Cache::configure`].
    pub fn set_policies(&self, own: &[Option<EvictionPolicy>]) {
        let mut choice = self.inner.policies.0.lock();
        for (place, policy) in choice.own.iter_mut().zip(own) {
            *place = *policy;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// Units of last use since the last use of the object.
    age: u32,
    /// Among objects of the same age, those with smaller numbers are evicted first.
    pub(crate) xid: Reverse<u32>,
    pub(crate) shard: usize,
    pub(crate) slot: u32,
}

/// The best candidates so far.
struct EvictionCandidates {
    now: u32,
    what: Evictable,
    /// Number of candidates wanted.
    wanted: usize,
    /// Worst candidate first, so that a better one can replace it.
    best: BinaryHeap<Reverse<Candidate>>,
}

impl EvictionCandidates {
    /// Considers an object; returns true if it could be evicted at all.
    fn consider(&mut self, object: &Arc<Object>, shard: usize, slot: u32) -> bool {
        let is_free = Arc::strong_count(object) == 1
            && match self.what {
                Evictable::Any => true,
                Evictable::Transient => object.flags().has(ObjectFlags::TRANSIENT),
                Evictable::Markers => object.flags().is_marker(),
            };
        if is_free {
            let age = self.now.wrapping_sub(object.last_use());
            self.best.push(Reverse(Candidate { age, xid: Reverse(object.xid()), shard, slot }));
            if self.best.len() > self.wanted {
                self.best.pop();
            }
        }
        is_free
    }
}

impl Inner {
    /// Makes every storage without a policy of its own follow `policy`. Where that is a change, the
    /// objects are ranked anew, one shard at a time.
    pub(crate) fn follow(&self, policy: EvictionPolicy) {
        let mut choice = self.policies.0.lock();
        let Choice { own, followed } = &mut *choice;
        for ((own, followed), store) in own.iter().zip(followed).zip(0..) {
            let wanted = own.unwrap_or(policy);
            if std::mem::replace(followed, wanted) == wanted {
                continue;
            }
            for shard in &self.shards {
                let mut shard = shard.lock();
                shard.rank_by(store, wanted);
                shard.settle(&self.stores);
            }
        }
    }

    /// The object that the storage's policy would evict; `None` if that is LRU, or everything drawn
    /// is in use.
    fn ranked_last(&self, store: u8, objects: u64) -> Option<Candidate> {
        let draws = parts_to_draw(objects, self.shards.len() as u64);
        for _ in 0..SAMPLE_SHARDS_MAX {
            let (mut index, mut most) = (0, None);
            for _ in 0..draws {
                let drawn = self.eviction.below(self.shards.len() as u32) as usize;
                let pressure = self.shards[drawn].lock().pressure(store)?;
                if most.is_none_or(|most| pressure > most) {
                    (index, most) = (drawn, Some(pressure));
                }
            }
            let mut shard = self.shards[index].lock();
            if let Some(slot) = shard.victim(store)
                && let Some(object) = shard.slots.get(slot)
            {
                return Some(Candidate { age: 0, xid: Reverse(object.xid()), shard: index, slot });
            }
        }
        None
    }

    /// Evicts from a storage until about `bytes` have been freed; returns `false` if there was
    /// nothing to evict.
    pub(crate) fn evict(&self, store: u8, bytes: u64, what: Evictable) -> bool {
        let mut freed = 0;
        while freed < bytes.max(1) {
            let candidates = self.candidates(store, what);
            if candidates.is_empty() {
                break;
            }
            for candidate in candidates {
                freed += self.evict_one(candidate).unwrap_or(0);
            }
        }
        if freed == 0 && what == Evictable::Any {
            self.log_full();
        }
        freed > 0
    }

    /// Evicts while the index, which is charged after it has grown, has taken this storage beyond
    /// its limit. Since all storages share the tables, others may exceed their limits too; that is
    /// left to their next allocation: no storage loses objects because of objects in another.
    pub(crate) fn keep_to_limit(&self, store: &Store) {
        self.keep_to_limit_by(store, &[Evictable::Any]);
    }

    /// The same after an object has entered; a marker displaces markers if there are others.
    pub(crate) fn keep_to_limit_with(&self, object: &Object) {
        let kinds: &[_] = match object.flags().is_marker() {
            true => &[Evictable::Markers, Evictable::Any],
            false => &[Evictable::Any],
        };
        self.keep_to_limit_by(self.store_of(object), kinds);
    }

    fn keep_to_limit_by(&self, store: &Store, kinds: &[Evictable]) {
        let evict = |kind: &Evictable| self.evict(store.number(), 1, *kind);
        while store.held_bytes() > store.limit_bytes() && kinds.iter().any(evict) {}
    }

    /// Evicts an object, unless it has been removed or come into use since; returns the approximate
    /// number of bytes freed. An object in memory alone is moved to a file instead, if permitted.
    fn evict_one(&self, candidate: Candidate) -> Option<u64> {
        if let Some(freed) = self.demote(candidate) {
            return Some(freed);
        }
        let mut shard = self.shards[candidate.shard].lock();
        let digest = self.digest_of_object(shard.unused(candidate.slot, candidate.xid.0)?);
        let object = self.discard(&mut shard, &digest, candidate.slot, RemovalCause::Other(RemovalReason::Evicted))?;
        shard.settle(&self.stores);
        drop(shard);
        self.totals.add(Main::NLruNuked, 1);
        self.log_eviction(&object);
        Some(weight(&object))
    }

    /// Evicts an object that has to make room in its storage's file; its readers keep it until they
    /// are done.
    pub(crate) fn reclaim(&self, object: &Arc<Object>) {
        if object.is_removed() {
            // It could not be written.
            if let Some(removed) = self.take_out(object, RemovalReason::Dropped) {
                self.log_removal(&removed);
            }
        } else if let Some(reclaimed) = self.take_out(object, RemovalReason::Evicted) {
            self.totals.add(Main::NLruNuked, 1);
            self.log_eviction(&reclaimed);
        }
    }

    /// Considers objects at random until `objects` of them could be evicted, or enough shards have
    /// been searched.
    fn sample(&self, candidates: &mut EvictionCandidates, store: u8, objects: usize) {
        let mut seen = 0;
        for _ in 0..SAMPLE_SHARDS_MAX {
            let index = self.eviction.below(self.shards.len() as u32) as usize;
            let shard = self.shards[index].lock();
            for _ in 0..SAMPLE_PER_SHARD.min(shard.slots.live_of(store)) {
                let drawn = self.eviction.below(shard.slots.len());
                let Some(slot) = shard.slots.next_of(store, drawn) else { break };
                if let Some(object) = shard.slots.get(slot) {
                    seen += usize::from(candidates.consider(object, index, slot));
                }
            }
            if seen >= objects {
                return;
            }
        }
    }

    /// The object used longest ago, of a sample and of those remembered from earlier ones; the
    /// others are remembered.
    fn longest_unused(
        &self,
        store: u8,
        sample: impl Iterator<Item = Reverse<Candidate>>,
        now: u32,
    ) -> Option<Candidate> {
        let pool = &self.pools[usize::from(store)].0;
        // While the pool is taken out, other threads use their own samples.
        let mut all = std::mem::take(&mut *pool.lock());
        for Reverse(candidate) in sample {
            if !all.iter().any(|one| (one.shard, one.slot) == (candidate.shard, candidate.slot)) {
                let last_use = now.wrapping_sub(candidate.age);
                all.push(Remembered { last_use, xid: candidate.xid.0, shard: candidate.shard, slot: candidate.slot });
            }
        }
        all.sort_unstable_by_key(|one| (now.wrapping_sub(one.last_use), Reverse(one.xid)));
        let mut found = None;
        while let Some(one) = all.pop() {
            if self.is_unused_since(&one) {
                let age = now.wrapping_sub(one.last_use);
                found = Some(Candidate { age, xid: Reverse(one.xid), shard: one.shard, slot: one.slot });
                break;
            }
        }
        let spare = all.len().saturating_sub(POOL_OBJECTS);
        all.drain(..spare);
        *pool.lock() = all;
        found
    }

    /// True if it is still stored, not in use, and was not used since it was remembered.
    fn is_unused_since(&self, one: &Remembered) -> bool {
        let shard = self.shards[one.shard].lock();
        shard.unused(one.slot, one.xid).is_some_and(|object| object.last_use() == one.last_use)
    }

    /// The marker of a storage used longest ago, among those of the shards drawn.
    fn oldest_marker(&self, store: u8) -> Option<Candidate> {
        let now = self.use_units(self.recent());
        let oldest_of = |index: usize| {
            let mut shard = self.shards[index].lock();
            let marker = shard.oldest_marker()?;
            let object = shard.slots.get(marker.slot)?;
            (object.store_number() == Some(store)).then(|| Candidate {
                age: now.wrapping_sub(marker.last_use),
                xid: Reverse(marker.xid),
                shard: index,
                slot: marker.slot,
            })
        };
        let draw = || self.eviction.below(self.shards.len() as u32) as usize;
        let drawn: SmallVec<[_; MARKER_SHARDS]> =
            std::iter::repeat_with(draw).take(MARKER_SHARDS).filter_map(oldest_of).collect();
        if drawn.len() == MARKER_SHARDS {
            return drawn.into_iter().max();
        }
        (0..self.shards.len()).filter_map(oldest_of).max()
    }

    /// The objects of a storage to evict next; empty when none may be evicted.
    fn candidates(&self, store: u8, what: Evictable) -> Vec<Candidate> {
        if what == Evictable::Markers {
            return self.oldest_marker(store).into_iter().collect();
        }
        let count = self.objects[usize::from(store)].load(Relaxed);
        let now = self.use_units(self.recent());
        let mut candidates = EvictionCandidates { now, what, wanted: 1, best: BinaryHeap::new() };
        let is_exact = count <= EXACT_OBJECTS_MAX;
        if !is_exact
            && what == Evictable::Any
            && let Some(candidate) = self.ranked_last(store, count)
        {
            return vec![candidate];
        }
        if !is_exact && what == Evictable::Any {
            candidates.wanted = POOL_OBJECTS;
            self.sample(&mut candidates, store, SAMPLE_OBJECTS_POOLED);
            if let Some(candidate) = self.longest_unused(store, candidates.best.drain(), now) {
                return vec![candidate];
            }
            candidates.wanted = 1;
        }
        if !is_exact {
            self.sample(&mut candidates, store, SAMPLE_OBJECTS);
        }
        if candidates.best.is_empty() {
            // Searching a large index takes long, so the result must last for several evictions.
            candidates.wanted = if is_exact { 1 } else { SCAN_HARVEST };
            for (index, shard) in self.shards.iter().enumerate() {
                let shard = shard.lock();
                for slot in shard.slots.all_of(store) {
                    if let Some(object) = shard.slots.get(slot) {
                        candidates.consider(object, index, slot);
                    }
                }
            }
        }
        candidates.best.into_iter().map(|Reverse(candidate)| candidate).collect()
    }
}
