//! Tasks of the project: `cargo xtask bench` measures Copal and its peers, `cargo xtask soak`
//! checks a long mixed load, `cargo xtask release` builds the program that is shipped. `cargo xtask
//! help` lists them all, from the table below.
//!
//! `floor` is the reference server of comparisons, and runs as a process of its own. Loads are
//! those of the crate `load`.

#![forbid(unsafe_code)]

mod attack;
mod bans;
mod bench;
mod caching;
mod compress;
mod cost;
mod floor;
mod frontdoor;
mod measure;
mod memory;
mod origin;
mod package;
mod place;
mod plot;
mod policy;
mod process;
mod release;
mod sbom;
mod seeds;
mod servers;
mod soak;
mod sound;
mod store;
mod task;
mod vcl;

use std::process::ExitCode;
use task::{Task, is_help};

const TASKS: &[Task] = &[
    Task {
        name: "bench",
        what: "the table of docs/benchmarks.md: Copal and its peers beside a bare epoll loop; --write writes it",
        options: &[
            "--rows NAME,NAME*,…",
            "--only SERVER,…",
            "--builds NAME=FILE,…",
            "--quick",
            "--seeds",
            "--rounds N",
            "--seconds S",
            "--memory",
            "--write",
            "--out DIR",
            "--as-built",
        ],
        run: bench::main,
    },
    Task {
        name: "attack",
        what: "latency of a calm client while others flood HTTP/2, TLS handshakes and QUIC",
        options: &["--seconds S", "--as-built"],
        run: attack::main,
    },
    Task {
        name: "bans",
        what: "what bans and lookups cost with many bans that were not tested yet, beside varnishd",
        options: &["--objects N", "--bans N", "--seconds S", "--no-peer", "--as-built"],
        run: bans::main,
    },
    Task {
        name: "vcl",
        what: "how long VCLs take to load, and what a long vcl_recv costs a hit, beside varnishd",
        options: &["--rounds N", "--seconds S", "--no-peer"],
        run: vcl::main,
    },
    Task {
        name: "caching",
        what: "the score in the public suite http-tests/cache-tests, of which DIR is a checkout",
        options: &["--suite DIR", "--leniencies", "--as-built"],
        run: caching::main,
    },
    Task {
        name: "compress",
        what: "bytes on the wire and CPU of a page in gzip and brotli, beside nginx",
        options: &["--requests N", "--seconds S", "--no-peer", "--as-built"],
        run: compress::main,
    },
    Task {
        name: "frontdoor",
        what: "memory of connections over TLS, HTTP/2 and HTTP/3, beside nginx, HAProxy, hitch + varnishd",
        options: &["--only NAME,…", "--as-built"],
        run: frontdoor::main,
    },
    Task {
        name: "release",
        what: "the program as it is shipped, in target/pgo/copal: built, trained by a load, built again for what that found",
        options: &["--target-cpu CPU"],
        run: release::main,
    },
    Task {
        name: "package",
        what: "packages of a release build, or of the program that --binary names, with its bill of materials",
        options: &["--rpm", "--binary FILE", "--version V", "--out DIR", "--compression xz|gzip|none", "--system NAME"],
        run: package::main,
    },
    Task {
        name: "sbom",
        what: "the crates in the program, with licences and checksums, as CycloneDX",
        options: &["--out FILE"],
        run: sbom::main,
    },
    Task {
        name: "cost",
        what: "instructions and locked instructions of a hit, a pass and a miss under callgrind, against crates/engine/tests/cost.budget",
        options: &["--lines", "--write"],
        run: cost::main,
    },
    Task {
        name: "memory",
        what: "bytes of a small object, an idle connection, the empty process, and after churn, beside varnishd; or of what an object is made",
        options: &["--object", "--objects N", "--churn TIMES", "--no-peer", "--as-built"],
        run: memory::main,
    },
    Task {
        name: "policy",
        what: "how often each eviction policy hits, over made traces, and the plots of that",
        options: &["--requests N", "--bot N", "--shards N", "--out DIR", "--no-plots"],
        run: policy::main,
    },
    Task {
        name: "store",
        what: "a storage when it is large, full, or begun again; when much dies or is purged at once; objects of changing sizes; beside varnishd; or workers and daemons killed under load",
        options: &[
            "--objects N",
            "--bytes N",
            "--turns N",
            "--loops N",
            "--only size|death|purges|mixture|kinds",
            "--files",
            "--kills N",
            "--no-peer",
            "--as-built",
        ],
        run: store::main,
    },
    Task {
        name: "sound",
        what: "the unsafe code and the threads: Miri over store and shm, ThreadSanitizer over store and cache (nightly)",
        options: &["--miri", "--tsan", "[FILTER]"],
        run: sound::main,
    },
    Task {
        name: "soak",
        what: "a mixed load over every transport for a time, every body checked; plots of memory, descriptors, threads, latency",
        options: &[
            "--hours H",
            "--seconds S",
            "--connections N",
            "--rate R",
            "--kill-every S",
            "--out DIR",
            "--as-built",
        ],
        run: soak::main,
    },
    Task { name: "floor", what: "the bare epoll server", options: &["PORT", "THREADS"], run: floor::main },
];

fn help() -> String {
    let tasks: String = TASKS.iter().map(Task::usage).collect();
    format!("usage: cargo xtask <task> [options]\n\ntasks:\n{tasks}")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, arguments)) = arguments.split_first() else {
        eprint!("{}", help());
        return ExitCode::from(2);
    };
    if is_help(name) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("xtask: there is no task '{name}'; see `cargo xtask help`");
        return ExitCode::from(2);
    };
    if arguments.iter().any(|argument| is_help(argument)) {
        print!("usage: cargo xtask {name} [options]\n\n{}", task.usage());
        return ExitCode::SUCCESS;
    }
    if let Err(message) = task.check(arguments) {
        eprintln!("xtask {name}: {message}; see `cargo xtask {name} --help`");
        return ExitCode::from(2);
    }
    match (task.run)(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}
