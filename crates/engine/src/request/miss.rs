//! vcl_miss: there is no object, and this request has promised to fetch one; others may be waiting for it.
//!
//! Comes from: Lookup. Goes to: Await, or where VCL says; then the promise is withdrawn, which wakes the others.

use super::{Ruling, Run, Step};
use crate::fetch::FetchMode;
use surface::counter::Main;
use surface::reason::Reason;
use surface::vcl::{Action, Method};

impl Run<'_> {
    pub(super) async fn miss(&mut self) -> Step {
        self.prepare_legacy_request(FetchMode::Fetch);
        let step = match self.call_vcl(Method::Miss).await {
            Ruling::Action(action, arguments) => match action {
                Action::Fetch => {
                    self.context.count(Main::CacheMiss);
                    self.order_fetch(FetchMode::Fetch);
                    return Step::Await;
                }
                Action::Pass => {
                    self.why_vcl(Reason::PassByVcl);
                    Step::Pass
                }
                Action::Restart => Step::Restart,
                Action::Synth => self.synth_ruling(arguments),
                Action::Fail
                | Action::Pipe
                | Action::Hash
                | Action::Purge
                | Action::Vcl
                | Action::Lookup
                | Action::Deliver
                | Action::Abandon
                | Action::Error
                | Action::Retry
                | Action::Ok
                | Action::Merge
                | Action::ObjStale
                | Action::Beresp => Step::VclFailed,
            },
            Ruling::Failed => Step::VclFailed,
        };
        let is_hitmiss = self.request.task.found.is_hitmiss;
        self.request.task.forget_lookup();
        self.request.task.found.is_hitmiss = is_hitmiss && step == Step::Pass;
        step
    }
}
