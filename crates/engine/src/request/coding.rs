//! Content coding of a response, if http_encodings names more than gzip: that of the stored body,
//! that of a compressed copy, or none.
//!
//! Decided before vcl_deliver, so that VCL sees the headers that the client gets. A copy has the
//! head of its original, with a weak ETag: both stand for the same content, so that conditions
//! apply to either, and a weak ETag forbids combining ranges of different codings (RFC 9110
//! §13.1.5, §8.8.1). For the same reason ranges are never cut from a copy, and a range with a date
//! as its condition, which cannot tell codings apart, is ignored. Next file: `transmit.rs`.

use super::Run;
use crate::bodies::codings::{coding_of, weaken_etag};
use crate::bodies::filters::Subject;
use crate::copies;
use crate::logged::{self, REQ, RESP};
use crate::request::delivered::Delivered;
use body::Side;
use semantics::encoding;
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::counter::Main;
use surface::encoding::{Encoding, Encodings};
use surface::limits::{COPIED_BYTES_MAX, COPIED_BYTES_MIN};
use surface::reason::Reason;

/// Objects of these kinds have no copies.
const WITHOUT_COPY: [ObjectFlags; 4] =
    [ObjectFlags::PRIVATE, ObjectFlags::ESI, ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS];

impl Run<'_> {
    /// Writes Accept-Encoding as the list of the codings that the client accepts, the preferred one
    /// first.
    #[cold]
    pub(super) fn normalise_preferences(&mut self) {
        const NAME: &str = "Accept-Encoding";
        let request = &mut *self.request;
        let message = &mut request.task.request;
        let list = encoding::preferred(message, request.task.settings.encodings);
        if list == Encodings::NONE {
            logged::unset(&mut request.log, REQ, message, NAME);
        } else {
            logged::force(&mut request.log, REQ, message, NAME, list.join(", ").as_bytes());
        }
    }

    /// Takes a compressed copy of the object for this response, or orders one for later responses.
    #[cold]
    pub(super) fn choose_coding(&mut self) {
        let Some((object, wanted)) = self.better_codings() else { return };
        if self.is_for_range() {
            return;
        }
        let (mut best, now) = (wanted.iter().next(), self.request.task.life.received_at);
        for encoding in wanted.iter() {
            let Some(copy) = self.context.engine.cache.copy(&copies::key(&object, encoding), now) else { continue };
            if copy.available_bytes() > 0 {
                return self.found_copy(&object, copy, encoding);
            }
            // A copy was tried, and is not shorter; other codings would hardly be.
            best = None;
        }
        let task = &self.request.task;
        if let Some(encoding) = best
            && task.found.is_hit
            && u64::from(object.hits()) >= task.settings.compress_after
        {
            copies::order(self.context, &object, encoding);
        }
    }

    /// The object, and the codings that the client prefers to the stored one, the most preferred
    /// first. `None` if the object has no copies, or no coding is better.
    fn better_codings(&mut self) -> Option<(Arc<Object>, Encodings)> {
        let request = &mut *self.request;
        let task = &mut request.task;
        let found = task.found.object.as_ref()?;
        // A response with fields for this client only may describe its body in any way.
        let (object, is_shared) = (Arc::clone(found.object()), found.unshared().is_none());
        let flags = object.flags();
        let stored = coding_of(flags);
        let response = &mut task.response;
        let told = response.get("Content-Encoding").map(Encoding::of_name);
        let may_have_copies = response.status() == 200
            && !task.found.is_passed
            && task.life.inclusion.is_none()
            && object.annex_bytes() == 0
            && is_shared
            && object.is_whole()
            && (COPIED_BYTES_MIN..=COPIED_BYTES_MAX).contains(&object.available_bytes())
            && !WITHOUT_COPY.iter().any(|kind| flags.has(*kind))
            && told == stored.map(Some)
            && response.get("Content-Type").is_some_and(encoding::is_compressible)
            && encoding::may_be_recoded(response);
        if !may_have_copies {
            return None;
        }
        body::filter::vary_on_encoding(&mut Subject::new(Side::Resp, response, &mut request.log, None));
        let accepted = encoding::named(&task.request, task.settings.encodings);
        let mut better = Encodings::NONE;
        for encoding in accepted.iter() {
            let is_stored = stored == Some(encoding);
            // Converting brotli to Zstandard, or the reverse, gains nothing.
            if is_stored || stored.is_some_and(|stored| stored != Encoding::Gzip && accepted.has(stored)) {
                break;
            }
            better.push(encoding);
        }
        (better != Encodings::NONE).then_some((object, better))
    }

    /// True if the request has a range. If its condition is a date, the range is ignored from here
    /// on.
    fn is_for_range(&mut self) -> bool {
        let task = &mut self.request.task;
        let request = &task.request;
        let is_asked = task.settings.range_support && !task.life.is_head && request.method() == b"GET";
        if !is_asked || !request.has("Range") {
            return false;
        }
        let is_tag = |value: &[u8]| value.starts_with(b"\"") || value.starts_with(b"W/");
        task.answer.ignores_range = request.get("If-Range").is_some_and(|value| !is_tag(value));
        !task.answer.ignores_range
    }

    /// Changes the head to that of a copy.
    fn found_copy(&mut self, object: &Object, copy: Arc<Object>, encoding: Encoding) {
        let (copy_bytes, object_bytes) = (copy.available_bytes(), object.available_bytes());
        let Some(copy) = Delivered::new(copy) else { return };
        let request = &mut *self.request;
        let (log, response) = (&mut request.log, &mut request.task.response);
        let name = encoding.name();
        logged::set(log, RESP, response, "Content-Encoding", name.as_bytes());
        logged::set(log, RESP, response, "Content-Length", itoa::Buffer::new().format(copy_bytes).as_bytes());
        logged::unset(log, RESP, response, "Accept-Ranges");
        weaken_etag(response, log, RESP);
        request.task.found.copy = Some(copy);
        if self.request.task.life.reason.is_none() {
            self.why(Reason::HitCopy, format!("text={name}, {copy_bytes} bytes for {object_bytes}").as_bytes());
        }
    }

    /// Makes the copy the body of the response, after vcl_deliver. If VCL has named filters, those
    /// are meant for the object.
    #[cold]
    pub(super) fn take_copy(&mut self) {
        let request = &mut *self.request;
        let task = &mut request.task;
        let (Some(copy), Some(object)) = (task.found.copy.take(), &task.found.object) else { return };
        if task.answer.filters.is_some() {
            match coding_of(object.flags()) {
                Some(coding) => {
                    let name = coding.name().as_bytes();
                    logged::set(&mut request.log, RESP, &mut task.response, "Content-Encoding", name);
                }
                None => logged::unset(&mut request.log, RESP, &mut task.response, "Content-Encoding"),
            }
            return;
        }
        let saved_bytes = object.available_bytes().saturating_sub(copy.available_bytes());
        if !task.life.is_head && task.response.status() % 1000 == 200 {
            self.context.counters.add(Main::CopiesSent, 1);
            self.context.counters.add(Main::CopiesSavedBytes, saved_bytes);
        }
        task.found.object = Some(copy);
    }
}
