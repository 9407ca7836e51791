//! Retry: the fetch begins anew under a vxid of its own, with the request as VCL left it.
//!
//! Only what VCL said about the last response is forgotten; a client's body that is gone cannot be sent again.

use super::{Fetch, Step, Verdict};
use shm::log::LogId;
use surface::tag::Tag;

impl Fetch {
    pub(super) fn retry(&mut self) -> Step {
        if !self.can_send_again() {
            self.log.record(Tag::Error, b"Retry not possible, req.body not cached");
            return Step::Fail;
        }
        self.retries += 1;
        self.timestamp("Retry");
        let now = self.now();
        let last = self.vxid;
        self.vxid = self.context.engine.vxids.next();
        self.log.record_fmt(Tag::Link, format_args!("bereq {} retry", self.vxid));
        self.log.end();
        self.log.start(LogId::backend(self.vxid), self.started);
        self.log.continue_at(now);
        self.log.record_fmt(Tag::Begin, format_args!("bereq {last} retry"));
        self.verdict = Verdict::default();
        self.restore_body_headers();
        self.error_status = 0;
        self.error_reason.clear();
        self.synthetic.clear();
        self.is_synthetic = false;
        self.received_pieces = 0;
        self.wants_fresh = false;
        self.beresp.clear();
        Step::Prepare
    }
}
