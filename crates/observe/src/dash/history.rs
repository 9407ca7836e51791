//! Figures over time: a ring of 15 minutes with a point a second, and one of 24 hours with a point
//! a minute. Both are bounded by their number of points (about 300 KiB together).

use std::collections::VecDeque;
use surface::histogram::{BOUNDS, BUCKETS, Scale};

/// Points a second.
const SECONDS: usize = 15 * 60;
/// Points a minute.
const MINUTES: usize = 24 * 60;

/// Counts of latencies by bucket.
pub(crate) type Latencies = [u64; BUCKETS];

/// Counts of an interval.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counts {
    /// Length of the interval in seconds.
    pub seconds: f64,
    /// Finished client requests.
    pub requests: u64,
    /// Those answered from the cache.
    pub hits: u64,
    /// Responses with status 5xx.
    pub errors: u64,
    /// Requests to origins.
    pub origin: u64,
    /// Bytes of responses.
    pub bytes: u64,
    /// Those of hits.
    pub hit_bytes: u64,
    pub latencies: Latencies,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.seconds += other.seconds;
        self.requests += other.requests;
        self.hits += other.hits;
        self.errors += other.errors;
        self.origin += other.origin;
        self.bytes += other.bytes;
        self.hit_bytes += other.hit_bytes;
        self.latencies.iter_mut().zip(other.latencies).for_each(|(sum, count)| *sum += count);
    }
}

/// Value in seconds below which the share `part` of the counts lies, within a bucket by
/// interpolation. `None` if there are none.
pub(crate) fn quantile(latencies: &Latencies, part: f64) -> Option<f64> {
    let total: u64 = latencies.iter().sum();
    let wanted = part * total as f64;
    let (mut before, mut low) = (0.0, 0.0);
    for (bucket, count) in latencies.iter().enumerate().filter(|_| total > 0) {
        let high = if bucket < BOUNDS { Scale::Seconds.bound(bucket).unwrap_or(low) } else { low };
        if before + *count as f64 >= wanted && *count > 0 {
            return Some(low + (high - low) * ((wanted - before) / *count as f64));
        }
        (before, low) = (before + *count as f64, high);
    }
    None
}

/// One point: rates a second, times in seconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct Point {
    /// End of the interval, seconds since 1970.
    pub time: u64,
    pub requests: f32,
    pub hits: f32,
    pub errors: f32,
    pub origin: f32,
    pub bytes: f32,
    pub hit_bytes: f32,
    pub p50: f32,
    pub p95: f32,
    pub p99: f32,
}

impl Point {
    pub fn of(time: u64, counts: &Counts) -> Point {
        let seconds = counts.seconds.max(0.001);
        let rate = |count: u64| (count as f64 / seconds) as f32;
        let latency = |part: f64| quantile(&counts.latencies, part).unwrap_or(0.0) as f32;
        Point {
            time,
            requests: rate(counts.requests),
            hits: rate(counts.hits),
            errors: rate(counts.errors),
            origin: rate(counts.origin),
            bytes: rate(counts.bytes),
            hit_bytes: rate(counts.hit_bytes),
            p50: latency(0.5),
            p95: latency(0.95),
            p99: latency(0.99),
        }
    }

    /// The values in the order of [`NAMES`].
    pub fn values(&self) -> [f32; 9] {
        [self.requests, self.hits, self.errors, self.origin, self.bytes, self.hit_bytes, self.p50, self.p95, self.p99]
    }
}

/// Names of the values of a point.
pub(crate) const NAMES: [&str; 9] = ["requests", "hits", "errors", "origin", "bytes", "hit_bytes", "p50", "p95", "p99"];

/// Both rings.
#[derive(Default)]
pub(crate) struct History {
    seconds: VecDeque<Point>,
    minutes: VecDeque<Point>,
    /// The minute that is not over.
    minute: Counts,
    /// Last intervals, for figures of the present.
    recent: VecDeque<Counts>,
}

/// Intervals of the figures of the present.
const RECENT: usize = 10;

impl History {
    pub fn add(&mut self, time: u64, counts: &Counts) {
        push(&mut self.seconds, SECONDS, Point::of(time, counts));
        self.minute.add(counts);
        if self.minute.seconds >= 59.5 {
            push(&mut self.minutes, MINUTES, Point::of(time, &self.minute));
            self.minute = Counts::default();
        }
        push(&mut self.recent, RECENT, counts.clone());
    }

    /// The last `intervals` intervals, ten at most, together.
    pub fn recent(&self, intervals: usize) -> Counts {
        let mut sum = Counts::default();
        self.recent.iter().rev().take(intervals).for_each(|counts| sum.add(counts));
        sum
    }

    /// Points after a time, a second or a minute apart.
    pub fn since(&self, from: u64, by_minute: bool) -> impl Iterator<Item = &Point> {
        let ring = if by_minute { &self.minutes } else { &self.seconds };
        ring.iter().filter(move |point| point.time > from)
    }
}

fn push<T>(ring: &mut VecDeque<T>, most: usize, item: T) {
    if ring.len() == most {
        ring.pop_front();
    }
    ring.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_in_the_bucket_of_their_value() {
        let mut latencies = Latencies::default();
        assert_eq!(quantile(&latencies, 0.5), None);
        latencies[Scale::Seconds.bucket(2_000_000)] = 90;
        latencies[Scale::Seconds.bucket(300_000_000)] = 10;
        let bound = |nanoseconds| Scale::Seconds.bound(Scale::Seconds.bucket(nanoseconds)).unwrap();
        let (middle, high) = (quantile(&latencies, 0.5).unwrap(), quantile(&latencies, 0.99).unwrap());
        assert!(middle <= bound(2_000_000) && middle > bound(2_000_000) / 2.0, "{middle}");
        assert!(high <= bound(300_000_000) && high > bound(300_000_000) / 2.0, "{high}");
        latencies[BOUNDS] = 1000;
        assert!(quantile(&latencies, 0.99).unwrap() >= Scale::Seconds.bound(BOUNDS - 1).unwrap());
    }

    #[test]
    fn rings_are_bounded_and_minutes_are_means_of_their_seconds() {
        let mut history = History::default();
        for second in 1..=100_000u64 {
            let counts = Counts { seconds: 1.0, requests: second % 60, ..Counts::default() };
            history.add(second, &counts);
        }
        assert_eq!((history.since(0, false).count(), history.since(0, true).count()), (SECONDS, MINUTES));
        let minute = history.since(0, true).last().unwrap();
        assert!((minute.requests - 29.5).abs() < 0.01, "{minute:?}");
        assert_eq!(history.since(99_990, false).count(), 10);
        assert_eq!(history.recent(2).requests, (100_000 % 60) + (99_999 % 60));
        assert_eq!(history.recent(100).seconds, RECENT as f64);
    }
}
