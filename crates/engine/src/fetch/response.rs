//! Response: the head is read, its lifetime worked out, and vcl_backend_response has its say.
//!
//! Interim responses (1xx) are passed over. A head that cannot be understood, or whose body has no certain end, costs the
//! connection and goes to vcl_backend_error. A 304 to a conditional request becomes the 200 it stands for before VCL sees it
//! (`revalidate.rs`). Source: RFC 9110 §15.2, RFC 9112 §4. Next file: `body.rs`.

use super::connection::{ReceiveError, limit, reason};
use super::task::Verdict;
use super::{Fetch, FetchAnswer, FetchMode, Step};
use crate::logged::{self, BERESP};
use http1::{BodyLength, HeadError, HeadLimits, HeadStatus};
use semantics::date::DateForms;
use semantics::{HttpPolicy, LifetimeDefaults};
use std::sync::atomic::Ordering;
use surface::counter::{Main, Vbe};
use surface::reason::Reason;
use surface::tag::Tag;
use surface::vcl::{Action, Method};
use tokio::time::Instant;
use vcl_run::eval::{ActionArguments, Outcome};

/// Interim responses passed over before the origin is taken for broken.
const INTERIM_MAX: usize = 16;

/// Why there is no response head.
enum NoHead {
    /// The connection ended.
    Ended,
    /// A time limit passed; `true` when nothing at all had come.
    Timeout(bool),
    /// It does not parse.
    Unreadable(HeadError),
    /// Interim responses without end.
    Interim,
}

impl Fetch {
    pub(super) async fn response(&mut self) -> Step {
        if let Err(failure) = self.receive_head().await {
            return self.no_head(failure);
        }
        self.task.attempt.responded = self.now();
        self.task.attempt.wants_fresh = false;
        self.log.timestamp("Beresp", self.task.attempt.responded);
        logged::log_response(&mut self.log, BERESP, &self.task.attempt.beresp);
        if !self.read_framing() {
            self.context.count(Main::FetchBad);
            self.close_connection(reason::BODY);
            self.log.record(Tag::Error, b"Body cannot be fetched");
            self.why(Reason::ResponseGarbled, "text=Body cannot be fetched");
            return Step::Error;
        }
        self.complete_head();
        self.work_out_lifetime();
        if self.task.attempt.beresp.status() == 304
            && self.task.order.mode != FetchMode::Pass
            && let Err(step) = self.refresh().await
        {
            return step;
        }
        match self.run_vcl(Method::BackendResponse).await {
            Outcome::Return(action, arguments) => self.respond(action, &arguments),
            Outcome::Failed(_) | Outcome::Wait => {
                self.why_vcl(Reason::VclFailed);
                self.close_connection(reason::REQUESTED);
                Step::Fail
            }
        }
    }

    async fn receive_head(&mut self) -> Result<(), NoHead> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let limits = HeadLimits {
            total_bytes: size(self.task.order.parameters.http_resp_size),
            line_bytes: size(self.task.order.parameters.http_resp_hdr_len),
            headers_max: size(self.task.order.parameters.http_max_hdr),
        };
        self.context.count(Main::BackendReq);
        let first_deadline = Instant::now() + limit(self.first_byte_limit());
        let between = limit(self.between_bytes_limit());
        let most = self.fragment_bytes();
        for _ in 0..=INTERIM_MAX {
            loop {
                let Some(connection) = &mut self.task.attempt.connection else { return Err(NoHead::Ended) };
                if !connection.received().is_empty() {
                    match http1::parse_response(connection.received(), &limits, &mut self.task.attempt.beresp) {
                        Ok(HeadStatus::Complete { consumed }) => {
                            connection.consume(consumed);
                            self.count_response_head(consumed as u64);
                            break;
                        }
                        Ok(HeadStatus::Partial) => {}
                        Err(error) => return Err(NoHead::Unreadable(error)),
                    }
                }
                let is_first = connection.received().is_empty();
                let deadline = if is_first { first_deadline } else { Instant::now() + between };
                match connection.receive(most, deadline).await {
                    Ok(0) | Err(ReceiveError::Broken(_)) => return Err(NoHead::Ended),
                    Ok(_) => {}
                    Err(ReceiveError::Timeout) => return Err(NoHead::Timeout(is_first)),
                }
            }
            if !matches!(self.task.attempt.beresp.status(), 100 | 102..=199) {
                return Ok(());
            }
            self.context.count(Main::Fetch1xx);
        }
        Err(NoHead::Interim)
    }

    /// Logs why there is no head, and says what comes next.
    fn no_head(&mut self, failure: NoHead) -> Step {
        let received = self.task.attempt.connection.as_ref().map_or(0, |connection| connection.received().len() as u64);
        self.count_response_head(received);
        let why = match failure {
            NoHead::Ended => {
                self.log_fetch_error(Reason::OriginClosed, "HTC eof (-1)");
                if self.may_try_again() {
                    return self.try_again(reason::BAD);
                }
                reason::BAD
            }
            NoHead::Timeout(true) => {
                let reused = self.task.attempt.connection.as_ref().is_some_and(|connection| connection.inner().reused);
                let text = if reused { "first byte timeout (reused connection)" } else { "first byte timeout" };
                self.log_fetch_error(Reason::FirstByteTimeout, text);
                reason::TIMEOUT
            }
            NoHead::Timeout(false) => {
                self.log_fetch_error(Reason::BetweenBytesTimeout, "timeout");
                reason::TIMEOUT
            }
            NoHead::Unreadable(HeadError::Overflow) => {
                self.log_fetch_error(Reason::ResponseTooLarge, "overflow");
                reason::OVERFLOW
            }
            NoHead::Unreadable(error) => {
                self.log_garbage(&error);
                reason::JUNK
            }
            NoHead::Interim => {
                self.log_fetch_error(Reason::ResponseGarbled, "http format error");
                reason::JUNK
            }
        };
        self.close_connection(why);
        self.timestamp("Beresp");
        Step::Error
    }

    fn log_garbage(&mut self, error: &HeadError) {
        if let Some(text) = error.bogo_header() {
            self.log.record(Tag::BogoHeader, text.as_bytes());
        }
        if let Some(connection) = &self.task.attempt.connection {
            let garbage = connection.received();
            let line = garbage.split(|&byte| byte == b'\n').next().unwrap_or(garbage);
            self.log.record(Tag::HttpGarbage, line.trim_ascii_end());
        }
        self.log.record(Tag::BerespStatus, b"503");
        self.log.record(Tag::BerespReason, semantics::reason::phrase(503).as_bytes());
        self.log_fetch_error(Reason::ResponseGarbled, "http format error");
    }

    /// Finds out where the body ends and whether the connection stays; false when the body has no certain end.
    fn read_framing(&mut self) -> bool {
        let Ok(length) = http1::response_body_length(&self.task.attempt.beresp, self.task.bereq.method()) else {
            return false;
        };
        self.task.attempt.length = length;
        let Some(connection) = &mut self.task.attempt.connection else { return false };
        match http1::connection_options(&self.task.attempt.beresp) {
            Err(_) => connection.must_close(reason::BAD),
            Ok(options) if options.close => connection.must_close(reason::REQUESTED),
            Ok(_) => {}
        }
        // Now, for VCL may take the header away and yet not keep the origin from closing.
        if length == BodyLength::UntilClose || http1::lists_close(&self.task.attempt.beresp) {
            connection.must_close(reason::REQUESTED);
        }
        let asked = http1::connection_options(&self.task.bereq);
        if asked.is_ok_and(|options| options.close) || http1::lists_close(&self.task.bereq) {
            connection.must_close(reason::REQUEST);
        }
        self.context.count(match (length, self.task.attempt.beresp.status()) {
            (BodyLength::None, _) if self.task.bereq.method() == b"HEAD" => Main::FetchHead,
            (BodyLength::None, 204) => Main::Fetch204,
            (BodyLength::None, 304) => Main::Fetch304,
            (BodyLength::None | BodyLength::Length(0), _) => Main::FetchNone,
            (BodyLength::Length(_), _) => Main::FetchLength,
            (BodyLength::Chunked, _) => Main::FetchChunked,
            (BodyLength::UntilClose, _) => Main::FetchEof,
        });
        true
    }

    /// Adds what a response must have, and joins what is a list.
    fn complete_head(&mut self) {
        if !self.task.attempt.beresp.has("Date") {
            let mut date = [0; 29];
            semantics::date::format(self.task.attempt.responded, &mut date);
            logged::append(&mut self.log, BERESP, &mut self.task.attempt.beresp, "Date", &[&date]);
        }
        semantics::filter::collapse(&mut self.task.attempt.beresp, "Cache-Control");
        semantics::filter::collapse(&mut self.task.attempt.beresp, "Vary");
    }

    fn work_out_lifetime(&mut self) {
        self.task.attempt.verdict = Verdict { do_stream: true, ..Verdict::default() };
        let lifetime = if self.task.order.mode == FetchMode::Pass {
            semantics::lifetime_of_pass(&self.task.attempt.beresp, self.task.attempt.responded)
        } else {
            let defaults = LifetimeDefaults {
                ttl: self.task.order.parameters.default_ttl,
                grace: self.task.order.parameters.default_grace,
                keep: self.task.order.parameters.default_keep,
                clock_skew: self.task.order.parameters.clock_skew as f64,
                dates: DateForms::of_features(self.task.order.parameters.feature),
            };
            let chosen = || HttpPolicy::from_name(&self.task.order.parameters.http_policy).unwrap_or_default();
            let policy = self.legacy_policy().unwrap_or_else(chosen);
            let lifetime = semantics::lifetime(
                policy,
                self.task.attempt.beresp.status(),
                &self.task.attempt.beresp,
                self.task.attempt.responded,
                &defaults,
            );
            let mut payload = Vec::with_capacity(96);
            semantics::log_ttl_rfc(&lifetime, self.task.attempt.responded, !self.task.life.uncacheable, &mut payload);
            self.log.record(Tag::TTL, &payload);
            lifetime
        };
        self.task.attempt.verdict.origin = lifetime.origin;
        self.task.attempt.verdict.ttl = lifetime.ttl;
        self.task.attempt.verdict.grace = lifetime.grace;
        self.task.attempt.verdict.keep = lifetime.keep;
        if self.task.order.vcl.is_legacy() {
            self.legacy_lifetime();
        }
    }

    /// Does what vcl_backend_response said, or vcl_backend_refresh where both say the same.
    pub(super) fn respond(&mut self, action: Action, arguments: &ActionArguments) -> Step {
        match action {
            Action::Deliver => {
                if self.task.order.vcl.is_legacy() {
                    self.legacy_deliver();
                }
                self.accept()
            }
            Action::Pass => {
                self.task.life.uncacheable = true;
                self.task.attempt.verdict.is_hit_for_pass = true;
                if self.task.order.vcl.is_legacy() && arguments.duration.is_none() {
                    self.legacy_pass();
                }
                self.accept()
            }
            Action::Restart => self.order_client(FetchAnswer::Restart),
            Action::Synth => {
                let answer = self.synth_answer(arguments);
                self.order_client(answer)
            }
            Action::Retry => {
                self.task.give_up_response(&self.context, &mut self.log);
                self.why_vcl(Reason::RetryByVcl);
                if self.task.life.retries < self.task.order.parameters.max_retries {
                    return Step::Retry;
                }
                // Compat: vcl_backend_error finds the refused one counted.
                self.task.life.retries += 1;
                self.log.record(Tag::VCLError, b"Too many retries, delivering 503");
                self.why(Reason::TooManyRetries, "");
                Step::Error
            }
            Action::Error => {
                self.close_connection(reason::REQUESTED);
                self.why_vcl(Reason::ErrorByVcl);
                self.note_error(arguments);
                Step::Error
            }
            Action::Abandon
            | Action::Fail
            | Action::Pipe
            | Action::Hash
            | Action::Purge
            | Action::Vcl
            | Action::Fetch
            | Action::Lookup
            | Action::Ok
            | Action::Merge
            | Action::ObjStale
            | Action::Beresp => {
                self.why_vcl(Reason::ErrorByVcl);
                self.close_connection(reason::REQUESTED);
                Step::Fail
            }
        }
    }

    fn accept(&mut self) -> Step {
        if self.task.attempt.verdict.was_304 {
            self.timestamp("Process");
            return Step::Revalidate;
        }
        if self.task.attempt.connection.is_none() {
            // VCL has taken the request back, and then wants what came of it.
            self.timestamp("Process");
            self.log.record(Tag::FetchError, b"No backend connection (rollback?)");
            self.why_vcl(Reason::ErrorByVcl);
            return Step::Error;
        }
        let length = match self.task.attempt.length {
            BodyLength::Length(bytes) => Some(bytes),
            BodyLength::None | BodyLength::Chunked | BodyLength::UntilClose => None,
        };
        if self.task.order.parameters.http_range_support
            && let Err(text) = semantics::range::check_backend(&self.task.bereq, &self.task.attempt.beresp, length)
        {
            self.log.record(Tag::Error, text.as_bytes());
            self.why(Reason::ResponseGarbled, &format!("text={text}"));
            self.close_connection(reason::BODY);
            return Step::Error;
        }
        self.timestamp("Process");
        Step::Body
    }

    /// Most bytes to read at once (`debug.fragfetch`); 0 = no limit.
    pub(super) fn fragment_bytes(&self) -> usize {
        let bytes = self.context.engine.fragment_fetch_bytes.load(Ordering::Relaxed);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn count_response_head(&mut self, bytes: u64) {
        self.task.life.account.response_head += bytes;
        self.count_backend(Vbe::BerespHdrbytes, bytes);
    }
}
