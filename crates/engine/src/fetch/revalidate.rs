//! Revalidate: a 304 made the stale object good again; its body becomes that of the new object.
//!
//! The new head is the 304's with what it does not mention taken from the stored one; the body is copied,
//! once it is whole. What a filter did to the stale body holds for the new object too.
//! Source: RFC 9111 §4.3.4. Next file: `commit.rs`.

use super::fill::{BodyFailure, Source};
use super::{Fetch, Step};
use crate::bodies::filters::{Filters, Subject};
use crate::logged::{self, BERESP};
use body::Side;
use body::filter::weaken_etag;
use message::Message;
use store::{BodyState, Object, ObjectFlags};

/// What a 304 cannot change about an object.
const KEPT_FLAGS: [ObjectFlags; 3] = [ObjectFlags::GZIPPED, ObjectFlags::CHANGED_GZIP, ObjectFlags::ESI];

impl Fetch {
    /// Makes a 304 the response that it stands for; false when it stands for nothing.
    pub(super) fn merge_not_modified(&mut self) -> bool {
        let Some(stale) = self.revalidatable_stale() else { return false };
        let was_conditional = self.task.bereq.has("If-None-Match") || self.task.bereq.has("If-Modified-Since");
        let mut stored = Message::new();
        if !was_conditional || stored.decode(stale.head()).is_none() {
            return false;
        }
        self.merge_stored(&stale, &stored);
        self.task.attempt.verdict.was_304 = true;
        true
    }

    /// Puts the headers of the 304 over those that are stored.
    pub(super) fn merge_stored(&mut self, stale: &Object, stored: &Message) {
        let (log, beresp) = (&mut self.log, &mut self.task.attempt.beresp);
        if stale.flags().has(ObjectFlags::CHANGED_GZIP) {
            // The stored body is no longer byte for byte the one that the origin's tag names.
            weaken_etag(&mut Subject::new(Side::Beresp, beresp, log, None));
        }
        logged::unset(log, BERESP, beresp, "Content-Encoding");
        logged::unset(log, BERESP, beresp, "Content-Length");
        let known = beresp.header_count();
        semantics::revalidate::merge(stored, beresp);
        logged::log_status_line(log, BERESP, beresp);
        for header in beresp.headers().skip(known) {
            log.record(BERESP.header, header.line());
        }
    }

    pub(super) async fn revalidate(&mut self) -> Step {
        let Some(stale) = self.revalidatable_stale() else {
            self.release_connection();
            self.log_body_failure(&BodyFailure::Template);
            return Step::Error;
        };
        // Only when it is whole can it stand in: what breaks now can still become an error response.
        stale.changed(u64::MAX).await;
        let reader = stale.reader().filter(|_| stale.state() == BodyState::Complete);
        let Some(reader) = reader else {
            self.release_connection();
            self.log_body_failure(&BodyFailure::Template);
            return Step::Error;
        };
        let flags =
            KEPT_FLAGS.into_iter().filter(|flag| stale.flags().has(*flag)).fold(ObjectFlags::NONE, ObjectFlags::with);
        let length = Some(stale.available_bytes());
        let is_streamed = self.task.attempt.verdict.do_stream;
        let allocated = self.allocate(length, flags, is_streamed);
        self.release_connection();
        let Some(object) = allocated else { return Step::Error };
        let is_streamed = is_streamed || object.is_passing();
        if is_streamed {
            self.publish();
        }
        match self.fill(&object, &mut Source::of_object(reader), &mut Filters::default()).await {
            Ok(()) => {
                object.finish();
                Step::Commit
            }
            Err(failure) => {
                self.log_body_failure(&failure);
                self.body_failed(&failure, is_streamed || object.has_overflowed())
            }
        }
    }
}
