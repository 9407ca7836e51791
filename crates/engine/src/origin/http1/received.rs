//! Received and unused bytes of an origin, and their buffers, which an event loop's connections to
//! origins share.
//!
//! A response of usual size is received, used and over within one turn of the event loop, so that
//! one buffer is enough for all of them. The memory kept for the next one is bounded; buffers that
//! have grown for a long body are not kept. *Invariant:* `start <= buffer.len()`; a connection
//! without a buffer holds no memory.

use bytes::BufMut;
use bytes::buf::Limit;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Size of a buffer, at first and for bodies that turn out to be long, in bytes.
pub(super) const BUFFER_BYTES: usize = 16 << 10;
pub(crate) const BUFFER_BYTES_LONG: usize = 64 << 10;

/// Initial room for the head of a request, and the most that is kept, in bytes.
const HEAD_BYTES: usize = 1 << 10;
const HEAD_BYTES_KEPT: usize = 16 << 10;

/// Most unused buffers that are kept.
const KEPT_MAX: usize = 8;

/// The unused buffers of one event loop.
#[derive(Default)]
pub(crate) struct ReceiveBuffers {
    kept: RefCell<Vec<Vec<u8>>>,
    /// The buffer that the last request was sent from.
    head: Cell<Vec<u8>>,
}

impl ReceiveBuffers {
    /// An empty buffer to send a request from. Most requests are sent at once, so that one buffer
    /// is enough for all of them.
    pub(super) fn take_head(&self) -> Vec<u8> {
        let mut head = self.head.take();
        head.reserve(HEAD_BYTES);
        head
    }

    /// Takes the buffer back.
    pub(super) fn put_head(&self, mut head: Vec<u8>) {
        if (1..=HEAD_BYTES_KEPT).contains(&head.capacity()) {
            head.clear();
            self.head.set(head);
        }
    }

    fn take(&self) -> Vec<u8> {
        self.kept.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    fn put(&self, mut buffer: Vec<u8>) {
        let mut kept = self.kept.borrow_mut();
        if buffer.capacity() == BUFFER_BYTES && kept.len() < KEPT_MAX {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

/// Received bytes.
pub(super) struct Received {
    buffers: Rc<ReceiveBuffers>,
    buffer: Vec<u8>,
    start: usize,
    /// A read has filled the buffer: more is likely to follow at once.
    was_filled: bool,
}

impl Received {
    pub(super) fn new(buffers: Rc<ReceiveBuffers>) -> Received {
        Received { buffers, buffer: Vec::new(), start: 0, was_filled: false }
    }

    /// The buffers that its event loop shares.
    pub(super) fn buffers(&self) -> &ReceiveBuffers {
        &self.buffers
    }

    /// The bytes that have not been used.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Bytes of the buffer that are occupied, used or not.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Marks bytes as used.
    pub(super) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.buffer.len());
        if self.start == self.buffer.len() {
            self.was_filled |= self.is_full();
            self.start = 0;
            self.buffer.clear();
        }
    }

    /// The buffer with all bytes that were received and not used, if it is long and nearly full, so
    /// that it holds little else.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let (length, room) = (self.buffer.len(), self.buffer.capacity());
        if self.start > 0 || room < BUFFER_BYTES_LONG || length < room - room / 4 {
            return None;
        }
        self.was_filled |= self.is_full();
        Some(std::mem::take(&mut self.buffer))
    }

    fn is_full(&self) -> bool {
        self.buffer.len() == self.buffer.capacity()
    }

    /// Room for at most `most` more bytes.
    pub(super) fn room(&mut self, most: usize) -> Limit<&mut Vec<u8>> {
        if self.buffer.capacity() == 0 {
            self.buffer = if self.was_filled { Vec::with_capacity(BUFFER_BYTES_LONG) } else { self.buffers.take() };
        }
        let room = (self.buffer.capacity() - self.buffer.len()).min(most);
        (&mut self.buffer).limit(room)
    }

    /// Makes room for at least one byte after the received ones. If a read filled the buffer, more
    /// is likely to follow, and it grows.
    pub(super) fn make_room(&mut self) {
        let room = self.buffer.capacity();
        if room == 0 {
            return;
        }
        self.was_filled |= self.is_full();
        self.buffer.drain(..self.start);
        self.start = 0;
        let len = self.buffer.len();
        let needed = if len == room { room * 2 } else { room };
        self.buffer.reserve_exact(needed.max(if self.was_filled { BUFFER_BYTES_LONG } else { BUFFER_BYTES }) - len);
    }

    /// Discards the received bytes and returns the buffer.
    pub(super) fn discard(&mut self) {
        (self.start, self.was_filled) = (0, false);
        self.buffers.put(std::mem::take(&mut self.buffer));
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.discard();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_of_usual_size_serves_the_next_one_and_one_that_has_grown_does_not() {
        let buffers = Rc::new(ReceiveBuffers::default());
        let place = |received: &Received| received.buffer.as_ptr();
        let mut first = Received::new(Rc::clone(&buffers));
        assert_eq!(first.buffer.capacity(), 0, "what waits holds nothing");
        first.room(5).put_slice(b"hello");
        let usual = place(&first);
        drop(first);
        let mut second = Received::new(Rc::clone(&buffers));
        assert_eq!(second.room(usize::MAX).remaining_mut(), BUFFER_BYTES, "empty again");
        assert_eq!(place(&second), usual);
        second.room(usize::MAX).put_bytes(b'x', BUFFER_BYTES);
        second.consume(1);
        second.make_room();
        assert_eq!((second.bytes().len(), second.buffer.capacity()), (BUFFER_BYTES - 1, BUFFER_BYTES_LONG));
        drop(second);
        assert!(buffers.kept.borrow().is_empty());
    }

    #[test]
    fn a_buffer_grows_also_when_all_of_it_was_used_before_the_next_read() {
        let mut received = Received::new(Rc::default());
        received.room(usize::MAX).put_bytes(b'x', BUFFER_BYTES - 1);
        received.consume(BUFFER_BYTES - 1);
        received.make_room();
        assert_eq!(received.buffer.capacity(), BUFFER_BYTES, "it was not full");
        received.room(usize::MAX).put_bytes(b'x', BUFFER_BYTES);
        received.consume(BUFFER_BYTES);
        received.make_room();
        assert_eq!(received.buffer.capacity(), BUFFER_BYTES_LONG);
        received.discard();
        received.room(usize::MAX).put_u8(b'x');
        assert_eq!(received.buffer.capacity(), BUFFER_BYTES, "the next body begins small");
    }

    #[test]
    fn a_long_buffer_can_be_taken_if_it_is_nearly_full() {
        let mut received = Received::new(Rc::default());
        received.room(usize::MAX).put_bytes(b'x', BUFFER_BYTES);
        assert_eq!(received.take(), None, "it is short");
        received.make_room();
        received.room(usize::MAX).put_bytes(b'x', BUFFER_BYTES_LONG / 2 - BUFFER_BYTES);
        assert_eq!(received.take(), None, "it is half empty");
        received.room(usize::MAX).put_bytes(b'y', BUFFER_BYTES_LONG / 2);
        received.consume(1);
        assert_eq!(received.take(), None, "part of it was used");
        received.make_room();
        received.room(1).put_u8(b'z');
        let taken = received.take().unwrap();
        assert_eq!((taken.len(), taken.last()), (BUFFER_BYTES_LONG, Some(&b'z')));
        assert!(received.bytes().is_empty());
        assert_eq!(received.room(usize::MAX).remaining_mut(), BUFFER_BYTES_LONG, "the next one is long at once");
    }

    #[test]
    fn no_more_buffers_are_kept_than_the_bound_says() {
        let buffers = Rc::new(ReceiveBuffers::default());
        let all: Vec<_> = (0..2 * KEPT_MAX)
            .map(|_| {
                let mut received = Received::new(Rc::clone(&buffers));
                received.room(1).put_u8(1);
                received
            })
            .collect();
        drop(all);
        assert_eq!(buffers.kept.borrow().len(), KEPT_MAX);
    }
}
