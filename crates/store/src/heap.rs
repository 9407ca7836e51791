//! The allocator: two-level segregated fit over blocks addressed in units, merged with free
//! neighbours at once.
//!
//! Blocks fill the arena without gaps, so a walk from the start meets every one. Each change to the
//! sequence of blocks is a single store of a head word: a split writes the remainder's head (inside
//! a block, invisible) before the block shrinks; a merge enlarges the first block over the others.
//! The data that recovery does not trust (free lists, PREVIOUS_FREE, the size at a free block's
//! end) is stored in the free blocks themselves, where it costs no memory, and is rebuilt by
//! [`Heap::rebuild`].
//!
//! The heap also tracks which pages have been touched, since a free page that the kernel still
//! holds is memory too: [`Heap::reclaim`] gives such pages back. It looks only at blocks that may
//! have some (*warm*), so that its time is proportional to the pages given back, not to the number
//! of free blocks. *Invariant:* a free block that is not warm has no resident page but those with
//! its bookkeeping. *Lock*: the caller holds one mutex around the `Heap`; head words of live blocks
//! are changed by their owners at the same time, so they are atomics.

use crate::layout::{Head, KIND_EXTENT, KIND_FREE, KIND_ON_DISK, KIND_RECORD, PREVIOUS_FREE, high, low, pair};
use crate::memory::{Memory, PAGE_BYTES};
use std::collections::BTreeSet;

const FIRST_LEVELS: usize = 30;
const SECOND_LEVELS: usize = 16;
/// Largest cost of a warm block: nodes of the tree are at least five elevenths full, and every
/// sixth is an inner one.
const WARM_BYTES: u64 = 32;
/// A smaller remainder stays with its block.
const BLOCK_BYTES_MIN: u64 = 32;
/// Number of blocks of a class that are examined when no larger class has one.
const CLASS_SCAN_MAX: usize = 64;
/// Number of blocks that are examined before a larger one is taken. A class spans a sixteenth, so
/// that about half of its blocks fit.
const FIT_SCAN_MAX: usize = 4;

/// A block: its start and its length, in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) at: u32,
    pub(crate) units: u32,
}

/// The layout of blocks in a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    /// log2 of the unit in bytes.
    pub(crate) shift: u32,
    /// First block, in units. Unit 0 is never a block.
    pub(crate) first: u32,
    /// One past the last block, in units.
    pub(crate) end: u32,
}

impl Geometry {
    /// The layout of an arena of `bytes`; `None` when it is too small to hold a block, or the shift
    /// does not fit.
    pub(crate) fn new(bytes: u64, shift: u32) -> Option<Geometry> {
        if !(3..=12).contains(&shift) {
            return None;
        }
        let end = u32::try_from(bytes >> shift).ok()?;
        let first = (crate::layout::FIRST_BLOCK.max(1 << shift) >> shift) as u32;
        let geometry = Geometry { shift, first, end };
        (end > first && end - first >= geometry.units_min()).then_some(geometry)
    }

    /// The smallest unit with which an arena of `bytes` can be addressed.
    pub(crate) fn shift_for(bytes: u64) -> u32 {
        let mut shift = 3;
        while bytes >> shift > u64::from(u32::MAX) {
            shift += 1;
        }
        shift
    }

    pub(crate) fn byte(self, unit: u32) -> u64 {
        u64::from(unit) << self.shift
    }

    /// Units that hold `bytes`; saturates.
    pub(crate) fn units(self, bytes: u64) -> u32 {
        u32::try_from(bytes.saturating_add((1 << self.shift) - 1) >> self.shift).unwrap_or(u32::MAX)
    }

    fn units_min(self) -> u32 {
        self.units(BLOCK_BYTES_MIN)
    }

    /// Calls `visit` for each block in order.
    ///
    /// # Errors
    /// The unit where an invalid block was found; nothing after it was visited.
    pub(crate) fn walk(self, memory: &Memory, mut visit: impl FnMut(u32, Head)) -> Result<(), u32> {
        let mut at = self.first;
        while at < self.end {
            let head = Head(memory.load(self.byte(at)));
            let known = matches!(head.kind(), KIND_FREE | KIND_RECORD | KIND_ON_DISK | KIND_EXTENT);
            let room = self.end - at;
            // Neither the block nor the rest of the arena may be too short for a free block's
            // bookkeeping, which would overwrite the neighbour.
            let fits = |units| units == room || units <= room && room - units >= self.units_min();
            if !known || head.units() < self.units_min() || !fits(head.units()) {
                return Err(at);
            }
            visit(at, head);
            at += head.units();
        }
        Ok(())
    }
}

/// Free blocks and resident pages. See the module header.
pub(crate) struct Heap {
    pub(crate) geometry: Geometry,
    lists: [[u32; SECOND_LEVELS]; FIRST_LEVELS],
    first_bits: u32,
    second_bits: [u16; FIRST_LEVELS],
    used_units: u64,
    resident: Vec<u64>,
    resident_pages: u64,
    /// Free blocks that may have pages to give back: class and start. The largest come last.
    warm: BTreeSet<(u16, u32)>,
    /// The block at which a walk that releases the lock continues: always a block, however blocks
    /// are merged. `None` = no walk is under way.
    pub(crate) walker: Option<u32>,
}

fn class_of(units: u32) -> (usize, usize) {
    if units < SECOND_LEVELS as u32 {
        return (0, units as usize);
    }
    let log = 31 - units.leading_zeros();
    ((log - 3) as usize, ((units >> (log - 4)) & 15) as usize)
}

/// Sort key of a warm block in [`Heap::warm`].
fn warmth(at: u32, units: u32) -> (u16, u32) {
    let (first, second) = class_of(units);
    ((first * SECOND_LEVELS + second) as u16, at)
}

/// The first class in which every block is large enough.
fn class_for(units: u32) -> (usize, usize) {
    if units < SECOND_LEVELS as u32 {
        return class_of(units);
    }
    let log = 31 - units.leading_zeros();
    class_of(units.saturating_add((1 << (log - 4)) - 1))
}

impl Heap {
    fn empty(geometry: Geometry) -> Heap {
        let pages = geometry.byte(geometry.end).div_ceil(PAGE_BYTES);
        Heap {
            geometry,
            lists: [[0; SECOND_LEVELS]; FIRST_LEVELS],
            first_bits: 0,
            second_bits: [0; FIRST_LEVELS],
            used_units: 0,
            resident: vec![0; pages.div_ceil(64) as usize],
            resident_pages: 0,
            warm: BTreeSet::new(),
            walker: None,
        }
    }

    /// Makes the whole arena one free block.
    pub(crate) fn format(memory: &Memory, geometry: Geometry) -> Heap {
        let mut heap = Heap::empty(geometry);
        heap.touch(0, crate::layout::FIRST_BLOCK);
        heap.make_free(memory, geometry.first, geometry.end - geometry.first);
        heap
    }

    /// Builds the heap of a used arena: the given blocks stay, whose PREVIOUS_FREE is not set, and
    /// the gaps between them become free. They must be in address order. After a kill in between, a
    /// repeated call gives the same result.
    pub(crate) fn rebuild(memory: &Memory, geometry: Geometry, kept: impl Iterator<Item = Block>) -> Heap {
        let mut heap = Heap::empty(geometry);
        heap.touch(0, crate::layout::FIRST_BLOCK);
        let mut free_from = geometry.first;
        let mut free_runs = Vec::new();
        for Block { at, units } in kept {
            if free_from < at {
                free_runs.push((free_from, at - free_from));
            }
            free_from = at + units;
            heap.touch(geometry.byte(at), geometry.byte(units));
            heap.used_units += u64::from(units);
        }
        if free_from < geometry.end {
            free_runs.push((free_from, geometry.end - free_from));
        }
        for (at, units) in free_runs {
            // Nothing is known about a free block; assume that the kernel holds its pages, then
            // give back the large ones.
            heap.touch(geometry.byte(at), geometry.byte(units));
            heap.make_free(memory, at, units);
            if geometry.byte(units) >= 16 * PAGE_BYTES {
                heap.punch_block(memory, at, units);
            }
        }
        heap
    }

    /// Bytes in blocks that are not free.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_units << self.geometry.shift
    }

    /// Private memory of the set of warm blocks. Each has at least a page of its own, so this is at
    /// most a half percent of the arena.
    pub(crate) fn warm_bytes(&self) -> u64 {
        self.warm.len() as u64 * WARM_BYTES
    }

    /// Bytes of memory that the kernel presumably holds.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_pages * PAGE_BYTES
    }

    /// Private memory of the heap itself.
    pub(crate) fn private_bytes(&self) -> u64 {
        Heap::private_bytes_of(self.geometry)
    }

    /// The same for a heap that has not been built yet.
    pub(crate) fn private_bytes_of(geometry: Geometry) -> u64 {
        let pages = geometry.byte(geometry.end).div_ceil(PAGE_BYTES);
        pages.div_ceil(64) * 8 + size_of::<Heap>() as u64
    }

    /// Gives free pages back until at most `resident_bytes` are resident, or none is free.
    pub(crate) fn give_back(&mut self, memory: &Memory, resident_bytes: u64) {
        let over = self.resident_bytes().saturating_sub(resident_bytes);
        if over > 0 {
            self.reclaim(memory, over, Block { at: 0, units: 0 });
        }
    }

    fn page_range(from_byte: u64, bytes: u64) -> std::ops::Range<u64> {
        from_byte / PAGE_BYTES..(from_byte + bytes).div_ceil(PAGE_BYTES)
    }

    /// Bytes that would become resident if this range were written.
    fn untouched_bytes(&self, from_byte: u64, bytes: u64) -> u64 {
        let pages = Self::page_range(from_byte, bytes);
        pages.filter(|page| self.resident[(page / 64) as usize] >> (page % 64) & 1 == 0).count() as u64 * PAGE_BYTES
    }

    fn touch(&mut self, from_byte: u64, bytes: u64) {
        for page in Self::page_range(from_byte, bytes) {
            let (index, bit) = ((page / 64) as usize, 1 << (page % 64));
            if self.resident[index] & bit == 0 {
                self.resident[index] |= bit;
                self.resident_pages += 1;
            }
        }
    }

    /// The pages of a free block that hold none of its bookkeeping.
    fn inner_pages(&self, at: u32, units: u32) -> std::ops::Range<u64> {
        let first = (self.geometry.byte(at) + 16).div_ceil(PAGE_BYTES);
        let last = (self.geometry.byte(at + units) - 8) / PAGE_BYTES;
        first..last.max(first)
    }

    /// Gives the resident inner pages of a free block back.
    fn punch_block(&mut self, memory: &Memory, at: u32, units: u32) {
        self.punch_pages(memory, self.inner_pages(at, units));
        self.warm.remove(&warmth(at, units));
    }

    fn punch_pages(&mut self, memory: &Memory, pages: std::ops::Range<u64>) -> u64 {
        let (mut given, mut page) = (0, pages.start);
        while let Some(start) = self.next_page(page..pages.end, true) {
            page = self.next_page(start..pages.end, false).unwrap_or(pages.end);
            if memory.punch(start * PAGE_BYTES, (page - start) * PAGE_BYTES) {
                for gone in start..page {
                    self.resident[(gone / 64) as usize] &= !(1 << (gone % 64));
                }
                self.resident_pages -= page - start;
                given += (page - start) * PAGE_BYTES;
            }
        }
        given
    }

    /// The first of these pages that is resident, or is not. Reads a word of the map at a time:
    /// most pages of a large free block were never resident.
    fn next_page(&self, pages: std::ops::Range<u64>, is_resident: bool) -> Option<u64> {
        let mut page = pages.start;
        while page < pages.end {
            let word = self.resident[(page / 64) as usize];
            let left = (if is_resident { word } else { !word }) >> (page % 64);
            if left != 0 {
                return Some(page + u64::from(left.trailing_zeros())).filter(|page| *page < pages.end);
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    /// Gives free pages back until at least `bytes` have been given; starts with the largest free
    /// blocks. Returns the number of bytes. Keeps the pages of `spared`, which is about to be
    /// taken.
    pub(crate) fn reclaim(&mut self, memory: &Memory, bytes: u64, spared: Block) -> u64 {
        let (mut given, mut stays_warm) = (0, None);
        while given < bytes {
            let Some((class, at)) = self.warm.pop_last() else { break };
            let units = Head(memory.load(self.geometry.byte(at))).units();
            let mut pages = self.inner_pages(at, units);
            if at == spared.at {
                let taken = self.geometry.byte(at + spared.units).div_ceil(PAGE_BYTES);
                pages.start = taken.clamp(pages.start, pages.end);
                stays_warm = Some((class, at));
            }
            given += self.punch_pages(memory, pages);
        }
        self.warm.extend(stays_warm);
        given
    }

    fn insert(&mut self, memory: &Memory, at: u32, units: u32) {
        let (first, second) = class_of(units);
        let next = self.lists[first][second];
        memory.store(self.geometry.byte(at) + 8, pair(next, 0));
        if next != 0 {
            memory.update(self.geometry.byte(next) + 8, |links| pair(low(links), at));
        }
        self.lists[first][second] = at;
        self.first_bits |= 1 << first;
        self.second_bits[first] |= 1 << second;
    }

    /// Takes a free block out of its list; returns true if it was warm.
    fn unlink(&mut self, memory: &Memory, at: u32, units: u32) -> bool {
        let was_warm = self.warm.remove(&warmth(at, units));
        let links = memory.load(self.geometry.byte(at) + 8);
        let (next, previous) = (low(links), high(links));
        if next != 0 {
            memory.update(self.geometry.byte(next) + 8, |links| pair(low(links), previous));
        }
        if previous != 0 {
            memory.update(self.geometry.byte(previous) + 8, |links| pair(next, high(links)));
            return was_warm;
        }
        let (first, second) = class_of(units);
        self.lists[first][second] = next;
        if next == 0 {
            self.second_bits[first] &= !(1 << second);
            if self.second_bits[first] == 0 {
                self.first_bits &= !(1 << first);
            }
        }
        was_warm
    }

    /// The single store that makes a range free, and the bookkeeping after it. The range starts and
    /// ends at block boundaries; its free blocks are already unlinked.
    fn make_free(&mut self, memory: &Memory, at: u32, units: u32) {
        memory.store(self.geometry.byte(at), Head::new(units, KIND_FREE).0);
        self.enlist(memory, at, units, true);
    }

    /// The bookkeeping for a block whose head is already marked free. `is_warm`: pages of it may be
    /// resident.
    fn enlist(&mut self, memory: &Memory, at: u32, units: u32, is_warm: bool) {
        let end = at + units;
        if self.walker.is_some_and(|walker| at < walker && walker < end) {
            self.walker = Some(end);
        }
        memory.store(self.geometry.byte(end) - 8, u64::from(units));
        self.touch(self.geometry.byte(at), 16);
        self.touch(self.geometry.byte(end) - 8, 8);
        if end < self.geometry.end {
            memory.update(self.geometry.byte(end), |head| head | PREVIOUS_FREE);
        }
        self.insert(memory, at, units);
        if is_warm && !self.inner_pages(at, units).is_empty() {
            self.warm.insert(warmth(at, units));
        }
    }

    /// A free block of at least `units`; it stays in its list.
    ///
    /// Blocks of its own class come first: that is where the room of evicted objects of the same
    /// size is, whose pages are resident already. Larger blocks would have to be made resident, and
    /// others given back for it.
    fn find(&self, memory: &Memory, units: u32) -> Option<Block> {
        let (first, second) = class_for(units);
        if (first, second) != class_of(units)
            && let Some(block) = self.scan_class(memory, units, FIT_SCAN_MAX)
        {
            return Some(block);
        }
        if first >= FIRST_LEVELS {
            return self.scan_class(memory, units, CLASS_SCAN_MAX);
        }
        let here = self.second_bits[first] & (u16::MAX << second);
        let (first, bits) = if here != 0 {
            (first, here)
        } else {
            let higher = self.first_bits & u32::MAX.checked_shl(first as u32 + 1).unwrap_or(0);
            if higher == 0 {
                return self.scan_class(memory, units, CLASS_SCAN_MAX);
            }
            let first = higher.trailing_zeros() as usize;
            (first, self.second_bits[first])
        };
        let at = self.lists[first][bits.trailing_zeros() as usize];
        Some(Block { at, units: Head(memory.load(self.geometry.byte(at))).units() })
    }

    /// Searches the first blocks of the class of `units` itself: they may be large enough.
    fn scan_class(&self, memory: &Memory, units: u32, blocks_max: usize) -> Option<Block> {
        let (first, second) = class_of(units);
        let mut at = self.lists[first][second];
        for _ in 0..blocks_max {
            if at == 0 {
                return None;
            }
            let found = Head(memory.load(self.geometry.byte(at))).units();
            if found >= units {
                return Some(Block { at, units: found });
            }
            at = low(memory.load(self.geometry.byte(at) + 8));
        }
        None
    }

    /// A free block of the largest class.
    fn largest(&self, memory: &Memory) -> Option<Block> {
        if self.first_bits == 0 {
            return None;
        }
        let first = 31 - self.first_bits.leading_zeros() as usize;
        let second = 15 - self.second_bits[first].leading_zeros() as usize;
        let at = self.lists[first][second];
        Some(Block { at, units: Head(memory.load(self.geometry.byte(at))).units() })
    }

    /// Finds room for `units_wanted`, or else the largest piece of at least `units_min`; also
    /// returns the number of bytes that would become resident. Nothing changes until
    /// [`Heap::take`].
    pub(crate) fn offer(&self, memory: &Memory, units_min: u32, units_wanted: u32) -> Option<(Block, u64)> {
        let least = self.geometry.units_min();
        let (min, wanted) = (units_min.max(least), units_wanted.max(units_min).max(least));
        let found = match self.find(memory, wanted) {
            Some(block) => Block { units: wanted, ..block },
            None => {
                let block =
                    self.largest(memory).filter(|block| block.units >= min).or_else(|| self.find(memory, min))?;
                Block { units: block.units.min(wanted), ..block }
            }
        };
        Some((found, self.untouched_bytes(self.geometry.byte(found.at), self.geometry.byte(found.units))))
    }

    /// Takes the first `block.units` of the free block that [`Heap::offer`] found. `head` supplies
    /// kind and flags. The returned block may be a little longer.
    pub(crate) fn take(&mut self, memory: &Memory, block: Block, head: Head) -> Block {
        let Block { at, mut units } = block;
        let whole = Head(memory.load(self.geometry.byte(at))).units();
        let was_warm = self.unlink(memory, at, whole);
        let rest = whole - units;
        if rest >= self.geometry.units_min() {
            memory.store(self.geometry.byte(at + units), Head::new(rest, KIND_FREE).0);
            memory.store(self.geometry.byte(at), head.with_units(units).0);
            self.enlist(memory, at + units, rest, was_warm);
        } else {
            units = whole;
            memory.store(self.geometry.byte(at), head.with_units(units).0);
            if at + units < self.geometry.end {
                memory.update(self.geometry.byte(at + units), |head| head & !PREVIOUS_FREE);
            }
        }
        self.touch(self.geometry.byte(at), self.geometry.byte(units));
        self.used_units += u64::from(units);
        Block { at, units }
    }

    /// If the block at `end` is free, takes it out of its list and returns its length.
    fn absorb_next(&mut self, memory: &Memory, end: u32) -> u32 {
        if end >= self.geometry.end {
            return 0;
        }
        let next = Head(memory.load(self.geometry.byte(end)));
        if next.kind() != KIND_FREE {
            return 0;
        }
        self.unlink(memory, end, next.units());
        next.units()
    }

    /// Frees a block; returns its length in units.
    pub(crate) fn free(&mut self, memory: &Memory, at: u32) -> u32 {
        let head = Head(memory.load(self.geometry.byte(at)));
        let own = head.units();
        let (mut start, mut units) = (at, own + self.absorb_next(memory, at + own));
        if head.has(PREVIOUS_FREE) {
            let previous = memory.load(self.geometry.byte(at) - 8) as u32;
            start = at - previous;
            self.unlink(memory, start, previous);
            units += previous;
        }
        self.used_units -= u64::from(own);
        self.make_free(memory, start, units);
        // Keep a little slack resident for the next allocation; beyond that, free memory is given
        // back at once.
        let slack = (self.used_bytes() / 8).max(4 << 20);
        if self.resident_bytes() > self.used_bytes() + slack && self.geometry.byte(units) >= 16 * PAGE_BYTES {
            self.punch_block(memory, start, units);
        }
        own
    }

    /// Shortens a block to `units` if the rest is large enough for a block; returns the number of
    /// units freed.
    pub(crate) fn trim(&mut self, memory: &Memory, at: u32, units: u32) -> u32 {
        let own = Head(memory.load(self.geometry.byte(at))).units();
        let units = units.max(self.geometry.units_min());
        if own < units || own - units < self.geometry.units_min() {
            return 0;
        }
        let rest = own - units + self.absorb_next(memory, at + own);
        memory.store(self.geometry.byte(at + units), Head::new(rest, KIND_FREE).0);
        memory.update(self.geometry.byte(at), |head| Head(head).with_units(units).0);
        self.used_units -= u64::from(own - units);
        self.enlist(memory, at + units, rest, true);
        own - units
    }

    /// Checks every invariant.
    pub(crate) fn check(&self, memory: &Memory) {
        use std::collections::HashSet;
        let geometry = self.geometry;
        let (mut used, mut free, mut previous_free) = (0u64, HashSet::new(), false);
        let walked = geometry.walk(memory, |at, head| {
            let is_free = head.kind() == KIND_FREE;
            assert!(!(is_free && previous_free), "two free blocks side by side at {at}");
            assert_eq!(head.has(PREVIOUS_FREE), previous_free, "PREVIOUS_FREE of {at}");
            if is_free {
                assert_eq!(memory.load(geometry.byte(at + head.units()) - 8), u64::from(head.units()));
                free.insert(at);
                let has_pages = self.next_page(self.inner_pages(at, head.units()), true).is_some();
                assert!(
                    !has_pages || self.warm.contains(&warmth(at, head.units())),
                    "{at} is warm, but not known as such"
                );
            } else {
                used += u64::from(head.units());
            }
            previous_free = is_free;
        });
        assert_eq!(walked, Ok(()));
        assert_eq!(used, self.used_units);
        let mut listed = HashSet::new();
        for (first, row) in self.lists.iter().enumerate() {
            for (second, &head) in row.iter().enumerate() {
                assert_eq!(head != 0, self.second_bits[first] >> second & 1 == 1);
                let (mut at, mut previous) = (head, 0);
                while at != 0 {
                    assert_eq!(class_of(Head(memory.load(geometry.byte(at))).units()), (first, second));
                    assert_eq!(high(memory.load(geometry.byte(at) + 8)), previous);
                    assert!(listed.insert(at), "{at} listed twice");
                    previous = at;
                    at = low(memory.load(geometry.byte(at) + 8));
                }
            }
            assert_eq!(self.second_bits[first] != 0, self.first_bits >> first & 1 == 1);
        }
        assert_eq!(listed, free);
        assert!(self.warm.iter().all(|(_, at)| free.contains(at)), "what is warm is free");
        assert_eq!(self.resident.iter().map(|word| u64::from(word.count_ones())).sum::<u64>(), self.resident_pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_below_the_minimum_are_neither_accepted_nor_left_over() {
        let memory = Memory::on_heap(4096).unwrap();
        let geometry = Geometry::new(4096, 3).unwrap();
        Heap::format(&memory, geometry);
        let whole = geometry.end - geometry.first;
        for units in [1, geometry.units_min() - 1, whole - 1, whole - geometry.units_min() + 1, whole + 1] {
            memory.store(geometry.byte(geometry.first), Head::new(units, KIND_RECORD).0);
            assert_eq!(geometry.walk(&memory, |_, _| {}), Err(geometry.first), "{units}");
            Heap::rebuild(&memory, geometry, std::iter::empty()).check(&memory);
        }
    }
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    fn heap(bytes: u64, shift: u32) -> (Memory, Heap) {
        let memory = Memory::on_heap(bytes).unwrap();
        let heap = Heap::format(&memory, Geometry::new(bytes, shift).unwrap());
        (memory, heap)
    }

    #[test]
    fn every_size_finds_its_class_and_the_class_to_search_is_never_too_small() {
        for units in (1..if cfg!(miri) { 500 } else { 100_000 }).chain([1 << 20, (1 << 31) + 1, u32::MAX - 1]) {
            let (own, search) = (class_of(units), class_for(units));
            assert!(own <= search, "{units}");
            assert!(own.0 < FIRST_LEVELS);
        }
    }

    #[test]
    fn reused_blocks_of_similar_size_touch_no_new_page() {
        const SIZES: [u32; 4] = [20_000, 21_000, 45_000, 46_000];
        let (memory, mut heap) = heap(8 << 20, 3);
        let mut random = SmallRng::seed_from_u64(1);
        let place = |heap: &mut Heap, bytes: u32| {
            let units = heap.geometry.units(u64::from(bytes));
            let (block, untouched) = heap.offer(&memory, units, units).unwrap();
            (heap.take(&memory, block, Head::new(units, KIND_RECORD)), untouched)
        };
        let mut live: Vec<(u32, Block)> = Vec::new();
        for number in 0..120 {
            let bytes = SIZES[number % SIZES.len()];
            live.push((bytes, place(&mut heap, bytes).0));
        }
        let mut new = 0;
        for _ in 0..if cfg!(miri) { 50 } else { 2_000 } {
            let (bytes, block) = live.swap_remove(random.random_range(0..live.len()));
            heap.free(&memory, block.at);
            let (block, untouched) = place(&mut heap, bytes);
            new += untouched;
            live.push((bytes, block));
        }
        heap.check(&memory);
        assert_eq!(new, 0, "bytes of pages that were not there");
    }

    #[test]
    fn blocks_never_overlap_and_all_bytes_are_accounted() {
        let steps = if cfg!(miri) { 200 } else { 20_000 };
        for (seed, shift) in [(1, 3), (2, 4), (3, 6)] {
            let (memory, mut heap) = heap(256 << 10, shift);
            let mut random = SmallRng::seed_from_u64(seed);
            let mut live: Vec<Block> = Vec::new();
            for step in 0..steps {
                if random.random_bool(0.55) || live.is_empty() {
                    let min = random.random_range(1..200);
                    let most = if random.random_bool(0.1) { 20_000 } else { 100 };
                    let wanted = min + random.random_range(0..most);
                    if let Some((block, _)) = heap.offer(&memory, min, wanted) {
                        assert!(block.units >= min);
                        let block = heap.take(&memory, block, Head::new(0, KIND_EXTENT));
                        live.push(block);
                    } else {
                        live.sort_by_key(|block| block.at);
                        for _ in 0..live.len() / 2 {
                            let block = live.swap_remove(random.random_range(0..live.len()));
                            heap.free(&memory, block.at);
                        }
                    }
                } else {
                    let index = random.random_range(0..live.len());
                    if random.random_bool(0.3) {
                        let block = &mut live[index];
                        let units = random.random_range(1..=block.units);
                        block.units -= heap.trim(&memory, block.at, units);
                        assert!(block.units >= units);
                    } else {
                        let block = live.swap_remove(index);
                        assert_eq!(heap.free(&memory, block.at), block.units);
                    }
                }
                if step % 50 == 0 {
                    heap.check(&memory);
                    let mut sorted = live.clone();
                    sorted.sort_by_key(|block| block.at);
                    assert!(sorted.windows(2).all(|pair| pair[0].at + pair[0].units <= pair[1].at));
                    let held: u64 = live.iter().map(|block| heap.geometry.byte(block.units)).sum();
                    assert_eq!(held, heap.used_bytes());
                }
            }
            for block in live {
                heap.free(&memory, block.at);
            }
            heap.check(&memory);
            assert_eq!(heap.used_bytes(), 0);
            assert_eq!(heap.largest(&memory).unwrap().units, heap.geometry.end - heap.geometry.first);
        }
    }

    #[test]
    fn blocks_with_released_pages_are_not_examined_again() {
        const BYTES: u64 = 45_000;
        let (memory, mut heap) = heap(8 << 20, 3);
        let units = heap.geometry.units(BYTES);
        let blocks: Vec<Block> = (0..100)
            .map(|_| {
                let (block, _) = heap.offer(&memory, units, units).unwrap();
                heap.take(&memory, block, Head::new(0, KIND_EXTENT))
            })
            .collect();
        // Every second one is free, so none is merged with another.
        blocks.iter().step_by(2).for_each(|block| _ = heap.free(&memory, block.at));
        let nothing = Block { at: 0, units: 0 };
        heap.reclaim(&memory, u64::MAX, nothing);
        assert!(heap.warm.is_empty());
        heap.free(&memory, blocks[1].at);
        assert_eq!(heap.warm.len(), 1, "only what has become free since");
        assert!(heap.reclaim(&memory, 1, nothing) >= BYTES - 2 * PAGE_BYTES);
        assert!(heap.warm.is_empty());
        heap.check(&memory);
        // Of one that is about to be taken, the pages stay and are known.
        heap.free(&memory, blocks[51].at);
        let (block, _) = heap.offer(&memory, units, units).unwrap();
        heap.reclaim(&memory, u64::MAX, block);
        heap.check(&memory);
    }

    #[test]
    fn set_of_warm_blocks_stays_within_its_bound() {
        let (memory, mut heap) = heap(8 << 20, 3);
        // As many warm blocks as an arena can have: each just contains a page, and one of the
        // smallest blocks is behind it.
        let (large, small) = (heap.geometry.units(2 * PAGE_BYTES - 32), heap.geometry.units(32));
        let mut take = |units| {
            let (block, _) = heap.offer(&memory, units, units)?;
            Some(heap.take(&memory, block, Head::new(0, KIND_EXTENT)).at)
        };
        let pairs: Vec<(u32, u32)> = std::iter::from_fn(|| take(large).zip(take(small))).collect();
        pairs.iter().for_each(|(large, _)| _ = heap.free(&memory, *large));
        heap.check(&memory);
        assert!(heap.warm.len() * 2 * PAGE_BYTES as usize > 7 << 20, "{}", heap.warm.len());
        assert_eq!(heap.warm_bytes(), heap.warm.len() as u64 * WARM_BYTES);
        assert!(heap.warm_bytes() <= memory.len() / 200, "{}", heap.warm_bytes());
        pairs.iter().for_each(|(_, small)| _ = heap.free(&memory, *small));
        assert!(heap.warm_bytes() <= 2 * WARM_BYTES, "they have been merged");
    }

    #[test]
    fn a_free_block_is_found_although_its_class_is_not_searched_first() {
        let (memory, mut heap) = heap(64 << 10, 3);
        let whole = heap.geometry.end - heap.geometry.first;
        let (block, _) = heap.offer(&memory, whole, whole).expect("the whole arena is one free block");
        assert_eq!(block.units, whole);
        heap.take(&memory, block, Head::new(0, KIND_EXTENT));
        assert!(heap.offer(&memory, 1, 1).is_none());
    }

    #[test]
    fn pages_given_back_no_longer_count_as_resident() {
        let (memory, mut heap) = heap(1 << 20, 3);
        let (block, untouched) = heap.offer(&memory, 100_000, 100_000).unwrap();
        assert!(untouched >= 100_000 * 8 - 2 * PAGE_BYTES);
        let block = heap.take(&memory, block, Head::new(0, KIND_EXTENT));
        let full = heap.resident_bytes();
        heap.free(&memory, block.at);
        assert!(heap.resident_bytes() >= full, "small slack stays");
        let nothing = Block { at: 0, units: 0 };
        let given = heap.reclaim(&memory, u64::MAX, nothing);
        assert!(given >= 100_000 * 8 - 2 * PAGE_BYTES);
        assert!(heap.resident_bytes() <= 3 * PAGE_BYTES);
        assert_eq!(heap.reclaim(&memory, u64::MAX, nothing), 0);
        heap.check(&memory);
    }
}
