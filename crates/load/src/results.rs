//! Results of a load: counts, failures by kind, and times.
//!
//! **Coordinated omission.** A client that waits for its answer before the next request sends
//! nothing while the server stalls, so one bad second leaves one bad sample among many thousand
//! good ones. In an open loop that cannot happen: requests are timed from their due time. For a
//! closed loop the missing samples are added afterwards: during a long wait a client would have
//! sent requests at its usual interval (`Times::usual`), and each of those requests would have
//! waited for the rest of it (the method of HdrHistogram's author, G. Tene). The measured values
//! are kept as well.

use crate::failure::{Failure, KINDS, Kind};
use crate::plan::Pace;
use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest time that is distinguished, in microseconds: an hour.
const LONGEST_MICROSECONDS: u64 = 3_600_000_000;
/// Shortest assumed interval of a client's requests, in microseconds; bounds the work of the
/// correction.
const INTERVAL_MICROSECONDS_MIN: u64 = 10;
/// Number of unsent requests up to which they are added to a histogram one by one; beyond it,
/// several at a time.
const UNSENT_STEPS_MAX: u64 = 100_000;
/// Bytes of an error text that are stored.
const SAID_BYTES_MAX: usize = 200;

/// Times, in microseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Times {
        // These bounds are valid, so this cannot fail; the smallest histogram would be used
        // otherwise.
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

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that a share (0 to 1) of all did not exceed, in microseconds; 0 if there are none.
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

    /// Usual interval of a client's requests: the mean, without the slowest hundredth.
    fn usual(&self) -> u64 {
        let bound = self.0.value_at_quantile(0.99);
        let usual = self.0.iter_recorded().take_while(|step| step.value_iterated_to() <= bound);
        let (sum, count) = usual.fold((0u64, 0u64), |(sum, count), step| {
            let new = step.count_since_last_iteration();
            (sum.saturating_add(step.value_iterated_to().saturating_mul(new)), count + new)
        });
        (sum / count.max(1)).max(INTERVAL_MICROSECONDS_MIN)
    }

    /// The times with samples for the requests that were not sent during waits.
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
    /// Number of failures.
    pub count: u64,
    /// Error text of the first one.
    pub said: String,
}

/// Counts of one thread, or of all.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Complete and correct answers.
    pub answers: u64,
    /// Correct answers that arrived before the end of the measured time.
    pub answers_in_time: u64,
    /// Answers from a cache, and all answers that show their source.
    pub hits: (u64, u64),
    /// Bytes of bodies.
    pub body_bytes: u64,
    /// Failures by kind, in the order of [`KINDS`].
    pub failures: [Failures; KINDS.len()],
    /// Connections opened.
    pub connections: u64,
    /// Connections that resumed an earlier TLS session.
    pub resumed: u64,
    /// Kept connections that ended before the answer began; the request was repeated.
    pub reopened: u64,
    /// Requests that were due but not sent before the end.
    pub unsent: u64,
    /// Requests without an answer when the load was stopped.
    pub unfinished: u64,
    /// Time from the due time (open loop) or from sending (closed) to the end of the answer.
    pub latency: Times,
    /// Time from sending to the end of the answer.
    pub service: Times,
    /// Time for opening connections, handshakes included.
    pub connecting: Times,
    /// Delay between due time and sending that this program itself caused.
    pub late: Times,
}

impl Results {
    pub(crate) fn fail(&mut self, failure: Failure) {
        let failures = &mut self.failures[failure.kind as usize];
        if failures.count == 0 {
            failures.said = failure.said.chars().take(SAID_BYTES_MAX).collect();
        }
        failures.count += 1;
    }

    /// Adds requests due at equal intervals that no client could send: each waited from its due
    /// time to the end.
    pub(crate) fn miss(&mut self, first_wait: Duration, count: u64) {
        self.unsent += count;
        let steps = count.min(UNSENT_STEPS_MAX);
        for step in 0..steps {
            let wait = first_wait.mul_f64((steps - step) as f64 / steps as f64);
            self.latency.add_many(wait, (step + 1) * count / steps - step * count / steps);
        }
    }

    pub(crate) fn merge(&mut self, other: &Results) {
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

    /// Failures of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> &Failures {
        &self.failures[kind as usize]
    }
}

/// Resources used by this program itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    /// The share of the time that the busiest thread ran on a core.
    pub busy: f64,
    /// The share of the time that some thread waited for a core.
    pub starved: f64,
}

/// Share of a core above which a thread has no reserve.
const BUSY_SHARE_MAX: f64 = 0.9;
/// Share of waiting for a core above which other programs interfere.
const STARVED_SHARE_MAX: f64 = 0.2;
/// Delay above which a rate was not met, in microseconds.
const LATE_MICROSECONDS_MAX: f64 = 10_000.0;

/// The result of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counts and times.
    pub results: Results,
    /// Seconds of the measured time.
    pub seconds: f64,
    /// Basis of the percentiles: corrected for coordinated omission.
    pub latency: Times,
    /// Resources used by this program.
    pub own: Own,
}

impl Outcome {
    pub(crate) fn new(results: Results, pace: Pace, seconds: f64, own: Own) -> Outcome {
        let latency = match pace {
            Pace::Open { .. } => results.latency.clone(),
            Pace::Closed => results.latency.corrected(),
        };
        Outcome { results, seconds, latency, own }
    }

    /// Correct answers per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.results.answers_in_time as f64 / self.seconds } else { 0.0 }
    }

    /// Reasons why the figures may be those of this program and not the server's.
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
        let late = self.results.late.at(0.99);
        if late > LATE_MICROSECONDS_MAX {
            doubts.push(format!(
                "this program sent one request in a hundred {:.0} ms or more later than due",
                late / 1000.0
            ));
        }
        if self.results.of(Kind::Exhausted).count > 0 {
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
        // One client, a millisecond each, a second lost: a thousand requests would have been sent
        // in it.
        assert!((1_980..2_000).contains(&corrected.count()), "{}", corrected.count());
        assert!(corrected.at(0.99) > 900_000.0, "{}", corrected.at(0.99));
        assert!((400_000.0..600_000.0).contains(&corrected.at(0.75)), "{}", corrected.at(0.75));
    }

    #[test]
    fn requests_that_were_never_sent_have_waited() {
        let mut results = Results::default();
        results.miss(Duration::from_secs(2), 1_000_000);
        assert_eq!((results.unsent, results.latency.count()), (1_000_000, 1_000_000));
        assert!((990_000.0..1_010_000.0).contains(&results.latency.at(0.5)), "{}", results.latency.at(0.5));
        results.miss(Duration::from_secs(1), 0);
        assert_eq!(results.unsent, 1_000_000);
    }

    #[test]
    fn results_add_up_and_keep_one_example_of_each_kind() {
        let (mut one, mut other) = (Results::default(), Results::default());
        other.fail(Failure::new(Kind::Reset, "first"));
        other.fail(Failure::new(Kind::Reset, "second"));
        one.merge(&other);
        one.merge(&other);
        assert_eq!((one.of(Kind::Reset).count, one.of(Kind::Reset).said.as_str(), one.failed()), (4, "first", 4));
    }

    #[test]
    fn doubts_are_said() {
        let outcome = |own| Outcome::new(Results::default(), Pace::Closed, 1.0, own);
        assert!(outcome(Own { busy: 0.5, starved: 0.0 }).doubts().is_empty());
        assert!(outcome(Own { busy: 0.99, starved: 0.0 }).doubts()[0].contains("99 %"));
        assert!(outcome(Own { busy: 0.5, starved: 0.5 }).doubts()[0].contains("for a core"));
    }
}
