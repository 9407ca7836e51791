//! A hash table of bans, divided into many parts: growing one large table would block every request
//! for long, and only one part grows at a time. Unrelated bans may have the same hash; the caller
//! compares. *Lock*: the ban list's.

use super::Ban;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::Arc;

const PARTS: usize = 256;

/// Hashes are not hashed again.
#[derive(Default)]
pub(super) struct Unchanged(u64);

impl Hasher for Unchanged {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The bans under one hash, oldest first.
type Bucket = SmallVec<[Arc<Ban>; 1]>;

type Part = HashMap<u64, Bucket, BuildHasherDefault<Unchanged>>;

/// The table; see the module header.
pub(super) struct Table {
    /// Seeded, so that clients cannot choose colliding texts.
    seed: RandomState,
    parts: Box<[Part]>,
}

impl Default for Table {
    fn default() -> Self {
        Table { seed: RandomState::new(), parts: (0..PARTS).map(|_| Part::default()).collect() }
    }
}

/// The middle bits: a part uses the others.
fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

impl Table {
    pub(super) fn hash(&self, what: impl Hash) -> u64 {
        self.seed.hash_one(what)
    }

    /// The bans under a hash, oldest first.
    pub(super) fn bans(&self, hash: u64) -> &[Arc<Ban>] {
        self.parts[part_of(hash)].get(&hash).map_or(&[], SmallVec::as_slice)
    }

    /// Adds a ban that is newer than all others, or the newest once more.
    pub(super) fn push(&mut self, hash: u64, ban: &Arc<Ban>) {
        self.parts[part_of(hash)].entry(hash).or_default().push(Arc::clone(ban));
    }

    /// Removes a ban once; returns true if it was in the table.
    pub(super) fn remove(&mut self, hash: u64, sequence: u64) -> bool {
        let part = &mut self.parts[part_of(hash)];
        let Some(bucket) = part.get_mut(&hash) else { return false };
        // Oldest bans are dropped first, so this nearly always finds the first one.
        let Ok(place) = bucket.binary_search_by_key(&sequence, |ban| ban.sequence) else { return false };
        bucket.remove(place);
        if bucket.is_empty() {
            part.remove(&hash);
        }
        if part.is_empty() {
            // Frees its memory.
            *part = Part::default();
        }
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.parts.iter().flat_map(HashMap::values).map(SmallVec::len).sum()
    }
}
