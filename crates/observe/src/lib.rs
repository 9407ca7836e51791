//! `copal observe`: serves the counters of a running daemon to Prometheus, writes access
//! logs, sends traces, and serves the dashboard (`copal dash`).
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
//! families) → `exposition` (families to text). The dashboard begins in `dash`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access_log;
mod collector;
mod command;
mod connection;
mod dash;
mod dash_command;
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

/// `copal dash`: opens the dashboard of a running server. Returns the exit status: 0 done, 1 it
/// cannot listen, 2 the command line is wrong or there is no server.
#[must_use]
pub fn dash(arguments: &[OsString]) -> i32 {
    dash_command::run(arguments)
}

/// `copal observe`: runs the program; returns the exit status. It ends only if it cannot start.
#[must_use]
pub fn run(arguments: &[OsString]) -> i32 {
    command::run(arguments)
}
