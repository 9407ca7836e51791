//! The script itself: its commands, in the process that runs it, and the shutdown at its end.
//!
//! Next: `specification.rs` for running commands, then the file named like the command.

use std::path::Path;
use std::sync::Arc;

use nix::sys::signal::SigSet;

use crate::barrier;
use crate::client::Client;
use crate::feature;
use crate::haproxy::Haproxy;
use crate::journal::{Journal, Log};
use crate::logexpect::Logexpect;
use crate::process::Process;
use crate::server::Server;
use crate::settings::TestSettings;
use crate::specification::{self, Actor, Arguments};
use crate::syslog::Syslog;
use crate::test::{Cancel, Outcome, Stop, Test};
use crate::tunnel::Tunnel;
use crate::varnish::Varnish;

/// Exit status of a process whose script has passed.
pub const PASSED: i32 = 0;
/// Exit status of a process whose script is skipped.
pub const SKIPPED: i32 = 1;
/// Exit status of a process whose script has failed.
pub const FAILED: i32 = 2;

/// Runs a script in this process, which is dedicated to it: the working directory becomes the
/// test's folder. Returns the exit status.
pub fn run(settings: TestSettings) -> i32 {
    // The runner waits for signals and has blocked them; programs started by a script must not
    // inherit that.
    let _ = SigSet::all().thread_unblock();
    let test = Test::new(settings, Log::new(Box::new(std::io::stdout())));
    let top = Journal::new(&test, "top");
    let name = test.settings.script.clone();
    top.log(1, format!("TEST {name} starting"));
    for (macro_name, text) in &test.settings.macros {
        top.log(4, format!("extmacro def {macro_name}={text}"));
    }
    let script = prepare(&top, Path::new(&name));
    let mut stage = match test.cancel() {
        Ok(cancel) => Stage::new(top.clone(), cancel),
        Err(error) => {
            top.fail(format!("no descriptor left: {error}"));
            return FAILED;
        }
    };
    if let Ok(text) = script {
        let _ = specification::run(&top, &text, 1, &mut stage);
    }
    test.end();
    top.log(1, format!("RESETTING after {name}"));
    stage.take_down();
    let (status, word) = match (test.has_failed(), test.is_skipped()) {
        (true, _) => (FAILED, "FAILED"),
        (_, true) => (SKIPPED, "completed"),
        _ => (PASSED, "completed"),
    };
    top.log(1, format!("TEST {name} {word}"));
    status
}

/// Reads the script, defines its macros and changes to its folder.
fn prepare(top: &Journal, path: &Path) -> Outcome<Vec<u8>> {
    let settings = &top.test.settings;
    let path = settings.working_directory.join(path);
    let cannot = |what: &str, error: std::io::Error| top.fail(format!("cannot {what}: {error}"));
    let text = std::fs::read(&path).map_err(|error| cannot("read the script", error))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    top.define("", "testdir", &folder.display().to_string());
    std::env::set_current_dir(&settings.folder).map_err(|error| cannot("go to the test's folder", error))?;
    top.define("", "tmpdir", &settings.folder.display().to_string());
    std::fs::write("INFO", format!("Test case: {}\n", settings.script)).map_err(|error| cannot("write INFO", error))?;
    Ok(text)
}

/// All actors of a script, in the order of their first use.
struct Stage {
    journal: Journal,
    cancel: Arc<Cancel>,
    clients: Vec<(String, Client)>,
    servers: Vec<(String, Server)>,
    daemons: Vec<(String, Varnish)>,
    logexpects: Vec<(String, Logexpect)>,
    processes: Vec<(String, Process)>,
    tunnels: Vec<(String, Tunnel)>,
    syslogs: Vec<(String, Syslog)>,
    haproxies: Vec<(String, Haproxy)>,
}

impl Actor for Stage {
    fn command(&mut self, journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        match name {
            "vtest" | "varnishtest" => {
                journal.log(1, format!("VTEST {}", arguments.text("what the test is about")?));
                arguments.end()?;
            }
            "feature" => feature::command(journal, arguments)?,
            "setenv" => set_variable(journal, arguments)?,
            "client" => {
                let own = self.enter('c', "Client", arguments)?;
                get(&mut self.clients, own, |own| Ok(Client::new(own)))?.command(arguments)?;
            }
            "server" => {
                let own = self.enter('s', "Server", arguments)?;
                get(&mut self.servers, own, |own| Ok(Server::new(own)))?.command(arguments)?;
            }
            "varnish" => {
                let own = self.enter('v', "Varnish", arguments)?;
                let backends: String = self.servers.iter().map(|(_, server)| server.declaration()).collect();
                get(&mut self.daemons, own, Varnish::new)?.command(arguments, &backends, &self.cancel)?;
            }
            "logexpect" => {
                let own = self.enter('l', "Logexpect", arguments)?;
                let named = |own: Journal| {
                    if arguments.next().is_none_or(|word| word.bytes != b"-v") {
                        return Err(own.fail("new logexp lacks -v"));
                    }
                    Ok(Logexpect::new(own, arguments.text("the daemon")?))
                };
                get(&mut self.logexpects, own, named)?.command(arguments, &self.cancel)?;
            }
            "process" => {
                let own = self.enter('p', "Process", arguments)?;
                get(&mut self.processes, own, Process::new)?.command(arguments, &self.cancel)?;
            }
            "tunnel" => {
                let own = self.enter('t', "Tunnel", arguments)?;
                get(&mut self.tunnels, own, |own| Ok(Tunnel::new(own)))?.command(arguments)?;
            }
            "syslog" => {
                let own = self.enter('S', "Syslog", arguments)?;
                get(&mut self.syslogs, own, |own| Ok(Syslog::new(own)))?.command(arguments)?;
            }
            "haproxy" => {
                let own = self.enter('h', "haproxy", arguments)?;
                let servers: Vec<&Server> = self.servers.iter().map(|(_, server)| server).collect();
                get(&mut self.haproxies, own, Haproxy::new)?.command(arguments, &servers, &self.cancel)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

impl Stage {
    fn new(journal: Journal, cancel: Arc<Cancel>) -> Stage {
        Stage {
            journal,
            cancel,
            clients: Vec::new(),
            servers: Vec::new(),
            daemons: Vec::new(),
            logexpects: Vec::new(),
            processes: Vec::new(),
            tunnels: Vec::new(),
            syslogs: Vec::new(),
            haproxies: Vec::new(),
        }
    }

    /// The journal of the actor whose name comes next.
    fn enter(&self, initial: char, kind: &str, arguments: &mut Arguments) -> Outcome<Journal> {
        let name = arguments.text("the name")?;
        if !name.starts_with(initial) || name.contains('/') {
            return Err(self.journal.fail(format!("{kind} name must start with '{initial}' (got {name})")));
        }
        Ok(self.journal.named(&name))
    }

    /// Shuts all actors down: regularly if the test passed, in the order of the stock runner.
    fn take_down(&mut self) {
        if !self.journal.test.is_stopping() && self.take_down_politely().is_ok() {
            return;
        }
        // Those that were not reached, or after a failure all of them.
        for (_, client) in &mut self.clients {
            let _ = client.wait();
        }
        for (_, haproxy) in &mut self.haproxies {
            haproxy.abandon();
        }
        for (_, logexpect) in &mut self.logexpects {
            logexpect.stop();
        }
        for (_, process) in &mut self.processes {
            process.abandon();
        }
        for (_, server) in &mut self.servers {
            server.stop();
        }
        for (_, syslog) in &mut self.syslogs {
            syslog.stop();
        }
        for (_, tunnel) in &mut self.tunnels {
            tunnel.stop();
        }
        for (_, daemon) in &mut self.daemons {
            daemon.abandon();
        }
        let _ = barrier::finish(&self.journal);
    }

    fn take_down_politely(&mut self) -> Outcome {
        barrier::finish(&self.journal)?;
        for (_, client) in &mut self.clients {
            client.wait()?;
        }
        for (_, haproxy) in &mut self.haproxies {
            haproxy.wait(&self.cancel)?;
        }
        for (_, logexpect) in &mut self.logexpects {
            logexpect.stop();
        }
        for (_, process) in &mut self.processes {
            process.finish(&self.cancel)?;
        }
        for (_, server) in &mut self.servers {
            server.stop();
            server.forget();
        }
        for (_, syslog) in &mut self.syslogs {
            syslog.stop();
        }
        for (_, tunnel) in &mut self.tunnels {
            tunnel.stop();
        }
        for (_, daemon) in &mut self.daemons {
            daemon.wait(&self.cancel)?;
        }
        Ok(())
    }
}

/// The actor with this name, created if necessary.
fn get<T>(
    all: &mut Vec<(String, T)>,
    journal: Journal,
    enter: impl FnOnce(Journal) -> Result<T, Stop>,
) -> Outcome<&mut T> {
    let index = match all.iter().position(|(name, _)| *name == journal.name) {
        Some(index) => index,
        None => {
            let name = journal.name.clone();
            all.push((name, enter(journal)?));
            all.len() - 1
        }
    };
    Ok(&mut all[index].1)
}

/// `setenv [-ifunset] NAME VALUE`.
fn set_variable(journal: &Journal, arguments: &mut Arguments) -> Outcome {
    let mut name = arguments.text("the name")?;
    let only_if_unset = name == "-ifunset";
    if only_if_unset {
        name = arguments.text("the name")?;
    }
    let value = arguments.text("the value")?;
    arguments.end()?;
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return Err(journal.fail(format!("setenv {name}: that is no name of a variable")));
    }
    if !only_if_unset || journal.test.variable(&name).is_none() {
        journal.test.set_variable(&name, &value);
    }
    Ok(())
}
