//! Which keys left lately: fingerprints with the time of leaving, in a table of fixed buckets.
//!
//! Four bytes a key. Time is the number of keys remembered so far. A fingerprint that two keys share makes one seem to
//! have been here, once in some ten thousand questions; that costs no more than a wrong guess.

/// Fingerprints in a bucket.
const WAYS: usize = 4;
/// The time span that counts is divided into this many units.
const SPAN_UNITS: u32 = 1024;

/// See the module header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ghost {
    /// Fingerprint (16 bits, never 0) above the unit of time (16).
    table: Vec<u32>,
    /// Keys remembered so far.
    clock: u64,
    /// How many keys are remembered, about.
    capacity: usize,
}

impl Ghost {
    /// Makes room for about that many keys. Growing keeps what is known, a great loss of keys forgets it.
    fn fit(&mut self, keys: usize) {
        let wanted = keys.max(WAYS);
        if wanted <= self.capacity * 2 && wanted * 4 >= self.capacity {
            return;
        }
        let capacity = wanted.next_power_of_two();
        let old = std::mem::replace(self, Ghost { table: vec![0; capacity], clock: 0, capacity });
        if capacity > old.capacity && old.capacity > 0 {
            self.clock = old.clock;
            let (old_unit, unit) = (old.unit(), self.unit());
            for (place, word) in self.table.iter_mut().enumerate() {
                // Keys are not known here, so that each half gets all of them.
                let known = old.table[place % old.table.len()];
                let age = (old_unit.wrapping_sub(known) & 0xffff) as usize * old.capacity / capacity;
                if known != 0 {
                    *word = known & 0xffff_0000 | unit.wrapping_sub(age as u32) & 0xffff;
                }
            }
        }
    }

    fn unit(&self) -> u32 {
        (self.clock * u64::from(SPAN_UNITS) / self.capacity.max(1) as u64) as u32 & 0xffff
    }

    fn bucket(&self, hash: u64) -> usize {
        // Buckets are aligned, and the lowest bits choose one, so that a table twice as large has the old one twice.
        (hash as usize).wrapping_mul(WAYS) & (self.table.len() - 1)
    }

    fn fingerprint(hash: u64) -> u32 {
        ((hash >> 48) as u32).max(1)
    }

    /// Remembers a key, among about `keys`.
    pub(crate) fn remember(&mut self, hash: u64, keys: usize) {
        self.fit(keys);
        let (bucket, unit) = (self.bucket(hash), self.unit());
        let ways = &mut self.table[bucket..bucket + WAYS];
        let age = |word: u32| if word == 0 { u32::MAX } else { unit.wrapping_sub(word) & 0xffff };
        let oldest = ways.iter_mut().max_by_key(|word| age(**word)).expect("a bucket has ways");
        *oldest = Self::fingerprint(hash) << 16 | unit;
        self.clock += 1;
    }

    /// Whether a key left lately; it is forgotten.
    pub(crate) fn recall(&mut self, hash: u64) -> bool {
        if self.table.is_empty() {
            return false;
        }
        let (bucket, unit, fingerprint) = (self.bucket(hash), self.unit(), Self::fingerprint(hash));
        let is_it = |word: &&mut u32| **word >> 16 == fingerprint;
        let Some(word) = self.table[bucket..bucket + WAYS].iter_mut().find(is_it) else { return false };
        let age = unit.wrapping_sub(*word) & 0xffff;
        *word = 0;
        age <= SPAN_UNITS
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> u64 {
        crate::replay::mix(number)
    }

    #[test]
    fn keys_are_remembered_for_about_as_many_others_and_no_longer() {
        let mut ghost = Ghost::default();
        for number in 0..10_000 {
            ghost.remember(hash(number), 1000);
        }
        let recalled = |range: std::ops::Range<u64>| range.filter(|n| ghost.clone().recall(hash(*n))).count();
        assert!(recalled(9500..10_000) > 450);
        assert!(recalled(0..8000) < 16, "{}", recalled(0..8000));
        assert!(recalled(20_000..30_000) < 20, "{}", recalled(20_000..30_000));
        assert_eq!(ghost.memory_bytes(), 4096);
    }

    #[test]
    fn a_key_is_recalled_once_and_survives_growth() {
        let mut ghost = Ghost::default();
        ghost.remember(hash(1), 8);
        ghost.remember(hash(2), 100);
        assert!(ghost.recall(hash(1)));
        assert!(!ghost.recall(hash(1)));
        assert!(!ghost.recall(hash(3)));
    }
}
