//! State of a connection: its tables and windows, and the received frames of each stream.
//!
//! ```text
//! frame ──► take_in: windows, tables, header blocks, body
//!              └──► the stream's queue ──► a command of its block
//! ```
//!
//! *Invariants:* no I/O, no locks, no panic, whatever arrives; its memory is bounded by
//! [`BODY_BYTES_MAX`], [`BLOCK_BYTES_MAX`], [`QUEUE_BYTES_MAX`] and the limits of `hpack.rs`. Next:
//! `connection.rs`, which reads the frames.

use std::collections::VecDeque;

use super::frame::{self, END_HEADERS, Frame, HEAD_BYTES, HEADER_TABLE_SIZE, PRIORITY, kind, name};
use super::hpack::{Header, Table};

/// Most bytes of one body.
pub const BODY_BYTES_MAX: usize = 256 << 20;
/// Most bytes of one header block.
pub const BLOCK_BYTES_MAX: usize = 16 << 20;
/// Most bytes of the frames that no command has taken yet.
pub const QUEUE_BYTES_MAX: usize = 256 << 20;
/// Size of both tables at first, in bytes.
const TABLE_BYTES: usize = 4096;
/// Size of every window at first, in bytes.
const WINDOW_BYTES: i64 = 65_535;
/// Initial weight of a stream.
const WEIGHT: u8 = 16;

/// One stream.
pub struct Stream {
    /// Its number.
    pub id: u32,
    /// Bytes that the peer may still send.
    pub window_bytes: i64,
    /// Its weight as last sent or received.
    pub weight: u8,
    /// The stream it depends on.
    pub dependency: u32,
    /// The frame that the last command took.
    pub last: Option<Frame>,
    /// `None` before the first byte.
    pub body: Option<Vec<u8>>,
    /// The request's headers.
    pub request: Vec<Header>,
    /// The response's headers.
    pub response: Vec<Header>,
    queue: VecDeque<Frame>,
}

/// An incomplete header block.
struct Block {
    stream: u32,
    is_request: bool,
    bytes: Vec<u8>,
}

/// An error in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Error text.
    pub text: String,
    /// True if it fails the test even after `non_fatal`.
    pub is_always_fatal: bool,
}

fn always(text: impl Into<String>) -> Fault {
    Fault { text: text.into(), is_always_fatal: true }
}

fn mostly(text: impl Into<String>) -> Fault {
    Fault { text: text.into(), is_always_fatal: false }
}

/// One end of a connection.
pub struct State {
    /// For received headers.
    pub decoder: Table,
    /// For sent headers.
    pub encoder: Table,
    /// Bytes that the peer may still send.
    pub window_bytes: i64,
    /// The window of a new stream, in bytes.
    initial_window_bytes: i64,
    is_server: bool,
    streams: Vec<Stream>,
    block: Option<Block>,
    queued_bytes: usize,
}

impl State {
    /// A connection without streams.
    #[must_use]
    pub fn new(is_server: bool) -> State {
        State {
            decoder: Table::new(TABLE_BYTES),
            encoder: Table::new(TABLE_BYTES),
            window_bytes: WINDOW_BYTES,
            initial_window_bytes: WINDOW_BYTES,
            is_server,
            streams: Vec::new(),
            block: None,
            queued_bytes: 0,
        }
    }

    /// Makes sure that a stream exists.
    pub fn open(&mut self, id: u32) {
        if !self.has(id) {
            self.streams.push(Stream {
                id,
                window_bytes: self.initial_window_bytes,
                weight: WEIGHT,
                dependency: 0,
                last: None,
                body: None,
                request: Vec::new(),
                response: Vec::new(),
                queue: VecDeque::new(),
            });
        }
    }

    /// True if a stream exists.
    #[must_use]
    pub fn has(&self, id: u32) -> bool {
        self.streams.iter().any(|stream| stream.id == id)
    }

    /// A stream; it is made if it does not exist.
    pub fn stream(&mut self, id: u32) -> &mut Stream {
        self.open(id);
        let at = self.streams.iter().position(|stream| stream.id == id).unwrap_or(0);
        &mut self.streams[at]
    }

    /// The oldest frame of a stream that no command has taken.
    pub fn next_frame(&mut self, id: u32) -> Option<Frame> {
        let frame = self.stream(id).queue.pop_front()?;
        self.queued_bytes -= HEAD_BYTES + frame.payload.len();
        Some(frame)
    }

    /// Drops the frames of a stream.
    pub fn forget_frames(&mut self, id: u32) {
        while self.next_frame(id).is_some() {}
        self.stream(id).last = None;
    }

    /// Applies a new window size, announced to the peer, to all streams.
    pub fn change_initial_window(&mut self, bytes: u32) {
        let change = i64::from(bytes) - self.initial_window_bytes;
        self.initial_window_bytes = i64::from(bytes);
        for stream in &mut self.streams {
            stream.window_bytes += change;
        }
    }

    /// Sets the dependency of a stream; with `is_exclusive`, the other streams that depend on the
    /// same one depend on this one from now on.
    pub fn depend(&mut self, id: u32, on: u32, weight: u8, is_exclusive: bool) {
        let stream = self.stream(id);
        (stream.dependency, stream.weight) = (on, weight);
        if is_exclusive && id != 0 {
            for other in self.streams.iter_mut().filter(|other| other.id != id && other.dependency == on) {
                other.dependency = id;
            }
        }
    }

    /// Takes in a frame of an existing stream. Returns the texts to log, and the error in the
    /// frame.
    pub fn take_in(&mut self, frame: Frame) -> (Vec<String>, Result<(), Fault>) {
        let mut notes: Vec<String> = frame.flag_names().iter().map(|flag| format!("flag: {flag}")).collect();
        let taken = self.understand(&frame, &mut notes);
        self.queued_bytes += HEAD_BYTES + frame.payload.len();
        self.stream(frame.stream).queue.push_back(frame);
        if self.queued_bytes > QUEUE_BYTES_MAX {
            return (notes, Err(always(format!("more than {QUEUE_BYTES_MAX} bytes of frames that nobody wants"))));
        }
        (notes, taken)
    }

    fn understand(&mut self, frame: &Frame, notes: &mut Vec<String>) -> Result<(), Fault> {
        if let Some(block) = &self.block
            && (frame.kind != kind::CONTINUATION || frame.stream != block.stream)
        {
            return Err(always(format!("Expected CONTINUATION frame for stream {}", block.stream)));
        }
        let size = frame.payload.len();
        let exactly = |wanted: usize| {
            if size == wanted { Ok(()) } else { Err(always(format!("Size should be {wanted}, but isn't ({size})"))) }
        };
        match frame.kind {
            kind::DATA => return self.data(frame, notes),
            kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION => return self.headers(frame, notes),
            kind::PRIORITY => {
                exactly(5)?;
                self.priority(frame, &frame.payload, notes);
            }
            kind::RST_STREAM => {
                exactly(4)?;
                let code = frame.number(0);
                notes.push(format!("rst->err: {} ({code})", name(&frame::ERRORS, code)));
            }
            kind::SETTINGS => {
                if !size.is_multiple_of(6) {
                    return Err(always(format!("Size should be a multiple of 6, but isn't ({size})")));
                }
                for (number, value) in frame.settings() {
                    if number == HEADER_TABLE_SIZE {
                        self.encoder.resize(value as usize);
                    }
                    notes.push(format!("settings->{} ({number}): {value}", name(&frame::SETTINGS, number.into())));
                }
            }
            kind::PING => {
                exactly(8)?;
                notes.push(format!("ping->data: {}", String::from_utf8_lossy(&frame.payload)));
            }
            kind::GOAWAY => goaway(frame, notes)?,
            kind::WINDOW_UPDATE => {
                exactly(4)?;
                notes.push(format!("winup->size: {}", frame.number(0)));
                if frame.number(0) >> 31 != 0 {
                    return Err(mostly("First bit of data is reserved and should be 0"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, frame: &Frame, notes: &mut Vec<String>) -> Result<(), Fault> {
        let data = unpadded(frame, notes)?;
        let bytes = i64::try_from(data.len()).unwrap_or(i64::MAX);
        self.window_bytes -= bytes;
        let stream = self.stream(frame.stream);
        if stream.id != 0 {
            stream.window_bytes -= bytes;
        }
        if data.is_empty() {
            return Ok(());
        }
        let body = stream.body.get_or_insert_default();
        if body.len() + data.len() > BODY_BYTES_MAX {
            return Err(always(format!("more than {BODY_BYTES_MAX} bytes of body")));
        }
        body.extend_from_slice(data);
        Ok(())
    }

    fn headers(&mut self, frame: &Frame, notes: &mut Vec<String>) -> Result<(), Fault> {
        let mut payload = unpadded(frame, notes)?;
        if frame.kind == kind::HEADERS && frame.has(PRIORITY) {
            self.priority(frame, payload, notes);
            payload = payload.get(5..).ok_or_else(|| always("HEADERS without room for their priority"))?;
        } else if frame.kind == kind::PUSH_PROMISE {
            payload = payload.get(4..).ok_or_else(|| always("PUSH_PROMISE without room for its stream"))?;
        }
        let mut block = match self.block.take() {
            Some(block) => block,
            None if frame.kind == kind::CONTINUATION => return Err(always("CONTINUATION without HEADERS")),
            None => {
                let is_request = self.is_server || frame.kind == kind::PUSH_PROMISE;
                let stream = self.stream(frame.stream);
                let headers = if is_request { &mut stream.request } else { &mut stream.response };
                headers.clear();
                Block { stream: frame.stream, is_request, bytes: Vec::new() }
            }
        };
        if block.bytes.len() + payload.len() > BLOCK_BYTES_MAX {
            return Err(always(format!("more than {BLOCK_BYTES_MAX} bytes of headers")));
        }
        block.bytes.extend_from_slice(payload);
        if !frame.has(END_HEADERS) {
            self.block = Some(block);
            return Ok(());
        }
        let headers =
            self.decoder.decode(&block.bytes).map_err(|why| mostly(format!("Header decoding failed: {why}")))?;
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        notes.extend(
            headers
                .iter()
                .enumerate()
                .map(|(at, (name, value))| format!("header[{at:2}]: {} : {}", shown(name), shown(value))),
        );
        let stream = self.stream(block.stream);
        if block.is_request {
            stream.request = headers;
        } else {
            stream.response = headers;
        }
        Ok(())
    }

    /// The five bytes of a priority.
    fn priority(&mut self, frame: &Frame, bytes: &[u8], notes: &mut Vec<String>) {
        let [a, b, c, d, weight, ..] = *bytes else { return };
        let word = u32::from_be_bytes([a, b, c, d]);
        let on = word & 0x7fff_ffff;
        self.depend(frame.stream, on, weight, word != on);
        notes.push(format!("stream->dependency: {on}"));
        notes.push(format!("stream->weight: {weight}"));
    }
}

fn unpadded<'a>(frame: &'a Frame, notes: &mut Vec<String>) -> Result<&'a [u8], Fault> {
    let size = frame.payload.len();
    let inner = frame.unpadded().ok_or_else(|| mostly(format!("invalid padding: the size is only {size}")))?;
    if frame.can_be_padded() && frame.has(frame::PADDED) {
        notes.push(format!("padding: {:3}", frame.padding()));
    }
    Ok(inner)
}

fn goaway(frame: &Frame, notes: &mut Vec<String>) -> Result<(), Fault> {
    let size = frame.payload.len();
    if size < 8 {
        return Err(always(format!("Size should be at least 8, but isn't ({size})")));
    }
    let (last, code) = (frame.number(0), frame.number(4));
    if last >> 31 != 0 {
        return Err(always("First bit of data is reserved and should be 0"));
    }
    notes.push(format!("goaway->laststream: {last}"));
    notes.push(format!("goaway->err: {} ({code})", name(&frame::ERRORS, code)));
    if size > 8 {
        notes.push(format!("goaway->debug: {}", String::from_utf8_lossy(&frame.payload[8..])));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Frame {
        Frame { kind, flags, stream, payload: payload.to_vec() }
    }

    #[test]
    fn a_header_block_can_come_in_pieces() {
        let mut state = State::new(true);
        state.open(1);
        assert_eq!(state.take_in(frame(kind::HEADERS, 0, 1, &[0x82, 0x87])).1, Ok(()));
        assert!(state.stream(1).request.is_empty());
        assert_eq!(state.take_in(frame(kind::CONTINUATION, END_HEADERS, 1, &[0x84])).1, Ok(()));
        assert_eq!(state.stream(1).request.len(), 3);
        assert_eq!(state.next_frame(1).unwrap().kind, kind::HEADERS);
        assert_eq!(state.next_frame(1).unwrap().kind, kind::CONTINUATION);
        assert_eq!(state.next_frame(1), None);
    }

    #[test]
    fn only_a_continuation_may_follow_an_open_block() {
        let mut state = State::new(false);
        state.open(1);
        assert!(state.take_in(frame(kind::CONTINUATION, 0, 1, &[])).1.is_err());
        assert_eq!(state.take_in(frame(kind::HEADERS, 0, 1, &[0x88])).1, Ok(()));
        assert!(state.take_in(frame(kind::DATA, 0, 1, b"x")).1.unwrap_err().is_always_fatal);
    }

    #[test]
    fn data_uses_up_both_windows_and_padding_does_not() {
        let mut state = State::new(false);
        state.change_initial_window(100);
        state.open(1);
        assert_eq!(state.take_in(frame(kind::DATA, frame::PADDED, 1, b"\x02ab__")).1, Ok(()));
        assert_eq!(state.stream(1).window_bytes, 98);
        assert_eq!(state.window_bytes, WINDOW_BYTES - 2);
        assert_eq!(state.stream(1).body.as_deref(), Some(&b"ab"[..]));
        state.change_initial_window(200);
        assert_eq!(state.stream(1).window_bytes, 198);
    }

    #[test]
    fn an_exclusive_stream_takes_over_its_siblings() {
        let mut state = State::new(true);
        for id in [1, 3, 5] {
            state.open(id);
        }
        assert_eq!(state.take_in(frame(kind::PRIORITY, 0, 5, &[0x80, 0, 0, 0, 7])).1, Ok(()));
        assert_eq!((state.stream(5).dependency, state.stream(5).weight), (0, 7));
        assert_eq!((state.stream(1).dependency, state.stream(3).dependency), (5, 5));
    }
}
