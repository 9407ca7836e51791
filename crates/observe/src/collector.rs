//! Shared memory to families: reads all counters of a server and applies the rows of
//! `surface::metric`.
//!
//! The server may start later, restart or end: its index is read again for each scrape. If there
//! would be too many series, the sections with the most of them are added up, each as one instance
//! `_other`. Next file: `exposition.rs`.

use crate::exposition::cut;
use crate::family::Family;
use crate::histograms::{Histograms, SERIES};
use crate::pulse::Pulse;
use crate::selection::Selection;
use crate::totals::Totals;
use shm::read::counters::{Block, CounterReader, CounterText};
use shm::read::vsm::Vsm;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Instant;
use surface::limits::OBSERVE_SERIES_MAX;
use surface::metric::{
    self, Abort, LineDrop, METRICS, MetricKind, OTHER_INSTANCES, OTHERS_PREFIX, Reading, SampleRow, Scope, SpanDrop,
    instance_labels,
};
use surface::version::{COPAL_VERSION, VARNISH_VERSION};

/// Reader of one server.
pub(crate) struct Collector {
    vsm: Vsm,
    reader: CounterReader,
    manager: Pulse,
    worker: Pulse,
    folds: HashMap<String, Fold>,
    histograms: Histograms,
}

/// The processes that run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Running {
    pub manager: bool,
    pub worker: bool,
}

impl Collector {
    /// A reader of the server with this work directory, which need not run yet.
    pub fn new(work_directory: &Path) -> Collector {
        Collector {
            vsm: Vsm::new(work_directory),
            reader: CounterReader::new(),
            manager: Pulse::default(),
            worker: Pulse::default(),
            folds: HashMap::new(),
            histograms: Histograms::default(),
        }
    }

    /// Reads the index again, and determines the processes that run.
    pub fn check(&mut self, now: Instant) -> Running {
        let status = self.vsm.poll();
        let manager = self.reader.one(&self.vsm, "MGT", "uptime").filter(|_| status.manager_running);
        let worker = self.reader.one(&self.vsm, "MAIN", "uptime").filter(|_| status.worker_running);
        Running { manager: self.manager.note(manager, now), worker: self.worker.note(worker, now) }
    }

    /// The wanted metrics.
    pub fn collect(&mut self, selection: &Selection, totals: &Totals, now: Instant) -> Vec<Family> {
        let running = self.check(now);
        let (histograms, is_folded) = self.histograms.collect(&self.vsm, selection);
        let of_histograms: usize = histograms.iter().map(|family| SERIES * family.histograms.len()).sum();
        let too_many = self.too_many(of_histograms);
        self.folds.retain(|section, _| too_many.contains(section));
        let mut families = Families::new(&selection.scopes);
        let folds = &mut self.folds;
        for fold in folds.values_mut() {
            fold.begin();
        }
        self.reader.for_each(&self.vsm, |block| {
            let (section, instance) = block.ident.split_once('.').unwrap_or((block.ident, ""));
            if too_many.contains(section) {
                folds.entry(section.to_owned()).or_default().add(&block);
            } else {
                let values = block.texts.iter().enumerate().map(|(place, text)| (text, block.value(place)));
                families.add(section, Instance::Named(instance), &values.collect::<Vec<_>>());
            }
        });
        for (section, fold) in folds {
            fold.end();
            families.add(section, Instance::Other, &fold.values());
        }
        families.add_own(running, is_folded || !too_many.is_empty(), totals);
        families.finish(histograms, OBSERVE_SERIES_MAX.saturating_sub(of_histograms), selection)
    }

    /// The sections to be added up so that the number of series stays within its limit, those with
    /// the most counters first. `of_histograms` series are those of histograms.
    fn too_many(&mut self, of_histograms: usize) -> HashSet<String> {
        let mut sections: HashMap<String, (usize, usize)> = HashMap::new();
        self.reader.for_each(&self.vsm, |block| {
            let section = block.ident.split('.').next().unwrap_or_default();
            let (counters, widest) = sections.entry(section.to_owned()).or_default();
            *counters += block.texts.len();
            *widest = block.texts.len().max(*widest);
        });
        let mut series =
            OWN_SERIES_MAX + of_histograms + sections.values().map(|(counters, _)| counters).sum::<usize>();
        let mut chosen = HashSet::new();
        while series > OBSERVE_SERIES_MAX {
            let candidates = sections.iter().filter(|(name, (all, one))| all > one && !chosen.contains(*name));
            let Some((name, (all, one))) = candidates.max_by_key(|(_, (all, one))| all - one) else { break };
            series -= all - one;
            chosen.insert(name.clone());
        }
        chosen
    }
}

/// Series that are not computed from counters, and those that share counters with others.
const OWN_SERIES_MAX: usize = 64;

/// A section whose segments are added up. Its counters never fall, though segments come and go: for
/// each of them the growth since the last scrape is added.
#[derive(Default)]
struct Fold {
    /// Values at the last scrape by segment.
    last: HashMap<u64, Vec<u64>>,
    /// Those segments that were seen during this one.
    seen: HashSet<u64>,
    /// Sums by name.
    sums: BTreeMap<String, (Arc<CounterText>, u64)>,
}

impl Fold {
    fn begin(&mut self) {
        self.seen.clear();
        for (text, sum) in self.sums.values_mut() {
            if text.kind != "counter" {
                *sum = 0;
            }
        }
    }

    fn add(&mut self, block: &Block<'_>) {
        self.seen.insert(block.serial);
        let last = self.last.entry(block.serial).or_default();
        last.resize(block.texts.len(), 0);
        for (place, (text, last)) in block.texts.iter().zip(last).enumerate() {
            let value = block.value(place);
            let amount = match text.kind.as_str() {
                "counter" => value.saturating_sub(std::mem::replace(last, value)),
                "gauge" => not_negative(value),
                _ => continue,
            };
            // Looked up by reference: a new key is made only once for each counter.
            match self.sums.get_mut(&text.name) {
                Some((_, sum)) => *sum = sum.wrapping_add(amount),
                None => drop(self.sums.insert(text.name.clone(), (Arc::clone(text), amount))),
            }
        }
    }

    fn end(&mut self) {
        self.last.retain(|serial, _| self.seen.contains(serial));
    }

    fn values(&self) -> Vec<(&Arc<CounterText>, u64)> {
        self.sums.values().map(|(text, sum)| (text, *sum)).collect()
    }
}

/// A gauge that has wrapped below zero counts as zero, as in varnishstat.
fn not_negative(value: u64) -> u64 {
    if value > i64::MAX as u64 { 0 } else { value }
}

/// Values of the labels of a section.
#[derive(Clone, Copy)]
enum Instance<'a> {
    /// The name of a segment after that of its section.
    Named(&'a str),
    /// All segments, added up.
    Other,
}

impl<'a> Instance<'a> {
    /// The labels of a sample in this section.
    fn labels(self, section: &str) -> Vec<(&'static str, &'a str)> {
        let names = instance_labels(section);
        match self {
            Instance::Other => names.iter().map(|name| (*name, OTHER_INSTANCES)).collect(),
            Instance::Named(text) => {
                let mut parts = text.splitn(names.len().max(1), '.');
                names.iter().map(|name| (*name, cut(parts.next().unwrap_or_default()))).collect()
            }
        }
    }
}

/// Samples of metrics by section: the place of their row, and the sample.
fn rows() -> &'static HashMap<&'static str, Vec<(usize, &'static SampleRow)>> {
    static ROWS: OnceLock<HashMap<&'static str, Vec<(usize, &'static SampleRow)>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows: HashMap<_, Vec<_>> = HashMap::new();
        for (place, row) in METRICS.iter().enumerate() {
            for sample in row.samples {
                rows.entry(sample.section).or_default().push((place, sample));
            }
        }
        rows
    })
}

/// The metrics of one scrape, as they come together.
struct Families<'a> {
    scopes: &'a [Scope],
    /// One for each row.
    named: Vec<Family>,
    /// Those of counters without a row.
    others: BTreeMap<String, Family>,
}

impl<'a> Families<'a> {
    fn new(scopes: &'a [Scope]) -> Families<'a> {
        let named = METRICS.iter().map(|row| Family::new(row.name, row.kind, row.help));
        Families { scopes, named: named.collect(), others: BTreeMap::new() }
    }

    fn wants(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Adds the counters of a segment.
    fn add(&mut self, section: &str, instance: Instance<'_>, values: &[(&Arc<CounterText>, u64)]) {
        let labels = instance.labels(section);
        let by_name: HashMap<&str, u64> = values.iter().map(|(text, value)| (text.name.as_str(), *value)).collect();
        let rows = rows().get(section).map(Vec::as_slice).unwrap_or_default();
        for (place, sample) in rows {
            let row = &METRICS[*place];
            if !self.wants(row.scope) {
                continue;
            }
            let known: Vec<u64> = sample.counters.iter().filter_map(|name| by_name.get(name)).copied().collect();
            if known.is_empty() {
                // Another version of Varnish.
                continue;
            }
            let value = computed(sample.reading, row.kind, &known);
            let own = sample.label;
            self.named[*place].add(&labels.iter().copied().chain(own).collect::<Vec<_>>(), value);
        }
        if self.wants(Scope::Varnish) {
            let has_row = |name: &str| rows.iter().any(|(_, sample)| sample.counters.contains(&name));
            for (text, value) in values.iter().filter(|(text, _)| !has_row(&text.name)) {
                self.add_other(section, &labels, text, *value);
            }
        }
    }

    fn add_other(&mut self, section: &str, labels: &[(&'static str, &str)], text: &CounterText, value: u64) {
        let is_counter = text.kind == "counter";
        let (kind, suffix) = if is_counter { (MetricKind::Counter, "_total") } else { (MetricKind::Gauge, "") };
        let element = as_name(&text.name);
        let element = element.strip_suffix(suffix).unwrap_or(&element);
        let name = format!("{OTHERS_PREFIX}{}_{element}{suffix}", as_name(section));
        let family = self.others.entry(name);
        let family = family.or_insert_with_key(|name| Family::new(name, kind, help(text)));
        family.add(labels, if is_counter { value } else { not_negative(value) });
    }

    /// Adds the counts of this process about the log.
    fn add_log(&mut self, totals: &Totals) {
        if !self.wants(Scope::Log) {
            return;
        }
        self.set(metric::LOG_OVERRUNS, &[], totals.overruns());
        self.set(metric::LOST_REQUESTS, &[], totals.lost_requests());
        self.set(metric::SPANS, &[], totals.spans());
        for why in SpanDrop::ALL {
            self.set(metric::SPANS_DROPPED, &[("why", why.name())], totals.dropped_spans(why));
        }
        for log in totals.access_logs() {
            let destination = ("destination", cut(&log.destination));
            self.set(metric::ACCESS_LOG_LINES, &[destination], log.written());
            self.set(metric::ACCESS_LOG_SKIPPED, &[destination], log.skipped());
            for why in LineDrop::ALL {
                self.set(metric::ACCESS_LOG_DROPPED, &[destination, ("why", why.name())], log.dropped(why));
            }
            let labels = [destination, ("why", metric::LINE_DROP_OVERRUN)];
            self.set(metric::ACCESS_LOG_DROPPED, &labels, totals.lost_requests());
        }
    }

    /// Adds what is not computed from counters.
    fn add_own(&mut self, running: Running, is_truncated: bool, totals: &Totals) {
        self.add_log(totals);
        if !self.wants(Scope::Process) {
            return;
        }
        self.set(metric::BUILD_INFO, &[("version", COPAL_VERSION), ("varnish", VARNISH_VERSION)], 1);
        self.set(metric::MANAGER_UP, &[], u64::from(running.manager));
        self.set(metric::WORKER_UP, &[], u64::from(running.worker));
        self.set(metric::TRUNCATED, &[], u64::from(is_truncated));
        self.set(metric::SCRAPES, &[], totals.scrapes());
        for abort in Abort::ALL {
            self.set(metric::ABORTS, &[("why", abort.name())], totals.aborts(abort));
        }
    }

    fn set(&mut self, name: &str, labels: &[(&'static str, &str)], value: u64) {
        if let Some(family) = self.named.iter_mut().find(|family| family.name == name) {
            family.add(labels, value);
        }
    }

    /// All wanted families with samples. More than `left` series that are not of histograms are
    /// left out: one section alone has them.
    fn finish(self, histograms: Vec<Family>, mut left: usize, selection: &Selection) -> Vec<Family> {
        let mut families = self.named;
        families.extend(self.others.into_values());
        families.retain(|family| selection.takes(&family.name));
        for family in histograms {
            // In the place of its row.
            match families.iter_mut().find(|place| place.name == family.name) {
                Some(place) => *place = family,
                None => families.push(family),
            }
        }
        let mut is_cut = false;
        for family in &mut families {
            is_cut |= family.samples.len() > left;
            while family.samples.len() > left {
                family.samples.pop_last();
            }
            left -= family.samples.len();
        }
        if is_cut && let Some(family) = families.iter_mut().find(|family| family.name == metric::TRUNCATED) {
            family.samples.values_mut().for_each(|value| *value = 1);
        }
        families.retain(|family| !family.is_empty());
        families
    }
}

fn computed(reading: Reading, kind: MetricKind, values: &[u64]) -> u64 {
    let present = |value: &u64| if kind == MetricKind::Gauge { not_negative(*value) } else { *value };
    match reading {
        Reading::Sum => values.iter().map(present).fold(0, u64::wrapping_add),
        Reading::SumAfterFirst => values.iter().fold(0, |sum: u64, value| sum.wrapping_add(*value)).saturating_sub(1),
        Reading::Flags => values.iter().map(|value| u64::from(value.count_ones())).sum(),
    }
}

/// Text as a part of a metric's name: lower-case letters, digits and `_`.
fn as_name(text: &str) -> String {
    text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' }).collect()
}

/// Its line of explanation; a metric without help is not served.
fn help(text: &CounterText) -> &str {
    if text.oneliner.is_empty() { &text.name } else { &text.oneliner }
}

#[cfg(test)]
mod tests;
