//! The stream of one request: [`Http3Stream`], which is a [`RequestStream`] once its head has been
//! read.
//!
//! Frames are read as they arrive; a body is taken from QUIC only when it is needed, so a client
//! has no more of it under way than QUIC's windows allow. *Invariant:* only a response that is
//! complete ends the stream; dropped before that it is reset. Source: RFC 9114 §4.1.

use super::quic::{ReceiveStream, SendStream, StreamOver};
use super::shared::Shared;
use super::unacknowledged::Unacknowledged;
use crate::transport::stream::response_head::ResponseHead;
use crate::transport::stream::{RequestStream, Reset, StreamGone};
use ::http2::Priority;
use ::http3::Code;
use ::http3::frames::{Frame, FrameFault, FrameReader, Place, write_data_header, write_headers};
use ::http3::head::{self, HeadFault};
use bytes::Bytes;
use field_coding::FieldList;
use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use surface::header::is_of_connection;
use surface::limits::{CHUNK_TRAILER_BYTES_MAX, HTTP3_IDLE_FRAMES_MAX, TRAILER_FIELDS_MAX};
use tokio::time::Instant;

/// Most bytes of a body read at a time.
const READ_BYTES: usize = 16 << 10;
/// Most bytes of a body in one frame: other streams get their turn in between.
const DATA_BYTES_MAX: usize = 16 << 10;
/// The largest frame header.
const FRAME_HEADER_BYTES_MAX: usize = 16;

/// Reason why there is no head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoHead {
    /// The client cancelled the request.
    GivenUp,
    /// The client ended the stream before it was complete.
    Over,
    /// The head is longer than the limit.
    TooLong,
    /// The connection ends because of it.
    Fault,
}

/// Rest of a request after its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    Body,
    /// Nothing: the request is complete, but for trailers.
    Nothing,
    /// The client has cancelled it, or broken it off.
    Gone,
}

/// Progress of reading the request.
#[derive(PartialEq, Eq)]
enum Phase {
    Body,
    /// After the trailers nothing more follows.
    Trailers(Option<FieldList>),
    Over,
}

/// The stream of one request.
pub(super) struct Http3Stream<S: SendStream, R> {
    /// `None` once the response is complete.
    send: Option<S>,
    receive: R,
    shared: Rc<Shared>,
    unacknowledged: Rc<Unacknowledged<S>>,
    frames: FrameReader,
    /// Bytes that were received and not read.
    input: Bytes,
    phase: Phase,
    /// The first piece of the body, if it was read already.
    ahead: Option<Bytes>,
    /// A head, or the header of a frame, to be sent.
    out: Vec<u8>,
    out_sent: usize,
    /// The final head, or trailers, are in `out`. Interim heads are not waited for: such a wait may
    /// be cancelled, and must not affect the following bytes.
    is_sending_block: bool,
    /// Number of bytes of the current DATA frame that are still to be sent.
    frame_left: usize,
    /// The response was ended, completely or not.
    is_ended: bool,
    /// The client cancelled the request.
    is_cancelled: bool,
    began_at: Instant,
    /// Priority of the response, and the urgency that QUIC uses for it.
    priority: Rc<Cell<Option<Priority>>>,
    urgency: u8,
}

impl<S: SendStream, R: ReceiveStream> Http3Stream<S, R> {
    /// A stream whose head may have at most this number of bytes.
    pub(super) fn new(
        send: S,
        receive: R,
        shared: Rc<Shared>,
        unacknowledged: Rc<Unacknowledged<S>>,
        priority: &Rc<Cell<Option<Priority>>>,
        block_bytes_max: usize,
    ) -> Http3Stream<S, R> {
        Http3Stream {
            send: Some(send),
            receive,
            shared,
            unacknowledged,
            frames: FrameReader::new(Place::Request, block_bytes_max),
            input: Bytes::new(),
            phase: Phase::Body,
            ahead: None,
            out: Vec::new(),
            out_sent: 0,
            is_sending_block: false,
            frame_left: 0,
            is_ended: false,
            is_cancelled: false,
            began_at: Instant::now(),
            priority: Rc::clone(priority),
            urgency: Priority::default().urgency,
        }
    }

    /// Number of bytes of an incomplete head that are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.frames.held_bytes()
    }

    /// Makes QUIC send the response with its current urgency.
    fn obey_priority(&mut self) {
        let urgency = self.priority.get().unwrap_or_default().urgency;
        if let Some(send) = &mut self.send
            && urgency != self.urgency
        {
            self.urgency = urgency;
            send.set_urgency(urgency);
        }
    }

    /// Waits for the field section that a request begins with.
    pub(super) fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, NoHead>> {
        Poll::Ready(match ready!(self.poll_frame(context)) {
            Ok(Some(Frame::Headers(block))) => Ok(block),
            // The only other frame that a request can have.
            Ok(Some(_)) => {
                self.shared.fail(Code::FrameUnexpected);
                Err(NoHead::Fault)
            }
            Ok(None) => Err(NoHead::Over),
            Err(ReadFault::Over) => Err(NoHead::GivenUp),
            Err(ReadFault::Broken) => Err(NoHead::Fault),
            Err(ReadFault::TooLong) => Err(NoHead::TooLong),
        })
    }

    /// After the head: waits until it is known what follows it.
    pub(super) fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Rest> {
        if self.ahead.is_none() && self.phase == Phase::Body {
            match ready!(self.poll_data(context)) {
                Some(Ok(piece)) => self.ahead = Some(piece),
                Some(Err(StreamGone)) => return Poll::Ready(Rest::Gone),
                None => {}
            }
        }
        Poll::Ready(if self.ahead.is_some() { Rest::Body } else { Rest::Nothing })
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame>, ReadFault>> {
        loop {
            match self.frames.next(&mut self.input) {
                Ok(Some(frame)) => return Poll::Ready(Ok(Some(frame))),
                Ok(None) => {}
                Err(FrameFault::TooLong) => return Poll::Ready(Err(ReadFault::TooLong)),
                Err(FrameFault::Broken(code)) => return Poll::Ready(Err(self.fault(code))),
            }
            if self.frames.idle_frames() > HTTP3_IDLE_FRAMES_MAX {
                return Poll::Ready(Err(self.fault(Code::ExcessiveLoad)));
            }
            match ready!(self.receive.poll_chunk(context, READ_BYTES)) {
                Ok(Some(chunk)) => self.input = chunk,
                Ok(None) => return Poll::Ready(self.frames.end().map(|()| None).map_err(|code| self.fault(code))),
                Err(StreamOver) => {
                    self.cancelled();
                    return Poll::Ready(Err(ReadFault::Over));
                }
            }
        }
    }

    fn fault(&self, code: Code) -> ReadFault {
        self.shared.fail(code);
        ReadFault::Broken
    }

    /// Sends the bytes in `out`.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamGone>> {
        self.obey_priority();
        while self.out_sent < self.out.len() {
            let send = self.send.as_mut().ok_or(StreamGone)?;
            let written = ready!(send.poll_write(context, &self.out[self.out_sent..]));
            self.out_sent += written.map_err(|StreamOver| self.cancelled())?;
        }
        self.out = Vec::new();
        self.out_sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Appends a field section to the bytes to be sent.
    fn append_block(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut block = Vec::with_capacity(512);
        write(&mut block);
        self.out.reserve_exact(block.len() + FRAME_HEADER_BYTES_MAX);
        write_headers(&block, &mut self.out);
    }

    fn poll_send_block(
        &mut self,
        context: &mut Context<'_>,
        is_last: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<Result<(), StreamGone>> {
        if !std::mem::replace(&mut self.is_sending_block, true) {
            self.append_block(write);
        }
        ready!(self.poll_flush(context))?;
        self.is_sending_block = false;
        if is_last {
            self.finish();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends an interim head as far as that is possible now; the rest is sent before the next
    /// bytes, or while the request's body is received. It waits only for an earlier one.
    fn poll_send_interim(&mut self, context: &mut Context<'_>, head: &ResponseHead) -> Poll<Result<(), StreamGone>> {
        ready!(self.poll_flush(context))?;
        self.append_block(|block| head::write_response(head.status, &head.fields, block));
        match self.poll_flush(context) {
            Poll::Ready(sent) => Poll::Ready(sent),
            Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    /// Ends both sides before there is a response.
    pub(super) fn refuse(&mut self, code: Code) {
        self.receive.stop(code.number());
        self.abort(code);
    }

    /// Ends both sides because of bytes that the client has sent, or has not sent. That costs the
    /// client as much as if it had reset the stream.
    pub(super) fn refuse_at_its_cost(&mut self, code: Code) {
        self.shared.charge_reset();
        self.refuse(code);
    }

    /// Handles a client that needs no more of it. A request whose end the client has received does
    /// not count as cancelled.
    fn cancelled(&mut self) -> StreamGone {
        if !self.is_ended && !std::mem::replace(&mut self.is_cancelled, true) {
            self.shared.cancel(self.began_at);
        }
        StreamGone
    }

    fn finish(&mut self) {
        self.is_ended = true;
        if let Some(mut send) = self.send.take() {
            send.finish();
            self.unacknowledged.add(send);
        }
    }

    fn abort(&mut self, code: Code) {
        if let (Some(send), false) = (&mut self.send, std::mem::replace(&mut self.is_ended, true)) {
            send.reset(code.number());
        }
    }
}

/// Reason why no frame can be read.
enum ReadFault {
    /// The stream is over.
    Over,
    /// A field section is too long.
    TooLong,
    /// The connection ends.
    Broken,
}

impl<S: SendStream, R: ReceiveStream> RequestStream for Http3Stream<S, R> {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamGone>>> {
        if let Some(piece) = self.ahead.take() {
            return Poll::Ready(Some(Ok(piece)));
        }
        if self.phase != Phase::Body {
            return Poll::Ready(None);
        }
        if !self.out.is_empty() {
            // The client may wait for that before it continues. If it is gone, that is noticed
            // below.
            let _ = self.poll_flush(context);
        }
        let gone = match ready!(self.poll_frame(context)) {
            Ok(Some(Frame::Data(piece))) => return Poll::Ready(Some(Ok(piece))),
            Ok(Some(Frame::Headers(block))) => {
                match head::trailers(&block, CHUNK_TRAILER_BYTES_MAX, TRAILER_FIELDS_MAX) {
                    // Source: RFC 9114 §4.2, for any field section.
                    Ok(trailers) if trailers.iter().any(|(name, _)| is_of_connection(name)) => Reset::Malformed,
                    Ok(trailers) => {
                        self.phase = Phase::Trailers(Some(trailers));
                        return Poll::Ready(None);
                    }
                    // They are dropped, as in HTTP/1.
                    Err(HeadFault::TooLong) => {
                        self.phase = Phase::Trailers(None);
                        return Poll::Ready(None);
                    }
                    Err(HeadFault::Malformed) => Reset::Malformed,
                    Err(HeadFault::Broken(code)) => {
                        self.shared.fail(code);
                        Reset::Malformed
                    }
                }
            }
            Ok(Some(_)) => {
                self.shared.fail(Code::FrameUnexpected);
                Reset::Malformed
            }
            Ok(None) => {
                self.phase = Phase::Over;
                return Poll::Ready(None);
            }
            Err(ReadFault::Over) => {
                // The cost for the client was counted when it was noticed.
                self.phase = Phase::Over;
                self.refuse(Code::RequestIncomplete);
                return Poll::Ready(Some(Err(StreamGone)));
            }
            Err(ReadFault::TooLong | ReadFault::Broken) => Reset::Malformed,
        };
        self.phase = Phase::Over;
        self.reset(gone);
        Poll::Ready(Some(Err(StreamGone)))
    }

    /// Does nothing: QUIC gives credit for the bytes that were taken from it.
    fn release(&mut self, _count: usize) {}

    fn poll_trailers(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<FieldList>, StreamGone>> {
        if matches!(self.phase, Phase::Trailers(_)) {
            match ready!(self.poll_frame(context)) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    self.shared.fail(Code::FrameUnexpected);
                    return Poll::Ready(Err(StreamGone));
                }
                Err(_) => return Poll::Ready(Err(StreamGone)),
            }
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Trailers(trailers) => Poll::Ready(Ok(trailers)),
            Phase::Body | Phase::Over => Poll::Ready(Ok(None)),
        }
    }

    fn poll_send_head(
        &mut self,
        context: &mut Context<'_>,
        head: &ResponseHead,
        is_last: bool,
    ) -> Poll<Result<(), StreamGone>> {
        if head.is_interim() {
            return self.poll_send_interim(context, head);
        }
        self.poll_send_block(context, is_last, |block| head::write_response(head.status, &head.fields, block))
    }

    fn poll_send_data(
        &mut self,
        context: &mut Context<'_>,
        piece: &[u8],
        is_last: bool,
    ) -> Poll<Result<usize, StreamGone>> {
        if !piece.is_empty() && self.frame_left == 0 {
            self.frame_left = piece.len().min(DATA_BYTES_MAX);
            write_data_header(self.frame_left, &mut self.out);
        }
        ready!(self.poll_flush(context))?;
        let part = &piece[..piece.len().min(self.frame_left)];
        let sent = if part.is_empty() {
            0
        } else {
            let send = self.send.as_mut().ok_or(StreamGone)?;
            ready!(send.poll_write(context, part)).map_err(|StreamOver| self.cancelled())?
        };
        self.frame_left -= sent;
        if is_last && sent == piece.len() {
            self.finish();
        }
        Poll::Ready(Ok(sent))
    }

    fn poll_send_trailers(&mut self, context: &mut Context<'_>, trailers: &FieldList) -> Poll<Result<(), StreamGone>> {
        self.poll_send_block(context, true, |block| head::write_trailers(trailers, block))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // A complete response does not count as cancelled.
        let Some(send) = &mut self.send else { return Poll::Pending };
        ready!(send.poll_stopped(context));
        self.cancelled();
        Poll::Ready(())
    }

    fn reset(&mut self, why: Reset) {
        let code = match why {
            Reset::Malformed => return self.refuse_at_its_cost(Code::MessageError),
            Reset::Refused => Code::RequestRejected,
            Reset::Incomplete => Code::InternalError,
            // The response is complete; only the rest of the request is not needed.
            Reset::Enough => return self.receive.stop(Code::NoError.number()),
            Reset::Stalled => Code::RequestCancelled,
        };
        self.refuse(code);
    }
}

impl<S: SendStream, R> Drop for Http3Stream<S, R> {
    fn drop(&mut self) {
        if let (Some(send), false) = (&mut self.send, self.is_ended) {
            send.reset(Code::InternalError.number());
        }
    }
}
