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
mod error;
mod fail;
mod fill;
pub(crate) mod legacy;
mod overflow;
mod prepare;
mod refresh;
mod response;
mod retry;
mod revalidate;
mod send;
mod storage;
pub(crate) mod task;
mod transmit;
mod vcl;
mod why;

use crate::bodies::request::RequestBody;
use crate::caught::caught;
use crate::context::{Loop, Work};
use crate::loaded_vcl::LoadedVcl;
use crate::mempool_counts::Counted;
use crate::peer::Peer;
use crate::request::Delivered;
use backend::{Notes, ResolveContext};
use cache::Busy;
use legacy::{ClientRequest, PreparedRequest};
use message::Message;
pub(crate) use send::reason_of;
use shm::log::{LogBuffer, LogId};
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use surface::counter::Main;
use surface::tag::Tag;
pub(crate) use task::{FetchTask, Verdict};
use tokio::sync::oneshot;
use vcl_run::eval::Machine;
use vcl_run::value::{DirectorId, Scratch};

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
    pub ready: oneshot::Receiver<FetchReport>,
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

/// A running fetch.
pub(crate) struct Fetch {
    context: Rc<Loop>,
    log: LogBuffer,
    machine: Machine,
    scratch: Scratch,
    /// What its steps and its VCL work on.
    task: FetchTask,
    _work: Work,
    _counted: Counted,
}

/// Starts a fetch as a task of this loop (`tokio::task::spawn_local`).
pub fn start(context: &Rc<Loop>, order: FetchOrder) -> FetchTicket {
    let (sender, ready) = oneshot::channel();
    let mut fetch = Box::new(Fetch::new(context, order, sender));
    tokio::task::spawn_local(async move {
        if let Err(panic) = caught(fetch.run()).await {
            fetch.after_panic(&panic);
        }
    });
    FetchTicket { ready }
}

impl Fetch {
    fn new(context: &Rc<Loop>, order: FetchOrder, ready: oneshot::Sender<FetchReport>) -> Fetch {
        let task = FetchTask::new(context, order, ready);
        let limit_bytes = usize::try_from(task.order.parameters.request_memory_max).unwrap_or(usize::MAX);
        let mut fetch = Fetch {
            context: Rc::clone(context),
            log: LogBuffer::new(&context.engine.ring),
            machine: Machine::new(),
            scratch: Scratch::new(limit_bytes),
            task,
            _work: context.work(),
            _counted: Counted::new(&context.fetches),
        };
        fetch.begin();
        fetch
    }

    /// Opens the transaction. The client's side counts the fetch.
    fn begin(&mut self) {
        self.log.start(LogId::backend(self.task.life.vxid), self.task.life.started);
        self.log.record_fmt(
            Tag::Begin,
            format_args!("bereq {} {}", self.task.order.parent_vxid, self.task.order.mode.word()),
        );
        self.log.record(Tag::VCLUse, self.task.order.vcl.name.as_bytes());
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
        let notes = Notes::new();
        self.task.vmod_state.leave(&self.task.order.vcl.directors, &notes);
        crate::world::log_notes(&self.context.engine, &mut self.log, &notes);
        let account = self.task.life.account;
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
        self.task.attempt.exchange = None;
        let _ = self.fail();
        self.end();
    }

    /// Seconds since 1970.
    fn now(&self) -> f64 {
        self.context.clock.now()
    }

    /// What decides where directors lead now. What they have to say goes to `notes`.
    fn resolving<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        self.task.resolving(&self.context.engine.random, self.now(), notes)
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
        let Some(ready) = self.task.life.ready.take() else { return true };
        let mut client = self.task.life.client.take();
        if let Some(client) = &mut client {
            client.vmod_state = std::mem::take(&mut self.task.vmod_state);
        }
        ready.send(FetchReport { answer, client }).is_ok()
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
