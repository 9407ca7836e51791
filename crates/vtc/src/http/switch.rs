//! The change from HTTP/1 to HTTP/2: with a preface at once, or by an upgrade.

use std::time::Duration;

use super::receive::Received;
use super::{End, Http};
use crate::http2::{Http2, PREFACE, PREFACE_FIRST_BYTES, SETTINGS, settings_of_header};
use crate::journal::Journal;
use crate::specification::{self, Arguments};
use crate::test::Outcome;

/// Time between the two halves of the preface.
const PREFACE_PAUSE: Duration = Duration::from_millis(10);
/// The setting for the maximum size of the header table.
const HEADER_TABLE_SIZE: u16 = crate::http2::frame::HEADER_TABLE_SIZE;

impl Http {
    /// Executes an HTTP/2 command.
    pub(super) fn switch(&mut self, name: &str, arguments: &mut Arguments) -> Outcome {
        match name {
            "txpri" => {
                arguments.end()?;
                self.send_preface()
            }
            "rxpri" => {
                arguments.end()?;
                self.receive_preface()
            }
            "upgrade" => {
                arguments.end()?;
                self.upgrade()
            }
            "settings" => self.change_settings(arguments),
            _ => {
                if self.http2.is_none() {
                    self.begin_http2()?;
                }
                self.http2.as_mut().map_or(Ok(()), |http2| http2.command(arguments))
            }
        }
    }

    /// Passes on the settings of `fatal` and `timeout`.
    pub(super) fn configure_http2(&self) {
        if let Some(http2) = &self.http2 {
            http2.configure(self.is_fatal, self.timeout);
        }
    }

    /// Waits for the streams; HTTP/1 follows again.
    pub(super) fn leave_http2(&mut self) -> Outcome {
        match self.http2.take() {
            Some(mut http2) => http2.wait_for_all(),
            None => Ok(()),
        }
    }

    fn enter_http2(&mut self) -> Outcome {
        let socket = self.socket()?.try_clone();
        let socket = socket.map_err(|error| self.journal.fail(format!("no descriptor left: {error}")))?;
        let is_server = matches!(self.end, End::Server(_));
        self.http2 = Some(Http2::new(&self.journal, &self.cancel, socket, is_server, self.is_fatal, self.timeout));
        Ok(())
    }

    /// The prefaces and settings, which a script need not write down.
    fn begin_http2(&mut self) -> Outcome {
        self.journal.log(4, "Not in H/2 mode, do what's needed");
        match self.end {
            End::Client => self.send_preface()?,
            End::Server(_) => self.receive_preface()?,
        }
        let script = [b"stream 0 {\n", SETTINGS, b"} -run\n"].concat();
        self.run(&script)
    }

    /// Executes commands that are not in the script.
    fn run(&mut self, script: &[u8]) -> Outcome {
        let journal: Journal = self.journal.clone();
        specification::run(&journal, script, journal.place().line, self)
    }

    fn send_preface(&mut self) -> Outcome {
        self.journal.dump(4, "txpri", PREFACE);
        let (first, second) = PREFACE.split_at(PREFACE_FIRST_BYTES);
        self.send(first)?;
        self.cancel.sleep(PREFACE_PAUSE)?;
        self.send(second)?;
        self.enter_http2()
    }

    fn receive_preface(&mut self) -> Outcome {
        let mut bytes = Vec::new();
        if self.take(PREFACE.len(), &mut bytes, false)? != Received::All {
            return Err(self.journal.fail("Couldn't retrieve connection preface"));
        }
        self.journal.dump(4, "rxpri", &bytes);
        if bytes != PREFACE {
            return Err(self.journal.fail("Received invalid preface"));
        }
        self.enter_http2()
    }

    /// A server's answer to an upgrade request.
    fn upgrade(&mut self) -> Outcome {
        for (name, wanted) in [("Upgrade", "h2c"), ("Connection", "Upgrade, HTTP2-Settings")] {
            if self.request.header(name.as_bytes()).as_deref() != Some(wanted.as_bytes()) {
                return Err(self.journal.fail(format!("Req misses \"{name}: {wanted}\" header")));
            }
        }
        let Some(settings) = self.request.header(b"HTTP2-Settings") else {
            return Err(self.journal.fail("Req misses \"HTTP2-Settings\" header"));
        };
        self.run(b"txresp -status 101 -nolen -hdr \"Connection: Upgrade\" -hdr \"Upgrade: h2c\"")?;
        self.receive_preface()?;
        self.take_settings(&settings)?;
        self.start_settings()
    }

    /// The connection after a client's upgrade request.
    pub(super) fn upgraded(&mut self, settings: &[u8]) -> Outcome {
        self.run(
            b"rxresp -no_obj\nexpect resp.status == 101\nexpect resp.http.connection == Upgrade\nexpect resp.http.upgrade == h2c\n",
        )?;
        self.send_preface()?;
        self.take_settings(settings)?;
        self.start_settings()
    }

    fn start_settings(&mut self) -> Outcome {
        let line = self.journal.place().line;
        self.http2.as_mut().map_or(Ok(()), |http2| http2.start_settings(line))
    }

    /// The client's settings, as in `HTTP2-Settings`.
    fn take_settings(&self, text: &[u8]) -> Outcome {
        let Some(settings) = settings_of_header(text) else {
            return Err(self.journal.fail("Bad \"HTTP2-Settings\" header"));
        };
        for (number, value) in settings {
            self.journal.log(4, format!("Upgrade: {number}: {value}"));
            match &self.http2 {
                Some(http2) if number == HEADER_TABLE_SIZE && matches!(self.end, End::Client) => {
                    http2.resize_decoder(value);
                }
                Some(http2) if number == HEADER_TABLE_SIZE => http2.resize_encoder(value),
                _ => {}
            }
        }
        Ok(())
    }

    /// `settings -dectbl N`.
    fn change_settings(&mut self, arguments: &mut Arguments) -> Outcome {
        let Some(http2) = &self.http2 else { return Err(self.journal.fail("Only possible in H/2 mode")) };
        while let Some(word) = arguments.next() {
            match word.text().as_str() {
                "-dectbl" => {
                    let bytes = arguments.number("the size")?;
                    http2.resize_decoder(u32::try_from(bytes).unwrap_or(u32::MAX));
                }
                other => return Err(self.journal.fail(format!("Unknown settings spec: {other}"))),
            }
        }
        Ok(())
    }
}
