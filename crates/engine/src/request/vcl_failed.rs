//! A VCL method failed: the client gets a 503 from vcl_synth, with its request as it was received,
//! and the session ends.
//!
//! Comes from: any VCL method but vcl_synth. Continues with: Synth, or Finish if the client left
//! while the method waited.

use super::{Run, Step};
use surface::close_reason::CloseReason;
use surface::reason::Reason;

impl Run<'_> {
    pub(super) fn vcl_failed(&mut self) -> Step {
        if self.request.task.life.is_left {
            return self.leave();
        }
        self.why_vcl(Reason::VclFailed);
        self.leave_vcl();
        let task = &mut self.request.task;
        task.forget_lookup();
        task.request.copy_from(&task.original);
        self.close(CloseReason::VclFailure);
        self.synthesise(503, b"VCL failed")
    }
}
