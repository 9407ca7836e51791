//! The operator's tools: each is one function from its arguments (without the program's name) to
//! its exit status.
//!
//! | function | replaces |
//! | --- | --- |
//! | [`adm`] | `varnishadm`: commands to the server's CLI |
//! | [`log`] | `varnishlog`: the log, by transaction |
//! | [`ncsa`] | `varnishncsa`: one line per request |
//! | [`stat`] | `varnishstat`: the counters |
//! | [`top`] | `varnishtop`: the most frequent records of the log |
//! | [`hist`] | `varnishhist`: durations or sizes of requests, as a histogram |
//! | [`why`] | nothing: why a request was a hit, a miss, a pass or an error |
//! | [`keys`] | nothing: what fills the cache, and what splits it |
//! | [`record`] | nothing: records requests for `copal replay` |
//! | [`policy`] | nothing: hit ratios for an access log, by eviction policy and size |
//! | [`bench`] | nothing: makes load on a server and reports the results |
//! | [`status`], [`stop`] | nothing: what a server is doing, and its end |
//! | [`upgrade`] | nothing: a new program takes over from a running server |
//! | [`init`] | nothing: writes a VCL for an application, with test cases |
//! | [`vcl`] | nothing: works with VCL texts without a server |
//! | [`lsp`] | nothing: a language server for VCL, for editors |
//!
//! Options, output and exit status are those of the stock 7.1 programs. *Invariant:* a tool reads
//! the data that a server publishes and never writes to it. Records, groups, queries and counters
//! are read by `shm::read`; the common part of the log tools is in `follow.rs`. The `*_to`
//! functions use the caller's streams, for tests.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access_log;
mod administration;
mod attach_timeout;
mod bench;
mod clock;
mod follow;
mod histogram;
mod init;
mod keys;
mod line;
mod live;
mod messages;
pub mod options;
mod output;
mod policy;
mod ranking;
mod record;
mod screen;
mod server;
mod signals;
mod statistics;
mod streams;
mod terminal_modes;
mod transactions;
mod vcl_tool;
mod why;

pub use administration::client::CliClient;
pub use line::maker::LineMaker;
pub use streams::Streams;

use std::ffi::OsString;
use std::io::{self, Write};
use surface::program::Called;

/// `varnishadm`: sends commands to a server's CLI. Returns the exit status: 0 done, 1 the server
/// refused, 2 no server.
#[must_use]
pub fn adm(called: Called, args: &[OsString]) -> i32 {
    with_standard_streams(called, |streams| administration::run(args, streams))
}

/// `copal upgrade`: replaces a running server by the program that is installed now. Returns the
/// exit status: 0 done, 1 the old one continues, 2 no server.
#[must_use]
pub fn upgrade(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| administration::upgrade(args, streams))
}

/// `copal init`: writes a VCL for an application, with test cases. Returns the exit status: 0
/// written, 1 a file exists or cannot be written, 2 the command line is wrong.
#[must_use]
pub fn init(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| init::run(args, streams))
}

/// `copal status`: shows what a server is doing. Returns the exit status: 0 it serves, 1 its worker
/// does not, 2 no server.
#[must_use]
pub fn status(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| server::status(args, streams))
}

/// `copal stop`: stops a server. Returns the exit status: 0 it has ended, 1 it still runs, 2 no
/// server.
#[must_use]
pub fn stop(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| server::stop(args, streams))
}

/// `varnishlog`: prints the log. Returns the exit status.
#[must_use]
pub fn log(called: Called, args: &[OsString]) -> i32 {
    with_standard_streams(called, |streams| transactions::run(args, streams))
}

/// `varnishncsa`: prints one line per request. Returns the exit status.
#[must_use]
pub fn ncsa(called: Called, args: &[OsString]) -> i32 {
    with_standard_streams(called, |streams| line::run(args, streams))
}

/// Checks a command line of `varnishncsa` without running it.
///
/// # Errors
/// The program's error message.
pub fn check_ncsa(args: &[OsString]) -> Result<(), String> {
    line::check(args)
}

/// `varnishstat`: prints the counters. Returns the exit status.
#[must_use]
pub fn stat(called: Called, args: &[OsString]) -> i32 {
    with_standard_streams(called, |streams| statistics::run(args, streams))
}

/// `varnishtop`: ranks the records of the log. Returns the exit status.
#[must_use]
pub fn top(called: Called, args: &[OsString]) -> i32 {
    with_standard_streams(called, |streams| ranking::run(args, streams))
}

/// `varnishhist`: draws a histogram of the log. Returns the exit status.
#[must_use]
pub fn hist(called: Called, args: &[OsString]) -> i32 {
    with_standard_streams(called, |streams| histogram::run(args, streams))
}

/// `copal vcl`: checks and explains VCL. Returns the exit status: 0 no errors, 1 errors in the
/// text, 2 in the command line.
#[must_use]
pub fn vcl(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| vcl_tool::run(args, streams))
}

/// `copal lsp`: the language server for VCL, over the standard input and output. Returns the exit
/// status: 0 ended by its client, 1 the client vanished, 2 an error in the command line.
#[must_use]
pub fn lsp(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| vcl_tool::lsp(args, streams))
}

/// `copal keys`: reports what fills and splits the cache. Returns the exit status: 0 done, 1 no
/// request in the log, 2 the command line is wrong or there is no server.
#[must_use]
pub fn keys(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| keys::run(args, streams))
}

/// `copal record`: records requests. Returns the exit status: 0 recorded, 1 no request came, 2 the
/// command line is wrong, there is no server, or the file cannot be written.
#[must_use]
pub fn record(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| record::run(args, streams))
}

/// `copal why`: explains requests. Returns the exit status: 0 explained, 1 no such request, 2 the
/// command line or no server.
#[must_use]
pub fn why(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| why::run(args, streams))
}

/// Explains the requests of a group, as `copal why` does: a text for each, the client's request
/// first.
#[must_use]
pub fn explain(group: &[shm::read::transaction::Transaction]) -> Vec<String> {
    why::explain(group)
}

/// `copal policy`: replays an access log through eviction policies. Returns the exit status: 0
/// done, 1 no usable line, 2 an error in the command line or a file.
#[must_use]
pub fn policy(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| policy::run(args, streams))
}

/// `copal bench`: makes load on a server. Returns the exit status: 0 done, 1 no request was
/// answered, 2 an error in the command line or a file, or no connection.
#[must_use]
pub fn bench(args: &[OsString]) -> i32 {
    with_standard_streams(Called::Copal, |streams| bench::run(args, streams))
}

/// [`adm`] with streams of the caller's choice.
#[must_use]
pub fn adm_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| administration::run(args, streams))
}

/// [`log`] with streams of the caller's choice.
#[must_use]
pub fn log_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| transactions::run(args, streams))
}

/// [`ncsa`] with streams of the caller's choice.
#[must_use]
pub fn ncsa_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| line::run(args, streams))
}

/// [`stat`] with streams of the caller's choice.
#[must_use]
pub fn stat_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| statistics::run(args, streams))
}

/// [`top`] with streams of the caller's choice.
#[must_use]
pub fn top_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| ranking::run(args, streams))
}

/// [`init`] with the caller's streams.
#[must_use]
pub fn init_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| init::run(args, streams))
}

/// [`vcl`] with streams of the caller's choice.
#[must_use]
pub fn vcl_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| vcl_tool::run(args, streams))
}

/// [`record`] with streams of the caller's choice.
#[must_use]
pub fn record_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| record::run(args, streams))
}

/// [`why`] with streams of the caller's choice.
#[must_use]
pub fn why_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| why::run(args, streams))
}

/// [`policy`] with streams of the caller's choice.
#[must_use]
pub fn policy_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| policy::run(args, streams))
}

/// [`hist`] with streams of the caller's choice.
#[must_use]
pub fn hist_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| histogram::run(args, streams))
}

fn with_harmless_messages(streams: &mut Streams, run: impl FnOnce(&mut Streams) -> i32) -> i32 {
    let mut error = messages::Messages(&mut *streams.error);
    run(&mut Streams {
        input: &mut *streams.input,
        output: &mut *streams.output,
        error: &mut error,
        program: streams.program,
        called: streams.called,
    })
}

fn with_standard_streams(called: Called, run: impl FnOnce(&mut Streams) -> i32) -> i32 {
    shm::read::cut_off::end_with_a_message();
    let mut output = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut streams = Streams {
        input: &mut io::stdin().lock(),
        output: &mut output,
        error: &mut io::stderr(),
        program: true,
        called,
    };
    let status = with_harmless_messages(&mut streams, run);
    match output.flush() {
        Ok(()) => status,
        // The reader of a pipe has gone: the error cannot be reported.
        Err(_) => status.max(1),
    }
}
