//! A fragment on its way from its own request to the page that includes it: a queue with a bound, on one event loop.
//!
//! ```text
//! request of the fragment ─▶ push ─▶ pieces, at most FRAGMENT_IN_FLIGHT_BYTES_MAX ─▶ take ─▶ page
//! ```
//!
//! The request may run ahead of the page by the bytes of the queue, which are counted in the ledger; then it waits until the
//! page has come that far. A page that is given up drops its end, and the request learns that with its next byte. *Owners:*
//! both ends hold it as `Rc<Fragment>`; no borrow of its state outlives a call. Next file: `page.rs`.

use crate::memory::{Held, Ledger};
use backend::Backend;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use store::{BodyState, Object};
use surface::limits::{FRAGMENT_IN_FLIGHT_BYTES_MAX, FRAGMENT_IN_FLIGHT_BYTES_SHORT, FRAGMENT_PIECE_BYTES_MAX};

/// How far a fragment's response has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FragmentState {
    /// More may come.
    #[default]
    Running,
    /// All of it is in the queue, or was.
    Complete,
    /// The rest will not come.
    Failed,
}

/// What both ends share.
#[derive(Default)]
struct Flow {
    pieces: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    state: FragmentState,
    /// The response says that it is gzip; `None` before its head.
    is_gzip: Option<bool>,
    held: Held,
    /// The object whose body is read, if it is a stored one that still grows.
    object: Option<Arc<Object>>,
    /// The backend that its own fetch has a connection to, or had.
    backend: Option<Arc<Backend>>,
    /// There was no room for all that the response has.
    is_full: bool,
    request: Option<Waker>,
    page: Option<Waker>,
}

/// See the module header.
#[derive(Default)]
pub(crate) struct Fragment {
    flow: RefCell<Flow>,
    is_given_up: Cell<bool>,
    is_live: Cell<bool>,
    is_refused: Cell<bool>,
}

impl Fragment {
    /// A fragment whose request has not begun.
    pub(crate) fn new() -> Rc<Fragment> {
        Rc::new(Fragment::default())
    }

    /// The request has a response.
    pub(crate) fn begin(&self, is_gzip: bool) {
        self.flow.borrow_mut().is_gzip = Some(is_gzip);
    }

    /// Notes which growing object the response is read from.
    pub(crate) fn reads(&self, object: Arc<Object>) {
        self.flow.borrow_mut().object = Some(object);
    }

    /// Adds bytes, as many as there is room for, and returns how many. If that is not all of them the caller is woken when there
    /// is more room. `None` when nobody wants the fragment any more.
    pub(crate) fn push(&self, context: &Context<'_>, bytes: &[u8], ledger: &Rc<Ledger>) -> Option<usize> {
        if self.is_given_up.get() {
            return None;
        }
        let flow = &mut *self.flow.borrow_mut();
        let most = if ledger.is_short() { FRAGMENT_IN_FLIGHT_BYTES_SHORT } else { FRAGMENT_IN_FLIGHT_BYTES_MAX };
        let count = bytes.len().min(most.saturating_sub(flow.queued_bytes));
        for part in bytes[..count].chunks(FRAGMENT_PIECE_BYTES_MAX) {
            match flow.pieces.back_mut() {
                Some(last) if last.len() + part.len() <= FRAGMENT_PIECE_BYTES_MAX => last.extend_from_slice(part),
                _ => flow.pieces.push_back(part.to_vec()),
            }
        }
        if count > 0 {
            flow.queued_bytes += count;
            flow.held.set(ledger, flow.queued_bytes);
            wake(&mut flow.page);
        }
        flow.is_full = count < bytes.len();
        if flow.is_full {
            remember(&mut flow.request, context);
        }
        Some(count)
    }

    /// Notes that its fetch has a connection to a backend.
    pub(crate) fn has_place(&self, backend: &Arc<Backend>) {
        self.flow.borrow_mut().backend = Some(Arc::clone(backend));
        self.is_refused.set(false);
    }

    /// Notes that its fetch got none, since all were in use. Before its turn that is our own doing: fragments are not asked for side by
    /// side in Varnish.
    pub(crate) fn has_no_place(&self) {
        if !self.is_live() {
            self.is_refused.set(true);
            wake(&mut self.flow.borrow_mut().page);
        }
    }

    /// Whether it was refused a connection before its turn; what comes is not to be used.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.get()
    }

    /// Nothing more will come.
    pub(crate) fn end(&self, state: FragmentState) {
        let flow = &mut *self.flow.borrow_mut();
        if flow.state == FragmentState::Running {
            flow.state = state;
            flow.object = None;
            wake(&mut flow.page);
        }
    }

    /// Ready when the page no longer wants the fragment; the request is also woken when the fragment's turn comes.
    pub(crate) fn poll_given_up(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_given_up.get() {
            return Poll::Ready(());
        }
        remember(&mut self.flow.borrow_mut().request, context);
        Poll::Pending
    }

    /// Whether everything before the fragment has been sent, up to the page that the client asked for. Such a fragment never
    /// waits for others.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live.get()
    }

    /// Notes that the fragment's turn has come.
    pub(super) fn go_live(&self) {
        if !self.is_live.replace(true) {
            wake(&mut self.flow.borrow_mut().request);
        }
    }

    /// Whether the response is gzip; `None` while that is not known.
    pub(super) fn is_gzip(&self) -> Option<bool> {
        let flow = self.flow.borrow();
        flow.is_gzip.or((flow.state != FragmentState::Running).then_some(false))
    }

    /// Takes the next piece out.
    pub(super) fn take(&self, ledger: &Rc<Ledger>) -> Option<Vec<u8>> {
        let flow = &mut *self.flow.borrow_mut();
        let piece = flow.pieces.pop_front()?;
        flow.queued_bytes -= piece.len();
        flow.held.set(ledger, flow.queued_bytes);
        wake(&mut flow.request);
        Some(piece)
    }

    /// How far the response has come.
    pub(super) fn state(&self) -> FragmentState {
        self.flow.borrow().state
    }

    /// Wakes the page when anything changes.
    pub(super) fn watch(&self, context: &Context<'_>) {
        remember(&mut self.flow.borrow_mut().page, context);
    }

    /// Whether the request waits for its turn with an object that is only passed on, so that it holds up all other readers of
    /// that object, or with a connection that others wait for: perhaps the very fragment whose turn it is.
    pub(super) fn holds_up_others(&self) -> bool {
        let flow = self.flow.borrow();
        let Some(object) = flow.object.as_ref().filter(|_| flow.queued_bytes > 0) else { return false };
        let holds_place = || {
            flow.is_full
                && object.is_passing()
                && object.state() == BodyState::Writing
                && flow.backend.as_ref().is_some_and(|backend| backend.is_waited_for())
        };
        object.has_overflowed() || holds_place()
    }

    /// The page no longer wants it.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
        let flow = &mut *self.flow.borrow_mut();
        (flow.pieces, flow.queued_bytes, flow.held) = Default::default();
        wake(&mut flow.request);
    }
}

/// Keeps the waker of whoever waits.
pub(super) fn remember(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(context.waker()) => {}
        _ => *place = Some(context.waker().clone()),
    }
}

/// Wakes whoever waits.
pub(super) fn wake(place: &mut Option<Waker>) {
    if let Some(waker) = place.take() {
        waker.wake();
    }
}
