//! The origin's side of a request: its steps in the order of life, the table of legal transitions, and the loop.
//!
//! ```text
//! Prepare → Send → Response ┬→ Body ───────┬→ Commit → Done
//!                           └→ Revalidate ─┘     ↑     a 304: vcl_backend_refresh, if the VCL has one
//!    what goes wrong before a client has seen anything → Error ┘ (vcl_backend_error)
//!    vcl_backend_response and vcl_backend_error may say retry → Retry → Prepare
//!    abandon, fail, or a body that breaks while it is streamed → Fail → Done
//! ```
//!
//! The old dialects have `vcl_fetch` alone, which decides for the client: `legacy.rs`.
//! A fetch is a task of its own on the loop of the request that ordered it; the client's side waits on the [`FetchTicket`].
//! *Invariants:* only transitions of [`LEGAL`] happen; the ticket is answered exactly once; the busy mark is released however
//! the fetch ends, by panic too; an object is marked complete only when its whole body is in it.

mod body;
mod commit;
mod connection;
mod error;
mod fail;
pub(crate) mod filters;
mod host;
pub(crate) mod legacy;
mod overflow;
mod prepare;
mod refresh;
mod request_filters;
mod response;
mod retry;
mod revalidate;
mod send;
mod storage;
mod vcl;
mod why;

use crate::caught::caught;
use crate::context::{Loop, Peer, Work};
use crate::loaded_vcl::LoadedVcl;
use crate::memory::Held;
use crate::request::Delivered;
use crate::request_body::RequestBody;
use crate::tally::Counted;
use crate::vcl_context::Noted;
use backend::Backend;
use backend::director::trail::Trail;
use cache::Busy;
use connection::OriginConnection;
use http1::BodyLength;
use legacy::{ClientRequest, PreparedRequest};
use message::Message;
pub(crate) use send::reason_of;
use shm::log::{LogBuffer, LogId};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use surface::counter::Main;
use surface::parameter::Parameters;
use surface::tag::Tag;
use surface::vcl::{Generation, Method};
use vcl_run::eval::Machine;
use vcl_run::value::{DirectorId, Scratch};
use vmods::{Finish, Pending, TaskState};

/// What kind of fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchMode {
    /// A miss: the object goes into the cache.
    Fetch,
    /// A pass: the object is private to the request.
    Pass,
    /// Refresh of an object in grace while the old one is delivered.
    Background,
}

impl FetchMode {
    /// The reason in Begin and Link records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FetchMode::Fetch => "fetch",
            FetchMode::Pass => "pass",
            FetchMode::Background => "bgfetch",
        }
    }
}

/// Everything a fetch needs to know from the request that orders it.
pub struct FetchOrder {
    /// Kind.
    pub mode: FetchMode,
    /// The client's request head as VCL left it.
    pub request: Message,
    /// In an old dialect: the request to the origin, which VCL has seen.
    pub prepared: Option<Box<PreparedRequest>>,
    /// In an old dialect: what vcl_fetch may touch of the client's request.
    pub client: Option<Box<ClientRequest>>,
    /// The client's original method (before a miss made it GET).
    pub is_head: bool,
    /// vxid of the ordering request, for Begin.
    pub parent_vxid: u32,
    /// vxid already drawn for this fetch (the request logged `Link bereq <vxid> …` with it).
    pub vxid: u32,
    /// `req.hash`.
    pub digest: [u8; 32],
    /// The promise to fetch; `None` for a pass.
    pub busy: Option<Busy>,
    /// An expired object that may be revalidated.
    pub stale: Option<Arc<Object>>,
    /// Lookup gave hit-for-miss.
    pub is_hit_for_miss: bool,
    /// Lookup gave hit-for-pass.
    pub is_hit_for_pass: bool,
    /// The VCL of the request.
    pub vcl: Arc<LoadedVcl>,
    /// `req.backend_hint`; `None` = none, and the fetch fails.
    pub director: Option<DirectorId>,
    /// The client's body (passes, and misses whose VCL keeps it).
    pub body: RequestBody,
    /// Addresses, for `client.ip` and the like.
    pub peer: Peer,
    /// `client.identity` when VCL set it.
    pub client_identity: Option<Vec<u8>>,
    /// vxid of the session (`sess.xid`).
    pub session_vxid: u32,
    /// `req.trace` when VCL set it.
    pub trace: Option<bool>,
}

/// What the client's side is to do.
#[derive(Debug)]
pub enum FetchAnswer {
    /// Deliver this, which may still be growing.
    Object(Box<Delivered>),
    /// Answer 503: there is no object.
    Failed,
    /// Begin anew: `restart` in vcl_fetch.
    Restart,
    /// Make an answer of its own: `error` in vcl_fetch, or an old dialect's fetch that failed.
    Synth {
        /// Status.
        status: u16,
        /// Reason; empty = the standard phrase.
        reason: Vec<u8>,
    },
}

/// What a fetch came to.
#[derive(Debug)]
pub struct FetchReport {
    /// What is to be done.
    pub answer: FetchAnswer,
    /// The client's request as vcl_fetch left it, in an old dialect.
    pub client: Option<Box<ClientRequest>>,
}

/// The client's side of a running fetch.
pub struct FetchTicket {
    /// Resolves when the object can be delivered (streaming or complete), or when it is certain that there is none.
    pub ready: tokio::sync::oneshot::Receiver<FetchReport>,
}

/// Where a fetch is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The request is made from the client's; vcl_backend_fetch.
    Prepare,
    /// A connection is got, the request sent.
    Send,
    /// The response head is read; vcl_backend_response.
    Response,
    /// A 304: the stale object's body becomes the new one's.
    Revalidate,
    /// The body is read, filtered, stored.
    Body,
    /// The object is complete.
    Commit,
    /// The fetch begins anew.
    Retry,
    /// No usable response: vcl_backend_error makes one.
    Error,
    /// There will be no object.
    Fail,
    /// Over.
    Done,
}

/// Which step may follow which.
pub(crate) const LEGAL: &[(Step, &[Step])] = &[
    (Step::Prepare, &[Step::Send, Step::Error, Step::Fail]),
    (Step::Send, &[Step::Response, Step::Send, Step::Error]),
    (Step::Response, &[Step::Body, Step::Revalidate, Step::Send, Step::Retry, Step::Error, Step::Fail]),
    (Step::Revalidate, &[Step::Commit, Step::Error, Step::Fail]),
    (Step::Body, &[Step::Commit, Step::Error, Step::Fail]),
    (Step::Commit, &[Step::Done]),
    (Step::Retry, &[Step::Prepare, Step::Fail]),
    (Step::Error, &[Step::Commit, Step::Retry, Step::Fail]),
    (Step::Fail, &[Step::Done]),
    (Step::Done, &[]),
];

/// Whether a step may follow another.
fn is_legal(from: Step, to: Step) -> bool {
    LEGAL.iter().any(|(step, next)| *step == from && next.contains(&to))
}

/// Bytes moved for a fetch, retries together, for `BereqAcct` and the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    request_head: u64,
    request_body: u64,
    response_head: u64,
    response_body: u64,
}

/// What VCL and the headers say about the response; made anew for each response.
#[derive(Clone, Debug, Default)]
struct Verdict {
    /// `beresp.do_esi`.
    do_esi: bool,
    /// `beresp.do_gzip`.
    do_gzip: bool,
    /// `beresp.do_gunzip`.
    do_gunzip: bool,
    /// `beresp.do_stream`.
    do_stream: bool,
    /// `beresp.filters` when VCL set it.
    filters: Option<Vec<u8>>,
    /// `beresp.storage_hint` when VCL set it.
    storage_hint: Option<u32>,
    /// When the response was made, seconds since 1970.
    origin: f64,
    /// Seconds from `origin`.
    ttl: f64,
    /// Seconds.
    grace: f64,
    /// Seconds.
    keep: f64,
    /// `beresp.was_304`.
    was_304: bool,
    /// `return (pass(duration))`.
    is_hit_for_pass: bool,
    /// `beresp.cacheable` of the old dialects.
    is_cacheable: bool,
    /// That the response is private is not to be remembered.
    is_unremembered: bool,
    /// `beresp.transit_buffer` when VCL set it, bytes.
    transit_buffer: Option<u64>,
    /// Where VCL set the ttl: the last place, and the one before it.
    ttl_by: [Option<Noted>; 2],
}

/// A running fetch: what its steps and its VCL work on.
pub(crate) struct Fetch {
    context: Rc<Loop>,
    /// Taken once, so that a change in the middle confuses nothing.
    parameters: Arc<Parameters>,
    /// `http_gzip_support`, which the dialects before 3.0 do not know.
    gzip_support: bool,
    log: LogBuffer,
    machine: Machine,
    scratch: Scratch,
    vmod_state: TaskState,
    /// What a VMOD waits for.
    pending: Option<Pending>,
    /// What is left to do of a VMOD call once the wait is over.
    finish: Option<Finish>,
    /// The method being run.
    method: Method,
    _work: Work,
    _counted: Counted,

    mode: FetchMode,
    vxid: u32,
    parent_vxid: u32,
    session_vxid: u32,
    digest: [u8; 32],
    is_hit_for_miss: bool,
    is_hit_for_pass: bool,
    vcl: Arc<LoadedVcl>,
    peer: Peer,
    client_identity: Option<Vec<u8>>,
    busy: Option<Busy>,
    stale: Option<Arc<Object>>,
    /// `obj_stale`, in vcl_backend_refresh.
    stale_head: Message,
    /// `bereq.trace` when VCL set it, at first `req.trace`.
    trace: Option<bool>,
    /// Where VCL is about to set something.
    noted: Noted,
    /// Where VCL made the response uncacheable.
    uncacheable_by: Option<Noted>,
    ready: Option<tokio::sync::oneshot::Sender<FetchReport>>,
    /// What the ticket says if there is no object.
    answer: FetchAnswer,
    /// `req` of the old dialects, until the ticket is answered.
    client: Option<Box<ClientRequest>>,

    /// `bereq`.
    bereq: Message,
    /// `bereq` before VCL, for rollbacks.
    bereq_original: Message,
    /// `beresp`.
    beresp: Message,
    /// The client's body.
    body: RequestBody,
    /// Some of a streamed body was taken: it cannot be sent again.
    is_body_begun: bool,
    /// `bereq.filters` when VCL set it.
    body_filters: Option<Vec<u8>>,
    /// Those filters, once the headers have been changed for them.
    body_stages: Option<filters::Filters>,
    /// They have changed the headers.
    is_unpacked: bool,
    /// `bereq.backend`.
    director: Option<DirectorId>,
    /// `beresp.backend`, once resolved.
    backend: Option<Arc<Backend>>,
    /// Of an old dialect: the way through directors to it, which goes on when it gives no connection.
    trail: Trail,
    /// `Host` is that of the backend's definition.
    has_backend_host: bool,
    /// `beresp.backend.ip`.
    backend_address: Option<SocketAddr>,
    /// `bereq.connect_timeout`, seconds; 0 = unset.
    connect_timeout: f64,
    /// `bereq.first_byte_timeout`, seconds; 0 = unset.
    first_byte_timeout: f64,
    /// `bereq.between_bytes_timeout`, seconds; 0 = unset.
    between_bytes_timeout: f64,
    /// `bereq.retries`.
    retries: u64,
    /// `bereq.uncacheable`, `beresp.uncacheable`: a latch.
    uncacheable: bool,
    /// `beresp.storage`; `None` = VCL wants none.
    storage: Option<u32>,
    verdict: Verdict,
    /// `bereq.time`, seconds since 1970.
    started: f64,
    /// `beresp.time`, seconds since 1970.
    responded: f64,
    /// `now` of the running method.
    vcl_now: f64,
    /// Status for vcl_backend_error; 0 = the origin failed.
    error_status: u16,
    /// Reason for vcl_backend_error; empty = the standard one.
    error_reason: Vec<u8>,
    /// `beresp.body` of vcl_backend_error.
    synthetic: Vec<u8>,

    connection: Option<OriginConnection>,
    /// The next connection must not be a reused one.
    wants_fresh: bool,
    /// Framing of the response body.
    length: BodyLength,
    object: Option<Arc<Object>>,
    /// Whether the object goes into the index, rather than to one client only.
    is_stored: bool,
    /// The index remembers that the response is not to be shared.
    is_marked: bool,
    /// The response's Vary cannot be used.
    is_vary_unusable: bool,
    /// Body bytes of the object, after filters.
    body_bytes: u64,
    /// The response was made by vcl_backend_error.
    is_synthetic: bool,
    /// Pieces of body received, for `VfpAcct`.
    received_pieces: u64,
    account: Account,
    /// Memory beyond the base.
    held: Held,
    /// How much of it is not the body's.
    held_aside_bytes: usize,
}

/// Starts a fetch as a task of this loop (`tokio::task::spawn_local`).
pub fn start(context: &Rc<Loop>, order: FetchOrder) -> FetchTicket {
    let (sender, ready) = tokio::sync::oneshot::channel();
    let mut fetch = Box::new(Fetch::new(context, order, sender));
    tokio::task::spawn_local(async move {
        if let Err(panic) = caught(fetch.run()).await {
            fetch.after_panic(&panic);
        }
    });
    FetchTicket { ready }
}

impl Fetch {
    fn new(context: &Rc<Loop>, order: FetchOrder, ready: tokio::sync::oneshot::Sender<FetchReport>) -> Fetch {
        let parameters = context.engine.parameters.load_full();
        let limit_bytes = usize::try_from(parameters.request_memory_max).unwrap_or(usize::MAX);
        let now = context.clock.now();
        let gzip_support = parameters.http_gzip_support && order.vcl.generation >= Generation::V3;
        let mut fetch = Fetch {
            context: Rc::clone(context),
            log: LogBuffer::new(&context.engine.ring),
            machine: Machine::new(),
            scratch: Scratch::new(limit_bytes),
            vmod_state: TaskState::default(),
            pending: None,
            finish: None,
            method: Method::BackendFetch,
            _work: context.work(),
            _counted: Counted::new(&context.fetches),
            parameters,
            gzip_support,
            mode: order.mode,
            vxid: order.vxid,
            parent_vxid: order.parent_vxid,
            session_vxid: order.session_vxid,
            digest: order.digest,
            is_hit_for_miss: order.is_hit_for_miss,
            is_hit_for_pass: order.is_hit_for_pass,
            director: order.director,
            vcl: order.vcl,
            peer: order.peer,
            client_identity: order.client_identity,
            busy: order.busy,
            stale: order.stale,
            stale_head: Message::new(),
            trace: order.trace,
            noted: Noted::default(),
            uncacheable_by: None,
            ready: Some(ready),
            answer: FetchAnswer::Failed,
            client: order.client,
            bereq: Message::new(),
            bereq_original: Message::new(),
            beresp: Message::new(),
            body: order.body,
            is_body_begun: false,
            body_filters: None,
            body_stages: None,
            is_unpacked: false,
            backend: None,
            trail: Trail::default(),
            has_backend_host: false,
            backend_address: None,
            connect_timeout: 0.0,
            first_byte_timeout: 0.0,
            between_bytes_timeout: 0.0,
            retries: 0,
            uncacheable: order.mode == FetchMode::Pass,
            storage: None,
            verdict: Verdict::default(),
            started: now,
            responded: 0.0,
            vcl_now: now,
            error_status: 0,
            error_reason: Vec::new(),
            synthetic: Vec::new(),
            connection: None,
            wants_fresh: false,
            length: BodyLength::None,
            object: None,
            is_stored: false,
            is_marked: false,
            is_vary_unusable: false,
            body_bytes: 0,
            is_synthetic: false,
            received_pieces: 0,
            account: Account::default(),
            held: Held::default(),
            held_aside_bytes: 0,
        };
        fetch.begin();
        match order.prepared {
            None => prepare::copy_request(&order.request, fetch.mode, &mut fetch.bereq),
            Some(prepared) => {
                fetch.bereq = prepared.bereq;
                fetch.connect_timeout = prepared.connect_timeout;
                fetch.first_byte_timeout = prepared.first_byte_timeout;
                fetch.between_bytes_timeout = prepared.between_bytes_timeout;
            }
        }
        if let Some(client) = &mut fetch.client {
            fetch.vmod_state = std::mem::take(&mut client.vmod_state);
        }
        fetch
    }

    /// Opens the transaction. The client's side counts the fetch.
    fn begin(&mut self) {
        self.log.start(LogId::backend(self.vxid), self.started);
        self.log.record_fmt(Tag::Begin, format_args!("bereq {} {}", self.parent_vxid, self.mode.word()));
        self.log.record(Tag::VCLUse, self.vcl.name.as_bytes());
    }

    async fn run(&mut self) {
        let mut step = Step::Prepare;
        while step != Step::Done {
            let next = match step {
                Step::Prepare => {
                    self.draw_storage();
                    self.prepare().await
                }
                Step::Send => self.send().await,
                Step::Response => self.response().await,
                Step::Revalidate => self.revalidate().await,
                Step::Body => self.body().await,
                Step::Commit => self.commit(),
                Step::Retry => self.retry(),
                Step::Error => self.error().await,
                Step::Fail => self.fail(),
                Step::Done => Step::Done,
            };
            debug_assert!(is_legal(step, next), "{step:?} → {next:?}");
            step = next;
        }
        self.end();
    }

    /// Accounts, and the end of the transaction.
    fn end(&mut self) {
        let notes = backend::Notes::new();
        self.vmod_state.leave(&self.vcl.directors, &notes);
        crate::vcl_context::log_notes(&self.context.engine, &mut self.log, &notes);
        let account = self.account;
        self.log.record_fmt(
            Tag::BereqAcct,
            format_args!(
                "{} {} {} {} {} {}",
                account.request_head,
                account.request_body,
                account.request_head + account.request_body,
                account.response_head,
                account.response_body,
                account.response_head + account.response_body
            ),
        );
        self.log.end();
    }

    /// Leaves everything as if the fetch had failed: no half-made object, nobody waiting.
    fn after_panic(&mut self, text: &str) {
        self.context.engine.panics.tell(text);
        self.log.record_parts(Tag::FetchError, &[b"Internal error: ", text.as_bytes()]);
        self.context.count(Main::FetchFailed);
        self.connection = None;
        let _ = self.fail();
        self.end();
    }

    /// Seconds since 1970.
    fn now(&self) -> f64 {
        self.context.clock.now()
    }

    fn timestamp(&mut self, label: &str) {
        let now = self.now();
        self.log.timestamp(label, now);
    }

    /// Tells the client's side that the object can be delivered. A client that is gone abandons what is only for it, as the
    /// answer is dropped.
    fn deliver(&mut self, object: &Arc<Object>) {
        if let Some(delivered) = Delivered::new(Arc::clone(object)) {
            let _ = self.report(FetchAnswer::Object(Box::new(delivered)));
        }
    }

    /// Answers the ticket, unless that has happened. False when nobody has it any more.
    fn report(&mut self, answer: FetchAnswer) -> bool {
        let Some(ready) = self.ready.take() else { return true };
        let mut client = self.client.take();
        if let Some(client) = &mut client {
            client.vmod_state = std::mem::take(&mut self.vmod_state);
        }
        ready.send(FetchReport { answer, client }).is_ok()
    }
}

impl Drop for Fetch {
    /// A fetch that is dropped in the middle (the loop ends) leaves no object that looks as if more were to come.
    fn drop(&mut self) {
        if let Some(object) = self.object.take() {
            object.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_a_row_and_done_is_reached_from_everywhere() {
        let mut reaching = vec![Step::Done];
        while let Some((step, _)) = LEGAL
            .iter()
            .find(|(step, next)| !reaching.contains(step) && next.iter().any(|next| reaching.contains(next)))
        {
            reaching.push(*step);
        }
        assert_eq!(reaching.len(), LEGAL.len());
        assert!(!is_legal(Step::Commit, Step::Error), "what is complete is not taken back");
        assert!(!is_legal(Step::Fail, Step::Retry));
    }
}
