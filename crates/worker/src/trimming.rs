//! When the allocator is told to give free memory back: once much of what was held is held no more.
//!
//! Two things of a worker come and go in large amounts: what requests hold, and the index of the cache. Their peak since
//! the last time is compared with now. A steady load never trims. See `docs/decisions/memory-is-given-back.md`.

use engine::context::Engine;
use std::cell::Cell;

/// So much less than at the peak, in bytes, that it is worth it.
const FREED_BYTES_MIN: u64 = 4 << 20;
/// About what an object takes of private memory: its handle, and its place in the index.
const OBJECT_BYTES: u64 = 128;

/// Remembers the peak.
#[derive(Debug, Default)]
pub struct Trimming {
    peak_bytes: Cell<u64>,
}

impl Trimming {
    /// Looks at what is held now, and gives back what was freed if that is much.
    pub fn look(&self, engine: &Engine) {
        let of_index = engine.cache.object_count() as u64 * OBJECT_BYTES;
        let (peak, now) = engine.memory.peak_and_now();
        if self.is_worth_it(peak + of_index, now + of_index) {
            store::process::give_back_free_memory();
        }
    }

    /// Whether it is; the peak begins anew then.
    fn is_worth_it(&self, peak: u64, now: u64) -> bool {
        let peak = peak.max(self.peak_bytes.get());
        let is_worth_it = peak - now.min(peak) >= FREED_BYTES_MIN.max(now / 4);
        self.peak_bytes.set(if is_worth_it { now } else { peak });
        is_worth_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_after_each_fall() {
        let trimming = Trimming::default();
        let mega = |count: u64| count << 20;
        let story = [
            ((1, 1), false),
            ((50, 50), false),
            ((50, 48), false),
            // A peak between two looks counts.
            ((90, 50), true),
            ((50, 50), false),
            ((50, 3), true),
            ((3, 3), false),
            ((3, 0), false),
            ((8, 0), true),
        ];
        for (at, ((peak, now), expected)) in story.into_iter().enumerate() {
            assert_eq!(trimming.is_worth_it(mega(peak), mega(now)), expected, "{at}");
        }
    }
}
