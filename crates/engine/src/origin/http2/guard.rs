//! The connection guard between a connection to an origin and the HTTP/2 library: reads the
//! received frames, and changes nothing.
//!
//! It records facts that the library does not report: receipt of the origin's settings, the
//! requests that a GOAWAY leaves unprocessed, complete responses, and the time of the last bytes.
//! It also ends connections on which an origin sends frames that cost work and carry nothing,
//! faster than the traffic explains: each takes from a budget, which is refilled by time, by
//! Copal's frames and by pieces of bodies. The library checks lengths and contents. Source: RFC
//! 9113 §4.1, §6, §10.5.

use super::pseudo::HeadBlocks;
use http2::frame::{FrameHead, PREFACE, flag, kind};
use http2::{Found, FrameReader};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use surface::limits::{HTTP2_LIGHT_FRAMES_A_SECOND, HTTP2_LIGHT_FRAMES_MAX, INTERIM_MAX};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Bytes of the payload of a GOAWAY with the last processed stream.
const LAST_STREAM_BYTES: usize = 4;
/// Number of an origin's frames that are explained by a head or a piece of a body that Copal sends
/// (WINDOW_UPDATE, PING to measure).
const FRAMES_A_SENT_FRAME: u64 = 4;
/// Number of an origin's frames that are explained by a piece of a body that it sends.
const FRAMES_A_RECEIVED_PIECE: u64 = 2;

/// Number of empty DATA frames after which no more requests are sent on a connection. The library
/// ends a connection that has received a hundred of them over all of its life.
const EMPTY_PIECES_MAX: u32 = 60;

/// Heads that a stream may have before its last: interim ones, and that of the response.
const HEADS_MAX: u32 = INTERIM_MAX as u32 + 2;

/// Reason for ending such a connection.
pub(super) const FLOOD: &str = "flood of frames that carry nothing";

/// Observations of a connection.
pub(super) struct Seen {
    /// The origin's settings were received.
    pub(super) is_settled: Cell<bool>,
    /// The last stream that the origin has processed or may still process, if it has sent a GOAWAY.
    pub(super) last_stream: Cell<Option<u32>>,
    /// Reason why Copal ends the connection.
    pub(super) fault: Cell<Option<&'static str>>,
    /// Time of the last received bytes.
    pub(super) received_at: Cell<Instant>,
    /// DATA frames without bytes that ended nothing.
    empty_pieces: Cell<u32>,
    /// The streams in use.
    pub(super) streams: RefCell<HashMap<u32, Progress>>,
}

/// Progress of a stream.
#[derive(Clone, Copy, Default)]
pub(super) struct Progress {
    /// The end of the response was received.
    has_ended: bool,
    /// Heads after which more must follow. The library keeps them until they are polled.
    heads: u32,
    /// A head has fields that only a request may have.
    is_malformed: bool,
}

impl Seen {
    pub(super) fn new() -> Rc<Seen> {
        Rc::new(Seen {
            is_settled: Cell::new(false),
            last_stream: Cell::new(None),
            fault: Cell::new(None),
            received_at: Cell::new(Instant::now()),
            empty_pieces: Cell::new(0),
            streams: RefCell::default(),
        })
    }

    /// Records a head; false if that is one head too many.
    fn note(&self, head: FrameHead) -> bool {
        let mut streams = self.streams.borrow_mut();
        let progress = streams.get_mut(&head.stream);
        match (head.kind, progress) {
            (kind::SETTINGS, _) if !head.has(flag::ACK) => self.is_settled.set(true),
            (kind::DATA | kind::HEADERS, Some(progress)) if head.has(flag::END_STREAM) => progress.has_ended = true,
            (kind::HEADERS, Some(progress)) => {
                progress.heads += 1;
                return progress.heads <= HEADS_MAX;
            }
            (kind::DATA, _) if head.payload_bytes == 0 && !head.has(flag::END_STREAM) => {
                self.empty_pieces.set(self.empty_pieces.get() + 1);
            }
            _ => {}
        }
        true
    }

    /// True if the library is about to end the connection because of the frames received on it.
    pub(super) fn is_worn(&self) -> bool {
        self.empty_pieces.get() > EMPTY_PIECES_MAX
    }

    /// Reads the beginning of a GOAWAY. Of several the lowest number counts.
    fn note_last_stream(&self, payload: &[u8]) {
        let Ok(number) = <[u8; LAST_STREAM_BYTES]>::try_from(payload) else { return };
        let number = u32::from_be_bytes(number) & 0x7fff_ffff;
        self.last_stream.set(Some(self.last_stream.get().map_or(number, |last| last.min(number))));
    }

    /// True if the origin has declared that it will not process a stream.
    pub(super) fn is_unprocessed(&self, stream: u32) -> bool {
        self.last_stream.get().is_some_and(|last| stream > last)
    }

    /// Records a malformed head.
    fn note_malformed(&self, stream: u32) {
        if let Some(progress) = self.streams.borrow_mut().get_mut(&stream) {
            progress.is_malformed = true;
        }
    }

    /// True if a head on a stream was malformed in a way that the library does not detect.
    pub(super) fn is_malformed(&self, stream: u32) -> bool {
        self.streams.borrow().get(&stream).is_some_and(|progress| progress.is_malformed)
    }

    /// True if the end of the response on a stream was received.
    pub(super) fn has_ended(&self, stream: u32) -> bool {
        self.streams.borrow().get(&stream).is_some_and(|progress| progress.has_ended)
    }
}

/// Number of useless frames that are still tolerated.
struct Budget {
    frames: u64,
    refilled_at: Instant,
}

impl Budget {
    fn new() -> Budget {
        Budget { frames: HTTP2_LIGHT_FRAMES_MAX, refilled_at: Instant::now() }
    }

    fn add(&mut self, frames: u64) {
        self.frames = (self.frames + frames).min(HTTP2_LIGHT_FRAMES_MAX);
    }

    /// Takes one; false if there is none left.
    fn take(&mut self) -> bool {
        if self.frames == 0 {
            let elapsed = self.refilled_at.elapsed().as_secs_f64();
            self.refilled_at = Instant::now();
            self.add((elapsed * HTTP2_LIGHT_FRAMES_A_SECOND as f64) as u64);
        }
        let is_left = self.frames > 0;
        self.frames = self.frames.saturating_sub(1);
        is_left
    }
}

/// A connection whose frames are watched.
pub(super) struct Guarded<S> {
    stream: S,
    received: FrameReader,
    sent: FrameReader,
    blocks: HeadBlocks,
    /// Bytes that Copal sends before the first frame.
    preface_left: usize,
    budget: Budget,
    seen: Rc<Seen>,
}

impl<S> Guarded<S> {
    pub(super) fn new(stream: S, seen: Rc<Seen>) -> Guarded<S> {
        Guarded {
            stream,
            received: FrameReader::default(),
            sent: FrameReader::default(),
            blocks: HeadBlocks::default(),
            preface_left: PREFACE.len(),
            budget: Budget::new(),
            seen,
        }
    }

    fn look(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.seen.received_at.set(Instant::now());
        while let Some(found) = self.received.next(&mut bytes) {
            match found {
                Found::Head(head) => {
                    let is_goaway = head.kind == kind::GOAWAY;
                    self.received.keep(if is_goaway { LAST_STREAM_BYTES } else { HeadBlocks::wanted_bytes(head) });
                }
                // Not requested.
                Found::Piece(..) => {}
                Found::End(head, payload) => {
                    if head.kind == kind::GOAWAY {
                        self.seen.note_last_stream(payload);
                    }
                    if self.blocks.take(head, payload) {
                        self.seen.note_malformed(head.stream);
                    }
                    let is_expected = self.seen.note(head);
                    if head.kind == kind::DATA && head.payload_bytes > 0 {
                        self.budget.add(FRAMES_A_RECEIVED_PIECE);
                    }
                    if !is_expected || is_light(head) && !self.budget.take() {
                        self.seen.fault.set(Some(FLOOD));
                        return Err(io::Error::other(FLOOD));
                    }
                }
            }
        }
        Ok(())
    }

    fn note_sent(&mut self, bytes: &[u8]) {
        let preface = self.preface_left.min(bytes.len());
        self.preface_left -= preface;
        let mut bytes = &bytes[preface..];
        while let Some(found) = self.sent.next(&mut bytes) {
            if matches!(found, Found::Head(head) if matches!(head.kind, kind::DATA | kind::HEADERS)) {
                self.budget.add(FRAMES_A_SENT_FRAME);
            }
        }
    }
}

/// Everything but the head of a response and a piece of a body. A head is covered by the request
/// that it answers, but an origin may send many interim ones.
fn is_light(head: FrameHead) -> bool {
    match head.kind {
        kind::DATA => head.payload_bytes == 0 && !head.has(flag::END_STREAM),
        kind::HEADERS => !head.has(flag::END_STREAM),
        _ => true,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, into) {
            Poll::Ready(Ok(())) if into.filled().len() > before => Poll::Ready(self.look(&into.filled()[before..])),
            polled => polled,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = polled {
            self.note_sent(&bytes[..count.min(bytes.len())]);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        if let Poll::Ready(Ok(mut left)) = polled {
            for piece in pieces {
                let count = left.min(piece.len());
                self.note_sent(&piece[..count]);
                left -= count;
            }
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
        [&head.to_bytes()[..], payload].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn origin_frames_are_recorded_in_any_pieces() {
        let bytes = [
            frame(kind::SETTINGS, 0, 0, b"123456"),
            frame(kind::DATA, flag::END_STREAM, 1, &[7; 300]),
            frame(kind::GOAWAY, 0, 0, b"\x80\0\0\x05\0\0\0\0why"),
            frame(kind::GOAWAY, 0, 0, b"\0\0\0\x07\0\0\0\0"),
            frame(kind::GOAWAY, 0, 0, b"ab"),
        ]
        .concat();
        for size in [1, 2, 7, 9, 13, 100, bytes.len()] {
            let seen = Seen::new();
            seen.streams.borrow_mut().extend([(1, Progress::default()), (3, Progress::default())]);
            let mut guarded = Guarded::new(tokio::io::empty(), Rc::clone(&seen));
            for piece in bytes.chunks(size) {
                guarded.look(piece).unwrap();
            }
            assert!(seen.is_settled.get() && seen.has_ended(1) && !seen.has_ended(3), "pieces of {size}");
            assert!(seen.is_unprocessed(7) && !seen.is_unprocessed(5), "pieces of {size}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn heads_of_a_stream_and_empty_pieces_of_a_connection_have_a_number() {
        let seen = Seen::new();
        seen.streams.borrow_mut().insert(1, Progress::default());
        let mut guarded = Guarded::new(tokio::io::empty(), Rc::clone(&seen));
        let (head, empty) = (frame(kind::HEADERS, flag::END_HEADERS, 1, b"head"), frame(kind::DATA, 0, 1, b""));
        for _ in 0..HEADS_MAX {
            guarded.look(&head).unwrap();
        }
        for _ in 0..EMPTY_PIECES_MAX {
            guarded.look(&empty).unwrap();
            assert!(!seen.is_worn());
        }
        guarded.look(&empty).unwrap();
        assert!(seen.is_worn());
        assert!(guarded.look(&head).is_err());
        assert_eq!(seen.fault.get(), Some(FLOOD));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_without_use_are_paid_for_with_time_and_with_what_is_sent() {
        let mut budget = Budget::new();
        let taken = (0..).take_while(|_| budget.take()).count() as u64;
        assert_eq!(taken, HTTP2_LIGHT_FRAMES_MAX);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        let taken = (0..).take_while(|_| budget.take()).count() as u64;
        assert_eq!(taken, HTTP2_LIGHT_FRAMES_A_SECOND);
        budget.add(FRAMES_A_SENT_FRAME);
        let taken = (0..).take_while(|_| budget.take()).count() as u64;
        assert_eq!(taken, FRAMES_A_SENT_FRAME);
    }
}
