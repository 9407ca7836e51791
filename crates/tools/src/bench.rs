//! `copal bench`: load on a server, and its evaluation.
//!
//! The load itself is the crate `load`. This module has its command line ([`command`]), the URLs
//! that come from files ([`urls`]), the progress line, and the report ([`report`]). INT and TERM
//! end the load; the results so far are printed.

mod command;
mod report;
mod urls;

use crate::Streams;
use crate::signals::Signals;
use load::drive::Event;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use surface::legible;
use surface::program::program;

/// Exit status if no request was answered.
const NOTHING: i32 = 1;
/// Exit status for a wrong command line, a file that cannot be read, or no way to the server.
const USAGE_ERROR: i32 = 2;
/// Interval of the progress line.
const PROGRESS: Duration = Duration::from_millis(200);
/// Cells of the bar.
const BAR: usize = 30;

/// Runs the tool; returns the exit status.
pub(crate) fn run(args: &[OsString], streams: &mut Streams) -> i32 {
    let options = match command::parse(args, streams) {
        Ok(Some(options)) => options,
        Ok(None) => {
            let _ = streams.output.write_all(program("bench").usage(streams.called).as_bytes());
            return 0;
        }
        Err(text) => {
            let _ = writeln!(streams.error, "copal bench: {text}; see copal bench --help");
            return USAGE_ERROR;
        }
    };
    let signals = if streams.program { Signals::listen() } else { Signals::deaf() };
    let shows_progress = streams.program && options.progress && std::io::stderr().is_terminal();
    let mut progress = Progress { last: Instant::now(), since: Instant::now(), shown: false };
    let outcome = load::drive::run(&options.plan, &mut |event| {
        if let Event::Tick { done, answers, failures } = event
            && shows_progress
        {
            progress.show(done, answers, failures);
        }
        !signals.stop()
    });
    progress.clear();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(text) => {
            let _ = writeln!(streams.error, "copal bench: {text}");
            return USAGE_ERROR;
        }
    };
    let text = if options.json {
        format!("{}\n", legible::json(&report::json(&options.plan, &outcome).to_string()))
    } else {
        report::text(&options.plan, &outcome)
    };
    // The text includes headers from servers.
    let _ = streams.output.write_all(legible::lines(text.as_bytes()).as_bytes());
    if outcome.results.answers == 0 { NOTHING } else { 0 }
}

/// The progress line on the terminal.
struct Progress {
    last: Instant,
    since: Instant,
    shown: bool,
}

impl Progress {
    fn show(&mut self, done: f64, answers: u64, failures: u64) {
        if self.last.elapsed() < PROGRESS {
            return;
        }
        self.last = Instant::now();
        self.shown = true;
        eprint!("\r{}\x1b[K", progress_line(done, answers, failures, self.since.elapsed()));
    }

    fn clear(&self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

fn progress_line(done: f64, answers: u64, failures: u64, elapsed: Duration) -> String {
    let full = ((done * BAR as f64) as usize).min(BAR);
    let (full, empty) = ("█".repeat(full), "░".repeat(BAR - full));
    let rate = answers as f64 / elapsed.as_secs_f64().max(1e-9);
    let failed = if failures > 0 { format!("  {failures} failed") } else { String::new() };
    format!("{full}{empty} {:>3.0} %  {answers} answers  {rate:.0}/s{failed}", done * 100.0)
}

#[cfg(test)]
mod tests;
