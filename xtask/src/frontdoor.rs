//! `cargo xtask frontdoor`: what TLS, HTTP/2 and HTTP/3 cost, beside peers: CPU microseconds per handshake and per hit of whole
//! process trees.
//!
//! All servers run at once, pinned to one core, with the same certificate; the load runs on another core. Rounds are
//! interleaved over the servers, as in `bench`, and the medians are compared. A peer that does not speak something is left out
//! of its row. Writes `frontdoor.md` and `frontdoor.json`. Next files: `frontdoor/servers.rs`, `frontdoor/clients.rs`,
//! `frontdoor/memory.rs`.

mod clients;
mod memory;
pub mod servers;

use crate::bench::{self, median};
use clients::{Client, Key, Outcome};
use servers::Door;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A row of the table.
#[derive(Clone, Copy)]
struct Row {
    title: &'static str,
    client: Client,
    key: Key,
}

const ROWS: [Row; 8] = [
    Row { title: "full handshake, ECDSA P-256", client: Client::Handshakes { resumed: false }, key: Key::Ecdsa },
    Row { title: "full handshake, RSA 2048", client: Client::Handshakes { resumed: false }, key: Key::Rsa },
    Row { title: "resumed handshake", client: Client::Handshakes { resumed: true }, key: Key::Ecdsa },
    Row { title: "hit, HTTP/1.1 over TLS, c=50", client: Client::Http1 { connections: 50 }, key: Key::Ecdsa },
    Row { title: "hit, HTTP/2 in clear, c=10 m=10", client: Client::Http2Clear, key: Key::Ecdsa },
    Row { title: "hit, HTTP/2 over TLS, c=10 m=10", client: Client::Http2, key: Key::Ecdsa },
    Row { title: "hit, HTTP/3, c=10 m=10", client: Client::Http3, key: Key::Ecdsa },
    Row { title: "hit, HTTP/1.1 in clear, c=50", client: Client::Http1Clear { connections: 50 }, key: Key::Ecdsa },
];

/// `frontdoor [--memory] [--seconds S] [--rounds N] [--only NAME,…] [--out DIR] [--as-built]`
pub fn main(arguments: &[String]) -> Result<(), String> {
    if !arguments.iter().any(|argument| argument == "--as-built") {
        bench::build()?;
    }
    let seconds: f64 = crate::number(arguments, "--seconds", 1.0)?;
    let rounds: usize = crate::number(arguments, "--rounds", 5)?;
    let only = crate::option(arguments, "--only");
    let out = PathBuf::from(crate::option(arguments, "--out").unwrap_or("target"));
    let (server_core, load_core) = bench::cores();
    let folder = bench::folder()?;
    let certificates = servers::Certificates::make(folder.path())?;
    let (_origin, origin_port) = servers::origin(folder.path(), server_core)?;
    let mut peers = servers::ALL.to_vec();
    peers.retain(|peer| only.is_none_or(|only| only.split(',').any(|name| name == peer.name())));
    peers.retain(|peer| {
        let missing = peer.missing();
        missing.iter().for_each(|what| println!("skipped: needs {what}"));
        missing.is_none()
    });
    if arguments.iter().any(|argument| argument == "--memory") {
        println!("{}", memory::measure(folder.path(), &certificates, &peers)?);
        return Ok(());
    }
    let mut doors: Vec<Door> = Vec::new();
    for peer in peers {
        doors.push(Door::open(peer, origin_port, folder.path(), &certificates, server_core)?);
    }
    bench::pin(load_core)?;
    let mut results: Vec<Vec<Vec<Outcome>>> = vec![vec![Vec::new(); doors.len()]; ROWS.len()];
    for round in 1..=rounds {
        for (at, row) in ROWS.iter().enumerate() {
            for (number, door) in doors.iter().enumerate() {
                let Some(place) = door.place(row.client, row.key) else { continue };
                let outcome = row
                    .client
                    .run(place, seconds, &door.pids())
                    .map_err(|error| format!("{}, {}: {error}", door.peer.name(), row.title))?;
                eprintln!(
                    "round {round}/{rounds}  {:<34} {:<8} {:>8.2} µs {:>8.0}/s{}",
                    row.title,
                    door.peer.name(),
                    outcome.cpu,
                    outcome.per_second,
                    if outcome.errors > 0 { format!("  {} errors", outcome.errors) } else { String::new() }
                );
                results[at][number].push(outcome);
            }
        }
    }
    let report = table(&doors, &results);
    println!("{report}");
    let json = json(&doors, &results);
    drop(doors);
    std::fs::create_dir_all(&out).map_err(|error| error.to_string())?;
    std::fs::write(out.join("frontdoor.md"), &report).map_err(|error| error.to_string())?;
    let text = serde_json::to_string_pretty(&json).map_err(|error| error.to_string())?;
    std::fs::write(out.join("frontdoor.json"), text).map_err(|error| error.to_string())?;
    println!("written: {0}/frontdoor.md, {0}/frontdoor.json", out.display());
    Ok(())
}

fn table(doors: &[Door], results: &[Vec<Vec<Outcome>>]) -> String {
    let mut text = String::from("CPU µs of the whole process tree (and how many a second), medians\n\n| what |");
    for door in doors {
        let _ = write!(text, " {} |", door.peer.name());
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(doors.len()));
    text.push('\n');
    for (row, outcomes) in ROWS.iter().zip(results) {
        let _ = write!(text, "| {} |", row.title);
        for outcomes in outcomes {
            match (median(outcomes, |o| o.cpu), median(outcomes, |o| o.per_second)) {
                (Some(cpu), Some(per_second)) => {
                    let _ = write!(text, " {cpu:.1} ({per_second:.0}/s) |");
                }
                _ => text.push_str(" – |"),
            }
        }
        text.push('\n');
    }
    text
}

fn json(doors: &[Door], results: &[Vec<Vec<Outcome>>]) -> serde_json::Value {
    let mut rows = Vec::new();
    for (row, outcomes) in ROWS.iter().zip(results) {
        for (door, outcomes) in doors.iter().zip(outcomes) {
            rows.push(serde_json::json!({
                "server": door.peer.name(), "what": row.title,
                "cpu_us": median(outcomes, |o| o.cpu), "per_second": median(outcomes, |o| o.per_second),
                "errors": outcomes.iter().map(|o| o.errors).sum::<u64>(),
            }));
        }
    }
    serde_json::json!({ "rows": rows })
}
