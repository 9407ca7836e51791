//! Failures of a fetch: their log records, their counters, their report to the backend, and the
//! text that VCL reads.
//!
//! The kinds of failure are the rows of `surface::failure`. A backend whose VCL sets limits counts
//! the failures that are the origin's fault ([`backend::Breaker`], the circuit breaker): a failure
//! may open the circuit, and an answer may close it. Either change writes a `Backend_health` record
//! outside transactions, like that of a probe. A connection that was dead before it was used proves
//! nothing about its origin.
//!
//! *Invariant:* a request is repeated without VCL only if a second execution has no effect.

use super::sent_body::SentBody;
use super::{Fetch, FetchAnswer, Step};
use crate::origin::{OriginExchange, close_reason};
use backend::{Backend, Transition};
use shm::log::{LogId, LogRing};
use surface::counter::Main;
use surface::failure::{CountedBy, PHRASE};
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

impl Fetch {
    /// Writes a `FetchError` record, records the reason, and counts the failure.
    pub(super) fn log_fetch_error(&mut self, reason: Reason, text: &str) {
        self.log_without_count(reason, text);
        self.count_failure(reason);
    }

    /// Writes the records only.
    pub(super) fn log_without_count(&mut self, reason: Reason, text: &str) {
        self.log.record(Tag::FetchError, text.as_bytes());
        self.why(reason, &format!("text={text}"));
    }

    /// The connection broke before the origin had answered: if it may have been dead before, the
    /// next step is to send again on another one. `why` is the reason for closing it.
    pub(super) fn fail_or_try_again(&mut self, reason: Reason, text: &str, why: &'static str) -> Option<Step> {
        if self.may_try_again() {
            if self.may_repeat() {
                self.log_without_count(reason, text);
                return Some(self.try_again(why));
            }
            self.why(Reason::RetryBudgetSpent, "");
            self.context.count(Main::BackendRetryRefused);
        }
        self.log_fetch_error(reason, text);
        self.refuse_stream()
    }

    /// If the origin has not processed a request whose body is gone, the client of a stream is
    /// notified to send it again: that is known to be safe, whatever the method. Source: RFC 9113
    /// §8.7.
    fn refuse_stream(&mut self) -> Option<Step> {
        if !self.task.order.is_duplex || !self.is_unprocessed() || self.task.attempt.sent_body == SentBody::None {
            return None;
        }
        self.close_connection(close_reason::SEND);
        self.context.count(Main::FetchFailed);
        self.task.life.answer = FetchAnswer::Refused;
        Some(Step::Fail)
    }

    /// True if the origin has not processed the request.
    fn is_unprocessed(&self) -> bool {
        self.task.attempt.exchange.as_ref().is_some_and(|exchange| exchange.progress().is_unprocessed)
    }

    /// True if the request that failed may be sent to the backend once more. If so, that is
    /// counted.
    pub(super) fn may_repeat(&self) -> bool {
        self.task.route.backend.as_ref().is_none_or(|backend| backend.may_repeat())
    }

    /// Counts a failure of this kind, and reports it to the backend if it is the origin's fault.
    pub(super) fn count_failure(&mut self, reason: Reason) {
        let Some(row) = reason.failure() else { return };
        if let CountedBy::Fetch(counter) = row.counted_by {
            self.context.count(counter);
        }
        self.task.attempt.failure = Some(reason);
        let is_excused = self.is_clients_time(reason) || self.is_clients_body() || self.is_unprocessed();
        if row.is_origins_fault && !is_excused {
            self.note_fault();
        }
    }

    /// True if the failure may be due to the request's body. Otherwise any client could make an
    /// origin unavailable to all others.
    fn is_clients_body(&self) -> bool {
        let sent = self.task.attempt.sent_body;
        let upload = self.task.life.upload.as_ref().filter(|_| sent != SentBody::None);
        upload.map_or(sent, |upload| upload.sent()).may_be_to_blame()
    }

    /// True if the origin ran out of time because it had not received the whole request: the client
    /// was slow.
    fn is_clients_time(&self, reason: Reason) -> bool {
        let Some(progress) = self.task.attempt.exchange.as_ref().map(OriginExchange::progress) else { return false };
        match reason {
            Reason::FirstByteTimeout | Reason::BetweenBytesTimeout => progress.awaits_client,
            Reason::LastByteTimeout => {
                let due = self.task.attempt.last_byte_by.map(|due| due + progress.client_time);
                progress.awaits_client || due.is_some_and(|due| Instant::now() < due)
            }
            _ => false,
        }
    }

    /// The text of `beresp.reason` for the failure.
    pub(super) fn failure_phrase(&self) -> &'static str {
        let told = self.task.attempt.failure.filter(|_| self.task.order.parameters.backend_error_reasons);
        told.and_then(Reason::failure).map_or(PHRASE, |row| row.phrase)
    }

    /// The origin has failed this fetch.
    pub(super) fn note_fault(&mut self) {
        self.task.attempt.is_faulty = true;
        let now = self.now();
        let Some(backend) = &self.task.route.backend else { return };
        if let Some(transition) = backend.note_fault(self.task.attempt.trial, now) {
            log_transition(&self.context.engine.ring, backend, transition);
        }
    }

    /// The head of a response was received.
    pub(super) fn note_answer(&mut self) {
        let Some(backend) = self.task.route.backend.clone() else { return };
        let minds_errors = backend.breaker().is_some_and(|breaker| breaker.minds_errors());
        if minds_errors && semantics::revalidate::is_error(self.task.attempt.beresp.status()) {
            if !self.is_clients_body() {
                self.note_fault();
            }
            return;
        }
        if let Some(transition) = backend.note_answer(self.task.attempt.trial, self.now()) {
            log_transition(&self.context.engine.ring, &backend, transition);
        }
        if self.task.attempt.body.size.is_empty() {
            self.note_success();
        }
    }

    /// The response is complete.
    pub(super) fn note_success(&mut self) {
        if let Some(backend) = self.task.route.backend.as_ref().filter(|_| !self.task.attempt.is_faulty) {
            backend.note_success();
        }
    }

    /// The client is gone, and no other request can use the response.
    pub(super) fn give_up(&mut self) -> Step {
        self.log_given_up();
        if let Some(exchange) = self.task.attempt.exchange.take() {
            OriginExchange::close(exchange, crate::origin::close_reason::BODY, &mut self.log);
        }
        Step::Fail
    }

    pub(super) fn log_given_up(&mut self) {
        self.log.record(Tag::Debug, b"Fetch: Pass delivery abandoned");
        self.why(Reason::FetchGivenUp, "");
        self.context.count(Main::FailGivenUp);
    }
}

/// Logs the change that an outcome has caused in the circuit breaker.
pub(crate) fn log_transition(ring: &LogRing, backend: &Backend, transition: Transition) {
    let (word, text) = match transition {
        Transition::Closed => ("healthy", "an answer has come".to_owned()),
        Transition::Opened { time, in_row, share: (failed, all) } => {
            let time = time.as_secs_f64();
            ("sick", format!("aside for {time:.3}s: {in_row} failures in a row, {failed} of {all} failed of late"))
        }
    };
    // Compat: the fields of a probe's record; there is no window here.
    ring.write_fmt(
        Tag::BackendHealth,
        LogId::NONE,
        format_args!("{} Went {word} -------- 0 0 0 0.000000 0.000000 \"{text}\"", backend.name()),
    );
}
