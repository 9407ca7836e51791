//! Kinds of fetch failure: for each its reason, the value of `beresp.reason` in vcl_backend_error
//! under the parameter `backend_error_reasons`, and its counter.
//!
//! The words of `copal why` are in the rows of `reason.rs`. Kinds without a row (VCL's own errors)
//! keep the phrase of Varnish. Next file: `reason.rs`.

use crate::counter::Main;
use crate::reason::Reason;

/// Place where a failure is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountedBy {
    /// Counted by the code that opens connections, with this counter.
    Opening(&'static str),
    /// Counted when the fetch logs it.
    Fetch(Main),
}

/// One kind of failure.
#[derive(Debug)]
pub struct FailureRow {
    /// Reason of this failure.
    pub reason: Reason,
    /// For `beresp.reason`.
    pub phrase: &'static str,
    /// Counter of this failure.
    pub counted_by: CountedBy,
    /// True if the origin is at fault: the failure counts for `.fail_limit` and `.fail_ratio`.
    pub is_origins_fault: bool,
}

const fn row(reason: Reason, phrase: &'static str, counted_by: CountedBy, is_origins_fault: bool) -> FailureRow {
    FailureRow { reason, phrase, counted_by, is_origins_fault }
}

/// Phrase for failures without a row, and for all failures unless `backend_error_reasons` is on.
pub const PHRASE: &str = "Backend fetch failed";

/// Every kind of failure.
pub static FAILURES: &[FailureRow] = &[
    row(Reason::NoBackend, "No backend", CountedBy::Fetch(Main::FailNoBackend), false),
    row(Reason::BackendSick, "Backend sick", CountedBy::Opening("MAIN.backend_unhealthy"), false),
    row(Reason::BackendAside, "Backend set aside", CountedBy::Opening("MAIN.backend_aside"), false),
    row(Reason::BackendBusy, "Backend busy", CountedBy::Opening("MAIN.backend_busy"), false),
    row(Reason::BackendQueueFull, "Backend queue full", CountedBy::Opening("MAIN.backend_queue_full"), false),
    row(Reason::BackendWaitTimeout, "Backend queue timeout", CountedBy::Opening("MAIN.backend_wait_timeout"), false),
    row(Reason::BackendHeldDown, "Backend held down", CountedBy::Opening("VBE.*.helddown"), false),
    row(Reason::ConnectRefused, "Backend connection refused", CountedBy::Opening("VBE.*.fail_econnrefused"), true),
    row(Reason::ConnectTimeout, "Backend connection timeout", CountedBy::Opening("VBE.*.fail_etimedout"), true),
    row(Reason::ConnectFailed, "Backend connection failed", CountedBy::Opening("VBE.*.fail"), true),
    row(Reason::ConnectLocalError, "Backend connection local error", CountedBy::Opening("VBE.*.local_error"), false),
    row(Reason::ProxyHeaderFailed, "Backend refused PROXY header", CountedBy::Opening("MAIN.backend_fail"), true),
    row(Reason::TlsFailed, "Backend TLS failed", CountedBy::Opening("MAIN.backend_tls_failed"), true),
    row(Reason::RequestNotSent, "Backend request not sent", CountedBy::Fetch(Main::FailNotSent), true),
    row(Reason::RequestUnsayable, "Backend request unsayable", CountedBy::Fetch(Main::FailUnsayable), false),
    row(Reason::OriginClosed, "Backend closed connection", CountedBy::Fetch(Main::FailClosed), true),
    row(Reason::OriginReset, "Backend reset connection", CountedBy::Fetch(Main::FailReset), true),
    row(Reason::FirstByteTimeout, "Backend first byte timeout", CountedBy::Fetch(Main::FailFirstByteTimeout), true),
    row(
        Reason::BetweenBytesTimeout,
        "Backend between bytes timeout",
        CountedBy::Fetch(Main::FailBetweenBytesTimeout),
        true,
    ),
    row(Reason::LastByteTimeout, "Backend last byte timeout", CountedBy::Fetch(Main::FailLastByteTimeout), true),
    row(Reason::ResponseTooLarge, "Backend response head too large", CountedBy::Fetch(Main::FailHeadTooLarge), true),
    row(Reason::ResponseGarbled, "Backend response garbled", CountedBy::Fetch(Main::FailGarbled), true),
    row(Reason::BodyCutShort, "Backend body cut short", CountedBy::Fetch(Main::FailBodyCut), true),
    row(Reason::BodyBroken, "Backend body broken", CountedBy::Fetch(Main::FailBodyBroken), true),
    row(Reason::BodyNotProcessed, "Backend body unprocessable", CountedBy::Fetch(Main::FailBodyUnprocessed), false),
    row(Reason::StorageRefused, "No room for response", CountedBy::Fetch(Main::FailNoStorage), false),
    row(Reason::ClientBodyLost, "Request body lost", CountedBy::Fetch(Main::FailClientBody), false),
    row(Reason::MemoryShort, "Out of memory for requests", CountedBy::Opening("MAIN.req_refused"), false),
    row(Reason::RetryBudgetSpent, "Backend retry budget spent", CountedBy::Fetch(Main::BackendRetryRefused), false),
];

impl Reason {
    /// Kind of failure with this reason; `None` if there is none.
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
            assert_eq!(FAILURES.iter().filter(|other| other.counted_by == row.counted_by).count(), 1, "{}", row.phrase);
            assert_eq!(FAILURES.iter().filter(|other| other.reason == row.reason).count(), 1, "{}", row.phrase);
            assert!(row.phrase.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' '), "{}", row.phrase);
        }
    }

    #[test]
    fn counters_that_are_counted_elsewhere_exist() {
        for row in FAILURES {
            let CountedBy::Opening(name) = row.counted_by else { continue };
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
        let page = include_str!("../../../docs/guide/origins.md");
        for row in FAILURES {
            let counter = match row.counted_by {
                CountedBy::Opening(name) => name.to_owned(),
                CountedBy::Fetch(counter) => format!("MAIN.{}", MAIN.counters[counter as usize].name),
            };
            let fault = if row.is_origins_fault { "yes" } else { "" };
            let line = format!("| `{}` | {} | `{counter}` | {fault} |\n", row.reason.row().word, row.phrase);
            assert!(page.contains(&line), "docs/guide/origins.md lacks {line}");
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
