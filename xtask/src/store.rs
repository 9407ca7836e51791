//! `cargo xtask store`: how a storage behaves when it is large, full or begun again, beside varnishd where it is installed.
//!
//! The store is filled through the front door with small objects. Lookups in a few and in all of them are compared; the
//! worker is killed; all objects die at one moment while others are asked for; and a full storage gets objects of other
//! sizes and back. Each server runs alone; times are wall-clock unless CPU is said. `--kills N` kills at random moments and checks every
//! answer.

mod files;

use crate::origin::sized_origin;
use crate::place::{build, folder, free_port};
use crate::process::{Server, cpu_microseconds, memory_bytes};
use crate::servers::Kind;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Body of a small object, in bytes.
const SMALL_BYTES: usize = 100;
/// Body of a large object, in bytes.
const LARGE_BYTES: usize = 1 << 20;
/// Requests that are sent before their answers are read.
const AHEAD: usize = 64;
/// How many objects are few.
const FEW: u64 = 10_000;
/// How many lookups are timed.
const LOOKUPS: u64 = 200_000;
/// Limit of the storage that gets objects of other sizes, in MiB.
const MIXED_MEBIBYTES: u32 = 64;
/// How long before they die the last of the objects that die together may be stored, in seconds.
const SPARE_SECONDS: u64 = 4;
/// `default_grace`: how long objects live beyond their time to live.
const GRACE_SECONDS: u64 = 10;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--kills") {
        return kill(crate::number(arguments, "--kills", 0)?);
    }
    if !has("--as-built") {
        build()?;
    }
    let objects = crate::number(arguments, "--objects", 200_000)?;
    let (folder, origin) = (folder()?, sized_origin()?);
    let mut report = String::new();
    for kind in [Kind::Copal, Kind::Varnish] {
        if kind.program().is_none() || (kind == Kind::Varnish && has("--no-peer")) {
            println!("skipped: {}", kind.name());
            continue;
        }
        let scene = Scene { kind, origin, folder: folder.path(), objects };
        let what =
            if has("--files") { "files".to_owned() } else { format!("{objects} objects of {SMALL_BYTES} bytes") };
        let _ = writeln!(report, "\n{}, {what}", kind.name());
        // What a peer cannot do is told, and the rest measured.
        let told = |what: &str, result: Result<String, String>| {
            result.unwrap_or_else(|error| format!("{what}: failed: {error}\n"))
        };
        if has("--files") {
            report += &told("traversal", scene.traversal());
            report += &told("cold pages", scene.cold());
            continue;
        }
        report += &told("size", scene.size());
        report += &told("death", scene.death());
        report += &told("mixture", scene.mixture());
    }
    println!("{report}");
    Ok(())
}

/// Kills the worker, or everything, at random moments under load: for storages in memory and for files. It is an integration test
/// (`kills.rs`), in which the same is done a few times.
fn kill(times: u64) -> Result<(), String> {
    let status = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--package", "copal", "--test", "integration", "--"])
        .args(["kills::", "--nocapture", "--test-threads", "1"])
        .env("COPAL_KILLS", times.to_string())
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("something wrong was delivered, or something came back".to_owned()) }
}

struct Scene<'a> {
    kind: Kind,
    origin: u16,
    folder: &'a Path,
    objects: u64,
}

/// A connection that sends requests ahead.
struct Client {
    port: u16,
    connection: BufReader<TcpStream>,
}

impl Client {
    fn new(port: u16) -> Result<Client, String> {
        let connection = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        let _ = connection.set_nodelay(true);
        let _ = connection.set_read_timeout(Some(Duration::from_secs(60)));
        Ok(Client { port, connection: BufReader::with_capacity(64 << 10, connection) })
    }

    /// Asks for all of these; returns how many answers were hits.
    fn ask_all(&mut self, mut paths: impl Iterator<Item = String>) -> Result<u64, String> {
        let (mut hits, mut requests, mut asked) = (0, Vec::new(), Vec::new());
        loop {
            asked.clear();
            asked.extend(paths.by_ref().take(AHEAD));
            if asked.is_empty() {
                return Ok(hits);
            }
            requests.clear();
            for path in &asked {
                let _ = write!(requests, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n");
            }
            self.connection.get_mut().write_all(&requests).map_err(|error| error.to_string())?;
            for path in &asked {
                hits += u64::from(self.answer().map_err(|error| format!("port {}: {path}: {error}", self.port))?);
            }
        }
    }

    /// Reads an answer to its end; returns whether it was a hit: its `X-Varnish` has two numbers.
    fn answer(&mut self) -> std::io::Result<bool> {
        let (mut length, mut is_hit, mut line) = (0, false, String::new());
        loop {
            line.clear();
            if self.connection.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.split_once(':') else {
                if line == "\r\n" {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or(0),
                "x-varnish" => is_hit = value.split_whitespace().count() == 2,
                _ => {}
            }
        }
        std::io::copy(&mut (&mut self.connection).take(length), &mut std::io::sink())?;
        Ok(is_hit)
    }
}

fn small(number: u64) -> String {
    format!("/object-{number}/{SMALL_BYTES}")
}

/// Numbers below `bound`, scattered, always the same.
fn scattered(bound: u64) -> impl Iterator<Item = u64> {
    (1u64..).map(move |n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % bound.max(1))
}

fn per_second(count: u64, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

impl Scene<'_> {
    fn start(&self, name: &str, mebibytes: u32) -> Result<(Server, u16), String> {
        let port = free_port()?;
        let folder = self.folder.join(format!("store-{}-{name}", self.kind.name()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut launch = self.kind.launch(port, self.origin, &folder, mebibytes)?;
        launch.arguments.extend(["-l".to_owned(), "2m".to_owned()]);
        let log = folder.join("log");
        let mut server = Server::start("0", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log)?;
        Ok((server, port))
    }

    /// A limit that holds all objects, also those of the peer.
    fn roomy(&self) -> u32 {
        u32::try_from(64 + self.objects / 400).unwrap_or(u32::MAX)
    }

    /// Filling, memory, lookups, and what is left when the worker is killed.
    fn size(&self) -> Result<String, String> {
        let (server, port) = self.start("size", self.roomy())?;
        let mut client = Client::new(port)?;
        client.ask_all((0..FEW.min(self.objects)).map(small))?;
        let empty = memory_bytes(&server.tree());
        let begin = Instant::now();
        client.ask_all((FEW.min(self.objects)..self.objects).map(small))?;
        let filled = per_second(self.objects.saturating_sub(FEW), begin);
        let bytes = memory_bytes(&server.tree()).saturating_sub(empty) / self.objects.saturating_sub(FEW).max(1);
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

    /// All objects die at one moment, while others are asked for one by one.
    fn death(&self) -> Result<String, String> {
        let (server, port) = self.start("death", self.roomy())?;
        let mut client = Client::new(port)?;
        // Fills as fast as above, which is guessed generously; what dies before all are there would hide the rest.
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let deadline = now() + self.objects / 5_000 + SPARE_SECONDS;
        client.ask_all((0..self.objects).map(|number| format!("/until-{deadline}/{number}/{SMALL_BYTES}")))?;
        client.ask_all((0..100).map(small))?;
        let mut quiet = Vec::new();
        let mut during = Vec::new();
        while now() < deadline + GRACE_SECONDS + SPARE_SECONDS {
            for number in 0..100 {
                let begin = Instant::now();
                client.ask_all(std::iter::once(small(number)))?;
                let took = begin.elapsed().as_secs_f64() * 1e6;
                if now() + 2 < deadline + GRACE_SECONDS { &mut quiet } else { &mut during }.push(took);
            }
        }
        drop(server);
        let at = |times: &mut Vec<f64>, share: f64| {
            times.sort_by(f64::total_cmp);
            times.get((times.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
        };
        Ok(format!(
            "all die at once: hits p99 {:.0} µs before, {:.0} µs meanwhile; p99.9 {:.0} and {:.0} µs\n",
            at(&mut quiet, 0.99),
            at(&mut during, 0.99),
            at(&mut quiet, 0.999),
            at(&mut during, 0.999),
        ))
    }

    /// A full storage gets large objects in place of small ones, and small ones again.
    fn mixture(&self) -> Result<String, String> {
        let (server, port) = self.start("mixture", MIXED_MEBIBYTES)?;
        let mut client = Client::new(port)?;
        let before = memory_bytes(&server.tree());
        let capacity = u64::from(MIXED_MEBIBYTES) << 20;
        let (few, many) = (capacity / 2_000, capacity / 400);
        let speed = |client: &mut Client, from: u64, count: u64| -> Result<f64, String> {
            let begin = Instant::now();
            client.ask_all((from..from + count).map(small))?;
            Ok(per_second(count, begin))
        };
        let empty = speed(&mut client, 0, few)?;
        speed(&mut client, few, many)?;
        let full = speed(&mut client, few + many, few)?;
        let large = 3 * capacity / LARGE_BYTES as u64;
        let begin = Instant::now();
        client.ask_all((0..large).map(|number| format!("/large-{number}/{LARGE_BYTES}")))?;
        let large_speed = per_second(large, begin);
        let after_large = speed(&mut client, few * 2 + many, few)?;
        speed(&mut client, few * 3 + many, many)?;
        let again = speed(&mut client, few * 3 + many * 2, few)?;
        std::thread::sleep(Duration::from_millis(1500));
        let grown = memory_bytes(&server.tree()).saturating_sub(before) as f64 / capacity as f64;
        Ok(format!(
            "small objects a second: {empty:.0} into an empty storage, {full:.0} into a full one, {after_large:.0} in place of \
             large ones, {again:.0} when they are all there is; large ones {large_speed:.0} a second\n\
             memory grown by {grown:.2} × the limit of {MIXED_MEBIBYTES} MiB\n",
        ))
    }
}
