//! Answers to the challenges of certificate authorities: sent before VCL runs, so that no VCL can
//! prevent a certificate.
//!
//! Comes from: Accept, while an order is under way. Continues with: Transmit. A request that is not
//! exactly an expected challenge is left to VCL, so that another ACME client can work behind Copal.

use super::{Run, Step};
use crate::logged::{self, REQ, RESP};
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

impl Run<'_> {
    /// Prepares the answer to a challenge; `None` if the request is not one. Only in clear:
    /// authorities send challenges without TLS.
    #[cold]
    pub(super) fn challenge(&mut self) -> Option<Step> {
        let request = &mut *self.request;
        let is_get = matches!(request.task.request.method(), b"GET" | b"HEAD");
        if !is_get || request.task.life.inclusion.is_some() || self.session.peer.tls.is_some() {
            return None;
        }
        let answer = self.context.engine.challenges.answer(request.task.request.target())?;
        let now = self.context.clock.now();
        request.log.record(Tag::ReqStart, self.session.start_record());
        logged::log_request(&mut request.log, REQ, &request.task.request);
        self.context.count(Main::SSynth);
        self.why(Reason::Challenge, b"");
        let request = &mut *self.request;
        let (task, log) = (&mut request.task, &mut request.log);
        task.forget_lookup();
        task.forget_response();
        task.answer.is_synthetic = true;
        task.life.responded_at = now;
        logged::set_status_line(log, RESP, &mut task.response, b"HTTP/1.1", 200, b"OK");
        let mut date = [0; 29];
        semantics::date::format(now, &mut date);
        logged::append(log, RESP, &mut task.response, "Date", &[&date]);
        logged::append(log, RESP, &mut task.response, "Content-Type", &[b"application/octet-stream"]);
        logged::append(log, RESP, &mut task.response, "Cache-Control", &[b"no-store"]);
        task.synthetic.clear();
        task.synthetic.extend_from_slice(&answer);
        let mut length = itoa::Buffer::new();
        let length = length.format(task.synthetic.len()).as_bytes();
        logged::append(log, RESP, &mut task.response, "Content-Length", &[length]);
        self.timestamp("Process");
        Some(Step::Transmit)
    }
}
