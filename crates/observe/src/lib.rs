//! `copal observe`: serves the counters of a running daemon to Prometheus, writes access
//! logs, and sends traces.
//!
//! A process of its own, which reads the shared memory of a server as `varnishstat` does and never
//! writes to it. No request of a client waits for it: its end, or a scraper that does not read,
//! costs the server nothing. It follows the server across restarts of worker and manager.
//!
//! One thread accepts, and each connection has a thread of its own; one reads the log, and each
//! access log has a thread that writes it. All are bounded
//! (`surface::limits`, `OBSERVE_*`). The metrics and their sources are rows in `surface::metric`.
//!
//! Reading order: `command` (the command line) → `inherited` (start by a manager) → `service` (all
//! work) → `log_reader` → `access_log`, `trace`; for metrics `listener` → `server` (accept,
//! limits) → `connection` (one request) → `route` → `selection` → `collector` (shared memory to
//! families) → `exposition` (families to text).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access_log;
mod collector;
mod command;
mod connection;
mod deadline;
mod exposition;
mod family;
mod histograms;
mod inherited;
mod line_counts;
mod listener;
mod log_reader;
mod negotiation;
mod pulse;
mod route;
mod selection;
mod server;
mod service;
mod totals;
mod trace;

use std::ffi::OsString;

/// Runs the program; returns the exit status. It ends only if it cannot start.
#[must_use]
pub fn run(arguments: &[OsString]) -> i32 {
    command::run(arguments)
}
