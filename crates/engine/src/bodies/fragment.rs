//! A fragment on its way from its own request to the page that includes it: a queue with a bound,
//! on one event loop.
//!
//! ```text
//! request of the fragment ─▶ push ─▶ pieces, at most FRAGMENT_IN_FLIGHT_BYTES_MAX ─▶ take ─▶ page
//! ```
//!
//! The request may run ahead of the page by the bytes of the queue, which are counted in the
//! ledger; then it waits until the page has sent that much. A page that is cancelled drops its end;
//! the request notices that before it starts fragments of its own, and with its next byte at the
//! latest. *Owners:* both ends hold it as `Rc<Fragment>`, and so do the fragments below it; no
//! borrow of its state outlasts a call. Next file: `page.rs`.

use crate::memory::{Held, Ledger};
use backend::Backend;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use store::{BodyState, Object};
use surface::limits::{FRAGMENT_IN_FLIGHT_BYTES_MAX, FRAGMENT_IN_FLIGHT_BYTES_SHORT, FRAGMENT_PIECE_BYTES_MAX};

/// Progress of a fragment's response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum FragmentState {
    /// More may follow.
    #[default]
    Running,
    /// All of it is in the queue, or was.
    Complete,
    /// The rest will not follow.
    Failed,
}

/// State shared by both ends.
#[derive(Default)]
struct Flow {
    pieces: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    state: FragmentState,
    /// The response is gzip; `None` before its head.
    is_gzip: Option<bool>,
    held: Held,
    /// The object whose body is read, if it is a stored one that still grows.
    object: Option<Arc<Object>>,
    /// The backend that its own fetch has a connection to, or had.
    backend: Option<Arc<Backend>>,
    /// There was no room for the whole response.
    is_full: bool,
    request: Option<Waker>,
    page: Option<Waker>,
}

/// Queue between a fragment's request and its page; see the module header.
#[derive(Default)]
pub(crate) struct Fragment {
    /// The fragment whose page includes this one; `None` if that is the page that the client
    /// requested.
    parent: Option<Rc<Fragment>>,
    flow: RefCell<Flow>,
    is_given_up: Cell<bool>,
    is_live: Cell<bool>,
    is_refused: Cell<bool>,
}

impl Fragment {
    /// A fragment whose request has not begun, on a page that is itself the fragment `parent`.
    pub(crate) fn new(parent: Option<Rc<Fragment>>) -> Rc<Fragment> {
        let mut fragment = Fragment::default();
        fragment.parent = parent;
        Rc::new(fragment)
    }

    /// True if its page no longer needs it, or a page above that one is no longer needed. Lower
    /// fragments notice it at once, without waiting until the pages between have ended.
    pub(crate) fn is_given_up(&self) -> bool {
        let mut next = Some(self);
        while let Some(fragment) = next {
            if fragment.is_given_up.get() {
                return true;
            }
            next = fragment.parent.as_deref();
        }
        false
    }

    /// Marks that the request has a response.
    pub(crate) fn begin(&self, is_gzip: bool) {
        self.flow.borrow_mut().is_gzip = Some(is_gzip);
    }

    /// Stores the growing object that the response is read from.
    pub(crate) fn reads(&self, object: Arc<Object>) {
        self.flow.borrow_mut().object = Some(object);
    }

    /// Adds bytes, as many as there is room for, and returns their number. If that is not all of
    /// them the caller is woken when there is more room. `None` if the page no longer needs the
    /// fragment.
    pub(crate) fn push(&self, context: &Context<'_>, bytes: &[u8], ledger: &Rc<Ledger>) -> Option<usize> {
        if self.is_given_up() {
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

    /// Records that its fetch has a connection to a backend.
    pub(crate) fn has_place(&self, backend: &Arc<Backend>) {
        self.flow.borrow_mut().backend = Some(Arc::clone(backend));
        self.is_refused.set(false);
    }

    /// Records that its fetch got no connection, since all were in use. Before its turn that is
    /// caused by Copal itself: Varnish does not fetch fragments in parallel.
    pub(crate) fn has_no_place(&self) {
        if !self.is_live() {
            self.is_refused.set(true);
            wake(&mut self.flow.borrow_mut().page);
        }
    }

    /// True if it was refused a connection before its turn; its response must not be used.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.get()
    }

    /// Ends the response.
    pub(crate) fn end(&self, state: FragmentState) {
        let flow = &mut *self.flow.borrow_mut();
        if flow.state == FragmentState::Running {
            flow.state = state;
            flow.object = None;
            wake(&mut flow.page);
        }
    }

    /// Ready when the page no longer needs the fragment; the request is also woken when the
    /// fragment's turn comes.
    pub(crate) fn poll_given_up(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_given_up() {
            return Poll::Ready(());
        }
        remember(&mut self.flow.borrow_mut().request, context);
        Poll::Pending
    }

    /// True if everything before the fragment has been sent, up to the page that the client
    /// requested. Such a fragment never waits for others.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live.get()
    }

    /// Marks that the fragment's turn has come.
    pub(super) fn go_live(&self) {
        if !self.is_live.replace(true) {
            wake(&mut self.flow.borrow_mut().request);
        }
    }

    /// True if the response is gzip; `None` while that is unknown.
    pub(super) fn is_gzip(&self) -> Option<bool> {
        let flow = self.flow.borrow();
        flow.is_gzip.or((flow.state != FragmentState::Running).then_some(false))
    }

    /// Takes the next piece.
    pub(super) fn take(&self, ledger: &Rc<Ledger>) -> Option<Vec<u8>> {
        let flow = &mut *self.flow.borrow_mut();
        let piece = flow.pieces.pop_front()?;
        flow.queued_bytes -= piece.len();
        flow.held.set(ledger, flow.queued_bytes);
        wake(&mut flow.request);
        Some(piece)
    }

    /// Progress of the response.
    pub(super) fn state(&self) -> FragmentState {
        self.flow.borrow().state
    }

    /// Wakes the page when anything changes.
    pub(super) fn watch(&self, context: &Context<'_>) {
        remember(&mut self.flow.borrow_mut().page, context);
    }

    /// True if the request waits for its turn with an object that is only passed on, so that it
    /// blocks all other readers of that object, or with a connection that others wait for: perhaps
    /// the very fragment whose turn it is.
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

    /// Marks that the page no longer needs it.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
        let flow = &mut *self.flow.borrow_mut();
        (flow.pieces, flow.queued_bytes, flow.held) = Default::default();
        wake(&mut flow.request);
    }
}

impl Drop for Fragment {
    /// Drops the levels one after the other: dropping as many levels as `max_esi_depth` allows
    /// recursively would nest as many calls.
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut fragment) = next.and_then(Rc::into_inner) {
            next = fragment.parent.take();
        }
    }
}

/// Keeps the waker of the waiting task.
pub(super) fn remember(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) if waker.will_wake(context.waker()) => {}
        _ => *place = Some(context.waker().clone()),
    }
}

/// Wakes the waiting task.
pub(super) fn wake(place: &mut Option<Waker>) {
    if let Some(waker) = place.take() {
        waker.wake();
    }
}
