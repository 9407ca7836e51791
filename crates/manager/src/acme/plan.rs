//! Due times of orders: renewal long before expiry, and backoff after failures. Time and randomness
//! are arguments.
//!
//! Authorities limit failures (Let's Encrypt: five per name and hour), and repeating a failing
//! order is useless. So each failure lengthens the pause, and the attempts are stored in the
//! [`Record`] next to the certificate, which outlives the daemon.

use crate::arguments::acme::Way;
use serde::{Deserialize, Serialize};
use surface::limits::{ACME_PAUSE_SECONDS_MAX, ACME_RETRY_AFTER_SECONDS_MAX};

/// The pause before the other challenge type is tried, and after a stale nonce ([`Kind::Stale`]),
/// in seconds.
const SOON_SECONDS: f64 = 5.0;
/// Pauses after the first failures in a row, in seconds; then they double.
const PAUSES_SECONDS: [f64; 3] = [60.0, 300.0, 3600.0];
/// A pause is longer by up to this share, so that servers do not retry at once.
const PAUSE_JITTER: f64 = 0.1;
/// Share of its lifetime after which a certificate is renewed, or up to [`RENEWAL_JITTER`] earlier.
const RENEWAL: f64 = 2.0 / 3.0;
const RENEWAL_JITTER: f64 = 0.03;
/// Bounds of an authority's advice, as shares of the certificate's lifetime.
const ADVICE_EARLIEST: f64 = 0.02;
const ADVICE_LATEST: f64 = 0.9;

/// Cause of a failure, as far as it decides the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The authority could not verify control of a name.
    Unproven,
    /// Rate limit of the authority.
    Limited,
    /// The authority does not have our account.
    AccountUnknown,
    /// The authority refused for another reason.
    Refused,
    /// It rejected nonces that it had issued itself as old, too often in a row; some authorities do
    /// so by design now and then.
    Stale,
    /// It could not be reached, or its answer was invalid.
    Unreachable,
    /// Something here failed.
    Ours,
}

/// Stored record of the orders for one certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Number of failed orders since the last success.
    pub failures: u32,
    /// Time before which no order is made, in seconds since 1970.
    pub next_try: f64,
    /// Cause of the last order's failure; empty if it succeeded.
    pub last_error: String,
    /// Time of that failure, in seconds since 1970.
    pub failed_at: f64,
    /// The challenge type that worked last.
    pub worked: Option<Way>,
    /// The challenge type that failed last, since then.
    pub failed: Option<Way>,
}

impl Record {
    /// The challenge type to try next, of those available, in order of preference.
    #[must_use]
    pub fn way(&self, ways: &[Way]) -> Option<Way> {
        let usual = self.worked.filter(|way| ways.contains(way)).or(ways.first().copied())?;
        match self.failed {
            Some(failed) => Some(ways.iter().copied().find(|way| *way != failed).unwrap_or(usual)),
            None => Some(usual),
        }
    }

    /// Records a failure. `retry_after_seconds` is the delay that the authority asked for; `chance`
    /// is in 0..1.
    pub fn fail(&mut self, now: f64, failure: &Failed<'_>, ways: &[Way], chance: f64) {
        let is_first_way = failure.kind == Kind::Unproven && self.failed.is_none();
        if failure.kind == Kind::Unproven {
            self.failed = Some(failure.way);
        }
        self.failures = self.failures.saturating_add(1);
        self.last_error = failure.text.to_owned();
        self.failed_at = now;
        let pause = match failure.kind {
            Kind::Unproven if is_first_way && ways.len() > 1 => SOON_SECONDS,
            Kind::Stale if (self.failures as usize) < PAUSES_SECONDS.len() => SOON_SECONDS,
            Kind::Limited => pause_seconds(self.failures).max(PAUSES_SECONDS[2]),
            _ => pause_seconds(self.failures),
        };
        let asked = failure.retry_after_seconds.unwrap_or(0.0).clamp(0.0, ACME_RETRY_AFTER_SECONDS_MAX);
        self.next_try = now + (pause * (1.0 + PAUSE_JITTER * chance)).max(asked);
    }

    /// The record after an order that succeeded.
    #[must_use]
    pub fn succeeded(way: Way) -> Record {
        Record { worked: Some(way), ..Record::default() }
    }
}

/// A failed order.
#[derive(Clone, Copy, Debug)]
pub struct Failed<'a> {
    /// Cause.
    pub kind: Kind,
    /// One line.
    pub text: &'a str,
    /// The challenge type that was used.
    pub way: Way,
    /// The delay that the authority asked for.
    pub retry_after_seconds: Option<f64>,
}

fn pause_seconds(failures: u32) -> f64 {
    let index = failures.max(1) as usize - 1;
    let last = PAUSES_SECONDS.len() - 1;
    match PAUSES_SECONDS.get(index) {
        Some(pause) => *pause,
        None => (PAUSES_SECONDS[last] * 2f64.powi(i32::try_from(index - last).unwrap_or(i32::MAX)))
            .min(ACME_PAUSE_SECONDS_MAX),
    }
}

/// Time to renew a certificate that is valid between two times (seconds since 1970); `chance` is in
/// 0..1.
#[must_use]
pub fn renewal(not_before: f64, not_after: f64, chance: f64) -> f64 {
    not_before + (not_after - not_before).max(0.0) * (RENEWAL - RENEWAL_JITTER * chance)
}

/// Time to renew if the authority advises a time between `start` and `end` (RFC 9773). The advice
/// is bounded: a wrong clock there must neither cause repeated orders nor prevent them.
#[must_use]
pub fn advised(not_before: f64, not_after: f64, (start, end): (f64, f64), chance: f64) -> f64 {
    let lifetime = (not_after - not_before).max(0.0);
    let at = start + (end - start).max(0.0) * chance;
    at.clamp(not_before + lifetime * ADVICE_EARLIEST, not_before + lifetime * ADVICE_LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[Way] = &[Way::Http, Way::TlsAlpn];

    fn failed(kind: Kind, way: Way, retry_after_seconds: Option<f64>) -> Failed<'static> {
        Failed { kind, text: "no", way, retry_after_seconds }
    }

    #[test]
    fn a_certificate_is_renewed_when_two_thirds_of_its_life_are_over_and_not_all_at_once() {
        let day = 86_400.0;
        assert_eq!(renewal(0.0, 90.0 * day, 0.0), 60.0 * day);
        assert!((renewal(0.0, 90.0 * day, 1.0) - 57.3 * day).abs() < 1.0);
        assert_eq!(renewal(10.0, 0.0, 0.5), 10.0);
    }

    #[test]
    fn advice_is_heeded_within_reason() {
        assert_eq!(advised(0.0, 1000.0, (300.0, 500.0), 0.5), 400.0);
        assert_eq!(advised(0.0, 1000.0, (-1e9, -1e9), 0.5), 20.0);
        assert_eq!(advised(0.0, 1000.0, (1e9, 2e9), 0.5), 900.0);
        assert_eq!(advised(0.0, 1000.0, (300.0, 100.0), 0.5), 300.0);
    }

    #[test]
    fn there_is_at_most_one_try_an_hour_after_three_failures() {
        let mut record = Record::default();
        let mut now = 1000.0;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            record.fail(now, &failed(Kind::Refused, Way::Http, None), &[Way::Http], 0.0);
            pauses.push(record.next_try - now);
            now = record.next_try;
        }
        assert_eq!(pauses, [60.0, 300.0, 3600.0, 7200.0, 14_400.0, 28_800.0, 28_800.0, 28_800.0, 28_800.0]);
        record.failures = u32::MAX;
        record.fail(now, &failed(Kind::Refused, Way::Http, None), &[Way::Http], 1.0);
        assert!((record.next_try - now - 31_680.0).abs() < 0.001);
    }

    #[test]
    fn the_other_way_is_tried_soon_and_then_they_take_turns() {
        let mut record = Record::default();
        assert_eq!(record.way(BOTH), Some(Way::Http));
        record.fail(0.0, &failed(Kind::Unproven, Way::Http, None), BOTH, 0.0);
        assert_eq!((record.way(BOTH), record.next_try), (Some(Way::TlsAlpn), 5.0));
        record.fail(5.0, &failed(Kind::Unproven, Way::TlsAlpn, None), BOTH, 0.0);
        assert_eq!((record.way(BOTH), record.next_try), (Some(Way::Http), 305.0));
        record = Record::succeeded(Way::TlsAlpn);
        assert_eq!((record.way(BOTH), record.failures, record.next_try), (Some(Way::TlsAlpn), 0, 0.0));
        assert_eq!(record.way(&[Way::Http]), Some(Way::Http));
        assert_eq!(record.way(&[]), None);
    }

    #[test]
    fn stale_orders_are_retried_soon_and_then_back_off() {
        let mut record = Record::default();
        let pauses = [0.0; 4].map(|now| {
            record.fail(now, &failed(Kind::Stale, Way::Http, None), BOTH, 0.0);
            record.next_try
        });
        assert_eq!(pauses, [5.0, 5.0, 3600.0, 7200.0]);
    }

    #[test]
    fn an_authority_that_asks_for_patience_gets_it() {
        let mut record = Record::default();
        record.fail(0.0, &failed(Kind::Limited, Way::Http, None), BOTH, 0.0);
        assert_eq!(record.next_try, 3600.0);
        record.fail(0.0, &failed(Kind::Limited, Way::Http, Some(90_000.0)), BOTH, 0.0);
        assert_eq!(record.next_try, 90_000.0);
        record.fail(0.0, &failed(Kind::Unreachable, Way::Http, Some(1e12)), BOTH, 0.0);
        assert_eq!(record.next_try, ACME_RETRY_AFTER_SECONDS_MAX);
        assert_eq!(record.way(BOTH), Some(Way::Http), "the way is not at fault");
    }
}
