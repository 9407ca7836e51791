//! What came of a load: counts, failures by kind, and how long things took.
//!
//! **Coordinated omission.** A client that waits for its answer before it asks again asks nothing while the server stands still,
//! so one bad second leaves one bad sample among many thousand good ones. In an open loop that cannot happen: requests are timed from when
//! they were due. For a closed loop the missing samples are put in afterwards: during a long wait a client would have asked as often
//! as it usually does (`Times::usual`), and each of those requests would have waited for the rest of it (as HdrHistogram's author, G. Tene,
//! does it). What was measured is kept beside it.

use crate::failure::{Failure, KINDS, Kind};
use crate::plan::Pace;
use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest time that is told apart, in microseconds: an hour.
const LONGEST_MICROSECONDS: u64 = 3_600_000_000;
/// No client asks more often than this, in microseconds; bounds the work of the correction.
const INTERVAL_MICROSECONDS_MIN: u64 = 10;
/// Requests that were never sent are put into a histogram one by one up to so many, beyond that several at a time.
const UNSENT_STEPS_MAX: u64 = 100_000;
/// Words of a failure that are kept.
const SAID_BYTES_MAX: usize = 200;

/// Times, in microseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Times {
        // These bounds are valid, so there is nothing to fail; the smallest histogram would do otherwise.
        let histogram = Histogram::new_with_bounds(1, LONGEST_MICROSECONDS, 3);
        Times(histogram.unwrap_or_else(|_| Histogram::new(1).expect("a histogram of one digit")))
    }
}

impl Times {
    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.0.saturating_record(microseconds(time));
    }

    fn add_many(&mut self, time: Duration, count: u64) {
        self.0.saturating_record_n(microseconds(time), count);
    }

    fn merge(&mut self, other: &Times) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that a share (0 to 1) of all did not exceed, in microseconds; 0 when there are none.
    #[must_use]
    pub fn at(&self, share: f64) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.value_at_quantile(share) as f64 }
    }

    /// The longest, in microseconds.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.0.max() as f64
    }

    /// The mean, in microseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// How often a client asks when nothing is wrong: the mean, the slowest of a hundred left out.
    fn usual(&self) -> u64 {
        let bound = self.0.value_at_quantile(0.99);
        let usual = self.0.iter_recorded().take_while(|step| step.value_iterated_to() <= bound);
        let (sum, count) = usual.fold((0u64, 0u64), |(sum, count), step| {
            let new = step.count_since_last_iteration();
            (sum.saturating_add(step.value_iterated_to().saturating_mul(new)), count + new)
        });
        (sum / count.max(1)).max(INTERVAL_MICROSECONDS_MIN)
    }

    /// With the samples of those who did not ask while they waited.
    fn corrected(&self) -> Times {
        Times(self.0.clone_correct(self.usual()))
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Failures of one kind.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// What the first one said.
    pub said: String,
}

/// What one thread has counted, or all of them.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Whole answers that were right.
    pub answers: u64,
    /// Those of them that came before the end of the measured time.
    pub answers_in_time: u64,
    /// Answers from a cache, and all that said whether they are.
    pub hits: (u64, u64),
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// By kind, in the order of [`KINDS`].
    pub failures: [Failures; KINDS.len()],
    /// Connections opened.
    pub connections: u64,
    /// Those of them that took up an earlier TLS session.
    pub resumed: u64,
    /// Kept connections that ended before the answer began; the request was sent again.
    pub reopened: u64,
    /// Requests that fell due and were not sent before the end.
    pub unsent: u64,
    /// Requests that had no answer when the load was broken off.
    pub unfinished: u64,
    /// From when a request was due (open loop) or sent (closed) to the end of its answer.
    pub latency: Times,
    /// From when it was sent.
    pub service: Times,
    /// Opening connections, handshakes included.
    pub connecting: Times,
    /// How much later than due this program itself sent what it could have sent.
    pub late: Times,
}

impl Tally {
    pub(crate) fn fail(&mut self, failure: Failure) {
        let failures = &mut self.failures[failure.kind as usize];
        if failures.count == 0 {
            failures.said = failure.said.chars().take(SAID_BYTES_MAX).collect();
        }
        failures.count += 1;
    }

    /// Requests due at equal distances that nobody could send: each waited from when it was due to the end.
    pub(crate) fn miss(&mut self, first_wait: Duration, count: u64) {
        self.unsent += count;
        let steps = count.min(UNSENT_STEPS_MAX);
        for step in 0..steps {
            let wait = first_wait.mul_f64((steps - step) as f64 / steps as f64);
            self.latency.add_many(wait, (step + 1) * count / steps - step * count / steps);
        }
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.answers += other.answers;
        self.answers_in_time += other.answers_in_time;
        self.hits = (self.hits.0 + other.hits.0, self.hits.1 + other.hits.1);
        self.body_bytes += other.body_bytes;
        for (own, others) in self.failures.iter_mut().zip(&other.failures) {
            if own.count == 0 {
                own.said.clone_from(&others.said);
            }
            own.count += others.count;
        }
        self.connections += other.connections;
        self.resumed += other.resumed;
        self.reopened += other.reopened;
        self.unsent += other.unsent;
        self.unfinished += other.unfinished;
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.connecting.merge(&other.connecting);
        self.late.merge(&other.late);
    }

    /// All failures.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|failures| failures.count).sum()
    }

    /// Failures of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> &Failures {
        &self.failures[kind as usize]
    }
}

/// What this program itself took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// The share of the time that the busiest thread had a core.
    pub busy: f64,
    /// The share of the time that some thread wanted a core and had none.
    pub starved: f64,
}

/// Above this share of a core a thread has no reserve.
const BUSY_SHARE_MAX: f64 = 0.9;
/// Above this share of waiting for a core, other programs are in the way.
const STARVED_SHARE_MAX: f64 = 0.2;
/// Above this a rate was not kept, in microseconds.
const LATE_MICROSECONDS_MAX: f64 = 10_000.0;

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counts and times.
    pub tally: Tally,
    /// Seconds of the measured time.
    pub seconds: f64,
    /// Percentiles go by these: corrected for coordinated omission.
    pub latency: Times,
    /// What this program took.
    pub own: Own,
}

impl Outcome {
    pub(crate) fn new(tally: Tally, pace: Pace, seconds: f64, own: Own) -> Outcome {
        let latency = match pace {
            Pace::Open { .. } => tally.latency.clone(),
            Pace::Closed => tally.latency.corrected(),
        };
        Outcome { tally, seconds, latency, own }
    }

    /// Right answers a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.tally.answers_in_time as f64 / self.seconds } else { 0.0 }
    }

    /// Why the figures may be those of this program and not the server's.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let percent = |share: f64| (share * 100.0).min(100.0);
        if self.own.busy > BUSY_SHARE_MAX {
            doubts.push(format!(
                "this program was the bottleneck: its busiest thread used {:.0} % of a core; more threads, or another machine, are needed",
                percent(self.own.busy)
            ));
        }
        if self.own.starved > STARVED_SHARE_MAX {
            doubts.push(format!(
                "this program waited {:.0} % of the time for a core: the server, or something else, runs on the same ones",
                percent(self.own.starved)
            ));
        }
        let late = self.tally.late.at(0.99);
        if late > LATE_MICROSECONDS_MAX {
            doubts.push(format!(
                "this program sent one request in a hundred {:.0} ms or more later than due",
                late / 1000.0
            ));
        }
        if self.tally.of(Kind::Exhausted).count > 0 {
            doubts.push("this machine had no more ports, descriptors or memory for the load".to_owned());
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_in_a_closed_loop_is_counted_for_those_who_did_not_ask() {
        let mut times = Times::default();
        (0..990).for_each(|_| times.add(Duration::from_millis(1)));
        times.add(Duration::from_secs(1));
        assert!(times.at(0.99) < 1_100.0, "nine in ten hundred were fast: {}", times.at(0.99));
        let corrected = times.corrected();
        // One client, a millisecond each, a second lost: a thousand requests would have been made in it.
        assert!((1_980..2_000).contains(&corrected.count()), "{}", corrected.count());
        assert!(corrected.at(0.99) > 900_000.0, "{}", corrected.at(0.99));
        assert!((400_000.0..600_000.0).contains(&corrected.at(0.75)), "{}", corrected.at(0.75));
    }

    #[test]
    fn requests_that_were_never_sent_have_waited() {
        let mut tally = Tally::default();
        tally.miss(Duration::from_secs(2), 1_000_000);
        assert_eq!((tally.unsent, tally.latency.count()), (1_000_000, 1_000_000));
        assert!((990_000.0..1_010_000.0).contains(&tally.latency.at(0.5)), "{}", tally.latency.at(0.5));
        tally.miss(Duration::from_secs(1), 0);
        assert_eq!(tally.unsent, 1_000_000);
    }

    #[test]
    fn tallies_add_up_and_keep_one_example_of_each_kind() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        other.fail(Failure::new(Kind::Reset, "first"));
        other.fail(Failure::new(Kind::Reset, "second"));
        one.merge(&other);
        one.merge(&other);
        assert_eq!((one.of(Kind::Reset).count, one.of(Kind::Reset).said.as_str(), one.failed()), (4, "first", 4));
    }

    #[test]
    fn doubts_are_said() {
        let outcome = |own| Outcome::new(Tally::default(), Pace::Closed, 1.0, own);
        assert!(outcome(Own { busy: 0.5, starved: 0.0 }).doubts().is_empty());
        assert!(outcome(Own { busy: 0.99, starved: 0.0 }).doubts()[0].contains("99 %"));
        assert!(outcome(Own { busy: 0.5, starved: 0.5 }).doubts()[0].contains("for a core"));
    }
}
