//! Overflow: the body turns out, while it comes, to be more than can be kept, and the fetch becomes a pass in mid-stream.
//!
//! Of a body of unknown length nobody can say beforehand whether there is room. What it may take of its storage is bounded
//! (parameter `unsized_body_share`), so that it evicts no more than that in vain. Beyond, the object leaves the index; those
//! who read it, and the client that ordered it, get the rest at the pace of the slowest, and nobody can join them; a marker
//! of hit-for-miss keeps the next request from trying the same again. A body that should have come whole first
//! (`beresp.do_stream`) is streamed from there on: the alternative is an error. With no reader there is nothing to go on for: the
//! fetch ends, and what a background fetch was to replace stays. Next file: `commit.rs`.

use super::{Fetch, FetchMode};
use std::sync::Arc;
use store::{AppendError, Object, ObjectFlags};
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    /// Whether the index remembers that the body of this response, of unknown length then, was too large to be kept.
    pub(super) fn is_marked_too_large(&self) -> bool {
        self.task.life.stale.as_ref().is_some_and(|marker| marker.flags().has(ObjectFlags::TOO_LARGE))
    }

    /// Has an object that cannot be kept passed on to those who read it. `error` says why it cannot.
    ///
    /// # Errors
    /// `Abandoned` when there are none, `error` itself when the body is longer than was promised.
    pub(super) fn overflow(&mut self, object: &Arc<Object>, error: AppendError) -> Result<(), AppendError> {
        if object.promised_bytes().is_some_and(|promised| object.available_bytes() >= promised) {
            return Err(error);
        }
        let was_stored = std::mem::replace(&mut self.task.attempt.kept.is_stored, false);
        // Whoever ordered it is a reader from now on, if it is not one already.
        if was_stored && self.task.life.ready.is_some() {
            self.deliver(object);
        } else {
            self.publish();
        }
        let is_given_up = self.task.order.mode == FetchMode::Background && object.reader_count() == 0;
        let marker = if was_stored && error == AppendError::TooLarge && !is_given_up {
            self.too_large_marker(object)
        } else {
            None
        };
        self.task.attempt.kept.is_marked |= marker.is_some();
        if let Some(busy) = self.task.life.busy.take() {
            busy.replace(marker.as_ref());
        }
        let readers = object.overflow(self.in_flight_bytes());
        self.log.record(Tag::Error, b"Could not get storage for the whole body: passed on, not cached");
        let reason = if error == AppendError::TooLarge { Reason::NotStoredTooLarge } else { Reason::NotStoredFull };
        self.why(reason, "");
        if readers == 0 { Err(AppendError::Abandoned) } else { Ok(()) }
    }

    /// Remembers, as long as the built-in VCL remembers such things, that it is of no use to try to store this.
    fn too_large_marker(&self, object: &Object) -> Option<Arc<Object>> {
        let flags = ObjectFlags::HIT_FOR_MISS | ObjectFlags::TOO_LARGE;
        let mut attributes = self.attributes(flags, object.vary().to_vec());
        attributes.origin = self.now();
        (attributes.ttl, attributes.grace, attributes.keep) = (self.task.order.parameters.uncacheable_ttl, 0.0, 0.0);
        self.make_marker(attributes)
    }
}
