//! Making room: the least recently used of a sample goes.
//!
//! There is no list to move things in: a hit notes the time in the object, and eviction looks at a few objects at random and
//! takes the one that was used longest ago. With few objects it looks at all of them, and is exact. Objects that somebody
//! reads or writes are left alone, since their memory would not come free. Room in one storage is made of that storage's
//! objects only; and when Transient has reached a limit of its own, of the transient ones.

use crate::Inner;
use crate::departure::Leaving;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::{Evictable, Object, ObjectFlags, Store};
use surface::counter::Main;
use surface::reason::Departure;

/// Up to that many objects in the storage, all are looked at.
const EXACT_OBJECTS_MAX: u64 = 256;
/// How many objects a sample has.
const SAMPLE_OBJECTS: usize = 16;
/// How many shards are tried for a sample before all are looked through.
const SAMPLE_SHARDS_MAX: usize = 64;
/// How many objects one look through a large index evicts.
const SCAN_HARVEST: usize = 64;
/// How many objects are taken from one shard.
const SAMPLE_PER_SHARD: usize = 4;

/// A small generator; which objects are looked at need not be unpredictable.
pub(crate) struct Sampler(AtomicU64);

impl Default for Sampler {
    fn default() -> Self {
        Sampler(AtomicU64::new(0x9e37_79b9_7f4a_7c15))
    }
}

impl Sampler {
    /// A number below `bound`, which is not 0.
    fn below(&self, bound: u32) -> u32 {
        // A Weyl sequence, mixed: every thread may draw without waiting.
        let mut word = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((word >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Units of last use since it was used.
    age: u32,
    /// Of the same age, those with smaller numbers go first.
    xid: Reverse<u32>,
    shard: usize,
    slot: u32,
}

/// The best candidates so far.
struct Ballot {
    now: u32,
    what: Evictable,
    /// How many are wanted.
    seats: usize,
    /// Worst first, so that it makes room for a better one.
    elected: BinaryHeap<Reverse<Candidate>>,
}

impl Ballot {
    /// Considers an object; says whether it could be evicted at all.
    fn consider(&mut self, object: &Arc<Object>, shard: usize, slot: u32) -> bool {
        let is_free = Arc::strong_count(object) == 1
            && (self.what == Evictable::Any || object.flags().has(ObjectFlags::TRANSIENT));
        if is_free {
            let age = self.now.wrapping_sub(object.last_use());
            self.elected.push(Reverse(Candidate { age, xid: Reverse(object.xid()), shard, slot }));
            if self.elected.len() > self.seats {
                self.elected.pop();
            }
        }
        is_free
    }
}

impl Inner {
    /// Evicts from a storage until about `bytes` have come free; `false` when there was nothing to evict.
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
        freed > 0
    }

    /// Evicts while the index, which charges after it has grown, has taken a storage beyond its limit. That it takes others
    /// beyond theirs, since all share its tables, is their next allocation's business: nobody loses objects by what is
    /// stored elsewhere.
    pub(crate) fn keep_to_limit(&self, store: &Store) {
        while store.held_bytes() > store.limit_bytes() && self.evict(store.number(), 1, Evictable::Any) {}
    }

    /// Evicts an object, unless it has gone or come into use meanwhile; returns about how many bytes that frees.
    fn evict_one(&self, candidate: Candidate) -> Option<u64> {
        let mut shard = self.shards[candidate.shard].lock();
        let object = shard.slots.get(candidate.slot)?;
        if object.xid() != candidate.xid.0 || Arc::strong_count(object) > 1 {
            return None;
        }
        let digest = self.digest_of_object(object);
        let object = self.discard(&mut shard, &digest, candidate.slot, Leaving::As(Departure::Evicted))?;
        shard.settle(&self.stores);
        drop(shard);
        self.totals.add(Main::NLruNuked, 1);
        self.log_eviction(&object);
        Some(object.available_bytes() + (object.head().len() + object.vary().len()) as u64 + 128)
    }

    /// The objects of a storage to go next; none when none may.
    fn candidates(&self, store: u8, what: Evictable) -> Vec<Candidate> {
        let count = self.objects[usize::from(store)].load(Relaxed);
        let now = self.use_units(self.recent());
        let mut ballot = Ballot { now, what, seats: 1, elected: BinaryHeap::new() };
        let is_exact = count <= EXACT_OBJECTS_MAX;
        if !is_exact {
            let mut seen = 0;
            for _ in 0..SAMPLE_SHARDS_MAX {
                let index = self.eviction.below(self.shards.len() as u32) as usize;
                let shard = self.shards[index].lock();
                for _ in 0..SAMPLE_PER_SHARD.min(shard.slots.live_of(store)) {
                    let drawn = self.eviction.below(shard.slots.len());
                    let Some(slot) = shard.slots.next_of(store, drawn) else { break };
                    if let Some(object) = shard.slots.get(slot) {
                        seen += usize::from(ballot.consider(object, index, slot));
                    }
                }
                if seen >= SAMPLE_OBJECTS {
                    break;
                }
            }
        }
        if ballot.elected.is_empty() {
            // Looking through a large index takes long: it must last for a while.
            ballot.seats = if is_exact { 1 } else { SCAN_HARVEST };
            for (index, shard) in self.shards.iter().enumerate() {
                let shard = shard.lock();
                for slot in shard.slots.all_of(store) {
                    if let Some(object) = shard.slots.get(slot) {
                        ballot.consider(object, index, slot);
                    }
                }
            }
        }
        ballot.elected.into_iter().map(|Reverse(candidate)| candidate).collect()
    }
}
