//! Where the bytes of a body come from: a stored body, one that passes by, or one made here; and bodies that are handed over in
//! pieces.
//!
//! A source copies nothing. A piece of a passing body is held until it is used up, and counts as in flight until then.

use super::pull::{PIECE_BYTES_MAX, Pulled, Supply};
use crate::request::delivered::Delivered;
use std::rc::Rc;
use store::{BodyReader, BodyState, Object};

/// The body of a response as it is sent.
pub(crate) enum Source {
    /// Stored, perhaps still growing.
    Stored {
        /// The object; it is released together with the source.
        object: Delivered,
        /// Reads bodies that are not in one piece or not yet complete. Most bodies need no reader.
        reader: Option<BodyReader>,
        /// Bytes used.
        offset: u64,
    },
    /// Passing by.
    Passing {
        /// The object.
        object: Delivered,
        /// The current piece, and how many of its bytes were used.
        piece: (Vec<u8>, usize),
        /// Bytes taken out of the object.
        taken: u64,
    },
    /// Made here.
    Synthetic {
        /// The whole body.
        body: Vec<u8>,
        /// Bytes used.
        used: usize,
    },
}

impl Source {
    /// A source for the body of an object.
    pub(crate) fn of_object(mut object: Delivered) -> Source {
        if object.is_passing() {
            return Source::Passing { object, piece: (Vec::new(), 0), taken: 0 };
        }
        Source::Stored { reader: object.take_reader(), object, offset: 0 }
    }

    /// A source for a body made here.
    pub(crate) fn of_synthetic(body: Vec<u8>) -> Source {
        Source::Synthetic { body, used: 0 }
    }

    /// Leaves out bytes that nobody wants, as far as that is possible without reading them; returns how many.
    pub(crate) fn skip(&mut self, bytes: u64) -> u64 {
        match self {
            // A counted reader has to take every byte.
            Source::Stored { object, reader, offset }
                if reader.is_none() || object.is_filed() && object.state() == BodyState::Complete =>
            {
                *offset += bytes;
                bytes
            }
            Source::Stored { .. } | Source::Passing { .. } | Source::Synthetic { .. } => 0,
        }
    }

    /// The first pieces of a body that lies complete in memory, as many as there is room for and at most [`PIECE_BYTES_MAX`] bytes of
    /// them, and whether nothing comes behind them; `None` when it lies elsewhere, is not complete, or was begun.
    pub(crate) fn first_pieces<'a>(&'a self, room: &mut [&'a [u8]]) -> Option<(usize, bool)> {
        let Source::Stored { object, offset: 0, .. } = self else { return None };
        let (mut count, mut bytes) = (0, 0);
        for (place, piece) in room.iter_mut().zip(object.chunks()) {
            if bytes + piece.len() > PIECE_BYTES_MAX {
                break;
            }
            *place = piece;
            count += 1;
            bytes += piece.len();
        }
        (count > 0).then(|| (count, bytes as u64 == object.available_bytes()))
    }

    /// Whether bytes are read from a file, a piece at a time.
    pub(crate) fn is_filed(&self) -> bool {
        matches!(self, Source::Stored { object, .. } if object.is_filed())
    }

    /// Whether there is more, which has to be read from a file.
    pub(crate) fn wants_load(&self) -> bool {
        matches!(self, Source::Stored { reader: Some(reader), .. } if reader.wants_load())
    }

    /// The offset at which a stored body could not be read, and its object; `None` = it is sound so far.
    pub(crate) fn unreadable_at(&self) -> Option<(&Object, u64)> {
        match self {
            Source::Stored { object, reader: Some(reader), offset } if reader.has_failed() => Some((object, *offset)),
            Source::Stored { .. } | Source::Passing { .. } | Source::Synthetic { .. } => None,
        }
    }

    /// Waits until there is more, or the body has ended.
    pub(crate) async fn changed(&self) {
        match self {
            Source::Stored { reader: Some(reader), .. } if reader.wants_load() => reader.load().await,
            Source::Stored { object, offset, .. } => object.changed(*offset).await,
            Source::Passing { object, taken, .. } => object.changed(*taken).await,
            Source::Synthetic { .. } => {}
        }
    }
}

impl Supply for Source {
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_> {
        match self {
            Source::Stored { object, reader, offset } => {
                // The state must be read first: once it is complete, all bytes are there.
                let state = object.state();
                if reader.is_none() && *offset > 0 {
                    *reader = object.reader();
                }
                if object.is_filed()
                    && let Some(reader) = reader
                    && reader.chunk_at(*offset).is_none()
                {
                    if reader.has_failed() {
                        return Pulled::Failed;
                    }
                    if reader.wants_load() {
                        return Pulled::Waits;
                    }
                }
                let bytes = match reader {
                    None => object.chunk_at(*offset),
                    Some(reader) => reader.chunk_at(*offset),
                };
                let bytes = bytes.map(|bytes| &bytes[..bytes.len().min(bytes_max)]);
                let end = *offset + bytes.map_or(0, <[u8]>::len) as u64;
                pulled(bytes, state, || end == object.available_bytes())
            }
            Source::Passing { object, piece, taken } => {
                let state = object.state();
                if piece.1 == piece.0.len() {
                    *piece = (object.take_chunk().unwrap_or_default(), 0);
                    *taken += piece.0.len() as u64;
                }
                let rest = &piece.0[piece.1..];
                let bytes = &rest[..rest.len().min(bytes_max)];
                let is_all = bytes.len() == rest.len();
                pulled(Some(bytes), state, || is_all && *taken == object.available_bytes())
            }
            // A synthetic body is one piece.
            Source::Synthetic { body, used } => pulled(Some(&body[*used..]), BodyState::Complete, || true),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Source::Stored { offset, .. } => *offset += count as u64,
            Source::Passing { piece, .. } => piece.1 = (piece.1 + count).min(piece.0.len()),
            Source::Synthetic { body, used } => *used = (*used + count).min(body.len()),
        }
    }

    fn can_skip(&self) -> bool {
        matches!(self, Source::Stored { object, .. } if object.is_filed() && object.state() == BodyState::Complete)
    }
}

/// What an object has to offer. `state` must have been read before `bytes`.
fn pulled(bytes: Option<&[u8]>, state: BodyState, is_end: impl FnOnce() -> bool) -> Pulled<'_> {
    match (bytes, state) {
        (Some(bytes), _) if !bytes.is_empty() => {
            Pulled::Piece { bytes, is_last: state == BodyState::Complete && is_end() }
        }
        (_, BodyState::Complete) => Pulled::Ended,
        (_, BodyState::Failed) => Pulled::Failed,
        (_, BodyState::Writing) => Pulled::Waits,
    }
}

/// A body that somebody hands over piece by piece, or that is there completely.
#[derive(Default)]
pub(crate) struct Handed {
    piece: Rc<Vec<u8>>,
    used: usize,
    is_over: bool,
}

impl Handed {
    /// A complete body.
    pub(crate) fn whole(body: Rc<Vec<u8>>) -> Handed {
        Handed { piece: body, used: 0, is_over: true }
    }

    /// Adds the next piece and drops the rest of the last one. `None` ends the body.
    pub(crate) fn give(&mut self, piece: Option<Vec<u8>>) {
        self.is_over = piece.is_none();
        (self.piece, self.used) = (Rc::new(piece.unwrap_or_default()), 0);
    }

    /// Whether no further piece will come.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Supply for Handed {
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_> {
        match &self.piece[self.used..] {
            [] if self.is_over => Pulled::Ended,
            [] => Pulled::Waits,
            rest => Pulled::Piece { bytes: &rest[..rest.len().min(bytes_max)], is_last: false },
        }
    }

    fn consume(&mut self, count: usize) {
        self.used = (self.used + count).min(self.piece.len());
    }
}
