//! Where the body lies in the bytes received.

use crate::framing::BodyLength;

/// What to do with the bytes given to [`BodyDecoder::step`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Bytes of framing: drop them.
    pub skip: usize,
    /// Bytes of body that follow them. Skip and data are consumed together.
    pub data: usize,
    /// The body is complete with this step; what lies behind belongs to the next message.
    pub done: bool,
}

/// Why a body is unusable. Always the peer's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyError {
    /// The connection ended before the announced length.
    LengthShort,
    /// The connection ended inside a chunked body.
    ChunkedShort,
    /// A chunk-size line longer than `surface::limits::CHUNK_HEADER_BYTES_MAX`.
    ChunkHeaderTooLong,
    /// A chunk-size line without a hexadecimal number.
    ChunkHeaderNotHex,
    /// Something illegal after the number of a chunk-size line.
    ChunkHeaderNumber,
    /// A chunk-size line that does not end in a line feed.
    ChunkHeaderNoLineEnd,
    /// A chunk that is not followed by a line end.
    ChunkTailNoLineEnd,
    /// A chunk size beyond 64 bits.
    ChunkTooLarge,
    /// A trailer section that is malformed or too long.
    Trailer,
}

impl BodyError {
    /// The payload of the `FetchError` record.
    #[must_use]
    pub fn text(self) -> &'static str {
        ""
    }
}

/// Follows the framing of one body.
#[derive(Clone, Debug)]
pub struct BodyDecoder {
    length: BodyLength,
}

impl BodyDecoder {
    /// A decoder for a body of that length.
    #[must_use]
    pub fn new(length: BodyLength) -> Self {
        BodyDecoder { length }
    }

    /// Looks at `input`, which starts where the last step ended, and says what is in it. The caller consumes
    /// `skip + data` bytes and calls again; a step of nothing that is not `done` asks for more input.
    ///
    /// # Errors
    /// [`BodyError`]; the connection is of no further use.
    pub fn step(&mut self, _input: &[u8]) -> Result<Step, BodyError> {
        Ok(Step::default())
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        false
    }

    /// The connection ended.
    ///
    /// # Errors
    /// When the body is not complete.
    pub fn end_of_input(&mut self) -> Result<(), BodyError> {
        Ok(())
    }

    /// Body bytes still to come; `None` when that is not known.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        match self.length {
            BodyLength::None => Some(0),
            BodyLength::Length(bytes) => Some(bytes),
            BodyLength::Chunked | BodyLength::UntilClose => None,
        }
    }
}
