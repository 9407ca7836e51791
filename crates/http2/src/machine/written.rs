//! Frames in the output: [`Machine::output`], and the frames of the connection.

use super::{Machine, Phase};
use crate::frame::{ErrorCode, FrameHead, HEAD_BYTES, flag, kind};
use crate::hpack::TABLE_BYTES_AT_FIRST;
use crate::windows::{WINDOW_AT_FIRST, WINDOW_MAX};
use surface::limits::H2_QUEUED_BYTES_MAX;

/// Memory of an output that is not empty: several small responses.
const OUTPUT_BYTES: usize = 16 << 10;
/// Bytes that were sent and are kept before the others are moved.
const SENT_BYTES_KEPT: usize = H2_QUEUED_BYTES_MAX / 2;
/// Payload of the PING that follows the first GOAWAY.
const LAST_PING: [u8; 8] = *b"last one";

/// Identifiers of settings. Source: RFC 9113 §6.5.2, RFC 8441 §3.
pub(super) mod setting {
    pub(in crate::machine) const HEADER_TABLE_SIZE: u16 = 1;
    pub(in crate::machine) const ENABLE_PUSH: u16 = 2;
    pub(in crate::machine) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(in crate::machine) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(in crate::machine) const MAX_FRAME_SIZE: u16 = 5;
    pub(in crate::machine) const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub(in crate::machine) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
}

impl Machine {
    /// Frames to be sent, from the first byte on that the socket has not taken.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.out[self.sent_bytes..]
    }

    /// The bytes of which the last part is [`Machine::output`]: those before it were sent. New
    /// frames are appended.
    #[must_use]
    pub fn frames(&self) -> &[u8] {
        &self.out
    }

    /// The socket has taken bytes of the output. Once it has taken all of them, the output is
    /// empty, and keeps its memory.
    pub fn sent(&mut self, bytes: usize) {
        self.sent_bytes = (self.sent_bytes + bytes).min(self.out.len());
        if self.sent_bytes == self.out.len() {
            self.out.clear();
            self.sent_bytes = 0;
        } else if self.sent_bytes >= SENT_BYTES_KEPT {
            self.out.drain(..self.sent_bytes);
            self.sent_bytes = 0;
        }
        self.wake_next();
    }

    /// Gives the memory of an empty output back.
    pub fn shrink(&mut self) {
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }

    /// Discards the output: the client does not take it.
    pub fn discard_output(&mut self) {
        self.sent(self.out.len());
    }

    /// True if there is room for a slice of a body.
    pub(super) fn has_room(&self) -> bool {
        self.out.len() - self.sent_bytes < H2_QUEUED_BYTES_MAX
    }

    /// Wakes the stream whose turn it is, if it can send.
    pub(super) fn wake_next(&mut self) {
        if self.send_window > 0
            && self.has_room()
            && let Some(next) = self.order.next()
        {
            self.wake(next);
        }
    }

    /// Begins a frame whose payload is written by the caller.
    pub(super) fn write_head(&mut self, kind: u8, flags: u8, stream: u32, payload_bytes: usize) {
        if self.out.capacity() == 0 {
            self.out.reserve(OUTPUT_BYTES);
        }
        let traffic = &mut self.traffic[1];
        traffic.head_bytes += HEAD_BYTES as u64;
        if !matches!(kind, kind::DATA | kind::HEADERS | kind::CONTINUATION) {
            traffic.other_bytes += payload_bytes as u64;
        }
        let head = FrameHead { payload_bytes: payload_bytes as u32, kind, flags, stream };
        self.out.extend_from_slice(&head.to_bytes());
    }

    fn write_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.write_head(kind, flags, stream, payload.len());
        self.out.extend_from_slice(payload);
    }

    /// Values that are the protocol's defaults need not be sent. Compat: Varnish sends none of
    /// them.
    pub(super) fn write_settings(&mut self) {
        let settings = self.settings;
        let all = [
            (setting::HEADER_TABLE_SIZE, settings.table_bytes, TABLE_BYTES_AT_FIRST as u32),
            (setting::MAX_CONCURRENT_STREAMS, settings.streams_max, u32::MAX),
            (setting::INITIAL_WINDOW_SIZE, settings.stream_window, WINDOW_AT_FIRST as u32),
            (setting::MAX_FRAME_SIZE, settings.frame_bytes_max, super::PAYLOAD_BYTES_AT_FIRST as u32),
            (setting::MAX_HEADER_LIST_SIZE, settings.list_bytes_max, u32::MAX),
            (setting::ENABLE_CONNECT_PROTOCOL, settings.offers_connect.into(), 0),
        ];
        let mut payload = Vec::with_capacity(all.len() * 6);
        for (name, value, known) in all {
            let is_announced = name != setting::MAX_HEADER_LIST_SIZE || settings.announces_list_limit;
            if value != known && is_announced {
                payload.extend_from_slice(&name.to_be_bytes());
                payload.extend_from_slice(&value.to_be_bytes());
            }
        }
        self.write_frame(kind::SETTINGS, 0, 0, &payload);
    }

    pub(super) fn write_settings_ack(&mut self) {
        self.write_frame(kind::SETTINGS, flag::ACK, 0, &[]);
    }

    pub(super) fn write_pong(&mut self, payload: &[u8]) {
        self.write_frame(kind::PING, flag::ACK, 0, payload);
    }

    pub(super) fn write_window_update(&mut self, stream: u32, increment: u32) {
        self.write_frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
    }

    pub(super) fn write_reset(&mut self, stream: u32, code: ErrorCode) {
        self.write_frame(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes());
    }

    pub(super) fn write_goaway(&mut self, last_stream: u32, code: ErrorCode) {
        let payload = u64::from(last_stream) << 32 | u64::from(code as u32);
        self.write_frame(kind::GOAWAY, 0, 0, &payload.to_be_bytes());
    }

    /// The first GOAWAY of a graceful end, with a PING: its answer shows that the client knows.
    pub(super) fn write_first_goaway(&mut self) {
        self.write_goaway(WINDOW_MAX as u32, ErrorCode::NoError);
        self.write_frame(kind::PING, 0, 0, &LAST_PING);
    }

    /// Handles the answer to a PING.
    pub(super) fn on_pong(&mut self, payload: &[u8]) {
        if self.phase == Phase::Leaving && payload == LAST_PING {
            self.phase = Phase::Closing;
            self.write_goaway(self.last_stream, ErrorCode::NoError);
        }
    }
}
