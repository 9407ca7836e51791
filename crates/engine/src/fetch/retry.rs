//! Retry: the fetch starts again under a new vxid, with the request as VCL left it.
//!
//! All results of the last attempt are dropped. A client's body that is gone cannot be sent again.

use super::task::Attempt;
use super::{Fetch, Step};
use shm::log::LogId;
use surface::tag::Tag;

impl Fetch {
    pub(super) fn retry(&mut self) -> Step {
        if !self.can_send_again() {
            self.log.record(Tag::Error, b"Retry not possible, req.body not cached");
            return Step::Fail;
        }
        self.task.life.retries += 1;
        self.timestamp("Retry");
        let now = self.now();
        let last = self.task.life.vxid;
        self.task.life.vxid = self.context.next_vxid();
        self.log.record_fmt(Tag::Link, format_args!("bereq {} retry", self.task.life.vxid));
        self.log.end();
        self.log.start(LogId::backend(self.task.life.vxid), self.task.life.started);
        self.log.continue_at(now);
        self.log.record_fmt(Tag::Begin, format_args!("bereq {last} retry"));
        self.restore_body_headers();
        self.task.attempt = Attempt::default();
        Step::Prepare
    }
}
