//! The operator's tools: each is one function from its arguments (without the program's name) to its exit status.
//!
//! | function | stands in for |
//! | --- | --- |
//! | [`adm`] | `varnishadm`: commands to the server's CLI |
//! | [`log`] | `varnishlog`: the log, by transaction |
//! | [`ncsa`] | `varnishncsa`: one line per request |
//! | [`stat`] | `varnishstat`: the counters |
//! | [`top`] | `varnishtop`: the most frequent records of the log |
//! | [`hist`] | `varnishhist`: how long requests take, or how large they are, as a histogram |
//! | [`why`] | nothing: why a request was a hit, a miss, a pass or an error |
//! | [`policy`] | nothing: what hit ratios an access log would have had, by eviction policy and size |
//! | [`bench`] | nothing: makes load on a server and says how it fared |
//! | [`upgrade`] | nothing: a new program takes over from a running server |
//! | [`vcl`] | nothing: what is done with VCL texts without a server |
//!
//! Options, output and exit status are those of the stock 7.1 programs. *Invariant:* a tool reads what a server
//! publishes and never writes into it. Records, groups, queries and counters are read by `shm::read`; what is common to
//! the log's tools is in `follow.rs`. The `*_to` functions write where they are told, for tests.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access_log;
mod administration;
mod attach_timeout;
mod bench;
mod clock;
mod follow;
mod histogram;
mod line;
mod live;
mod messages;
mod options;
mod output;
mod policy;
mod ranking;
mod screen;
mod signals;
mod statistics;
mod terminal_modes;
mod transactions;
mod vcl_tool;
mod why;

use std::ffi::OsString;
use std::io::{self, Read, Write};

/// Where a tool reads and writes.
pub struct Streams<'a> {
    /// Commands, or a log file named `-`.
    pub input: &'a mut dyn Read,
    /// Results.
    pub output: &'a mut dyn Write,
    /// Messages.
    pub error: &'a mut dyn Write,
    /// True when this runs as a program: signals are handled, and terminals are treated as such.
    pub program: bool,
}

/// `varnishadm`: sends commands to a server's CLI. Returns the exit status: 0 done, 1 the server refused, 2 no server.
#[must_use]
pub fn adm(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| administration::run(args, streams))
}

/// `copal upgrade`: has a server followed by the program that is installed now. Returns the exit status: 0 done, 1 the old one goes on, 2 no
/// server.
#[must_use]
pub fn upgrade(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| administration::upgrade(args, streams))
}

/// `varnishlog`: prints the log. Returns the exit status.
#[must_use]
pub fn log(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| transactions::run(args, streams))
}

/// `varnishncsa`: prints one line per request. Returns the exit status.
#[must_use]
pub fn ncsa(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| line::run(args, streams))
}

/// Checks a command line of `varnishncsa` without running it.
///
/// # Errors
/// What the program would say.
pub fn check_ncsa(args: &[OsString]) -> Result<(), String> {
    line::check(args)
}

/// `varnishstat`: prints the counters. Returns the exit status.
#[must_use]
pub fn stat(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| statistics::run(args, streams))
}

/// `varnishtop`: ranks the records of the log. Returns the exit status.
#[must_use]
pub fn top(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| ranking::run(args, streams))
}

/// `varnishhist`: draws a histogram of the log. Returns the exit status.
#[must_use]
pub fn hist(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| histogram::run(args, streams))
}

/// `copal vcl`: checks and explains VCL. Returns the exit status: 0 all is well, 1 errors in the text, 2 in the command
/// line.
#[must_use]
pub fn vcl(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| vcl_tool::run(args, streams))
}

/// `copal why`: explains requests. Returns the exit status: 0 explained, 1 no such request, 2 the command line or no server.
#[must_use]
pub fn why(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| why::run(args, streams))
}

/// `copal policy`: replays an access log through eviction policies. Returns the exit status: 0 done, 1 no line could be used, 2 the
/// command line or a file.
#[must_use]
pub fn policy(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| policy::run(args, streams))
}

/// `copal bench`: makes load on a server. Returns the exit status: 0 done, 1 nothing was answered, 2 the command line, a file or no
/// way to the server.
#[must_use]
pub fn bench(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| bench::run(args, streams))
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

/// [`vcl`] with streams of the caller's choice.
#[must_use]
pub fn vcl_to(args: &[OsString], streams: &mut Streams) -> i32 {
    with_harmless_messages(streams, |streams| vcl_tool::run(args, streams))
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
    })
}

fn with_standard_streams(run: impl FnOnce(&mut Streams) -> i32) -> i32 {
    shm::read::cut_off::end_with_a_message();
    let mut output = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut streams =
        Streams { input: &mut io::stdin().lock(), output: &mut output, error: &mut io::stderr(), program: true };
    let status = with_harmless_messages(&mut streams, run);
    match output.flush() {
        Ok(()) => status,
        // The reader of a pipe has gone: nothing to complain about, and nobody to complain to.
        Err(_) => status.max(1),
    }
}
