//! Making room: the least recently used of a sample goes.
//!
//! There is no list to move things in: a hit notes the time in the object, and eviction looks at a few objects at random and
//! takes the one that was used longest ago. With few objects it looks at all of them, and is exact. Objects that somebody
//! reads or writes are left alone, since their memory would not come free.

use crate::Inner;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::Object;
use surface::counter::Main;
use surface::tag::Tag;

/// Up to that many objects in the index, all are looked at.
const EXACT_OBJECTS_MAX: u64 = 256;
/// How many objects a sample has.
const SAMPLE_OBJECTS: usize = 16;
/// How many shards are tried for a sample before all are looked through.
const SAMPLE_SHARDS_MAX: usize = 64;
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

#[derive(Clone, Copy)]
struct Candidate {
    shard: usize,
    slot: u32,
    xid: u32,
    /// Units of last use since it was used; then those with smaller numbers first.
    age: u32,
}

impl Inner {
    /// Evicts until about `bytes` have come free; `false` when there was nothing to evict.
    pub(crate) fn evict(&self, bytes: u64) -> bool {
        let mut freed = 0;
        while freed < bytes.max(1) {
            match self.evict_one() {
                Some(bytes) => freed += bytes,
                None => break,
            }
        }
        freed > 0
    }

    /// Evicts while the index, which charges after it has grown, has taken the store beyond its limit.
    pub(crate) fn keep_to_limit(&self) {
        while self.store.held_bytes() > self.store.limit_bytes() && self.evict(1) {}
    }

    fn evict_one(&self) -> Option<u64> {
        loop {
            let candidate = self.candidate()?;
            let mut shard = self.shards[candidate.shard].lock();
            // It may have gone, or be in use now; then there are others.
            let Some(object) = shard.slots.get(candidate.slot) else { continue };
            if object.xid() != candidate.xid || Arc::strong_count(object) > 1 {
                continue;
            }
            let digest = self.digest_of_object(object);
            let Some(object) = self.discard(&mut shard, &digest, candidate.slot) else { continue };
            shard.settle(&self.store);
            drop(shard);
            self.totals.add(Main::NLruNuked, 1);
            self.log(Tag::ExpKill, format_args!("LRU x={}", object.xid()));
            return Some(object.available_bytes() + (object.head().len() + object.vary().len()) as u64 + 128);
        }
    }

    /// The object to go next; `None` when none may.
    fn candidate(&self) -> Option<Candidate> {
        let count = self.totals.get(Main::NObject);
        if count == 0 {
            return None;
        }
        let now = self.use_units(self.recent());
        let mut best = None;
        if count > EXACT_OBJECTS_MAX {
            let mut seen = 0;
            for _ in 0..SAMPLE_SHARDS_MAX {
                let index = self.eviction.below(self.shards.len() as u32) as usize;
                let shard = self.shards[index].lock();
                for _ in 0..SAMPLE_PER_SHARD.min(shard.slots.live()) {
                    let slot = self.eviction.below(shard.slots.len());
                    if let Some(object) = shard.slots.get(slot) {
                        seen += usize::from(consider(&mut best, object, now, index, slot));
                    }
                }
                if seen >= SAMPLE_OBJECTS {
                    break;
                }
            }
        }
        if best.is_none() {
            for (index, shard) in self.shards.iter().enumerate() {
                let shard = shard.lock();
                for slot in 0..shard.slots.len() {
                    if let Some(object) = shard.slots.get(slot) {
                        consider(&mut best, object, now, index, slot);
                    }
                }
            }
        }
        best
    }
}

/// Makes the object the best candidate when it is; says whether it could be one at all.
fn consider(best: &mut Option<Candidate>, object: &Arc<Object>, now: u32, shard: usize, slot: u32) -> bool {
    if Arc::strong_count(object) > 1 {
        return false;
    }
    let candidate = Candidate { shard, slot, xid: object.xid(), age: now.wrapping_sub(object.last_use()) };
    let is_better =
        best.is_none_or(|best| candidate.age > best.age || (candidate.age == best.age && candidate.xid < best.xid));
    if is_better {
        *best = Some(candidate);
    }
    true
}
