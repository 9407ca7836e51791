//! The commands of the management CLI, one row each: their names, how many arguments they take, which process executes them.
//!
//! `help`, the argument checks, the split between manager and worker and the reference page derive from these rows.
//! Source: `help -j` and `help -a` of Varnish 7.1.1; the help lines are ours.

/// Which process executes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The manager, whether the worker runs or not.
    Manager,
    /// The worker; while there is none the command is unknown.
    Worker,
}

/// One command.
#[derive(Debug)]
pub struct CommandRow {
    /// The verb, as typed.
    pub verb: &'static str,
    /// The line that `help` shows.
    pub syntax: &'static str,
    /// One line that says what it does.
    pub help: &'static str,
    /// Minimum number of arguments, without a leading `-j`.
    pub arguments_min: usize,
    /// Maximum number of arguments; `None` = no limit.
    pub arguments_max: Option<usize>,
    /// Whether a leading `-j` produces JSON.
    pub json: bool,
    /// For tests and emergencies: shown by `help -d` and `help -a` only.
    pub hidden: bool,
    /// Which process executes it.
    pub process: Process,
}

/// The commands whose last argument is a VCL, which may be long.
pub const CARRYING_VCL: &[&str] = &["vcl.inline"];

macro_rules! commands {
    ($($verb:literal $syntax:literal $min:literal $max:tt $json:ident $hidden:ident $process:ident $help:literal;)*) => {
        /// Every command, sorted by verb.
        pub static COMMANDS: &[CommandRow] = &[
            $(CommandRow {
                verb: $verb, syntax: $syntax, help: $help, arguments_min: $min, arguments_max: commands!(@max $max),
                json: commands!(@json $json), hidden: commands!(@hidden $hidden), process: Process::$process,
            },)*
        ];
    };
    (@max any) => { None };
    (@max $max:literal) => { Some($max) };
    (@json json) => { true };
    (@json text) => { false };
    (@hidden hidden) => { true };
    (@hidden shown) => { false };
}

commands! {
    "acme.list" "acme.list [-j]" 0 0 json shown Manager "Show the certificates that are ordered: names, state, end, next order, last error.";
    "acme.renew" "acme.renew [<name>]" 0 1 text shown Manager "Order them now, or only that for a name, whatever was tried before.";
    "auth" "auth <response>" 1 1 text shown Manager "Answer the challenge that this connection began with.";
    "backend.list" "backend.list [-j] [-p] [<backend_pattern>]" 0 2 json shown Worker "Show backends and directors and their health.";
    "backend.set_health" "backend.set_health <backend_pattern> [auto|healthy|sick]" 2 2 text shown Worker "Overrule, or with auto obey again, the probes of backends.";
    "ban" "ban <field> <operator> <arg> [&& <field> <oper> <arg> ...]" 3 any text shown Worker "Make every stored object that matches all conditions obsolete.";
    "ban.list" "ban.list [-j]" 0 0 json shown Worker "Show the bans that are still in force.";
    "banner" "banner" 0 0 text shown Manager "Show the text that greets a new connection.";
    "debug.fragfetch" "debug.fragfetch" 1 1 text hidden Worker "Read from backends in pieces of so many bytes; 0 as usual.";
    "debug.listen_address" "debug.listen_address" 0 0 text hidden Worker "Show the addresses that are listened on.";
    "debug.panic.master" "debug.panic.master" 0 0 text hidden Manager "End the manager by a panic.";
    "debug.panic.worker" "debug.panic.worker" 0 0 text hidden Worker "End the worker by a panic.";
    "debug.reqpool.fail" "debug.reqpool.fail" 1 1 text hidden Worker "Let the next allocations of requests fail, one letter each: F fails, _ does not.";
    "debug.shutdown.delay" "debug.shutdown.delay" 1 1 text hidden Worker "Let the worker wait so many seconds before it ends.";
    "debug.srandom" "debug.srandom" 0 1 text hidden Worker "Seed the random numbers that VCL sees.";
    "debug.vmod" "debug.vmod" 0 0 text hidden Worker "Show the VMODs in use.";
    "debug.xid" "debug.xid [<xid> [<cachesize>]]" 0 2 text hidden Worker "Show or set the next transaction number.";
    "help" "help [-j|<command>]" 0 1 json shown Manager "Show the commands, or what one of them does.";
    "panic.clear" "panic.clear [-z]" 0 1 text shown Manager "Forget the last panic; with -z set its counter to zero as well.";
    "panic.show" "panic.show [-j]" 0 0 json shown Manager "Show the last panic of the worker.";
    "param.reset" "param.reset <param>" 1 1 text shown Manager "Give a parameter its default value.";
    "param.set" "param.set [-j] <param> <value>" 2 2 json shown Manager "Give a parameter a value.";
    "param.show" "param.show [-l|-j] [<param>|changed]" 0 2 json shown Manager "Show parameters and their values.";
    "pid" "pid [-j]" 0 0 json shown Manager "Show the process numbers of the manager and of a running worker.";
    "ping" "ping [-j] [<timestamp>]" 0 1 json shown Manager "Keep the connection alive.";
    "quit" "quit" 0 0 text shown Manager "Close the connection.";
    "start" "start" 0 0 text shown Manager "Start the worker.";
    "status" "status [-j]" 0 0 json shown Manager "Say what state the worker is in.";
    "stop" "stop" 0 0 text shown Manager "Stop the worker.";
    "storage.list" "storage.list [-j]" 0 0 json shown Manager "Show the storages.";
    "tag.purge" "tag.purge [-j] <tag>..." 1 any json shown Worker "Remove the objects with any of these tags (xkey, Surrogate-Key, Cache-Tag); say how many.";
    "tag.softpurge" "tag.softpurge [-j] <tag>..." 1 any json shown Worker "End the freshness of the objects with any of these tags, leaving grace and keep; say how many.";
    "tls.cert.commit" "tls.cert.commit" 0 0 text shown Manager "Serve what was staged from now on; connections that exist keep theirs.";
    "tls.cert.discard" "tls.cert.discard <id>" 1 1 text shown Manager "Stage that a certificate is served no longer.";
    "tls.cert.list" "tls.cert.list [-j] [-s]" 0 1 json shown Manager "Show the certificates, or with -s what is staged: frontend, id, state, subject.";
    "tls.cert.load" "tls.cert.load [<id>] <file> [-f <frontend>] [-k <keyfile>] [-p <protos>] [-c <ciphers>] [-s <suites>] [-o] [-d]" 1 any text shown Manager "Stage a certificate, which is served after a commit; -d makes it the default.";
    "tls.cert.reload" "tls.cert.reload" 0 0 text shown Manager "Read the files of all certificates again, and serve what they contain.";
    "tls.cert.rollback" "tls.cert.rollback" 0 0 text shown Manager "Forget what is staged.";
    "upgrade" "upgrade" 0 0 text shown Manager "Let the program that is there now take over, with sockets, cache and VCLs; this one ends.";
    "vcl.deps" "vcl.deps [-j]" 0 0 json shown Manager "Show which VCL depends on which.";
    "vcl.discard" "vcl.discard <name_pattern>..." 1 any text shown Manager "Unload VCLs and labels as soon as nothing uses them.";
    "vcl.inline" "vcl.inline <configname> <quoted_VCLstring> [auto|cold|warm]" 2 3 text shown Manager "Compile and load VCL given here.";
    "vcl.label" "vcl.label <label> <configname>" 2 2 text shown Manager "Point a label at a VCL.";
    "vcl.list" "vcl.list [-j]" 0 0 json shown Manager "Show the VCLs and labels.";
    "vcl.load" "vcl.load <configname> <filename> [auto|cold|warm]" 2 3 text shown Manager "Compile and load a VCL file.";
    "vcl.show" "vcl.show [-v] [<configname>]" 0 2 text shown Manager "Show the source of a VCL; with -v of everything that it consists of.";
    "vcl.state" "vcl.state <configname> [auto|cold|warm]" 2 2 text shown Manager "Keep a VCL warm or cold, or leave it to its use.";
    "vcl.symtab" "vcl.symtab" 0 0 text hidden Manager "Show the symbols of the loaded VCLs.";
    "vcl.use" "vcl.use <configname|label>" 1 1 text shown Manager "Serve new requests with this VCL.";
}

/// What a condition of `ban` may test; a field that ends with a dot is followed by a header's name.
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
