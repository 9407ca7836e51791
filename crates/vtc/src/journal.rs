//! The log of one test, and the failure of a test.
//!
//! Every client, server and so on has a [`Journal`] that puts its name on each line. The lines have
//! the form of the stock runner's: `**** c1    rxhdr|HTTP/1.1 200 OK\r`, with more stars for less
//! important lines, `----` for a failure, and a line `**** dT    1.234` (seconds since the start)
//! whenever time has passed. They are written to one stream, a line at a time.
//!
//! *Invariant:* the first failure is the test's; failures during the subsequent shutdown are only
//! logged. Next: `test.rs` for the shutdown.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::log::Log;
use crate::test::{Stop, Test};

/// Most bytes of one dump.
const DUMP_BYTES_MAX: usize = 8192;
/// Most bytes of one hexadecimal dump.
const HEX_BYTES_MAX: usize = 512;

/// A thread's position in the script.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Line of the command.
    pub line: u32,
    /// Its first line.
    pub source: String,
}

/// The name under which a thread logs, and its place in the script.
#[derive(Clone)]
pub struct Journal {
    /// The test.
    pub test: Arc<Test>,
    /// The name on the lines.
    pub name: String,
    place: Arc<Mutex<Place>>,
}

impl Journal {
    /// A journal for a new thread.
    #[must_use]
    pub fn new(test: &Arc<Test>, name: &str) -> Journal {
        Journal { test: Arc::clone(test), name: name.to_owned(), place: Arc::default() }
    }

    /// A journal with another name for the same thread.
    #[must_use]
    pub fn named(&self, name: &str) -> Journal {
        Journal { test: Arc::clone(&self.test), name: name.to_owned(), place: Arc::clone(&self.place) }
    }

    /// A journal with the same name for a thread that starts at this place.
    #[must_use]
    pub fn forked(&self) -> Journal {
        let journal = Journal::new(&self.test, &self.name);
        journal.set_place(self.place());
        journal
    }

    /// Sets the current place in the script.
    pub fn set_place(&self, place: Place) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }

    /// The current place in the script.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Logs a line. Levels: 1 for the course of the test, 2 for commands, 3 for events, 4 for
    /// details.
    pub fn log(&self, level: usize, text: impl AsRef<str>) {
        self.test.log.write(&format!("{} {:<5} {}\n", lead(level), self.name, text.as_ref().trim_end_matches('\n')));
    }

    /// Logs bytes line by line, with unprintable ones escaped.
    pub fn dump(&self, level: usize, prefix: &str, bytes: &[u8]) {
        let lead = format!("{} {:<5} {prefix}|", lead(level), self.name);
        let shown = &bytes[..bytes.len().min(DUMP_BYTES_MAX)];
        let mut text = String::new();
        let mut pieces = shown.split_inclusive(|byte| *byte == b'\n').peekable();
        if pieces.peek().is_none() {
            let _ = writeln!(text, "{lead}");
        }
        for piece in pieces {
            text.push_str(&lead);
            for byte in piece.strip_suffix(b"\n").unwrap_or(piece) {
                push_escaped(&mut text, *byte);
            }
            text.push('\n');
        }
        if bytes.len() > shown.len() {
            let _ = writeln!(text, "{lead} [...] ({})", bytes.len() - shown.len());
        }
        self.test.log.write(&text);
    }

    /// Logs bytes in hexadecimal.
    pub fn hexdump(&self, level: usize, prefix: &str, bytes: &[u8]) {
        let mut text = String::new();
        for row in bytes[..bytes.len().min(HEX_BYTES_MAX)].chunks(16) {
            let _ = write!(text, "{} {:<5} {prefix}| ", lead(level), self.name);
            for byte in row {
                let _ = write!(text, " {byte:02x}");
            }
            text.push('\n');
        }
        if bytes.len() > HEX_BYTES_MAX {
            let _ = writeln!(text, "{} {:<5} {prefix}|  ... ({})", lead(level), self.name, bytes.len() - HEX_BYTES_MAX);
        }
        self.test.log.write(&text);
    }

    /// Fails the test, with the place in the script.
    pub fn fail(&self, text: impl AsRef<str>) -> Stop {
        let place = self.place();
        let text = text.as_ref().trim_end_matches('\n');
        let mut lines = format!("---- {:<5} {text}\n", self.name);
        if place.line > 0 {
            let _ = writeln!(lines, "---- {:<5} at line {}: {}", self.name, place.line, place.source.trim());
        }
        if self.test.is_stopping() {
            self.test.log.write(&lines.replace("---- ", "*    "));
            return self.test.stop_reason();
        }
        self.test.log.write(&lines);
        self.test.fail();
        Stop::Failed
    }

    /// Defines a macro of this entity (`c1` and `addr`: `${c1_addr}`) and logs it.
    pub fn define(&self, instance: &str, name: &str, text: &str) {
        let name = if instance.is_empty() { name.to_owned() } else { format!("{instance}_{name}") };
        self.test.macros.define(&name, text.as_bytes());
        self.log(4, format!("macro def {name}={text}"));
    }

    /// Removes a macro of this entity.
    pub fn forget(&self, instance: &str, name: &str) {
        let name = format!("{instance}_{name}");
        if self.test.macros.forget(&name) {
            self.log(4, format!("macro undef {name}"));
        }
    }

    /// Replaces macros, or fails the test.
    ///
    /// # Errors
    /// An unknown macro.
    pub fn expand(&self, text: &[u8]) -> Result<Vec<u8>, Stop> {
        self.test.macros.expand(text, self.test.keeps_unknown_macros()).map_err(|reason| self.fail(reason))
    }
}

fn lead(level: usize) -> &'static str {
    ["----", "*   ", "**  ", "*** ", "****"][level.min(4)]
}

fn push_escaped(text: &mut String, byte: u8) {
    match byte {
        b'\r' => text.push_str("\\r"),
        b'\t' => text.push_str("\\t"),
        b' '..=b'~' => text.push(byte as char),
        _ => {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
}
