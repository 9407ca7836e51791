//! Messages of the manager for its operator: standard error in the foreground, else syslog.
//!
//! In the background the messages of the start go to standard error too, until the start is over.
//! On standard error each line begins with the time (UTC), or is one JSON object; the time is
//! omitted if the journal of systemd or a test script reads, since these add their own. Syslog adds
//! its own time. *Invariant:* messages contain no control characters except tabs and the end of
//! each line (in JSON none), since a worker's output may quote untrusted bytes.

use cli_proto::json;
use nix::sys::stat::fstat;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use surface::legible;
use surface::option::LOG_FORMATS;
use surface::program::Called;
use syslog::{Facility, Formatter3164, Logger, LoggerBackend};

/// Interval between attempts to connect to a syslog that is not running.
const SYSLOG_RETRY: Duration = Duration::from_secs(1);

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something will break if nothing is done.
    Warning,
    /// Something happened.
    Info,
    /// Something happened that only matters when looking for a fault.
    Debug,
    /// Traffic of a CLI connection: never on standard error.
    Cli,
}

/// Format of messages on standard error (`--log-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The time, the level, the text.
    #[default]
    Text,
    /// The same as Text, without the time.
    Plain,
    /// One object per line: `time`, `level`, `message`.
    Json,
}

impl LogFormat {
    /// The format with that name, one of [`LOG_FORMATS`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<LogFormat> {
        let at = LOG_FORMATS.iter().position(|known| *known == name)?;
        [LogFormat::Text, LogFormat::Plain, LogFormat::Json].get(at).copied()
    }

    /// The same format, without our own times if the reader of standard error adds them (the
    /// journal, which is detected here) or needs none: a test script, or a starter that waits for a
    /// daemon in the background.
    #[must_use]
    pub fn for_reader(self, wants_none: bool) -> LogFormat {
        let reader = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        let is_journal =
            fstat(std::io::stderr()).is_ok_and(|found| reader == format!("{}:{}", found.st_dev, found.st_ino));
        if self == LogFormat::Text && (wants_none || is_journal) { LogFormat::Plain } else { self }
    }

    /// A message as it is written, with its line feed.
    #[must_use]
    pub fn line(self, now: f64, level: Level, prefix: &str, text: &str) -> String {
        match self {
            LogFormat::Text => {
                format!("{} {prefix}{}\n", semantics::date::rfc3339(now), legible::lines(text.as_bytes()))
            }
            LogFormat::Plain => format!("{prefix}{}\n", legible::lines(text.as_bytes())),
            LogFormat::Json => format!(
                "{{\"time\": \"{}\", \"level\": \"{}\", \"message\": {}}}\n",
                semantics::date::rfc3339(now),
                level.name(),
                json::string(text)
            ),
        }
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Cli => "cli",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Level::Error => "Error: ",
            Level::Warning => "Warning: ",
            Level::Info => "Info: ",
            Level::Debug => "Debug: ",
            Level::Cli => "",
        }
    }
}

/// Destination of messages.
pub struct Reporter {
    to_stderr: Cell<Stderr>,
    format: LogFormat,
    syslog: RefCell<Syslog>,
    /// Path of the syslog socket; `None` = the system's default.
    syslog_path: Option<PathBuf>,
    called: Called,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stderr {
    All,
    /// Errors, warnings and plain lines, while the starter of a background daemon waits.
    Errors,
    None,
}

enum Syslog {
    Off,
    /// Connected with the next message, if there is a time not before then.
    Unconnected(Option<Instant>),
    Connected(Box<Logger<LoggerBackend, Formatter3164>>),
}

impl Reporter {
    /// A reporter for the foreground (standard error only) or the background (syslog).
    #[must_use]
    pub fn new(called: Called, foreground: bool, format: LogFormat) -> Reporter {
        let (stderr, syslog) =
            if foreground { (Stderr::All, Syslog::Off) } else { (Stderr::Errors, Syslog::Unconnected(None)) };
        Reporter { to_stderr: Cell::new(stderr), format, syslog: RefCell::new(syslog), syslog_path: None, called }
    }

    /// Stops using syslog.
    pub fn disable_syslog(&self) {
        *self.syslog.borrow_mut() = Syslog::Off;
    }

    /// The start is over: from now on a background daemon does not use standard error.
    pub fn detach(&self) {
        if self.to_stderr.get() == Stderr::Errors {
            self.to_stderr.set(Stderr::None);
        }
    }

    /// Writes a line to standard error without its level.
    pub fn say_plain(&self, text: &str) {
        if self.to_stderr.get() != Stderr::None {
            self.write(Level::Info, "", text);
        }
    }

    /// Sends one message.
    pub fn say(&self, level: Level, text: &str) {
        let wanted = match self.to_stderr.get() {
            Stderr::All => level != Level::Cli,
            Stderr::Errors => matches!(level, Level::Error | Level::Warning),
            Stderr::None => false,
        };
        if wanted {
            self.write(level, level.prefix(), text);
        }
        self.to_syslog(level, text);
    }

    fn write(&self, level: Level, prefix: &str, text: &str) {
        // Written in one piece, so that other output does not mix in.
        let line = self.format.line(crate::clock::now(), level, prefix, text);
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn to_syslog(&self, level: Level, text: &str) {
        let mut slot = self.syslog.borrow_mut();
        // A syslog that was connected before may have restarted: the message that showed this is
        // sent again.
        for _ in 0..2 {
            if let Syslog::Unconnected(not_before) = &*slot
                && not_before.is_none_or(|not_before| Instant::now() >= not_before)
            {
                *slot = self.connected();
            }
            let Syslog::Connected(logger) = &mut *slot else { return };
            let text = &*legible::lines(text.as_bytes());
            let sent = match level {
                Level::Error => logger.err(text),
                Level::Warning => logger.warning(text),
                Level::Info | Level::Cli => logger.info(text),
                Level::Debug => logger.debug(text),
            };
            if sent.is_ok() {
                return;
            }
            *slot = Syslog::Unconnected(None);
        }
    }

    /// Connects to syslog. While it is not running, this is not reported with every message.
    fn connected(&self) -> Syslog {
        let formatter = Formatter3164 {
            facility: Facility::LOG_LOCAL0,
            hostname: None,
            process: self.called.daemon().to_owned(),
            pid: std::process::id(),
        };
        let logger = match &self.syslog_path {
            Some(path) => syslog::unix_custom(formatter, path),
            None => syslog::unix(formatter),
        };
        match logger {
            Ok(logger) => Syslog::Connected(Box::new(logger)),
            Err(_) => Syslog::Unconnected(Some(Instant::now() + SYSLOG_RETRY)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn every_format_has_its_line() {
        let line = |name: &str| {
            let format = LogFormat::from_name(name).unwrap();
            format.line(1_795_338_809.25, Level::Info, "Info: ", "Child (1) said \u{1b}]0;x\u{7}\u{9b}\r\n\t\"ö\"")
        };
        assert_eq!(
            LOG_FORMATS.map(line),
            [
                "2026-11-22T09:13:29.250Z Info: Child (1) said %1b]0;x%07%c2%9b\r\n\t\"ö\"\n",
                "Info: Child (1) said %1b]0;x%07%c2%9b\r\n\t\"ö\"\n",
                "{\"time\": \"2026-11-22T09:13:29.250Z\", \"level\": \"info\", \"message\": \
                 \"Child (1) said \\u001b]0;x\\u0007\\u009b\\r\\n\\t\\\"ö\\\"\"}\n",
            ]
        );
        assert_eq!(LogFormat::from_name("xml"), None);
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_out() {
        let all: String = (0..=0x300).filter_map(char::from_u32).collect();
        for format in [LogFormat::Text, LogFormat::Plain, LogFormat::Json] {
            let line = format.line(0.0, Level::Error, "", &all);
            let allowed = if format == LogFormat::Json { "" } else { "\n\t" };
            let body = &line[..line.len() - 1];
            assert!(body.chars().all(|letter| !letter.is_control() || allowed.contains(letter)), "{body:?}");
            assert!(format != LogFormat::Json || serde_json::from_str::<serde_json::Value>(&line).is_ok());
        }
    }

    #[test]
    fn syslog_may_be_away_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let listen = || {
            let socket = UnixDatagram::bind(&path).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let heard = |socket: &UnixDatagram| {
            let mut room = [0; 512];
            socket.recv(&mut room).map(|length| String::from_utf8_lossy(&room[..length]).into_owned())
        };
        let mut reporter = Reporter::new(Called::Stock, false, LogFormat::Plain);
        reporter.detach();
        reporter.syslog_path = Some(path.clone());
        let socket = listen();
        reporter.say(Level::Info, "one");
        assert!(heard(&socket).unwrap().ends_with("one"));
        // It was restarted between two messages.
        drop(socket);
        std::fs::remove_file(&path).unwrap();
        let socket = listen();
        reporter.say(Level::Info, "two");
        assert!(heard(&socket).unwrap().ends_with("two"));
        // It is down for some messages.
        drop(socket);
        std::fs::remove_file(&path).unwrap();
        (0..3).for_each(|_| reporter.say(Level::Info, "lost"));
        let socket = listen();
        let deadline = Instant::now() + SYSLOG_RETRY * 20;
        let again = loop {
            reporter.say(Level::Info, "three");
            match heard(&socket) {
                Ok(text) => break text,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::yield_now();
        };
        assert!(again.ends_with("three"), "{again}");
    }

    #[test]
    fn test_scripts_get_no_times_and_json_keeps_them() {
        assert_eq!(LogFormat::Text.for_reader(true), LogFormat::Plain);
        assert_eq!(LogFormat::Json.for_reader(true), LogFormat::Json);
    }
}
