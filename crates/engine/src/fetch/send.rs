//! Send: takes a connection from the pool or opens one, and sends the request.
//!
//! A reused connection may turn out to be dead. Then the request is sent once more on a new one
//! (`wants_fresh`), if no byte of the client's body is lost by that and the origin cannot carry the
//! request out twice: it is idempotent, or the connection accepted no byte of it
//! (`docs/decisions/a-request-is-placed-once.md`). Next files: `transmit.rs`, `response.rs`.

use super::body_relay::SendError;
use super::no_connection::{is_for_lack_of_place, reason_of};
use super::sent_body::SentBody;
use super::{Fetch, Step};
use crate::bodies::request::RequestBody;
use crate::logged::{self, BEREQ};
use crate::origin::{OriginExchange, close_reason};
use backend::director::trail::Trail;
use backend::{Attempts, Backend, Notes, OpenRequest};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use surface::counter::{Main, Vbe};
use surface::limits::BROKEN_ANSWER_SECONDS;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

/// Error number when the origin accepted no bytes within the time limit.
const ETIMEDOUT: i32 = 110;

/// Longest wait if there is no limit.
const UNLIMITED: Duration = Duration::from_secs(366 * 86_400);

impl Fetch {
    pub(super) async fn send(&mut self) -> Step {
        // Without its body, which was used up before a restart, this would be a different request,
        // whose response must neither be sent nor cached. VCL may declare that there is no body
        // (`unset bereq.body`).
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
            // Compat: in VCL 4, a retry keeps the `Host` of the first backend.
            self.task.route.has_backend_host &= self.task.order.vcl.is_legacy();
            if let Err((reason, text)) = self.resolve() {
                self.log_fetch_error(reason, &text);
                self.timestamp("Beresp");
                return Step::Error;
            }
        }
        logged::drop_fragment(&mut self.log, BEREQ, &mut self.task.bereq);
        self.task.attempt.requested = self.now();
        self.task.attempt.sent_body = SentBody::None;
        self.task.attempt.interims = 0;
        while let Err(none) = self.connect().await {
            let NoConnection::Failed { reason, text, is_of_address } = none else { return self.give_up() };
            let failed = self.task.route.backend.clone();
            if self.select_another(is_of_address) {
                self.log.record(Tag::FetchError, text.as_bytes());
                let next = std::mem::replace(&mut self.task.route.backend, failed);
                self.count_failure(reason);
                self.task.route.backend = next;
                continue;
            }
            self.log_fetch_error(reason, &text);
            self.timestamp("Beresp");
            return Step::Error;
        }
        self.task.attempt.last_byte_by = self.last_byte_limit().map(|limit| Instant::now() + limit);
        if let Err(text) = self.open_request_filters() {
            self.log_fetch_error(Reason::ClientBodyLost, &text);
            self.close_connection(close_reason::BODY);
            self.timestamp("Beresp");
            return Step::Error;
        }
        let body = self.announced_body();
        if let Some(exchange) = &mut self.task.attempt.exchange {
            exchange.describe_body(body, &mut self.task.bereq, &mut self.log);
        }
        match self.transmit().await {
            Ok(()) => {
                self.timestamp("Bereq");
                Step::Response
            }
            Err(error) => self.send_failed(error).await,
        }
    }

    /// Waits until the names that the director may use have been looked up once.
    async fn await_first_lookups(&self) {
        let Some(director) = self.task.choices.director else { return };
        let names = {
            let notes = Notes::new();
            self.task.order.vcl.directors.first_lookups(director, &self.resolving(&notes))
        };
        for name in names {
            name.ready().await;
        }
    }

    /// Follows directors to a backend; in the old dialects to the next one if a backend gave no
    /// connection.
    fn resolve(&mut self) -> Result<(), (Reason, String)> {
        let notes = Notes::new();
        let mut trail = std::mem::take(&mut self.task.route.trail);
        let context = self.resolving(&notes);
        let resolved = match self.task.order.vcl.is_legacy() {
            true => trail.next(&self.task.order.vcl.directors, self.task.choices.director, &context),
            false => self.task.order.vcl.directors.resolve(self.task.choices.director, &context),
        };
        self.task.route.trail = trail;
        crate::world::log_notes(&self.context.engine, &mut self.log, &notes);
        let resolved = resolved.map_err(|none| (Reason::NoBackend, none.text()))?;
        self.task.route.attempts = Attempts::of(&resolved);
        self.take_backend(resolved.backend)
    }

    /// Selects another backend after a failed connect: that at the next address of the same name
    /// or, in the old dialects, the next one of the director. False if there is none.
    fn select_another(&mut self, is_of_address: bool) -> bool {
        let notes = Notes::new();
        let mut attempts = std::mem::take(&mut self.task.route.attempts);
        let next = is_of_address
            .then(|| self.task.order.vcl.directors.next_address(&mut attempts, &self.resolving(&notes)))
            .flatten();
        self.task.route.attempts = attempts;
        match next {
            Some(next) => self.take_backend(next).is_ok(),
            None => self.task.order.vcl.is_legacy() && self.resolve().is_ok(),
        }
    }

    /// Sets the backend of the fetch.
    fn take_backend(&mut self, backend: Arc<Backend>) -> Result<(), (Reason, String)> {
        let host = &backend.definition().host_header;
        if self.task.route.has_backend_host {
            logged::unset(&mut self.log, BEREQ, &mut self.task.bereq, "Host");
        }
        if !self.task.bereq.has("Host") && !host.is_empty() {
            logged::append(&mut self.log, BEREQ, &mut self.task.bereq, "Host", &[host.as_bytes()]);
            self.task.route.has_backend_host = true;
        }
        self.task.route.backend = Some(backend);
        self.refused_by_saint_mode().map_or(Ok(()), |text| Err((Reason::BackendSick, text)))
    }

    async fn connect(&mut self) -> Result<(), NoConnection> {
        let context = Rc::clone(&self.context);
        let Some(backend) = self.task.route.backend.clone() else {
            let text = "No backend".to_owned();
            return Err(NoConnection::Failed { reason: Reason::NoBackend, text, is_of_address: false });
        };
        let clock = || context.clock.now();
        let mut request = OpenRequest {
            backend: &backend,
            pool: &context.pool,
            dial: &*context.dial,
            parameters: &self.task.order.parameters,
            counters: &context.counters,
            clock: &clock,
            connect_timeout: self.task.choices.connect_timeout.filter(|seconds| *seconds > 0.0),
            fresh: self.task.attempt.wants_fresh,
            client: Some((self.task.order.peer.client, self.task.order.peer.server)),
            offers_http2: true,
            held: Cell::new(self.task.attempt.held_place.take().map(|place| *place)),
            trial: Cell::default(),
        };
        self.task.route.attempts.limit(&mut request);
        // Boxed: while the fetch waits for a response, it should not reserve this memory.
        let opening = Box::pin(OriginExchange::open(&request, &context));
        let opened = match &self.task.order.interest {
            None => opening.await,
            Some(interest) => tokio::select! {
                biased;
                opened = opening => opened,
                () = interest.lost() => return Err(NoConnection::Unwanted),
            },
        };
        self.task.attempt.trial = request.trial.get();
        let exchange = opened.map_err(|error| {
            self.log_handshake(error.tls_record());
            if let Some(fragment) = self.task.order.fragment.as_ref().filter(|_| is_for_lack_of_place(&error)) {
                fragment.has_no_place();
            }
            let (reason, is_of_address) = (reason_of(&error), error.is_of_address());
            NoConnection::Failed { reason, text: error.text(), is_of_address }
        })?;
        if let Some(fragment) = &self.task.order.fragment {
            fragment.has_place(&backend);
        }
        self.timestamp("Connected");
        self.log.record_fmt(Tag::BackendOpen, format_args!("{}", exchange.open_record()));
        self.log_handshake(exchange.tls_record());
        self.task.route.address = exchange.ends().remote;
        self.task.life.account.request_head += exchange.proxy_header_bytes();
        let mut exchange = exchange;
        // An HTTP/1 client has one request at a time; an HTTP/2 or HTTP/3 client can open and reset
        // as many as its budget allows.
        let is_bounded = !self.task.order.is_duplex || self.task.order.parameters.h2_rapid_reset_limit > 0;
        exchange.serves(self.task.order.interest.clone(), is_bounded);
        self.task.attempt.exchange = Some(exchange);
        Ok(())
    }

    fn log_handshake(&mut self, record: Option<String>) {
        if let Some(record) = record {
            self.log.record(Tag::BackendSSL, record.as_bytes());
        }
    }

    async fn send_failed(&mut self, error: SendError) -> Step {
        match error {
            SendError::Answered => return self.response_before_the_end(),
            SendError::Origin(errno) => {
                // An origin that refuses the rest answers before it closes; the answer is read
                // first.
                if let Some(exchange) = &mut self.task.attempt.exchange {
                    if errno != ETIMEDOUT && exchange.progress().has_sent {
                        exchange.await_answer(Duration::from_secs(BROKEN_ANSWER_SECONDS)).await;
                    }
                    if exchange.progress().unused_bytes > 0 {
                        return self.response_before_the_end();
                    }
                }
                let text = backend::backend::error_text(errno);
                let is_late = self.task.attempt.last_byte_by.is_some_and(|due| Instant::now() >= due);
                let reason = if is_late { Reason::LastByteTimeout } else { Reason::RequestNotSent };
                let text = format!("backend write error: {errno} ({text})");
                if let Some(step) = self.fail_or_try_again(reason, &text, close_reason::SEND) {
                    return step;
                }
                self.close_connection(close_reason::SEND);
            }
            // Another connection could not express it either.
            SendError::Unsayable(what) => {
                self.log_fetch_error(Reason::RequestUnsayable, &format!("{what} cannot be said over HTTP/2"));
                self.close_connection(close_reason::SEND);
            }
            SendError::Client(text) => {
                self.log_fetch_error(Reason::ClientBodyLost, &format!("req.body read error: {text}"));
                self.close_connection(close_reason::BODY);
            }
        }
        self.timestamp("Beresp");
        Step::Error
    }

    /// The step when the rest of the request is not sent, since the origin has already answered, or
    /// ends the connection.
    fn response_before_the_end(&mut self) -> Step {
        if let Some(exchange) = &mut self.task.attempt.exchange {
            exchange.must_close(close_reason::SEND);
        }
        self.timestamp("Bereq");
        Step::Response
    }

    /// True if the failure may be due to a reused connection, and sending the request again cannot
    /// make the origin carry it out twice. Source: RFC 9110 §9.2.2, RFC 9112 §9.3.1, RFC 9113 §8.7.
    pub(super) fn may_try_again(&self) -> bool {
        let Some(exchange) = &self.task.attempt.exchange else { return false };
        let progress = exchange.progress();
        let is_harmless = !progress.has_sent || semantics::method::is_idempotent(self.task.bereq.method());
        let may_be_dead = progress.is_reused && !progress.has_answered;
        (progress.is_unprocessed || may_be_dead && is_harmless)
            && !self.task.attempt.wants_fresh
            && (self.can_send_again() || progress.is_unprocessed && self.is_body_kept())
    }

    /// True if the client's body is still complete.
    pub(super) fn can_send_again(&self) -> bool {
        match &self.task.life.body {
            RequestBody::None | RequestBody::Cached(_) => true,
            RequestBody::Stream { .. } | RequestBody::Taken => !self.task.life.is_body_begun,
        }
    }

    /// True if all bytes of the client's body that were sent are kept, as long as the origin has
    /// not begun to answer.
    fn is_body_kept(&self) -> bool {
        match &self.task.life.uploading {
            Some(body) => body.borrow().can_rewind(),
            None => self.task.life.body.can_rewind(),
        }
    }

    /// Closes a dead reused connection and sends again on a new one. The connection slot is kept:
    /// the request has waited for it.
    pub(super) fn try_again(&mut self, why: &'static str) -> Step {
        self.task.attempt.held_place = self.task.close_connection(&mut self.log, why).map(Box::new);
        if let Some(body) = self.task.life.uploading.take() {
            // No task sends it any more.
            self.task.life.body = body.replace(RequestBody::Taken);
        }
        self.task.attempt.wants_fresh = true;
        self.context.count(Main::BackendRetry);
        Step::Send
    }

    /// Closes the connection, if there is one.
    pub(super) fn close_connection(&mut self, why: &'static str) {
        self.task.close_connection(&mut self.log, why);
        self.task.life.uploading = None;
    }

    /// After a complete response: returns the connection to the pool, or closes it.
    pub(super) fn release_connection(&mut self) {
        self.task.release_connection(&self.context, &mut self.log);
    }

    /// The `first_byte_timeout` that applies: VCL's, the backend's, or the parameter's.
    pub(super) fn first_byte_limit(&self) -> Duration {
        let of_backend = self.task.route.backend.as_ref().and_then(|backend| backend.definition().first_byte_timeout);
        applies(self.task.choices.first_byte_timeout, of_backend, self.task.order.parameters.first_byte_timeout)
    }

    /// The `between_bytes_timeout` that applies.
    pub(super) fn between_bytes_limit(&self) -> Duration {
        let of_backend =
            self.task.route.backend.as_ref().and_then(|backend| backend.definition().between_bytes_timeout);
        applies(self.task.choices.between_bytes_timeout, of_backend, self.task.order.parameters.between_bytes_timeout)
    }

    /// The `last_byte_timeout` that applies; `None` = no limit. Unlike the others, it does not
    /// exist in Varnish, and 0 is a setting of its own: no limit.
    fn last_byte_limit(&self) -> Option<Duration> {
        let of_backend = self.task.route.backend.as_ref().and_then(|backend| backend.definition().last_byte_timeout);
        let own = self.task.choices.last_byte_timeout.or(of_backend);
        let limit = applies(None, None, own.unwrap_or(self.task.order.parameters.last_byte_timeout));
        (limit < UNLIMITED).then_some(limit)
    }

    /// Longest time in which the origin may accept no bytes of the request.
    pub(super) fn send_limit(&self) -> Duration {
        let left = self.task.attempt.last_byte_by.map(|due| due.saturating_duration_since(Instant::now()));
        left.unwrap_or(UNLIMITED).min(self.first_byte_limit())
    }

    /// Adds to a counter of the backend in use.
    pub(super) fn count_backend(&self, counter: Vbe, amount: u64) {
        if let Some(backend) = self.task.route.backend.as_ref().map(Arc::as_ref) {
            backend.count(counter, amount);
        }
    }
}

/// Reason why there is no connection.
enum NoConnection {
    /// The attempt failed. `is_of_address`: another address may be reachable.
    Failed { reason: Reason, text: String, is_of_address: bool },
    /// No client needs it any more.
    Unwanted,
}

/// The first of the three that is set. 0 means not set, and no limit if none is.
fn applies(of_vcl: Option<f64>, of_backend: Option<f64>, of_parameter: f64) -> Duration {
    let set = |own: Option<f64>| own.filter(|seconds| *seconds > 0.0);
    let seconds = set(of_vcl).or(set(of_backend)).unwrap_or(of_parameter);
    if seconds > 0.0 { Duration::try_from_secs_f64(seconds).unwrap_or(UNLIMITED).min(UNLIMITED) } else { UNLIMITED }
}
