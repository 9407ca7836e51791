//! Keys that left recently: fingerprints with the time of leaving, in a table of fixed buckets.
//!
//! Four bytes a key. Keys are separated by the way they left, and each way has a clock of its own:
//! the number of keys that left so. A fingerprint shared by two keys makes one seem to have been
//! stored, once in some thousand queries; that costs only a wrong guess.

/// Fingerprints in a bucket.
const WAYS: usize = 4;
/// The time span that counts is divided into this many units.
pub(crate) const SPAN_UNITS: u32 = 1024;

/// Ways of leaving.
const KINDS: usize = 3;

/// The way in which a key left, and the time since then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Memory {
    pub(crate) kind: usize,
    /// Number of keys that have left the same way since, in parts of [`SPAN_UNITS`] of those
    /// remembered.
    pub(crate) age: u32,
}

/// The table; see the module header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ghost {
    /// Fingerprint (14 bits), kind plus one (2; 0 = empty) and the unit of time (16).
    table: Vec<u32>,
    /// Keys remembered so far, of each kind.
    clocks: [u64; KINDS],
    /// Approximate number of keys remembered.
    capacity: usize,
}

impl Ghost {
    /// Makes room for about that many keys. Growing keeps the entries, a great loss of keys drops
    /// them.
    fn fit(&mut self, keys: usize) {
        let wanted = keys.max(WAYS);
        if wanted <= self.capacity * 2 && wanted * 4 >= self.capacity {
            return;
        }
        let capacity = wanted.next_power_of_two();
        let mut old = std::mem::replace(self, Ghost { table: vec![0; capacity], clocks: [0; KINDS], capacity });
        if capacity > old.capacity && old.capacity > 0 {
            self.clocks = old.clocks;
            for known in &mut old.table {
                if let Some(memory) = memory_of(*known, &old.clocks, old.capacity) {
                    let age = (memory.age as usize * old.capacity / capacity) as u32;
                    *known = *known & 0xffff_0000 | self.unit(memory.kind).wrapping_sub(age) & 0xffff;
                }
            }
            for (place, word) in self.table.iter_mut().enumerate() {
                // Keys are unknown here, so each half gets all of them.
                *word = old.table[place % old.table.len()];
            }
        }
    }

    fn unit(&self, kind: usize) -> u32 {
        unit(self.clocks[kind], self.capacity)
    }

    fn bucket(&self, hash: u64) -> usize {
        // Buckets are aligned, and the lowest bits choose one, so that a table twice as large has
        // the old one twice.
        (hash as usize).wrapping_mul(WAYS) & (self.table.len() - 1)
    }

    fn fingerprint(hash: u64) -> u32 {
        (hash >> 50) as u32
    }

    /// Records the way in which a key left, among about `keys`.
    pub(crate) fn remember(&mut self, hash: u64, kind: usize, keys: usize) {
        self.fit(keys);
        let bucket = self.bucket(hash);
        let word = Self::fingerprint(hash) << 18 | (kind as u32 + 1) << 16 | self.unit(kind);
        let (clocks, capacity) = (self.clocks, self.capacity);
        let ways = &mut self.table[bucket..bucket + WAYS];
        let age = |word: &&mut u32| memory_of(**word, &clocks, capacity).map_or(u32::MAX, |memory| memory.age);
        *ways.iter_mut().max_by_key(age).expect("a bucket has ways") = word;
        self.clocks[kind] += 1;
    }

    /// The way in which a key left, if that was recent; the entry is removed.
    pub(crate) fn recall(&mut self, hash: u64) -> Option<Memory> {
        if self.table.is_empty() {
            return None;
        }
        let (bucket, fingerprint) = (self.bucket(hash), Self::fingerprint(hash));
        let is_it = |word: &&mut u32| **word >> 18 == fingerprint && **word != 0;
        let word = std::mem::take(self.table[bucket..bucket + WAYS].iter_mut().find(is_it)?);
        memory_of(word, &self.clocks, self.capacity).filter(|memory| memory.age <= SPAN_UNITS)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.capacity() * 4
    }
}

fn unit(clock: u64, capacity: usize) -> u32 {
    (clock * u64::from(SPAN_UNITS) / capacity.max(1) as u64) as u32 & 0xffff
}

/// Decodes an entry; `None` for an empty one.
fn memory_of(word: u32, clocks: &[u64; KINDS], capacity: usize) -> Option<Memory> {
    let kind = (word >> 16 & 3).checked_sub(1)? as usize;
    Some(Memory { kind, age: unit(clocks[kind], capacity).wrapping_sub(word) & 0xffff })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        crate::hash::mix(number)
    }

    #[test]
    fn keys_are_remembered_for_about_as_many_others_and_no_longer() {
        let mut ghost = Ghost::default();
        for number in 0..10_000 {
            ghost.remember(hash(number), 0, 1000);
        }
        let recalled = |range: std::ops::Range<u64>| range.filter(|n| ghost.clone().recall(hash(*n)).is_some()).count();
        assert!(recalled(9500..10_000) > 450);
        assert!(recalled(0..8000) < 16, "{}", recalled(0..8000));
        assert!(recalled(20_000..30_000) < 30, "{}", recalled(20_000..30_000));
        assert_eq!(ghost.memory_bytes(), 4096);
    }

    #[test]
    fn a_key_is_recalled_once_and_survives_growth() {
        let mut ghost = Ghost::default();
        ghost.remember(hash(1), 2, 8);
        ghost.remember(hash(2), 1, 100);
        // One later key of its kind: 1024 of 8 would have been 128 units, and 128 keys are
        // remembered now.
        assert_eq!(ghost.recall(hash(1)), Some(Memory { kind: 2, age: 8 }));
        assert_eq!(ghost.recall(hash(1)), None);
        assert_eq!(ghost.recall(hash(3)), None);
    }
}
