//! The HTTP/2 end of clients and servers: `stream N { … }`.
//!
//! This is not an HTTP/2 implementation: it sends exactly the frames of the script, valid or not,
//! in any order, and waits for the frames that a script expects. It sends no automatic answers, not
//! even to PING or SETTINGS.
//!
//! ```text
//! http.rs ──stream N──► a thread per running stream: stream.rs, its commands
//!                          └──► connection.rs: one socket for all
//!                                  └──► state.rs: received data ──► hpack.rs, frame.rs
//! ```
//!
//! Source: vtc(7), stream; the stock 7.1.1 runner. Differences: pseudo-headers that are set by an
//! option or added come first, as RFC 9113 §8.3 requires; padding and priority may be combined; a
//! change of the table's size may be combined with headers.

mod connection;
pub mod frame;
pub mod hpack;
pub mod state;
mod static_table;
mod stream;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::Socket;

use crate::journal::Journal;
use crate::lex::Word;
use crate::specification::{self, Arguments, parse_number};
use crate::test::{Cancel, Outcome};
use crate::threads;
use connection::Connection;

/// The bytes that a client sends first.
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Number of bytes of it that are sent at first: a daemon must not decide before it has seen all of
/// it.
pub(crate) const PREFACE_FIRST_BYTES: usize = 18;
/// Initial actions of both sides, unless the script has its own.
pub(crate) const SETTINGS: &[u8] =
    b"txsettings\nrxsettings\ntxsettings -ack\nrxsettings\nexpect settings.ack == true\n";

/// One end of a connection.
pub(crate) struct Http2 {
    journal: Journal,
    connection: Arc<Connection>,
    streams: Vec<Running>,
}

/// A stream of the script.
struct Running {
    id: u32,
    journal: Journal,
    block: Option<Word>,
    thread: Option<JoinHandle<Outcome>>,
}

impl Http2 {
    /// One end of a connection after its preface.
    pub fn new(
        journal: &Journal,
        cancel: &Arc<Cancel>,
        socket: Socket,
        is_server: bool,
        is_fatal: bool,
        timeout: Duration,
    ) -> Http2 {
        let connection = Connection::new(journal, cancel, socket, is_server, is_fatal, timeout);
        Http2 { journal: journal.clone(), connection: Arc::new(connection), streams: Vec::new() }
    }

    /// Sets the mode for faults (fail the test or not), and the timeout for received bytes.
    pub fn configure(&self, is_fatal: bool, timeout: Duration) {
        self.connection.configure(is_fatal, timeout);
    }

    /// Changes the size of the table for received headers, in bytes.
    pub fn resize_decoder(&self, bytes_max: u32) {
        self.connection.lock().state.decoder.resize(bytes_max as usize);
    }

    /// Changes the size of the table for sent headers, in bytes.
    pub fn resize_encoder(&self, bytes_max: u32) {
        self.connection.lock().state.encoder.resize(bytes_max as usize);
    }

    /// Executes the words after `stream`.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn command(&mut self, arguments: &mut Arguments) -> Outcome {
        let name = arguments.text("its number")?;
        let id = parse_number(&name).and_then(|id| u32::try_from(id).ok()).filter(|id| id >> 31 == 0);
        let id = id.ok_or_else(|| self.journal.fail(format!("Stream id must be a 31-bits integer (found {name})")))?;
        let at = self.stream(id)?;
        while let Some(word) = arguments.next() {
            let option = word.text();
            if option == "-wait" {
                if self.streams[at].thread.is_none() {
                    return Err(self.journal.fail(format!("Stream {id} not -started")));
                }
                self.wait(at)?;
                continue;
            }
            // A running stream is not changed.
            self.wait(at)?;
            match option.as_str() {
                "-start" => self.start(at)?,
                "-run" => {
                    self.start(at)?;
                    self.wait(at)?;
                }
                _ if option.starts_with('-') => {
                    return Err(self.journal.fail(format!("Unknown stream argument: {option}")));
                }
                _ => self.streams[at].block = Some(word),
            }
        }
        Ok(())
    }

    /// Starts the initial commands of every connection on stream 0.
    ///
    /// # Errors
    /// The test has failed or is over.
    pub fn start_settings(&mut self, line: u32) -> Outcome {
        let at = self.stream(0)?;
        self.streams[at].block = Some(Word { bytes: SETTINGS.to_vec(), line });
        self.start(at)
    }

    /// Waits for all streams.
    ///
    /// # Errors
    /// One has failed.
    pub fn wait_for_all(&mut self) -> Outcome {
        let mut outcome = Ok(());
        for at in 0..self.streams.len() {
            outcome = outcome.and(self.wait(at));
        }
        outcome
    }

    /// The position of a stream, which is created if necessary.
    fn stream(&mut self, id: u32) -> Outcome<usize> {
        if let Some(at) = self.streams.iter().position(|stream| stream.id == id) {
            return Ok(at);
        }
        self.connection.open(id)?;
        let journal = Journal::new(&self.journal.test, &format!("{}.{id}", self.journal.name));
        self.streams.push(Running { id, journal, block: None, thread: None });
        Ok(self.streams.len() - 1)
    }

    fn start(&mut self, at: usize) -> Outcome {
        let place = self.journal.place();
        let stream = &mut self.streams[at];
        self.journal.log(2, format!("Starting stream {}", stream.id));
        stream.journal.set_place(place);
        let Some(block) = stream.block.clone() else { return Err(stream.journal.fail("Stream has no block")) };
        let (journal, id, connection) = (stream.journal.clone(), stream.id, Arc::clone(&self.connection));
        let work = move || {
            let mut actor = stream::Stream::new(&journal, connection, id);
            specification::run(&journal, &block.bytes, block.line, &mut actor)?;
            journal.log(2, format!("Ending stream {id}"));
            Ok(())
        };
        stream.thread = Some(threads::start(&self.journal, work)?);
        Ok(())
    }

    fn wait(&mut self, at: usize) -> Outcome {
        let stream = &mut self.streams[at];
        let Some(thread) = stream.thread.take() else { return Ok(()) };
        self.journal.log(2, format!("Waiting for stream {}", stream.id));
        let outcome = threads::join(&self.journal, thread);
        self.connection.lock().state.forget_frames(stream.id);
        outcome
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        // After a failure; no thread may be left behind. They have been signalled to stop.
        for stream in &mut self.streams {
            if let Some(thread) = stream.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// The settings in an `HTTP2-Settings` header: numbers and values; `None` if it is invalid.
pub(crate) fn settings_of_header(text: &[u8]) -> Option<Vec<(u16, u32)>> {
    let mut frame = frame::Frame::new(frame::kind::SETTINGS, 0, 0);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        count += 6;
        if count >= 8 {
            count -= 8;
            frame.payload.push((bits >> count) as u8);
        }
    }
    frame.payload.len().is_multiple_of(6).then(|| frame.settings().collect())
}

#[cfg(test)]
mod tests {
    use super::settings_of_header;

    #[test]
    fn settings_are_read_from_their_header() {
        assert_eq!(settings_of_header(b"AAMAAABkAAQAAP__").unwrap(), [(3, 100), (4, 65535)]);
        assert_eq!(settings_of_header(b"").unwrap(), []);
        assert_eq!(settings_of_header(b"AAM"), None);
        assert_eq!(settings_of_header(b"AAMA?ABk"), None);
    }
}
