//! vcl_recv: the request is made presentable, and VCL decides what becomes of it.
//!
//! Comes from: Accept or Restart. Goes to: Hash (always, except after a failure); what vcl_recv decided is done after it.

use super::{Ruling, Run, Step};
use crate::logged::{self, REQ};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use surface::vcl::{Action, Method};
use vcl_run::eval::ActionArguments;

impl Run<'_> {
    pub(super) async fn receive(&mut self) -> Step {
        let request = &mut *self.request;
        request.log.record(Tag::ReqStart, self.session.start_record());
        logged::log_request(&mut request.log, REQ, &request.task.request);
        for (name, text) in [("Host", "Multiple Host: headers"), ("Content-Length", "Multiple Content-Length: headers")]
        {
            if request.task.request.get_all(name).nth(1).is_some() {
                request.log.record(Tag::BogoHeader, text.as_bytes());
                self.why(Reason::BadRequest, b"");
                self.context.count(Main::ClientReq400);
                self.close(CloseReason::RxBad);
                self.send_bare(400).await;
                return Step::Finish;
            }
        }
        if self.is_legacy() {
            self.begin_legacy_request();
        } else if self.request.task.life.restarts == 0 {
            self.add_forwarded_for();
            let request = &mut *self.request;
            semantics::filter::collapse(&mut request.task.request, "Cache-Control");
            request.task.choices.director = request.vcl.as_ref().and_then(|vcl| vcl.default_director());
        }
        self.request.task.forget_lookup();
        self.request.task.forget_response();
        match self.call_vcl(Method::Recv).await {
            Ruling::Action(action, arguments) if self.is_restarted_too_often() => {
                self.refuse_restart(action, arguments)
            }
            Ruling::Action(action, arguments) => self.received(action, arguments).await,
            Ruling::Failed => Step::VclFailed,
        }
    }

    async fn received(&mut self, action: Action, arguments: ActionArguments) -> Step {
        let action = match action {
            Action::Pipe if !self.exchange.has_wire() => self.pass_instead_of_pipe(),
            action => action,
        };
        match action {
            Action::Pass => self.why_vcl(Reason::PassByVcl),
            Action::Pipe => self.why_vcl(Reason::PipeByVcl),
            Action::Purge => self.why_vcl(Reason::PurgeByVcl),
            // vcl_hash runs before the restart: what it says is not why.
            Action::Restart => self.why_vcl(Reason::RestartByVcl),
            Action::Hash
            | Action::Synth
            | Action::Vcl
            | Action::Fail
            | Action::Fetch
            | Action::Lookup
            | Action::Deliver
            | Action::Abandon
            | Action::Error
            | Action::Retry
            | Action::Ok
            | Action::Merge
            | Action::ObjStale
            | Action::Beresp => {}
        }
        self.request.task.life.after_hash = match action {
            Action::Hash => Step::Lookup,
            Action::Pass => Step::Pass,
            Action::Pipe => Step::Pipe,
            Action::Purge => Step::Purge,
            Action::Restart => Step::Restart,
            Action::Synth => self.synth_ruling(arguments),
            Action::Vcl => return self.switch_vcl(arguments),
            Action::Fail
            | Action::Fetch
            | Action::Lookup
            | Action::Deliver
            | Action::Abandon
            | Action::Error
            | Action::Retry
            | Action::Ok
            | Action::Merge
            | Action::ObjStale
            | Action::Beresp => return Step::VclFailed,
        };
        if !self.request.task.life.late_continue {
            self.send_pending_continue().await;
        }
        if self.request.task.life.close == Some(CloseReason::RxBody) {
            return Step::Finish;
        }
        self.normalise_accept_encoding(action);
        Step::Hash
    }

    /// A connection that is shared with others cannot be given away. Compat: the words of Varnish 7.1.
    fn pass_instead_of_pipe(&mut self) -> Action {
        let protocol = self.exchange.protocol();
        let text = format_args!("vcl_recv{{}} returns pipe for {protocol} request.  Doing pass.");
        self.log().record_fmt(Tag::VCLError, text);
        Action::Pass
    }

    /// Appends the client's address to `X-Forwarded-For`.
    fn add_forwarded_for(&mut self) {
        const NAME: &str = "X-Forwarded-For";
        let request = &mut *self.request;
        let address = self.session.client_address();
        let message = &mut request.task.request;
        if !message.has(NAME) {
            logged::append(&mut request.log, REQ, message, NAME, &[address]);
            return;
        }
        let mut joined = message.get_all(NAME).collect::<Vec<_>>().join(&b", "[..]);
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(address);
        logged::set(&mut request.log, REQ, message, NAME, &joined);
    }

    /// What can be cached is fetched gzipped or plain, whatever else the client might like.
    fn normalise_accept_encoding(&mut self, action: Action) {
        const NAME: &str = "Accept-Encoding";
        let request = &mut *self.request;
        if !request.task.settings.gzip_support || matches!(action, Action::Pipe | Action::Pass) {
            return;
        }
        if semantics::encoding::accepts_gzip(&request.task.request) {
            logged::force(&mut request.log, REQ, &mut request.task.request, NAME, b"gzip");
        } else {
            logged::unset(&mut request.log, REQ, &mut request.task.request, NAME);
        }
    }

    /// `return(vcl(label))`: the request begins anew under the VCL behind the label.
    fn switch_vcl(&mut self, arguments: ActionArguments) -> Step {
        let refusal = if self.request.task.life.restarts > 0 {
            "Illegal return(vcl): Not after restarts"
        } else if self.request.task.life.is_under_label {
            "Illegal return(vcl): Only from active VCL"
        } else {
            match self.labelled_vcl(arguments) {
                Some((vcl, label)) => {
                    self.request.log.record_parts(Tag::VCLUse, &[vcl.name.as_bytes(), b" via ", label.as_bytes()]);
                    self.leave_vcl();
                    self.request.vcl = Some(vcl);
                    self.request.task.life.is_under_label = true;
                    let task = &mut self.request.task;
                    task.request.copy_from(&task.original);
                    task.forget_choices();
                    return Step::Receive;
                }
                None => "Illegal return(vcl): No such label",
            }
        };
        self.log().record(Tag::VCLError, refusal.as_bytes());
        self.synthesise(503, b"")
    }

    fn labelled_vcl(
        &self,
        arguments: ActionArguments,
    ) -> Option<(std::sync::Arc<crate::loaded_vcl::LoadedVcl>, String)> {
        let vcl = self.request.vcl.as_ref()?;
        let label = vcl.program.program().labels.get(arguments.label? as usize)?.clone();
        let table = self.context.engine.vcl.load();
        let name = table.labels.get(&label)?;
        Some((table.loaded.get(name)?.clone(), label))
    }
}
