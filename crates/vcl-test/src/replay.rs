//! `copal replay`: recorded requests through a VCL, compared with the recording or another VCL.
//!
//! ```text
//! recording ──all responses──▶ Answers ◀──asks── old VCL, new VCL (a Player each: engine, cache)
//!           ──each request, in the order of their starts──▶ both, at the same virtual time
//! ```
//!
//! Two replays differ only by their VCL: clock, random numbers and origin are the same.
//! *Invariants:* the thread that replays can open no file and no socket; a response of the origin
//! that was not recorded is never made up, but counted. Reading order: `command` →
//! `session` → `player` → `answers` → `difference` → `summary`, `limits`, `report`; `inherited`.

mod answers;
mod command;
mod difference;
mod inherited;
mod limits;
mod player;
mod report;
mod session;
mod summary;

use std::ffi::OsString;
use tools::Streams;

/// Runs the tool, or the part of it that a manager starts; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    match args.split_first() {
        Some((first, rest)) if first == inherited::MARK => inherited::run(rest, streams),
        _ => command::run(args, streams),
    }
}

#[cfg(test)]
mod tests;
