//! `cargo xtask store`: behaviour of a storage that is large, full or restarted, compared with
//! varnishd if installed.
//!
//! The store is filled through the network with small objects. Lookups in a few and in all of them
//! are compared; the worker is killed; all objects expire at one moment while others are requested;
//! objects are purged one by one and by tag; and a full storage gets objects of other sizes and
//! back, and of a hundred sizes again and again. Each server runs alone; times are wall-clock
//! unless CPU is mentioned. `--kills N` kills at random moments and checks every answer.

mod client;
mod files;
mod mixture;
mod removal;

use crate::origin::sized_origin;
use crate::place::{build, folder, free_port};
use crate::process::{Server, cpu_microseconds, memory_bytes};
use crate::servers::{Kind, Setting};
use client::{Client, fill, per_second, scattered};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Default body of a small object, in bytes.
const SMALL_BYTES: u64 = 100;
/// Number of objects in the small set.
const FEW: u64 = 10_000;
/// Number of lookups that are timed.
const LOOKUPS: u64 = 200_000;
/// Default number of times a storage is filled with objects of a hundred sizes.
const TURNS: u64 = 6;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--kills") {
        return kill(crate::task::number(arguments, "--kills", 0)?);
    }
    if !has("--as-built") {
        build()?;
    }
    let objects = crate::task::number(arguments, "--objects", 200_000)?;
    let bytes = crate::task::number(arguments, "--bytes", SMALL_BYTES)?;
    let only = crate::task::option(arguments, "--only");
    if let Some(only) = only
        && !SCENES.iter().any(|(what, _)| *what == only)
    {
        return Err(format!("there is no '{only}' to measure"));
    }
    // The first one fills an empty storage; the others are measured.
    let turns = crate::task::number(arguments, "--turns", TURNS)?.max(2);
    let loops = usize::try_from(crate::task::number(arguments, "--loops", 1)?.max(1)).unwrap_or(1);
    let (folder, origin) = (folder()?, sized_origin()?);
    let mut report = String::new();
    for kind in [Kind::Copal, Kind::Varnish] {
        if kind.program().is_none() || (kind == Kind::Varnish && has("--no-peer")) {
            println!("skipped: {}", kind.name());
            continue;
        }
        let scene = Scene { kind, origin, folder: folder.path().to_owned(), loops, objects, bytes, turns };
        let what = if has("--files") { "files".to_owned() } else { format!("{objects} objects of {bytes} bytes") };
        let _ = writeln!(report, "\n{}, {what}", kind.name());
        // A failed scene of a peer is reported, and the rest measured.
        let told = |what: &str, result: Result<String, String>| {
            result.unwrap_or_else(|error| format!("{what}: failed: {error}\n"))
        };
        if has("--files") {
            report += &told("traversal", scene.traversal());
            report += &told("cold pages", scene.cold());
            continue;
        }
        for (what, measure) in SCENES.iter().filter(|(what, _)| only.is_none_or(|only| only == *what)) {
            println!("{}: {what}", kind.name());
            report += &told(what, measure(&scene));
        }
    }
    println!("{report}");
    Ok(())
}

/// Kills the worker, or everything, at random moments under load: for storages in memory and for
/// files. It is an integration test (`kills.rs`), which does the same a few times.
fn kill(times: u64) -> Result<(), String> {
    let status = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--package", "copal", "--test", "integration", "--"])
        .args(["kills::", "--nocapture", "--test-threads", "1"])
        .env("COPAL_KILLS", times.to_string())
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("something wrong was delivered, or something came back".to_owned()) }
}

type Measure = fn(&Scene) -> Result<String, String>;

/// Measurements of a storage in memory, in this order.
const SCENES: [(&str, Measure); 5] = [
    ("size", Scene::size),
    ("death", Scene::death),
    ("purges", Scene::purges),
    ("mixture", Scene::mixture),
    ("kinds", Scene::kinds),
];

struct Scene {
    kind: Kind,
    origin: u16,
    folder: PathBuf,
    /// Number of event loops, each with a core; the last one is also that of the load.
    loops: usize,
    /// Number of small objects.
    objects: u64,
    /// Body of each, in bytes.
    bytes: u64,
    /// Number of times a storage is filled with objects of a hundred sizes.
    turns: u64,
}

fn small_of(number: u64, bytes: u64) -> String {
    format!("/object-{number}/{bytes}")
}

impl Scene {
    fn small(&self, number: u64) -> String {
        small_of(number, self.bytes)
    }

    fn start(&self, name: &str, mebibytes: u32, vcl: Option<String>) -> Result<(Server, u16), String> {
        let port = free_port()?;
        let folder = self.folder.join(format!("store-{}-{name}", self.kind.name()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let setting = Setting { cache_mebibytes: mebibytes, loops: self.loops, vcl, ..Setting::default() };
        let mut launch = self.kind.launch_with(port, self.origin, &folder, &setting)?;
        launch.arguments.extend(["-l".to_owned(), "2m".to_owned()]);
        let log = folder.join("log");
        let mut server = Server::start(&format!("0-{}", self.loops - 1), &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log)?;
        Ok((server, port))
    }

    /// A limit, in MiB, with room for `objects` objects.
    fn roomy(&self, objects: u64) -> u32 {
        let overhead = if self.kind == Kind::Copal { 600 } else { 2_500 };
        u32::try_from(64 + objects * (self.bytes + overhead) / (1 << 20)).unwrap_or(u32::MAX)
    }

    /// Filling, memory, lookups, and the objects that survive a kill of the worker.
    fn size(&self) -> Result<String, String> {
        let (server, port) = self.start("size", self.roomy(self.objects), None)?;
        let small = |number: u64| self.small(number);
        Client::new(port)?.ask_all((0..FEW.min(self.objects)).map(small))?;
        let empty = memory_bytes(&server.tree());
        let begin = Instant::now();
        fill(port, FEW.min(self.objects)..self.objects, small)?;
        let filled = per_second(self.objects.saturating_sub(FEW), begin);
        let bytes = memory_bytes(&server.tree()).saturating_sub(empty) / self.objects.saturating_sub(FEW).max(1);
        let mut client = Client::new(port)?;
        let mut costs = Vec::new();
        for bound in [FEW, self.objects, FEW, self.objects] {
            let before = cpu_microseconds(&server.tree()).0;
            client.ask_all(scattered(bound).take(LOOKUPS as usize).map(small))?;
            costs.push((cpu_microseconds(&server.tree()).0 - before) / LOOKUPS as f64);
        }
        let (few, all) = (costs[0].min(costs[2]), costs[1].min(costs[3]));
        let worker = server.tree().into_iter().max().ok_or("no worker")?;
        let killed = Instant::now();
        let pid = nix::unistd::Pid::from_raw(i32::try_from(worker).map_err(|error| error.to_string())?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).map_err(|error| error.to_string())?;
        let back = loop {
            let answered = Client::new(port).and_then(|mut client| client.ask_all(std::iter::once(small(1))));
            if answered.is_ok() {
                break killed.elapsed();
            }
            if killed.elapsed() > Duration::from_secs(60) {
                return Err("not back after its worker was killed".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let hits = Client::new(port)?.ask_all(scattered(self.objects).take(10_000).map(small))?;
        Ok(format!(
            "filled with {filled:.0} objects a second, {bytes} bytes each\n\
             lookup, CPU µs a request: {few:.1} in {FEW}, {all:.1} in all, ratio {:.2}\n\
             worker killed: first answer after {:.0} ms, then {:.1} % hits\n",
            all / few,
            back.as_secs_f64() * 1e3,
            hits as f64 / 100.0,
        ))
    }
}
