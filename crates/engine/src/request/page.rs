//! ESI pages: starts the fragments, as many at once as the parameter `esi_parallel` allows, and
//! sends everything in order.
//!
//! Part of Transmit. The walk over the plan is in `bodies/page.rs`, a fragment's request in
//! `fragment.rs`. A page whose client leaves drops its fragments, which then end by themselves:
//! each checks for that before it starts fragments of its own. Compat: records of Varnish 7.1.1.

use super::Run;
use super::inclusion::Top;
use super::transmit::TransmitError;
use crate::bodies::filters::Filters;
use crate::bodies::page::{Budget, Page};
use crate::bodies::pull::{Next, Pull};
use crate::turns::Turns;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use surface::parameter::feature;
use surface::tag::Tag;

/// Time after which a waiting page checks if fragments ahead of their turn block the one whose turn
/// it is.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Run<'_> {
    /// Sends the page that was found, through filters.
    pub(super) async fn send_page(&mut self, filters: &mut Filters) -> Result<(), TransmitError> {
        // Fragments must not be requested before the client is known to have sent the request.
        if !self.prove_early().await {
            return Err(TransmitError::Client);
        }
        let top = self.top();
        let task = &mut self.request.task;
        let heeds_onerror = task.settings.feature & feature::ESI_INCLUDE_ONERROR != 0;
        let ledger = Rc::clone(&self.context.memory);
        let object = task.found.object.take();
        let page = object.and_then(|object| Page::of_object(object, heeds_onerror, &top.budget, &ledger));
        let Some(mut page) = page else {
            self.log().record(Tag::Error, b"ESI plan is damaged");
            self.send_head().await?;
            return Err(TransmitError::Fetch);
        };
        self.request.task.life.held.add(&ledger, page.memory_bytes());
        let result = self.send_pieces(&mut page, &top, filters).await;
        if let Some(error) = page.error() {
            self.log().record(Tag::Error, error.text().as_bytes());
        }
        let (pieces, bytes) = page.account();
        if !self.request.log.is_masked(Tag::VdpAcct) {
            self.log().record_fmt(Tag::VdpAcct, format_args!("esi {pieces} {bytes}"));
        }
        result
    }

    async fn send_pieces(
        &mut self,
        page: &mut Page,
        top: &Rc<Top>,
        filters: &mut Filters,
    ) -> Result<(), TransmitError> {
        let (mut pull, mut turns) = (Pull::default(), Turns::through(filters));
        let mut has_heard = false;
        loop {
            if self.is_given_up() {
                return Err(TransmitError::Client);
            }
            self.start_fragments(page, top);
            match pull.next(page, filters) {
                Next::Bytes { bytes, is_last } => {
                    self.send_piece(bytes, is_last).await?;
                    if is_last {
                        return Ok(());
                    }
                }
                Next::Nothing => {}
                Next::Ended => return self.send_end().await,
                Next::Failed(failure) => {
                    if let Some((object, offset)) = page.unreadable_at() {
                        self.why_unreadable(object, offset);
                    }
                    return self.break_off(failure).await;
                }
                Next::Waits => {
                    if page.wants_load() {
                        Box::pin(page.load()).await;
                        continue;
                    }
                    // Perhaps it waits for a fragment that may be started now.
                    if !self.start_fragments(page, top) {
                        self.send_head().await?;
                        if !self.wait_for_fragments(page, &mut has_heard).await {
                            return Err(TransmitError::Client);
                        }
                    }
                }
            }
            turns.take().await;
        }
    }

    /// State of the client's request that the fragments need.
    fn top(&self) -> Rc<Top> {
        if let Some(inclusion) = &self.request.task.life.inclusion {
            return Rc::clone(&inclusion.top);
        }
        let task = &self.request.task;
        let mut request = message::Message::new();
        request.copy_from(&task.request);
        let parameters = self.context.engine.parameters.load();
        Rc::new(Top {
            request,
            received_at: task.life.received_at,
            vcl: task.life.vcl_before_label.clone(),
            budget: Budget::new(parameters.esi_fragments_at_once(), parameters.esi_fragments_max),
        })
    }

    /// Starts the fragments that may be started. Returns true if there were any.
    fn start_fragments(&mut self, page: &mut Page, top: &Rc<Top>) -> bool {
        let inclusion = &self.request.task.life.inclusion;
        if inclusion.as_ref().is_none_or(|inclusion| inclusion.fragment.is_live()) {
            page.go_live();
        }
        let mut has_started = false;
        while let Some(include) = page.scout() {
            let fragment = self.start_fragment(&include, top, page);
            page.put(include, fragment);
            has_started = true;
        }
        has_started
    }

    /// Waits until the page can continue; false if its client is gone.
    async fn wait_for_fragments(&mut self, page: &mut Page, has_heard: &mut bool) -> bool {
        // The records so far are useful for watching a slow page.
        let mut tick = pin!(tokio::time::sleep(LOOK_AGAIN));
        let mut is_armed = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_armed, true) {
                return Poll::Ready(true);
            }
            page.watch(context);
            if self.poll_gone(context, has_heard).is_ready() {
                return Poll::Ready(false);
            }
            if page.runs_ahead() && tick.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            Poll::Pending
        })
        .await
            && {
                page.stop_what_holds_up();
                true
            }
    }
}
