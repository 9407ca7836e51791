//! The server's side of a connection: [`Machine`].
//!
//! ```text
//!            bytes ─▶ receive ─▶ take_request, take_woken ─▶ the engine's requests
//!           output ◀─ send_head, send_data, reset … ◀────────┘
//!
//! Open ─leave→ Leaving (GOAWAY, PING) ─answered→ Closing (last GOAWAY) ─no open stream→ finished
//!   └ fault, abuse, go_away, end of the client's bytes ─────────────────────────────▶ finished
//! ```
//!
//! The caller owns the socket: it gives the machine each piece of bytes that it reads, and writes
//! [`Machine::output`], which holds the frames of all streams in the order of sending. A stream's
//! body is pulled: a sender whose window or turn has not come has to wait, and is in
//! [`Machine::take_woken`] once it may try again. Times are those since the connection began.
//!
//! *Invariants:* nothing depends on the pieces in which bytes arrive, but the time of their
//! arrival; memory is bounded by the limits for any input; the state of both compression tables is
//! that of the other side, whatever becomes of a stream. The client's bytes of a body are bounded
//! by its windows, those for the client by a named limit and one head for each stream.
//! Source: RFC 9113. Next files: `machine/received.rs`, `machine/requests.rs`,
//! `machine/responses.rs`.

mod received;
mod requests;
mod responses;
mod written;

use crate::allowance::Allowance;
use crate::frame::{ErrorCode, FrameHead, PREFACE};
use crate::head::{HeadPool, HeadRules, RequestHead};
use crate::hpack::{Decoder, Encoder};
use crate::order::Order;
use crate::priority::{Priority, WaitingPriorities};
use crate::reader::FrameReader;
use crate::resets::Resets;
use crate::streams::{Closed, Streams};
use crate::verdict::{Abuse, Verdict};
use crate::windows::{WINDOW_AT_FIRST, Window};
use bytes::Bytes;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use surface::limits::H2_LATE_DATA_MAX;

/// Settings of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MachineSettings {
    /// The most streams at a time.
    pub streams_max: u32,
    /// The largest payload of a frame, in bytes.
    pub frame_bytes_max: u32,
    /// Size of the client's compression table, in bytes.
    pub table_bytes: u32,
    /// Window of each stream, in bytes.
    pub stream_window: u32,
    /// Window of the connection from the first request with a body on, in bytes.
    pub connection_window: u32,
    /// The connection's window grows by this many bytes with each DATA frame; 0 for all at once.
    pub growth_step: u32,
    /// A stream's credit is announced in lumps of this many bytes; 1 announces each piece that is
    /// read.
    pub credit_bytes: u32,
    /// Longest encoded block of header fields, all its frames together, in bytes.
    pub block_bytes_max: usize,
    /// The largest list of header fields, in bytes as RFC 9113 §6.5.2 counts them.
    pub list_bytes_max: u32,
    /// That limit is announced.
    pub announces_list_limit: bool,
    /// Extended CONNECT is offered.
    pub offers_connect: bool,
    /// Faults that Varnish forgives are forgiven, and error codes are Varnish's: a client may
    /// acknowledge our SETTINGS before it sends its own, pseudo headers may follow other fields,
    /// and priorities are not checked.
    pub is_lenient: bool,
}

/// Receives the client's frames, for a log.
pub trait Observer {
    /// Number of bytes requested of the beginning of a payload.
    fn wanted_bytes(&self) -> usize;

    /// The client has sent a frame: its head, and the beginning of its payload.
    fn received(&mut self, head: FrameHead, payload: &[u8]);
}

/// Frames and bytes of a connection that belong to no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes of heads of frames, nine each.
    pub head_bytes: u64,
    /// Bytes of payloads other than those of DATA and of header blocks.
    pub other_bytes: u64,
}

/// A request that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRequest {
    /// Its stream.
    pub stream: u32,
    /// Its head.
    pub head: RequestHead,
    /// It has ended with its head.
    pub is_last: bool,
}

/// The next part of a request's body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BodyPart {
    /// These bytes.
    Bytes(Bytes),
    /// Nothing yet: the stream will be woken.
    Nothing,
    /// The body is over.
    End,
}

/// Outcome of sending a piece of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// This number of bytes was sent.
    Sent(usize),
    /// The client's windows are exhausted: the stream will be woken.
    NoWindow,
    /// It is not the turn of this stream, or there is no room: the stream will be woken.
    NoTurn,
}

/// The stream is over: reset by one side, or its connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamGone;

/// A header block that is not complete.
#[derive(Debug)]
struct OpenBlock {
    stream: u32,
    /// It opens the stream.
    is_new: bool,
    /// The request ends with it.
    is_last: bool,
    is_malformed: bool,
    began: Duration,
    continuations: usize,
    /// The fragments of its complete frames.
    bytes: Vec<u8>,
    /// Bytes of the payloads of its frames, padding included.
    payload_bytes: usize,
}

/// The DATA frame under way.
#[derive(Clone, Copy, Debug, Default)]
struct OpenData {
    /// The length of the padding is awaited.
    awaits_padding: bool,
    /// Bytes of the body in the whole frame, as far as is known.
    content_bytes: u32,
    /// Those of them that were read.
    content_read: u32,
    /// Those of them that the stream has got.
    delivered: u32,
    /// The stream takes them.
    is_wanted: bool,
}

/// Progress of the end of a connection without a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// The client knows that the connection ends, and may have opened streams before.
    Leaving,
    /// No new streams.
    Closing,
}

/// One connection.
#[derive(Debug)]
pub struct Machine {
    settings: MachineSettings,
    phase: Phase,
    verdict: Option<Verdict>,
    /// No more bytes are read.
    is_over: bool,
    /// The code of the client's GOAWAY.
    left_by_client: Option<u32>,

    preface_left: usize,
    has_settings: bool,
    is_acknowledged: bool,
    reader: FrameReader,
    block: Option<OpenBlock>,
    data: OpenData,
    decoder: Decoder,
    rules: HeadRules,
    incomplete_since: Option<Duration>,

    streams: Streams,
    closed: Closed,
    /// Number of streams that count for the protocol.
    open_streams: usize,
    /// Number of requests that were taken and not forgotten.
    taken: usize,
    /// The last stream that the client has opened.
    last_stream: u32,
    requests: VecDeque<u32>,
    heads: Rc<HeadPool>,
    woken: Vec<u32>,
    /// Streams whose bytes were used since their windows were announced.
    credited: Vec<u32>,
    too_large: Vec<u32>,
    refused: u64,
    priorities: WaitingPriorities,

    /// For the client's bytes.
    window: Window,
    growth_left: u64,
    is_window_raised: bool,
    body_bytes: usize,

    resets: Rc<Resets>,
    allowance: Allowance,
    late_left: u32,
    /// The stream that was reset last.
    reset_last: u32,
    traffic: [Traffic; 2],

    encoder: Encoder,
    order: Order,
    /// Number of bytes that may be sent on all streams together.
    send_window: i64,
    /// The client's settings: a stream's window, and the largest payload.
    stream_send_window: i64,
    payload_bytes_max: usize,
    out: Vec<u8>,
    /// Number of bytes of `out` that were sent.
    sent_bytes: usize,
}

/// Largest payload of a frame at the beginning. Source: RFC 9113 §6.5.2.
const PAYLOAD_BYTES_AT_FIRST: usize = 16 << 10;

impl Machine {
    /// A new connection; its SETTINGS are in the output. The budget of resets is shared with VCL,
    /// the memory of heads with other connections.
    #[must_use]
    pub fn new(settings: MachineSettings, resets: Rc<Resets>, heads: Rc<HeadPool>) -> Machine {
        let rules = HeadRules {
            list_bytes_max: settings.list_bytes_max as usize,
            is_lenient: settings.is_lenient,
            offers_connect: settings.offers_connect,
        };
        let mut machine = Machine {
            settings,
            phase: Phase::Open,
            verdict: None,
            is_over: false,
            left_by_client: None,
            preface_left: PREFACE.len(),
            has_settings: false,
            is_acknowledged: false,
            reader: FrameReader::default(),
            block: None,
            data: OpenData::default(),
            decoder: Decoder::new(settings.table_bytes as usize),
            rules,
            incomplete_since: Some(Duration::ZERO),
            streams: Streams::default(),
            closed: Closed::default(),
            open_streams: 0,
            taken: 0,
            last_stream: 0,
            requests: VecDeque::new(),
            heads,
            woken: Vec::new(),
            credited: Vec::new(),
            too_large: Vec::new(),
            refused: 0,
            priorities: WaitingPriorities::default(),
            window: Window::new(WINDOW_AT_FIRST),
            growth_left: 0,
            is_window_raised: false,
            body_bytes: 0,
            resets,
            allowance: Allowance::default(),
            late_left: H2_LATE_DATA_MAX,
            reset_last: 0,
            traffic: [Traffic::default(); 2],
            encoder: Encoder::default(),
            order: Order::default(),
            send_window: WINDOW_AT_FIRST,
            stream_send_window: WINDOW_AT_FIRST,
            payload_bytes_max: PAYLOAD_BYTES_AT_FIRST,
            out: Vec::new(),
            sent_bytes: 0,
        };
        machine.write_settings();
        machine
    }

    /// The reason why the connection has ended, if it is the client's fault.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// The code of the client's GOAWAY.
    #[must_use]
    pub fn left_by_client(&self) -> Option<u32> {
        self.left_by_client
    }

    /// True if nothing more is received: the connection is over, or has no open stream and gets no
    /// new one. What is in the output should still be sent.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        let gets_no_stream = self.phase == Phase::Closing || self.left_by_client.is_some();
        self.is_over || (gets_no_stream && self.open_streams == 0 && self.requests.is_empty())
    }

    /// Time since when the preface, a frame or a header block has been incomplete; for DATA, the
    /// time of its last bytes.
    #[must_use]
    pub fn incomplete_since(&self) -> Option<Duration> {
        self.incomplete_since
    }

    /// Frames received and sent besides requests and responses.
    #[must_use]
    pub fn traffic(&self) -> (Traffic, Traffic) {
        (self.traffic[0], self.traffic[1])
    }

    /// Bytes of bodies that were received and not used.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Bytes of heads that were not taken, and of trailers.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        let open = self.block.as_ref().map_or(0, |block| block.bytes.len());
        open + self.streams.iter().map(crate::streams::Stream::head_bytes).sum::<usize>()
    }

    /// Number of streams that were refused since the last call.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// The streams that were answered with 431 since the last call, since their heads are too
    /// large.
    pub fn take_too_large(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.too_large)
    }

    /// Takes one of the streams for which something has happened since their sender or reader was
    /// told to wait.
    pub fn take_woken(&mut self) -> Option<u32> {
        self.woken.pop()
    }

    fn wake(&mut self, stream: u32) {
        if !self.woken.contains(&stream) {
            self.woken.push(stream);
        }
    }

    /// Ends the connection because of the client: a GOAWAY is in the output.
    fn fail(&mut self, verdict: Verdict) {
        if !self.is_over {
            self.verdict = Some(verdict);
            self.go_away(verdict.code);
        }
    }

    /// Sends a GOAWAY, and ends the connection with all its streams.
    pub fn go_away(&mut self, code: ErrorCode) {
        if !self.is_over {
            self.write_goaway(self.last_stream, code);
            self.end();
        }
    }

    /// The connection is gone: nothing more is received, and all streams are over.
    pub fn end(&mut self) {
        self.is_over = true;
        self.requests.clear();
        self.block = None;
        for stream in self.streams.iter_mut() {
            stream.is_gone = true;
            self.woken.push(stream.id);
        }
        self.open_streams = 0;
        self.woken.sort_unstable();
        self.woken.dedup();
    }

    /// Sends a GOAWAY, and finishes after the streams that are open, and those that the client has
    /// opened before it has heard of that.
    pub fn leave(&mut self) {
        if self.phase == Phase::Open && !self.is_over && self.left_by_client.is_none() {
            self.phase = Phase::Leaving;
            self.write_first_goaway();
        }
    }

    fn charge_frame(&mut self, cost: u32, now: Duration) {
        if !self.allowance.charge(cost, now) {
            self.fail(Verdict::too_much(Abuse::EmptyFrames, "too many frames that carry nothing"));
        }
    }

    fn charge_reset(&mut self, now: Duration) {
        if !self.resets.charge(now) {
            self.fail(Verdict::too_much(Abuse::Resets, "too many streams were reset"));
        }
    }

    /// Sets the priority of a stream that has begun.
    fn prioritise(&mut self, stream: u32, priority: Priority) {
        if let Some(known) = self.streams.get_mut(stream) {
            known.priority = priority;
            self.order.prioritise(stream, priority);
        } else if stream > self.last_stream {
            self.priorities.put(stream.into(), priority);
        }
    }
}
