//! One measurement: a load on one server, and the CPU time that its processes took for it.

use crate::process;
use load::drive::{Event, run};
use load::plan::{Plan, Target};
use std::time::Duration;

/// Headers of a browser.
const HEADERS: [(&str, &str); 3] = [
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) load/1.0"),
    ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
];

/// The result.
#[derive(Debug, Default, Clone)]
pub struct Measured {
    /// Correct answers in the measured time.
    pub requests: u64,
    /// Failures.
    pub errors: u64,
    /// Requests of an open loop that were due but found no free connection.
    pub unsent: u64,
    /// Correct answers per second.
    pub per_second: f64,
    /// Median latency, microseconds.
    pub p50: f64,
    /// 99th percentile of latency, microseconds: as measured in a closed loop, from the due time in
    /// an open one.
    pub p99: f64,
    /// CPU microseconds of the processes for each answer.
    pub cpu: f64,
    /// The share of it in user mode.
    pub user: f64,
    /// Hits, and answers that show if they were hits.
    pub hits: (u64, u64),
    /// Bytes of bodies per second.
    pub bytes_per_second: f64,
    /// Additional resident bytes for each idle connection.
    pub idle_bytes: f64,
    /// Limitations of the load itself.
    pub notes: Vec<String>,
}

/// A closed loop over HTTP/1 that requests a path from a port on loopback, like a browser.
pub fn hits(path: &str, connections: usize) -> Plan {
    let mut plan = Plan::new(Target { path: path.to_owned(), ..Target::local(0, false) });
    plan.connections = connections;
    plan.headers = HEADERS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    plan.expect_status = Some(200);
    plan
}

/// The plan with this duration, after a warm-up.
pub fn lasting(plan: Plan, seconds: f64) -> Plan {
    let warm_up = Duration::from_secs_f64((seconds / 5.0).max(0.2));
    Plan { duration: Duration::from_secs_f64(seconds), warm_up, ..plan }
}

/// Runs the load on this port, and measures these processes during it.
pub fn measure(plan: &Plan, port: u16, pids: &[u32]) -> Result<Measured, String> {
    let target = Target { path: plan.target.path.clone(), ..Target::local(port, plan.target.tls) };
    let plan = Plan { target, ..plan.clone() };
    let resident = || if plan.idle > 0 { process::memory_bytes(pids) as f64 } else { 0.0 };
    let empty = resident();
    let (mut before, mut after, mut held) = ((0.0, 0.0), (0.0, 0.0), empty);
    let outcome = run(&plan, &mut |event| {
        match event {
            Event::Begin => {
                held = resident();
                before = process::cpu_microseconds(pids);
            }
            Event::End => after = process::cpu_microseconds(pids),
            Event::Tick { .. } => {}
        }
        true
    })?;
    let results = &outcome.results;
    let times = match plan.pace {
        load::plan::Pace::Closed => &results.latency,
        load::plan::Pace::Open { .. } => &outcome.latency,
    };
    let per = |microseconds: f64| microseconds / results.answers_in_time.max(1) as f64;
    let failures = load::failure::KINDS.iter().map(|kind| results.of(*kind)).filter(|failures| failures.count > 0);
    Ok(Measured {
        requests: results.answers_in_time,
        errors: results.failed(),
        unsent: results.unsent,
        per_second: outcome.per_second(),
        p50: times.at(0.5),
        p99: times.at(0.99),
        cpu: per(after.0 - before.0),
        user: per(after.1 - before.1),
        hits: results.hits,
        bytes_per_second: results.body_bytes as f64 / outcome.seconds.max(1e-9),
        idle_bytes: (held - empty) / plan.idle.max(1) as f64,
        notes: outcome.doubts().into_iter().chain(failures.map(|failures| failures.said.clone())).collect(),
    })
}
