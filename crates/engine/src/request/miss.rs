//! vcl_miss: there is no object, and this request holds the busy mark to fetch one; others may be
//! waiting for it.
//!
//! Comes from: Lookup. Continues with: Await, or the step that VCL returns; in that case the busy
//! mark is released, which wakes the others.

use super::{Run, Step};
use crate::fetch::FetchMode;
use crate::ruling::{Failed, MissRuling};
use surface::counter::Main;
use surface::reason::Reason;

impl Run<'_> {
    pub(super) async fn miss(&mut self) -> Step {
        self.prepare_legacy_request(FetchMode::Fetch);
        let step = match self.call_vcl().await {
            Ok(MissRuling::Fetch) => {
                self.context.count(Main::CacheMiss);
                self.order_fetch(FetchMode::Fetch);
                return Step::Await;
            }
            Ok(MissRuling::Pass) => {
                self.why_vcl(Reason::PassByVcl);
                Step::Pass
            }
            Ok(MissRuling::Restart) => Step::Restart,
            Ok(MissRuling::Synth(line)) => self.synth_ruling(line),
            Err(Failed) => Step::VclFailed,
        };
        let is_hitmiss = self.request.task.found.is_hitmiss;
        self.request.task.forget_lookup();
        self.request.task.found.is_hitmiss = is_hitmiss && step == Step::Pass;
        step
    }
}
