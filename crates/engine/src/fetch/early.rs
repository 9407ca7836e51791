//! 425 (Too Early): the origin does not want to carry out a request that may be a replay, and that came to us as early data.
//!
//! When the client's handshake is complete it is none: then the same request is sent once more, without saying that it may be. VCL
//! does not see the 425. Others who want the same do not wait for that handshake, and no 425 to an early request keeps them from what is
//! stored or will be. One that a client has itself marked as early gets its 425, and so does everybody whose handshake fails.
//! Source: RFC 8470 §5.2.

use super::{Fetch, Step};
use crate::logged::{self, BEREQ};
use crate::request::early::HEADER;
use surface::counter::Main;

/// Too Early.
const TOO_EARLY: u16 = 425;

impl Fetch {
    /// The next step if the origin thinks that it is too early, and it will not be.
    pub(super) async fn send_when_proven(&mut self) -> Option<Step> {
        if !self.is_too_early() {
            return None;
        }
        let phase = self.task.life.early.take()?;
        if let Some(busy) = &self.task.life.busy {
            busy.stand_aside();
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

    /// Whether the response says nothing of what was asked for, only that it was asked for too early.
    pub(super) fn is_too_early(&self) -> bool {
        self.task.attempt.beresp.status() == TOO_EARLY && self.task.bereq.has(HEADER)
    }
}
