//! Options of the daemon: Copal's own long ones, beside the letters of varnishd, and the words of `-j`.

/// One long option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongOption {
    /// As typed, without the two dashes.
    pub name: &'static str,
    /// Whether a value follows: the next argument, or what is behind `=`.
    pub takes_value: bool,
}

/// Every long option of the daemon.
pub const DAEMON: &[LongOption] = &[
    LongOption { name: "help", takes_value: false },
    LongOption { name: "log-format", takes_value: true },
    LongOption { name: "version", takes_value: false },
];

/// The values of `--log-format`: how the daemon's own messages are written on standard error.
pub const LOG_FORMATS: [&str; 3] = ["text", "plain", "json"];

/// Sub-argument of `-j unix`: the user whose rights VCL is read with.
pub const JAIL_USER: &str = "user";
/// Sub-argument of `-j unix`: the user that the worker becomes.
pub const JAIL_WORKER: &str = "workuser";
/// Sub-argument of `-j unix`: accepted, as there is no C compiler.
pub const JAIL_COMPILERS: &str = "ccgroup";
/// Sub-argument of `-j unix`, Copal's own: the group that has the secret of the CLI beside root.
pub const JAIL_ADMINISTRATORS: &str = "admingroup";
