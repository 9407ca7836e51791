//! `varnish vNAME`: the daemon under test.
//!
//! The first command that needs it launches the manager: with its standard input held open, its CLI
//! connected to a socket of the test, and a thread that copies its log (`varnish/log.rs`). `-start`
//! then starts the worker; `-wait` and the end of the test stop it, and check for a panic and the
//! exit status.
//!
//! *Invariant:* this code uses only the daemon's outside interfaces: command line, CLI, shared
//! memory. Source: vtc(7), varnish; the stock 7.1.1 runner for the order of commands.

mod ask;
mod cli;
mod counters;
mod launch;
mod log;

use std::path::PathBuf;
use std::time::Duration;

use cli_proto::response::status;
use launch::Manager;
pub use launch::{Wanted, check_status};
use shm::layout::Layout;

use crate::journal::Journal;
use crate::macros::find;
use crate::matching;
use crate::specification::Arguments;
use crate::test::{Cancel, Outcome};

/// Pause before a command is repeated.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// A line that no VCL contains.
const END_OF_TEXT: &str = "%XJEIFLH|)Xspa8P";
/// VCL version unless `-syntax` is given.
const SYNTAX: &str = "4.1";

/// A daemon.
pub struct Varnish {
    journal: Journal,
    arguments: Vec<u8>,
    has_own_listener: bool,
    jail: Vec<u8>,
    protocol: Option<String>,
    syntax: String,
    vcl_count: u32,
    exit_status: i32,
    folder: PathBuf,
    manager: Option<Manager>,
    was_launched: bool,
}

impl Varnish {
    /// Creates a daemon that is not launched yet.
    ///
    /// # Errors
    /// Its folder can't be created.
    pub fn new(journal: Journal) -> Outcome<Varnish> {
        let folder = journal.test.settings.folder.join(&journal.name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)
            .map_err(|error| journal.fail(format!("cannot make {}: {error}", folder.display())))?;
        Ok(Varnish {
            journal,
            arguments: Vec::new(),
            has_own_listener: false,
            jail: Vec::new(),
            protocol: None,
            syntax: SYNTAX.to_owned(),
            vcl_count: 0,
            exit_status: 0,
            folder,
            manager: None,
            was_launched: false,
        })
    }

    /// Executes the words after its name. `backends` are the declarations of the servers.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments, backends: &str, cancel: &Cancel) -> Outcome {
        SYNTAX.clone_into(&mut self.syntax);
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-arg" => {
                    let argument = arguments.need("the argument")?.bytes;
                    self.must_not_run(&option)?;
                    self.has_own_listener |= argument.starts_with(b"-a");
                    self.arguments.push(b' ');
                    self.arguments.extend(argument);
                }
                "-jail" => {
                    self.jail = arguments.need("the jail")?.bytes;
                    self.must_not_run(&option)?;
                }
                "-proto" => {
                    self.protocol = Some(arguments.text("the protocol")?);
                    self.must_not_run(&option)?;
                }
                "-syntax" => self.syntax = arguments.text("the version")?,
                "-expectexit" => {
                    self.exit_status = i32::try_from(arguments.number("the exit status")?).unwrap_or(i32::MAX);
                }
                "-start" => self.start(cancel)?,
                "-stop" => self.stop(cancel)?,
                "-wait" => self.wait(cancel)?,
                "-wait-running" => self.wait_running(cancel)?,
                "-wait-stopped" => self.wait_stopped(cancel)?,
                "-cleanup" => {
                    self.finish(cancel)?;
                    arguments.end()?;
                }
                "-vcl" => {
                    let text = arguments.need("the VCL")?.bytes;
                    self.load(&text, "", None, cancel)?;
                }
                "-vcl+backend" => {
                    let text = arguments.need("the VCL")?.bytes;
                    self.load(&text, backends, None, cancel)?;
                }
                "-errvcl" => {
                    let wanted = arguments.need("the message")?.bytes;
                    let text = arguments.need("the VCL")?.bytes;
                    self.load(&text, "", Some(&wanted), cancel)?;
                }
                "-cli" => self.ask_expecting(&arguments.need("the command")?.bytes, None, None, cancel)?,
                "-cliok" => {
                    self.ask_expecting(&arguments.need("the command")?.bytes, Some(status::OK), None, cancel)?;
                }
                "-clierr" => {
                    let status = u16::try_from(arguments.number("the status")?).unwrap_or(u16::MAX);
                    let command = arguments.need("the command")?.bytes;
                    self.ask_expecting(&command, Some(status).filter(|status| *status > 0), None, cancel)?;
                }
                "-cliexpect" => {
                    let regex = matching::regex(&self.journal, &arguments.need("the regex")?.bytes)?;
                    self.ask_expecting(&arguments.need("the command")?.bytes, None, Some(&regex), cancel)?;
                }
                "-clijson" => self.ask_for_json(&arguments.need("the command")?.bytes, cancel)?,
                "-expect" => self.expect_counter(arguments, cancel)?,
                "-vsc" => self.log_counters(&arguments.text("the pattern")?, cancel)?,
                "-vsl_catchup" => self.launched(cancel)?.wait_for_idle_log(cancel)?,
                _ => return Err(self.journal.fail(format!("Unknown varnish argument: {option}"))),
            }
        }
        Ok(())
    }

    fn must_not_run(&self, option: &str) -> Outcome {
        if self.was_launched {
            return Err(self.journal.fail(format!("{option} comes too late: the daemon has been launched")));
        }
        Ok(())
    }

    /// The manager, launched if necessary.
    fn launched(&mut self, cancel: &Cancel) -> Outcome<&mut Manager> {
        if self.manager.is_none() {
            self.was_launched = true;
            let command = self.command_line();
            self.manager = Some(Manager::launch(&self.journal, &self.folder, &command, cancel)?);
        }
        self.manager.as_mut().ok_or_else(|| self.journal.fail("the daemon is not launched"))
    }

    /// The shell command, except for the address of the test's end of the CLI.
    fn command_line(&self) -> Vec<u8> {
        let settings = &self.journal.test.settings;
        let folder = self.folder.display();
        let mut line = b"cd ${pwd} && exec varnishd ".to_vec();
        line.extend_from_slice(&self.jail);
        line.extend(format!(" -d -n {folder}").bytes());
        for parameter in &settings.parameters {
            line.extend(format!(" -p {}", launch::quoted(parameter)).bytes());
        }
        if settings.keeps_folder {
            line.extend_from_slice(b" -p debug=+vcl_keep -p debug=+vmod_so_keep -p debug=+vsm_keep");
        }
        line.extend_from_slice(
            b" -l 2m -p auto_restart=off -p syslog_cli_traffic=off -p thread_pool_min=10 -p debug=+vtc_mode \
              -p vsl_mask=+Debug -p h2_initial_window_size=1m -p h2_rx_window_low_water=64k",
        );
        if !self.has_own_listener {
            line.extend(format!(" -a '{}'", settings.listen_address).bytes());
            if let Some(protocol) = &self.protocol {
                line.extend(format!(",{protocol}").bytes());
            }
        }
        line.extend(format!(" -M '{}' -P {folder}/varnishd.pid", launch::CLI_ADDRESS).bytes());
        if let Some(path) = &settings.vmod_path {
            line.extend(format!(" -p vmod_path={path}").bytes());
        }
        line.push(b' ');
        line.extend_from_slice(&self.arguments);
        line
    }

    fn start(&mut self, cancel: &Cancel) -> Outcome {
        self.launched(cancel)?;
        self.journal.log(2, "Start");
        self.ask_ok("start", cancel)?;
        self.wait_running(cancel)?;
        // Compat: since 7.3 the number is that of the next transaction, not that of the last one.
        let base = match log::layout(&self.folder) {
            Some(Layout::V73) => 1000,
            Some(Layout::V71) | None => 999,
        };
        self.ask_ok(&format!("debug.xid {base}"), cancel)?;
        let addresses = self.ask_ok("debug.listen_address", cancel)?;
        self.name_addresses(&addresses)?;
        // Without a record the log does not work, nor does any reader of it.
        self.launched(cancel)?.wait_for_log(cancel)
    }

    /// Defines the macros for the daemon's listening addresses, given as lines of `NAME ADDRESS
    /// PORT`.
    fn name_addresses(&self, lines: &str) -> Outcome {
        let own = self.journal.name.clone();
        let mut previous = "";
        for (number, line) in lines.lines().enumerate() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let [name, address, port] = words[..] else {
                return Err(self.journal.fail(format!("debug.listen_address gave a strange line: {line}")));
            };
            let (address, port, socket) = match port {
                "-" => ("0.0.0.0", "0", address.to_owned()),
                port if address.contains(':') => (address, port, format!("[{address}]:{port}")),
                port => (address, port, format!("{address}:{port}")),
            };
            if number == 0 {
                self.journal.log(2, format!("Listen on {address} {port}"));
                self.journal.define(&own, "addr", address);
                self.journal.define(&own, "port", port);
                self.journal.define(&own, "sock", &socket);
            }
            if name != previous {
                self.journal.define(&own, &format!("{name}_addr"), address);
                self.journal.define(&own, &format!("{name}_port"), port);
                self.journal.define(&own, &format!("{name}_sock"), &socket);
            }
            previous = name;
        }
        Ok(())
    }

    /// Loads a VCL and uses it; with `wanted`, it must fail to compile, with a message that
    /// contains that text.
    fn load(&mut self, text: &[u8], backends: &str, wanted: Option<&[u8]>, cancel: &Cancel) -> Outcome {
        self.launched(cancel)?;
        self.vcl_count += 1;
        let name = format!("vcl{}", self.vcl_count);
        let mut command = format!("vcl.inline {name} << {END_OF_TEXT}\nvcl {};\n{backends}", self.syntax).into_bytes();
        command.extend_from_slice(text);
        command.extend(format!("\n{END_OF_TEXT}\n").bytes());
        let mut reply = self.ask(&command, cancel)?;
        let message = reply.body.clone();
        if reply.is_ok() {
            reply = self.ask(format!("vcl.use {name}").as_bytes(), cancel)?;
        }
        match (reply.is_ok(), wanted) {
            (true, None) => Ok(()),
            (false, None) => Err(self.journal.fail("VCL compilation failed expected success")),
            (true, Some(_)) => Err(self.journal.fail("VCL compilation succeeded expected failure")),
            (false, Some(wanted)) => {
                self.journal.log(2, "VCL compilation failed (as expected)");
                let shown = String::from_utf8_lossy(wanted);
                if find(message.as_bytes(), wanted).is_none() {
                    return Err(self.journal.fail(format!("Did not find expected string: (\"{shown}\")")));
                }
                self.journal.log(3, format!("Found expected string: (\"{shown}\")"));
                Ok(())
            }
        }
    }

    fn wait_running(&mut self, cancel: &Cancel) -> Outcome {
        loop {
            self.journal.log(3, "wait-running");
            match self.ask_ok("status", cancel)?.as_str() {
                "Child in state running" => break,
                state @ "Child in state stopped" => {
                    return Err(self.journal.fail(format!("Child stopped before running: {state}")));
                }
                _ => cancel.sleep(ASK_AGAIN)?,
            }
        }
        self.ask_ok("debug.listen_address", cancel).map(|_| ())
    }

    fn wait_stopped(&mut self, cancel: &Cancel) -> Outcome {
        self.journal.log(3, "wait-stopped");
        while self.ask_ok("status", cancel)? != "Child in state stopped" {
            cancel.sleep(ASK_AGAIN)?;
        }
        Ok(())
    }

    fn stop(&mut self, cancel: &Cancel) -> Outcome {
        self.launched(cancel)?;
        self.journal.log(2, "Stop");
        self.ask(b"stop", cancel)?;
        self.wait_stopped(cancel)
    }

    /// Stops it, and checks for a panic and its exit status. Does nothing if it is not running.
    ///
    /// # Errors
    /// It did not end as expected.
    pub fn wait(&mut self, cancel: &Cancel) -> Outcome {
        if self.manager.is_none() {
            return Ok(());
        }
        self.journal.log(2, "Wait");
        // For the log: shows if the worker still answers.
        self.ask(b"backend.list", cancel)?;
        self.stop(cancel)?;
        if self.ask(b"panic.show", cancel)?.status != status::CANNOT {
            return Err(self.journal.fail("Unexpected panic"));
        }
        self.finish(cancel)
    }

    fn finish(&mut self, cancel: &Cancel) -> Outcome {
        let Some(manager) = self.manager.take() else { return Ok(()) };
        manager.finish(&self.journal, self.exit_status, cancel)
    }

    /// Kills it immediately, since the test has failed.
    pub fn abandon(&mut self) {
        if let Some(manager) = self.manager.take() {
            manager.abandon(&self.journal);
        }
    }
}
