//! The commands of the CLI: checks them against their table rows, and executes the manager's own. The worker's are
//! passed on.

mod acme;
mod parameters;
mod tls;
mod vcl;

use crate::clock::now;
use crate::handover::predecessor;
use crate::life;
use crate::report::Level;
use crate::state::{ChildState, Count, Manager};
use cli_proto::json::{JsonReply, string};
use cli_proto::response::{Response, status};
use cli_proto::server::UNKNOWN_REQUEST;
use std::rc::Rc;
use surface::cli::{COMMANDS, CommandRow, Process, command};
use worker::control::Request;

pub use vcl::load_at_start;

/// One command being executed.
struct Call<'a> {
    manager: &'a Rc<Manager>,
    /// All words, for the head of a JSON reply.
    words: &'a [String],
    /// The words after the verb and `-j`.
    arguments: &'a [String],
    /// The words that are not UTF-8, as received.
    octets: &'a [(usize, Vec<u8>)],
    json: bool,
}

impl Call<'_> {
    /// An argument, as the bytes that were sent.
    fn argument_octets(&self, index: usize) -> Vec<u8> {
        let place = index + self.words.len() - self.arguments.len();
        let octets = self.octets.iter().find(|(at, _)| *at == place);
        octets.map_or_else(|| self.arguments[index].clone().into_bytes(), |(_, octets)| octets.clone())
    }

    fn json_reply(&self, version: u32) -> JsonReply {
        JsonReply::new(version, self.words, now())
    }
}

/// Executes one command and returns its reply, not yet cut to `cli_limit`. `octets` are the words that are not UTF-8,
/// with their positions.
pub async fn execute(manager: &Rc<Manager>, words: &[String], octets: &[(usize, Vec<u8>)]) -> Response {
    let Some(verb) = words.first() else {
        return Response::new(status::SYNTAX, "Empty CLI command.\n");
    };
    if verb.starts_with(|letter: char| letter.is_ascii_uppercase()) {
        return Response::new(status::UNKNOWN, format!("{UNKNOWN_REQUEST}all commands are in lower-case.\n"));
    }
    if !verb.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        return Response::new(status::UNKNOWN, UNKNOWN_REQUEST);
    }
    let row = command(verb).filter(|row| row.process == Process::Manager || manager.running_worker().is_some());
    let Some(row) = row else {
        return Response::new(status::UNKNOWN, unknown(manager));
    };
    let json = words.get(1).is_some_and(|word| word == "-j");
    if json && !row.json {
        return Response::new(status::UNIMPLEMENTED, "JSON unimplemented\n");
    }
    let arguments = &words[1 + usize::from(json)..];
    if arguments.len() < row.arguments_min {
        return Response::new(status::TOO_FEW, "Too few parameters\n");
    }
    if row.arguments_max.is_some_and(|max| arguments.len() > max) {
        return Response::new(status::TOO_MANY, "Too many parameters\n");
    }
    let call = Call { manager, words, arguments, octets, json };
    match row.process {
        Process::Manager => call.manage(row).await,
        Process::Worker => call.forward().await,
    }
}

fn unknown(manager: &Manager) -> &'static str {
    if manager.running_worker().is_some() {
        UNKNOWN_REQUEST
    } else {
        "Unknown request in manager process (child not running).\nType 'help' for more info."
    }
}

impl Call<'_> {
    async fn manage(self, row: &CommandRow) -> Response {
        match row.verb {
            "acme.list" => self.acme_list(),
            "acme.renew" => self.acme_renew(),
            // A client that is already trusted was not challenged: with a secret, any answer is wrong.
            "auth" if self.manager.secret.is_some() => Response::new(status::CLOSE, ""),
            "auth" => Response::new(status::CANNOT, "Secret file not configured\n"),
            "banner" => {
                let worker_runs = self.manager.running_worker().is_some();
                Response::ok(crate::platform::banner(&self.manager.identification, worker_runs))
            }
            "debug.panic.master" => std::process::abort(),
            "help" => self.help(),
            "panic.clear" => self.panic_clear(),
            "panic.show" => self.panic_show(),
            "param.reset" => self.parameter_reset().await,
            "param.set" => self.parameter_set().await,
            "param.show" => self.parameter_show(),
            "pid" => self.pid(),
            "ping" => self.ping(),
            "quit" => Response::new(status::CLOSE, "Closing CLI connection"),
            "start" => self.start().await,
            "status" => self.status(),
            "stop" => self.stop().await,
            "storage.list" => self.storage_list(),
            verb if verb.starts_with("tls.cert.") => self.tls(verb).await,
            "upgrade" => self.upgrade().await,
            "vcl.deps" => self.vcl_deps(),
            "vcl.discard" => self.vcl_discard().await,
            "vcl.inline" => self.vcl_inline().await,
            "vcl.label" => self.vcl_label().await,
            "vcl.list" => self.vcl_list().await,
            "vcl.load" => self.vcl_load().await,
            "vcl.show" => self.vcl_show(),
            "vcl.state" => self.vcl_state().await,
            "vcl.symtab" => self.vcl_symtab(),
            "vcl.use" => self.vcl_use().await,
            _ => Response::new(status::UNIMPLEMENTED, "Unimplemented\n"),
        }
    }

    /// Passes the command to the worker.
    async fn forward(self) -> Response {
        let mut words = vec![self.words[0].clone()];
        words.extend_from_slice(self.arguments);
        ask_worker(self.manager, Request::Command { words, json: self.json })
            .await
            .unwrap_or_else(|| Response::new(status::UNKNOWN, unknown(self.manager)))
    }

    fn help(self) -> Response {
        let worker_runs = self.manager.running_worker().is_some();
        let known = |row: &&CommandRow| row.process == Process::Manager || worker_runs;
        if self.json {
            let mut reply = self.json_reply(2);
            COMMANDS.iter().filter(known).for_each(|row| reply.push("\n  ", &help_json(row)));
            return Response::ok(reply.finish());
        }
        let list = |hidden: bool, shown: bool| -> Response {
            let rows = COMMANDS.iter().filter(known).filter(|row| if row.hidden { hidden } else { shown });
            Response::ok(rows.map(|row| format!("{}\n", row.syntax)).collect::<String>())
        };
        match self.arguments.first().map(String::as_str) {
            None => list(false, true),
            Some("-a") => list(true, true),
            Some("-d") => list(true, false),
            Some(flag) if flag.starts_with('-') => Response::new(status::UNKNOWN, "Unknown flag\n"),
            Some(verb) => match command(verb).filter(known) {
                Some(row) => Response::ok(format!("{}\n{}\n", row.syntax, row.help)),
                None => Response::new(status::UNKNOWN, UNKNOWN_REQUEST),
            },
        }
    }

    fn ping(self) -> Response {
        if self.json {
            let mut reply = self.json_reply(2);
            reply.push(" ", "\"PONG\"\n");
            return Response::ok(reply.finish());
        }
        Response::ok(format!("PONG {:.0} 1.0", now().floor()))
    }

    fn pid(self) -> Response {
        let manager = std::process::id();
        let worker = self.manager.worker().map(|worker| worker.pid);
        if self.json {
            let worker = worker.map(|pid| format!(", \"worker\": {pid}")).unwrap_or_default();
            let mut reply = self.json_reply(2);
            reply.push("\n  ", &format!("{{\"master\": {manager}{worker}}}"));
            return Response::ok(reply.finish());
        }
        let worker = worker.map(|pid| format!("Worker: {pid:10}\n")).unwrap_or_default();
        Response::ok(format!("Master: {manager:10}\n{worker}"))
    }

    fn status(self) -> Response {
        let word = self.manager.state.get().word();
        if self.json {
            let mut reply = self.json_reply(2);
            reply.push(" ", &string(word));
            return Response::ok(reply.finish());
        }
        Response::ok(format!("Child in state {word}"))
    }

    fn storage_list(self) -> Response {
        let storages = &self.manager.arguments.storages;
        if self.json {
            let mut reply = self.json_reply(2);
            for storage in storages.all() {
                let (name, kind) = (string(&storage.name), storage.kind_shown());
                reply.push("\n  ", &format!("{{\n    \"name\": {name},\n    \"storage\": \"{kind}\"\n}}"));
            }
            return Response::ok(reply.finish());
        }
        let rows = storages.all().map(|storage| format!("\tstorage.{} = {}\n", storage.name, storage.kind_shown()));
        Response::ok(format!("Storage devices:\n{}", rows.collect::<String>()))
    }

    async fn start(self) -> Response {
        let _changes = self.manager.changes.lock().await;
        let state = self.manager.state.get();
        if state != ChildState::Stopped {
            return Response::new(status::CANNOT, format!("Child in state {}", state.word()));
        }
        let refusal = match &*self.manager.vcls.borrow() {
            vcls if vcls.active().is_some() => None,
            vcls if vcls.entries().is_empty() => Some("No VCL loaded"),
            _ => Some("No active VCL"),
        };
        if let Some(refusal) = refusal {
            return Response::new(status::CANNOT, refusal);
        }
        match life::start(self.manager).await {
            Ok(()) => Response::ok(""),
            Err(text) => {
                self.manager.say(Level::Error, &text);
                Response::new(status::CANNOT, text)
            }
        }
    }

    async fn stop(self) -> Response {
        let _changes = self.manager.changes.lock().await;
        let state = self.manager.state.get();
        if state == ChildState::Stopped {
            return Response::new(status::CANNOT, format!("Child in state {}", state.word()));
        }
        life::stop(self.manager).await;
        Response::ok("")
    }

    async fn upgrade(self) -> Response {
        match predecessor::begin(self.manager).await {
            Ok(Ok(process)) => Response::ok(format!("Upgraded: the manager is now process {process}")),
            Ok(Err(why)) => Response::new(status::CANNOT, format!("Not upgraded, the old program goes on: {why}")),
            Err(_) => Response::new(status::CANNOT, "Not upgraded: a fault of its own"),
        }
    }

    fn panic_show(self) -> Response {
        if let Some(worker) = self.manager.worker() {
            life::report_panic(self.manager, worker.pid);
        }
        let panic = self.manager.panic.borrow();
        let Some(text) = panic.as_deref() else {
            return Response::new(status::CANNOT, "Child has not panicked or panic has been cleared");
        };
        if self.json {
            let mut reply = self.json_reply(2);
            reply.push("\n  ", &string(text));
            return Response::ok(reply.finish());
        }
        Response::ok(text)
    }

    fn panic_clear(self) -> Response {
        match self.arguments.first().map(String::as_str) {
            None => {}
            Some("-z") => self.manager.clear_count(Count::ChildPanic),
            Some(other) => return Response::new(status::PARAMETER, format!("Unknown parameter \"{other}\".")),
        }
        // Compat: with -z there is always something to clear: the counter.
        if self.manager.panic.take().is_none() && self.arguments.is_empty() {
            return Response::new(status::CANNOT, "No panic to clear");
        }
        Response::ok("")
    }
}

fn help_json(row: &CommandRow) -> String {
    let max = row.arguments_max.map_or(-1, |max| i64::try_from(max).unwrap_or(i64::MAX));
    format!(
        "{{\n    \"request\": {},\n    \"syntax\": {},\n    \"help\": {},\n    \"minarg\": {},\n    \"maxarg\": {max},\n    \
         \"flags\": {},\n    \"json\": {}\n  }}",
        string(row.verb),
        string(row.syntax),
        string(row.help),
        row.arguments_min,
        if row.hidden { "\"d\"" } else { "\"\"" },
        row.json,
    )
}

/// Asks a running worker; `None` when there is none. A worker that does not answer is killed.
async fn ask_worker(manager: &Rc<Manager>, request: Request) -> Option<Response> {
    let worker = manager.running_worker()?;
    match worker.link.ask(request, manager.reply_timeout()).await {
        Ok(reply) => Some(Response::new(reply.status, reply.body)),
        Err(error) => {
            let manager = manager.clone();
            tokio::task::spawn_local(async move { life::unresponsive(&manager, &worker, error).await });
            Some(Response::new(status::COMMUNICATION, life::link_text(error)))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
