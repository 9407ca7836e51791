//! What a fetch tells the client that ordered it besides the object: interim responses (1xx).
//!
//! They go to that client alone. Whoever waits for the same object has not asked the origin, and nothing of them is stored.
//! *Invariants:* both ends are on one event loop; what waits for the client is bounded and counted. Source: RFC 9110 §15.2.
//! Next file: `order.rs`.

use crate::memory::{Held, Ledger};
use message::Message;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use surface::limits::INTERIM_WAITING_BYTES_MAX;

/// One end of it; the fetch and the client's side each have one.
#[derive(Clone, Default)]
pub struct Aside(Rc<RefCell<Slot>>);

#[derive(Default)]
struct Slot {
    interim: VecDeque<Interim>,
    client: Option<Waker>,
}

/// An interim response that waits for the client.
struct Interim {
    head: Message,
    held: Held,
}

impl Aside {
    /// Hands over an interim response. False when too much is waiting already; then it is dropped.
    pub(crate) fn tell(&self, head: Message, ledger: &Rc<Ledger>) -> bool {
        let mut slot = self.0.borrow_mut();
        let bytes = head.memory_bytes();
        let waiting: usize = slot.interim.iter().map(|interim| interim.held.bytes()).sum();
        if waiting + bytes > INTERIM_WAITING_BYTES_MAX || ledger.is_short() {
            return false;
        }
        let mut held = Held::default();
        held.set(ledger, bytes);
        slot.interim.push_back(Interim { head, held });
        if let Some(client) = slot.client.take() {
            client.wake();
        }
        true
    }

    /// Waits for the next interim response.
    pub(crate) async fn next(&self) -> Message {
        poll_fn(|context| {
            let mut slot = self.0.borrow_mut();
            if let Some(interim) = slot.interim.pop_front() {
                return Poll::Ready(interim.head);
            }
            slot.client = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
