//! Hits on objects whose bodies are stored in a file: sent from a copy in memory if there is one;
//! else the first piece is waited for.
//!
//! Part of Lookup, so that a body that cannot be read is found out before VCL has seen the object:
//! then the object is gone, and the request continues as if nothing had been stored. Later pieces
//! are waited for while the response is sent, and one that cannot be read breaks it off. Everything
//! happens off the event loop. Next file: `promotion.rs`.

use super::Run;
use super::delivered::Delivered;
use crate::bodies::codings::is_accepted;
use crate::promotion;
use crate::storages::files::{NOT_SETTLED, settle};
use store::Object;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

impl Run<'_> {
    /// Prepares the delivery of an object that was found. False when its body cannot be read: then
    /// the object is gone, and the lookup is repeated.
    pub(super) async fn prepare_on_disk(&mut self, object: &mut Delivered) -> bool {
        if let Some(copy) = promotion::copy(self.context, object, self.request.task.life.received_at) {
            object.promote(copy);
            return true;
        }
        let task = &mut self.request.task;
        let request = &task.request;
        let conditions = ["If-None-Match", "If-Modified-Since", "Range"];
        if task.life.is_head || conditions.iter().any(|name| request.may_have(name)) {
            // Perhaps nothing is sent of the body, or nothing of its beginning.
            return true;
        }
        task.life.held.set_at_least(&self.context.memory, object.held_bytes());
        if object.wait_for_start().await {
            return true;
        }
        object.remove();
        let said = format!("Stored body of {} could not be read: fetched anew", object.vxid());
        self.log().record(Tag::Error, said.as_bytes());
        false
    }

    /// Waits until a removal is durable even after a loss of power: it is not reported as done
    /// before that. False if a disk failed.
    pub(super) async fn settle(&mut self) -> bool {
        let is_settled = settle(self.context.engine.storages.on_disk()).await;
        if !is_settled {
            self.log().record(Tag::Error, NOT_SETTLED.as_bytes());
        }
        is_settled
    }

    /// After vcl_deliver: replaces the object by its copy in memory, or waits for the ends that
    /// filters need of a body that they will decode.
    pub(super) async fn settle_body(&mut self) {
        let task = &mut self.request.task;
        let Some(object) = &mut task.found.object else { return };
        let Some(copy) = object.take_promoted() else {
            if object.flags().is_coded()
                && (task.answer.filters.is_some() || !is_accepted(object.flags(), &task.request))
            {
                object.wait_for_ends().await;
            }
            return;
        };
        task.found.object = Some(copy);
        if !task.life.is_head && task.response.status() % 1000 != 304 {
            self.context.count(Main::PromotedSent);
        }
        if self.request.task.life.reason.is_none() {
            self.why(Reason::HitPromoted, b"");
        }
    }

    /// Records that a response breaks off because the rest of its body cannot be read.
    #[cold]
    pub(super) fn why_unreadable(&mut self, object: &Object, offset: u64) {
        let said = format!("Stored body of {} could not be read from byte {offset} on", object.vxid());
        self.log().record(Tag::Error, said.as_bytes());
        self.why(Reason::BodyUnreadable, format!("text=object {}, byte {offset}", object.vxid()).as_bytes());
    }
}
