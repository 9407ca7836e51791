//! W3C trace context (parameter `trace_context`): each request and each fetch becomes a span of its
//! own.
//!
//! The request gets a `traceparent` with a new parent id, under the caller's trace or a new one;
//! each fetch another one under the same trace. What was received and made is in one record of
//! [`TAG`], for `copal observe`. Fragments inherit the header of their page. A malformed header
//! counts as none, and then `tracestate` has no meaning. Source: W3C Trace Context, level 1.

use super::Run;
use crate::logged::{self, BEREQ, REQ};
use message::Message;
use semantics::trace_context::{TRACESTATE_BYTES_MAX, TraceParent};
use shm::log::LogBuffer;
use std::hash::{BuildHasher as _, RandomState};
use surface::reason::{TAG, TRACE};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

impl Run<'_> {
    /// Makes the request a span of the caller's trace, or of a new one.
    #[cold]
    pub(super) fn continue_trace(&mut self) {
        let request = &mut *self.request;
        let (head, log) = (&mut request.task.request, &mut request.log);
        let received = received(head);
        let span = number((request.task.life.vxid, request.task.life.started.to_bits()));
        let own = TraceParent {
            trace: received.map_or_else(|| u128::from(number(span)) << 64 | u128::from(number(!span)), |it| it.trace),
            parent: span,
            flags: received.map_or(0, |it| it.flags),
        };
        let state_bytes: usize = head.get_all(STATE).map(<[u8]>::len).sum();
        if received.is_none() || state_bytes > TRACESTATE_BYTES_MAX {
            logged::unset(log, REQ, head, STATE);
        }
        logged::set(log, REQ, head, PARENT, own.to_string().as_bytes());
        match received {
            Some(received) => log.record_fmt(TAG, format_args!("{TRACE}{own} {:016x}", received.parent)),
            None => log.record_fmt(TAG, format_args!("{TRACE}{own} -")),
        }
    }
}

/// Makes a request to an origin a span of the trace that it names, if it names one.
#[cold]
pub(crate) fn continue_to_origin(bereq: &mut Message, log: &mut LogBuffer, vxid: u64) {
    if let Some(parent) = received(bereq) {
        let own = TraceParent { parent: number((vxid, parent.parent)), ..parent };
        logged::set(log, BEREQ, bereq, PARENT, own.to_string().as_bytes());
    }
}

/// The trace context of a message; two fields are none.
fn received(head: &Message) -> Option<TraceParent> {
    let mut values = head.get_all(PARENT);
    let first = values.next()?;
    values.next().is_none().then(|| TraceParent::parse(first)).flatten()
}

/// A random number other than 0.
fn number(seed: impl std::hash::Hash) -> u64 {
    RandomState::new().hash_one(seed).max(1)
}
