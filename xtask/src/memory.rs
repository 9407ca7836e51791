//! Memory use compared with the stock varnishd: bytes per small object, per idle connection, of the
//! empty process, and after churn.
//!
//! Sizes are proportional set sizes of the whole process tree, so that memory shared by manager and
//! worker counts once. Before each measurement a page is requested many times, and a few others
//! once, so that the log's ring and the program itself are resident.

mod object;

use crate::origin::sized_origin;
use crate::place::free_port;
use crate::process::{Server, memory_bytes};
use crate::servers::{Build, Kind};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Default number of objects stored to measure one.
const OBJECTS: u64 = 100_000;
/// Body of each, in bytes.
const OBJECT_BODY_BYTES: usize = 100;
/// Number of idle connections held to measure one.
const CONNECTIONS: usize = 2_000;
/// Limit of the cache that is churned, in MiB.
const CHURN_LIMIT_MEBIBYTES: u32 = 64;
/// Bytes of bodies that pass through it, as a multiple of its limit; a default.
const CHURN_TIMES: u64 = 10;

/// Time limit of a churn: the stock varnishd can take a fifth of a second for each answer when it
/// is full.
const CHURN_TIME_MAX: Duration = Duration::from_secs(120);

/// Requests for one page that fill the log's ring; a tenth as many are for others.
const WARM_UP: usize = 2_000;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has("--object") {
        println!("{}", object::table(crate::task::number(arguments, "--objects", 200_000)?)?);
        return Ok(());
    }
    if !has("--as-built") {
        crate::place::build()?;
    }
    let kinds = if has("--no-peer") { &[Kind::Copal][..] } else { &[Kind::Copal, Kind::Varnish] };
    let amounts = (
        crate::task::number(arguments, "--objects", OBJECTS)?,
        crate::task::number(arguments, "--churn", CHURN_TIMES)?,
    );
    println!("{}", measure_these(kinds, crate::place::folder()?.path(), amounts)?.0);
    Ok(())
}

/// Measures Copal, other builds of it and, if installed, varnishd; returns Markdown and JSON.
pub fn measure(folder: &Path, builds: &[Build]) -> Result<(String, serde_json::Value), String> {
    let kinds: Vec<Kind> =
        [Kind::Copal].into_iter().chain(builds.iter().copied().map(Kind::Build)).chain([Kind::Varnish]).collect();
    measure_these(&kinds, folder, (OBJECTS, CHURN_TIMES))
}

/// `amounts`: objects, and the number of times the storage is filled.
fn measure_these(kinds: &[Kind], folder: &Path, amounts: (u64, u64)) -> Result<(String, serde_json::Value), String> {
    let origin = sized_origin()?;
    let mut text = String::from(
        "\nMemory\n\n| server | empty, MiB | bytes per object of 100 bytes with five fields | bytes per idle connection | after churn, × limit of 64 MiB |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let mut rows = Vec::new();
    for &kind in kinds {
        if kind.program().is_none() {
            continue;
        }
        let row = one(kind, origin, folder, amounts)?;
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.0} | {:.0} | {:.2} |",
            kind.name(),
            row[0] / f64::from(1 << 20),
            row[1],
            row[2],
            row[3]
        );
        rows.push(serde_json::json!({ "server": kind.name(), "empty_bytes": row[0], "object_bytes": row[1],
            "connection_bytes": row[2], "churn_times_limit": row[3] }));
    }
    Ok((text, serde_json::Value::Array(rows)))
}

fn one(kind: Kind, origin: u16, folder: &Path, (objects, churn_times): (u64, u64)) -> Result<[f64; 4], String> {
    let start = |suffix: &str, mebibytes: u32| -> Result<(Server, u16), String> {
        let port = free_port()?;
        let folder = folder.join(format!("memory-{}-{suffix}", kind.name()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut launch = kind.launch(port, origin, &folder, mebibytes)?;
        // A small log, so that its ring is full from the start and only the cache grows.
        launch.arguments.extend(["-l".to_owned(), "2m".to_owned()]);
        let log = folder.join("log");
        let mut server = Server::start("0", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", kind.name()))?;
        Ok((server, port))
    };
    let settled = |server: &Server| {
        std::thread::sleep(Duration::from_millis(1500));
        memory_bytes(&server.tree()) as f64
    };
    let (server, port) = start("objects", 1024)?;
    let empty = settled(&server);
    let warm_up = |port| {
        get_many(port, (0..WARM_UP).map(|_| format!("/object-0/etag/{OBJECT_BODY_BYTES}")))?;
        get_many(port, (0..WARM_UP / 10).map(|number| format!("/first-{number}/etag/{OBJECT_BODY_BYTES}")))
    };
    warm_up(port)?;
    let ready = settled(&server);
    get_many(port, (0..objects).map(|number| format!("/object-{number}/etag/{OBJECT_BODY_BYTES}")))?;
    let filled = settled(&server);
    let mut held = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        get(&mut stream, "/object-1/100")?;
        held.push(stream);
    }
    let connected = settled(&server);
    drop(held);
    drop(server);
    let (server, port) = start("churn", CHURN_LIMIT_MEBIBYTES)?;
    warm_up(port)?;
    let before = settled(&server);
    let mut sizes = (0u64..).map(|n| 200 + (n * 7919) % 60_000);
    let (mut sent, begin) = (0, Instant::now());
    let paths = std::iter::from_fn(|| {
        let size = sizes.next()?;
        sent += size;
        let is_in_time = begin.elapsed() < CHURN_TIME_MAX;
        (is_in_time && sent < churn_times * (u64::from(CHURN_LIMIT_MEBIBYTES) << 20))
            .then(|| format!("/churn-{sent}/{size}"))
    });
    get_many(port, paths)?;
    let churned = settled(&server) - before;
    Ok([
        empty,
        (filled - ready) / objects.max(1) as f64,
        (connected - filled) / CONNECTIONS as f64,
        churned / f64::from(CHURN_LIMIT_MEBIBYTES << 20),
    ])
}

fn get_many(port: u16, paths: impl Iterator<Item = String>) -> Result<(), String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    for path in paths {
        if get(&mut stream, &path).is_err() {
            stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
            get(&mut stream, &path)?;
        }
    }
    Ok(())
}

/// One keep-alive request; the body is read and discarded.
fn get(stream: &mut TcpStream, path: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{path}: {error}");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").map_err(failed)?;
    let mut received = Vec::new();
    let mut buffer = [0; 16 << 10];
    let (end, length) = loop {
        let count = stream.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            return Err(format!("{path}: closed"));
        }
        received.extend_from_slice(&buffer[..count]);
        if let Some(end) = memchr::memmem::find(&received, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .and_then(|value| value.trim().parse::<usize>().ok())
                .ok_or(format!("{path}: no length in: {head}"))?;
            break (end + 4, length);
        }
    };
    let mut missing = length.saturating_sub(received.len() - end);
    while missing > 0 {
        let count = stream.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            return Err(format!("{path}: closed"));
        }
        missing -= count.min(missing);
    }
    Ok(())
}
