//! The end of a request: its traffic is counted, and its log is completed.

use super::Run;
use crate::canary::Finished;
use crate::world::log_notes;
use backend::Notes;
use shm::histogram::Example;
use surface::counter::Main;
use surface::histogram::{Scale, request_cell, status_class};
use surface::reason::{Handling, Reason, ReasonRow};
use surface::tag::Tag;

/// The place of `req.transport` among `surface::histogram::PROTOCOLS`: its last character counts.
/// A request that is not HTTP has none, and counts as HTTP/1.
fn protocol_place(protocol: &str) -> usize {
    match protocol.as_bytes().last() {
        Some(b'2') => 1,
        Some(b'3') => 2,
        _ => 0,
    }
}

impl Run<'_> {
    pub(crate) fn finish(&mut self) {
        self.measure();
        self.request.task.forget_lookup();
        self.leave_vcl();
        match self.request.task.life.pipe_account {
            Some(_) => self.account_for_pipe(),
            None => self.account_for_request(),
        }
        self.request.log.end();
    }

    /// Counts the request in the histograms of the loop. A fragment is part of its page.
    fn measure(&mut self) {
        let task = &self.request.task;
        if task.life.inclusion.is_some() {
            return;
        }
        let histograms = &self.context.histograms;
        let handling = match task.life.reason.map(Reason::row) {
            Some(ReasonRow { handling: Some(handling), .. }) => *handling,
            None if task.found.is_hit => {
                histograms.count_reason(Reason::Hit);
                Handling::Hit
            }
            Some(ReasonRow { handling: None, .. }) if task.found.is_hit => Handling::Hit,
            Some(ReasonRow { handling: None, .. }) | None => Handling::Answer,
        };
        let protocol = protocol_place(task.life.protocol);
        let cell = request_cell(protocol, handling as usize, status_class(task.life.sent_status));
        let (vxid, time) = (task.life.vxid, task.life.previous);
        // Negative after a correction of the clock; the conversion makes that 0.
        let nanoseconds = ((time - task.life.started) * 1e9) as u64;
        if let Some(cells) = histograms.requests(self.session.listener_place) {
            let example = Example { vxid, value: nanoseconds, time };
            cells.at(cell).count_alone(Scale::Seconds.bucket(nanoseconds), example);
        }
        if let Some(member) = &self.request.member {
            let (status, reason) = (task.life.sent_status, task.life.reason);
            member.count(Finished { status, handling, reason, nanoseconds });
        }
        let bytes = self.exchange.sent().body_bytes;
        let example = Example { vxid, value: bytes, time };
        histograms.sizes.at(handling as usize).count_alone(Scale::Bytes.bucket(bytes), example);
    }

    /// Lets VMODs finish the work that they postponed while this VCL ran.
    pub(super) fn leave_vcl(&mut self) {
        let request = &mut *self.request;
        if let Some(vcl) = &request.vcl {
            let notes = Notes::new();
            request.task.vmod_state.leave(&vcl.directors, &notes);
            log_notes(&self.context.engine, &mut request.log, &notes);
        }
    }

    fn account_for_request(&mut self) {
        let account = self.request.task.life.account;
        let sent = self.exchange.sent();
        // The bytes of a fragment are counted with those of its page.
        if self.request.task.life.inclusion.is_none() {
            let counters = &self.context.counters;
            counters.add(Main::SReqHdrbytes, account.request_head);
            counters.add(Main::SReqBodybytes, account.request_body);
            counters.add(Main::SRespHdrbytes, sent.head_bytes);
            counters.add(Main::SRespBodybytes, sent.body_bytes);
        }
        self.request.log.record_numbers(
            Tag::ReqAcct,
            [
                account.request_head,
                account.request_body,
                account.request_head + account.request_body,
                sent.head_bytes,
                sent.body_bytes,
                sent.head_bytes + sent.body_bytes,
            ],
        );
    }

    fn account_for_pipe(&mut self) {
        let Some(account) = self.request.task.life.pipe_account else { return };
        let counters = &self.context.counters;
        counters.add(Main::SPipeHdrbytes, account.client_head);
        counters.add(Main::SPipeIn, account.from_client);
        counters.add(Main::SPipeOut, account.to_client);
        self.request.log.record_numbers(
            Tag::PipeAcct,
            [account.client_head, account.backend_head, account.from_client, account.to_client],
        );
    }
}
