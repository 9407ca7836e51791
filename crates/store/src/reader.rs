//! Reading a stored body while it grows, without locks: bytes below `available_bytes` never change.

use crate::layout::{EXTENT_HEADER_BYTES, HAS_NEXT, Head, LINK_BYTES};
use crate::object::{Object, Place};
use std::sync::Arc;

/// A block of a body.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// The block, in units.
    block: u32,
    /// Where its body bytes begin, from the arena's start.
    at: u64,
    /// Which byte of the body that is.
    offset: u64,
}

/// Body bytes from `offset` that lie together, with the block where they were found, beginning the search at `spot`.
fn find(place: &Place, mut spot: Spot, offset: u64) -> Option<(&[u8], Spot)> {
    let (memory, geometry) = (&place.store.memory, place.store.geometry);
    // First, since it publishes the blocks and links below.
    let available = place.body_bytes();
    if offset >= available {
        return None;
    }
    loop {
        let head = Head(memory.load(geometry.byte(spot.block)));
        let mut room = available - spot.offset;
        if head.has(HAS_NEXT) {
            let link = geometry.byte(spot.block + head.units()) - LINK_BYTES;
            room = room.min(link - spot.at);
            if offset - spot.offset >= room {
                let block = memory.load(link) as u32;
                spot = Spot { block, at: geometry.byte(block) + EXTENT_HEADER_BYTES, offset: spot.offset + room };
                continue;
            }
        }
        let skip = offset - spot.offset;
        let len = usize::try_from(room - skip).ok()?;
        // SAFETY: below `available_bytes`, which the writer raised after writing them and never touches again; a block
        // that has a link is full up to it, and one that has none holds all the rest. Blocks are freed when the handle
        // drops, and the slice borrows from it.
        return Some((unsafe { memory.bytes(spot.at + skip, len) }, spot));
    }
}

fn first(place: &Place) -> Spot {
    Spot { block: place.record, at: place.body_at(), offset: 0 }
}

impl Object {
    /// Stored objects: the bytes from `offset` that lie together; `None` when there are none (yet), and for passing
    /// objects. Looks through the body's extents from the first one: for long bodies use [`Object::reader`].
    #[must_use]
    pub fn chunk_at(&self, offset: u64) -> Option<&[u8]> {
        let place = self.stored()?;
        find(place, first(place), offset).map(|(bytes, _)| bytes)
    }

    /// A reader that remembers where it is.
    #[must_use]
    pub fn reader(self: &Arc<Object>) -> BodyReader {
        BodyReader { spot: self.stored().map(first), object: Arc::clone(self) }
    }
}

/// Reads a stored body, remembering the extent it is in.
#[derive(Debug)]
pub struct BodyReader {
    object: Arc<Object>,
    spot: Option<Spot>,
}

impl BodyReader {
    /// As [`Object::chunk_at`]; cheap when offsets only grow.
    pub fn chunk_at(&mut self, offset: u64) -> Option<&[u8]> {
        let place = self.object.stored()?;
        let spot = self.spot.filter(|spot| spot.offset <= offset).unwrap_or_else(|| first(place));
        let (bytes, spot) = find(place, spot, offset)?;
        self.spot = Some(spot);
        Some(bytes)
    }

    /// The object being read.
    #[must_use]
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}
