//! `process pNAME`: a program whose input and output are a terminal.
//!
//! The library `vt100` maintains the terminal's screen, so that a script can wait for a text at a
//! position. The program's output to the terminal also goes to the file `${pNAME_out}`, and its
//! standard error to `${pNAME_err}`.
//!
//! One thread reads both (`process/output.rs`); the screen is under a lock. `process/terminal.rs`
//! makes the program the leader of its terminal. *Invariant:* a program is stopped together with
//! its whole process group. Source: vtc(7), process.

mod output;
mod screen;
pub mod terminal;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::journal::Journal;
use crate::payload::hex_bytes;
use crate::specification::{Arguments, parse_number};
use crate::test::{Cancel, Outcome};
use crate::{this_program, threads};
use output::{Logged, Reader, Shared};
use screen::SIZE;

/// Most lines or columns of a terminal.
const SIZE_MAX: u64 = 1000;
/// Time limit for a program to end after a request to end.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// Polling interval of a waiting thread.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A program in a terminal.
pub struct Process {
    journal: Journal,
    line: Option<Vec<u8>>,
    folder: PathBuf,
    logged: Logged,
    exit_status: i32,
    /// The signal that it must die of; negative if it may but need not.
    signal: i32,
    allows_core: bool,
    answers: bool,
    size: (u16, u16),
    shared: Arc<Shared>,
    terminal: Option<File>,
    running: Option<JoinHandle<Outcome>>,
}

impl Process {
    /// Creates a program that is not started yet.
    ///
    /// # Errors
    /// Its folder can't be created.
    pub fn new(journal: Journal) -> Outcome<Process> {
        let folder = journal.test.settings.folder.join(&journal.name);
        let _ = std::fs::remove_dir_all(&folder);
        let made = std::fs::create_dir_all(&folder)
            .and_then(|()| File::create(folder.join("term")))
            .and_then(|_| File::create(folder.join("stderr")));
        made.map_err(|error| journal.fail(format!("cannot make {}: {error}", folder.display())))?;
        let shared = Arc::new(Shared::default());
        Ok(Process {
            journal,
            line: None,
            folder,
            logged: Logged::Nothing,
            exit_status: 0,
            signal: 0,
            allows_core: false,
            answers: false,
            size: SIZE,
            shared,
            terminal: None,
            running: None,
        })
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments, cancel: &Cancel) -> Outcome {
        let bytes_before = self.shared.output_bytes();
        let mut has_line = false;
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-log" => self.set_logged(Logged::Lines)?,
                "-dump" => self.set_logged(Logged::Dump)?,
                "-hexdump" => self.set_logged(Logged::Hexadecimal)?,
                "-allow-core" => self.allows_core = true,
                "-ansi-response" => self.answers = true,
                "-expect-exit" => {
                    self.exit_status = i32::try_from(arguments.number("the exit status")?).unwrap_or(i32::MAX);
                    self.shared.set_exit_status(self.exit_status);
                }
                "-expect-signal" => {
                    self.signal = i32::try_from(arguments.number("the signal")?).unwrap_or(i32::MAX);
                    self.shared.set_signal(self.signal);
                }
                "-start" => self.start(cancel)?,
                "-run" => {
                    self.start(cancel)?;
                    self.wait()?;
                }
                "-wait" => self.wait()?,
                "-kill" => self.kill(&arguments.text("the signal")?)?,
                "-close" => self.kill("HUP")?,
                "-stop" => {
                    self.kill("TERM")?;
                    self.wait_for_end(cancel)?;
                }
                "-write" => self.write(&arguments.need("the text")?.bytes)?,
                "-writeln" => self.write(&[&arguments.need("the text")?.bytes[..], b"\n"].concat())?,
                "-writehex" => {
                    let bytes = hex_bytes(&self.journal, &arguments.need("the bytes")?.bytes)?;
                    self.journal.hexdump(4, "sendhex", &bytes);
                    self.write(&bytes)?;
                }
                "-need-bytes" => self.need_bytes(&arguments.text("the number")?, bytes_before, cancel)?,
                "-winsz" => self.resize(arguments)?,
                "-expect-text" => self.expect_text(arguments, cancel)?,
                "-expect-cursor" => self.expect_cursor(arguments)?,
                "-screen_dump" | "-screen-dump" => self.shared.screen().dump(&self.journal),
                _ if option.starts_with('-') || has_line => {
                    return Err(self.journal.fail(format!("Unknown process argument: {option}")));
                }
                _ => {
                    self.line = Some(word.bytes);
                    has_line = true;
                }
            }
        }
        Ok(())
    }

    fn set_logged(&mut self, logged: Logged) -> Outcome {
        if self.running.is_some() {
            return Err(self.journal.fail("how a process is logged must be said before it is started"));
        }
        self.logged = logged;
        Ok(())
    }

    fn start(&mut self, cancel: &Cancel) -> Outcome {
        if self.running.is_some() {
            return Err(self.journal.fail("Already running, -wait first"));
        }
        let Some(line) = &self.line else { return Err(self.journal.fail("process has no command")) };
        self.journal.log(4, format!("CMD: {}", String::from_utf8_lossy(line)));
        let line = self.journal.expand(line)?;
        let cannot = |error: std::io::Error| self.journal.fail(format!("the process cannot be started: {error}"));
        let (master, slave) = terminal::open().map_err(cannot)?;
        let (mut errors, error_writer) = std::io::pipe().map_err(cannot)?;
        let mut command = Command::new(this_program::PATH);
        command.arg0("varnishtest").arg(terminal::ARGUMENT).arg(slave);
        command.args([self.size.0.to_string(), self.size.1.to_string()]);
        command.arg(OsString::from_vec(line));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(error_writer);
        let mut command = self.journal.test.with_variables(command);
        let child = command.spawn();
        // The command holds the other end of the pipe.
        drop(command);
        let mut child = child.map_err(cannot)?;
        self.journal.log(3, format!("PID: {}", child.id()));
        // The first byte means that the program has its terminal.
        let ready = terminal::wait_until_ready(&mut errors, cancel);
        if !matches!(ready, Ok(true)) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(ready.err().unwrap_or_else(|| self.journal.fail("the process has got no terminal")));
        }
        let own = self.journal.name.clone();
        self.journal.define(&own, "pid", &child.id().to_string());
        self.journal.define(&own, "dir", &self.folder.display().to_string());
        self.journal.define(&own, "out", &self.folder.join("term").display().to_string());
        self.journal.define(&own, "err", &self.folder.join("stderr").display().to_string());
        self.shared.set_pid(Some(child.id()));
        let reader = Reader {
            journal: self.journal.forked(),
            cancel: threads::cancel(&self.journal)?,
            shared: Arc::clone(&self.shared),
            terminal: master.try_clone().map_err(cannot)?,
            errors,
            folder: self.folder.clone(),
            logged: self.logged,
            answers: self.answers,
            child,
            allows_core: self.allows_core,
        };
        self.shared.set_signal(self.signal);
        self.shared.set_exit_status(self.exit_status);
        self.terminal = Some(master);
        self.running = Some(threads::start(&self.journal, move || reader.run())?);
        Ok(())
    }

    /// Waits for the end of a running program.
    fn wait(&mut self) -> Outcome {
        if let Some(thread) = self.running.take() {
            threads::join(&self.journal, thread)?;
        }
        let (output, errors) = (self.shared.output_bytes(), self.shared.error_bytes());
        self.journal.log(4, format!("stdout {output} bytes, stderr {errors} bytes"));
        Ok(())
    }

    fn kill(&mut self, name: &str) -> Outcome {
        let Some(pid) = self.shared.pid() else {
            return Err(self.journal.fail("Cannot signal a non-running process"));
        };
        let number = match name {
            "TERM" => Signal::SIGTERM as i32,
            "INT" => Signal::SIGINT as i32,
            "KILL" => Signal::SIGKILL as i32,
            "HUP" => Signal::SIGHUP as i32,
            _ => name.strip_prefix('-').and_then(|number| number.parse().ok()).unwrap_or(0),
        };
        let Ok(signal) = Signal::try_from(number) else {
            return Err(self.journal.fail(format!("Could not grok signal ({name})")));
        };
        self.shared.expect_signal_unless_told(number);
        match killpg(Pid::from_raw(pid as i32), signal) {
            Ok(()) => {
                self.journal.log(4, format!("Sent signal {number}"));
                Ok(())
            }
            Err(error) => Err(self.journal.fail(format!("Failed to send signal {number} ({})", error.desc()))),
        }
    }

    /// Gives a program that was signalled some time to end.
    fn wait_for_end(&self, cancel: &Cancel) -> Outcome {
        let deadline = Instant::now() + END_TIMEOUT;
        while self.shared.pid().is_some() && Instant::now() < deadline {
            cancel.sleep(LOOK_AGAIN)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome {
        let Some(terminal) = self.terminal.as_mut().filter(|_| self.running.is_some()) else {
            return Err(self.journal.fail("Cannot write to a non-running process"));
        };
        self.journal.log(4, format!("Writing {} bytes", bytes.len()));
        let written = terminal.write_all(bytes);
        written.map_err(|error| self.journal.fail(format!("Failed to write: len={} {error}", bytes.len())))
    }

    fn need_bytes(&self, text: &str, before: u64, cancel: &Cancel) -> Outcome {
        let Some(number) = parse_number(text) else {
            return Err(self.journal.fail(format!("-need-bytes: no number: '{text}'")));
        };
        let wanted = if text.starts_with('+') { before + number } else { number };
        while self.shared.output_bytes() < wanted {
            cancel.sleep(LOOK_AGAIN)?;
        }
        self.journal.log(4, format!("Have {} bytes", self.shared.output_bytes()));
        Ok(())
    }

    fn resize(&mut self, arguments: &mut Arguments) -> Outcome {
        let (lines, columns) = (arguments.number("the lines")?, arguments.number("the columns")?);
        let fits = |number: u64| (2..=SIZE_MAX).contains(&number);
        if !fits(lines) || !fits(columns) {
            return Err(self.journal.fail(format!("a terminal of {lines} lines and {columns} columns cannot be")));
        }
        self.size = (lines as u16, columns as u16);
        self.shared.screen().resize(self.size);
        if let Some(terminal) = &self.terminal
            && let Err(error) = terminal::resize(terminal, self.size)
        {
            self.journal.log(4, format!("the terminal was not resized: {error}"));
        }
        Ok(())
    }

    fn expect_text(&self, arguments: &mut Arguments, cancel: &Cancel) -> Outcome {
        let (line, column) = (arguments.number("the line")?, arguments.number("the column")?);
        let wanted = arguments.need("the text")?;
        let shown = wanted.text();
        let mut waited = LOOK_AGAIN;
        loop {
            {
                let screen = self.shared.screen();
                if let Some((line, column)) = screen.find(line, column, &wanted.bytes) {
                    self.journal.log(4, format!("found expected text at {line},{column}: '{shown}'"));
                    return Ok(());
                }
                // A program that has ended will not draw any more.
                if self.shared.pid().is_none() && waited > END_TIMEOUT {
                    screen.dump(&self.journal);
                    return Err(self.journal.fail(format!("text not on the screen of an ended process: '{shown}'")));
                }
            }
            cancel.sleep(LOOK_AGAIN)?;
            waited += LOOK_AGAIN;
        }
    }

    fn expect_cursor(&self, arguments: &mut Arguments) -> Outcome {
        let (line, column) = (arguments.number("the line")?, arguments.number("the column")?);
        let (at_line, at_column) = self.shared.screen().cursor();
        if line != 0 && line != u64::from(at_line) {
            return Err(self.journal.fail(format!("Cursor on line {at_line} (expected {line})")));
        }
        if column != 0 && column != u64::from(at_column) {
            return Err(self.journal.fail(format!("Cursor in column {at_column} (expected {column})")));
        }
        Ok(())
    }

    /// Ends the program at the end of the test.
    ///
    /// # Errors
    /// It did not end as expected.
    pub fn finish(&mut self, cancel: &Cancel) -> Outcome {
        for signal in ["TERM", "KILL"] {
            if self.shared.pid().is_some() {
                self.kill(signal)?;
                self.wait_for_end(cancel)?;
            }
        }
        if self.running.is_some() { self.wait() } else { Ok(()) }
    }

    /// Kills the program immediately, since the test has failed.
    pub fn abandon(&mut self) {
        if let Some(pid) = self.shared.pid() {
            let _ = killpg(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        if let Some(thread) = self.running.take() {
            let _ = thread.join();
        }
    }
}
