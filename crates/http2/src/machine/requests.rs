//! Requests as the engine takes them: heads, bodies, trailers, and the end of the work.

use super::{BodyPart, Machine, NewRequest, StreamGone};
use crate::frame::ErrorCode;
use crate::streams::{Closing, Outgoing, Stream};
use field_coding::FieldList;
use std::time::Duration;

impl Machine {
    /// Takes the next request, if fewer than the allowed number are at work: a stream that was
    /// reset counts until its work is over.
    pub fn take_request(&mut self) -> Option<NewRequest> {
        if self.taken >= self.settings.streams_max as usize {
            return None;
        }
        loop {
            let id = self.requests.pop_front()?;
            let Some(stream) = self.streams.get_mut(id) else { continue };
            let Some(head) = stream.head.take() else { continue };
            self.taken += 1;
            let is_last = stream.has_request_ended && stream.body.is_empty() && stream.trailers.is_none();
            return Some(NewRequest { stream: id, head, is_last });
        }
    }

    /// Takes the bytes of a body that have arrived.
    ///
    /// # Errors
    /// See [`StreamGone`].
    pub fn take_body(&mut self, stream: u32) -> Result<BodyPart, StreamGone> {
        let stream = self.streams.get_mut(stream).ok_or(StreamGone)?;
        if stream.is_gone {
            return Err(StreamGone);
        }
        Ok(match () {
            () if !stream.body.is_empty() => BodyPart::Bytes(stream.body.split().freeze()),
            () if stream.has_request_ended => BodyPart::End,
            () => BodyPart::Nothing,
        })
    }

    /// Takes the trailers, after the end of the body.
    pub fn take_trailers(&mut self, stream: u32) -> Option<FieldList> {
        self.streams.get_mut(stream)?.trailers.take()
    }

    /// Bytes of a body were used: the client may send as many more. That is announced by
    /// [`Machine::announce_credit`].
    pub fn release(&mut self, stream: u32, bytes: usize) {
        if let Some(known) = self.streams.get_mut(stream) {
            let bytes = bytes.min(known.unused_bytes);
            known.unused_bytes -= bytes;
            self.body_bytes -= bytes;
            known.window.credit(bytes);
            if !self.credited.contains(&stream) {
                self.credited.push(stream);
            }
            self.credit(bytes);
        }
    }

    /// Announces the windows of streams whose bytes were used: once a turn, before the output is
    /// sent.
    pub fn announce_credit(&mut self) {
        let lump = i64::from(self.settings.credit_bytes);
        while let Some(stream) = self.credited.pop() {
            if let Some(known) = self.receiving(stream)
                && let Some(increment) = known.window.due(lump)
            {
                self.write_window_update(stream, increment);
            }
        }
    }

    /// A stream that takes more of its request.
    pub(super) fn receiving(&mut self, stream: u32) -> Option<&mut Stream> {
        self.streams.get_mut(stream).filter(|stream| !stream.is_gone && !stream.has_request_ended)
    }

    /// Bytes were used, or discarded: the connection's window may grow by as many.
    pub(super) fn credit(&mut self, bytes: usize) {
        self.window.credit(bytes);
        if !self.is_over
            && let Some(increment) = self.window.due_by_half()
        {
            self.write_window_update(0, increment);
        }
    }

    /// True if a stream was reset by one side, or its connection is over.
    #[must_use]
    pub fn is_gone(&self, stream: u32) -> bool {
        self.streams.get(stream).is_none_or(|stream| stream.is_gone)
    }

    /// True if the last frame of a stream is in the output, or was sent.
    #[must_use]
    pub fn is_ended(&self, stream: u32) -> bool {
        self.streams.get(stream).is_none_or(|stream| stream.is_gone || stream.outgoing == Outgoing::Ended)
    }

    /// Resets a stream, unless it is over.
    pub fn reset(&mut self, stream: u32, code: ErrorCode, now: Duration) {
        if self.streams.get(stream).is_some_and(|stream| !stream.is_closed()) {
            self.reset_stream(stream, code, now);
        }
    }

    /// The work on a stream is over.
    pub fn forget(&mut self, stream: u32, now: Duration) {
        self.reset(stream, ErrorCode::InternalError, now);
        if self.remove(stream) {
            self.taken -= 1;
        }
    }

    /// Removes a stream. Returns true if it was there.
    pub(super) fn remove(&mut self, stream: u32) -> bool {
        self.order.leave(stream);
        let Some(gone) = self.streams.remove(stream) else { return false };
        if gone.head.is_some() {
            self.requests.retain(|waiting| *waiting != stream);
        }
        self.body_bytes -= gone.unused_bytes;
        self.credit(gone.unused_bytes);
        true
    }

    /// Resets a stream, which need not be known. If the client has provoked that, it costs it as
    /// much as a stream that it resets itself. A refused one costs less: the client may not have
    /// heard of the limit.
    pub(super) fn reset_stream(&mut self, stream: u32, code: ErrorCode, now: Duration) {
        if self.is_over {
            return;
        }
        self.write_reset(stream, code);
        self.close(stream, Closing::Here);
        let is_again = std::mem::replace(&mut self.reset_last, stream) == stream;
        match code {
            ErrorCode::NoError | ErrorCode::InternalError | ErrorCode::Cancel => {}
            ErrorCode::RefusedStream => {
                self.refused += 1;
                self.charge_frame(1, now);
            }
            _ if is_again => self.charge_frame(1, now),
            _ => self.charge_reset(now),
        }
    }

    /// Marks a stream as reset. One that was not taken is removed.
    pub(super) fn close(&mut self, stream: u32, closing: Closing) {
        self.closed.add(stream, closing);
        let Some(known) = self.streams.get_mut(stream) else { return };
        if !known.is_closed() {
            self.open_streams -= 1;
        }
        known.is_gone = true;
        let is_untaken = known.head.is_some();
        self.order.leave(stream);
        if is_untaken {
            self.remove(stream);
        } else {
            self.wake(stream);
        }
    }

    /// Notes a stream that both sides may have ended.
    pub(super) fn note_end(&mut self, stream: u32) {
        if self.streams.get(stream).is_some_and(|stream| !stream.is_gone && stream.is_closed()) {
            self.open_streams -= 1;
            self.closed.add(stream, Closing::Client);
        }
    }
}
