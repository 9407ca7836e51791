//! Reader of the frames in one direction's bytes, in pieces of any size.
//!
//! Payloads are skipped, or reported in pieces as they arrive; only the requested beginning of each
//! is kept, and that is copied only if it arrives in several pieces.

use crate::frame::{FrameHead, HEAD_BYTES};

/// Memory that remains allocated between two frames.
const KEPT_BYTES: usize = 256;

/// The state between two pieces.
#[derive(Debug, Default)]
pub struct FrameReader {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// The frame whose payload is under way.
    open: Option<Open>,
    /// The kept beginning of its payload, if it came in pieces.
    kept: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    head: FrameHead,
    left: u32,
    /// Number of payload bytes that were requested.
    wanted: usize,
    /// Part of it arrived in an earlier piece.
    is_split: bool,
    /// Pieces of the payload are reported.
    is_in_pieces: bool,
    /// All of the payload was reported, and the end was not.
    is_over: bool,
}

/// Item found in the bytes.
#[derive(PartialEq, Eq, Debug)]
pub enum Found<'a> {
    /// The head of a frame.
    Head(FrameHead),
    /// The next bytes of the payload of a frame, after [`FrameReader::pieces`].
    Piece(FrameHead, &'a [u8]),
    /// The end of a frame, with the beginning of its payload.
    End(FrameHead, &'a [u8]),
}

impl FrameReader {
    /// The next item in `input`, which is cut to the bytes after it; `None` at the end of the
    /// input. After a head [`FrameReader::keep`] requests a part of the payload.
    pub fn next<'a, 'input: 'a>(&'a mut self, input: &mut &'input [u8]) -> Option<Found<'a>> {
        let Some(mut open) = self.open else { return self.next_head(input).map(Found::Head) };
        if open.is_over {
            self.open = None;
            return Some(Found::End(open.head, &self.kept));
        }
        if input.is_empty() && open.left > 0 {
            return None;
        }
        let here = input.len().min(open.left as usize);
        let (piece, rest) = input.split_at(here);
        *input = rest;
        let is_end = here == open.left as usize;
        if is_end && !open.is_split && !(open.is_in_pieces && here > 0) {
            self.open = None;
            return Some(Found::End(open.head, &piece[..open.wanted.min(here)]));
        }
        let missing = open.wanted.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&piece[..missing.min(here)]);
        if is_end && !(open.is_in_pieces && here > 0) {
            self.open = None;
            return Some(Found::End(open.head, &self.kept));
        }
        open.left -= here as u32;
        open.is_split = true;
        open.is_over = is_end;
        self.open = Some(open);
        open.is_in_pieces.then_some(Found::Piece(open.head, piece))
    }

    fn next_head(&mut self, input: &mut &[u8]) -> Option<FrameHead> {
        let here = input.len().min(HEAD_BYTES - self.head_bytes);
        let (piece, rest) = input.split_at(here);
        *input = rest;
        self.head[self.head_bytes..self.head_bytes + here].copy_from_slice(piece);
        self.head_bytes += here;
        if self.head_bytes < HEAD_BYTES {
            return None;
        }
        self.head_bytes = 0;
        self.kept.clear();
        self.kept.shrink_to(KEPT_BYTES);
        let head = FrameHead::parse(&self.head);
        self.open = Some(Open {
            head,
            left: head.payload_bytes,
            wanted: 0,
            is_split: false,
            is_in_pieces: false,
            is_over: false,
        });
        Some(head)
    }

    /// Requests the first bytes of the payload of the frame whose head was just found.
    pub fn keep(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.wanted = bytes;
        }
    }

    /// Requests the payload of the frame whose head was just found, in pieces as they arrive.
    pub fn pieces(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_in_pieces = true;
        }
    }

    /// True if a frame has begun and is not complete.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.head_bytes > 0 || self.open.is_some()
    }

    /// The frame whose payload is under way.
    #[must_use]
    pub fn open(&self) -> Option<FrameHead> {
        self.open.map(|open| open.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::kind;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let head = FrameHead { payload_bytes: payload.len() as u32, kind, flags: 0, stream: 1 };
        [&head.to_bytes()[..], payload].concat()
    }

    /// Everything found in `bytes` cut into pieces of `size`, four bytes of each payload kept.
    fn read(bytes: &[u8], size: usize) -> Vec<(FrameHead, Option<Vec<u8>>)> {
        let mut reader = FrameReader::default();
        let mut all = Vec::new();
        for mut piece in bytes.chunks(size) {
            loop {
                match reader.next(&mut piece) {
                    Some(Found::Head(head)) => {
                        all.push((head, None));
                        reader.keep(4);
                    }
                    Some(Found::End(head, payload)) => all.push((head, Some(payload.to_vec()))),
                    Some(Found::Piece(..)) => panic!("not requested"),
                    None => break,
                }
            }
            assert!(piece.is_empty());
        }
        assert!(!reader.is_inside());
        all
    }

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let bytes = [frame(kind::DATA, b"abcdefg"), frame(kind::SETTINGS, b""), frame(kind::PING, b"12")].concat();
        let whole = read(&bytes, usize::MAX);
        let payloads: Vec<_> = whole.iter().filter_map(|(head, kept)| Some((head.kind, kept.as_deref()?))).collect();
        assert_eq!(payloads, [(kind::DATA, &b"abcd"[..]), (kind::SETTINGS, b""), (kind::PING, b"12")]);
        for size in 1..bytes.len() {
            assert_eq!(read(&bytes, size), whole, "pieces of {size}");
        }
    }

    #[test]
    fn pieces_are_the_payload() {
        let bytes = [frame(kind::DATA, b"abcdefg"), frame(kind::DATA, b""), frame(kind::DATA, b"hi")].concat();
        for size in 1..=bytes.len() {
            for wanted in [0, 3] {
                let (mut reader, mut payloads, mut ends) = (FrameReader::default(), vec![Vec::new()], Vec::new());
                for mut input in bytes.chunks(size) {
                    loop {
                        match reader.next(&mut input) {
                            Some(Found::Head(_)) => {
                                reader.keep(wanted);
                                reader.pieces();
                            }
                            Some(Found::Piece(_, piece)) => payloads.last_mut().unwrap().extend_from_slice(piece),
                            Some(Found::End(_, kept)) => {
                                ends.push(kept.to_vec());
                                payloads.push(Vec::new());
                            }
                            None => break,
                        }
                    }
                }
                assert_eq!(payloads, [&b"abcdefg"[..], b"", b"hi", b""], "{size}");
                assert_eq!(ends, [&b"abcdefg"[..wanted], b"", &b"hi"[..wanted.min(2)]], "{size}");
                assert!(!reader.is_inside());
            }
        }
    }

    #[test]
    fn a_payload_is_skipped_and_not_kept() {
        let mut reader = FrameReader::default();
        let bytes = frame(kind::DATA, &[7; 100_000]);
        for mut piece in bytes.chunks(1000) {
            while reader.next(&mut piece).is_some() {}
        }
        assert_eq!(reader.kept.capacity(), 0);
    }
}
