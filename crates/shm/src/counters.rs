//! Counters in process memory, cheap enough for the path of a hit.
//!
//! The segment that tools read is written elsewhere, off the path: about once a second the
//! [`MainCounters`] of all event loops are summed into a [`crate::vsc::CounterBlock`]. *Invariant:*
//! only one thread writes a `MainCounters`, so it needs no locked instruction; any thread may read
//! it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use surface::counter::{MAIN, Main};

/// Number of counters in section `MAIN`.
pub const MAIN_COUNT: usize = MAIN.counters.len();

/// The `MAIN` section of one event loop.
pub struct MainCounters([AtomicU64; MAIN_COUNT]);

impl Default for MainCounters {
    fn default() -> Self {
        MainCounters::new()
    }
}

impl MainCounters {
    /// All zero.
    #[must_use]
    pub fn new() -> Self {
        MainCounters(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Adds `amount`. Only the owning thread may call this.
    #[inline]
    pub fn add(&self, counter: Main, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Subtracts `amount` from a gauge. Only the sum over all loops counts, so one loop's share may
    /// wrap below zero. Only the owning thread may call this.
    #[inline]
    pub fn sub(&self, counter: Main, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Relaxed).wrapping_sub(amount), Relaxed);
    }

    /// Sets a value. Only the owning thread may call this.
    #[inline]
    pub fn set(&self, counter: Main, value: u64) {
        self.0[counter as usize].store(value, Relaxed);
    }

    /// The present value; any thread may call this.
    #[inline]
    #[must_use]
    pub fn get(&self, counter: Main) -> u64 {
        self.0[counter as usize].load(Relaxed)
    }

    /// Adds every value to `sums`, wrapping; any thread may call this.
    pub fn sum_into(&self, sums: &mut [u64; MAIN_COUNT]) {
        for (sum, cell) in sums.iter_mut().zip(&self.0) {
            *sum = sum.wrapping_add(cell.load(Relaxed));
        }
    }
}

/// A section written by several threads: a backend's or a storage's counters. `N` is the section's
/// number of rows, and an index is the section's enum `as usize`.
pub struct SharedCounters<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for SharedCounters<N> {
    fn default() -> Self {
        SharedCounters::new()
    }
}

impl<const N: usize> SharedCounters<N> {
    /// All zero.
    #[must_use]
    pub fn new() -> Self {
        SharedCounters::zero()
    }

    /// All zero, for a static.
    #[must_use]
    pub const fn zero() -> Self {
        SharedCounters([const { AtomicU64::new(0) }; N])
    }

    /// Adds `amount` to counter `index`; does nothing if that counter does not exist.
    #[inline]
    pub fn add(&self, index: usize, amount: u64) {
        if let Some(cell) = self.0.get(index) {
            cell.fetch_add(amount, Relaxed);
        }
    }

    /// Like [`SharedCounters::add`], but cheaper: for a section that only one thread writes. A
    /// negative `change` is subtracted.
    #[inline]
    pub fn change_alone(&self, index: usize, change: i64) {
        if let Some(cell) = self.0.get(index) {
            cell.store(cell.load(Relaxed).wrapping_add_signed(change), Relaxed);
        }
    }

    /// Subtracts `amount` from gauge `index`.
    #[inline]
    pub fn sub(&self, index: usize, amount: u64) {
        if let Some(cell) = self.0.get(index) {
            cell.fetch_sub(amount, Relaxed);
        }
    }

    /// Sets counter `index`.
    #[inline]
    pub fn set(&self, index: usize, value: u64) {
        if let Some(cell) = self.0.get(index) {
            cell.store(value, Relaxed);
        }
    }

    /// The present value; 0 if that counter does not exist.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |cell| cell.load(Relaxed))
    }

    /// Every value in the order of the section's rows.
    #[must_use]
    pub fn values(&self) -> [u64; N] {
        std::array::from_fn(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_raised_by_one_loop_and_lowered_by_another_sums_to_the_difference() {
        let (first, second) = (MainCounters::new(), MainCounters::new());
        first.add(Main::NObject, 5);
        second.sub(Main::NObject, 2);
        let mut sums = [0; MAIN_COUNT];
        first.sum_into(&mut sums);
        second.sum_into(&mut sums);
        assert_eq!(sums[Main::NObject as usize], 3);
        assert_eq!(sums[Main::CacheHit as usize], 0);
    }

    #[test]
    fn an_index_out_of_the_section_is_ignored() {
        let counters = SharedCounters::<2>::new();
        counters.add(1, 4);
        counters.add(2, 4);
        assert_eq!(counters.values(), [0, 4]);
        assert_eq!(counters.get(9), 0);
    }
}
