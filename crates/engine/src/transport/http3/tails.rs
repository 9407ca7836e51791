//! Responses that are complete and that the client does not have yet: [`Tails`].
//!
//! QUIC takes a response long before it has arrived: megabytes may be on their way, and would be lost if the connection was closed.
//! To follow every response to its end would cost more than most of them need, so nobody does before the connection is to be
//! closed, or as long as it holds little for them; until then those that have arrived are forgotten now and then. *Invariant:* there
//! are at most about four times as many as a client may have streams, since QUIC gives no credit for a stream before the client
//! has all of it.

use super::quic::SendStream;
use std::cell::RefCell;
use std::task::{Context, Waker};

/// How many are kept at least before it is looked whether they have arrived.
const FEW: usize = 8;

/// The finished streams of a connection.
pub(super) struct Tails<S>(RefCell<Vec<S>>);

impl<S> Default for Tails<S> {
    fn default() -> Self {
        Tails(RefCell::default())
    }
}

impl<S: SendStream> Tails<S> {
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

    /// Forgets those that have arrived, and has the task woken when others do. Returns how many were forgotten, and how many
    /// are left.
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
