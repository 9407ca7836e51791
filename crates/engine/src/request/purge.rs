//! vcl_purge: everything under the digest is gone; VCL says what the client hears.
//!
//! Comes from: Receive (over Hash). Goes to: Synth or Restart.

use super::{Ruling, Run, Step};
use cache::Purge;
use surface::counter::Main;
use surface::vcl::{Action, Method};

impl Run<'_> {
    pub(super) async fn purge(&mut self) -> Step {
        let now = self.context.clock.now();
        let count = self.context.engine.cache.purge(&self.request.task.life.digest, Purge::Hard, now);
        self.context.count(Main::NPurges);
        self.context.counters.add(Main::NObjPurged, count as u64);
        match self.call_vcl(Method::Purge).await {
            Ruling::Action(action, arguments) => match action {
                Action::Synth => self.synth_ruling(arguments),
                Action::Restart => Step::Restart,
                Action::Fail
                | Action::Pass
                | Action::Pipe
                | Action::Hash
                | Action::Purge
                | Action::Vcl
                | Action::Fetch
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
