//! Budget of stream resets, by the client itself or provoked by it.
//!
//! Both share one budget, because both cost the same: a request that is begun and abandoned.
//! Compat: parameters and VMOD as in Varnish 7.5; counting provoked resets is ours (CVE-2025-8671).

use std::cell::Cell;
use std::time::Duration;
use surface::parameter::Parameters;

/// The limits of the budget; VCL may change them for one connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResetLimits {
    /// A stream that the client resets this soon after it was opened counts, in seconds
    /// (`h2_rapid_reset`).
    pub rapid: f64,
    /// Number of streams that may be reset; 0 = no limit (`h2_rapid_reset_limit`).
    pub limit: i64,
    /// In this many seconds (`h2_rapid_reset_period`).
    pub period: f64,
}

impl From<&Parameters> for ResetLimits {
    fn from(parameters: &Parameters) -> ResetLimits {
        ResetLimits {
            rapid: parameters.h2_rapid_reset,
            limit: i64::try_from(parameters.h2_rapid_reset_limit).unwrap_or(i64::MAX),
            period: parameters.h2_rapid_reset_period,
        }
    }
}

/// The budget of one connection.
#[derive(Debug)]
pub struct Resets {
    limits: Cell<ResetLimits>,
    left: Cell<f64>,
    /// Time at which `left` was computed, on the connection's clock.
    at: Cell<Duration>,
}

impl Resets {
    /// A full budget.
    #[must_use]
    pub fn new(limits: ResetLimits) -> Resets {
        Resets { limits: Cell::new(limits), left: Cell::new(limits.limit as f64), at: Cell::new(Duration::ZERO) }
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> ResetLimits {
        self.limits.get()
    }

    /// Replaces the limits. If they differ from those in force, the budget is full again.
    pub fn set_limits(&self, limits: ResetLimits) {
        if limits != self.limits.get() {
            self.limits.set(limits);
            self.left.set(limits.limit as f64);
        }
    }

    /// Number of resets left, as of the latest one.
    #[must_use]
    pub fn left(&self) -> f64 {
        self.left.get()
    }

    /// True if a stream of this age was reset soon enough to count.
    #[must_use]
    pub fn is_rapid(&self, lived: Duration) -> bool {
        lived.as_secs_f64() <= self.limits.get().rapid
    }

    /// Takes one reset out of the budget; false if there was none left.
    pub fn charge(&self, now: Duration) -> bool {
        let ResetLimits { limit, period, .. } = self.limits.get();
        if limit <= 0 {
            return true;
        }
        let limit = limit as f64;
        let passed = now.saturating_sub(self.at.replace(now)).as_secs_f64();
        // A period of 0 would refill the budget at once, or divide by zero.
        let regained = limit * passed / period.max(0.001);
        let left = (self.left.get() + regained).min(limit) - 1.0;
        self.left.set(left);
        left >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ResetLimits = ResetLimits { rapid: 1.0, limit: 100, period: 60.0 };

    #[test]
    fn a_hundred_resets_are_forgiven_and_one_more_is_not() {
        let resets = Resets::new(LIMITS);
        assert!((0..100).all(|_| resets.charge(Duration::ZERO)));
        assert!(!resets.charge(Duration::ZERO));
    }

    #[test]
    fn the_budget_comes_back_over_the_period() {
        let resets = Resets::new(LIMITS);
        assert!((0..100).all(|_| resets.charge(Duration::ZERO)));
        assert!(resets.charge(Duration::from_millis(600)), "one in six tenths of a second");
        assert!(!resets.charge(Duration::from_millis(600)));
        assert!((0..99).all(|_| resets.charge(Duration::from_secs(3600))), "and never more than the limit");
    }

    #[test]
    fn a_limit_of_zero_counts_nothing() {
        let resets = Resets::new(ResetLimits { limit: 0, ..LIMITS });
        assert!((0..1000).all(|_| resets.charge(Duration::ZERO)));
        assert_eq!(resets.left(), 0.0);
    }

    #[test]
    fn limits_that_change_begin_a_new_budget_and_the_same_ones_do_not() {
        let resets = Resets::new(LIMITS);
        resets.charge(Duration::ZERO);
        resets.set_limits(LIMITS);
        assert_eq!(resets.left(), 99.0);
        resets.set_limits(ResetLimits { limit: 5, ..LIMITS });
        assert_eq!(resets.left(), 5.0);
        assert!(resets.is_rapid(Duration::from_secs(1)) && !resets.is_rapid(Duration::from_millis(1001)));
    }
}
