//! The figures of a server, read from shared memory once a second.
//!
//! Counters and histograms are exact, and begin anew with each worker: a count that has fallen is
//! the growth since then. Next file: `history.rs`.

use super::history::{Counts, Latencies, quantile};
use crate::pulse::Pulse;
use serde_json::{Map, Value, json};
use shm::read::counters::{Block, CounterReader};
use shm::read::histograms::HistogramReader;
use shm::read::vsm::Vsm;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::Instant;
use surface::histogram::{HistogramFamily, STATUS_CLASSES};
use surface::legible;
use surface::limits::DASH_BACKENDS_MAX;
use surface::reason::{HANDLINGS, Handling, REASONS};

/// Reader of one server.
pub(crate) struct Sampler {
    vsm: Vsm,
    counters: CounterReader,
    histograms: HistogramReader,
    manager: Pulse,
    worker: Pulse,
    last: Totals,
    last_time: Option<Instant>,
    backends: HashMap<String, Backend>,
    first_bytes: HashMap<String, FirstBytes>,
}

/// Times to the first byte of a backend.
#[derive(Default)]
struct FirstBytes {
    /// Counts since the start of the worker.
    last: Latencies,
    /// Growth in each of the last intervals.
    recent: VecDeque<Latencies>,
}

/// Intervals over which times to the first byte are computed.
const FIRST_BYTE_INTERVALS: usize = 30;

impl FirstBytes {
    fn take(&mut self, now: Latencies) {
        let mut growth = now;
        // A count that has fallen is that of another worker.
        growth.iter_mut().zip(self.last).for_each(|(now, before)| *now = now.checked_sub(before).unwrap_or(*now));
        self.last = now;
        if self.recent.len() == FIRST_BYTE_INTERVALS {
            self.recent.pop_front();
        }
        self.recent.push_back(growth);
    }

    fn p95(&self) -> Option<f64> {
        let mut sum = Latencies::default();
        self.recent.iter().for_each(|one| sum.iter_mut().zip(one).for_each(|(sum, count)| *sum += count));
        quantile(&sum, 0.95)
    }
}

/// Sums since the start of the worker.
#[derive(Clone, Default)]
struct Totals {
    /// Segment of `MAIN`, another one after a restart.
    worker: u64,
    counts: Counts,
    by_handling: Vec<u64>,
    reasons: Vec<u64>,
    bans_added: u64,
    purges: u64,
}

/// The last sight of a backend.
#[derive(Clone, Copy, Default)]
struct Backend {
    requests: u64,
    failures: u64,
    is_healthy: bool,
}

/// One second.
pub(crate) struct Sample {
    /// Growth since the last one.
    pub counts: Counts,
    /// Values for the page, as its API has them.
    pub values: Map<String, Value>,
    /// Requests by handling, and decisions by reason, since the start of the worker.
    pub totals: (Vec<u64>, Vec<u64>),
    /// Things that happened.
    pub events: Vec<(&'static str, String)>,
}

impl Sampler {
    pub fn new(work_directory: &Path) -> Sampler {
        Sampler {
            vsm: Vsm::new(work_directory),
            counters: CounterReader::new(),
            histograms: HistogramReader::default(),
            manager: Pulse::default(),
            worker: Pulse::default(),
            last: Totals::default(),
            last_time: None,
            backends: HashMap::new(),
            first_bytes: HashMap::new(),
        }
    }

    /// Reads everything again.
    pub fn sample(&mut self, now: Instant) -> Sample {
        let status = self.vsm.poll();
        let (mut totals, first_bytes) = self.read_histograms();
        self.first_bytes.retain(|name, _| first_bytes.contains_key(name));
        for (name, counts) in first_bytes {
            self.first_bytes.entry(name).or_default().take(counts);
        }
        let mut events = Vec::new();
        let mut values = Map::new();
        let mut ages = (None, None);
        let (mut main, mut storages, mut backends) = (Map::new(), Vec::new(), Vec::new());
        let (mut seen, mut hidden) = (HashMap::new(), 0u64);
        let seconds = self.last_time.map_or(1.0, |last| now.saturating_duration_since(last).as_secs_f64().max(0.001));
        let (known, first_bytes) = (&self.backends, &self.first_bytes);
        self.counters.for_each(&self.vsm, |block| {
            let (section, instance) = block.ident.split_once('.').unwrap_or((block.ident, ""));
            let value = |name: &str| value(&block, name);
            match section {
                "MGT" => ages.0 = Some((block.serial, value("uptime"))),
                "MAIN" => {
                    ages.1 = Some((block.serial, value("uptime")));
                    totals.worker = block.serial;
                    totals.bans_added = value("bans_added");
                    totals.purges = value("n_purges");
                    for name in MAIN {
                        main.insert((*name).to_owned(), value(name).into());
                    }
                }
                "WHY" => totals.reasons = REASONS.iter().map(|row| value(row.word)).collect(),
                "SMA" | "SMF" | "SMU" => storages.push(json!({
                    "name": legible::line(instance.as_bytes()),
                    "kind": section,
                    "bytes": present(value("g_bytes")),
                    "free": present(value("g_space")),
                    "objects": present(value("g_alloc")),
                    "refused": value("c_fail"),
                })),
                "VBE" if backends.len() < DASH_BACKENDS_MAX => {
                    let p95 = first_bytes.get(instance).and_then(FirstBytes::p95);
                    let (shown, now) = backend(&block, instance, known.get(block.ident), seconds, p95);
                    if let Some(before) = known.get(block.ident).filter(|before| before.is_healthy != now.is_healthy) {
                        let name = legible::line(instance.as_bytes());
                        let state = if before.is_healthy { "is sick" } else { "is healthy again" };
                        events.push(("backend", format!("Backend {name} {state}")));
                    }
                    seen.insert(block.ident.to_owned(), now);
                    backends.push(shown);
                }
                "VBE" => hidden += 1,
                _ => {}
            }
        });
        self.backends = seen;
        let has_manager = self.manager.note(ages.0.filter(|_| status.manager_running), now);
        let has_worker = self.worker.note(ages.1.filter(|_| status.worker_running), now);
        let before = std::mem::replace(&mut self.last, totals.clone());
        let is_first = self.last_time.replace(now).is_none();
        let is_another = before.worker != totals.worker;
        if !is_first && is_another && totals.worker != 0 {
            events.push(("worker", "A new worker serves".to_owned()));
        }
        if !is_another && !is_first {
            let added = totals.bans_added.saturating_sub(before.bans_added);
            let purged = totals.purges.saturating_sub(before.purges);
            if added > 0 {
                events.push(("ban", format!("{added} {} added", if added == 1 { "ban" } else { "bans" })));
            }
            if purged > 0 {
                events.push(("purge", format!("{purged} {} purged", if purged == 1 { "object" } else { "objects" })));
            }
        }
        let base = if is_another { Totals::default() } else { before };
        let mut counts = if is_first { Counts::default() } else { growth(&totals.counts, &base.counts) };
        counts.seconds = seconds;
        let by_handling = HANDLINGS.iter().zip(&totals.by_handling).enumerate().map(|(place, (row, total))| {
            let before = base.by_handling.get(place).copied().unwrap_or(0);
            let grown = if is_first { 0 } else { total.saturating_sub(before) };
            (row.1.to_owned(), Value::from(grown as f64 / seconds))
        });
        values.insert("results".to_owned(), Value::Object(by_handling.collect()));
        values.insert("up".to_owned(), json!({"manager": has_manager, "worker": has_worker}));
        values.insert("uptime".to_owned(), ages.1.map_or(0, |age| age.1).into());
        values.insert("main".to_owned(), Value::Object(main));
        values.insert("storages".to_owned(), storages.into());
        values.insert("backends".to_owned(), backends.into());
        values.insert("backends_hidden".to_owned(), hidden.into());
        Sample { counts, values, totals: (totals.by_handling, totals.reasons), events }
    }

    fn read_histograms(&mut self) -> (Totals, HashMap<String, Latencies>) {
        let mut first_bytes = HashMap::<String, Latencies>::new();
        let mut totals = Totals { by_handling: vec![0; HANDLINGS.len()], ..Totals::default() };
        let is_hit =
            |handling: usize| matches!(HANDLINGS[handling].0, Handling::Hit | Handling::HitGrace | Handling::HitStale);
        self.histograms.for_each(&self.vsm, |block| {
            let (start, instance) = block.ident.split_once('.').unwrap_or((block.ident, ""));
            let Some(family) = HistogramFamily::ALL.into_iter().find(|family| family.name() == start) else { return };
            for (cell, total) in block.cells().filter(|(cell, _)| *cell < family.cells()) {
                let (count, class) = (total.count(), cell % STATUS_CLASSES.len());
                match family {
                    HistogramFamily::Request => {
                        let handling = cell / STATUS_CLASSES.len() % HANDLINGS.len();
                        totals.counts.requests += count;
                        totals.by_handling[handling] += count;
                        totals.counts.hits += if is_hit(handling) { count } else { 0 };
                        totals.counts.errors += if STATUS_CLASSES[class] == "5xx" { count } else { 0 };
                        let sums = totals.counts.latencies.iter_mut().zip(total.buckets);
                        sums.for_each(|(sum, count)| *sum += count);
                    }
                    HistogramFamily::Size => {
                        totals.counts.bytes = totals.counts.bytes.wrapping_add(total.sum);
                        if is_hit(cell % HANDLINGS.len()) {
                            totals.counts.hit_bytes = totals.counts.hit_bytes.wrapping_add(total.sum);
                        }
                    }
                    HistogramFamily::FirstByte => {
                        totals.counts.origin += count;
                        if first_bytes.len() < DASH_BACKENDS_MAX || first_bytes.contains_key(instance) {
                            let sums = first_bytes.entry(instance.to_owned()).or_default();
                            sums.iter_mut().zip(total.buckets).for_each(|(sum, count)| *sum += count);
                        }
                    }
                }
            }
        });
        (totals, first_bytes)
    }
}

/// Counters of `MAIN` that the page shows.
const MAIN: &[&str] = &[
    "client_req",
    "cache_hit",
    "cache_miss",
    "sess_conn",
    "sess_dropped",
    "n_object",
    "n_expired",
    "n_lru_nuked",
    "n_purges",
    "bans",
    "bans_added",
    "bans_completed",
    "fetch_failed",
    "backend_req",
    "threads",
    "vcl_fail",
];

fn value(block: &Block<'_>, name: &str) -> u64 {
    block.texts.iter().position(|text| text.name == name).map_or(0, |place| block.value(place))
}

/// A gauge that has wrapped below zero counts as zero, as in varnishstat.
fn present(value: u64) -> u64 {
    if value > i64::MAX as u64 { 0 } else { value }
}

fn backend(
    block: &Block<'_>,
    name: &str,
    before: Option<&Backend>,
    seconds: f64,
    p95: Option<f64>,
) -> (Value, Backend) {
    let value = |name: &str| value(block, name);
    let failures = ["fail", "unhealthy", "busy", "helddown", "aside_refused", "queue_full", "wait_timeout"];
    let has_health = block.texts.iter().any(|text| text.name == "healthy");
    let now = Backend {
        requests: value("req"),
        failures: failures.iter().map(|name| value(name)).sum(),
        is_healthy: !has_health || value("healthy") != 0,
    };
    let last = before.copied().unwrap_or(now);
    let rate = |now: u64, last: u64| now.saturating_sub(last) as f64 / seconds;
    let (vcl, name) = name.split_once('.').unwrap_or(("", name));
    let shown = json!({
        "vcl": legible::line(vcl.as_bytes()),
        "name": legible::line(name.as_bytes()),
        "healthy": now.is_healthy,
        "probes": format!("{:016x}", value("happy")),
        "connections": present(value("conn")),
        "waiting": present(value("waiting")),
        "requests": now.requests,
        "p95": p95,
        "rate": rate(now.requests, last.requests),
        "failures": now.failures,
        "failure_rate": rate(now.failures, last.failures),
        "failed": failures.iter().filter(|name| value(name) > 0).map(|name| ((*name).to_owned(), value(name).into()))
            .collect::<Map<String, Value>>(),
    });
    (shown, now)
}

fn growth(now: &Counts, before: &Counts) -> Counts {
    let mut latencies = now.latencies;
    latencies.iter_mut().zip(before.latencies).for_each(|(now, before)| *now = now.saturating_sub(before));
    Counts {
        seconds: 0.0,
        requests: now.requests.saturating_sub(before.requests),
        hits: now.hits.saturating_sub(before.hits),
        errors: now.errors.saturating_sub(before.errors),
        origin: now.origin.saturating_sub(before.origin),
        bytes: now.bytes.saturating_sub(before.bytes),
        hit_bytes: now.hit_bytes.saturating_sub(before.hit_bytes),
        latencies,
    }
}
