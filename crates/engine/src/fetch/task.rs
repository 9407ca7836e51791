//! What a fetch consists of: everything that its steps and its VCL work on.
//!
//! Sorted by how long it lasts: the order never changes; a life lasts across retries, as do VCL's choices for the request and
//! the way to the origin; an attempt ends with its response. Each part is forgotten by replacing it as a whole, so that a new
//! field is forgotten too. Next file: `retry.rs`.

use super::aside::Aside;
use super::interest::Interested;
use super::legacy_order::ClientRequest;
use super::mode::{FetchMode, copy_range, copy_request};
use super::order::{FetchAnswer, FetchOrder, FetchReport, SliceOrder};
use crate::bodies::filters::Filters;
use crate::bodies::fragment::Fragment;
use crate::bodies::request::RequestBody;
use crate::context::Loop;
use crate::loaded_vcl::LoadedVcl;
use crate::logged::{self, BEREQ};
use crate::memory::Held;
use crate::origin::{OriginExchange, ResponseBody, close_reason};
use crate::peer::{EarlyPhase, Peer};
use crate::query_rules::QueryOrder;
use crate::world::decision::Noted;
use crate::world::vmod_wait::VmodWait;
use backend::director::trail::Trail;
use backend::open::Place;
use backend::{Backend, ClientName, Notes, ResolveContext, TestableRandom};
use cache::Busy;
use message::Message;
use semantics::HttpPolicy;
use semantics::part::{Joint, Part};
use semantics::rfc::{FieldNames, Refusal};
use shm::log::LogBuffer;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use surface::encoding::Encoding;
use surface::parameter::Parameters;
use surface::reason::Reason;
use surface::vcl::Generation;
use tokio::sync::oneshot;
use tokio::time::Instant;
use vcl_run::tls::TlsFacts;
use vcl_run::value::DirectorId;
use vmods::TaskState;

/// The state of one fetch.
pub(crate) struct FetchTask {
    /// What the client's side ordered.
    pub(crate) order: Ordered,
    /// The state of one attempt to get a response.
    pub(crate) attempt: Attempt,
    /// The way to the origin; a repeated attempt goes the same way.
    pub(crate) route: Route,
    /// What VCL chose for the request; kept across retries.
    pub(crate) choices: Choices,
    /// From the order to the answer.
    pub(crate) life: Life,

    /// `bereq`.
    pub(crate) bereq: Message,
    /// `bereq` before VCL, for rollbacks.
    pub(crate) bereq_original: Message,
    /// What VMODs keep during the fetch.
    pub(crate) vmod_state: TaskState,
    /// What a VMOD is waiting for.
    pub(crate) vmod_wait: Option<VmodWait>,
}

/// What was ordered, and the parameters for it. It never changes.
pub(crate) struct Ordered {
    /// Copied once, so that a change midway cannot cause inconsistencies.
    pub(crate) parameters: Arc<Parameters>,
    /// `http_gzip_support`; always false for the dialects before 3.0.
    pub(crate) gzip_support: bool,
    /// The kind of fetch.
    pub(crate) mode: FetchMode,
    /// vxid of the ordering request.
    pub(crate) parent_vxid: u32,
    /// vxid of the session (`sess.xid`).
    pub(crate) session_vxid: u32,
    /// `bereq.hash`.
    pub(crate) digest: [u8; 32],
    /// What is known of queries that do not matter; `None` when that is not asked.
    pub(crate) query: Option<QueryOrder>,
    /// `bereq.is_hitmiss`.
    pub(crate) is_hit_for_miss: bool,
    /// `bereq.is_hitpass`.
    pub(crate) is_hit_for_pass: bool,
    /// The VCL of the request.
    pub(crate) vcl: Arc<LoadedVcl>,
    /// Addresses of the client's connection.
    pub(crate) peer: Peer,
    /// The client can send its body and receive the response at the same time.
    pub(crate) is_duplex: bool,
    /// Tells when the client wants nothing more.
    pub(crate) interest: Option<Interested>,
    /// The fragment of a page that waits for it.
    pub(crate) fragment: Option<Rc<Fragment>>,
}

/// What lasts as long as the fetch.
pub(crate) struct Life {
    /// Transaction id; changes with a retry.
    pub(crate) vxid: u32,
    /// `bereq.time`, seconds since 1970.
    pub(crate) started: f64,
    /// `bereq.retries`.
    pub(crate) retries: u64,
    /// The promise to fetch.
    pub(crate) busy: Option<Busy>,
    /// For a POST under the policy `rfc`, until its response has come: the right to store that for a GET.
    pub(crate) promise: Option<Busy>,
    /// The response to a POST is stored for a GET.
    pub(crate) answers_get: bool,
    /// An expired object that may be revalidated.
    pub(crate) stale: Option<Arc<Object>>,
    /// A stored part of the response, which may be completed.
    pub(crate) part: Option<Arc<Object>>,
    /// The client's range was passed on.
    pub(crate) asks_for_part: bool,
    /// Only what that part lacks was asked for.
    pub(crate) wants_rest: bool,
    /// The slice of the resource that is wanted.
    pub(crate) slice: Option<SliceOrder>,
    /// Where to report that the object can be delivered; `None` once that was done.
    pub(crate) ready: Option<oneshot::Sender<FetchReport>>,
    /// The answer for the ticket if there is no object.
    pub(crate) answer: FetchAnswer,
    /// `req` of the old dialects, until the ticket is answered.
    pub(crate) client: Option<Box<ClientRequest>>,
    /// The client's body.
    pub(crate) body: RequestBody,
    /// What came after it.
    pub(crate) trailers: Option<Message>,
    /// Part of a streamed body was taken, so it cannot be sent again.
    pub(crate) is_body_begun: bool,
    /// It came as early data, and the origin is told so.
    pub(crate) early: Option<Rc<EarlyPhase>>,
    /// `bereq.uncacheable`; once set, it stays set, and makes every response uncacheable.
    pub(crate) uncacheable: bool,
    /// Where VCL made the response uncacheable.
    pub(crate) uncacheable_by: Option<Noted>,
    /// The Vary of a response is unusable.
    pub(crate) is_vary_unusable: bool,
    /// The response was looked up under a rule that it does not state (`query_rule.rs`).
    pub(crate) is_for_other_queries: bool,
    /// What the client is told besides.
    pub(crate) aside: Option<Aside>,
    /// Bytes transferred.
    pub(crate) account: Account,
    /// Bytes of the request's body that were sent while the response came.
    pub(crate) uploaded_bytes: Rc<Cell<u64>>,
    /// Memory held beyond the base.
    pub(crate) held: Held,
    /// How much of that is not for the body.
    pub(crate) held_aside_bytes: usize,
}

/// What VCL chose for the request; kept across retries.
#[derive(Default)]
pub(crate) struct Choices {
    /// `bereq.backend`; `None` = no backend, so the fetch fails.
    pub(crate) director: Option<DirectorId>,
    /// `client.identity` when VCL set it.
    pub(crate) client_identity: Option<Vec<u8>>,
    /// `bereq.trace` when VCL set it, initially `req.trace`.
    pub(crate) trace: Option<bool>,
    /// `bereq.connect_timeout`, seconds; 0 = unset.
    pub(crate) connect_timeout: f64,
    /// `bereq.first_byte_timeout`, seconds; 0 = unset.
    pub(crate) first_byte_timeout: f64,
    /// `bereq.between_bytes_timeout`, seconds; 0 = unset.
    pub(crate) between_bytes_timeout: f64,
    /// `bereq.last_byte_timeout` when VCL set it, seconds; 0 = no limit.
    pub(crate) last_byte_timeout: Option<f64>,
    /// `bereq.filters` when VCL set it.
    pub(crate) body_filters: Option<Vec<u8>>,
}

/// The way to the origin.
#[derive(Default)]
pub(crate) struct Route {
    /// `beresp.backend`, once resolved.
    pub(crate) backend: Option<Arc<Backend>>,
    /// In an old dialect: the path through directors to the backend, continued when the backend gives no connection.
    pub(crate) trail: Trail,
    /// `Host` comes from the backend's definition.
    pub(crate) has_backend_host: bool,
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
    /// The place that is kept for it. Boxed, since few fetches are sent once more.
    pub(crate) held_place: Option<Box<Place>>,
    /// Which trial of a backend that was set aside this is; `None` = it is none.
    pub(crate) trial: Option<u64>,
    /// When the response must have come; `None` = there is no limit.
    pub(crate) last_byte_by: Option<Instant>,
    /// The last failure.
    pub(crate) failure: Option<Reason>,
    /// The origin has failed this attempt.
    pub(crate) is_faulty: bool,
    /// The filters of `bereq.filters`, once the headers have been changed for them.
    pub(crate) body_stages: Option<Filters>,
    /// The filters unpack the body, and the headers have been changed for that.
    pub(crate) unpacked: Option<Encoding>,

    /// `beresp`.
    pub(crate) beresp: Message,
    /// When the request began to be sent, seconds since 1970.
    pub(crate) requested: f64,
    /// `beresp.time`, seconds since 1970.
    pub(crate) responded: f64,
    /// What the head says about the body.
    pub(crate) body: ResponseBody,
    /// The part that the response is.
    pub(crate) part: PartTaken,
    /// The response is a slice, and shows itself to VCL as the whole.
    pub(crate) slice: Option<Part>,
    /// What VCL and the headers decide about the response.
    pub(crate) verdict: Verdict,
    /// `beresp.storage`; `None` = VCL wants none.
    pub(crate) storage: Option<u32>,
    /// VCL has set it.
    pub(crate) is_storage_chosen: bool,
    /// `obj_stale`, in vcl_backend_refresh.
    pub(crate) stale_head: Message,
    /// Pieces of body received, for `VfpAcct`.
    pub(crate) received_pieces: u64,
    /// What the response becomes.
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

/// The part that a response holds; new for each response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PartTaken {
    /// What the origin sends.
    pub(crate) received: Option<Part>,
    /// How it is joined with the stored part.
    pub(crate) joint: Option<Joint>,
}

impl PartTaken {
    /// What the object will hold; `None` = a whole.
    pub(crate) fn stored(self) -> Option<Part> {
        let part = self.joint.map_or(self.received, |joint| Some(joint.part));
        part.filter(|part| !part.is_whole() || self.joint.is_none())
    }
}

/// What a response becomes. An object dropped before it is complete has failed, so that its readers don't wait for more.
#[derive(Default)]
pub(crate) struct Kept {
    /// The object made from it.
    pub(crate) object: Option<Arc<Object>>,
    /// Whether the object goes into the index, rather than to one client only.
    pub(crate) is_stored: bool,
    /// The index remembers that the response must not be shared.
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

/// What VCL and the headers decide about the response; new for each response.
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
    /// When the response was generated, seconds since 1970.
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
    /// Do not remember that the response is private.
    pub(crate) is_unremembered: bool,
    /// `beresp.transit_buffer` when VCL set it, bytes.
    pub(crate) transit_buffer: Option<u64>,
    /// Where VCL set the ttl: the last place, and the one before it.
    pub(crate) ttl_by: [Option<Noted>; 2],
    /// VCL set the ttl.
    pub(crate) is_ttl_set: bool,
    /// Why RFC 9111 does not let the response be stored; VCL may see it otherwise.
    pub(crate) refusal: Option<Refusal>,
    /// It must be validated before every use.
    pub(crate) must_validate: bool,
    /// It must never be served stale.
    pub(crate) never_stale: bool,
    /// Fields that only the client that asked may get.
    pub(crate) unshared: FieldNames,
}

impl Verdict {
    /// How long the object is usable, in seconds.
    pub(crate) fn lifetime(&self) -> f64 {
        self.ttl + self.grace + self.keep
    }

    /// Whether the object is still usable at `now`, seconds since 1970.
    pub(crate) fn lives_at(&self, now: f64) -> bool {
        self.origin + self.ttl + self.grace + self.keep > now
    }
}

/// Announces the client's trailers, and asks for those of the origin if the client wants some. VCL may object.
fn agree_on_trailers(request: &Message, body: &RequestBody, aside: Option<&Aside>, bereq: &mut Message) {
    if let RequestBody::Stream { length: None, .. } = body
        && let Some(names) = semantics::trailers::announced(request)
    {
        bereq.append(b"Trailer", &names);
    }
    if aside.is_some_and(Aside::takes_trailers) {
        bereq.append(b"TE", b"trailers");
        bereq.append(b"Connection", b"TE");
    }
}

impl FetchTask {
    /// The initial state for an order.
    pub(crate) fn new(context: &Loop, order: FetchOrder<'_>, ready: oneshot::Sender<FetchReport>) -> FetchTask {
        let FetchOrder {
            mode,
            request,
            prepared,
            mut client,
            parent_vxid,
            vxid,
            digest,
            query,
            busy,
            stale,
            part,
            asks_for_part,
            slice,
            is_hit_for_miss,
            is_hit_for_pass,
            vcl,
            director,
            body,
            early,
            peer,
            client_identity,
            session_vxid,
            trace,
            aside,
            is_duplex,
            interest,
            fragment,
        } = order;
        let parameters = context.engine.parameters.load_full();
        let gzip_support = parameters.http_gzip_support && vcl.generation >= Generation::V3;
        let now = context.clock.now();
        let mut choices = Choices { director, client_identity, trace, ..Choices::default() };
        let mut bereq = context.spares.message();
        match prepared {
            None => {
                copy_request(request, mode, vcl.policy, &mut bereq);
                if asks_for_part {
                    copy_range(request, &mut bereq);
                }
            }
            Some(prepared) => {
                bereq = prepared.bereq;
                choices.connect_timeout = prepared.connect_timeout;
                choices.first_byte_timeout = prepared.first_byte_timeout;
                choices.between_bytes_timeout = prepared.between_bytes_timeout;
            }
        }
        if vcl.policy == HttpPolicy::Rfc || aside.is_some() {
            agree_on_trailers(request, &body, aside.as_ref(), &mut bereq);
        }
        let vmod_state = client.as_mut().map(|client| std::mem::take(&mut client.vmod_state)).unwrap_or_default();
        FetchTask {
            order: Ordered {
                parameters,
                gzip_support,
                mode,
                parent_vxid,
                session_vxid,
                digest,
                query,
                is_hit_for_miss,
                is_hit_for_pass,
                vcl,
                peer,
                is_duplex,
                interest,
                fragment,
            },
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
                trailers: None,
                is_body_begun: false,
                early,
                uncacheable: mode == FetchMode::Pass,
                uncacheable_by: None,
                is_vary_unusable: false,
                is_for_other_queries: false,
                aside,
                account: Account::default(),
                uploaded_bytes: Rc::default(),
                held: Held::default(),
                held_aside_bytes: 0,
            },
            bereq,
            bereq_original: context.spares.message(),
            vmod_state,
            vmod_wait: None,
        }
    }

    /// `beresp.uncacheable`: said by VCL, or by the policy for this response.
    pub(crate) fn is_uncacheable(&self) -> bool {
        self.life.uncacheable || self.attempt.verdict.refusal.is_some()
    }

    /// Bytes of the messages that VCL can make grow.
    pub(crate) fn message_bytes(&self) -> usize {
        self.bereq.memory_bytes() + self.attempt.beresp.memory_bytes()
    }

    /// The id of the backend in use.
    pub(crate) fn used_backend(&self) -> Option<DirectorId> {
        self.order.vcl.directors.id_of(self.route.backend.as_ref()?)
    }

    /// What was agreed with the origin whose response there is; `None` in clear, and once the connection is given up.
    pub(crate) fn origin_tls(&self) -> Option<&TlsFacts> {
        self.attempt.exchange.as_ref()?.tls()
    }

    /// Restores `bereq` as it was before VCL. The response no longer answers that request, so it is given up. Compat: the
    /// connection is given up with it.
    pub(crate) fn roll_back(&mut self, context: &Loop, log: &mut LogBuffer) {
        self.give_up_response(context, log);
        self.attempt.verdict.filters = None;
        self.bereq.copy_from(&self.bereq_original);
    }

    /// Closes the connection, if there is one, and returns its place.
    pub(super) fn close_connection(&mut self, log: &mut LogBuffer, why: &'static str) -> Option<Place> {
        self.attempt.exchange.take().and_then(|exchange| exchange.close(why, log))
    }

    /// After a complete response: returns the connection to the pool, or closes it.
    pub(super) fn release_connection(&mut self, context: &Loop, log: &mut LogBuffer) {
        if let Some(exchange) = self.attempt.exchange.take() {
            exchange.release(&self.attempt.beresp, context, log);
        }
    }

    /// Gives up a response that is no longer wanted. The connection can be reused if there was no body to come.
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

    /// What directors need to choose a backend at `now` (seconds since 1970).
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
