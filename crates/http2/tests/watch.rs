//! The guard as the connection's bytes drive it: what passes, what ends the connection and with which words.

use http2::frame::{ErrorCode, FrameHead, PREFACE, flag, kind};
use http2::{Abuse, Observer, PriorityUpdate, ResetLimits, Resets, Verdict, Watch, WatchLimits};
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{
    H2_CONTINUATIONS_MAX, H2_EMPTY_FRAMES_EARNED, H2_EMPTY_FRAMES_MAX, H2_EMPTY_FRAMES_PER_SECOND, H2_SETTINGS_COST,
    H2_WATCHED_STREAMS_MAX, PRIORITIES_WAITING_MAX, PRIORITY_BYTES_MAX,
};

const RESETS: ResetLimits = ResetLimits { rapid: 1.0, limit: 100, period: 60.0 };
const LIMITS: WatchLimits =
    WatchLimits { frame_bytes_max: 16384, block_bytes_max: 128 << 10, list_bytes_max: 64 << 10, is_lenient: false };

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes())
}

fn request(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &[0x82, 0x84, 0x86])
}

fn window_update(stream: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &[0, 0, 1, 0])
}

/// A connection and its time.
struct Peer {
    watch: Watch,
    now: Duration,
}

impl Peer {
    fn new() -> Peer {
        Peer { watch: Watch::new(LIMITS, Rc::new(Resets::new(RESETS))), now: Duration::ZERO }
    }

    /// A connection whose client has begun properly.
    fn begun() -> Peer {
        let mut peer = Peer::new();
        peer.takes(PREFACE);
        peer.takes(&frame(kind::SETTINGS, 0, 0, &[]));
        peer
    }

    /// All of it is passed on.
    fn takes(&mut self, bytes: &[u8]) {
        assert_eq!(self.watch.receive(bytes, self.now, None), bytes.len(), "{:?}", self.watch.verdict());
        assert_eq!(self.watch.verdict(), None);
    }

    /// None of it is passed on, and the connection ends.
    fn refuses(&mut self, bytes: &[u8]) -> Verdict {
        assert_eq!(self.watch.receive(bytes, self.now, None), 0);
        self.watch.verdict().unwrap()
    }

    /// How many of these frames are passed on before the connection ends; at most `most`.
    fn takes_of(&mut self, bytes: &[u8], most: usize) -> usize {
        (0..most).take_while(|_| self.watch.receive(bytes, self.now, None) == bytes.len()).count()
    }

    fn sends(&mut self, bytes: &[u8]) {
        self.watch.send(bytes, self.now, None);
    }

    fn abuse(&self) -> Option<Abuse> {
        let verdict = self.watch.verdict()?;
        assert_eq!(verdict.code, ErrorCode::EnhanceYourCalm);
        verdict.abuse
    }
}

#[test]
fn what_clients_do_every_day_passes() {
    let mut peer = Peer::begun();
    for number in 0..10_000_u32 {
        let stream = 2 * number + 1;
        peer.takes(&request(stream));
        peer.sends(&frame(kind::HEADERS, flag::END_HEADERS, stream, &[0x88]));
        peer.sends(&frame(kind::DATA, flag::END_STREAM, stream, &[0; 16384]));
        for _ in 0..4 {
            peer.takes(&window_update(stream));
            peer.takes(&window_update(0));
        }
        peer.takes(&frame(kind::PING, 0, 0, &[0; 8]));
    }
    assert_eq!(peer.watch.open_streams(), 0);
}

#[test]
fn an_upload_in_small_pieces_passes() {
    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x83, 0x84, 0x86]));
    assert_eq!(peer.takes_of(&frame(kind::DATA, 0, 1, b"x"), 100_000), 100_000);
    peer.takes(&frame(kind::DATA, flag::END_STREAM, 1, &[]));
}

#[test]
fn streams_reset_at_once_are_forgiven_up_to_the_limit() {
    let mut peer = Peer::begun();
    for number in 0..100 {
        peer.takes(&request(2 * number + 1));
        peer.takes(&reset(2 * number + 1, ErrorCode::Cancel));
    }
    peer.takes(&request(201));
    peer.refuses(&reset(201, ErrorCode::Cancel));
    assert_eq!(peer.abuse(), Some(Abuse::Resets));
}

#[test]
fn streams_reset_after_a_while_or_after_their_answer_do_not_count() {
    let mut peer = Peer::begun();
    for number in 0..1000 {
        let stream = 2 * number + 1;
        peer.takes(&request(stream));
        if number % 2 == 0 {
            peer.now += Duration::from_millis(1001);
        } else {
            peer.sends(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &[0x88]));
        }
        peer.takes(&reset(stream, ErrorCode::Cancel));
    }
    let mut resets_again = Peer::begun();
    resets_again.takes(&request(1));
    let taken = resets_again.takes_of(&reset(1, ErrorCode::Cancel), usize::MAX);
    assert!(taken <= H2_EMPTY_FRAMES_MAX as usize, "but they are frames that carry nothing");
    assert_eq!(resets_again.abuse(), Some(Abuse::EmptyFrames));
}

#[test]
fn resets_that_the_client_provokes_come_out_of_the_same_budget() {
    for code in [ErrorCode::ProtocolError, ErrorCode::FlowControlError, ErrorCode::StreamClosed] {
        let mut peer = Peer::begun();
        for number in 0..100 {
            let stream = 2 * number + 1;
            peer.takes(&request(stream));
            if number % 2 == 0 {
                peer.takes(&reset(stream, ErrorCode::Cancel));
            } else {
                peer.sends(&reset(stream, code));
            }
        }
        assert_eq!(peer.abuse(), None);
        peer.takes(&request(201));
        peer.sends(&reset(201, code));
        assert_eq!(peer.abuse(), Some(Abuse::Resets), "{code:?}");
        assert_eq!(peer.watch.receive(&request(203), peer.now, None), 0, "nothing more is passed on");
    }
}

#[test]
fn resets_that_are_ours_alone_cost_the_client_nothing() {
    let mut peer = Peer::begun();
    for number in 0..1000 {
        for (place, code) in [ErrorCode::NoError, ErrorCode::InternalError, ErrorCode::Cancel].into_iter().enumerate() {
            let stream = 2 * (3 * number + place as u32) + 1;
            peer.takes(&request(stream));
            peer.sends(&reset(stream, code));
        }
    }
    assert_eq!((peer.watch.verdict(), peer.watch.open_streams()), (None, 0));
}

#[test]
fn a_stream_that_is_reset_many_times_costs_one_reset() {
    // What is left of an upload that was refused: each DATA frame is answered with a RST_STREAM.
    let mut peer = Peer::begun();
    for _ in 0..1000 {
        peer.sends(&reset(1, ErrorCode::StreamClosed));
    }
    assert_eq!(peer.watch.verdict(), None);
}

#[test]
fn streams_without_end_beyond_what_is_served_end_the_connection() {
    let mut peer = Peer::begun();
    let mut refused = 0;
    while peer.watch.verdict().is_none() {
        let stream = 2 * refused + 1;
        peer.watch.receive(&request(stream), peer.now, None);
        peer.sends(&reset(stream, ErrorCode::RefusedStream));
        peer.takes_of(&frame(kind::PRIORITY, 0, stream, &[0; 5]), H2_EMPTY_FRAMES_EARNED as usize);
        refused += 1;
        assert!(refused < 2 * H2_EMPTY_FRAMES_MAX);
    }
    assert_eq!(peer.abuse(), Some(Abuse::EmptyFrames));
}

#[test]
fn what_the_library_complains_of_is_told() {
    for (words, abuse) in [
        (&b"too_many_resets"[..], Some(Abuse::Resets)),
        (b"too_many_internal_resets", Some(Abuse::Resets)),
        (b"header_list_way_too_large", Some(Abuse::HeaderBlock)),
        (b"too_many_continuations", Some(Abuse::HeaderBlock)),
        (b"too_many_data_frames", Some(Abuse::EmptyFrames)),
        (b"", None),
        (b"graceful", None),
    ] {
        let mut peer = Peer::begun();
        assert_eq!(peer.watch.told(), None);
        for piece in frame(kind::GOAWAY, 0, 0, &[&[0, 0, 0, 1, 0, 0, 0, 11], words].concat()).chunks(5) {
            peer.sends(piece);
        }
        assert_eq!((peer.watch.told(), peer.watch.verdict()), (abuse, None));
        assert!(peer.watch.is_failed());
    }
    let mut peer = Peer::begun();
    peer.sends(&frame(kind::GOAWAY, 0, 0, &[0; 8]));
    assert!(!peer.watch.is_failed(), "that was no error");
}

#[test]
fn a_block_has_a_bounded_number_of_frames_empty_ones_included() {
    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, flag::END_STREAM, 1, &[0x82]));
    for _ in 0..H2_CONTINUATIONS_MAX {
        peer.takes(&frame(kind::CONTINUATION, 0, 1, &[]));
    }
    peer.refuses(&frame(kind::CONTINUATION, 0, 1, &[]));
    assert_eq!(peer.abuse(), Some(Abuse::HeaderBlock));

    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, flag::END_STREAM, 1, &[0x82]));
    for _ in 0..H2_CONTINUATIONS_MAX {
        peer.takes(&frame(kind::CONTINUATION, 0, 1, &[]));
    }
    peer.takes(&frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[0x84, 0x86]));
    peer.takes(&request(3));
}

#[test]
fn a_block_has_a_bounded_number_of_bytes() {
    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, 0, 1, &[0; 16384]));
    let taken = peer.takes_of(&frame(kind::CONTINUATION, 0, 1, &[0; 16384]), 100);
    assert_eq!((1 + taken) * 16384, LIMITS.block_bytes_max);
    assert_eq!(peer.abuse(), Some(Abuse::HeaderBlock));
    let small = WatchLimits { block_bytes_max: 100, ..LIMITS };
    let mut watch = Watch::new(small, Rc::new(Resets::new(RESETS)));
    watch.receive(PREFACE, Duration::ZERO, None);
    watch.receive(&frame(kind::SETTINGS, 0, 0, &[]), Duration::ZERO, None);
    assert_eq!(watch.receive(&frame(kind::HEADERS, flag::END_HEADERS, 1, &[0; 101]), Duration::ZERO, None), 0);
    assert_eq!(watch.verdict().unwrap().abuse, Some(Abuse::HeaderBlock));
}

#[test]
fn frames_that_carry_nothing_have_a_rate() {
    let floods = [
        (frame(kind::PING, 0, 0, &[0; 8]), 1),
        (frame(kind::PING, flag::ACK, 0, &[0; 8]), 1),
        (frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1]), H2_SETTINGS_COST),
        (frame(kind::SETTINGS, 0, 0, &[]), H2_SETTINGS_COST),
        (frame(kind::SETTINGS, flag::ACK, 0, &[]), 1),
        (frame(kind::PRIORITY, 0, 3, &[0, 0, 0, 5, 1]), 1),
        (frame(kind::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 5, b'u', b'=', b'1']), 1),
        (frame(kind::DATA, 0, 1, &[]), 1),
        (frame(kind::DATA, flag::PADDED, 1, &[4, 0, 0, 0, 0]), 1),
        (frame(0xfe, 0xff, 7, b"what is this"), 1),
        (window_update(0), 1),
        (window_update(1), 1),
    ];
    for (bytes, cost) in floods {
        let mut peer = Peer::begun();
        peer.takes(&frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x83, 0x84, 0x86]));
        let at_once = peer.takes_of(&bytes, usize::MAX) as u32;
        let most = H2_EMPTY_FRAMES_MAX / cost;
        assert!((most - H2_SETTINGS_COST..=most).contains(&at_once), "{at_once} {bytes:?}");
        assert_eq!(peer.abuse(), Some(Abuse::EmptyFrames), "{bytes:?}");

        let mut slow = Peer::begun();
        for _ in 0..100 * H2_EMPTY_FRAMES_PER_SECOND / cost {
            slow.now += Duration::from_secs(1) * cost / H2_EMPTY_FRAMES_PER_SECOND;
            slow.takes(&bytes);
        }
    }
}

#[test]
fn frames_of_impossible_sizes_end_the_connection_before_they_are_read() {
    for (kind, flags, stream, bytes) in [
        (kind::DATA, 0, 1, 16385),
        (kind::HEADERS, 0, 1, 16_777_215),
        (0xfe, 0, 1, 16385),
        (kind::PING, 0, 0, 7),
        (kind::SETTINGS, 0, 0, 5),
        (kind::SETTINGS, flag::ACK, 0, 6),
        (kind::RST_STREAM, 0, 1, 5),
        (kind::WINDOW_UPDATE, 0, 1, 3),
        (kind::GOAWAY, 0, 0, 7),
        (kind::PRIORITY_UPDATE, 0, 0, 3),
    ] {
        let head = FrameHead { payload_bytes: bytes, kind, flags, stream };
        let verdict = Peer::begun().refuses(&head.to_bytes());
        assert_eq!((verdict.code, verdict.abuse), (ErrorCode::FrameSizeError, None), "{head:?}");
    }
}

#[test]
fn frames_out_of_order_end_the_connection() {
    let broken = |before: &[u8], bytes: &[u8]| {
        let mut peer = Peer::new();
        peer.takes(PREFACE);
        peer.takes(before);
        let verdict = peer.refuses(bytes);
        assert_eq!((verdict.code, verdict.abuse), (ErrorCode::ProtocolError, None), "{}", verdict.words);
    };
    let settings = frame(kind::SETTINGS, 0, 0, &[]);
    let block = [settings.clone(), frame(kind::HEADERS, 0, 1, &[0x82])].concat();
    broken(&[], &request(1));
    broken(&[], &frame(kind::SETTINGS, flag::ACK, 0, &[]));
    broken(&settings, &frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]));
    broken(&settings, &frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2]));
    broken(&block, &request(3));
    broken(&block, &frame(0xfe, 0, 0, &[]));
    broken(&block, &frame(kind::CONTINUATION, flag::END_HEADERS, 3, &[]));
    broken(&settings, &frame(kind::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 0, b'u']));
    broken(&settings, &frame(kind::PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1, b'u']));
}

#[test]
fn something_else_than_the_preface_is_left_to_the_library() {
    let mut peer = Peer::new();
    let request = b"GET / HTTP/1.1\r\n\r\n";
    assert_eq!(peer.watch.receive(request, peer.now, None), request.len());
    assert_eq!(peer.watch.verdict().unwrap().code, ErrorCode::ProtocolError);
}

#[test]
fn what_came_before_the_frame_that_ends_it_is_passed_on() {
    let mut peer = Peer::begun();
    let good = [request(1), request(3)].concat();
    let bad = frame(kind::PING, 0, 0, &[0; 7]);
    let all = [good.clone(), bad, request(5)].concat();
    assert_eq!(peer.watch.receive(&all, peer.now, None), good.len());
}

#[test]
fn it_is_known_since_when_a_frame_is_incomplete() {
    let at = Duration::from_secs;
    let mut peer = Peer::new();
    let pass = |peer: &mut Peer, seconds, bytes: &[u8]| {
        peer.now = at(seconds);
        peer.takes(bytes);
        peer.watch.incomplete_since()
    };
    assert_eq!(peer.watch.incomplete_since(), Some(at(0)));
    assert_eq!(pass(&mut peer, 1, &PREFACE[..10]), Some(at(0)), "the preface, since the connection began");
    assert_eq!(pass(&mut peer, 2, &PREFACE[10..]), None);
    let settings = frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9]);
    assert_eq!(pass(&mut peer, 3, &settings[..1]), Some(at(3)));
    assert_eq!(pass(&mut peer, 4, &settings[1..12]), Some(at(3)), "a frame, since its first byte");
    assert_eq!(pass(&mut peer, 5, &settings[12..]), None);
    assert_eq!(pass(&mut peer, 6, &frame(kind::HEADERS, 0, 1, &[0x83])), Some(at(6)));
    assert_eq!(pass(&mut peer, 7, &frame(kind::CONTINUATION, 0, 1, &[0x84])), Some(at(6)), "a block, since its first");
    assert_eq!(pass(&mut peer, 8, &frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[0x86])), None);
    let data = frame(kind::DATA, 0, 1, &[0; 100]);
    assert_eq!(pass(&mut peer, 9, &data[..20]), Some(at(9)));
    assert_eq!(pass(&mut peer, 10, &data[20..30]), Some(at(10)), "a body may take its time");
    assert_eq!(pass(&mut peer, 11, &[&data[30..], &settings[..3]].concat()), Some(at(11)), "the next one has begun");
    let block = frame(kind::HEADERS, 0, 3, &[0x83]);
    assert_eq!(
        pass(&mut peer, 12, &[&settings[3..], &block[..]].concat()),
        Some(at(12)),
        "a block behind another frame"
    );
}

#[test]
fn wishes_of_priority_are_taken_once_and_bounded() {
    let mut peer = Peer::begun();
    let update =
        |stream: u32, value: &[u8]| frame(kind::PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes()[..], value].concat());
    peer.takes(&update(1, b"u=1"));
    peer.takes(&update(3, b"u=7, i"));
    peer.takes(&update(1, b"u=2"));
    peer.takes(&update(5, &[b' '; PRIORITY_BYTES_MAX + 1]));
    let wish = |stream, value: &[u8]| PriorityUpdate { stream, value: value.to_vec() };
    assert_eq!(peer.watch.take_priorities(), [wish(3, b"u=7, i"), wish(1, b"u=2")]);
    assert!(peer.watch.take_priorities().is_empty());
    for stream in 0..500 {
        peer.takes(&update(2 * stream + 1, b"u=1"));
    }
    let waiting = peer.watch.take_priorities();
    assert_eq!(waiting.len(), PRIORITIES_WAITING_MAX);
    assert_eq!(waiting.last(), Some(&wish(999, b"u=1")), "the latest are kept");
}

#[test]
fn the_oldest_of_very_many_open_streams_are_forgotten() {
    let mut peer = Peer::begun();
    for number in 0..10_000 {
        peer.takes(&request(2 * number + 1));
    }
    assert_eq!(peer.watch.open_streams(), H2_WATCHED_STREAMS_MAX);
}

#[test]
fn overhead_is_added_up_as_varnish_does() {
    // What nghttp sends and gets for one request, with the numbers that Varnish 7.1.1 logs in ReqAcct of the session.
    let mut peer = Peer::new();
    peer.takes(PREFACE);
    peer.takes(&frame(kind::SETTINGS, 0, 0, &[0; 12]));
    for stream in [3, 5, 7, 9, 11] {
        peer.takes(&frame(kind::PRIORITY, 0, stream, &[0; 5]));
    }
    peer.takes(&request(13));
    peer.takes(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
    peer.takes(&frame(kind::GOAWAY, 0, 0, &[0; 8]));
    peer.sends(&frame(kind::SETTINGS, 0, 0, &[0; 6]));
    peer.sends(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
    peer.sends(&frame(kind::HEADERS, flag::END_HEADERS, 13, &[0; 93]));
    peer.sends(&frame(kind::DATA, 0, 13, &[0; 224]));
    peer.sends(&frame(kind::DATA, flag::END_STREAM, 13, &[]));
    let (received, sent) = peer.watch.traffic();
    assert_eq!((received.head_bytes, received.other_bytes), (81, 45));
    assert_eq!((sent.head_bytes, sent.other_bytes), (45, 6));
}

/// Notes what it is shown.
struct Notes(Vec<String>);

impl Observer for Notes {
    fn wanted_bytes(&self) -> usize {
        4
    }

    fn received(&mut self, head: FrameHead, payload: &[u8]) {
        self.0.push(format!("< {} {payload:?}", head.kind));
    }

    fn sent(&mut self, head: FrameHead, payload: &[u8]) {
        self.0.push(format!("> {} {payload:?}", head.kind));
    }
}

#[test]
fn a_window_beyond_the_protocols_is_an_error_of_flow_control() {
    for settings in [&[0, 4, 0x80, 0, 0, 0][..], &[0, 3, 0, 0, 0, 9, 0, 4, 0xff, 0xff, 0xff, 0xff]] {
        let verdict = Peer::begun().refuses(&frame(kind::SETTINGS, 0, 0, settings));
        assert_eq!((verdict.code, verdict.abuse), (ErrorCode::FlowControlError, None), "{settings:?}");
    }
    Peer::begun().takes(&frame(kind::SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
    Peer::begun().takes(&frame(kind::SETTINGS, 0, 0, &[0, 3, 0xff, 0xff, 0xff, 0xff]));
}

#[test]
fn settings_that_are_cut_off_break_the_protocol_for_whom_varnish_is_the_measure() {
    let limits = WatchLimits { is_lenient: true, ..LIMITS };
    let mut watch = Watch::new(limits, Rc::new(Resets::new(RESETS)));
    watch.receive(PREFACE, Duration::ZERO, None);
    watch.receive(&frame(kind::SETTINGS, 0, 0, &[0; 5]), Duration::ZERO, None);
    assert_eq!(watch.verdict().map(|verdict| verdict.code), Some(ErrorCode::ProtocolError));
}

#[test]
fn an_observer_sees_every_frame_and_the_one_that_ends_it() {
    let bytes = [
        PREFACE.to_vec(),
        frame(kind::SETTINGS, 0, 0, &[1, 2, 3, 4, 5, 6]),
        frame(kind::WINDOW_UPDATE, 0, 0, &[9; 4]),
        frame(kind::PRIORITY_UPDATE, 0, 0, &[0; 5]),
    ]
    .concat();
    for size in [1, 2, 7, 30, 1000] {
        let mut peer = Peer::new();
        let mut notes = Notes(Vec::new());
        for piece in bytes.chunks(size) {
            peer.watch.receive(piece, peer.now, Some(&mut notes));
        }
        for piece in frame(kind::DATA, 0, 1, b"abcdef").chunks(size) {
            peer.watch.send(piece, peer.now, Some(&mut notes));
        }
        assert_eq!(
            notes.0,
            ["< 4 [1, 2, 3, 4, 5, 6]", "< 8 [9, 9, 9, 9]", "< 16 [0, 0, 0, 0, 0]", "> 0 [97, 98, 99, 100]"],
            "pieces of {size}"
        );
    }
}
