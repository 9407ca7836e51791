//! Error: there is no usable response; vcl_backend_error makes one.
//!
//! If others wait for the object, the error is kept for a second, so that they do not all reach a
//! failing origin one after the other; otherwise it is for one client only. VCL may set a longer
//! lifetime.

use super::fill::BodyFailure;
use super::task::Verdict;
use super::{Fetch, Step};
use crate::ruling::{ErrorRuling, Failed};
use semantics::rfc::Sharing;
use store::ObjectFlags;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

/// Seconds of ttl, grace and keep of an error that others wait for.
const AWAITED: (f64, f64, f64) = (1.0, 5.0, 5.0);

impl Fetch {
    pub(super) async fn error(&mut self) -> Step {
        if self.task.order.vcl.is_legacy() {
            return self.legacy_error();
        }
        if self.task.attempt.error_status == 0 {
            self.context.count(Main::FetchFailed);
        }
        if self.is_for_known_head() {
            // An error page cannot replace a slice.
            return Step::Fail;
        }
        let now = self.now();
        self.log.timestamp("Error", now);
        let has_origin_failed = self.task.attempt.error_status == 0;
        let is_forbidden = has_origin_failed && self.is_stale_forbidden();
        if is_forbidden {
            self.why(Reason::StaleForbidden, "");
            self.task.attempt.error_status = 504;
        }
        let status = if self.task.attempt.error_status == 0 { 503 } else { self.task.attempt.error_status };
        let reason = std::mem::take(&mut self.task.attempt.error_reason);
        let reason = match reason.as_slice() {
            b"" if self.task.attempt.error_status == 0 => self.failure_phrase().as_bytes(),
            b"" => semantics::reason::phrase(status % 1000).as_bytes(),
            given => given,
        };
        self.disown();
        self.make_response(status, reason);
        self.task.attempt.responded = now;
        let is_awaited = self.task.life.busy.as_ref().is_some_and(cache::Busy::has_waiters);
        let (ttl, grace, keep) = if is_awaited { AWAITED } else { (0.0, 0.0, 0.0) };
        // The page is not meant for one client, but VCL may set a cookie in it.
        let sharing = self.follows_rfc().then(Sharing::default);
        self.task.attempt.verdict =
            Verdict { do_stream: true, origin: now, ttl, grace, keep, sharing, ..Verdict::default() };
        self.task.attempt.synthetic.clear();
        self.task.attempt.is_synthetic = true;
        match self.run_vcl().await {
            Ok(ErrorRuling::Deliver) => self.deliver_error(has_origin_failed).await,
            Ok(ErrorRuling::Retry) => {
                if self.task.life.retries >= self.task.order.parameters.max_retries {
                    self.log.record(Tag::VCLError, b"Too many retries, failing");
                    return Step::Fail;
                }
                if self.may_repeat() {
                    return Step::Retry;
                }
                self.refuse_retry();
                self.deliver_error(has_origin_failed).await
            }
            Ok(ErrorRuling::Abandon) | Err(Failed) => Step::Fail,
        }
    }

    /// Answers with a stale object if there is one that may be used, else with the response of
    /// vcl_backend_error.
    async fn deliver_error(&mut self, has_origin_failed: bool) -> Step {
        if has_origin_failed && self.may_answer_stale() {
            return Step::Stale;
        }
        self.spare_refreshed();
        self.synthesise().await
    }

    /// VCL returns a retry that the backend's budget does not allow.
    pub(super) fn refuse_retry(&mut self) {
        let name = self.task.route.backend.as_ref().map_or("", |backend| backend.name()).to_owned();
        self.log_fetch_error(Reason::RetryBudgetSpent, &format!("backend {name}: retry budget spent"));
    }

    /// Stores the response of vcl_backend_error.
    async fn synthesise(&mut self) -> Step {
        let body = std::mem::take(&mut self.task.attempt.synthetic);
        let Some(object) = self.allocate(Some(body.len() as u64), ObjectFlags::SYNTHETIC, true) else {
            return Step::Fail;
        };
        if object.is_passing() {
            // Its buffer is limited: the client must be able to read while the page is written.
            self.publish();
        }
        match self.store(&object, &body).await {
            Ok(()) => {
                object.finish();
                Step::Commit
            }
            Err(error) => {
                let failure = BodyFailure::from(error);
                self.log_body_failure(&failure);
                self.body_failed(&failure, true)
            }
        }
    }
}
