//! Arbitrary bytes as an HTTP/2 connection of a client with an engine behind it, as header blocks,
//! and as an upgrade request to HTTP/2.

use ::http2::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use ::http2::head::HeadPool;
use ::http2::hpack::{Decoder, Encoder};
use ::http2::upgrade::{Beginning, beginning, opening, settings};
use ::http2::{BodyPart, Machine, MachineSettings, Observer, ResetLimits, Resets, Traffic, Verdict};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use field_coding::{FieldList, integer};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Bytes of one direction before the other one follows.
const TURN_BYTES: usize = 100;
const SETTINGS: MachineSettings = MachineSettings {
    streams_max: 10,
    frame_bytes_max: 16384,
    table_bytes: 4096,
    stream_window: 65_535,
    connection_window: 100_000,
    growth_step: 0,
    credit_bytes: 1000,
    block_bytes_max: 1000,
    list_bytes_max: 4000,
    announces_list_limit: true,
    offers_connect: true,
    is_lenient: false,
};

/// Serves a connection twice, in alternating turns of the client and the engine, whole and in
/// pieces. The first byte is the size of the pieces; the bits of the second say whether the client
/// begins with the preface and its SETTINGS, and whether its faults are forgiven; the next two give
/// the number of the client's bytes. The others are commands for the engine, two bytes each.
///
/// # Panics
/// When the pieces make a difference, when the output is not whole frames that keep the client's
/// windows and can be decoded, when something follows the end of a stream or of the connection, and
/// when more is stored than the limits allow.
pub fn machine(bytes: &[u8]) {
    let Some(([size, start, low, high], rest)) = bytes.split_first_chunk() else { return };
    let (client, commands) = rest.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(rest.len()));
    let mut received = Vec::new();
    if start % 2 == 1 {
        received.extend_from_slice(PREFACE);
        received.extend_from_slice(&[0, 0, 0, kind::SETTINGS, 0, 0, 0, 0, 0]);
    }
    received.extend_from_slice(client);
    let is_lenient = start & 2 != 0;
    let settings = MachineSettings {
        is_lenient,
        growth_step: if is_lenient { 65_535 } else { 0 },
        credit_bytes: if is_lenient { 1 } else { SETTINGS.credit_bytes },
        ..SETTINGS
    };
    let whole = served(settings, &received, commands, usize::MAX);
    assert_eq!(served(settings, &received, commands, usize::from(*size) + 1), whole, "pieces of {size}");
    let seen = frames(received.strip_prefix(PREFACE).unwrap_or_default());
    let heads: Vec<FrameHead> = seen.iter().map(|(head, _)| *head).collect();
    assert!(heads.starts_with(&whole.seen.0), "frames that are there: {:?} {heads:?}", whole.seen);
    check_output(&whole.output, &seen);
}

/// The frames that were shown to a log.
#[derive(PartialEq, Eq, Debug, Default)]
struct Seen(Vec<FrameHead>);

impl Observer for Seen {
    fn wanted_bytes(&self) -> usize {
        3
    }

    fn received(&mut self, head: FrameHead, payload: &[u8]) {
        assert!(payload.len() <= head.payload_bytes as usize);
        self.0.push(head);
    }
}

/// The complete outcome of a connection.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    output: Vec<u8>,
    seen: Seen,
    verdict: Option<Verdict>,
    requests: Vec<(u32, Vec<u8>)>,
    bodies: BTreeMap<u32, Vec<u8>>,
    incomplete_since: Option<Duration>,
    traffic: (Traffic, Traffic),
    /// Rest of the budget of resets.
    left: u64,
}

fn served(settings: MachineSettings, received: &[u8], commands: &[u8], size: usize) -> Outcome {
    let resets = Rc::new(Resets::new(ResetLimits { rapid: 1.0, limit: 3, period: 60.0 }));
    let heads = Rc::new(HeadPool::default());
    let mut engine = Engine {
        heads: Rc::clone(&heads),
        machine: Machine::new(settings, Rc::clone(&resets), Rc::clone(&heads)),
        now: Duration::ZERO,
        active: Vec::new(),
        requests: Vec::new(),
        bodies: BTreeMap::new(),
        output: Vec::new(),
    };
    let mut seen = Seen::default();
    let (mut client, mut commands) = (received.chunks(TURN_BYTES), commands.chunks(2));
    loop {
        let turn = (client.next(), commands.next());
        for piece in turn.0.unwrap_or_default().chunks(size) {
            engine.machine.receive(piece, engine.now, Some(&mut seen));
        }
        engine.take();
        if let Some([command, argument]) = turn.1 {
            engine.obey(*command, *argument);
        }
        engine.check();
        if turn == (None, None) {
            break;
        }
        engine.now += Duration::from_millis(300);
    }
    let Engine { machine, requests, bodies, mut output, .. } = engine;
    output.extend_from_slice(machine.output());
    Outcome {
        output,
        seen,
        verdict: machine.verdict(),
        requests,
        bodies,
        // The pieces of a frame do not influence its start time, except for DATA.
        incomplete_since: machine.incomplete_since().filter(|_| machine.verdict().is_none()),
        traffic: machine.traffic(),
        left: resets.left().to_bits(),
    }
}

/// A machine and its user.
struct Engine {
    heads: Rc<HeadPool>,
    machine: Machine,
    now: Duration,
    active: Vec<u32>,
    requests: Vec<(u32, Vec<u8>)>,
    bodies: BTreeMap<u32, Vec<u8>>,
    output: Vec<u8>,
}

impl Engine {
    /// Takes the requests and the bytes of their bodies.
    fn take(&mut self) {
        while let Some(request) = self.machine.take_request() {
            let mut text = [request.head.method(), request.head.path().unwrap_or_default()].concat();
            request.head.fields().for_each(|(name, value)| text.extend([name, b":", value].concat()));
            assert!(!text.contains(&b'\n') && !text.contains(&0), "{text:?}");
            self.requests.push((request.stream, text));
            self.active.push(request.stream);
            self.heads.put(request.head);
        }
        while self.machine.take_woken().is_some() {}
        self.machine.announce_credit();
        for stream in &self.active {
            if let Ok(BodyPart::Bytes(bytes)) = self.machine.take_body(*stream) {
                self.bodies.entry(*stream).or_default().extend_from_slice(&bytes);
                if stream % 3 == 0 {
                    self.machine.release(*stream, bytes.len());
                }
            }
        }
    }

    fn obey(&mut self, command: u8, argument: u8) {
        let place = usize::from(argument).checked_rem(self.active.len());
        let Some(stream) = place.map(|place| self.active[place]) else { return };
        let mut fields = FieldList::new();
        fields.push(b"x-a", &[b'0' + argument % 10].repeat(usize::from(argument)));
        fields.push(b"server", b"x");
        let machine = &mut self.machine;
        match command % 9 {
            0 => _ = machine.send_head(stream, 200, &fields, false),
            1 => _ = machine.send_head(stream, 404, &fields, true),
            2 => _ = machine.send_head(stream, 103, &fields, false),
            3 => _ = machine.send_data(stream, &vec![7; usize::from(argument) * 300], command > 99, self.now),
            4 => _ = machine.send_trailers(stream, &fields),
            5 => machine.reset(stream, ::http2::frame::ErrorCode::Cancel, self.now),
            6 => machine.leave(),
            7 => {
                let sent = machine.output().len().min(usize::from(argument) * 9);
                self.output.extend_from_slice(&machine.output()[..sent]);
                machine.sent(sent);
            }
            _ => {
                machine.forget(stream, self.now);
                self.active.retain(|other| *other != stream);
            }
        }
    }

    fn check(&self) {
        let machine = &self.machine;
        assert!(machine.body_bytes() <= SETTINGS.connection_window as usize);
        let heads = (2 * SETTINGS.streams_max as usize + 1) * 8 * SETTINGS.list_bytes_max as usize;
        assert!(machine.head_bytes() <= heads, "{}", machine.head_bytes());
        assert!(self.active.len() <= SETTINGS.streams_max as usize);
    }
}

/// Checks the server's frames against those that the client has sent.
fn check_output(output: &[u8], client: &[(FrameHead, &[u8])]) {
    let word = |payload: &[u8]| payload.first_chunk().copied().map_or(0, u32::from_be_bytes);
    let granted = |stream: u32| -> u64 {
        let updates = client.iter().filter(|(head, _)| head.kind == kind::WINDOW_UPDATE && head.stream == stream);
        updates.map(|(_, payload)| u64::from(word(payload) & 0x7fff_ffff)).sum()
    };
    let all = frames(output);
    let bytes: usize = all.iter().map(|(_, payload)| HEAD_BYTES + payload.len()).sum();
    assert_eq!(bytes, output.len(), "whole frames");
    assert_eq!(all.first().map(|(head, _)| (head.kind, head.flags)), Some((kind::SETTINGS, 0)));
    let mut decoder = Decoder::new(4096);
    let (mut ended, mut sent, mut block) = (Vec::new(), 0, Vec::new());
    for (place, (head, payload)) in all.iter().enumerate() {
        match head.kind {
            kind::HEADERS | kind::CONTINUATION | kind::DATA => {
                assert!(!ended.contains(&head.stream), "{head:?}");
            }
            kind::RST_STREAM => ended.push(head.stream),
            kind::GOAWAY if payload[4..8] != [0; 4] => assert_eq!(place + 1, all.len(), "nothing follows"),
            _ => {}
        }
        match head.kind {
            kind::DATA => sent += u64::from(head.payload_bytes),
            kind::HEADERS | kind::CONTINUATION => {
                block.extend_from_slice(payload);
                if head.has(flag::END_HEADERS) {
                    assert_eq!(decoder.decode(&block, |_, _| true), Ok(true), "{block:?}");
                    block.clear();
                }
            }
            _ => {}
        }
        if matches!(head.kind, kind::HEADERS | kind::DATA) && head.has(flag::END_STREAM) {
            ended.push(head.stream);
        }
    }
    assert!(sent <= 65_535 + granted(0), "{sent}");
}

/// The complete frames, parsed in the simplest way.
fn frames(mut bytes: &[u8]) -> Vec<(FrameHead, &[u8])> {
    let mut all = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let head = FrameHead::parse(head);
        let Some((payload, rest)) = rest.split_at_checked(head.payload_bytes as usize) else { break };
        bytes = rest;
        all.push((head, payload));
    }
    all
}

/// Decodes two header blocks with one decoder; the first byte is the number of bytes of the first
/// block. Writes their fields with an encoder whose table has the size in the second byte, and
/// decodes them again.
///
/// # Panics
/// When the fields are not the same.
pub fn hpack(bytes: &[u8]) {
    let Some(([first, size], rest)) = bytes.split_first_chunk() else { return };
    let (one, other) = rest.split_at(usize::from(*first).min(rest.len()));
    let (mut decoder, mut encoder, mut again) = (Decoder::new(4096), Encoder::default(), Decoder::new(4096));
    encoder.allow_table(usize::from(*size) * 20);
    for block in [one, other] {
        let mut fields = FieldList::new();
        let decoded = decoder.decode(block, |name, value| {
            fields.push(name, value);
            fields.memory_bytes() < 100_000
        });
        if decoded != Ok(true) {
            return;
        }
        let mut written = Vec::new();
        encoder.begin(&mut written);
        fields.iter().for_each(|(name, value)| encoder.field(name, value, &mut written));
        let mut read = FieldList::new();
        let decoded = again.decode(&written, |name, value| {
            read.push(name, value);
            true
        });
        assert_eq!((decoded, read), (Ok(true), fields));
    }
}

/// Takes the first line of `bytes` as the value of `HTTP2-Settings`, the second as fields (`name:
/// value` with `;` between them), and the rest as the client's data after the 101, starting with a
/// preface.
///
/// # Panics
/// When settings are truncated or differ when written again, when an opening is complete before its
/// last byte or changes with the bytes after it, and when the bytes that represent the request do
/// not contain it.
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

/// The preface, one SETTINGS frame with all settings, and one block with all fields that ends its
/// stream.
fn check_opening(opening: &[u8], settings: &[u8], fields: &[(&[u8], &[u8])]) {
    let mut rest = opening.strip_prefix(PREFACE).expect("a preface");
    let mut block = Vec::new();
    for number in 0.. {
        let Some(head) = rest.first_chunk::<HEAD_BYTES>() else { break };
        let head = FrameHead::parse(head);
        let (payload, after) = rest[HEAD_BYTES..].split_at(head.payload_bytes as usize);
        assert!(head.payload_bytes <= SETTINGS.frame_bytes_max);
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
