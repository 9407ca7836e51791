//! Reader of the frames of one stream, as its bytes arrive: [`FrameReader`].
//!
//! ```text
//! Header ─length known→ Data ──────→ Header      DATA: passed on as it arrives
//!                     ├ Whole ─────→ Header      HEADERS, SETTINGS …: gathered up to a limit
//!                     └ Skipped ───→ Header      unknown frames
//! ```
//!
//! It checks which frames may be on which kind of stream at all, not their order. Source: RFC 9114
//! §7.

use crate::code::Code;
use crate::varint;
use bytes::{Buf, Bytes, BytesMut};
use surface::limits::PRIORITY_BYTES_MAX;

const DATA: u64 = 0x0;
const HEADERS: u64 = 0x1;
const CANCEL_PUSH: u64 = 0x3;
const SETTINGS: u64 = 0x4;
const PUSH_PROMISE: u64 = 0x5;
const GOAWAY: u64 = 0x7;
const MAX_PUSH_ID: u64 = 0xd;
/// PRIORITY_UPDATE of a request. Source: RFC 9218 §7.2.
const PRIORITY_UPDATE: u64 = 0xf0700;
/// PRIORITY_UPDATE of a push.
const PRIORITY_UPDATE_PUSH: u64 = 0xf0701;
/// Frames of HTTP/2 that have no counterpart.
const OF_HTTP2: [u64; 4] = [0x2, 0x6, 0x8, 0x9];

/// Longest payload of a frame that holds one integer.
const INTEGER_FRAME_BYTES_MAX: u64 = varint::BYTES_MAX as u64;
/// Longest PRIORITY_UPDATE that is accepted, in bytes.
const PRIORITY_UPDATE_BYTES_MAX: u64 = INTEGER_FRAME_BYTES_MAX + PRIORITY_BYTES_MAX as u64;
/// Longest SETTINGS, in bytes.
const SETTINGS_BYTES_MAX: u64 = 1024;

/// A frame, or a piece of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A piece of a DATA frame, never empty.
    Data(Bytes),
    /// A block of fields.
    Headers(Bytes),
    /// The payload of SETTINGS.
    Settings(Bytes),
    /// GOAWAY with its push id.
    Goaway(u64),
    /// MAX_PUSH_ID.
    MaxPushId(u64),
    /// CANCEL_PUSH.
    CancelPush(u64),
    /// Priority of a request's response: its stream, and the value of a `priority` field.
    PriorityUpdate(u64, Bytes),
}

/// Kind of stream on which frames are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A stream with a request.
    Request,
    /// The control stream.
    Control,
}

/// Reason why a frame cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameFault {
    /// The connection must end.
    Broken(Code),
    /// A block of fields is longer than the limit. The rest of the stream cannot be read.
    TooLong,
}

impl From<Code> for FrameFault {
    fn from(code: Code) -> FrameFault {
        FrameFault::Broken(code)
    }
}

#[derive(Debug)]
enum State {
    /// Type and length, as far as they have arrived.
    Header(Vec<u8>),
    Data(u64),
    Whole {
        kind: u64,
        missing: u64,
        payload: BytesMut,
    },
    Skipped(u64),
}

/// Reads the frames of one stream.
#[derive(Debug)]
pub struct FrameReader {
    place: Place,
    block_bytes_max: u64,
    state: State,
    /// Frames that carried nothing.
    empty: u64,
}

impl FrameReader {
    /// A reader at the beginning of a stream. A block of fields may have `block_bytes_max` bytes.
    #[must_use]
    pub fn new(place: Place, block_bytes_max: usize) -> FrameReader {
        FrameReader { place, block_bytes_max: block_bytes_max as u64, state: State::Header(Vec::new()), empty: 0 }
    }

    /// Number of idle frames: empty DATA, unknown ones, and those that can be sent without limit.
    #[must_use]
    pub fn idle_frames(&self) -> u64 {
        self.empty
    }

    /// Number of buffered bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.state {
            State::Header(bytes) => bytes.len(),
            State::Whole { payload, .. } => payload.capacity(),
            State::Data(_) | State::Skipped(_) => 0,
        }
    }

    /// Takes from the input up to the end of the next frame, or the next piece of DATA. `None` at
    /// the end of the input.
    ///
    /// # Errors
    /// See [`FrameFault`].
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Frame>, FrameFault> {
        loop {
            match &mut self.state {
                State::Header(header) => {
                    let Some((kind, length)) = gather(header, input) else { return Ok(None) };
                    self.state = self.begin(kind, length)?;
                    if let State::Whole { missing: 0, .. } = &self.state {
                        return self.complete().map(Some);
                    }
                    if matches!(self.state, State::Data(0) | State::Skipped(_)) {
                        self.empty += 1;
                    }
                }
                State::Data(0) | State::Skipped(0) => self.state = State::Header(Vec::new()),
                _ if input.is_empty() => return Ok(None),
                State::Data(missing) => {
                    let piece = input.split_to(count(*missing, input));
                    *missing -= piece.len() as u64;
                    return Ok(Some(Frame::Data(piece)));
                }
                State::Skipped(missing) => {
                    let skipped = count(*missing, input);
                    input.advance(skipped);
                    *missing -= skipped as u64;
                }
                State::Whole { missing, payload, .. } => {
                    let piece = input.split_to(count(*missing, input));
                    *missing -= piece.len() as u64;
                    payload.extend_from_slice(&piece);
                    if *missing == 0 {
                        return self.complete().map(Some);
                    }
                }
            }
        }
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// It ended within a frame.
    pub fn end(&self) -> Result<(), Code> {
        match &self.state {
            State::Header(bytes) if bytes.is_empty() => Ok(()),
            State::Data(0) | State::Skipped(0) => Ok(()),
            _ => Err(Code::FrameError),
        }
    }

    fn begin(&self, kind: u64, length: u64) -> Result<State, FrameFault> {
        if OF_HTTP2.contains(&kind) || kind == PUSH_PROMISE {
            return Err(Code::FrameUnexpected.into());
        }
        let place = match kind {
            DATA | HEADERS => Place::Request,
            SETTINGS | GOAWAY | MAX_PUSH_ID | CANCEL_PUSH | PRIORITY_UPDATE | PRIORITY_UPDATE_PUSH => Place::Control,
            _ => return Ok(State::Skipped(length)),
        };
        if place != self.place {
            return Err(Code::FrameUnexpected.into());
        }
        match kind {
            DATA => return Ok(State::Data(length)),
            HEADERS if length > self.block_bytes_max => return Err(FrameFault::TooLong),
            HEADERS => {}
            SETTINGS if length > SETTINGS_BYTES_MAX => return Err(Code::ExcessiveLoad.into()),
            SETTINGS => {}
            // No valid priority is that long.
            PRIORITY_UPDATE if length > PRIORITY_UPDATE_BYTES_MAX => return Ok(State::Skipped(length)),
            PRIORITY_UPDATE => {}
            // No push was ever promised. Source: RFC 9218 §7.2.
            PRIORITY_UPDATE_PUSH => return Err(Code::IdError.into()),
            _ if length > INTEGER_FRAME_BYTES_MAX => return Err(Code::FrameError.into()),
            _ => {}
        }
        Ok(State::Whole { kind, missing: length, payload: BytesMut::new() })
    }

    fn complete(&mut self) -> Result<Frame, FrameFault> {
        let State::Whole { kind, payload, .. } = std::mem::replace(&mut self.state, State::Header(Vec::new())) else {
            return Err(Code::InternalError.into());
        };
        let payload = payload.freeze();
        let integer = || match varint::read(&payload) {
            Some((value, count)) if count == payload.len() => Ok(value),
            _ => Err(Code::FrameError),
        };
        // These can be sent without limit, and each costs work.
        self.empty += u64::from(matches!(kind, GOAWAY | MAX_PUSH_ID | PRIORITY_UPDATE));
        Ok(match kind {
            HEADERS => Frame::Headers(payload),
            SETTINGS => Frame::Settings(payload),
            GOAWAY => Frame::Goaway(integer()?),
            MAX_PUSH_ID => Frame::MaxPushId(integer()?),
            PRIORITY_UPDATE => {
                let (stream, used) = varint::read(&payload).ok_or(Code::FrameError)?;
                Frame::PriorityUpdate(stream, payload.slice(used..))
            }
            _ => Frame::CancelPush(integer()?),
        })
    }
}

/// Number of bytes of the input that belong to a payload of which `missing` bytes are missing.
fn count(missing: u64, input: &Bytes) -> usize {
    usize::try_from(missing).unwrap_or(usize::MAX).min(input.len())
}

/// Adds to a frame's header until its type and length are complete.
fn gather(header: &mut Vec<u8>, input: &mut Bytes) -> Option<(u64, u64)> {
    loop {
        if let Some((kind, used)) = varint::read(header)
            && let Some((length, _)) = varint::read(&header[used..])
        {
            return Some((kind, length));
        }
        if input.is_empty() {
            return None;
        }
        header.push(input.get_u8());
    }
}

/// Appends the header of a frame.
fn write_header(kind: u64, length: usize, into: &mut Vec<u8>) {
    varint::write(kind, into);
    varint::write(length as u64, into);
}

/// Appends the header of a DATA frame with `length` bytes.
pub fn write_data_header(length: usize, into: &mut Vec<u8>) {
    write_header(DATA, length, into);
}

/// Appends a HEADERS frame.
pub fn write_headers(block: &[u8], into: &mut Vec<u8>) {
    write_header(HEADERS, block.len(), into);
    into.extend_from_slice(block);
}

/// Appends a GOAWAY frame: requests on streams from this one on are not served.
pub fn write_goaway(stream: u64, into: &mut Vec<u8>) {
    let mut payload = Vec::new();
    varint::write(stream, &mut payload);
    write_header(GOAWAY, payload.len(), into);
    into.extend_from_slice(&payload);
}

/// Appends a SETTINGS frame with this payload.
pub fn write_settings(payload: &[u8], into: &mut Vec<u8>) {
    write_header(SETTINGS, payload.len(), into);
    into.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result of a reader for bytes that arrive in pieces of this size.
    fn read(place: Place, bytes: &[u8], pieces: usize) -> Result<Vec<Frame>, FrameFault> {
        let mut reader = FrameReader::new(place, 100);
        let mut frames: Vec<Frame> = Vec::new();
        for piece in bytes.chunks(pieces) {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(frame) = reader.next(&mut input)? {
                match (frames.last_mut(), &frame) {
                    (Some(Frame::Data(before)), Frame::Data(more)) => *before = [&before[..], more].concat().into(),
                    _ => frames.push(frame),
                }
            }
            assert!(input.is_empty() && reader.held_bytes() <= 200);
        }
        reader.end()?;
        Ok(frames)
    }

    #[test]
    fn frames_are_the_same_in_whatever_pieces_they_come() {
        let mut bytes = vec![0x21, 3, 1, 2, 3];
        write_headers(b"block", &mut bytes);
        write_data_header(3, &mut bytes);
        bytes.extend_from_slice(b"abc");
        bytes.extend_from_slice(&[0, 0, 0x40, 0x41, 0x40, 2, 9, 9]);
        for pieces in 1..=bytes.len() {
            let frames = read(Place::Request, &bytes, pieces).unwrap();
            let expected = [Frame::Headers(Bytes::from_static(b"block")), Frame::Data(Bytes::from_static(b"abc"))];
            assert_eq!(frames, expected, "{pieces}");
        }
    }

    #[test]
    fn a_frame_that_has_no_place_ends_the_connection() {
        for kind in [0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xd] {
            assert_eq!(read(Place::Request, &[kind, 0], 9), Err(Code::FrameUnexpected.into()), "{kind}");
        }
        for kind in [0x0, 0x1, 0x2, 0x5, 0x6, 0x8, 0x9] {
            assert_eq!(read(Place::Control, &[kind, 0], 9), Err(Code::FrameUnexpected.into()), "{kind}");
        }
    }

    #[test]
    fn frames_that_can_be_repeated_are_counted() {
        let mut reader = FrameReader::new(Place::Control, 0);
        for frame in [&[7, 1, 4][..], &[0xd, 1, 4], &[0x80, 0x0f, 0x07, 0x00, 1, 0], &[0x21, 0]] {
            let (before, mut input) = (reader.idle_frames(), Bytes::copy_from_slice(frame));
            while reader.next(&mut input).unwrap().is_some() {}
            assert_eq!(reader.idle_frames(), before + 1, "{frame:?}");
        }
    }

    #[test]
    fn truncated_frame_is_an_error() {
        for bytes in [&[0u8][..], &[0, 1], &[1, 2, 0], &[0x40], &[0x21, 1]] {
            assert_eq!(read(Place::Request, bytes, 9), Err(Code::FrameError.into()), "{bytes:?}");
        }
    }

    #[test]
    fn an_announced_length_costs_nothing_until_it_is_refused() {
        let mut unknown = vec![0x21];
        varint::write(varint::MAX, &mut unknown);
        let mut reader = FrameReader::new(Place::Request, 100);
        assert_eq!(reader.next(&mut unknown.into()), Ok(None));
        for _ in 0..1000 {
            assert_eq!(reader.next(&mut Bytes::from_static(&[0; 1000])), Ok(None));
        }
        assert_eq!(reader.held_bytes(), 0);
        assert_eq!(read(Place::Request, &[1, 0x40, 101], 9), Err(FrameFault::TooLong));
        assert_eq!(read(Place::Control, &[4, 0x44, 1], 9), Err(Code::ExcessiveLoad.into()));
        assert_eq!(read(Place::Control, &[7, 9], 9), Err(Code::FrameError.into()));
        assert_eq!(read(Place::Control, &[7, 2, 1, 1], 9), Err(Code::FrameError.into()));
    }
}
