//! Response: receives the head, calculates its lifetime, and runs vcl_backend_response.
//!
//! Interim responses (1xx) are passed on to the client that ordered the fetch under the policy
//! `rfc`, and skipped under the others (Compat: Varnish 7.1 fails the fetch). `100 Continue` is
//! never passed on: Copal did not request it, and a client that requested it from Copal has
//! received it already. If the head is invalid, or the end of its body is ambiguous, the connection
//! is closed and vcl_backend_error runs. A 304 to a conditional request becomes the 200 it stands
//! for before VCL sees it (`revalidate.rs`). Source: RFC 9110 §15.2, RFC 9112 §4. Next file:
//! `body.rs`.

use super::body_relay::SendError;
use super::out_of_band::OutOfBand;
use super::task::{Attempt, Verdict};
use super::{Fetch, FetchAnswer, FetchMode, Step};
use crate::exchange::BodyAnnounced;
use crate::logged::{self, BERESP};
use crate::origin::{BodySettings, BrokenLimit, HeadFailure, OriginExchange, ReceiveLimits, close_reason};
use crate::ruling::{Failed, PassTime, ResponseRuling, StatusLine};
use message::Message;
use semantics::LifetimeDefaults;
use semantics::date::DateForms;
use shm::histogram::Example;
use std::sync::atomic::Ordering;
use surface::counter::{Main, Vbe};
use surface::limits::INTERIM_MAX;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

/// Reason why there is no response head.
enum NoHead {
    /// No valid head arrived.
    Failed(HeadFailure),
    /// Too many interim responses.
    Interim,
}

impl Fetch {
    pub(super) async fn response(&mut self) -> Step {
        if let Err(failure) = self.receive_head().await {
            return self.no_head(failure);
        }
        self.task.attempt.responded = self.now();
        self.task.attempt.wants_fresh = false;
        self.measure_first_byte();
        // The rest of it is not needed.
        self.task.life.body.let_go();
        if let Some(body) = self.task.life.uploading.take() {
            body.borrow_mut().forget();
        }
        self.log.timestamp("Beresp", self.task.attempt.responded);
        // Compat: joined before VCL and the log see it.
        self.task.attempt.beresp.join("Connection");
        logged::log_response(&mut self.log, BERESP, &self.task.attempt.beresp);
        if !self.begin_body() {
            self.context.count(Main::FetchBad);
            self.close_connection(close_reason::BODY);
            self.log.record(Tag::Error, b"Body cannot be fetched");
            self.why(Reason::ResponseGarbled, "text=Body cannot be fetched");
            self.count_failure(Reason::ResponseGarbled);
            return Step::Error;
        }
        self.note_answer();
        if let Some(step) = self.send_when_proven().await {
            return step;
        }
        self.complete_head();
        let judged = self.take_slice();
        if let Err(step) = judged.and_then(|is_slice| if is_slice { Ok(()) } else { self.take_part() }) {
            return step;
        }
        self.work_out_lifetime();
        if self.task.attempt.beresp.status() == 304
            && self.task.order.mode != FetchMode::Pass
            && let Err(step) = self.refresh().await
        {
            return step;
        }
        if self.task.attempt.verdict.was_304 && self.follows_rfc() {
            self.judge();
        }
        self.place_announced();
        self.collect_evidence();
        match self.run_vcl().await {
            Ok(ruling) => self.respond(ruling),
            Err(Failed) => self.response_vcl_failed(),
        }
    }

    /// Counts the time until the head in the histograms of the backend.
    fn measure_first_byte(&self) {
        let (Some(backend), attempt) = (&self.task.route.backend, &self.task.attempt) else { return };
        let value = ((attempt.responded - attempt.requested) * 1e9) as u64;
        let example = Example { vxid: self.task.life.vxid, value, time: attempt.responded };
        backend.count_first_byte(attempt.beresp.status(), example);
    }

    async fn receive_head(&mut self) -> Result<(), NoHead> {
        self.context.count(Main::BackendReq);
        self.rest();
        let limits = self.receive_limits();
        while self.task.attempt.interims <= INTERIM_MAX {
            let Attempt { exchange, beresp, .. } = &mut self.task.attempt;
            let Some(exchange) = exchange else { return Err(NoHead::Failed(HeadFailure::ENDED)) };
            let bytes = exchange.receive_head(beresp, &limits).await.map_err(NoHead::Failed)?;
            self.count_response_head(bytes);
            if !matches!(self.task.attempt.beresp.status(), 100 | 102..=199) {
                return Ok(());
            }
            self.note_interim();
        }
        Err(NoHead::Interim)
    }

    /// Receives an interim response that arrives while the request is being sent.
    ///
    /// # Errors
    /// The response is malformed, or one more than allowed: the rest of the request is not sent.
    pub(super) async fn receive_interim(&mut self) -> Result<(), SendError> {
        let limits = self.receive_limits();
        let Attempt { exchange: Some(exchange), beresp, interims, .. } = &mut self.task.attempt else {
            return Err(SendError::Answered);
        };
        if *interims > INTERIM_MAX {
            return Err(SendError::Answered);
        }
        let bytes = exchange.receive_head(beresp, &limits).await.map_err(|_| SendError::Answered)?;
        self.count_response_head(bytes);
        self.note_interim();
        Ok(())
    }

    fn note_interim(&mut self) {
        self.context.count(Main::Fetch1xx);
        self.task.attempt.interims += 1;
        if self.task.attempt.interims <= INTERIM_MAX {
            self.pass_on_interim();
        }
    }

    /// Passes an interim response on to the client, if it may receive it.
    fn pass_on_interim(&mut self) {
        let interim = &self.task.attempt.beresp;
        if interim.status() == 100 {
            return;
        }
        let Some(out_of_band) = &self.task.life.out_of_band else { return };
        logged::log_response(&mut self.log, BERESP, interim);
        let mut passed_on = Message::new();
        semantics::filter::copy_interim(interim, &mut passed_on);
        if !out_of_band.send_interim(passed_on, &self.context.memory) {
            self.log.record(Tag::Error, b"Interim response not passed on: too many wait for the client");
        }
    }

    /// Limits for the origin from now on: time and bytes.
    pub(super) fn receive_limits(&self) -> ReceiveLimits {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let parameters = &self.task.order.parameters;
        let first_byte = self.first_byte_limit();
        ReceiveLimits {
            first_byte_by: Instant::now() + first_byte,
            first_byte,
            between_bytes: self.between_bytes_limit(),
            last_byte_by: self.task.attempt.last_byte_by,
            at_once_bytes: size(self.context.engine.fragment_fetch_bytes.load(Ordering::Relaxed)),
            head_bytes_max: size(parameters.http_resp_size),
            header_bytes_max: size(parameters.http_resp_hdr_len),
            headers_max: size(parameters.http_max_hdr),
        }
    }

    /// Logs the cause of the missing head, and returns the next step.
    fn no_head(&mut self, failure: NoHead) -> Step {
        let progress = self.task.attempt.exchange.as_ref().map(OriginExchange::progress);
        self.count_response_head(progress.map_or(0, |progress| progress.unused_bytes));
        let why = match failure {
            NoHead::Failed(HeadFailure::Abandoned) => return self.give_up(),
            NoHead::Failed(HeadFailure::Broken { reason, text }) => {
                if let Some(step) = self.fail_or_try_again(reason, text, close_reason::BAD) {
                    return step;
                }
                close_reason::BAD
            }
            NoHead::Failed(HeadFailure::Tls(text)) => {
                self.log.record(Tag::BackendSSL, format!("failed: {text}").as_bytes());
                if let Some(step) =
                    self.fail_or_try_again(Reason::TlsFailed, &format!("TLS: {text}"), close_reason::BAD)
                {
                    return step;
                }
                close_reason::BAD
            }
            NoHead::Failed(HeadFailure::LastByteTimeout) => {
                self.log_fetch_error(Reason::LastByteTimeout, "last byte timeout");
                close_reason::TIMEOUT
            }
            NoHead::Failed(HeadFailure::FirstByteTimeout) => {
                let is_reused = progress.is_some_and(|progress| progress.is_reused);
                let text = if is_reused { "first byte timeout (reused connection)" } else { "first byte timeout" };
                self.log_fetch_error(Reason::FirstByteTimeout, text);
                close_reason::TIMEOUT
            }
            NoHead::Failed(HeadFailure::Timeout) => {
                self.log_fetch_error(Reason::BetweenBytesTimeout, "timeout");
                close_reason::TIMEOUT
            }
            NoHead::Failed(HeadFailure::TooLarge(limit)) => {
                self.log_broken_limit(limit, "overflow");
                close_reason::OVERFLOW
            }
            NoHead::Failed(HeadFailure::Garbage { header, line, limit }) => {
                self.log_garbage(header.as_deref(), &line, limit);
                close_reason::JUNK
            }
            NoHead::Interim => {
                self.log_fetch_error(Reason::ResponseGarbled, "http format error");
                close_reason::JUNK
            }
        };
        self.close_connection(why);
        self.timestamp("Beresp");
        Step::Error
    }

    fn log_garbage(&mut self, header: Option<&str>, line: &[u8], limit: Option<BrokenLimit>) {
        if let Some(header) = header {
            self.log.record(Tag::BogoHeader, header.as_bytes());
        }
        self.log.record(Tag::HttpGarbage, line);
        self.log.record(Tag::BerespStatus, b"503");
        self.log.record(Tag::BerespReason, semantics::reason::phrase(503).as_bytes());
        match limit {
            None => self.log_fetch_error(Reason::ResponseGarbled, "http format error"),
            Some(limit) => self.log_broken_limit(limit, "http format error"),
        }
    }

    /// Logs and counts that a head was larger than allowed.
    fn log_broken_limit(&mut self, limit: BrokenLimit, text: &str) {
        let BrokenLimit { parameter, max } = limit;
        let said = format_args!("The head of the response is larger than allowed: parameter {parameter} is {max}");
        self.log.record_fmt(Tag::Error, said);
        self.log.record(Tag::FetchError, text.as_bytes());
        self.why(Reason::ResponseTooLarge, &format!("limit={parameter} max={max} text={text}"));
        self.count_failure(Reason::ResponseTooLarge);
    }

    /// Determines the framing of the body; false if the end of the body is ambiguous.
    fn begin_body(&mut self) -> bool {
        let reads_until_close = self.follows_rfc();
        let Attempt { exchange: Some(exchange), beresp, .. } = &mut self.task.attempt else { return false };
        let settings = BodySettings {
            needs_close_notify: self.task.order.parameters.backend_close_notify,
            takes_unknown_coding: self.task.order.parameters.unknown_transfer_encoding,
            reads_until_close,
            keeps_trailers: self.task.life.out_of_band.as_ref().is_some_and(OutOfBand::takes_trailers)
                && (beresp.has("Trailer") || semantics::trailers::are_part_of(beresp)),
        };
        let Some(body) = exchange.begin_body(&self.task.bereq, beresp, settings) else { return false };
        let is_head = self.task.bereq.method() == b"HEAD";
        self.context.count(match (body.size, body.carriage, beresp.status()) {
            (BodyAnnounced::None, ..) if is_head => Main::FetchHead,
            (BodyAnnounced::None, _, 204) => Main::Fetch204,
            (BodyAnnounced::None, _, 304) => Main::Fetch304,
            (BodyAnnounced::None | BodyAnnounced::Length(0), ..) | (_, None, _) => Main::FetchNone,
            (_, Some(carriage), _) => carriage.counter,
        });
        self.task.attempt.body = body;
        true
    }

    /// Adds headers that a response must have, and joins headers that form a list.
    fn complete_head(&mut self) {
        if self.follows_rfc() {
            // The field concerns one connection, although no specification has ever defined it.
            // Source: RFC 9110 §7.6.1.
            logged::unset(&mut self.log, BERESP, &mut self.task.attempt.beresp, "Proxy-Connection");
        }
        let Attempt { beresp, responded, .. } = &mut self.task.attempt;
        if !beresp.has("Date") {
            let mut date = [0; 29];
            semantics::date::format(*responded, &mut date);
            logged::append(&mut self.log, BERESP, beresp, "Date", &[&date]);
        }
        semantics::filter::collapse(beresp, "Cache-Control");
        semantics::filter::collapse(beresp, "Vary");
    }

    fn work_out_lifetime(&mut self) {
        if self.follows_rfc() && (self.task.order.mode != FetchMode::Pass || self.adopt()) {
            return self.judge();
        }
        let parameters = &self.task.order.parameters;
        let Attempt { beresp, responded, .. } = &self.task.attempt;
        let lifetime = if self.task.order.mode == FetchMode::Pass {
            semantics::lifetime_of_pass(beresp, *responded)
        } else {
            let defaults = LifetimeDefaults {
                ttl: parameters.default_ttl,
                grace: parameters.default_grace,
                keep: parameters.default_keep,
                clock_skew: parameters.clock_skew as f64,
                dates: DateForms::of_features(parameters.feature),
            };
            let policy = self.task.order.vcl.policy;
            let lifetime = semantics::lifetime(policy, beresp.status(), beresp, *responded, &defaults);
            let mut payload = Vec::with_capacity(96);
            semantics::log_ttl_rfc(&lifetime, *responded, !self.task.life.uncacheable, &mut payload);
            self.log.record(Tag::TTL, &payload);
            lifetime
        };
        self.task.attempt.verdict = Verdict {
            do_stream: true,
            origin: lifetime.origin,
            ttl: lifetime.ttl,
            grace: lifetime.grace,
            keep: lifetime.keep,
            ..Verdict::default()
        };
        if self.task.order.vcl.is_legacy() {
            self.legacy_lifetime();
        }
    }

    /// Carries out the decision of vcl_backend_response.
    fn respond(&mut self, ruling: ResponseRuling) -> Step {
        match ruling {
            ResponseRuling::Deliver => {
                if self.task.order.vcl.is_legacy() {
                    self.legacy_deliver();
                }
                self.accept()
            }
            ResponseRuling::Pass(PassTime(seconds)) => {
                self.task.life.uncacheable = true;
                self.task.attempt.verdict.is_hit_for_pass = true;
                if self.task.order.vcl.is_legacy() && seconds.is_none() {
                    self.legacy_pass();
                }
                self.accept()
            }
            ResponseRuling::Restart => self.order_client(FetchAnswer::Restart),
            ResponseRuling::Synth(line) => {
                let answer = self.synth_answer(line);
                self.order_client(answer)
            }
            ResponseRuling::Retry => self.retry_ruling(),
            ResponseRuling::Error(line) => self.error_ruling(line),
            ResponseRuling::Abandon => self.abandon_ruling(),
        }
    }

    /// Carries out `return (retry)` for a response.
    pub(super) fn retry_ruling(&mut self) -> Step {
        self.task.give_up_response(&self.context, &mut self.log);
        self.why_vcl(Reason::RetryByVcl);
        if self.task.life.retries < self.task.order.parameters.max_retries {
            if self.may_repeat() {
                return Step::Retry;
            }
            self.refuse_retry();
            return Step::Error;
        }
        // Compat: in vcl_backend_error the refused retry is included in `bereq.retries`.
        self.task.life.retries += 1;
        self.log.record(Tag::VCLError, b"Too many retries, delivering 503");
        self.why(Reason::TooManyRetries, "");
        Step::Error
    }

    /// Carries out `return (error(…))` for a response.
    pub(super) fn error_ruling(&mut self, line: StatusLine) -> Step {
        self.close_connection(close_reason::REQUESTED);
        self.why_vcl(Reason::ErrorByVcl);
        self.note_error(line);
        Step::Error
    }

    /// Carries out `return (abandon)` for a response.
    pub(super) fn abandon_ruling(&mut self) -> Step {
        self.why_vcl(Reason::ErrorByVcl);
        self.close_connection(close_reason::REQUESTED);
        Step::Fail
    }

    /// The VCL method that should have decided about a response failed.
    pub(super) fn response_vcl_failed(&mut self) -> Step {
        self.why_vcl(Reason::VclFailed);
        self.close_connection(close_reason::REQUESTED);
        Step::Fail
    }

    fn accept(&mut self) -> Step {
        if self.may_answer_stale_for_error() {
            self.timestamp("Process");
            return Step::Stale;
        }
        if self.is_refresh_useless() {
            self.timestamp("Process");
            self.spare_refreshed();
            self.close_connection(close_reason::REQUESTED);
            return Step::Fail;
        }
        self.guard_against_leaks();
        if self.task.attempt.verdict.was_304 {
            self.timestamp("Process");
            return Step::Revalidate;
        }
        if self.task.attempt.exchange.is_none() {
            // VCL has rolled the request back, but delivers its response.
            self.timestamp("Process");
            self.log.record(Tag::FetchError, b"No backend connection (rollback?)");
            self.why_vcl(Reason::ErrorByVcl);
            return Step::Error;
        }
        let length = self.task.attempt.body.size.length();
        if self.task.order.parameters.http_range_support
            && !self.follows_rfc()
            && let Err(text) = semantics::range::check_backend(&self.task.bereq, &self.task.attempt.beresp, length)
        {
            self.log.record(Tag::Error, text.as_bytes());
            self.why(Reason::ResponseGarbled, &format!("text={text}"));
            if self.task.attempt.exchange.as_mut().is_some_and(OriginExchange::skip_body) {
                self.release_connection();
            } else {
                self.close_connection(close_reason::BODY);
            }
            return Step::Error;
        }
        if let Some(step) = self.give_up_slices() {
            return step;
        }
        self.timestamp("Process");
        Step::Body
    }

    fn count_response_head(&mut self, bytes: u64) {
        self.task.life.account.response_head += bytes;
        self.count_backend(Vbe::BerespHdrbytes, bytes);
    }
}
