//! Per-slot state of a policy, twelve bytes: its position in a queue, a size, and a count of uses.
//!
//! Queues run through the entries by slot numbers, newest to oldest. Sizes are rounded to eleven
//! bits, so that they fit in sixteen with their exponent; the amount added to a queue's sum is the
//! one subtracted from it later.

use std::ops::{Index, IndexMut};

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// Counts of uses are kept modulo this; an object that was used an exact multiple of it between two
/// looks counts as unused.
const NOTED_BITS: u32 = 14;
const MANTISSA_BITS: u32 = 11;

/// The state of one slot; see the module header.
#[derive(Clone, Copy, Debug)]
struct Entry {
    newer: u32,
    older: u32,
    /// Rounded size (16 bits), noted uses (14), queue (2, and [`OUT`] for none).
    word: u32,
}

const _: () = assert!(size_of::<Entry>() == 12);

/// In no queue.
const OUT: u32 = 3;
const EMPTY: Entry = Entry { newer: NONE, older: NONE, word: OUT };

/// A size in sixteen bits, rounded down.
fn rounded(bytes: u64) -> u32 {
    let exponent = (u64::BITS - bytes.leading_zeros()).saturating_sub(MANTISSA_BITS);
    if exponent > 31 { 0xffff } else { exponent << MANTISSA_BITS | (bytes >> exponent) as u32 }
}

/// The size that a value of [`rounded`] represents.
fn unrounded(size: u32) -> u64 {
    u64::from(size & ((1 << MANTISSA_BITS) - 1)) << (size >> MANTISSA_BITS)
}

/// Entries in a page.
const PAGE: usize = 16;

/// The entries of all slots, in pages of their own: one array that grows has to be copied, and
/// leaves holes of all sizes behind.
#[derive(Clone, Debug, Default)]
struct Entries(Vec<Page>);

#[derive(Clone, Debug)]
struct Page(Box<[Entry; PAGE]>);

impl Entries {
    fn get(&self, slot: u32) -> Option<&Entry> {
        Some(&self.0.get(slot as usize / PAGE)?.0[slot as usize % PAGE])
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        Some(&mut self.0.get_mut(slot as usize / PAGE)?.0[slot as usize % PAGE])
    }

    /// Makes room for a slot.
    fn reach(&mut self, slot: u32) {
        while self.0.len() <= slot as usize / PAGE {
            self.0.push(Page(Box::new([EMPTY; PAGE])));
        }
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<usize>() + self.0.len() * size_of::<[Entry; PAGE]>()
    }
}

impl Index<u32> for Entries {
    type Output = Entry;
    fn index(&self, slot: u32) -> &Entry {
        self.get(slot).expect("the slot was reached")
    }
}

impl IndexMut<u32> for Entries {
    fn index_mut(&mut self, slot: u32) -> &mut Entry {
        self.get_mut(slot).expect("the slot was reached")
    }
}

/// The ends and sums of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) newest: u32,
    pub(crate) oldest: u32,
    pub(crate) count: u32,
    pub(crate) bytes: u64,
}

impl Queue {
    const EMPTY: Queue = Queue { newest: NONE, oldest: NONE, count: 0, bytes: 0 };
}

/// Up to three queues through one array of entries.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    entries: Entries,
    queues: [Queue; OUT as usize],
}

impl Default for Queues {
    fn default() -> Self {
        Queues { entries: Entries::default(), queues: [Queue::EMPTY; OUT as usize] }
    }
}

impl Queues {
    pub(crate) fn queue(&self, number: usize) -> &Queue {
        &self.queues[number]
    }

    /// The queue that a slot is in.
    pub(crate) fn queue_of(&self, slot: u32) -> Option<usize> {
        let queue = self.entries.get(slot)?.word & 3;
        (queue != OUT).then_some(queue as usize)
    }

    /// Objects in all queues.
    pub(crate) fn count(&self) -> u32 {
        self.queues.iter().map(|queue| queue.count).sum()
    }

    /// Bytes in all queues.
    pub(crate) fn bytes(&self) -> u64 {
        self.queues.iter().map(|queue| queue.bytes).sum()
    }

    pub(crate) fn size(&self, slot: u32) -> u64 {
        unrounded(self.entries[slot].word >> 16)
    }

    /// The neighbour that came later; `NONE` for the newest.
    pub(crate) fn newer(&self, slot: u32) -> u32 {
        self.entries[slot].newer
    }

    /// Puts an object into a queue, as the newest.
    pub(crate) fn enter(&mut self, queue: usize, slot: u32, bytes: u64, uses: u32) {
        self.entries.reach(slot);
        self.unlink(slot);
        self.entries[slot].word = rounded(bytes) << 16 | OUT;
        self.note(slot, uses);
        self.push(queue, slot);
    }

    fn push(&mut self, queue: usize, slot: u32) {
        let size = self.size(slot);
        let ends = &mut self.queues[queue];
        let entry = &mut self.entries[slot];
        (entry.newer, entry.older) = (NONE, ends.newest);
        entry.word = entry.word & !3 | queue as u32;
        ends.count += 1;
        ends.bytes += size;
        let second = std::mem::replace(&mut ends.newest, slot);
        match self.entries.get_mut(second) {
            Some(second) => second.newer = slot,
            None => ends.oldest = slot,
        }
    }

    /// Takes an object out; returns the queue that it was in. The last one frees the memory too.
    pub(crate) fn leave(&mut self, slot: u32) -> Option<usize> {
        let queue = self.unlink(slot);
        if self.count() == 0 {
            self.entries = Entries::default();
        }
        queue
    }

    fn unlink(&mut self, slot: u32) -> Option<usize> {
        let queue = self.queue_of(slot)?;
        let size = self.size(slot);
        let Entry { newer, older, .. } = self.entries[slot];
        let ends = &mut self.queues[queue];
        match self.entries.get_mut(newer) {
            Some(neighbour) => neighbour.older = older,
            None => ends.newest = older,
        }
        match self.entries.get_mut(older) {
            Some(neighbour) => neighbour.newer = newer,
            None => ends.oldest = newer,
        }
        ends.count -= 1;
        ends.bytes -= size;
        self.entries[slot].word |= OUT;
        Some(queue)
    }

    /// Makes an object the newest of a queue, perhaps a different queue.
    pub(crate) fn renew(&mut self, queue: usize, slot: u32) {
        let Entry { word, .. } = self.entries[slot];
        let uses = word >> 2;
        let bytes = self.size(slot);
        self.enter(queue, slot, bytes, uses);
    }

    /// Changes the size of an object.
    pub(crate) fn resize(&mut self, slot: u32, bytes: u64) {
        let Some(queue) = self.queue_of(slot) else { return };
        let old = self.size(slot);
        let entry = &mut self.entries[slot];
        entry.word = entry.word & 0xffff | rounded(bytes) << 16;
        self.queues[queue].bytes = self.queues[queue].bytes - old + self.size(slot);
    }

    /// Remembers the count of uses.
    pub(crate) fn note(&mut self, slot: u32, uses: u32) {
        let entry = &mut self.entries[slot];
        entry.word = entry.word & 0xffff_0003 | (uses % (1 << NOTED_BITS)) << 2;
    }

    /// Number of uses since [`Queues::note`].
    pub(crate) fn uses_since(&self, slot: u32, uses: u32) -> u32 {
        uses.wrapping_sub(self.entries[slot].word >> 2) % (1 << NOTED_BITS)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_down_by_less_than_a_thousandth() {
        for bytes in (0..60).flat_map(|shift| [0, 1, 7, 1000].map(|more| (1u64 << shift) + more)) {
            let kept = unrounded(rounded(bytes));
            assert!(kept <= bytes && (bytes >= 1 << 42 || bytes - kept <= bytes >> 10), "{bytes} {kept}");
        }
        assert_eq!(unrounded(rounded(2047)), 2047);
    }

    #[test]
    fn a_queue_keeps_its_order_and_sums_when_entries_leave_its_middle() {
        let mut queues = Queues::default();
        for slot in 0..5 {
            queues.enter(0, slot, 100, 0);
        }
        assert_eq!(queues.leave(2), Some(0));
        assert_eq!(queues.leave(2), None);
        queues.renew(0, 0);
        queues.renew(1, 3);
        queues.resize(3, 250);
        let mut seen = Vec::new();
        let mut at = queues.queue(0).oldest;
        while at != NONE {
            seen.push(at);
            at = queues.newer(at);
        }
        assert_eq!(seen, [1, 4, 0]);
        assert_eq!((queues.queue(0).bytes, queues.queue(1).bytes, queues.count()), (300, 250, 4));
        for slot in [0, 1, 3, 4] {
            queues.leave(slot);
        }
        assert_eq!((queues.bytes(), queues.memory_bytes()), (0, 0), "an empty policy holds no memory");
    }

    #[test]
    fn uses_are_counted_across_the_end_of_the_noted_range() {
        let mut queues = Queues::default();
        queues.enter(0, 0, 1, u32::MAX - 1);
        assert_eq!(queues.uses_since(0, u32::MAX - 1), 0);
        assert_eq!(queues.uses_since(0, 3), 5);
    }
}
