//! The free runs of the file, and the position for the next bodies: forward, from one end of the
//! file to the other.
//!
//! The file is filled in the order of its bytes, so that bodies that arrive together are written
//! together. A hand moves over it: room is taken behind the hand from free runs that are long
//! enough; where there are none, the caller has the next segment reclaimed (`reclaimer.rs`) and
//! tries again. Nothing here touches the file.

use std::collections::{BTreeMap, BTreeSet};

/// A part of a body in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Offset in the file.
    pub(crate) at: u64,
    /// Bytes that belong to the body; the room is a multiple of the granularity.
    pub(crate) bytes: u64,
}

/// Bodies are not split into smaller pieces than this.
pub(crate) const PIECE_BYTES_MIN: u64 = 64 << 10;
/// Number of runs behind the hand that are examined before the largest is taken, wherever it is.
const LOOK_AHEAD: usize = 32;

/// The free runs of a file.
pub(crate) struct Runs {
    granularity: u64,
    by_place: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    hand: u64,
    free_bytes: u64,
    small: u64,
}

impl Runs {
    /// All of `from..to` is free; both are multiples of `granularity`.
    pub(crate) fn new(from: u64, to: u64, granularity: u64) -> Runs {
        let mut runs = Runs {
            granularity,
            by_place: BTreeMap::new(),
            by_length: BTreeSet::new(),
            hand: from,
            free_bytes: 0,
            small: 0,
        };
        if to > from {
            runs.insert(from, to - from);
            runs.free_bytes = to - from;
        }
        runs
    }

    fn insert(&mut self, at: u64, bytes: u64) {
        self.by_place.insert(at, bytes);
        self.by_length.insert((bytes, at));
        self.small += u64::from(bytes < PIECE_BYTES_MIN);
    }

    fn remove(&mut self, at: u64) -> Option<u64> {
        let bytes = self.by_place.remove(&at)?;
        self.by_length.remove(&(bytes, at));
        self.small -= u64::from(bytes < PIECE_BYTES_MIN);
        Some(bytes)
    }

    /// The room that `bytes` of a body take.
    pub(crate) fn room_of(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.granularity)
    }

    /// Bytes that are free.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Number of free runs: shorter than [`PIECE_BYTES_MIN`], and others.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.small, self.by_place.len() as u64 - self.small)
    }

    /// Takes room for up to `bytes`; at least for all of it or [`PIECE_BYTES_MIN`]. `None` = no
    /// such run exists.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<Extent> {
        let wanted = self.room_of(bytes);
        let least = wanted.min(self.room_of(PIECE_BYTES_MIN));
        let ahead = self.by_place.range(self.hand..).chain(self.by_place.range(..self.hand)).take(LOOK_AHEAD);
        let near = ahead.into_iter().find(|(_, length)| **length >= least).map(|(at, length)| (*at, *length));
        let (at, length) = near.or_else(|| {
            let (length, at) = *self.by_length.last()?;
            (length >= least).then_some((at, length))
        })?;
        let taken = wanted.min(length);
        self.remove(at);
        if length > taken {
            self.insert(at + taken, length - taken);
        }
        self.free_bytes -= taken;
        self.hand = at + taken;
        Some(Extent { at, bytes: bytes.min(taken) })
    }

    /// Takes the room of an extent that was in use before; returns `false` if not all of it is
    /// free.
    pub(crate) fn claim(&mut self, extent: Extent) -> bool {
        let room = self.room_of(extent.bytes);
        if room == 0 || !extent.at.is_multiple_of(self.granularity) {
            return false;
        }
        let Some((&at, &length)) = self.by_place.range(..=extent.at).next_back() else { return false };
        let Some(end) = extent.at.checked_add(room).filter(|end| *end <= at + length) else { return false };
        self.remove(at);
        if extent.at > at {
            self.insert(at, extent.at - at);
        }
        if at + length > end {
            self.insert(end, at + length - end);
        }
        self.free_bytes -= room;
        self.hand = end;
        true
    }

    /// Gives the room of an extent back.
    pub(crate) fn give_back(&mut self, extent: Extent) {
        let (mut at, room) = (extent.at, self.room_of(extent.bytes));
        if room == 0 {
            return;
        }
        let mut bytes = room;
        if let Some(behind) = self.remove(at + room) {
            bytes += behind;
        }
        let before = self.by_place.range(..at).next_back().map(|(at, bytes)| (*at, *bytes));
        if let Some((from, length)) = before.filter(|(from, length)| from + length == at) {
            self.remove(from);
            at = from;
            bytes += length;
        }
        self.insert(at, bytes);
        self.free_bytes += room;
    }

    /// Moves the hand to a segment that is about to be reclaimed.
    pub(crate) fn set_hand(&mut self, at: u64) {
        self.hand = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng, rngs::SmallRng};

    #[test]
    fn adjacent_runs_are_allocated_together_and_merged_when_freed() {
        let mut runs = Runs::new(4096, 4096 * 101, 4096);
        let first = runs.take(1).unwrap();
        let second = runs.take(5000).unwrap();
        assert_eq!((first, second), (Extent { at: 4096, bytes: 1 }, Extent { at: 8192, bytes: 5000 }));
        assert_eq!(runs.free_bytes(), 97 * 4096);
        runs.give_back(first);
        // Forward, not back into the gap.
        assert_eq!(runs.take(1).unwrap().at, 4 * 4096);
        runs.give_back(second);
        runs.give_back(Extent { at: 4 * 4096, bytes: 1 });
        assert_eq!((runs.free_bytes(), runs.counts()), (100 * 4096, (0, 1)));
    }

    #[test]
    fn a_body_is_torn_into_pieces_that_are_worth_it_and_no_smaller() {
        let mut runs = Runs::new(0, 4 << 20, 4096);
        let all: Vec<_> = std::iter::from_fn(|| runs.take(4096)).collect();
        assert_eq!((all.len(), runs.free_bytes()), (1024, 0));
        for extent in all.iter().step_by(2) {
            runs.give_back(*extent);
        }
        assert_eq!((runs.take(8192), runs.counts()), (None, (512, 0)), "room enough, but in crumbs");
        for extent in &all[1..33] {
            if extent.at / 4096 % 2 == 1 {
                runs.give_back(*extent);
            }
        }
        assert_eq!(runs.take(1 << 20).unwrap(), Extent { at: 0, bytes: 34 * 4096 - 4096 });
    }

    #[test]
    fn extents_never_overlap_whatever_is_taken_and_given_back() {
        for seed in 0..20 {
            let mut random = SmallRng::seed_from_u64(seed);
            let (from, to) = (8192, 8192 + (1 << 20));
            let mut runs = Runs::new(from, to, 512);
            let mut taken: Vec<Extent> = Vec::new();
            for _ in 0..2000 {
                if random.random_bool(0.55) {
                    if let Some(extent) = runs.take(random.random_range(1..200_000)) {
                        taken.push(extent);
                    }
                } else if !taken.is_empty() {
                    runs.give_back(taken.swap_remove(random.random_range(0..taken.len())));
                }
                let mut sorted = taken.clone();
                sorted.sort_by_key(|extent| extent.at);
                assert!(sorted.windows(2).all(|two| two[0].at + runs.room_of(two[0].bytes) <= two[1].at));
                assert!(sorted.iter().all(|extent| extent.at >= from && extent.at + extent.bytes <= to));
                let used: u64 = sorted.iter().map(|extent| runs.room_of(extent.bytes)).sum();
                assert_eq!(used + runs.free_bytes(), to - from);
            }
            // The next start claims the same extents in another order.
            let mut again = Runs::new(from, to, 512);
            for extent in &taken {
                assert!(again.claim(*extent));
                assert!(!again.claim(*extent), "nothing is claimed twice");
            }
            assert_eq!(again.free_bytes(), runs.free_bytes());
        }
    }
}
