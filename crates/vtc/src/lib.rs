//! `copal test`, also as `varnishtest`: runner of test scripts (`.vtc`), each a sequence of actions
//! of clients, servers and a daemon.
//!
//! ```text
//! runner (runner.rs): one process ──starts──► one process a script (script.rs), in its own folder
//!   -j at a time, time limit, report            parser lex.rs, walk specification.rs
//!   ends all processes that a script leaves     client server varnish logexpect process
//!                                               tunnel barrier syslog haproxy shell
//! ```
//!
//! The language, the options, the log and the verdicts are those of the stock 7.1.1 runner, so that
//! a script means the same to both. *Invariants:* the daemon is accessed only from outside (command
//! line, CLI, sockets, shared memory); a script ends, at its time limit at the latest, and no
//! process that it started survives. Read next: `lex.rs`, `specification.rs`, `script.rs`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
mod arguments;
mod barrier;
mod barrier_state;
mod client;
mod feature;
mod haproxy;
mod http;
pub mod http2;
mod journal;
pub mod lex;
mod log;
mod logexpect;
pub mod macros;
mod matching;
mod options;
mod outcome;
mod payload;
mod process;
mod proxy_header;
mod report;
mod rounds;
mod runner;
mod script;
mod server;
mod settings;
mod shell;
mod specification;
mod syslog;
mod test;
mod this_program;
mod threads;
mod tunnel;
mod varnish;

use std::ffi::OsString;
use surface::program::Called;
use this_program::SCRIPT_ARGUMENT;

/// Runs scripts. `arguments` are those after the program's name. Returns the exit status: 0 all
/// passed (or some were skipped), 1 some failed but the run continued, 2 one failed or the command
/// line is wrong, 77 all were skipped.
#[must_use]
pub fn run(called: Called, arguments: &[OsString]) -> i32 {
    let first = arguments.first().and_then(|argument| argument.to_str());
    match (first, arguments.get(1)) {
        (Some(process::terminal::ARGUMENT), _) => process::terminal::lead(&arguments[1..]),
        (Some(SCRIPT_ARGUMENT), Some(settings)) => match serde_json::from_str(&settings.to_string_lossy()) {
            Ok(settings) => script::run(settings),
            Err(error) => {
                eprintln!("{SCRIPT_ARGUMENT}: only the test runner starts this ({error})");
                script::FAILED
            }
        },
        _ => runner::run(called, arguments),
    }
}
