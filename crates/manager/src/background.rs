//! Becomes a daemon without a fork: the program starts itself again, in a session of its own, and waits until that second
//! process reports that it is ready.
//!
//! A fork would have to come before any thread and any event loop, and no safe function does it; a second start costs
//! only a few milliseconds. The second process is told by its first argument, [`MARK`]. Its standard output is a pipe to
//! the first: a line on it means ready; if it ends without a line, the start has failed, and the first process exits
//! with the same status. Standard error is shared, so the messages of a failed start are seen.

use crate::program::Program;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// First argument of the second process.
pub const MARK: &str = "--in-background";
const READY: &str = "ready";

/// Starts the second process and waits until it is ready or has failed. Returns the exit status.
#[must_use]
pub fn start_again(program: &Program) -> i32 {
    let mut command = program.command(&[MARK]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("Error: cannot start in the background: {error}");
            return 2;
        }
    };
    let mut line = String::new();
    if let Some(pipe) = child.stdout.take() {
        let _ = BufReader::new(pipe).read_line(&mut line);
    }
    if line.trim_end() == READY {
        return 0;
    }
    child.wait().ok().and_then(|status| status.code()).unwrap_or(2)
}

/// Must come first in the second process: leaves the session of whoever started it.
pub fn leave_session() {
    let _ = setsid();
}

/// When the second process is ready: tells the first one, and releases the standard descriptors.
pub fn report_ready() {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
}
