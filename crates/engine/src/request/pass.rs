//! vcl_pass: the response is fetched for this request alone.
//!
//! Comes from: Receive (over Hash), Lookup, Hit or Miss. Continues with: Await, or the step that
//! VCL returns.

use super::{Run, Step};
use crate::fetch::FetchMode;
use crate::ruling::{Failed, PassRuling};
use surface::counter::Main;

impl Run<'_> {
    pub(super) async fn pass(&mut self) -> Step {
        self.prepare_legacy_request(FetchMode::Pass);
        match self.call_vcl().await {
            Ok(PassRuling::Fetch) => {
                self.context.count(Main::SPass);
                self.order_fetch(FetchMode::Pass);
                Step::Await
            }
            Ok(PassRuling::Restart) => Step::Restart,
            Ok(PassRuling::Synth(line)) => self.synth_ruling(line),
            Err(Failed) => Step::VclFailed,
        }
    }
}
