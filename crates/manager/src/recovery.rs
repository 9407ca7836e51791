//! What happens to storages that no worker can take over: the memory outlives the worker that damaged it, so without a
//! limit one start after the other would fail on it.
//!
//! Counted are consecutive failures at a step in which a worker reads what an earlier one left (the worker reports its
//! steps, see `worker::control::Step`). A worker that was killed from outside, or failed at anything else, is not held
//! against a storage: a VCL that fails in vcl_init does not cost the cache. Compat: none, Varnish keeps nothing when its
//! worker dies.

use crate::memory_files::MemoryFiles;
use std::io;
use surface::limits::RECOVERY_FAILURES_MAX;
use worker::control::Step;

/// Failures so far.
#[derive(Debug, Default)]
pub struct Failures(Vec<(Step, u32)>);

/// What has to start empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAside {
    /// The storage at that index.
    Storage(usize),
    /// All storages and the bans: either nobody knows which of them is the cause, or it is the bans, and without those
    /// nobody knows what must no longer be served.
    All,
}

impl Failures {
    /// Forgets the failures, since every step succeeded.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Counts a failure at that step; returns what has to start empty when there were too many.
    pub fn count(&mut self, step: Step) -> Option<SetAside> {
        let set_aside = match step {
            Step::Surroundings | Step::Draining => return None,
            Step::Storage(place) => SetAside::Storage(place),
            Step::Bans | Step::Index => SetAside::All,
        };
        let at = self.0.iter().position(|(counted, _)| *counted == step).unwrap_or_else(|| {
            self.0.push((step, 0));
            self.0.len() - 1
        });
        self.0[at].1 += 1;
        if self.0[at].1 < RECOVERY_FAILURES_MAX {
            return None;
        }
        self.0.remove(at);
        Some(set_aside)
    }
}

impl SetAside {
    /// Gives the next worker empty memory in place of what is set aside; the old memory goes with its last descriptor.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn carry_out(self, memory: &mut MemoryFiles) -> io::Result<()> {
        match self {
            SetAside::Storage(place) => memory.renew_arena(place),
            SetAside::All => memory.renew_storage(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_is_set_aside_at_the_last_failure_in_a_row() {
        let mut failures = Failures::default();
        for _ in 1..RECOVERY_FAILURES_MAX {
            assert_eq!(failures.count(Step::Storage(1)), None);
        }
        assert_eq!(failures.count(Step::Storage(0)), None, "each has its own count");
        assert_eq!(failures.count(Step::Storage(1)), Some(SetAside::Storage(1)));
        assert_eq!(failures.count(Step::Storage(1)), None, "the next one begins anew");
        failures.forget();
        for _ in 1..RECOVERY_FAILURES_MAX {
            assert_eq!(failures.count(Step::Storage(1)), None);
        }
    }

    #[test]
    fn without_its_bans_nothing_that_is_stored_can_be_served() {
        for step in [Step::Bans, Step::Index] {
            let mut failures = Failures::default();
            let verdicts: Vec<_> = (0..RECOVERY_FAILURES_MAX).filter_map(|_| failures.count(step)).collect();
            assert_eq!(verdicts, [SetAside::All]);
        }
    }

    #[test]
    fn nothing_else_is_held_against_a_storage() {
        let mut failures = Failures::default();
        assert!((0..100).all(|_| failures.count(Step::Surroundings).is_none()));
    }
}
