//! Responses whose bodies are stored in slices: finds one slice after the other, fetches the
//! missing ones, and orders the next one ahead.
//!
//! Part of Deliver and Transmit. The head object has been found like any other; its slices are
//! found by keys derived from it (`slicing.rs`). Only one of the clients that need a slice has it
//! fetched, and all read it while it is received. The first slice that is needed is stored, or on
//! its way, before a head is sent, so that a client gets an error instead of a broken body if there
//! is none. Each fetch brings one slice, and one more is fetched ahead, so a client that reads
//! slowly, or leaves, costs no more than two. Next files: `bodies/sliced.rs`, `fetch/slice.rs`.

use super::client_body::ClientBody;
use super::task::Slices;
use super::transmit::TransmitError;
use super::waiting::Waited;
use super::{Run, Step};
use crate::bodies::filters::Filters;
use crate::bodies::pull::{Next, Pull};
use crate::bodies::request::RequestBody;
use crate::bodies::sliced::SlicedBody;
use crate::bodies::source::Source;
use crate::fetch::order::SliceOrder;
use crate::fetch::{self, FetchAnswer, FetchMode, FetchOrder, FetchReport, FetchTicket, Ordered};
use crate::request::delivered::Delivered;
use crate::slicing::{Slicing, lives_until, size_of};
use crate::turns::Turns;
use cache::{Busy, SliceLookup, Waiter};
use message::Message;
use semantics::ranges::{Wanted, asked_single};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use store::{BodyState, Object, ObjectFlags};
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::reason::Reason;
use surface::tag::Tag;
use tokio::time::Instant;

impl Run<'_> {
    /// The slice that a fetch requests; `None` if the resource is not fetched in slices. A
    /// parameter is enough for requests with a range; others need a setting of VCL, or a head that
    /// states the size of the resource. An object that is stored whole is refreshed whole.
    pub(super) fn slice_order(&self, mode: FetchMode, stale: Option<&Object>) -> Option<SliceOrder> {
        let task = &self.request.task;
        let known = stale.and_then(Slicing::of);
        let may_give_way = stale.is_none_or(|stale| known.is_some() || stale.flags().has(ObjectFlags::PARTIAL));
        let is_possible = mode != FetchMode::Pass
            && may_give_way
            && task.settings.range_support
            && matches!(task.life.body, ClientBody::None)
            && matches!(task.request.method(), b"GET" | b"HEAD")
            && !self.is_legacy();
        if !is_possible {
            return None;
        }
        let wanted = asked_single(&task.request);
        let bytes = match (task.choices.slice_bytes, known) {
            (Some(bytes), _) => bytes,
            (None, Some(known)) => known.slice_bytes,
            (None, None) if wanted.is_some() => task.settings.slice_bytes,
            (None, None) => 0,
        };
        let slice_bytes = size_of(bytes)?;
        if self.context.slice_refusals.has(&task.life.digest, task.life.received_at) {
            return None;
        }
        let first = match wanted {
            Some(Wanted::From(first) | Wanted::FromTo(first, _)) => first,
            Some(Wanted::Suffix(_)) | None => 0,
        };
        Some(SliceOrder { number: first / slice_bytes, slice_bytes, head: None })
    }

    /// If the object to deliver is the head of slices, stores the state needed to have them
    /// fetched. False if the head is damaged.
    #[inline]
    pub(super) fn note_slices(&mut self) -> bool {
        let found = &mut self.request.task.found;
        match &found.object {
            Some(object) if object.flags().is_sliced() => self.note_slices_of_head(),
            Some(_) | None => true,
        }
    }

    #[cold]
    fn note_slices_of_head(&mut self) -> bool {
        let task = &mut self.request.task;
        let slicing = task.found.object.as_ref().and_then(|object| Slicing::of(object));
        let Some(slicing) = slicing else { return false };
        let mut request = Message::new();
        request.copy_from(&task.request);
        task.found.slices = Some(Box::new(Slices { slicing, request, has_heard: false }));
        true
    }

    /// The body of the response, with the first slice that its filters need.
    ///
    /// # Errors
    /// There is no such slice, or the client is gone. Nothing has been sent.
    pub(super) async fn open_first_slice(
        &mut self,
        filters: &mut Filters,
    ) -> Result<Option<Box<SlicedBody>>, TransmitError> {
        let Some(slices) = &self.request.task.found.slices else { return Ok(None) };
        let mut body = Box::new(SlicedBody::new(slices.slicing));
        leave_out(&mut body, filters);
        self.complete(&mut body, filters).await?;
        Ok(Some(body))
    }

    /// Answers a request for which there is no first slice.
    pub(super) async fn no_slice(&mut self) -> Step {
        self.request.task.found.let_go();
        self.request.task.life.close = Some(CloseReason::RemClose);
        self.send_bare(503).await;
        self.timestamp("Resp");
        Step::Finish
    }

    /// Sends the body through filters.
    pub(super) async fn send_slices(
        &mut self,
        mut body: Box<SlicedBody>,
        filters: &mut Filters,
    ) -> Result<(), TransmitError> {
        let (mut pull, mut turns) = (Pull::default(), Turns::through(filters));
        loop {
            pull.settle(&mut *body);
            leave_out(&mut body, filters);
            if !filters.has_ended()
                && let Err(error) = self.complete(&mut body, filters).await
            {
                self.send_head().await?;
                return Err(error);
            }
            match pull.next(&mut *body, filters) {
                Next::Bytes { bytes, is_last } => {
                    self.send_piece(bytes, is_last).await?;
                    if is_last {
                        return Ok(());
                    }
                }
                Next::Nothing => {}
                Next::Ended => return self.send_end().await,
                Next::Failed(failure) => return self.break_off(failure).await,
                Next::Waits => {
                    self.send_head().await?;
                    Box::pin(body.changed()).await;
                    continue;
                }
            }
            turns.take().await;
        }
    }

    /// Inserts the missing slice, and orders the next one if it will be needed.
    async fn complete(&mut self, body: &mut SlicedBody, filters: &Filters) -> Result<(), TransmitError> {
        let Some(number) = body.lacks() else { return Ok(()) };
        let slice = self.find_slice(number).await?;
        body.put(number, Source::of_object(slice));
        let wanted = if filters.is_empty() { u64::MAX } else { filters.missing_bytes() };
        if let Some(next) = body.follows(wanted) {
            self.fetch_ahead(next);
        }
        Ok(())
    }

    /// Finds a slice, waits for another client's fetch of it, or has it fetched.
    ///
    /// # Errors
    /// `Client` if the client has left, `Fetch` if the slice could not be fetched, or may not be
    /// waited for.
    async fn find_slice(&mut self, number: u64) -> Result<Delivered, TransmitError> {
        let (mut held, mut since): (Option<Waiter>, Option<Instant>) = (None, None);
        loop {
            let answer = self.ask_for_slice(number).ok_or(TransmitError::Fetch)?;
            drop(held.take());
            match answer {
                SliceLookup::Found(object) if object.is_unchecked() => {
                    // Checking a damaged one removes it.
                    self.context.engine.cache.check(&object).await;
                }
                SliceLookup::Found(object) if object.state() == BodyState::Failed => return Err(TransmitError::Fetch),
                SliceLookup::Found(object) => match Delivered::new(object) {
                    Some(slice) => return Some(slice).filter(is_slice).ok_or(TransmitError::Fetch),
                    // It cannot be kept, and its beginning is gone; it is not in the index any more
                    // either.
                    None => tokio::task::yield_now().await,
                },
                SliceLookup::Wait(waiter) => {
                    let since = *since.get_or_insert_with(Instant::now);
                    let mut has_heard = self.has_heard_during_slices();
                    let waited = Box::pin(self.wait(&waiter, since, &mut has_heard)).await;
                    self.note_heard_during_slices(has_heard);
                    if waited != Waited::Turn {
                        return Err(if self.note_refusal(waited) {
                            TransmitError::Fetch
                        } else {
                            TransmitError::Client
                        });
                    }
                    held = Some(waiter);
                }
                SliceLookup::Miss(busy) => {
                    let ticket = self.order_slice(number, busy).ok_or(TransmitError::Fetch)?;
                    self.timestamp("Slice");
                    let report = self.await_slice(ticket).await?;
                    let FetchAnswer::Object(slice) = report.answer else { return Err(TransmitError::Fetch) };
                    let slice = Some(*slice).filter(is_slice).filter(|slice| slice.state() != BodyState::Failed);
                    return slice.ok_or(TransmitError::Fetch);
                }
            }
        }
    }

    /// Waits for a fetch that was ordered; the fetch continues if the client leaves.
    async fn await_slice(&mut self, mut ticket: FetchTicket) -> Result<FetchReport, TransmitError> {
        let mut has_heard = self.has_heard_during_slices();
        let result = poll_fn(|context| {
            if let Poll::Ready(result) = Pin::new(&mut ticket.ready).poll(context) {
                return Poll::Ready(result.map_err(|_| TransmitError::Fetch));
            }
            self.poll_gone(context, &mut has_heard).map(|()| Err(TransmitError::Client))
        })
        .await;
        self.note_heard_during_slices(has_heard);
        result
    }

    /// True if the client has sent something during the delivery of slices. Its bytes are kept, so
    /// the connection is read only once, however many slices there are.
    fn has_heard_during_slices(&self) -> bool {
        let task = &self.request.task;
        task.life.early.is_some() || task.found.slices.as_ref().is_none_or(|slices| slices.has_heard)
    }

    fn note_heard_during_slices(&mut self, has_heard: bool) {
        if let Some(slices) = &mut self.request.task.found.slices {
            slices.has_heard |= has_heard;
        }
    }

    fn ask_for_slice(&self, number: u64) -> Option<SliceLookup> {
        let found = &self.request.task.found;
        let (slices, head) = (found.slices.as_ref()?, found.object.as_ref()?);
        let now = self.context.clock.now();
        Some(self.context.engine.cache.slice(&slices.slicing.key(number), now, lives_until(head, now)))
    }

    /// Orders a slice that will be needed soon, unless it is stored or memory is short.
    fn fetch_ahead(&mut self, number: u64) {
        if !self.context.memory.is_short()
            && let Some(SliceLookup::Miss(busy)) = self.ask_for_slice(number)
        {
            let _ = self.order_slice(number, busy);
        }
    }

    /// Orders the fetch of a slice. `None` if requests hold too much memory already.
    fn order_slice(&mut self, number: u64, busy: Busy) -> Option<FetchTicket> {
        if !self.may_hold_more(false) {
            self.why(Reason::MemoryShort, b"");
            return None;
        }
        let vcl = self.request.vcl.clone()?;
        let vxid = self.context.next_vxid();
        self.log().record_fmt(Tag::Link, format_args!("bereq {vxid} fetch"));
        self.context.count(Main::SFetch);
        let task = &self.request.task;
        let (slices, head) = (task.found.slices.as_ref()?, task.found.object.as_ref()?);
        let slicing = slices.slicing;
        let parameters = self.context.engine.parameters.load_full();
        let vxids = [task.life.vxid, self.session.vxid];
        let peer = self.session.peer.clone();
        let order = FetchOrder {
            order: Ordered::new(parameters, FetchMode::Fetch, slicing.key(number), vcl, peer, vxids),
            request: &slices.request,
            prepared: None,
            client: None,
            vxid,
            busy: Some(busy),
            stale: None,
            part: None,
            asks_for_part: false,
            slice: Some(SliceOrder {
                number,
                slice_bytes: slicing.slice_bytes,
                head: Some((Arc::clone(head.object()), slicing)),
            }),
            director: task.choices.director,
            body: RequestBody::None,
            early: None,
            client_identity: task.choices.client_identity.clone(),
            trace: task.choices.trace,
            out_of_band: None,
        };
        Some(fetch::start(self.context, order))
    }
}

/// True if an object is the result of a slice's fetch, and not an error instead of it.
fn is_slice(object: &Delivered) -> bool {
    object.flags().has(ObjectFlags::PARTIAL)
}

/// Skips the bytes that the filters do not need.
fn leave_out(body: &mut SlicedBody, filters: &mut Filters) {
    let unwanted = filters.unwanted_bytes();
    if unwanted > 0 {
        body.skip(unwanted);
        filters.skip(unwanted);
    }
}
