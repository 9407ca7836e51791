//! Reads a stored body, even while it grows: published bytes never change.
//!
//! A complete body stays in place as long as its handle: reading it takes no lock and needs no [`BodyReader`]. A body
//! that is still being written may turn out too large to be kept; therefore its readers are counted, and each reports at
//! every block how far it has got (`readership.rs`).

use crate::filed::FiledReader;
use crate::layout::{EXTENT_HEADER_BYTES, HAS_NEXT, Head, LINK_BYTES};
use crate::object::Object;
use crate::place::Place;
use crate::streaming::Streaming;
use std::sync::Arc;

/// A block of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// The block, in units.
    block: u32,
    /// The offset in the body of the block's first byte.
    offset: u64,
}

/// The contiguous body bytes from `offset` on, with the block where they were found; the search starts at `spot`.
fn find(place: &Place, spot: Spot, offset: u64) -> Option<(&[u8], Spot)> {
    // Loaded first, since it publishes the blocks and links.
    find_before(place, spot, offset, place.body_bytes())
}

/// As [`find`]; `available` is how far published bytes go.
pub(crate) fn find_before(place: &Place, mut spot: Spot, offset: u64, available: u64) -> Option<(&[u8], Spot)> {
    let (memory, geometry) = (&place.store.memory, place.store.geometry);
    if offset >= available {
        return None;
    }
    loop {
        let head = Head(memory.load(geometry.byte(spot.block)));
        let at =
            if spot.block == place.record { place.body_at() } else { geometry.byte(spot.block) + EXTENT_HEADER_BYTES };
        let mut room = available - spot.offset;
        if head.has(HAS_NEXT) {
            let link = geometry.byte(spot.block + head.units()) - LINK_BYTES;
            room = room.min(link - at);
            if offset - spot.offset >= room {
                let block = memory.load(link) as u32;
                spot = Spot { block, offset: spot.offset + room };
                continue;
            }
        }
        let skip = offset - spot.offset;
        let len = usize::try_from(room - skip).ok()?;
        // SAFETY: these bytes lie below what the writer has published and never touches again; a block with a link is
        // full up to the link, and one without holds all the rest. The blocks from `spot` on are not freed while the
        // slice exists: those of a complete body live as long as the handle, from which the slice borrows; those of a
        // body that is being written are freed only when every counted reader is past them, and this reader counts as
        // being at `spot` until its next call.
        return Some((unsafe { memory.bytes(at + skip, len) }, spot));
    }
}

/// The contiguous bytes of a complete object's annex from `offset` of its record on: it follows the body, and ends at `end`.
pub(crate) fn annex_chunk(place: &Place, end: u64, offset: u64) -> Option<&[u8]> {
    find_before(place, first(place), offset, end).map(|(bytes, _)| bytes)
}

pub(crate) fn first(place: &Place) -> Spot {
    Spot { block: place.record, offset: 0 }
}

impl Object {
    /// For a stored object with a complete body in memory: the contiguous bytes from `offset` on; `None` past the end, and for all
    /// other objects. Searches the body's extents from the first one: for long bodies use [`Object::reader`].
    #[must_use]
    pub fn chunk_at(&self, offset: u64) -> Option<&[u8]> {
        let place = self.stored().filter(|place| self.is_whole() && !place.is_filed())?;
        find(place, first(place), offset).map(|(bytes, _)| bytes)
    }

    /// For a stored object with a complete body in memory: its contiguous pieces, in order. None for all other objects.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let place = self.stored().filter(|place| self.is_whole() && !place.is_filed());
        let mut at = place.map(|place| (place, first(place), 0));
        std::iter::from_fn(move || {
            let (place, spot, offset) = at?;
            let (bytes, spot) = find(place, spot, offset)?;
            at = Some((place, spot, offset + bytes.len() as u64));
            Some(bytes)
        })
    }

    /// Whether the body lies in a file: only a reader can read it, and may have to wait ([`BodyReader::wants_load`]).
    #[must_use]
    pub fn is_filed(&self) -> bool {
        self.stored().is_some_and(Place::is_filed)
    }

    /// A reader that remembers its position. If [`Object::is_whole`] it need not be counted; otherwise it is counted
    /// from here on, and what it has not read yet stays. `None` when the body cannot be kept and its beginning may be
    /// gone.
    #[must_use]
    pub fn reader(self: &Arc<Object>) -> Option<BodyReader> {
        let spot = self.stored().map_or(Spot { block: 0, offset: 0 }, first);
        let streaming = if self.is_whole() || self.is_passing() { None } else { self.streaming.load_full() };
        if self.has_overflowed() || streaming.as_ref().is_some_and(|streaming| !streaming.readership.join()) {
            return None;
        }
        let counted = streaming.map(|streaming| Box::new(Counted { streaming, needs_from: 0, held: None }));
        let filed = self.is_filed().then(Box::default);
        Some(BodyReader { object: Arc::clone(self), spot, counted, filed })
    }
}

/// The state of a reader that came while the body was being written.
struct Counted {
    streaming: Arc<Streaming>,
    /// The first byte that it still needs.
    needs_from: u64,
    /// A piece of an overflowed body, and its offset.
    held: Option<(u64, Arc<[u8]>)>,
}

/// Reads a stored body, remembering the extent it is in.
pub struct BodyReader {
    object: Arc<Object>,
    spot: Spot,
    /// Boxed, since most readers have none and are part of a session's state.
    counted: Option<Box<Counted>>,
    /// For a body in a file.
    filed: Option<Box<FiledReader>>,
}

impl std::fmt::Debug for BodyReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BodyReader").field("object", &self.object).finish_non_exhaustive()
    }
}

impl BodyReader {
    /// The contiguous bytes from `offset` on; `None` when there are none (yet), or when they have been given back. Cheap
    /// when offsets only grow; if the body was still being written when the reader was created, they must only grow.
    pub fn chunk_at(&mut self, offset: u64) -> Option<&[u8]> {
        let place = self.object.stored()?;
        if let Some(filed) = self.filed.as_deref_mut().filter(|_| offset < place.body_bytes()) {
            if let Some(counted) = &mut self.counted {
                let from = FiledReader::needs_from(offset);
                if from > counted.needs_from {
                    counted.streaming.readership.advance(place, counted.needs_from, Some(from));
                    counted.needs_from = from;
                }
            }
            let counted = self.counted.as_ref().map(|counted| &*counted.streaming);
            return filed.chunk_at(&self.object, counted, offset);
        }
        let Some(counted) = &mut self.counted else {
            let spot = if self.spot.offset <= offset { self.spot } else { first(place) };
            let (bytes, spot) = find(place, spot, offset)?;
            self.spot = spot;
            return Some(bytes);
        };
        let readership = &counted.streaming.readership;
        if offset < place.body_bytes() {
            if offset < self.spot.offset || self.spot.offset < counted.needs_from {
                return None;
            }
            let (bytes, spot) = find(place, self.spot, offset)?;
            if spot.offset > counted.needs_from {
                readership.advance(place, counted.needs_from, Some(spot.offset));
                counted.needs_from = spot.offset;
            }
            self.spot = spot;
            return Some(bytes);
        }
        if counted.held.as_ref().is_none_or(|(begin, piece)| offset < *begin || offset - begin >= piece.len() as u64) {
            let (begin, piece) = readership.take(place, counted.needs_from, offset)?;
            counted.needs_from = begin + piece.len() as u64;
            counted.held = Some((begin, piece));
        }
        counted.held.as_ref().and_then(|(begin, piece)| piece.get(usize::try_from(offset - begin).ok()?..))
    }

    /// Whether the last [`BodyReader::chunk_at`] found nothing because the bytes lie in a file and have to be waited for.
    #[must_use]
    pub fn wants_load(&self) -> bool {
        self.filed.as_ref().is_some_and(|filed| filed.wants_load())
    }

    /// Reads what the last [`BodyReader::chunk_at`] asked for, off the event loop; afterwards the same call finds it, or
    /// [`BodyReader::has_failed`]. At once if nothing is wanted. Cancel-safe.
    pub async fn load(&self) {
        if let Some(filed) = &self.filed {
            let counted = self.counted.as_ref().map(|counted| Arc::clone(&counted.streaming));
            filed.load(&self.object, counted).await;
        }
    }

    /// Whether bytes could not be read, or were not what had been stored. The object was removed; its body must be broken off.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.filed.as_ref().is_some_and(|filed| filed.has_failed())
    }

    /// The object being read.
    #[must_use]
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        if let (Some(counted), Some(place)) = (&self.counted, self.object.stored()) {
            counted.streaming.readership.advance(place, counted.needs_from, None);
        }
    }
}
