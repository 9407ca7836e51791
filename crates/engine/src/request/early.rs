//! Early data: a request received before its client's TLS handshake was complete may be a replay of
//! an earlier one by an attacker.
//!
//! A request with a safe method is run at once, and marked for the origin (`Early-Data: 1`); any
//! other waits until the handshake is complete. A request that the client itself has marked as
//! early stays marked in any case. Source: RFC 8470 §4, §5.1. Next file: `../fetch/early.rs`.
//!
//! *Invariant:* requests before the end of a TLS handshake are run only if they are safe and carry
//! `Early-Data`; all others wait. This is decided here for every transport.

use super::{ClientBody, Run};
use crate::logged::{self, REQ};
use crate::peer::EarlyPhase;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;

/// Header that marks a request for the origin as a possible replay.
pub(crate) const HEADER: &str = "Early-Data";

impl Run<'_> {
    /// Decides about a request that arrived during the handshake. False if it must not be run: the
    /// handshake failed.
    pub(super) async fn admit_early(&mut self, phase: Rc<EarlyPhase>) -> bool {
        let task = &mut self.request.task;
        if !matches!(task.life.body, ClientBody::None) || !semantics::method::is_safe(task.request.method()) {
            self.context.count(Main::ReqEarlyHeld);
            return self.await_handshake(&phase).await;
        }
        self.context.count(Main::ReqEarly);
        if !task.request.has(HEADER) {
            task.life.early = Some(phase);
        }
        // Set in any case: the client's own field may have another value, be present twice, or be
        // named in Connection.
        task.request.set(HEADER, b"1");
        true
    }

    /// Must be called before any irreversible action for a request that Copal marked as early:
    /// waits until the handshake is complete. False if it fails.
    pub(super) async fn prove_early(&mut self) -> bool {
        let Some(phase) = self.request.task.life.early.take() else { return true };
        let is_proven = Box::pin(self.await_handshake(&phase)).await;
        let task = &mut self.request.task;
        task.original.unset(HEADER);
        logged::unset(&mut self.request.log, REQ, &mut task.request, HEADER);
        is_proven
    }

    async fn await_handshake(&mut self, phase: &EarlyPhase) -> bool {
        let is_complete = {
            let mut ended = pin!(phase.ended());
            poll_fn(|context| {
                self.exchange.drive_handshake(context);
                ended.as_mut().poll(context)
            })
            .await
        };
        self.timestamp("Handshake");
        if !is_complete {
            self.close(CloseReason::RxBad);
        }
        is_complete
    }
}
