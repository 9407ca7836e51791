//! Transaction ids, which connect the records of a session, a request and a fetch in the log.
//!
//! A loop draws them in blocks, since a counter that all loops wrote for every request would go from core to core. *Invariant:* no
//! id is given twice until the source has gone around or was set.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ids have 30 bits, and are never 0.
const MASK: u32 = 0x3fff_ffff;
/// How many ids a loop draws at a time.
const BLOCK: u32 = 1024;

/// The only source of transaction ids for sessions, requests and fetches.
#[derive(Debug)]
pub struct VxidSource {
    next: AtomicU32,
    block: AtomicU32,
    /// Changes when the source is set, which ends the blocks that were drawn before.
    generation: AtomicU32,
}

impl VxidSource {
    /// A source that begins with 1.
    #[must_use]
    pub fn new() -> Self {
        VxidSource { next: AtomicU32::new(1), block: AtomicU32::new(BLOCK), generation: AtomicU32::new(0) }
    }

    /// The last id that was drawn, for `debug.xid`.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1) & MASK
    }

    /// How many ids are drawn at a time.
    #[must_use]
    pub fn block(&self) -> u32 {
        self.block.load(Ordering::Relaxed)
    }

    /// Makes `last + 1` the next id, and has loops draw `block` ids at a time, at least one (`debug.xid`).
    pub fn set_last(&self, last: u32, block: u32) {
        self.next.store(last.wrapping_add(1) & MASK, Ordering::Relaxed);
        self.block.store(block.clamp(1, MASK), Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl Default for VxidSource {
    fn default() -> Self {
        Self::new()
    }
}

/// The ids that one loop has drawn and not given yet.
#[derive(Debug, Default)]
pub(crate) struct VxidBlock {
    next: Cell<u32>,
    left: Cell<u32>,
    generation: Cell<u32>,
}

impl VxidBlock {
    /// The next id: below 2^30 and never 0.
    pub(crate) fn next(&self, source: &VxidSource) -> u32 {
        loop {
            let generation = source.generation.load(Ordering::Acquire);
            if self.left.get() == 0 || self.generation.get() != generation {
                let block = source.block();
                self.next.set(source.next.fetch_add(block, Ordering::Relaxed));
                self.left.set(block);
                self.generation.set(generation);
            }
            let id = self.next.get() & MASK;
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

    fn take(block: &VxidBlock, source: &VxidSource, count: usize) -> Vec<u32> {
        (0..count).map(|_| block.next(source)).collect()
    }

    #[test]
    fn loops_draw_blocks_that_have_nothing_in_common() {
        let source = VxidSource::new();
        let loops = [VxidBlock::default(), VxidBlock::default()];
        let mut all: Vec<u32> = (0..3)
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
    fn what_an_operator_sets_holds_at_once_for_every_loop() {
        let source = VxidSource::new();
        let loops = [VxidBlock::default(), VxidBlock::default()];
        loops.iter().for_each(|block| drop(take(block, &source, 3)));
        source.set_last(999, 0);
        assert_eq!((source.last(), source.block()), (999, 1));
        let ids: Vec<u32> = (0..2).flat_map(|_| loops.iter().map(|block| block.next(&source))).collect();
        assert_eq!(ids, [1000, 1001, 1002, 1003]);
        source.set_last(MASK - 1, 2);
        assert_eq!(take(&loops[0], &source, 3), [MASK, 1, 2], "0 is left out");
    }
}
