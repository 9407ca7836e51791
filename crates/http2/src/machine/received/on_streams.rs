//! Received frames of streams: heads, bodies, trailers, resets, windows and the old priorities.

use super::super::{Machine, OpenBlock, OpenData, Phase};
use crate::frame::{ErrorCode, FrameHead, flag};
use crate::head::{HeadFault, RequestHead, read_request, read_trailers};
use crate::priority::Priority;
use crate::streams::{Closing, Outgoing, Stream};
use crate::verdict::{Abuse, Verdict};
use crate::windows::{WINDOW_AT_FIRST, WINDOW_MAX, Window};
use bytes::BytesMut;
use field_coding::FieldList;
use std::ops::Range;
use std::time::Duration;
use surface::limits::H2_CONTINUATIONS_MAX;

/// Length of the priority fields before a block, with the flag PRIORITY.
const PRIORITY_FIELDS_BYTES: usize = 5;
/// The head of a request is larger than announced.
const HEAD_TOO_LARGE: u16 = 431;

impl Machine {
    /// True if the client has not opened a stream with this number, nor one with a higher number.
    fn is_idle(&self, stream: u32) -> bool {
        stream.is_multiple_of(2) || stream > self.last_stream
    }

    // Heads and trailers.

    pub(super) fn on_headers_head(&mut self, head: FrameHead, now: Duration) {
        let stream = head.stream;
        if stream.is_multiple_of(2) {
            return self.broken(ErrorCode::ProtocolError, "HEADERS on a stream of ours");
        }
        let is_new = stream > self.last_stream;
        if is_new {
            self.last_stream = stream;
            self.allowance.earn(0);
        } else if self.receiving(stream).is_none() && self.closed.get(stream) != Some(Closing::Here) {
            // Compat: to Varnish it is a number that is too low.
            let was_open = self.streams.get(stream).is_some() || self.closed.get(stream).is_some();
            let code =
                if was_open && !self.settings.is_lenient { ErrorCode::StreamClosed } else { ErrorCode::ProtocolError };
            return self.broken(code, "HEADERS on a stream that has ended");
        }
        self.block = Some(OpenBlock {
            stream,
            is_new,
            is_last: head.has(flag::END_STREAM),
            is_malformed: false,
            began: now,
            continuations: 0,
            bytes: Vec::new(),
            payload_bytes: head.payload_bytes as usize,
        });
        self.check_block();
    }

    pub(super) fn on_continuation_head(&mut self, head: FrameHead) {
        let Some(block) = self.block.as_mut().filter(|block| block.stream == head.stream) else {
            return self.broken(ErrorCode::ProtocolError, "a CONTINUATION of nothing");
        };
        block.payload_bytes += head.payload_bytes as usize;
        block.continuations += usize::from(!head.has(flag::END_HEADERS));
        self.check_block();
    }

    fn check_block(&mut self) {
        let Some(block) = &self.block else { return };
        if block.continuations > H2_CONTINUATIONS_MAX {
            self.fail(Verdict::too_much(Abuse::HeaderBlock, "a header block of too many frames"));
        } else if block.payload_bytes > self.settings.block_bytes_max {
            self.fail(Verdict::too_much(Abuse::HeaderBlock, "a header block of too many bytes"));
        }
    }

    pub(super) fn on_headers(&mut self, head: FrameHead, payload: &[u8], now: Duration) {
        let Some(mut block) = self.block.take() else { return };
        let Some(place) = block_place(head, payload) else {
            return self.broken(ErrorCode::ProtocolError, "padding that is longer than its frame");
        };
        if head.has(flag::PRIORITY) && !self.settings.is_lenient {
            block.is_malformed = depends_on(&payload[place.start - PRIORITY_FIELDS_BYTES..]) == head.stream;
        }
        if head.has(flag::END_HEADERS) {
            return self.on_block(&block, &payload[place], now);
        }
        block.bytes.extend_from_slice(&payload[place]);
        self.block = Some(block);
    }

    pub(super) fn on_continuation(&mut self, head: FrameHead, payload: &[u8], now: Duration) {
        let Some(mut block) = self.block.take() else { return };
        block.bytes.extend_from_slice(payload);
        if head.has(flag::END_HEADERS) {
            let bytes = std::mem::take(&mut block.bytes);
            self.on_block(&block, &bytes, now);
        } else {
            self.block = Some(block);
        }
    }

    /// Handles a complete block.
    fn on_block(&mut self, block: &OpenBlock, bytes: &[u8], now: Duration) {
        if !block.is_new {
            return self.on_trailers(block, bytes, now);
        }
        let mut head = self.heads.take();
        let read = read_request(&mut self.decoder, bytes, &self.rules, block.is_last, &mut head);
        let is_refused = self.open_streams >= self.settings.streams_max as usize || self.phase == Phase::Closing;
        match read {
            Err(HeadFault::Undecodable | HeadFault::FarTooLarge) => self.undecoded(read.err()),
            _ if is_refused => self.reset_stream(block.stream, ErrorCode::RefusedStream, now),
            Ok(()) if !block.is_malformed => return self.open(block, head, now),
            Err(HeadFault::TooLarge) => self.answer_too_large(block),
            Ok(()) | Err(HeadFault::Malformed) => self.reset_stream(block.stream, ErrorCode::ProtocolError, now),
        }
        self.heads.put(head);
    }

    /// Ends the connection, whose compression table is not known any more.
    fn undecoded(&mut self, fault: Option<HeadFault>) {
        if fault == Some(HeadFault::FarTooLarge) {
            self.fail(Verdict::too_much(Abuse::HeaderBlock, "a list of header fields that is far too large"));
        } else {
            self.broken(ErrorCode::CompressionError, "a header block that cannot be decoded");
        }
    }

    fn answer_too_large(&mut self, block: &OpenBlock) {
        self.write_block(block.stream, Some(HEAD_TOO_LARGE), &FieldList::new(), true);
        if !block.is_last {
            self.write_reset(block.stream, ErrorCode::NoError);
        }
        self.closed.add(block.stream, if block.is_last { Closing::Client } else { Closing::Here });
        self.too_large.push(block.stream);
    }

    fn open(&mut self, block: &OpenBlock, head: RequestHead, now: Duration) {
        let of_head =
            || head.fields().find(|(name, _)| *name == b"priority").map(|(_, value)| Priority::of_field(value));
        let priority = self.priorities.take(block.stream.into()).or_else(of_head).unwrap_or_default();
        let is_heard = self.is_acknowledged;
        let window = if is_heard { self.settings.stream_window.into() } else { self.first_window() };
        self.streams.add(Stream {
            id: block.stream,
            began: now,
            priority,
            length_left: head.length(),
            head: Some(head),
            has_request_ended: block.is_last,
            body: BytesMut::new(),
            trailers: None,
            window: Window::new(window),
            unused_bytes: 0,
            outgoing: Outgoing::Head,
            send_window: self.stream_send_window,
            awaits_window: false,
            is_gone: false,
        });
        self.open_streams += 1;
        self.requests.push_back(block.stream);
        if !block.is_last && !std::mem::replace(&mut self.is_window_raised, true) {
            self.growth_left = u64::from(self.settings.connection_window).saturating_sub(WINDOW_AT_FIRST as u64);
            if self.settings.growth_step == 0 {
                self.grow_window();
            }
        }
    }

    fn on_trailers(&mut self, block: &OpenBlock, bytes: &[u8], now: Duration) {
        let read = read_trailers(&mut self.decoder, bytes, &self.rules);
        if let Err(fault @ (HeadFault::Undecodable | HeadFault::FarTooLarge)) = read {
            return self.undecoded(Some(fault));
        }
        let Some(stream) = self.receiving(block.stream) else { return self.charge_frame(1, now) };
        let is_whole = stream.length_left.is_none_or(|left| left == 0);
        match read {
            Ok(trailers) if block.is_last && is_whole && !block.is_malformed => {
                stream.trailers = trailers;
                stream.has_request_ended = true;
                self.note_end(block.stream);
                self.wake(block.stream);
            }
            // A block that does not end the request is malformed, too. Source: RFC 9113 §8.1.
            _ => self.reset_stream(block.stream, ErrorCode::ProtocolError, now),
        }
    }

    // Bodies.

    /// Enlarges the connection's window by a step.
    fn grow_window(&mut self) {
        let step = match self.settings.growth_step {
            0 => self.growth_left,
            step => self.growth_left.min(step.into()),
        };
        if let Ok(step) = u32::try_from(step)
            && step > 0
        {
            self.growth_left -= u64::from(step);
            self.window.resize(step.into());
            self.write_window_update(0, step);
        }
    }

    pub(super) fn on_data_head(&mut self, head: FrameHead, now: Duration) {
        let bytes = head.payload_bytes;
        self.data = OpenData { awaits_padding: head.has(flag::PADDED), content_bytes: bytes, ..OpenData::default() };
        if self.is_idle(head.stream) {
            return self.broken(ErrorCode::ProtocolError, "DATA on a stream that was not opened");
        }
        if head.has(flag::PADDED) && bytes == 0 {
            return self.broken(ErrorCode::FrameSizeError, "padding without a length");
        }
        if !self.window.take(bytes) {
            return self.broken(ErrorCode::FlowControlError, "more bytes than the connection's window");
        }
        self.grow_window();
        match self.receiving(head.stream).map(|stream| stream.window.take(bytes)) {
            Some(true) => {
                self.data.is_wanted = true;
                if !self.data.awaits_padding {
                    self.expect_content(head.stream, now);
                }
            }
            Some(false) => self.reset_stream(head.stream, ErrorCode::FlowControlError, now),
            None => self.on_late_data(head.stream, now),
        }
    }

    /// Handles DATA on a stream whose request has ended. Source: RFC 9113 §5.1.
    fn on_late_data(&mut self, stream: u32, now: Duration) {
        if self.closed.get(stream) == Some(Closing::Here) {
            self.charge_frame(1, now);
        } else if self.is_late_too_often() {
            self.broken(ErrorCode::StreamClosed, "DATA on streams that have ended");
        } else {
            self.reset_stream(stream, ErrorCode::StreamClosed, now);
        }
    }

    fn is_late_too_often(&mut self) -> bool {
        let is_too_often = self.late_left == 0;
        self.late_left = self.late_left.saturating_sub(1);
        is_too_often
    }

    /// Checks the content of a DATA frame, once its length is known, against that of the request.
    fn expect_content(&mut self, stream: u32, now: Duration) {
        let content = u64::from(self.data.content_bytes);
        let Some(known) = self.receiving(stream).filter(|_| content > 0) else { return };
        if let Some(left) = &mut known.length_left {
            match left.checked_sub(content) {
                Some(rest) => *left = rest,
                None => {
                    self.data.is_wanted = false;
                    self.reset_stream(stream, ErrorCode::ProtocolError, now);
                }
            }
        }
    }

    /// Handles the next bytes of a DATA frame.
    pub(super) fn on_data(&mut self, head: FrameHead, mut piece: &[u8], now: Duration) {
        if self.data.awaits_padding
            && let Some((padding, rest)) = piece.split_first()
        {
            piece = rest;
            let Some(content) = head.payload_bytes.checked_sub(1 + u32::from(*padding)) else {
                return self.broken(ErrorCode::ProtocolError, "padding that is longer than its frame");
            };
            self.data.awaits_padding = false;
            self.data.content_bytes = content;
            if self.data.is_wanted {
                self.expect_content(head.stream, now);
            }
        }
        let data = self.data;
        let here = piece.len().min((data.content_bytes - data.content_read) as usize);
        self.data.content_read += here as u32;
        if !data.is_wanted || here == 0 {
            return;
        }
        let Some(stream) = self.receiving(head.stream) else {
            self.data.is_wanted = false;
            return;
        };
        stream.body.extend_from_slice(&piece[..here]);
        stream.unused_bytes += here;
        self.body_bytes += here;
        self.data.delivered += here as u32;
        self.wake(head.stream);
    }

    pub(super) fn on_data_end(&mut self, head: FrameHead, now: Duration) {
        let data = std::mem::take(&mut self.data);
        let is_last = head.has(flag::END_STREAM);
        // Padding is not read by a request. The client may wait for that credit only if much of its
        // window is padding.
        let padding_min = i64::from(self.settings.stream_window / 4);
        if data.is_wanted
            && let Some(stream) = self.receiving(head.stream)
        {
            if is_last {
                if stream.length_left.is_some_and(|left| left > 0) {
                    self.reset_stream(head.stream, ErrorCode::ProtocolError, now);
                } else {
                    stream.has_request_ended = true;
                    self.note_end(head.stream);
                    self.wake(head.stream);
                }
            } else {
                stream.window.credit((head.payload_bytes - data.delivered) as usize);
                if let Some(increment) = stream.window.due(padding_min) {
                    self.write_window_update(head.stream, increment);
                }
            }
        }
        self.credit((head.payload_bytes - data.delivered) as usize);
        if data.delivered > 0 {
            // Progress, even if it is small.
            self.allowance.earn(data.delivered);
        } else if !is_last {
            self.charge_frame(1, now);
        }
    }

    // Resets, windows and priorities.

    pub(super) fn on_reset(&mut self, stream: u32, now: Duration) {
        if self.is_idle(stream) {
            return self.broken(ErrorCode::ProtocolError, "RST_STREAM on a stream that was not opened");
        }
        let Some(open) = self.streams.get(stream).filter(|stream| !stream.is_closed()) else {
            return self.charge_frame(1, now);
        };
        let is_answered = open.outgoing == Outgoing::Ended;
        let is_rapid = self.resets.is_rapid(now.saturating_sub(open.began));
        self.close(stream, Closing::Client);
        if is_answered {
            self.charge_frame(1, now);
        } else if is_rapid {
            self.charge_reset(now);
        }
    }

    pub(super) fn on_stream_window_update(&mut self, stream: u32, increment: i64, now: Duration) {
        if self.is_idle(stream) {
            return self.broken(ErrorCode::ProtocolError, "WINDOW_UPDATE on a stream that was not opened");
        }
        if increment == 0 && self.is_late_too_often() {
            return self.broken(ErrorCode::ProtocolError, "WINDOW_UPDATEs of nothing");
        }
        let Some(open) = self.streams.get_mut(stream).filter(|stream| !stream.is_closed()) else { return };
        open.send_window += increment;
        let (is_beyond, is_open) = (open.send_window > WINDOW_MAX, open.awaits_window && open.send_window > 0);
        if increment == 0 {
            self.reset_stream(stream, ErrorCode::ProtocolError, now);
        } else if is_beyond {
            self.reset_stream(stream, ErrorCode::FlowControlError, now);
        } else if is_open {
            self.wake(stream);
        }
    }

    /// The priorities of RFC 7540 mean nothing; those that cannot be are a fault of their stream.
    pub(super) fn on_priority(&mut self, head: FrameHead, payload: &[u8], now: Duration) {
        let code = match () {
            () if self.settings.is_lenient => return,
            () if payload.len() != PRIORITY_FIELDS_BYTES || head.payload_bytes != 5 => ErrorCode::FrameSizeError,
            () if depends_on(payload) == head.stream => ErrorCode::ProtocolError,
            () => return,
        };
        if self.streams.get(head.stream).is_some_and(|stream| !stream.is_closed()) {
            self.reset_stream(head.stream, code, now);
        } else {
            self.broken(code, "a PRIORITY that cannot be");
        }
    }
}

/// The stream that the fields of a priority name.
fn depends_on(fields: &[u8]) -> u32 {
    fields.first_chunk().copied().map_or(0, u32::from_be_bytes) & 0x7fff_ffff
}

/// Position of the block in the payload of HEADERS.
fn block_place(head: FrameHead, payload: &[u8]) -> Option<Range<usize>> {
    let is_padded = head.has(flag::PADDED);
    let padding = if is_padded { usize::from(*payload.first()?) } else { 0 };
    let start = usize::from(is_padded) + if head.has(flag::PRIORITY) { PRIORITY_FIELDS_BYTES } else { 0 };
    let end = payload.len().checked_sub(padding)?;
    (start <= end).then_some(start..end)
}
