//! The meaning of the words in the arena.
//!
//! ```text
//! arena    header (64 bytes) block block block …            every block begins with its head word
//! block    head word: size in units (32) | kind (8) | state bits (8) | object flags (15) |
//!          unchecked (1)
//! free     head, links to the next and previous free block of its class (32 | 32), …,
//!          size again in the last word
//! extent   head, body bytes …, [link to the next extent in the last word, when HAS_NEXT]
//! record   head
//!          xid (32) | checksum (32)
//!          body length (40) | head length (24)
//!          origin in 0.1 ms (48) | vary length (16)
//!          ttl f32 | grace f32
//!          keep f32 | newest ban tested (32)
//!          hits (32) | last use (32)                                    in the index's units
//!          key (24 bytes)                                               ends at byte 80
//!          vary, response head, [annex length (64)], body bytes …, [annex], [link]
//! on disk  a record whose body is in a file: it has the map (`disk_tier/map.rs`) instead of body bytes
//! ```
//!
//! The head word holds everything that a walk needs, so a store of eight bytes is enough to split,
//! merge, commit or remove. The free-list words and PREVIOUS_FREE are hints for the running
//! process: recovery computes them again. The key is cut to 192 bits: this saves eight bytes per
//! object and still withstands a search for collisions. Objects with the flag ESI have room for the
//! length of an annex (`annex.rs`), which follows the body through the extents; that word is not
//! aligned, and is written before COMPLETE.

use crate::attributes::ObjectFlags;

/// First bytes of a formatted arena.
pub(crate) const ARENA_MAGIC: u64 = u64::from_le_bytes(*b"CopalAr3");
/// The same in release 0.1. Words and blocks are unchanged, response heads are in the plain form,
/// which can still be read (`message::Message::decode`). Such an arena is taken over, and has the
/// current format from then on.
pub(crate) const ARENA_MAGIC_2: u64 = u64::from_le_bytes(*b"CopalAr2");
/// Offset of the word that holds [`ARENA_MAGIC`]; written last when formatting.
pub(crate) const MAGIC_AT: u64 = 0;
/// Offset of the word that holds the arena's length in bytes.
pub(crate) const LENGTH_AT: u64 = 8;
/// Offset of the word that holds log2 of the unit.
pub(crate) const SHIFT_AT: u64 = 16;
/// Offset of the word that a file of bodies has too ([`pairing`]); 0 where there is no file.
pub(crate) const PAIRING_AT: u64 = 24;
/// Offset of the first block.
pub(crate) const FIRST_BLOCK: u64 = 64;

/// Kinds of block. Zero is not one, so that zeroed memory is never taken for a block.
pub(crate) const KIND_FREE: u8 = 0xf1;
pub(crate) const KIND_RECORD: u8 = 0xc3;
pub(crate) const KIND_EXTENT: u8 = 0xe7;
/// A record whose body is in a file.
pub(crate) const KIND_ON_DISK: u8 = 0x96;

/// State bits, at their places in the head word.
pub(crate) const PREVIOUS_FREE: u64 = 1 << 40;
/// The last word is the link to the next extent.
pub(crate) const HAS_NEXT: u64 = 1 << 41;
/// The body is complete and the checksum written.
pub(crate) const COMPLETE: u64 = 1 << 42;
/// The body will never be complete.
pub(crate) const FAILED: u64 = 1 << 43;
/// The index holds the object.
pub(crate) const INDEXED: u64 = 1 << 44;
/// The index no longer holds the object. Never cleared.
pub(crate) const REMOVED: u64 = 1 << 45;
/// The last word is reserved for a link while the body grows.
pub(crate) const GROWING: u64 = 1 << 46;
/// The body cannot be kept: its beginning is given back as it is read. Set only together with
/// REMOVED.
pub(crate) const OVERFLOWED: u64 = 1 << 47;

/// The object was stored by an earlier process and not checked since; the uppermost object flag is
/// never used. Set by recovery.
pub(crate) const UNCHECKED: u64 = 1 << 63;

/// Offsets inside a record.
pub(crate) const IDENTITY: u64 = 8;
pub(crate) const LENGTHS: u64 = 16;
pub(crate) const ORIGIN: u64 = 24;
pub(crate) const LIFETIME: u64 = 32;
pub(crate) const KEEP_BAN: u64 = 40;
pub(crate) const USE: u64 = 48;
pub(crate) const KEY: u64 = 56;
/// Offset of vary, response head and body.
pub(crate) const RECORD_HEADER_BYTES: u64 = 80;
/// Bytes of the key that are kept.
pub(crate) const KEY_BYTES: usize = 24;
/// Bytes that the length of an annex takes, in records that can have one.
pub(crate) const ANNEX_LENGTH_BYTES: u64 = 8;
/// Offset of the body bytes in an extent.
pub(crate) const EXTENT_HEADER_BYTES: u64 = 8;
/// Bytes of a link.
pub(crate) const LINK_BYTES: u64 = 8;

/// Longest body.
pub(crate) const BODY_BYTES_MAX: u64 = (1 << 40) - 1;
/// Longest response head.
pub(crate) const HEAD_BYTES_MAX: usize = (1 << 24) - 1;

/// A block's head word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(pub(crate) u64);

impl Head {
    pub(crate) fn new(units: u32, kind: u8) -> Head {
        Head(u64::from(units) | u64::from(kind) << 32)
    }

    pub(crate) fn units(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn with_units(self, units: u32) -> Head {
        Head(self.0 & !0xffff_ffff | u64::from(units))
    }

    pub(crate) fn kind(self) -> u8 {
        (self.0 >> 32) as u8
    }

    pub(crate) fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    pub(crate) fn object_flags(self) -> u16 {
        ((self.0 & !UNCHECKED) >> 48) as u16
    }

    /// True if the record has room for the length of an annex.
    pub(crate) fn is_annexed(self) -> bool {
        self.object_flags() & ObjectFlags::ESI.0 != 0
    }

    pub(crate) fn with_object_flags(self, flags: u16) -> Head {
        Head(self.0 | u64::from(flags) << 48)
    }

    /// True if recovery may accept this record (if its checksum holds).
    pub(crate) fn is_committed(self) -> bool {
        matches!(self.kind(), KIND_RECORD | KIND_ON_DISK)
            && self.has(COMPLETE | INDEXED)
            && self.0 & (REMOVED | FAILED) == 0
    }
}

/// The pairing value in the memory file of an arena, which identifies the file it belongs to;
/// `None` if it has no arena.
pub(crate) fn pairing(file: &std::fs::File) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    let word = |at| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).ok().map(|()| u64::from_le_bytes(bytes))
    };
    word(PAIRING_AT).filter(|_| matches!(word(MAGIC_AT), Some(ARENA_MAGIC | ARENA_MAGIC_2)))
}

/// Two halves of a word.
pub(crate) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

pub(crate) fn low(word: u64) -> u32 {
    word as u32
}

pub(crate) fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

pub(crate) fn lengths(body: u64, head: usize) -> u64 {
    body << 24 | head as u64
}

pub(crate) fn body_length(word: u64) -> u64 {
    word >> 24
}

pub(crate) fn head_length(word: u64) -> usize {
    (word & 0xff_ffff) as usize
}

pub(crate) fn origin_word(origin: f64, vary: u16) -> u64 {
    // The cast saturates: negative numbers and NaN become zero.
    (((origin * 1e4) as u64).min((1 << 48) - 1)) << 16 | u64::from(vary)
}

pub(crate) fn origin_seconds(word: u64) -> f64 {
    (word >> 16) as f64 / 1e4
}

pub(crate) fn vary_length(word: u64) -> usize {
    (word & 0xffff) as usize
}

/// The largest `f32` not above `seconds`, so that rounding cannot extend a lifetime.
pub(crate) fn seconds_down(seconds: f64) -> f32 {
    if seconds.is_nan() {
        return 0.0;
    }
    let near = seconds as f32;
    if f64::from(near) > seconds { near.next_down() } else { near }
}

/// The nearest `f32`, for durations where a microsecond does not matter.
pub(crate) fn seconds_near(seconds: f64) -> f32 {
    if seconds.is_nan() { 0.0 } else { seconds as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_never_stored_longer_than_it_was() {
        for seconds in [0.1, 120.0, 50_000.123, 86_400.7, 31_536_000.5, -1.0, 0.0, 1e20, f64::NAN] {
            let stored = f64::from(seconds_down(seconds));
            assert!(stored <= seconds || seconds.is_nan(), "{seconds} became {stored}");
            assert!(seconds.is_nan() || (seconds - stored).abs() <= seconds.abs() * 2e-7, "{seconds} became {stored}");
        }
        assert_eq!(seconds_down(120.0), 120.0);
    }

    #[test]
    fn times_outside_the_range_are_cut_to_it() {
        assert_eq!(origin_seconds(origin_word(-5.0, 3)), 0.0);
        assert_eq!(origin_seconds(origin_word(f64::NAN, 3)), 0.0);
        assert_eq!(vary_length(origin_word(1e300, 7)), 7);
        let now = 1_795_202_613.763_4;
        assert!((origin_seconds(origin_word(now, 0)) - now).abs() <= 1.1e-4);
    }
}
