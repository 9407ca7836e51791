//! Integrity checks of objects that an earlier process stored.
//!
//! A start reads no body: objects that recovery accepts are marked [`UNCHECKED`], and their
//! checksum is computed at the first lookup. Until then only their lengths and links are known to
//! be possible. A damaged object is removed; others are not affected. A body in a file is checked
//! piece by piece whenever it is read; here its record and its map are checked.

use crate::attributes::BodyState;
use crate::chain::{find_before, first};
use crate::disk_tier::chain_bytes;
use crate::layout::{FAILED, IDENTITY, REMOVED, UNCHECKED, high};
use crate::object::Object;
use crate::place::Place;
use crate::streaming::{final_checksum, fixed_checksum};

/// Longest body (for a body in a file: map) that is checked at once; a longer one is checked by its
/// user, off the event loop.
const SHORT_BYTES: u64 = 64 << 10;

impl Object {
    /// True if a lookup may find it: it is neither removed nor failed. If it has not been checked
    /// and is short, it is checked here; a long one stays [`Object::is_unchecked`].
    #[must_use]
    #[inline]
    pub fn is_usable(&self) -> bool {
        let Some(place) = self.stored() else { return self.state() != BodyState::Failed };
        let head = place.head().0;
        head & (REMOVED | FAILED | UNCHECKED) == 0 || self.is_usable_if_checked(head & (REMOVED | FAILED) == 0)
    }

    #[cold]
    fn is_usable_if_checked(&self, is_there: bool) -> bool {
        is_there && (self.stored().map_or(0, chain_bytes) > SHORT_BYTES || self.check())
    }

    /// True if it came from an earlier process and has not been checked since.
    #[must_use]
    pub fn is_unchecked(&self) -> bool {
        self.stored().is_some_and(|place| place.head().has(UNCHECKED))
    }

    /// If it has not been checked: computes its checksum, which takes as long as reading all of it.
    /// A damaged object is removed ([`Object::remove`]), and must not be delivered. Returns true if
    /// it is sound. Any number of threads may check it at the same time.
    pub fn check(&self) -> bool {
        let Some(place) = self.stored().filter(|place| place.head().has(UNCHECKED)) else { return true };
        let is_sound = checksum_of(place).is_some_and(|checksum| checksum == high(place.word(IDENTITY)));
        if is_sound {
            place.clear_bits(UNCHECKED);
        } else {
            self.remove();
        }
        is_sound
    }
}

/// The checksum over everything in a complete record; `None` if its blocks end too early.
fn checksum_of(place: &Place) -> Option<u32> {
    let (body_bytes, annex_bytes) = (place.body_bytes(), place.annex_bytes());
    let end = chain_bytes(place) + annex_bytes;
    let (mut hasher, mut spot, mut offset) = (fixed_checksum(place), first(place), 0);
    while offset < end {
        let (bytes, found) = find_before(place, spot, offset, end)?;
        hasher.update(bytes);
        (spot, offset) = (found, offset + bytes.len() as u64);
    }
    Some(final_checksum(hasher, place.head().object_flags(), body_bytes, annex_bytes))
}
