//! VCL timings: time of a text from `vcl.load` to serving, and the cost of a long vcl_recv for a
//! hit.
//!
//! Copal and, if installed, varnishd run side by side; texts are generated, so that both get the
//! same. The cost for a request is the difference between two VCLs on one running server, switched
//! with `vcl.use` from round to round.

use crate::measure::{hits, lasting, measure};
use crate::place::{folder, free_port};
use crate::process::Server;
use crate::servers::Kind;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Line counts of the texts to load.
const LINES: [usize; 3] = [1_000, 10_000, 50_000];
/// Longest text for varnishd: its compile time grows faster than the text.
const PEER_LINES_MAX: usize = 1_000;
/// Number of entries in the access list to load.
const ACL_ENTRIES: usize = 100_000;

/// Runs the task.
pub fn main(arguments: &[String]) -> Result<(), String> {
    crate::place::build()?;
    let rounds: usize = crate::task::number(arguments, "--rounds", 5)?;
    let seconds: f64 = crate::task::number(arguments, "--seconds", 1.0)?;
    let alone = arguments.iter().any(|argument| argument == "--no-peer");
    let folder = folder()?;
    let origin = free_port()?;
    let floor = Kind::Floor.launch(origin, origin, folder.path(), 0)?;
    let log = folder.path().join("floor.log");
    let mut floor = Server::start("0", &floor.program, &floor.arguments, &log)?;
    floor.wait_for_port(origin, &log)?;
    let mut report = String::from("Load, milliseconds from `vcl.load` to the reply, and CPU microseconds of a hit\n\n");
    for kind in [Kind::Copal, Kind::Varnish] {
        if kind == Kind::Varnish && (alone || kind.program().is_none()) {
            println!("skipped: varnish");
            continue;
        }
        let running = Running::start(kind, origin, folder.path())?;
        loads(&running, folder.path(), rounds, &mut report)?;
        requests(&running, folder.path(), rounds, seconds, &mut report)?;
    }
    println!("{report}");
    Ok(())
}

struct Running {
    kind: Kind,
    port: u16,
    origin: u16,
    server: Server,
    state: PathBuf,
}

impl Running {
    fn start(kind: Kind, origin: u16, folder: &Path) -> Result<Running, String> {
        let port = free_port()?;
        let mut launch = kind.launch(port, origin, folder, 64)?;
        launch.administered()?;
        let log = folder.join(format!("{}.log", kind.name()));
        let mut server = Server::start("0", &launch.program, &launch.arguments, &log)?;
        server.wait_for_port(port, &log).map_err(|error| format!("{}: {error}", kind.name()))?;
        Ok(Running { kind, port, origin, server, state: folder.join(kind.name()) })
    }

    /// One CLI command, through Copal's `varnishadm`, which works with both.
    fn command(&self, words: &[&str]) -> Result<(), String> {
        crate::servers::administer(&self.state, words).map_err(|error| format!("{}: {error}", self.kind.name()))
    }
}

fn backend(origin: &str) -> String {
    format!("vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"{origin}\"; }}\n")
}

/// A text of that many lines: subroutines with conditions, sets and replacements, all of them
/// called.
fn long_text(lines: usize) -> String {
    let mut text = backend("1");
    let subs = lines / 20;
    for sub in 0..subs {
        let _ = writeln!(text, "sub part_{sub} {{");
        for at in 0..6 {
            let _ = writeln!(
                text,
                "    if (req.url ~ \"^/section-{sub}/{at}\" && req.http.X-Part-{at} != \"{sub}\") {{\n        \
                 set req.http.X-Found = \"{sub}/\" + req.http.Host + \"/{at}\";\n    }}"
            );
        }
        text.push_str("}\n");
    }
    text.push_str("sub vcl_recv {\n");
    for sub in 0..subs {
        let _ = writeln!(text, "    call part_{sub};");
    }
    text.push_str("}\n");
    text
}

fn long_acl(entries: usize) -> String {
    let mut text = backend("1");
    text.push_str("acl many {\n");
    for at in 0..entries {
        let _ = writeln!(text, "    \"10.{}.{}.{}\"/32;", at >> 16 & 255, at >> 8 & 255, at & 255);
    }
    text.push_str("}\nsub vcl_recv { if (client.ip ~ many) { return (synth(403)); } }\n");
    text
}

/// vcl_recv with `statements` statements, a tenth of them with a regular expression that is tried
/// for every request.
pub fn receive_of(statements: usize) -> String {
    let (patterns, comparisons, sets) = (statements / 10, statements / 3, statements / 60);
    let mut text = String::from("sub vcl_recv {\n");
    for at in 0..patterns {
        let _ = writeln!(
            text,
            "    if (req.url ~ \"^/(shop|blog)/{at}/[a-z]+\\.html$\") {{ set req.http.X-R = \"{at}\"; }}"
        );
    }
    for at in 0..comparisons {
        let _ =
            writeln!(text, "    if (req.http.X-Device-{} == \"d{at}\") {{ set req.http.X-D = \"{at}\"; }}", at % 10);
    }
    // Each condition is two statements.
    for at in 0..statements - 2 * (patterns + comparisons) - sets {
        let _ = writeln!(text, "    unset req.http.X-Gone-{};", at % 7);
    }
    for at in 0..sets {
        let _ = writeln!(text, "    set req.http.X-Set = \"{at}\" + req.url;");
    }
    text.push_str("}\n");
    text
}

fn loads(running: &Running, folder: &Path, rounds: usize, report: &mut String) -> Result<(), String> {
    let mut texts: Vec<(String, String)> = LINES
        .into_iter()
        .filter(|lines| running.kind == Kind::Copal || *lines <= PEER_LINES_MAX)
        .map(|lines| (format!("{lines} lines"), long_text(lines)))
        .collect();
    texts.push((format!("acl of {ACL_ENTRIES}"), long_acl(ACL_ENTRIES)));
    for (number, (title, text)) in texts.iter().enumerate() {
        let path = folder.join(format!("load-{number}.vcl"));
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        let path = path.display().to_string();
        let mut times = Vec::new();
        let rounds = if running.kind == Kind::Copal { rounds } else { 1 };
        for round in 0..rounds {
            let name = format!("load-{number}-{round}");
            let start = Instant::now();
            running.command(&["vcl.load", &name, &path])?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            running.command(&["vcl.discard", &name])?;
        }
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let _ = writeln!(report, "| {} | {title} | {median:.1} ms |", running.kind.name());
        eprintln!("{} {title}: {times:.1?} ms", running.kind.name());
    }
    Ok(())
}

fn requests(running: &Running, folder: &Path, rounds: usize, seconds: f64, report: &mut String) -> Result<(), String> {
    let origin = running.origin;
    let texts = [("plain", backend(&origin.to_string())), ("long", backend(&origin.to_string()) + &receive_of(300))];
    for (name, text) in &texts {
        let path = folder.join(format!("{}-{name}.vcl", running.kind.name()));
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
        running.command(&["vcl.load", name, &path.display().to_string()])?;
    }
    let mut costs: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (at, (name, _)) in texts.iter().enumerate() {
            running.command(&["vcl.use", name])?;
            let outcome = measure(&lasting(hits("/b1", 50), seconds), running.port, &running.server.tree())?;
            eprintln!("{} round {round} {name}: {:.2} µs", running.kind.name(), outcome.cpu);
            costs[at].push(outcome.cpu);
        }
    }
    let mut differences: Vec<f64> = costs[0].iter().zip(&costs[1]).map(|(plain, long)| long - plain).collect();
    differences.sort_by(f64::total_cmp);
    costs[0].sort_by(f64::total_cmp);
    let _ = writeln!(
        report,
        "| {} | 300 statements, 30 regular expressions in vcl_recv | {:.2} µs more than {:.2} µs |",
        running.kind.name(),
        differences[differences.len() / 2],
        costs[0][costs[0].len() / 2]
    );
    Ok(())
}
