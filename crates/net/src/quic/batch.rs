//! Datagrams that were received at once: [`Batch`].
//!
//! The kernel puts datagrams of equal length from one client into one buffer, up to 64 KiB of them.
//! quinn would cut such a buffer up without copying it: one byte of one of them that waits in a
//! stream would keep all, and count as the one datagram it came in. So they are received here, and
//! passed on one by one. That costs a copy and an allocation for each, some 100 ns in addition to
//! the microsecond that it takes to decrypt it.

use quinn::udp::{BATCH_SIZE, RecvMeta};
use std::io::{self, IoSliceMut};

/// The longest datagram on an Ethernet, in bytes.
const DATAGRAM_BYTES: usize = 1472;
/// Largest buffer that the kernel coalesces, in bytes.
const TOGETHER_BYTES: usize = 64 << 10;

/// Received datagrams that have not been passed on yet.
pub(super) struct Batch {
    room: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
    /// Number of buffers with datagrams.
    filled: usize,
    /// The next datagram: its buffer, and its offset there.
    buffer: usize,
    offset: usize,
}

impl Batch {
    /// An empty batch with room for `segments` datagrams in each buffer.
    pub(super) fn new(segments: usize) -> Batch {
        let buffer_bytes = (segments * DATAGRAM_BYTES).max(TOGETHER_BYTES);
        let room = vec![0; buffer_bytes * BATCH_SIZE].into();
        Batch { room, metas: [RecvMeta::default(); BATCH_SIZE], filled: 0, buffer: 0, offset: 0 }
    }

    fn buffer_bytes(&self) -> usize {
        self.room.len() / BATCH_SIZE
    }

    /// Replaces the content by that of `receive`, which fills the buffers and returns their number.
    ///
    /// # Errors
    /// The error of `receive`.
    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        (self.filled, self.buffer, self.offset) = (0, 0, 0);
        let buffer_bytes = self.buffer_bytes();
        let mut rooms = self.room.chunks_mut(buffer_bytes);
        let mut buffers: [_; BATCH_SIZE] = std::array::from_fn(|_| IoSliceMut::new(rooms.next().unwrap_or_default()));
        self.filled = receive(&mut buffers, &mut self.metas)?.min(BATCH_SIZE);
        Ok(())
    }

    /// The next datagram, with its metadata.
    pub(super) fn next(&mut self) -> Option<(&[u8], RecvMeta)> {
        while self.buffer < self.filled {
            let meta = self.metas[self.buffer];
            let (begin, length) = (self.offset, meta.stride.min(meta.len.saturating_sub(self.offset)));
            if length == 0 {
                (self.buffer, self.offset) = (self.buffer + 1, 0);
                continue;
            }
            self.offset += length;
            let at = self.buffer * self.buffer_bytes() + begin;
            return Some((self.room.get(at..at + length)?, RecvMeta { len: length, stride: length, ..meta }));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_came_together_are_handed_on_one_by_one() {
        let mut batch = Batch::new(64);
        assert!(batch.next().is_none());
        batch
            .fill(|buffers, metas| {
                for (place, (text, stride)) in [("aabbc", 2), ("", 0), ("ddd", 3), ("ee", 9)].into_iter().enumerate() {
                    buffers[place][..text.len()].copy_from_slice(text.as_bytes());
                    metas[place] = RecvMeta { len: text.len(), stride, ..RecvMeta::default() };
                }
                Ok(4)
            })
            .unwrap();
        let mut all = Vec::new();
        while let Some((bytes, meta)) = batch.next() {
            assert_eq!((meta.len, meta.stride), (bytes.len(), bytes.len()));
            all.push(String::from_utf8(bytes.to_vec()).unwrap());
        }
        assert_eq!(all, ["aa", "bb", "c", "ddd", "ee"]);
        assert!(batch.fill(|_, _| Err(io::ErrorKind::WouldBlock.into())).is_err());
        assert!(batch.next().is_none());
    }
}
