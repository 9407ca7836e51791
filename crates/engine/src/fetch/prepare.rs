//! Prepare: makes the request to the origin from the client's, and runs vcl_backend_fetch.
//!
//! The kind of fetch selects the headers that are passed on (`semantics::filter`). A request for
//! the cache uses GET, accepts gzip, and has the conditions of a stale object that may be
//! revalidated; a pass keeps the client's method and fields. A retry runs this step again with the
//! request as VCL left it. Next file: `send.rs`.

use super::{Fetch, FetchMode, Step};
use crate::logged::{self, BEREQ};
use crate::request::early::HEADER;
use crate::request::trace::continue_to_origin;
use crate::ruling::{Failed, FetchRuling};
use crate::via;
use message::Message;
use std::sync::Arc;
use store::{Object, ObjectFlags};
use surface::encoding::Encodings;
use surface::reason::Reason;

impl Fetch {
    /// Changes the request into one for the cache rather than for the client.
    fn ask_for_cache(&mut self) {
        let is_query = self.task.bereq.method() == b"QUERY" && self.follows_rfc();
        if self.task.bereq.method() != b"GET" && !is_query {
            self.task.bereq.set_method(b"GET");
            self.log.record(BEREQ.method, b"GET");
        }
        if self.task.order.gzip_support {
            let codings = Encodings::of_parameter(self.task.order.parameters.http_encodings).join(", ");
            logged::force(&mut self.log, BEREQ, &mut self.task.bereq, "Accept-Encoding", codings.as_bytes());
        }
    }

    /// Requests to origins use HTTP/1.1, whatever the client uses.
    fn ask_in_our_protocol(&mut self) {
        if self.task.bereq.protocol() != b"HTTP/1.1" {
            self.task.bereq.set_protocol(b"HTTP/1.1");
            self.log.record(BEREQ.protocol, b"HTTP/1.1");
        }
    }

    /// Sets `Early-Data` to `1`, whatever value the client sent: the field has no other value.
    /// Source: RFC 8470 §5.1.
    fn mark_as_early(&mut self) {
        let bereq = &mut self.task.bereq;
        if bereq.has(HEADER) && (bereq.get(HEADER) != Some(b"1") || bereq.get_all(HEADER).nth(1).is_some()) {
            logged::set(&mut self.log, BEREQ, bereq, HEADER, b"1");
        }
    }

    /// Adds the conditions of a stale object that may be revalidated.
    fn ask_conditionally(&mut self) {
        let Some(stale) = self.revalidatable_stale() else { return };
        let mut stored = Message::new();
        if stored.decode(stale.head()).is_some() && semantics::revalidate::is_possible(&stored) {
            let known = self.task.bereq.header_count();
            semantics::revalidate::conditions(&stored, &mut self.task.bereq);
            for header in self.task.bereq.headers().skip(known) {
                self.log.record(BEREQ.header, header.line());
            }
        }
    }

    pub(super) async fn prepare(&mut self) -> Step {
        if self.task.order.vcl.is_legacy() {
            return self.legacy_prepare();
        }
        let is_first = self.task.life.retries == 0;
        let started = if is_first { self.task.life.started } else { self.now() };
        self.log.timestamp("Start", started);
        logged::log_request(&mut self.log, BEREQ, &self.task.bereq);
        if is_first {
            self.expect_answer_to_get();
            if self.task.order.mode != FetchMode::Pass {
                self.ask_for_cache();
            }
            self.mark_as_early();
            if self.follows_rfc() {
                via::add(&mut self.log, BEREQ, &mut self.task.bereq, &self.context.engine.pseudonym);
            }
            self.ask_in_our_protocol();
            if self.task.order.mode != FetchMode::Pass {
                self.ask_conditionally();
                self.ask_for_slice();
                self.ask_for_part();
            }
            self.task.bereq_original.copy_from(&self.task.bereq);
        }
        if self.task.order.parameters.trace_context {
            continue_to_origin(&mut self.task.bereq, &mut self.log, self.task.life.vxid);
        }
        let mut number = itoa::Buffer::new();
        logged::set(
            &mut self.log,
            BEREQ,
            &mut self.task.bereq,
            "X-Varnish",
            number.format(self.task.life.vxid).as_bytes(),
        );
        match self.run_vcl().await {
            Ok(FetchRuling::Fetch) => Step::Send,
            Ok(FetchRuling::Error(line)) => {
                self.why_vcl(Reason::ErrorByVcl);
                self.note_error(line);
                Step::Error
            }
            Ok(FetchRuling::Abandon) => {
                self.why_vcl(Reason::ErrorByVcl);
                Step::Fail
            }
            Err(Failed) => {
                self.why_vcl(Reason::VclFailed);
                Step::Fail
            }
        }
    }

    /// The stale object, if a 304 can still revive it.
    pub(super) fn revalidatable_stale(&self) -> Option<Arc<Object>> {
        // The old dialects never made conditional requests for stale objects.
        let may_be_empty = self.follows_rfc();
        let stale = self.task.life.stale.as_ref().filter(|stale| is_revalidatable(stale, may_be_empty))?;
        (!self.task.order.vcl.is_legacy()).then(|| Arc::clone(stale))
    }
}

/// True if an expired object can be revalidated: it has a validator, is not a marker, and its body
/// is complete (or may yet be). Compat: Varnish sends an unconditional request for an object
/// without a body.
fn is_revalidatable(stale: &Object, may_be_empty: bool) -> bool {
    let flags = stale.flags();
    flags.has(ObjectFlags::CAN_REVALIDATE)
        && !flags.has(ObjectFlags::HIT_FOR_MISS)
        && !flags.has(ObjectFlags::HIT_FOR_PASS)
        && !stale.has_overflowed()
        && match stale.state() {
            store::BodyState::Complete => may_be_empty || flags.is_sliced() || stale.available_bytes() > 0,
            store::BodyState::Writing => true,
            store::BodyState::Failed => false,
        }
}
