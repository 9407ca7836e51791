//! The page of the metrics.

use super::document::Document;
use crate::histogram::HistogramFamily;
use crate::metric::{METRICS, MetricKind, MetricRow, OTHERS_PREFIX, Scope, instance_labels};
use crate::reason::WHY;
use std::collections::BTreeSet;

pub(super) fn page() -> Document {
    let mut page = Document::new("Metrics", "metrics that copal observe serves to Prometheus");
    page.say(
        "Samples of a metric with different labels do not overlap: their sum counts nothing twice. A metric whose description says \"part \
         of\" counts again what another metric counts. Counters begin at 0 with each worker; Prometheus' rate() and increase() allow for that.",
    );
    for scope in Scope::ALL {
        page.section(&format!("scope={}", scope.name()));
        if scope == Scope::Varnish {
            page.say(&format!(
                "Every other counter, as {OTHERS_PREFIX}SECTION_COUNTER in lower case, with _total at the end if it only grows: VBE.boot.b.req_x \
                 would be {OTHERS_PREFIX}vbe_req_x_total with the labels vcl and backend. Counters of VMODs are among them. Help is the line of the \
                 counter in copal-counters(7).",
            ));
        }
        for row in METRICS.iter().filter(|row| row.scope == scope) {
            page.item(row.name, &nature(row), &format!("{}.", row.help));
        }
    }
    page
}

fn nature(row: &MetricRow) -> String {
    let kind = match row.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
        MetricKind::Info => "info",
    };
    let mut labels: Vec<&str> = Vec::new();
    for sample in row.samples {
        let of_sample = instance_labels(sample.section).iter().copied().chain(sample.label.map(|(name, _)| name));
        labels.extend(of_sample.filter(|name| !labels.contains(name)).collect::<Vec<_>>());
    }
    if [crate::metric::ABORTS, crate::metric::SPANS_DROPPED].contains(&row.name) {
        labels.push("why");
    }
    if [crate::metric::ACCESS_LOG_LINES, crate::metric::ACCESS_LOG_SKIPPED].contains(&row.name) {
        labels.push("destination");
    }
    if row.name == crate::metric::ACCESS_LOG_DROPPED {
        labels.extend(["destination", "why"]);
    }
    if row.name == crate::metric::BUILD_INFO {
        labels.extend(["version", "varnish"]);
    }
    if let Some(family) = HistogramFamily::ALL.into_iter().find(|family| family.metric() == row.name) {
        labels.extend(family.instance_labels());
        labels.extend(family.labels(0).iter().map(|(name, _)| *name));
    }
    let counters: BTreeSet<String> = row
        .samples
        .iter()
        .flat_map(|sample| sample.counters.iter().map(move |name| format!("{}.{name}", sample.section)))
        .collect();
    let counters =
        if row.samples.len() == WHY.counters.len() { BTreeSet::from(["WHY.*".to_owned()]) } else { counters };
    let mut nature = kind.to_owned();
    if !labels.is_empty() {
        nature += &format!(", labels {}", labels.join(", "));
    }
    if !counters.is_empty() {
        nature += &format!(", from {}", counters.into_iter().collect::<Vec<_>>().join(" "));
    }
    nature
}
