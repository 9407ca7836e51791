//! Long options of the daemon: Copal's own, beside the letters of varnishd.

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
