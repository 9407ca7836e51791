//! Slices: the request of a fetch when the resource is stored piece by piece, and the handling of
//! the received piece.
//!
//! ```text
//! head unknown ─▶ request a slice ┬▶ 206 with version and length ─▶ a head object, then the slice
//!                                 └▶ anything else ─▶ as without slices, and remembered
//! head known ──▶ request a slice, If-Range ┬▶ 206 of that version ─▶ the slice
//!                                          ├▶ another version ─▶ head removed, the fetch fails
//!                                          └▶ anything else ─▶ the fetch fails
//! ```
//!
//! VCL sees every slice as the whole response that it stands for: status 200, the length of the
//! whole, no Content-Range. Its decisions about lifetimes apply to the head; slices have the
//! lifetime of the head. *Invariant:* bytes of two versions are never stored under keys of one
//! head: each slice has passed [`semantics::part::judge`], has the head's strong validator and its
//! total length. Source: RFC 9110 §13.1.5, §14. Next files: `storage.rs`, `slicing.rs`.

use super::filters::default_list;
use super::order::SliceOrder;
use super::task::{Kept, PartTaken};
use super::{Fetch, Step};
use crate::bodies::filters::Filters;
use crate::logged::{self, BEREQ, BERESP};
use crate::origin::close_reason;
use crate::slicing::{Slicing, lives_until, open_span};
use cache::SliceLookup;
use message::Message;
use semantics::part::{self, Joint, Part, Received};
use semantics::ranges::strong_validator;
use std::sync::Arc;
use store::{Object, ObjectAttributes, ObjectFlags};
use surface::encoding::Encodings;
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    /// True if this is the fetch for a slice of a resource whose head is stored.
    pub(super) fn is_for_known_head(&self) -> bool {
        self.task.life.slice.as_ref().is_some_and(|slice| slice.head.is_some())
    }

    /// Requests a slice. Slices are requested without a coding: a slice that one client got must be
    /// usable for the next one.
    pub(super) fn ask_for_slice(&mut self) {
        let Some(slice) = &self.task.life.slice else { return };
        let (log, bereq) = (&mut self.log, &mut self.task.bereq);
        logged::force(log, BEREQ, bereq, "Range", range_of(slice).as_bytes());
        let mut stored = Message::new();
        if let Some((head, _)) = &slice.head
            && stored.decode(head.head()).is_some()
            && let Some(validator) = strong_validator(&stored)
        {
            logged::force(log, BEREQ, bereq, "If-Range", validator);
        }
        if self.task.order.gzip_support {
            logged::force(log, BEREQ, bereq, "Accept-Encoding", b"identity");
        }
    }

    /// Judges the response to a request for a slice; true if it is a slice, or the whole resource.
    ///
    /// # Errors
    /// The next step instead, if it cannot be used.
    pub(super) fn take_slice(&mut self) -> Result<bool, Step> {
        let Some(slice) = self.task.life.slice.clone() else { return Ok(false) };
        let (bereq, beresp) = (&self.task.bereq, &self.task.attempt.beresp);
        let is_asked = bereq.get("Range").is_some_and(|range| range == range_of(&slice).as_bytes());
        let received = match part::judge(bereq, beresp, self.task.attempt.body.size.length(), false) {
            Ok(Received::Part(part)) if is_asked => Some(part),
            Ok(_) | Err(_) => None,
        };
        match &slice.head {
            Some((head, slicing)) => self.take_further(received, head, *slicing, slice.number).map(|()| true),
            None => self.take_first(received, &slice),
        }
    }

    /// Handles the first slice, which determines how the resource is divided.
    fn take_first(&mut self, received: Option<Part>, slice: &SliceOrder) -> Result<bool, Step> {
        let beresp = &self.task.attempt.beresp;
        let asked = open_span(slice.number, slice.slice_bytes);
        let fits = |part: &Part| {
            let last = part.total.map(|total| asked.last.min(total.saturating_sub(1)));
            part.span.first == asked.first
                && last == Some(part.span.last)
                && (part.is_whole() || strong_validator(beresp).is_some())
                && beresp.get("Content-Encoding").is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity"))
        };
        match (received.filter(fits), beresp.status()) {
            (Some(part), _) => {
                self.show_as_whole(part);
                let is_whole = part.is_whole();
                self.task.attempt.slice = (!is_whole).then_some(part);
                let joint = is_whole.then_some(Joint { part, before_bytes: 0, after_offset: None });
                self.task.attempt.part = PartTaken { received: Some(part), joint };
                Ok(true)
            }
            (None, 416) if slice.number > 0 => {
                // The requested slice may not exist; the first one shows the length of the
                // resource.
                self.task.life.slice = Some(SliceOrder { number: 0, ..slice.clone() });
                self.task.give_up_response(&self.context, &mut self.log);
                self.ask_for_slice();
                Err(Step::Send)
            }
            (None, 206 | 416) => Err(self.ask_without_slices(true)),
            (None, status) => {
                if status == 200 {
                    self.remember_refusal();
                }
                self.task.life.slice = self.task.life.slice.take().filter(|_| status == 304);
                Ok(false)
            }
        }
    }

    /// A further slice must be of the head's version.
    fn take_further(
        &mut self,
        received: Option<Part>,
        head: &Arc<Object>,
        slicing: Slicing,
        number: u64,
    ) -> Result<(), Step> {
        let beresp = &self.task.attempt.beresp;
        let mut stored = Message::new();
        let is_same = stored.decode(head.head()).is_some() && part::is_same_version(&stored, beresp);
        let fits = |part: &Part| Some(part.span) == slicing.span(number) && part.total == Some(slicing.total);
        if let Some(part) = received.filter(|part| is_same && fits(part)) {
            self.show_as_whole(part);
            self.task.attempt.slice = Some(part);
            self.task.attempt.part = PartTaken { received: Some(part), joint: None };
            return Ok(());
        }
        if matches!(beresp.status(), 200 | 206 | 404 | 410 | 412 | 416) {
            // Its other slices would not fit the origin's current version.
            self.context.engine.cache.remove(head);
            self.log_fetch_error(Reason::SliceOutdated, "slice is of another version than those before");
        } else {
            self.log_fetch_error(Reason::SliceOutdated, "no slice came");
        }
        self.close_connection(close_reason::BODY);
        Err(Step::Fail)
    }

    /// Makes the response look like the whole that it is a slice of.
    fn show_as_whole(&mut self, part: Part) {
        let (log, beresp) = (&mut self.log, &mut self.task.attempt.beresp);
        part::complete(beresp);
        logged::log_status_line(log, BERESP, beresp);
        if let Some(total) = part.total {
            logged::force(log, BERESP, beresp, "Content-Length", itoa::Buffer::new().format(total).as_bytes());
        }
    }

    /// Requests the whole; `is_in_vain` means that requesting slices again would fail, too.
    fn ask_without_slices(&mut self, is_in_vain: bool) -> Step {
        if is_in_vain {
            self.remember_refusal();
        }
        self.task.give_up_response(&self.context, &mut self.log);
        (self.task.attempt.slice, self.task.attempt.part) = (None, PartTaken::default());
        self.task.life.slice = None;
        let (log, bereq) = (&mut self.log, &mut self.task.bereq);
        logged::unset(log, BEREQ, bereq, "Range");
        if self.task.order.gzip_support {
            let codings = Encodings::of_parameter(self.task.order.parameters.http_encodings).join(", ");
            logged::force(log, BEREQ, bereq, "Accept-Encoding", codings.as_bytes());
        }
        Step::Send
    }

    fn remember_refusal(&mut self) {
        let until = self.now() + self.task.order.parameters.uncacheable_ttl;
        self.context.slice_refusals.note(&self.task.order.digest, until);
    }

    /// After VCL: if its decision does not allow slices, requests the whole. A further slice that
    /// must not be stored is for the client that ordered it.
    pub(super) fn give_up_slices(&mut self) -> Option<Step> {
        let part = self.task.attempt.slice?;
        if self.is_for_known_head() {
            return None;
        }
        let now = self.now();
        let attempt = &self.task.attempt;
        let is_as_sent = attempt.beresp.status() == 200
            && attempt.verdict.lives_at(now)
            && strong_validator(&attempt.beresp).is_some()
            && attempt.verdict.filters.is_none()
            && default_list(&self.task).is_empty();
        if is_as_sent && self.split(part) { None } else { Some(self.ask_without_slices(!is_as_sent)) }
    }

    /// Stores and publishes the head; from here on this is the fetch of a slice. False if it may
    /// not be stored, or there is no room.
    fn split(&mut self, part: Part) -> bool {
        let (Some(slice), Some(total)) = (self.task.life.slice.clone(), part.total) else { return false };
        let digest = self.task.order.digest;
        let slicing =
            Slicing::begin(total, slice.slice_bytes, &digest, self.task.life.vxid, self.task.attempt.verdict.origin);
        let Some(head) = self.make_head(slicing) else { return false };
        let key = slicing.key(slice.number);
        let SliceLookup::Miss(busy) = self.context.engine.cache.slice(&key, self.now(), 0.0) else {
            head.remove();
            return false;
        };
        self.publish_head(&head);
        self.task.life.busy = Some(busy);
        self.task.order.digest = key;
        self.task.life.slice = Some(SliceOrder { head: Some((head, slicing)), ..slice });
        true
    }

    /// Makes a head object from the response; `None` if it may not be shared, or there is no room.
    fn make_head(&mut self, slicing: Slicing) -> Option<Arc<Object>> {
        // An unusable Vary makes the response uncacheable.
        let vary = self.vary_key();
        let is_shared = !self.task.is_uncacheable()
            && self.task.attempt.verdict.lives_at(self.now())
            && self.task.life.busy.is_some();
        if !is_shared {
            return None;
        }
        let storage = self.storage_of_response()?;
        let mut attributes = self.attributes(ObjectFlags::TOO_LARGE | self.response_flags(), vary);
        attributes.body_bytes = Some(0);
        attributes.transient = storage == self.context.engine.storages.transient();
        self.log_storage(storage);
        let mut encoded = self.stored_head(Some(slicing.total), false);
        slicing.write_note(&mut encoded);
        let head = self.context.engine.storages.store(storage).create(&attributes, &encoded).ok()?;
        head.finish();
        Some(head)
    }

    /// Publishes a head, replacing the stale object.
    fn publish_head(&mut self, head: &Arc<Object>) {
        self.task.attempt.kept = Kept { object: Some(Arc::clone(head)), is_stored: true, ..Kept::default() };
        self.publish();
        self.task.attempt.kept = Kept::default();
        if let Some(stale) = self.task.life.stale.take() {
            self.context.engine.cache.remove(&stale);
        }
    }

    /// Handles a 304 that made a head valid again: its slices stay unchanged.
    pub(super) fn renew_head(&mut self, stale: &Arc<Object>) -> Step {
        let mut stored = Message::new();
        let is_same =
            stored.decode(stale.head()).is_some() && part::is_same_version(&stored, &self.task.attempt.beresp);
        self.release_connection();
        let slicing = Slicing::of(stale).filter(|_| is_same);
        let Some(head) = slicing.and_then(|slicing| self.make_head(slicing)) else {
            self.log_fetch_error(Reason::SliceOutdated, "slices cannot be kept");
            self.context.engine.cache.remove(stale);
            return Step::Error;
        };
        self.publish_head(&head);
        Step::Commit
    }

    /// Receives a slice, streaming it to the requests that wait for it.
    pub(super) async fn slice_body(&mut self) -> Step {
        let Some(object) = self.make_slice() else {
            self.close_connection(close_reason::EXHAUSTED);
            return Step::Fail;
        };
        match &self.task.life.busy {
            Some(busy) if self.task.attempt.kept.is_stored => busy.publish(&object),
            // Other requests send their own. There is no marker: no lookup would search for one
            // among slices.
            Some(_) | None => self.task.life.busy = None,
        }
        self.publish();
        self.log_fetch_body(false, true);
        let mut filters = Filters::default();
        let _ = self.hold_filters(&filters, false);
        let received = self.receive_body(&object, &mut filters).await;
        match received.and_then(|()| Ok(object.finish_with(&[])?)) {
            Ok(()) => {
                self.log_totals(&filters, false);
                self.note_success();
                self.release_connection();
                Step::Commit
            }
            Err(failure) => {
                self.log_body_failure(&failure);
                self.log_totals(&filters, false);
                self.close_connection(close_reason::BODY);
                self.body_failed(&failure, true)
            }
        }
    }

    /// Makes the object for a slice. If it must not be stored, or there is no room, it is only
    /// passed to the client that ordered it; `None` if there is no such client.
    fn make_slice(&mut self) -> Option<Arc<Object>> {
        let (Some(part), Some(SliceOrder { head: Some((head, slicing)), .. })) =
            (self.task.attempt.slice, &self.task.life.slice)
        else {
            return None;
        };
        let origin = head.origin();
        let attributes = ObjectAttributes {
            key: self.task.order.digest,
            xid: self.task.life.vxid,
            origin,
            ttl: lives_until(head, self.now()) - origin,
            flags: ObjectFlags::PARTIAL,
            body_bytes: Some(part.span.bytes()),
            transient: head.flags().has(ObjectFlags::TRANSIENT),
            ..ObjectAttributes::default()
        };
        let mut stored = Message::new();
        stored.set_protocol(b"HTTP/1.1");
        stored.set_status(206);
        let mut value = Vec::new();
        part.write(&mut value);
        stored.set("Content-Range", &value);
        let mut encoded = Vec::new();
        stored.encode(&mut encoded);
        slicing.write_note(&mut encoded);
        let store = self.context.engine.storages.store(u32::from(head.store_number().unwrap_or(0)));
        let is_shared = !self.task.is_uncacheable();
        let stored = if is_shared { store.create(&attributes, &encoded).ok() } else { None };
        if is_shared && stored.is_none() {
            self.log.record(Tag::Error, b"Could not get storage: not cached");
        }
        let is_awaited = self.task.life.ready.is_some();
        let passing = || is_awaited.then(|| Object::passing(attributes, encoded, self.in_flight_bytes()));
        let object = stored.or_else(passing)?;
        let is_stored = !object.is_passing();
        self.task.attempt.kept = Kept { object: Some(Arc::clone(&object)), is_stored, ..Kept::default() };
        Some(object)
    }
}

/// The value of Range for a slice.
fn range_of(slice: &SliceOrder) -> String {
    let known = slice.head.as_ref().and_then(|(_, slicing)| slicing.span(slice.number));
    let span = known.unwrap_or_else(|| open_span(slice.number, slice.slice_bytes));
    format!("bytes={}-{}", span.first, span.last)
}
