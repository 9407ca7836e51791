//! The stream of the lines of one test.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The stream that all journals of a test write to.
pub struct Log {
    started: Instant,
    stream: Mutex<(Box<dyn Write + Send>, Option<u128>)>,
}

impl Log {
    /// A log that starts now.
    #[must_use]
    pub fn new(stream: Box<dyn Write + Send>) -> Log {
        Log { started: Instant::now(), stream: Mutex::new((stream, None)) }
    }

    pub(crate) fn write(&self, lines: &str) {
        let milliseconds = self.started.elapsed().as_millis();
        let mut guard = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, last) = &mut *guard;
        let mut text = String::new();
        if *last != Some(milliseconds) {
            let _ = writeln!(text, "**** dT    {}.{:03}", milliseconds / 1000, milliseconds % 1000);
            *last = Some(milliseconds);
        }
        // Names, macros and messages contain text from peers and programs.
        text.push_str(&surface::legible::lines(lines.as_bytes()));
        // If the reader has gone, the error cannot be reported.
        let _ = stream.write_all(text.as_bytes());
    }
}
