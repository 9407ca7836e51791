//! The commands of a stream's block: receiving, comparing. Next: `stream/transmit.rs` for sending,
//! `stream/fields.rs` for the words that can be compared.

mod fields;
mod transmit;

use std::sync::Arc;

use surface::test_script::{self, Place};

use super::connection::Connection;
use super::frame::{END_HEADERS, END_STREAM, Frame, KINDS, kind};
use crate::journal::Journal;
use crate::matching::{self, Side};
use crate::payload;
use crate::specification::{Actor, Arguments};
use crate::test::{Cancel, Outcome};

/// One stream while its block is executed.
pub(super) struct Stream {
    journal: Journal,
    connection: Arc<Connection>,
    id: u32,
}

impl Actor for Stream {
    fn command(&mut self, _journal: &Journal, name: &str, arguments: &mut Arguments) -> Outcome<bool> {
        let is_known = test_script::COMMANDS.iter().any(|row| row.name == name && row.place == Place::Stream);
        if is_known {
            self.carry_out(name, arguments)?;
        }
        Ok(is_known)
    }

    fn cancel(&self) -> &Cancel {
        self.connection.cancel()
    }
}

impl Stream {
    /// A stream of a connection.
    pub fn new(journal: &Journal, connection: Arc<Connection>, id: u32) -> Stream {
        Stream { journal: journal.clone(), connection, id }
    }

    fn carry_out(&mut self, name: &str, arguments: &mut Arguments) -> Outcome {
        match name {
            "rxreq" | "rxresp" => {
                self.only_at(name, name == "rxreq")?;
                // Compat: the stock runner accepts any words here, and scripts use `-no_obj`.
                self.receive_message(name)
            }
            "rxhdrs" => self.receive_several(name, arguments, kind::HEADERS, kind::CONTINUATION, END_HEADERS),
            "rxpush" => self.receive_several(name, arguments, kind::PUSH_PROMISE, kind::CONTINUATION, END_HEADERS),
            "rxcont" => self.receive_several(name, arguments, kind::CONTINUATION, kind::CONTINUATION, END_HEADERS),
            "rxdata" => self.receive_several(name, arguments, kind::DATA, kind::DATA, END_STREAM),
            "rxprio" => self.receive_one(name, arguments, kind::PRIORITY),
            "rxrst" => self.receive_one(name, arguments, kind::RST_STREAM),
            "rxsettings" => self.receive_one(name, arguments, kind::SETTINGS),
            "rxping" => self.receive_one(name, arguments, kind::PING),
            "rxgoaway" => self.receive_one(name, arguments, kind::GOAWAY),
            "rxwinup" => self.receive_one(name, arguments, kind::WINDOW_UPDATE),
            "rxframe" => {
                arguments.end()?;
                match self.connection.next_frame(self.id)? {
                    Some(frame) => self.keep(frame),
                    None => Err(self.journal.fail("No frame received")),
                }
            }
            "sendhex" => {
                let bytes = payload::hex_bytes(&self.journal, &arguments.need("the bytes")?.bytes)?;
                arguments.end()?;
                self.journal.hexdump(4, "sendhex", &bytes);
                self.connection.send_bytes(&self.journal, &bytes)
            }
            "gunzip" => {
                arguments.end()?;
                self.gunzip()
            }
            "write_body" => {
                let path = arguments.text("the file")?;
                arguments.end()?;
                let body = self.connection.lock().state.stream(self.id).body.clone().unwrap_or_default();
                std::fs::write(&path, body)
                    .map_err(|error| self.journal.fail(format!("failed to write body: {path}: {error}")))
            }
            "expect" => self.expect(arguments),
            _ => self.transmit(name, arguments),
        }
    }

    /// Fails the test unless this end is the server, or the client.
    fn only_at(&self, name: &str, server: bool) -> Outcome {
        if self.connection.is_server == server {
            return Ok(());
        }
        let end = if server { "server" } else { "client" };
        Err(self.journal.fail(format!("\"{name}\" only possible in {end}")))
    }

    /// Stores the last frame, which `expect` inspects.
    fn keep(&self, frame: Frame) -> Outcome {
        self.connection.lock().state.stream(self.id).last = Some(frame);
        Ok(())
    }

    /// Receives a frame of this kind; `None` if the connection has ended and that is ignored.
    fn receive(&self, command: &str, number: u64, wanted: u8) -> Outcome<Option<Frame>> {
        let Some(frame) = self.connection.next_frame(self.id)? else { return Ok(None) };
        self.check(command, number, wanted, frame).map(Some)
    }

    fn check(&self, command: &str, number: u64, wanted: u8, frame: Frame) -> Outcome<Frame> {
        if frame.kind == wanted {
            return Ok(frame);
        }
        Err(self.journal.fail(format!(
            "Frame #{number} for {command} was of type {} ({}) instead of {} ({wanted})",
            frame.kind_name(),
            frame.kind,
            KINDS[usize::from(wanted)]
        )))
    }

    fn receive_one(&mut self, name: &str, arguments: &mut Arguments, wanted: u8) -> Outcome {
        arguments.end()?;
        match self.receive(name, 1, wanted)? {
            Some(frame) => self.keep(frame),
            None => Ok(()),
        }
    }

    /// `-some N`: this many frames; `-all`: up to the one with the flag.
    fn receive_several(
        &mut self,
        name: &str,
        arguments: &mut Arguments,
        first: u8,
        others: u8,
        last_flag: u8,
    ) -> Outcome {
        let (mut count, mut all) = (1, false);
        while let Some(option) = arguments.next() {
            match option.text().as_str() {
                "-some" => {
                    count = arguments.number("the count")?;
                    if count == 0 {
                        return Err(self.journal.fail("-some argument must be more than 0"));
                    }
                }
                "-all" => all = true,
                other => return Err(self.journal.fail(format!("Unknown {name} spec: {other}"))),
            }
        }
        let mut number = 1;
        loop {
            let wanted = if number == 1 { first } else { others };
            let Some(frame) = self.receive(name, number, wanted)? else { return Ok(()) };
            let is_last = frame.has(last_flag);
            self.keep(frame)?;
            if number >= count && (!all || is_last) {
                return Ok(());
            }
            number += 1;
        }
    }

    /// Receives a whole message without trailers.
    fn receive_message(&mut self, name: &str) -> Outcome {
        let mut number = 1;
        let mut frame = loop {
            match self.connection.next_frame(self.id)? {
                None => return Ok(()),
                Some(frame) if frame.kind == kind::WINDOW_UPDATE => {}
                Some(frame) => break self.check(name, number, kind::HEADERS, frame)?,
            }
        };
        let mut has_ended = frame.has(END_STREAM);
        while !frame.has(END_HEADERS) {
            number += 1;
            let Some(next) = self.receive(name, number, kind::CONTINUATION)? else { return Ok(()) };
            frame = next;
        }
        while !has_ended {
            number += 1;
            let Some(next) = self.receive(name, number, kind::DATA)? else { break };
            has_ended = next.has(END_STREAM);
            frame = next;
        }
        self.keep(frame)
    }

    fn gunzip(&mut self) -> Outcome {
        let body = self.connection.lock().state.stream(self.id).body.take();
        let Some(body) = body else { return Err(self.journal.fail("gunzip: there is no body")) };
        let (plain, problem) = payload::gunzip(&body);
        if let Some(problem) = problem {
            self.connection.fault(&self.journal, problem)?;
        }
        self.journal.log(3, format!("new bodylen {}", plain.len()));
        self.journal.dump(4, "body", &plain);
        self.connection.lock().state.stream(self.id).body = Some(plain);
        Ok(())
    }

    /// `expect LEFT OPERATOR RIGHT`.
    fn expect(&mut self, arguments: &mut Arguments) -> Outcome {
        let left = arguments.need("the left side")?.bytes;
        let operator = arguments.text("the operator")?;
        let right = arguments.need("the right side")?.bytes;
        arguments.end()?;
        let resolve = |word: &[u8]| fields::resolve(&mut self.connection.lock().state, self.id, word);
        let fail = |text: String| self.journal.fail(text);
        let left = Side { value: resolve(&left).map_err(fail)?, written: left };
        let right = Side { value: resolve(&right).map_err(fail)?, written: right };
        matching::expect(&self.journal, &left, &operator, &right)
    }
}
