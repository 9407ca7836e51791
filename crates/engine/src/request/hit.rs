//! vcl_hit: there is an object. One in grace is delivered while one request's fetch refreshes it.
//!
//! Comes from: Lookup. Goes to: Deliver, or where VCL says.

use super::{Run, Step};
use crate::fetch::FetchMode;
use crate::ruling::{Failed, HitRuling};
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
                // What is sent is not the object that was hit, and yet X-Varnish names one. Compat: c00010.
                self.request.task.found.is_hit = true;
                return Step::Pass;
            }
            Ok(HitRuling::Restart) => Step::Restart,
            Ok(HitRuling::Synth(line)) => self.synth_ruling(line),
            Err(Failed) => Step::VclFailed,
        };
        self.request.task.forget_lookup();
        step
    }

    /// Orders the refresh; false when there is no memory for it. It asks what this request asks, body and all: one that is still in the connection is handed to
    /// it before the answer, as in Varnish, since the next request comes behind it.
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
