//! Arbitrary bytes as the two directions of an HTTP/2 connection under guard.

use ::http2::frame::{FrameHead, HEAD_BYTES, PREFACE, kind};
use ::http2::{Observer, PriorityUpdate, ResetLimits, Resets, Traffic, Verdict, Watch, WatchLimits};
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{H2_PRIORITIES_WAITING_MAX, H2_PRIORITY_BYTES_MAX, H2_WATCHED_STREAMS_MAX};

/// Bytes of one direction before it is the other's turn.
const TURN_BYTES: usize = 100;
const LIMITS: WatchLimits = WatchLimits { frame_bytes_max: 16384, block_bytes_max: 1000 };

/// Shows a connection to the guard twice, by turns whole and in pieces. The first byte is the size of the pieces; if the second
/// is odd, the client begins with the preface and its SETTINGS; the next two say how many bytes of the rest it sends. The others
/// are ours.
///
/// # Panics
/// When the pieces make a difference, when a frame that is not allowed is passed on or nothing is said of one that is, and
/// when more is remembered than the limits say.
pub fn guard(bytes: &[u8]) {
    let Some(([size, start, low, high], rest)) = bytes.split_first_chunk() else { return };
    let (client, server) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(rest.len()));
    let mut received = Vec::new();
    if start % 2 == 1 {
        received.extend_from_slice(PREFACE);
        received.extend_from_slice(&[0, 0, 0, kind::SETTINGS, 0, 0, 0, 0, 0]);
    }
    received.extend_from_slice(client);
    let whole = watched(&received, server, usize::MAX);
    assert_eq!(watched(&received, server, usize::from(*size) + 1), whole, "pieces of {size}");

    let frames = frames(received.strip_prefix(PREFACE).unwrap_or_default());
    assert!(frames.starts_with(&whole.received), "frames that are there: {:?} {frames:?}", whole.received);
    if whole.verdict.is_none() {
        assert_eq!(whole.received, frames, "and all of them");
    }
    assert!(whole.received.iter().rev().skip(1).all(|head| head.payload_bytes <= LIMITS.frame_bytes_max));
}

/// All that the guard says of a connection.
#[derive(PartialEq, Eq, Debug, Default)]
struct Seen {
    received: Vec<FrameHead>,
    sent: Vec<FrameHead>,
    verdict: Option<Verdict>,
    priorities: Vec<PriorityUpdate>,
    open_streams: usize,
    incomplete_since: Option<Duration>,
    traffic: (Traffic, Traffic),
    /// Of the budget of resets.
    left: u64,
}

impl Observer for Seen {
    fn wanted_bytes(&self) -> usize {
        3
    }

    fn received(&mut self, head: FrameHead, payload: &[u8]) {
        assert!(payload.len() <= head.payload_bytes as usize);
        self.received.push(head);
    }

    fn sent(&mut self, head: FrameHead, payload: &[u8]) {
        assert!(payload.len() <= head.payload_bytes as usize);
        self.sent.push(head);
    }
}

fn watched(received: &[u8], sent: &[u8], size: usize) -> Seen {
    let resets = Rc::new(Resets::new(ResetLimits { rapid: 1.0, limit: 3, period: 60.0 }));
    let mut watch = Watch::new(LIMITS, Rc::clone(&resets));
    let mut seen = Seen::default();
    let (mut client, mut server) = (received.chunks(TURN_BYTES), sent.chunks(TURN_BYTES));
    let mut now = Duration::ZERO;
    loop {
        let turn = (client.next(), server.next());
        for piece in turn.0.unwrap_or_default().chunks(size) {
            let ended = watch.verdict().is_some();
            let passed = watch.receive(piece, now, Some(&mut seen));
            let ends = watch.verdict().is_some();
            assert!(passed <= piece.len() && (ends || passed == piece.len()), "no verdict, no loss");
            assert!(!ended || passed == 0, "after a verdict nothing is passed on");
        }
        for piece in turn.1.unwrap_or_default().chunks(size) {
            watch.send(piece, now, Some(&mut seen));
        }
        if turn == (None, None) {
            break;
        }
        now += Duration::from_millis(300);
    }
    seen.priorities = watch.take_priorities();
    assert!(seen.priorities.len() <= H2_PRIORITIES_WAITING_MAX);
    assert!(seen.priorities.iter().all(|update| update.value.len() <= H2_PRIORITY_BYTES_MAX));
    assert!(watch.open_streams() <= H2_WATCHED_STREAMS_MAX);
    Seen {
        verdict: watch.verdict(),
        open_streams: watch.open_streams(),
        // Whether pieces of a frame came together or apart makes no difference to when it began, only to DATA.
        incomplete_since: watch.incomplete_since().filter(|_| watch.verdict().is_none()),
        traffic: watch.traffic(),
        left: resets.left().to_bits(),
        ..seen
    }
}

/// The complete frames, read in the plainest way.
fn frames(mut bytes: &[u8]) -> Vec<FrameHead> {
    let mut all = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let head = FrameHead::parse(head);
        let Some(rest) = rest.get(head.payload_bytes as usize..) else { break };
        bytes = rest;
        all.push(head);
    }
    all
}
