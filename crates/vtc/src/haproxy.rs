//! `haproxy hNAME`: a haproxy, if one is installed.
//!
//! Every `fd@${NAME}` in its configuration becomes a listening socket that it inherits; the
//! descriptor's number is in the environment variable NAME, and the address in the macros
//! `${hNAME_NAME_addr}` and so on. Its program and further arguments can be set in the environment
//! (`HAPROXY_PROGRAM`, `HAPROXY_ARGS`). Source: vtc(7), haproxy. Next: `haproxy/cli.rs` for its
//! command line.

mod cli;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::address;
use crate::journal::Journal;
use crate::lex::Word;
use crate::macros::find;
use crate::server::Server;
use crate::specification::Arguments;
use crate::test::{Cancel, Outcome};
use crate::threads;
use crate::varnish::{Wanted, check_status};

/// The message about a valid configuration.
const GOOD_CONFIGURATION: &[u8] = b"Configuration file is valid";
/// First number of an inherited socket.
const FIRST_DESCRIPTOR: i32 = 10;
/// Most inherited sockets.
const SOCKETS_MAX: usize = 200;
/// Time that a signal has to take effect before a stronger one is sent.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Polling interval.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A haproxy.
pub struct Haproxy {
    journal: Journal,
    folder: PathBuf,
    arguments: String,
    is_worker: bool,
    has_master_cli: bool,
    is_daemon: bool,
    exit_status: i32,
    configuration: Vec<u8>,
    /// Names and sockets that haproxy inherits.
    sockets: Vec<(String, OwnedFd)>,
    cli: Option<Word>,
    master_cli: Option<Word>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: JoinHandle<Outcome>,
    /// The process to signal.
    pid: u32,
    only_checks: bool,
}

/// Its output, for searches.
type Said = Arc<Mutex<Vec<u8>>>;

impl Haproxy {
    /// Creates a haproxy that is not started yet.
    ///
    /// # Errors
    /// Its folder can't be created, or no socket is available.
    pub fn new(journal: Journal) -> Outcome<Haproxy> {
        let folder = journal.test.settings.folder.join(&journal.name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)
            .map_err(|error| journal.fail(format!("cannot make {}: {error}", folder.display())))?;
        let haproxy = Haproxy {
            arguments: journal.test.variable("HAPROXY_ARGS").unwrap_or_default(),
            journal,
            folder,
            is_worker: false,
            has_master_cli: false,
            is_daemon: false,
            exit_status: 0,
            configuration: Vec::new(),
            sockets: Vec::new(),
            cli: None,
            master_cli: None,
            running: None,
        };
        // The socket is closed at once: no process answers at this address.
        haproxy.listen("closed").map(|_| haproxy)
    }

    /// A listening socket, and its macros.
    fn listen(&self, name: &str) -> Outcome<OwnedFd> {
        let (socket, address) = address::listen("127.0.0.1:0", 100)
            .map_err(|reason| self.journal.fail(format!("Create listen socket failed: {reason}")))?;
        let instance = format!("{}_{name}", self.journal.name);
        self.journal.define(&instance, "sock", &address.socket);
        self.journal.define(&instance, "addr", &address.address);
        self.journal.define(&instance, "port", &address.port);
        Ok(socket.into())
    }

    /// Executes the words after its name.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments, servers: &[&Server], cancel: &Cancel) -> Outcome {
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-conf-OK" => {
                    let text = arguments.need("the configuration")?.bytes;
                    self.configure(&text, "")?;
                    self.check(GOOD_CONFIGURATION, cancel)?;
                }
                "-conf-BAD" => {
                    let wanted = arguments.need("the message")?.bytes;
                    let text = arguments.need("the configuration")?.bytes;
                    self.configure(&text, "")?;
                    self.exit_status = 1;
                    self.check(&wanted, cancel)?;
                }
                "-conf" => {
                    let text = arguments.need("the configuration")?.bytes;
                    self.configure(&text, "")?;
                }
                "-conf+backend" => {
                    let text = arguments.need("the configuration")?.bytes;
                    let backends = self.backends(servers)?;
                    self.configure(&text, &backends)?;
                }
                "-D" => self.is_daemon = true,
                "-W" => self.is_worker = true,
                "-S" => self.has_master_cli = true,
                "-arg" => {
                    let argument = arguments.text("the argument")?;
                    self.arguments.push(' ');
                    self.arguments.push_str(&argument);
                }
                "-cli" => {
                    self.cli = Some(arguments.need("the block")?);
                    if self.running.is_some() {
                        self.talk(cancel)?;
                    }
                }
                "-mcli" => {
                    self.master_cli = Some(arguments.need("the block")?);
                    if self.running.is_some() {
                        self.talk(cancel)?;
                    }
                }
                "-expectexit" => {
                    self.exit_status = i32::try_from(arguments.number("the exit status")?).unwrap_or(i32::MAX);
                }
                "-start" => {
                    self.start(false, cancel)?;
                }
                "-wait" => {
                    if self.running.is_none() {
                        self.start(false, cancel)?;
                    }
                    self.wait(cancel)?;
                }
                _ => return Err(self.journal.fail(format!("Unknown haproxy argument: {option}"))),
            }
        }
        Ok(())
    }

    /// Backends and frontends for the servers of the script.
    fn backends(&self, servers: &[&Server]) -> Outcome<String> {
        let mut backends = String::new();
        let mut frontends = String::new();
        for server in servers {
            let number = &server.script_name()[1..];
            let Some(name) = server.name.as_ref().filter(|name| name.port != "0") else {
                return Err(self.journal.fail(format!("haproxy cannot be put before {}", server.script_name())));
            };
            backends += &format!("\n    backend be{number}\n\tserver srv{number} {}:{}\n", name.address, name.port);
            frontends +=
                &format!("\n    frontend http{number}\n\tuse_backend be{number}\n\tbind \"fd@${{fe{number}}}\"\n");
        }
        Ok(backends + &frontends)
    }

    fn configure(&mut self, text: &[u8], backends: &str) -> Outcome {
        let socket = self.folder.join("stats.sock");
        let mut all =
            format!("    global\n\tstats socket \"{}\" level admin mode 600\n", socket.display()).into_bytes();
        all.extend_from_slice(b"    stats socket \"fd@${cli}\" level admin\n");
        all.extend_from_slice(text);
        all.extend_from_slice(backends.as_bytes());
        self.sockets.clear();
        let mut rest = &all[..];
        while let Some(at) = find(rest, b"fd@${") {
            rest = &rest[at + 5..];
            let Some(end) = rest.iter().position(|byte| *byte == b'}') else { break };
            let name = String::from_utf8_lossy(&rest[..end]).into_owned();
            if self.sockets.len() == SOCKETS_MAX {
                return Err(self.journal.fail(format!("more than {SOCKETS_MAX} sockets in a configuration")));
            }
            if !self.sockets.iter().any(|(known, _)| *known == name) {
                let socket = self.listen(&name)?;
                self.sockets.push((name, socket));
            }
        }
        self.configuration = self.journal.expand(&all)?;
        Ok(())
    }

    fn check(&mut self, wanted: &[u8], cancel: &Cancel) -> Outcome {
        let said = self.start(true, cancel)?;
        self.wait(cancel)?;
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = String::from_utf8_lossy(wanted);
        if find(&said, wanted).is_none() {
            return Err(self.journal.fail(format!("Did not find expected string '{shown}'")));
        }
        self.journal.log(2, format!("Found expected '{shown}'"));
        Ok(())
    }

    fn start(&mut self, only_checks: bool, cancel: &Cancel) -> Outcome<Said> {
        self.journal.log(2, "Start");
        let cannot = |error: &dyn std::fmt::Display| self.journal.fail(format!("haproxy cannot be started: {error}"));
        let program = self.journal.test.variable("HAPROXY_PROGRAM").unwrap_or_else(|| "haproxy".to_owned());
        let mode = match (only_checks, self.is_daemon) {
            (true, _) => "-c",
            (_, true) => "-D",
            _ => "-d",
        };
        let mut line = format!("exec \"{program}\" {mode}");
        let mut mappings = Vec::new();
        let mut numbers = Vec::new();
        for (index, (name, socket)) in self.sockets.iter().enumerate() {
            let child_fd = FIRST_DESCRIPTOR + i32::try_from(index).unwrap_or(0);
            mappings.push(FdMapping { parent_fd: socket.try_clone().map_err(|error| cannot(&error))?, child_fd });
            numbers.push((name.clone(), child_fd.to_string()));
        }
        if self.is_worker {
            line += " -W";
            if self.has_master_cli {
                let child_fd = FIRST_DESCRIPTOR + SOCKETS_MAX as i32;
                mappings.push(FdMapping { parent_fd: self.listen("mcli")?, child_fd });
                line += &format!(" -S \"fd@{child_fd}\"");
            }
        }
        let configuration = self.folder.join("cfg");
        line += &format!(" {} -f \"{}\" ", self.arguments, configuration.display());
        let pid_file = (self.is_worker || self.is_daemon).then(|| self.folder.join("pid"));
        if let Some(path) = &pid_file {
            line += &format!(" -p \"{}\"", path.display());
        }
        self.journal.dump(4, "argv", line.as_bytes());
        // Expanded again, for macros of addresses that were not known before.
        let text = self.journal.expand(&self.configuration)?;
        self.journal.dump(4, "conf", &text);
        std::fs::write(&configuration, &text).map_err(|error| cannot(&error))?;
        let (reader, writer) = std::io::pipe().map_err(|error| cannot(&error))?;
        let errors = writer.try_clone().map_err(|error| cannot(&error))?;
        let mut command = self.journal.test.shell(line.as_bytes());
        for (name, number) in numbers {
            if self.journal.test.variable(&name).is_none() {
                command.env(name, number);
            }
        }
        command.current_dir(&self.folder).stdin(Stdio::piped()).stdout(writer).stderr(errors);
        command.fd_mappings(mappings).map_err(|error| cannot(&error))?;
        let child = command.spawn();
        // The command holds the other ends of the pipe.
        drop(command);
        let mut child = child.map_err(|error| cannot(&error))?;
        let own = self.journal.name.clone();
        self.journal.log(3, format!("PID: {}", child.id()));
        self.journal.define(&own, "pid", &child.id().to_string());
        self.journal.define(&own, "name", &self.folder.display().to_string());
        let said = Said::default();
        let (journal, heard, own_cancel) = (self.journal.forked(), Arc::clone(&said), threads::cancel(&self.journal)?);
        let output = threads::start(&self.journal, move || listen_to(&journal, reader, &heard, &own_cancel))?;
        let (input, pid) = (child.stdin.take(), child.id());
        self.running = Some(Running { child, input, output, pid, only_checks });
        if let Some(path) = pid_file.filter(|_| !only_checks) {
            self.wait_for_pid(&path, cancel)?;
        }
        Ok(said)
    }

    fn wait_for_pid(&mut self, path: &std::path::Path, cancel: &Cancel) -> Outcome {
        let deadline = Instant::now() + self.journal.test.settings.time_max();
        let is_daemon = self.is_daemon;
        loop {
            let pid = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
            if let (Some(pid), Some(running)) = (pid, &mut self.running)
                && (is_daemon || pid == running.pid)
                && kill(Pid::from_raw(pid as i32), None).is_ok()
            {
                running.pid = pid;
                self.journal.log(2, format!("haproxy PID {pid} successfully started"));
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.journal.fail(format!("haproxy PID file check failed: {}", path.display())));
            }
            cancel.sleep(LOOK_AGAIN)?;
        }
    }

    fn talk(&mut self, cancel: &Cancel) -> Outcome {
        for (block, what) in [(self.cli.take(), "cli"), (self.master_cli.take(), "mcli")] {
            if let Some(block) = block {
                cli::talk(&self.journal, &block, &format!("{}_{what}_sock", self.journal.name), cancel)?;
            }
        }
        Ok(())
    }

    /// Stops it, and checks its exit status. Does nothing if it is not running.
    ///
    /// # Errors
    /// It did not exit as expected.
    pub fn wait(&mut self, cancel: &Cancel) -> Outcome {
        if self.running.is_none() {
            return Ok(());
        }
        self.journal.log(2, "Wait");
        self.talk(cancel)?;
        let Some(mut running) = self.running.take() else { return Ok(()) };
        running.input = None;
        let mut signal = None;
        if self.is_daemon || !running.only_checks {
            self.journal.log(2, format!("Stop HAproxy pid={}", running.pid));
            signal = self.end(&running, cancel)?;
        }
        threads::join(&self.journal, running.output)?;
        let status = loop {
            match running.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => cancel.sleep(LOOK_AGAIN)?,
                Err(error) => return Err(self.journal.fail(format!("wait failed: {error}"))),
            }
        };
        if self.is_daemon && !running.only_checks {
            return Ok(());
        }
        // A master exits with the signal that ended it.
        let is_master = self.is_worker && !self.is_daemon && !running.only_checks;
        let wanted_status = if is_master { 128 + Signal::SIGINT as i32 } else { self.exit_status };
        let wanted = Wanted { status: wanted_status, signal: signal.map(|signal| (signal, false)), allows_core: false };
        check_status(&self.journal, running.child.id(), status, &wanted)
    }

    /// Sends increasingly strong signals until it has ended; returns the last one.
    fn end(&self, running: &Running, cancel: &Cancel) -> Outcome<Option<i32>> {
        let pid = Pid::from_raw(running.pid as i32);
        let mut last = None;
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
            let is_over = || {
                if self.is_daemon { kill(pid, None).is_err() } else { running.output.is_finished() }
            };
            if is_over() || kill(pid, signal).is_err() {
                break;
            }
            last = Some(signal as i32);
            self.journal.log(4, format!("Kill({})", signal as i32));
            let deadline = Instant::now() + SIGNAL_TIMEOUT;
            while !is_over() && Instant::now() < deadline {
                cancel.sleep(LOOK_AGAIN)?;
            }
        }
        Ok(last)
    }

    /// Kills it immediately, since the test has failed.
    pub fn abandon(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = kill(Pid::from_raw(running.pid as i32), Signal::SIGKILL);
            let _ = running.child.kill();
            let _ = running.child.wait();
            let _ = running.output.join();
        }
    }
}

/// Logs and stores its output, to the end.
fn listen_to(journal: &Journal, mut reader: std::io::PipeReader, said: &Said, cancel: &Cancel) -> Outcome {
    use std::io::Read;
    use std::os::fd::AsFd;
    let mut buffer = [0; 8192];
    loop {
        cancel.readable(reader.as_fd(), None)?;
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => {
                journal.dump(3, "debug", &buffer[..count]);
                let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                said.extend_from_slice(&buffer[..count]);
                let excess = said.len().saturating_sub(1 << 20);
                said.drain(..excess);
            }
        }
    }
}
