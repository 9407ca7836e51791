//! The old dialects (1.x to 3.0) on the client's side: behaviour that their VCL relies on and
//! Varnish 4 changed.
//!
//! - Every vcl_recv begins with the first backend. Restarts are counted after vcl_recv, and too
//!   many end in vcl_error.
//! - The request to the origin is made before vcl_miss and vcl_pass, which may change it.
//! - vcl_fetch works on the client's request, which is lent to the fetch and taken back with its
//!   answer (`fetch/legacy.rs`).
//! - Nothing is refreshed in the background: a stale object is a miss, unless another request
//!   fetches it already or the backend is sick for it (including saint mode).
//! - vcl_deliver runs for the responses of vcl_error.
//! - vcl_hit may change the lifetime of an object.
//!
//! Every call first checks the generation of the VCL. Source: behaviour of Varnish 1.1.2, 2.0.6,
//! 2.1.5 and 3.0.7.

use super::choices::Choices;
use super::delivered::Delivered;
use super::task::Task;
use super::{Run, Step};
use crate::fetch::FetchMode;
use crate::fetch::legacy_order::{ClientRequest, PreparedRequest};
use crate::legacy_rules::grace_granted;
use crate::logged::{self, RESP};
use crate::ruling::RecvRuling;
use backend::{ClientName, Notes, ResolveContext};
use cache::Busy;
use std::sync::Arc;
use surface::close_reason::CloseReason;
use surface::tag::Tag;
use surface::vcl::Generation;

impl Run<'_> {
    /// The generation of the VCL that runs.
    pub(super) fn generation(&self) -> Generation {
        self.request.vcl.as_ref().map_or(Generation::V4, |vcl| vcl.generation)
    }

    /// True if that is an old dialect.
    pub(super) fn is_legacy(&self) -> bool {
        self.generation().is_legacy()
    }

    /// Runs before every vcl_recv: resets VCL's choices of an earlier round, except `req.ttl` and
    /// `req.grace`.
    pub(super) fn begin_legacy_request(&mut self) {
        let generation = self.generation();
        let request = &mut *self.request;
        let task = &mut request.task;
        if generation < Generation::V3 {
            // These dialects did not support gzip: Accept-Encoding and Vary are left to VCL.
            task.settings.gzip_support = false;
        }
        let (ttl_cap, grace_cap) = (task.choices.ttl_cap, task.choices.grace_cap);
        task.forget_choices();
        task.choices.ttl_cap = ttl_cap;
        task.choices.grace_cap = grace_cap;
        semantics::filter::collapse(&mut task.request, "Cache-Control");
        task.choices.director = request.vcl.as_ref().and_then(|vcl| vcl.default_director());
    }

    /// True if this round is one too many: its vcl_recv has run, and nothing else will.
    pub(super) fn is_restarted_too_often(&self) -> bool {
        self.is_legacy() && self.request.task.life.restarts > 0 && self.has_no_restart_left()
    }

    /// True if another restart would be refused.
    pub(super) fn has_no_restart_left(&self) -> bool {
        let task = &self.request.task;
        if self.is_legacy() {
            task.life.restarts >= task.settings.max_restarts
        } else {
            task.life.restarts > task.settings.max_restarts
        }
    }

    /// True if a restart in vcl_deliver is ignored and the response is sent.
    pub(super) fn must_deliver(&self) -> bool {
        self.is_legacy() && self.has_no_restart_left()
    }

    /// The status of an error without a status from VCL: the one set before (perhaps the origin's),
    /// else 503.
    pub(super) fn legacy_error_status(&self) -> u16 {
        match self.request.task.life.error_status {
            0 => 503,
            status => status,
        }
    }

    /// Grace that an object may have for this request.
    pub(super) fn legacy_grace_cap(&self) -> Option<f64> {
        let default = self.context.engine.parameters.load().default_grace;
        grace_granted(self.request.task.choices.grace_cap, self.generation(), default)
    }

    /// True if no request for the object can be sent to the backend.
    fn is_backend_sick(&self) -> bool {
        let task = &self.request.task;
        let Some((vcl, director)) = self.request.vcl.as_ref().zip(task.choices.director) else { return true };
        let notes = Notes::new();
        let context = ResolveContext {
            now: self.context.clock.now(),
            random: &self.context.engine.random,
            url: task.request.target(),
            host: task.request.get("Host"),
            client: ClientName::default(),
            digest: Some(&task.life.digest),
            is_for_cache: true,
            shard: None,
            notes: &notes,
        };
        !vcl.directors.is_healthy_for(director, &context)
    }

    /// Lends the fetch the part of the request that vcl_fetch may use. The request itself stays
    /// unchanged until that is returned.
    pub(super) fn lend_request(&mut self) -> Box<ClientRequest> {
        let task = &mut self.request.task;
        let mut client = Box::new(ClientRequest {
            message: message::Message::new(),
            original: message::Message::new(),
            choices: Choices {
                director: task.choices.director,
                client_identity: task.choices.client_identity.clone(),
                ttl_cap: task.choices.ttl_cap,
                grace_cap: task.choices.grace_cap,
                is_esi_forbidden: task.choices.is_esi_forbidden,
                ..Choices::default()
            },
            restarts: task.life.restarts,
            esi_level: task.life.inclusion.as_ref().map_or(0, |inclusion| inclusion.level),
            vxid: task.life.vxid,
            vmod_state: std::mem::take(&mut task.vmod_state),
            response_status: 0,
        });
        client.message.copy_from(&task.request);
        client.original.copy_from(&task.original);
        client
    }

    /// Takes back the lent part, as vcl_fetch left it.
    pub(super) fn take_request_back(&mut self, client: ClientRequest) {
        let task = &mut self.request.task;
        task.request = client.message;
        let Choices { director, client_identity, ttl_cap, grace_cap, is_esi_forbidden, .. } = client.choices;
        task.choices.director = director;
        task.choices.client_identity = client_identity;
        task.choices.ttl_cap = ttl_cap;
        task.choices.grace_cap = grace_cap;
        task.choices.is_esi_forbidden = is_esi_forbidden;
        task.vmod_state = client.vmod_state;
        task.life.error_status = client.response_status;
    }
}

impl Run<'_> {
    /// Makes the request to the origin that vcl_miss or vcl_pass sees.
    pub(super) fn prepare_legacy_request(&mut self, mode: FetchMode) {
        let generation = self.generation();
        if !generation.is_legacy() {
            return;
        }
        let vxid = self.context.next_vxid();
        let task = &mut self.request.task;
        let gzip_support = task.settings.gzip_support;
        let address = self.session.client_address();
        let prepared = PreparedRequest::new(vxid, mode, &task.request, generation, gzip_support, address);
        task.found.prepared = Some(Box::new(prepared));
    }

    /// A stale object within grace. `fetch` is set if no other request fetches a new one yet: then
    /// this request does so and waits, unless its backend is sick.
    pub(super) fn found_in_grace(&mut self, object: Delivered, fetch: Option<Busy>) -> Step {
        match fetch {
            Some(busy) if !self.is_backend_sick() => {
                let task = &mut self.request.task;
                task.found.busy = Some(busy);
                task.found.stale = Some(Arc::clone(object.object()));
                Step::Miss
            }
            Some(_) | None => self.found(object, true),
        }
    }

    /// Handles one restart too many: an error from vcl_recv is kept, else one is made.
    pub(super) fn refuse_restart(&mut self, ruling: RecvRuling) -> Step {
        if let RecvRuling::Synth(line) = ruling {
            return self.synth_ruling(line);
        }
        self.log().record(Tag::VCLError, b"Too many restarts");
        let status = self.legacy_error_status();
        self.synthesise(status, b"")
    }

    /// After vcl_error: adds the headers of every response, then runs vcl_deliver (which 1.x did
    /// not run for errors).
    pub(super) fn finish_legacy_error(&mut self) -> Step {
        let generation = self.generation();
        let via = self.context.engine.name.via();
        let request = &mut *self.request;
        let Task { response, life, .. } = &mut request.task;
        let log = &mut request.log;
        let mut number = itoa::Buffer::new();
        logged::append(log, RESP, response, "X-Varnish", &[number.format(life.vxid).as_bytes()]);
        logged::append(log, RESP, response, "Age", &[b"0"]);
        logged::append(log, RESP, response, "Via", &[via.as_bytes()]);
        life.error_status = 0;
        if generation == Generation::V1 { Step::Transmit } else { Step::Deliver }
    }

    /// Handles a failure of vcl_deliver for an error response: there is nothing else to send.
    pub(super) async fn give_up_error(&mut self) -> Step {
        if self.request.task.life.is_left {
            return self.leave();
        }
        self.request.task.life.close = Some(CloseReason::VclFailure);
        self.send_bare(500).await;
        Step::Finish
    }
}
