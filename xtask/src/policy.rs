//! `cargo xtask policy`: hit ratios of each eviction policy over generated traces, compared with
//! upper bounds.
//!
//! The traces are generated from seeds, so that every run gives the same result. LRU is exact, as
//! in Varnish and nginx; the others are those of the cache, with the same number of shards. `best`
//! evicts the object whose next request is farthest in the future; no cache exceeds `bound`. Prints
//! the tables of `docs/internals/measurements.md` and writes the plots next to it.

mod traces;

use crate::plot::{Frame, draw};
use eviction::EvictionPolicy;
use eviction::replay::{ReplayCounts, Request, Simulation, optimum};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use traces::{Bot, Trace};

/// Shards of the cache's index.
const SHARDS: usize = 256;
/// Sizes of the cache in the tables, as parts of the bytes of all requested objects.
const TABLE_SIZES: [f64; 2] = [0.01, 0.1];
/// Sizes in the plots.
const PLOT_SIZES: [f64; 8] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4];
/// Divisor for the part of the requests before the count begins.
const WARM_UP_PART: usize = 5;

const POLICIES: [EvictionPolicy; 4] =
    [EvictionPolicy::Lru, EvictionPolicy::S3Fifo, EvictionPolicy::Sieve, EvictionPolicy::TinyLfu];

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let requests = crate::task::number(arguments, "--requests", 1_000_000)?;
    let bot = crate::task::number(arguments, "--bot", 10_000_000)?;
    let shards = crate::task::number(arguments, "--shards", SHARDS)?;
    let out = crate::task::option(arguments, "--out").map_or_else(|| PathBuf::from("docs/plots"), PathBuf::from);
    let traces = traces::all(requests);
    println!("{}", table(&traces, shards));
    println!("{}", shard_table(&traces[traces.len() - 1]));
    println!("{}", bot_table(requests, bot, shards));
    if !arguments.iter().any(|argument| argument == "--no-plots") {
        plots(&traces, shards, &out)?;
    }
    Ok(())
}

/// The bytes of all requested objects.
fn footprint(requests: &[Request]) -> u64 {
    let mut seen = std::collections::HashSet::new();
    requests.iter().filter(|request| seen.insert(request.key)).map(|request| request.bytes).sum()
}

fn capacity(footprint: u64, part: f64) -> u64 {
    (footprint as f64 * part) as u64
}

fn replay(policy: EvictionPolicy, capacity: u64, shards: usize, requests: &[Request]) -> ReplayCounts {
    let shards = if policy == EvictionPolicy::Lru { 1 } else { shards };
    let mut simulation = Simulation::sharded(policy, capacity, shards);
    let (before, counted) = requests.split_at(requests.len() / WARM_UP_PART);
    for request in before {
        simulation.request(*request);
    }
    let warm = simulation.counts();
    for request in counted {
        simulation.request(*request);
    }
    simulation.counts().since(&warm)
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn table(traces: &[Trace], shards: usize) -> String {
    let mut text = String::from("Hits in percent of requests / of bytes\n\n| trace | size | distinct | once |");
    for policy in POLICIES {
        let _ = write!(text, " {} |", policy.name());
    }
    text.push_str(" best | bound |\n|---|---|---|---|---|---|---|---|---|---|\n");
    let mut sums = [(0.0, 0.0); POLICIES.len()];
    let mut rows = 0.0;
    for trace in traces {
        let footprint = footprint(&trace.requests);
        let (distinct, once) = trace.wonders();
        for part in TABLE_SIZES {
            let capacity = capacity(footprint, part);
            let from = trace.requests.len() / WARM_UP_PART;
            let _ = write!(text, "| {} | {} % | {distinct} | {} % |", trace.name, part * 100.0, percent(once));
            for (policy, sum) in POLICIES.into_iter().zip(&mut sums) {
                let counts = replay(policy, capacity, shards, &trace.requests);
                *sum = (sum.0 + counts.hit_ratio(), sum.1 + counts.byte_hit_ratio());
                let _ = write!(text, " {} / {} |", percent(counts.hit_ratio()), percent(counts.byte_hit_ratio()));
            }
            rows += 1.0;
            let best = optimum::belady(&trace.requests, capacity, from);
            let bound = optimum::bound(&trace.requests, capacity, from);
            let _ = write!(text, " {} / {} |", percent(best.hit_ratio()), percent(best.byte_hit_ratio()));
            let _ = writeln!(text, " {} / {} |", percent(bound.0), percent(bound.1));
        }
    }
    text.push_str("| mean | | | |");
    for (hits, bytes) in sums {
        let _ = write!(text, " {} / {} |", percent(hits / rows), percent(bytes / rows));
    }
    text.push_str(" | |\n");
    text
}

/// Loss of hits because each shard decides separately.
fn shard_table(trace: &Trace) -> String {
    let footprint = footprint(&trace.requests);
    let mut text =
        format!("{}: hits in percent of requests by objects in a shard\n\n| shards | objects in each |", trace.name);
    for policy in &POLICIES[1..] {
        let _ = write!(text, " {} |", policy.name());
    }
    text.push_str("\n|---|---|---|---|---|\n");
    for shards in [1, 64, 256, 1024, 4096] {
        let capacity = capacity(footprint, 0.05);
        let mut row = String::new();
        let mut objects = 0;
        for policy in &POLICIES[1..] {
            let mut simulation = Simulation::sharded(*policy, capacity, shards);
            for request in &trace.requests {
                simulation.request(*request);
            }
            objects = simulation.objects() / shards;
            let _ = write!(row, " {} |", percent(simulation.counts().hit_ratio()));
        }
        let _ = writeln!(text, "| {shards} | {objects} |{row}");
    }
    text
}

/// Effect of a bot that reads each page once on the frequently requested pages.
fn bot_table(requests: usize, pages: usize, shards: usize) -> String {
    let mut text = format!(
        "A bot reads {pages} pages once while {requests} requests ask for what is hot: hits of the latter, in percent\n\n\
         | policy | without | with | lost | policy's bytes an object |\n|---|---|---|---|---|\n"
    );
    for policy in POLICIES {
        let shards = if policy == EvictionPolicy::Lru { 1 } else { shards };
        let mut ratios = [0.0; 2];
        let mut bytes = 0.0;
        for (ratio, pages) in ratios.iter_mut().zip([0, pages]) {
            let bot = Bot::new(requests, pages);
            let mut simulation = Simulation::sharded(policy, bot.capacity_bytes(), shards);
            let (mut hits, mut counted) = (0, 0);
            bot.run(|request, is_hot, is_warm| {
                let is_hit = simulation.request(request);
                hits += u64::from(is_hit && is_hot && is_warm);
                counted += u64::from(is_hot && is_warm);
            });
            *ratio = hits as f64 / counted as f64;
            bytes = simulation.policy_bytes_per_object();
        }
        let [without, with] = ratios;
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.2} | {bytes:.1} |",
            policy.name(),
            without * 100.0,
            with * 100.0,
            (without - with) * 100.0
        );
    }
    text
}

/// Hit ratio over cache size, the latter on a logarithmic scale.
fn frame(title: &str) -> Frame<'_> {
    Frame {
        title,
        below: "size of the cache, in parts of all that is asked for; hits by requests",
        is_logarithmic: true,
        top: 1.0,
        height: |share| format!("{:.0} %", share * 100.0),
        place: |size| format!("{} %", size * 100.0),
    }
}

fn plots(traces: &[Trace], shards: usize, folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for trace in traces {
        let footprint = footprint(&trace.requests);
        let from = trace.requests.len() / WARM_UP_PART;
        let sized = |of: &dyn Fn(u64) -> f64| PLOT_SIZES.map(|part| (part, of(capacity(footprint, part)))).to_vec();
        let mut lines: Vec<(&str, Vec<(f64, f64)>)> = POLICIES
            .iter()
            .map(|policy| {
                let ratio = |capacity| replay(*policy, capacity, shards, &trace.requests).hit_ratio();
                (policy.name(), sized(&ratio))
            })
            .collect();
        lines.push(("best", sized(&|capacity| optimum::belady(&trace.requests, capacity, from).hit_ratio())));
        let path = folder.join(format!("eviction-{}.svg", trace.file));
        std::fs::write(&path, draw(&frame(&trace.name), &lines)).map_err(|error| error.to_string())?;
        println!("{}", path.display());
    }
    Ok(())
}
