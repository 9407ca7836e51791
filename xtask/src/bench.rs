//! `cargo xtask bench`: CPU microseconds per request of whole process trees, as ratios to the bare epoll floor.
//!
//! All servers run at once, pinned to one core, and only the one under load is busy; the load runs on another core.
//! Rounds are interleaved over the servers, and the median of each cell is divided by the floor's median of the same
//! cell, so that a noisy neighbour affects all alike. Writes `bench.md` and `bench.json`.

use crate::floor::BODIES;
use crate::load::{Load, Outcome};
use crate::process::Server;
use crate::servers::{self, Kind};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A folder for the servers' files, in memory if there is such a file system: on a disk, the log that Copal and varnishd
/// write through a mapping causes page faults that an installation (with its state directory on tmpfs) does not have.
pub fn folder() -> Result<tempfile::TempDir, String> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.map_err(|error| error.to_string())
}

struct Running {
    kind: Kind,
    port: u16,
    server: Server,
}

#[derive(Clone, Copy)]
struct Cell {
    body: usize,
    connections: usize,
    close: bool,
}

impl Cell {
    fn title(self) -> String {
        let size = match BODIES[self.body] {
            1 => "1 B".to_owned(),
            n if n < 1 << 20 => format!("{} KiB", n >> 10),
            n => format!("{} MiB", n >> 20),
        };
        let kind = if self.close { ", close" } else { "" };
        format!("{size}, {}{kind}", self.connections)
    }
}

/// A free port on loopback.
pub fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// The core of the servers and that of the load; one is all there may be.
pub fn cores() -> (usize, usize) {
    let cores = std::thread::available_parallelism().map(usize::from).unwrap_or(1);
    if cores > 1 { (0, 1) } else { (0, 0) }
}

/// Pins this thread to one core.
pub fn pin(core: usize) -> Result<(), String> {
    let mut set = nix::sched::CpuSet::new();
    set.set(core).map_err(|error| error.to_string())?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).map_err(|error| error.to_string())
}

/// Builds the release binary of Copal, so that it lies next to this program.
pub fn build() -> Result<(), String> {
    let status = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--package", "copal"])
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("building copal failed".into()) }
}

/// `bench [--seconds S] [--rounds N] [--only NAME,…] [--bodies …] [--connections …] [--out DIR] [--memory]`
pub fn main(arguments: &[String]) -> Result<(), String> {
    build()?;
    let seconds: f64 = crate::number(arguments, "--seconds", 1.0)?;
    let rounds: usize = crate::number(arguments, "--rounds", 5)?;
    let bodies = crate::numbers(arguments, "--bodies", &BODIES[..4])?;
    let connections = crate::numbers(arguments, "--connections", &[50, 500])?;
    let only = crate::option(arguments, "--only");
    let out = PathBuf::from(crate::option(arguments, "--out").unwrap_or("target"));
    let (server_core, load_core) = cores();
    let folder = folder()?;
    let kinds: Vec<Kind> = servers::ALL
        .into_iter()
        .filter(|kind| *kind == Kind::Floor || only.is_none_or(|only| only.split(',').any(|n| n == kind.name())))
        .filter(|kind| {
            let there = kind.program().is_some();
            if !there {
                println!("skipped: needs {}", kind.name());
            }
            there
        })
        .collect();
    let mut running = Vec::new();
    let origin = free_port()?;
    for kind in kinds {
        let port = if kind == Kind::Floor { origin } else { free_port()? };
        running.push(start(kind, port, origin, folder.path(), server_core)?);
    }
    pin(load_core)?;
    let mut cells = Vec::new();
    for close in [false, true] {
        for body in &bodies {
            let body = BODIES.iter().position(|n| n == body).ok_or(format!("--bodies: one of {BODIES:?}"))?;
            cells.extend(connections.iter().map(|c| Cell { body, connections: *c, close }));
        }
    }
    // One request per connection gives the same result for every number of connections: keep the first.
    cells.retain(|cell| !cell.close || cell.connections == connections[0]);
    warm(&running, &cells)?;
    let mut results: Vec<Vec<Vec<Outcome>>> = vec![vec![Vec::new(); running.len()]; cells.len()];
    for round in 1..=rounds {
        for (at, cell) in cells.iter().enumerate() {
            for (number, one) in running.iter().enumerate() {
                if BODIES[cell.body] > one.kind.body_bytes_max() {
                    continue;
                }
                let outcome = measure(one, *cell, seconds)?;
                eprintln!(
                    "round {round}/{rounds}  {:<22} {:<8} {:>8.2} µs/request {:>9.0}/s p99 {:>6.0} µs{}",
                    cell.title(),
                    one.kind.name(),
                    outcome.cpu,
                    outcome.per_second,
                    outcome.p99,
                    if outcome.errors > 0 { format!("  {} errors", outcome.errors) } else { String::new() }
                );
                results[at][number].push(outcome);
            }
        }
    }
    let mut report = table(&cells, &running, &results);
    let mut json = json(&cells, &running, &results);
    drop(running);
    if arguments.iter().any(|argument| argument == "--memory") {
        let (text, value) = crate::memory::measure(folder.path())?;
        report.push_str(&text);
        json["memory"] = value;
    }
    println!("{report}");
    std::fs::create_dir_all(&out).map_err(|error| error.to_string())?;
    std::fs::write(out.join("bench.md"), &report).map_err(|error| error.to_string())?;
    let text = serde_json::to_string_pretty(&json).map_err(|error| error.to_string())?;
    std::fs::write(out.join("bench.json"), text).map_err(|error| error.to_string())?;
    println!("written: {0}/bench.md, {0}/bench.json", out.display());
    Ok(())
}

fn start(kind: Kind, port: u16, origin: u16, folder: &Path, core: usize) -> Result<Running, String> {
    let launch = kind.launch(port, origin, folder, 256)?;
    let log = folder.join(format!("{}.log", kind.name()));
    let mut server = Server::start(&core.to_string(), &launch.program, &launch.arguments, &log)?;
    server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", kind.name()))?;
    Ok(Running { kind, port, server })
}

/// Requests every object once before anything is measured, so that the caches answer from memory.
fn warm(running: &[Running], cells: &[Cell]) -> Result<(), String> {
    for one in running {
        for cell in cells {
            let load = Load {
                port: one.port,
                path: format!("/b{}", cell.body),
                connections: 1,
                seconds: 0.05,
                close: cell.close,
                pids: Vec::new(),
            };
            load.run().map_err(|error| format!("{}: {error}", one.kind.name()))?;
        }
    }
    Ok(())
}

fn measure(one: &Running, cell: Cell, seconds: f64) -> Result<Outcome, String> {
    Load {
        port: one.port,
        path: format!("/b{}", cell.body),
        connections: cell.connections,
        seconds,
        close: cell.close,
        pids: one.server.tree(),
    }
    .run()
    .map_err(|error| format!("{}: {error}", one.kind.name()))
}

/// The value in the middle; `None` without any.
pub fn median<T>(outcomes: &[T], value: impl Fn(&T) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = outcomes.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn table(cells: &[Cell], running: &[Running], results: &[Vec<Vec<Outcome>>]) -> String {
    let mut text = String::from(
        "CPU per request as a ratio to the floor (whole process tree; medians of interleaved rounds)\n\n| server |",
    );
    for cell in cells {
        let _ = write!(text, " {} |", cell.title());
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(cells.len()));
    text.push('\n');
    for (number, one) in running.iter().enumerate() {
        let _ = write!(text, "| {} |", one.kind.name());
        for result in results {
            let floor = median(&result[0], |o| o.cpu);
            let own = median(&result[number], |o| o.cpu);
            match (floor, own, number) {
                (Some(floor), Some(_), 0) => {
                    let _ = write!(text, " 1.00 ({floor:.2} µs) |");
                }
                (Some(floor), Some(own), _) if floor > 0.0 => {
                    let _ = write!(text, " {:.2} |", own / floor);
                }
                _ => text.push_str(" – |"),
            }
        }
        text.push('\n');
    }
    text.push_str("\n99th percentile of latency, µs\n\n");
    for (number, one) in running.iter().enumerate() {
        let _ = write!(text, "| {} |", one.kind.name());
        for result in results {
            match median(&result[number], |o| o.p99) {
                Some(p99) => {
                    let _ = write!(text, " {p99:.0} |");
                }
                None => text.push_str(" – |"),
            }
        }
        text.push('\n');
    }
    text
}

fn json(cells: &[Cell], running: &[Running], results: &[Vec<Vec<Outcome>>]) -> serde_json::Value {
    let mut rows = Vec::new();
    for (cell, result) in cells.iter().zip(results) {
        for (one, outcomes) in running.iter().zip(result) {
            rows.push(serde_json::json!({
                "server": one.kind.name(), "body_bytes": BODIES[cell.body], "connections": cell.connections,
                "close": cell.close,
                "cpu_us": median(outcomes, |o| o.cpu), "user_us": median(outcomes, |o| o.user),
                "per_second": median(outcomes, |o| o.per_second), "p50_us": median(outcomes, |o| o.p50),
                "p99_us": median(outcomes, |o| o.p99),
                "ratio": median(outcomes, |o| o.cpu).zip(median(&result[0], |o| o.cpu)).map(|(own, floor)| own / floor),
                "errors": outcomes.iter().map(|o| o.errors).sum::<u64>(),
            }));
        }
    }
    serde_json::json!({ "rows": rows })
}
