//! What becomes of storages that no worker can take over: the memory outlives the worker that damaged it, so without a bound
//! one start after the other would fail on it.
//!
//! Counted are failures in a row at a step at which a worker reads what an earlier one left (the worker says which, see
//! `worker::control::Step`). A worker that was killed from outside, or that failed at anything else, is not held against a
//! storage: a VCL that fails in vcl_init costs no cache. Compat: none, Varnish keeps nothing over the death of its worker.

use crate::memory_files::MemoryFiles;
use std::io;
use surface::limits::RECOVERY_FAILURES_MAX;
use worker::control::Step;

/// Failures so far.
#[derive(Debug, Default)]
pub struct Failures(Vec<(Step, u32)>);

/// What begins empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAside {
    /// The storage at that place.
    Storage(usize),
    /// All storages and the bans: which of them is the cause is not known, or it is the bans, without which nobody knows
    /// what must not be served any more.
    All,
}

impl Failures {
    /// Every step went well.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// A worker failed at that step; says what is to begin empty when that was once too often.
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
    /// Gives the next worker empty memory in the place of what is set aside; the old goes with its last descriptor.
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
