//! The feed: figures of the present, their history and the events, made once a second for all
//! readers.

use super::history::{History, NAMES, Point, quantile};
use super::requests::Requests;
use super::sampler::Sampler;
use crate::totals::Totals;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use surface::limits::DASH_EVENTS_MAX;
use surface::reason::{HANDLINGS, REASONS};

/// Interval of the figures.
const INTERVAL: Duration = Duration::from_secs(1);
/// Minutes over which reasons are counted as recent.
const RECENT_MINUTES: usize = 5;
/// Intervals over which latencies are computed.
const LATENCY_INTERVALS: usize = 10;
/// Intervals over which rates are computed: counters are published about once a second, so that a
/// single interval may have two publications, or none.
const RATE_INTERVALS: usize = 3;

/// The present state.
#[derive(Default)]
struct State {
    number: u64,
    text: Arc<str>,
    history: History,
    events: VecDeque<Value>,
    events_made: u64,
    /// By handling, and by reason.
    totals: (Vec<u64>, Vec<u64>),
    /// The same at the beginning of each of the last minutes.
    before: VecDeque<(Vec<u64>, Vec<u64>)>,
    before_at: Option<Instant>,
}

/// The feed of one server.
#[derive(Default)]
pub(crate) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
}

/// Seconds since 1970.
fn clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Feed {
    /// Starts the thread that reads the server's figures; it lives as long as the process.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        work_directory: &Path,
        requests: &Arc<Mutex<Requests>>,
        totals: &Arc<Totals>,
    ) -> std::io::Result<Arc<Feed>> {
        let feed = Arc::new(Feed::default());
        let mut sampler = Sampler::new(work_directory);
        let (shared, requests, totals) = (Arc::clone(&feed), Arc::clone(requests), Arc::clone(totals));
        let run = move || {
            let mut next = Instant::now();
            loop {
                shared.take(&mut sampler, &requests, &totals);
                next += INTERVAL;
                let now = Instant::now();
                // After a suspension the missed intervals are one.
                next = next.max(now);
                thread::sleep(next - now);
            }
        };
        thread::Builder::new().name("figures".to_owned()).spawn(run)?;
        Ok(feed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, sampler: &mut Sampler, requests: &Mutex<Requests>, totals: &Totals) {
        let sample = sampler.sample(Instant::now());
        let ranked_one_of = requests.lock().unwrap_or_else(PoisonError::into_inner).ranked_one_of();
        let time = clock();
        let mut state = self.lock();
        state.number += 1;
        state.history.add(time as u64, &sample.counts);
        for (kind, text) in sample.events {
            state.add_event(kind, &text, time);
        }
        if state.before_at.is_none_or(|at| at.elapsed() >= Duration::from_secs(60)) {
            if state.before.len() == RECENT_MINUTES {
                state.before.pop_front();
            }
            state.before.push_back(sample.totals.clone());
            state.before_at = Some(Instant::now());
        }
        state.totals = sample.totals;
        let mut values = sample.values;
        let (rates, slow) = (state.history.recent(RATE_INTERVALS), state.history.recent(LATENCY_INTERVALS));
        let now = Point::of(time as u64, &rates);
        values.insert("number".to_owned(), state.number.into());
        values.insert("time".to_owned(), time.into());
        let mut figures: Map<String, Value> = named(&now);
        for (name, part) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            figures.insert(name.to_owned(), json!(quantile(&slow.latencies, part)));
        }
        values.insert("now".to_owned(), figures.into());
        let last = state.history.since(0, false).last().copied().unwrap_or_default();
        values.insert("point".to_owned(), json!([last.time, last.values()]));
        values.insert("events_made".to_owned(), state.events_made.into());
        values.insert(
            "log".to_owned(),
            json!({"overruns": totals.overruns(), "lost": totals.lost_requests(), "ranked_one_of": ranked_one_of}),
        );
        state.text = Value::Object(values).to_string().into();
        drop(state);
        self.changed.notify_all();
    }

    /// The figures as JSON, with their number.
    pub fn now(&self) -> (u64, Arc<str>) {
        let state = self.lock();
        (state.number, Arc::clone(&state.text))
    }

    /// Figures newer than those with this number; the present ones if none come in time.
    pub fn after(&self, number: u64, limit: Duration) -> (u64, Arc<str>) {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.number <= number);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (state.number, Arc::clone(&state.text))
    }

    /// Enters an event.
    pub fn note(&self, kind: &str, text: &str) {
        self.lock().add_event(kind, text, clock());
    }

    /// Points after a time, as columns.
    pub fn history(&self, from: u64, by_minute: bool) -> Value {
        let state = self.lock();
        let points: Vec<&Point> = state.history.since(from, by_minute).collect();
        let mut columns = Map::new();
        for (place, name) in NAMES.iter().enumerate() {
            columns.insert((*name).to_owned(), points.iter().map(|point| Value::from(point.values()[place])).collect());
        }
        let times: Vec<u64> = points.iter().map(|point| point.time).collect();
        json!({"step": if by_minute { 60 } else { 1 }, "time": times, "names": NAMES, "values": columns})
    }

    /// The events, the newest first.
    pub fn events(&self) -> Value {
        self.lock().events.iter().rev().cloned().collect()
    }

    /// Results and reasons: since the start of the worker, and in the last minutes.
    pub fn reasons(&self) -> Value {
        let state = self.lock();
        let empty = Default::default();
        let before = state.before.front().unwrap_or(&empty);
        let counts = |now: &[u64], before: &[u64], place: usize| {
            let total = now.get(place).copied().unwrap_or(0);
            let start = before.get(place).copied().unwrap_or(0);
            // A count that has fallen is that of another worker.
            (total, if start > total { total } else { total - start })
        };
        let results = HANDLINGS.iter().enumerate().map(|(place, row)| {
            let (total, recent) = counts(&state.totals.0, &before.0, place);
            json!({"result": row.1, "text": row.2, "total": total, "recent": recent})
        });
        let reasons = REASONS.iter().enumerate().filter_map(|(place, row)| {
            let (total, recent) = counts(&state.totals.1, &before.1, place);
            let result = row.handling.map(|handling| handling.word());
            (total > 0).then(|| {
                json!({"reason": row.word, "sentence": row.sentence, "advice": row.advice, "result": result,
                       "total": total, "recent": recent})
            })
        });
        let minutes = state.before.len();
        json!({"minutes": minutes, "results": results.collect::<Vec<_>>(), "reasons": reasons.collect::<Vec<_>>()})
    }
}

impl State {
    fn add_event(&mut self, kind: &str, text: &str, time: f64) {
        self.events_made += 1;
        if self.events.len() == DASH_EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(json!({"number": self.events_made, "time": time, "kind": kind, "text": text}));
    }
}

fn named(point: &Point) -> Map<String, Value> {
    NAMES.iter().zip(point.values()).map(|(name, value)| ((*name).to_owned(), Value::from(value))).collect()
}
