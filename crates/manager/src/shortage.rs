//! Workers that die because memory runs out: detection, and the smaller storage limits for the next
//! one.
//!
//! The arenas outlive the worker: if it died because they are too large, the next one would die for
//! the same reason. So the next worker gets smaller limits, and while it takes over the arenas it
//! gives memory back before it does anything else. The storages stay small until an operator stops
//! the worker, and so has the opportunity to fix the cause.
//!
//! Evidence is a death by SIGKILL that the control group counts as its own
//! (`memory::Kernel::kills`), or several such deaths in a short time, since kills by programs in
//! user space (earlyoom, systemd-oomd) are counted nowhere.

use std::time::Instant;
use surface::limits::{SIGKILLS_MAX, SIGKILLS_SECONDS};

/// Quarters of its present size to which a storage shrinks,
const KEPT_OF_4: u64 = 3;
/// but not below its configured size divided by this.
const FLOOR: u64 = 8;
/// or one part in this many of the room for all storages, if that is less.
const FLOOR_OF_ROOM: u64 = 4;
/// No storage shrinks below this size.
const STORAGE_BYTES_MIN: u64 = 64 << 10;

/// Evidence that a death is due to a lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The kernel has counted it.
    Counted,
    /// It is one of several in a short time.
    Repeated,
}

/// The deaths seen so far.
#[derive(Debug, Default)]
pub struct DeathHistory {
    counted: Option<u64>,
    sigkills: Vec<Instant>,
}

impl DeathHistory {
    /// Records that a worker is about to start; `counted` is the kernel's present count of kills.
    pub fn begin(&mut self, counted: Option<u64>) {
        self.counted = counted;
    }

    /// Records that a worker died of a SIGKILL that was not ours.
    pub fn killed(&mut self, now: Instant, counted: Option<u64>) -> Option<Sign> {
        let before = std::mem::replace(&mut self.counted, counted);
        self.sigkills.retain(|death| now.duration_since(*death).as_secs() < SIGKILLS_SECONDS);
        self.sigkills.push(now);
        if matches!((before, counted), (Some(before), Some(after)) if after > before) {
            Some(Sign::Counted)
        } else if self.sigkills.len() >= SIGKILLS_MAX {
            self.sigkills.clear();
            Some(Sign::Repeated)
        } else {
            None
        }
    }
}

/// Sizes of a storage, in bytes: configured, allowed now, held.
#[derive(Clone, Copy, Debug)]
pub struct Holding {
    /// From the command line.
    pub given: u64,
    /// Its limit so far.
    pub limit: u64,
    /// Memory that the kernel holds for it.
    pub held: u64,
}

/// The next limits if all storages together may have `room` bytes.
#[must_use]
pub fn shrunk(storages: &[Holding], room: u64) -> Vec<u64> {
    let shrink = |one: &Holding| {
        let floor = (one.given / FLOOR).min(room / FLOOR_OF_ROOM);
        (one.held / 4 * KEPT_OF_4).max(floor).min(one.limit).min(room)
    };
    let mut limits: Vec<u64> = storages.iter().map(shrink).collect();
    let all: u128 = limits.iter().map(|limit| u128::from(*limit)).sum();
    if all > u128::from(room) {
        for limit in &mut limits {
            *limit = u64::try_from(u128::from(*limit) * u128::from(room) / all).unwrap_or(*limit);
        }
    }
    // Never more than its previous limit, even if that was small.
    limits.iter().zip(storages).map(|(limit, one)| (*limit).max(STORAGE_BYTES_MIN).min(one.limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_death_that_the_kernel_counts_is_known_at_once() {
        let now = Instant::now();
        let mut deaths = DeathHistory::default();
        deaths.begin(Some(4));
        assert_eq!(deaths.killed(now, Some(5)), Some(Sign::Counted));
        deaths.begin(Some(5));
        assert_eq!(deaths.killed(now, Some(5)), None, "an operator's kill -9");
        deaths.begin(None);
        assert_eq!(DeathHistory::default().killed(now, None), None);
    }

    #[test]
    fn several_kills_in_a_short_time_are_taken_for_it() {
        let now = Instant::now();
        let mut deaths = DeathHistory::default();
        for _ in 1..SIGKILLS_MAX {
            assert_eq!(deaths.killed(now, None), None);
        }
        assert_eq!(deaths.killed(now + Duration::from_secs(SIGKILLS_SECONDS - 1), None), Some(Sign::Repeated));
        let mut seldom = DeathHistory::default();
        let at = |number: u64| now + Duration::from_secs(number * SIGKILLS_SECONDS);
        assert!((0..100).all(|number| seldom.killed(at(number), Some(0)).is_none()));
    }

    #[test]
    fn storages_shrink_until_they_fit() {
        let mut storages = [Holding { given: 150 << 20, limit: 150 << 20, held: 150 << 20 }];
        assert_eq!(shrunk(&storages, u64::MAX), [(150 << 20) / 4 * 3]);
        assert_eq!(shrunk(&storages, 46 << 20), [46 << 20]);
        for _ in 0..50 {
            storages[0].limit = shrunk(&storages, u64::MAX)[0];
            storages[0].held = storages[0].limit;
        }
        assert_eq!(storages[0].limit, (150 << 20) / 8, "what else fills the memory is not its fault");
        // A size that fits according to the estimate may still be too much.
        let mut tight = [Holding { given: 150 << 20, limit: 150 << 20, held: 100 << 20 }];
        let mut limits = Vec::new();
        for _ in 0..20 {
            tight[0].limit = shrunk(&tight, 8 << 20)[0];
            tight[0].held = tight[0].limit;
            limits.push(tight[0].limit >> 20);
        }
        assert_eq!((&limits[..3], limits[19]), (&[8, 6, 4][..], 2));
        let two = [
            Holding { given: 64 << 20, limit: 64 << 20, held: 0 },
            Holding { given: 1 << 40, limit: 1 << 40, held: 60 << 20 },
        ];
        let limits = shrunk(&two, 100 << 20);
        assert!(limits.iter().sum::<u64>() <= 100 << 20 && limits.iter().all(|limit| *limit > 4 << 20), "{limits:?}");
        assert_eq!(shrunk(&two, 0), [64 << 10, 64 << 10]);
        let tiny = [Holding { given: 4096, limit: 4096, held: 4096 }];
        assert_eq!(shrunk(&tiny, 0), [4096]);
    }
}
