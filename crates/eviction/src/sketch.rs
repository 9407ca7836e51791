//! Approximate request frequencies of recent keys: a count-min sketch of four-bit counters.
//!
//! Each key has a counter in four rows, which share one table; its frequency is the least of them.
//! When many uses have been counted, all counters are halved, so that past popularity fades.
//! Source: Einziger, Friedman, Manes, "TinyLFU", 2017.

use crate::hash::mix;

const ROWS: u32 = 4;
/// Largest frequency.
pub(crate) const FREQUENCY_MAX: u32 = 15;
/// After this many counts for each word, all are halved.
const SAMPLE_FACTOR: u64 = 5;

/// The sketch; see the module header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    words: Vec<u64>,
    counted: u64,
}

impl Sketch {
    /// Makes room for about that many keys. Growing keeps the counts: a larger table repeats the
    /// old one.
    pub(crate) fn fit(&mut self, keys: usize) {
        let wanted = keys.max(8);
        if wanted > self.words.len() {
            let words = wanted.next_power_of_two();
            let old = std::mem::take(&mut self.words);
            self.words = (0..words).map(|at| old.get(at % old.len().max(1)).copied().unwrap_or(0)).collect();
        } else if wanted * 8 < self.words.len() {
            *self = Sketch { words: vec![0; wanted.next_power_of_two()], counted: 0 };
        }
    }

    /// The word and the shift of a key's counter in a row.
    fn place(&self, hash: u64, row: u32) -> (usize, u32) {
        let spread = mix(hash ^ u64::from(row + 1) << 56);
        // A larger table keeps the lower bits of the position.
        (spread as usize & (self.words.len() - 1), (spread >> 60) as u32 * 4)
    }

    /// Counts uses of a key.
    pub(crate) fn add(&mut self, hash: u64, uses: u32) {
        if uses == 0 || self.words.is_empty() {
            return;
        }
        // Counters that other keys have raised above this key's frequency stay as they are: fewer
        // errors in all.
        let sum = (self.frequency(hash) + uses).min(FREQUENCY_MAX);
        for row in 0..ROWS {
            let (word, shift) = self.place(hash, row);
            let sum = sum.max((self.words[word] >> shift) as u32 & FREQUENCY_MAX);
            self.words[word] = self.words[word] & !(u64::from(FREQUENCY_MAX) << shift) | u64::from(sum) << shift;
        }
        self.counted += u64::from(uses.min(FREQUENCY_MAX));
        if self.counted >= self.words.len() as u64 * SAMPLE_FACTOR {
            for word in &mut self.words {
                *word = *word >> 1 & 0x7777_7777_7777_7777;
            }
            self.counted /= 2;
        }
    }

    /// Approximate number of uses of a key, never too low except by halving: 0 to
    /// [`FREQUENCY_MAX`].
    pub(crate) fn frequency(&self, hash: u64) -> u32 {
        if self.words.is_empty() {
            return 0;
        }
        let counts = (0..ROWS).map(|row| {
            let (word, shift) = self.place(hash, row);
            (self.words[word] >> shift) as u32 & FREQUENCY_MAX
        });
        counts.min().unwrap_or(0)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_never_too_small_and_seldom_too_large() {
        let mut sketch = Sketch::default();
        sketch.fit(4096);
        for key in 0..1000 {
            sketch.add(mix(key), key as u32 % 8);
        }
        let too_large = (0..1000).filter(|key| {
            let found = sketch.frequency(mix(*key));
            assert!(found >= *key as u32 % 8, "{key}");
            found > *key as u32 % 8
        });
        assert!(too_large.count() < 20);
        assert!((5000..6000).filter(|key| sketch.frequency(mix(*key)) > 0).count() < 20);
    }

    #[test]
    fn frequencies_decay() {
        let mut sketch = Sketch::default();
        sketch.fit(64);
        sketch.add(mix(1), 15);
        let before = sketch.frequency(mix(1));
        sketch.fit(200);
        assert_eq!((before, sketch.frequency(mix(1))), (15, 15), "growth forgets nothing");
        for key in 100..20_000 {
            sketch.add(mix(key), 1);
        }
        assert!(sketch.frequency(mix(1)) < 15);
    }
}
