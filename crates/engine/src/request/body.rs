//! The client's request body: its place, and how it is read.

use super::Run;
use super::client_body::{ClientBody, ReadSoFar};
use crate::bodies::filters::{Filters, Subject};
use crate::bodies::pull::{Failure, Next};
use crate::bodies::request::{BodyReadError, HeldBody, RequestBody, feed};
use crate::exchange::BodyBroken;
use crate::logged::{self, REQ};
use crate::memory::MEMORY_SHORT;
use body::{FilterError, Side};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use surface::close_reason::CloseReason;
use surface::limits::{FILTER_STEP_BYTES_MAX, UPLOAD_REST_BYTES_MAX};
use surface::tag::Tag;

/// Most bytes of a body that a transport returns at a time.
const READ_BYTES: usize = 16 << 10;

/// Reason why a body could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadFailure {
    Broken(BodyBroken),
    Filter(FilterError),
}

impl ReadFailure {
    fn text(self) -> &'static str {
        match self {
            ReadFailure::Broken(BodyBroken(text)) => text,
            ReadFailure::Filter(error) => error.text(),
        }
    }
}

impl From<Failure> for ReadFailure {
    fn from(failure: Failure) -> ReadFailure {
        match failure {
            Failure::Filter(error) => ReadFailure::Filter(error),
            // A `Handed` supply never fails, so a filter must have announced more than it received.
            Failure::Supply | Failure::Short => ReadFailure::Broken(BodyBroken("short body")),
        }
    }
}

impl Run<'_> {
    /// The body in the form that a fetch accepts. A body that is still in the connection is fed to
    /// the fetch by [`Run::feed_fetch`].
    pub(super) fn body_for_fetch(&mut self) -> RequestBody {
        let task = &mut self.request.task;
        match &task.life.body {
            ClientBody::None => RequestBody::None,
            ClientBody::Cached(body) => RequestBody::Cached(body.clone()),
            ClientBody::Taken | ClientBody::Failed | ClientBody::Unread { is_begun: true, .. } => {
                if self.announces_body() { RequestBody::Taken } else { RequestBody::None }
            }
            ClientBody::Unread { length, .. } => {
                let length = *length;
                let changes = self.open_filters().is_some_and(|stages| stages.change_length());
                let (feed, body) = feed(length.filter(|_| !changes));
                if self.follows_rfc() && self.exchange.expects_continue() {
                    feed.awaits_leave();
                }
                self.request.task.found.feed = Some(feed);
                body
            }
        }
    }

    /// True if the request still has the headers of a body: VCL may have removed them, to send
    /// another request after a restart. Filters remove the length themselves.
    pub(super) fn announces_body(&self) -> bool {
        let task = &self.request.task;
        task.choices.is_body_filtered
            || task.life.is_length_unsaid
            || task.request.has("Transfer-Encoding")
            || task.request.get("Content-Length").is_some_and(|value| value != b"0")
    }

    /// The filters of `req.filters`, set up when the body is first needed; this changes the headers
    /// that describe the body. `None` when the body passes unchanged.
    fn open_filters(&mut self) -> Option<&mut Filters> {
        let request = &mut *self.request;
        let task = &mut request.task;
        // Only once: the headers have changed by then, so a second call would find nothing to do.
        if !task.choices.is_body_filtered
            && let Some(list) = task.choices.body_filters.take()
        {
            let length = if let ClientBody::Unread { length, .. } = &task.life.body { *length } else { None };
            let mut subject = Subject::new(Side::Req, &mut task.request, &mut request.log, length);
            let parameters = self.context.engine.parameters.load();
            // The names were checked when VCL set the filters.
            task.choices.body_stages = Filters::open(&list, &mut subject, &parameters, &self.context.counters).ok();
            task.choices.is_body_filtered = task.choices.body_stages.as_ref().is_some_and(|stages| !stages.is_empty());
            // A rollback undoes VCL's changes to the request, but not the filtering of its body.
            match task.request.get("Content-Encoding") {
                Some(coding) => task.original.set("Content-Encoding", coding),
                None => _ = task.original.unset("Content-Encoding"),
            }
            task.choices.body_filters = Some(list);
        }
        task.choices.body_stages.as_mut().filter(|stages| !stages.is_empty())
    }

    /// Counts the memory of the body's filters and of the pieces on their way through them.
    pub(super) fn hold_body_filters(&mut self) {
        let task = &mut self.request.task;
        if let Some(stages) = task.choices.body_stages.as_ref().filter(|stages| !stages.is_empty()) {
            task.life.held.add(&self.context.memory, stages.memory_bytes() + READ_BYTES + FILTER_STEP_BYTES_MAX);
        }
    }

    /// The next piece of the body after its filters; `None` at its end. `read` is the position so
    /// far. Cancelling a wait loses nothing.
    fn poll_next_piece(
        &mut self,
        context: &mut Context<'_>,
        read: &mut ReadSoFar,
    ) -> Poll<Result<Option<Vec<u8>>, ReadFailure>> {
        let steps_at_once = self.request.task.choices.body_stages.as_ref().map_or(1, Filters::steps_at_once);
        for _ in 0..steps_at_once {
            let stages = self.request.task.choices.body_stages.as_mut().filter(|stages| !stages.is_empty());
            let Some(stages) = stages else { return self.poll_read_piece(context) };
            match read.pull.next(&mut read.handed, stages) {
                Next::Bytes { bytes, .. } => return Poll::Ready(Ok(Some(bytes.to_vec()))),
                Next::Nothing => {}
                Next::Waits => read.handed.give(ready!(self.poll_read_piece(context))?),
                Next::Ended => return Poll::Ready(Ok(None)),
                Next::Failed(failure) => return Poll::Ready(Err(failure.into())),
            }
        }
        // Yields to the other tasks.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    async fn next_piece(&mut self, read: &mut ReadSoFar) -> Result<Option<Vec<u8>>, ReadFailure> {
        poll_fn(|context| self.poll_next_piece(context, read)).await
    }

    /// Feeds the client's body to the fetch. Returns when the fetch has all of it or accepts no
    /// more. Can be cancelled and called again.
    pub(super) async fn feed_fetch(&mut self) {
        if self.request.task.found.fed.is_none() {
            if !self.begin_feeding().await {
                return;
            }
            self.request.task.found.fed = Some(Box::default());
        }
        poll_fn(|context| {
            let mut read = self.request.task.found.fed.take().unwrap_or_default();
            let polled = self.poll_feed(context, &mut read);
            self.request.task.found.fed = Some(read);
            polled
        })
        .await;
    }

    /// Waits until the fetch requests the body, and begins to receive it. False if there is nothing
    /// to feed.
    pub(super) async fn begin_feeding(&mut self) -> bool {
        let is_wanted = poll_fn(|context| match &self.request.task.found.feed {
            None => Poll::Ready(false),
            Some(feed) => feed.poll_wanted(context),
        });
        if !is_wanted.await {
            self.request.task.found.feed = None;
            return false;
        }
        let task = &self.request.task;
        if self.follows_rfc() && task.request.has("Trailer") && !task.choices.is_body_filtered {
            self.exchange.keep_trailers();
        }
        self.begin_body().await;
        true
    }

    /// Feeds the fetch as long as it accepts more and the client sends it. Ready when the fetch has
    /// all of it or accepts no more.
    pub(super) fn poll_feed(&mut self, context: &mut Context<'_>, read: &mut ReadSoFar) -> Poll<()> {
        loop {
            let Some(feed) = &self.request.task.found.feed else { return Poll::Ready(()) };
            if !ready!(feed.poll_wanted(context)) {
                self.request.task.found.feed = None;
                return Poll::Ready(());
            }
            let piece = ready!(self.poll_next_piece(context, read));
            let found = &mut self.request.task.found;
            let Some(feed) = found.feed.take() else { return Poll::Ready(()) };
            match piece {
                Ok(Some(piece)) => {
                    feed.push(piece);
                    found.feed = Some(feed);
                    continue;
                }
                Ok(None) => {
                    self.body_is_read(ClientBody::Taken);
                    feed.finish(self.exchange.take_trailers());
                }
                Err(failure) => {
                    self.body_failed(failure);
                    feed.fail(BodyReadError(failure.text().to_owned()));
                }
            }
            return Poll::Ready(());
        }
    }

    /// Reads the unused rest of the body, so that the next request can follow. Not done if the
    /// session closes anyway.
    pub(super) async fn drain_body(&mut self) {
        let task = &self.request.task;
        if !matches!(task.life.body, ClientBody::Unread { .. })
            || task.life.close.is_some()
            || task.found.feed.is_some()
        {
            return;
        }
        if !self.exchange.must_drain(&task.response) {
            return;
        }
        // A client that still waits for `100 Continue` should not send its body in vain. Compat:
        // Varnish sends the 100.
        if task.found.fed.is_some() || self.exchange.owes_continue() && self.follows_rfc() {
            return Box::pin(self.leave_body()).await;
        }
        Box::pin(self.drain_unread_body()).await;
    }

    /// Reads the received part of a body whose rest the fetch does not need. If more is to follow,
    /// the connection ends after the response, which is sent first: its client should not have to
    /// send everything before it gets the response. Source: RFC 9112 §9.3, §9.6.
    async fn leave_body(&mut self) {
        let mut bytes_left = UPLOAD_REST_BYTES_MAX;
        let read = poll_fn(|context| {
            loop {
                match self.poll_read_data(context) {
                    Poll::Ready(Ok(Some(count))) if count <= bytes_left => {
                        self.exchange.consume_body(count);
                        bytes_left -= count;
                    }
                    Poll::Ready(Ok(Some(_))) | Poll::Pending => return Poll::Ready(Ok(false)),
                    Poll::Ready(Ok(None)) => return Poll::Ready(Ok(true)),
                    Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                }
            }
        });
        match read.await {
            Ok(true) => self.body_is_read(ClientBody::Taken),
            Ok(false) => self.close(CloseReason::RespClose),
            Err(failure) => self.body_failed(failure),
        }
    }

    async fn drain_unread_body(&mut self) {
        self.begin_body().await;
        loop {
            match self.read_data().await {
                Ok(Some(count)) => self.exchange.consume_body(count),
                Ok(None) => return self.body_is_read(ClientBody::Taken),
                Err(failure) => return self.body_failed(failure),
            }
        }
    }

    /// Reads and keeps the body, in `req.storage` or else Transient: `std.cache_req_body`. False
    /// when the body is longer than `limit`, there is no room for it, or it ends early.
    pub(super) async fn cache_body(&mut self, limit: u64) -> bool {
        match &self.request.task.life.body {
            ClientBody::None | ClientBody::Cached(_) => return true,
            ClientBody::Taken | ClientBody::Failed | ClientBody::Unread { is_begun: true, .. } => return false,
            ClientBody::Unread { length: Some(length), .. } if *length > limit => {
                return self.cannot_cache("Request body too big to cache");
            }
            ClientBody::Unread { .. } => {}
        }
        let names_filters = self.request.task.choices.body_filters.as_ref().is_some_and(|list| !list.is_empty());
        if names_filters && !self.may_hold_more(true) {
            return self.cannot_cache(MEMORY_SHORT);
        }
        let storages = &self.context.engine.storages;
        let storage = self.request.task.choices.storage.unwrap_or(storages.transient());
        let room = storages.store(storage).reserve(0, storage == storages.transient());
        self.begin_body().await;
        let Ok(mut room) = room else { return self.cannot_cache("Could not get storage") };
        self.open_filters();
        self.hold_body_filters();
        let mut read = ReadSoFar::default();
        let mut held = Vec::new();
        loop {
            match self.next_piece(&mut read).await {
                Ok(Some(piece)) => {
                    if (held.len() + piece.len()) as u64 > limit {
                        return self.cannot_cache("Request body too big to cache");
                    }
                    if room.grow(piece.len() as u64).is_err() {
                        return self.cannot_cache("Could not get storage");
                    }
                    held.extend_from_slice(&piece);
                }
                Ok(None) => {
                    // The vector must not take more memory than is counted.
                    held.shrink_to_fit();
                    self.announce_held(held.len());
                    self.body_is_read(ClientBody::Cached(HeldBody::new(held, room)));
                    return true;
                }
                Err(failure) => {
                    self.body_failed(failure);
                    return false;
                }
            }
        }
    }

    /// A kept body has a known length, however it was received. From now on the request has a
    /// Content-Length, even after a rollback.
    fn announce_held(&mut self, bytes: usize) {
        let request = &mut *self.request;
        let task = &mut request.task;
        let mut number = itoa::Buffer::new();
        let length = number.format(bytes).as_bytes();
        if task.request.get("Content-Length") != Some(length) {
            logged::unset(&mut request.log, REQ, &mut task.request, "Transfer-Encoding");
            logged::force(&mut request.log, REQ, &mut task.request, "Content-Length", length);
        }
        task.original.unset("Transfer-Encoding");
        task.original.set("Content-Length", length);
    }

    /// A body that cannot be kept is not read to its end either; its rest could be mistaken for the
    /// next request.
    fn cannot_cache(&mut self, why: &str) -> bool {
        self.request.task.life.body = ClientBody::Failed;
        self.log().record(Tag::FetchError, why.as_bytes());
        self.close(CloseReason::RxBody);
        false
    }

    /// Sends `100 Continue` if the client waits for it.
    pub(super) async fn send_pending_continue(&mut self) {
        if self.exchange.take_continue() {
            self.send_bare(100).await;
        }
    }

    /// Called when the body is needed. Compat: the Storage record is written where Varnish
    /// allocates storage, and that uses up `req.storage`.
    async fn begin_body(&mut self) {
        if matches!(self.request.task.life.body, ClientBody::Unread { .. }) {
            let storage = self.request.task.choices.storage.take();
            self.log_storage(storage.unwrap_or(self.context.engine.storages.transient()));
            self.send_pending_continue().await;
        }
    }

    /// Logs that something is stored outside the cache.
    pub(super) fn log_storage(&mut self, storage: u32) {
        if let Some(storage) = self.context.engine.storages.name(storage) {
            self.request.log.record_parts(Tag::Storage, &[storage.kind.as_bytes(), b" ", storage.name.as_bytes()]);
        }
    }

    fn body_is_read(&mut self, body: ClientBody) {
        self.log_received_body();
        self.request.task.life.body = body;
        self.request.task.choices.body_stages = None;
        self.timestamp("ReqBody");
    }

    /// Logs how the body was received, before that state is reset.
    fn log_received_body(&mut self) {
        if !matches!(self.request.task.life.body, ClientBody::Unread { .. }) {
            return;
        }
        let name = self.exchange.body_source();
        let task = &self.request.task;
        let (pieces, bytes) = (task.life.received_pieces, task.life.account.request_body);
        self.log().record_fmt(Tag::VfpAcct, format_args!("{name} {pieces} {bytes}"));
    }

    fn body_failed(&mut self, failure: ReadFailure) {
        self.log().record(Tag::FetchError, failure.text().as_bytes());
        self.log_received_body();
        self.request.task.life.body = ClientBody::Failed;
        self.request.task.choices.body_stages = None;
        self.close(CloseReason::RxBody);
        self.timestamp("ReqBody");
    }

    fn poll_read_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Vec<u8>>, ReadFailure>> {
        let Some(count) = ready!(self.poll_read_data(context))? else { return Poll::Ready(Ok(None)) };
        let piece = self.exchange.body()[..count].to_vec();
        self.exchange.consume_body(count);
        Poll::Ready(Ok(Some(piece)))
    }

    async fn read_data(&mut self) -> Result<Option<usize>, ReadFailure> {
        poll_fn(|context| self.poll_read_data(context)).await
    }

    /// Waits for the next bytes of the body. Returns the number of bytes in
    /// [`Exchange::body`](crate::exchange::Exchange::body), for the caller to consume; `None` at
    /// the end of the body. Cancelling a wait loses nothing.
    fn poll_read_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<usize>, ReadFailure>> {
        // A client that receives at the same time may have nothing to send; the fetch decides how
        // long both may be silent.
        let idle = match self.request.task.found.duplex {
            Some(_) => f64::INFINITY,
            None => self.session.timeouts.idle.unwrap_or(self.request.task.settings.timeout_idle),
        };
        let life = &mut self.request.task.life;
        let ClientBody::Unread { is_begun, .. } = &mut life.body else { return Poll::Ready(Ok(None)) };
        let polled = self.exchange.poll_body(context, idle);
        *is_begun |= self.exchange.is_body_begun();
        let count = ready!(polled).map_err(ReadFailure::Broken)?;
        if count == 0 {
            return Poll::Ready(Ok(None));
        }
        life.account.request_body += count as u64;
        life.received_pieces += 1;
        Poll::Ready(Ok(Some(count)))
    }
}
