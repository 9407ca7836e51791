//! The commands of the CLI: checks them against their table rows, and executes the manager's own.
//! The worker's are passed on.

mod acme;
mod call;
mod fleet;
mod parameters;
mod tls;
mod vcl;
mod vcl_canary;
mod vcl_compare;
mod vcl_noting;
mod vcl_switch;

use crate::clock::now;
use crate::handover::predecessor;
use crate::life;
use crate::metrics_sockets::MetricsSocket;
use crate::report::Level;
use crate::state::{ChildState, Manager};
use cli_proto::json::string;
use cli_proto::response::{Response, status};
use cli_proto::server::UNKNOWN_REQUEST;
use control::messages::Request;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Instant;
use surface::cli::{COMMANDS, CommandRow, Executor, ManagerCommand, command};
use surface::counter::Mgt;
use surface::nearest::nearest;
use surface::program::Called;
use tls::TlsCommand;

pub(super) use call::Call;
pub use vcl::load_at_start;
pub use vcl_canary::watch as watch_canary;

/// Executes one command and returns its reply, not yet cut to `cli_limit`. `octets` are the words
/// that are not UTF-8, with their positions. `who`: the connection or file it comes from.
pub async fn execute(manager: &Rc<Manager>, words: &[String], octets: &[(usize, Vec<u8>)], who: &str) -> Response {
    let Some(verb) = words.first() else {
        return Response::new(status::SYNTAX, "Empty CLI command.\n");
    };
    if verb.starts_with(|letter: char| letter.is_ascii_uppercase()) {
        return Response::new(status::UNKNOWN, format!("{UNKNOWN_REQUEST}all commands are in lower-case.\n"));
    }
    if !verb.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        return Response::new(status::UNKNOWN, UNKNOWN_REQUEST);
    }
    let row = command(verb).filter(|row| is_known(row, manager.running_worker().is_some()));
    let Some(row) = row else {
        return Response::new(status::UNKNOWN, format!("{}{}", unknown(manager), meant(manager, verb)));
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
    let call = Call { manager, words, arguments, octets, who, json };
    match row.executor {
        Executor::Manager(command) => call.manage(command).await,
        Executor::Worker(_) => call.forward().await,
    }
}

/// The commands of the worker are unknown while there is none.
fn is_known(row: &CommandRow, worker_runs: bool) -> bool {
    match row.executor {
        Executor::Manager(_) => true,
        Executor::Worker(_) => worker_runs,
    }
}

fn unknown(manager: &Manager) -> &'static str {
    if manager.running_worker().is_some() {
        UNKNOWN_REQUEST
    } else {
        "Unknown request in manager process (child not running).\nType 'help' for more info."
    }
}

/// Question about the command that was probably meant. Compat: `varnishd` asks nothing.
fn meant(manager: &Manager, verb: &str) -> String {
    if manager.arguments.called == Called::Stock {
        return String::new();
    }
    let worker_runs = manager.running_worker().is_some();
    let known = COMMANDS.iter().filter(|row| !row.hidden && is_known(row, worker_runs));
    let near = nearest(verb, known.map(|row| row.verb));
    near.map(|near| format!("\nDid you mean {near}?")).unwrap_or_default()
}

impl Call<'_> {
    async fn manage(self, command: ManagerCommand) -> Response {
        match command {
            ManagerCommand::AcmeList => self.acme_list(),
            ManagerCommand::AcmeRenew => self.acme_renew(),
            // A client that is already authenticated was not challenged: with a secret, any answer
            // is wrong.
            ManagerCommand::Auth if self.manager.secret.is_some() => Response::new(status::CLOSE, ""),
            ManagerCommand::Auth => Response::new(status::CANNOT, "Secret file not configured\n"),
            ManagerCommand::Banner => {
                let worker_runs = self.manager.running_worker().is_some();
                Response::ok(crate::platform::banner(&self.manager.identification, worker_runs))
            }
            ManagerCommand::DashLogin => self.dash_login(),
            ManagerCommand::DebugPanicMaster => std::process::abort(),
            ManagerCommand::FleetBan => self.fleet_ban().await,
            ManagerCommand::FleetDrain => self.fleet_drain().await,
            ManagerCommand::FleetForget => self.fleet_forget().await,
            ManagerCommand::FleetLeave => self.fleet_leave().await,
            ManagerCommand::FleetList => self.fleet_list().await,
            ManagerCommand::FleetPurge => self.fleet_purge().await,
            ManagerCommand::FleetStatus => self.fleet_status().await,
            ManagerCommand::Help => self.help(),
            ManagerCommand::PanicClear => self.panic_clear(),
            ManagerCommand::PanicShow => self.panic_show(),
            ManagerCommand::ParamReset => self.parameter_reset().await,
            ManagerCommand::ParamSet => self.parameter_set().await,
            ManagerCommand::ParamShow => self.parameter_show(),
            ManagerCommand::Pid => self.pid(),
            ManagerCommand::Ping => self.ping(),
            ManagerCommand::Quit => Response::new(status::CLOSE, "Closing CLI connection"),
            ManagerCommand::Start => self.start().await,
            ManagerCommand::Status => self.status(),
            ManagerCommand::Stop => self.stop().await,
            ManagerCommand::StorageList => self.storage_list(),
            ManagerCommand::TlsCertCommit => self.tls(TlsCommand::Commit).await,
            ManagerCommand::TlsCertDiscard => self.tls(TlsCommand::Discard).await,
            ManagerCommand::TlsCertList => self.tls(TlsCommand::List).await,
            ManagerCommand::TlsCertLoad => self.tls(TlsCommand::Load).await,
            ManagerCommand::TlsCertReload => self.tls(TlsCommand::Reload).await,
            ManagerCommand::TlsCertRollback => self.tls(TlsCommand::Rollback).await,
            ManagerCommand::Upgrade => self.upgrade().await,
            ManagerCommand::VclCanary => self.vcl_canary().await,
            ManagerCommand::VclDeps => self.vcl_deps(),
            ManagerCommand::VclDiscard => self.vcl_discard().await,
            ManagerCommand::VclHistory => self.vcl_history(),
            ManagerCommand::VclInline => self.vcl_inline().await,
            ManagerCommand::VclLabel => self.vcl_label().await,
            ManagerCommand::VclList => self.vcl_list().await,
            ManagerCommand::VclLoad => self.vcl_load().await,
            ManagerCommand::VclPromote => self.vcl_promote().await,
            ManagerCommand::VclRollback => self.vcl_rollback().await,
            ManagerCommand::VclShow => self.vcl_show(),
            ManagerCommand::VclState => self.vcl_state().await,
            ManagerCommand::VclSymtab => self.vcl_symtab(),
            ManagerCommand::VclUse if self.is_comparison() => self.vcl_use_compared().await,
            ManagerCommand::VclUse => self.vcl_use().await,
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
        let known = |row: &&CommandRow| is_known(row, worker_runs);
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
                None => Response::new(status::UNKNOWN, format!("{UNKNOWN_REQUEST}{}", meant(self.manager, verb))),
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

    /// Compat: `varnishd` has no dashboard.
    fn dash_login(self) -> Response {
        let mut addresses = self.manager.dash.iter().filter_map(MetricsSocket::address).peekable();
        if addresses.peek().is_none() {
            return Response::new(status::CANNOT, "No dashboard: the server was started without -o dash");
        }
        let token = self.manager.tokens.give(Instant::now());
        let shown = addresses.map(|mut address| {
            match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
                IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
                IpAddr::V4(_) | IpAddr::V6(_) => {}
            }
            format!("http://{address}/#t={token}\n")
        });
        Response::ok(shown.collect::<String>())
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
            Some("-z") => self.manager.clear_count(Mgt::ChildPanic),
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

/// Sends a request to a running worker; `None` if there is none. A worker that does not answer is
/// killed.
pub(crate) async fn ask_worker(manager: &Rc<Manager>, request: Request) -> Option<Response> {
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
