//! What the manager tells its operator: standard error in the foreground, else syslog.
//!
//! In the background the messages of the start go to standard error too, until the start is over.

use std::cell::{Cell, RefCell};
use std::io::Write;
use surface::legible;
use syslog::{Facility, Formatter3164, Logger, LoggerBackend};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something will be broken if nothing is done.
    Warning,
    /// Something happened.
    Info,
    /// Something happened that only matters when looking for a fault.
    Debug,
    /// Traffic of a CLI connection: never on standard error.
    Cli,
}

/// Where messages go.
pub struct Reporter {
    to_stderr: Cell<Stderr>,
    /// Connected at the first message.
    syslog: RefCell<Syslog>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stderr {
    All,
    /// Errors, warnings and plain lines, while the start of a background daemon is watched.
    Errors,
    None,
}

enum Syslog {
    Off,
    Unconnected,
    Connected(Box<Logger<LoggerBackend, Formatter3164>>),
}

impl Reporter {
    /// A reporter for the foreground (standard error alone) or the background (syslog).
    #[must_use]
    pub fn new(foreground: bool) -> Reporter {
        let (stderr, syslog) =
            if foreground { (Stderr::All, Syslog::Off) } else { (Stderr::Errors, Syslog::Unconnected) };
        Reporter { to_stderr: Cell::new(stderr), syslog: RefCell::new(syslog) }
    }

    /// Nothing more goes to syslog.
    pub fn disable_syslog(&self) {
        *self.syslog.borrow_mut() = Syslog::Off;
    }

    /// The start is over: a background daemon leaves standard error alone from now on.
    pub fn detach(&self) {
        if self.to_stderr.get() == Stderr::Errors {
            self.to_stderr.set(Stderr::None);
        }
    }

    /// Lines on standard error without a level.
    pub fn say_plain(&self, text: &str) {
        if self.to_stderr.get() != Stderr::None {
            let _ = writeln!(std::io::stderr().lock(), "{}", legible::lines(text.as_bytes()));
        }
    }

    /// Sends one message.
    pub fn say(&self, level: Level, text: &str) {
        // Messages quote the command line, VCL, and what a worker says.
        let text = &*legible::lines(text.as_bytes());
        let prefix = match level {
            Level::Error => "Error: ",
            Level::Warning => "Warning: ",
            Level::Info => "Info: ",
            Level::Debug => "Debug: ",
            Level::Cli => "",
        };
        let wanted = match self.to_stderr.get() {
            Stderr::All => level != Level::Cli,
            Stderr::Errors => matches!(level, Level::Error | Level::Warning),
            Stderr::None => false,
        };
        if wanted {
            let _ = writeln!(std::io::stderr().lock(), "{prefix}{text}");
        }
        self.to_syslog(level, text);
    }

    fn to_syslog(&self, level: Level, text: &str) {
        let mut slot = self.syslog.borrow_mut();
        if matches!(*slot, Syslog::Unconnected) {
            let formatter = Formatter3164 {
                facility: Facility::LOG_LOCAL0,
                hostname: None,
                process: "varnishd".to_owned(),
                pid: std::process::id(),
            };
            // A machine without a syslog daemon is no reason to complain for each message.
            *slot = syslog::unix(formatter).map_or(Syslog::Off, |logger| Syslog::Connected(Box::new(logger)));
        }
        let Syslog::Connected(logger) = &mut *slot else { return };
        let sent = match level {
            Level::Error => logger.err(text),
            Level::Warning => logger.warning(text),
            Level::Info | Level::Cli => logger.info(text),
            Level::Debug => logger.debug(text),
        };
        if sent.is_err() {
            *slot = Syslog::Unconnected;
        }
    }
}
