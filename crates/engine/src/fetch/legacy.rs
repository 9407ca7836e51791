//! The old dialects (1.x to 3.0) on the origin's side: `vcl_fetch` works on the client's request, and decides for it.
//!
//! The client's side makes the request to the origin before vcl_miss and vcl_pass and hands it over ([`PreparedRequest`]),
//! with what VCL may read and change of the client's request ([`ClientRequest`]): both run on one event loop, the client
//! waits meanwhile, and gets it back with the answer. A client that went away leaves both to the fetch.
//! What a dialect takes for cacheable is decided here too: [`Fetch::legacy_lifetime`] before vcl_fetch, then
//! [`Fetch::legacy_deliver`] and [`Fetch::legacy_pass`].
//! Source: behaviour of Varnish 1.1.2, 2.0.6, 2.1.5 and 3.0.7.

use super::{Fetch, FetchAnswer, FetchMode, Step, prepare};
use crate::logged::{self, BEREQ};
use crate::request::Choices;
use crate::ruling::StatusLine;
use backend::{Notes, OpenError};
use message::Message;
use semantics::{HttpPolicy, is_cacheable_of_old};
use surface::counter::{Main, Vbe};
use surface::vcl::Generation;
use vmods::TaskState;

/// What VCL may read and change of a client's request while it is fetched for.
pub struct ClientRequest {
    /// `req`.
    pub message: Message,
    /// The request as it was received, for rollbacks.
    pub original: Message,
    /// What VCL chose for it, as far as vcl_fetch can tell.
    pub(crate) choices: Choices,
    /// `req.restarts`.
    pub restarts: u64,
    /// `req.xid`.
    pub vxid: u32,
    /// What VMODs keep for the request.
    pub vmod_state: TaskState,
    /// The origin's status: what `return (error)` shows when VCL names none. 0 = there was no response.
    pub response_status: u16,
}

/// A request to an origin that VCL has seen before it is sent.
#[derive(Debug)]
pub struct PreparedRequest {
    /// vxid of the fetch, drawn already.
    pub vxid: u32,
    /// `bereq`.
    pub bereq: Message,
    /// `bereq.connect_timeout`, seconds; 0 = not set.
    pub connect_timeout: f64,
    /// `bereq.first_byte_timeout`, seconds; 0 = not set.
    pub first_byte_timeout: f64,
    /// `bereq.between_bytes_timeout`, seconds; 0 = not set.
    pub between_bytes_timeout: f64,
}

impl PreparedRequest {
    /// Makes the request to an origin out of the client's. `gzip_support`: ask for gzip, whatever the client likes; `client` is
    /// the client's address as text.
    #[must_use]
    pub fn new(
        vxid: u32,
        mode: FetchMode,
        request: &Message,
        generation: Generation,
        gzip_support: bool,
        client: &[u8],
    ) -> PreparedRequest {
        let mut bereq = Message::new();
        prepare::copy_request(request, mode, &mut bereq);
        bereq.set_protocol(b"HTTP/1.1");
        if mode != FetchMode::Pass {
            bereq.set_method(b"GET");
            if gzip_support {
                bereq.set("Accept-Encoding", b"gzip");
            }
        }
        bereq.set("X-Varnish", itoa::Buffer::new().format(vxid).as_bytes());
        if forwards_address(generation) {
            bereq.append(b"X-Forwarded-For", client);
        }
        PreparedRequest { vxid, bereq, connect_timeout: 0.0, first_byte_timeout: 0.0, between_bytes_timeout: 0.0 }
    }
}

/// Whether the origin is told the client's address without VCL: until 2.0, in a header of its own. Later it was VCL's business.
#[must_use]
pub fn forwards_address(generation: Generation) -> bool {
    generation <= Generation::V20
}

impl Fetch {
    /// Prepare, for a request that VCL has seen already.
    pub(super) fn legacy_prepare(&mut self) -> Step {
        self.log.timestamp("Start", self.task.life.started);
        logged::log_request(&mut self.log, BEREQ, &self.task.bereq);
        self.task.bereq_original.copy_from(&self.task.bereq);
        Step::Send
    }

    /// Which rules of lifetimes the dialect relies on; `None` = those that the operator chose.
    pub(super) fn legacy_policy(&self) -> Option<HttpPolicy> {
        match self.task.order.vcl.generation {
            Generation::V1 | Generation::V20 | Generation::V21 => Some(HttpPolicy::Varnish2),
            Generation::V3 => Some(HttpPolicy::Varnish3),
            Generation::V4 => None,
        }
    }

    /// What the dialect makes of a response before vcl_fetch: it comes whole unless VCL wants it streamed, and its status
    /// says whether it is cacheable.
    pub(super) fn legacy_lifetime(&mut self) {
        let status = self.task.attempt.beresp.status();
        self.task.attempt.verdict.do_stream = false;
        self.task.attempt.verdict.is_cacheable = is_cacheable_of_old(status)
            && match self.task.order.vcl.generation {
                Generation::V1 => self.task.attempt.verdict.ttl > 0.0,
                Generation::V21 => self.task.order.mode != FetchMode::Pass,
                Generation::V20 | Generation::V3 | Generation::V4 => true,
            };
        if let Some(client) = &mut self.task.life.client {
            client.response_status = status;
        }
    }

    /// vcl_fetch said deliver. Only 2.1 minds what it calls cacheable; before, `deliver` and `insert` meant the cache. What has
    /// no ttl has no grace either.
    pub(super) fn legacy_deliver(&mut self) {
        if self.task.attempt.verdict.origin + self.task.attempt.verdict.ttl <= self.now() {
            self.task.attempt.verdict.ttl = 0.0;
            self.task.attempt.verdict.grace = 0.0;
            self.task.attempt.verdict.keep = 0.0;
        }
        if self.task.order.vcl.generation == Generation::V21 && !self.task.attempt.verdict.is_cacheable {
            self.task.life.uncacheable = true;
            self.task.attempt.verdict.is_unremembered = true;
        }
    }

    /// vcl_fetch said pass, without a duration: remembered for as long as the response would have lived, in 2.x for
    /// `default_ttl` at least.
    pub(super) fn legacy_pass(&mut self) {
        self.task.attempt.verdict.grace = 0.0;
        self.task.attempt.verdict.keep = 0.0;
        match self.task.order.vcl.generation {
            Generation::V20 | Generation::V21 => {
                let age = self.now() - self.task.attempt.verdict.origin;
                self.task.attempt.verdict.ttl =
                    self.task.attempt.verdict.ttl.max(self.task.order.parameters.default_ttl + age);
            }
            Generation::V1 | Generation::V3 | Generation::V4 => {}
        }
        self.task.attempt.verdict.is_unremembered =
            self.task.order.vcl.generation == Generation::V21 && !self.task.attempt.verdict.is_cacheable;
    }

    /// vcl_fetch said restart or error: it is the client's request that obeys, and there is no object.
    pub(super) fn order_client(&mut self, answer: FetchAnswer) -> Step {
        self.task.give_up_response(&self.context, &mut self.log);
        if self.task.order.vcl.is_legacy() {
            self.task.life.answer = answer;
        }
        Step::Fail
    }

    /// What `error` in vcl_fetch asks for; without a status it is the origin's.
    pub(super) fn synth_answer(&self, line: StatusLine) -> FetchAnswer {
        let status = line.status.unwrap_or_else(|| self.task.attempt.beresp.status());
        FetchAnswer::Synth { status, reason: self.scratch.get(line.reason).to_vec() }
    }

    /// There is no usable response: the client hears of it through vcl_error.
    pub(super) fn legacy_error(&mut self) -> Step {
        if self.task.attempt.error_status == 0 {
            self.context.count(Main::FetchFailed);
        }
        self.timestamp("Error");
        let status = if self.task.attempt.error_status == 0 { 503 } else { self.task.attempt.error_status };
        if let Some(client) = &mut self.task.life.client {
            client.response_status = status;
        }
        self.task.life.answer =
            FetchAnswer::Synth { status, reason: std::mem::take(&mut self.task.attempt.error_reason) };
        Step::Fail
    }

    /// The error of a fetch whose backend is in trouble over this request. Directors have left it out; this is for one that
    /// was named itself.
    pub(super) fn refused_by_saint_mode(&self) -> Option<String> {
        let backend = self
            .task
            .route
            .backend
            .as_ref()
            .filter(|backend| self.task.order.vcl.is_legacy() && backend.is_healthy())?;
        let notes = Notes::new();
        if self.task.order.vcl.directors.is_healthy_for(self.task.used_backend()?, &self.resolving(&notes)) {
            return None;
        }
        backend.count(Vbe::Unhealthy, 1);
        self.context.count(Main::BackendUnhealthy);
        Some(OpenError::Unhealthy(backend.name().to_owned()).text())
    }
}

/// Whether `set` of a header to something unset removes it: in 1.x and 2.x. Since 3.0 it leaves an empty one.
#[must_use]
pub(crate) fn unsets_by_set(generation: Generation) -> bool {
    generation < Generation::V3
}

/// A cap of `req.ttl` or `req.grace` that VCL set: 3.0 took one of 0 back instead.
#[must_use]
pub(crate) fn cap(seconds: f64, generation: Generation) -> Option<f64> {
    if generation == Generation::V3 && seconds <= 0.0 { None } else { Some(seconds.max(0.0)) }
}

/// What `req.grace` reads as: until 2.1 the default applies, in 3.0 an unset one is 0, since then it is negative.
#[must_use]
pub(crate) fn grace_shown(cap: Option<f64>, generation: Generation, default_grace: f64) -> f64 {
    cap.unwrap_or(match generation {
        Generation::V1 | Generation::V20 | Generation::V21 => default_grace,
        Generation::V3 => 0.0,
        Generation::V4 => -1.0,
    })
}

/// How much of its grace an object may use for a request with that cap. 1.x knew no grace; in 2.x a request that does not ask
/// for more gets `default_grace`.
#[must_use]
pub(crate) fn grace_granted(cap: Option<f64>, generation: Generation, default_grace: f64) -> Option<f64> {
    match generation {
        Generation::V1 => Some(0.0),
        Generation::V20 | Generation::V21 => Some(cap.unwrap_or(default_grace)),
        Generation::V3 | Generation::V4 => cap,
    }
}

impl std::fmt::Debug for ClientRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientRequest").field("vxid", &self.vxid).finish_non_exhaustive()
    }
}
