//! Order of a fetch and wait for its object, with delivery of the client's body to the fetch and
//! interim responses to the client during the wait.
//!
//! Comes from: Miss or Pass. Continues with: Deliver with the object (which may still be growing),
//! Synth if there is none, or Finish if the client is gone. In the old dialects vcl_fetch may
//! restart the request.
//!
//! *Invariant:* only a pass is aborted because its client has left, and only if its method is safe
//! or the client is a stream. Fetches of storable responses run to their end.

use super::client_body::Duplex;
use super::{Run, Step};
use crate::exchange::ClientEvent;
use crate::fetch::interest::Interest;
use crate::fetch::out_of_band::OutOfBand;
use crate::fetch::{self, FetchAnswer, FetchMode, FetchOrder, FetchReport, FetchTicket, Ordered};
use crate::logged::{self, RESP};
use message::Message;
use semantics::part::range_to_pass_on;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use store::{BodyState, Object, ObjectFlags};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::sync::oneshot::error::RecvError;

impl Run<'_> {
    /// Orders the fetch; for a miss and a background fetch with the busy mark in the task. The
    /// ticket is kept for [`Run::await_object`], except for a background fetch, which no request
    /// waits for. If requests already hold too much memory, no fetch is ordered and the result is
    /// false; the busy mark is released, so that other requests don't wait for it.
    pub(super) fn order_fetch(&mut self, mode: FetchMode) -> bool {
        if !self.may_hold_more(mode != FetchMode::Background) {
            self.request.task.found.busy = None;
            return false;
        }
        let Some(vcl) = self.request.vcl.clone() else { return false };
        let prepared = self.request.task.found.prepared.take();
        let vxid = prepared.as_ref().map_or_else(|| self.context.next_vxid(), |prepared| prepared.vxid);
        let reason = match mode {
            FetchMode::Fetch => "fetch",
            FetchMode::Pass => "pass",
            FetchMode::Background => "bgfetch",
        };
        let mut number = itoa::Buffer::new();
        self.request.log.record_parts(Tag::Link, &[b"bereq ", number.format(vxid).as_bytes(), b" ", reason.as_bytes()]);
        let body = self.body_for_fetch();
        self.hold_body_filters();
        let client = prepared.is_some().then(|| self.lend_request());
        let out_of_band = self.make_out_of_band(mode);
        let query = self.query_order(mode);
        let duplex = (mode == FetchMode::Pass && self.exchange.is_duplex()).then(Box::<Duplex>::default);
        let interest = match &duplex {
            Some(duplex) => Some(duplex.interest.watch()),
            // A request that changes something at the origin is not cut short because its client
            // does not wait for the answer.
            None if mode == FetchMode::Pass && semantics::method::is_safe(self.request.task.request.method()) => {
                Some(self.request.task.found.interest.insert(Interest::default()).watch())
            }
            None => None,
        };
        let is_duplex = duplex.is_some();
        self.request.task.found.duplex = duplex;
        let task = &mut self.request.task;
        task.found.is_passed = matches!(mode, FetchMode::Pass);
        let stale = match mode {
            FetchMode::Fetch => task.found.stale.take(),
            FetchMode::Background => task.found.object.as_ref().map(|object| Arc::clone(object.object())),
            FetchMode::Pass => None,
        };
        let part = task.found.part.take();
        let slice = self.slice_order(mode, stale.as_deref());
        let asks_for_part = slice.is_none() && self.asks_for_part(mode, stale.as_deref());
        let task = &mut self.request.task;
        let inclusion = task.life.inclusion.as_ref().filter(|_| mode != FetchMode::Background);
        let parameters = self.context.engine.parameters.load_full();
        let vxids = [task.life.vxid, self.session.vxid];
        let salted = self.request.member.as_ref().filter(|member| member.is_salted());
        let salted = salted.map(|member| Arc::clone(&member.canary));
        let order = Ordered {
            query,
            salted,
            is_hit_for_miss: task.found.is_hitmiss,
            is_hit_for_pass: task.found.is_hitpass,
            is_duplex,
            interest,
            fragment: inclusion.map(|inclusion| Rc::clone(&inclusion.fragment)),
            ..Ordered::new(parameters, mode, task.life.digest, vcl, self.session.peer.clone(), vxids)
        };
        let order = FetchOrder {
            order,
            request: &task.request,
            prepared,
            client,
            vxid,
            busy: task.found.busy.take(),
            stale,
            part: part.filter(|_| slice.is_none()),
            asks_for_part,
            slice,
            director: task.choices.director,
            body,
            early: task.life.early.clone(),
            client_identity: task.choices.client_identity.clone(),
            trace: task.choices.trace,
            out_of_band: out_of_band.clone(),
        };
        let ticket = fetch::start(self.context, order);
        match mode {
            FetchMode::Fetch | FetchMode::Pass => {
                self.request.task.found.ticket = Some(ticket);
                self.request.task.found.out_of_band = out_of_band;
            }
            FetchMode::Background => {}
        }
        true
    }

    /// Channel on which the fetch sends out-of-band messages for the client.
    fn make_out_of_band(&self, mode: FetchMode) -> Option<OutOfBand> {
        let is_for_client = mode != FetchMode::Background && self.exchange.takes_interim();
        let is_stream_of_calls = || {
            mode == FetchMode::Pass
                && self.exchange.is_duplex()
                && semantics::trailers::are_part_of(&self.request.task.request)
        };
        (is_for_client && (self.follows_rfc() || is_stream_of_calls()))
            .then(|| OutOfBand::new(semantics::trailers::are_taken(&self.request.task.request)))
    }

    /// Feeds the client's body to the fetch and waits for its report; `None` if the client is gone.
    /// Cancelling the wait loses nothing but the rest of the body.
    async fn await_report(&mut self, ticket: &mut FetchTicket) -> Option<Result<FetchReport, RecvError>> {
        let mut has_left = false;
        if self.request.task.found.duplex.is_some() {
            let watching = Box::pin(self.feed_and_watch());
            tokio::select! {
                biased;
                result = &mut ticket.ready => return Some(result),
                () = watching => {}
            }
            // The client is gone; the fetch ends as soon as it is notified.
            self.end_duplex();
            has_left = true;
        } else if self.request.task.found.feed.is_some() {
            let feeding = Box::pin(self.feed_fetch());
            let mut feeding = pin!(feeding);
            tokio::select! {
                biased;
                result = &mut ticket.ready => return Some(result),
                () = &mut feeding => {}
            }
        }
        let is_early = self.request.task.life.early.is_some();
        // A request that was lent to the fetch has to be returned; and a stream counts until the
        // work for it is over, so that streams that are opened and reset cannot order any number of
        // fetches.
        let mut has_heard = has_left || is_early || self.is_legacy() || self.exchange.is_duplex();
        poll_fn(|context| {
            if is_early {
                // The fetch may have to wait for that.
                self.exchange.drive_handshake(context);
            }
            if let Poll::Ready(result) = Pin::new(&mut ticket.ready).poll(context) {
                return Poll::Ready(Some(result));
            }
            self.poll_gone(context, &mut has_heard).map(|()| None)
        })
        .await
    }

    /// Feeds the client's body to the fetch, and returns when the client cancels the request.
    async fn feed_and_watch(&mut self) {
        if !self.request.task.found.duplex.as_ref().is_some_and(|duplex| duplex.is_begun)
            && self.begin_feeding().await
            && let Some(duplex) = &mut self.request.task.found.duplex
        {
            duplex.is_begun = true;
        }
        poll_fn(|context| self.poll_duplex(context)).await;
    }

    /// Feeds the client's body to the fetch. Ready when the client cancels the request.
    pub(super) fn poll_duplex(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let found = &mut self.request.task.found;
        if found.feed.is_some() {
            let mut read = found.duplex.as_mut().and_then(|duplex| duplex.read.take()).unwrap_or_default();
            let _ = self.poll_feed(context, &mut read);
            if let Some(duplex) = &mut self.request.task.found.duplex {
                duplex.read = Some(read);
            }
        }
        match self.exchange.poll_client_event(context) {
            Poll::Ready(ClientEvent::Gone) => Poll::Ready(()),
            Poll::Ready(ClientEvent::End | ClientEvent::More) | Poll::Pending => Poll::Pending,
        }
    }

    /// Marks that the client needs nothing more of the fetch.
    pub(super) fn end_duplex(&mut self) {
        let found = &mut self.request.task.found;
        found.feed = None;
        found.duplex = None;
    }

    /// Sends an interim response to the client.
    async fn send_interim(&mut self, interim: &Message) {
        logged::log_response(self.log(), RESP, interim);
        self.exchange.begin_interim(interim, self.send_limits());
        if self.send(b"", false).await.is_err() {
            self.close(CloseReason::RemClose);
        }
    }

    /// True if the fetch requests the range that the client wants. An object that is stored whole
    /// is refreshed whole.
    fn asks_for_part(&self, mode: FetchMode, stale: Option<&Object>) -> bool {
        let may_give_way = match mode {
            FetchMode::Pass => return false,
            FetchMode::Fetch => cache::may_ask_for_part(stale),
            FetchMode::Background => stale.is_some_and(|stale| stale.flags().has(ObjectFlags::PARTIAL)),
        };
        may_give_way && self.serves_parts() && range_to_pass_on(&self.request.task.request).is_some()
    }

    pub(super) async fn await_object(&mut self) -> Step {
        let Some(mut ticket) = self.request.task.found.ticket.take() else {
            return self.synthesise(503, b"");
        };
        self.log().show();
        if self.context.requests.are_many() {
            self.log().shrink();
            self.request.rest();
        }
        let result = match self.request.task.found.out_of_band.clone() {
            None => self.await_report(&mut ticket).await,
            Some(out_of_band) => loop {
                // The fetch reports interim responses only when it needs no more of the client's
                // body. Boxed: few requests receive one, and otherwise all would reserve memory for
                // it while they wait.
                let interim = tokio::select! {
                    biased;
                    interim = out_of_band.next_interim() => Box::new(interim),
                    result = self.await_report(&mut ticket) => break result,
                };
                self.send_interim(&interim).await;
            },
        };
        self.timestamp("Fetch");
        self.context.count(Main::SFetch);
        let Some(result) = result else {
            // A response that may be stored is fetched to its end anyway; a pass is cancelled.
            return self.leave();
        };
        let goes_on = self.request.task.found.duplex.is_some()
            && matches!(&result, Ok(FetchReport { answer: FetchAnswer::Object(_), .. }));
        if !goes_on {
            self.end_duplex();
            self.drain_body().await;
        }
        // The channel is closed without an answer when the fetch panicked.
        let Ok(report) = result else { return self.synthesise(503, b"") };
        if let Some(client) = report.client {
            self.take_request_back(*client);
        }
        match report.answer {
            // The fetch failed before any of the response was sent: the client gets a clean error.
            FetchAnswer::Object(object) if object.state() == BodyState::Failed => self.synthesise(503, b""),
            FetchAnswer::Object(object) => {
                if self.may_have_changed_something() {
                    Box::pin(self.invalidate(object.object())).await;
                }
                self.request.task.found.take_up(*object);
                Step::Deliver
            }
            FetchAnswer::Stale(object) => {
                self.why(Reason::StaleOnError, b"");
                self.request.task.found.take_up(*object);
                Step::Deliver
            }
            FetchAnswer::Failed => self.synthesise(503, b""),
            FetchAnswer::Refused => {
                self.exchange.refuse();
                Step::Finish
            }
            FetchAnswer::Restart => Step::Restart,
            FetchAnswer::Synth { status, reason } => self.synthesise(status, &reason),
        }
    }
}
