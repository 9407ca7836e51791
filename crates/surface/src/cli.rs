//! The commands of the management CLI, one row each: name, number of arguments, executing process.
//!
//! `help`, the argument checks, the split between manager and worker and the reference page derive
//! from these rows. Each row is also a variant of [`ManagerCommand`] or [`WorkerCommand`], which
//! the two processes match without a catch-all arm: a row without an implementation does not
//! compile. Source: `help -j` and `help -a` of Varnish 7.1.1; the help lines are Copal's own.

/// The process that executes a command, with the command itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executor {
    /// The manager, with or without a running worker.
    Manager(ManagerCommand),
    /// The worker; without one, the command is unknown.
    Worker(WorkerCommand),
}

/// One command.
#[derive(Debug)]
pub struct CommandRow {
    /// The verb, as typed.
    pub verb: &'static str,
    /// The line that `help` shows.
    pub syntax: &'static str,
    /// Description in one line.
    pub help: &'static str,
    /// Minimum number of arguments, without a leading `-j`.
    pub arguments_min: usize,
    /// Maximum number of arguments; `None` = no limit.
    pub arguments_max: Option<usize>,
    /// A leading `-j` produces JSON.
    pub json: bool,
    /// For tests and emergencies: shown by `help -d` and `help -a` only.
    pub hidden: bool,
    /// The process that executes it.
    pub executor: Executor,
}

/// The commands whose last argument is a VCL, which may be long.
pub const CARRYING_VCL: &[&str] = &["vcl.inline"];

macro_rules! commands {
    ($($name:ident $verb:literal $syntax:literal $min:literal $max:tt $json:ident $hidden:ident $process:ident $help:literal;)*) => {
        /// Every command, sorted by verb.
        pub static COMMANDS: &[CommandRow] = &[
            $(CommandRow {
                verb: $verb, syntax: $syntax, help: $help, arguments_min: $min, arguments_max: commands!(@max $max),
                json: commands!(@json $json), hidden: commands!(@hidden $hidden),
                executor: commands!(@executor $process $name),
            },)*
        ];
        command_enums! { [] [] $($process $name $verb)* }
    };
    (@executor Manager $name:ident) => { Executor::Manager(ManagerCommand::$name) };
    (@executor Worker $name:ident) => { Executor::Worker(WorkerCommand::$name) };
    (@max any) => { None };
    (@max $max:literal) => { Some($max) };
    (@json json) => { true };
    (@json text) => { false };
    (@hidden hidden) => { true };
    (@hidden shown) => { false };
}

/// Sorts the names of all rows by process, and declares an enum for each of the two.
macro_rules! command_enums {
    ([$($manager:tt)*] [$($worker:tt)*] Manager $name:ident $verb:literal $($rest:tt)*) => {
        command_enums! { [$($manager)* $name $verb] [$($worker)*] $($rest)* }
    };
    ([$($manager:tt)*] [$($worker:tt)*] Worker $name:ident $verb:literal $($rest:tt)*) => {
        command_enums! { [$($manager)*] [$($worker)* $name $verb] $($rest)* }
    };
    ([$($manager:ident $manager_verb:literal)*] [$($worker:ident $worker_verb:literal)*]) => {
        /// A command that the manager executes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ManagerCommand {
            $(#[doc = concat!("`", $manager_verb, "`")] $manager,)*
        }
        /// A command that the worker executes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WorkerCommand {
            $(#[doc = concat!("`", $worker_verb, "`")] $worker,)*
        }
    };
}

commands! {
    AcmeList "acme.list" "acme.list [-j]" 0 0 json shown Manager "Show the ACME certificates: names, state, expiry, next order, last error.";
    AcmeRenew "acme.renew" "acme.renew [<name>]" 0 1 text shown Manager "Order all ACME certificates now, or only the one for a name.";
    Auth "auth" "auth <response>" 1 1 text shown Manager "Answer the authentication challenge of this connection.";
    BackendList "backend.list" "backend.list [-j] [-p] [<backend_pattern>]" 0 2 json shown Worker "Show backends and directors and their health.";
    BackendSetHealth "backend.set_health" "backend.set_health <backend_pattern> [auto|healthy|sick]" 2 2 text shown Worker "Override the health of backends; auto returns to the result of the probe.";
    Ban "ban" "ban <field> <operator> <arg> [&& <field> <oper> <arg> ...]" 3 any text shown Worker "Remove every stored object that matches all conditions.";
    BanList "ban.list" "ban.list [-j]" 0 0 json shown Worker "Show the bans that are still in force.";
    Banner "banner" "banner" 0 0 text shown Manager "Show the greeting of a new connection.";
    DashLogin "dash.login" "dash.login" 0 0 text shown Manager "Print an address of the dashboard that logs in once, within a minute.";
    DebugFragfetch "debug.fragfetch" "debug.fragfetch" 1 1 text hidden Worker "Read from backends in pieces of N bytes; 0 = no limit.";
    DebugListenAddress "debug.listen_address" "debug.listen_address" 0 0 text hidden Worker "Show the listening addresses.";
    DebugPanicMaster "debug.panic.master" "debug.panic.master" 0 0 text hidden Manager "Panic in the manager.";
    DebugPanicWorker "debug.panic.worker" "debug.panic.worker" 0 0 text hidden Worker "Panic in the worker.";
    DebugReqpoolFail "debug.reqpool.fail" "debug.reqpool.fail" 1 1 text hidden Worker "Make the next request allocations fail, one letter each: F fails, _ does not.";
    DebugShutdownDelay "debug.shutdown.delay" "debug.shutdown.delay" 1 1 text hidden Worker "Delay the end of the worker by N seconds.";
    DebugSrandom "debug.srandom" "debug.srandom" 0 1 text hidden Worker "Seed the random numbers that VCL sees.";
    DebugVmod "debug.vmod" "debug.vmod" 0 0 text hidden Worker "Show the VMODs in use.";
    DebugXid "debug.xid" "debug.xid [<xid> [<cachesize>]]" 0 2 text hidden Worker "Show or set the next transaction number.";
    FleetBan "fleet.ban" "fleet.ban [--wait[=<time>]] <field> <operator> <arg> [&& ...]" 1 any text shown Manager "Remove every stored object that matches, on all nodes of the fleet; --wait (5s) reports each node.";
    FleetDrain "fleet.drain" "fleet.drain [off]" 0 1 text shown Manager "Announce that this node will leave the fleet, or with off that it stays.";
    FleetForget "fleet.forget" "fleet.forget [--wait[=<time>]] <node>" 1 2 text shown Manager "Remove a node that does not return from the fleet; unless it left in order, all nodes remove everything.";
    FleetLeave "fleet.leave" "fleet.leave [--wait[=<time>]]" 0 1 text shown Manager "Leave the fleet for good; from then on this node passes until it is restarted without -o fleet.";
    FleetList "fleet.list" "fleet.list [-j]" 0 0 json shown Manager "Show the nodes of the fleet.";
    FleetPurge "fleet.purge" "fleet.purge [--soft] [--wait[=<time>]] <url>|--prefix <url>|--tag <tag>..." 1 any text shown Manager "Remove objects by URL, by the beginning of their URL or by tags, on all nodes of the fleet; --soft leaves objects with a tag in grace.";
    FleetStatus "fleet.status" "fleet.status [-j]" 0 0 json shown Manager "Show the contact of this node with its fleet, and how it serves.";
    Help "help" "help [-j|<command>]" 0 1 json shown Manager "List the commands, or describe one.";
    PanicClear "panic.clear" "panic.clear [-z]" 0 1 text shown Manager "Clear the last panic; -z resets its counter as well.";
    PanicShow "panic.show" "panic.show [-j]" 0 0 json shown Manager "Show the last panic of the worker.";
    ParamReset "param.reset" "param.reset <param>" 1 1 text shown Manager "Reset a parameter to its default.";
    ParamSet "param.set" "param.set [-j] <param> <value>" 2 2 json shown Manager "Set a parameter.";
    ParamShow "param.show" "param.show [-l|-j] [<param>|changed]" 0 2 json shown Manager "Show parameters and their values.";
    Pid "pid" "pid [-j]" 0 0 json shown Manager "Show the process IDs of the manager and the worker.";
    Ping "ping" "ping [-j] [<timestamp>]" 0 1 json shown Manager "Keep the connection alive.";
    Quit "quit" "quit" 0 0 text shown Manager "Close the connection.";
    Start "start" "start" 0 0 text shown Manager "Start the worker.";
    Status "status" "status [-j]" 0 0 json shown Manager "Show the state of the worker.";
    Stop "stop" "stop" 0 0 text shown Manager "Stop the worker; the manager stays, and the command start starts another. copal stop ends the whole server.";
    StorageList "storage.list" "storage.list [-j]" 0 0 json shown Manager "Show the storages.";
    TagCount "tag.count" "tag.count [-j] <tag>..." 1 any json shown Worker "Print the number of objects with any of these tags.";
    TagPurge "tag.purge" "tag.purge [-j] <tag>..." 1 any json shown Worker "Remove the objects with any of these tags (xkey, Surrogate-Key, Cache-Tag); print their number.";
    TagSoftpurge "tag.softpurge" "tag.softpurge [-j] <tag>..." 1 any json shown Worker "Make the objects with any of these tags stale, leaving grace and keep; print their number.";
    TlsCertCommit "tls.cert.commit" "tls.cert.commit" 0 0 text shown Manager "Activate the staged changes; existing connections keep their certificates.";
    TlsCertDiscard "tls.cert.discard" "tls.cert.discard <id>" 1 1 text shown Manager "Stage the removal of a certificate.";
    TlsCertList "tls.cert.list" "tls.cert.list [-j] [-s]" 0 1 json shown Manager "Show the certificates, or with -s the staged ones: frontend, id, state, subject.";
    TlsCertLoad "tls.cert.load" "tls.cert.load [<id>] <file> [-f <frontend>] [-k <keyfile>] [-p <protos>] [-c <ciphers>] [-s <suites>] [-o] [-d]" 1 any text shown Manager "Stage a certificate for the next commit; -d makes it the default.";
    TlsCertReload "tls.cert.reload" "tls.cert.reload" 0 0 text shown Manager "Read all certificate files again and activate them.";
    TlsCertRollback "tls.cert.rollback" "tls.cert.rollback" 0 0 text shown Manager "Discard the staged changes.";
    Upgrade "upgrade" "upgrade" 0 0 text shown Manager "Upgrade in place to the installed binary, keeping sockets, cache and VCLs.";
    VclCanary "vcl.canary" "vcl.canary [-j]" 0 0 json shown Manager "Show the canary that runs, with the figures of both groups, or how the last one ended.";
    VclDeps "vcl.deps" "vcl.deps [-j]" 0 0 json shown Manager "Show the dependencies between VCLs and labels.";
    VclDiscard "vcl.discard" "vcl.discard <name_pattern>..." 1 any text shown Manager "Unload VCLs and labels once they are unused.";
    VclHistory "vcl.history" "vcl.history [-j]" 0 0 json shown Manager "Show the last changes of the active VCL, the newest first.";
    VclInline "vcl.inline" "vcl.inline <configname> <quoted_VCLstring> [auto|cold|warm]" 2 3 text shown Manager "Compile and load the given VCL.";
    VclLabel "vcl.label" "vcl.label <label> <configname>" 2 2 text shown Manager "Point a label at a VCL.";
    VclList "vcl.list" "vcl.list [-j]" 0 0 json shown Manager "Show the VCLs and labels.";
    VclLoad "vcl.load" "vcl.load <configname> <filename> [auto|cold|warm]" 2 3 text shown Manager "Compile and load a VCL file.";
    VclPromote "vcl.promote" "vcl.promote" 0 0 text shown Manager "Make the canary the active VCL.";
    VclRollback "vcl.rollback" "vcl.rollback [<changes>]" 0 1 text shown Manager "End the canary, or return to the VCL that was active before the last N changes (1).";
    VclShow "vcl.show" "vcl.show [-v] [<configname>]" 0 2 text shown Manager "Show the source of a VCL; -v includes all files.";
    VclState "vcl.state" "vcl.state <configname> [auto|cold|warm]" 2 2 text shown Manager "Force a VCL warm or cold, or let its use decide.";
    VclSymtab "vcl.symtab" "vcl.symtab" 0 0 text hidden Manager "Show the symbols of the loaded VCLs.";
    VclUse "vcl.use" "vcl.use <configname|label> [--percent <share>] [--for <time>] [--stick <property>] [--limit <limits>] [--share-cache] [--compare <recording>] [--force]" 1 12 text shown Manager "Make this VCL the active one, or with --percent a canary for a share of the clients; with --compare only if replayed requests pass.";
}

/// Fields that a condition of `ban` may test. A header name follows a field that ends with a dot.
pub static BAN_FIELDS: &[&str] =
    &["obj.age", "obj.grace", "obj.http.", "obj.keep", "obj.last_hit", "obj.status", "obj.ttl", "req.http.", "req.url"];

/// The row of a verb.
#[must_use]
pub fn command(verb: &str) -> Option<&'static CommandRow> {
    COMMANDS.binary_search_by(|row| row.verb.cmp(verb)).ok().map(|index| &COMMANDS[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_sorted_and_found() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].verb < pair[1].verb));
        assert!(COMMANDS.iter().all(|row| command(row.verb).is_some_and(|found| found.verb == row.verb)));
        assert!(command("vcl").is_none());
        assert!(COMMANDS.iter().all(|row| row.syntax.starts_with(row.verb)));
        assert!(COMMANDS.iter().all(|row| row.arguments_max.is_none_or(|max| max >= row.arguments_min)));
    }
}
