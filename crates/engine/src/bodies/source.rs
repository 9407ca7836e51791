//! Sources of a body's bytes: a stored body, one that is only passed on, or one made here; and
//! bodies that are handed over in pieces.
//!
//! A source copies nothing. A piece of a passing body is held until it is used up, and counts as in
//! flight until then.

use super::pull::{PIECE_BYTES_MAX, Pulled, Supply};
use crate::exchange::PIECES_MAX;
use crate::request::delivered::Delivered;
use std::collections::VecDeque;
use std::rc::Rc;
use store::{BodyReader, BodyState, Object};
use surface::limits::PASS_IN_FLIGHT_BYTES_MAX;

/// Most bytes of a passing body that are taken at a time, unless a piece is larger; its writer can
/// fill the rest of the allowed bytes at the same time.
const PASS_LENT_BYTES_MAX: usize = PASS_IN_FLIGHT_BYTES_MAX / 2;

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
    /// Only passed on.
    Passing {
        /// The object.
        object: Delivered,
        /// Pieces taken out of the object.
        pieces: VecDeque<Vec<u8>>,
        /// Bytes of the first of them that were used.
        used: usize,
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
            return Source::Passing { object, pieces: VecDeque::new(), used: 0, taken: 0 };
        }
        Source::Stored { reader: object.take_reader(), object, offset: 0 }
    }

    /// A source for a body made here.
    pub(crate) fn of_synthetic(body: Vec<u8>) -> Source {
        Source::Synthetic { body, used: 0 }
    }

    /// Skips unneeded bytes, as far as that is possible without reading them; returns their number.
    pub(crate) fn skip(&mut self, bytes: u64) -> u64 {
        match self {
            // A counted reader has to take every byte.
            Source::Stored { object, reader, offset }
                if reader.is_none() || object.is_on_disk() && object.state() == BodyState::Complete =>
            {
                *offset += bytes;
                bytes
            }
            Source::Stored { .. } | Source::Passing { .. } | Source::Synthetic { .. } => 0,
        }
    }

    /// True if the next bytes may be in several pieces that can be sent at once.
    pub(crate) fn has_several(&self) -> bool {
        match self {
            Source::Stored { object, offset, .. } => *offset == 0 && object.is_whole() && !object.is_on_disk(),
            Source::Passing { pieces, .. } => pieces.len() > 1,
            Source::Synthetic { .. } => false,
        }
    }

    /// The next bytes, as many pieces as there is room for: of a body that is only passed on, the
    /// pieces taken from it; of a stored one that is complete in memory, its beginning, at most
    /// [`PIECE_BYTES_MAX`] bytes. Returns the number of these pieces, and true if nothing follows
    /// them.
    pub(crate) fn several<'a>(&'a self, room: &mut [&'a [u8]]) -> (usize, bool) {
        let mut all = Several { room, count: 0, bytes: 0 };
        match self {
            Source::Stored { object, offset: 0, .. } => {
                all.collect(object.chunks());
                (all.count, all.bytes as u64 == object.available_bytes())
            }
            Source::Passing { object, pieces, used, taken } => {
                // As in `pull`: the state first.
                let is_complete = object.state() == BodyState::Complete;
                let skipped = pieces.iter().enumerate().map(|(at, piece)| &piece[if at == 0 { *used } else { 0 }..]);
                all.collect(skipped);
                (all.count, is_complete && all.count == pieces.len() && *taken == object.available_bytes())
            }
            Source::Stored { .. } | Source::Synthetic { .. } => (0, false),
        }
    }

    /// True if bytes are read from a file, a piece at a time.
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self, Source::Stored { object, .. } if object.is_on_disk())
    }

    /// True if there is more, which has to be read from a file.
    pub(crate) fn wants_load(&self) -> bool {
        matches!(self, Source::Stored { reader: Some(reader), .. } if reader.wants_load())
    }

    /// The offset at which a stored body could not be read, and its object; `None` = it is intact
    /// so far.
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
                // The state must be read first: if it is complete, all bytes are present.
                let state = object.state();
                if reader.is_none() && *offset > 0 {
                    *reader = object.reader();
                }
                if object.is_on_disk()
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
            Source::Passing { object, pieces, used, taken } => {
                let state = object.state();
                if pieces.is_empty() {
                    *taken += object.take_chunks(pieces, PIECES_MAX, PASS_LENT_BYTES_MAX) as u64;
                }
                let rest = pieces.front().map_or(&b""[..], |piece| &piece[*used..]);
                let bytes = &rest[..rest.len().min(bytes_max)];
                let is_all = pieces.len() <= 1 && bytes.len() == rest.len();
                pulled(Some(bytes), state, || is_all && *taken == object.available_bytes())
            }
            // A synthetic body is one piece.
            Source::Synthetic { body, used } => pulled(Some(&body[*used..]), BodyState::Complete, || true),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Source::Stored { offset, .. } => *offset += count as u64,
            Source::Passing { pieces, used, .. } => {
                *used += count;
                while let Some(piece) = pieces.front().filter(|piece| *used >= piece.len()) {
                    *used -= piece.len();
                    pieces.pop_front();
                }
            }
            Source::Synthetic { body, used } => *used = (*used + count).min(body.len()),
        }
    }

    fn can_skip(&self) -> bool {
        matches!(self, Source::Stored { object, .. } if object.is_on_disk() && object.state() == BodyState::Complete)
    }
}

/// Pieces that are sent at once.
struct Several<'a, 'b> {
    room: &'b mut [&'a [u8]],
    count: usize,
    bytes: usize,
}

impl<'a> Several<'a, '_> {
    fn collect(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        for piece in pieces {
            let Some(place) = self.room.get_mut(self.count).filter(|_| self.bytes + piece.len() <= PIECE_BYTES_MAX)
            else {
                return;
            };
            *place = piece;
            self.count += 1;
            self.bytes += piece.len();
        }
    }
}

/// The result of pulling from an object. `state` must have been read before `bytes`.
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

/// A body that is handed over piece by piece, or that is present completely.
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

    /// True if no further piece will follow.
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
