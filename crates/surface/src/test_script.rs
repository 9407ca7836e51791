//! Words of test scripts: commands and where they can be used, and features that a script can
//! require.
//!
//! The crate `vtc` implements each of them; its help lists these tables. Source: vtc(7) of Varnish
//! 7.1.

/// Place where a command can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the top of a script.
    Top,
    /// In every script and every block.
    Everywhere,
    /// In the blocks of clients and servers.
    Http,
    /// In the blocks of clients only.
    Client,
    /// In the blocks of servers only.
    Server,
    /// In the blocks of a client's or server's streams.
    Stream,
    /// In the blocks of `logexpect`.
    Logexpect,
    /// In the blocks of `tunnel`.
    Tunnel,
    /// In the blocks of `syslog`.
    Syslog,
    /// In the blocks of haproxy's command line.
    HaproxyCli,
}

impl Place {
    /// The place in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Place::Top => "the script itself",
            Place::Everywhere => "every block",
            Place::Http => "the blocks of clients and servers",
            Place::Client => "the blocks of clients",
            Place::Server => "the blocks of servers",
            Place::Stream => "the blocks of streams",
            Place::Logexpect => "the blocks of logexpect",
            Place::Tunnel => "the blocks of tunnels",
            Place::Syslog => "the blocks of syslog",
            Place::HaproxyCli => "the blocks of haproxy -cli",
        }
    }
}

/// A command of test scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandRow {
    /// Its name.
    pub name: &'static str,
    /// Place where it can be used.
    pub place: Place,
    /// Description.
    pub text: &'static str,
}

const fn row(place: Place, name: &'static str, text: &'static str) -> CommandRow {
    CommandRow { name, place, text }
}

/// Every command, by place.
pub static COMMANDS: &[CommandRow] = &[
    row(Place::Top, "client", "a client: sends requests and looks at the responses"),
    row(Place::Top, "feature", "skip the test unless the machine has this"),
    row(Place::Top, "haproxy", "a haproxy in front of or behind the daemon"),
    row(Place::Top, "logexpect", "records that the daemon must log"),
    row(Place::Top, "process", "a program in a terminal"),
    row(Place::Top, "server", "a server: the daemon's backend"),
    row(Place::Top, "setenv", "set an environment variable"),
    row(Place::Top, "syslog", "a server of syslog"),
    row(Place::Top, "tunnel", "a connection that can be stopped midway"),
    row(Place::Top, "varnish", "the daemon under test"),
    row(Place::Top, "varnishtest", "what the test is about; the first command"),
    row(Place::Top, "vtest", "what the test is about; the first command"),
    row(Place::Everywhere, "barrier", "wait for each other"),
    row(Place::Everywhere, "delay", "wait for some seconds"),
    row(Place::Everywhere, "filewrite", "write words into a file"),
    row(Place::Everywhere, "include", "run the commands of a file"),
    row(Place::Everywhere, "loop", "repeat a block"),
    row(Place::Everywhere, "shell", "run a shell command"),
    row(Place::Server, "accept", "close the connection and take the next"),
    row(Place::Server, "close", "close the connection"),
    row(Place::Http, "chunked", "send a chunk"),
    row(Place::Http, "chunkedlen", "send a chunk of this length"),
    row(Place::Http, "expect", "compare what was received"),
    row(Place::Http, "expect_close", "the other side must close now"),
    row(Place::Http, "expect_pattern", "the body must be that of chunkedlen"),
    row(Place::Http, "fatal", "errors fail the test"),
    row(Place::Http, "gunzip", "unpack the body"),
    row(Place::Http, "non_fatal", "errors are ignored"),
    row(Place::Http, "recv", "receive this many bytes"),
    row(Place::Client, "rxchunk", "receive one chunk"),
    row(Place::Server, "rxreq", "receive a request"),
    row(Place::Server, "rxreqbody", "receive a request's body"),
    row(Place::Http, "rxreqhdrs", "receive a request's head"),
    row(Place::Client, "rxresp", "receive a response"),
    row(Place::Client, "rxrespbody", "receive a response's body"),
    row(Place::Client, "rxresphdrs", "receive a response's head"),
    row(Place::Http, "send", "send this text"),
    row(Place::Http, "send_n", "send this text N times"),
    row(Place::Http, "send_urgent", "send this text out of band"),
    row(Place::Http, "sendhex", "send these bytes"),
    row(Place::Http, "shutdown", "say that nothing more will be sent"),
    row(Place::Http, "timeout", "how long to wait for bytes"),
    row(Place::Client, "txreq", "send a request"),
    row(Place::Server, "txresp", "send a response"),
    row(Place::Http, "write_body", "write the body into a file"),
    row(Place::Server, "rxpri", "receive HTTP/2's preface, and speak HTTP/2"),
    row(Place::Http, "settings", "the size of this end's table"),
    row(Place::Http, "stream", "a stream of HTTP/2"),
    row(Place::Client, "txpri", "send HTTP/2's preface, and speak HTTP/2"),
    row(Place::Server, "upgrade", "switch to HTTP/2"),
    row(Place::Stream, "expect", "compare what was received"),
    row(Place::Stream, "gunzip", "unpack the body"),
    row(Place::Stream, "rxcont", "receive CONTINUATION frames"),
    row(Place::Stream, "rxdata", "receive DATA frames"),
    row(Place::Stream, "rxframe", "receive any frame"),
    row(Place::Stream, "rxgoaway", "receive a GOAWAY frame"),
    row(Place::Stream, "rxhdrs", "receive HEADERS and CONTINUATION frames"),
    row(Place::Stream, "rxping", "receive a PING frame"),
    row(Place::Stream, "rxprio", "receive a PRIORITY frame"),
    row(Place::Stream, "rxpush", "receive PUSH_PROMISE and CONTINUATION frames"),
    row(Place::Stream, "rxreq", "receive a request"),
    row(Place::Stream, "rxresp", "receive a response"),
    row(Place::Stream, "rxrst", "receive a RST_STREAM frame"),
    row(Place::Stream, "rxsettings", "receive a SETTINGS frame"),
    row(Place::Stream, "rxwinup", "receive a WINDOW_UPDATE frame"),
    row(Place::Stream, "sendhex", "send these bytes"),
    row(Place::Stream, "txcont", "send a CONTINUATION frame"),
    row(Place::Stream, "txdata", "send a DATA frame"),
    row(Place::Stream, "txgoaway", "send a GOAWAY frame"),
    row(Place::Stream, "txping", "send a PING frame"),
    row(Place::Stream, "txprio", "send a PRIORITY frame"),
    row(Place::Stream, "txpush", "send a PUSH_PROMISE frame"),
    row(Place::Stream, "txreq", "send a request"),
    row(Place::Stream, "txresp", "send a response"),
    row(Place::Stream, "txrst", "send a RST_STREAM frame"),
    row(Place::Stream, "txsettings", "send a SETTINGS frame"),
    row(Place::Stream, "txwinup", "send a WINDOW_UPDATE frame"),
    row(Place::Stream, "write_body", "write the body into a file"),
    row(Place::Logexpect, "abort", "end the runner itself, for debugging"),
    row(Place::Logexpect, "expect", "a record that must come"),
    row(Place::Logexpect, "fail", "a record that must not come"),
    row(Place::Tunnel, "pause", "stop moving bytes"),
    row(Place::Tunnel, "recv", "move this many bytes back"),
    row(Place::Tunnel, "resume", "move bytes again"),
    row(Place::Tunnel, "send", "move this many bytes on"),
    row(Place::Syslog, "expect", "match the last message"),
    row(Place::Syslog, "recv", "wait for a message"),
    row(Place::HaproxyCli, "expect", "match the answer"),
    row(Place::HaproxyCli, "send", "send a command"),
];

/// A feature that a script can require.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureRow {
    /// Its name.
    pub name: &'static str,
    /// Description.
    pub text: &'static str,
}

const fn feature(name: &'static str, text: &'static str) -> FeatureRow {
    FeatureRow { name, text }
}

/// Every feature of the stock runner.
pub static FEATURES: &[FeatureRow] = &[
    feature("64bit", "addresses have 64 bits"),
    feature("asan", "the daemon was built with the address sanitizer"),
    feature("cmd", "this shell command succeeds"),
    feature("coverage", "the daemon counts which code is run"),
    feature("disable_aslr", "address randomisation can be switched off"),
    feature("dns", "names of the Internet are found"),
    feature("group_varnish", "there is a group varnish"),
    feature("ignore_unknown_macro", "set rather than tested: an unknown ${…} stays unchanged"),
    feature("ipv4", "127.0.0.1 works"),
    feature("ipv6", "[::1] works"),
    feature("msan", "the daemon was built with the memory sanitizer"),
    feature("persistent_storage", "the daemon has the deprecated persistent storage"),
    feature("root", "the test runs as root"),
    feature("sanitizer", "the daemon was built with any sanitizer"),
    feature("topbuild", "the runner was started with -i"),
    feature("tsan", "the daemon was built with the thread sanitizer"),
    feature("ubsan", "the daemon was built with the undefined behaviour sanitizer"),
    feature("user_varnish", "there is a user varnish"),
    feature("user_vcache", "there is a user vcache"),
    feature("workspace_emulator", "the daemon emulates workspaces"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_occurs_twice_in_a_table() {
        for (index, row) in COMMANDS.iter().enumerate() {
            let again = COMMANDS[index + 1..].iter().find(|other| other.name == row.name && other.place == row.place);
            assert_eq!(again, None);
        }
        assert!(FEATURES.is_sorted_by_key(|row| row.name));
    }
}
