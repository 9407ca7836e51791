//! The location of a stored object, and the words of its record.

use crate::arena::Inner;
use crate::layout::{
    ANNEX_LENGTH_BYTES, Head, KIND_ON_DISK, LENGTHS, ORIGIN, RECORD_HEADER_BYTES, body_length, head_length, vary_length,
};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// A record in an arena.
pub(crate) struct Place {
    pub(crate) store: Arc<Inner>,
    /// The record's block, in units.
    pub(crate) record: u32,
    pub(crate) slot: AtomicU32,
}

impl Place {
    pub(crate) fn head(&self) -> Head {
        Head(self.store.memory.load(self.at(0)))
    }

    /// Byte offset of a word of the record.
    pub(crate) fn at(&self, word: u64) -> u64 {
        self.store.geometry.byte(self.record) + word
    }

    pub(crate) fn word(&self, word: u64) -> u64 {
        self.store.memory.load(self.at(word))
    }

    pub(crate) fn set_bits(&self, bits: u64) -> Head {
        Head(self.store.memory.update(self.at(0), |head| head | bits))
    }

    pub(crate) fn clear_bits(&self, bits: u64) {
        self.store.memory.update(self.at(0), |head| head & !bits);
    }

    pub(crate) fn vary_bytes(&self) -> usize {
        vary_length(self.word(ORIGIN))
    }

    pub(crate) fn head_bytes(&self) -> usize {
        head_length(self.word(LENGTHS))
    }

    /// True if the body is in a file.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.head().kind() == KIND_ON_DISK
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        body_length(self.word(LENGTHS))
    }

    /// Offset of the body in the record, in bytes from the arena's start.
    #[inline]
    pub(crate) fn body_at(&self) -> u64 {
        self.fixed_end() + if self.head().is_annexed() { ANNEX_LENGTH_BYTES } else { 0 }
    }

    /// End of key, vary and response head, in bytes from the arena's start. The length of an annex
    /// is there.
    pub(crate) fn fixed_end(&self) -> u64 {
        self.at(RECORD_HEADER_BYTES) + (self.vary_bytes() + self.head_bytes()) as u64
    }

    /// Length of the annex; meaningless before the object is complete.
    pub(crate) fn annex_bytes(&self) -> u64 {
        if !self.head().is_annexed() {
            return 0;
        }
        // SAFETY: written before the object became complete (or checked by recovery to be inside
        // the block), and not changed since; a value read earlier is not used.
        let bytes = unsafe { self.store.memory.bytes(self.fixed_end(), ANNEX_LENGTH_BYTES as usize) };
        bytes.try_into().map_or(0, u64::from_le_bytes)
    }

    /// Bytes of the record that are written before the handle is shared and never change while it
    /// exists.
    pub(crate) fn fixed(&self, word: u64, len: usize) -> &[u8] {
        // SAFETY: key, vary and response head are written by `Object::create` (or checked by
        // recovery) before the handle exists, are not written after, and the block is not freed
        // before the handle drops.
        unsafe { self.store.memory.bytes(self.at(word), len) }
    }
}
