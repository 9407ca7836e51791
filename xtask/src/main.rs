//! Chores of the project: `cargo xtask bench` measures Copal and its peers, `cargo xtask vcl` its VCL, `cargo xtask bans`
//! its bans, `cargo xtask policy` its eviction, `cargo xtask compress` its compressed copies, `cargo xtask soak` checks a long mixed load,
//! `cargo xtask memory` counts bytes, `cargo xtask hit-cost` the instructions of a hit, `cargo xtask package` makes packages.
//!
//! `floor` is the server that the others are compared with, and runs as a process of its own. Loads are those of the crate `load`.

#![forbid(unsafe_code)]

mod attack;
mod bans;
mod bench;
mod caching;
mod compress;
mod floor;
mod frontdoor;
mod hit_cost;
mod measure;
mod memory;
mod origin;
mod package;
mod place;
mod plot;
mod policy;
mod process;
mod seeds;
mod servers;
mod soak;
mod sound;
mod store;
mod vcl;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask <task> [options]

tasks:
  bench   the table of docs/performance.md: Copal and its peers beside a bare epoll loop; --write writes it
          [--rows NAME,NAME*,…] [--only SERVER,…] [--quick] [--seeds] [--rounds N] [--seconds S] [--memory] [--write] [--out DIR]
          [--as-built]
  attack  latency of a calm client while others flood HTTP/2, TLS handshakes and QUIC
          [--seconds S] [--as-built]
  bans    what bans and lookups cost with many bans that were not tested yet, beside varnishd
          [--objects N] [--bans N] [--seconds S] [--no-peer] [--as-built]
  vcl     how long VCLs take to load, and what a long vcl_recv costs a hit, beside varnishd
          [--rounds N] [--seconds S] [--no-peer]
  caching the score in the public suite http-tests/cache-tests, of which DIR is a checkout
          --suite DIR [--leniencies] [--as-built]
  compress  bytes on the wire and CPU of a page in gzip and brotli, beside nginx
          [--requests N] [--seconds S] [--no-peer] [--as-built]
  frontdoor memory of connections over TLS, HTTP/2 and HTTP/3, beside nginx, HAProxy, hitch + varnishd
          [--only NAME,…] [--as-built]
  package Debian packages of a release build, or of the program that --binary names
          [--binary FILE] [--version V] [--out DIR] [--compression xz|gzip|none]
  hit-cost  instructions of a hit under callgrind, against the budget in crates/engine/tests/hit_cost.budget
          [--write]
  memory  bytes of a small object, of an idle connection, of the empty process, and after churn, beside varnishd; or where the bytes of
          an object go
          [--object [--objects N]] [--no-peer] [--as-built]
  policy  how often each eviction policy hits, over made traces, and the plots of that
          [--requests N] [--bot N] [--shards N] [--out DIR] [--no-plots]
  store   a storage when it is large, full, or begun again; when much dies at once; objects of changing sizes; beside varnishd
          [--objects N] [--no-peer] [--as-built]
  sound   the unsafe code and the threads: Miri over store and shm, ThreadSanitizer over store and cache (nightly)
          [--miri] [--tsan] [FILTER]
  soak    a mixed load over every transport for a time, every body checked; plots of memory, descriptors, threads, latency
          [--hours H | --seconds S] [--connections N] [--kill-every S] [--rate R] [--out DIR] [--as-built]
  floor   the bare epoll server: floor PORT THREADS
";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        eprint!("{HELP}");
        return ExitCode::from(2);
    }
    let task = arguments.remove(0);
    let result = match task.as_str() {
        "bench" => bench::main(&arguments),
        "attack" => attack::main(&arguments),
        "bans" => bans::main(&arguments),
        "caching" => caching::main(&arguments),
        "compress" => compress::main(&arguments),
        "package" => package::main(&arguments),
        "policy" => policy::main(&arguments),
        "vcl" => vcl::main(&arguments),
        "store" => store::main(&arguments),
        "sound" => sound::main(&arguments),
        "soak" => soak::main(&arguments),
        "frontdoor" => frontdoor::main(&arguments),
        "memory" => memory::main(&arguments),
        "hit-cost" => hit_cost::main(&arguments),
        "floor" => floor::main(&arguments),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown task '{other}'; see `cargo xtask help`")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

/// The value after `--name` among the arguments.
fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// Like [`option`], parsed as a number.
fn number<T: std::str::FromStr>(arguments: &[String], name: &str, default: T) -> Result<T, String> {
    match option(arguments, name) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("{name}: '{text}' is not a number")),
    }
}
