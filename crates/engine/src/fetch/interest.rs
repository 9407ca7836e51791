//! Whether a client still wants the response that a fetch waits for.
//!
//! A fetch whose bytes nobody takes any more learns that with the next bytes. For a stream that may be silent for hours that is
//! too late, so clients that can give up a single request hold an [`Interest`]. Both ends are on one event loop.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct Slot {
    is_lost: Cell<bool>,
    fetch: RefCell<Option<Waker>>,
}

/// The client's end: dropped when it wants nothing more.
#[derive(Default)]
pub struct Interest(Rc<Slot>);

/// The fetch's end.
#[derive(Clone)]
pub struct Interested(Rc<Slot>);

impl Interest {
    /// The other end.
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
    /// Returns when the client wants nothing more.
    pub(crate) async fn lost(&self) {
        poll_fn(|context| self.poll_lost(context)).await;
    }

    /// Ready when the client wants nothing more.
    pub(crate) fn poll_lost(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.0.is_lost.get() {
            return Poll::Ready(());
        }
        self.0.fetch.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}
