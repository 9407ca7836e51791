//! vcl_hit: there is an object. An object in grace is delivered while the fetch of one request refreshes it.
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
                // The object that was hit is not what is sent, but X-Varnish names one all the same. Compat: c00010.
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

    /// Orders the refresh; false when there is no memory for it. It sends what this request asks, including the body. A body
    /// that is still in the connection is handed over before the answer is sent, as in Varnish, since the next request comes
    /// after it.
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
