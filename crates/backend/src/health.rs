//! The health of a backend or director: the operator's setting takes precedence over the probe's
//! result.
//!
//! [`Health`] is shared by all event loops and read by every fetch, so it uses atomics and no lock.
//! It also keeps the time of the last change, for `backend.list` and for the ramp-up of shard
//! directors.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;

/// The operator's setting (`backend.set_health`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminHealth {
    /// No setting: the probe or the members decide.
    Auto,
    /// Use it regardless of the probe.
    Healthy,
    /// Don't use it.
    Sick,
}

impl AdminHealth {
    /// Reads the word of `backend.set_health`, in upper or lower case; abbreviations are not
    /// accepted.
    #[must_use]
    pub fn parse(word: &str) -> Option<AdminHealth> {
        match word.to_ascii_lowercase().as_str() {
            "auto" => Some(AdminHealth::Auto),
            "healthy" => Some(AdminHealth::Healthy),
            "sick" => Some(AdminHealth::Sick),
            _ => None,
        }
    }

    /// The word in the Admin column of `backend.list`; `auto` is shown as `probe`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            AdminHealth::Auto => "probe",
            AdminHealth::Healthy => "healthy",
            AdminHealth::Sick => "sick",
        }
    }
}

/// The word for a state of health in lists and logs.
#[must_use]
pub fn health_word(healthy: bool) -> &'static str {
    if healthy { "healthy" } else { "sick" }
}

/// The health of one backend or director.
#[derive(Debug)]
pub struct Health {
    admin: AtomicU8,
    probed: AtomicBool,
    /// Seconds since 1970, as bits.
    changed: AtomicU64,
    /// Time of its last recovery (it was good, then sick), seconds since 1970, as bits; 0 = never.
    recovered: AtomicU64,
    has_been_good: AtomicBool,
    /// Notified whenever `changed` moves.
    changes: Notify,
}

impl Health {
    /// Healthy since `now`, without an operator's setting.
    #[must_use]
    pub fn new(now: f64) -> Health {
        Health {
            admin: AtomicU8::new(0),
            probed: AtomicBool::new(true),
            changed: AtomicU64::new(now.to_bits()),
            recovered: AtomicU64::new(0f64.to_bits()),
            has_been_good: AtomicBool::new(false),
            changes: Notify::new(),
        }
    }

    /// The operator's setting.
    #[must_use]
    pub fn admin(&self) -> AdminHealth {
        match self.admin.load(Relaxed) {
            1 => AdminHealth::Healthy,
            2 => AdminHealth::Sick,
            _ => AdminHealth::Auto,
        }
    }

    /// Stores the operator's setting; if it differs from the last one, the time of change is
    /// updated.
    pub fn set_admin(&self, admin: AdminHealth, now: f64) {
        let code = match admin {
            AdminHealth::Auto => 0,
            AdminHealth::Healthy => 1,
            AdminHealth::Sick => 2,
        };
        if self.admin.swap(code, Relaxed) != code {
            self.note_change(now);
        }
    }

    /// The last result of the probe; true if there is no probe.
    #[must_use]
    pub fn probed(&self) -> bool {
        self.probed.load(Relaxed)
    }

    /// Stores the result of the probe; if it differs from the last result, updates the time of
    /// change and returns true.
    pub fn set_probed(&self, healthy: bool, now: f64) -> bool {
        let is_news = self.probed.swap(healthy, Relaxed) != healthy;
        if is_news {
            self.note_change(now);
        }
        // A backend that was sick from the beginning has nothing to recover from.
        if healthy && self.has_been_good.swap(true, Relaxed) && is_news {
            self.recovered.store(now.to_bits(), Relaxed);
        }
        is_news
    }

    /// Notes that the circuit breaker has opened, or has closed again.
    pub(crate) fn note_breaker(&self, is_closed: bool, now: f64) {
        self.note_change(now);
        if is_closed {
            self.recovered.store(now.to_bits(), Relaxed);
        }
    }

    /// Time of its last recovery, seconds since 1970; 0 = never.
    pub(crate) fn recovered(&self) -> f64 {
        f64::from_bits(self.recovered.load(Relaxed))
    }

    fn note_change(&self, now: f64) {
        self.changed.store(now.to_bits(), Relaxed);
        self.changes.notify_waiters();
    }

    /// For code that waits until the health changes.
    pub(crate) fn changes(&self) -> &Notify {
        &self.changes
    }

    /// True if the backend is to be used: the operator's setting if there is one, else the probe's
    /// result.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.overridden().unwrap_or_else(|| self.probed())
    }

    /// The operator's setting, if there is one.
    #[must_use]
    pub fn overridden(&self) -> Option<bool> {
        match self.admin() {
            AdminHealth::Auto => None,
            AdminHealth::Healthy => Some(true),
            AdminHealth::Sick => Some(false),
        }
    }

    /// Time of its last change, seconds since 1970.
    #[must_use]
    pub fn changed(&self) -> f64 {
        f64::from_bits(self.changed.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_word_hides_the_probes_until_it_is_taken_back() {
        let health = Health::new(1.0);
        assert!(health.is_healthy());
        assert!(health.set_probed(false, 2.0));
        assert!(!health.is_healthy());
        health.set_admin(AdminHealth::Healthy, 3.0);
        assert!(health.is_healthy());
        assert!(!health.probed());
        health.set_admin(AdminHealth::Auto, 4.0);
        assert!(!health.is_healthy());
        assert_eq!(health.changed(), 4.0);
    }

    #[test]
    fn the_time_of_change_moves_only_with_a_change() {
        let health = Health::new(1.0);
        assert!(!health.set_probed(true, 2.0));
        health.set_admin(AdminHealth::Auto, 3.0);
        assert_eq!(health.changed(), 1.0);
    }

    #[test]
    fn only_full_words_are_understood() {
        assert_eq!(AdminHealth::parse("auto"), Some(AdminHealth::Auto));
        assert_eq!(AdminHealth::parse("sic"), None);
        assert_eq!(AdminHealth::parse("probe"), None);
    }
}
