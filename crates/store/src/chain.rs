//! The chain of blocks behind a record: finding the bytes of a body, a map or an annex in it.

use crate::layout::{EXTENT_HEADER_BYTES, HAS_NEXT, Head, LINK_BYTES};
use crate::place::Place;

/// A block of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// The block, in units.
    pub(crate) block: u32,
    /// The offset in the body of the block's first byte.
    pub(crate) offset: u64,
}

/// The contiguous body bytes from `offset` on, with the block where they were found; the search
/// starts at `spot`.
pub(crate) fn find(place: &Place, spot: Spot, offset: u64) -> Option<(&[u8], Spot)> {
    // Loaded first, since it publishes the blocks and links.
    find_before(place, spot, offset, place.body_bytes())
}

/// As [`find`]; `available` is the number of published bytes.
///
/// Published bytes are never written again: a block with a link is full up to the link, and one
/// without holds all the rest. The blocks from `spot` on are not freed while the slice exists:
/// those of a complete body live as long as the handle, from which the slice borrows; those of a
/// body that is being written are freed only when every counted reader is past them, and this
/// reader counts as being at `spot` until its next call.
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
        // SAFETY: below the published length, so never written again; the block is not freed while
        // the slice exists, as the function's description explains. Kept so by `reader.rs`.
        return Some((unsafe { memory.bytes(at + skip, len) }, spot));
    }
}

/// The contiguous bytes of a complete object's annex from `offset` of its record on: it follows the
/// body, and ends at `end`.
pub(crate) fn annex_chunk(place: &Place, end: u64, offset: u64) -> Option<&[u8]> {
    find_before(place, first(place), offset, end).map(|(bytes, _)| bytes)
}

/// The record's own block, which is the first of the chain.
pub(crate) fn first(place: &Place) -> Spot {
    Spot { block: place.record, offset: 0 }
}
