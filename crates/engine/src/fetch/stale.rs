//! Stale: the origin failed, and RFC 9111 allows a stored response although it is stale.
//!
//! This applies if the origin gave no response, and for errors (500, 502, 503, 504) within
//! `stale-if-error` of the stored response or of the request. VCL has decided by then:
//! vcl_backend_error or vcl_backend_response ran, and may have retried. For a while afterwards the
//! object is in its grace, so that requests are served at once while one of them fetches from the
//! origin again. Source: RFC 9111 §4.2.4, §4.3.3, RFC 5861 §4.

use super::{Fetch, FetchAnswer, FetchMode, Step};
use crate::request::delivered::Delivered;
use message::Message;
use semantics::{HttpPolicy, RequestDirectives, revalidate};
use std::sync::Arc;
use store::{BodyState, Object, ObjectFlags};
use surface::limits::STALE_ON_ERROR_SECONDS_MIN;
use surface::reason::Reason;

/// Flags of objects that cannot answer when the origin fails.
const FORBIDDEN: [ObjectFlags; 2] = [ObjectFlags::NEVER_STALE, ObjectFlags::REVALIDATE];
/// Flags of objects that are not responses.
const MARKERS: [ObjectFlags; 2] = [ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS];

impl Fetch {
    /// True if a stale object may answer because the origin gave no response.
    pub(super) fn may_answer_stale(&self) -> bool {
        self.order_awaits() && self.usable_stale().is_some_and(|stale| !has_any(&stale, FORBIDDEN))
    }

    /// True if a stale object may answer instead of an error response from the origin.
    pub(super) fn may_answer_stale_for_error(&self) -> bool {
        let Some(stale) = self.usable_stale().filter(|stale| !has_any(stale, FORBIDDEN)) else { return false };
        let is_error = revalidate::is_error(self.task.attempt.beresp.status());
        is_error && self.order_awaits() && self.lateness(&stale) <= self.error_window(&stale)
    }

    /// True if there is a stored response, but one that may not be served stale.
    pub(super) fn is_stale_forbidden(&self) -> bool {
        self.usable_stale().is_some_and(|stale| has_any(&stale, FORBIDDEN))
    }

    /// True if the response is an error, which under RFC 9111 does not invalidate the stored
    /// response.
    pub(super) fn is_error_with_stale_object(&self) -> bool {
        revalidate::is_error(self.task.attempt.beresp.status()) && self.usable_stale().is_some()
    }

    /// True if a background fetch received an error: the object that it was to refresh is better
    /// than that.
    pub(super) fn is_refresh_useless(&self) -> bool {
        self.task.order.mode == FetchMode::Background && self.is_error_with_stale_object()
    }

    /// A request waits for the answer.
    fn order_awaits(&self) -> bool {
        self.task.order.mode == FetchMode::Fetch && self.task.life.ready.is_some()
    }

    /// The stored response that the fetch was to renew, under the policy `rfc`.
    fn usable_stale(&self) -> Option<Arc<Object>> {
        if self.task.order.vcl.policy != HttpPolicy::Rfc {
            return None;
        }
        let stale = self.task.life.stale.as_ref()?;
        is_response(stale).then(|| Arc::clone(stale))
    }

    /// Time for which an object has been stale, in seconds.
    fn lateness(&self, stale: &Object) -> f64 {
        self.now() - stale.origin() - stale.ttl()
    }

    /// Longest time for which an object may have been stale when the origin answers with an error,
    /// in seconds.
    fn error_window(&self, stale: &Object) -> f64 {
        let mut head = Message::new();
        let stored = head.decode(stale.head()).and_then(|()| revalidate::stale_if_error(&head));
        let wished = RequestDirectives::of(&self.task.bereq)
            .stale_if_error
            .filter(|_| self.task.order.parameters.http_request_directives);
        stored.into_iter().chain(wished).fold(f64::NEG_INFINITY, f64::max)
    }

    pub(super) fn answer_stale(&mut self) -> Step {
        self.task.give_up_response(&self.context, &mut self.log);
        let delivered =
            self.task.life.stale.take().and_then(|stale| Some((Delivered::new(Arc::clone(&stale))?, stale)));
        let Some((delivered, stale)) = delivered else { return self.fail() };
        self.why(Reason::StaleOnError, &format!("seconds={:.3}", self.lateness(&stale)));
        self.spare(&stale);
        if let Some(busy) = self.task.life.busy.take() {
            busy.grant(&stale);
        }
        // The client's side may be gone.
        let _ = self.report(FetchAnswer::Stale(Box::new(delivered)));
        Step::Done
    }

    /// Keeps an object in its grace for a while after a failure: for twice the time it takes to
    /// find out if the origin has recovered. The object's lifetime is not extended by that.
    pub(super) fn spare(&self, stale: &Arc<Object>) {
        let now = self.now();
        let (ttl, grace, keep) = (stale.ttl(), stale.grace(), stale.keep());
        let pause = STALE_ON_ERROR_SECONDS_MIN.max(2.0 * (now - self.task.life.started));
        let longer = (self.lateness(stale) + pause).min(grace + keep);
        if longer > grace {
            self.context.engine.cache.set_lifetime(stale, ttl, longer, grace + keep - longer);
        }
    }

    /// Does the same after a background fetch, if its object may be served stale at all.
    pub(super) fn spare_refreshed(&self) {
        if self.task.order.mode == FetchMode::Background
            && let Some(stale) = self.usable_stale().filter(|stale| !has_any(stale, FORBIDDEN))
        {
            self.spare(&stale);
        }
    }
}

/// True if an object is a whole response.
fn is_response(object: &Object) -> bool {
    let is_whole = object.state() == BodyState::Complete && !object.is_removed() && !object.has_overflowed();
    is_whole && !has_any(object, MARKERS)
}

/// True if a stale object can answer when the origin cannot be reached, under the policy `rfc`.
pub(crate) fn may_stand_in(object: &Object) -> bool {
    is_response(object) && !has_any(object, FORBIDDEN) && !object.flags().has(ObjectFlags::PARTIAL)
}

fn has_any(object: &Object, flags: [ObjectFlags; 2]) -> bool {
    flags.iter().any(|flag| object.flags().has(*flag))
}
