//! What HTTP demands of a request before VCL sees it: `Expect` and `Connection`.
//!
//! Comes from: the session, with the head parsed and the beginning logged. Goes to: Receive, or Finish after a bare answer.
//! Source: RFC 9110 §10.1.1 (Expect), §7.6.1 (Connection).

use super::{Run, Step};
use crate::logged::{self, REQ};
use crate::memory::MEMORY_SHORT;
use http1::connection_options;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Run<'_, S> {
    pub(super) async fn accept(&mut self) -> Step {
        self.context.count(Main::ClientReq);
        if self.context.memory.is_full() {
            self.refuse_for_memory(true);
            self.close(CloseReason::Overload);
            self.send_minimal(503).await;
            return Step::Finish;
        }
        let request = &mut *self.request;
        if let Some(expected) = request.task.request.get("Expect") {
            if !expected.eq_ignore_ascii_case(b"100-continue") {
                self.context.count(Main::ClientReq417);
                self.why(Reason::ExpectationUnknown, b"");
                self.close(CloseReason::RxJunk);
                self.send_minimal(417).await;
                return Step::Finish;
            }
            // A client that has sent on without waiting needs no answer.
            let is_waiting = request.unread().is_empty() && request.task.request.protocol() == b"HTTP/1.1";
            request.task.life.wants_continue = is_waiting;
            logged::unset(&mut request.log, REQ, &mut request.task.request, "Expect");
        }
        match connection_options(&self.request.task.request) {
            Ok(options) if options.close => {
                let is_http10 = self.request.task.request.protocol() == b"HTTP/1.0";
                let says_close = self.request.task.request.has("Connection");
                self.close(if is_http10 && !says_close { CloseReason::ReqHttp10 } else { CloseReason::ReqClose });
            }
            Ok(_) => {}
            Err(_) => {
                self.context.count(Main::ClientReq400);
                self.why(Reason::BadRequest, b"");
                self.close(CloseReason::RxBad);
                self.send_minimal(400).await;
                return Step::Finish;
            }
        }
        if self.context.engine.draining.load(std::sync::atomic::Ordering::Relaxed) {
            self.close(CloseReason::RespClose);
        }
        let task = &mut self.request.task;
        task.life.is_head = task.request.method() == b"HEAD";
        task.original.copy_from(&task.request);
        task.forget_choices();
        Step::Receive
    }

    /// Whether the request may hold more than its base. If not that is recorded; `is_answer` says that it is answered with a
    /// 503 then, rather than doing without.
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

    /// Sends a status line and nothing else. The final ones end the session.
    pub(crate) async fn send_minimal(&mut self, status: u16) {
        let phrase = semantics::reason::phrase(status);
        let digits = itoa::Buffer::new().format(status).to_owned();
        let log = self.log();
        log.record(Tag::RespProtocol, b"HTTP/1.1");
        log.record(Tag::RespStatus, digits.as_bytes());
        log.record(Tag::RespReason, phrase.as_bytes());
        let line = format!("HTTP/1.1 {digits} {phrase}\r\n\r\n");
        let before = self.connection.sent_bytes;
        self.connection.begin_sending(self.send_limits());
        let result = self.connection.send([line.as_bytes(), b"", b""], &mut self.request.log).await;
        let task = &mut self.request.task;
        task.life.account.response_head += self.connection.sent_bytes - before;
        task.life.is_answered |= status >= 200;
        if result.is_err() {
            self.close(CloseReason::RemClose);
        }
    }
}
