//! Chores of the project: `cargo xtask bench` measures Copal and its peers, `cargo xtask vcl` its VCL, `cargo xtask bans`
//! its bans, `cargo xtask policy` its eviction, `cargo xtask compress` its compressed copies, `cargo xtask soak` checks a long mixed load.
//!
//! `floor` and `load` are the two ends of a measurement and run as separate processes.

#![forbid(unsafe_code)]

mod attack;
mod bans;
mod bench;
mod caching;
mod compress;
mod floor;
mod frontdoor;
mod load;
mod memory;
mod policy;
mod process;
mod servers;
mod soak;
mod store;
mod vcl;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask <task> [options]

tasks:
  bench   CPU per request of Copal and its peers as a ratio to a bare epoll loop
          [--seconds S] [--rounds N] [--only NAME,…] [--bodies 1,1024,…] [--connections 50,500] [--out DIR] [--memory]
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
  frontdoor CPU of handshakes and of hits over TLS, HTTP/2 and HTTP/3, beside nginx, HAProxy, hitch + varnishd
          [--memory] [--seconds S] [--rounds N] [--only NAME,…] [--out DIR] [--as-built]
  policy  how often each eviction policy hits, over made traces, and the plots of that
          [--requests N] [--bot N] [--shards N] [--out DIR] [--no-plots]
  store   a storage when it is large, full, or begun again; when much dies at once; objects of changing sizes; beside varnishd
          [--objects N] [--no-peer] [--as-built]
  soak    a mixed load against Copal for a time, every body checked by content
          [--seconds S] [--connections N]
  floor   the bare epoll server: floor PORT THREADS
  load    the load generator: load --port P --path /b1 --connections C --seconds S [--close] [--pids P,P]
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
        "policy" => policy::main(&arguments),
        "vcl" => vcl::main(&arguments),
        "store" => store::main(&arguments),
        "soak" => soak::main(&arguments),
        "frontdoor" => frontdoor::main(&arguments),
        "floor" => floor::main(&arguments),
        "load" => load::main(&arguments),
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

/// Like [`option`], parsed as a comma-separated list of numbers.
fn numbers(arguments: &[String], name: &str, default: &[usize]) -> Result<Vec<usize>, String> {
    match option(arguments, name) {
        None => Ok(default.to_vec()),
        Some(text) => {
            text.split(',').map(|n| n.parse().map_err(|_| format!("{name}: '{n}' is not a number"))).collect()
        }
    }
}
