//! vcl_recv: the request is normalised, and VCL decides how to handle it.
//!
//! Comes from: Accept or Restart. Continues with: Hash (always, except after a failure); the
//! decision of vcl_recv is carried out after it.

use super::{Run, Step};
use crate::fleet::Conditions;
use crate::loaded_vcl::LoadedVcl;
use crate::logged::{self, REQ};
use crate::ruling::{Failed, Label, RecvRuling};
use crate::via;
use std::sync::Arc;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;

impl Run<'_> {
    pub(super) async fn receive(&mut self) -> Step {
        // Under a label it continues with the head that was judged and logged already. Compat:
        // observed.
        let life = &self.request.task.life;
        let goes_on = life.is_under_label && life.restarts == 0;
        if !goes_on && let Err((status, reason)) = self.log_head() {
            self.why(reason, b"");
            if status == 400 {
                self.context.count(Main::ClientReq400);
            }
            self.close(CloseReason::RxBad);
            self.send_bare(status).await;
            return Step::Finish;
        }
        if self.is_legacy() {
            self.begin_legacy_request();
        } else if self.request.task.life.restarts == 0 {
            self.add_forwarded_for();
            if self.follows_rfc() && self.request.task.life.inclusion.is_none() {
                let request = &mut *self.request;
                self.session.forwarding.describe(&mut request.task.request, &mut request.log);
            }
            let request = &mut *self.request;
            semantics::filter::collapse(&mut request.task.request, "Cache-Control");
            request.task.choices.director = request.vcl.as_ref().and_then(|vcl| vcl.default_director());
            if self.follows_rfc() && self.request.task.settings.request_directives {
                let task = &mut self.request.task;
                task.choices.hear(&task.request);
            }
        }
        // A request that has just begun has neither.
        if self.request.task.life.restarts > 0 || self.request.task.life.is_under_label {
            self.request.task.forget_lookup();
            self.request.task.forget_response();
        }
        match self.call_vcl().await {
            Ok(ruling) if self.is_restarted_too_often() => self.refuse_restart(ruling),
            Ok(ruling) => {
                let task = &mut self.request.task;
                task.choices.hear_again(&task.request);
                self.received(ruling).await
            }
            Err(Failed) => Step::VclFailed,
        }
    }

    /// Logs the head.
    ///
    /// # Errors
    /// The status and the reason if it is refused: a header that may appear only once is in it
    /// twice, or see [`Run::check_head`].
    fn log_head(&mut self) -> Result<(), (u16, Reason)> {
        let request = &mut *self.request;
        request.log.record(Tag::ReqStart, self.session.start_record());
        // Compat: joined before VCL and the log see it.
        request.task.request.join("Connection");
        logged::log_request(&mut request.log, REQ, &request.task.request);
        for (name, text) in [("Host", "Multiple Host: headers"), ("Content-Length", "Multiple Content-Length: headers")]
        {
            if request.task.request.get_all(name).nth(1).is_some() {
                request.log.record(Tag::BogoHeader, text.as_bytes());
                return Err((400, Reason::BadRequest));
            }
        }
        if self.follows_rfc() { self.check_head() } else { Ok(()) }
    }

    /// Refuses a host and a target that two readers could interpret differently, and a request that
    /// returns to Copal in a loop.
    ///
    /// A percent-encoded host has other spellings with the same meaning, and cannot be sent to
    /// HTTP/2 origins. A fragment is not a part of a target (RFC 9112 §3.2).
    fn check_head(&mut self) -> Result<(), (u16, Reason)> {
        let request = &mut *self.request;
        let head = &request.task.request;
        let bogus = if head.get("Host").is_some_and(|host| host.contains(&b'%')) {
            "Percent-encoding in Host"
        } else if head.target().contains(&b'#') {
            "Fragment in the target"
        } else if head.may_have("Via") && via::names(head, &self.context.engine.pseudonym) {
            request.log.record(Tag::Error, b"Loop: this request has passed through here already");
            return Err((508, Reason::RequestLoop));
        } else {
            return Ok(());
        };
        request.log.record(Tag::BogoHeader, bogus.as_bytes());
        Err((400, Reason::BadRequest))
    }

    async fn received(&mut self, ruling: RecvRuling) -> Step {
        let conditions = self.context.engine.fleet.get();
        let is_out_of_step = conditions == Conditions::Pass && ruling == RecvRuling::Hash;
        if conditions == Conditions::StaleLimit {
            self.limit_staleness();
        }
        let ruling = match ruling {
            RecvRuling::Hash if is_out_of_step => RecvRuling::Pass,
            RecvRuling::Pipe if !self.exchange.has_wire() => self.pass_instead_of_pipe(),
            ruling => ruling,
        };
        if self.exchange.wants_wire() && matches!(ruling, RecvRuling::Hash | RecvRuling::Pass | RecvRuling::Purge) {
            return self.refuse_unpiped();
        }
        let reason = match ruling {
            RecvRuling::Pass if is_out_of_step => {
                self.why(Reason::PassFleet, b"");
                None
            }
            RecvRuling::Pass => Some(Reason::PassByVcl),
            RecvRuling::Pipe => Some(Reason::PipeByVcl),
            RecvRuling::Purge => Some(Reason::PurgeByVcl),
            // vcl_hash runs before the restart, but is not its reason.
            RecvRuling::Restart => Some(Reason::RestartByVcl),
            RecvRuling::Hash | RecvRuling::Synth(_) | RecvRuling::Vcl(_) => None,
        };
        if let Some(reason) = reason {
            self.why_vcl(reason);
        }
        self.request.task.life.after_hash = match ruling {
            RecvRuling::Hash => Step::Lookup,
            RecvRuling::Pass => Step::Pass,
            RecvRuling::Pipe => Step::Pipe,
            RecvRuling::Purge => Step::Purge,
            RecvRuling::Restart => Step::Restart,
            RecvRuling::Synth(line) => self.synth_ruling(line),
            RecvRuling::Vcl(label) => match self.switch_vcl(label) {
                Step::Receive => return Step::Receive,
                refused => refused,
            },
        };
        // Under RFC 9110 the origin requests the body, or VCL that reads it.
        if !self.request.task.life.late_continue && !self.follows_rfc() {
            self.send_pending_continue().await;
        }
        if self.request.task.life.close == Some(CloseReason::RxBody) {
            return Step::Finish;
        }
        self.normalise_accept_encoding(ruling);
        Step::Hash
    }

    /// Nothing older than `fleet_lost_ttl` is served: the node is out of contact with its fleet.
    #[cold]
    fn limit_staleness(&mut self) {
        let limit = self.context.engine.parameters.load().fleet_lost_ttl;
        let choices = &mut self.request.task.choices;
        choices.ttl_cap = Some(choices.ttl_cap.map_or(limit, |cap| cap.min(limit)));
        choices.grace_cap = Some(0.0);
        choices.request_directives.max_stale = None;
    }

    /// Refuses a WebSocket request on a stream that is not piped: its client would take any success
    /// for a WebSocket.
    fn refuse_unpiped(&mut self) -> Step {
        self.log().record(Tag::VCLError, b"vcl_recv{} does not return pipe for a WebSocket.  Doing synth 501.");
        self.own_synth(501, b"")
    }

    /// Passes the request: a connection that is shared with others cannot be handed over. Compat:
    /// the text of Varnish 7.1.
    fn pass_instead_of_pipe(&mut self) -> RecvRuling {
        let protocol = self.exchange.protocol();
        let what = if self.request.task.life.inclusion.is_some() { "ESI included object" } else { protocol };
        let request = if self.request.task.life.inclusion.is_some() { "" } else { " request" };
        let text = format!("vcl_recv{{}} returns pipe for {what}{request}.  Doing pass.");
        self.request.task.life.objection = Some(text.into());
        RecvRuling::Pass
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
        message.join(NAME);
        let mut joined = message.get(NAME).unwrap_or_default().to_vec();
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(address);
        logged::set(&mut request.log, REQ, message, NAME, &joined);
    }

    /// Cacheable responses are fetched gzipped or plain, whatever other codings the client accepts;
    /// with http_encodings, in the codings named there.
    fn normalise_accept_encoding(&mut self, ruling: RecvRuling) {
        const NAME: &str = "Accept-Encoding";
        let request = &mut *self.request;
        if !request.task.settings.gzip_support || matches!(ruling, RecvRuling::Pipe | RecvRuling::Pass) {
            return;
        }
        if request.task.settings.encodings.is_beyond_gzip() {
            return self.normalise_preferences();
        }
        if semantics::encoding::accepts_gzip(&request.task.request) {
            logged::force(&mut request.log, REQ, &mut request.task.request, NAME, b"gzip");
        } else {
            logged::unset(&mut request.log, REQ, &mut request.task.request, NAME);
        }
    }

    /// Carries out `return(vcl(label))`: the request starts again with the VCL behind the label.
    fn switch_vcl(&mut self, label: Label) -> Step {
        let refusal = match self.request.task.life.refusal_of_switch() {
            Some(refusal) => refusal,
            None => match self.labelled_vcl(label) {
                Some(vcl) => {
                    self.leave_vcl();
                    self.request.task.life.vcl_before_label = self.request.vcl.replace(vcl);
                    self.request.task.life.is_under_label = true;
                    let task = &mut self.request.task;
                    task.request.copy_from(&task.original);
                    task.forget_choices();
                    return Step::Receive;
                }
                None => "Illegal return(vcl): No such label",
            },
        };
        self.request.task.life.objection = Some(refusal.into());
        self.synthesise(503, b"")
    }

    fn labelled_vcl(&self, Label(label): Label) -> Option<Arc<LoadedVcl>> {
        let table = self.context.engine.vcl.load();
        let (vcl, _) = self.request.vcl.as_ref()?.behind_label(&table, label?)?;
        Some(Arc::clone(vcl))
    }
}
