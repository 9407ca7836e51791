//! Unacknowledged responses: complete responses that the client has not received yet
//! ([`Unacknowledged`]).
//!
//! QUIC accepts a response long before it has arrived: megabytes may be on their way, and would be
//! lost if the connection was closed. Following every response to its end would cost more than most
//! of them need, so none is followed before the connection is to be closed, or while few are kept;
//! until then those that have arrived are dropped periodically. *Invariant:* there are at most
//! about four times as many as a client may have streams, since QUIC gives no credit for a stream
//! before the client has all of it.

use super::quic::SendStream;
use std::cell::RefCell;
use std::task::{Context, Waker};

/// Number of responses that are kept before a check for arrived ones.
const FEW: usize = 8;

/// The finished streams of a connection.
pub(super) struct Unacknowledged<S>(RefCell<Vec<S>>);

impl<S> Default for Unacknowledged<S> {
    fn default() -> Self {
        Unacknowledged(RefCell::default())
    }
}

impl<S: SendStream> Unacknowledged<S> {
    /// Takes over a stream that has been finished.
    pub(super) fn add(&self, send: S) {
        let all = &mut *self.0.borrow_mut();
        if all.len() == all.capacity() {
            forget(all, &mut Context::from_waker(Waker::noop()));
            if all.len() >= all.capacity() / 2 {
                all.reserve_exact(all.len().max(FEW));
            }
        }
        all.push(send);
    }

    /// Drops those that have arrived, and has the task woken when others arrive. Returns the number
    /// of dropped and of remaining ones.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> (usize, usize) {
        let all = &mut *self.0.borrow_mut();
        let before = all.len();
        forget(all, context);
        (before - all.len(), all.len())
    }
}

fn forget<S: SendStream>(all: &mut Vec<S>, context: &mut Context<'_>) {
    all.retain_mut(|send| send.poll_stopped(context).is_pending());
}
