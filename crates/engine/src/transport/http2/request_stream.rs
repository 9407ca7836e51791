//! A stream of the library `h2` as a [`RequestStream`].

use super::queue::{Piece, Queue};
use super::watch::Watch;
use crate::transport::stream::priority::Priority;
use crate::transport::stream::{RequestStream, Reset, StreamGone};
use ::http2::Windows;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use surface::limits::{H2_DRIBBLE_BYTES, H2_SLICE_BYTES_MAX};

/// What the streams of a connection share.
pub(super) struct Lane {
    /// Places for what is sent.
    pub(super) queue: Rc<Queue>,
    /// The client takes nothing from the connection, whatever its windows are.
    pub(super) is_blocked: Cell<bool>,
    /// `h2_window_timeout`, in seconds.
    pub(super) window_seconds: f64,
    /// A client gets its credit back in lumps of this many bytes.
    pub(super) lump_bytes: usize,
    /// The guard of the connection.
    pub(super) watch: Rc<Watch>,
    /// If it is told so at once.
    pub(super) windows: Option<Rc<RefCell<Windows>>>,
}

/// What a request and its connection share of a stream.
pub(super) struct Shared {
    pub(super) priority: Cell<Priority>,
    /// The connection resets the stream with this.
    pub(super) respond: RefCell<SendResponse<Piece>>,
}

impl Shared {
    pub(super) fn new(priority: Priority, respond: SendResponse<Piece>) -> Shared {
        Shared { priority: Cell::new(priority), respond: RefCell::new(respond) }
    }
}

/// One stream with a request on it.
pub(super) struct Http2Stream {
    id: u32,
    lane: Rc<Lane>,
    shared: Rc<Shared>,
    /// Since the head was sent.
    sending: Option<SendStream<Piece>>,
    body: RecvStream,
    /// Bytes that were used, and the client was not told yet.
    unreleased: usize,
    /// The present wait is one for the client's window.
    awaits_window: bool,
}

impl Http2Stream {
    pub(super) fn new(lane: &Rc<Lane>, shared: &Rc<Shared>, id: u32, body: RecvStream) -> Http2Stream {
        Http2Stream {
            id,
            lane: Rc::clone(lane),
            shared: Rc::clone(shared),
            sending: None,
            body,
            unreleased: 0,
            awaits_window: false,
        }
    }

    /// Waits for the client's windows. Returns how many bytes may be sent, at most `wanted`.
    fn poll_window(&mut self, context: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, StreamGone>> {
        let sending = self.sending.as_mut().ok_or(StreamGone)?;
        sending.reserve_capacity(wanted);
        let mut capacity = sending.capacity();
        while capacity == 0 {
            match sending.poll_capacity(context) {
                Poll::Ready(Some(Ok(assigned))) => capacity = assigned,
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(StreamGone)),
                Poll::Pending => {
                    self.awaits_window = true;
                    self.lane.queue.leave(self.id);
                    return Poll::Pending;
                }
            }
        }
        self.awaits_window = false;
        Poll::Ready(Ok(capacity.min(wanted)))
    }
}

impl RequestStream for Http2Stream {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamGone>>> {
        self.body.poll_data(context).map_err(|_| StreamGone)
    }

    fn release(&mut self, count: usize) {
        self.unreleased += count;
        if self.unreleased >= self.lane.lump_bytes {
            let released = std::mem::take(&mut self.unreleased);
            let _ = self.body.flow_control().release_capacity(released);
            if let Some(windows) = &self.lane.windows {
                windows.borrow_mut().used(self.id, u32::try_from(released).unwrap_or(u32::MAX));
            }
        }
    }

    fn poll_trailers(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, StreamGone>> {
        self.body.poll_trailers(context).map_err(|_| StreamGone)
    }

    fn poll_send_head(
        &mut self,
        _context: &mut Context<'_>,
        head: &mut Response<()>,
        is_last: bool,
    ) -> Poll<Result<(), StreamGone>> {
        let head = std::mem::replace(head, Response::new(()));
        if head.status().is_informational() {
            return Poll::Ready(self.shared.respond.borrow_mut().send_informational(head).map_err(|_| StreamGone));
        }
        let sending = self.shared.respond.borrow_mut().send_response(head, is_last).map_err(|_| StreamGone)?;
        self.sending = Some(sending);
        Poll::Ready(Ok(()))
    }

    fn poll_send_data(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
    ) -> Poll<Result<usize, StreamGone>> {
        let mut count = 0;
        if !piece.is_empty() {
            let wanted = piece.len().min(H2_SLICE_BYTES_MAX);
            count = ready!(self.poll_window(context, wanted))?;
            ready!(self.lane.queue.poll_place(context, self.id, self.shared.priority.get()));
            if count < wanted.min(H2_DRIBBLE_BYTES) {
                self.lane.watch.dribbled();
            }
        }
        let sending = self.sending.as_mut().ok_or(StreamGone)?;
        let is_end = is_last && count == piece.len();
        let slice = self.lane.queue.piece(&piece[..count]);
        let sent = sending.send_data(slice, is_end);
        Poll::Ready(sent.map(|()| count).map_err(|_| StreamGone))
    }

    fn window_seconds(&self) -> Option<f64> {
        (self.awaits_window && !self.lane.is_blocked.get()).then_some(self.lane.window_seconds)
    }

    fn poll_send_trailers(&mut self, _context: &mut Context<'_>, trailers: &HeaderMap) -> Poll<Result<(), StreamGone>> {
        let sending = self.sending.as_mut().ok_or(StreamGone)?;
        Poll::Ready(sending.send_trailers(trailers.clone()).map_err(|_| StreamGone))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.sending {
            Some(sending) => sending.poll_reset(context).map(drop),
            None => self.shared.respond.borrow_mut().poll_reset(context).map(drop),
        }
    }

    fn reset(&mut self, why: Reset) {
        let reason = match why {
            Reset::Malformed => Reason::PROTOCOL_ERROR,
            Reset::Incomplete => Reason::INTERNAL_ERROR,
            Reset::Stalled => Reason::CANCEL,
            // The library does that by itself when a response is complete and the request is not.
            Reset::Enough => return,
        };
        self.shared.respond.borrow_mut().send_reset(reason);
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.lane.queue.leave(self.id);
    }
}
