//! vcl_hash: the digest under which the response is kept. It runs for every request, whatever vcl_recv decided.
//!
//! Comes from: Receive. Goes to: what vcl_recv decided, or VclFailed. Each `hash_data` call feeds its pieces and one zero byte.

use super::{Ruling, Run, Step};
use sha2::Digest;
use surface::vcl::{Action, Method};

impl Run<'_> {
    pub(super) async fn hash(&mut self) -> Step {
        self.request.task.hasher.reset();
        match self.call_vcl(Method::Hash).await {
            Ruling::Action(Action::Lookup, _) => {
                let task = &mut self.request.task;
                task.life.digest = task.hasher.finalize_reset().into();
                task.life.after_hash
            }
            Ruling::Action(
                Action::Fail
                | Action::Synth
                | Action::Restart
                | Action::Pass
                | Action::Pipe
                | Action::Hash
                | Action::Purge
                | Action::Vcl
                | Action::Fetch
                | Action::Deliver
                | Action::Abandon
                | Action::Error
                | Action::Retry
                | Action::Ok
                | Action::Merge
                | Action::ObjStale
                | Action::Beresp,
                _,
            )
            | Ruling::Failed => Step::VclFailed,
        }
    }
}
