//! `cargo xtask bench`: the whole table, compared with peers and the bare epoll floor.
//!
//! All servers of a scene run at once, pinned to one core, and only the one under load is busy; the
//! load runs on another core. Rounds are interleaved over the servers, and medians are compared, so
//! that interference affects all alike. CPU is that of whole process trees. Writes `bench.md`,
//! `bench.json` and plots, and with `--write` the page `docs/benchmarks.md`. Next files:
//! `bench/rows.rs`, `bench/start.rs`, `bench/running.rs`, `bench/report.rs`.

mod report;
pub mod rows;
pub mod running;
pub mod start;

use crate::measure::{Measured, hits, lasting, measure};
use crate::place::{self, cores, folder, pin};
use crate::servers::Build;
use load::choice::Choice;
use load::plan::Plan;
use report::{Report, Results};
use rows::{FULL, QUICK, Row, Scene, Size};
use running::Running;
use start::{Wanted, start};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Output file of `--write`.
const PAGE: &str = "docs/benchmarks.md";
/// Time limit of a load with a number of requests.
const LONGEST: Duration = Duration::from_secs(1800);

/// Divisor for the permitted misses among a row of hits: the first requests.
const HITS_MISSED_PART: u64 = 1000;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--as-built") {
        place::build()?;
    }
    let (size, seconds, rounds) = if has("--quick") { (QUICK, 0.1, 1) } else { (FULL, 1.0, 5) };
    let seconds: f64 = crate::task::number(arguments, "--seconds", seconds)?;
    let rounds: usize = crate::task::number(arguments, "--rounds", rounds)?;
    let listed = |name: &str| crate::task::option(arguments, name).map(|names| names.split(',').collect::<Vec<_>>());
    let (wanted, only) = (listed("--rows"), listed("--only"));
    let builds = crate::task::option(arguments, "--builds").map_or_else(|| Ok(Vec::new()), Build::listed)?;
    let out = PathBuf::from(crate::task::option(arguments, "--out").unwrap_or("target/bench"));
    load::drive::raise_descriptor_limit(200_000);
    let size = Size { idle: size.idle.min(place::connections_max() - 200), ..size };
    let mut scenes = if has("--seeds") { crate::seeds::scenes(has("--quick")) } else { rows::scenes(&size) };
    for scene in &mut scenes {
        scene.rows.retain(|row| wanted.as_ref().is_none_or(|names| names.iter().any(|name| matches(name, &row.name))));
    }
    scenes.retain(|scene| !scene.rows.is_empty());
    if scenes.is_empty() {
        return Err("--rows: there are no such rows".to_owned());
    }
    let (server_core, load_core) = cores();
    // An origin in this process must not use the load's core.
    let sized = crate::origin::sized_origin()?;
    pin(load_core)?;
    let mut results = Results::default();
    for (number, scene) in scenes.iter().enumerate() {
        eprintln!("scene {} of {}: {}", number + 1, scenes.len(), names(scene));
        let folder = folder()?;
        let (running, missing) =
            start(scene, sized, folder.path(), server_core, Wanted { only: only.as_deref(), builds: &builds })?;
        results.missing(&missing);
        if let Err(error) = one_scene(scene, &running, rounds, seconds, &mut results) {
            // A failed scene is reported, and the others are measured.
            eprintln!("scene {}: {error}", names(scene));
            results.failed(&format!("{}: {error}", names(scene)));
        }
    }
    let memory = has("--memory").then(|| crate::memory::measure(folder()?.path(), &builds)).and_then(|measured| {
        // The rows are kept in that case.
        measured.map_err(|error| results.failed(&format!("memory: {error}"))).ok()
    });
    let report = Report::new(&scenes, &results, memory, arguments);
    println!("{}", report.text);
    report.write(&out, if has("--seeds") { "seeds" } else { "bench" })?;
    if has("--write") {
        report.write_page(std::path::Path::new(PAGE), has("--seeds"))?;
    }
    Ok(())
}

/// A name of a row, or its beginning followed by `*`.
fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

fn names(scene: &Scene) -> String {
    scene.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Replaces `@` by a number that no other measurement has.
pub fn unique(plan: &Plan) -> Plan {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
    let mut plan = plan.clone();
    if let Choice::Counted { pattern, .. } | Choice::Zipf { pattern, .. } = &mut plan.choice {
        *pattern = pattern.replace('@', &number);
    }
    plan
}

/// Requests the objects once that a scene must hold before it is measured.
pub fn fill(scene: &Scene, one: &Running) -> Result<(), String> {
    let Some((pattern, count)) = scene.fill.as_ref().filter(|_| one.fills()) else { return Ok(()) };
    let choice = Choice::Counted { pattern: pattern.clone(), numbers: *count };
    let plan = Plan { choice, requests_max: Some(*count), duration: LONGEST, ..hits("/", 50.min(*count as usize)) };
    let filled = measure(&Plan { timeout: LONGEST, ..plan }, one.port_in_clear(), &[])?;
    if filled.requests >= *count {
        return Ok(());
    }
    Err(format!("{}: {} of {count} objects came: {:?}", one.name(), filled.requests, filled.notes))
}

fn one_scene(
    scene: &Scene,
    running: &[Running],
    rounds: usize,
    seconds: f64,
    results: &mut Results,
) -> Result<(), String> {
    for one in running {
        fill(scene, one)?;
    }
    for round in 1..=rounds {
        for row in &scene.rows {
            for one in running.iter().filter(|_| round == 1 || !row.is_long) {
                let Some(port) = row.port_at(one) else { continue };
                let outcome = one_measurement(row, one, port, seconds);
                let mut outcome = outcome.map_err(|error| format!("{}, {}: {error}", one.name(), row.name))?;
                outcome.notes.extend(few_hits(row, outcome.hits));
                eprintln!(
                    "round {round}/{rounds}  {:<16} {:<8} {:>9.2} µs/request {:>9.0}/s p99 {:>8.0} µs{}",
                    row.name,
                    one.name(),
                    outcome.cpu,
                    outcome.per_second,
                    outcome.p99,
                    if outcome.errors > 0 { format!("  {} errors", outcome.errors) } else { String::new() }
                );
                for note in &outcome.notes {
                    eprintln!("    note: {note}");
                }
                if outcome.requests > 0 {
                    results.add(row, one.name(), outcome);
                } else {
                    results.failed(&format!("{}, {}: nothing was answered in time", row.name, one.name()));
                }
            }
        }
    }
    Ok(())
}

fn one_measurement(row: &Row, one: &Running, port: u16, seconds: f64) -> Result<Measured, String> {
    let plan = unique(&row.plan);
    let plan = match row.is_long {
        true => Plan { duration: LONGEST, ..plan },
        false => lasting(plan, seconds),
    };
    let pids = one.pids();
    let Some(beside) = &row.beside else { return measure(&plan, port, &pids) };
    // It begins before and ends after the other; its results are ignored.
    let beside = lasting(unique(beside), seconds + 1.0);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| measure(&beside, port, &[]));
        let measured = measure(&plan, port, &pids);
        let misses = other.join().map_err(|_| "the load beside it panicked")??;
        if misses.requests == 0 { Err(format!("nothing was answered beside it: {:?}", misses.notes)) } else { measured }
    })
}

/// Warning if a measurement of hits contains misses.
fn few_hits(row: &Row, (hits, told): (u64, u64)) -> Option<String> {
    let is_wrong = row.title.starts_with("hits") && hits + told / HITS_MISSED_PART < told;
    is_wrong.then(|| format!("only {hits} of {told} answers were hits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_whole_or_by_their_beginning() {
        assert!(matches("hit-1k", "hit-1k") && !matches("hit-1k", "hit-1k-500"));
        assert!(matches("hit-*", "hit-1k-500") && matches("*", "esi") && !matches("hit-*", "esi"));
    }

    #[test]
    fn benchmark_row_of_hits_reports_misses() {
        let row = |title: &str| Row::new("row", title, hits("/b1", 1));
        assert_eq!(few_hits(&row("hits, 1 KiB"), (9_990, 10_000)), None);
        assert_eq!(few_hits(&row("hits, 1 KiB"), (0, 0)), None, "a server that does not tell");
        assert!(few_hits(&row("hits, 1 KiB"), (9_730, 10_000)).is_some_and(|note| note.contains("9730 of 10000")));
        assert_eq!(few_hits(&row("misses"), (0, 10_000)), None);
    }

    #[test]
    fn a_miss_is_one_in_every_round() {
        let plan = |plan: Plan| match unique(&plan).choice {
            Choice::Counted { pattern, .. } => pattern,
            Choice::Zipf { .. } | Choice::InTurn(_) => String::new(),
        };
        let choice = Choice::Counted { pattern: "/b1?@-{}".to_owned(), numbers: 9 };
        let (one, other) =
            (plan(Plan { choice: choice.clone(), ..hits("/", 1) }), plan(Plan { choice, ..hits("/", 1) }));
        assert!(one != other && one.ends_with("-{}") && !one.contains('@'), "{one} {other}");
    }
}
