//! Transaction ids, which connect the records of a session, a request and a fetch in the log.
//!
//! A loop draws them in blocks, since a counter that all loops wrote for every request would move
//! from core to core. *Invariant:* no id is assigned twice until the source has wrapped around or
//! was set.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of ids that a loop draws at a time.
const BLOCK: u64 = 1024;
/// As of 7.3: ids have at most 15 digits, as every INT in VCL.
const VXID_COUNT_MAX: u64 = 1_000_000_000_000_000;

/// The only source of transaction ids for sessions, requests and fetches.
#[derive(Debug)]
pub struct VxidSource {
    /// The first number that is not an id.
    count: u64,
    next: AtomicU64,
    block: AtomicU64,
    /// Changes when the source is set, which ends the blocks that were drawn before.
    generation: AtomicU32,
}

impl VxidSource {
    /// Creates a source that begins with 1, of ids with `bits` bits: as many as a log record has
    /// room for (`shm::layout::Layout::vxid_bits`).
    #[must_use]
    pub fn new(bits: u32) -> Self {
        let mask = u64::MAX.checked_shr(64 - bits.clamp(1, 64)).unwrap_or(u64::MAX);
        VxidSource {
            count: mask.saturating_add(1).min(VXID_COUNT_MAX),
            next: AtomicU64::new(1),
            block: AtomicU64::new(BLOCK),
            generation: AtomicU32::new(0),
        }
    }

    /// The last id that was drawn, for `debug.xid`.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1) % self.count
    }

    /// Number of ids that are drawn at a time.
    #[must_use]
    pub fn block(&self) -> u64 {
        self.block.load(Ordering::Relaxed)
    }

    /// Makes `last + 1` the next id, and has loops draw `block` ids at a time, at least one
    /// (`debug.xid`).
    pub fn set_last(&self, last: u64, block: u64) {
        self.next.store(last.wrapping_add(1) % self.count, Ordering::Relaxed);
        self.block.store(block.clamp(1, u64::from(u32::MAX)), Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// The ids that one loop has drawn and not assigned yet.
#[derive(Debug, Default)]
pub(crate) struct VxidBlock {
    next: Cell<u64>,
    left: Cell<u64>,
    generation: Cell<u32>,
}

impl VxidBlock {
    /// The next id, never 0.
    pub(crate) fn next(&self, source: &VxidSource) -> u64 {
        loop {
            let generation = source.generation.load(Ordering::Acquire);
            if self.left.get() == 0 || self.generation.get() != generation {
                let block = source.block();
                self.next.set(source.next.fetch_add(block, Ordering::Relaxed));
                self.left.set(block);
                self.generation.set(generation);
            }
            let next = self.next.get();
            let id = if next < source.count { next } else { next % source.count };
            self.next.set(self.next.get().wrapping_add(1));
            self.left.set(self.left.get() - 1);
            if id != 0 {
                return id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Ids of several loops, and ids that an operator sets.

    use super::*;

    fn take(block: &VxidBlock, source: &VxidSource, count: usize) -> Vec<u64> {
        (0..count).map(|_| block.next(source)).collect()
    }

    #[test]
    fn loops_draw_blocks_that_have_nothing_in_common() {
        let source = VxidSource::new(30);
        let loops = [VxidBlock::default(), VxidBlock::default()];
        let mut all: Vec<u64> = (0..3)
            .flat_map(|_| loops.iter().flat_map(|block| take(block, &source, 1000)).collect::<Vec<_>>())
            .collect();
        assert_eq!(all[..1000], (1..=1000).collect::<Vec<_>>());
        assert_eq!(all[1000], 1 + BLOCK, "the other loop's");
        assert_eq!(all[2000..2025], [&(1001..=BLOCK).collect::<Vec<_>>()[..], &[1 + 2 * BLOCK]].concat());
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6000);
    }

    #[test]
    fn vxid_set_by_an_operator_applies_to_every_loop_at_once() {
        let source = VxidSource::new(30);
        let loops = [VxidBlock::default(), VxidBlock::default()];
        loops.iter().for_each(|block| drop(take(block, &source, 3)));
        source.set_last(999, 0);
        assert_eq!((source.last(), source.block()), (999, 1));
        let ids: Vec<u64> = (0..2).flat_map(|_| loops.iter().map(|block| block.next(&source))).collect();
        assert_eq!(ids, [1000, 1001, 1002, 1003]);
        for (bits, last) in [(30, (1 << 30) - 1), (51, 999_999_999_999_999)] {
            let source = VxidSource::new(bits);
            source.set_last(last - 1, 2);
            assert_eq!(take(&loops[0], &source, 3), [last, 1, 2], "0 is left out");
        }
    }
}
