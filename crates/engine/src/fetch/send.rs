//! Send: a connection is got, from the pool or new, and the request goes out.
//!
//! A reused connection may turn out to be dead; then the request is sent once more on a new one (`wants_fresh`), if nothing
//! of the client's body is lost by that, and nobody can take it for a second order: it is idempotent, or the connection took
//! no byte of it (`docs/decisions/a-request-is-placed-once.md`). The framing of the request body is ours whatever VCL did to the headers: exactly the
//! announced length, or chunked. Next file: `response.rs`.

use super::connection::{OriginConnection, limit, reason};
use super::task::FetchTask;
use super::{Fetch, Step};
use crate::bodies::filters::Filters;
use crate::bodies::request::RequestBody;
use crate::context::Loop;
use crate::logged::{self, BEREQ};
use crate::turns::Turns;
use backend::director::trail::Trail;
use backend::{Notes, OpenError, OpenRequest, open};
use body::Flow;
use http1::{BodyLength, LAST_CHUNK};
use shm::log::LogBuffer;
use std::rc::Rc;
use std::sync::Arc;
use surface::counter::{Main, Vbe};
use surface::reason::Reason;
use surface::tag::Tag;

/// Why a request was not sent whole.
enum SendError {
    /// The origin does not take it: error number.
    Origin(i32),
    /// The client does not give it.
    Client(String),
}

/// What an operator should know of a backend that gave no connection.
pub(crate) fn reason_of(error: &OpenError) -> Reason {
    match error {
        OpenError::None => Reason::NoBackend,
        OpenError::Unhealthy(_) => Reason::BackendSick,
        OpenError::Busy(_) => Reason::BackendBusy,
        OpenError::Failed(_, 0) => Reason::BackendHeldDown,
        OpenError::Failed(..) => Reason::ConnectFailed,
        OpenError::ProxyWrite(..) => Reason::ProxyHeaderFailed,
    }
}

/// A cached body up to this size is sent in one piece with the head, in bytes.
const JOINED_BODY_BYTES_MAX: usize = 16 << 10;

impl Fetch {
    pub(super) async fn send(&mut self) -> Step {
        // Without the body that was taken before a restart the request would be another one, whose answer must neither be
        // sent nor cached. VCL may say that there is none (`unset bereq.body`).
        if let RequestBody::Taken = self.task.life.body {
            self.log.record(Tag::VCLError, b"Uncached req.body can only be consumed once");
            self.log_fetch_error(Reason::ClientBodyLost, "req.body read error: it was sent before and not kept");
            self.timestamp("Beresp");
            return Step::Error;
        }
        if !self.task.attempt.wants_fresh {
            self.timestamp("Fetch");
            self.await_first_lookups().await;
            self.task.route.trail = Trail::default();
            if let Err((reason, text)) = self.resolve() {
                self.log_fetch_error(reason, &text);
                self.timestamp("Beresp");
                return Step::Error;
            }
        }
        while let Err((reason, text)) = self.connect().await {
            if self.task.order.vcl.is_legacy() && self.resolve().is_ok() {
                // The director has another.
                self.log.record(Tag::FetchError, text.as_bytes());
                continue;
            }
            self.log_fetch_error(reason, &text);
            self.timestamp("Beresp");
            return Step::Error;
        }
        if let Err(text) = self.open_request_filters() {
            self.log_fetch_error(Reason::ClientBodyLost, &text);
            self.close_connection(reason::BODY);
            self.timestamp("Beresp");
            return Step::Error;
        }
        self.frame_body();
        match self.transmit().await {
            Ok(()) => {
                self.timestamp("Bereq");
                Step::Response
            }
            Err(error) => self.send_failed(error),
        }
    }

    /// Waits until the names that the director leads to have been looked up once.
    async fn await_first_lookups(&self) {
        let Some(director) = self.task.choices.director else { return };
        let names = {
            let notes = Notes::new();
            self.task.order.vcl.directors.first_lookups(director, &self.resolve_at(self.now(), &notes))
        };
        for name in names {
            name.ready().await;
        }
    }

    /// Follows directors to a backend; in the old dialects to the next, when one gave no connection.
    fn resolve(&mut self) -> Result<(), (Reason, String)> {
        let notes = Notes::new();
        let mut trail = std::mem::take(&mut self.task.route.trail);
        let context = self.resolve_at(self.now(), &notes);
        let resolved = match self.task.order.vcl.is_legacy() {
            true => trail.next(&self.task.order.vcl.directors, self.task.choices.director, &context),
            false => self.task.order.vcl.directors.resolve(self.task.choices.director, &context),
        };
        self.task.route.trail = trail;
        crate::vcl_context::log_notes(&self.context.engine, &mut self.log, &notes);
        let backend = resolved.map_err(|none| (Reason::NoBackend, none.text()))?;
        let host = &backend.definition().host_header;
        if self.task.route.has_backend_host {
            logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, "Host");
        }
        if !self.task.bereq.has("Host") && !host.is_empty() {
            logged::append(&mut self.log, BEREQ, &mut self.task.bereq, "Host", &[host.as_bytes()]);
            self.task.route.has_backend_host = self.task.order.vcl.is_legacy();
        }
        self.task.route.backend = Some(backend);
        self.refused_by_saint_mode().map_or(Ok(()), |text| Err((Reason::BackendSick, text)))
    }

    async fn connect(&mut self) -> Result<(), (Reason, String)> {
        let context = Rc::clone(&self.context);
        let Some(backend) = self.task.route.backend.clone() else {
            return Err((Reason::NoBackend, "No backend".to_owned()));
        };
        let clock = || context.clock.now();
        let connection = open(&OpenRequest {
            backend: &backend,
            pool: &context.pool,
            dial: &*context.dial,
            parameters: &self.task.order.parameters,
            counters: &context.counters,
            clock: &clock,
            connect_timeout: (self.task.choices.connect_timeout > 0.0).then_some(self.task.choices.connect_timeout),
            fresh: self.task.attempt.wants_fresh,
            client: Some((self.task.order.peer.client, self.task.order.peer.server)),
        })
        .await
        .map_err(|error| (reason_of(&error), error.text()))?;
        self.timestamp("Connected");
        self.log.record(Tag::BackendOpen, connection.open_record().as_bytes());
        self.task.route.address = connection.ends().remote;
        self.task.life.account.request_head += connection.proxy_header_bytes;
        self.task.attempt.connection = Some(OriginConnection::new(connection));
        Ok(())
    }

    /// Makes the headers say how the body will be sent.
    fn frame_body(&mut self) {
        let announced = self.announced_length();
        let (log, bereq) = (&mut self.log, &mut self.task.bereq);
        match (&self.task.life.body, announced) {
            (RequestBody::None | RequestBody::Taken, _) => {
                logged::unset(log, BEREQ, bereq, "Transfer-Encoding");
                if bereq.get("Content-Length").is_some_and(|value| value != b"0") {
                    logged::unset(log, BEREQ, bereq, "Content-Length");
                }
            }
            (RequestBody::Cached(_) | RequestBody::Stream { .. }, Some(length)) => {
                logged::unset(log, BEREQ, bereq, "Transfer-Encoding");
                logged::force(log, BEREQ, bereq, "Content-Length", itoa::Buffer::new().format(length).as_bytes());
            }
            (RequestBody::Cached(_) | RequestBody::Stream { .. }, None) => {
                logged::unset(log, BEREQ, bereq, "Content-Length");
                logged::force(log, BEREQ, bereq, "Transfer-Encoding", b"chunked");
            }
        }
    }

    async fn transmit(&mut self) -> Result<(), SendError> {
        let stall = limit(self.first_byte_limit());
        let mut out = Vec::with_capacity(1024);
        http1::write_request_head(&self.task.bereq, &mut out);
        let head_bytes = out.len() as u64;
        self.count_request_head(head_bytes);
        let cached = match &self.task.life.body {
            RequestBody::Cached(body) => Some(Rc::clone(body.bytes())),
            RequestBody::None | RequestBody::Taken | RequestBody::Stream { .. } => None,
        };
        if let Some(bytes) = &cached
            && let Some(mut stages) = self.take_stages()
        {
            self.send_bytes(&out, stall).await?;
            self.send_filtered(Some(bytes), &mut stages, true, &mut out, stall).await?;
            self.send_filtered(None, &mut stages, true, &mut out, stall).await?;
            return self.send_last_chunk(stall).await;
        }
        if let Some(bytes) = cached {
            if bytes.len() <= JOINED_BODY_BYTES_MAX {
                out.extend_from_slice(&bytes);
                self.send_bytes(&out, stall).await?;
            } else {
                self.send_bytes(&out, stall).await?;
                self.send_bytes(&bytes, stall).await?;
            }
            self.count_request_body(bytes.len() as u64);
            return Ok(());
        }
        self.send_bytes(&out, stall).await?;
        if let RequestBody::Stream { .. } = &self.task.life.body {
            let is_chunked = self.announced_length().is_none();
            self.send_stream(is_chunked, &mut out, stall).await?;
        }
        Ok(())
    }

    /// Sends the client's body piece by piece. Exactly the announced length goes out, or the fetch fails.
    async fn send_stream(
        &mut self,
        is_chunked: bool,
        out: &mut Vec<u8>,
        stall: std::time::Duration,
    ) -> Result<(), SendError> {
        let is_announced = self.task.life.body.length().is_some();
        let mut remaining = self.task.life.body.length().unwrap_or(u64::MAX);
        let mut stages = self.take_stages();
        self.task.life.is_body_begun = true;
        while let Some(piece) = self.task.life.body.next().await {
            let piece = piece.map_err(|error| SendError::Client(error.0))?;
            if piece.is_empty() {
                continue;
            }
            remaining = remaining
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| SendError::Client("more than announced".to_owned()))?;
            match &mut stages {
                None => self.send_piece(&piece, is_chunked, out, stall).await?,
                Some(stages) => self.send_filtered(Some(&piece), stages, is_chunked, out, stall).await?,
            }
        }
        if let Some(stages) = &mut stages {
            self.send_filtered(None, stages, is_chunked, out, stall).await?;
        }
        if is_announced && remaining > 0 {
            return Err(SendError::Client("less than announced".to_owned()));
        }
        if is_chunked { self.send_last_chunk(stall).await } else { Ok(()) }
    }

    async fn send_last_chunk(&mut self, stall: std::time::Duration) -> Result<(), SendError> {
        self.send_bytes(LAST_CHUNK, stall).await?;
        self.count_request_body(LAST_CHUNK.len() as u64);
        Ok(())
    }

    /// Sends what comes of some of the body, or of its end (`None`), through filters: step by step.
    async fn send_filtered(
        &mut self,
        input: Option<&[u8]>,
        stages: &mut Filters,
        is_chunked: bool,
        out: &mut Vec<u8>,
        stall: std::time::Duration,
    ) -> Result<(), SendError> {
        let mut turns = Turns::default();
        let mut rest = input;
        loop {
            let step = stages.step(rest).map_err(|error| SendError::Client(error.text().to_owned()))?;
            self.send_piece(step.bytes, is_chunked, out, stall).await?;
            if step.flow != Flow::More {
                return Ok(());
            }
            let taken = step.taken;
            rest = rest.map(|rest| &rest[taken..]);
            turns.take().await;
        }
    }

    /// Sends some of the body; of nothing, nothing: an empty chunk would be the last.
    async fn send_piece(
        &mut self,
        piece: &[u8],
        is_chunked: bool,
        out: &mut Vec<u8>,
        stall: std::time::Duration,
    ) -> Result<(), SendError> {
        if piece.is_empty() {
            return Ok(());
        }
        if !is_chunked {
            self.send_bytes(piece, stall).await?;
            self.count_request_body(piece.len() as u64);
            return Ok(());
        }
        out.clear();
        http1::chunk_header(piece.len(), out);
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
        self.send_bytes(out, stall).await?;
        self.count_request_body(out.len() as u64);
        Ok(())
    }

    async fn send_bytes(&mut self, bytes: &[u8], stall: std::time::Duration) -> Result<(), SendError> {
        match &mut self.task.attempt.connection {
            Some(connection) => connection.send(bytes, stall).await.map_err(SendError::Origin),
            None => Err(SendError::Origin(0)),
        }
    }

    fn send_failed(&mut self, error: SendError) -> Step {
        match error {
            SendError::Origin(errno) => {
                let has_answer =
                    self.task.attempt.connection.as_ref().is_some_and(|connection| !connection.received().is_empty());
                if has_answer {
                    // It did not want the rest; what it says comes first.
                    if let Some(connection) = &mut self.task.attempt.connection {
                        connection.must_close(reason::SEND);
                    }
                    self.timestamp("Bereq");
                    return Step::Response;
                }
                let text = backend::backend::error_text(errno);
                self.log_fetch_error(Reason::RequestNotSent, &format!("backend write error: {errno} ({text})"));
                if self.may_try_again() {
                    return self.try_again(reason::SEND);
                }
                self.close_connection(reason::SEND);
            }
            SendError::Client(text) => {
                self.log_fetch_error(Reason::ClientBodyLost, &format!("req.body read error: {text}"));
                self.close_connection(reason::BODY);
            }
        }
        self.timestamp("Beresp");
        Step::Error
    }

    /// Whether what went wrong may be the fault of a reused connection, and the request can be sent again without the risk
    /// that the origin obeys twice. Source: RFC 9110 §9.2.2, RFC 9112 §9.3.1.
    pub(super) fn may_try_again(&self) -> bool {
        let Some(connection) = &self.task.attempt.connection else { return false };
        let is_harmless = !connection.has_sent() || semantics::method::is_idempotent(self.task.bereq.method());
        let may_be_dead = connection.inner().reused && !connection.has_answered();
        may_be_dead && is_harmless && !self.task.attempt.wants_fresh && self.can_send_again()
    }

    /// Whether nothing of the client's body is lost.
    pub(super) fn can_send_again(&self) -> bool {
        match &self.task.life.body {
            RequestBody::None | RequestBody::Cached(_) => true,
            RequestBody::Stream { .. } => !self.task.life.is_body_begun,
            RequestBody::Taken => !self.task.life.is_body_begun,
        }
    }

    /// Gives a dead reused connection up and sends again on a new one.
    pub(super) fn try_again(&mut self, why: &'static str) -> Step {
        self.close_connection(why);
        self.task.attempt.wants_fresh = true;
        self.context.count(Main::BackendRetry);
        Step::Send
    }

    /// Closes the connection, if there is one.
    pub(super) fn close_connection(&mut self, why: &'static str) {
        self.task.close_connection(&mut self.log, why);
    }

    /// Gives the connection back to the pool, or closes it: after a whole response.
    pub(super) fn release_connection(&mut self) {
        self.task.release_connection(&self.context, &mut self.log);
    }

    /// `first_byte_timeout` as it applies: VCL's, the backend's, the parameter's; seconds.
    pub(super) fn first_byte_limit(&self) -> f64 {
        let of_backend = self.task.route.backend.as_ref().and_then(|backend| backend.definition().first_byte_timeout);
        applies(self.task.choices.first_byte_timeout, of_backend, self.task.order.parameters.first_byte_timeout)
    }

    /// `between_bytes_timeout` as it applies, seconds.
    pub(super) fn between_bytes_limit(&self) -> f64 {
        let of_backend =
            self.task.route.backend.as_ref().and_then(|backend| backend.definition().between_bytes_timeout);
        applies(self.task.choices.between_bytes_timeout, of_backend, self.task.order.parameters.between_bytes_timeout)
    }

    fn count_request_head(&mut self, bytes: u64) {
        self.task.life.account.request_head += bytes;
        self.count_backend(Vbe::BereqHdrbytes, bytes);
    }

    fn count_request_body(&mut self, bytes: u64) {
        self.task.life.account.request_body += bytes;
        self.count_backend(Vbe::BereqBodybytes, bytes);
    }

    /// Adds to a counter of the backend in use.
    pub(super) fn count_backend(&self, counter: Vbe, amount: u64) {
        if let Some(backend) = self.task.route.backend.as_ref().map(Arc::as_ref) {
            backend.count(counter, amount);
        }
    }
}

impl FetchTask {
    fn close_connection(&mut self, log: &mut LogBuffer, why: &'static str) {
        if let Some(connection) = self.attempt.connection.take() {
            let connection = connection.into_inner();
            log.record(Tag::BackendClose, connection.close_record(false, Some(why)).as_bytes());
        }
    }

    /// Gives the connection back to the pool, or closes it when it must not be used again. What VCL says in its `Connection`
    /// counts as if the origin had said it.
    fn release_connection(&mut self, context: &Loop, log: &mut LogBuffer) {
        let Some(mut connection) = self.attempt.connection.take() else { return };
        if http1::lists_close(&self.attempt.beresp) {
            connection.must_close(reason::REQUESTED);
        }
        let leftover = (!connection.received().is_empty()).then_some(reason::JUNK);
        let why = connection.close_reason().or(leftover);
        let is_kept = why.is_none() && connection.inner().is_recyclable();
        let connection = connection.into_inner();
        log.record(Tag::BackendClose, connection.close_record(is_kept, why).as_bytes());
        if is_kept {
            connection.recycle(&context.pool, &context.counters, context.clock.now());
        }
    }

    /// Lets go of a response that nobody wants any more: the connection is of use yet if there was no body to come.
    pub(super) fn give_up_response(&mut self, context: &Loop, log: &mut LogBuffer) {
        if matches!(self.attempt.length, BodyLength::None | BodyLength::Length(0)) {
            self.release_connection(context, log);
        } else {
            self.close_connection(log, reason::REQUESTED);
        }
    }
}

/// The first of the three that says something; 0 says nothing.
fn applies(of_vcl: f64, of_backend: Option<f64>, of_parameter: f64) -> f64 {
    if of_vcl > 0.0 { of_vcl } else { of_backend.filter(|seconds| *seconds > 0.0).unwrap_or(of_parameter) }
}
