//! Sending side of a stream: frames, assembled from the words of a command.

use super::Stream;
use crate::http2::frame::{ACK, END_HEADERS, END_STREAM, ERRORS, Frame, HEADER_TABLE_SIZE, PADDED, PRIORITY, kind};
use crate::http2::hpack::{Field, Indexing, Name, Text};
use crate::http2::state::State;
use crate::payload::{self, GENERATED_BYTES_MAX, synthetic_body};
use crate::specification::{Arguments, parse_number};
use crate::test::Outcome;

/// Longest padding, in bytes.
const PADDING_BYTES_MAX: usize = 255;
/// Default weight of a stream.
const WEIGHT: u8 = 16;

/// A frame with headers under construction, and the body after it.
struct Draft {
    frame: Frame,
    /// Pseudo-headers by options: they come first.
    pseudo: Vec<Field>,
    fields: Vec<Field>,
    padding: Option<Vec<u8>>,
    promised: u32,
    body: Option<Vec<u8>>,
    depends_on: u32,
    is_exclusive: bool,
    weight: u8,
}

impl Stream {
    pub(super) fn transmit(&mut self, name: &str, arguments: &mut Arguments) -> Outcome {
        match name {
            "txreq" | "txresp" | "txpush" | "txcont" => self.send_headers(name, arguments),
            "txdata" => self.send_data(arguments),
            "txrst" => self.send_reset(arguments),
            "txprio" => self.send_priority(arguments),
            "txsettings" => self.send_settings(arguments),
            "txping" => self.send_ping(arguments),
            "txgoaway" => self.send_goaway(arguments),
            "txwinup" => self.send_window(arguments),
            _ => Err(self.journal.fail(format!("Unknown command: \"{name}\""))),
        }
    }

    fn unknown<T>(&self, name: &str, option: &str) -> Outcome<T> {
        Err(self.journal.fail(format!("Unknown {name} spec: {option}")))
    }

    /// The number after an option, of at most this many bits.
    fn number(&self, option: &str, arguments: &mut Arguments, bits: u32) -> Outcome<u32> {
        let text = arguments.text(&format!("what follows {option}"))?;
        let number = parse_number(&text).filter(|number| number >> bits == 0).and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.journal.fail(format!("{option} must be a {bits}-bits integer (found {text})")))
    }

    fn error_code(&self, arguments: &mut Arguments) -> Outcome<u32> {
        let known = arguments.peek().map(|word| word.text());
        let code = known.and_then(|name| ERRORS.iter().position(|error| *error == name));
        match code {
            Some(code) => {
                arguments.next();
                Ok(code as u32)
            }
            None => self.number("-err", arguments, 32),
        }
    }

    /// A generated text of the length after an option.
    fn generated(&self, arguments: &mut Arguments) -> Outcome<Vec<u8>> {
        let length = arguments.number("the length")?;
        if length == 0 || length > GENERATED_BYTES_MAX {
            return Err(self.journal.fail(format!("the length must be from 1 to {GENERATED_BYTES_MAX} bytes")));
        }
        Ok(synthetic_body(length as usize, None))
    }

    /// Padding by an option, if it is one of the padding options.
    fn padding(&self, option: &str, arguments: &mut Arguments, padding: &mut Option<Vec<u8>>) -> Outcome<bool> {
        let bytes = match option {
            "-pad" => arguments.need("the padding")?.bytes,
            "-padlen" => self.generated(arguments)?,
            _ => return Ok(false),
        };
        if bytes.len() > PADDING_BYTES_MAX {
            return Err(self.journal.fail(format!("Padding is limited to {PADDING_BYTES_MAX} bytes")));
        }
        match padding.replace(bytes) {
            None => Ok(true),
            Some(_) => Err(self.journal.fail("this frame has padding already")),
        }
    }

    /// `txreq`, `txresp`, `txpush`, `txcont`.
    fn send_headers(&mut self, name: &str, arguments: &mut Arguments) -> Outcome {
        let (kind, flags, mut defaults): (u8, u8, &[(&str, &str)]) = match name {
            "txreq" => {
                (kind::HEADERS, END_HEADERS | END_STREAM, &[(":path", "/"), (":method", "GET"), (":scheme", "http")])
            }
            "txresp" => (kind::HEADERS, END_HEADERS | END_STREAM, &[(":status", "200")]),
            "txpush" => (kind::PUSH_PROMISE, END_HEADERS, &[(":path", "/"), (":method", "GET"), (":scheme", "http")]),
            _ => (kind::CONTINUATION, END_HEADERS, &[]),
        };
        if name != "txcont" {
            self.only_at(name, name != "txreq")?;
        }
        let mut draft = Draft {
            frame: Frame::new(kind, flags, self.id),
            pseudo: Vec::new(),
            fields: Vec::new(),
            padding: None,
            promised: 0,
            body: None,
            depends_on: 0,
            is_exclusive: false,
            weight: WEIGHT,
        };
        let mut set = Vec::new();
        while let Some(word) = arguments.next() {
            let option = word.text();
            let pseudo = match option.as_str() {
                "-noadd" => {
                    defaults = &[];
                    continue;
                }
                "-status" => ":status",
                "-url" => ":path",
                "-method" | "-req" => ":method",
                "-scheme" => ":scheme",
                _ => "",
            };
            // Only those that this kind of message has by default.
            let has_it = match name {
                "txreq" | "txpush" => pseudo != ":status",
                "txresp" => pseudo == ":status",
                _ => false,
            };
            if !pseudo.is_empty() && has_it {
                let value = arguments.need(&format!("what follows {option}"))?.bytes;
                draft.pseudo.push(Field::plain(pseudo.as_bytes(), &value));
                set.push(pseudo);
            } else if !self.header_option(&option, arguments, &mut draft)?
                && !self.frame_option(name, &option, arguments, &mut draft)?
            {
                return self.unknown(name, &option);
            }
        }
        for (pseudo, value) in defaults.iter().filter(|(pseudo, _)| !set.contains(pseudo)) {
            draft.pseudo.push(Field::plain(pseudo.as_bytes(), value.as_bytes()));
        }
        self.connection.send(&self.journal, |state| assemble(draft, state))
    }

    /// An option that adds a header; false if it is not one.
    fn header_option(&self, option: &str, arguments: &mut Arguments, draft: &mut Draft) -> Outcome<bool> {
        let field = match option {
            "-hdr" => {
                let name = arguments.need("the header's name")?.bytes;
                Field::plain(&name, &arguments.need("the header's value (-hdr takes two arguments in HTTP/2)")?.bytes)
            }
            "-idxHdr" => Field::Indexed(self.number(option, arguments, 32)?),
            "-litIdxHdr" => {
                let indexing = self.indexing(option, arguments)?;
                let name = Name::Index(self.number(option, arguments, 32)?);
                Field::Literal(indexing, name, self.text(option, arguments)?)
            }
            "-litHdr" => {
                let indexing = self.indexing(option, arguments)?;
                let name = Name::Text(self.text(option, arguments)?);
                Field::Literal(indexing, name, self.text(option, arguments)?)
            }
            _ => return Ok(false),
        };
        draft.fields.push(field);
        Ok(true)
    }

    fn indexing(&self, option: &str, arguments: &mut Arguments) -> Outcome<Indexing> {
        match arguments.text("inc, not or never")?.as_str() {
            "inc" => Ok(Indexing::Added),
            "not" => Ok(Indexing::Not),
            "never" => Ok(Indexing::Never),
            other => Err(self.journal.fail(format!("first {option} arg can be inc, not, never (got: {other})"))),
        }
    }

    fn text(&self, option: &str, arguments: &mut Arguments) -> Outcome<Text> {
        let is_packed = match arguments.text("huf or plain")?.as_str() {
            "huf" => true,
            "plain" => false,
            other => return Err(self.journal.fail(format!("{option} arg can be huf or plain (got: {other})"))),
        };
        Ok(Text { bytes: arguments.need("the text")?.bytes, is_packed })
    }

    /// An option about the frame or the body after it; false if it is not one.
    fn frame_option(&self, name: &str, option: &str, arguments: &mut Arguments, draft: &mut Draft) -> Outcome<bool> {
        let is_message = matches!(name, "txreq" | "txresp");
        match option {
            "-nostrend" => draft.frame.flags &= !END_STREAM,
            "-nohdrend" => draft.frame.flags &= !END_HEADERS,
            "-promised" if name == "txpush" => draft.promised = self.number(option, arguments, 31)?,
            "-pad" | "-padlen" if name != "txcont" => {
                self.padding(option, arguments, &mut draft.padding)?;
            }
            "-dep" if is_message => {
                draft.depends_on = self.number(option, arguments, 31)?;
                draft.frame.flags |= PRIORITY;
            }
            "-ex" if is_message => {
                draft.is_exclusive = true;
                draft.frame.flags |= PRIORITY;
            }
            "-weight" if is_message => {
                draft.weight = self.number(option, arguments, 8)? as u8;
                draft.frame.flags |= PRIORITY;
            }
            "-body" | "-bodyfrom" | "-bodylen" | "-gzipbody" | "-gziplen" if is_message => {
                if draft.body.is_some() {
                    return Err(self.journal.fail(format!("{option}: the message has a body already")));
                }
                draft.body = Some(self.body(option, arguments)?);
                if option.starts_with("-gz") {
                    draft.fields.push(Field::plain(b"content-encoding", b"gzip"));
                }
                draft.frame.flags &= !END_STREAM;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn body(&self, option: &str, arguments: &mut Arguments) -> Outcome<Vec<u8>> {
        let plain = match option {
            "-bodyfrom" => {
                let path = arguments.text("the file")?;
                std::fs::read(&path)
                    .map_err(|error| self.journal.fail(format!("-bodyfrom: cannot read {path}: {error}")))?
            }
            "-bodylen" => self.generated(arguments)?,
            "-gziplen" => {
                let length = self.generated(arguments)?.len();
                synthetic_body(length, Some(&mut rand::rng()))
            }
            _ => arguments.need("the body")?.bytes,
        };
        if option.starts_with("-gz") { payload::gzip(&self.journal, &plain, 0, None) } else { Ok(plain) }
    }

    fn send_data(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut frame = Frame::new(kind::DATA, END_STREAM, self.id);
        let (mut data, mut padding) = (None, None);
        while let Some(word) = arguments.next() {
            let option = word.text();
            let bytes = match option.as_str() {
                "-nostrend" => {
                    frame.flags &= !END_STREAM;
                    continue;
                }
                "-data" => arguments.need("the data")?.bytes,
                "-datalen" => self.generated(arguments)?,
                _ if self.padding(&option, arguments, &mut padding)? => continue,
                _ => return self.unknown("txdata", &option),
            };
            if data.replace(bytes).is_some() {
                return Err(self.journal.fail("this frame has data already"));
            }
        }
        frame.payload = data.unwrap_or_default();
        pad(&mut frame, padding);
        self.connection.send(&self.journal, |_| vec![frame])
    }

    fn send_reset(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut code = 0;
        while let Some(word) = arguments.next() {
            match word.text().as_str() {
                "-err" => code = self.error_code(arguments)?,
                other => return self.unknown("txrst", other),
            }
        }
        let payload = code.to_be_bytes().to_vec();
        self.connection.send(&self.journal, |_| vec![Frame { payload, ..Frame::new(kind::RST_STREAM, 0, self.id) }])
    }

    fn send_priority(&mut self, arguments: &mut Arguments) -> Outcome {
        let (mut on, mut is_exclusive, mut weight) = (0, false, 0);
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-stream" => on = self.number(&option, arguments, 32)?,
                "-ex" => is_exclusive = true,
                "-weight" => weight = self.number(&option, arguments, 8)? as u8,
                _ => return self.unknown("txprio", &option),
            }
        }
        self.connection.send(&self.journal, |state| {
            state.depend(self.id, on, weight, is_exclusive);
            vec![Frame { payload: priority(on, is_exclusive, weight), ..Frame::new(kind::PRIORITY, 0, self.id) }]
        })
    }

    fn send_settings(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut frame = Frame::new(kind::SETTINGS, 0, self.id);
        while let Some(word) = arguments.next() {
            let option = word.text();
            let number = match option.as_str() {
                "-ack" => {
                    frame.flags |= ACK;
                    continue;
                }
                "-hdrtbl" => HEADER_TABLE_SIZE,
                "-push" => 2,
                "-maxstreams" => 3,
                "-winsize" => 4,
                "-framesize" => 5,
                "-hdrsize" => 6,
                _ => return self.unknown("txsettings", &option),
            };
            let value = match (number, arguments.peek().map(|word| word.text()).as_deref()) {
                (2, Some(truth @ ("true" | "false"))) => {
                    let is_true = truth == "true";
                    arguments.next();
                    u32::from(is_true)
                }
                (2, _) => return Err(self.journal.fail("Push parameter is either \"true\" or \"false\"")),
                _ => self.number(&option, arguments, 32)?,
            };
            frame.payload.extend(number.to_be_bytes());
            frame.payload.extend(value.to_be_bytes());
        }
        self.connection.send(&self.journal, |state| {
            for (number, value) in frame.settings() {
                match number {
                    HEADER_TABLE_SIZE => state.decoder.resize(value as usize),
                    4 => state.change_initial_window(value),
                    _ => {}
                }
            }
            vec![frame]
        })
    }

    fn send_ping(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut frame = Frame::new(kind::PING, 0, self.id);
        frame.payload = vec![0; 8];
        while let Some(word) = arguments.next() {
            match word.text().as_str() {
                "-ack" => frame.flags |= ACK,
                "-data" => {
                    frame.payload = arguments.need("the data")?.bytes;
                    if frame.payload.len() != 8 {
                        return Err(self.journal.fail("data must be a 8-char string"));
                    }
                }
                other => return self.unknown("txping", other),
            }
        }
        self.connection.send(&self.journal, |_| vec![frame])
    }

    fn send_goaway(&mut self, arguments: &mut Arguments) -> Outcome {
        let (mut code, mut last, mut debug) = (0, 0, Vec::new());
        while let Some(word) = arguments.next() {
            let option = word.text();
            match option.as_str() {
                "-err" => code = self.error_code(arguments)?,
                "-laststream" => last = self.number(&option, arguments, 31)?,
                "-debug" => debug = arguments.need("the debug data")?.bytes,
                _ => return self.unknown("txgoaway", &option),
            }
        }
        let payload = [&last.to_be_bytes()[..], &code.to_be_bytes(), &debug].concat();
        self.connection.send(&self.journal, |_| vec![Frame { payload, ..Frame::new(kind::GOAWAY, 0, self.id) }])
    }

    fn send_window(&mut self, arguments: &mut Arguments) -> Outcome {
        let mut size = None;
        while let Some(word) = arguments.next() {
            match word.text().as_str() {
                "-size" => size = Some(self.number("-size", arguments, 32)?),
                other => return self.unknown("txwinup", other),
            }
        }
        let size = size.ok_or_else(|| self.journal.fail("txwinup: -size is missing"))?;
        self.connection.send(&self.journal, |state| {
            if self.id == 0 {
                state.window_bytes += i64::from(size);
            }
            state.stream(self.id).window_bytes += i64::from(size);
            let payload = size.to_be_bytes().to_vec();
            vec![Frame { payload, ..Frame::new(kind::WINDOW_UPDATE, 0, self.id) }]
        })
    }
}

fn priority(on: u32, is_exclusive: bool, weight: u8) -> Vec<u8> {
    let mut bytes = (on | u32::from(is_exclusive) << 31).to_be_bytes().to_vec();
    bytes.push(weight);
    bytes
}

fn pad(frame: &mut Frame, padding: Option<Vec<u8>>) {
    if let Some(padding) = padding {
        frame.flags |= PADDED;
        frame.payload.insert(0, padding.len() as u8);
        frame.payload.extend(padding);
    }
}

/// The frames of a message: its headers, and its body if there is one.
fn assemble(draft: Draft, state: &mut State) -> Vec<Frame> {
    let mut frame = draft.frame;
    if frame.has(PRIORITY) && frame.kind == kind::HEADERS {
        frame.payload = priority(draft.depends_on, draft.is_exclusive, draft.weight);
        state.depend(frame.stream, draft.depends_on, draft.weight, draft.is_exclusive);
    } else if frame.kind == kind::PUSH_PROMISE {
        frame.payload = draft.promised.to_be_bytes().to_vec();
    }
    for field in draft.pseudo.iter().chain(&draft.fields) {
        state.encoder.encode(field, &mut frame.payload);
    }
    pad(&mut frame, draft.padding);
    let body = draft.body.map(|payload| Frame { payload, ..Frame::new(kind::DATA, END_STREAM, frame.stream) });
    std::iter::once(frame).chain(body).collect()
}
