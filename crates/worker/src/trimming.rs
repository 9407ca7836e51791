//! Decision to make the allocator return free memory to the system: once much less is held than
//! before.
//!
//! Two things in a worker grow and shrink by large amounts: the memory of requests, and the index
//! of the cache. Their peak since the last trim is compared with the present value. A steady load
//! never trims, and a load that comes and goes does so only at intervals, since allocations have to
//! wait meanwhile. See `docs/decisions/memory-is-given-back.md`.

use engine::context::Engine;
use std::cell::Cell;

/// Trimming is worth it if this many bytes less are held than at the peak, and
const FREED_BYTES_MIN: u64 = 8 << 20;
/// … at least this fraction (one part in N) of the memory that is still held.
const FREED_SHARE_MIN: u64 = 4;
/// At least this many checks (one per second) are between two trims.
const LOOKS_BETWEEN_MIN: u32 = 5;
/// Estimated private memory of an object: its handle, and its place in the index.
const OBJECT_BYTES: u64 = 128;

/// State of the decision: the peak since the last trim.
#[derive(Debug, Default)]
pub struct Trimming {
    peak_bytes: Cell<u64>,
    looks_to_wait: Cell<u32>,
}

impl Trimming {
    /// Compares the memory held now with the peak, and trims if much was freed. Call it once a
    /// second.
    pub fn look(&self, engine: &Engine) {
        let of_index = engine.cache.object_count() as u64 * OBJECT_BYTES;
        let (peak, now) = engine.memory.peak_and_now();
        if self.is_worth_it(peak + of_index, now + of_index) {
            store::process::give_back_free_memory();
        }
    }

    /// True if trimming is worth it; then a new peak is started.
    fn is_worth_it(&self, peak: u64, now: u64) -> bool {
        let peak = peak.max(self.peak_bytes.get());
        let to_wait = self.looks_to_wait.get();
        let is_much = peak - now.min(peak) >= FREED_BYTES_MIN.max(now / FREED_SHARE_MIN);
        let is_worth_it = is_much && to_wait == 0;
        self.peak_bytes.set(if is_worth_it { now } else { peak });
        self.looks_to_wait.set(if is_worth_it { LOOKS_BETWEEN_MIN } else { to_wait.saturating_sub(1) });
        is_worth_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of trims during `looks` checks of the same values.
    fn times(trimming: &Trimming, looks: u32, peak: u64, now: u64) -> usize {
        (0..looks).filter(|_| trimming.is_worth_it(peak << 20, now << 20)).count()
    }

    #[test]
    fn memory_is_given_back_once_after_each_fall() {
        let trimming = Trimming::default();
        assert_eq!(times(&trimming, 100, 50, 50), 0, "a steady load");
        assert_eq!(times(&trimming, 100, 50, 45), 0, "a little less");
        assert_eq!(times(&trimming, 1, 45, 3), 1, "a fall");
        assert_eq!(times(&trimming, 100, 3, 3), 0, "and nothing more");
        assert_eq!(times(&trimming, 1, 40, 0), 1, "a peak between two looks counts");
    }

    #[test]
    fn a_load_that_comes_and_goes_does_not_have_it_given_back_every_time() {
        let trimming = Trimming::default();
        assert_eq!(times(&trimming, 100, 50, 3), 100 / (LOOKS_BETWEEN_MIN as usize + 1) + 1);
    }
}
