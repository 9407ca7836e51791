//! The counters over time: changes, averages since the start of the worker, moving averages, and
//! the hit rate.
//!
//! *Invariant:* a counter's history is dropped when its section disappears; if the same name comes
//! back after a restart it starts anew.

use std::collections::HashMap;
use std::sync::Arc;

use shm::read::counters::{CounterText, CounterValue};
use surface::quantity::hit_percent;

use super::{CacheCounts, Look};

/// Numbers of samples in the moving averages.
const SPANS: [u32; 3] = [10, 100, 1000];
/// Shortest time between samples from which a rate is computed, in seconds.
const SECONDS_MIN: f64 = 0.001;

/// An average of samples: at first of all of them, later each new one has a weight of
/// 1/`samples_max`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct MovingAverage {
    /// Number of samples, at most `samples_max`.
    pub samples: u32,
    samples_max: u32,
    /// The average; 0 without samples.
    pub value: f64,
}

impl MovingAverage {
    /// An empty average for each span.
    fn spans() -> [MovingAverage; 3] {
        SPANS.map(|samples_max| MovingAverage { samples: 0, samples_max, value: 0.0 })
    }

    fn add(&mut self, sample: f64) {
        self.samples = (self.samples + 1).min(self.samples_max);
        self.value += (sample - self.value) / f64::from(self.samples);
    }
}

/// One counter.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Point {
    pub name: String,
    pub text: Arc<CounterText>,
    section: u64,
    sampled_at: Option<f64>,
    /// The value was above 0 at some time.
    pub seen: bool,
    /// The present value.
    pub current: u64,
    /// Change per second since the previous sample; `None` before the second one.
    pub change: Option<f64>,
    /// Change per second since the worker started; `None` for a gauge.
    pub average: Option<f64>,
    /// Moving averages of a gauge's values or a counter's changes.
    pub moving: [MovingAverage; 3],
}

impl Point {
    fn new(value: CounterValue) -> Point {
        Point {
            name: value.name,
            text: value.text,
            section: value.section,
            sampled_at: None,
            seen: false,
            current: 0,
            change: None,
            average: None,
            moving: MovingAverage::spans(),
        }
    }

    fn sample(&mut self, value: u64, now: f64, uptime: u64) {
        if value == 0 && !self.seen {
            // The first change, and its averages, count from here.
            if self.sampled_at.replace(now).is_some() {
                self.add(0.0);
            }
            return;
        }
        self.seen = true;
        let before = std::mem::replace(&mut self.current, value);
        let seconds = self.sampled_at.replace(now).map(|at| (now - at).max(SECONDS_MIN));
        // Read as signed, so that decreases are negative; no counter exceeds 63 bits.
        self.change = seconds.map(|seconds| value.wrapping_sub(before) as i64 as f64 / seconds);
        match self.text.kind.as_str() {
            "gauge" => self.add(value as i64 as f64),
            "counter" => {
                self.average = (uptime > 0).then(|| value as f64 / uptime as f64);
                if let Some(change) = self.change {
                    self.add(change);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, sample: f64) {
        for average in &mut self.moving {
            average.add(sample);
        }
    }
}

/// The recent share of hits among lookups. Intervals without lookups are left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct HitRate {
    before: Option<CacheCounts>,
    /// Percentage of hits since the previous sample; `None` without lookups.
    pub now: Option<f64>,
    /// Moving averages of that share, 0 to 1.
    pub moving: [MovingAverage; 3],
}

impl HitRate {
    fn new() -> HitRate {
        HitRate { before: None, now: None, moving: MovingAverage::spans() }
    }

    /// Hits and misses since the start of the worker.
    pub fn counts(&self) -> Option<CacheCounts> {
        self.before
    }

    fn sample(&mut self, counts: Option<CacheCounts>) {
        self.now = None;
        let Some(now) = counts else { return };
        match self.before.replace(now) {
            Some(before) if before.section == now.section => {
                let hits = now.hits.saturating_sub(before.hits);
                self.now = hit_percent(hits, now.misses.saturating_sub(before.misses));
                if let Some(percent) = self.now {
                    self.moving.iter_mut().for_each(|average| average.add(percent / 100.0));
                }
            }
            Some(_) => *self = HitRate { before: counts, ..HitRate::new() },
            None => {}
        }
    }
}

/// Data derived from the samples so far.
pub(super) struct Samples {
    /// The counters in the order of the server's index.
    pub points: Vec<Point>,
    /// The cache's hit rate.
    pub hit_rate: HitRate,
    /// Age of the manager in seconds; `None` if it does not run.
    pub manager_uptime: Option<u64>,
    /// Age of the worker in seconds; `None` if it does not run.
    pub worker_uptime: Option<u64>,
}

impl Samples {
    /// The state before the first sample.
    pub fn new() -> Samples {
        Samples { points: Vec::new(), hit_rate: HitRate::new(), manager_uptime: None, worker_uptime: None }
    }

    /// Takes in a reading of the counters; `now` is a monotonic time in seconds.
    pub fn take(&mut self, look: Look, now: f64) {
        let mut before: HashMap<(u64, String), Point> =
            self.points.drain(..).map(|point| ((point.section, point.name.clone()), point)).collect();
        for value in look.values {
            let number = value.value;
            let mut point = before.remove(&(value.section, value.name.clone())).unwrap_or_else(|| Point::new(value));
            point.sample(number, now, look.worker_uptime);
            self.points.push(point);
        }
        self.hit_rate.sample(look.cache);
        self.manager_uptime = look.status.manager_running.then_some(look.manager_uptime);
        self.worker_uptime = look.status.worker_running.then_some(look.worker_uptime);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use shm::read::counters::parse_document;
    use shm::read::vsm::Status;

    /// Counters by name, kind, level, format and value, as a server in its `section` might publish
    /// them.
    pub(in crate::statistics) fn look(section: u64, rows: &[(&str, &str, &str, &str, u64)]) -> Look {
        let values = rows.iter().map(|(name, kind, level, format, value)| {
            let document = format!(
                "{{\"elem\": {{\"{name}\": {{\"type\": \"{kind}\", \"level\": \"{level}\", \"format\": \"{format}\", \
                 \"oneliner\": \"What {name} is\", \"docs\": \"More about it\", \"index\": 0}}}}}}"
            );
            let text = Arc::clone(&parse_document(document.as_bytes())[0]);
            CounterValue { name: (*name).to_owned(), section, value: *value, text }
        });
        let status = Status { manager_running: true, worker_running: true, changed: false };
        Look { values: values.collect(), status, manager_uptime: 90_061, worker_uptime: 10, cache: None }
    }

    fn one(kind: &'static str, value: u64) -> Look {
        look(1, &[("A.b", kind, "info", "integer", value)])
    }

    #[test]
    fn a_counter_is_shown_by_its_change_a_second() {
        let mut samples = Samples::new();
        samples.take(one("counter", 100), 0.0);
        assert_eq!((samples.points[0].change, samples.points[0].average), (None, Some(10.0)));
        samples.take(one("counter", 130), 2.0);
        samples.take(one("counter", 135), 3.0);
        let point = &samples.points[0];
        assert_eq!((point.current, point.change), (135, Some(5.0)));
        assert_eq!(point.moving.map(|average| (average.samples, average.value)), [(2, 10.0); 3]);
        samples.take(one("counter", 100), 4.0);
        assert_eq!(samples.points[0].change, Some(-35.0));
    }

    #[test]
    fn a_gauge_is_averaged_by_its_values() {
        let mut samples = Samples::new();
        for (at, value) in [(0.0, 4), (1.0, 8), (2.0, 0)] {
            samples.take(one("gauge", value), at);
        }
        let point = &samples.points[0];
        assert_eq!((point.average, point.moving[0].value, point.change), (None, 4.0, Some(-8.0)));
    }

    #[test]
    fn a_long_average_moves_slower_than_a_short_one() {
        let mut samples = Samples::new();
        for at in 0..500 {
            samples.take(one("gauge", if at < 400 { 10 } else { 20 }), f64::from(at));
        }
        let [short, middle, long] = samples.points[0].moving;
        assert!(short.value > 19.9 && (15.0..18.0).contains(&middle.value) && (11.0..13.0).contains(&long.value));
        assert_eq!([short.samples, middle.samples, long.samples], [10, 100, 500]);
    }

    #[test]
    fn counters_that_stayed_zero_are_unseen() {
        let mut samples = Samples::new();
        samples.take(one("counter", 0), 0.0);
        assert!(!samples.points[0].seen);
        samples.take(one("counter", 1), 1.0);
        samples.take(one("counter", 0), 2.0);
        assert!(samples.points[0].seen);
    }

    #[test]
    fn a_restarted_worker_starts_anew() {
        let mut samples = Samples::new();
        samples.take(one("counter", 1000), 0.0);
        samples.take(one("counter", 2000), 1.0);
        samples.take(look(2, &[("A.b", "counter", "info", "integer", 5)]), 2.0);
        let point = &samples.points[0];
        assert_eq!((point.current, point.change, point.moving[0].samples), (5, None, 0));
        samples.take(look(2, &[]), 3.0);
        assert!(samples.points.is_empty());
    }

    #[test]
    fn the_hit_rate_is_that_of_the_intervals_with_lookups() {
        let mut rate = HitRate::new();
        let counts = |section, hits, misses| Some(CacheCounts { section, hits, misses });
        for sample in [counts(1, 50, 50), counts(1, 58, 52), None, counts(1, 58, 52), counts(1, 62, 56)] {
            rate.sample(sample);
        }
        assert_eq!((rate.moving[0].samples, rate.moving[0].value), (2, 0.65));
        rate.sample(counts(2, 0, 0));
        assert_eq!((rate.moving[0].samples, rate.moving[0].value), (0, 0.0));
        rate.sample(counts(2, 3, 0));
        assert_eq!(rate.moving[2].value, 1.0);
    }

    #[test]
    fn no_number_is_too_large() {
        let mut samples = Samples::new();
        for (at, value) in [(0.0, u64::MAX), (0.0, 0), (0.0, 1 << 63), (f64::MAX, 7)] {
            samples.take(one("counter", value), at);
            samples.take(one("gauge", value), at);
        }
        assert!(samples.points[0].moving.iter().all(|average| average.value.is_finite()));
    }
}
