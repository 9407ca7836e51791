//! Prepare: the request to the origin is made from the client's, and vcl_backend_fetch has its say.
//!
//! Which headers cross is a matter of class (`semantics::filter`). A request for the cache asks with GET, for gzip, and with
//! the conditions of a stale object that may be revalidated; a pass asks as the client did. A retry comes here again with
//! the request as VCL left it. Next file: `send.rs`.

use super::{Fetch, FetchMode, Step};
use crate::logged::{self, BEREQ};
use message::Message;
use semantics::filter::{Class, copy_filtered};
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::tag::Tag;
use surface::vcl::{Action, Method};
use vcl_run::eval::Outcome;

impl Fetch {
    /// Makes `bereq` from `req`; called once, before the first step.
    pub(super) fn make_request(&mut self, request: &Message) {
        let is_pass = self.mode == FetchMode::Pass;
        let class = if is_pass { Class::Pass } else { Class::Fetch };
        let bereq = &mut self.bereq;
        bereq.set_method(if is_pass { request.method() } else { b"GET" });
        bereq.set_target(request.target());
        bereq.set_protocol(b"HTTP/1.1");
        copy_filtered(request, bereq, class);
        bereq.unset("Expect");
        if !is_pass {
            if self.parameters.http_gzip_support {
                bereq.set("Accept-Encoding", b"gzip");
            }
            if let Some(stale) = &self.stale
                && is_revalidatable(stale)
            {
                let mut stored = Message::new();
                if stored.decode(stale.head()).is_some() && semantics::revalidate::is_possible(&stored) {
                    semantics::revalidate::conditions(&stored, bereq);
                }
            }
        }
        self.bereq_original.copy_from(&self.bereq);
    }

    pub(super) async fn prepare(&mut self) -> Step {
        let started = if self.retries == 0 { self.started } else { self.now() };
        self.log.timestamp("Start", started);
        logged::log_request(&mut self.log, BEREQ, &self.bereq);
        let mut number = itoa::Buffer::new();
        logged::set(&mut self.log, BEREQ, &mut self.bereq, "X-Varnish", number.format(self.vxid).as_bytes());
        if self.retries == 0 {
            self.bereq_original.copy_from(&self.bereq);
        }
        match self.run_vcl(Method::BackendFetch).await {
            Outcome::Return(Action::Fetch, _) => Step::Send,
            Outcome::Return(Action::Error, arguments) => {
                self.note_error(&arguments);
                Step::Error
            }
            Outcome::Return(
                Action::Abandon
                | Action::Fail
                | Action::Synth
                | Action::Restart
                | Action::Pass
                | Action::Pipe
                | Action::Hash
                | Action::Purge
                | Action::Vcl
                | Action::Lookup
                | Action::Deliver
                | Action::Retry
                | Action::Ok,
                _,
            )
            | Outcome::Failed(_)
            | Outcome::Wait => Step::Fail,
        }
    }

    /// Drops the client's body (`unset bereq.body`).
    pub(super) fn drop_request_body(&mut self) {
        self.body = crate::request_body::RequestBody::None;
        logged::unset(&mut self.log, BEREQ, &mut self.bereq, "Content-Length");
        logged::unset(&mut self.log, BEREQ, &mut self.bereq, "Transfer-Encoding");
    }

    /// The stale object, when it can still stand in for a 304.
    pub(super) fn revalidatable_stale(&self) -> Option<Arc<Object>> {
        self.stale.as_ref().filter(|stale| is_revalidatable(stale)).map(Arc::clone)
    }

    /// Writes a `FetchError` record.
    pub(super) fn log_fetch_error(&mut self, text: &str) {
        self.log.record(Tag::FetchError, text.as_bytes());
    }
}

/// Whether an expired object may be asked about: it has a validator, is no marker, and its body is (or may yet be) whole.
fn is_revalidatable(stale: &Object) -> bool {
    let flags = stale.flags();
    flags.has(ObjectFlags::CAN_REVALIDATE)
        && !flags.has(ObjectFlags::HIT_FOR_MISS)
        && !flags.has(ObjectFlags::HIT_FOR_PASS)
        && match stale.state() {
            store::BodyState::Complete => stale.available_bytes() > 0,
            store::BodyState::Writing => true,
            store::BodyState::Failed => false,
        }
}
