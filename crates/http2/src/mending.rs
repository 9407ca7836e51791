//! What a client sends, changed on its way to the library where that would end the connection and need not: [`Mending`].
//!
//! - Pseudo header fields that come after others are moved to the front, if that is allowed, as if the client had written them
//!   there. Varnish looks at no order, and its `varnishtest` writes `txreq -hdr` so. Only fields that neither read nor change the
//!   table of the compression are moved, so the table stays what the client believes it to be. Source: RFC 9113 §8.3.
//! - A field whose name or value cannot be one becomes another that is as malformed: then its stream is reset, and no more.
//!   Source: §8.2.1.
//! - DATA after the end of a request, and a WINDOW_UPDATE of nothing, become frames that mean nothing; whoever serves resets the
//!   stream. There is a limit to that. Source: §5.1, §6.9.
//! - PRIORITY becomes a frame that means nothing, and a stream that says it depends on itself depends on none, if that is
//!   allowed: Varnish looks at neither. Source: §5.3.2.
//!
//! All other rules are the library's, before as after. *Invariants:* what comes out has the length of what came in, and does not
//! depend on the pieces in which that comes; at most one frame of a header block is kept, and a copy of a block that is open, up to a
//! limit. Source: RFC 7541 §6.

use crate::frame::{ErrorCode, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use crate::windows::Heard;
use field_coding::{huffman, integer};
use std::collections::VecDeque;
use std::ops::Range;
use surface::limits::{H2_LATE_DATA_MAX, H2_WATCHED_STREAMS_MAX};

/// A kind of frame that means nothing.
const UNKNOWN_KIND: u8 = 0xf0;
/// Where in a frame its kind stands.
const KIND_AT: usize = 3;
/// What the flag PRIORITY puts before a block.
const PRIORITY_BYTES: usize = 5;
/// Longest block of several frames of which a copy is made.
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// Size of the compression's table: more was never allowed. Source: RFC 9113 §6.5.2.
const TABLE_BYTES: u64 = 4096;
/// Entries of the static table. Source: RFC 7541, appendix A.
const STATIC_ENTRIES: u64 = 61;

/// The state between two pieces.
#[derive(Debug)]
pub struct Mending {
    /// Pseudo header fields may come after others, and priorities say what they want.
    is_lenient: bool,
    preface_left: usize,
    /// Bytes of the open frame that are passed on unseen.
    payload_left: usize,
    /// A frame's beginning, until its head is complete; for HEADERS until all of it is there.
    kept: Vec<u8>,
    /// The latest streams whose requests have ended.
    ended: VecDeque<u32>,
    /// Streams that are to be reset.
    resets: Vec<(u32, ErrorCode)>,
    resets_left: u32,
    /// A header block whose end has not come.
    block: Option<OpenBlock>,
    /// Fields that were entered in the table since the beginning, if all of them were seen.
    entered: Option<u64>,
    /// Frames of DATA since somebody asked.
    data_frames: u32,
    is_acknowledged: bool,
    heard: Heard,
}

/// The beginning of a block of a new stream.
#[derive(Debug)]
struct OpenBlock {
    stream: u32,
    bytes: Vec<u8>,
}

impl Mending {
    /// The state at the beginning of a connection.
    #[must_use]
    pub fn new(is_lenient: bool) -> Mending {
        Mending {
            is_lenient,
            preface_left: PREFACE.len(),
            payload_left: 0,
            kept: Vec::new(),
            ended: VecDeque::new(),
            resets: Vec::new(),
            resets_left: H2_LATE_DATA_MAX,
            block: None,
            entered: Some(0),
            data_frames: 0,
            is_acknowledged: false,
            heard: Heard::default(),
        }
    }

    /// What a GOAWAY is to say of what has come.
    #[must_use]
    pub fn heard(&self) -> Heard {
        self.heard
    }

    /// The work on a stream is over: what comes on it now is the library's business.
    pub fn forget(&mut self, stream: u32) {
        self.ended.retain(|ended| *ended != stream);
    }

    /// Whether the request on a stream has ended.
    #[must_use]
    pub fn has_ended(&self, stream: u32) -> bool {
        self.ended.contains(&stream)
    }

    /// Takes the number of frames of DATA since the last call.
    pub fn take_data_frames(&mut self) -> u32 {
        std::mem::take(&mut self.data_frames)
    }

    /// Whether the client has acknowledged SETTINGS.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }

    /// Takes the streams that are to be reset: DATA has come after the end of the request (STREAM_CLOSED), or a WINDOW_UPDATE
    /// of nothing (PROTOCOL_ERROR).
    pub fn take_resets(&mut self) -> Vec<(u32, ErrorCode)> {
        std::mem::take(&mut self.resets)
    }

    /// How many bytes complete what is kept, and are to be given to [`Mending::complete`]; 0 if nothing is kept.
    #[must_use]
    pub fn missing(&self) -> usize {
        if self.kept.is_empty() { 0 } else { self.wanted_bytes(&self.kept) - self.kept.len() }
    }

    /// Looks at bytes while nothing is kept, and mends heads in place. Returns how many may be passed on; the others are kept.
    pub fn look(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let skipped = self.skip(bytes.len() - at);
            if skipped > 0 {
                at += skipped;
                continue;
            }
            let rest = &mut bytes[at..];
            let wanted = self.wanted_bytes(rest);
            if rest.len() < wanted {
                self.kept.extend_from_slice(rest);
                return at;
            }
            self.open(&mut rest[..wanted]);
            at += wanted;
        }
        at
    }

    /// Takes at most as many bytes as are missing. Returns what may be passed on, once it is complete.
    pub fn complete(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.kept.extend_from_slice(bytes);
        if self.missing() > 0 {
            return None;
        }
        let mut whole = std::mem::take(&mut self.kept);
        self.open(&mut whole);
        Some(whole)
    }

    /// How many of so many bytes are not looked at.
    fn skip(&mut self, count: usize) -> usize {
        let left = if self.preface_left > 0 { &mut self.preface_left } else { &mut self.payload_left };
        let skipped = count.min(*left);
        *left -= skipped;
        skipped
    }

    /// A frame's head, with its payload if that was wanted.
    fn open(&mut self, frame: &mut [u8]) {
        let Some(head) = frame.first_chunk().map(FrameHead::parse) else { return };
        self.hear(head, &frame[HEAD_BYTES..]);
        self.payload_left = head.payload_bytes as usize - (frame.len() - HEAD_BYTES);
        self.is_acknowledged |= head.kind == kind::SETTINGS && head.has(flag::ACK);
        self.data_frames = self.data_frames.saturating_add(u32::from(head.kind == kind::DATA));
        match head.kind {
            kind::HEADERS => mend(head, &mut frame[HEAD_BYTES..], self.is_lenient),
            kind::DATA if self.ended.contains(&head.stream) && self.reset(head.stream, ErrorCode::StreamClosed) => {
                frame[KIND_AT] = UNKNOWN_KIND;
                return;
            }
            kind::WINDOW_UPDATE
                if is_zero(&frame[HEAD_BYTES..])
                    && (1..=self.heard.last_stream).contains(&head.stream)
                    && self.reset(head.stream, ErrorCode::ProtocolError) =>
            {
                frame[KIND_AT] = UNKNOWN_KIND;
            }
            kind::PRIORITY if self.is_lenient && head.stream % 2 == 1 => frame[KIND_AT] = UNKNOWN_KIND,
            _ => {}
        }
        if matches!(head.kind, kind::DATA | kind::HEADERS) && head.has(flag::END_STREAM) {
            if self.ended.len() == H2_WATCHED_STREAMS_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back(head.stream);
        }
    }

    /// Asks for the reset of a stream. Returns `false` if that was asked for too often.
    fn reset(&mut self, stream: u32, code: ErrorCode) -> bool {
        let may = self.resets_left > 0;
        self.resets_left = self.resets_left.saturating_sub(1);
        if may && !self.resets.iter().any(|(known, _)| *known == stream) {
            self.resets.push((stream, code));
        }
        may
    }

    /// Notes what a GOAWAY would have to say. After a block that cannot be decoded nothing else matters: the library sends one.
    fn hear(&mut self, head: FrameHead, payload: &[u8]) {
        if self.heard.is_undecodable {
            return;
        }
        let open = self.block.take();
        match (head.kind, open) {
            (kind::HEADERS, _) if head.stream % 2 == 1 && head.stream > self.heard.last_stream => {
                self.heard.last_stream = head.stream;
                let Some(place) = block_place(head, payload) else { return };
                if head.has(flag::END_HEADERS) {
                    self.heard.is_undecodable = !is_decodable(&payload[place], &mut self.entered);
                } else {
                    self.block = Some(OpenBlock { stream: head.stream, bytes: payload[place].to_vec() });
                }
            }
            // Trailers may enter fields in the table, too.
            (kind::HEADERS, _) => self.entered = None,
            (kind::CONTINUATION, Some(mut block)) if block.stream == head.stream => {
                if block.bytes.len() + payload.len() > BLOCK_BYTES_MAX {
                    self.entered = None;
                    return;
                }
                block.bytes.extend_from_slice(payload);
                if head.has(flag::END_HEADERS) {
                    self.heard.is_undecodable = !is_decodable(&block.bytes, &mut self.entered);
                } else {
                    self.block = Some(block);
                }
            }
            _ => {}
        }
    }

    /// How many bytes are looked at together, from the beginning of a frame on.
    fn wanted_bytes(&self, frame: &[u8]) -> usize {
        let Some(head) = frame.first_chunk().map(FrameHead::parse) else { return HEAD_BYTES };
        match head.kind {
            kind::HEADERS => HEAD_BYTES + head.payload_bytes as usize,
            kind::CONTINUATION if self.block.is_some() => HEAD_BYTES + head.payload_bytes as usize,
            kind::WINDOW_UPDATE if head.payload_bytes == 4 => HEAD_BYTES + 4,
            _ => HEAD_BYTES,
        }
    }
}

/// Whether a WINDOW_UPDATE with this payload opens nothing. The first bit means nothing.
fn is_zero(payload: &[u8]) -> bool {
    matches!(payload, [0 | 0x80, 0, 0, 0])
}

/// Where in the payload of HEADERS the block lies.
fn block_place(head: FrameHead, payload: &[u8]) -> Option<Range<usize>> {
    let is_padded = head.has(flag::PADDED);
    let padding = if is_padded { payload.first().copied().map_or(0, usize::from) } else { 0 };
    let start = usize::from(is_padded) + if head.has(flag::PRIORITY) { PRIORITY_BYTES } else { 0 };
    let end = payload.len().saturating_sub(padding);
    (start <= end && end <= payload.len()).then_some(start..end)
}

/// Mends the fields in the payload of HEADERS.
fn mend(head: FrameHead, payload: &mut [u8], is_lenient: bool) {
    let Some(place) = block_place(head, payload) else { return };
    if is_lenient && head.has(flag::PRIORITY) {
        let dependency = &mut payload[place.start - PRIORITY_BYTES..][..4];
        if *dependency == head.stream.to_be_bytes() || *dependency == (head.stream | 1 << 31).to_be_bytes() {
            dependency.fill(0);
        }
    }
    let block = &mut payload[place];
    let Some(fields) = fields(block) else { return };
    for field in fields.iter().filter(|field| field.kind == FieldKind::Impossible) {
        refuse(&mut block[field.place.clone()]);
    }
    if !is_lenient {
        return;
    }
    let first_other = fields.iter().position(|field| matches!(field.kind, FieldKind::Other | FieldKind::Impossible));
    let last_pseudo = fields.iter().rposition(|field| field.kind == FieldKind::Pseudo);
    if first_other.is_none_or(|other| last_pseudo.is_none_or(|pseudo| pseudo < other)) {
        return;
    }
    let rank = |kind| match kind {
        FieldKind::Resize => 0,
        FieldKind::Pseudo => 1,
        FieldKind::Other | FieldKind::Impossible => 2,
    };
    let mut ordered: Vec<&Field> = fields.iter().collect();
    ordered.sort_by_key(|field| rank(field.kind));
    let mended: Vec<u8> = ordered.iter().flat_map(|field| &block[field.place.clone()]).copied().collect();
    block[..mended.len()].copy_from_slice(&mended);
}

/// What a field is to the table and to the order of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FieldKind {
    /// Changes the size of the table.
    Resize,
    /// A pseudo header field that has nothing to do with the table.
    Pseudo,
    /// Has nothing to do with the table, and a name or a value that no field can have.
    Impossible,
    /// Any other.
    Other,
}

/// One field of a block.
struct Field {
    place: Range<usize>,
    kind: FieldKind,
}

/// Entries of the static table whose names begin with a colon.
const STATIC_PSEUDO: std::ops::RangeInclusive<u64> = 1..=14;

/// The fields of a block; `None` if it cannot be read, or its end lies in another frame.
fn fields(block: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    let mut rest = block;
    while let Some(first) = rest.first() {
        let start = block.len() - rest.len();
        let kind = match first {
            0x80.. => match index(&mut rest, 7)? {
                // There is no such entry. Source: RFC 7541 §6.1.
                0 => return None,
                entry if STATIC_PSEUDO.contains(&entry) => FieldKind::Pseudo,
                _ => FieldKind::Other,
            },
            0x40.. => {
                if index(&mut rest, 6)? == 0 {
                    text(&mut rest)?;
                }
                text(&mut rest)?;
                FieldKind::Other
            }
            0x20.. => {
                index(&mut rest, 5)?;
                FieldKind::Resize
            }
            _ => {
                let kind = match index(&mut rest, 4)? {
                    0 => named(text(&mut rest)?),
                    entry if STATIC_PSEUDO.contains(&entry) => FieldKind::Pseudo,
                    _ => FieldKind::Other,
                };
                let value = text(&mut rest)?;
                if is_value(value) { kind } else { FieldKind::Impossible }
            }
        };
        fields.push(Field { place: start..block.len() - rest.len(), kind });
    }
    Some(fields)
}

/// Whether a whole block can be decoded, as far as that can be seen without the table and without decoding texts; `entered` counts
/// what is entered in the table.
fn is_decodable(block: &[u8], entered: &mut Option<u64>) -> bool {
    let mut rest = block;
    while let Some(first) = rest.first().copied() {
        let bits = match first {
            0x80.. => 7,
            0x40.. => 6,
            0x20.. => 5,
            _ => 4,
        };
        let Some(value) = index(&mut rest, bits) else { return false };
        let is_known = entered.is_none_or(|entered| value <= STATIC_ENTRIES + entered);
        let is_read = match bits {
            7 => value > 0 && is_known,
            5 => value <= TABLE_BYTES,
            _ => is_known && (value > 0 || text(&mut rest).is_some()) && text(&mut rest).is_some(),
        };
        if !is_read {
            return false;
        }
        if bits == 6 {
            *entered = entered.map(|entered| entered + 1);
        }
    }
    true
}

fn index(rest: &mut &[u8], bits: u32) -> Option<u64> {
    integer::read(rest, bits, 4).ok()
}

/// A text as it is written, and whether that is in Huffman's code.
fn text<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], bool)> {
    let is_coded = rest.first()? & 0x80 != 0;
    let length = usize::try_from(index(rest, 7)?).ok()?;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some((text, is_coded))
}

/// What a field with this name is.
fn named((name, is_coded): (&[u8], bool)) -> FieldKind {
    const PSEUDO: [&[u8]; 6] = [b":authority", b":method", b":path", b":protocol", b":scheme", b":status"];
    let mut decoded = Vec::new();
    let name = match is_coded {
        true if huffman::decode(name, &mut decoded).is_err() => return FieldKind::Other,
        true => &decoded[..],
        false => name,
    };
    match name.first() {
        Some(b':') if PSEUDO.contains(&name) => FieldKind::Pseudo,
        Some(_) if name.iter().all(|byte| is_name_byte(*byte)) => FieldKind::Other,
        _ => FieldKind::Impossible,
    }
}

/// Whether a field may have that value, as far as that can be seen without decoding it.
fn is_value((value, is_coded): (&[u8], bool)) -> bool {
    is_coded || value.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Writes a field in the place of one with an impossible name that has every library refuse the head, and that alone: a
/// `transfer-encoding`, which no head of HTTP/2 may have. A field that is too short for it stays.
fn refuse(field: &mut [u8]) {
    const TRANSFER_ENCODING: [u8; 2] = [0x0f, 57 - 15];
    /// A field of one byte, `accept-encoding`.
    const FILLER: u8 = 0x80 | 16;
    for fillers in 0..2 {
        let mut written = TRANSFER_ENCODING.to_vec();
        let Some(left) = field.len().checked_sub(written.len() + fillers) else { return };
        let head_bytes = |bytes: usize| {
            let mut head = Vec::new();
            integer::write(bytes as u64, 7, 0, &mut head);
            head
        };
        let mut sizes = (1..=5).filter_map(|count| left.checked_sub(count)).map(|bytes| (bytes, head_bytes(bytes)));
        let Some((bytes, head)) = sizes.find(|(bytes, head)| bytes + head.len() == left) else { continue };
        written.extend(head);
        written.resize(written.len() + bytes, b'x');
        written.resize(written.len() + fillers, FILLER);
        field.copy_from_slice(&written);
        return;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut field = vec![0, name.len() as u8];
        field.extend_from_slice(name);
        field.push(value.len() as u8);
        field.extend_from_slice(value);
        field
    }

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags, stream };
        [&head.to_bytes()[..], payload].concat()
    }

    /// What comes out for `bytes` after a preface, in pieces of `size`.
    fn mended(mending: &mut Mending, bytes: &[u8], size: usize) -> Vec<u8> {
        let all = [&PREFACE[..], bytes].concat();
        let mut out = Vec::new();
        let mut rest = &all[..];
        while !rest.is_empty() {
            let missing = mending.missing();
            if missing > 0 {
                let (piece, behind) = rest.split_at(missing.min(size).min(rest.len()));
                out.extend(mending.complete(piece).unwrap_or_default());
                rest = behind;
                continue;
            }
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            let mut piece = piece.to_vec();
            let passed = mending.look(&mut piece);
            out.extend_from_slice(&piece[..passed]);
            rest = behind;
        }
        out.split_off(PREFACE.len())
    }

    fn check(is_lenient: bool, bytes: &[u8], expected: &[u8]) {
        for size in 1..=bytes.len() + PREFACE.len() {
            let out = mended(&mut Mending::new(is_lenient), bytes, size);
            assert_eq!(out, expected, "pieces of {size}");
        }
    }

    const METHOD: u8 = 0x82;
    const SCHEME: u8 = 0x86;

    #[test]
    fn pseudo_headers_are_moved_to_the_front_in_their_order() {
        let (range, path) = (literal(b"range", b"bytes=0-1"), literal(b":path", b"/3"));
        let coded = [&[0, 0x80 | 4][..], &huffman::encode(b":path")[..4], &[1, b'/']].concat();
        let head = flag::END_HEADERS | flag::END_STREAM;
        let written = [&range[..], &[METHOD], &path, &[SCHEME]].concat();
        let moved = [&[METHOD][..], &path, &[SCHEME], &range].concat();
        check(true, &frame(kind::HEADERS, head, 1, &written), &frame(kind::HEADERS, head, 1, &moved));
        check(false, &frame(kind::HEADERS, head, 1, &written), &frame(kind::HEADERS, head, 1, &written));
        let padded = |block: &[u8]| {
            let payload = [&[2, 0, 0, 0, 0, 9][..], block, &[0, 0]].concat();
            frame(kind::HEADERS, head | flag::PADDED | flag::PRIORITY, 1, &payload)
        };
        check(true, &padded(&written), &padded(&moved));
        let resized = |block: &[u8]| [&[0x3f, 0xe1, 0x1f][..], block].concat();
        check(
            true,
            &frame(kind::HEADERS, head, 1, &resized(&[&range[..], &coded].concat())),
            &frame(kind::HEADERS, head, 1, &resized(&[&coded[..], &range].concat())),
        );
    }

    #[test]
    fn fields_that_read_or_change_the_table_stay_in_their_order() {
        // x-test and :authority are entered in the table, 62 is read from it.
        let entered = [&[0x40, 6][..], b"x-test", &[2], b"ok"].concat();
        let authority = [&[0x41, 1][..], b"a"].concat();
        let written = [&entered[..], &[METHOD], &authority, &[0x80 | 62, SCHEME]].concat();
        let moved = [&[METHOD, SCHEME][..], &entered, &authority, &[0x80 | 62]].concat();
        check(true, &frame(kind::HEADERS, 4, 1, &written), &frame(kind::HEADERS, 4, 1, &moved));
    }

    #[test]
    fn what_is_in_order_or_cannot_be_read_is_left_alone() {
        let range = literal(b"range", b"x");
        for block in [
            [&[METHOD, SCHEME][..], &range].concat(),
            range.clone(),
            // Ends within a field.
            [&range[..], &[METHOD], &[0, 9, b'a']].concat(),
            // An integer without end.
            [&range[..], &[METHOD], &[0xff; 9]].concat(),
        ] {
            let bytes = frame(kind::HEADERS, 4, 1, &block);
            check(true, &bytes, &bytes);
        }
        for payload in [&[][..], &[9], &[200, 0, 0]] {
            let bytes = frame(kind::HEADERS, 4 | flag::PADDED, 1, payload);
            check(true, &bytes, &bytes);
        }
        let bytes = [frame(kind::PING, 0, 0, &[1; 8]), frame(kind::DATA, 0, 1, &[0; 100])].concat();
        check(true, &bytes, &bytes);
    }

    #[test]
    fn a_field_with_an_impossible_name_becomes_one_that_is_malformed_and_as_long() {
        for name in [&b"snaFu"[..], b"sna[]fu", b"a b", b"\x80", b":odd", b":", b""] {
            for value_bytes in (0..4).chain(110..140) {
                let block = [&[METHOD][..], &literal(name, &vec![b'v'; value_bytes.min(126)])].concat();
                let bytes = frame(kind::HEADERS, 4, 1, &block);
                let out = mended(&mut Mending::new(false), &bytes, 1000);
                assert_eq!(out.len(), bytes.len());
                if block.len() > 4 {
                    assert_eq!(&out[HEAD_BYTES..HEAD_BYTES + 3], [METHOD, 0x0f, 57 - 15], "{name:?} {value_bytes}");
                    assert!(fields(&out[HEAD_BYTES..]).is_some());
                }
            }
        }
        let bytes = frame(kind::HEADERS, 4, 1, &literal(b"x-a", b"1\r\ny: 2"));
        let out = mended(&mut Mending::new(false), &bytes, 1000);
        assert_eq!(out[HEAD_BYTES..HEAD_BYTES + 2], [0x0f, 57 - 15]);
        let coded = huffman::encode(b"snaFu");
        let field = [&[0, 0x80 | coded.len() as u8][..], &coded, &[1, b'x']].concat();
        let out = mended(&mut Mending::new(false), &frame(kind::HEADERS, 4, 1, &field), 7);
        assert_eq!(&out[HEAD_BYTES..HEAD_BYTES + 2], [0x0f, 57 - 15]);
    }

    #[test]
    fn what_is_heard_is_the_last_stream_and_whether_its_block_can_be_decoded() {
        let whole = [0x82, 0x86, 0x84];
        let all = flag::END_HEADERS | flag::END_STREAM;
        for (frames, last_stream, is_undecodable) in [
            (frame(kind::PING, 0, 0, &[0; 8]), 0, false),
            (frame(kind::HEADERS, all, 5, &whole), 5, false),
            (frame(kind::HEADERS, all, 4, &[0x80]), 0, false),
            (frame(kind::HEADERS, all, 5, &[0x82, 0x80]), 5, true),
            // A text that is longer than the block.
            (frame(kind::HEADERS, all, 5, &[0x82, 0x00, 0x05, b'a']), 5, true),
            // Its rest may come in another frame.
            (frame(kind::HEADERS, flag::END_STREAM, 5, &[0x82, 0x00, 0x05, b'a']), 5, false),
            // Nor do the next frames change that.
            ([frame(kind::HEADERS, all, 5, &[0x80]), frame(kind::PING, 0, 0, &[0; 8])].concat(), 5, true),
            ([frame(kind::HEADERS, all, 5, &[0x80]), frame(kind::HEADERS, all, 7, &whole)].concat(), 5, true),
            ([frame(kind::HEADERS, 1, 5, &whole), frame(kind::CONTINUATION, 4, 5, &[0x80])].concat(), 5, true),
            ([frame(kind::HEADERS, 1, 5, &whole), frame(kind::CONTINUATION, 4, 5, &[0x86])].concat(), 5, false),
            ([frame(kind::HEADERS, 1, 5, &[0, 2]), frame(kind::CONTINUATION, 4, 5, b"ab\x01c")].concat(), 5, false),
            ([frame(kind::HEADERS, 1, 5, &whole), frame(kind::CONTINUATION, 4, 7, &[0x80])].concat(), 5, false),
            // A table larger than allowed, an entry that was never made, and one that was.
            (frame(kind::HEADERS, all, 5, &[0x3f, 0xe1, 0xff, 0x03]), 5, true),
            (frame(kind::HEADERS, all, 5, &[0x80 | 62]), 5, true),
            (frame(kind::HEADERS, all, 5, &[0x40, 1, b'a', 1, b'b', 0x80 | 62]), 5, false),
            (frame(kind::HEADERS, all, 5, &[0x0f, 62 - 15, 1, b'a']), 5, true),
            // What is in order.
            ([frame(kind::HEADERS, all, 5, &whole), frame(kind::HEADERS, all, 3, &[0x80])].concat(), 5, false),
        ] {
            for size in [1, 9, 1000] {
                let mut mending = Mending::new(true);
                mended(&mut mending, &frames, size);
                assert_eq!(mending.heard(), Heard { last_stream, is_undecodable }, "{frames:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_window_update_of_nothing_resets_a_stream_that_was_opened() {
        let head = frame(kind::HEADERS, 4, 1, &[METHOD]);
        let update = |stream, increment: u32| frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
        let nothing = frame(UNKNOWN_KIND, 0, 1, &[0; 4]);
        let written = [&head[..], &update(1, 7), &update(1, 0), &update(3, 0), &update(0, 0)].concat();
        let expected = [&head[..], &update(1, 7), &nothing, &update(3, 0), &update(0, 0)].concat();
        check(false, &written, &expected);
        check(true, &written, &expected);
        let mut mending = Mending::new(false);
        mended(&mut mending, &written, 5);
        assert_eq!(mending.take_resets(), [(1, ErrorCode::ProtocolError)]);
        let short = frame(kind::WINDOW_UPDATE, 0, 1, &[0; 3]);
        check(true, &[&head[..], &short].concat(), &[&head[..], &short].concat());
    }

    #[test]
    fn priorities_are_forgiven_whatever_they_say() {
        let headers = |depends: u32| {
            let payload = [&depends.to_be_bytes()[..], &[9, METHOD]].concat();
            frame(kind::HEADERS, 4 | flag::PRIORITY, 3, &payload)
        };
        for (payload, stream) in [(&[0, 0, 0, 3, 9][..], 3), (&[0], 1), (&[0; 9], 5)] {
            let (written, nothing) =
                (frame(kind::PRIORITY, 0, stream, payload), frame(UNKNOWN_KIND, 0, stream, payload));
            check(true, &written, &nothing);
            check(false, &written, &written);
        }
        let of_none = frame(kind::PRIORITY, 0, 0, &[0; 5]);
        check(true, &of_none, &of_none);
        check(true, &headers(3), &headers(0));
        check(true, &headers(3 | 1 << 31), &headers(0));
        check(true, &headers(1), &headers(1));
        check(false, &headers(3), &headers(3));
    }

    #[test]
    fn data_after_the_end_of_a_request_means_nothing_until_the_stream_is_forgotten() {
        let head = frame(kind::HEADERS, 4, 1, &[METHOD]);
        let (data, last) = (frame(kind::DATA, 0, 1, b"ok"), frame(kind::DATA, flag::END_STREAM, 1, b"ok"));
        let late = frame(UNKNOWN_KIND, 0, 1, b"ok");
        let other = frame(kind::DATA, 0, 3, b"ok");
        let written = [&head[..], &data, &last, &data, &data, &other].concat();
        let expected = [&head[..], &data, &last, &late, &late, &other].concat();
        check(false, &written, &expected);
        let mut mending = Mending::new(false);
        mended(&mut mending, &written, 5);
        assert_eq!(mending.take_resets(), [(1, ErrorCode::StreamClosed)]);
        assert_eq!(mending.take_resets(), []);
        for _ in 0..H2_LATE_DATA_MAX - 2 {
            assert_eq!(mending.look(&mut data.clone()), data.len());
        }
        let mut beyond = data.clone();
        assert_eq!((mending.look(&mut beyond), beyond), (data.len(), data.clone()), "the library may end it");
        let mut mending = Mending::new(false);
        mended(&mut mending, &written, 5);
        mending.forget(1);
        let mut again = data.clone();
        assert_eq!((mending.look(&mut again), again), (data.len(), data));
    }
}
