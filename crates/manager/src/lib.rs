//! The manager process: what must outlive a crash of the worker, and the management of it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod arguments;
mod directory;
pub mod getopt;
mod listeners;
mod memory;
mod parameter_text;
mod pattern;
mod report;
mod vcl_table;

use std::ffi::OsString;

/// Runs the daemon with its arguments (without the program's name). Returns the exit status.
#[must_use]
pub fn daemon(_arguments: &[OsString]) -> i32 {
    2
}
