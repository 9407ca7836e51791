//! The map of a body in the file: the locations of its pieces, and their checksums.
//!
//! ```text
//! id (64) | number of extents (32) | zero (32) | per extent: offset, bytes (64 | 64) |
//! CRC-32 of each 64 KiB of the body, to a multiple of 8
//! ```
//!
//! It is in the arena where a body in memory would be, and is written when the body is complete. A
//! piece is checked against it on every read from the file, so damage to the file is detected
//! whatever its cause.

use super::runs::Extent;
use crate::chain::{find_before, first};
use crate::layout::{COMPLETE, FAILED, KIND_ON_DISK, OVERFLOWED};
use crate::place::Place;

/// Bodies are read and checked in pieces of this many bytes; the last one may be shorter.
pub(crate) const CHUNK_BYTES: u64 = 64 << 10;
const HEADER_BYTES: u64 = 16;
const EXTENT_BYTES: u64 = 16;
/// More extents than any body gets: each but the last has at least 64 KiB.
const EXTENTS_MAX: u64 = 1 << 24;

/// Number of pieces of a body.
pub(crate) fn chunks_of(body_bytes: u64) -> u64 {
    body_bytes.div_ceil(CHUNK_BYTES)
}

/// Length of a map in bytes.
pub(crate) fn map_bytes(body_bytes: u64, extents: u64) -> u64 {
    HEADER_BYTES + extents * EXTENT_BYTES + (chunks_of(body_bytes) * 4).next_multiple_of(8)
}

/// The map as it is stored.
pub(crate) fn encode(id: u64, extents: &[Extent], checksums: &[u32]) -> Vec<u8> {
    let mut map =
        Vec::with_capacity((HEADER_BYTES + extents.len() as u64 * EXTENT_BYTES) as usize + checksums.len() * 4 + 8);
    map.extend_from_slice(&id.to_le_bytes());
    map.extend_from_slice(&(extents.len() as u64).to_le_bytes());
    for extent in extents {
        map.extend_from_slice(&extent.at.to_le_bytes());
        map.extend_from_slice(&extent.bytes.to_le_bytes());
    }
    for checksum in checksums {
        map.extend_from_slice(&checksum.to_le_bytes());
    }
    map.resize(map.len().next_multiple_of(8), 0);
    map
}

/// The parts of the file that hold `offset..offset + bytes` of a body with these extents; fewer
/// bytes if they end before.
pub(crate) fn parts(extents: impl IntoIterator<Item = Extent>, offset: u64, bytes: u64) -> Vec<Extent> {
    let (mut from, mut left, mut found) = (offset, bytes, Vec::new());
    for extent in extents {
        if left == 0 {
            break;
        }
        if from >= extent.bytes {
            from -= extent.bytes;
            continue;
        }
        let taken = left.min(extent.bytes - from);
        found.push(Extent { at: extent.at + from, bytes: taken });
        left -= taken;
        from = 0;
    }
    found
}

/// The map of a complete object.
pub(crate) struct Map<'a> {
    place: &'a Place,
    body_bytes: u64,
    pub(crate) id: u64,
    pub(crate) extents: u64,
}

impl<'a> Map<'a> {
    /// Reads the beginning of a map; `None` if it cannot be one. Where a body has not become
    /// complete there is no map, only bytes that an earlier record left in the block.
    pub(crate) fn of(place: &'a Place) -> Option<Map<'a>> {
        let head = place.head();
        if !head.has(COMPLETE) || head.has(OVERFLOWED) {
            return None;
        }
        let body_bytes = place.body_bytes();
        let mut map = Map { place, body_bytes, id: 0, extents: 0 };
        let mut header = [0; HEADER_BYTES as usize];
        map.copy(0, &mut header)?;
        let [id, extents] = words(header);
        (map.id, map.extents) = (id, extents);
        (extents <= EXTENTS_MAX).then_some(map)
    }

    /// Copies bytes of the map.
    fn copy(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        let end = offset + into.len() as u64;
        let (mut spot, mut done) = (first(self.place), 0);
        while done < into.len() {
            let (bytes, found) = find_before(self.place, spot, offset + done as u64, end)?;
            into[done..done + bytes.len()].copy_from_slice(bytes);
            (spot, done) = (found, done + bytes.len());
        }
        Some(())
    }

    /// Length of the map.
    pub(crate) fn bytes(&self) -> u64 {
        map_bytes(self.body_bytes, self.extents)
    }

    /// The extents of the body.
    pub(crate) fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        (0..self.extents).map_while(|index| {
            let mut row = [0; EXTENT_BYTES as usize];
            self.copy(HEADER_BYTES + index * EXTENT_BYTES, &mut row)?;
            let [at, bytes] = words(row);
            Some(Extent { at, bytes })
        })
    }

    /// The checksum of a piece.
    pub(crate) fn checksum(&self, chunk: u64) -> Option<u32> {
        let mut word = [0; 4];
        self.copy(HEADER_BYTES + self.extents * EXTENT_BYTES + chunk * 4, &mut word)?;
        Some(u32::from_le_bytes(word))
    }

    /// The encoded map.
    pub(crate) fn encoded(&self) -> Option<Vec<u8>> {
        let mut map = vec![0; usize::try_from(self.bytes()).ok()?];
        self.copy(0, &mut map)?;
        Some(map)
    }
}

/// Number of bytes at the position of a complete object's body: the body, or the map of one that is
/// in a file.
pub(crate) fn chain_bytes(place: &Place) -> u64 {
    if place.is_on_disk() { Map::of(place).map_or(0, |map| map.bytes()) } else { place.body_bytes() }
}

/// Gives the room in the file back when the handle is dropped.
pub(crate) fn give_back_in_file(place: &Place) {
    let head = place.head();
    if head.kind() != KIND_ON_DISK || !head.has(COMPLETE) || head.has(FAILED) {
        return;
    }
    if let Some((tier, map)) = place.store.disk_tier().zip(Map::of(place)) {
        let extents: Vec<Extent> = map.extents().collect();
        extents.into_iter().for_each(|extent| tier.give_back(extent));
    }
}

fn words(bytes: [u8; 16]) -> [u64; 2] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = bytes;
    [u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes(rest)]
}
