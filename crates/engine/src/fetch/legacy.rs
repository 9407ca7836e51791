//! The old dialects (1.x to 3.0) on the origin's side: `vcl_fetch` works on the client's request,
//! and decides for the client.
//!
//! The client's side makes the request to the origin before vcl_miss and vcl_pass and hands it over
//! (`PreparedRequest`), together with the part of the client's request that VCL may read and change
//! (`ClientRequest`; both are in `legacy_order.rs`). Both sides run on one event loop; the client's
//! side waits, and gets its request back with the answer. If the client leaves, the fetch keeps
//! both. The dialects' rules of cacheability are here too: [`Fetch::legacy_lifetime`] before
//! vcl_fetch, then [`Fetch::legacy_deliver`] and [`Fetch::legacy_pass`]. Source: behaviour of
//! Varnish 1.1.2, 2.0.6, 2.1.5 and 3.0.7.

use super::{Fetch, FetchAnswer, FetchMode, Step};
use crate::logged::{self, BEREQ};
use crate::ruling::StatusLine;
use backend::{Notes, OpenError};
use semantics::is_cacheable_of_old;
use surface::counter::{Main, Vbe};
use surface::vcl::Generation;

impl Fetch {
    /// The Prepare step, for a request that VCL has already seen.
    pub(super) fn legacy_prepare(&mut self) -> Step {
        self.log.timestamp("Start", self.task.life.started);
        logged::log_request(&mut self.log, BEREQ, &self.task.bereq);
        self.task.bereq_original.copy_from(&self.task.bereq);
        Step::Send
    }

    /// Treatment of a response by the dialect before vcl_fetch: it is received completely unless
    /// VCL streams it, and its status decides if it is cacheable.
    pub(super) fn legacy_lifetime(&mut self) {
        let status = self.task.attempt.beresp.status();
        self.task.attempt.verdict.do_stream = false;
        self.task.attempt.verdict.is_cacheable = is_cacheable_of_old(status)
            && match self.task.order.vcl.generation {
                Generation::V1 => self.task.attempt.verdict.ttl > 0.0,
                Generation::V21 => self.task.order.mode != FetchMode::Pass,
                Generation::V20 | Generation::V3 | Generation::V4 => true,
            };
        if let Some(client) = &mut self.task.life.client {
            client.response_status = status;
        }
    }

    /// vcl_fetch returned deliver. Only 2.1 then considers if the response is cacheable; before,
    /// `deliver` and `insert` meant the cache. A response without ttl has no grace either.
    pub(super) fn legacy_deliver(&mut self) {
        if self.task.attempt.verdict.origin + self.task.attempt.verdict.ttl <= self.now() {
            self.task.attempt.verdict.ttl = 0.0;
            self.task.attempt.verdict.grace = 0.0;
            self.task.attempt.verdict.keep = 0.0;
        }
        if self.task.order.vcl.generation == Generation::V21 && !self.task.attempt.verdict.is_cacheable {
            self.task.life.uncacheable = true;
            self.task.attempt.verdict.is_unremembered = true;
        }
    }

    /// vcl_fetch returned pass, without a duration: the marker lasts for the lifetime that the
    /// response would have had, in 2.x for `default_ttl` at least.
    pub(super) fn legacy_pass(&mut self) {
        self.task.attempt.verdict.grace = 0.0;
        self.task.attempt.verdict.keep = 0.0;
        match self.task.order.vcl.generation {
            Generation::V20 | Generation::V21 => {
                let age = self.now() - self.task.attempt.verdict.origin;
                self.task.attempt.verdict.ttl =
                    self.task.attempt.verdict.ttl.max(self.task.order.parameters.default_ttl + age);
            }
            Generation::V1 | Generation::V3 | Generation::V4 => {}
        }
        self.task.attempt.verdict.is_unremembered =
            self.task.order.vcl.generation == Generation::V21 && !self.task.attempt.verdict.is_cacheable;
    }

    /// vcl_fetch returned restart or error: the client's request carries that out, and there is no
    /// object.
    pub(super) fn order_client(&mut self, answer: FetchAnswer) -> Step {
        self.task.give_up_response(&self.context, &mut self.log);
        if self.task.order.vcl.is_legacy() {
            self.task.life.answer = answer;
        }
        Step::Fail
    }

    /// The answer for `error` in vcl_fetch; without a status the origin's is used.
    pub(super) fn synth_answer(&self, line: StatusLine) -> FetchAnswer {
        let status = line.status.unwrap_or_else(|| self.task.attempt.beresp.status());
        FetchAnswer::Synth { status, reason: self.scratch.get(line.reason).to_vec() }
    }

    /// There is no usable response: the client gets vcl_error.
    pub(super) fn legacy_error(&mut self) -> Step {
        if self.task.attempt.error_status == 0 {
            self.context.count(Main::FetchFailed);
        }
        self.timestamp("Error");
        let status = if self.task.attempt.error_status == 0 { 503 } else { self.task.attempt.error_status };
        if let Some(client) = &mut self.task.life.client {
            client.response_status = status;
        }
        self.task.life.answer =
            FetchAnswer::Synth { status, reason: std::mem::take(&mut self.task.attempt.error_reason) };
        Step::Fail
    }

    /// The error of a fetch whose backend is in saint mode for this request. Directors skip such a
    /// backend; this is for a backend that VCL chose directly.
    pub(super) fn refused_by_saint_mode(&self) -> Option<String> {
        let backend = self
            .task
            .route
            .backend
            .as_ref()
            .filter(|backend| self.task.order.vcl.is_legacy() && backend.is_healthy())?;
        let notes = Notes::new();
        if self.task.order.vcl.directors.is_healthy_for(self.task.used_backend()?, &self.resolving(&notes)) {
            return None;
        }
        backend.count(Vbe::Unhealthy, 1);
        self.context.count(Main::BackendUnhealthy);
        Some(OpenError::Unhealthy(backend.name().to_owned()).text())
    }
}
