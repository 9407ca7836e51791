//! A stream of the machine as a [`RequestStream`].

use super::lane::Lane;
use crate::transport::stream::response_head::ResponseHead;
use crate::transport::stream::{RequestStream, Reset, StreamGone};
use ::http2::frame::ErrorCode;
use ::http2::head::RequestHead;
use ::http2::{BodyPart, Sending};
use bytes::Bytes;
use field_coding::FieldList;
use std::rc::Rc;
use std::task::{Context, Poll};

/// One stream with a request on it.
pub(super) struct Http2Stream {
    id: u32,
    lane: Rc<Lane>,
    /// The present wait is one for the client's window.
    awaits_window: bool,
    /// Number of flushes when the wait for one began; the stream is counted in
    /// [`Lane::unflushed`].
    awaits_flush: Option<u64>,
}

impl Http2Stream {
    pub(super) fn new(lane: &Rc<Lane>, id: u32) -> Http2Stream {
        Http2Stream { id, lane: Rc::clone(lane), awaits_window: false, awaits_flush: None }
    }

    /// The head is no longer needed.
    pub(super) fn give_back(&self, head: RequestHead) {
        self.lane.context.http2_heads.put(head);
    }

    fn wait<T>(&self, context: &Context<'_>) -> Poll<T> {
        self.lane.wait(self.id, context);
        Poll::Pending
    }
}

impl RequestStream for Http2Stream {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamGone>>> {
        let part = self.lane.machine.borrow_mut().take_body(self.id);
        match part {
            Ok(BodyPart::Bytes(bytes)) => Poll::Ready(Some(Ok(bytes))),
            Ok(BodyPart::End) => Poll::Ready(None),
            Ok(BodyPart::Nothing) => self.wait(context),
            Err(_) => Poll::Ready(Some(Err(StreamGone))),
        }
    }

    fn release(&mut self, count: usize) {
        self.lane.machine.borrow_mut().release(self.id, count);
    }

    fn poll_trailers(&mut self, _context: &mut Context<'_>) -> Poll<Result<Option<FieldList>, StreamGone>> {
        Poll::Ready(Ok(self.lane.machine.borrow_mut().take_trailers(self.id)))
    }

    fn poll_send_head(
        &mut self,
        _context: &mut Context<'_>,
        head: &ResponseHead,
        is_last: bool,
    ) -> Poll<Result<(), StreamGone>> {
        let sent = self.lane.machine.borrow_mut().send_head(self.id, head.status, &head.fields, is_last);
        Poll::Ready(sent.map_err(|_| StreamGone))
    }

    fn poll_send_data(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
    ) -> Poll<Result<usize, StreamGone>> {
        let now = self.lane.now.get();
        let sent = self.lane.machine.borrow_mut().send_data(self.id, piece, is_last, now);
        self.awaits_window = sent == Ok(Sending::NoWindow);
        match sent {
            Ok(Sending::Sent(count)) => Poll::Ready(Ok(count)),
            Ok(Sending::NoWindow | Sending::NoTurn) => self.wait(context),
            Err(_) => Poll::Ready(Err(StreamGone)),
        }
    }

    fn window_seconds(&self) -> Option<f64> {
        (self.awaits_window && !self.lane.is_blocked.get()).then_some(self.lane.window_seconds)
    }

    fn poll_send_trailers(&mut self, _context: &mut Context<'_>, trailers: &FieldList) -> Poll<Result<(), StreamGone>> {
        let sent = self.lane.machine.borrow_mut().send_trailers(self.id, trailers);
        Poll::Ready(sent.map_err(|_| StreamGone))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.lane.machine.borrow().is_gone(self.id) { Poll::Ready(()) } else { self.wait(context) }
    }

    fn poll_flushed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.poll_gone(context).is_ready() {
            return Poll::Ready(());
        }
        let flushes = self.lane.flushes.get();
        match self.awaits_flush {
            Some(before) if flushes > before => return Poll::Ready(()),
            Some(_) => {}
            None => {
                self.awaits_flush = Some(flushes);
                self.lane.unflushed.set(self.lane.unflushed.get() + 1);
            }
        }
        Poll::Pending
    }

    fn reset(&mut self, why: Reset) {
        let code = match why {
            Reset::Malformed => ErrorCode::ProtocolError,
            Reset::Refused => ErrorCode::RefusedStream,
            Reset::Incomplete => ErrorCode::InternalError,
            Reset::Stalled => ErrorCode::Cancel,
            Reset::Enough => ErrorCode::NoError,
        };
        self.lane.machine.borrow_mut().reset(self.id, code, self.lane.now.get());
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.lane.machine.borrow_mut().leave_order(self.id);
        if self.awaits_flush.is_some() {
            self.lane.unflushed.set(self.lane.unflushed.get() - 1);
        }
    }
}
