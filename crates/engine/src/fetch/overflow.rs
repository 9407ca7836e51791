//! Overflow: a body turns out, while it is received, to be too large to be kept, and the fetch
//! becomes a pass midway.
//!
//! The storage needed for a body of unknown length is not known in advance. The share of its
//! storage that it may take is limited (parameter `unsized_body_share`), so that it evicts no more
//! than that in vain. Beyond that, the object leaves the index. Its readers, and the client that
//! ordered it, get the rest at the pace of the slowest, and no other request can join them; a
//! hit-for-miss marker keeps the next request from trying the same again. A body that was to be
//! received completely first (`beresp.do_stream`) is streamed from then on, since the alternative
//! is an error. Without readers the fetch ends, and the object that a background fetch was to
//! replace stays. Next file: `commit.rs`.

use super::{Fetch, FetchMode};
use std::sync::Arc;
use store::{AppendError, Object, ObjectFlags};
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    /// True if the index has a marker that this response had a body of unknown length that was too
    /// large to be kept.
    pub(super) fn is_marked_too_large(&self) -> bool {
        let is_marker = |stale: &Arc<Object>| stale.flags().has(ObjectFlags::TOO_LARGE) && !stale.flags().is_sliced();
        self.task.life.stale.as_ref().is_some_and(is_marker)
    }

    /// Turns an object that cannot be kept into one that is only passed on to its readers. `error`
    /// is the cause.
    ///
    /// # Errors
    /// `Abandoned` when there are no readers, `error` itself if the body is longer than announced.
    pub(super) fn overflow(&mut self, object: &Arc<Object>, error: AppendError) -> Result<(), AppendError> {
        if object.promised_bytes().is_some_and(|promised| object.available_bytes() >= promised) {
            return Err(error);
        }
        let was_stored = std::mem::replace(&mut self.task.attempt.kept.is_stored, false);
        // The client that ordered the object becomes a reader now, if it is not one yet.
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

    /// Makes the marker that storing this response is futile. It lasts as long as the built-in
    /// VCL's markers do.
    fn too_large_marker(&self, object: &Object) -> Option<Arc<Object>> {
        let flags = ObjectFlags::HIT_FOR_MISS | ObjectFlags::TOO_LARGE;
        let mut attributes = self.attributes(flags, object.vary().to_vec());
        attributes.origin = self.now();
        (attributes.ttl, attributes.grace, attributes.keep) = (self.task.order.parameters.uncacheable_ttl, 0.0, 0.0);
        self.make_marker(attributes)
    }
}
