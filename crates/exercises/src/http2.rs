//! Arbitrary bytes as the two directions of an HTTP/2 connection under guard, as frames that are mended, and as a request that asks for
//! HTTP/2.

use ::http2::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use ::http2::upgrade::{Beginning, beginning, opening, settings};
use ::http2::{Mending, Observer, PriorityUpdate, ResetLimits, Resets, Traffic, Verdict, Watch, WatchLimits};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use field_coding::integer;
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{H2_WATCHED_STREAMS_MAX, PRIORITIES_WAITING_MAX, PRIORITY_BYTES_MAX};

/// Bytes of one direction before it is the other's turn.
const TURN_BYTES: usize = 100;
const LIMITS: WatchLimits =
    WatchLimits { frame_bytes_max: 16384, block_bytes_max: 1000, list_bytes_max: 64 << 10, is_lenient: false };

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
    assert!(seen.priorities.len() <= PRIORITIES_WAITING_MAX);
    assert!(seen.priorities.iter().all(|update| update.value.len() <= PRIORITY_BYTES_MAX));
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

/// Mends what a client sends, whole and in pieces. The first byte is the size of the pieces; if the second is odd, pseudo headers may
/// come late. The rest follows a preface.
///
/// # Panics
/// When the pieces make a difference, when more is changed than the payload of HEADERS and the kind of DATA, WINDOW_UPDATE and
/// (where that is allowed) PRIORITY, when a byte is lost, and
/// when heads that were mended are mended again.
pub fn mending(bytes: &[u8]) {
    let Some(([size, start], rest)) = bytes.split_first_chunk() else { return };
    let is_lenient = start % 2 == 1;
    let whole = mended(rest, is_lenient, usize::MAX);
    assert_eq!(mended(rest, is_lenient, usize::from(*size) + 1), whole, "pieces of {size}");
    let (mut before, mut after) = (rest, &whole[..]);
    assert!(before.len() - after.len() < HEAD_BYTES + (1 << 24), "no more than a frame is kept");
    let again = mended(&whole, is_lenient, usize::MAX);
    assert_eq!(again.len(), whole.len());
    while let (Some(head), Some(mended)) = (before.first_chunk::<HEAD_BYTES>(), after.first_chunk::<HEAD_BYTES>()) {
        let (head, mended) = (FrameHead::parse(head), FrameHead::parse(mended));
        assert_eq!(FrameHead { kind: head.kind, ..mended }, head);
        let may_change =
            matches!(head.kind, kind::DATA | kind::WINDOW_UPDATE) || head.kind == kind::PRIORITY && is_lenient;
        assert!(mended.kind == head.kind || may_change, "{head:?} {mended:?}");
        let at = whole.len() - after.len();
        let end = HEAD_BYTES + (head.payload_bytes as usize).min(after.len() - HEAD_BYTES);
        if head.kind == kind::HEADERS {
            assert_eq!(again[at..at + end], after[..end]);
        } else {
            assert_eq!(after[HEAD_BYTES..end], before[HEAD_BYTES..end]);
        }
        (before, after) = (&before[end..], &after[end..]);
    }
}

/// What comes out for bytes behind a preface, in pieces; without what is kept.
fn mended(bytes: &[u8], is_lenient: bool, size: usize) -> Vec<u8> {
    let mut mending = Mending::new(is_lenient);
    assert_eq!(mending.look(&mut PREFACE.to_vec()), PREFACE.len());
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let missing = mending.missing();
        let (piece, behind) = rest.split_at(size.min(rest.len()).min(if missing > 0 { missing } else { usize::MAX }));
        if missing > 0 {
            out.extend(mending.complete(piece).unwrap_or_default());
        } else {
            let mut piece = piece.to_vec();
            let passed = mending.look(&mut piece);
            out.extend_from_slice(&piece[..passed]);
        }
        rest = behind;
    }
    out
}

/// Takes the first line of `bytes` for the value of `HTTP2-Settings`, the second for fields (`name: value` with `;` between them), and the rest
/// for what the client says after the 101, behind a preface.
///
/// # Panics
/// When settings are torn or others when written again, when a beginning is complete before its last byte or changes with what follows it,
/// and when the bytes that stand for the request do not say it.
pub fn upgrade(bytes: &[u8]) {
    let mut lines = bytes.splitn(3, |byte| *byte == b'\n');
    let (Some(header), Some(fields), Some(said)) = (lines.next(), lines.next(), lines.next()) else { return };
    let own = settings(header);
    if let Some(own) = &own {
        assert!(own.len() % 6 == 0 && own.len() <= header.len(), "{} bytes", own.len());
        assert_eq!(settings(URL_SAFE_NO_PAD.encode(own).as_bytes()).as_ref(), Some(own));
    }
    let own = own.unwrap_or_default();
    let received = [&PREFACE[..], said].concat();
    let whole = beginning(&received, own.len());
    for end in 0..received.len() {
        let now = beginning(&received[..end], own.len());
        match whole {
            Beginning::Complete(count) if end >= count => assert_eq!(now, whole),
            Beginning::Complete(_) | Beginning::Partial => assert_eq!(now, Beginning::Partial, "{end}"),
            Beginning::Wrong => assert!(!matches!(now, Beginning::Complete(_)), "{end}"),
        }
    }
    let Beginning::Complete(count) = whole else { return };
    let fields: Vec<(&[u8], &[u8])> = fields
        .split(|byte| *byte == b';')
        .filter_map(|field| field.iter().position(|byte| *byte == b':').map(|at| (&field[..at], &field[at + 1..])))
        .collect();
    if let Some(opening) = opening(&received[..count], &own, fields.iter().copied()) {
        check_opening(&opening, &[&own, &received[PREFACE.len() + HEAD_BYTES..count]].concat(), &fields);
    }
}

/// The preface, one SETTINGS frame with all settings, and one block with all fields that ends its stream.
fn check_opening(opening: &[u8], settings: &[u8], fields: &[(&[u8], &[u8])]) {
    let mut rest = opening.strip_prefix(PREFACE).expect("a preface");
    let mut block = Vec::new();
    for number in 0.. {
        let Some(head) = rest.first_chunk::<HEAD_BYTES>() else { break };
        let head = FrameHead::parse(head);
        let (payload, after) = rest[HEAD_BYTES..].split_at(head.payload_bytes as usize);
        assert!(head.payload_bytes <= LIMITS.frame_bytes_max);
        match number {
            0 => assert_eq!((head.kind, head.flags, head.stream, payload), (kind::SETTINGS, 0, 0, settings)),
            1 => assert!(head.kind == kind::HEADERS && head.has(flag::END_STREAM)),
            _ => assert_eq!(head.kind, kind::CONTINUATION),
        }
        if number > 0 {
            assert_eq!((head.stream, head.has(flag::END_HEADERS)), (1, after.is_empty()));
            block.extend_from_slice(payload);
        }
        rest = after;
    }
    assert!(rest.is_empty());
    let mut block = &block[..];
    for (name, value) in fields {
        assert_eq!(block.split_off_first(), Some(&0), "a literal with a new name");
        for text in [name.to_ascii_lowercase(), value.to_vec()] {
            let length = integer::read(&mut block, 7, 4).unwrap() as usize;
            assert_eq!(block.split_off(..length), Some(&text[..]));
        }
    }
    assert!(block.is_empty());
}
