//! Session ticket keys: [`TicketKeys`], made here so that tickets outlive the worker.
//!
//! Tickets are made with the newest key; the older ones are kept so that clients that return in
//! time can resume. A key that is gone can no longer decrypt recorded traffic, so none is kept for
//! long, and none is ever written anywhere.

use rand::Rng;
use std::time::Duration;
use surface::limits::TLS_TICKET_KEYS_MAX;
use tls::secret::Secret;
use tls::table::TicketKey;

/// Time for which a key makes tickets.
pub const ROTATION: Duration = Duration::from_secs(4 * 3600);
/// Length of a key, in bytes.
const KEY_BYTES: usize = 32;

/// The keys, the newest first.
#[derive(Clone, Debug)]
pub struct TicketKeys(Vec<TicketKey>);

impl TicketKeys {
    /// A first key.
    #[must_use]
    pub fn new() -> TicketKeys {
        TicketKeys(vec![fresh()])
    }

    /// Earlier keys, the newest first; `None` if they are invalid.
    #[must_use]
    pub fn of(keys: Vec<TicketKey>) -> Option<TicketKeys> {
        let is_good = (1..=TLS_TICKET_KEYS_MAX).contains(&keys.len())
            && keys.iter().all(|key| key.key.bytes().len() == KEY_BYTES);
        is_good.then_some(TicketKeys(keys))
    }

    /// Adds a new key; the oldest is dropped if there are too many.
    pub fn rotate(&mut self) {
        self.0.insert(0, fresh());
        self.0.truncate(TLS_TICKET_KEYS_MAX);
    }

    /// The keys, the newest first.
    #[must_use]
    pub fn all(&self) -> &[TicketKey] {
        &self.0
    }
}

fn fresh() -> TicketKey {
    let mut name = [0; 16];
    rand::rng().fill_bytes(&mut name);
    TicketKey { name, key: random_secret(KEY_BYTES) }
}

/// Unpredictable random bytes.
#[must_use]
pub fn random_secret(length: usize) -> Secret {
    let mut bytes = vec![0; length];
    rand::rng().fill_bytes(&mut bytes);
    Secret::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_accepted_for_some_rotations_and_then_gone() {
        let mut keys = TicketKeys::new();
        let first = keys.all()[0].clone();
        for _ in 1..TLS_TICKET_KEYS_MAX {
            keys.rotate();
            assert_ne!(keys.all()[0], first);
            assert_eq!(keys.all().last(), Some(&first));
        }
        keys.rotate();
        assert!(!keys.all().contains(&first));
        assert_eq!(keys.all().len(), TLS_TICKET_KEYS_MAX);
        assert!(keys.all().iter().all(|key| key.key.bytes().len() == KEY_BYTES));
    }
}
