//! The request machine: its steps in the order in which they run, the table of legal transitions,
//! and the loop.
//!
//! ```text
//! Accept → Receive → Hash ┬→ Lookup ┬→ Hit ──────────┬→ Deliver → Transmit → Finish
//!                         │         ├→ Miss → Await ─┤
//!                         ├→ Pass ──┴──────→ Await ──┘
//!                         ├→ Pipe → Finish
//!                         ├→ Purge → Synth
//!                         └→ Synth → Transmit            VclFailed → Synth
//!    any VCL method may return: synth (→ Synth), restart (→ Restart → Receive), fail (→ VclFailed)
//! ```
//!
//! Hit leads to Miss, or to Lookup again, if `vcl_hit` replaces the object (first releases of VCL
//! 4). In the old dialects Await and Synth may lead elsewhere: vcl_fetch may restart the request,
//! and vcl_deliver also runs for errors (`legacy.rs`). Each step has its own file, listed below in
//! this order. A step does its work, logs it, and names the next one; its results for the next one
//! are in [`Task`]. *Invariants:* only transitions of the table in `step.rs` happen; every step
//! ends; a [`Request`] belongs to one exchange at a time and returns to the event loop's pool
//! afterwards; a panic costs one exchange: its state is discarded, and its client gets a 500 unless
//! an answer was already begun.

mod accept;
mod await_object;
mod challenge;
mod deliver;
pub(crate) mod early;
mod finish;
mod fragment;
mod hash;
mod hit;
mod invalidate;
mod legacy;
mod lookup;
mod miss;
mod page;
mod pass;
mod pipe;
mod purge;
mod query;
mod query_rule;
mod receive;
mod redirect;
mod restart;
mod slices;
mod synth;
pub(crate) mod trace;
mod transmit;
mod vcl_failed;
mod waiting;

mod alt_svc;
mod body;
mod cache_status;
mod coding;
mod disk_tier;
mod vcl;
mod why;

pub(crate) mod choices;
pub(crate) mod client_body;
pub(crate) mod delivered;
pub(crate) mod filters;
pub(crate) mod inclusion;
pub(crate) mod initial;
mod key;
pub(crate) mod pool;
pub(crate) mod slot;
pub(crate) mod step;
pub(crate) mod task;

pub(crate) use client_body::ClientBody;
pub use pool::{PoolLimits, RequestPool};
pub(crate) use slot::Buffers;
pub use slot::RequestSlot;
pub(crate) use step::Step;
pub use task::Request;
pub(crate) use task::{Settings, Task};

use crate::canary::{Group, Member};
use crate::caught::caught;
use crate::context::{Loop, Work};
use crate::exchange::{BodyAnnounced, Exchange, Malformed};
use crate::loaded_vcl::{LoadedVcl, Trial};
use crate::session::SessionView;
use shm::log::LogId;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use step::is_legal;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::parameter::debug;
use surface::reason::Reason;
use surface::tag::Tag;

/// The result of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Reason to end the session after the exchange; `None` if the session may continue.
    pub close: Option<CloseReason>,
    /// The request panicked: discard it.
    pub is_ruined: bool,
}

/// Runs an exchange from start to end. Its head is in the request ([`Request::head`]), and
/// [`Request::arrive`] has been called.
pub fn run(
    context: &Rc<Loop>,
    session: &mut SessionView,
    exchange: &mut dyn Exchange,
    request: &mut Request,
) -> impl Future<Output = Outcome> {
    begin(context, session, request);
    run_begun(context, session, exchange, request, context.work())
}

/// Runs an exchange whose transaction has begun: one of [`run`], or a fragment of a page. It is
/// counted as `_work`.
async fn run_begun(
    context: &Rc<Loop>,
    session: &mut SessionView,
    exchange: &mut dyn Exchange,
    request: &mut Request,
    _work: Work,
) -> Outcome {
    let mut run = Run { context, session, exchange, request };
    let result = {
        let live = pin!(run.live());
        caught(live).await
    };
    let is_answered = match result {
        Ok(()) => return Outcome { close: run.request.task.life.close, is_ruined: false },
        Err(panic) => {
            context.engine.panics.tell(&panic);
            context.count(Main::ClientResp500);
            run.request.log.record_parts(Tag::Error, &[b"Panic: ", panic.as_bytes()]);
            run.request.task.life.is_answered
        }
    };
    // None of the old state can be trusted; these numbers are only shown.
    let (vxid, started) = (run.request.task.life.vxid, run.request.task.life.started);
    run.request.task = Task::default();
    let life = &mut run.request.task.life;
    (life.vxid, life.started, life.previous) = (vxid, started, context.clock.now());
    life.reason = Some(Reason::InternalError);
    context.histograms.count_reason(Reason::InternalError);
    run.request.task.settings = (&**context.engine.parameters.load()).into();
    if !is_answered {
        run.send_bare(500).await;
    }
    run.finish();
    Outcome { close: Some(CloseReason::TxError), is_ruined: true }
}

/// Chooses the VCL of a request while a canary runs.
#[cold]
fn choose(request: &mut Request, session: &SessionView, active: Option<&Arc<LoadedVcl>>, trial: &Trial) {
    let group = trial.canary.group(&request.task.request, session.peer.client.ip());
    request.member = group.map(|group| Member { canary: Arc::clone(&trial.canary), group });
    request.vcl = match group {
        Some(Group::Canary) => Some(Arc::clone(&trial.vcl)),
        Some(Group::Control) | None => active.cloned(),
    };
}

/// Starts the request's transaction.
fn begin(context: &Loop, session: &SessionView, request: &mut Request) {
    let vxid = context.next_vxid();
    let mut number = itoa::Buffer::new();
    let life = &mut request.task.life;
    life.vxid = vxid;
    life.previous = life.received_at;
    let mut link = [0; 32];
    let link = joined(&mut link, &[b"req ", number.format(vxid).as_bytes(), b" rxreq"]);
    let log = &mut request.log;
    log.start(LogId::client(vxid), life.started);
    log.announce(Tag::Link, LogId::client(session.vxid), link);
    log.record(Tag::Begin, session.begin_record());
    log.timestamp("Start", life.started);
    if session.http2.is_some() {
        // Compat: Varnish has the protocol of a stream before it has the head.
        log.record(Tag::ReqProtocol, b"HTTP/2.0");
    }
    log.timestamp("Req", life.received_at);
}

fn joined<'a>(room: &'a mut [u8; 32], parts: &[&[u8]]) -> &'a [u8] {
    let mut len = 0;
    for part in parts {
        let take = part.len().min(room.len() - len);
        room[len..len + take].copy_from_slice(&part[..take]);
        len += take;
    }
    &room[..len]
}

/// State of a running request that its steps work with.
pub(crate) struct Run<'a> {
    /// The state of the event loop.
    pub(crate) context: &'a Rc<Loop>,
    /// The request's view of its session.
    pub(crate) session: &'a mut SessionView,
    /// Source of the request and destination of its response.
    pub(crate) exchange: &'a mut dyn Exchange,
    /// The request and its buffers.
    pub(crate) request: &'a mut Request,
}

impl Run<'_> {
    async fn live(&mut self) {
        let Run { context, session, exchange, request } = self;
        match exchange.open(&mut request.task.request, &mut request.log) {
            Ok(announced) => {
                request.task.life.protocol = exchange.protocol();
                request.task.life.body = announced.into();
                request.task.life.is_length_unsaid =
                    announced == BodyAnnounced::Unknown && !request.task.request.has("Transfer-Encoding");
                if request.task.life.inclusion.is_none() {
                    let table = context.engine.vcl.load();
                    match &table.trial {
                        None => request.vcl.clone_from(&table.active),
                        Some(trial) => choose(request, session, table.active.as_ref(), trial),
                    }
                    if let Some(vcl) = &request.vcl {
                        request.log.record(Tag::VCLUse, vcl.name.as_bytes());
                    }
                }
                self.run().await;
            }
            Err(malformed) => Box::pin(self.refuse(malformed)).await,
        }
    }

    /// Answers malformed input with a bare 400, or 431 if it is too large, and makes the session
    /// close.
    async fn refuse(&mut self, malformed: Malformed) {
        if let Some(text) = &malformed.bogo_header {
            self.request.log.record(Tag::BogoHeader, text.as_bytes());
        }
        let garbage = self.exchange.garbage();
        self.request.log.record(Tag::HttpGarbage, garbage);
        self.request.task.life.account.request_head = garbage.len() as u64;
        self.context.count(Main::ClientReq400);
        let close = if malformed.is_oversize { CloseReason::RxOverflow } else { CloseReason::RxJunk };
        self.request.task.life.close = Some(close);
        match &malformed.limit {
            Some(details) => self.why(Reason::RequestTooLarge, details.as_bytes()),
            None => self.why(Reason::BadRequest, b""),
        }
        self.send_bare(if malformed.is_oversize { 431 } else { 400 }).await;
        self.finish();
    }

    /// Runs a request whose head has been parsed to its end. If the session must close,
    /// `Life::close` then has the reason.
    pub(crate) async fn run(&mut self) {
        let mut step = Step::Accept;
        while step != Step::Finish {
            if self.request.task.settings.debug & debug::REQ_STATE != 0 {
                self.log_step(step);
            }
            let next = match step {
                Step::Accept => self.accept().await,
                Step::Receive => self.receive().await,
                Step::Hash => self.hash().await,
                Step::Lookup => self.lookup().await,
                Step::Hit => self.hit().await,
                Step::Miss => self.miss().await,
                Step::Pass => self.pass().await,
                Step::Await => self.await_object().await,
                Step::Pipe => Box::pin(self.pipe()).await,
                Step::Purge => self.purge().await,
                Step::Synth => self.synth().await,
                Step::Deliver => self.deliver().await,
                Step::Transmit => self.transmit().await,
                Step::Restart => self.restart(),
                Step::VclFailed => self.vcl_failed(),
                Step::Finish => Step::Finish,
            };
            debug_assert!(is_legal(step, next), "{step:?} → {next:?}");
            step = next;
        }
        self.finish();
    }

    /// Writes the record that the debug bit `req_state` enables.
    #[cold]
    fn log_step(&mut self, step: Step) {
        let task = &self.request.task;
        let (vxid, session, step) = (task.life.vxid, self.session.vxid, step.debug_name());
        let vcl = self.request.vcl.as_ref().map_or("-", |vcl| vcl.name.as_str());
        let record = format_args!("vxid {vxid} STP_Req Step {step} sp {session} vcl {vcl}");
        self.request.log.record_fmt(Tag::Debug, record);
    }

    /// Makes the session close after this request. The first reason counts, except that a fault
    /// takes precedence over a requested close.
    fn close(&mut self, reason: CloseReason) {
        let close = &mut self.request.task.life.close;
        let is_wish = matches!(
            close,
            None | Some(
                CloseReason::ReqClose | CloseReason::ReqHttp10 | CloseReason::RespClose | CloseReason::RemClose
            )
        );
        if is_wish && !(close.is_some() && reason == CloseReason::RespClose) {
            *close = Some(reason);
        }
    }

    /// Continues with a synthetic response; an empty reason means the standard phrase.
    fn synthesise(&mut self, status: u16, reason: &[u8]) -> Step {
        self.request.task.life.error_status = status;
        self.request.task.error_reason.clear();
        self.request.task.error_reason.extend_from_slice(reason);
        Step::Synth
    }
}
