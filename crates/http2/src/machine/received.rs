//! Received frames: [`Machine::receive`], and the frames that belong to no request. Next file:
//! `machine/received/on_streams.rs`.

mod on_streams;

use super::written::setting;
use super::{Machine, Observer, PAYLOAD_BYTES_AT_FIRST, Traffic};
use crate::frame::{ErrorCode, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use crate::priority::Priority;
use crate::reader::{Found, FrameReader};
use crate::verdict::{Abuse, Verdict};
use crate::windows::{WINDOW_AT_FIRST, WINDOW_MAX};
use std::time::Duration;
use surface::limits::{H2_SETTINGS_COST, H2_SETTINGS_FRAME_BYTES_MAX, PRIORITY_BYTES_MAX};

impl Machine {
    /// Reads bytes from the client.
    pub fn receive(&mut self, bytes: &[u8], now: Duration, mut observer: Option<&mut dyn Observer>) {
        if self.is_over {
            return;
        }
        let Some(mut rest) = self.read_preface(bytes) else { return };
        let mut reader = std::mem::take(&mut self.reader);
        let mut is_any_complete = false;
        while !self.is_over
            && let Some(found) = reader.next(&mut rest)
        {
            match found {
                Found::Head(head) => {
                    let shown = observer.as_ref().map_or(0, |observer| observer.wanted_bytes());
                    self.on_frame_head(head, now);
                    reader.keep(wanted_bytes(head).max(shown));
                    if head.kind == kind::DATA {
                        reader.pieces();
                    }
                }
                Found::Piece(head, piece) => self.on_data(head, piece, now),
                Found::End(head, payload) => {
                    if let Some(observer) = &mut observer {
                        observer.received(head, payload);
                    }
                    is_any_complete = true;
                    self.on_frame(head, payload, now);
                }
            }
        }
        self.note_incomplete(&reader, is_any_complete, now);
        self.reader = reader;
    }

    /// The bytes after the preface. `None` if it is incomplete, or wrong.
    fn read_preface<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.preface_left == 0 {
            return Some(bytes);
        }
        let expected = &PREFACE[PREFACE.len() - self.preface_left..];
        let here = bytes.len().min(expected.len());
        if bytes[..here] != expected[..here] {
            self.broken(ErrorCode::ProtocolError, "this is not the preface of HTTP/2");
            return None;
        }
        self.preface_left -= here;
        if self.preface_left > 0 {
            return None;
        }
        self.incomplete_since = None;
        Some(&bytes[here..])
    }

    fn note_incomplete(&mut self, reader: &FrameReader, is_any_complete: bool, now: Duration) {
        if let Some(block) = &self.block {
            self.incomplete_since = Some(block.began);
        } else if !reader.is_inside() {
            self.incomplete_since = None;
        } else if is_any_complete || reader.open().is_some_and(|head| head.kind == kind::DATA) {
            self.incomplete_since = Some(now);
        } else {
            self.incomplete_since.get_or_insert(now);
        }
    }

    /// Ends the connection because of a violation of the protocol.
    pub(super) fn broken(&mut self, code: ErrorCode, words: &'static str) {
        self.fail(Verdict::broken(code, words));
    }

    /// Checks that need only the head of a frame.
    fn on_frame_head(&mut self, head: FrameHead, now: Duration) {
        let is_lenient = self.settings.is_lenient;
        let is_early_ack = head.kind == kind::SETTINGS && head.has(flag::ACK) && !self.has_settings;
        if !self.has_settings && (head.kind != kind::SETTINGS || is_early_ack && !is_lenient) {
            return self.broken(ErrorCode::ProtocolError, "the first frame is not SETTINGS");
        }
        self.has_settings |= !is_early_ack;
        self.traffic[0].count(head);
        if head.payload_bytes > self.settings.frame_bytes_max || !has_right_size(head) {
            // Compat: Varnish reports truncated settings as PROTOCOL_ERROR.
            if is_lenient && head.kind == kind::SETTINGS && !head.has(flag::ACK) {
                return self.broken(ErrorCode::ProtocolError, "SETTINGS of the wrong size");
            }
            return self.broken(ErrorCode::FrameSizeError, "a frame of the wrong size");
        }
        if is_of_connection(head.kind) != (head.stream == 0) && is_known(head.kind) && head.kind != kind::WINDOW_UPDATE
        {
            return self.broken(ErrorCode::ProtocolError, "a frame on the wrong stream");
        }
        match head.kind {
            kind::CONTINUATION => self.on_continuation_head(head),
            _ if self.block.is_some() => {
                self.broken(ErrorCode::ProtocolError, "another frame within a header block");
            }
            kind::HEADERS => self.on_headers_head(head, now),
            kind::DATA => self.on_data_head(head, now),
            kind::PUSH_PROMISE => self.broken(ErrorCode::ProtocolError, "clients do not push"),
            kind::SETTINGS if head.payload_bytes as usize > H2_SETTINGS_FRAME_BYTES_MAX => {
                self.fail(Verdict::too_much(Abuse::EmptyFrames, "too many settings"));
            }
            _ => {}
        }
    }

    /// Handles a frame, of DATA the end, and charges it if it carries nothing.
    fn on_frame(&mut self, head: FrameHead, payload: &[u8], now: Duration) {
        if self.is_over {
            return;
        }
        let mut cost = 1;
        match head.kind {
            kind::DATA => return self.on_data_end(head, now),
            kind::HEADERS => return self.on_headers(head, payload, now),
            kind::CONTINUATION => return self.on_continuation(head, payload, now),
            kind::RST_STREAM => return self.on_reset(head.stream, now),
            kind::SETTINGS if head.has(flag::ACK) => self.on_settings_ack(),
            kind::SETTINGS => {
                cost = H2_SETTINGS_COST;
                self.on_settings(payload);
            }
            kind::PING if head.has(flag::ACK) => self.on_pong(payload),
            kind::PING => self.write_pong(payload),
            kind::GOAWAY => self.on_goaway(payload),
            kind::WINDOW_UPDATE => self.on_window_update(head.stream, payload, now),
            kind::PRIORITY => self.on_priority(head, payload, now),
            kind::PRIORITY_UPDATE => self.on_priority_update(head, payload),
            _ => {}
        }
        self.charge_frame(cost, now);
    }

    fn on_settings_ack(&mut self) {
        if std::mem::replace(&mut self.is_acknowledged, true) {
            return;
        }
        self.decoder.acknowledge(self.settings.table_bytes as usize);
        let difference = i64::from(self.settings.stream_window) - self.first_window();
        if difference < 0 {
            self.streams.iter_mut().for_each(|stream| stream.window.resize(difference));
        }
    }

    /// The window of a stream that begins before the client has acknowledged the settings: it may
    /// not have heard of a smaller window.
    pub(super) fn first_window(&self) -> i64 {
        i64::from(self.settings.stream_window).max(WINDOW_AT_FIRST)
    }

    /// Source: RFC 9113 §6.5.2.
    fn on_settings(&mut self, payload: &[u8]) {
        for entry in payload.as_chunks::<6>().0 {
            let [name_high, name_low, value @ ..] = *entry;
            let value = u32::from_be_bytes(value);
            match u16::from_be_bytes([name_high, name_low]) {
                setting::HEADER_TABLE_SIZE => self.encoder.allow_table(value as usize),
                setting::ENABLE_PUSH if value > 1 => {
                    return self.broken(ErrorCode::ProtocolError, "a setting that cannot be");
                }
                setting::INITIAL_WINDOW_SIZE if i64::from(value) > WINDOW_MAX => {
                    return self.broken(ErrorCode::FlowControlError, "a window beyond the protocol's");
                }
                setting::INITIAL_WINDOW_SIZE => self.set_stream_windows(value.into()),
                setting::MAX_FRAME_SIZE => match value as usize {
                    bytes @ PAYLOAD_BYTES_AT_FIRST..=0xff_ffff => self.payload_bytes_max = bytes,
                    _ => return self.broken(ErrorCode::ProtocolError, "a setting that cannot be"),
                },
                _ => {}
            }
        }
        if !self.is_over {
            self.write_settings_ack();
        }
    }

    /// Changes the windows of all streams. Source: RFC 9113 §6.9.2.
    fn set_stream_windows(&mut self, bytes: i64) {
        let difference = bytes - std::mem::replace(&mut self.stream_send_window, bytes);
        let mut is_beyond = false;
        let mut opened = Vec::new();
        for stream in self.streams.iter_mut().filter(|stream| !stream.is_gone) {
            stream.send_window += difference;
            is_beyond |= stream.send_window > WINDOW_MAX;
            if stream.awaits_window && stream.send_window > 0 {
                opened.push(stream.id);
            }
        }
        opened.into_iter().for_each(|stream| self.wake(stream));
        if is_beyond {
            self.broken(ErrorCode::FlowControlError, "a window beyond the protocol's");
        }
    }

    fn on_goaway(&mut self, payload: &[u8]) {
        let code = payload.get(4..).and_then(|rest| rest.first_chunk()).copied();
        self.left_by_client = Some(u32::from_be_bytes(code.unwrap_or_default()));
    }

    fn on_window_update(&mut self, stream: u32, payload: &[u8], now: Duration) {
        let increment = payload.first_chunk().copied().map_or(0, u32::from_be_bytes) & 0x7fff_ffff;
        if stream != 0 {
            return self.on_stream_window_update(stream, increment.into(), now);
        }
        self.send_window += i64::from(increment);
        if increment == 0 {
            self.broken(ErrorCode::ProtocolError, "a WINDOW_UPDATE of nothing");
        } else if self.send_window > WINDOW_MAX {
            self.broken(ErrorCode::FlowControlError, "a window beyond the protocol's");
        } else {
            self.wake_next();
        }
    }

    /// Source: RFC 9218 §7.1.
    fn on_priority_update(&mut self, head: FrameHead, payload: &[u8]) {
        let Some((stream, value)) = payload.split_first_chunk() else { return };
        let stream = u32::from_be_bytes(*stream) & 0x7fff_ffff;
        if stream == 0 {
            return self.broken(ErrorCode::ProtocolError, "a PRIORITY_UPDATE of no stream");
        }
        let value_bytes = head.payload_bytes as usize - 4;
        if value_bytes <= PRIORITY_BYTES_MAX {
            let value = &value[..value.len().min(value_bytes)];
            self.prioritise(stream, Priority::of_field(value));
        }
    }
}

impl Traffic {
    fn count(&mut self, head: FrameHead) {
        self.head_bytes += HEAD_BYTES as u64;
        if !matches!(head.kind, kind::DATA | kind::HEADERS | kind::CONTINUATION) {
            self.other_bytes += u64::from(head.payload_bytes);
        }
    }
}

fn is_known(kind: u8) -> bool {
    kind <= kind::CONTINUATION || kind == kind::PRIORITY_UPDATE
}

/// True for types of frames that belong to the whole connection.
fn is_of_connection(kind: u8) -> bool {
    matches!(kind, kind::SETTINGS | kind::PING | kind::GOAWAY | kind::PRIORITY_UPDATE)
}

/// True if a frame of a fixed size has it, for types where the connection is lost otherwise.
/// Source: RFC 9113 §6.
fn has_right_size(head: FrameHead) -> bool {
    let bytes = head.payload_bytes;
    match head.kind {
        kind::RST_STREAM | kind::WINDOW_UPDATE => bytes == 4,
        kind::SETTINGS if head.has(flag::ACK) => bytes == 0,
        kind::SETTINGS => bytes.is_multiple_of(6),
        kind::PING => bytes == 8,
        kind::GOAWAY => bytes >= 8,
        kind::PRIORITY_UPDATE => bytes >= 4,
        _ => true,
    }
}

/// Number of payload bytes that are read together.
fn wanted_bytes(head: FrameHead) -> usize {
    match head.kind {
        kind::HEADERS | kind::CONTINUATION | kind::SETTINGS => head.payload_bytes as usize,
        kind::PING | kind::GOAWAY => 8,
        kind::RST_STREAM | kind::WINDOW_UPDATE => 4,
        kind::PRIORITY => 5,
        kind::PRIORITY_UPDATE => 4 + PRIORITY_BYTES_MAX,
        _ => 0,
    }
}
