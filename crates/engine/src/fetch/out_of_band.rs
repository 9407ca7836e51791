//! Out-of-band messages of a fetch to the client that ordered it: interim responses (1xx), and the
//! trailers of the body.
//!
//! They are sent to that client alone. Other clients that wait for the same object have not sent
//! the origin a request, and no out-of-band message is stored: a cache may drop trailers, and
//! keeping them would take memory in every object. *Invariants:* both ends are on one event loop;
//! the messages that wait for the client are bounded and counted; trailers are set before the
//! object is complete. Source: RFC 9110 §6.5, §15.2. Next file: `order.rs`.

use crate::memory::{Held, Ledger};
use message::Message;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use surface::limits::INTERIM_WAITING_BYTES_MAX;

/// One end of the channel; the fetch and the client's side each have one.
#[derive(Clone, Default)]
pub struct OutOfBand(Rc<RefCell<Slot>>);

#[derive(Default)]
struct Slot {
    /// The client accepts trailers.
    takes_trailers: bool,
    /// The names of the trailers that may follow, as the value of a `Trailer` header.
    announced: Option<Vec<u8>>,
    /// Trailers need no announcement.
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

impl OutOfBand {
    /// Creates a channel for a client that accepts trailers, or does not.
    pub(crate) fn new(takes_trailers: bool) -> OutOfBand {
        OutOfBand(Rc::new(RefCell::new(Slot { takes_trailers, ..Slot::default() })))
    }

    /// True if the client accepts trailers.
    pub(crate) fn takes_trailers(&self) -> bool {
        self.0.borrow().takes_trailers
    }

    /// Announces the trailers that may follow, before the object can be delivered.
    pub(crate) fn announce(&self, names: Option<Vec<u8>>) {
        self.0.borrow_mut().announced = names;
    }

    /// The names of the trailers that may follow, as the value of a `Trailer` header.
    pub(crate) fn announced(&self) -> Option<Vec<u8>> {
        self.0.borrow().announced.clone()
    }

    /// Allows trailers that are not announced.
    pub(crate) fn pass_all(&self) {
        self.0.borrow_mut().passes_all = true;
    }

    /// True if trailers need no announcement.
    pub(crate) fn passes_all(&self) -> bool {
        self.0.borrow().passes_all
    }

    /// Stores the trailers for the client.
    pub(crate) fn set_trailers(&self, head: Message, ledger: &Rc<Ledger>) {
        let mut held = Held::default();
        held.set(ledger, head.memory_bytes());
        self.0.borrow_mut().trailers = Some(Waiting { head, held });
    }

    /// The trailers, once the object is complete.
    pub(crate) fn take_trailers(&self) -> Option<Message> {
        self.0.borrow_mut().trailers.take().map(|trailers| trailers.head)
    }

    /// Hands over an interim response. False if too many bytes are waiting already, and the
    /// response is dropped.
    pub(crate) fn send_interim(&self, head: Message, ledger: &Rc<Ledger>) -> bool {
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
    pub(crate) async fn next_interim(&self) -> Message {
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
