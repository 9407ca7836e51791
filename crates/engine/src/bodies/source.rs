//! Where the bytes of a response come from, for filters to pull at: a stored body, one that passes by, or one made here.
//!
//! A source shows what it has and is told how much of that was used; it copies nothing. A piece of a passing body is held
//! until it is used up, and counts as under way as long.

use crate::request::Delivered;
use store::{BodyReader, BodyState};

/// The body of a response as it is sent.
pub(crate) enum Source {
    /// Stored, perhaps still growing.
    Stored {
        /// What is delivered; it goes when the source goes.
        object: Delivered,
        /// Where in it; `None` when its beginning is gone.
        reader: Option<BodyReader>,
        /// Bytes used.
        offset: u64,
    },
    /// Passing by.
    Passing {
        /// What is delivered.
        object: Delivered,
        /// The piece that is being used, and how much of it was.
        piece: (Vec<u8>, usize),
        /// Bytes taken out.
        taken: u64,
    },
    /// Made here.
    Synthetic {
        /// All of it.
        body: Vec<u8>,
        /// Bytes used.
        used: usize,
    },
}

impl Source {
    /// Of an object, or of a body made here if there is none.
    pub(crate) fn new(object: Option<Delivered>, synthetic: Vec<u8>) -> Source {
        match object {
            None => Source::Synthetic { body: synthetic, used: 0 },
            Some(object) if object.is_passing() => Source::Passing { object, piece: (Vec::new(), 0), taken: 0 },
            Some(mut object) => {
                let reader = object.take_reader().or_else(|| object.reader());
                Source::Stored { reader, object, offset: 0 }
            }
        }
    }

    /// How far it has come. Ask before [`Source::piece`]: what is complete has all its bytes.
    pub(crate) fn state(&self) -> BodyState {
        match self {
            Source::Stored { reader: None, .. } => BodyState::Failed,
            Source::Stored { object, .. } | Source::Passing { object, .. } => object.state(),
            Source::Synthetic { .. } => BodyState::Complete,
        }
    }

    /// Bytes that come next and lie together, at most so many; `None` when there are none (yet).
    pub(crate) fn piece(&mut self, bytes_max: usize) -> Option<&[u8]> {
        let bytes = match self {
            Source::Stored { reader, offset, .. } => reader.as_mut()?.chunk_at(*offset)?,
            Source::Passing { object, piece, taken } => {
                if piece.1 == piece.0.len() {
                    *piece = (object.take_chunk().unwrap_or_default(), 0);
                    *taken += piece.0.len() as u64;
                }
                &piece.0[piece.1..]
            }
            Source::Synthetic { body, used } => &body[*used..],
        };
        (!bytes.is_empty()).then(|| &bytes[..bytes.len().min(bytes_max)])
    }

    /// So many bytes of the piece were used.
    pub(crate) fn consume(&mut self, count: usize) {
        match self {
            Source::Stored { offset, .. } => *offset += count as u64,
            Source::Passing { piece, .. } => piece.1 = (piece.1 + count).min(piece.0.len()),
            Source::Synthetic { body, used } => *used = (*used + count).min(body.len()),
        }
    }

    /// Waits until there is more, or the body has ended.
    pub(crate) async fn changed(&self) {
        match self {
            Source::Stored { object, offset, .. } => object.changed(*offset).await,
            Source::Passing { object, taken, .. } => object.changed(*taken).await,
            Source::Synthetic { .. } => {}
        }
    }
}
