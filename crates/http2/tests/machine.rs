//! A client in memory against the machine: requests and responses, windows, the order of sending,
//! faults and their codes, abuse and its limits, and the ends of a connection.

use field_coding::FieldList;
use http2::frame::{ErrorCode, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use http2::hpack::Decoder;
use http2::{Abuse, BodyPart, Machine, MachineSettings, NewRequest, Observer, ResetLimits, Resets, Sending};
use std::rc::Rc;
use std::time::Duration;
use surface::limits::{
    H2_CLOSED_STREAMS_KEPT, H2_CONTINUATIONS_MAX, H2_EMPTY_FRAMES_EARNED, H2_EMPTY_FRAMES_MAX,
    H2_EMPTY_FRAMES_PER_SECOND, H2_LATE_DATA_MAX, H2_QUEUED_BYTES_MAX, H2_SETTINGS_COST,
};

const RESETS: ResetLimits = ResetLimits { rapid: 1.0, limit: 100, period: 60.0 };
const SETTINGS: MachineSettings = MachineSettings {
    streams_max: 100,
    frame_bytes_max: 16384,
    table_bytes: 4096,
    stream_window: 65_535,
    connection_window: 65_535,
    growth_step: 0,
    credit_bytes: 16_384,
    block_bytes_max: 128 << 10,
    list_bytes_max: 64 << 10,
    announces_list_limit: false,
    offers_connect: false,
    is_lenient: false,
};
const LENIENT: MachineSettings =
    MachineSettings { growth_step: 1 << 20, credit_bytes: 1, is_lenient: true, ..SETTINGS };

const GET: &[u8] = &[0x82, 0x84, 0x86];
const POST: &[u8] = &[0x83, 0x84, 0x86];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
    [&head.to_bytes()[..], payload].concat()
}

fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes())
}

fn request(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, GET)
}

fn upload(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, POST)
}

fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn setting(identifier: u16, value: u32) -> Vec<u8> {
    frame(kind::SETTINGS, 0, 0, &[&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

/// A frame of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Got {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// A connection and its clock.
struct Peer {
    machine: Machine,
    now: Duration,
}

impl Peer {
    fn with(settings: MachineSettings) -> Peer {
        Peer { machine: Machine::new(settings, Rc::new(Resets::new(RESETS)), Rc::default()), now: Duration::ZERO }
    }

    /// A connection after the beginning of both sides.
    fn begun_with(settings: MachineSettings) -> Peer {
        let mut peer = Peer::with(settings);
        peer.takes(PREFACE);
        peer.takes(&frame(kind::SETTINGS, 0, 0, &[]));
        peer.takes(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
        peer.got();
        peer
    }

    fn begun() -> Peer {
        Peer::begun_with(SETTINGS)
    }

    fn receives(&mut self, bytes: &[u8]) {
        self.machine.receive(bytes, self.now, None);
    }

    /// The connection goes on.
    fn takes(&mut self, bytes: &[u8]) {
        self.receives(bytes);
        assert_eq!(self.machine.verdict(), None);
    }

    /// The connection ends, with this code.
    #[track_caller]
    fn refuses(&mut self, bytes: &[u8], code: ErrorCode) {
        self.receives(bytes);
        let verdict = self.machine.verdict().expect("it is refused");
        assert_eq!((verdict.code, verdict.abuse), (code, None), "{} {bytes:?}", verdict.words);
        let last = self.got().pop().unwrap();
        assert_eq!((last.kind, last.payload[4..].to_vec()), (kind::GOAWAY, (code as u32).to_be_bytes().to_vec()));
        assert!(self.machine.is_finished());
    }

    /// Number of these frames that are taken before the connection ends; at most `most`.
    fn takes_of(&mut self, bytes: &[u8], most: usize) -> usize {
        (0..most)
            .take_while(|_| {
                self.receives(bytes);
                self.got();
                self.machine.verdict().is_none()
            })
            .count()
    }

    fn abuse(&self) -> Option<Abuse> {
        let verdict = self.machine.verdict()?;
        assert_eq!(verdict.code, ErrorCode::EnhanceYourCalm);
        verdict.abuse
    }

    /// The frames sent since the last call.
    fn got(&mut self) -> Vec<Got> {
        self.machine.announce_credit();
        let output = self.machine.output().to_vec();
        self.machine.sent(output.len());
        let (mut rest, mut all) = (&output[..], Vec::new());
        while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
            let FrameHead { payload_bytes, kind, flags, stream } = FrameHead::parse(head);
            let (payload, after) = after.split_at(payload_bytes as usize);
            all.push(Got { kind, flags, stream, payload: payload.to_vec() });
            rest = after;
        }
        assert!(rest.is_empty());
        all
    }

    /// The codes of the streams that were reset since the last call of [`Peer::got`].
    fn resets(&mut self) -> Vec<(u32, ErrorCode)> {
        let code = |got: &Got| ErrorCode::of(u32::from_be_bytes(got.payload[..].try_into().unwrap())).unwrap();
        self.got().iter().filter(|got| got.kind == kind::RST_STREAM).map(|got| (got.stream, code(got))).collect()
    }

    fn request(&mut self) -> NewRequest {
        self.machine.take_request().expect("there is one")
    }

    /// Takes a request, and answers it without a body.
    fn answer(&mut self) -> u32 {
        let stream = self.request().stream;
        self.machine.send_head(stream, 200, &FieldList::new(), true).unwrap();
        self.machine.reset(stream, ErrorCode::NoError, self.now);
        self.machine.forget(stream, self.now);
        stream
    }

    fn send(&mut self, stream: u32, bytes: usize, is_last: bool) -> Sending {
        self.machine.send_data(stream, &vec![b'x'; bytes], is_last, self.now).unwrap()
    }
}

#[test]
fn request_and_response_pass() {
    let mut peer = Peer::begun();
    let block = [GET, &[0x41, 1, b'h', 0x40, 3, b'x', b'-', b'a', 1, b'b']].concat();
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block));
    let request = peer.request();
    assert_eq!((request.stream, request.is_last, request.head.authority()), (1, true, Some(&b"h"[..])));
    assert_eq!(request.head.fields().collect::<Vec<_>>(), [(&b"x-a"[..], &b"b"[..])]);
    let mut fields = FieldList::new();
    fields.push(b"server", b"s");
    peer.machine.send_head(1, 200, &fields, false).unwrap();
    assert_eq!(peer.send(1, 5, true), Sending::Sent(5));
    let got = peer.got();
    assert_eq!((got.len(), got[0].flags, got[1].flags), (2, flag::END_HEADERS, flag::END_STREAM));
    let mut decoded = Vec::new();
    Decoder::new(4096)
        .decode(&got[0].payload, |name, value| {
            decoded.push((name.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
    assert_eq!(decoded, [(b":status".to_vec(), b"200".to_vec()), (b"server".to_vec(), b"s".to_vec())]);
    assert_eq!(got[1].payload, b"xxxxx");
    peer.machine.forget(1, peer.now);
    assert_eq!(peer.got(), [], "nothing is left to reset");
}

#[test]
fn upload_is_read_as_it_arrives_and_opens_the_windows() {
    let mut peer = Peer::begun_with(MachineSettings { connection_window: 200_000, ..SETTINGS });
    peer.takes(&upload(1));
    assert_eq!(peer.got()[0].payload, (200_000_u32 - 65_535).to_be_bytes(), "the connection's window");
    assert!(!peer.request().is_last);
    assert_eq!(peer.machine.take_body(1), Ok(BodyPart::Nothing));
    let data = frame(kind::DATA, 0, 1, &[7; 16_384]);
    peer.takes(&data[..5000]);
    assert_eq!(peer.machine.take_woken(), Some(1));
    let Ok(BodyPart::Bytes(part)) = peer.machine.take_body(1) else { panic!("a part of the frame") };
    peer.takes(&data[5000..]);
    let Ok(BodyPart::Bytes(rest)) = peer.machine.take_body(1) else { panic!("the rest") };
    assert_eq!((part.len(), rest.len(), peer.machine.body_bytes()), (5000 - 9, 16_384 - 5000 + 9, 16_384));
    peer.machine.release(1, 16_383);
    assert_eq!(peer.got(), []);
    peer.machine.release(1, 1);
    let got = peer.got();
    assert_eq!((got.len(), got[0].stream, &got[0].payload[..]), (1, 1, &16_384_u32.to_be_bytes()[..]));
    peer.takes(&frame(kind::DATA, flag::END_STREAM, 1, b"end"));
    assert_eq!(peer.machine.take_body(1), Ok(BodyPart::Bytes("end".into())));
    assert_eq!(peer.machine.take_body(1), Ok(BodyPart::End));
    peer.machine.release(1, 3);
    assert_eq!((peer.got(), peer.machine.body_bytes()), (vec![], 0));
}

#[test]
fn windows_grow_with_each_frame_and_each_read_if_that_is_wanted() {
    let mut peer = Peer::begun_with(MachineSettings { connection_window: 65_535 + (5 << 19), ..LENIENT });
    peer.takes(&upload(1));
    let updates = |peer: &mut Peer| -> Vec<(u32, u32)> {
        let word = |got: &Got| u32::from_be_bytes(got.payload[..].try_into().unwrap());
        peer.got().iter().map(|got| (got.stream, word(got))).collect()
    };
    assert_eq!(updates(&mut peer), []);
    peer.request();
    for step in [1 << 20, 1 << 20, 1 << 19] {
        peer.takes(&frame(kind::DATA, flag::PADDED, 1, &[&[5][..], b"abc", &[0; 5]].concat()));
        assert_eq!(updates(&mut peer), [(0, step)]);
    }
    peer.takes(&frame(kind::DATA, 0, 1, b"d"));
    assert_eq!(updates(&mut peer), []);
    peer.machine.release(1, 2);
    assert_eq!(updates(&mut peer), [(1, 3 * 6 + 2)], "padding, too");
    peer.machine.release(1, 100);
    assert_eq!((updates(&mut peer), peer.machine.body_bytes()), (vec![(1, 8)], 0), "no more than was received");
}

#[test]
fn bytes_of_streams_that_are_over_are_given_back() {
    let mut peer = Peer::begun();
    let data = |stream| frame(kind::DATA, 0, stream, &[0; 16_000]);
    let mut received = 0;
    for number in 0..100 {
        let stream = 2 * number + 1;
        peer.takes(&upload(stream));
        peer.request();
        peer.takes(&data(stream));
        // Unread, or after a reset on its way.
        peer.machine.reset(stream, ErrorCode::Cancel, peer.now);
        peer.takes(&data(stream));
        peer.machine.forget(stream, peer.now);
        received += 32_000;
        peer.takes(&data(stream));
        received += 16_000;
    }
    assert!(received > 10 * 65_535 && peer.machine.body_bytes() == 0);
}

#[test]
fn more_than_a_window_is_an_error_of_flow_control() {
    let mut peer = Peer::begun_with(MachineSettings { connection_window: 1 << 20, ..SETTINGS });
    peer.takes(&upload(1));
    peer.request();
    for _ in 0..4 {
        peer.takes(&frame(kind::DATA, 0, 1, &[0; 16_000]));
    }
    peer.got();
    peer.takes(&frame(kind::DATA, 0, 1, &[0; 1_536]));
    assert_eq!(peer.resets(), [(1, ErrorCode::FlowControlError)]);
    let mut peer = Peer::begun();
    peer.takes(&upload(1));
    for _ in 0..4 {
        peer.takes(&frame(kind::DATA, 0, 1, &[0; 16_000]));
    }
    peer.refuses(&frame(kind::DATA, 0, 1, &[0; 1_536]), ErrorCode::FlowControlError);
}

#[test]
fn a_smaller_window_holds_once_the_client_has_heard_of_it() {
    let mut peer = Peer::with(MachineSettings { stream_window: 100, ..SETTINGS });
    peer.takes(&[PREFACE, &frame(kind::SETTINGS, 0, 0, &[])[..], &upload(1)].concat());
    peer.takes(&frame(kind::DATA, 0, 1, &[0; 1000]));
    peer.takes(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
    peer.got();
    peer.takes(&[upload(3), frame(kind::DATA, 0, 3, &[0; 100]), frame(kind::DATA, 0, 1, b"x")].concat());
    assert_eq!(peer.resets(), [(1, ErrorCode::FlowControlError)]);
    peer.takes(&frame(kind::DATA, 0, 3, b"x"));
    assert_eq!(peer.resets(), [(3, ErrorCode::FlowControlError)]);
}

#[test]
fn response_waits_for_the_windows_of_the_client() {
    let mut peer = Peer::begun();
    peer.takes(&[setting(4, 10), request(1), request(3)].concat());
    for stream in [1, 3] {
        peer.request();
        peer.machine.send_head(stream, 200, &FieldList::new(), false).unwrap();
    }
    assert_eq!((peer.send(1, 100, true), peer.send(1, 90, true)), (Sending::Sent(10), Sending::NoWindow));
    assert_eq!(peer.machine.take_woken(), None);
    // Below zero, and back.
    peer.takes(&setting(4, 0));
    peer.takes(&window_update(1, 10));
    assert_eq!((peer.machine.take_woken(), peer.send(1, 90, true)), (None, Sending::NoWindow));
    peer.takes(&window_update(1, 1));
    assert_eq!((peer.machine.take_woken(), peer.send(1, 90, true)), (Some(1), Sending::Sent(1)));
    assert_eq!(peer.send(3, 1, true), Sending::NoWindow);
    peer.takes(&setting(4, 100));
    let mut woken = [peer.machine.take_woken(), peer.machine.take_woken()];
    woken.sort();
    assert_eq!(woken, [None, Some(3)]);
    assert_eq!((peer.send(1, 89, true), peer.send(3, 1, true)), (Sending::Sent(89), Sending::Sent(1)));
    // All streams together.
    let mut peer = Peer::begun();
    peer.takes(&[setting(4, 1 << 20), request(1)].concat());
    peer.request();
    peer.machine.send_head(1, 200, &FieldList::new(), false).unwrap();
    let mut sent = 0;
    while let Sending::Sent(bytes) = peer.send(1, 16_384, false) {
        sent += bytes;
        peer.got();
    }
    assert_eq!((sent, peer.send(1, 5, true)), (65_535, Sending::NoWindow));
    peer.takes(&window_update(0, 5));
    assert_eq!((peer.machine.take_woken(), peer.send(1, 5, true)), (Some(1), Sending::Sent(5)));
}

#[test]
fn output_is_bounded_and_the_urgent_is_sent_first() {
    let mut peer = Peer::begun();
    peer.takes(&[setting(4, 1 << 20), window_update(0, 1 << 20)].concat());
    for stream in [1, 3, 5] {
        peer.takes(&request(stream));
        peer.request();
        peer.machine.send_head(stream, 200, &FieldList::new(), false).unwrap();
    }
    while peer.send(1, 20_000, false) != Sending::NoTurn {}
    assert!((H2_QUEUED_BYTES_MAX..H2_QUEUED_BYTES_MAX + 16_500).contains(&peer.machine.output().len()));
    peer.takes(&frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=0"));
    assert_eq!((peer.send(3, 1000, true), peer.send(5, 1000, true)), (Sending::NoTurn, Sending::NoTurn));
    assert_eq!(peer.machine.take_woken(), None);
    peer.machine.sent(40_000);
    assert_eq!(peer.machine.take_woken(), Some(5));
    assert_eq!((peer.send(3, 1000, true), peer.send(5, 1000, true)), (Sending::NoTurn, Sending::Sent(1000)));
    while peer.machine.take_woken() != Some(1) {}
    assert_eq!(peer.send(1, 9, false), Sending::Sent(9));
    peer.takes(&frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=7"));
    peer.takes(&frame(kind::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x07u=1"));
    peer.takes(&request(7));
    peer.request();
    peer.machine.send_head(7, 200, &FieldList::new(), false).unwrap();
    while peer.send(1, 20_000, false) != Sending::NoTurn {}
    assert_eq!(peer.send(7, 1, true), Sending::NoTurn);
    peer.machine.sent(40_000);
    while peer.machine.take_woken().is_some_and(|stream| stream != 7) {}
    assert_eq!(peer.send(7, 1, true), Sending::Sent(1), "a priority that came before its request");
    // A client that never takes all of it.
    peer.takes(&[setting(4, 0x7fff_ffff), window_update(0, 0x7000_0000)].concat());
    for _ in 0..1000 {
        while matches!(peer.send(1, 16_384, false), Sending::Sent(_)) {}
        peer.machine.sent(10_000);
        assert!(peer.machine.frames().len() < 2 * H2_QUEUED_BYTES_MAX);
    }
}

#[test]
fn requests_at_work_are_bounded_whoever_reset_their_streams() {
    let mut peer = Peer::begun_with(MachineSettings { streams_max: 2, ..SETTINGS });
    peer.takes(&[request(1), request(3), request(5)].concat());
    assert_eq!((peer.resets(), peer.machine.take_refused()), (vec![(5, ErrorCode::RefusedStream)], 1));
    peer.request();
    peer.request();
    peer.takes(&[reset(1, ErrorCode::Cancel), request(7)].concat());
    assert!(peer.machine.is_gone(1) && peer.machine.take_request().is_none());
    peer.takes(&[reset(7, ErrorCode::Cancel), request(9)].concat());
    peer.machine.forget(1, peer.now);
    assert_eq!(peer.request().stream, 9, "one that was given up before it was begun is left out");
}

#[test]
fn a_head_that_is_too_large_is_answered() {
    let mut peer = Peer::begun_with(MachineSettings { list_bytes_max: 200, ..SETTINGS });
    let large = [GET, &[0x00, 1, b'a', 60], &[b'x'; 60], &[0x40, 1, b'b', 1, b'c']].concat();
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS, 1, &large));
    let got = peer.got();
    assert_eq!((got[0].kind, got[0].flags), (kind::HEADERS, flag::END_HEADERS | flag::END_STREAM));
    assert_eq!((got[1].kind, &got[1].payload[..]), (kind::RST_STREAM, &[0; 4][..]));
    assert_eq!((peer.machine.take_too_large(), peer.machine.take_request()), (vec![1], None));
    peer.takes(&frame(kind::DATA, flag::END_STREAM, 1, b"late"));
    let known = [GET, &[0xbe]].concat();
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, &known));
    assert_eq!(peer.request().head.fields().collect::<Vec<_>>(), [(&b"b"[..], &b"c"[..])], "the table is right");
}

#[test]
fn long_blocks_are_split_at_the_clients_frame_size() {
    let mut peer = Peer::begun();
    peer.takes(&request(1));
    peer.request();
    let mut fields = FieldList::new();
    fields.push(b"set-cookie", &[b'a'; 40_000]);
    peer.machine.send_head(1, 200, &fields, true).unwrap();
    let got = peer.got();
    let kinds: Vec<_> = got.iter().map(|got| (got.kind, got.flags)).collect();
    assert_eq!(
        kinds,
        [(kind::HEADERS, flag::END_STREAM), (kind::CONTINUATION, 0), (kind::CONTINUATION, flag::END_HEADERS)]
    );
    let block: Vec<u8> = got.iter().flat_map(|got| got.payload.clone()).collect();
    let mut bytes = 0;
    Decoder::new(4096)
        .decode(&block, |_, value| {
            bytes = value.len();
            true
        })
        .unwrap();
    assert_eq!(bytes, 40_000);
}

#[test]
fn trailers_end_a_request_and_a_response() {
    let mut peer = Peer::begun();
    peer.takes(&[upload(1), frame(kind::DATA, 0, 1, b"abc")].concat());
    peer.request();
    let trailers = [0x00, 1, b't', 1, b'v'];
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &trailers));
    assert_eq!(peer.machine.take_body(1), Ok(BodyPart::Bytes("abc".into())));
    assert_eq!(peer.machine.take_body(1), Ok(BodyPart::End));
    let received = peer.machine.take_trailers(1).unwrap();
    assert_eq!(received.get(b"t"), Some(&b"v"[..]));
    peer.machine.send_head(1, 200, &FieldList::new(), false).unwrap();
    peer.machine.send_trailers(1, &received).unwrap();
    let got = peer.got();
    assert_eq!((got[1].kind, got[1].flags), (kind::HEADERS, flag::END_HEADERS | flag::END_STREAM));
    assert!(peer.machine.send_trailers(1, &received).is_err());
    peer.machine.forget(1, peer.now);
    // Pseudo headers, and a second head that ends nothing, under both policies.
    for settings in [SETTINGS, LENIENT] {
        for (flags, block) in [(flag::END_STREAM, &[0x84][..]), (flag::END_STREAM, &[0x88]), (0, &trailers)] {
            let mut peer = Peer::begun_with(settings);
            peer.takes(&upload(1));
            peer.request();
            peer.takes(&frame(kind::HEADERS, flag::END_HEADERS | flags, 1, block));
            assert_eq!(peer.resets(), [(1, ErrorCode::ProtocolError)], "{block:?}");
        }
    }
}

#[test]
fn a_body_of_another_length_costs_its_stream() {
    let announced = [POST, &[0x0f, 13, 1, b'3']].concat();
    for (data, flags) in [(&b"abcd"[..], 0), (b"ab", flag::END_STREAM), (b"abcd", flag::END_STREAM)] {
        let mut peer = Peer::begun();
        peer.takes(&frame(kind::HEADERS, flag::END_HEADERS, 1, &announced));
        peer.takes(&frame(kind::DATA, flags, 1, data));
        assert_eq!(peer.resets(), [(1, ErrorCode::ProtocolError)], "{data:?}");
    }
    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS, 1, &announced));
    peer.takes(&frame(kind::DATA, flag::PADDED, 1, &[2, b'a', b'b', 0, 0]));
    peer.takes(&frame(kind::DATA, flag::PADDED | flag::END_STREAM, 1, &[0, b'c']));
    assert_eq!(peer.resets(), []);
    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &announced));
    assert_eq!(peer.resets(), [(1, ErrorCode::ProtocolError)]);
}

#[test]
fn usual_traffic_is_not_abuse() {
    let mut peer = Peer::begun();
    peer.takes(&[setting(4, 1 << 20), window_update(0, 1 << 30)].concat());
    for number in 0..10_000_u32 {
        let stream = 2 * number + 1;
        peer.takes(&request(stream));
        peer.request();
        peer.machine.send_head(stream, 200, &FieldList::new(), false).unwrap();
        assert_eq!(peer.send(stream, 16_384, true), Sending::Sent(16_384));
        peer.machine.forget(stream, peer.now);
        for _ in 0..4 {
            peer.takes(&window_update(stream, 4096));
            peer.takes(&window_update(0, 4096));
        }
        peer.takes(&frame(kind::PING, 0, 0, &[0; 8]));
        peer.got();
    }
}

#[test]
fn an_upload_in_small_pieces_and_much_padding_passes() {
    let mut peer = Peer::begun_with(LENIENT);
    peer.takes(&upload(1));
    peer.request();
    for _ in 0..50_000 {
        peer.takes(&frame(kind::DATA, 0, 1, b"x"));
        peer.takes(&frame(kind::DATA, flag::PADDED, 1, &[4, 0, 0, 0, 0]));
        peer.takes(&frame(kind::DATA, flag::PADDED, 1, &[0]));
        let _ = peer.machine.take_body(1);
        peer.machine.release(1, 1);
        peer.got();
    }
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
    peer.receives(&reset(201, ErrorCode::Cancel));
    assert_eq!(peer.abuse(), Some(Abuse::Resets));
}

#[test]
fn streams_reset_after_a_while_or_after_their_answer_do_not_count() {
    let mut peer = Peer::begun();
    for number in 0..1000 {
        let stream = 2 * number + 1;
        if number % 2 == 0 {
            peer.takes(&request(stream));
            peer.now += Duration::from_millis(1001);
        } else {
            peer.takes(&upload(stream));
            peer.request();
            peer.machine.send_head(stream, 200, &FieldList::new(), true).unwrap();
        }
        peer.takes(&reset(stream, ErrorCode::Cancel));
        peer.machine.forget(stream, peer.now);
    }
    let mut resets_again = Peer::begun();
    resets_again.takes(&request(1));
    let taken = resets_again.takes_of(&reset(1, ErrorCode::Cancel), usize::MAX);
    assert!(taken <= H2_EMPTY_FRAMES_MAX as usize + 1, "but they are frames that carry nothing");
    assert_eq!(resets_again.abuse(), Some(Abuse::EmptyFrames));
}

#[test]
fn resets_that_the_client_provokes_come_out_of_the_same_budget() {
    let provocations: [fn(u32) -> Vec<u8>; 3] = [
        |stream| [upload(stream), window_update(stream, 0x7fff_ffff)].concat(),
        |stream| frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, stream, &[0x84]),
        |stream| [upload(stream), frame(kind::HEADERS, flag::END_HEADERS, stream, &[])].concat(),
    ];
    for (number, provoke) in provocations.into_iter().enumerate() {
        let mut peer = Peer::begun();
        for number in 0..100 {
            let stream = 2 * number + 1;
            if number % 2 == 0 {
                peer.takes(&[request(stream), reset(stream, ErrorCode::Cancel)].concat());
            } else {
                peer.takes(&provoke(stream));
            }
        }
        peer.receives(&provoke(201));
        assert_eq!(peer.abuse(), Some(Abuse::Resets), "{number}");
        peer.got();
        peer.receives(&request(203));
        assert_eq!((peer.machine.take_request(), peer.got()), (None, vec![]), "nothing more is taken");
    }
}

#[test]
fn resets_that_are_ours_alone_cost_the_client_nothing() {
    let mut peer = Peer::begun();
    for number in 0..1000 {
        for (place, code) in [ErrorCode::NoError, ErrorCode::InternalError, ErrorCode::Cancel].into_iter().enumerate() {
            let stream = 2 * (3 * number + place as u32) + 1;
            peer.takes(&upload(stream));
            peer.request();
            peer.machine.reset(stream, code, peer.now);
            peer.machine.forget(stream, peer.now);
        }
    }
    assert_eq!(peer.machine.verdict(), None);
}

#[test]
fn data_after_the_end_of_a_request_costs_its_stream_and_many_the_connection() {
    let late = |stream| frame(kind::DATA, 0, stream, b"late");
    let mut peer = Peer::begun();
    for number in 0..H2_LATE_DATA_MAX {
        let stream = 2 * number + 1;
        peer.takes(&[request(stream), late(stream)].concat());
        assert_eq!(peer.resets(), [(stream, ErrorCode::StreamClosed)]);
        // The rest of it may have been on its way.
        peer.takes(&late(stream));
        assert_eq!(peer.resets(), []);
    }
    peer.takes(&request(101));
    peer.refuses(&late(101), ErrorCode::StreamClosed);
    let mut peer = Peer::begun();
    peer.takes(&[request(1), reset(1, ErrorCode::Cancel), late(1)].concat());
    assert_eq!(peer.resets(), [(1, ErrorCode::StreamClosed)], "after the client's own reset");
    let mut peer = Peer::begun();
    peer.takes(&request(1));
    peer.answer();
    peer.got();
    peer.takes(&late(1));
    assert_eq!(peer.resets(), [(1, ErrorCode::StreamClosed)], "after its answer");
}

#[test]
fn streams_without_end_beyond_what_is_served_end_the_connection() {
    let mut peer = Peer::begun_with(MachineSettings { streams_max: 1, ..SETTINGS });
    peer.takes(&request(1));
    let mut refused = 0;
    while peer.machine.verdict().is_none() {
        refused += 1;
        let stream = 2 * refused + 1;
        peer.receives(&request(stream));
        peer.takes_of(&frame(kind::PRIORITY, 0, stream, &[0; 5]), H2_EMPTY_FRAMES_EARNED as usize);
        assert!(refused < 2 * H2_EMPTY_FRAMES_MAX);
    }
    assert_eq!(peer.abuse(), Some(Abuse::EmptyFrames));
}

#[test]
fn a_block_has_a_bounded_number_of_frames_empty_ones_included() {
    for (is_too_much, more) in [(true, 1), (false, 0)] {
        let mut peer = Peer::begun();
        peer.takes(&frame(kind::HEADERS, flag::END_STREAM, 1, &[0x82]));
        for _ in 0..H2_CONTINUATIONS_MAX + more {
            peer.receives(&frame(kind::CONTINUATION, 0, 1, &[]));
        }
        assert_eq!(peer.abuse(), is_too_much.then_some(Abuse::HeaderBlock));
        peer.receives(&frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[0x84, 0x86]));
        assert_eq!(peer.machine.take_request().is_some(), !is_too_much);
    }
}

#[test]
fn a_block_has_a_bounded_number_of_bytes() {
    let mut peer = Peer::begun();
    peer.takes(&frame(kind::HEADERS, 0, 1, &[0; 16384]));
    let taken = peer.takes_of(&frame(kind::CONTINUATION, 0, 1, &[0; 16384]), 100);
    assert_eq!((1 + taken) * 16384, SETTINGS.block_bytes_max);
    assert_eq!(peer.abuse(), Some(Abuse::HeaderBlock));
    let mut peer = Peer::begun_with(MachineSettings { block_bytes_max: 100, ..SETTINGS });
    peer.receives(&frame(kind::HEADERS, flag::END_HEADERS, 1, &[0; 101])[..9]);
    assert_eq!(peer.abuse(), Some(Abuse::HeaderBlock));
}

#[test]
fn a_list_that_unpacks_to_far_too_much_ends_the_connection() {
    let mut peer = Peer::begun_with(MachineSettings { list_bytes_max: 4000, ..SETTINGS });
    let field = [&[0x40, 1, b'x', 0x7f, 0x81, 0x0f][..], &[b'a'; 2048]].concat();
    peer.receives(&frame(kind::HEADERS, flag::END_HEADERS, 1, &[GET, &field, &[0xbe; 10]].concat()));
    assert_eq!(peer.abuse(), Some(Abuse::HeaderBlock));
}

#[test]
fn frames_that_carry_nothing_have_a_rate() {
    let floods = [
        (frame(kind::PING, 0, 0, &[0; 8]), 1),
        (frame(kind::PING, flag::ACK, 0, &[0; 8]), 1),
        (setting(3, 1), H2_SETTINGS_COST),
        (frame(kind::SETTINGS, 0, 0, &[]), H2_SETTINGS_COST),
        (frame(kind::SETTINGS, flag::ACK, 0, &[]), 1),
        (frame(kind::PRIORITY, 0, 3, &[0, 0, 0, 5, 1]), 1),
        (frame(kind::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 5, b'u', b'=', b'1']), 1),
        (frame(kind::DATA, 0, 1, &[]), 1),
        (frame(kind::DATA, flag::PADDED, 1, &[4, 0, 0, 0, 0]), 1),
        (frame(0xfe, 0xff, 7, b"what is this"), 1),
        (window_update(0, 1), 1),
        (window_update(1, 1), 1),
    ];
    for (bytes, cost) in floods {
        let mut peer = Peer::begun();
        peer.takes(&upload(1));
        let at_once = peer.takes_of(&bytes, usize::MAX) as u32;
        let most = H2_EMPTY_FRAMES_MAX / cost;
        assert!((most - H2_SETTINGS_COST..=most).contains(&at_once), "{at_once} {bytes:?}");
        assert_eq!(peer.abuse(), Some(Abuse::EmptyFrames), "{bytes:?}");

        let mut slow = Peer::begun();
        slow.takes(&upload(1));
        for _ in 0..100 * H2_EMPTY_FRAMES_PER_SECOND / cost {
            slow.now += Duration::from_secs(1) * cost / H2_EMPTY_FRAMES_PER_SECOND;
            slow.takes(&bytes);
            slow.got();
        }
    }
}

#[test]
fn a_window_that_opens_byte_by_byte_has_a_rate() {
    let mut peer = Peer::begun();
    peer.takes(&[setting(4, 0), request(1)].concat());
    peer.request();
    peer.machine.send_head(1, 200, &FieldList::new(), false).unwrap();
    let mut taken = 0;
    while peer.machine.verdict().is_none() {
        peer.receives(&window_update(1, 1));
        let _ = peer.machine.send_data(1, &[0; 100], false, peer.now);
        peer.got();
        taken += 1;
    }
    assert_eq!(peer.abuse(), Some(Abuse::EmptyFrames));
    assert!(taken <= H2_EMPTY_FRAMES_MAX, "{taken}");
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
        Peer::begun().refuses(&head.to_bytes(), ErrorCode::FrameSizeError);
    }
}

#[test]
fn faults_have_the_codes_of_the_standard() {
    use ErrorCode::{CompressionError, FlowControlError, ProtocolError, StreamClosed};
    let head = |flags, stream, block: &[u8]| frame(kind::HEADERS, flags, stream, block);
    let whole = flag::END_HEADERS | flag::END_STREAM;
    let block = head(0, 1, GET);
    for (before, bytes, code) in [
        (vec![], head(whole, 2, GET), ProtocolError),
        (vec![], head(whole, 0, GET), ProtocolError),
        (vec![], frame(kind::DATA, 0, 0, b"x"), ProtocolError),
        (vec![], frame(kind::DATA, 0, 1, b"x"), ProtocolError),
        (vec![], reset(1, ErrorCode::Cancel), ProtocolError),
        (vec![], reset(0, ErrorCode::Cancel), ProtocolError),
        (vec![], window_update(1, 1), ProtocolError),
        (vec![], window_update(0, 0), ProtocolError),
        (vec![], window_update(0, 0x7fff_ffff), FlowControlError),
        (vec![], frame(kind::PRIORITY, 0, 0, &[0; 5]), ProtocolError),
        (vec![], frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 9]), ProtocolError),
        (vec![], frame(kind::PING, 0, 1, &[0; 8]), ProtocolError),
        (vec![], frame(kind::GOAWAY, 0, 1, &[0; 8]), ProtocolError),
        (vec![], frame(kind::SETTINGS, 0, 1, &[]), ProtocolError),
        (vec![], setting(2, 2), ProtocolError),
        (vec![], setting(5, 16_383), ProtocolError),
        (vec![], setting(5, 16_777_216), ProtocolError),
        (vec![], setting(4, 0x8000_0000), FlowControlError),
        (vec![], frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2]), ProtocolError),
        (vec![], frame(kind::PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 0, b'u']), ProtocolError),
        (vec![], frame(kind::PRIORITY_UPDATE, 0, 1, &[0, 0, 0, 1, b'u']), ProtocolError),
        (vec![], frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]), ProtocolError),
        (vec![], head(whole | flag::PADDED, 1, &[4, 0x82]), ProtocolError),
        (vec![], head(whole, 1, &[0x82, 0x80]), CompressionError),
        (upload(1), frame(kind::DATA, flag::PADDED, 1, &[4, 0, 0, 0]), ProtocolError),
        (request(1), head(whole, 1, GET), StreamClosed),
        (request(5), head(whole, 3, GET), ProtocolError),
        ([request(1), reset(1, ErrorCode::Cancel)].concat(), head(whole, 1, GET), StreamClosed),
        (request(1), frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]), ProtocolError),
        (block.clone(), request(3), ProtocolError),
        (block.clone(), frame(0xfe, 0, 0, &[]), ProtocolError),
        (block.clone(), frame(kind::CONTINUATION, flag::END_HEADERS, 3, &[]), ProtocolError),
        (block, frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[0x80]), CompressionError),
        // Windows of streams that are beyond the protocol's after a change of the settings.
        ([request(1), window_update(1, 0x7fff_0000)].concat(), setting(4, 65_536), FlowControlError),
    ] {
        let mut peer = Peer::begun();
        peer.takes(&before);
        peer.refuses(&bytes, code);
    }
}

#[test]
fn faults_of_a_stream_leave_the_connection() {
    let head = |flags, block: &[u8]| frame(kind::HEADERS, flags, 1, block);
    let whole = flag::END_HEADERS | flag::END_STREAM;
    for (bytes, code) in [
        (head(whole, &[0x82]), ErrorCode::ProtocolError),
        (head(whole | flag::PRIORITY, &[&[0, 0, 0, 1, 9], GET].concat()), ErrorCode::ProtocolError),
        ([request(1), window_update(1, 0)].concat(), ErrorCode::ProtocolError),
        ([request(1), window_update(1, 0x7fff_ffff)].concat(), ErrorCode::FlowControlError),
        ([request(1), frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 9])].concat(), ErrorCode::ProtocolError),
        ([request(1), frame(kind::PRIORITY, 0, 1, &[0; 4])].concat(), ErrorCode::FrameSizeError),
    ] {
        let mut peer = Peer::begun();
        peer.takes(&bytes);
        assert_eq!(peer.resets(), [(1, code)], "{bytes:?}");
        assert_eq!(peer.machine.take_request(), None);
        peer.takes(&request(3));
        assert_eq!(peer.request().stream, 3);
    }
}

#[test]
fn what_varnish_forgives_is_forgiven_if_that_is_wanted() {
    let whole = flag::END_HEADERS | flag::END_STREAM;
    let mut peer = Peer::with(LENIENT);
    peer.takes(&[PREFACE, &frame(kind::SETTINGS, flag::ACK, 0, &[])[..], &frame(kind::SETTINGS, 0, 0, &[])].concat());
    peer.takes(&frame(kind::PRIORITY, 0, 3, &[0, 0, 0, 3, 9]));
    peer.takes(&frame(kind::PRIORITY, 0, 3, &[0]));
    peer.takes(&frame(kind::HEADERS, whole | flag::PRIORITY, 3, &[&[0, 0, 0, 3, 9], GET].concat()));
    peer.takes(&frame(kind::HEADERS, whole, 5, &[0x82, 0x90, 0x84, 0x86]));
    assert_eq!((peer.request().stream, peer.request().stream, peer.resets()), (3, 5, vec![]));
    peer.refuses(&request(3), ErrorCode::ProtocolError);
    Peer::begun_with(LENIENT).refuses(&frame(kind::SETTINGS, 0, 0, &[0; 5]), ErrorCode::ProtocolError);
    let mut strict = Peer::with(SETTINGS);
    strict.takes(PREFACE);
    strict.refuses(&frame(kind::SETTINGS, flag::ACK, 0, &[]), ErrorCode::ProtocolError);
    Peer::with(SETTINGS).refuses(b"GET / HTTP/1.1\r\n\r\n", ErrorCode::ProtocolError);
}

#[test]
fn settings_tell_what_differs_from_the_protocol() {
    let told = |settings: MachineSettings| Peer::with(settings).got()[0].payload.clone();
    assert_eq!(told(SETTINGS), [0, 3, 0, 0, 0, 100]);
    let all = MachineSettings {
        table_bytes: 0,
        stream_window: 7,
        frame_bytes_max: 32_768,
        announces_list_limit: true,
        offers_connect: true,
        ..SETTINGS
    };
    #[rustfmt::skip]
    assert_eq!(told(all), [
        0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 0, 7, 0, 5, 0, 0, 0x80, 0, 0, 6, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1,
    ]);
}

#[test]
fn a_graceful_end_serves_what_the_client_has_begun() {
    let mut peer = Peer::begun();
    peer.takes(&request(1));
    peer.request();
    peer.machine.leave();
    let got = peer.got();
    assert_eq!((got[0].kind, &got[0].payload[..]), (kind::GOAWAY, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0][..]));
    assert_eq!((got[1].kind, got[1].flags), (kind::PING, 0));
    peer.takes(&request(3));
    peer.takes(&frame(kind::PING, flag::ACK, 0, &got[1].payload));
    assert_eq!(peer.got()[0].payload, [0, 0, 0, 3, 0, 0, 0, 0]);
    peer.takes(&request(5));
    assert_eq!(peer.resets(), [(5, ErrorCode::RefusedStream)]);
    peer.answer();
    peer.machine.send_head(1, 200, &FieldList::new(), false).unwrap();
    assert!(!peer.machine.is_finished());
    assert_eq!(peer.send(1, 9, true), Sending::Sent(9));
    assert!(peer.machine.is_finished());
}

#[test]
fn the_clients_goaway_ends_the_connection_after_its_streams() {
    let mut peer = Peer::begun();
    peer.takes(&[request(1), frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2])].concat());
    assert!(!peer.machine.is_finished());
    peer.answer();
    assert!(peer.machine.is_finished() && peer.machine.left_by_client() == Some(2));
    peer.machine.leave();
    assert!(peer.got().iter().all(|got| got.kind != kind::GOAWAY));
}

#[test]
fn an_end_is_noticed_by_all_streams() {
    for is_fault in [false, true] {
        let mut peer = Peer::begun();
        peer.takes(&[request(1), request(3)].concat());
        peer.request();
        if is_fault {
            peer.refuses(&window_update(0, 0), ErrorCode::ProtocolError);
        } else {
            peer.machine.end();
        }
        assert_eq!((peer.machine.take_request(), peer.machine.is_gone(1)), (None, true));
        assert!(peer.machine.send_head(1, 200, &FieldList::new(), true).is_err());
        assert!(peer.machine.take_body(1).is_err());
        while peer.machine.take_woken().is_some_and(|stream| stream != 1) {}
        peer.machine.forget(1, peer.now);
        assert_eq!(peer.got(), []);
    }
}

#[test]
fn it_is_known_since_when_a_frame_is_incomplete() {
    let at = Duration::from_secs;
    let mut peer = Peer::with(SETTINGS);
    let pass = |peer: &mut Peer, seconds, bytes: &[u8]| {
        peer.now = at(seconds);
        peer.takes(bytes);
        peer.machine.incomplete_since()
    };
    assert_eq!(peer.machine.incomplete_since(), Some(at(0)));
    assert_eq!(pass(&mut peer, 1, &PREFACE[..10]), Some(at(0)), "the preface, since the connection began");
    assert_eq!(pass(&mut peer, 2, &PREFACE[10..]), None);
    let settings = setting(3, 9);
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
    assert_eq!(pass(&mut peer, 12, &[&settings[3..], &block[..]].concat()), Some(at(12)), "behind another frame");
}

#[test]
fn overhead_is_added_up_as_varnish_does() {
    // Frames that nghttp sends and gets for one request, with the numbers that Varnish 7.1.1 logs
    // in ReqAcct of the session.
    let mut peer = Peer::with(SETTINGS);
    peer.takes(PREFACE);
    peer.takes(&frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 0xff, 0xff]));
    for stream in [3, 5, 7, 9, 11] {
        peer.takes(&frame(kind::PRIORITY, 0, stream, &[0; 5]));
    }
    peer.takes(&request(13));
    peer.takes(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
    peer.takes(&frame(kind::GOAWAY, 0, 0, &[0; 8]));
    peer.request();
    peer.machine.send_head(13, 200, &FieldList::new(), false).unwrap();
    peer.send(13, 224, false);
    peer.send(13, 0, true);
    let (received, sent) = peer.machine.traffic();
    assert_eq!((received.head_bytes, received.other_bytes), (81, 45));
    assert_eq!((sent.head_bytes, sent.other_bytes), (45, 6));
}

/// Records the frames.
struct Notes(Vec<String>);

impl Observer for Notes {
    fn wanted_bytes(&self) -> usize {
        4
    }

    fn received(&mut self, head: FrameHead, payload: &[u8]) {
        self.0.push(format!("{} {:?}", head.kind, &payload[..payload.len().min(4)]));
    }
}

#[test]
fn an_observer_sees_every_frame_and_the_one_that_ends_it() {
    let bytes = [
        PREFACE.to_vec(),
        setting(0x0102, 0x0304_0506),
        upload(1),
        frame(kind::DATA, 0, 1, b"abcdef"),
        window_update(0, 0),
        request(3),
    ]
    .concat();
    for size in [1, 2, 7, 30, 1000] {
        let mut peer = Peer::with(SETTINGS);
        let mut notes = Notes(Vec::new());
        for piece in bytes.chunks(size) {
            peer.machine.receive(piece, peer.now, Some(&mut notes));
        }
        let expected = ["4 [1, 2, 3, 4]", "1 [131, 132, 134]", "0 [97, 98, 99, 100]", "8 [0, 0, 0, 0]"];
        assert_eq!(notes.0, expected, "pieces of {size}");
    }
}

#[test]
fn frames_on_their_way_to_a_stream_that_was_reset_are_ignored() {
    let mut peer = Peer::begun();
    let trailers = frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &[0x40, 1, b'a', 1, b'b']);
    peer.takes(&upload(1));
    peer.request();
    peer.machine.send_head(1, 403, &FieldList::new(), true).unwrap();
    peer.machine.reset(1, ErrorCode::NoError, peer.now);
    peer.machine.forget(1, peer.now);
    peer.got();
    peer.takes(&[frame(kind::DATA, 0, 1, b"x"), window_update(1, 9), trailers, reset(1, ErrorCode::Cancel)].concat());
    assert_eq!(peer.got(), []);
    peer.takes(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 3, &[GET, &[0xbe]].concat()));
    assert_eq!(peer.request().head.fields().next(), Some((&b"a"[..], &b"b"[..])), "but decoded");
    assert!(H2_CLOSED_STREAMS_KEPT >= SETTINGS.streams_max as usize);
}
