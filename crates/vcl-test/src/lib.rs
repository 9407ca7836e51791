//! `copal vcl test`, `copal vcl trace` and `copal replay`: a VCL in the real engine, with the
//! origin and the client in memory and a virtual clock.
//!
//! A case is a client with one or more requests, each with the origin's responses and expectations
//! (`case`). Each case gets an engine and an empty cache of its own (`world`), so that cases do not
//! depend on each other. Expectations are compared with the response and with facts from the log
//! (`facts`, `expectation`), never with internals. *Invariants:* the thread that runs cases cannot
//! open files or sockets; a case takes at most `VCL_TEST_CASE_SECONDS_MAX` of real time; text from
//! files and the engine is shown through `surface::legible`. Non-goals: time and memory of a real
//! server, sockets, TLS, HTTP/2.
//!
//! Reading order: `command` → `case` → `runner` → `world`, `wire` → `facts` → `expectation` →
//! `coverage`, `report`; `trace` and `replay` are the other commands.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod case;
mod command;
mod coverage;
mod expectation;
mod facts;
mod program;
mod replay;
mod report;
mod runner;
mod trace;
mod wire;
mod world;

use std::ffi::OsString;
use surface::program::Called;
use tools::Streams;

/// `copal vcl test`. Returns the exit status: 0 all cases passed, 1 some did not, 2 the command
/// line, a file or the VCL is wrong.
#[must_use]
pub fn test(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| command::run(args, streams))
}

/// `copal vcl trace`. Returns the exit status: 0 shown, 2 the command line, a file or the VCL is
/// wrong.
#[must_use]
pub fn trace(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| trace::run(args, streams))
}

/// `copal replay`. Returns the exit status: 0 no differences, 1 differences within the limits, 2 a
/// limit was passed, 3 the recording, a VCL or the command line cannot be used.
#[must_use]
pub fn replay(args: &[OsString]) -> i32 {
    with_standard_streams(|streams| replay::run(args, streams))
}

/// [`replay`] with the caller's streams.
#[must_use]
pub fn replay_to(args: &[OsString], streams: &mut Streams) -> i32 {
    replay::run(args, streams)
}

/// [`test`] with the caller's streams.
#[must_use]
pub fn test_to(args: &[OsString], streams: &mut Streams) -> i32 {
    command::run(args, streams)
}

/// [`trace`] with the caller's streams.
#[must_use]
pub fn trace_to(args: &[OsString], streams: &mut Streams) -> i32 {
    trace::run(args, streams)
}

/// Reads a file of cases without running them. Returns their number.
///
/// # Errors
/// The message for its author, with a line.
pub fn check_cases(file: &str, text: &str) -> Result<usize, String> {
    command::read_cases(file, text).map(|cases| cases.len())
}

fn with_standard_streams(run: impl FnOnce(&mut Streams) -> i32) -> i32 {
    run(&mut Streams {
        input: &mut std::io::stdin(),
        output: &mut std::io::stdout().lock(),
        error: &mut std::io::stderr(),
        program: true,
        called: Called::Copal,
    })
}
