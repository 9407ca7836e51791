//! Conditions under which a node of a fleet serves from its cache.
//!
//! One relaxed load per request reads them. A request that has read them before they changed may
//! still be served under the old ones, like a request that came earlier.

use std::sync::atomic::{AtomicU8, Ordering};

/// The conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conditions {
    /// As without a fleet.
    Cache,
    /// Nothing older than `fleet_lost_ttl` without asking the origin.
    StaleLimit,
    /// Nothing from the cache: requests are passed.
    Pass,
}

/// The conditions, shared by all loops. Initially [`Conditions::Cache`].
#[derive(Debug, Default)]
pub struct FleetConditions(AtomicU8);

impl FleetConditions {
    /// The conditions now.
    #[inline]
    #[must_use]
    pub fn get(&self) -> Conditions {
        match self.0.load(Ordering::Relaxed) {
            0 => Conditions::Cache,
            1 => Conditions::StaleLimit,
            _ => Conditions::Pass,
        }
    }

    /// Sets them.
    pub fn set(&self, conditions: Conditions) {
        let number = match conditions {
            Conditions::Cache => 0,
            Conditions::StaleLimit => 1,
            Conditions::Pass => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }
}
