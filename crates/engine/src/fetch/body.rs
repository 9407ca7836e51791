//! Body: the response body is read, filtered and stored as it arrives.
//!
//! With streaming the object is handed to clients as soon as its head is there, and they follow its growth; without, at the
//! end, so that a body that breaks still becomes a clean error response. Storing waits: for eviction, or for the readers
//! of what is not kept (`overflow.rs`). Source: RFC 9112 §6 and §7. Next file: `revalidate.rs`.

use super::connection::{BUFFER_BYTES_LONG, ReceiveError, limit, reason};
use super::task::{FetchTask, Kept};
use super::{Fetch, Step};
use crate::bodies::filters::{Filters, Subject};
use crate::logged::{self, BERESP};
use crate::memory::MEMORY_SHORT;
use crate::turns::Turns;
use body::{FilterError, Flow, Side};
use http1::{BodyDecoder, BodyError, BodyLength};
use std::sync::Arc;
use store::{AppendError, Object, ObjectFlags};
use surface::counter::{Main, Vbe};
use surface::limits::PASS_IN_FLIGHT_BYTES_SHORT;
use surface::reason::Reason;
use surface::tag::Tag;
use surface::vcl::Generation;
use tokio::time::Instant;

/// Why a body did not come whole.
pub(super) enum BodyFailure {
    /// The connection ended or stalled, or the framing is wrong; a system error comes before it in the log.
    Framing(Option<i32>, BodyError),
    /// The framing needs no end, but the connection broke.
    UntilClose(i32),
    /// The stale object that it was to be copied from is not whole.
    Template,
    /// A filter refused it.
    Filter(FilterError),
    /// It could not be stored.
    Store,
    /// Those who wanted it went away.
    Abandoned,
}

impl From<AppendError> for BodyFailure {
    fn from(error: AppendError) -> BodyFailure {
        match error {
            AppendError::Full | AppendError::TooLarge => BodyFailure::Store,
            AppendError::Abandoned => BodyFailure::Abandoned,
        }
    }
}

/// Whose fault a body is that did not come whole.
fn reason_of(error: BodyError) -> Reason {
    match error {
        BodyError::LengthShort | BodyError::ChunkShort | BodyError::ChunkedShort => Reason::OriginClosed,
        BodyError::ChunkHeaderTooLong
        | BodyError::ChunkHeaderNotHex
        | BodyError::ChunkHeaderNoLineEnd
        | BodyError::ChunkTailNoLineEnd
        | BodyError::ChunkTooLarge
        | BodyError::Trailer => Reason::BodyBroken,
    }
}

/// EAGAIN, whose text operators know as that of a stalled origin.
const EAGAIN: i32 = 11;

impl Fetch {
    pub(super) async fn body(&mut self) -> Step {
        let is_empty = matches!(self.task.attempt.length, BodyLength::None | BodyLength::Length(0));
        if is_empty && self.task.bereq.method() != b"HEAD" && self.task.attempt.beresp.status() != 304 {
            logged::unset(&mut self.log, BERESP, &mut self.task.attempt.beresp, "Content-Encoding");
        }
        if self.task.attempt.verdict.do_esi {
            self.log.record(Tag::Error, b"ESI is not part of this build: object delivered unparsed");
        }
        let mut filters = match self.open_filters(is_empty) {
            Ok(filters) => filters,
            Err(text) => {
                self.log_fetch_error(Reason::BodyNotProcessed, &text);
                self.close_connection(reason::EXHAUSTED);
                return Step::Error;
            }
        };
        if let Err(text) = self.hold_filters(&filters, is_empty) {
            self.log_fetch_error(Reason::MemoryShort, text);
            self.close_connection(reason::EXHAUSTED);
            return Step::Error;
        }
        let length = match self.task.attempt.length {
            BodyLength::None => Some(0),
            BodyLength::Length(bytes) if !filters.change_length() => Some(bytes),
            BodyLength::Length(_) | BodyLength::Chunked | BodyLength::UntilClose => None,
        };
        let wants_stream = self.task.attempt.verdict.do_stream && !is_empty;
        let Some(object) = self.allocate(length, filters.object_flags(), wants_stream) else {
            self.close_connection(reason::EXHAUSTED);
            return Step::Error;
        };
        let is_streamed = wants_stream || (object.is_passing() && !is_empty);
        if is_streamed {
            self.publish();
        }
        self.log_fetch_body(is_empty, is_streamed);
        let received = if is_empty { Ok(()) } else { self.receive_body(&object, &mut filters).await };
        match received {
            Ok(()) => {
                object.finish();
                self.log_totals(&filters, is_empty);
                self.release_connection();
                Step::Commit
            }
            Err(failure) => {
                self.log_body_failure(&failure);
                self.log_totals(&filters, is_empty);
                self.close_connection(reason::BODY);
                self.body_failed(&failure, is_streamed || object.has_overflowed())
            }
        }
    }

    /// What the body went through on its way in.
    fn log_totals(&mut self, filters: &Filters, is_empty: bool) {
        filters.log_totals(&mut self.log);
        if is_empty || self.log.is_masked(Tag::VfpAcct) {
            return;
        }
        let name = match self.task.attempt.length {
            BodyLength::None => return,
            BodyLength::Length(_) => "V1F_STRAIGHT",
            BodyLength::Chunked => "V1F_CHUNKED",
            BodyLength::UntilClose => "V1F_EOF",
        };
        let (pieces, bytes) = (self.task.attempt.received_pieces, self.task.life.account.response_body);
        self.log.record_fmt(Tag::VfpAcct, format_args!("{name} {pieces} {bytes}"));
    }

    fn log_fetch_body(&mut self, is_empty: bool, is_streamed: bool) {
        let (number, name) = match self.task.attempt.length {
            _ if is_empty => (0, "none"),
            BodyLength::None => (0, "none"),
            BodyLength::Chunked => (2, "chunked"),
            BodyLength::Length(_) => (3, "length"),
            BodyLength::UntilClose => (4, "eof"),
        };
        let how = if is_streamed { "stream" } else { "-" };
        self.log.record_fmt(Tag::FetchBody, format_args!("{number} {name} {how}"));
    }

    /// Opens the filters that VCL named, or those that follow from the response.
    fn open_filters(&mut self, is_empty: bool) -> Result<Filters, String> {
        let list = match &self.task.attempt.verdict.filters {
            _ if is_empty => Vec::new(),
            Some(list) => list.clone(),
            None => self.task.default_filters(),
        };
        self.log.record(Tag::Filters, &list);
        let attempt = &mut self.task.attempt;
        let length = if let BodyLength::Length(bytes) = attempt.length { Some(bytes) } else { None };
        let mut subject = Subject::new(Side::Beresp, &mut attempt.beresp, &mut self.log, length);
        Filters::open(&list, &mut subject, &self.task.order.parameters, &self.context.counters)
    }

    async fn receive_body(&mut self, object: &Arc<Object>, filters: &mut Filters) -> Result<(), BodyFailure> {
        let between = limit(self.between_bytes_limit());
        let most = self.fragment_bytes();
        let mut decoder = BodyDecoder::new(self.task.attempt.length);
        let mut connection =
            self.task.attempt.connection.take().ok_or(BodyFailure::Framing(None, BodyError::LengthShort))?;
        let result = loop {
            if decoder.is_done() {
                break Ok(());
            }
            if connection.received().is_empty() {
                match connection.receive(most, Instant::now() + between).await {
                    Ok(0) => {
                        break match decoder.end_of_input() {
                            Ok(()) => Ok(()),
                            Err(error) => Err(BodyFailure::Framing(None, error)),
                        };
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let errno = match error {
                            ReceiveError::Timeout => EAGAIN,
                            ReceiveError::Broken(errno) => errno,
                        };
                        break Err(match decoder.end_of_input() {
                            Ok(()) => BodyFailure::UntilClose(errno),
                            Err(error) => BodyFailure::Framing(Some(errno), error),
                        });
                    }
                }
            }
            let step = match decoder.step(connection.received()) {
                Ok(step) => step,
                Err(error) => break Err(BodyFailure::Framing(None, error)),
            };
            let data = &connection.received()[step.skip..step.skip + step.data];
            self.count_response_body(data.len() as u64);
            let stored = if filters.is_empty() {
                self.store(object, data).await.map_err(BodyFailure::from)
            } else if data.is_empty() {
                Ok(())
            } else {
                self.store_filtered(object, Some(data), filters).await
            };
            if let Err(failure) = stored {
                break Err(failure);
            }
            connection.consume(step.skip + step.data);
        };
        self.task.attempt.connection = Some(connection);
        result?;
        if filters.is_empty() { Ok(()) } else { self.store_filtered(object, None, filters).await }
    }

    /// Adds what comes of some of the body, or of its end (`None`): step by step, each waiting for room.
    async fn store_filtered(
        &mut self,
        object: &Arc<Object>,
        input: Option<&[u8]>,
        filters: &mut Filters,
    ) -> Result<(), BodyFailure> {
        let mut turns = Turns::default();
        let mut rest = input;
        loop {
            let step = filters.step(rest).map_err(BodyFailure::Filter)?;
            self.store(object, step.bytes).await?;
            if step.flow != Flow::More {
                return Ok(());
            }
            let taken = step.taken;
            rest = rest.map(|rest| &rest[taken..]);
            turns.take().await;
        }
    }

    /// Adds body bytes to the object, waiting for room. A body that cannot be kept is passed on from here on.
    ///
    /// # Errors
    /// [`AppendError`].
    pub(super) async fn store(&mut self, object: &Arc<Object>, bytes: &[u8]) -> Result<(), AppendError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if object.is_passing() {
            self.hold_passing(object, bytes.len());
        }
        let before = object.available_bytes();
        match object.append(bytes).await {
            Ok(()) => {}
            Err(AppendError::Abandoned) => return Err(AppendError::Abandoned),
            Err(error) => {
                let stored = (object.available_bytes() - before) as usize;
                self.overflow(object, error)?;
                let under_way = self.in_flight_bytes();
                self.task.life.held.add(&self.context.memory, under_way);
                object.append(&bytes[stored..]).await?;
            }
        }
        self.task.attempt.kept.body_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Counts what a body that passes by has under way, which is little while requests hold too much.
    fn hold_passing(&mut self, object: &Object, more: usize) {
        let memory = &self.context.memory;
        let most = self.in_flight_bytes();
        let most = if memory.is_short() { most.min(PASS_IN_FLIGHT_BYTES_SHORT) } else { most };
        object.limit_in_flight(most);
        let under_way = object.under_way_bytes();
        self.task
            .life
            .held
            .set(memory, self.task.life.held_aside_bytes + under_way + more.min(most.saturating_sub(under_way)));
    }

    /// Counts what is needed to receive the body.
    ///
    /// # Errors
    /// There is no room for its filters; nothing of it has been used yet.
    fn hold_filters(&mut self, filters: &Filters, is_empty: bool) -> Result<(), &'static str> {
        if is_empty {
            return Ok(());
        }
        if !filters.is_empty() && self.context.memory.is_short() {
            self.context.count(Main::ReqRefused);
            return Err(MEMORY_SHORT);
        }
        self.task.life.held_aside_bytes = BUFFER_BYTES_LONG + filters.memory_bytes() + self.bytes_of_vcl();
        self.task.life.held.set(&self.context.memory, self.task.life.held_aside_bytes);
        Ok(())
    }

    /// What comes after a body that did not come whole: an error response as long as nobody has seen anything, else the
    /// end. Nothing of it stays in the cache. A client that went away is no failure of the fetch.
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
            BodyFailure::Framing(errno, error) => {
                let mut reason = reason_of(*error);
                if let Some(errno) = errno {
                    self.log.record(Tag::FetchError, backend::backend::error_text(*errno).as_bytes());
                    reason = if *errno == EAGAIN { Reason::BetweenBytesTimeout } else { Reason::OriginClosed };
                }
                self.log_fetch_error(reason, error.text());
            }
            BodyFailure::UntilClose(errno) => {
                self.log.record(Tag::FetchError, backend::backend::error_text(*errno).as_bytes());
                let reason = if *errno == EAGAIN { Reason::BetweenBytesTimeout } else { Reason::OriginClosed };
                self.log_fetch_error(reason, "eof socket fail");
            }
            BodyFailure::Filter(error) => {
                if let Some(record) = error.fetch_detail() {
                    self.log.record(Tag::Gzip, record.as_bytes());
                }
                self.log_fetch_error(Reason::BodyNotProcessed, error.text());
            }
            BodyFailure::Template => self.log_fetch_error(Reason::BodyBroken, "Template object failed"),
            BodyFailure::Store => self.log_fetch_error(Reason::StorageRefused, "Could not get storage"),
            BodyFailure::Abandoned => self.log.record(Tag::Debug, b"Fetch: Pass delivery abandoned"),
        }
    }

    fn count_response_body(&mut self, bytes: u64) {
        self.task.attempt.received_pieces += u64::from(bytes > 0);
        self.task.life.account.response_body += bytes;
        self.count_backend(Vbe::BerespBodybytes, bytes);
    }

    /// What an object is beyond what filters did to it.
    pub(super) fn response_flags(&self) -> ObjectFlags {
        if self.task.attempt.beresp.status() == 200 && semantics::revalidate::is_possible(&self.task.attempt.beresp) {
            ObjectFlags::CAN_REVALIDATE
        } else {
            ObjectFlags::NONE
        }
    }
}

impl FetchTask {
    /// The list that `beresp.filters` shows unless VCL set it: each name with a blank before it.
    pub(super) fn default_filters(&self) -> Vec<u8> {
        let encoding = self.attempt.beresp.get("Content-Encoding");
        let is_gzipped = encoding.is_some_and(|value| value.eq_ignore_ascii_case(b"gzip"));
        let is_plain = encoding.is_none();
        let supported = self.order.gzip_support;
        let gunzips = supported && self.attempt.verdict.do_gunzip && is_gzipped;
        let gzips = supported && self.attempt.verdict.do_gzip && is_plain;
        let mut list = Vec::new();
        if gunzips {
            list.extend_from_slice(b" gunzip");
        }
        if gzips {
            list.extend_from_slice(b" gzip");
        }
        if is_gzipped && !gunzips && self.order.vcl.generation >= Generation::V3 {
            list.extend_from_slice(b" testgunzip");
        }
        list
    }
}
