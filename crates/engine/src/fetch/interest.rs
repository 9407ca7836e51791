//! Interest of a client in the response that a fetch waits for.
//!
//! A fetch whose bytes no client takes any more finds that out with the next bytes. For a stream
//! that may be silent for hours that is too late, so clients that can cancel a single request hold
//! an [`Interest`]. Both ends are on one event loop.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Slot {
    is_lost: Cell<bool>,
    fetch: RefCell<Option<Waker>>,
}

/// The client's end: dropped when the client no longer needs the response.
#[derive(Default)]
pub struct Interest(Rc<Slot>);

/// The fetch's end.
#[derive(Clone)]
pub struct Interested(Rc<Slot>);

impl Interest {
    /// Creates the fetch's end.
    #[must_use]
    pub fn watch(&self) -> Interested {
        Interested(Rc::clone(&self.0))
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.is_lost.set(true);
        if let Some(waker) = self.0.fetch.take() {
            waker.wake();
        }
    }
}

impl Interested {
    /// Returns when the client no longer needs the response.
    pub(crate) async fn lost(&self) {
        poll_fn(|context| self.poll_lost(context)).await;
    }

    /// Ready when the client no longer needs the response.
    pub(crate) fn poll_lost(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.0.is_lost.get() {
            return Poll::Ready(());
        }
        self.0.fetch.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}
