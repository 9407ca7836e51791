//! State of a fetch: all data that its steps and its VCL work on.
//!
//! Sorted by lifetime: the order never changes; `Life` lasts across retries, as do VCL's choices
//! for the request and the way to the origin; an attempt ends with its response. Each part is reset
//! by replacing it as a whole, so that a new field is reset too. Next file: `retry.rs`.

use super::evidence::{Evidence, Watched};
use super::legacy_order::ClientRequest;
use super::mode::{FetchMode, copy_range, copy_request};
use super::order::{FetchAnswer, FetchOrder, FetchReport, Ordered, SliceOrder};
use super::out_of_band::OutOfBand;
use super::sent_body::{SentBody, UploadProgress};
use crate::bodies::filters::Filters;
use crate::bodies::request::RequestBody;
use crate::context::Loop;
use crate::logged::{self, BEREQ};
use crate::memory::Held;
use crate::origin::{OriginExchange, ResponseBody, close_reason};
use crate::peer::EarlyPhase;
use crate::world::decision::Noted;
use crate::world::vmod_wait::VmodWait;
use backend::director::trail::Trail;
use backend::open::Place;
use backend::{Attempts, Backend, ClientName, Notes, ResolveContext, TestableRandom};
use cache::Busy;
use message::Message;
use semantics::HttpPolicy;
use semantics::part::{Joint, Part};
use semantics::rfc::{FieldNames, Refusal, Sharing};
use shm::log::LogBuffer;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use surface::encoding::Encoding;
use surface::reason::Reason;
use tokio::sync::oneshot;
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;
use vcl_run::value::DirectorId;
use vmods::TaskState;

/// The state of one fetch.
pub(crate) struct FetchTask {
    /// Order of the client's side.
    pub(crate) order: Ordered,
    /// The state of one attempt to get a response.
    pub(crate) attempt: Attempt,
    /// The path to the origin; a repeated attempt uses the same path.
    pub(crate) route: Route,
    /// VCL's choices for the request; kept across retries.
    pub(crate) choices: Choices,
    /// State from the order to the answer.
    pub(crate) life: Life,

    /// `bereq`.
    pub(crate) bereq: Message,
    /// `bereq` before VCL, for rollbacks.
    pub(crate) bereq_original: Message,
    /// State of VMODs during the fetch.
    pub(crate) vmod_state: TaskState,
    /// The operation that a VMOD is waiting for.
    pub(crate) vmod_wait: Option<VmodWait>,
}

/// State that lasts as long as the fetch.
pub(crate) struct Life {
    /// Transaction id; changes with a retry.
    pub(crate) vxid: u64,
    /// `bereq.time`, seconds since 1970.
    pub(crate) started: f64,
    /// `bereq.retries`.
    pub(crate) retries: u64,
    /// The busy mark.
    pub(crate) busy: Option<Busy>,
    /// For a POST under the policy `rfc`, until its response is received: the right to store it for
    /// a GET.
    pub(crate) promise: Option<Busy>,
    /// The response to a POST is stored for a GET.
    pub(crate) answers_get: bool,
    /// An expired object that may be revalidated.
    pub(crate) stale: Option<Arc<Object>>,
    /// A stored part of the response, which may be completed.
    pub(crate) part: Option<Arc<Object>>,
    /// The client's range was passed on.
    pub(crate) asks_for_part: bool,
    /// Only the bytes missing in that part were requested.
    pub(crate) wants_rest: bool,
    /// The requested slice of the resource.
    pub(crate) slice: Option<SliceOrder>,
    /// Channel for the report that the object can be delivered; `None` once that was sent.
    pub(crate) ready: Option<oneshot::Sender<FetchReport>>,
    /// The answer for the ticket if there is no object.
    pub(crate) answer: FetchAnswer,
    /// `req` of the old dialects, until the ticket is answered.
    pub(crate) client: Option<Box<ClientRequest>>,
    /// The client's body.
    pub(crate) body: RequestBody,
    /// The client's body while a task of its own sends it and the origin has not begun to answer.
    pub(crate) uploading: Option<Rc<RefCell<RequestBody>>>,
    /// Trailers of the client's body.
    pub(crate) trailers: Option<Message>,
    /// Part of a streamed body was taken, so it cannot be sent again.
    pub(crate) is_body_begun: bool,
    /// The request was received as early data, and is marked as such for the origin.
    pub(crate) early: Option<Rc<EarlyPhase>>,
    /// `bereq.uncacheable`; once set, it stays set, and makes every response uncacheable.
    pub(crate) uncacheable: bool,
    /// Place where VCL made the response uncacheable.
    pub(crate) uncacheable_by: Option<Noted>,
    /// The Vary of a response is unusable.
    pub(crate) is_vary_unusable: bool,
    /// The response was looked up under a rule that it does not state (`query_rule.rs`).
    pub(crate) is_for_other_queries: bool,
    /// Out-of-band messages for the client.
    pub(crate) out_of_band: Option<OutOfBand>,
    /// Bytes transferred.
    pub(crate) account: Account,
    /// Progress of a request body that is sent while the response is received.
    pub(crate) upload: Option<Rc<UploadProgress>>,
    /// Memory held beyond the base.
    pub(crate) held: Held,
    /// Bytes of `held` that are not for the body.
    pub(crate) held_base_bytes: usize,
    /// The part of `held_base_bytes` that the filters hold; it changes with the body.
    pub(crate) held_filter_bytes: usize,
}

/// VCL's choices for the request; kept across retries.
#[derive(Default)]
pub(crate) struct Choices {
    /// `bereq.backend`; `None` = no backend, so the fetch fails.
    pub(crate) director: Option<DirectorId>,
    /// `client.identity` when VCL set it.
    pub(crate) client_identity: Option<Vec<u8>>,
    /// `bereq.trace` when VCL set it, initially `req.trace`.
    pub(crate) trace: Option<bool>,
    /// `bereq.connect_timeout` when VCL set it, seconds; 0 counts as not set.
    pub(crate) connect_timeout: Option<f64>,
    /// `bereq.first_byte_timeout` likewise.
    pub(crate) first_byte_timeout: Option<f64>,
    /// `bereq.between_bytes_timeout` likewise.
    pub(crate) between_bytes_timeout: Option<f64>,
    /// `bereq.last_byte_timeout` when VCL set it, seconds; 0 = no limit.
    pub(crate) last_byte_timeout: Option<f64>,
    /// `bereq.filters` when VCL set it.
    pub(crate) body_filters: Option<Vec<u8>>,
}

/// The path to the origin.
#[derive(Default)]
pub(crate) struct Route {
    /// `beresp.backend`, once resolved.
    pub(crate) backend: Option<Arc<Backend>>,
    /// In an old dialect: the path through directors to the backend, continued when the backend
    /// gives no connection.
    pub(crate) trail: Trail,
    /// `Host` is the one in this backend's definition. If the connect fails, the next backend's
    /// `Host` replaces it.
    pub(crate) has_backend_host: bool,
    /// The addresses tried, if the backend is at an address of a name.
    pub(crate) attempts: Attempts,
    /// `beresp.backend.ip`.
    pub(crate) address: Option<SocketAddr>,
}

/// The state of one attempt to get a response.
#[derive(Default)]
pub(crate) struct Attempt {
    /// The exchange with the origin, while the response is incomplete.
    pub(crate) exchange: Option<OriginExchange>,
    /// The next connection must be a new one.
    pub(crate) wants_fresh: bool,
    /// The connection slot that is kept for it. Boxed, since few fetches are sent once more.
    pub(crate) held_place: Option<Box<Place>>,
    /// Number of the trial, if this fetch tests a backend whose circuit is half-open; `None` = it
    /// does not.
    pub(crate) trial: Option<u64>,
    /// Deadline of the whole response; `None` = no limit.
    pub(crate) last_byte_by: Option<Instant>,
    /// The last failure.
    pub(crate) failure: Option<Reason>,
    /// The origin has failed this attempt.
    pub(crate) is_faulty: bool,
    /// Amount of the request's body that was sent.
    pub(crate) sent_body: SentBody,
    /// Interim responses received before all of it was sent.
    pub(crate) interims: usize,
    /// The filters of `bereq.filters`, once the headers have been changed for them.
    pub(crate) body_stages: Option<Filters>,
    /// The filters decode the body, and the headers have been changed for that.
    pub(crate) unpacked: Option<Encoding>,

    /// `beresp`.
    pub(crate) beresp: Message,
    /// Time when sending of the request began, seconds since 1970.
    pub(crate) requested: f64,
    /// `beresp.time`, seconds since 1970.
    pub(crate) responded: f64,
    /// Framing of the body according to the head.
    pub(crate) body: ResponseBody,
    /// The part of the representation in the response.
    pub(crate) part: PartTaken,
    /// The response is a slice, and is shown to VCL as the whole.
    pub(crate) slice: Option<Part>,
    /// Decisions of VCL and the headers about the response.
    pub(crate) verdict: Verdict,
    /// Facts about the response before VCL, for `leak_guard`.
    pub(crate) evidence: Evidence,
    /// The comparison of its body with that of other clients.
    pub(crate) watched: Option<Box<Watched>>,
    /// `beresp.storage`; `None` = VCL selected none.
    pub(crate) storage: Option<u32>,
    /// VCL has set the storage.
    pub(crate) is_storage_chosen: bool,
    /// `obj_stale`, in vcl_backend_refresh.
    pub(crate) stale_head: Message,
    /// Pieces of body received, for `VfpAcct`.
    pub(crate) received_pieces: u64,
    /// Result made from the response.
    pub(crate) kept: Kept,

    /// The response was made by vcl_backend_error.
    pub(crate) is_synthetic: bool,
    /// Status for vcl_backend_error; 0 = the origin failed.
    pub(crate) error_status: u16,
    /// Reason for vcl_backend_error; empty = the standard one.
    pub(crate) error_reason: Vec<u8>,
    /// `beresp.body` of vcl_backend_error.
    pub(crate) synthetic: Vec<u8>,
}

/// The part in a response; new for each response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PartTaken {
    /// The part that the origin sends.
    pub(crate) received: Option<Part>,
    /// Relation of the part to the stored part.
    pub(crate) joint: Option<Joint>,
}

impl PartTaken {
    /// The part that the object will hold; `None` = a whole.
    pub(crate) fn stored(self) -> Option<Part> {
        let part = self.joint.map_or(self.received, |joint| Some(joint.part));
        part.filter(|part| !part.is_whole() || self.joint.is_none())
    }
}

/// Result of a response. An object dropped before it is complete has failed, so that its readers
/// don't wait for more.
#[derive(Default)]
pub(crate) struct Kept {
    /// The object made from it.
    pub(crate) object: Option<Arc<Object>>,
    /// True if the object is added to the index instead of being for one client only.
    pub(crate) is_stored: bool,
    /// The index has a marker that the response must not be shared.
    pub(crate) is_marked: bool,
    /// Body bytes of the object, after filters.
    pub(crate) body_bytes: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            object.fail();
        }
    }
}

/// Bytes transferred for a fetch, all retries together, for `BereqAcct` and the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) request_head: u64,
    pub(crate) request_body: u64,
    pub(crate) response_head: u64,
    pub(crate) response_body: u64,
}

/// Decisions of VCL and the headers about the response; new for each response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    /// `beresp.do_esi`.
    pub(crate) do_esi: bool,
    /// `beresp.do_gzip`.
    pub(crate) do_gzip: bool,
    /// `beresp.do_gunzip`.
    pub(crate) do_gunzip: bool,
    /// `beresp.do_stream`.
    pub(crate) do_stream: bool,
    /// `beresp.filters` when VCL set it.
    pub(crate) filters: Option<Vec<u8>>,
    /// `beresp.storage_hint` when VCL set it.
    pub(crate) storage_hint: Option<u32>,
    /// Time when the response was generated, seconds since 1970.
    pub(crate) origin: f64,
    /// Seconds from `origin`.
    pub(crate) ttl: f64,
    /// Seconds.
    pub(crate) grace: f64,
    /// Seconds.
    pub(crate) keep: f64,
    /// `beresp.was_304`.
    pub(crate) was_304: bool,
    /// `return (pass(duration))`.
    pub(crate) is_hit_for_pass: bool,
    /// `beresp.cacheable` of the old dialects.
    pub(crate) is_cacheable: bool,
    /// Store no marker that the response is private.
    pub(crate) is_unremembered: bool,
    /// `beresp.transit_buffer` when VCL set it, bytes.
    pub(crate) transit_buffer: Option<u64>,
    /// Places where VCL set the ttl: the last one, and the one before it.
    pub(crate) ttl_by: [Option<Noted>; 2],
    /// VCL set the ttl.
    pub(crate) is_ttl_set: bool,
    /// Reason why RFC 9111 forbids storing the response; VCL may override it.
    pub(crate) refusal: Option<Refusal>,
    /// The response must be validated before every use.
    pub(crate) must_validate: bool,
    /// The response must never be served stale.
    pub(crate) never_stale: bool,
    /// Fields that only the requesting client may get.
    pub(crate) unshared: FieldNames,
    /// Facts that decide about a lifetime that is not the response's own; `None` under other
    /// policies.
    pub(crate) sharing: Option<Sharing>,
    /// VCL takes the responsibility for storing: `set beresp.uncacheable = false`.
    pub(crate) is_vouched_for: bool,
}

impl Verdict {
    /// Time for which the object is usable, in seconds.
    pub(crate) fn lifetime(&self) -> f64 {
        self.ttl + self.grace + self.keep
    }

    /// True if the object is to be validated before every use from the time `now` on: because of
    /// `no-cache`, or because it is stale and must not be served stale. VCL overrides both by
    /// setting a lifetime.
    pub(crate) fn asks_first(&self, now: f64) -> bool {
        let is_fresh = self.origin + self.ttl > now;
        self.must_validate_always() || (self.is_never_stale() && !is_fresh)
    }

    /// `no-cache` applies.
    pub(crate) fn must_validate_always(&self) -> bool {
        self.must_validate && !self.is_ttl_set
    }

    /// It must not be served stale. The policy gives no grace to such a response: if there is one,
    /// VCL set it.
    pub(crate) fn is_never_stale(&self) -> bool {
        self.never_stale && self.grace <= 0.0
    }

    /// True if the object is still usable at `now`, seconds since 1970.
    pub(crate) fn lives_at(&self, now: f64) -> bool {
        self.origin + self.ttl + self.grace + self.keep > now
    }
}

/// Announces the client's trailers, and requests those of the origin if the client accepts some.
/// VCL may object.
fn agree_on_trailers(request: &Message, body: &RequestBody, out_of_band: Option<&OutOfBand>, bereq: &mut Message) {
    if let RequestBody::Stream { length: None, .. } = body
        && let Some(names) = semantics::trailers::announced(request)
    {
        bereq.append(b"Trailer", &names);
    }
    if out_of_band.is_some_and(OutOfBand::takes_trailers) {
        bereq.append(b"TE", b"trailers");
        bereq.append(b"Connection", b"TE");
    }
}

impl FetchTask {
    /// The initial state for an order.
    pub(crate) fn new(context: &Loop, ordered: FetchOrder<'_>, ready: oneshot::Sender<FetchReport>) -> FetchTask {
        let FetchOrder {
            order,
            request,
            prepared,
            mut client,
            vxid,
            busy,
            stale,
            part,
            asks_for_part,
            slice,
            director,
            body,
            early,
            client_identity,
            trace,
            out_of_band,
        } = ordered;
        let (mode, policy) = (order.mode, order.vcl.policy);
        let now = context.clock.now();
        let mut choices = Choices { director, client_identity, trace, ..Choices::default() };
        let mut bereq = context.spares.message();
        match prepared {
            None => {
                copy_request(request, mode, policy, &mut bereq);
                if asks_for_part {
                    copy_range(request, &mut bereq);
                }
            }
            Some(prepared) => {
                bereq = prepared.bereq;
                let chosen = |seconds: f64| (seconds > 0.0).then_some(seconds);
                choices.connect_timeout = chosen(prepared.connect_timeout);
                choices.first_byte_timeout = chosen(prepared.first_byte_timeout);
                choices.between_bytes_timeout = chosen(prepared.between_bytes_timeout);
            }
        }
        if policy == HttpPolicy::Rfc || out_of_band.is_some() {
            agree_on_trailers(request, &body, out_of_band.as_ref(), &mut bereq);
        }
        // VCL may object. Source: RFC 9110 §10.1.1.
        if body.awaits_leave() {
            bereq.append(b"Expect", b"100-continue");
        }
        let vmod_state = client.as_mut().map(|client| std::mem::take(&mut client.vmod_state)).unwrap_or_default();
        FetchTask {
            order,
            attempt: Attempt { beresp: context.spares.message(), ..Attempt::default() },
            route: Route::default(),
            choices,
            life: Life {
                vxid,
                started: now,
                retries: 0,
                busy,
                promise: None,
                answers_get: false,
                stale,
                part,
                asks_for_part,
                wants_rest: false,
                slice,
                ready: Some(ready),
                answer: FetchAnswer::Failed,
                client,
                body,
                uploading: None,
                trailers: None,
                is_body_begun: false,
                early,
                uncacheable: mode == FetchMode::Pass,
                uncacheable_by: None,
                is_vary_unusable: false,
                is_for_other_queries: false,
                out_of_band,
                account: Account::default(),
                upload: None,
                held: Held::default(),
                held_base_bytes: 0,
                held_filter_bytes: 0,
            },
            bereq,
            bereq_original: context.spares.message(),
            vmod_state,
            vmod_wait: None,
        }
    }

    /// `beresp.uncacheable`: set by VCL, or by the policy for this response.
    pub(crate) fn is_uncacheable(&self) -> bool {
        self.life.uncacheable || self.policy_refusal().is_some()
    }

    /// Reason why the policy does not let the response be stored, as far as VCL has not decided
    /// otherwise. It depends on the headers as VCL left them.
    pub(crate) fn policy_refusal(&self) -> Option<Refusal> {
        let Attempt { verdict, beresp, responded, .. } = &self.attempt;
        if verdict.is_vouched_for {
            return None;
        }
        verdict.refusal.or_else(|| verdict.sharing?.refusal(beresp, &verdict.unshared, verdict.asks_first(*responded)))
    }

    /// Bytes of the messages that VCL can make grow.
    pub(crate) fn message_bytes(&self) -> usize {
        self.bereq.memory_bytes() + self.attempt.beresp.memory_bytes()
    }

    /// The id of the backend in use.
    pub(crate) fn used_backend(&self) -> Option<DirectorId> {
        self.order.vcl.directors.id_of(self.route.backend.as_ref()?)
    }

    /// TLS parameters of the connection to the origin whose response is in use; `None` if the
    /// connection is in clear, or is closed.
    pub(crate) fn origin_tls(&self) -> Option<&TlsFacts> {
        self.attempt.exchange.as_ref()?.tls()
    }

    /// Restores `bereq` as it was before VCL. The response no longer answers that request, so it is
    /// dropped. Compat: the connection is closed with it.
    pub(crate) fn roll_back(&mut self, context: &Loop, log: &mut LogBuffer) {
        self.give_up_response(context, log);
        self.attempt.verdict.filters = None;
        self.bereq.copy_from(&self.bereq_original);
    }

    /// Closes the connection, if there is one, and returns its connection slot.
    pub(super) fn close_connection(&mut self, log: &mut LogBuffer, why: &'static str) -> Option<Place> {
        self.attempt.exchange.take().and_then(|exchange| exchange.close(why, log))
    }

    /// After a complete response: returns the connection to the pool, or closes it.
    pub(super) fn release_connection(&mut self, context: &Loop, log: &mut LogBuffer) {
        if let Some(exchange) = self.attempt.exchange.take() {
            exchange.release(&self.attempt.beresp, context, log);
        }
    }

    /// Drops a response that is no longer needed. The connection can be reused if no body follows.
    pub(super) fn give_up_response(&mut self, context: &Loop, log: &mut LogBuffer) {
        if self.attempt.body.size.is_empty() {
            self.release_connection(context, log);
        } else {
            self.close_connection(log, close_reason::REQUESTED);
        }
    }

    /// Drops the client's body (`unset bereq.body`).
    pub(crate) fn drop_request_body(&mut self, log: &mut LogBuffer) {
        self.life.body = RequestBody::None;
        logged::unset(log, BEREQ, &mut self.bereq, "Content-Length");
        logged::unset(log, BEREQ, &mut self.bereq, "Transfer-Encoding");
    }

    /// State that directors need to choose a backend at `now` (seconds since 1970).
    pub(crate) fn resolving<'b>(
        &'b self,
        random: &'b TestableRandom,
        now: f64,
        notes: &'b Notes,
    ) -> ResolveContext<'b> {
        ResolveContext {
            now,
            random,
            url: self.bereq.target(),
            host: self.bereq.get("Host"),
            client: ClientName {
                identity: self.choices.client_identity.as_deref(),
                address: Some(self.order.peer.client.ip()),
            },
            digest: Some(&self.order.digest),
            is_for_cache: self.order.mode != FetchMode::Pass,
            shard: Some(self.vmod_state.shard_parameters()),
            notes,
        }
    }

    /// `beresp.transit_buffer` in bytes, else the parameter; 0 = only the built-in limit.
    pub(crate) fn transit_buffer(&self) -> u64 {
        self.attempt.verdict.transit_buffer.unwrap_or(self.order.parameters.transit_buffer)
    }
}

#[cfg(test)]
pub(crate) mod tests;
