//! Arbitrary bytes as the data of an HTTP/3 client.

use bytes::Bytes;
use http3::control::ControlReader;
use http3::frames::{Frame, FrameFault, FrameReader, Place};
use http3::head::{self, HeadFault};
use http3::qpack;
use http3::unidirectional::QpackReader;

/// Longest accepted block of fields.
const BLOCK_BYTES_MAX: usize = 1000;
/// Largest accepted fields.
const FIELDS_BYTES_MAX: usize = 4000;
/// Most fields besides pseudo headers and cookies.
const FIELDS_MAX: usize = 50;

/// The result of a frame reader for bytes in pieces of this size: frames (pieces of DATA joined),
/// and its end.
fn frames(bytes: &[u8], pieces: usize) -> (Vec<Frame>, Result<(), FrameFault>) {
    let mut reader = FrameReader::new(Place::Request, BLOCK_BYTES_MAX);
    let mut frames: Vec<Frame> = Vec::new();
    for piece in bytes.chunks(pieces) {
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            match reader.next(&mut input) {
                Ok(Some(Frame::Data(more))) => match frames.last_mut() {
                    Some(Frame::Data(before)) => *before = [&before[..], &more].concat().into(),
                    _ => frames.push(Frame::Data(more)),
                },
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(fault) => return (frames, Err(fault)),
            }
        }
        assert!(input.is_empty(), "what is not read is lost");
        assert!(reader.held_bytes() <= 2 * BLOCK_BYTES_MAX, "{} bytes are held", reader.held_bytes());
    }
    let end = reader.end().map_err(FrameFault::Broken);
    (frames, end)
}

/// Reads `bytes` as the stream of a request, as a control stream, and as QPACK streams.
///
/// # Panics
/// When they are read differently in pieces than at once, or more is held than a block may have.
pub fn stream(bytes: &[u8]) {
    let whole = frames(bytes, bytes.len().max(1));
    for pieces in [1, 2, 7] {
        assert_eq!(frames(bytes, pieces), whole, "in pieces of {pieces}");
    }
    let control = |pieces: usize| {
        let mut reader = ControlReader::default();
        let mut goes_away = Ok(false);
        for piece in bytes.chunks(pieces) {
            goes_away = reader.take(Bytes::copy_from_slice(piece));
            if goes_away.is_err() {
                break;
            }
        }
        goes_away
    };
    assert_eq!(control(1), control(bytes.len().max(1)));
    for is_encoder in [true, false] {
        let at_once = QpackReader::new(is_encoder).take(bytes);
        let mut reader = QpackReader::new(is_encoder);
        let in_pieces = bytes.chunks(1).try_for_each(|piece| reader.take(piece));
        assert_eq!(in_pieces, at_once);
    }
}

/// Reads `bytes` as a block of fields.
///
/// # Panics
/// When an accepted head is malformed, fields are larger than the limit, or a written one reads
/// back differently.
pub fn block(bytes: &[u8]) {
    let mut fields = Vec::new();
    let mut sum = 0;
    let decoded = qpack::decode(bytes, |name, value| {
        sum += name.len() + value.len() + field_coding::FIELD_EXTRA_BYTES;
        fields.push((name.to_vec(), value.to_vec()));
        sum <= FIELDS_BYTES_MAX
    });
    match head::request(bytes, FIELDS_BYTES_MAX, FIELDS_MAX) {
        Ok(parts) => {
            assert_eq!(decoded, Ok(true));
            assert!(parts.uri.path_and_query().is_some() || parts.method == http::Method::CONNECT);
            let count = |name: &[u8]| fields.iter().filter(|(one, _)| one == name).count();
            assert_eq!(count(b":method"), 1);
            assert!(count(b":path") <= 1 && count(b":authority") <= 1 && count(b":scheme") <= 1);
            let mut ordinary = fields.iter().skip_while(|(name, _)| name.starts_with(b":"));
            assert!(ordinary.all(|(name, value)| {
                let is_name = !name.is_empty() && !name.iter().any(|byte| byte.is_ascii_uppercase() || *byte == b':');
                is_name && !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
            }));
        }
        Err(HeadFault::TooLong) => {
            let counts = |name: &[u8]| !name.starts_with(b":") && name != b"cookie";
            let count = fields.iter().filter(|(name, _)| counts(name)).count();
            assert!(sum > FIELDS_BYTES_MAX || count > FIELDS_MAX);
        }
        Err(HeadFault::Broken(_)) => assert!(decoded.is_err()),
        Err(HeadFault::Malformed) => {}
    }
    if let Ok(trailers) = head::trailers(bytes, FIELDS_BYTES_MAX, FIELDS_MAX) {
        let mut written = Vec::new();
        head::write_trailers(&trailers, &mut written);
        assert_eq!(head::trailers(&written, usize::MAX, FIELDS_MAX).as_ref(), Ok(&trailers));
    }
}
