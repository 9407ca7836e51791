//! The manager's process: its start and its end.

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cli_proto::auth::{self, CHALLENGE_BYTES};
use cli_proto::response::status;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shm::read::counters::{CounterReader, CounterValue};
use shm::read::vsm::Vsm;
use socket2::Socket;

use super::cli::Cli;
use super::log::LogCopy;
use crate::address;
use crate::journal::Journal;
use crate::test::{Cancel, Outcome, Stop, Waited};
use crate::threads;

/// Placeholder in the command line for the address of the test's end of the CLI.
pub(super) const CLI_ADDRESS: &str = "\u{1}cli\u{1}";
/// Time limit for an abandoned daemon to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which the end of a process is checked.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A launched daemon.
pub(super) struct Manager {
    child: Child,
    /// Closing this makes the daemon end.
    input: Option<ChildStdin>,
    output: Option<JoinHandle<Outcome>>,
    output_cancel: Arc<Cancel>,
    pub cli: Cli,
    log: LogCopy,
    vsm: Vsm,
    counters: CounterReader,
}

impl Manager {
    /// Starts the daemon and waits for its CLI connection.
    pub fn launch(journal: &Journal, folder: &Path, command: &[u8], cancel: &Cancel) -> Outcome<Manager> {
        let settings = &journal.test.settings;
        let cannot = |what: &str, error: &dyn std::fmt::Display| journal.fail(format!("{what}: {error}"));
        let (listener, address) = address::listen(&settings.listen_address, 1)
            .map_err(|reason| cannot("Create CLI listen socket failed", &reason))?;
        journal.log(2, "Launch");
        let line =
            String::from_utf8_lossy(command).replace(CLI_ADDRESS, &format!("{} {}", address.address, address.port));
        let line = journal.expand(line.as_bytes())?;
        journal.log(3, format!("CMD: {}", String::from_utf8_lossy(&line)));
        let (reader, writer) = std::io::pipe().map_err(|error| cannot("no pipe", &error))?;
        let errors = writer.try_clone().map_err(|error| cannot("no pipe", &error))?;
        let mut shell = journal.test.shell(&line);
        let started = shell.stdin(std::process::Stdio::piped()).stdout(writer).stderr(errors).spawn();
        // The command holds the other ends of the pipe.
        drop(shell);
        let mut child = started.map_err(|error| cannot("the daemon cannot be started", &error))?;
        journal.log(3, format!("PID: {}", child.id()));
        journal.define(&journal.name, "pid", &child.id().to_string());
        journal.define(&journal.name, "name", &folder.display().to_string());
        let input = child.stdin.take();
        let (own, output_cancel) = (journal.forked(), threads::cancel(journal)?);
        let stopped = Arc::clone(&output_cancel);
        let output = threads::start(journal, move || copy_output(&own, reader, &stopped))?;
        let called = Manager::be_called(journal, &listener, &output, cancel)
            .and_then(|socket| Manager::authenticate(journal, folder, socket, cancel));
        let cli = match called {
            Ok(cli) => cli,
            Err(stop) => {
                drop(input);
                end_soon(&mut child);
                let _ = output.join();
                return Err(stop);
            }
        };
        let log = LogCopy::start(journal, folder)?;
        Ok(Manager {
            child,
            input,
            output: Some(output),
            output_cancel,
            cli,
            log,
            vsm: Vsm::new(folder),
            counters: CounterReader::new(),
        })
    }

    /// Waits for the daemon's CLI connection, or for its end without one.
    fn be_called(
        journal: &Journal,
        listener: &Socket,
        output: &JoinHandle<Outcome>,
        cancel: &Cancel,
    ) -> Outcome<Socket> {
        let deadline = Instant::now() + journal.test.settings.time_max() / 3;
        while cancel.readable(listener.as_fd(), Some(LOOK_AGAIN))? == Waited::TimedOut {
            if output.is_finished() {
                return Err(journal.fail("FAIL the daemon ended before it connected to us"));
            }
            if Instant::now() > deadline {
                return Err(journal.fail("FAIL timeout waiting for CLI connection"));
            }
        }
        address::accept(listener, cancel)?
            .map_err(|error| journal.fail(format!("FAIL no CLI connection accepted: {error}")))
    }

    fn authenticate(journal: &Journal, folder: &Path, socket: Socket, cancel: &Cancel) -> Outcome<Cli> {
        journal.log(3, "CLI connection");
        let mut cli = Cli::new(socket);
        let greeting = cli.ask(journal, None, cancel)?;
        let challenge = greeting.body.as_bytes().first_chunk::<CHALLENGE_BYTES>();
        let Some(challenge) = challenge.filter(|_| greeting.status == status::AUTHENTICATE) else {
            let (status, body) = (greeting.status, greeting.body);
            return Err(journal.fail(format!("CLI auth demand expected: {status} {body}")));
        };
        let secret = std::fs::read(folder.join("_.secret"))
            .map_err(|error| journal.fail(format!("the daemon's secret cannot be read: {error}")))?;
        let answer = format!("auth {}", auth::answer(challenge, &secret));
        let reply = cli.ask(journal, Some(answer.as_bytes()), cancel)?;
        if !reply.is_ok() {
            return Err(journal.fail(format!("CLI auth command failed: {} {}", reply.status, reply.body)));
        }
        Ok(cli)
    }

    /// The present values of all counters.
    pub fn counters(&mut self) -> Vec<CounterValue> {
        self.vsm.poll();
        self.counters.read(&self.vsm)
    }

    /// Waits for the first record of the log.
    pub fn wait_for_log(&self, cancel: &Cancel) -> Outcome {
        self.log.wait_for_record(cancel)
    }

    /// Waits until the log has been read to its end.
    pub fn wait_for_idle_log(&self, cancel: &Cancel) -> Outcome {
        self.log.wait_for_idle(cancel)
    }

    /// Ends it in the regular way, and checks its exit status.
    pub fn finish(self, journal: &Journal, wanted: i32, cancel: &Cancel) -> Outcome {
        let Manager { mut child, input, output, cli, log, .. } = self;
        drop(cli);
        drop(input);
        // Its output ends with the last of its processes.
        let ended = match output {
            Some(output) => threads::join(journal, output),
            None => Ok(()),
        };
        log.stop();
        if let Err(stop) = ended {
            end_soon(&mut child);
            return Err(stop);
        }
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => cancel.sleep(LOOK_AGAIN).inspect_err(|_| end_soon(&mut child))?,
                Err(error) => return Err(journal.fail(format!("wait failed on pid {}: {error}", child.id()))),
            }
        };
        check_status(journal, child.id(), status, &Wanted { status: wanted, signal: None, allows_core: false })
    }

    /// Ends it by any means.
    pub fn abandon(self, journal: &Journal) {
        let Manager { mut child, input, output, output_cancel, cli, log, .. } = self;
        drop(cli);
        drop(input);
        end_soon(&mut child);
        journal.log(3, format!("the daemon (pid {}) has ended", child.id()));
        output_cancel.set();
        if let Some(output) = output {
            let _ = output.join();
        }
        log.stop();
    }
}

/// The permitted ends of a process.
pub struct Wanted {
    /// The exit status.
    pub status: i32,
    /// A signal that it must (`true`) or may die of.
    pub signal: Option<(i32, bool)>,
    /// True if it may leave a core.
    pub allows_core: bool,
}

/// Fails the test unless a process ended in a permitted way.
///
/// # Errors
/// It did not.
pub fn check_status(journal: &Journal, pid: u32, status: ExitStatus, wanted: &Wanted) -> Outcome {
    journal.log(2, format!("WAIT4 pid={pid} status=0x{:04x}", status.into_raw()));
    let must_die = wanted.signal.is_some_and(|(_, must)| must);
    if !must_die && status.code() == Some(wanted.status) {
        return Ok(());
    }
    // Compat: if no signal is expected, the expected signal is 0, which means none.
    let expected_signal = wanted.signal.map_or(0, |(signal, _)| signal);
    if status.signal() == Some(expected_signal) && (wanted.allows_core || !status.core_dumped()) {
        return Ok(());
    }
    journal.log(1, format!("Expected exit: 0x{:x} signal: {expected_signal}", wanted.status));
    Err(journal.fail(format!(
        "Bad exit status: 0x{:04x} exit 0x{:x} signal {} core {}",
        status.into_raw(),
        status.code().unwrap_or(0),
        status.signal().unwrap_or(0),
        u8::from(status.core_dumped()),
    )))
}

/// Gives a process a short time to end by itself, then kills it.
fn end_soon(child: &mut Child) {
    let pid = Pid::from_raw(child.id() as i32);
    let deadline = Instant::now() + END_TIMEOUT;
    let mut was_asked = false;
    while let Ok(None) = child.try_wait() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        if !was_asked && Instant::now() > deadline - END_TIMEOUT / 2 {
            let _ = kill(pid, Signal::SIGTERM);
            was_asked = true;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Logs the output of a process, to the end.
fn copy_output(journal: &Journal, mut reader: PipeReader, cancel: &Cancel) -> Outcome {
    let mut buffer = [0; 8192];
    loop {
        match cancel.readable(reader.as_fd(), None) {
            Ok(_) => {}
            // The test has failed: the rest of the output belongs in the log.
            Err(Stop::Ended) if journal.test.has_failed() => {
                let pending = [nix::poll::PollFd::new(reader.as_fd(), nix::poll::PollFlags::POLLIN)];
                if !matches!(nix::poll::poll(&mut pending.clone(), 0_u8), Ok(1..)) {
                    return Err(Stop::Ended);
                }
            }
            Err(stop) => return Err(stop),
        }
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => journal.dump(3, "debug", &buffer[..count]),
        }
    }
    journal.log(4, "STDOUT EOF");
    Ok(())
}

/// A word quoted for the shell.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
