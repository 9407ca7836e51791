//! `cargo xtask bans`: cost of bans as sent by shops, for Copal and, if installed, varnishd.
//!
//! The cache is filled with tagged objects. Bans that match none of them are sent in the form of
//! Magento, over HTTP. Then each object is requested once: every lookup meets all bans at once, the
//! worst case. At last the lurker gets as many bans to work on, and its CPU time is measured.

use crate::origin::sized_origin;
use crate::place::{build, folder, free_port, percentile};
use crate::process::{Server, cpu_microseconds, memory_bytes};
use crate::servers::Kind;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Body of each object, in bytes.
const BODY_BYTES: usize = 100;

/// Amount of work.
struct Extent {
    objects: usize,
    bans: usize,
    /// Time limit of each series of lookups, and duration of the lurker's measurement.
    patience: Duration,
}

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if !has("--as-built") {
        build()?;
    }
    let extent = Extent {
        objects: crate::task::number(arguments, "--objects", 10_000)?,
        bans: crate::task::number(arguments, "--bans", 10_000)?,
        patience: Duration::from_secs_f64(crate::task::number(arguments, "--seconds", 10.0)?),
    };
    let folder = folder()?;
    let origin = sized_origin()?;
    let mut measured = Vec::new();
    for kind in [Kind::Copal, Kind::Varnish] {
        if kind == Kind::Varnish && (has("--no-peer") || kind.program().is_none()) {
            println!("skipped: varnish");
            continue;
        }
        println!("{} …", kind.name());
        let mut running = Running::start(kind, origin, folder.path(), &extent)?;
        measured.push((kind, running.measure(&extent).map_err(|error| format!("{}: {error}", kind.name()))?));
    }
    println!("{}", report(&measured, &extent));
    Ok(())
}

/// Times in microseconds.
struct Measured {
    ban: Series,
    before: Series,
    after: Series,
    /// CPU time of a lookup.
    cpu_before: f64,
    cpu_after: f64,
    /// Memory of a ban in the list, in bytes.
    ban_bytes: f64,
    /// Share of a core.
    lurker_share: f64,
    bans_left: String,
}

/// Sorted.
struct Series(Vec<f64>);

impl Series {
    fn at(&self, share: f64) -> f64 {
        percentile(&self.0, share)
    }
}

struct Running {
    port: u16,
    server: Server,
    state: PathBuf,
    connection: BufReader<TcpStream>,
}

/// Tags in the form of a shop, the object's own in the middle; bans in the form of Magento.
fn vcl(origin: u16) -> String {
    format!(
        "vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"{origin}\"; }}\n\
         sub vcl_recv {{\n    if (req.method == \"PURGE\") {{\n        \
         ban(\"obj.http.X-Magento-Tags ~ \" + req.http.X-Magento-Tags-Pattern);\n        \
         return (synth(200, \"Purged\"));\n    }}\n}}\n\
         sub vcl_backend_response {{\n    set beresp.ttl = 1d;\n    \
         set beresp.http.X-Magento-Tags = \"store,cms_b_1,cat_c_\" + regsub(bereq.url, \"^/([0-9]+)/.*\", \
         \"\\1,cat_p_\\1\") + \",FPC\";\n}}\n"
    )
}

impl Running {
    fn start(kind: Kind, origin: u16, folder: &Path, extent: &Extent) -> Result<Running, String> {
        let port = free_port()?;
        let mebibytes = 64 + extent.objects / 256;
        let mut launch = kind.launch(port, origin, folder, u32::try_from(mebibytes).unwrap_or(u32::MAX))?;
        let text = folder.join("bans.vcl");
        std::fs::write(&text, vcl(origin)).map_err(|error| error.to_string())?;
        let at = launch.arguments.iter().position(|argument| argument == "-b").ok_or("no -b")?;
        launch.arguments[at] = "-f".to_owned();
        launch.arguments[at + 1] = text.display().to_string();
        let at = launch.arguments.iter().position(|argument| argument == "-T").ok_or("no -T")?;
        launch.arguments[at + 1] = format!("127.0.0.1:{}", free_port()?);
        // The lurker starts only when enabled. A small log, so that memory shows the bans.
        launch.arguments.extend(["-p", "ban_lurker_age=3600", "-l", "2m"].map(str::to_owned));
        let log = folder.join(format!("{}.log", kind.name()));
        let mut server = Server::start("0", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", kind.name()))?;
        let connection = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        let _ = connection.set_nodelay(true);
        Ok(Running { port, server, state: folder.join(kind.name()), connection: BufReader::new(connection) })
    }

    fn measure(&mut self, extent: &Extent) -> Result<Measured, String> {
        let all = Duration::MAX;
        self.lookups(extent.objects, all)?;
        self.lookups(extent.objects, extent.patience)?;
        let (before, cpu_before) = self.lookups(extent.objects, extent.patience)?;
        let empty = memory_bytes(&self.server.tree());
        let ban = self.bans(0..extent.bans)?;
        let full = memory_bytes(&self.server.tree());
        let (after, cpu_after) = self.lookups(extent.objects, extent.patience)?;
        self.bans(extent.bans..2 * extent.bans)?;
        let lurker_share = self.lurk(extent.patience)?;
        Ok(Measured {
            ban,
            before,
            after,
            cpu_before,
            cpu_after,
            ban_bytes: full.saturating_sub(empty) as f64 / extent.bans.max(1) as f64,
            lurker_share,
            bans_left: self.bans_left()?,
        })
    }

    /// Requests each object once, as far as the time allows; returns the latencies and the CPU time
    /// of one lookup.
    fn lookups(&mut self, objects: usize, patience: Duration) -> Result<(Series, f64), String> {
        let pids = self.server.tree();
        let (begin, cpu) = (Instant::now(), cpu_microseconds(&pids).0);
        let mut times = Vec::with_capacity(objects);
        for number in 0..objects {
            if begin.elapsed() > patience {
                break;
            }
            times.push(self.exchange(&format!("GET /{number}/{BODY_BYTES} HTTP/1.1\r\nHost: shop\r\n\r\n"))?);
        }
        let cpu = cpu_microseconds(&pids).0 - cpu;
        let count = times.len().max(1) as f64;
        times.sort_by(f64::total_cmp);
        Ok((Series(times), cpu / count))
    }

    /// Sends bans that match nothing; returns their latencies.
    fn bans(&mut self, numbers: std::ops::Range<usize>) -> Result<Series, String> {
        let mut times = Vec::with_capacity(numbers.len());
        for number in numbers {
            let pattern = format!("((^|,)cat_p_{0}(,|$))|((^|,)cat_x_{0}(,|$))", 1_000_000_000 + number);
            let text = format!(
                "PURGE / HTTP/1.1\r\nHost: shop\r\nX-Magento-Tags-Pattern: {pattern}\r\nContent-Length: 0\r\n\r\n"
            );
            times.push(self.exchange(&text)?);
        }
        times.sort_by(f64::total_cmp);
        Ok(Series(times))
    }

    /// One request and its answer, in microseconds.
    fn exchange(&mut self, request: &str) -> Result<f64, String> {
        let begin = Instant::now();
        let answer = exchange(&mut self.connection, request);
        let took = begin.elapsed().as_secs_f64() * 1e6;
        let keeps = answer.map_err(|error| format!("port {}: {error}", self.port))?;
        if !keeps {
            let connection = TcpStream::connect(("127.0.0.1", self.port)).map_err(|error| error.to_string())?;
            let _ = connection.set_nodelay(true);
            self.connection = BufReader::new(connection);
        }
        Ok(took)
    }

    /// Lets the lurker work, and returns the share of a core that the server used.
    fn lurk(&mut self, time: Duration) -> Result<f64, String> {
        let pids = self.server.tree();
        self.tool(&["adm", "-t", "60"], &["param.set", "ban_lurker_age", "0.1"])?;
        std::thread::sleep(Duration::from_millis(200));
        // A new ban wakes varnishd's lurker.
        self.bans(0..1)?;
        let (begin, cpu) = (Instant::now(), cpu_microseconds(&pids).0);
        std::thread::sleep(time);
        Ok((cpu_microseconds(&pids).0 - cpu) / (begin.elapsed().as_secs_f64() * 1e6))
    }

    fn bans_left(&self) -> Result<String, String> {
        let said = self.tool(&["stat", "-1", "-f", "MAIN.bans"], &[])?;
        Ok(said.split_whitespace().nth(1).unwrap_or("?").to_owned())
    }

    /// Runs one of Copal's tools, which work with both.
    fn tool(&self, words: &[&str], behind: &[&str]) -> Result<String, String> {
        let program = Kind::Copal.program().ok_or("copal is not built")?;
        let output = Command::new(program)
            .args(words)
            .arg("-n")
            .arg(&self.state)
            .args(behind)
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{words:?} {behind:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Sends a request and reads the answer; returns true if the connection can be used again.
fn exchange(connection: &mut BufReader<TcpStream>, request: &str) -> std::io::Result<bool> {
    connection.get_mut().write_all(request.as_bytes())?;
    let (mut length, mut keeps, mut line) = (0, true, String::new());
    loop {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        keeps &= !lower.starts_with("connection: close");
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok(keeps)
}

fn report(measured: &[(Kind, Measured)], extent: &Extent) -> String {
    let mut text = format!(
        "{} objects, {} bans that hit none, microseconds\n\n\
         | | ban p50 | ban p99 | bytes a ban | lookup p99, no bans | with bans | ratio | CPU, no bans | with bans | \
         lurker, share of a core | bans left |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
        extent.objects, extent.bans
    );
    for (kind, found) in measured {
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.1} | {:.1} | {:.2} | {} |",
            kind.name(),
            found.ban.at(0.5),
            found.ban.at(0.99),
            found.ban_bytes,
            found.before.at(0.99),
            found.after.at(0.99),
            found.after.at(0.99) / found.before.at(0.99),
            found.cpu_before,
            found.cpu_after,
            found.lurker_share,
            found.bans_left,
        );
    }
    if let [(_, own), (_, peer)] = measured {
        let _ = writeln!(
            text,
            "\nCopal as a ratio to varnishd: ban p50 {:.2}, lookup p50 with bans {:.4}, CPU of a lookup with bans {:.4}, \
             bytes of a ban {:.2}, CPU of the lurker {:.2}",
            own.ban.at(0.5) / peer.ban.at(0.5),
            own.after.at(0.5) / peer.after.at(0.5),
            own.cpu_after / peer.cpu_after,
            own.ban_bytes / peer.ban_bytes,
            own.lurker_share / peer.lurker_share,
        );
    }
    text
}
