//! The manager process: what must outlive a crash of the worker, and the management of it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod arguments;
pub mod getopt;

use std::ffi::OsString;

/// Runs the daemon with its arguments (without the program's name). Returns the exit status.
#[must_use]
pub fn daemon(_arguments: &[OsString]) -> i32 {
    2
}
