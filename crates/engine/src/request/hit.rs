//! vcl_hit: there is an object. An object in grace is delivered while the fetch of one request
//! refreshes it.
//!
//! Comes from: Lookup. Continues with: Deliver; Miss or again Lookup, to replace the object; or the
//! step that VCL returns.

use super::task::Found;
use super::{Run, Step};
use crate::fetch::FetchMode;
use crate::ruling::{Failed, HitRuling};
use std::sync::Arc;
use surface::counter::Main;
use surface::reason::Reason;

impl Run<'_> {
    pub(super) async fn hit(&mut self) -> Step {
        let step = match self.call_vcl().await {
            Ok(HitRuling::Deliver) => {
                self.count_hit();
                let is_refreshing = self.request.task.found.busy.is_some() && self.refresh().await;
                if !is_refreshing {
                    self.drain_body().await;
                }
                return Step::Deliver;
            }
            Ok(HitRuling::Pass) => {
                self.count_hit();
                self.why_vcl(Reason::PassByVcl);
                self.request.task.forget_lookup();
                // The object that was hit is not sent, but X-Varnish names an object anyway.
                // Compat: c00010.
                self.request.task.found.is_hit = true;
                return Step::Pass;
            }
            Ok(HitRuling::Miss | HitRuling::Fetch) => return self.replace(),
            Ok(HitRuling::Restart) => Step::Restart,
            Ok(HitRuling::Synth(line)) => self.synth_ruling(line),
            Err(Failed) => Step::VclFailed,
        };
        self.request.task.forget_lookup();
        step
    }

    /// Handles the hit as a miss: the response replaces the object, which others get until then.
    /// The request that has to refresh a stale object does it in the foreground, with validation;
    /// any other one fetches as with `req.hash_always_miss`, and does not join the waiting list.
    ///
    /// Compat: those releases passed a request without the busy mark, so that a fresh object was
    /// never replaced.
    fn replace(&mut self) -> Step {
        self.why_vcl(Reason::MissForced);
        let task = &mut self.request.task;
        let Found { busy, object, query_rule, .. } = std::mem::take(&mut task.found);
        task.found.query_rule = query_rule;
        let directives = &task.choices.request_directives;
        match (busy, object) {
            // Lookup examines the directives of the request.
            (Some(busy), Some(object)) if !directives.no_store && !directives.only_if_cached => {
                task.found.busy = Some(busy);
                task.found.stale = Some(Arc::clone(object.object()));
                Step::Miss
            }
            _ => {
                task.found.is_forced = true;
                Step::Lookup
            }
        }
    }

    /// Orders the refresh; false if there is no memory for it. The fetch sends this request,
    /// including the body. A body that is still in the connection is handed over before the answer
    /// is sent, as in Varnish, since the next request follows it.
    async fn refresh(&mut self) -> bool {
        if !self.order_fetch(FetchMode::Background) {
            return false;
        }
        if self.request.task.found.feed.is_some() {
            Box::pin(self.feed_fetch()).await;
        }
        self.timestamp("Fetch");
        self.context.count(Main::SFetch);
        self.context.count(Main::SBgfetch);
        true
    }
}
