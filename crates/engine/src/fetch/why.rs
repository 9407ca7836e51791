//! Reasons (`why`) of the origin's side, recorded where the decision is taken.
//!
//! Next file: `surface::reason`, which has the words for each reason.

use super::Fetch;
use crate::logged::Thousandths;
use crate::world::Decision;
use semantics::rfc::Refusal;
use surface::reason::{self, RECORD, Reason, STALE_PIECE};

impl Fetch {
    /// Records a reason with its details: `name=value …`, or nothing.
    pub(super) fn why(&mut self, reason: Reason, details: &str) {
        self.context.histograms.count_reason(reason);
        if self.task.order.parameters.tells_reasons() {
            let blank: &[u8] = if details.is_empty() { b"" } else { b" " };
            let parts = [RECORD.as_bytes(), reason.row().word.as_bytes(), blank, details.as_bytes()];
            self.log.record_parts(reason::TAG, &parts);
        }
    }

    /// Records the decision of the method that ran last, and its place in the VCL.
    pub(super) fn why_vcl(&mut self, reason: Reason) {
        self.context.histograms.count_reason(reason);
        if self.task.order.parameters.tells_reasons() {
            let decision = Decision::of(&self.machine, &self.task.order.vcl.program);
            self.log.record_fmt(reason::TAG, format_args!("{RECORD}{} {decision}", reason.row().word));
        }
    }

    /// VCL made the response uncacheable: records where that was set, or the place of the action
    /// that did it. If the built-in VCL considered the response expired, the place that set its ttl
    /// is recorded as well.
    fn why_uncacheable(&mut self) {
        let Some(noted) = self.task.life.uncacheable_by.as_ref().filter(|_| self.task.order.parameters.tells_reasons())
        else {
            return self.why_vcl(Reason::NotStoredByVcl);
        };
        let decision = Decision::noted(noted, &self.task.order.vcl.program);
        let mut details = decision.to_string();
        if decision.is_under(STALE_PIECE)
            && let Some(ttl) = self.set_ttl(1)
        {
            details.push(' ');
            details.push_str(&ttl);
        }
        self.why(Reason::NotStoredByVcl, &details);
    }

    /// `ttl-at=<source>:<line>`: where VCL set the ttl, the last time (0) or the time before (1).
    /// The time before matters because the built-in VCL also sets the ttl when it marks a response
    /// uncacheable.
    fn set_ttl(&self, before: usize) -> Option<String> {
        let noted = self.task.attempt.verdict.ttl_by[before].as_ref()?;
        Some(format!("ttl-at={}", Decision::noted(noted, &self.task.order.vcl.program).place()?))
    }

    /// Records why the response is stored or not. Must be called once that is decided.
    pub(super) fn why_stored(&mut self, is_full: bool) {
        let lives = self.task.attempt.verdict.lives_at(self.now());
        let is_pass = self.task.order.mode == super::FetchMode::Pass;
        match (is_full, self.task.attempt.kept.is_stored) {
            (true, _) => self.why(Reason::NotStoredFull, ""),
            (false, true) => {
                let seconds = self.task.attempt.verdict.ttl;
                let reason = if self.task.attempt.is_synthetic { Reason::StoredError } else { Reason::Stored };
                self.why(reason, &format!("seconds={}", Thousandths(seconds)));
            }
            (false, false) if is_pass => self.why(Reason::NotStoredPass, ""),
            (false, false) if self.task.life.is_vary_unusable => self.why(Reason::NotStoredVary, ""),
            (false, false) if self.task.life.is_for_other_queries => self.why(Reason::NotStoredQuery, ""),
            (false, false) if self.task.attempt.is_synthetic => self.why(Reason::NotStoredError, ""),
            (false, false) if self.task.life.uncacheable => self.why_uncacheable(),
            (false, false) if let Some(refusal) = self.task.policy_refusal() => {
                let details = match refusal {
                    Refusal::Marked => self.leak_details(),
                    _ => self.set_ttl(0).unwrap_or_default(),
                };
                self.why(super::cacheability::reason_of(refusal), &details);
            }
            (false, false) if !lives => {
                let details = self.set_ttl(0).unwrap_or_default();
                self.why(Reason::NotStoredDead, &details);
            }
            // There was no request to store it for: the busy mark is gone.
            (false, false) => self.why(Reason::NotStoredPass, ""),
        }
    }
}
