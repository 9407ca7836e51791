//! A restart: the same client request, changed by VCL, under a new transaction id.
//!
//! Comes from: any VCL method but vcl_pipe and vcl_hash. Continues with: Receive, Synth after too
//! many, or Finish if the page that included it is no longer needed.

use super::{Run, Step};
use shm::log::LogId;
use surface::reason::Reason;
use surface::tag::Tag;

impl Run<'_> {
    pub(super) fn restart(&mut self) -> Step {
        if self.request.task.life.after_hash != Step::Restart {
            self.why_vcl(Reason::RestartByVcl);
        }
        self.request.task.forget_lookup();
        self.request.task.life.restarts += 1;
        let is_legacy = self.is_legacy();
        // In the old dialects vcl_recv runs once more before the restart is refused.
        if !is_legacy && self.request.task.life.restarts > self.request.task.settings.max_restarts {
            self.why(Reason::TooManyRestarts, b"");
            self.log().record(Tag::VCLError, b"Too many restarts");
            return self.synthesise(503, b"");
        }
        if self.is_given_up() {
            return self.leave();
        }
        let now = self.timestamp("Restart");
        let old = self.request.task.life.vxid;
        let new = self.context.next_vxid();
        let started = self.request.task.life.started;
        let log = self.log();
        log.record_fmt(Tag::Link, format_args!("req {new} restart"));
        log.end();
        log.start(LogId::client(new), started);
        log.record_fmt(Tag::Begin, format_args!("req {old} restart"));
        log.continue_at(now);
        log.timestamp("Start", now);
        self.request.task.life.vxid = new;
        if !is_legacy {
            self.request.task.life.error_status = 0;
        }
        self.request.task.error_reason.clear();
        Step::Receive
    }
}
