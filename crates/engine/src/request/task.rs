//! State of a request: its buffers, and all data that its steps and its VCL work on.
//!
//! *Invariant:* the data of one request is in structures that are reset with their default; no list
//! of fields is kept. A request holds a receive buffer only on HTTP/1, and while it waits for an
//! object its log keeps only the collected records.

use super::choices::Choices;
use super::client_body::{ClientBody, Duplex, ReadSoFar};
use super::delivered::Delivered;
use super::inclusion::Inclusion;
use super::key::KeyHasher;
use super::step::Step;
use crate::bodies::request::Feed;
use crate::canary::Member;
use crate::fetch::interest::Interest;
use crate::fetch::legacy_order::PreparedRequest;
use crate::fetch::order::FetchTicket;
use crate::fetch::out_of_band::OutOfBand;
use crate::loaded_vcl::LoadedVcl;
use crate::memory::Held;
use crate::peer::EarlyPhase;
use crate::query_rules::KnownRule;
use crate::slicing::Slicing;
use crate::world::vmod_wait::VmodWait;
use cache::Busy;
use message::Message;
use shm::log::{LogBuffer, LogRing};
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use surface::close_reason::CloseReason;
use surface::encoding::Encodings;
use surface::parameter::Parameters;
use surface::reason::Reason;
use vcl_run::eval::Machine;
use vcl_run::value::{DirectorId, Scratch};

/// A request with everything its steps need. It is reused, so that a hit allocates none.
pub struct Request {
    /// The log of the transaction.
    pub(crate) log: LogBuffer,
    /// The VCL evaluator.
    pub(crate) machine: Machine,
    /// Strings of the running VCL.
    pub(crate) scratch: Scratch,
    /// The VCL that runs now.
    pub(crate) vcl: Option<Arc<LoadedVcl>>,
    /// The group of the canary that the request belongs to; `None` = no canary runs, or neither.
    pub(crate) member: Option<Member>,
    /// Everything else.
    pub(crate) task: Task,
}

impl Request {
    pub(crate) fn new(ring: &LogRing) -> Request {
        Request {
            log: LogBuffer::new(ring),
            machine: Machine::new(),
            scratch: Scratch::new(usize::MAX),
            vcl: None,
            member: None,
            task: Task::default(),
        }
    }

    /// Must be called when the first bytes arrive, at `now` (seconds since 1970). The current
    /// parameters apply to the whole request.
    pub fn arrive(&mut self, parameters: &Parameters, now: f64) {
        self.task.life.started = now;
        self.task.life.received_at = now;
        self.task.settings = Settings::from(parameters);
    }

    /// Must be called when more of the head arrives later, at `now` (seconds since 1970).
    pub fn receive_more(&mut self, now: f64) {
        self.task.life.received_at = now;
    }

    /// Must be called when the head, of `head_bytes`, is complete.
    pub fn complete(&mut self, head_bytes: u64) {
        self.task.life.account.request_head = head_bytes;
    }

    /// The head, for the transport to fill in.
    pub fn head(&mut self) -> &mut Message {
        &mut self.task.request
    }

    /// Frees the memory that only a running method needs. Must be called before a wait for others:
    /// the next method starts afresh.
    pub(crate) fn rest(&mut self) {
        self.machine = Machine::new();
        self.scratch.free();
    }

    /// Clears the request; each buffer keeps at most `bytes` of room. Every field is named here, so
    /// that a new one does not compile until it is cleared.
    pub(crate) fn clear(&mut self, bytes: usize) {
        let Request { log, machine, scratch, vcl, member, task } = self;
        // The log of a finished request is complete, so it holds nothing any more.
        log.flush();
        machine.clear(bytes);
        scratch.clear(usize::MAX);
        *vcl = None;
        *member = None;
        task.clear(bytes);
    }
}

/// Empties a buffer, and frees it if it has room for more than `bytes`.
pub(super) fn clear_buffer(buffer: &mut Vec<u8>, bytes: usize) {
    buffer.clear();
    if buffer.capacity() > bytes {
        *buffer = Vec::new();
    }
}

/// The parameters that the client's side reads, copied once per request so that a change midway
/// cannot cause inconsistencies.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub(crate) struct Settings {
    pub(crate) debug: u64,
    pub(crate) feature: u64,
    pub(crate) gzip_support: bool,
    pub(crate) half_close: bool,
    pub(crate) encodings: Encodings,
    pub(crate) compress_after: u64,
    pub(crate) http_max_hdr: usize,
    pub(crate) http_req_hdr_len: usize,
    pub(crate) http_req_size: usize,
    pub(crate) idle_send_timeout: f64,
    pub(crate) max_restarts: u64,
    pub(crate) no_vary_search: bool,
    pub(crate) pipe_sess_max: u64,
    pub(crate) pipe_task_deadline: f64,
    pub(crate) pipe_timeout: f64,
    pub(crate) range_support: bool,
    pub(crate) reasons: bool,
    pub(crate) cache_status: bool,
    pub(crate) request_directives: bool,
    pub(crate) request_memory_max: usize,
    pub(crate) send_timeout: f64,
    pub(crate) slice_bytes: u64,
    pub(crate) timeout_idle: f64,
    pub(crate) timeout_linger: f64,
    pub(crate) trace_context: bool,
    pub(crate) vary_language_order: bool,
    pub(crate) vary_language_select: bool,
    pub(crate) vary_notice: u64,
    pub(crate) waiting_requests_max: u64,
    pub(crate) waiting_timeout: f64,
}

impl From<&Parameters> for Settings {
    fn from(parameters: &Parameters) -> Settings {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Settings {
            debug: parameters.debug,
            feature: parameters.feature,
            gzip_support: parameters.http_gzip_support,
            half_close: parameters.client_half_close,
            encodings: Encodings::of_parameter(parameters.http_encodings),
            compress_after: parameters.compress_after,
            http_max_hdr: size(parameters.http_max_hdr),
            http_req_hdr_len: size(parameters.http_req_hdr_len),
            http_req_size: size(parameters.http_req_size),
            idle_send_timeout: parameters.idle_send_timeout,
            max_restarts: parameters.max_restarts,
            no_vary_search: parameters.no_vary_search,
            pipe_sess_max: parameters.pipe_sess_max,
            pipe_task_deadline: parameters.pipe_task_deadline,
            pipe_timeout: parameters.pipe_timeout,
            range_support: parameters.http_range_support,
            reasons: parameters.tells_reasons(),
            cache_status: parameters.cache_status,
            request_directives: parameters.http_request_directives,
            request_memory_max: size(parameters.request_memory_max),
            send_timeout: parameters.send_timeout,
            slice_bytes: parameters.slice_bytes,
            timeout_idle: parameters.timeout_idle,
            timeout_linger: parameters.timeout_linger,
            trace_context: parameters.trace_context,
            vary_language_order: parameters.vary_language_order,
            vary_language_select: parameters.vary_language_select,
            vary_notice: parameters.vary_notice,
            waiting_requests_max: parameters.waiting_requests_max,
            waiting_timeout: parameters.waiting_timeout,
        }
    }
}

/// Bytes transferred for a request, for `ReqAcct` and the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Request head received.
    pub(crate) request_head: u64,
    /// Request body received, without its framing.
    pub(crate) request_body: u64,
}

/// Bytes transferred through a pipe, for `PipeAcct` and the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipeAccount {
    /// Head received from the client.
    pub(crate) client_head: u64,
    /// Head sent to the origin.
    pub(crate) backend_head: u64,
    /// Bytes from the client after the head.
    pub(crate) from_client: u64,
    /// Bytes sent to the client.
    pub(crate) to_client: u64,
}

/// The request to an origin as vcl_pipe sees it.
pub(crate) struct PipeRequest {
    pub(crate) vxid: u64,
    pub(crate) log: LogBuffer,
    pub(crate) bereq: Message,
    pub(crate) director: Option<DirectorId>,
    pub(crate) connect_timeout: Option<f64>,
    /// `bereq.task_deadline` when VCL set it, seconds.
    pub(crate) task_deadline: Option<f64>,
    pub(crate) started: f64,
    /// Length of the PROXY header that was sent to the origin.
    pub(crate) proxy_header_bytes: u64,
}

/// The state of one request. Data of one request, or of a part of its life, is in structures that
/// are reset as a whole, so that a new field is reset as well. Only buffers that are reused are
/// cleared by name, all of them in [`Task::clear`].
#[derive(Default)]
pub(crate) struct Task {
    /// Parameters.
    pub(crate) settings: Settings,
    /// State from the first byte to the last.
    pub(crate) life: Life,
    /// VCL's choices, from the first vcl_recv on.
    pub(crate) choices: Choices,
    /// The results of lookup and fetch, from one vcl_recv to the next.
    pub(crate) found: Found,
    /// Treatment of the current response.
    pub(crate) answer: Answer,

    /// `req`.
    pub(crate) request: Message,
    /// The request as it was received, for rollbacks.
    pub(crate) original: Message,
    /// `resp`.
    pub(crate) response: Message,
    /// `obj`, decoded when it is first needed.
    pub(crate) object_head: Message,
    /// Reason for vcl_synth; empty = the standard phrase.
    pub(crate) error_reason: Vec<u8>,
    /// `resp.body` of vcl_synth.
    pub(crate) synthetic: Vec<u8>,
    /// The digest being computed.
    pub(crate) hasher: KeyHasher,
    /// State of VMODs during the request.
    pub(crate) vmod_state: vmods::TaskState,
}

/// State that lasts as long as the request.
#[derive(Default)]
pub(crate) struct Life {
    /// Transaction id; changes with a restart.
    pub(crate) vxid: u64,
    /// `req.transport`.
    pub(crate) protocol: &'static str,

    /// Time of the first byte, seconds since 1970.
    pub(crate) started: f64,
    /// `req.time`: the time when the head was complete.
    pub(crate) received_at: f64,
    /// Time of the last timestamp record.
    pub(crate) previous: f64,
    /// `resp.time`; set only for a VCL that reads it.
    pub(crate) responded_at: f64,

    /// `return(vcl(label))` was executed.
    pub(crate) is_under_label: bool,
    /// `std.late_100_continue`.
    pub(crate) late_continue: bool,
    /// The client's body.
    pub(crate) body: ClientBody,
    /// There is a body that no header announces, as on an HTTP/2 stream.
    pub(crate) is_length_unsaid: bool,
    /// The original method was HEAD.
    pub(crate) is_head: bool,

    /// `req.restarts`.
    pub(crate) restarts: u64,
    /// `req.hash`.
    pub(crate) digest: [u8; 32],
    /// The step after vcl_hash.
    pub(crate) after_hash: Step,
    /// Reason for a deviation from the decision of vcl_recv; logged after vcl_hash.
    pub(crate) objection: Option<Box<str>>,
    /// The reason of the last decision; none for a plain hit.
    pub(crate) reason: Option<Reason>,
    /// Pieces received of the client's body, for `VfpAcct`.
    pub(crate) received_pieces: u64,

    /// Status for vcl_synth; 0 = none yet.
    pub(crate) error_status: u16,
    /// Reason to close the session after this request.
    pub(crate) close: Option<CloseReason>,
    /// Status of the response that was sent, or begun; 0 = none.
    pub(crate) sent_status: u16,
    /// Part of a final response was sent.
    pub(crate) is_answered: bool,
    /// Memory held beyond the base.
    pub(crate) held: Held,
    /// Bytes transferred.
    pub(crate) account: Account,
    /// Bytes transferred by a pipe; `Some` once it has begun.
    pub(crate) pipe_account: Option<PipeAccount>,
    /// The operation that a VMOD is waiting for.
    pub(crate) vmod_wait: Option<VmodWait>,
    /// The client has left during a wait.
    pub(crate) is_left: bool,
    /// Inclusion of this request in a page; `None` for a client's own request.
    pub(crate) inclusion: Option<Box<Inclusion>>,
    /// The handshake was under way when the request arrived, and Copal has marked it as early data.
    pub(crate) early: Option<Rc<EarlyPhase>>,
    /// The VCL that was active before `return(vcl(label))`.
    pub(crate) vcl_before_label: Option<Arc<LoadedVcl>>,
}

impl Life {
    /// Reason why `return (vcl(…))` cannot be carried out now, whatever the label; `None` if it
    /// can.
    pub(crate) fn refusal_of_switch(&self) -> Option<&'static str> {
        if self.restarts > 0 {
            return Some("Illegal return(vcl): Not after restarts");
        }
        self.is_under_label.then_some("Illegal return(vcl): Only from active VCL")
    }
}

/// The results of lookup and fetch.
#[derive(Default)]
pub(crate) struct Found {
    /// Time for which the object had not been used when it was found, in seconds; set only for a
    /// VCL that reads it.
    pub(crate) unused_seconds: f64,
    /// Lookup found an object that is delivered.
    pub(crate) is_hit: bool,
    /// `vcl_hit` decided to replace the object: the next lookup is a miss.
    pub(crate) is_forced: bool,
    /// The object was waited for while another request fetched it.
    pub(crate) has_waited: bool,
    /// The object that was found is stale, within its grace.
    pub(crate) is_grace_hit: bool,
    /// `req.is_hitmiss`.
    pub(crate) is_hitmiss: bool,
    /// `req.is_hitpass`.
    pub(crate) is_hitpass: bool,
    /// The response is for this client alone: there was no lookup, or its result was a pass.
    pub(crate) is_passed: bool,
    /// The object to deliver, set by [`Found::take_up`].
    pub(crate) object: Option<Delivered>,
    /// Division of the object, if its body is stored in slices.
    pub(crate) slices: Option<Box<Slices>>,
    /// A compressed copy of the object, which is sent instead of it.
    pub(crate) copy: Option<Delivered>,
    /// State of `object_head`.
    pub(crate) object_head: ObjectHead,
    /// The rule by which the query was put into the key.
    pub(crate) query_rule: Option<Arc<KnownRule>>,
    /// The busy mark.
    pub(crate) busy: Option<Busy>,
    /// An expired object that may be revalidated.
    pub(crate) stale: Option<Arc<Object>>,
    /// A stored part (206) that does not answer the request.
    pub(crate) part: Option<Arc<Object>>,
    /// The fetch that was ordered.
    pub(crate) ticket: Option<FetchTicket>,
    /// Out-of-band messages of that fetch.
    pub(crate) out_of_band: Option<OutOfBand>,
    /// The session's end of a body that is streamed to the fetch.
    pub(crate) feed: Option<Feed>,
    /// Progress of reading that body, once the fetch has requested it.
    pub(crate) fed: Option<Box<ReadSoFar>>,
    /// Dropped when the client needs nothing more of its pass.
    pub(crate) interest: Option<Interest>,
    /// State of a pass whose body and response are transferred at the same time.
    pub(crate) duplex: Option<Box<Duplex>>,
    /// In vcl_pipe: the request to the origin.
    pub(crate) pipe: Option<Box<PipeRequest>>,
    /// In vcl_miss and vcl_pass of the old dialects: the request to the origin.
    pub(crate) prepared: Option<Box<PreparedRequest>>,
}

impl Found {
    /// Makes this object `obj`.
    pub(crate) fn take_up(&mut self, object: Delivered) {
        self.object = Some(object);
        self.object_head = ObjectHead::Unread;
    }

    /// Drops `obj`.
    pub(crate) fn let_go(&mut self) {
        self.object = None;
        self.object_head = ObjectHead::Unread;
    }
}

/// State needed to fetch and send slices.
pub(crate) struct Slices {
    /// Division of the resource into slices.
    pub(crate) slicing: Slicing,
    /// The request for the origin, as it was before vcl_deliver.
    pub(crate) request: Message,
    /// The client has sent something while a slice was awaited, and its connection is not read
    /// again.
    pub(crate) has_heard: bool,
}

/// State of [`Task::object_head`] with respect to the object found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ObjectHead {
    /// Not decoded yet.
    #[default]
    Unread,
    /// It is the head of the object.
    Decoded,
    /// It was decoded, and then changed by VCL, which only the old dialects allow.
    Changed,
}

/// Treatment of a response that is sent.
#[derive(Default)]
pub(crate) struct Answer {
    /// The response is `synthetic` instead of `object`.
    pub(crate) is_synthetic: bool,
    /// `resp.filters` when VCL set it.
    pub(crate) filters: Option<Vec<u8>>,
    /// The client's Range is ignored: its condition cannot distinguish codings.
    pub(crate) ignores_range: bool,
    /// `resp.do_esi` when VCL set it.
    pub(crate) do_esi: Option<bool>,
    /// The body is assembled from a page with ESI and its fragments.
    pub(crate) is_page: bool,
}

impl Task {
    /// Clears the request; each buffer keeps at most `bytes` of room. Every part is named here, so
    /// that a new one does not compile until it is reset.
    pub(crate) fn clear(&mut self, bytes: usize) {
        let Task {
            settings,
            life,
            choices,
            found,
            answer,
            request,
            original,
            response,
            object_head,
            error_reason,
            synthetic,
            hasher,
            vmod_state,
        } = self;
        *found = Found::default();
        *life = Life::default();
        *choices = Choices::default();
        *answer = Answer::default();
        *settings = Settings::default();
        for message in [request, original, response, object_head] {
            message.shrink_to(bytes);
        }
        for buffer in [error_reason, synthetic] {
            clear_buffer(buffer, bytes);
        }
        hasher.reset();
        vmod_state.clear();
    }

    /// Resets VCL's choices; called before the first vcl_recv.
    pub(crate) fn forget_choices(&mut self) {
        self.choices = Choices::default();
    }

    /// Resets the results of lookup and fetch; called before every vcl_recv.
    pub(crate) fn forget_lookup(&mut self) {
        self.found = Found::default();
    }

    /// Resets a response that will not be sent.
    pub(crate) fn forget_response(&mut self) {
        self.answer = Answer::default();
        self.response.clear();
        self.synthetic.clear();
    }

    /// Bytes that VCL strings and messages may take together: request_memory_max minus the memory
    /// that a VMOD has taken.
    #[inline]
    pub(crate) fn memory_limit(&self) -> usize {
        self.settings.request_memory_max.saturating_sub(self.vmod_state.taken_bytes())
    }

    /// Memory, in bytes, that grows with the client's bytes and with VCL.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.request.memory_bytes()
            + self.original.memory_bytes()
            + self.response.memory_bytes()
            + self.object_head.memory_bytes()
            + self.synthetic.len()
            + self.vmod_state.memory_bytes()
    }
}

#[cfg(test)]
mod tests;
