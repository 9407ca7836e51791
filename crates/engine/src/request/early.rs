//! Early data: a request that came before its client's TLS handshake was complete may be a recording of an earlier one, played again
//! by somebody else.
//!
//! One that only asks is run at once, and the origin is told (`Early-Data: 1`); any other waits until it is known who sends it. What
//! a client has itself marked as early stays so, whatever we know. Source: RFC 8470 §4, §5.1. Next file: `../fetch/early.rs`.

use super::{ClientBody, Run};
use crate::logged::{self, REQ};
use crate::peer::EarlyPhase;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;

/// Tells an origin that a request may be a replay.
pub(crate) const HEADER: &str = "Early-Data";

impl Run<'_> {
    /// Decides about a request that came while the handshake was under way. False if it must not be run: nobody has sent it.
    pub(super) async fn admit_early(&mut self, phase: Rc<EarlyPhase>) -> bool {
        let task = &mut self.request.task;
        if !matches!(task.life.body, ClientBody::None) || !semantics::method::is_safe(task.request.method()) {
            self.context.count(Main::ReqEarlyHeld);
            return self.await_handshake(&phase).await;
        }
        self.context.count(Main::ReqEarly);
        if !task.request.has(HEADER) {
            task.request.append(HEADER.as_bytes(), b"1");
            task.life.early = Some(phase);
        }
        true
    }

    /// Before anything is done that cannot be taken back for a request that we marked as early: waits until it is none any more.
    /// False if that will never be.
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
