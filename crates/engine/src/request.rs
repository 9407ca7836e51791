//! The request machine: its steps in the order of life, the table of legal transitions, and the loop.
//!
//! ```text
//! Accept → Receive → Hash ┬→ Lookup ┬→ Hit ──────────┬→ Deliver → Transmit → Finish
//!                         │         ├→ Miss → Await ─┤
//!                         ├→ Pass ──┴──────→ Await ──┘
//!                         ├→ Pipe → Finish
//!                         ├→ Purge → Synth
//!                         └→ Synth → Transmit            VclFailed → Synth
//!    any VCL may say: synth (→ Synth), restart (→ Restart → Receive), fail (→ VclFailed)
//! ```
//!
//! In the old dialects Await and Synth may lead elsewhere: vcl_fetch may restart the request, vcl_deliver runs for errors too
//! (`legacy.rs`). One step, one file, below in this order. A step does its work, logs it, and names the next one; what it leaves for the next
//! one lies in [`Task`]. *Invariants:* only transitions of the table in `step.rs` happen; every step ends; a [`Request`] belongs to one
//! exchange at a time and goes back to the loop's pool after it.

mod accept;
mod await_object;
mod deliver;
mod finish;
mod hash;
mod hit;
mod legacy;
mod lookup;
mod miss;
mod pass;
mod pipe;
mod purge;
mod receive;
mod restart;
mod synth;
mod transmit;
mod vcl_failed;

mod body;
mod vcl;
mod why;

pub(crate) mod choices;
pub(crate) mod client_body;
pub(crate) mod delivered;
pub(crate) mod filters;
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

use crate::context::Loop;
use crate::exchange::Exchange;
use crate::session::SessionView;
use std::rc::Rc;
use step::is_legal;
use surface::close_reason::CloseReason;
use surface::parameter::debug;
use surface::tag::Tag;

/// A request being run: what its steps work with.
pub(crate) struct Run<'a> {
    /// The event loop's things.
    pub(crate) context: &'a Rc<Loop>,
    /// What it sees of its session.
    pub(crate) session: &'a mut SessionView,
    /// Where it came from, and where its response goes.
    pub(crate) exchange: &'a mut dyn Exchange,
    /// The request and its buffers.
    pub(crate) request: &'a mut Request,
}

impl Run<'_> {
    /// Runs a request whose head has been parsed to its end. Why the session must close after it is in `Life::close`.
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

    /// The record that the debug bit `req_state` asks for.
    #[cold]
    fn log_step(&mut self, step: Step) {
        let task = &self.request.task;
        let (vxid, session, step) = (task.life.vxid, self.session.vxid, step.debug_name());
        let vcl = self.request.vcl.as_ref().map_or("-", |vcl| vcl.name.as_str());
        let record = format_args!("vxid {vxid} STP_Req Step {step} sp {session} vcl {vcl}");
        self.request.log.record_fmt(Tag::Debug, record);
    }

    /// Has the session close after this request. The first reason counts, except that a fault weighs more than a wish.
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

    /// Has the request go on to a synthetic response; an empty reason means the standard phrase.
    fn synthesise(&mut self, status: u16, reason: &[u8]) -> Step {
        self.request.task.life.error_status = status;
        self.request.task.error_reason.clear();
        self.request.task.error_reason.extend_from_slice(reason);
        Step::Synth
    }
}
