//! Options of the daemon: Copal's own long ones, which supplement varnishd's letters, and the words of `-j`.

/// One long option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongOption {
    /// As typed, without the two dashes.
    pub name: &'static str,
    /// Whether it takes a value: the next argument, or the text after `=`.
    pub takes_value: bool,
}

/// Every long option of the daemon.
pub const DAEMON: &[LongOption] = &[
    LongOption { name: "help", takes_value: false },
    LongOption { name: "log-format", takes_value: true },
    LongOption { name: "version", takes_value: false },
];

/// The values of `--log-format`: the form of the daemon's own messages on standard error.
pub const LOG_FORMATS: [&str; 3] = ["text", "plain", "json"];

/// Sub-argument of `-j unix`: the user with whose rights VCL is read.
pub const JAIL_USER: &str = "user";
/// Sub-argument of `-j unix`: the user that the worker becomes.
pub const JAIL_WORKER: &str = "workuser";
/// Sub-argument of `-j unix`: accepted, as there is no C compiler.
pub const JAIL_COMPILERS: &str = "ccgroup";
/// Sub-argument of `-j unix`, Copal's own: the group that, besides root, has the secret of the CLI.
pub const JAIL_ADMINISTRATORS: &str = "admingroup";
