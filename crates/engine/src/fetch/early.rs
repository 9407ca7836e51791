//! 425 (Too Early): the origin refuses a request that may be a replay, and that Copal received as
//! early data.
//!
//! Once the client's handshake is complete, the request cannot be a replay: then the same request
//! is sent once more, without being marked as early. VCL does not see the 425. Other requests for
//! the same object do not wait for that handshake, and a 425 to an early request does not keep them
//! from what is stored or will be stored. A request that the client itself has marked as early gets
//! its 425, and so does every request whose handshake fails. Source: RFC 8470 §5.2.

use super::{Fetch, Step};
use crate::logged::{self, BEREQ};
use crate::request::early::HEADER;
use surface::counter::Main;

/// Too Early.
const TOO_EARLY: u16 = 425;

impl Fetch {
    /// The next step if the origin answered 425 and the handshake will be complete, so that the
    /// request is no longer early.
    pub(super) async fn send_when_proven(&mut self) -> Option<Step> {
        if !self.is_too_early() {
            return None;
        }
        let phase = self.task.life.early.take()?;
        if let Some(busy) = &self.task.life.busy {
            busy.release_waiting_list();
        }
        let is_proven = phase.ended().await;
        self.timestamp("Handshake");
        if !is_proven {
            return None;
        }
        self.context.count(Main::ReqEarlyAgain);
        self.task.give_up_response(&self.context, &mut self.log);
        logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, HEADER);
        self.task.bereq_original.unset(HEADER);
        Some(Step::Send)
    }

    /// True if the response says nothing about the resource, only that the request was too early.
    pub(super) fn is_too_early(&self) -> bool {
        self.task.attempt.beresp.status() == TOO_EARLY && self.task.bereq.has(HEADER)
    }
}
