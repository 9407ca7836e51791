//! The two-proportion test: the chance that a share is so much larger than another only by chance.
//!
//! Pure functions. Both shares are taken as draws of one population (pooled z test, one-sided),
//! which errs towards "by chance" for few events. Source: Abramowitz and Stegun, 26.2.10 (series)
//! and 26.2.14 (continued fraction).

/// Below this, the series converges quickly; above, the continued fraction does.
const SERIES_MAX: f64 = 2.0;
/// Terms of either, enough for fifteen digits.
const TERMS: u32 = 100;

/// A number of events among a number of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Events.
    pub events: u64,
    /// Cases.
    pub cases: u64,
}

impl Share {
    /// The share as a fraction; 0 without cases.
    #[must_use]
    pub fn fraction(self) -> f64 {
        if self.cases == 0 { 0.0 } else { self.events as f64 / self.cases as f64 }
    }
}

/// Probability that `larger` exceeds `other` as much as it does, or more, if both are draws of the
/// same population. 1 if one of them has no cases.
#[must_use]
pub fn chance(larger: Share, other: Share) -> f64 {
    if larger.cases == 0 || other.cases == 0 {
        return 1.0;
    }
    let (n, m) = (larger.cases as f64, other.cases as f64);
    let pooled = (larger.events as f64 + other.events as f64) / (n + m);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    if deviation.is_nan() || deviation <= 0.0 {
        return 1.0;
    }
    upper_tail((larger.fraction() - other.fraction()) / deviation)
}

/// Probability that a standard normal variable exceeds `z`.
fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if z < SERIES_MAX {
        let (mut term, mut sum) = (z, z);
        for step in 1..TERMS {
            term *= z * z / f64::from(2 * step + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let rest = (1..=TERMS).rev().fold(0.0, |rest, step| f64::from(step) / (z + rest));
    density / (z + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_of_the_normal_distribution_are_those_of_the_tables() {
        let table =
            [(0.0, 0.5), (1.0, 0.158_655_254), (1.96, 0.024_997_895), (2.0, 0.022_750_132), (3.0, 1.349_898e-3)];
        for (z, p) in table.into_iter().chain([(4.0, 3.167_124e-5), (5.0, 2.866_516e-7), (6.0, 9.865_876e-10)]) {
            assert!((upper_tail(z) / p - 1.0).abs() < 1e-5, "{z}: {} for {p}", upper_tail(z));
            assert!((upper_tail(-z) - (1.0 - p)).abs() < 1e-8, "-{z}");
        }
        let around = upper_tail(SERIES_MAX - 1e-12) / upper_tail(SERIES_MAX);
        assert!((around - 1.0).abs() < 1e-9, "both agree where they meet");
    }

    #[test]
    fn extreme_shares_have_a_chance_and_no_fault() {
        let share = |events, cases| Share { events, cases };
        for (one, other) in [(share(0, 0), share(0, 0)), (share(0, 9), share(0, 9)), (share(9, 9), share(9, 9))] {
            assert_eq!(chance(one, other), 1.0);
        }
        assert_eq!(chance(share(5, 9), share(0, 0)), 1.0);
        assert!(chance(share(25, 500), share(0, 500)) < 1e-6);
        assert!(chance(share(0, 500), share(25, 500)) > 0.999);
        assert!((chance(share(30, 500), share(30, 500)) - 0.5).abs() < 1e-9);
        assert!(chance(share(u64::MAX / 2, u64::MAX), share(1, u64::MAX)) < 1e-9);
        assert_eq!(share(1, 0).fraction(), 0.0);
    }
}
