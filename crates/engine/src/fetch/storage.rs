//! Storage of the response: in the index, or for the one client that sent the request.
//!
//! Stored objects and the markers for hit-for-miss and hit-for-pass are placed in the arena. A
//! response that is private, or would expire at once, is only passed to its client
//! (`Object::passing`); if it must be complete before delivery, it is held in the arena without
//! being indexed. A full storage never costs the client the response: it is passed on, uncached.
//! The same applies to a storage that turns out too small during the body (`overflow.rs`). The
//! fetch fails only if VCL selects no storage at all. *Invariant:* a private response is never in
//! the index; a marker keeps the fields of its head that `marker_head` selects, and is never
//! delivered.
//!
//! *Invariant:* a refusal to store belongs to a response, not to its fetch. Under `rfc` no response
//! to HEAD is stored or changes a stored response, unless VCL insists.

use super::task::{Attempt, Kept};
use super::{Fetch, FetchMode};
use crate::groups;
use crate::logged::{self, BERESP};
use cache::pin;
use message::HeaderLine;
use semantics::filter::{Class, copy_filtered};
use semantics::groups::CACHE_GROUPS;
use semantics::rfc::Refusal;
use semantics::vary;
use std::sync::Arc;
use store::{Object, ObjectAttributes, ObjectFlags};
use surface::counter::Main;
use surface::header::{CREDENTIAL_HEADERS, TAG_HEADERS};
use surface::limits::{MARKER_HEAD_BYTES_MAX, PASS_IN_FLIGHT_BYTES_MAX};
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    /// Picks the default storage for a response, which VCL may change: the next in turn for each
    /// request to an origin.
    pub(super) fn draw_storage(&mut self) {
        let storages = &self.context.engine.storages;
        let is_transient = self.task.life.uncacheable;
        let parameters = &self.task.order.parameters;
        let drawn = if is_transient { storages.transient() } else { storages.draw(parameters) };
        self.task.attempt.storage = Some(drawn);
        self.task.attempt.is_storage_chosen = false;
    }

    /// Picks another storage, unless VCL has chosen, if the body suits memory or a file better.
    /// `bytes_max` is the length of the body, or an upper bound; `None` = unknown.
    pub(super) fn place(&mut self, bytes_max: Option<u64>) {
        let Attempt { storage, is_storage_chosen, .. } = &mut self.task.attempt;
        if let Some(storage) = storage.as_mut().filter(|_| !*is_storage_chosen) {
            *storage = self.context.engine.storages.place(*storage, bytes_max, &self.task.order.parameters);
        }
    }

    /// Does the same by the facts known before VCL sees the response.
    pub(super) fn place_announced(&mut self) {
        let Attempt { body, verdict, .. } = &self.task.attempt;
        let length = match &self.task.life.stale {
            Some(stale) if verdict.was_304 => Some(stale.available_bytes()),
            _ if body.size.is_empty() => Some(0),
            _ => body.size.length(),
        };
        self.place(length);
    }

    /// Makes the object for the response. `length` is that of the stored body; `is_streamed` says
    /// that clients will read it while it grows. `None` if VCL selects no storage for it, or if
    /// there is none for a page that is parsed: such a page cannot be passed on uncached, since its
    /// plan is complete last.
    pub(super) fn allocate(
        &mut self,
        length: Option<u64>,
        flags: ObjectFlags,
        is_streamed: bool,
    ) -> Option<Arc<Object>> {
        self.heed_query_rule();
        let vary = self.vary_key();
        let part_flags = self.part_flags();
        let mut attributes = self.attributes(flags | part_flags | self.response_flags(), vary);
        attributes.body_bytes = length;
        // A body that is compressed here becomes hardly longer.
        let is_unpacked = flags.has(ObjectFlags::CHANGED_GZIP) && !flags.is_coded();
        let announced = self.task.attempt.body.size.length().filter(|_| !is_unpacked);
        self.place(length.or(announced));
        let Some(storage) = self.storage_of_response() else {
            self.log_fetch_error(Reason::StorageRefused, "Could not get storage");
            // The error response that is made instead needs a storage.
            self.draw_storage();
            return None;
        };
        attributes.transient = storage == self.context.engine.storages.transient();
        let is_known_too_large = length.is_none() && self.is_marked_too_large();
        let is_private =
            self.task.is_uncacheable() || (self.task.order.mode == FetchMode::Pass && !self.task.life.answers_get);
        let lives = self.task.attempt.verdict.lives_at(self.now());
        if is_private {
            attributes.flags |= ObjectFlags::PRIVATE;
        }
        self.log_storage(storage);
        let mut is_stored = !is_private && lives && self.task.life.busy.is_some() && !is_known_too_large;
        let mut is_full = false;
        let is_parsed = flags.has(ObjectFlags::ESI);
        let may_pass_by = !is_parsed && (is_streamed || length == Some(0) || is_known_too_large);
        let passes_by = !is_stored && may_pass_by;
        let head = self.stored_head(length, passes_by);
        let object = if passes_by {
            Object::passing(attributes, head, self.in_flight_bytes())
        } else {
            match self.context.engine.storages.store(storage).create(&attributes, &head) {
                Ok(object) => object,
                Err(_) if is_parsed => {
                    self.log_fetch_error(Reason::StorageRefused, "Could not get storage");
                    return None;
                }
                Err(_) => {
                    self.log.record(Tag::Error, b"Could not get storage: not cached");
                    is_stored = false;
                    is_full = true;
                    Object::passing(attributes, head, self.in_flight_bytes())
                }
            }
        };
        self.task.attempt.kept = Kept { object: Some(Arc::clone(&object)), is_stored, is_marked: false, body_bytes: 0 };
        if is_known_too_large && !is_private {
            self.why(Reason::NotStoredTooLarge, "");
        } else {
            self.why_stored(is_full);
        }
        Some(object)
    }

    /// Number of bytes that the response of a pass may be ahead of its client.
    pub(super) fn in_flight_bytes(&self) -> usize {
        match usize::try_from(self.task.transit_buffer()) {
            Ok(0) | Err(_) => PASS_IN_FLIGHT_BYTES_MAX,
            Ok(bytes) => bytes.min(PASS_IN_FLIGHT_BYTES_MAX),
        }
    }

    /// The variant key. An unusable Vary makes the response private.
    pub(super) fn vary_key(&mut self) -> Vec<u8> {
        match vary::encode(&self.task.attempt.beresp, &self.task.bereq, self.task.order.gzip_support) {
            Ok(key) => key.unwrap_or_default(),
            Err(error) => {
                if let Some(text) = error.text() {
                    self.log.record(Tag::Error, text.as_bytes());
                    self.log.record(Tag::Error, b"Illegal 'Vary' header from backend, making this a pass.");
                }
                self.task.life.uncacheable = true;
                self.task.life.is_vary_unusable = true;
                Vec::new()
            }
        }
    }

    pub(super) fn attributes(&self, flags: ObjectFlags, vary: Vec<u8>) -> ObjectAttributes {
        let verdict = &self.task.attempt.verdict;
        ObjectAttributes {
            key: self.task.order.digest,
            xid: self.task.life.vxid,
            origin: verdict.origin,
            ttl: verdict.ttl.max(0.0),
            grace: verdict.grace.max(0.0),
            keep: verdict.keep.max(0.0),
            flags,
            vary,
            body_bytes: None,
            transient: false,
        }
    }

    /// The storage of the object: Transient for a private or short-lived response, whatever VCL
    /// chose. `None` if VCL selects no storage.
    pub(super) fn storage_of_response(&self) -> Option<u32> {
        let lifetime = self.task.attempt.verdict.lifetime();
        if self.task.is_uncacheable() || lifetime < self.task.order.parameters.shortlived {
            return Some(self.context.engine.storages.transient());
        }
        self.task.attempt.storage
    }

    /// Writes the `Storage` record and counts.
    pub(super) fn log_storage(&mut self, storage: u32) {
        let engine = &self.context.engine;
        let lifetime = self.task.attempt.verdict.lifetime();
        if self.task.is_uncacheable() {
            self.context.count(Main::BerespUncacheable);
        } else if lifetime < self.task.order.parameters.shortlived {
            self.context.count(Main::BerespShortlived);
        }
        if let Some(storage) = engine.storages.name(storage) {
            self.log.record_parts(Tag::Storage, &[storage.kind.as_bytes(), b" ", storage.name.as_bytes()]);
        }
    }

    /// The encoded head of the object; a head that is only passed on is read once, and need not be
    /// short. Regardless of VCL, `Content-Length` is the length of the body, or absent.
    pub(super) fn stored_head(&mut self, length: Option<u64>, passes_by: bool) -> Vec<u8> {
        let class = self.stored_class();
        let beresp = &self.task.attempt.beresp;
        let mut stored = self.context.spares.message();
        stored.reserve_for(beresp);
        stored.set_protocol(beresp.protocol());
        stored.set_status(beresp.status());
        stored.set_reason(beresp.reason());
        copy_filtered(beresp, &mut stored, class);
        if !self.task.attempt.verdict.unshared.is_empty() && !self.task.is_uncacheable() {
            stored.retain(|header| !self.task.attempt.verdict.unshared.contain(header.name()));
        }
        let describes_another = self.task.bereq.method() == b"HEAD" || beresp.status() == 304;
        if !describes_another && let Some(value) = stored.get("Content-Length") {
            let mut number = itoa::Buffer::new();
            match length.map(|bytes| number.format(bytes)) {
                Some(real) if real.as_bytes() == value => {}
                Some(real) => stored.set("Content-Length", real.as_bytes()),
                None => {
                    stored.unset("Content-Length");
                }
            }
        }
        logged::log_object(&mut self.log, &stored);
        let mut head = Vec::with_capacity(stored.memory_bytes() + 64);
        if passes_by {
            stored.encode_as_it_is(&mut head)
        } else {
            stored.encode(&mut head)
        }
        if class == Class::InsertRfc {
            head.extend_from_slice(&groups::notes(&stored, CACHE_GROUPS, self.task.bereq_original.get("Host")));
        }
        if self.task.order.salted.is_some() {
            cache::mark_salted(&mut head);
        }
        if self.task.attempt.is_storage_chosen && self.context.engine.storages.have_files() {
            pin(&mut head);
        }
        self.context.spares.put_message(stored);
        head
    }

    /// Class of the response's fields that are kept.
    fn stored_class(&self) -> Class {
        match (self.task.is_uncacheable(), self.follows_rfc()) {
            (true, _) => Class::StorePass,
            (false, false) => Class::InsertStored,
            (false, true) => Class::InsertRfc,
        }
    }

    /// Publishes the response: to the index if it may be shared, and to the waiting client in any
    /// case. For a response that may not be shared the index gets a marker, so that requests for it
    /// don't queue up. An object whose body is compared first (`leak.rs`) is added to the index
    /// later. Happens once; the busy mark is kept until the end of the fetch where the index needs
    /// to know the outcome.
    pub(super) fn publish(&mut self) {
        let Some(object) = self.task.attempt.kept.object.clone() else { return };
        if self.task.life.ready.is_none() {
            return;
        }
        if self.task.attempt.kept.is_stored {
            let is_held = self.task.attempt.watched.as_ref().is_some_and(|watched| watched.is_held);
            if let Some(busy) = self.task.life.busy.as_ref().filter(|_| !is_held) {
                busy.publish(&object);
            }
        } else if let Some(busy) = self.task.life.busy.take()
            && let Some(marker) = self.marker(&object)
        {
            self.task.attempt.kept.is_marked = true;
            busy.publish(&marker);
        }
        self.deliver(&object);
    }

    /// The marker that a response must not be shared; `None` if no marker is needed.
    fn marker(&mut self, object: &Object) -> Option<Arc<Object>> {
        let Attempt { verdict, is_synthetic, .. } = &self.task.attempt;
        // The ttl that VCL set was for a response that is stored.
        let is_refused = !self.task.life.uncacheable && self.task.policy_refusal().is_some();
        let is_remembered = self.task.is_uncacheable()
            && self.task.order.mode != FetchMode::Pass
            && !verdict.is_unremembered
            && !self.is_too_early()
            && (!is_synthetic || verdict.ttl > 0.0)
            && (is_refused || verdict.lives_at(self.now()));
        if !is_remembered {
            return None;
        }
        let flag = if verdict.is_hit_for_pass { ObjectFlags::HIT_FOR_PASS } else { ObjectFlags::HIT_FOR_MISS };
        let mut attributes = self.attributes(flag, object.vary().to_vec());
        if is_refused {
            // The lifetime that the response itself would have had does not matter here.
            attributes.origin = self.now();
            (attributes.ttl, attributes.grace, attributes.keep) =
                (self.task.order.parameters.uncacheable_ttl, 0.0, 0.0);
        }
        self.make_marker(attributes)
    }

    /// Makes a marker with these attributes.
    pub(super) fn make_marker(&self, mut attributes: ObjectAttributes) -> Option<Arc<Object>> {
        attributes.body_bytes = Some(0);
        attributes.transient = true;
        let head = self.marker_head();
        let storages = &self.context.engine.storages;
        let marker = storages.store(storages.transient()).create(&attributes, &head).ok()?;
        marker.finish();
        Some(marker)
    }

    /// The encoded head of a marker: the status, and the fields by which bans and purges by tag
    /// find it, up to [`MARKER_HEAD_BYTES_MAX`]. Tags take precedence. Credentials are left out; of
    /// a response with `no-store` only the tags are kept. Source: RFC 9111 §5.2.2.5.
    fn marker_head(&self) -> Vec<u8> {
        // At most this many bytes are added to the line of a field, and to the status line.
        const FRAME_BYTES: usize = 16;
        let beresp = &self.task.attempt.beresp;
        let mut stored = self.context.spares.message();
        stored.set_protocol(b"HTTP/1.1");
        stored.set_status(beresp.status());
        copy_filtered(beresp, &mut stored, Class::StorePass);
        let is_tag = |header: &HeaderLine<'_>| TAG_HEADERS.iter().any(|name| header.is(name));
        let is_unstorable = matches!(self.task.policy_refusal(), Some(Refusal::NoStore | Refusal::Marked));
        let is_left_out =
            |header: &HeaderLine<'_>| is_unstorable || CREDENTIAL_HEADERS.iter().any(|name| header.is(name));
        let takes = |header: &HeaderLine<'_>, room: &mut usize| {
            let left = room.checked_sub(header.line().len() + FRAME_BYTES);
            *room = left.unwrap_or(*room);
            left.is_some()
        };
        let mut room_of_tags = MARKER_HEAD_BYTES_MAX - FRAME_BYTES;
        let mut room = room_of_tags;
        stored.headers().filter(is_tag).for_each(|header| _ = takes(&header, &mut room));
        stored.retain(|header| match is_tag(&header) {
            true => takes(&header, &mut room_of_tags),
            false => !is_left_out(&header) && takes(&header, &mut room),
        });
        let mut head = Vec::with_capacity(stored.memory_bytes());
        stored.encode(&mut head);
        self.context.spares.put_message(stored);
        head
    }

    /// Gives the response a status line and the headers of a response made here.
    pub(super) fn make_response(&mut self, status: u16, reason: &[u8]) {
        self.task.attempt.beresp.clear();
        logged::set_status_line(&mut self.log, BERESP, &mut self.task.attempt.beresp, b"HTTP/1.1", status, reason);
        let mut date = [0; 29];
        semantics::date::format(self.context.clock.now(), &mut date);
        logged::append(&mut self.log, BERESP, &mut self.task.attempt.beresp, "Date", &[&date]);
        let server = self.context.engine.name.server().as_bytes();
        logged::append(&mut self.log, BERESP, &mut self.task.attempt.beresp, "Server", &[server]);
    }
}
