//! A resource in slices: the division of its body, and the keys of the slices.
//!
//! The head object has no body, the length of the whole in its Content-Length, and as the last note
//! behind its head (`message::stored_notes`) the name of its generation and the size of its slices.
//! The key of a slice is a digest of that note and its number. A generation begins when a head is
//! stored from a response of its own; a head that a 304 made valid again is of the generation of
//! the one before. *Invariant:* a slice that is found under a key of a head has bytes of the
//! version that the head's validator names. Used by `request/slices.rs` and `fetch/slice.rs`;
//! `cache::SliceLookup` describes how slices are found.

use message::Message;
use semantics::ranges::Span;
use sha2::{Digest, Sha256};
use std::cell::Cell;
use store::Object;
use surface::limits::{SLICE_BYTES_MAX, SLICE_BYTES_MIN, SLICE_REFUSALS_MAX};

/// Bytes of a note without its mark.
const NOTE: usize = message::NOTE_BYTES - 1;
/// Bytes of a note that name the generation; the others are the size in KiB.
const GENERATION: usize = NOTE - 4;

/// Shortest lifetime of a slice after a request for it, in seconds: a client that reads a resource
/// continues when its head has expired, as with an object in one piece.
const LIVES_SECONDS_MIN: f64 = 60.0;

/// End of the lifetime of a slice of this head that is requested now; seconds since 1970.
pub(crate) fn lives_until(head: &Object, now: f64) -> f64 {
    let end = if head.is_removed() { now } else { head.origin() + head.ttl() + head.grace() + head.keep() };
    end.max(now + LIVES_SECONDS_MIN)
}

/// The size of slices that VCL or a parameter sets, in bytes: whole KiB, within limits; `None` = no
/// slices.
pub(crate) fn size_of(bytes: u64) -> Option<u64> {
    (bytes > 0).then(|| bytes.clamp(SLICE_BYTES_MIN, SLICE_BYTES_MAX) & !1023)
}

/// The bytes of a slice of a resource of at least that length.
pub(crate) fn open_span(number: u64, slice_bytes: u64) -> Span {
    let first = number.saturating_mul(slice_bytes);
    Span { first, last: first.saturating_add(slice_bytes - 1) }
}

/// Division of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slicing {
    /// The length of the whole, in bytes; at least one slice and one byte.
    pub(crate) total: u64,
    /// The length of each slice but the last, in bytes.
    pub(crate) slice_bytes: u64,
    note: [u8; NOTE],
}

impl Slicing {
    /// A new generation, named for the fetch that began it.
    pub(crate) fn begin(total: u64, slice_bytes: u64, key: &[u8; 32], xid: u64, origin: f64) -> Slicing {
        let hasher = Sha256::new().chain_update(b"slices\0").chain_update(key);
        let name = hasher.chain_update(xid.to_le_bytes()).chain_update(origin.to_bits().to_le_bytes()).finalize();
        let mut note = [0; NOTE];
        note[..GENERATION].copy_from_slice(&name[..GENERATION]);
        note[GENERATION..].copy_from_slice(&((slice_bytes >> 10) as u32).to_le_bytes());
        Slicing { total, slice_bytes, note }
    }

    /// The division of a head object; `None` if the object is not a head, or is damaged.
    pub(crate) fn of(object: &Object) -> Option<Slicing> {
        if !object.flags().is_sliced() {
            return None;
        }
        let note: [u8; NOTE] = message::stored_notes(object.head()).last()?[1..].try_into().ok()?;
        let slice_bytes = u64::from(u32::from_le_bytes(note[GENERATION..].try_into().ok()?)) << 10;
        let mut head = Message::new();
        head.decode(object.head())?;
        let total = std::str::from_utf8(head.get("Content-Length")?).ok()?.parse().ok()?;
        (slice_bytes >= SLICE_BYTES_MIN && total > 0).then_some(Slicing { total, slice_bytes, note })
    }

    /// Writes the note behind a head, or behind that of a slice.
    pub(crate) fn write_note(&self, head: &mut Vec<u8>) {
        message::encode_note(head, &self.note);
    }

    /// The key of a slice.
    pub(crate) fn key(&self, number: u64) -> [u8; 32] {
        let hasher = Sha256::new().chain_update(b"slice\0").chain_update(self.note);
        hasher.chain_update(self.total.to_le_bytes()).chain_update(number.to_le_bytes()).finalize().into()
    }

    /// The number of the slice that contains a byte.
    pub(crate) fn number_at(&self, offset: u64) -> u64 {
        offset / self.slice_bytes
    }

    /// The bytes of a slice; `None` if there is no such slice.
    pub(crate) fn span(&self, number: u64) -> Option<Span> {
        let Span { first, last } = open_span(number, self.slice_bytes);
        (first < self.total).then(|| Span { first, last: last.min(self.total - 1) })
    }
}

/// Resources that are not available in slices: their origin ignores Range, or names no version. A
/// table of fixed size in which a newer resource replaces an older one; for a resource that is not
/// in it, a request for a slice is sent in vain.
pub(crate) struct Refusals(Box<[Cell<(u64, f64)>]>);

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals((0..SLICE_REFUSALS_MAX).map(|_| Cell::new((0, 0.0))).collect())
    }
}

impl Refusals {
    fn place(&self, key: &[u8; 32]) -> (&Cell<(u64, f64)>, u64) {
        let [a, b, c, d, e, f, g, h, ..] = *key;
        let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        (&self.0[word as usize % self.0.len()], word)
    }

    /// Stores a resource, until a time in seconds since 1970.
    pub(crate) fn note(&self, key: &[u8; 32], until: f64) {
        let (place, word) = self.place(key);
        place.set((word, until));
    }

    /// True if the resource is stored.
    pub(crate) fn has(&self, key: &[u8; 32], now: f64) -> bool {
        let (place, word) = self.place(key);
        let (there, until) = place.get();
        there == word && now < until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_whole_once() {
        let slicing = Slicing::begin(200_000, 65_536, &[1; 32], 7, 5.0);
        let spans: Vec<_> = (0..5).filter_map(|number| slicing.span(number)).collect();
        let ends: Vec<_> = spans.iter().map(|span| (span.first, span.last)).collect();
        assert_eq!(ends, [(0, 65_535), (65_536, 131_071), (131_072, 196_607), (196_608, 199_999)]);
        assert!(spans.iter().zip(0..).all(|(span, number)| slicing.number_at(span.first) == number
            && slicing.number_at(span.last) == number));
        assert_eq!(slicing.span(u64::MAX), None);
    }

    #[test]
    fn sizes_are_whole_and_bounded() {
        assert_eq!(size_of(0), None);
        assert_eq!(size_of(1), Some(SLICE_BYTES_MIN));
        assert_eq!(size_of((1 << 20) + 5), Some(1 << 20));
        assert_eq!(size_of(u64::MAX), Some(SLICE_BYTES_MAX));
    }

    #[test]
    fn no_two_slices_share_a_key() {
        let slicing = |total, bytes, xid| Slicing::begin(total, bytes, &[1; 32], xid, 5.0);
        let all = [
            slicing(1 << 20, 65_536, 1),
            slicing(1 << 21, 65_536, 1),
            slicing(1 << 20, 131_072, 1),
            slicing(1 << 20, 65_536, 2),
        ];
        let mut keys: Vec<_> = all.iter().flat_map(|slicing| (0..8).map(|number| slicing.key(number))).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 32);
    }

    #[test]
    fn a_refusal_is_forgotten_in_time_or_for_another() {
        let refusals = Refusals::default();
        let mut other = [0; 32];
        other[2] = 4;
        assert!(!refusals.has(&[0; 32], 0.0) && !refusals.has(&other, 1.0));
        refusals.note(&other, 10.0);
        assert!(refusals.has(&other, 9.0) && !refusals.has(&other, 10.0));
        other[3] = 1;
        refusals.note(&other, 10.0);
        other[3] = 0;
        assert!(!refusals.has(&other, 9.0));
    }
}
