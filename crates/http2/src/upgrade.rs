//! `Upgrade: h2c`: a request of HTTP/1 as the first stream of an HTTP/2 connection, in the bytes
//! that a client would have sent for it.
//!
//! The HTTP/2 library has no interface for a stream that began in HTTP/1. So it is given the
//! client's next bytes (its preface and SETTINGS), with the settings of the request's header before
//! those of the frame, and then the request as a HEADERS frame. Source: RFC 7540 §3.2.

use crate::frame::{FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use field_coding::integer;

/// The most bytes of payload that any client may send in a frame from the start.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;
/// Bytes of one setting.
const SETTING_BYTES: usize = 6;

/// base64url; the bits of the last letter beyond whole bytes are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Decodes the value of a `HTTP2-Settings` header: the payload of a SETTINGS frame. `None` if it is
/// invalid.
#[must_use]
pub fn settings(value: &[u8]) -> Option<Vec<u8>> {
    let value = value.strip_suffix(b"==").or(value.strip_suffix(b"=")).unwrap_or(value);
    let payload = LENIENT.decode(value).ok()?;
    payload.len().is_multiple_of(SETTING_BYTES).then_some(payload)
}

/// Bytes that the client has sent after the 101.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// Incomplete.
    Partial,
    /// The preface and the SETTINGS frame, in this many bytes.
    Complete(usize),
    /// Invalid.
    Wrong,
}

/// Progress of the beginning of a client's connection. `settings_bytes` are those of its header.
#[must_use]
pub fn beginning(received: &[u8], settings_bytes: usize) -> Beginning {
    let seen = received.len().min(PREFACE.len());
    if received[..seen] != PREFACE[..seen] {
        return Beginning::Wrong;
    }
    let Some(head) = received.get(PREFACE.len()..).and_then(|rest| rest.first_chunk::<HEAD_BYTES>()) else {
        return Beginning::Partial;
    };
    let head = FrameHead::parse(head);
    let is_settings = head.kind == kind::SETTINGS && head.stream == 0 && !head.has(flag::ACK);
    let payload_bytes = head.payload_bytes as usize;
    if !is_settings || payload_bytes + settings_bytes > PAYLOAD_BYTES_MAX {
        return Beginning::Wrong;
    }
    let total = PREFACE.len() + HEAD_BYTES + payload_bytes;
    if received.len() < total { Beginning::Partial } else { Beginning::Complete(total) }
}

/// The bytes that represent a complete beginning and the request: see [`beginning`]. The settings
/// are those of the header; the fields, pseudo headers first, those of the request, which has no
/// body.
#[must_use]
pub fn opening<'a>(
    beginning: &[u8],
    settings: &[u8],
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Option<Vec<u8>> {
    let own = beginning.get(PREFACE.len() + HEAD_BYTES..)?;
    let mut bytes = PREFACE.to_vec();
    let payload_bytes = u32::try_from(settings.len() + own.len()).ok()?;
    let head = FrameHead { payload_bytes, kind: kind::SETTINGS, flags: 0, stream: 0 };
    bytes.extend_from_slice(&head.to_bytes());
    bytes.extend_from_slice(settings);
    bytes.extend_from_slice(own);
    let mut block = Vec::new();
    for (name, value) in fields {
        // A literal that is not indexed, with a new name.
        block.push(0);
        string(&name.to_ascii_lowercase(), &mut block);
        string(value, &mut block);
    }
    let mut parts = block.chunks(PAYLOAD_BYTES_MAX).peekable();
    let (mut kind, mut flags) = (kind::HEADERS, flag::END_STREAM);
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        let head = FrameHead { payload_bytes: u32::try_from(part.len()).ok()?, kind, flags, stream: 1 };
        bytes.extend_from_slice(&head.to_bytes());
        bytes.extend_from_slice(part);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
    Some(bytes)
}

/// Writes a string without Huffman code. Source: RFC 7541 §5.1, §5.2.
fn string(text: &[u8], block: &mut Vec<u8>) {
    integer::write(text.len() as u64, 7, 0, block);
    block.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_base64url_of_whole_settings() {
        assert_eq!(settings(b""), Some(vec![]));
        assert_eq!(settings(b"AAMAAABkAAQAAP__"), Some(vec![0, 3, 0, 0, 0, 100, 0, 4, 0, 0, 255, 255]));
        assert_eq!(settings(b"AAMAAABk"), Some(vec![0, 3, 0, 0, 0, 100]));
        for wrong in [&b"A"[..], b"AA", b"AAMAAAB", b"AAMAAABkAA", b"AAMA+ABk", b"=", b"AA MAAABk", b"AAMAAABk==="] {
            let is_empty_padding = wrong == b"=";
            assert_eq!(settings(wrong).is_some(), is_empty_padding, "{:?}", String::from_utf8_lossy(wrong));
        }
    }

    fn client(settings: &[u8]) -> Vec<u8> {
        let payload_bytes = settings.len() as u32;
        let head = FrameHead { payload_bytes, kind: kind::SETTINGS, flags: 0, stream: 0 };
        [&PREFACE[..], &head.to_bytes(), settings].concat()
    }

    #[test]
    fn a_beginning_is_complete_with_its_last_byte_and_wrong_with_its_first_wrong_one() {
        let whole = client(&[0, 3, 0, 0, 0, 1]);
        for length in 0..whole.len() {
            assert_eq!(beginning(&whole[..length], 0), Beginning::Partial, "{length}");
        }
        assert_eq!(beginning(&[&whole[..], b"more"].concat(), 0), Beginning::Complete(whole.len()));
        assert_eq!(beginning(&whole, PAYLOAD_BYTES_MAX), Beginning::Wrong);
        assert_eq!(beginning(b"PRI * HTTP/1", 0), Beginning::Wrong);
        let mut ping = whole;
        ping[PREFACE.len() + 3] = kind::PING;
        assert_eq!(beginning(&ping, 0), Beginning::Wrong);
    }

    #[test]
    fn the_settings_of_the_frame_come_after_those_of_the_header() {
        let own = client(&[0, 4, 0, 0, 0, 9]);
        let fields: [(&[u8], &[u8]); 2] = [(b":method", b"GET"), (b"Host", b"a")];
        let bytes = opening(&own, &[0, 4, 0, 0, 0, 1], fields.into_iter()).unwrap();
        let settings = &bytes[PREFACE.len()..];
        assert_eq!(settings[..HEAD_BYTES], [0, 0, 12, 4, 0, 0, 0, 0, 0]);
        assert_eq!(settings[HEAD_BYTES..21], [0, 4, 0, 0, 0, 1, 0, 4, 0, 0, 0, 9]);
        assert_eq!(&settings[21..], b"\0\0\x15\x01\x05\0\0\0\x01\0\x07:method\x03GET\0\x04host\x01a");
    }

    #[test]
    fn long_strings_and_long_blocks_are_taken_apart() {
        let mut block = Vec::new();
        string(&[b'x'; 127 + 300], &mut block);
        assert_eq!(block[..4], [127, 0x80 | 44, 2, b'x']);
        let value = vec![b'v'; 40_000];
        let fields: [(&[u8], &[u8]); 1] = [(b"a", &value)];
        let bytes = opening(&client(b""), b"", fields.into_iter()).unwrap();
        let mut rest = &bytes[PREFACE.len()..];
        let mut kinds = Vec::new();
        while let Some(head) = rest.first_chunk::<HEAD_BYTES>() {
            let head = FrameHead::parse(head);
            kinds.push((head.kind, head.flags));
            rest = &rest[HEAD_BYTES + head.payload_bytes as usize..];
        }
        assert_eq!(kinds, [(4, 0), (1, 1), (9, 0), (9, 4)]);
    }
}
