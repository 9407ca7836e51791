//! Byte buffer for appending. Most pieces are short, and are copied here rather than by a call of
//! memcpy, which costs as much as copying them.
//!
//! *Invariant:* the room is always initialised; `room[..used]` are the bytes.

use std::ops::Deref;

/// A growing sequence of bytes.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    room: Vec<u8>,
    used: usize,
}

impl Clone for Buffer {
    /// Without the unused room.
    fn clone(&self) -> Buffer {
        Buffer { room: self.to_vec(), used: self.used }
    }
}

impl Buffer {
    /// Removes the bytes but keeps the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Keeps at most the first `len` bytes.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.used = self.used.min(len);
    }

    /// Bytes allocated.
    pub(crate) fn room_bytes(&self) -> usize {
        self.room.capacity()
    }

    /// Makes room for that many more bytes.
    #[inline]
    pub(crate) fn reserve(&mut self, count: usize) {
        if self.room.len() - self.used < count {
            self.grow(count);
        }
    }

    #[cold]
    fn grow(&mut self, count: usize) {
        self.room.reserve(self.used + count - self.room.len());
        self.room.resize(self.room.capacity(), 0);
    }

    /// All allocated room, including that after the bytes; see [`Buffer::fill_to`].
    #[inline]
    pub(crate) fn room_mut(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Extends the buffer to `len`: the bytes up to there were written into the room.
    #[inline]
    pub(crate) fn fill_to(&mut self, len: usize) {
        self.used = len.min(self.room.len());
    }

    /// Adds bytes at the end.
    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        copy(&mut self.room[self.used..self.used + bytes.len()], bytes);
        self.used += bytes.len();
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.room[..self.used]
    }
}

/// Copies between slices of one length, most of them short.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    #[inline]
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
        if let (Some(start), Some(first)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
            *start = *first;
        }
        if let (Some(end), Some(last)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
            *end = *last;
        }
    }
    // In this order a short piece needs few comparisons.
    match from.len() {
        33.. => to.copy_from_slice(from),
        16.. => ends::<16>(to, from),
        8.. => ends::<8>(to, from),
        4.. => ends::<4>(to, from),
        2.. => ends::<2>(to, from),
        1 => to[0] = from[0],
        0 => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_every_length_come_out_as_they_went_in() {
        let source: Vec<u8> = (0..=200).collect();
        let (mut buffer, mut wanted) = (Buffer::default(), Vec::new());
        for round in 0..3 {
            for length in 0..source.len() {
                buffer.put(&source[length / 3..length]);
                wanted.extend_from_slice(&source[length / 3..length]);
                assert!(*buffer == wanted[..], "{round} {length}");
            }
            buffer.clear();
            wanted.clear();
            assert!(buffer.is_empty());
            assert_eq!(buffer.clone().room_bytes(), 0, "a copy has no room to spare");
        }
    }
}
