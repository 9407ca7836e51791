//! vcl_pass: the response is fetched for this request alone.
//!
//! Comes from: Receive (over Hash), Lookup, Hit or Miss. Goes to: Await, or where VCL says.

use super::{Ruling, Run, Step};
use crate::fetch::FetchMode;
use surface::counter::Main;
use surface::vcl::{Action, Method};

impl Run<'_> {
    pub(super) async fn pass(&mut self) -> Step {
        self.prepare_legacy_request(FetchMode::Pass);
        match self.call_vcl(Method::Pass).await {
            Ruling::Action(action, arguments) => match action {
                Action::Fetch => {
                    self.context.count(Main::SPass);
                    self.order_fetch(FetchMode::Pass);
                    Step::Await
                }
                Action::Restart => Step::Restart,
                Action::Synth => self.synth_ruling(arguments),
                Action::Fail
                | Action::Pass
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
        }
    }
}
