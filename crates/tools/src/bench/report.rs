//! The report on a load: for readers, and as JSON.

use load::failure::KINDS;
use load::plan::{Pace, Plan, Protocol};
use load::results::{Outcome, Times};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Percentiles that are reported, with their names.
const SHARES: [(f64, &str); 6] =
    [(0.5, "50 %"), (0.75, "75 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];

fn protocol(plan: &Plan) -> &'static str {
    match plan.protocol {
        Protocol::Http1 => "HTTP/1.1",
        Protocol::Http2 => "HTTP/2",
        Protocol::Http3 => "HTTP/3",
    }
}

/// Description of the load, in one line.
fn what(plan: &Plan) -> String {
    let scheme = if plan.target.tls { "https" } else { "http" };
    let pace = match plan.pace {
        Pace::Closed => "closed loop".to_owned(),
        Pace::Open { per_second, burst: 1 } => format!("open loop, {per_second} a second"),
        Pace::Open { per_second, burst } => format!("open loop, {per_second} a second, {burst} at a time"),
    };
    let per_connection = match plan.per_connection {
        None => String::new(),
        Some(0) => ", connections only".to_owned(),
        Some(count) => format!(", {count} requests a connection"),
    };
    let streams =
        if plan.protocol == Protocol::Http1 { String::new() } else { format!(" of {} streams", plan.streams) };
    format!(
        "{scheme}://{}  {}  {} connections{streams}{per_connection}  {pace}",
        plan.target.authority,
        protocol(plan),
        plan.connections
    )
}

fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 1_000_000.0 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

pub(super) fn text(plan: &Plan, outcome: &Outcome) -> String {
    let results = &outcome.results;
    let mut text = format!("{}\n\n", what(plan));
    let mut row = |name: &str, said: String| {
        let _ = writeln!(text, "{name:<14}{said}");
    };
    let rate = outcome.per_second();
    row("answers", format!("{} in {:.2} s, {rate:.1} a second", results.answers, outcome.seconds));
    let (hits, told) = results.hits;
    if told > 0 {
        row("hits", format!("{:.1} % (by X-Varnish)", 100.0 * hits as f64 / told as f64));
    }
    let megabytes = results.body_bytes as f64 / 1e6;
    row("bodies", format!("{megabytes:.1} MB, {:.1} MB a second", megabytes / outcome.seconds.max(1e-9)));
    let failures: Vec<_> = KINDS.iter().filter(|kind| results.of(**kind).count > 0).collect();
    if failures.is_empty() {
        row("failures", "none".to_owned());
    }
    for kind in failures {
        let of = results.of(*kind);
        row("failures", format!("{} {} (the first: {})", of.count, kind.name(), of.said));
    }
    if results.unsent > 0 {
        row("not sent", format!("{} requests were due and found no free connection", results.unsent));
    }
    if results.unfinished > 0 {
        row("broken off", format!("{} clients were at work", results.unfinished));
    }
    if results.connections > 0 {
        let resumed = if results.resumed > 0 { format!(", {} resumed", results.resumed) } else { String::new() };
        let times =
            format!("50 % in {}, 99 % in {}", time(results.connecting.at(0.5)), time(results.connecting.at(0.99)));
        row("connections", format!("{} opened{resumed}; {times}", results.connections));
    }
    if results.reopened > 0 {
        row(
            "",
            format!("{} kept ones were closed by the server before an answer began; asked again", results.reopened),
        );
    }
    let second = match plan.pace {
        Pace::Closed => "as measured",
        Pace::Open { .. } => "from sending",
    };
    let beside = beside(plan, outcome);
    if outcome.latency.count() > 0 {
        let _ = writeln!(text, "\n{:<14}{:>12}  {:>14}", "latency", "corrected", second);
        let mut row = |name: &str, one: f64, other: f64| {
            let _ = writeln!(text, "{name:<14}{:>12}  {:>14}", time(one), time(other));
        };
        SHARES.iter().for_each(|(share, name)| row(name, outcome.latency.at(*share), beside.at(*share)));
        row("longest", outcome.latency.max(), beside.max());
    }
    for doubt in outcome.doubts() {
        let _ = writeln!(text, "\nnote: {doubt}");
    }
    text
}

/// Times that are shown next to the corrected times.
fn beside<'a>(plan: &Plan, outcome: &'a Outcome) -> &'a Times {
    match plan.pace {
        Pace::Closed => &outcome.results.latency,
        Pace::Open { .. } => &outcome.results.service,
    }
}

fn times(times: &Times) -> Value {
    let mut all: serde_json::Map<_, _> =
        SHARES.iter().map(|(share, _)| (format!("p{}", share * 100.0), json!(times.at(*share)))).collect();
    all.insert("mean".to_owned(), json!(times.mean()));
    all.insert("max".to_owned(), json!(times.max()));
    all.insert("count".to_owned(), json!(times.count()));
    Value::Object(all)
}

pub(super) fn json(plan: &Plan, outcome: &Outcome) -> Value {
    let results = &outcome.results;
    let failures: serde_json::Map<_, _> = KINDS
        .iter()
        .filter(|kind| results.of(**kind).count > 0)
        .map(|kind| {
            (kind.name().to_owned(), json!({ "count": results.of(*kind).count, "first": results.of(*kind).said }))
        })
        .collect();
    let (rate, burst) = match plan.pace {
        Pace::Closed => (Value::Null, Value::Null),
        Pace::Open { per_second, burst } => (json!(per_second), json!(burst)),
    };
    json!({
        "protocol": protocol(plan), "tls": plan.target.tls, "connections": plan.connections,
        "streams": if plan.protocol == Protocol::Http1 { 1 } else { plan.streams },
        "per_connection": plan.per_connection, "rate": rate, "burst": burst, "threads": plan.threads,
        "seconds": outcome.seconds, "answers": results.answers, "answers_in_time": results.answers_in_time,
        "per_second": outcome.per_second(),
        "hits": results.hits.0, "hits_told": results.hits.1, "body_bytes": results.body_bytes,
        "failed": results.failed(), "failures": failures,
        "unsent": results.unsent, "unfinished": results.unfinished,
        "opened": results.connections, "resumed": results.resumed, "reopened": results.reopened,
        "latency_us": times(&outcome.latency), "beside_us": times(beside(plan, outcome)),
        "connecting_us": times(&results.connecting), "late_us": times(&results.late),
        "own_busy": outcome.own.busy, "own_starved": outcome.own.starved, "notes": outcome.doubts(),
    })
}
