//! Body: the response body is received, filtered and stored.
//!
//! With streaming the object is handed to clients as soon as its head is stored, and they follow
//! its growth. Without streaming that happens at the end, so that a body that breaks off can still
//! become a clean error response. Next files: `fill.rs`, `revalidate.rs`.

use super::fill::{BodyFailure, Source};
use super::filters::default_list;
use super::task::Kept;
use super::{Fetch, FetchMode, Step};
use crate::bodies::codings::flag_of;
use crate::bodies::disk_tier::held_bytes;
use crate::bodies::filters::{Filters, Subject};
use crate::exchange::BodyAnnounced;
use crate::logged::{self, BERESP};
use crate::memory::MEMORY_SHORT;
use crate::origin::{CutShort, OriginExchange, close_reason};
use body::Side;
use message::Message;
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::counter::Main;
use surface::encoding::{Encoding, Encodings};
use surface::reason::Reason;
use surface::tag::Tag;

impl Fetch {
    pub(super) async fn body(&mut self) -> Step {
        if self.task.attempt.slice.is_some() {
            return self.slice_body().await;
        }
        let is_empty = self.task.attempt.body.size.is_empty();
        if is_empty && self.task.bereq.method() != b"HEAD" && self.task.attempt.beresp.status() != 304 {
            logged::unset(&mut self.log, BERESP, &mut self.task.attempt.beresp, "Content-Encoding");
        }
        let mut filters = match self.open_filters(is_empty) {
            Ok(filters) => filters,
            Err(text) => {
                self.log_fetch_error(Reason::BodyNotProcessed, &text);
                self.close_connection(close_reason::EXHAUSTED);
                return Step::Error;
            }
        };
        if let Err(text) = self.hold_filters(&filters, is_empty) {
            self.log_fetch_error(Reason::MemoryShort, text);
            self.close_connection(close_reason::EXHAUSTED);
            return Step::Error;
        }
        let length = match self.task.attempt.body.size {
            BodyAnnounced::None => Some(0),
            _ if filters.change_length() => None,
            BodyAnnounced::Length(bytes) => Some(self.part_bytes().unwrap_or(bytes)),
            BodyAnnounced::Unknown => self.part_bytes(),
        };
        // A page is assembled by its plan, which is available only when the whole page is stored.
        let parsed = if filters.parse_pages() { ObjectFlags::ESI } else { ObjectFlags::NONE };
        let wants_stream = self.task.attempt.verdict.do_stream && !is_empty && parsed == ObjectFlags::NONE;
        let flags = filters.object_flags() | parsed | self.flags_as_it_came(is_empty);
        let Some(object) = self.allocate(length, flags, wants_stream) else {
            self.close_connection(close_reason::EXHAUSTED);
            return Step::Error;
        };
        let is_streamed = wants_stream || (object.is_passing() && !is_empty);
        if is_streamed {
            self.announce_trailers(&filters);
            self.publish();
        }
        self.log_fetch_body(is_empty, is_streamed);
        let received = if is_empty { Ok(()) } else { self.receive_body(&object, &mut filters).await };
        let received = received.and_then(|()| {
            // The reader of the body's end looks for them.
            self.hand_over_trailers();
            self.compare_body();
            Ok(object.finish_with(&filters.annex().unwrap_or_default())?)
        });
        match received {
            Ok(()) => {
                self.log_totals(&filters, is_empty);
                if !is_empty {
                    self.note_success();
                }
                self.release_connection();
                Step::Commit
            }
            Err(failure) => {
                self.log_body_failure(&failure);
                self.log_totals(&filters, is_empty);
                self.close_connection(close_reason::BODY);
                self.body_failed(&failure, is_streamed || object.has_overflowed())
            }
        }
    }

    /// Announces the trailers that the client will be sent. They describe the body as the origin
    /// sends it, so there are none if a filter changes it.
    fn announce_trailers(&mut self, filters: &Filters) {
        let attempt = &self.task.attempt;
        if let Some(out_of_band) = &self.task.life.out_of_band
            && attempt.exchange.as_ref().is_some_and(OriginExchange::may_have_trailers)
            && filters.is_empty()
        {
            if semantics::trailers::are_part_of(&attempt.beresp) {
                out_of_band.pass_all();
            }
            out_of_band.announce(semantics::trailers::announced(&attempt.beresp));
        }
    }

    /// Hands the received trailers to the client's side.
    fn hand_over_trailers(&mut self) {
        let Some(out_of_band) = &self.task.life.out_of_band else { return };
        let announced = out_of_band.announced();
        if announced.is_none() && !out_of_band.passes_all() {
            return;
        }
        let limits = self.receive_limits();
        let Some(received) = self.task.attempt.exchange.as_mut().and_then(|exchange| exchange.take_trailers(&limits))
        else {
            return;
        };
        let mut trailers = Message::new();
        if out_of_band.passes_all() {
            semantics::trailers::select_all(&received, &mut trailers);
        } else {
            semantics::trailers::select(&received, &announced.unwrap_or_default(), &mut trailers);
        }
        logged::log_headers(&mut self.log, BERESP, &trailers);
        out_of_band.set_trailers(trailers, &self.context.memory);
    }

    /// Logs the totals of the filters.
    pub(super) fn log_totals(&mut self, filters: &Filters, is_empty: bool) {
        filters.log_totals(&mut self.log);
        if is_empty || self.log.is_masked(Tag::VfpAcct) {
            return;
        }
        let Some(carriage) = self.task.attempt.body.carriage else { return };
        let (name, pieces, bytes) =
            (carriage.account, self.task.attempt.received_pieces, self.task.life.account.response_body);
        let (mut of_pieces, mut of_bytes) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (pieces, bytes) = (of_pieces.format(pieces), of_bytes.format(bytes));
        self.log.record_parts(Tag::VfpAcct, &[name, " ", pieces, " ", bytes].map(str::as_bytes));
    }

    pub(super) fn log_fetch_body(&mut self, is_empty: bool, is_streamed: bool) {
        let carriage = self.task.attempt.body.carriage.filter(|_| !is_empty);
        let name = carriage.map_or("0 none", |carriage| carriage.fetch_body);
        let how = if is_streamed { "stream" } else { "-" };
        self.log.record_parts(Tag::FetchBody, &[name, " ", how].map(str::as_bytes));
    }

    /// Opens the filters that VCL named, or those that follow from the response.
    fn open_filters(&mut self, is_empty: bool) -> Result<Filters, String> {
        let list = match &self.task.attempt.verdict.filters {
            _ if is_empty => Vec::new(),
            Some(list) => list.clone(),
            None => default_list(&self.task),
        };
        self.log.record(Tag::Filters, &list);
        let attempt = &mut self.task.attempt;
        let length = attempt.body.size.length();
        let mut subject = Subject {
            target: self.task.bereq.target(),
            vmods: self.task.order.vcl.vmods(),
            ..Subject::new(Side::Beresp, &mut attempt.beresp, &mut self.log, length)
        };
        Filters::open(&list, &mut subject, &self.task.order.parameters, &self.context.counters)
    }

    /// Fills the object with the body that the origin sends.
    pub(super) async fn receive_body(
        &mut self,
        object: &Arc<Object>,
        filters: &mut Filters,
    ) -> Result<(), BodyFailure> {
        let Some(exchange) = self.task.attempt.exchange.take() else {
            return Err(BodyFailure::Origin(CutShort::GONE));
        };
        let mut source = Source::of_exchange(exchange, self.receive_limits());
        self.join_source(&mut source);
        let filled = self.fill(object, &mut source, filters).await;
        self.task.attempt.exchange = source.into_exchange();
        filled
    }

    /// Counts the memory needed to receive the body.
    ///
    /// # Errors
    /// No memory for its filters; none of the body has been used yet.
    pub(super) fn hold_filters(&mut self, filters: &Filters, is_empty: bool) -> Result<(), &'static str> {
        if is_empty {
            return Ok(());
        }
        if !filters.is_empty() && self.context.memory.is_short() {
            self.context.count(Main::ReqRefused);
            return Err(MEMORY_SHORT);
        }
        let buffer_bytes = self.task.attempt.exchange.as_ref().map_or(0, OriginExchange::body_buffer_bytes);
        let stored_bytes = self.task.life.part.as_deref().map_or(0, held_bytes);
        self.task.life.held_filter_bytes = filters.held_bytes();
        self.task.life.held_base_bytes =
            buffer_bytes + stored_bytes + self.task.life.held_filter_bytes + self.bytes_of_vcl();
        self.task.life.held.set(&self.context.memory, self.task.life.held_base_bytes);
        Ok(())
    }

    /// The step after an incomplete body: an error response as long as no client has received any
    /// of it, else the end. The cache keeps nothing of the body. If the client has left, the fetch
    /// has not failed.
    pub(super) fn body_failed(&mut self, failure: &BodyFailure, is_streamed: bool) -> Step {
        if let BodyFailure::Abandoned = failure {
            if let Some(object) = &self.task.attempt.kept.object {
                object.fail();
            }
            return Step::Commit;
        }
        if is_streamed {
            self.context.count(Main::FetchFailed);
            return Step::Fail;
        }
        self.task.attempt.kept = Kept::default();
        Step::Error
    }

    pub(super) fn log_body_failure(&mut self, failure: &BodyFailure) {
        match failure {
            BodyFailure::Origin(broken) => {
                if let Some(errno) = broken.errno {
                    self.log.record(Tag::FetchError, backend::backend::error_text(errno).as_bytes());
                }
                self.log_fetch_error(broken.reason, broken.text);
            }
            BodyFailure::Filter(error) => {
                if let Some(record) = error.fetch_detail() {
                    self.log.record(Tag::Gzip, record.as_bytes());
                }
                self.log_fetch_error(Reason::BodyNotProcessed, error.text());
            }
            BodyFailure::Template => self.log_fetch_error(Reason::BodyBroken, "Template object failed"),
            BodyFailure::Unreadable => self.log_fetch_error(Reason::BodyUnreadable, "Stored body could not be read"),
            BodyFailure::Store => self.log_fetch_error(Reason::StorageRefused, "Could not get storage"),
            BodyFailure::Abandoned => self.log_given_up(),
        }
    }

    /// The flag of a body that is stored in brotli or Zstandard as received, and that then varies
    /// on Accept-Encoding: clients that do not accept the coding get it decoded. Such a body is not
    /// checked on arrival, as a gzipped one is. A body that Copal did not ask for in this coding (a
    /// pass, or a coding that http_encodings does not have) is left alone.
    pub(super) fn flags_as_it_came(&mut self, is_empty: bool) -> ObjectFlags {
        let known = Encodings::of_parameter(self.task.order.parameters.http_encodings);
        let beresp = &mut self.task.attempt.beresp;
        let is_asked_for = self.task.order.gzip_support && self.task.order.mode != FetchMode::Pass;
        if !known.is_beyond_gzip() || !is_asked_for || is_empty || beresp.status() == 206 {
            return ObjectFlags::NONE;
        }
        let coding = beresp.get("Content-Encoding").and_then(Encoding::of_name);
        match coding.filter(|coding| *coding != Encoding::Gzip && known.has(*coding)) {
            None => ObjectFlags::NONE,
            Some(coding) => {
                body::filter::vary_on_encoding(&mut Subject::new(Side::Beresp, beresp, &mut self.log, None));
                flag_of(coding)
            }
        }
    }

    /// Flags of an object that do not come from filters.
    pub(super) fn response_flags(&self) -> ObjectFlags {
        let is_possible =
            self.task.attempt.beresp.status() == 200 && semantics::revalidate::is_possible(&self.task.attempt.beresp);
        let validation = if is_possible { ObjectFlags::CAN_REVALIDATE } else { ObjectFlags::NONE };
        validation | self.judged_flags()
    }
}
