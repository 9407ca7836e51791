//! Reports of failing writes to the file of a storage: operators would see the counters alone too
//! late.

use engine::context::Engine;
use std::cell::RefCell;

/// Number of checks, one a second, between two reports of a disk that keeps failing.
const LOOKS_BETWEEN: u32 = 60;

/// Failure counts per storage.
#[derive(Debug, Default)]
pub struct DiskWatch(RefCell<Vec<Seen>>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Failures that were reported.
    told: u64,
    looks_to_wait: u32,
}

impl Seen {
    /// Number of failed writes that were not reported yet, if a report is due.
    fn look(&mut self, errors: u64) -> Option<u64> {
        self.looks_to_wait = self.looks_to_wait.saturating_sub(1);
        let new = errors.saturating_sub(self.told);
        if new == 0 || self.looks_to_wait > 0 {
            return None;
        }
        (self.told, self.looks_to_wait) = (errors, LOOKS_BETWEEN);
        Some(new)
    }
}

impl DiskWatch {
    /// Compares the counters of all storages with those of the last call. Call it once a second.
    pub fn look(&self, engine: &Engine) {
        let stores = engine.cache.stores();
        let mut seen = self.0.borrow_mut();
        seen.resize(stores.len(), Seen::default());
        for (store, seen) in stores.iter().zip(seen.iter_mut()) {
            let errors = store.file_usage().map_or(0, |usage| usage.write_errors);
            if let Some(new) = seen.look(errors) {
                let name = store.name();
                eprintln!(
                    "The file of {name} could not be written ({new} times): what comes is not kept there, and what is purged may come back after a start"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_failure_is_logged_at_once_and_later_ones_once_a_minute() {
        let mut seen = Seen::default();
        assert_eq!(seen.look(0), None);
        assert_eq!(seen.look(3), Some(3));
        let told: Vec<u64> = (4..4 + 120).filter_map(|errors| seen.look(errors)).collect();
        assert_eq!(told, [60, 60], "all that failed meanwhile");
        assert_eq!((0..200).find_map(|_| seen.look(123)), None, "nothing new");
        assert_eq!(seen.look(124), Some(1));
    }
}
