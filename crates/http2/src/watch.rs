//! The guard of one connection: sees every byte of both directions and says when it is enough.
//!
//! ```text
//! client ──▶ preface ──▶ SETTINGS ──▶ frames … ──▶ verdict: nothing more is passed on
//! ```
//!
//! A frame for which there is a verdict is not passed on (a part of it that came earlier may have been, and never gets complete).
//! The guard knows nothing of windows, field compression and the states of streams: those are the library's. *Invariant:* memory
//! is bounded by the named limits, whatever is sent.

use crate::allowance::Allowance;
use crate::frame::{ErrorCode, FrameHead, PREFACE, flag, kind};
use crate::reader::{Found, FrameReader};
use crate::resets::Resets;
use crate::streams::OpenStreams;
use crate::verdict::{Abuse, Verdict};
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{
    H2_CONTINUATIONS_MAX, H2_EMPTY_FRAMES_EARNED, H2_SETTINGS_COST, PRIORITIES_WAITING_MAX, PRIORITY_BYTES_MAX,
};

/// What the guard of a connection has to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchLimits {
    /// The largest payload that we announced (SETTINGS_MAX_FRAME_SIZE), in bytes.
    pub frame_bytes_max: u32,
    /// Longest encoded block of header fields, in bytes, all its frames together.
    pub block_bytes_max: usize,
    /// The largest header list that we announced (SETTINGS_MAX_HEADER_LIST_SIZE), in bytes.
    pub list_bytes_max: usize,
    /// A client may acknowledge our SETTINGS before it sends its own. Compat: Varnish takes that, and scripts of its
    /// `varnishtest` do it. The codes of errors are Varnish's, too.
    pub is_lenient: bool,
}

impl WatchLimits {
    /// The most that the fields of a block of so many bytes take, once they are unpacked: a field takes at least one byte of a block, and
    /// counts as 33 of the list (RFC 9113 §6.5.2). Names and values
    /// that come out of the compression's table are shared with it; what is spelled out grows by eight fifths at most.
    fn unpacked_bytes(&self, block_bytes: usize) -> usize {
        let fields = block_bytes.min(self.list_bytes_max / 33);
        block_bytes * 8 / 5 + fields * UNPACKED_FIELD_BYTES
    }
}

/// What a field takes in the library's map of fields, in bytes, besides its name and value.
const UNPACKED_FIELD_BYTES: usize = 128;

/// Is shown the frames, for a log.
pub trait Observer {
    /// Of how many bytes of a payload the beginning is wanted.
    fn wanted_bytes(&self) -> usize;

    /// The client has sent a frame: its head, and the beginning of its payload.
    fn received(&mut self, head: FrameHead, payload: &[u8]);

    /// The same for one that we sent.
    fn sent(&mut self, head: FrameHead, payload: &[u8]);
}

/// A client's wish about one of its streams. Source: RFC 9218 §7.1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PriorityUpdate {
    /// The stream; it may not have begun yet.
    pub stream: u32,
    /// What a `priority` header would hold.
    pub value: Vec<u8>,
}

/// Frames and bytes of a connection that belong to no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes of heads of frames, nine each.
    pub head_bytes: u64,
    /// Bytes of payloads other than those of DATA and of header blocks.
    pub other_bytes: u64,
}

/// A header block whose end has not come.
#[derive(Clone, Copy, Debug)]
struct Block {
    stream: u32,
    began: Duration,
    continuations: usize,
    bytes: usize,
}

/// The guard of one connection.
#[derive(Debug)]
pub struct Watch {
    limits: WatchLimits,
    resets: Rc<Resets>,
    preface_left: usize,
    has_settings: bool,
    received: FrameReader,
    sent: FrameReader,
    block: Option<Block>,
    streams: OpenStreams,
    allowance: Allowance,
    priorities: Vec<PriorityUpdate>,
    /// The stream that we reset last.
    reset_last: u32,
    incomplete_since: Option<Duration>,
    verdict: Option<Verdict>,
    told: Option<Abuse>,
    is_failed: bool,
    traffic: [Traffic; 2],
    refused: u64,
    /// Streams that the library has answered by itself.
    answered: Vec<u32>,
}

impl Watch {
    /// The guard of a connection that begins. The budget of resets is shared with VCL.
    #[must_use]
    pub fn new(limits: WatchLimits, resets: Rc<Resets>) -> Watch {
        Watch {
            limits,
            resets,
            preface_left: PREFACE.len(),
            has_settings: false,
            received: FrameReader::default(),
            sent: FrameReader::default(),
            block: None,
            streams: OpenStreams::default(),
            allowance: Allowance::default(),
            priorities: Vec::new(),
            reset_last: 0,
            incomplete_since: Some(Duration::ZERO),
            verdict: None,
            told: None,
            is_failed: false,
            traffic: [Traffic::default(); 2],
            refused: 0,
            answered: Vec::new(),
        }
    }

    /// Why the connection must end; the first reason stays.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// What the library has told the client that it did too much of, when it ended the connection by a limit of its own.
    #[must_use]
    pub fn told(&self) -> Option<Abuse> {
        self.told
    }

    /// How many streams were refused since the last call: there are too many, or there is no room.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// The request on a stream was handed over by the library.
    pub fn take(&mut self, stream: u32) {
        self.streams.take(stream);
    }

    /// Whoever had the request on a stream has done with it, trailers included.
    pub fn forget(&mut self, stream: u32) {
        self.streams.forget(stream);
    }

    /// The most that the library may hold of heads and trailers that nobody has taken, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.streams.held_bytes() + self.block.map_or(0, |block| block.bytes)
    }

    /// A frame of DATA is about to be sent that is small only because the client opens its window by a few bytes at a time: it earns
    /// the client nothing.
    pub fn dribbled(&mut self, now: Duration) {
        if let Err(verdict) = self.charge_frame(H2_EMPTY_FRAMES_EARNED, now) {
            self.verdict.get_or_insert(verdict);
        }
    }

    /// The streams that were answered since the last call although nobody had their requests: the library does that itself if a head
    /// is larger than was announced.
    pub fn take_answered(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.answered)
    }

    /// Whether a GOAWAY was sent because of an error: the client may still be sending, and should learn why that is no use.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// Since when the preface, a frame or a header block has been under way; for DATA, since when nothing more of it has come.
    #[must_use]
    pub fn incomplete_since(&self) -> Option<Duration> {
        self.incomplete_since
    }

    /// Takes the priorities that have come since the last call, oldest first.
    pub fn take_priorities(&mut self) -> Vec<PriorityUpdate> {
        std::mem::take(&mut self.priorities)
    }

    /// What has been received and sent besides requests and responses.
    #[must_use]
    pub fn traffic(&self) -> (Traffic, Traffic) {
        (self.traffic[0], self.traffic[1])
    }

    /// How many streams are open as far as the guard knows.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Looks at bytes from the client. Returns how many of them may be passed on: all, unless there is a verdict. `now` is the
    /// time since the connection began.
    pub fn receive(&mut self, bytes: &[u8], now: Duration, mut observer: Option<&mut dyn Observer>) -> usize {
        if self.verdict.is_some() {
            return 0;
        }
        let Some(mut rest) = self.read_preface(bytes) else { return bytes.len() };
        let mut frame_at = bytes.len() - rest.len();
        let mut is_any_complete = false;
        loop {
            if !self.received.is_inside() {
                frame_at = bytes.len() - rest.len();
            }
            let verdict = match self.received.next(&mut rest) {
                None => break,
                Some(Found::Head(head)) => {
                    let shown = observer.as_ref().map_or(0, |observer| observer.wanted_bytes());
                    self.received.keep(wanted_bytes(head).max(shown));
                    self.on_received_head(head, now)
                }
                Some(Found::End(head, payload)) => {
                    if let Some(observer) = &mut observer {
                        observer.received(head, payload);
                    }
                    is_any_complete = true;
                    let meaning = Meaning::of(head, payload);
                    self.on_received(head, meaning, now)
                }
            };
            if let Err(verdict) = verdict {
                self.verdict = Some(verdict);
                return frame_at;
            }
        }
        self.note_incomplete(is_any_complete, now);
        bytes.len()
    }

    /// What lies behind the preface. `None` if it has not come, or is something else: the library says so.
    fn read_preface<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.preface_left == 0 {
            return Some(bytes);
        }
        let expected = &PREFACE[PREFACE.len() - self.preface_left..];
        let here = bytes.len().min(expected.len());
        if bytes[..here] != expected[..here] {
            self.verdict = Some(Verdict::broken(ErrorCode::ProtocolError, "this is not the preface of HTTP/2"));
            return None;
        }
        self.preface_left -= here;
        if self.preface_left > 0 {
            return None;
        }
        self.incomplete_since = None;
        Some(&bytes[here..])
    }

    fn note_incomplete(&mut self, is_any_complete: bool, now: Duration) {
        if let Some(block) = self.block {
            self.incomplete_since = Some(block.began);
        } else if !self.received.is_inside() {
            self.incomplete_since = None;
        } else if is_any_complete || self.received.open().is_some_and(|head| head.kind == kind::DATA) {
            self.incomplete_since = Some(now);
        } else {
            self.incomplete_since.get_or_insert(now);
        }
    }

    /// What can be said before the payload has come.
    fn on_received_head(&mut self, head: FrameHead, now: Duration) -> Result<(), Verdict> {
        let is_early_ack = head.kind == kind::SETTINGS && head.has(flag::ACK) && !self.has_settings;
        if !self.has_settings && (head.kind != kind::SETTINGS || is_early_ack && !self.limits.is_lenient) {
            return Err(Verdict::broken(ErrorCode::ProtocolError, "the first frame is not SETTINGS"));
        }
        self.has_settings |= !is_early_ack;
        self.traffic[0].count(head);
        if head.payload_bytes > self.limits.frame_bytes_max || !has_right_size(head) {
            // Compat: Varnish calls settings that are cut off an error of the protocol.
            if self.limits.is_lenient && head.kind == kind::SETTINGS && !head.has(flag::ACK) {
                return Err(Verdict::broken(ErrorCode::ProtocolError, "SETTINGS of the wrong size"));
            }
            return Err(Verdict::broken(ErrorCode::FrameSizeError, "a frame of the wrong size"));
        }
        match head.kind {
            kind::CONTINUATION => self.on_continuation(head),
            _ if self.block.is_some() => {
                Err(Verdict::broken(ErrorCode::ProtocolError, "another frame within a header block"))
            }
            kind::HEADERS => self.on_headers(head, now),
            kind::PUSH_PROMISE => Err(Verdict::broken(ErrorCode::ProtocolError, "clients do not push")),
            _ => Ok(()),
        }
    }

    fn on_headers(&mut self, head: FrameHead, now: Duration) -> Result<(), Verdict> {
        if self.streams.begin(head.stream, now) {
            self.allowance.earn(0);
        }
        let bytes = head.payload_bytes as usize;
        if head.has(flag::END_HEADERS) {
            self.streams.hold(head.stream, self.limits.unpacked_bytes(bytes));
        } else {
            self.block = Some(Block { stream: head.stream, began: now, continuations: 0, bytes });
        }
        self.check_block(0, bytes)
    }

    fn on_continuation(&mut self, head: FrameHead) -> Result<(), Verdict> {
        let Some(block) = self.block.as_mut().filter(|block| block.stream == head.stream) else {
            return Err(Verdict::broken(ErrorCode::ProtocolError, "a CONTINUATION of nothing"));
        };
        block.bytes += head.payload_bytes as usize;
        let Block { bytes, mut continuations, .. } = *block;
        if head.has(flag::END_HEADERS) {
            self.block = None;
            self.streams.hold(head.stream, self.limits.unpacked_bytes(bytes));
        } else {
            block.continuations += 1;
            continuations += 1;
        }
        self.check_block(continuations, bytes)
    }

    fn check_block(&self, continuations: usize, bytes: usize) -> Result<(), Verdict> {
        if continuations > H2_CONTINUATIONS_MAX {
            return Err(Verdict::too_much(Abuse::HeaderBlock, "a header block of too many frames"));
        }
        if bytes > self.limits.block_bytes_max {
            return Err(Verdict::too_much(Abuse::HeaderBlock, "a header block of too many bytes"));
        }
        Ok(())
    }

    fn on_received(&mut self, head: FrameHead, meaning: Meaning, now: Duration) -> Result<(), Verdict> {
        let cost = match (head.kind, meaning) {
            (kind::HEADERS | kind::CONTINUATION, _) | (_, Meaning::Content) => return Ok(()),
            (kind::DATA, _) if head.has(flag::END_STREAM) => return Ok(()),
            (kind::RST_STREAM, _) => match self.streams.reset(head.stream) {
                Some(open) if self.resets.is_rapid(now.saturating_sub(open.began)) => return self.charge_reset(now),
                Some(_) => return Ok(()),
                None => 1,
            },
            (_, Meaning::Broken(verdict)) => return Err(verdict),
            (kind::SETTINGS, _) if !head.has(flag::ACK) => H2_SETTINGS_COST,
            (_, Meaning::Priority(update)) => {
                self.keep_priority(update);
                1
            }
            _ => 1,
        };
        self.charge_frame(cost, now)
    }

    fn keep_priority(&mut self, update: PriorityUpdate) {
        if update.value.len() > PRIORITY_BYTES_MAX {
            return;
        }
        self.priorities.retain(|older| older.stream != update.stream);
        if self.priorities.len() >= PRIORITIES_WAITING_MAX {
            self.priorities.remove(0);
        }
        self.priorities.push(update);
    }

    fn charge_frame(&mut self, cost: u32, now: Duration) -> Result<(), Verdict> {
        if self.allowance.charge(cost, now) {
            return Ok(());
        }
        Err(Verdict::too_much(Abuse::EmptyFrames, "too many frames that carry nothing"))
    }

    fn charge_reset(&mut self, now: Duration) -> Result<(), Verdict> {
        if self.resets.charge(now) {
            return Ok(());
        }
        Err(Verdict::too_much(Abuse::Resets, "too many streams were reset"))
    }

    /// Looks at bytes that were sent to the client.
    pub fn send(&mut self, bytes: &[u8], now: Duration, mut observer: Option<&mut dyn Observer>) {
        let mut rest = bytes;
        while let Some(found) = self.sent.next(&mut rest) {
            match found {
                Found::Head(head) => {
                    let shown = observer.as_ref().map_or(0, |observer| observer.wanted_bytes());
                    self.sent.keep(wanted_bytes(head).max(shown));
                    self.on_sent_head(head);
                }
                Found::End(head, payload) => {
                    if let Some(observer) = &mut observer {
                        observer.sent(head, payload);
                    }
                    match Meaning::of(head, payload) {
                        Meaning::Reset(code) => {
                            if let Err(verdict) = self.on_sent_reset(head.stream, code, now) {
                                self.verdict.get_or_insert(verdict);
                            }
                        }
                        Meaning::Farewell { is_error, told } => {
                            self.is_failed |= is_error;
                            self.told = told;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn on_sent_head(&mut self, head: FrameHead) {
        self.traffic[1].count(head);
        if head.kind == kind::DATA {
            self.allowance.earn(head.payload_bytes);
        }
        if matches!(head.kind, kind::DATA | kind::HEADERS) && head.has(flag::END_STREAM) {
            let ended = self.streams.end(head.stream);
            if ended.is_some_and(|open| !open.is_taken) {
                self.answered.push(head.stream);
            }
        }
    }

    /// A stream that we reset for what the client did costs it as much as one that it resets itself. One that was refused costs
    /// less: the client may not have known better.
    fn on_sent_reset(&mut self, stream: u32, code: u32, now: Duration) -> Result<(), Verdict> {
        self.streams.end(stream);
        let is_again = std::mem::replace(&mut self.reset_last, stream) == stream;
        match ErrorCode::of(code) {
            Some(ErrorCode::NoError | ErrorCode::InternalError | ErrorCode::Cancel) => Ok(()),
            Some(ErrorCode::RefusedStream) => {
                self.refused += 1;
                self.charge_frame(1, now)
            }
            _ if is_again => self.charge_frame(1, now),
            _ => self.charge_reset(now),
        }
    }
}

impl Traffic {
    fn count(&mut self, head: FrameHead) {
        self.head_bytes += crate::frame::HEAD_BYTES as u64;
        if !matches!(head.kind, kind::DATA | kind::HEADERS | kind::CONTINUATION) {
            self.other_bytes += u64::from(head.payload_bytes);
        }
    }
}

/// Whether a frame of a fixed size has it, where the connection is lost if not. Source: RFC 9113 §6.
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

/// How much of a payload the guard has to see.
fn wanted_bytes(head: FrameHead) -> usize {
    match head.kind {
        kind::DATA if head.has(flag::PADDED) => 1,
        kind::RST_STREAM => 4,
        kind::PRIORITY_UPDATE => 4 + PRIORITY_BYTES_MAX + 1,
        kind::GOAWAY => 8 + COMPLAINT_BYTES,
        kind::SETTINGS => SETTINGS_SEEN_BYTES,
        _ => 0,
    }
}

/// So many bytes of SETTINGS are looked at: every setting that there is, and as many again.
const SETTINGS_SEEN_BYTES: usize = 16 * 6;

/// Whether a stream's window is set to more than the protocol has. Source: RFC 9113 §6.5.2.
fn is_window_too_large(payload: &[u8]) -> bool {
    payload.as_chunks::<6>().0.iter().any(|setting| setting[..2] == [0, 4] && setting[2] & 0x80 != 0)
}

/// So many bytes of what the library says in a GOAWAY tell the reason.
const COMPLAINT_BYTES: usize = 32;

/// The words of the library `h2`, version 0.4, in the GOAWAY for each of its own limits. There is no other way to tell them apart.
fn abuse_in_words(words: &[u8]) -> Option<Abuse> {
    const COMPLAINTS: [(&[u8], Abuse); 5] = [
        (b"too_many_resets", Abuse::Resets),
        (b"too_many_internal_resets", Abuse::Resets),
        (b"too_many_continuations", Abuse::HeaderBlock),
        (b"header_list_way_too_large", Abuse::HeaderBlock),
        (b"too_many_data_frames", Abuse::EmptyFrames),
    ];
    COMPLAINTS.iter().find(|(complaint, _)| words.starts_with(complaint)).map(|(_, abuse)| *abuse)
}

/// What a payload says to the guard.
#[derive(PartialEq, Eq, Debug)]
enum Meaning {
    /// DATA with at least a byte of a body.
    Content,
    /// The code of RST_STREAM.
    Reset(u32),
    Priority(PriorityUpdate),
    /// A GOAWAY, and what it complains of.
    Farewell {
        is_error: bool,
        told: Option<Abuse>,
    },
    Broken(Verdict),
    Nothing,
}

impl Meaning {
    fn of(head: FrameHead, payload: &[u8]) -> Meaning {
        match head.kind {
            kind::DATA if content_bytes(head, payload) > 0 => Meaning::Content,
            kind::RST_STREAM => {
                payload.first_chunk().map_or(Meaning::Nothing, |code| Meaning::Reset(u32::from_be_bytes(*code)))
            }
            kind::PRIORITY_UPDATE => Meaning::of_priority(head, payload),
            // The library calls that an error of the protocol.
            kind::SETTINGS if is_window_too_large(payload) => {
                Meaning::Broken(Verdict::broken(ErrorCode::FlowControlError, "a window beyond the protocol's"))
            }
            kind::GOAWAY => Meaning::Farewell {
                is_error: payload.get(4..8).is_some_and(|code| code != [0; 4]),
                told: payload.get(8..).and_then(abuse_in_words),
            },
            _ => Meaning::Nothing,
        }
    }

    fn of_priority(head: FrameHead, payload: &[u8]) -> Meaning {
        let Some((stream, value)) = payload.split_first_chunk() else { return Meaning::Nothing };
        let stream = u32::from_be_bytes(*stream) & 0x7fff_ffff;
        if head.stream != 0 || stream == 0 {
            return Meaning::Broken(Verdict::broken(ErrorCode::ProtocolError, "a PRIORITY_UPDATE of no stream"));
        }
        let bytes_max = (head.payload_bytes as usize - 4).min(PRIORITY_BYTES_MAX + 1);
        Meaning::Priority(PriorityUpdate { stream, value: value[..value.len().min(bytes_max)].to_vec() })
    }
}

/// Bytes of a body in a DATA frame.
fn content_bytes(head: FrameHead, payload: &[u8]) -> u32 {
    if !head.has(flag::PADDED) {
        return head.payload_bytes;
    }
    let padding = payload.first().map_or(0, |bytes| u32::from(*bytes));
    head.payload_bytes.saturating_sub(1 + padding)
}
