//! Transmission of the response: determines its length, and hands its bytes to the exchange without
//! copying them.
//!
//! Comes from: Deliver or Synth. Continues with: Finish, always; an error from here on closes the
//! session. A hit of usual size is handed over as one piece, together with the head and the end.

use super::delivered::Delivered;
use super::filters::default_list;
use super::{Request, Run, Step};
use crate::bodies::filters::{Filters, Subject, log_delivery_failure};
use crate::bodies::pull::{Failure, Next, Pull, Supply as _};
use crate::bodies::sliced::SlicedBody;
use crate::bodies::source::Source;
use crate::exchange::{PIECES_MAX, SendError, SendLimits};
use crate::logged::{self, RESP};
use crate::turns::Turns;
use body::Side;
use body::filter::{names, weaken_etag};
use semantics::ranges::RangeRules;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use store::BodyState;
use surface::close_reason::CloseReason;
use surface::counter::Main;
use surface::limits::REQUEST_BASE_BYTES;
use surface::parameter::debug;
use surface::tag::Tag;

/// Reason why the body was not sent completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TransmitError {
    /// The client is gone or takes too long.
    Client,
    /// The fetch failed while the body was sent.
    Fetch,
    /// A filter failed.
    Filter,
    /// The body ended before the end of the range.
    RangeShort,
}

impl Run<'_> {
    pub(super) async fn transmit(&mut self) -> Step {
        self.drain_body().await;
        if self.request.task.found.copy.is_some() {
            self.take_copy();
        }
        if self.request.task.found.object.as_ref().is_some_and(|object| object.is_on_disk()) {
            Box::pin(self.settle_body()).await;
        }
        if let Some((mut filters, sends_body)) = self.settle_head() {
            let first = match self.request.task.found.slices.is_some() && sends_body {
                true => Box::pin(self.open_first_slice(&mut filters)).await,
                false => Ok(None),
            };
            let slices = match first {
                Ok(slices) => slices,
                Err(TransmitError::Client) => {
                    self.request.task.found.let_go();
                    return self.leave();
                }
                Err(_) => return self.no_slice().await,
            };
            let task = &mut self.request.task;
            self.exchange.frame(&mut task.response, &mut self.request.log, sends_body, &mut task.life.close);
            if task.found.out_of_band.is_some() && !self.exchange.sends_trailers() {
                logged::unset(&mut self.request.log, RESP, &mut task.response, "Trailer");
            }
            task.life.sent_status = task.response.status() % 1000;
            self.hold_delivery(&filters, slices.is_some());
            let result = self.send_response(&mut filters, sends_body, slices).await;
            self.request.task.found.let_go();
            self.log_totals(&filters, sends_body);
            if let Err(error) = result {
                self.transmission_failed(error);
            }
        } else {
            self.request.task.found.let_go();
            self.log().record(Tag::Error, b"Failure to push processors");
            self.context.count(Main::ClientResp500);
            self.request.task.life.close = Some(CloseReason::Overload);
            self.send_bare(500).await;
        }
        self.timestamp("Resp");
        Step::Finish
    }

    /// True if trailers of the origin may follow the body: they are announced, VCL has kept the
    /// announcement, and no filter changes the body.
    #[cold]
    fn expects_trailers(&mut self, filters: &Filters, has_body: bool) -> bool {
        let task = &mut self.request.task;
        let Some(out_of_band) =
            task.found.out_of_band.take_if(|out_of_band| out_of_band.announced().is_some() || out_of_band.passes_all())
        else {
            task.found.out_of_band = None;
            return false;
        };
        if has_body && filters.is_empty() && (task.response.has("Trailer") || out_of_band.passes_all()) {
            task.found.out_of_band = Some(out_of_band);
            return true;
        }
        logged::unset(&mut self.request.log, RESP, &mut task.response, "Trailer");
        false
    }

    /// Ends the body: its trailers are sent with the end.
    #[cold]
    fn put_trailers(&mut self) {
        let Request { task, log, .. } = &mut *self.request;
        let Some(out_of_band) = task.found.out_of_band.take() else { return };
        let Some(received) = out_of_band.take_trailers() else { return };
        let mut trailers = message::Message::new();
        if out_of_band.passes_all() {
            semantics::trailers::select_all(&received, &mut trailers);
        } else if let Some(announced) = semantics::trailers::announced(&task.response) {
            semantics::trailers::select(&received, &announced, &mut trailers);
        } else {
            return;
        }
        logged::log_headers(log, RESP, &trailers);
        self.exchange.put_trailers(&trailers);
    }

    /// Counts the memory that the delivery holds, and frees the memory that VCL needed.
    fn hold_delivery(&mut self, filters: &Filters, is_sliced: bool) {
        let Request { task, scratch, .. } = &mut *self.request;
        if task.life.held.bytes() > 0 {
            scratch.clear(0);
            task.vmod_state.rest();
            let bytes = task.memory_bytes();
            task.life.held.set(&self.context.memory, if bytes > REQUEST_BASE_BYTES { bytes } else { 0 });
        }
        let piece_bytes = task.found.object.as_ref().map_or(0, Delivered::held_bytes);
        if !filters.is_empty() || piece_bytes > 0 {
            // Only a plain body counts as its filters grow.
            let is_plain = !is_sliced && !task.answer.is_page;
            let filter_bytes = if is_plain { filters.held_bytes() } else { filters.memory_bytes() };
            task.life.held.add(&self.context.memory, filter_bytes + piece_bytes);
        }
    }

    /// Counts the memory that the filters hold by now; it was `before` so far.
    fn hold_grown(&mut self, filters: &Filters, before: &mut usize) {
        let bytes = filters.held_bytes();
        if bytes != *before {
            let held = &mut self.request.task.life.held;
            held.set(&self.context.memory, held.bytes().saturating_sub(*before) + bytes);
            *before = bytes;
        }
    }

    /// Logs the totals of the filters and the exchange for the body.
    fn log_totals(&mut self, filters: &Filters, sends_body: bool) {
        let request = &mut *self.request;
        filters.log_totals(&mut request.log);
        if sends_body && !request.log.is_masked(Tag::VdpAcct) {
            let (sent, sink) = (self.exchange.sent(), self.exchange.body_sink());
            request.log.record_fmt(Tag::VdpAcct, format_args!("{sink} {} {}", sent.pieces, sent.body_bytes));
        }
    }

    fn transmission_failed(&mut self, error: TransmitError) {
        let reason = match error {
            TransmitError::Client => CloseReason::TxError,
            // Compat: a body cut short on Copal's side is recorded as if the client had left.
            TransmitError::Fetch | TransmitError::Filter => CloseReason::RemClose,
            TransmitError::RangeShort => CloseReason::RangeShort,
        };
        // This takes precedence over any other reason for closing the session.
        self.request.task.life.close = Some(reason);
    }

    /// Sets up the filters and determines `Content-Length`. Returns the filters, and true if a body
    /// follows; `None` if a filter cannot be set up.
    #[inline(always)]
    fn settle_head(&mut self) -> Option<(Filters, bool)> {
        let request = &mut *self.request;
        let task = &mut request.task;
        let log = &mut request.log;
        let status = task.response.status() % 1000;
        let has_no_body = task.life.is_head || status < 200 || status == 204 || status == 304;
        let claimed = content_length(&task.response);
        let mut length = match &task.found.object {
            None => Some(task.synthetic.len() as u64),
            Some(_) if task.found.slices.is_some() => task.found.slices.as_ref().map(|slices| slices.slicing.total),
            Some(object) if object.state() == BodyState::Complete => Some(object.available_bytes()),
            Some(object) => object.promised_bytes().or(claimed),
        };
        let list = task.answer.filters.take().unwrap_or_else(|| default_list(task));
        log.record(Tag::Filters, &list);
        let list = self.note_page(list, &mut length)?;
        let filters = if list.is_empty() { Filters::default() } else { self.open_filters_of(&list, &mut length)? };
        if self.request.task.found.out_of_band.is_some() && self.expects_trailers(&filters, !has_no_body) {
            // With a length there would be no place for them.
            length = None;
        }
        let request = &mut *self.request;
        let (task, log) = (&mut request.task, &mut request.log);
        let status = task.response.status() % 1000;
        let is_private_head = task.life.is_head
            && task
                .found
                .object
                .as_ref()
                .is_some_and(|object| object.is_passing() || object.flags().has(store::ObjectFlags::HIT_FOR_MISS));
        if status < 200 || status == 204 || status == 304 {
            logged::unset(log, RESP, &mut task.response, "Content-Length");
        } else if (claimed.is_some() && claimed == length) || (is_private_head && claimed.is_some()) {
            // The header is correct, or is the one that the origin would have sent.
        } else {
            logged::unset(log, RESP, &mut task.response, "Content-Length");
            if let Some(length) = length {
                let mut number = itoa::Buffer::new();
                let value = number.format(length).as_bytes();
                logged::append(log, RESP, &mut task.response, "Content-Length", &[value]);
            }
        }
        Some((filters, !has_no_body && length != Some(0)))
    }

    /// Sets up the filters of a list. `length` is the body's length if known, and becomes the
    /// length after the filters. `None` when a filter cannot be set up.
    #[cold]
    fn open_filters_of(&mut self, list: &[u8], length: &mut Option<u64>) -> Option<Filters> {
        let ranges = self.range_rules();
        let request = &mut *self.request;
        let task = &mut request.task;
        let mut subject = Subject {
            is_page: task.answer.is_page,
            ranges,
            vmods: request.vcl.as_ref().map_or(&[], |vcl| vcl.vmods()),
            request: Some(&task.request),
            object: task.found.object.as_ref().filter(|_| !task.answer.is_page && task.found.slices.is_none()),
            ..Subject::new(Side::Resp, &mut task.response, &mut request.log, *length)
        };
        let parameters = self.context.engine.parameters.load();
        let opened = Filters::open(list, &mut subject, &parameters, &self.context.counters);
        *length = subject.length;
        opened.map_err(|text| request.log.record(Tag::Error, text.as_bytes())).ok()
    }

    /// Rules for the client's Range: those of the policy of its VCL.
    fn range_rules(&self) -> RangeRules {
        if !self.follows_rfc() || !self.request.task.request.has("Range") {
            return RangeRules::Varnish;
        }
        let random = &self.context.engine.random;
        RangeRules::Rfc { boundary: u64::from(random.next_bits()) << 32 | u64::from(random.next_bits()) }
    }

    /// If the list begins with `esi` and there is a page for it, stores that and removes it from
    /// the list. Then the length of the body is unknown. `None` if `esi` is not the first filter:
    /// it needs the body as it is stored.
    #[inline]
    fn note_page(&mut self, list: Vec<u8>, length: &mut Option<u64>) -> Option<Vec<u8>> {
        let object = self.request.task.found.object.as_ref();
        if list.is_empty() || !object.is_some_and(|object| object.flags().has(store::ObjectFlags::ESI)) {
            return Some(list);
        }
        self.note_parsed_page(list, length)
    }

    #[cold]
    fn note_parsed_page(&mut self, list: Vec<u8>, length: &mut Option<u64>) -> Option<Vec<u8>> {
        let request = &mut *self.request;
        let task = &mut request.task;
        let place = names(&list).position(|name| name == b"esi");
        let Some(place) = place.filter(|_| task.found.object.as_ref().is_some_and(|object| object.annex_bytes() > 0))
        else {
            return Some(list);
        };
        if place > 0 {
            request.log.record(Tag::Error, b"resp.filters: esi must come first");
            return None;
        }
        task.answer.is_page = true;
        *length = None;
        weaken_etag(&mut Subject::new(Side::Resp, &mut task.response, &mut request.log, None));
        if task.settings.debug & debug::PROCESSORS != 0 {
            request.log.record(Tag::Debug, b"VDP_push(esi)");
        }
        Some(names(&list).skip(1).collect::<Vec<_>>().join(&b' '))
    }

    /// Time limits of sending, from parameters and VCL.
    pub(super) fn send_limits(&self) -> SendLimits {
        let settings = &self.request.task.settings;
        let timeouts = &self.session.timeouts;
        SendLimits {
            idle: timeouts.idle_send.unwrap_or(settings.idle_send_timeout),
            total: timeouts.send.unwrap_or(settings.send_timeout),
            since: self.session.clock_read_at,
        }
    }

    async fn send_response(
        &mut self,
        filters: &mut Filters,
        sends_body: bool,
        slices: Option<Box<SlicedBody>>,
    ) -> Result<(), TransmitError> {
        let limits = self.send_limits();
        self.request.task.life.is_answered = true;
        self.exchange.begin(&self.request.task.response, limits);
        if !sends_body {
            return self.send_head().await;
        }
        let debug_bits = self.request.task.settings.debug;
        if debug_bits & debug::PROCESSORS != 0 {
            let sink = self.exchange.body_sink();
            self.log().record_parts(Tag::Debug, &[b"VDP_push(", sink.as_bytes(), b")"]);
        }
        if debug_bits & debug::FLUSH_HEAD != 0 {
            self.send_head().await?;
        }
        if self.request.task.answer.is_page {
            return Box::pin(self.send_page(filters)).await;
        }
        if let Some(body) = slices {
            return Box::pin(self.send_slices(body, filters)).await;
        }
        self.send_body(filters).await
    }

    /// Sends the body from its source, through its filters.
    async fn send_body(&mut self, filters: &mut Filters) -> Result<(), TransmitError> {
        let task = &mut self.request.task;
        if let Some((inclusion, object)) = task.life.inclusion.as_ref().zip(task.found.object.as_ref())
            && object.state() == BodyState::Writing
        {
            inclusion.fragment.reads(Arc::clone(object.object()));
        }
        let mut source = match task.found.object.take() {
            Some(object) => Source::of_object(object),
            None => Source::of_synthetic(std::mem::take(&mut task.synthetic)),
        };
        let mut pull = Pull::default();
        let mut turns = Turns::through(filters);
        let may_gather = filters.is_empty();
        let mut filter_bytes = filters.held_bytes();
        let mut is_alone = false;
        let result = loop {
            let (sent, is_last) = match pull.next(&mut source, filters) {
                Next::Bytes { is_last: false, .. } if may_gather && !is_alone => {
                    pull.take_back();
                    let sent = if source.has_several() { Box::pin(self.send_several(&mut source)).await } else { None };
                    is_alone = sent.is_none();
                    match sent {
                        Some(sent) => sent,
                        None => continue,
                    }
                }
                Next::Bytes { bytes, is_last } => {
                    is_alone = false;
                    if is_last && self.request.task.found.out_of_band.is_some() {
                        self.put_trailers();
                    }
                    (self.send_piece(bytes, is_last).await, is_last)
                }
                Next::Ended => {
                    self.put_trailers();
                    (self.send_end().await, true)
                }
                Next::Nothing => (Ok(()), false),
                Next::Waits => {
                    // The head is sent without waiting for body bytes that are not there yet.
                    if !source.wants_load()
                        && let Err(error) = self.send_head().await
                    {
                        break Err(error);
                    }
                    if self.request.task.found.duplex.is_some() {
                        if let Err(error) = Box::pin(self.wait_in_duplex(&source)).await {
                            break Err(error);
                        }
                        continue;
                    }
                    Box::pin(source.changed()).await;
                    continue;
                }
                Next::Failed(failure) => {
                    if let Some((object, offset)) = source.unreadable_at() {
                        self.why_unreadable(object, offset);
                    }
                    (self.break_off(failure).await, true)
                }
            };
            if !may_gather {
                self.hold_grown(filters, &mut filter_bytes);
            }
            if is_last || sent.is_err() {
                break sent;
            }
            if !filters.is_empty() || source.is_on_disk() {
                turns.take().await;
            }
        };
        if let Source::Synthetic { body, .. } = source {
            // The buffer is reused.
            self.request.task.synthetic = body;
        }
        result
    }

    /// Sends the next bytes of a body without filters, if they are in several pieces: a body of
    /// unknown length was stored in pieces, and one that is only passed on is received in pieces.
    /// Returns true if those were the last bytes; `None` if there is only one piece, or the
    /// transport takes one at a time.
    #[cold]
    async fn send_several(&mut self, source: &mut Source) -> Option<(Result<(), TransmitError>, bool)> {
        self.exchange.gathering()?;
        let mut room = [&b""[..]; PIECES_MAX];
        let (count, is_last) = source.several(&mut room);
        let pieces = room.get(..count).filter(|pieces| pieces.len() > 1)?;
        if is_last && self.request.task.found.out_of_band.is_some() {
            self.put_trailers();
        }
        let sent = poll_fn(|context| {
            let Some(exchange) = self.exchange.gathering() else { return Poll::Ready(Err(SendError)) };
            let polled = exchange.poll_send_pieces(context, pieces, is_last, &mut self.request.log);
            if polled.is_pending() && self.request.task.found.duplex.is_some() {
                let _ = self.poll_duplex(context);
            }
            polled
        });
        let sent = sent.await;
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        source.consume(bytes);
        Some((sent.map_err(|SendError| TransmitError::Client), is_last))
    }

    /// Handles a body whose rest is missing: sends the bytes received so far and stops.
    pub(super) async fn break_off(&mut self, failure: Failure) -> Result<(), TransmitError> {
        if let Failure::Filter(error) = failure {
            log_delivery_failure(error, &mut self.request.log);
        }
        self.send_head().await?;
        Err(match failure {
            Failure::Supply => TransmitError::Fetch,
            Failure::Filter(_) => TransmitError::Filter,
            Failure::Short => TransmitError::RangeShort,
        })
    }

    /// Sends a piece of body, with the head if that was not sent yet, and with the end of the body
    /// after the last piece.
    pub(super) async fn send_piece(&mut self, piece: &[u8], is_last: bool) -> Result<(), TransmitError> {
        self.send(piece, is_last).await.map_err(|SendError| TransmitError::Client)
    }

    pub(super) async fn send_end(&mut self) -> Result<(), TransmitError> {
        self.send_piece(b"", true).await
    }

    /// Sends the head now if it was not sent with a piece of body.
    pub(super) async fn send_head(&mut self) -> Result<(), TransmitError> {
        self.send_piece(b"", false).await
    }

    /// Hands a piece to the exchange and waits until it is sent.
    pub(super) async fn send(&mut self, piece: &[u8], is_last: bool) -> Result<(), SendError> {
        poll_fn(|context| {
            let polled = self.exchange.poll_send(context, piece, is_last, &mut self.request.log);
            if polled.is_pending() && self.request.task.found.duplex.is_some() {
                let _ = self.poll_duplex(context);
            }
            polled
        })
        .await
    }

    /// Waits for more of the body, and feeds the client's body to the fetch during the wait.
    #[cold]
    async fn wait_in_duplex(&mut self, source: &Source) -> Result<(), TransmitError> {
        tokio::select! {
            biased;
            () = source.changed() => Ok(()),
            () = poll_fn(|context| self.poll_duplex(context)) => {
                self.end_duplex();
                Err(TransmitError::Client)
            }
        }
    }
}

/// The `Content-Length` of a response, if there is exactly one and it is a number.
fn content_length(message: &message::Message) -> Option<u64> {
    let mut values = message.get_all("Content-Length");
    let value = values.next()?;
    // Up to 19 digits fit into 64 bits.
    if values.next().is_some() || !(1..=19).contains(&value.len()) {
        return None;
    }
    value.iter().try_fold(0, |number: u64, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}
