//! Requirements of the transport on a request before VCL sees it, and the check of the memory for
//! requests.
//!
//! Comes from: the exchange, with the head parsed and the beginning logged. Continues with:
//! Receive; Finish after a bare answer; Transmit with the answer to a certificate authority.

use super::{Run, Step};
use crate::memory::MEMORY_SHORT;
use std::rc::Rc;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

impl Run<'_> {
    pub(super) async fn accept(&mut self) -> Step {
        if self.request.task.life.inclusion.is_none() {
            self.context.count(Main::ClientReq);
        } else if self.is_given_up() {
            return self.leave();
        }
        if self.context.memory.is_full() {
            self.refuse_for_memory(true);
            self.close(CloseReason::Overload);
            self.send_bare(503).await;
            return Step::Finish;
        }
        let request = &mut *self.request;
        match self.exchange.admit(&mut request.task.request, &mut request.log) {
            Ok(None) => {}
            Ok(Some(reason)) => self.close(reason),
            Err(refusal) => {
                self.context.count(refusal.counter);
                self.why(refusal.reason, b"");
                self.close(refusal.close);
                self.send_bare(refusal.status).await;
                return Step::Finish;
            }
        }
        if let Some(phase) = &self.session.peer.early
            && phase.is_under_way()
            && self.request.task.life.inclusion.is_none()
        {
            let phase = Rc::clone(phase);
            if !Box::pin(self.admit_early(phase)).await {
                return Step::Finish;
            }
        }
        if self.context.engine.draining.load(std::sync::atomic::Ordering::Relaxed) {
            self.close(CloseReason::RespClose);
        }
        if self.request.task.settings.trace_context && self.request.task.life.inclusion.is_none() {
            self.continue_trace();
        }
        let task = &mut self.request.task;
        task.life.is_head = task.request.method() == b"HEAD";
        task.original.copy_from(&task.request);
        task.forget_choices();
        if self.context.engine.challenges.is_any()
            && let Some(step) = self.challenge()
        {
            return step;
        }
        if let Some(port) = self.session.peer.listener.redirect_port
            && let Some(step) = Box::pin(self.redirect(port)).await
        {
            return step;
        }
        Step::Receive
    }

    /// True if the request may hold more memory than its base; if not, that is logged. `is_answer`
    /// means that the request is then answered with a 503; otherwise it continues without the extra
    /// memory.
    pub(super) fn may_hold_more(&mut self, is_answer: bool) -> bool {
        let is_short = self.context.memory.is_short();
        if is_short {
            self.refuse_for_memory(is_answer);
        }
        !is_short
    }

    #[cold]
    fn refuse_for_memory(&mut self, is_answer: bool) {
        self.log().record(Tag::Error, MEMORY_SHORT.as_bytes());
        if is_answer {
            self.context.count(Main::ReqRefused);
            self.why(Reason::MemoryShort, b"");
        }
    }

    /// Sends only a status. A final status ends the session.
    pub(crate) async fn send_bare(&mut self, status: u16) {
        let phrase = semantics::reason::phrase(status);
        let protocol = self.exchange.response_protocol();
        let log = self.log();
        log.record(Tag::RespProtocol, protocol);
        log.record(Tag::RespStatus, itoa::Buffer::new().format(status).as_bytes());
        log.record(Tag::RespReason, phrase.as_bytes());
        self.exchange.begin_bare(status, self.send_limits());
        let result = self.send(b"", status >= 200).await;
        if status >= 200 {
            self.request.task.life.is_answered = true;
            self.request.task.life.sent_status = status;
        }
        if result.is_err() {
            self.close(CloseReason::RemClose);
        }
    }
}
