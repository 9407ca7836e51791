//! Start in the background without a fork: the program starts itself again, in a session of its
//! own, and waits until that second process reports that it is ready.
//!
//! A fork would have to precede every thread and event loop, and no safe function offers it; a
//! second start costs only a few milliseconds. The second process is marked by its first argument,
//! [`MARK`]. Its standard output is a pipe to the first process: a line on it means ready, and the
//! lines after it are a report for the user; if it ends without a line, the start has failed, and
//! the first process exits with the same status.
//! Standard error is shared, so the messages of a failed start are visible.

use crate::program::Program;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// First argument of the second process.
pub const MARK: &str = "--in-background";
const READY: &str = "ready";
/// Line after the report of the start.
const END: &str = ".";

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
    if let Some(pipe) = child.stdout.take() {
        let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
        if lines.next().as_deref() == Some(READY) {
            let mut out = std::io::stdout().lock();
            for line in lines.take_while(|line| line != END) {
                // The reader of the output may be gone; the daemon runs anyway.
                let _ = writeln!(out, "{line}");
            }
            return 0;
        }
    }
    child.wait().ok().and_then(|status| status.code()).unwrap_or(2)
}

/// Must come first in the second process: leaves the session of its starter.
pub fn leave_session() {
    let _ = setsid();
}

/// Reports to the first process that the second one is ready, with lines for its output, and
/// releases the standard descriptors.
pub fn report_ready(report: Option<&str>) {
    let mut out = std::io::stdout();
    let report = report.map(|report| format!("{report}\n")).unwrap_or_default();
    let _ = write!(out, "{READY}\n{report}{END}\n").and_then(|()| out.flush());
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
}
