//! Whose turn it is to send: bytes of bodies that were handed to the library and are not written yet are bounded for a
//! connection, and streams wait for a place among them.
//!
//! Places are given by RFC 9218: a smaller urgency first; among equals those that want to be sent whole, in the order of their
//! streams, then those that share, by turns. Who says nothing shares. A place is for one slice, so that a large body holds up a
//! small one by no more than what is queued. *Invariant:* [`H2_QUEUED_BYTES_MAX`] bounds the copies of bodies for a connection,
//! however many streams it has.

use crate::transport::stream::priority::Priority;
use bytes::{Buf, Bytes};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use surface::limits::H2_QUEUED_BYTES_MAX;

/// Who waits for a place.
struct Waiting {
    stream: u32,
    priority: Priority,
    /// Streams that share are served in the order in which they came.
    turn: u64,
    waker: Waker,
}

impl Waiting {
    fn rank(&self) -> (u8, bool, u64) {
        let order = if self.priority.is_incremental { self.turn } else { u64::from(self.stream) };
        (self.priority.urgency, self.priority.is_incremental, order)
    }
}

/// The places of a connection.
#[derive(Default)]
pub(super) struct Queue {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    queued_bytes: usize,
    waiting: Vec<Waiting>,
    turns: u64,
}

impl State {
    fn wake_next(&self) {
        if self.queued_bytes < H2_QUEUED_BYTES_MAX
            && let Some(next) = self.waiting.iter().min_by_key(|waiting| waiting.rank())
        {
            next.waker.wake_by_ref();
        }
    }
}

impl Queue {
    /// Waits for a place for one slice. Whoever has got one takes it with [`Queue::piece`]; whoever no longer wants one says so
    /// with [`Queue::leave`].
    pub(super) fn poll_place(&self, context: &mut Context<'_>, stream: u32, priority: Priority) -> Poll<()> {
        let state = &mut *self.state.borrow_mut();
        let has_room = state.queued_bytes < H2_QUEUED_BYTES_MAX;
        if has_room && state.waiting.is_empty() {
            return Poll::Ready(());
        }
        let place = match state.waiting.iter().position(|waiting| waiting.stream == stream) {
            Some(place) => place,
            None => {
                state.turns += 1;
                state.waiting.push(Waiting { stream, priority, turn: state.turns, waker: context.waker().clone() });
                state.waiting.len() - 1
            }
        };
        let own = &mut state.waiting[place];
        own.priority = priority;
        own.waker.clone_from(context.waker());
        let rank = own.rank();
        if has_room && state.waiting.iter().all(|other| other.rank() >= rank) {
            state.waiting.swap_remove(place);
            return Poll::Ready(());
        }
        state.wake_next();
        Poll::Pending
    }

    /// Gives up waiting.
    pub(super) fn leave(&self, stream: u32) {
        let state = &mut *self.state.borrow_mut();
        if let Some(place) = state.waiting.iter().position(|waiting| waiting.stream == stream) {
            state.waiting.swap_remove(place);
            state.wake_next();
        }
    }

    /// A piece of body on its way.
    pub(super) fn piece(self: &Rc<Self>, bytes: &[u8]) -> Piece {
        let state = &mut *self.state.borrow_mut();
        state.queued_bytes += bytes.len();
        state.wake_next();
        Piece { bytes: Bytes::copy_from_slice(bytes), counted: bytes.len(), queue: Rc::clone(self) }
    }

    /// How many bytes were handed over and not written.
    pub(super) fn queued_bytes(&self) -> usize {
        self.state.borrow().queued_bytes
    }
}

/// A piece of body that the library holds. Its place is free again when it has been written, or thrown away.
pub(super) struct Piece {
    bytes: Bytes,
    counted: usize,
    queue: Rc<Queue>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let state = &mut *self.queue.state.borrow_mut();
        state.queued_bytes -= self.counted;
        state.wake_next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use surface::limits::H2_SLICE_BYTES_MAX;

    fn priority(text: &str) -> Priority {
        Priority::of_field(text.as_bytes())
    }

    #[test]
    fn places_go_to_the_urgent_first_then_whole_ones_in_order_then_by_turns() {
        let queue = Rc::new(Queue::default());
        let mut context = Context::from_waker(Waker::noop());
        let mut pieces: Vec<Piece> =
            (0..H2_QUEUED_BYTES_MAX / H2_SLICE_BYTES_MAX).map(|_| queue.piece(&[0; H2_SLICE_BYTES_MAX])).collect();
        let wishes = [
            (9, Priority::default()),
            (7, Priority::default()),
            (5, priority("")),
            (3, priority("")),
            (1, priority("u=6")),
            (11, priority("u=1")),
        ];
        for (stream, wish) in wishes {
            assert!(queue.poll_place(&mut context, stream, wish).is_pending());
        }
        let mut order = Vec::new();
        let mut left = wishes.to_vec();
        while !left.is_empty() {
            pieces.pop();
            let next = left.iter().position(|(stream, wish)| queue.poll_place(&mut context, *stream, *wish).is_ready());
            let (stream, _) = left.remove(next.expect("there is a place"));
            order.push(stream);
            pieces.insert(0, queue.piece(&[0; H2_SLICE_BYTES_MAX]));
        }
        assert_eq!(order, [11, 3, 5, 9, 7, 1]);
        drop(pieces);
        assert_eq!(queue.queued_bytes(), 0);
    }

    #[test]
    fn who_leaves_holds_up_nobody() {
        let queue = Rc::new(Queue::default());
        let mut context = Context::from_waker(Waker::noop());
        let piece = queue.piece(&[0; H2_QUEUED_BYTES_MAX]);
        assert!(queue.poll_place(&mut context, 1, priority("u=0")).is_pending());
        assert!(queue.poll_place(&mut context, 3, priority("")).is_pending());
        drop(piece);
        assert!(queue.poll_place(&mut context, 3, priority("")).is_pending());
        queue.leave(1);
        assert!(queue.poll_place(&mut context, 3, priority("")).is_ready());
    }
}
