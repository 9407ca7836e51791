//! Liveness of a process by its counters.
//!
//! The index of a process in shared memory can survive its death. A running process publishes its
//! age each second; one whose age has not changed for a while is stopped or dead.

use std::time::{Duration, Instant};
use surface::limits::OBSERVE_STALE_SECONDS;

/// The last change of a process's age.
#[derive(Default)]
pub(crate) struct Pulse {
    /// Segment and age in it, and the time at which they were first seen.
    last: Option<((u64, u64), Instant)>,
}

impl Pulse {
    /// Enters the age published in the segment `serial`; `None` if the process publishes nothing.
    /// Returns true if the process counts as running.
    pub fn note(&mut self, age: Option<(u64, u64)>, now: Instant) -> bool {
        let Some(age) = age else {
            self.last = None;
            return false;
        };
        match self.last {
            Some((last, since)) if last == age => {
                now.saturating_duration_since(since) < Duration::from_secs(OBSERVE_STALE_SECONDS)
            }
            _ => {
                self.last = Some((age, now));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_whose_age_stops_growing_counts_as_down() {
        let (mut pulse, start) = (Pulse::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!pulse.note(None, at(0)));
        assert!(pulse.note(Some((1, 7)), at(1)));
        assert!(pulse.note(Some((1, 7)), at(OBSERVE_STALE_SECONDS)));
        assert!(!pulse.note(Some((1, 7)), at(1 + OBSERVE_STALE_SECONDS)));
        assert!(pulse.note(Some((1, 8)), at(2 + OBSERVE_STALE_SECONDS)));
        assert!(!pulse.note(Some((1, 8)), at(3 + 2 * OBSERVE_STALE_SECONDS)));
        // The next worker has the same age, in another segment.
        assert!(pulse.note(Some((2, 8)), at(4 + 2 * OBSERVE_STALE_SECONDS)));
        assert!(!pulse.note(None, at(4 + 2 * OBSERVE_STALE_SECONDS)));
    }
}
