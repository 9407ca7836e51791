//! State shared by a connection and its requests: [`Shared`].

use crate::context::Loop;
use ::http2::{Priority, Resets, WaitingPriorities};
use ::http3::Code;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use surface::close_reason::CloseReason;
use tokio::time::Instant;

/// State shared by a connection and its requests.
pub(super) struct Shared {
    /// Requests whose work is not over.
    live: Cell<usize>,
    /// Wakes the connection's task.
    waker: RefCell<Option<Waker>>,
    /// Reason why the connection must end now.
    fault: Cell<Option<Code>>,
    /// VCL closes the session after its response.
    closes: Cell<Option<CloseReason>>,
    began_at: Instant,
    /// Budget of requests that the client may cancel: as in HTTP/2, a request that is begun and
    /// cancelled has a cost for Copal and not for the client.
    resets: Resets,
    priorities: RefCell<Priorities>,
}

impl Shared {
    pub(super) fn new(context: &Loop) -> Shared {
        Shared {
            live: Cell::new(0),
            waker: RefCell::new(None),
            fault: Cell::new(None),
            closes: Cell::new(None),
            began_at: Instant::now(),
            resets: Resets::new((&**context.engine.parameters.load()).into()),
            priorities: RefCell::default(),
        }
    }

    /// Stores the task to wake: the connection's.
    pub(super) fn listen(&self, wait: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(wait.waker())) {
            *waker = Some(wait.waker().clone());
        }
    }

    /// Wakes the connection's task.
    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Ends the connection, since the client violated the protocol.
    pub(super) fn fail(&self, code: Code) {
        if self.fault.get().is_none() {
            self.fault.set(Some(code));
            self.wake();
        }
    }

    /// Ends the session after a response.
    pub(super) fn leave(&self, reason: CloseReason) {
        self.closes.set(Some(reason));
        self.wake();
    }

    /// Counts a request, begun at this time, that the client has cancelled.
    pub(super) fn cancel(&self, began_at: Instant) {
        if self.resets.is_rapid(began_at.elapsed()) {
            self.charge_reset();
        }
    }

    /// Counts a stream that the client made Copal reset, or has reset itself soon after its
    /// beginning.
    pub(super) fn charge_reset(&self) {
        if !self.resets.charge(self.began_at.elapsed()) {
            self.fail(Code::ExcessiveLoad);
        }
    }

    /// Stores the priority of a response from a frame. Streams from `next` on have not begun.
    pub(super) fn prioritise(&self, stream: u64, priority: Priority, next: u64) {
        let priorities = &mut *self.priorities.borrow_mut();
        match priorities.live.iter().find(|(live, _)| *live == stream) {
            Some((_, said)) => said.set(Some(priority)),
            None if stream >= next => priorities.waiting.put(stream, priority),
            None => {}
        }
    }

    /// Number of requests whose work is not over.
    pub(super) fn live(&self) -> usize {
        self.live.get()
    }

    /// The code that the connection must end with, if it must.
    pub(super) fn fault(&self) -> Option<Code> {
        self.fault.get()
    }

    /// Reason why VCL closes the session, if it does.
    pub(super) fn closes(&self) -> Option<CloseReason> {
        self.closes.get()
    }

    /// Counts a request on this stream until the result is dropped.
    pub(super) fn begin(self: &Rc<Self>, stream: u64) -> Live {
        self.live.set(self.live.get() + 1);
        let priorities = &mut *self.priorities.borrow_mut();
        let priority = Rc::new(Cell::new(priorities.waiting.take(stream)));
        priorities.live.push((stream, Rc::clone(&priority)));
        Live { shared: Rc::clone(self), stream, priority }
    }
}

/// Priorities of requests from frames.
#[derive(Default)]
struct Priorities {
    live: Vec<(u64, Rc<Cell<Option<Priority>>>)>,
    waiting: WaitingPriorities,
}

/// A request whose work is not over.
pub(super) struct Live {
    shared: Rc<Shared>,
    stream: u64,
    /// Its priority from a frame, if there was one.
    pub(super) priority: Rc<Cell<Option<Priority>>>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.live.set(self.shared.live.get() - 1);
        self.shared.priorities.borrow_mut().live.retain(|(live, _)| *live != self.stream);
        self.shared.wake();
    }
}
