//! The runner: starts a process for each script, a limited number at a time, and makes sure that it
//! ends.
//!
//! A script's process leads a group of its own and writes its log into a pipe. When its time is up
//! the group is killed. A process that survives this (a daemon in the background) becomes a child
//! of the runner, which is the reaper of its descendants, and is killed too.
//!
//! *Invariant:* when the runner ends, by itself or by a signal, no process that it started is
//! alive, and only requested folders are left. Next: `runner/job.rs` for one test, `report.rs` for
//! the output.

pub(crate) mod job;
mod orphans;
mod surroundings;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use surface::program::Called;

use nix::sys::signal::{SigSet, Signal};

use crate::options::{self, Leave, Options, Parsed};
use crate::report;
use job::Job;
pub use job::{Ended, Verdict};
use surroundings::Surroundings;

/// Default time limit of a test, in seconds.
const SECONDS_MAX: u64 = 60;
/// Exit status: some tests failed and the run continued.
const SOME_FAILED: i32 = 1;
/// Exit status: a test failed, or nothing could be run.
const FAILED: i32 = 2;
/// Exit status: all tests were skipped.
const ALL_SKIPPED: i32 = 77;
/// Interval at which the tests are checked.
const TICK: Duration = Duration::from_millis(10);
/// Largest script, in bytes.
const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// Runs the scripts that the command line names. Returns the exit status.
pub fn run(called: Called, arguments: &[OsString]) -> i32 {
    let options = match options::parse(called, arguments, default_seconds()) {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Print(text)) => {
            print(&text);
            return 0;
        }
        Err((text, status)) => {
            eprintln!("{}", surface::legible::lines(text.trim_end().as_bytes()));
            return status;
        }
    };
    let mut count = Count::default();
    let mut scripts = Vec::new();
    for script in &options.scripts {
        match check(script) {
            Ok(()) => scripts.push(script.clone()),
            Err(reason) => {
                eprintln!("{reason}");
                if !options.goes_on {
                    return FAILED;
                }
                count.skipped += 1;
            }
        }
    }
    let surroundings = match Surroundings::find(&options) {
        Ok(surroundings) => surroundings,
        Err(reason) => {
            eprintln!("{reason}");
            return FAILED;
        }
    };
    // Each script runs once before any runs again.
    let waiting = (0..options.iterations).flat_map(|_| scripts.iter().cloned()).collect();
    let ended = Run { options: &options, surroundings: &surroundings, waiting, running: Vec::new(), count }.go();
    drop(surroundings);
    match ended {
        Ok(count) => {
            if options.goes_on {
                let Count { failed, skipped, passed } = count;
                eprintln!("{failed} tests failed, {skipped} tests skipped, {passed} tests passed");
            }
            match count {
                Count { failed: 1.., .. } => SOME_FAILED,
                Count { skipped: 1.., passed: 0, .. } => ALL_SKIPPED,
                _ => 0,
            }
        }
        Err(status) => status,
    }
}

fn default_seconds() -> u64 {
    let given = std::env::var("VTEST_DURATION").or_else(|_| std::env::var("VARNISHTEST_DURATION"));
    given.ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS_MAX)
}

/// Checks that a file can be a script.
fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).map_err(|error| format!("Cannot stat file \"{shown}\": {error}"))?;
    if !metadata.is_file() || metadata.len() > SCRIPT_BYTES_MAX {
        return Err(format!("File \"{shown}\" is no script."));
    }
    let text = std::fs::read(path).map_err(|error| format!("Cannot read file \"{shown}\": {error}"))?;
    let text = String::from_utf8_lossy(&text);
    let first = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with('#'));
    match first.map(|line| line.split_whitespace().next().unwrap_or_default()) {
        None => Err(format!("File \"{shown}\" has no content.")),
        Some("vtest" | "varnishtest") => Ok(()),
        Some(_) => Err(format!("File \"{shown}\" doesn't start with 'vtest' or 'varnishtest'")),
    }
}

#[derive(Clone, Copy, Default)]
struct Count {
    failed: u64,
    skipped: u64,
    passed: u64,
}

struct Run<'a> {
    options: &'a Options,
    surroundings: &'a Surroundings,
    waiting: VecDeque<PathBuf>,
    running: Vec<Job>,
    count: Count,
}

impl Run<'_> {
    /// Runs everything; `Err` is the exit status of a run that ends early.
    fn go(mut self) -> Result<Count, i32> {
        orphans::adopt();
        let interrupted = listen_for_signals();
        while !self.waiting.is_empty() || !self.running.is_empty() {
            while self.running.len() < self.options.jobs
                && let Some(script) = self.waiting.pop_front()
            {
                match Job::start(&script, self.options, self.surroundings) {
                    Ok(job) => self.running.push(job),
                    Err(reason) => {
                        eprintln!("{}: {reason}", script.display());
                        self.end_all();
                        return Err(FAILED);
                    }
                }
            }
            job::wait_for_output(&self.running, TICK);
            let mut index = 0;
            while index < self.running.len() {
                match self.running[index].look() {
                    None => index += 1,
                    Some(ended) => {
                        let job = self.running.swap_remove(index);
                        self.finish(job, ended)?;
                    }
                }
            }
            let known: Vec<u32> = self.running.iter().map(Job::pid).collect();
            orphans::bury(&known);
            if interrupted.load(Ordering::SeqCst) {
                self.end_all();
                return Err(FAILED);
            }
        }
        orphans::end_all(&[]);
        Ok(self.count)
    }

    fn finish(&mut self, job: Job, ended: Ended) -> Result<(), i32> {
        orphans::end_marked(job.folder());
        let leaves = match self.options.leave {
            Leave::Nothing => false,
            Leave::Failed => ended.verdict == Verdict::Failed,
            Leave::Everything => true,
        };
        let log = job.log();
        if leaves {
            let _ = std::fs::write(job.folder().join("LOG"), &log);
        } else {
            let _ = std::fs::remove_dir_all(job.folder());
        }
        print(&report::of(&job.script().display().to_string(), &ended, &log, self.options.verbosity));
        if leaves && self.options.verbosity > 0 {
            print(&format!("#    top  left {}\n", job.folder().display()));
        }
        match ended.verdict {
            Verdict::Passed => self.count.passed += 1,
            Verdict::Skipped => self.count.skipped += 1,
            Verdict::Failed => {
                self.count.failed += 1;
                if !self.options.goes_on {
                    self.end_all();
                    return Err(FAILED);
                }
            }
        }
        Ok(())
    }

    /// Ends everything that runs.
    fn end_all(&mut self) {
        for mut job in self.running.drain(..) {
            job.kill();
            orphans::end_marked(job.folder());
            let _ = std::fs::remove_dir_all(job.folder());
        }
        orphans::end_all(&[]);
    }
}

/// Becomes true when the runner is signalled to end; the second signal ends it at once.
fn listen_for_signals() -> Arc<AtomicBool> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        set.add(signal);
    }
    if set.thread_block().is_ok() {
        let heard = Arc::clone(&interrupted);
        std::thread::spawn(move || {
            while set.wait().is_ok() {
                if heard.swap(true, Ordering::SeqCst) {
                    std::process::exit(FAILED);
                }
            }
        });
    }
    interrupted
}

fn print(text: &str) {
    // The reader may close the output early.
    let mut output = std::io::stdout().lock();
    // Logs and names of scripts contain text from peers and programs.
    let text = surface::legible::lines(text.as_bytes());
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}
