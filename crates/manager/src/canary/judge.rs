//! The judgement about a canary, from the counts of its two groups: pure functions.
//!
//! A canary is worse if a figure is beyond its limit *and* a difference of that size is improbable
//! by chance. The probability of one false alarm in a whole canary is [`FALSE_ALARM`], so each look
//! at each figure has its part of it: a canary is looked at hundreds of times, and with the same
//! threshold for each look, every tenth identical VCL would go back. The p95 is compared as a
//! share: requests slower than the p95 of the control group. Next file: `proportions.rs`.

use super::proportions::{Share, chance};
use control::canary::Counts;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use surface::histogram::{BUCKETS, Scale};

/// Fewest cases of each group for a judgement.
pub const CASES_MIN: u64 = 500;
/// Fewest requests for the judgement of a VCL whose errors exceed [`BROKEN_SHARE`].
pub const BROKEN_CASES_MIN: u64 = 50;
/// Largest ratio of the requests of two groups of the same share that can be compared. Beyond it,
/// few clients made most of the requests of one group.
pub const IMBALANCE_MAX: u64 = 4;
/// Share of errors above which few requests suffice.
pub const BROKEN_SHARE: f64 = 0.05;
/// Probability that a VCL that is as good as the active one goes back.
pub const FALSE_ALARM: f64 = 0.001;
/// Interval between judgements.
pub const INTERVAL: Duration = Duration::from_secs(10);
/// Smallest difference of p95 that counts, whatever the limit, in seconds.
const SLOWER_SECONDS_MIN: f64 = 0.001;
/// The part of requests that is at most as slow as p95.
const P95: f64 = 0.95;

/// Largest tolerated differences to the control group, as fractions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Increase of the share of requests with a status of 500 or more.
    pub errors: f64,
    /// Increase of the share of requests for which the origin failed.
    pub failures: f64,
    /// Decrease of the share of hits.
    pub hit_ratio: f64,
    /// Increase of p95, relative to that of the control group.
    pub p95: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { errors: 0.005, failures: 0.005, hit_ratio: 0.05, p95: 0.5 }
    }
}

/// A figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Share of requests with a status of 500 or more.
    Errors,
    /// Share of requests for which the origin failed.
    Failures,
    /// Share of hits among hits and misses.
    HitRatio,
    /// The duration that 95 % of requests do not exceed.
    P95,
}

impl Figure {
    /// All figures.
    pub const ALL: [Figure; 4] = [Figure::Errors, Figure::Failures, Figure::HitRatio, Figure::P95];

    /// The word in `--limit` and in messages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Figure::Errors => "errors",
            Figure::Failures => "failures",
            Figure::HitRatio => "hit-ratio",
            Figure::P95 => "p95",
        }
    }

    /// The value for a group: a fraction, or seconds for p95.
    #[must_use]
    pub fn of(self, counts: &Counts) -> f64 {
        match self {
            Figure::P95 => p95(counts),
            Figure::Errors | Figure::Failures | Figure::HitRatio => self.share(counts).fraction(),
        }
    }

    /// Events and cases of a figure that is a share; for p95 all requests.
    fn share(self, counts: &Counts) -> Share {
        match self {
            Figure::Errors => Share { events: counts.errors, cases: counts.requests },
            Figure::Failures => Share { events: counts.failures, cases: counts.requests },
            Figure::HitRatio => Share { events: counts.hits, cases: counts.lookups },
            Figure::P95 => Share { events: 0, cases: counts.durations.iter().sum() },
        }
    }

    /// A value as it is shown.
    #[must_use]
    pub fn shown(self, value: f64) -> String {
        match self {
            Figure::P95 => format!("{:.1} ms", value * 1e3),
            Figure::Errors | Figure::Failures | Figure::HitRatio => format!("{:.2} %", value * 100.0),
        }
    }
}

impl Figure {
    /// Its limit, as it is shown.
    #[must_use]
    pub fn limit_shown(self, limits: &Limits) -> String {
        match self {
            Figure::Errors => format!("+{:.2} %", limits.errors * 100.0),
            Figure::Failures => format!("+{:.2} %", limits.failures * 100.0),
            Figure::HitRatio => format!("-{:.2} %", limits.hit_ratio * 100.0),
            Figure::P95 => format!("x {:.2}", 1.0 + limits.p95),
        }
    }
}

/// A figure by which a canary is worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// The figure.
    pub figure: Figure,
    /// Its values, canary first.
    pub values: [f64; 2],
    /// Number of cases, canary first.
    pub cases: [u64; 2],
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [canary, control] = self.values.map(|value| self.figure.shown(value));
        let [of_canary, of_control] = self.cases;
        write!(f, "{} {canary} of {of_canary}, control {control} of {of_control}", self.figure.word())
    }
}

/// The thresholds for the looks at a canary that lasts for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// For the judgement at intervals.
    pub at_intervals: f64,
    /// For the look at errors once a second.
    pub each_second: f64,
    /// For the end.
    pub at_end: f64,
}

impl Thresholds {
    /// Divides [`FALSE_ALARM`] among the looks.
    #[must_use]
    pub fn of(lasting: Duration) -> Thresholds {
        let figures = Figure::ALL.len() as f64;
        let seconds = lasting.as_secs_f64().max(1.0);
        let looks = (seconds / INTERVAL.as_secs_f64()).max(1.0);
        Thresholds {
            at_intervals: FALSE_ALARM / (looks * figures),
            each_second: FALSE_ALARM / seconds,
            at_end: FALSE_ALARM / figures,
        }
    }
}

/// Compares the groups, canary first: the first figure beyond its limit by more than chance.
#[must_use]
pub fn judge([canary, control]: &[Counts; 2], limits: &Limits, threshold: f64) -> Option<Finding> {
    Figure::ALL.into_iter().find_map(|figure| {
        let shares = [figure.share(canary), figure.share(control)];
        if shares.iter().any(|share| share.cases < CASES_MIN) {
            return None;
        }
        let values = [figure.of(canary), figure.of(control)];
        let [new, old] = values;
        let (is_beyond, chance) = match figure {
            Figure::Errors => (new - old > limits.errors, chance(shares[0], shares[1])),
            Figure::Failures => (new - old > limits.failures, chance(shares[0], shares[1])),
            Figure::HitRatio => (old - new > limits.hit_ratio, chance(shares[1], shares[0])),
            Figure::P95 => {
                let slow = slower_than_p95(canary, control);
                (new - old > (limits.p95 * old).max(SLOWER_SECONDS_MIN), chance(slow[0], slow[1]))
            }
        };
        let cases = shares.map(|share| share.cases);
        (is_beyond && chance < threshold).then_some(Finding { figure, values, cases })
    })
}

/// Finds a VCL that fails so often that few requests show it. If the control group fails as often,
/// the origin has failed, and not the VCL. Without a comparable control group nothing is found: the
/// requests may be those of one client.
#[must_use]
pub fn broken([canary, control]: &[Counts; 2], threshold: f64) -> Option<Finding> {
    let [new, old] = [Figure::Errors.share(canary), Figure::Errors.share(control)];
    let is_much = new.cases >= BROKEN_CASES_MIN && new.fraction() > BROKEN_SHARE;
    let is_worse = old.cases.saturating_mul(IMBALANCE_MAX) >= new.cases && chance(new, old) < threshold;
    (is_much && is_worse).then(|| Finding {
        figure: Figure::Errors,
        values: [new.fraction(), old.fraction()],
        cases: [new.cases, old.cases],
    })
}

/// The judgement at the end, about all counts. A control group that itself fails often, or that has
/// far more or fewer requests than the canary, shows nothing: one client could have made it so.
///
/// # Errors
/// The reason for going back: too few requests, no fair comparison, or a figure.
pub fn conclude(groups: &[Counts; 2], limits: &Limits, threshold: f64) -> Result<(), String> {
    let cases = groups.iter().map(|counts| counts.requests).min().unwrap_or(0);
    if cases < CASES_MIN {
        return Err(format!("not enough traffic: {cases} of {CASES_MIN} requests"));
    }
    let [canary, control] = groups;
    if canary.requests.max(control.requests) > cases.saturating_mul(IMBALANCE_MAX) {
        let (of_canary, of_control) = (canary.requests, control.requests);
        return Err(format!("no fair comparison: {of_canary} requests, control {of_control}"));
    }
    if let Some(finding) = judge(groups, limits, threshold) {
        return Err(finding.to_string());
    }
    let errors = [canary, control].map(|counts| Figure::Errors.of(counts));
    if errors.iter().any(|share| *share > BROKEN_SHARE) {
        let [of_canary, of_control] = errors.map(|share| Figure::Errors.shown(share));
        return Err(format!("no fair comparison: errors {of_canary}, control {of_control}"));
    }
    Ok(())
}

/// The duration in seconds that 95 % of requests do not exceed, interpolated within its bucket; 0
/// without requests.
fn p95(counts: &Counts) -> f64 {
    let all = counts.durations.iter().sum::<u64>() as f64;
    let mut below = 0.0;
    for (bucket, count) in counts.durations.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && below + count >= P95 * all {
            let lower = bucket.checked_sub(1).and_then(|bucket| Scale::Seconds.bound(bucket)).unwrap_or(0.0);
            let upper = Scale::Seconds.bound(bucket).unwrap_or(2.0 * lower);
            return lower + (upper - lower) * ((P95 * all - below) / count);
        }
        below += count;
    }
    0.0
}

/// The shares of requests in buckets above the one that has the p95 of the control group.
fn slower_than_p95(canary: &Counts, control: &Counts) -> [Share; 2] {
    let all = control.durations.iter().sum::<u64>() as f64;
    let mut below = 0;
    let bucket = control.durations.iter().position(|count| {
        below += count;
        below as f64 >= P95 * all
    });
    let first = bucket.unwrap_or(BUCKETS - 1) + 1;
    [canary, control]
        .map(|counts| Share { events: counts.durations[first..].iter().sum(), cases: counts.durations.iter().sum() })
}

#[cfg(test)]
mod tests;
