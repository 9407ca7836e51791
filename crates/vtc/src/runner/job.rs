//! A running test: its process, its folder, its log.

use std::collections::VecDeque;
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rand::RngExt;

use super::orphans;
use super::surroundings::Surroundings;
use crate::options::{Leave, Options};
use crate::{script, this_program};

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// A required feature is missing.
    Skipped,
    /// It failed, or did not end.
    Failed,
}

/// The end of a test.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The result.
    pub verdict: Verdict,
    /// Duration in seconds.
    pub seconds: f64,
    /// True if it exceeded its time limit.
    pub timed_out: bool,
    /// `exit=2` or `signal=9`.
    pub how: String,
}

/// A running test.
pub(super) struct Job {
    script: PathBuf,
    folder: PathBuf,
    child: Child,
    pipe: PipeReader,
    kept: Kept,
    started: Instant,
    limit: Duration,
    timed_out: bool,
}

impl Job {
    /// Makes a folder and starts the process.
    pub fn start(script: &Path, options: &Options, surroundings: &Surroundings) -> Result<Job, String> {
        let name = format!("vtc.{}.{:08x}", std::process::id(), rand::rng().random::<u32>());
        let folder = surroundings.temporary.join(name);
        std::fs::DirBuilder::new()
            .mode(0o755)
            .create(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let started = Job::start_in(script, &folder, options, surroundings);
        if started.is_err() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        started
    }

    fn start_in(script: &Path, folder: &Path, options: &Options, surroundings: &Surroundings) -> Result<Job, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("the test cannot be started: {error}");
        let keeps_folder = options.leave != Leave::Nothing;
        let settings = surroundings.settings(script, folder, options, keeps_folder);
        let settings = serde_json::to_string(&settings).map_err(|error| cannot(&error))?;
        let (pipe, writer) = std::io::pipe().map_err(|error| cannot(&error))?;
        let errors = writer.try_clone().map_err(|error| cannot(&error))?;
        let mut command = Command::new(this_program::PATH);
        command.arg0("varnishtest").arg(this_program::SCRIPT_ARGUMENT).arg(settings).process_group(0);
        command.env("PATH", &surroundings.path).env(orphans::MARK, folder);
        command.stdin(Stdio::null()).stdout(writer).stderr(errors);
        let child = command.spawn();
        // The command holds the other ends of the pipe.
        drop(command);
        Ok(Job {
            script: script.to_owned(),
            folder: folder.to_owned(),
            child: child.map_err(|error| cannot(&error))?,
            pipe,
            kept: Kept::new(options.log_bytes_max),
            started: Instant::now(),
            limit: Duration::from_secs(options.seconds_max),
            timed_out: false,
        })
    }

    pub fn script(&self) -> &Path {
        &self.script
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> Vec<u8> {
        self.kept.bytes()
    }

    /// Reads its new log lines, and checks for its end or its time limit.
    pub fn look(&mut self) -> Option<Ended> {
        let status = self.child.try_wait();
        self.take_output();
        match status {
            Ok(Some(status)) => Some(self.ended(status)),
            Ok(None) => {
                if !self.timed_out && self.started.elapsed() > self.limit {
                    self.timed_out = true;
                    let _ = killpg(Pid::from_raw(self.pid() as i32), Signal::SIGKILL);
                }
                None
            }
            // The process was already reaped elsewhere.
            Err(_) => Some(self.ended(ExitStatus::from_raw(script::FAILED << 8))),
        }
    }

    fn take_output(&mut self) {
        let mut buffer = [0; 1 << 16];
        while is_readable(&self.pipe) {
            match self.pipe.read(&mut buffer) {
                Ok(count) if count > 0 => self.kept.add(&buffer[..count]),
                _ => return,
            }
        }
    }

    fn ended(&self, status: ExitStatus) -> Ended {
        let verdict = match status.code() {
            Some(script::PASSED) => Verdict::Passed,
            Some(script::SKIPPED) => Verdict::Skipped,
            _ => Verdict::Failed,
        };
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("signal={signal}"),
            (None, code) => format!("exit={}", code.unwrap_or(0)),
        };
        Ended { verdict, seconds: self.started.elapsed().as_secs_f64(), timed_out: self.timed_out, how }
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = killpg(Pid::from_raw(self.pid() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Waits until a test logs something, for at most `time`.
pub(super) fn wait_for_output(jobs: &[Job], time: Duration) {
    let mut polled: Vec<PollFd> = jobs.iter().map(|job| PollFd::new(job.pipe.as_fd(), PollFlags::POLLIN)).collect();
    let time = PollTimeout::try_from(time.as_millis()).unwrap_or(PollTimeout::ZERO);
    let _ = nix::poll::poll(&mut polled, time);
    // A pipe whose writer has gone is always ready; its process is about to end.
    let is_hung_up = |fd: &PollFd| fd.revents().is_some_and(|flags| flags == PollFlags::POLLHUP);
    if !polled.is_empty() && polled.iter().any(is_hung_up) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_readable(pipe: &PipeReader) -> bool {
    let mut polled = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    matches!(nix::poll::poll(&mut polled, 0_u8), Ok(1..))
        && polled[0].revents().is_some_and(|flags| flags.contains(PollFlags::POLLIN))
}

/// The stored part of a log: if it gets too long, its start and its end.
struct Kept {
    half: usize,
    start: Vec<u8>,
    end: VecDeque<u8>,
    dropped: usize,
}

impl Kept {
    fn new(bytes_max: usize) -> Kept {
        Kept { half: bytes_max / 2, start: Vec::new(), end: VecDeque::new(), dropped: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.half.saturating_sub(self.start.len()).min(bytes.len());
        self.start.extend_from_slice(&bytes[..room]);
        self.end.extend(&bytes[room..]);
        let excess = self.end.len().saturating_sub(self.half);
        self.end.drain(..excess);
        self.dropped += excess;
    }

    fn bytes(&self) -> Vec<u8> {
        let mut all = self.start.clone();
        if self.dropped > 0 {
            all.extend(format!("\n*    diag  {} bytes of the log are not kept (-b)\n", self.dropped).bytes());
        }
        all.extend(&self.end);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn of_a_long_log_start_and_end_are_kept() {
        let mut kept = Kept::new(8);
        kept.add(b"abcdef");
        assert_eq!(kept.bytes(), b"abcdef");
        kept.add(b"ghijkl");
        let text = String::from_utf8(kept.bytes()).unwrap();
        assert!(text.starts_with("abcd\n") && text.ends_with("ijkl") && text.contains("4 bytes"), "{text}");
    }
}
