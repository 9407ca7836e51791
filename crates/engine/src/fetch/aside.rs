//! What a fetch tells the client that ordered it besides the object: interim responses (1xx), and the trailers of the body.
//!
//! They go to that client alone. Whoever waits for the same object has not asked the origin, and nothing of them is stored: a
//! cache may drop trailers, and to keep them would take room in every object. *Invariants:* both ends are on one event loop;
//! what waits for the client is bounded and counted; trailers are set before the object is complete. Source: RFC 9110 §6.5,
//! §15.2. Next file: `order.rs`.

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
    /// The client takes trailers.
    takes_trailers: bool,
    /// The names of the trailers that may come, as the value of a `Trailer` header.
    announced: Option<Vec<u8>>,
    /// They need no announcement.
    passes_all: bool,
    trailers: Option<Waiting>,
    interim: VecDeque<Waiting>,
    client: Option<Waker>,
}

/// An interim response, or trailers, that wait for the client.
struct Waiting {
    head: Message,
    held: Held,
}

impl Aside {
    /// For a client that takes trailers, or doesn't.
    pub(crate) fn new(takes_trailers: bool) -> Aside {
        Aside(Rc::new(RefCell::new(Slot { takes_trailers, ..Slot::default() })))
    }

    /// Whether the client takes trailers.
    pub(crate) fn takes_trailers(&self) -> bool {
        self.0.borrow().takes_trailers
    }

    /// Announces the trailers that may come, before the object can be delivered.
    pub(crate) fn announce(&self, names: Option<Vec<u8>>) {
        self.0.borrow_mut().announced = names;
    }

    /// The names of the trailers that may come, as the value of a `Trailer` header.
    pub(crate) fn announced(&self) -> Option<Vec<u8>> {
        self.0.borrow().announced.clone()
    }

    /// Trailers may come that nothing announces.
    pub(crate) fn pass_all(&self) {
        self.0.borrow_mut().passes_all = true;
    }

    /// Whether they need no announcement.
    pub(crate) fn passes_all(&self) -> bool {
        self.0.borrow().passes_all
    }

    /// Leaves the trailers for the client.
    pub(crate) fn set_trailers(&self, head: Message, ledger: &Rc<Ledger>) {
        let mut held = Held::default();
        held.set(ledger, head.memory_bytes());
        self.0.borrow_mut().trailers = Some(Waiting { head, held });
    }

    /// The trailers, once the object is complete.
    pub(crate) fn take_trailers(&self) -> Option<Message> {
        self.0.borrow_mut().trailers.take().map(|trailers| trailers.head)
    }

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
        slot.interim.push_back(Waiting { head, held });
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
