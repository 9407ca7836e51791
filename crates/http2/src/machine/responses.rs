//! Responses as the engine sends them.

use super::{Machine, Sending, StreamGone};
use crate::frame::{FrameHead, HEAD_BYTES, flag, kind};
use crate::streams::{Outgoing, Stream};
use field_coding::FieldList;
use std::time::Duration;
use surface::limits::{H2_DRIBBLE_BYTES, H2_EMPTY_FRAMES_EARNED, H2_SLICE_BYTES_MAX};

impl Machine {
    fn sending(&mut self, stream: u32) -> Result<&mut Stream, StreamGone> {
        let stream = self.streams.get_mut(stream).ok_or(StreamGone)?;
        if stream.is_gone || stream.outgoing == Outgoing::Ended { Err(StreamGone) } else { Ok(stream) }
    }

    /// Sends the head of a response, interim or final; names are in lower case. `is_last` if
    /// nothing follows it.
    ///
    /// # Errors
    /// See [`StreamGone`].
    pub fn send_head(&mut self, stream: u32, status: u16, fields: &FieldList, is_last: bool) -> Result<(), StreamGone> {
        let is_final = status >= 200;
        let known = self.sending(stream)?;
        known.outgoing = match (is_final, is_last) {
            (false, _) => Outgoing::Head,
            (true, false) => Outgoing::Body,
            (true, true) => Outgoing::Ended,
        };
        self.write_block(stream, Some(status), fields, is_final && is_last);
        self.note_end(stream);
        Ok(())
    }

    /// Sends the trailers of a response, and ends it.
    ///
    /// # Errors
    /// See [`StreamGone`].
    pub fn send_trailers(&mut self, stream: u32, trailers: &FieldList) -> Result<(), StreamGone> {
        self.sending(stream)?.outgoing = Outgoing::Ended;
        self.write_block(stream, None, trailers, true);
        self.note_end(stream);
        Ok(())
    }

    /// Sends some of a piece of a body, as much as the client's windows and the turn allow; at
    /// least one byte, unless the piece is empty. `is_last` if the body ends with the piece.
    ///
    /// # Errors
    /// See [`StreamGone`].
    pub fn send_data(
        &mut self,
        stream: u32,
        piece: &[u8],
        is_last: bool,
        now: Duration,
    ) -> Result<Sending, StreamGone> {
        let mut count = 0;
        if !piece.is_empty() {
            match self.take_turn(stream)? {
                Ok(most) => {
                    let wanted = piece.len().min(H2_SLICE_BYTES_MAX).min(self.payload_bytes_max);
                    count = wanted.min(most);
                    if count < wanted.min(H2_DRIBBLE_BYTES) {
                        // The client opens its window by a few bytes at a time: the frame must add
                        // nothing to its allowance.
                        self.charge_frame(H2_EMPTY_FRAMES_EARNED, now);
                    }
                }
                Err(waits) => return Ok(waits),
            }
        }
        let is_end = is_last && count == piece.len();
        let known = self.sending(stream)?;
        known.send_window -= count as i64;
        if is_end {
            known.outgoing = Outgoing::Ended;
        }
        self.send_window -= count as i64;
        self.allowance.earn(count as u32);
        self.write_head(kind::DATA, if is_end { flag::END_STREAM } else { 0 }, stream, count);
        self.out.extend_from_slice(&piece[..count]);
        self.note_end(stream);
        self.wake_next();
        Ok(Sending::Sent(count))
    }

    /// The number of bytes that a stream may send now, or what it waits for.
    fn take_turn(&mut self, stream: u32) -> Result<Result<usize, Sending>, StreamGone> {
        let known = self.sending(stream)?;
        let (window, priority) = (known.send_window, known.priority);
        known.awaits_window = window <= 0;
        if window <= 0 {
            self.order.leave(stream);
            self.wake_next();
            return Ok(Err(Sending::NoWindow));
        }
        let has_window = self.send_window > 0;
        let has_room = has_window && self.has_room();
        if !self.order.take_turn(stream, priority, has_room) {
            self.wake_next();
            return Ok(Err(if has_window { Sending::NoTurn } else { Sending::NoWindow }));
        }
        Ok(Ok(usize::try_from(window.min(self.send_window)).unwrap_or(0)))
    }

    /// Cancels the wait for a turn.
    pub fn leave_order(&mut self, stream: u32) {
        self.order.leave(stream);
        self.wake_next();
    }

    /// Writes HEADERS, and CONTINUATION if the block is longer than the client's frames.
    pub(super) fn write_block(&mut self, stream: u32, status: Option<u16>, fields: &FieldList, is_last: bool) {
        let flags = if is_last { flag::END_STREAM } else { 0 };
        self.write_head(kind::HEADERS, flags | flag::END_HEADERS, stream, 0);
        let start = self.out.len();
        self.encoder.begin(&mut self.out);
        if let Some(status) = status {
            self.encoder.status(status, &mut self.out);
        }
        for (name, value) in fields {
            self.encoder.field(name, value, &mut self.out);
        }
        let bytes = self.out.len() - start;
        if bytes > self.payload_bytes_max {
            return self.split_block(stream, start, flags);
        }
        let head =
            FrameHead { payload_bytes: bytes as u32, kind: kind::HEADERS, flags: flags | flag::END_HEADERS, stream };
        self.out[start - HEAD_BYTES..start].copy_from_slice(&head.to_bytes());
    }

    #[cold]
    fn split_block(&mut self, stream: u32, start: usize, flags: u8) {
        let block = self.out.split_off(start);
        self.out.truncate(start - HEAD_BYTES);
        // The first head was counted.
        self.traffic[1].head_bytes -= HEAD_BYTES as u64;
        let count = block.len().div_ceil(self.payload_bytes_max);
        for (number, part) in block.chunks(self.payload_bytes_max).enumerate() {
            let (kind, flags) = if number == 0 { (kind::HEADERS, flags) } else { (kind::CONTINUATION, 0) };
            let end = if number + 1 == count { flag::END_HEADERS } else { 0 };
            self.write_head(kind, flags | end, stream, part.len());
            self.out.extend_from_slice(part);
        }
    }
}
