//! What a request is made of: its buffers, and everything its steps and its VCL work on.

use super::choices::Choices;
use super::client_body::ClientBody;
use super::delivered::Delivered;
use super::step::Step;
use crate::bodies::request::Feed;
use crate::fetch::legacy_order::PreparedRequest;
use crate::fetch::order::FetchTicket;
use crate::loaded_vcl::LoadedVcl;
use crate::memory::Held;
use crate::world::vmod_wait::VmodWait;
use cache::Busy;
use message::Message;
use sha2::{Digest, Sha256};
use shm::log::{LogBuffer, LogRing};
use std::sync::Arc;
use store::Object;
use surface::close_reason::CloseReason;
use surface::parameter::Parameters;
use surface::reason::Reason;
use vcl_run::eval::Machine;
use vcl_run::value::{DirectorId, Scratch};

/// A request with all that its steps need: reused from request to request, never allocated on the path of a hit.
pub struct Request {
    /// The log of the transaction.
    pub(crate) log: LogBuffer,
    /// The evaluator.
    pub(crate) machine: Machine,
    /// Strings of the running VCL.
    pub(crate) scratch: Scratch,
    /// The VCL that runs now.
    pub(crate) vcl: Option<Arc<LoadedVcl>>,
    /// All the rest.
    pub(crate) task: Task,
}

impl Request {
    pub(crate) fn new(ring: &LogRing) -> Request {
        Request {
            log: LogBuffer::new(ring),
            machine: Machine::new(),
            scratch: Scratch::new(usize::MAX),
            vcl: None,
            task: Task::default(),
        }
    }

    /// Its first bytes came, at that time (seconds since 1970): it lives under the parameters of this moment.
    pub fn arrive(&mut self, parameters: &Parameters, now: f64) {
        self.task.life.started = now;
        self.task.life.received_at = now;
        self.task.settings = Settings::from(parameters);
    }

    /// The head came whole, with what it had received of it: so many bytes, at that time (seconds since 1970).
    pub fn complete(&mut self, head_bytes: u64, now: f64) {
        self.task.life.received_at = now;
        self.task.life.account.request_head = head_bytes;
    }

    /// The head, for the transport to fill.
    pub fn head(&mut self) -> &mut Message {
        &mut self.task.request
    }

    /// Forgets the request; buffers keep room up to so many bytes each. Every field is named here: one that is new does not
    /// compile until it is reset too.
    pub(crate) fn clear(&mut self, bytes: usize) {
        let Request { log, machine, scratch, vcl, task } = self;
        // The log of a request that is over is complete: it has nothing in it.
        log.flush();
        machine.clear(bytes);
        scratch.clear(usize::MAX);
        *vcl = None;
        task.clear(bytes);
    }
}

/// Empties a buffer, and gives its room back if it is more than so many bytes.
pub(super) fn clear_buffer(buffer: &mut Vec<u8>, bytes: usize) {
    buffer.clear();
    if buffer.capacity() > bytes {
        *buffer = Vec::new();
    }
}

/// The parameters that the client's side reads, taken once a request so that a change in the middle confuses nothing.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub(crate) struct Settings {
    pub(crate) debug: u64,
    pub(crate) feature: u64,
    pub(crate) gzip_support: bool,
    pub(crate) http_max_hdr: usize,
    pub(crate) http_req_hdr_len: usize,
    pub(crate) http_req_size: usize,
    pub(crate) idle_send_timeout: f64,
    pub(crate) max_restarts: u64,
    pub(crate) pipe_sess_max: u64,
    pub(crate) pipe_task_deadline: f64,
    pub(crate) pipe_timeout: f64,
    pub(crate) range_support: bool,
    pub(crate) reasons: bool,
    pub(crate) cache_status: bool,
    pub(crate) request_memory_max: usize,
    pub(crate) send_timeout: f64,
    pub(crate) timeout_idle: f64,
    pub(crate) timeout_linger: f64,
    pub(crate) vary_notice: u64,
}

impl From<&Parameters> for Settings {
    fn from(parameters: &Parameters) -> Settings {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Settings {
            debug: parameters.debug,
            feature: parameters.feature,
            gzip_support: parameters.http_gzip_support,
            http_max_hdr: size(parameters.http_max_hdr),
            http_req_hdr_len: size(parameters.http_req_hdr_len),
            http_req_size: size(parameters.http_req_size),
            idle_send_timeout: parameters.idle_send_timeout,
            max_restarts: parameters.max_restarts,
            pipe_sess_max: parameters.pipe_sess_max,
            pipe_task_deadline: parameters.pipe_task_deadline,
            pipe_timeout: parameters.pipe_timeout,
            range_support: parameters.http_range_support,
            reasons: parameters.tells_reasons(),
            cache_status: parameters.cache_status,
            request_memory_max: size(parameters.request_memory_max),
            send_timeout: parameters.send_timeout,
            timeout_idle: parameters.timeout_idle,
            timeout_linger: parameters.timeout_linger,
            vary_notice: parameters.vary_notice,
        }
    }
}

/// Bytes moved for a request, for `ReqAcct` and the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Request head received.
    pub(crate) request_head: u64,
    /// Request body received, without its framing.
    pub(crate) request_body: u64,
}

/// Bytes moved through a pipe, for `PipeAcct` and the counters.
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

/// The request to an origin that vcl_pipe sees.
pub(crate) struct PipeRequest {
    pub(crate) vxid: u32,
    pub(crate) log: LogBuffer,
    pub(crate) bereq: Message,
    pub(crate) director: Option<DirectorId>,
    pub(crate) connect_timeout: Option<f64>,
    /// `bereq.task_deadline` when VCL set it, seconds.
    pub(crate) task_deadline: Option<f64>,
    pub(crate) started: f64,
}

/// The state of one request. What one request, or a part of its life, leaves behind lies in structures of its own that are
/// reset as a whole, so that a field that is added is reset too; only buffers whose room is used again are cleared by name,
/// all of them in [`Task::clear`].
#[derive(Default)]
pub(crate) struct Task {
    /// Parameters.
    pub(crate) settings: Settings,
    /// From the first byte to the last.
    pub(crate) life: Life,
    /// What VCL chose, from the first vcl_recv on.
    pub(crate) choices: Choices,
    /// What lookup and fetch gave, from one vcl_recv to the next.
    pub(crate) found: Found,
    /// How the response that is being made is sent.
    pub(crate) answer: Answer,

    /// `req`.
    pub(crate) request: Message,
    /// The request as it was received, for rollbacks.
    pub(crate) original: Message,
    /// `resp`.
    pub(crate) response: Message,
    /// `obj`, decoded when somebody looks.
    pub(crate) object_head: Message,
    /// Reason for vcl_synth; empty = the standard phrase.
    pub(crate) error_reason: Vec<u8>,
    /// `resp.body` of vcl_synth.
    pub(crate) synthetic: Vec<u8>,
    /// The digest being made.
    pub(crate) hasher: Sha256,
    /// What VMODs keep for the duration of the request.
    pub(crate) vmod_state: vmods::TaskState,
}

/// What lasts as long as the request.
#[derive(Default)]
pub(crate) struct Life {
    /// Transaction id; changes with a restart.
    pub(crate) vxid: u32,
    /// `req.transport`.
    pub(crate) protocol: &'static str,

    /// When the first byte came, seconds since 1970.
    pub(crate) started: f64,
    /// `req.time`: when the head was complete.
    pub(crate) received_at: f64,
    /// The timestamp logged last.
    pub(crate) previous: f64,
    /// `resp.time`; only set for a VCL that reads it.
    pub(crate) responded_at: f64,

    /// `return(vcl(label))` has been taken.
    pub(crate) is_under_label: bool,
    /// `std.late_100_continue`.
    pub(crate) late_continue: bool,
    /// The client's body.
    pub(crate) body: ClientBody,
    /// Whether the original method was HEAD.
    pub(crate) is_head: bool,

    /// `req.restarts`.
    pub(crate) restarts: u64,
    /// `req.hash`.
    pub(crate) digest: [u8; 32],
    /// What comes after vcl_hash.
    pub(crate) after_hash: Step,
    /// The last decision's reason; none for a plain hit.
    pub(crate) reason: Option<Reason>,
    /// Pieces of the client's body, for `VfpAcct`.
    pub(crate) received_pieces: u64,

    /// Status for vcl_synth; 0 = none yet.
    pub(crate) error_status: u16,
    /// Why the session must close after this request.
    pub(crate) close: Option<CloseReason>,
    /// Anything of a final response was sent.
    pub(crate) is_answered: bool,
    /// Memory beyond the base.
    pub(crate) held: Held,
    /// Bytes moved.
    pub(crate) account: Account,
    /// Bytes moved by a pipe; `Some` once it began.
    pub(crate) pipe_account: Option<PipeAccount>,
    /// What a VMOD waits for.
    pub(crate) vmod_wait: Option<VmodWait>,
}

/// What lookup and fetch gave.
#[derive(Default)]
pub(crate) struct Found {
    /// For how many seconds the object found was not used before; only for a VCL that reads that.
    pub(crate) unused_seconds: f64,
    /// Lookup found an object that is delivered.
    pub(crate) is_hit: bool,
    /// … that was stale.
    pub(crate) is_grace_hit: bool,
    /// `req.is_hitmiss`.
    pub(crate) is_hitmiss: bool,
    /// `req.is_hitpass`.
    pub(crate) is_hitpass: bool,
    /// The response is for this client alone: nothing was looked up, or what was found said so.
    pub(crate) is_passed: bool,
    /// What is delivered; [`Found::take_up`] sets it.
    pub(crate) object: Option<Delivered>,
    /// What `object_head` has of it.
    pub(crate) object_head: ObjectHead,
    /// The promise to fetch.
    pub(crate) busy: Option<Busy>,
    /// An expired object that may be revalidated.
    pub(crate) stale: Option<Arc<Object>>,
    /// The fetch that was ordered.
    pub(crate) ticket: Option<FetchTicket>,
    /// The session's end of a body that is streamed to the fetch.
    pub(crate) feed: Option<Feed>,
    /// In vcl_pipe: the request to the origin.
    pub(crate) pipe: Option<Box<PipeRequest>>,
    /// In vcl_miss and vcl_pass of the old dialects: the request to the origin.
    pub(crate) prepared: Option<Box<PreparedRequest>>,
}

impl Found {
    /// From now on this is `obj`.
    pub(crate) fn take_up(&mut self, object: Delivered) {
        self.object = Some(object);
        self.object_head = ObjectHead::Unread;
    }

    /// There is no `obj` any more.
    pub(crate) fn let_go(&mut self) {
        self.object = None;
        self.object_head = ObjectHead::Unread;
    }
}

/// Whether [`Task::object_head`] is that of the object found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ObjectHead {
    /// Nobody has looked at it.
    #[default]
    Unread,
    /// It is.
    Decoded,
    /// It was, until VCL changed it, as only the old dialects could.
    Changed,
}

/// How a response is sent.
#[derive(Default)]
pub(crate) struct Answer {
    /// Whether the response is `synthetic` rather than `object`.
    pub(crate) is_synthetic: bool,
    /// `resp.filters` when VCL set it.
    pub(crate) filters: Option<Vec<u8>>,
    /// `resp.do_esi` when VCL set it.
    pub(crate) do_esi: Option<bool>,
}

impl Task {
    /// Forgets the request; buffers keep room up to so many bytes each. Each part is named here: one that is new does not
    /// compile until it is reset too.
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

    /// Forgets what VCL chose: before the first vcl_recv.
    pub(crate) fn forget_choices(&mut self) {
        self.choices = Choices::default();
    }

    /// Forgets what lookup and fetch gave: before every vcl_recv.
    pub(crate) fn forget_lookup(&mut self) {
        self.found = Found::default();
    }

    /// Forgets a response that will not be sent.
    pub(crate) fn forget_response(&mut self) {
        self.answer = Answer::default();
        self.response.clear();
        self.synthetic.clear();
    }

    /// Bytes that strings of VCL and messages may take together: request_memory_max, less what a VMOD has taken.
    pub(crate) fn memory_limit(&self) -> usize {
        self.settings.request_memory_max.saturating_sub(self.vmod_state.taken_bytes())
    }

    /// Bytes of memory that grow with what the client sends and VCL does.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.request.memory_bytes()
            + self.original.memory_bytes()
            + self.response.memory_bytes()
            + self.object_head.memory_bytes()
            + self.synthetic.len()
    }
}

#[cfg(test)]
mod tests;
