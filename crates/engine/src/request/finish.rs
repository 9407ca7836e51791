//! The end of a request: its traffic is counted, and its log is completed.

use super::Run;
use crate::world::log_notes;
use backend::Notes;
use surface::counter::Main;
use surface::tag::Tag;

impl Run<'_> {
    pub(crate) fn finish(&mut self) {
        self.request.task.forget_lookup();
        self.leave_vcl();
        match self.request.task.life.pipe_account {
            Some(_) => self.account_for_pipe(),
            None => self.account_for_request(),
        }
        self.request.log.end();
    }

    /// Lets VMODs finish what they have put off while this VCL ran.
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
        // The bytes of a fragment are among those of its page.
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
