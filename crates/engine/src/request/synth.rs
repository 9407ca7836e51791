//! vcl_synth: a response made here.
//!
//! Comes from: anywhere before Transmit. Continues with: Transmit (in the old dialects Deliver) or
//! Restart; Finish with a bare 500 when this VCL fails as well.

use super::{Run, Step, initial};
use crate::logged::{self, RESP};
use crate::ruling::{Failed, SynthRuling};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::vcl::Generation;

impl Run<'_> {
    pub(super) async fn synth(&mut self) -> Step {
        self.context.count(Main::SSynth);
        self.begin_synthetic_response();
        let ruling = self.call_vcl().await;
        self.timestamp("Process");
        match ruling {
            Ok(SynthRuling::Deliver) => {}
            // No restart is left, so the response is sent as it is.
            Ok(SynthRuling::Restart) if self.has_no_restart_left() => {}
            Ok(SynthRuling::Restart) => {
                self.request.task.forget_response();
                return Step::Restart;
            }
            Err(Failed) if self.request.task.life.is_left => return self.leave(),
            Err(Failed) => {
                self.request.task.life.close = Some(CloseReason::VclFailure);
                self.send_bare(500).await;
                self.timestamp("Resp");
                return Step::Finish;
            }
        }
        let request = &mut *self.request;
        let mut length = itoa::Buffer::new();
        let length = length.format(request.task.synthetic.len()).as_bytes();
        logged::set(&mut request.log, RESP, &mut request.task.response, "Content-Length", length);
        self.drain_body().await;
        self.log_storage(self.context.engine.storages.transient());
        if self.is_legacy() { self.finish_legacy_error() } else { Step::Transmit }
    }

    fn begin_synthetic_response(&mut self) {
        let now = self.context.clock.now();
        let name = self.context.engine.name;
        let request = &mut *self.request;
        let generation = request.vcl.as_ref().map_or(Generation::V4, |vcl| vcl.generation);
        let task = &mut request.task;
        let log = &mut request.log;
        if task.life.error_status < 100 {
            task.life.error_status = 501;
        }
        task.forget_response();
        task.found.let_go();
        task.answer.is_synthetic = true;
        task.life.responded_at = now;
        initial::of_error(task, log, now, generation, name);
        self.exchange.describe_synthetic(&mut task.response, log);
        self.add_alt_svc();
    }
}
