//! Waiting: a request waits for an object that another request is fetching. This file has the
//! limits of their number and time, and the handling of a request that may not wait, or whose
//! client leaves.
//!
//! A request waits only for its turn to look up again. The number of waiting requests is bounded
//! for all event loops together, the memory that they hold with that of all requests (`memory.rs`).
//! A request that may not wait is answered at once: under RFC 9111 with a stale object if one is
//! allowed, else with a 503. Next file: `lookup.rs`.

use super::delivered::Delivered;
use super::{Run, Step};
use crate::context::Loop;
use crate::exchange::ClientEvent;
use crate::fetch::stale::may_stand_in;
use cache::Waiter;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use tokio::time::{Instant, sleep_until};

/// Result of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waited {
    /// The request may look up again.
    Turn,
    /// The client has left.
    Gone,
    /// The wait queue was full.
    Full,
    /// The wait timed out.
    TooLong,
}

/// A slot among the waiting requests, released when dropped.
struct Place(Rc<Loop>);

impl Place {
    fn enter(context: &Rc<Loop>, most: u64) -> Option<Place> {
        let waiting = &context.engine.waiting;
        let may = |count: u32| (most == 0 || u64::from(count) < most).then(|| count.saturating_add(1));
        waiting.fetch_update(Relaxed, Relaxed, may).ok()?;
        context.counters.add(Main::NWaiting, 1);
        Some(Place(Rc::clone(context)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.engine.waiting.fetch_sub(1, Relaxed);
        self.0.counters.sub(Main::NWaiting, 1);
    }
}

impl Run<'_> {
    /// Waits for this request's turn. `since`: the time when it began to wait for the first time;
    /// `has_heard`: for [`Run::poll_gone`].
    pub(super) async fn wait(&mut self, waiter: &Waiter, since: Instant, has_heard: &mut bool) -> Waited {
        let settings = &self.request.task.settings;
        let Some(_place) = Place::enter(self.context, settings.waiting_requests_max) else { return Waited::Full };
        let patience = Duration::try_from_secs_f64(settings.waiting_timeout).ok().filter(|time| !time.is_zero());
        let due = patience.and_then(|patience| since.checked_add(patience));
        let mut turn = pin!(waiter.wait());
        let mut end = pin!(async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        });
        poll_fn(|context| {
            if turn.as_mut().poll(context).is_ready() {
                return Poll::Ready(Waited::Turn);
            }
            if end.as_mut().poll(context).is_ready() {
                return Poll::Ready(Waited::TooLong);
            }
            self.poll_gone(context, has_heard).map(|()| Waited::Gone)
        })
        .await
    }

    /// Ready when the client has left. If the client has already sent more bytes, the connection is
    /// not read again: `has_heard` records that.
    pub(super) fn poll_gone(&mut self, context: &mut Context<'_>, has_heard: &mut bool) -> Poll<()> {
        if *has_heard {
            return Poll::Pending;
        }
        match self.exchange.poll_client_event(context) {
            Poll::Ready(ClientEvent::Gone) => Poll::Ready(()),
            Poll::Ready(ClientEvent::End) if self.request.task.settings.half_close => Poll::Ready(()),
            Poll::Ready(ClientEvent::End | ClientEvent::More) => {
                *has_heard = true;
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Handles a client that has left: no answer is sent.
    pub(super) fn leave(&mut self) -> Step {
        self.why(Reason::ClientGone, b"");
        self.close(CloseReason::RemClose);
        Step::Finish
    }

    /// Counts a wait that ended without a turn, and records the reason; false if the client has
    /// left.
    pub(super) fn note_refusal(&mut self, waited: Waited) -> bool {
        let (counter, reason) = match waited {
            Waited::Turn | Waited::Gone => return false,
            Waited::Full => (Main::WaitingRefused, Reason::WaitingFull),
            Waited::TooLong => (Main::WaitingTimeout, Reason::WaitingTimeout),
        };
        self.context.count(counter);
        self.why(reason, b"");
        true
    }

    /// The step after a wait that did not end with a turn.
    pub(super) fn after_wait(&mut self, waited: Waited, waiter: &Waiter) -> Step {
        self.timestamp("Waitinglist");
        if !self.note_refusal(waited) {
            return self.leave();
        }
        let stale = waiter.stale().filter(|stale| self.follows_rfc() && may_stand_in(stale) && !stale.is_unchecked());
        match stale.and_then(|stale| Delivered::new(Arc::clone(stale))) {
            Some(stale) => {
                self.why(Reason::StaleOnError, b"");
                self.found(stale, true)
            }
            None => self.synthesise(503, b""),
        }
    }
}
