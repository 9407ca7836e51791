//! How a fetch fails: what is logged and counted, what the backend is told, and what VCL reads of it.
//!
//! The kinds of failure are the rows of `surface::failure`. A backend whose VCL sets limits counts those that are the origin's fault
//! ([`backend::Trust`]) and may be set aside, or come back with an answer; that leaves a `Backend_health` record outside
//! transactions, like that of a probe. A connection that was dead before it was used says nothing about its origin.

use super::{Fetch, Step};
use crate::origin::OriginExchange;
use backend::{Backend, Turn};
use shm::log::{LogId, LogRing};
use surface::counter::Main;
use surface::failure::{PHRASE, Tally};
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

impl Fetch {
    /// Writes a `FetchError` record, records the reason, and counts the failure.
    pub(super) fn log_fetch_error(&mut self, reason: Reason, text: &str) {
        self.log_without_count(reason, text);
        self.count_failure(reason);
    }

    /// Only the records.
    pub(super) fn log_without_count(&mut self, reason: Reason, text: &str) {
        self.log.record(Tag::FetchError, text.as_bytes());
        self.why(reason, &format!("text={text}"));
    }

    /// The connection broke before the origin had answered: if it may have been dead before, the next step is to send again on
    /// another one. `why` it is closed.
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
        None
    }

    /// Whether the backend may be asked once more for what it has failed to answer. If so, that is counted.
    pub(super) fn may_repeat(&self) -> bool {
        self.task.route.backend.as_ref().is_none_or(|backend| backend.may_repeat())
    }

    /// Counts a failure of this kind, and tells the backend if it is the origin's fault.
    pub(super) fn count_failure(&mut self, reason: Reason) {
        let Some(row) = reason.failure() else { return };
        if let Tally::Fetch(counter) = row.tally {
            self.context.count(counter);
        }
        self.task.attempt.failure = Some(reason);
        if row.is_origins_fault && !self.is_clients_time(reason) {
            self.note_fault();
        }
    }

    /// Whether the origin ran out of time since it had no whole request to answer: the client was slow.
    fn is_clients_time(&self, reason: Reason) -> bool {
        let Some(standing) = self.task.attempt.exchange.as_ref().map(OriginExchange::standing) else { return false };
        match reason {
            Reason::FirstByteTimeout | Reason::BetweenBytesTimeout => standing.awaits_client,
            Reason::LastByteTimeout => {
                let due = self.task.attempt.last_byte_by.map(|due| due + standing.client_time);
                standing.awaits_client || due.is_some_and(|due| Instant::now() < due)
            }
            _ => false,
        }
    }

    /// What `beresp.reason` says of the failure.
    pub(super) fn failure_phrase(&self) -> &'static str {
        let told = self.task.attempt.failure.filter(|_| self.task.order.parameters.backend_error_reasons);
        told.and_then(Reason::failure).map_or(PHRASE, |row| row.phrase)
    }

    /// The origin has failed this fetch.
    pub(super) fn note_fault(&mut self) {
        self.task.attempt.is_faulty = true;
        let now = self.now();
        let Some(backend) = &self.task.route.backend else { return };
        if let Some(turn) = backend.note_fault(self.task.attempt.trial, now) {
            log_turn(&self.context.engine.ring, backend, turn);
        }
    }

    /// The head of a response has come.
    pub(super) fn note_answer(&mut self) {
        let Some(backend) = self.task.route.backend.clone() else { return };
        let minds_errors = backend.trust().is_some_and(|trust| trust.minds_errors());
        if minds_errors && semantics::revalidate::is_error(self.task.attempt.beresp.status()) {
            return self.note_fault();
        }
        if let Some(turn) = backend.note_answer(self.task.attempt.trial, self.now()) {
            log_turn(&self.context.engine.ring, &backend, turn);
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

    /// The client has gone, and nobody else can use what this would bring.
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
        self.context.count(Main::FetchGivenUp);
    }
}

/// Leaves a record of what an outcome has changed.
pub(crate) fn log_turn(ring: &LogRing, backend: &Backend, turn: Turn) {
    let (word, text) = match turn {
        Turn::Back => ("healthy", "an answer has come".to_owned()),
        Turn::Aside { time, in_row, share: (failed, all) } => {
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
