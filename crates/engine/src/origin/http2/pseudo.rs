//! Pseudo-header fields of requests in the heads of responses, which make those malformed: the
//! library drops them unseen.
//!
//! A header block is decoded only as far as the names of its fields require. The dynamic table is
//! not followed: such a field can enter it only from a block that has it as a literal, so after one
//! of those every reference to the table counts as one. *Invariant:* memory is bounded by the size
//! of a block that the library accepts before it ends the connection. Source: RFC 9113 §8.3, RFC
//! 7541 §6.

use field_coding::{huffman, integer};
use http2::frame::{FrameHead, flag, kind};

/// The one pseudo-header field of a response.
const STATUS: &[u8] = b":status";
/// Entries of the static table with the fields of requests: `:authority`, `:method`, `:path`,
/// `:scheme`.
const REQUEST_ENTRIES: std::ops::RangeInclusive<u64> = 1..=7;
/// The last entry of the static table.
const STATIC_ENTRIES: u64 = 61;
/// Bytes of an integer after its first, as far as the library reads them.
const MORE_BYTES_MAX: u32 = 5;
/// The Huffman code of `:`, which has seven bits.
const COLON_CODE: u8 = 0b101_1100;

/// The header blocks of one connection, in their order.
#[derive(Default)]
pub(super) struct HeadBlocks {
    /// The block that is not complete.
    block: Vec<u8>,
    /// A field of a request may be in the dynamic table.
    is_tainted: bool,
}

impl HeadBlocks {
    /// Number of bytes of a frame's payload that are needed.
    pub(super) fn wanted_bytes(head: FrameHead) -> usize {
        if matches!(head.kind, kind::HEADERS | kind::CONTINUATION) { head.payload_bytes as usize } else { 0 }
    }

    /// Takes a frame. True if it completes a block with a field that only a request may have.
    pub(super) fn take(&mut self, head: FrameHead, payload: &[u8]) -> bool {
        let fragment = match head.kind {
            kind::HEADERS => {
                self.block.clear();
                fragment_of(head, payload)
            }
            kind::CONTINUATION => payload,
            _ => return false,
        };
        if !head.has(flag::END_HEADERS) {
            self.block.extend_from_slice(fragment);
            return false;
        }
        let is_found = if self.block.is_empty() {
            names_request_field(fragment, self.is_tainted)
        } else {
            self.block.extend_from_slice(fragment);
            names_request_field(&std::mem::take(&mut self.block), self.is_tainted)
        };
        self.is_tainted |= is_found;
        is_found
    }
}

/// The part of a HEADERS frame's payload that belongs to the block; empty if the frame is
/// malformed, which the library reports.
fn fragment_of(head: FrameHead, mut payload: &[u8]) -> &[u8] {
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let Some((&length, rest)) = payload.split_first() else { return &[] };
        (padding, payload) = (usize::from(length), rest);
    }
    if head.has(flag::PRIORITY) {
        payload = payload.get(5..).unwrap_or_default();
    }
    payload.get(..payload.len().saturating_sub(padding)).unwrap_or_default()
}

/// True if a block has a pseudo-header field other than `:status`. A block that cannot be decoded
/// counts as having none: it is a connection error.
fn names_request_field(mut block: &[u8], is_tainted: bool) -> bool {
    let is_request_entry = |entry: u64| REQUEST_ENTRIES.contains(&entry) || is_tainted && entry > STATIC_ENTRIES;
    while let Some(&first) = block.first() {
        // The bits of the index: an indexed field, a size of the table, literals with and without
        // an entry in it.
        let (bits, is_literal) = match first {
            0x80.. => (7, false),
            0x40.. => (6, true),
            0x20.. => (5, false),
            _ => (4, true),
        };
        let is_size = (0x20..0x40).contains(&first);
        let Ok(entry) = integer::read(&mut block, bits, MORE_BYTES_MAX) else { return false };
        if !is_size && is_request_entry(entry) {
            return true;
        }
        if is_literal {
            if entry == 0 {
                match string(&mut block) {
                    Some((name, is_coded)) if is_request_name(name, is_coded) => return true,
                    Some(_) => {}
                    None => return false,
                }
            }
            if string(&mut block).is_none() {
                return false;
            }
        }
    }
    false
}

/// The bytes of a string, and true if they are in the Huffman code.
fn string<'a>(block: &mut &'a [u8]) -> Option<(&'a [u8], bool)> {
    let is_coded = block.first()? & 0x80 != 0;
    let length = usize::try_from(integer::read(block, 7, MORE_BYTES_MAX).ok()?).ok()?;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some((text, is_coded))
}

fn is_request_name(name: &[u8], is_coded: bool) -> bool {
    let Some(&first) = name.first() else { return false };
    if !is_coded {
        return first == b':' && name != STATUS;
    }
    let mut text = Vec::new();
    first >> 1 == COLON_CODE && (huffman::decode(name, &mut text).is_err() || text != STATUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(pattern: u8, name: &[u8], is_coded: bool) -> Vec<u8> {
        let mut bytes = vec![pattern];
        let name = if is_coded { huffman::encode(name) } else { name.to_vec() };
        integer::write(name.len() as u64, 7, if is_coded { 0x80 } else { 0 }, &mut bytes);
        bytes.extend_from_slice(&name);
        bytes.extend_from_slice(b"\x01v");
        bytes
    }

    #[test]
    fn fields_of_requests_are_found_however_they_are_written() {
        let ok = [0x88];
        for entry in 1..=7u8 {
            assert!(names_request_field(&[0x88, 0x80 | entry], false), "entry {entry}");
            for pattern in [0x40, 0x00, 0x10] {
                assert!(names_request_field(&[0x88, pattern | entry, 1, b'v'], false), "name of entry {entry}");
            }
        }
        for is_coded in [false, true] {
            for pattern in [0x40, 0x00, 0x10] {
                for name in [":method", ":path", ":scheme", ":authority", ":protocol", ":anything", ":"] {
                    let block = [&ok[..], &literal(pattern, name.as_bytes(), is_coded)].concat();
                    assert!(names_request_field(&block, false), "{name} {is_coded}");
                }
                for name in [":status", "method", "x:y", "set-cookie", "9"] {
                    let block = [&literal(pattern, name.as_bytes(), is_coded)[..], &ok].concat();
                    assert!(!names_request_field(&block, false), "{name} {is_coded}");
                }
            }
        }
        // Sizes of the table, references to it, and truncated blocks.
        assert!(!names_request_field(&[0x20, 0x3f, 0xe1, 0x1f, 0x88, 0xbe], false));
        assert!(names_request_field(&[0x88, 0xbe], true));
        assert!(!names_request_field(&[0x88, 0x40], false) && !names_request_field(&[0xff], true));
    }

    #[test]
    fn a_block_is_read_however_its_frames_are_cut_and_padded() {
        let frame = |kind: u8, flags: u8, payload: &[u8]| FrameHead {
            payload_bytes: payload.len() as u32,
            kind,
            flags,
            stream: 1,
        };
        let block = [&[0x88][..], &literal(0x40, b":method", false)].concat();
        for cut in 1..block.len() {
            let mut blocks = HeadBlocks::default();
            let (first, second) = block.split_at(cut);
            let padded = [&[3, 0, 0, 0, 0, 16][..], first, b"\x82\x82\x82"].concat();
            assert!(!blocks.take(frame(kind::HEADERS, flag::PADDED | flag::PRIORITY, &padded), &padded));
            assert!(blocks.take(frame(kind::CONTINUATION, flag::END_HEADERS, second), second), "cut at {cut}");
            let later = [0x88, 0xbe];
            assert!(blocks.take(frame(kind::HEADERS, flag::END_HEADERS, &later), &later), "out of the table");
        }
        let mut blocks = HeadBlocks::default();
        let plain = [0x88, 0xbe];
        assert!(!blocks.take(frame(kind::HEADERS, flag::END_HEADERS, &plain), &plain));
        assert!(!blocks.take(frame(kind::HEADERS, flag::END_HEADERS | flag::PADDED, &[9]), &[9]));
    }
}
