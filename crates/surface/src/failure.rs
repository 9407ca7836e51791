//! How a fetch fails: for each kind its reason, what `beresp.reason` says in vcl_backend_error under the parameter
//! `backend_error_reasons`, and its counter.
//!
//! The words of `copal why` are in the rows of `reason.rs`. A kind that is not here (VCL's own errors) keeps the phrase of
//! Varnish. Next file: `reason.rs`.

use crate::counter::Main;
use crate::reason::Reason;

/// Where a failure is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tally {
    /// Where connections are opened: this counter.
    Opening(&'static str),
    /// When the fetch logs it.
    Fetch(Main),
}

/// One kind of failure.
#[derive(Debug)]
pub struct FailureRow {
    /// Its reason.
    pub reason: Reason,
    /// For `beresp.reason`.
    pub phrase: &'static str,
    /// Its counter.
    pub tally: Tally,
    /// It tells against the origin: it counts for `.fail_limit` and `.fail_ratio`.
    pub is_origins_fault: bool,
}

const fn row(reason: Reason, phrase: &'static str, tally: Tally, is_origins_fault: bool) -> FailureRow {
    FailureRow { reason, phrase, tally, is_origins_fault }
}

/// The phrase for failures that are not here, and for all of them unless `backend_error_reasons` is on.
pub const PHRASE: &str = "Backend fetch failed";

/// Every kind of failure.
pub static FAILURES: &[FailureRow] = &[
    row(Reason::NoBackend, "No backend", Tally::Fetch(Main::FetchNoBackend), false),
    row(Reason::BackendSick, "Backend sick", Tally::Opening("MAIN.backend_unhealthy"), false),
    row(Reason::BackendAside, "Backend set aside", Tally::Opening("MAIN.backend_aside"), false),
    row(Reason::BackendBusy, "Backend busy", Tally::Opening("MAIN.backend_busy"), false),
    row(Reason::BackendQueueFull, "Backend queue full", Tally::Opening("MAIN.backend_queue_full"), false),
    row(Reason::BackendWaitTimeout, "Backend queue timeout", Tally::Opening("MAIN.backend_wait_timeout"), false),
    row(Reason::BackendHeldDown, "Backend held down", Tally::Opening("VBE.*.helddown"), false),
    row(Reason::ConnectRefused, "Backend connection refused", Tally::Opening("VBE.*.fail_econnrefused"), true),
    row(Reason::ConnectTimeout, "Backend connection timeout", Tally::Opening("VBE.*.fail_etimedout"), true),
    row(Reason::ConnectFailed, "Backend connection failed", Tally::Opening("VBE.*.fail"), true),
    row(Reason::ConnectLocalError, "Backend connection local error", Tally::Opening("VBE.*.local_error"), false),
    row(Reason::ProxyHeaderFailed, "Backend refused PROXY header", Tally::Opening("MAIN.backend_fail"), true),
    row(Reason::TlsFailed, "Backend TLS failed", Tally::Opening("MAIN.backend_tls_failed"), true),
    row(Reason::RequestNotSent, "Backend request not sent", Tally::Fetch(Main::FetchNotSent), true),
    row(Reason::RequestUnsayable, "Backend request unsayable", Tally::Fetch(Main::FetchUnsayable), false),
    row(Reason::OriginClosed, "Backend closed connection", Tally::Fetch(Main::FetchClosed), true),
    row(Reason::OriginReset, "Backend reset connection", Tally::Fetch(Main::FetchReset), true),
    row(Reason::FirstByteTimeout, "Backend first byte timeout", Tally::Fetch(Main::FetchFirstByteTimeout), true),
    row(
        Reason::BetweenBytesTimeout,
        "Backend between bytes timeout",
        Tally::Fetch(Main::FetchBetweenBytesTimeout),
        true,
    ),
    row(Reason::LastByteTimeout, "Backend last byte timeout", Tally::Fetch(Main::FetchLastByteTimeout), true),
    row(Reason::ResponseTooLarge, "Backend response head too large", Tally::Fetch(Main::FetchHeadTooLarge), true),
    row(Reason::ResponseGarbled, "Backend response garbled", Tally::Fetch(Main::FetchGarbled), true),
    row(Reason::BodyCutShort, "Backend body cut short", Tally::Fetch(Main::FetchBodyCut), true),
    row(Reason::BodyBroken, "Backend body broken", Tally::Fetch(Main::FetchBodyBroken), true),
    row(Reason::BodyNotProcessed, "Backend body unprocessable", Tally::Fetch(Main::FetchBodyUnprocessed), false),
    row(Reason::StorageRefused, "No room for response", Tally::Fetch(Main::FetchNoStorage), false),
    row(Reason::ClientBodyLost, "Request body lost", Tally::Fetch(Main::FetchClientBody), false),
    row(Reason::MemoryShort, "Out of memory for requests", Tally::Opening("MAIN.req_refused"), false),
    row(Reason::RetryBudgetSpent, "Backend retry budget spent", Tally::Fetch(Main::BackendRetryRefused), false),
];

impl Reason {
    /// The kind of failure that it is the reason of; `None` if of none.
    #[must_use]
    pub fn failure(self) -> Option<&'static FailureRow> {
        FAILURES.iter().find(|row| row.reason == self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::{MAIN, VBE};
    use crate::reason::{Layer, REASONS};

    #[test]
    fn each_kind_has_a_phrase_and_a_counter_of_its_own() {
        for row in FAILURES {
            assert_eq!(FAILURES.iter().filter(|other| other.phrase == row.phrase).count(), 1, "{}", row.phrase);
            assert_eq!(FAILURES.iter().filter(|other| other.tally == row.tally).count(), 1, "{}", row.phrase);
            assert_eq!(FAILURES.iter().filter(|other| other.reason == row.reason).count(), 1, "{}", row.phrase);
            assert!(row.phrase.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' '), "{}", row.phrase);
        }
    }

    #[test]
    fn counters_that_are_counted_elsewhere_exist() {
        for row in FAILURES {
            let Tally::Opening(name) = row.tally else { continue };
            let (section, name) = name.split_once('.').unwrap();
            let (rows, name) = match section {
                "VBE" => (VBE.counters, name.trim_start_matches("*.")),
                _ => (MAIN.counters, name),
            };
            assert!(rows.iter().any(|counter| counter.name == name), "{name}");
        }
    }

    #[test]
    fn every_kind_is_documented() {
        let page = include_str!("../../../docs/origins.md");
        for row in FAILURES {
            let counter = match row.tally {
                Tally::Opening(name) => name.to_owned(),
                Tally::Fetch(counter) => format!("MAIN.{}", MAIN.counters[counter as usize].name),
            };
            let fault = if row.is_origins_fault { "yes" } else { "" };
            let line = format!("| `{}` | {} | `{counter}` | {fault} |\n", row.reason.row().word, row.phrase);
            assert!(page.contains(&line), "docs/origins.md lacks {line}");
        }
    }

    #[test]
    fn every_reason_of_the_origins_layer_is_a_failure_or_known_to_be_none() {
        let others = [
            Reason::StaleOnError,
            Reason::StaleForbidden,
            Reason::NotModifiedOther,
            Reason::PartOutdated,
            Reason::SliceOutdated,
            Reason::ResponseNotConditional,
            Reason::ErrorByVcl,
            Reason::TooManyRetries,
            Reason::FetchGivenUp,
        ];
        for row in REASONS.iter().filter(|row| row.layer == Layer::Origin) {
            assert!(row.reason.failure().is_some() != others.contains(&row.reason), "{}", row.word);
        }
    }
}
