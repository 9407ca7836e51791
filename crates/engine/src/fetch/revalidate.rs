//! Revalidate: a 304 made the stale object valid again; its body becomes that of the new object.
//!
//! The new head is that of the 304, with headers it does not mention taken from the stored one. The
//! body is copied once it is complete. The changes of a filter to the stale body apply to the new
//! object too. Source: RFC 9111 §4.3.4. Next file: `commit.rs`.

use super::fill::{BodyFailure, Source};
use super::{Fetch, Step};
use crate::bodies::disk_tier::held_bytes;
use crate::bodies::filters::{Filters, Subject};
use crate::logged::{self, BERESP};
use body::Side;
use body::filter::weaken_etag;
use message::Message;
use store::{BodyState, Object, ObjectFlags};
use surface::reason::Reason;

/// Flags of an object that a 304 does not change.
const KEPT_FLAGS: [ObjectFlags; 5] =
    [ObjectFlags::GZIPPED, ObjectFlags::BROTLI, ObjectFlags::ZSTD, ObjectFlags::CHANGED_GZIP, ObjectFlags::ESI];

impl Fetch {
    /// Turns a 304 into the response that it stands for; false when it refers to no object.
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

    /// Merges the headers of the 304 into the stored ones.
    pub(super) fn merge_stored(&mut self, stale: &Object, stored: &Message) {
        let (log, beresp) = (&mut self.log, &mut self.task.attempt.beresp);
        if stale.flags().has(ObjectFlags::CHANGED_GZIP) {
            // The stored body is no longer byte for byte the one that the origin's ETag names.
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
        if self.has_lost_stale() {
            return self.ask_anew(Reason::StaleRemoved);
        }
        let Some(stale) = self.revalidatable_stale() else {
            self.release_connection();
            self.log_body_failure(&BodyFailure::Template);
            return Step::Error;
        };
        if stale.flags().is_sliced() {
            return self.renew_head(&stale);
        }
        // Only a complete body can be used; if it breaks off now, there can still be an error
        // response.
        if stale.state() == BodyState::Writing {
            // Another fetch receives it, for as long as its origin takes; until then there is
            // nothing to send. That must not hold the connection, nor last longer than an origin
            // may be silent.
            self.release_connection();
            let _ = tokio::time::timeout(self.first_byte_limit(), stale.changed(u64::MAX)).await;
            if self.has_lost_stale() {
                return self.ask_anew(Reason::StaleRemoved);
            }
        }
        let reader = stale.reader().filter(|_| stale.state() == BodyState::Complete);
        let Some(reader) = reader else {
            self.release_connection();
            self.log_body_failure(&BodyFailure::Template);
            return Step::Error;
        };
        let flags =
            KEPT_FLAGS.into_iter().filter(|flag| stale.flags().has(*flag)).fold(ObjectFlags::NONE, ObjectFlags::with);
        let length = Some(stale.available_bytes());
        // Readers of a page need its plan, which is copied last.
        let is_streamed = self.task.attempt.verdict.do_stream && !stale.flags().has(ObjectFlags::ESI);
        let allocated = self.allocate(length, flags, is_streamed);
        self.release_connection();
        let Some(object) = allocated else { return Step::Error };
        let is_streamed = is_streamed || object.is_passing();
        if is_streamed {
            self.publish();
        }
        let piece_bytes = held_bytes(&stale);
        if piece_bytes > 0 {
            self.task.life.held_base_bytes += piece_bytes;
            self.task.life.held.add(&self.context.memory, piece_bytes);
        }
        let filled = self.fill(&object, &mut Source::of_object(reader), &mut Filters::default()).await;
        let filled = filled.inspect(|()| self.compare_body());
        let filled = filled.and_then(|()| Ok(object.finish_with(&stale.annex().unwrap_or_default())?));
        match filled {
            // An object that is not in the index yet must not be published after its body was
            // purged.
            Ok(()) if !is_streamed && self.has_lost_stale() => self.ask_anew(Reason::StaleRemoved),
            Ok(()) => Step::Commit,
            Err(failure) => {
                self.log_body_failure(&failure);
                self.body_failed(&failure, is_streamed || object.has_overflowed())
            }
        }
    }
}
