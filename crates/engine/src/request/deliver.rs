//! vcl_deliver: the response is made from the object.
//!
//! Comes from: Hit or Await; in the old dialects from Synth, too. Continues with: Transmit, or the
//! step that VCL returns. The client's conditions (RFC 9110 §13) are checked after VCL, so that VCL
//! can change the fields that they are compared with.

use super::{Run, Step, filters, initial};
use crate::fetch::out_of_band::OutOfBand;
use crate::logged::{self, RESP};
use crate::ruling::{DeliverRuling, Failed};
use semantics::date::DateForms;
use semantics::{conditional, precondition, reason};
use surface::tag::Tag;

impl Run<'_> {
    pub(super) async fn deliver(&mut self) -> Step {
        let is_error = self.request.task.answer.is_synthetic;
        if !is_error && !self.make_response() {
            self.log().record(Tag::Error, b"Stored response is damaged");
            self.request.task.forget_lookup();
            return self.synthesise(503, b"");
        }
        if !is_error && !self.note_slices() {
            return self.synthesise(503, b"");
        }
        if !is_error {
            if self.request.task.settings.encodings.is_beyond_gzip() {
                self.choose_coding();
            }
            self.add_cache_status();
            self.add_alt_svc();
        }
        let ruling = self.call_vcl().await;
        self.timestamp("Process");
        let step = match ruling {
            // Checked before anything is sent. Errors are plain responses and need no check.
            Ok(DeliverRuling::Deliver) if self.context.memory.is_short() && !is_error && self.is_too_much() => {
                self.synthesise(503, b"")
            }
            Ok(DeliverRuling::Deliver) => {
                self.judge_conditions();
                return Step::Transmit;
            }
            Ok(DeliverRuling::Restart) if self.must_deliver() => return Step::Transmit,
            Ok(DeliverRuling::Restart) => Step::Restart,
            // Answering an error with another error would never end.
            Ok(DeliverRuling::Synth(_)) if is_error => return Step::Transmit,
            Ok(DeliverRuling::Synth(line)) => self.synth_ruling(line),
            Err(Failed) if is_error => return self.give_up_error().await,
            Err(Failed) => Step::VclFailed,
        };
        self.request.task.forget_lookup();
        self.request.task.forget_response();
        step
    }

    /// Fills `resp`. False if the object's head cannot be decoded.
    #[inline(always)]
    fn make_response(&mut self) -> bool {
        let name = self.context.engine.name;
        let request = &mut *self.request;
        let task = &mut request.task;
        let log = &mut request.log;
        if request.vcl.as_ref().is_some_and(|vcl| vcl.reads_response_time) {
            task.life.responded_at = self.context.clock.now();
        }
        task.answer.is_synthetic = false;
        if !initial::of_object(task, log, name) {
            return false;
        }
        let response = &mut task.response;
        if task.settings.range_support && response.status() == 200 && !task.found.is_passed {
            logged::append(log, RESP, response, "Accept-Ranges", &[b"bytes"]);
        }
        if let Some(announced) = task.found.out_of_band.as_ref().and_then(OutOfBand::announced) {
            logged::append(log, RESP, response, "Trailer", &[&announced]);
        }
        true
    }

    /// True if the response needs more memory than is available.
    #[cold]
    fn is_too_much(&mut self) -> bool {
        let found = &self.request.task.found;
        let body = found.copy.as_ref().or(found.object.as_ref());
        let reads_file = !self.request.task.life.is_head && body.is_some_and(|body| body.held_bytes() > 0);
        (reads_file || filters::are_heavy(&self.request.task)) && !self.may_hold_more(true)
    }

    #[inline(always)]
    fn judge_conditions(&mut self) {
        if self.follows_rfc() {
            return self.judge_preconditions();
        }
        let request = &mut *self.request;
        let task = &mut request.task;
        if task.life.inclusion.is_some() {
            // A page cannot use a 304.
            return;
        }
        let Some(object) = &task.found.object else { return };
        let dates = DateForms::of_features(task.settings.feature);
        if task.response.status() % 1000 == 200
            && conditional::not_modified(&task.request, &task.response, task.life.received_at, object.origin(), dates)
        {
            let phrase = reason::phrase(304).as_bytes();
            logged::set_status_line(&mut request.log, RESP, &mut task.response, b"HTTP/1.1", 304, phrase);
        }
    }

    /// Does the same under RFC 9111. A 304 does not describe a body, since it has none.
    fn judge_preconditions(&mut self) {
        let request = &mut *self.request;
        let task = &mut request.task;
        if !task.request.may_have("If-None-Match") && !task.request.may_have("If-Modified-Since") {
            return;
        }
        let Some(object) = &task.found.object else { return };
        let dates = DateForms::of_features(task.settings.feature);
        if precondition::not_modified(&task.request, &task.response, object.origin(), dates) {
            let phrase = reason::phrase(304).as_bytes();
            logged::set_status_line(&mut request.log, RESP, &mut task.response, b"HTTP/1.1", 304, phrase);
            for name in precondition::OF_BODY {
                logged::unset(&mut request.log, RESP, &mut task.response, name);
            }
        }
    }
}
