//! A canary in the messages between manager and worker: its configuration, and its counts.

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::ops::{AddAssign, Sub};
use surface::canary::Stick;
use surface::histogram::BUCKETS;

/// A VCL that serves a share of the clients, next to the active one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryConfiguration {
    /// The VCL or label.
    pub name: String,
    /// Share of clients of each of the two groups, in parts of
    /// [`surface::canary::SHARE_WHOLE`].
    pub share: u32,
    /// The property that decides.
    pub stick: Stick,
    /// Secret of the choice, so that clients cannot predict it.
    pub secret: [u64; 2],
    /// Salts of the keys of the two groups, canary first; `None` = they share the cache with all
    /// other requests.
    pub salts: Option<[[u8; 32]; 2]>,
}

/// Counts of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests of clients that have ended.
    pub requests: u64,
    /// Those with a status of 500 or more.
    pub errors: u64,
    /// Those for which the origin failed, also if a stale object was delivered.
    pub failures: u64,
    /// Those that were hits or misses.
    pub lookups: u64,
    /// Those that were hits.
    pub hits: u64,
    /// Durations, in the buckets of [`surface::histogram::Scale::Seconds`].
    pub durations: [u64; BUCKETS],
}

impl Counts {
    /// All numbers, in the order of the fields.
    fn numbers(&mut self) -> impl Iterator<Item = &mut u64> {
        let Counts { requests, errors, failures, lookups, hits, durations } = self;
        [requests, errors, failures, lookups, hits].into_iter().chain(durations)
    }

    /// True if no number is below that of `earlier`.
    #[must_use]
    pub fn continues(&self, earlier: &Counts) -> bool {
        let (mut now, mut before) = (*self, *earlier);
        now.numbers().zip(before.numbers()).all(|(now, before)| *now >= *before)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, mut other: Counts) {
        self.numbers().zip(other.numbers()).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(mut self, mut other: Counts) -> Counts {
        self.numbers().zip(other.numbers()).for_each(|(left, less)| *left = left.saturating_sub(*less));
        self
    }
}

/// The counts of the canary and of the control group as the body of a reply: a line each.
#[must_use]
pub fn counts_text(groups: &[Counts; 2]) -> String {
    let mut text = String::new();
    for mut group in *groups {
        let mut separator = "";
        for number in group.numbers() {
            let _ = write!(text, "{separator}{number}");
            separator = " ";
        }
        text.push('\n');
    }
    text
}

/// The counts in such a body; `None` if it is something else.
#[must_use]
pub fn parse_counts(text: &str) -> Option<[Counts; 2]> {
    let mut groups = [Counts::default(); 2];
    let mut lines = text.lines();
    for group in &mut groups {
        let mut words = lines.next()?.split(' ');
        for number in group.numbers() {
            *number = words.next()?.parse().ok()?;
        }
        if words.next().is_some() {
            return None;
        }
    }
    lines.next().is_none().then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_they_are_written() {
        let mut groups = [Counts { requests: 7, errors: 1, failures: 2, lookups: 6, hits: 3, ..Counts::default() }; 2];
        groups[1].durations[BUCKETS - 1] = u64::MAX;
        let text = counts_text(&groups);
        assert_eq!(parse_counts(&text), Some(groups));
        for bad in ["", "1 2\n", &text[..text.len() / 2], &format!("{text}1\n"), &text.replace('7', "x")] {
            assert_eq!(parse_counts(bad), None, "{bad:?}");
        }
        let mut sum = groups[0];
        sum += groups[0];
        assert_eq!((sum.requests, sum - groups[0]), (14, groups[0]));
        assert!(sum.continues(&groups[0]) && !groups[0].continues(&sum));
    }
}
