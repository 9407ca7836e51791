//! What a connection and its requests share: [`Shared`].

use crate::context::Loop;
use ::http3::Code;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};
use surface::close_reason::CloseReason;
use tokio::time::Instant;

/// What a connection and its requests share.
pub(super) struct Shared {
    /// Requests whose work is not over.
    live: Cell<usize>,
    /// Wakes the connection's task.
    waker: RefCell<Option<Waker>>,
    /// Why the connection must end now.
    fault: Cell<Option<Code>>,
    /// VCL closes the session after its response.
    closes: Cell<Option<CloseReason>>,
    /// The handshake is over.
    is_established: Cell<bool>,
    /// The connection is over, perhaps before its handshake was.
    is_over: Cell<bool>,
    /// Requests that wait for either.
    established: tokio::sync::Notify,
    cancelled: Cancelled,
}

impl Shared {
    pub(super) fn new(context: &Loop) -> Shared {
        Shared {
            live: Cell::new(0),
            waker: RefCell::new(None),
            fault: Cell::new(None),
            closes: Cell::new(None),
            is_established: Cell::new(false),
            is_over: Cell::new(false),
            established: tokio::sync::Notify::new(),
            cancelled: Cancelled::new(context),
        }
    }

    /// Remembers whom to wake: the connection's task.
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

    /// The client broke the protocol: the connection ends.
    pub(super) fn fail(&self, code: Code) {
        if self.fault.get().is_none() {
            self.fault.set(Some(code));
            self.wake();
        }
    }

    /// The session ends after a response.
    pub(super) fn leave(&self, reason: CloseReason) {
        self.closes.set(Some(reason));
        self.wake();
    }

    /// The client gave a request up.
    pub(super) fn cancel(&self) {
        if !self.cancelled.take() {
            self.fail(Code::ExcessiveLoad);
        }
    }

    /// Whether the handshake is over: what comes early may be a replay.
    pub(super) fn is_established(&self) -> bool {
        self.is_established.get()
    }

    /// The handshake is over.
    pub(super) fn establish(&self) {
        self.is_established.set(true);
        self.established.notify_waiters();
    }

    /// How many requests there are whose work is not over.
    pub(super) fn live(&self) -> usize {
        self.live.get()
    }

    /// What the connection must end with, if it must.
    pub(super) fn fault(&self) -> Option<Code> {
        self.fault.get()
    }

    /// Why VCL closes the session, if it does.
    pub(super) fn closes(&self) -> Option<CloseReason> {
        self.closes.get()
    }

    /// Waits for the end of the handshake. False if the connection ended before.
    pub(super) async fn established(&self) -> bool {
        while !self.is_established.get() {
            if self.is_over.get() {
                return false;
            }
            self.established.notified().await;
        }
        true
    }

    /// The connection is over.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        self.established.notify_waiters();
    }

    /// Counts a request until the result is dropped.
    pub(super) fn begin(self: &Rc<Self>) -> Live {
        self.live.set(self.live.get() + 1);
        Live(Rc::clone(self))
    }
}

/// A request whose work is not over.
pub(super) struct Live(Rc<Shared>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.live.set(self.0.live.get() - 1);
        self.0.wake();
    }
}

/// How many requests a client may give up: as in HTTP/2, a request that is begun and not wanted costs us and not the client.
struct Cancelled {
    limit: f64,
    period: f64,
    left: Cell<f64>,
    at: Cell<Instant>,
}

impl Cancelled {
    fn new(context: &Loop) -> Cancelled {
        let parameters = context.engine.parameters.load();
        let limit = parameters.h2_rapid_reset_limit as f64;
        let (left, at) = (Cell::new(limit), Cell::new(Instant::now()));
        Cancelled { limit, period: parameters.h2_rapid_reset_period.max(1.0), left, at }
    }

    /// False if it is one too many.
    fn take(&self) -> bool {
        if self.limit <= 0.0 {
            return true;
        }
        let now = Instant::now();
        let passed = (now - self.at.replace(now)).as_secs_f64();
        let left = (self.left.get() + passed * self.limit / self.period).min(self.limit) - 1.0;
        self.left.set(left.max(0.0));
        left >= 0.0
    }
}
