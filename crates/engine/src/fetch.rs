//! The fetch machine, the origin's side of a request: its steps in the order in which they run, the
//! table of legal transitions, and the loop.
//!
//! ```text
//! Prepare → Send → Response ┬→ Body ───────┬→ Commit → Done
//!                           └→ Revalidate ─┘     ↑     a 304: vcl_backend_refresh, if defined
//!      failure before delivery has begun → Error ┘     vcl_backend_error
//!   Response and Error → Stale → Done: a stale object answers instead
//!   vcl_backend_response and vcl_backend_error may return retry → Retry → Prepare
//!   abandon, fail, or a body that breaks while it is streamed → Fail → Done
//! ```
//!
//! The old dialects have only `vcl_fetch`, which decides for the client: `legacy.rs`. A fetch is a
//! task of its own on the event loop of the request that ordered it; the client's side waits on the
//! [`FetchTicket`]. *Invariants:* only transitions of [`LEGAL`] happen; the ticket is answered
//! exactly once; the busy mark is released however the fetch ends, even by a panic; an object is
//! marked complete only when its whole body is in it.

mod body;
mod body_relay;
mod cacheability;
mod commit;
mod early;
mod error;
mod fail;
pub(crate) mod failure;
mod fill;
mod leak;
mod legacy;
mod overflow;
mod part;
mod prepare;
mod query_rule;
mod refresh;
mod response;
mod retry;
mod revalidate;
mod send;
pub(crate) mod sent_body;
mod slice;
mod storage;
mod transmit;
mod upload;
mod vcl;
mod why;

pub(crate) mod evidence;
pub(crate) mod filters;
pub mod interest;
pub mod legacy_order;
pub mod mode;
pub(crate) mod no_connection;
pub mod order;
pub(crate) mod out_of_band;
pub(crate) mod spare;
pub(crate) mod stale;
pub(crate) mod task;

use crate::caught::caught;
use crate::context::{Loop, Work};
use crate::mempool_counts::Counted;
use crate::request::delivered::Delivered;
use backend::{Notes, ResolveContext};
pub use mode::FetchMode;
pub(crate) use order::Ordered;
pub use order::{FetchAnswer, FetchOrder, FetchReport, FetchTicket};
use shm::log::{LogBuffer, LogId};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use store::Object;
use surface::counter::{Main, Vbe};
use surface::tag::Tag;
use task::FetchTask;
use tokio::sync::oneshot;
use vcl_run::eval::Machine;
use vcl_run::value::Scratch;

/// The step that a fetch is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// The request is made from the client's; vcl_backend_fetch.
    Prepare,
    /// A connection is opened and the request sent.
    Send,
    /// The response head is received; vcl_backend_response.
    Response,
    /// A 304: the stale object's body becomes that of the new object.
    Revalidate,
    /// The body is received, filtered and stored.
    Body,
    /// The object is complete.
    Commit,
    /// The fetch starts again.
    Retry,
    /// There is no usable response: vcl_backend_error makes one.
    Error,
    /// The origin failed, and a stale object is the answer.
    Stale,
    /// There will be no object.
    Fail,
    /// The fetch is over.
    Done,
}

/// Legal transitions: each step with the steps that may follow it.
pub(crate) const LEGAL: &[(Step, &[Step])] = &[
    (Step::Prepare, &[Step::Send, Step::Error, Step::Fail]),
    (Step::Send, &[Step::Response, Step::Send, Step::Error, Step::Fail]),
    (Step::Response, &[Step::Body, Step::Revalidate, Step::Send, Step::Retry, Step::Error, Step::Stale, Step::Fail]),
    (Step::Revalidate, &[Step::Commit, Step::Error, Step::Fail]),
    (Step::Body, &[Step::Commit, Step::Error, Step::Fail]),
    (Step::Commit, &[Step::Done]),
    (Step::Retry, &[Step::Prepare, Step::Fail]),
    (Step::Error, &[Step::Commit, Step::Retry, Step::Stale, Step::Fail]),
    (Step::Stale, &[Step::Done]),
    (Step::Fail, &[Step::Done]),
    (Step::Done, &[]),
];

/// True if `to` may follow `from`.
fn is_legal(from: Step, to: Step) -> bool {
    LEGAL.iter().any(|(step, next)| *step == from && next.contains(&to))
}

/// A running fetch.
pub(crate) struct Fetch {
    context: Rc<Loop>,
    log: LogBuffer,
    machine: Machine,
    scratch: Scratch,
    /// State that the steps and VCL work on.
    task: FetchTask,
    _work: Work,
    _counted: Counted,
}

/// Starts a fetch as a task of this loop (`tokio::task::spawn_local`).
pub fn start(context: &Rc<Loop>, order: FetchOrder<'_>) -> FetchTicket {
    let (sender, ready) = oneshot::channel();
    let mut fetch = Box::new(Fetch::new(context, order, sender));
    tokio::task::spawn_local(async move {
        let result = {
            let run = pin!(fetch.run());
            caught(run).await
        };
        if let Err(panic) = result {
            fetch.after_panic(&panic);
        }
    });
    FetchTicket { ready }
}

impl Drop for Fetch {
    /// Leaves the fetch's buffers to the next fetch.
    fn drop(&mut self) {
        if self.context.requests.are_many() {
            return;
        }
        let spares = &self.context.spares;
        spares.put_machine(std::mem::take(&mut self.machine), std::mem::replace(&mut self.scratch, Scratch::new(0)));
        for message in [&mut self.task.bereq, &mut self.task.bereq_original, &mut self.task.attempt.beresp] {
            spares.put_message(std::mem::take(message));
        }
    }
}

impl Fetch {
    fn new(context: &Rc<Loop>, order: FetchOrder<'_>, ready: oneshot::Sender<FetchReport>) -> Fetch {
        let task = FetchTask::new(context, order, ready);
        let limit_bytes = usize::try_from(task.order.parameters.request_memory_max).unwrap_or(usize::MAX);
        let (machine, scratch) = context.spares.machine(limit_bytes);
        let mut fetch = Fetch {
            context: Rc::clone(context),
            log: LogBuffer::new(&context.engine.ring),
            machine,
            scratch,
            task,
            _work: context.work(),
            _counted: Counted::new(&context.fetches),
        };
        fetch.begin();
        fetch
    }

    /// Begins the transaction. The client's side counts the fetch.
    fn begin(&mut self) {
        self.log.start(LogId::backend(self.task.life.vxid), self.task.life.started);
        let mut parent = itoa::Buffer::new();
        let parent = parent.format(self.task.order.parent_vxid).as_bytes();
        self.log.record_parts(Tag::Begin, &[b"bereq ", parent, b" ", self.task.order.mode.word().as_bytes()]);
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
                Step::Stale => self.answer_stale(),
                Step::Fail => self.fail(),
                Step::Done => Step::Done,
            };
            debug_assert!(is_legal(step, next), "{step:?} → {next:?}");
            step = next;
        }
        self.end();
    }

    /// Writes the accounting records and ends the transaction.
    fn end(&mut self) {
        let notes = Notes::new();
        self.task.vmod_state.leave(&self.task.order.vcl.directors, &notes);
        crate::world::log_notes(&self.context.engine, &mut self.log, &notes);
        let uploaded_bytes = self.task.life.upload.take().map_or(0, |upload| upload.bytes());
        self.task.life.account.request_body += uploaded_bytes;
        self.count_backend(Vbe::BereqBodybytes, uploaded_bytes);
        let account = self.task.life.account;
        let sums = (account.request_head + account.request_body, account.response_head + account.response_body);
        let numbers =
            [account.request_head, account.request_body, sums.0, account.response_head, account.response_body, sums.1];
        self.log.record_numbers(Tag::BereqAcct, numbers);
        self.log.end();
    }

    /// Leaves everything as if the fetch had failed: no unfinished object, and no request left
    /// waiting.
    fn after_panic(&mut self, text: &str) {
        self.context.engine.panics.tell(text);
        self.log.record_parts(Tag::FetchError, &[b"Internal error: ", text.as_bytes()]);
        self.context.count(Main::FetchFailed);
        self.task.attempt.exchange = None;
        let _ = self.fail();
        self.end();
    }

    /// Frees the memory that the fetch does not need while it waits for the origin: only the
    /// collected log records stay. A few fetches keep it, because it takes longer to allocate than
    /// to keep.
    fn rest(&mut self) {
        self.log.show();
        if !self.context.requests.are_many() {
            return;
        }
        self.log.shrink();
        self.machine = Machine::new();
        self.scratch.free();
    }

    /// Seconds since 1970.
    fn now(&self) -> f64 {
        self.context.clock.now()
    }

    /// State that directors need to choose a backend now. Their messages go to `notes`.
    fn resolving<'a>(&'a self, notes: &'a Notes) -> ResolveContext<'a> {
        self.task.resolving(&self.context.engine.random, self.now(), notes)
    }

    fn timestamp(&mut self, label: &str) {
        let now = self.now();
        self.log.timestamp(label, now);
    }

    /// Reports to the client's side that the object can be delivered. If the client is gone, the
    /// answer is dropped, and that abandons an object meant only for this client.
    fn deliver(&mut self, object: &Arc<Object>) {
        if let Some(delivered) = Delivered::new(Arc::clone(object)) {
            let delivered = delivered.for_orderer(self.unshared_fields(), self.origin_status());
            let _ = self.report(FetchAnswer::Object(Box::new(delivered)));
        }
    }

    /// Answers the ticket, unless that was done already. False if the client's side no longer holds
    /// it.
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
