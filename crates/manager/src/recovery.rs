//! Handling of storages that no worker can take over: the memory outlives the worker that damaged
//! it, so without a limit one start after the other would fail on it.
//!
//! Counted are consecutive failures at a step in which a worker reads data of an earlier one (the
//! worker reports its steps, see `control::messages::Step`). A worker that was killed from outside,
//! or failed at anything else, is not held against a storage: a VCL that fails in vcl_init does not
//! cost the cache. A storage with a file is first read anew from that file, and begins empty if
//! that fails too. Compat: none, Varnish keeps nothing when its worker dies.

use crate::memory_files::MemoryFiles;
use control::messages::Step;
use std::io;
use surface::limits::RECOVERY_FAILURES_MAX;

/// Failures so far.
#[derive(Debug, Default)]
pub struct Failures {
    counts: Vec<(Step, u32)>,
    /// The storages whose metadata began anew.
    renewed: Vec<usize>,
}

/// Storage that has to start empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAside {
    /// The memory of the storage with a file at that index.
    Metadata(usize),
    /// The storage at that index.
    Storage(usize),
    /// All storages and the bans: either the cause is unknown, or it is the bans, and without those
    /// it is unknown which objects must no longer be served.
    All,
}

impl Failures {
    /// Resets the failures, since every step succeeded.
    pub fn forget(&mut self) {
        *self = Failures::default();
    }

    /// Counts a failure at that step; returns what has to start empty if there were too many.
    /// `has_file` is true for a storage that has a file.
    pub fn count(&mut self, step: Step, has_file: impl Fn(usize) -> bool) -> Option<SetAside> {
        let set_aside = match step {
            Step::Surroundings | Step::Draining => return None,
            Step::Storage(place) if has_file(place) && !self.renewed.contains(&place) => SetAside::Metadata(place),
            Step::Storage(place) => SetAside::Storage(place),
            Step::Bans | Step::Index => SetAside::All,
        };
        let at = self.counts.iter().position(|(counted, _)| *counted == step).unwrap_or_else(|| {
            self.counts.push((step, 0));
            self.counts.len() - 1
        });
        self.counts[at].1 += 1;
        if self.counts[at].1 < RECOVERY_FAILURES_MAX {
            return None;
        }
        self.counts.remove(at);
        match set_aside {
            SetAside::Metadata(place) => self.renewed.push(place),
            SetAside::Storage(_) | SetAside::All => {}
        }
        Some(set_aside)
    }
}

impl SetAside {
    /// Gives the next worker empty memory for the storages that start empty; the old memory is
    /// freed with its last descriptor.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn carry_out(self, memory: &mut MemoryFiles) -> io::Result<()> {
        match self {
            SetAside::Metadata(place) => memory.renew_metadata(place),
            SetAside::Storage(place) => memory.renew_arena(place),
            SetAside::All => memory.renew_storage(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory(_: usize) -> bool {
        false
    }

    #[test]
    fn a_file_is_read_anew_before_it_begins_empty() {
        let mut failures = Failures::default();
        let mut round = || (0..RECOVERY_FAILURES_MAX).filter_map(|_| failures.count(Step::Storage(1), |_| true)).last();
        assert_eq!(
            [round(), round(), round()],
            [SetAside::Metadata(1), SetAside::Storage(1), SetAside::Storage(1)].map(Some)
        );
        failures.forget();
        let again = (0..RECOVERY_FAILURES_MAX).filter_map(|_| failures.count(Step::Storage(1), |_| true)).last();
        assert_eq!(again, Some(SetAside::Metadata(1)));
    }

    #[test]
    fn a_storage_is_set_aside_at_the_last_failure_in_a_row() {
        let mut failures = Failures::default();
        for _ in 1..RECOVERY_FAILURES_MAX {
            assert_eq!(failures.count(Step::Storage(1), in_memory), None);
        }
        assert_eq!(failures.count(Step::Storage(0), in_memory), None, "each has its own count");
        assert_eq!(failures.count(Step::Storage(1), in_memory), Some(SetAside::Storage(1)));
        assert_eq!(failures.count(Step::Storage(1), in_memory), None, "the next one begins anew");
        failures.forget();
        for _ in 1..RECOVERY_FAILURES_MAX {
            assert_eq!(failures.count(Step::Storage(1), in_memory), None);
        }
    }

    #[test]
    fn without_its_bans_nothing_that_is_stored_can_be_served() {
        for step in [Step::Bans, Step::Index] {
            let mut failures = Failures::default();
            let verdicts: Vec<_> = (0..RECOVERY_FAILURES_MAX).filter_map(|_| failures.count(step, in_memory)).collect();
            assert_eq!(verdicts, [SetAside::All]);
        }
    }

    #[test]
    fn nothing_else_is_held_against_a_storage() {
        let mut failures = Failures::default();
        assert!((0..100).all(|_| failures.count(Step::Surroundings, in_memory).is_none()));
    }
}
