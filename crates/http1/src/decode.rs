//! Position of the body in the received bytes.
//!
//! The decoder copies nothing and keeps nothing but its state, so a body may arrive in any pieces.
//! A chunked body:
//!
//! ```text
//! Size ─digits→ Size ─blank→ Blank     ─LF→ Data ─all→ Tail ─LF→ Size
//!      ─;→ Extension ─CR→ SizeEnd ─LF→ ┤
//!                                       └(size 0)→ Line ─empty→ Done
//!                                                   ↑ └name→ Name ─:→ Value ─LF┐
//!                                                   └───────────────────────────┘
//! ```
//!
//! Extensions and trailers are skipped, within bounds; a step returns the position of the trailers.
//! A line with an extension must end in CR LF, since some parsers treat a bare LF there as part of
//! the extension. Compat: Varnish refuses extensions and trailers altogether (RFC 9112 §7.1.1
//! demands that they are ignored), and accepts a bare LF elsewhere, as we do. Source: RFC 9112
//! §7.1.

use crate::framing::BodyLength;
use crate::token::{is_blank, is_control, is_token};
use surface::limits::{CHUNK_HEADER_BYTES_MAX, CHUNK_TRAILER_BYTES_MAX};

/// Use of the bytes given to [`BodyDecoder::step`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Bytes of framing: drop them.
    pub skip: usize,
    /// Number of bytes at their end that belong to the trailer section; that includes the empty
    /// line at its end.
    pub trailer: usize,
    /// Bytes of body that follow them. Skip and data are consumed together.
    pub data: usize,
    /// The body is complete with this step; any bytes after it belong to the next message.
    pub done: bool,
}

/// Fault of a body. Always the peer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyError {
    /// The connection ended before the announced length.
    LengthShort,
    /// The connection ended inside a chunk.
    ChunkShort,
    /// The connection ended between chunks, or inside their framing.
    ChunkedShort,
    /// A chunk-size line longer than [`CHUNK_HEADER_BYTES_MAX`].
    ChunkHeaderTooLong,
    /// A chunk-size line that does not start with a hexadecimal number.
    ChunkHeaderNotHex,
    /// The number in a chunk-size line is followed by neither an extension nor a line end.
    ChunkHeaderNoLineEnd,
    /// A chunk that is not followed by a line end.
    ChunkTailNoLineEnd,
    /// A chunk size of 2^63 or more.
    ChunkTooLarge,
    /// A trailer section that is malformed, or longer than [`CHUNK_TRAILER_BYTES_MAX`].
    Trailer,
}

impl BodyError {
    /// The payload of the `FetchError` record.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            BodyError::LengthShort => "straight insufficient bytes",
            BodyError::ChunkShort => "chunked insufficient bytes",
            BodyError::ChunkedShort => "chunked read err",
            BodyError::ChunkHeaderTooLong => "chunked header too long",
            BodyError::ChunkHeaderNotHex => "chunked header non-hex",
            BodyError::ChunkHeaderNoLineEnd => "chunked header no NL",
            BodyError::ChunkTailNoLineEnd | BodyError::Trailer => "chunked tail no NL",
            BodyError::ChunkTooLarge => "bogusly large chunk size",
        }
    }
}

/// Follows the framing of one body.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Done,
    /// Bytes to come.
    Length(u64),
    UntilClose,
    Chunked {
        at: Chunked,
        /// The size while it is being read, then the bytes of this chunk that are still to come.
        size: u64,
        /// Bytes of this size line, or of the trailer section.
        line_bytes: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chunked {
    /// Before the first digit.
    SizeStart,
    Size,
    /// Blanks between the number and the line end.
    Blank,
    Extension,
    /// A CR was seen, only LF may follow.
    SizeEnd,
    Data,
    Tail,
    TailEnd,
    /// At the start of a trailer line.
    Line,
    LastEnd,
    Name,
    Value,
    ValueEnd,
}

impl Chunked {
    /// True if the next byte belongs to the trailer section.
    fn is_in_trailer(self) -> bool {
        matches!(self, Chunked::Line | Chunked::LastEnd | Chunked::Name | Chunked::Value | Chunked::ValueEnd)
    }
}

const CHUNK_START: State = State::Chunked { at: Chunked::SizeStart, size: 0, line_bytes: 0 };

impl BodyDecoder {
    /// A decoder for a body of that length.
    #[must_use]
    pub fn new(length: BodyLength) -> Self {
        let state = match length {
            BodyLength::None | BodyLength::Length(0) => State::Done,
            BodyLength::Length(bytes) => State::Length(bytes),
            BodyLength::UntilClose => State::UntilClose,
            BodyLength::Chunked => CHUNK_START,
        };
        BodyDecoder { state }
    }

    /// Examines `input`, which starts where the last step ended. The caller consumes `skip + data`
    /// bytes and calls again with the rest. A step without data that is not `done` has consumed all
    /// of the input and needs more.
    ///
    /// # Errors
    /// [`BodyError`]: neither the connection nor the decoder can be used any more.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, BodyError> {
        match self.state {
            State::Done => Ok(Step { skip: 0, trailer: 0, data: 0, done: true }),
            State::UntilClose => Ok(Step { skip: 0, trailer: 0, data: input.len(), done: false }),
            State::Length(remaining) => {
                let data = take(remaining, input);
                let rest = remaining - data as u64;
                self.state = if rest == 0 { State::Done } else { State::Length(rest) };
                Ok(Step { skip: 0, trailer: 0, data, done: rest == 0 })
            }
            State::Chunked { at, size, line_bytes } => self.step_chunked(input, at, size, line_bytes),
        }
    }

    fn step_chunked(
        &mut self,
        input: &[u8],
        mut at: Chunked,
        mut size: u64,
        mut line_bytes: usize,
    ) -> Result<Step, BodyError> {
        let mut skip = 0;
        while at != Chunked::Data {
            let Some(&byte) = input.get(skip) else {
                self.state = State::Chunked { at, size, line_bytes };
                let trailer = if at.is_in_trailer() { line_bytes.min(skip) } else { 0 };
                return Ok(Step { skip, trailer, data: 0, done: false });
            };
            skip += 1;
            line_bytes += 1;
            match at.is_in_trailer() {
                true if line_bytes > CHUNK_TRAILER_BYTES_MAX => return Err(BodyError::Trailer),
                false if line_bytes > CHUNK_HEADER_BYTES_MAX => return Err(BodyError::ChunkHeaderTooLong),
                _ => {}
            }
            at = match (at, byte) {
                (Chunked::SizeStart | Chunked::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                    size = append_digit(size, byte)?;
                    Chunked::Size
                }
                (Chunked::SizeStart, _) => return Err(BodyError::ChunkHeaderNotHex),
                (Chunked::Size | Chunked::Blank, b'\n') | (Chunked::SizeEnd, b'\n') => {
                    line_bytes = 0;
                    if size == 0 { Chunked::Line } else { Chunked::Data }
                }
                (Chunked::Size | Chunked::Blank | Chunked::Extension, b'\r') => Chunked::SizeEnd,
                (Chunked::Size | Chunked::Blank, b';') => Chunked::Extension,
                (Chunked::Size | Chunked::Blank, _) if is_blank(byte) => Chunked::Blank,
                (Chunked::Extension, _) if !is_control(byte) => Chunked::Extension,
                (Chunked::Size | Chunked::Blank | Chunked::Extension | Chunked::SizeEnd, _) => {
                    return Err(BodyError::ChunkHeaderNoLineEnd);
                }
                (Chunked::Data, _) => unreachable!("the loop ends in this state"),
                (Chunked::Tail | Chunked::TailEnd, b'\n') => {
                    line_bytes = 0;
                    Chunked::SizeStart
                }
                (Chunked::Tail, b'\r') => Chunked::TailEnd,
                (Chunked::Tail | Chunked::TailEnd, _) => return Err(BodyError::ChunkTailNoLineEnd),
                (Chunked::Line | Chunked::LastEnd, b'\n') => {
                    self.state = State::Done;
                    return Ok(Step { skip, trailer: line_bytes.min(skip), data: 0, done: true });
                }
                (Chunked::Line, b'\r') => Chunked::LastEnd,
                (Chunked::Line | Chunked::Name, _) if is_token(byte) => Chunked::Name,
                (Chunked::Name, b':') => Chunked::Value,
                (Chunked::Value | Chunked::ValueEnd, b'\n') => Chunked::Line,
                (Chunked::Value, b'\r') => Chunked::ValueEnd,
                (Chunked::Value, _) if !is_control(byte) => Chunked::Value,
                (Chunked::Line | Chunked::LastEnd | Chunked::Name | Chunked::Value | Chunked::ValueEnd, _) => {
                    return Err(BodyError::Trailer);
                }
            };
        }
        let data = take(size, &input[skip..]);
        size -= data as u64;
        let at = if size == 0 { Chunked::Tail } else { Chunked::Data };
        self.state = State::Chunked { at, size, line_bytes: 0 };
        Ok(Step { skip, trailer: 0, data, done: false })
    }

    /// True if the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Tells the decoder that the connection has ended.
    ///
    /// # Errors
    /// The body is not complete.
    pub fn end_of_input(&mut self) -> Result<(), BodyError> {
        match self.state {
            State::Done => Ok(()),
            State::UntilClose => {
                self.state = State::Done;
                Ok(())
            }
            State::Length(_) => Err(BodyError::LengthShort),
            State::Chunked { at: Chunked::Data, .. } => Err(BodyError::ChunkShort),
            State::Chunked { .. } => Err(BodyError::ChunkedShort),
        }
    }

    /// Number of body bytes still to come; `None` if unknown.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Done => Some(0),
            State::Length(bytes) => Some(bytes),
            State::UntilClose | State::Chunked { .. } => None,
        }
    }
}

/// Number of bytes of `input` that belong to the next `remaining` bytes.
fn take(remaining: u64, input: &[u8]) -> usize {
    usize::try_from(remaining).unwrap_or(usize::MAX).min(input.len())
}

fn append_digit(size: u64, digit: u8) -> Result<u64, BodyError> {
    let value = match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    };
    // One bit less than would fit, so that sums of sizes cannot overflow.
    if size >= 1 << 59 { Err(BodyError::ChunkTooLarge) } else { Ok(size << 4 | u64::from(value)) }
}
