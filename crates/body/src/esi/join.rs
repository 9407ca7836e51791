//! One gzip stream made of pieces: those of a page, and its fragments, which are not decompressed
//! for that.
//!
//! ```text
//! JOINED_HEADER · page pieces and fragments' blocks, ending on byte boundaries · GzipSum::trailer
//! ```
//!
//! A gzipped page is stored so that its verbatim pieces can be sent as stored. Fragments pass
//! through [`GzipFragment`] or [`PlainFragment`], machines whose output is inserted between those
//! pieces. A page that is a fragment itself gives its pieces without header and trailer. The
//! checksum of all is combined from those of the pieces ([`GzipSum`]). Source: RFC 1951, RFC 1952.

use super::deflate::{Bits, Pause, Walk};
use crate::filter::gunzip::{JUNK_AFTER_END, TRUNCATED};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;

pub use super::sum::{GzipSum, JOINED_HEADER};

const NO_GZIP: FilterError = FilterError::new("Invalid Gzip data: incorrect header check");
const BAD_METHOD: FilterError = FilterError::new("Invalid Gzip data: unknown compression method");
const BAD_FLAGS: FilterError = FilterError::new("Invalid Gzip data: unknown header flags set");
const BAD_HEADER: FilterError = FilterError::new("Invalid Gzip data: header crc mismatch");
const BAD_LENGTH: FilterError = FilterError::new("Invalid Gzip data: incorrect length check");

const HAS_HEADER_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// The part of a gzip member that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// The fixed fields of the header; this many bytes of them are read.
    Fixed(usize),
    ExtraLength(usize),
    Extra(u16),
    Name,
    Comment,
    HeaderCrc(usize),
    Blocks,
    /// The checksum and the length; this many bytes of them are read.
    Trailer(usize),
    Whole,
}

/// Makes a gzipped fragment a part of a joined stream: without header and trailer, its last block
/// no longer marked as the last, and ending on a byte boundary. At the end, [`Machine::gzip_sum`]
/// has its sum, whose checksum is not verified.
#[derive(Debug)]
pub struct GzipFragment {
    part: Part,
    flags: u8,
    /// Bytes of a field being read.
    field: [u8; 8],
    header_crc: crc32fast::Hasher,
    walk: Walk,
    bits: Bits,
    /// Bytes that were read and not completely used.
    held: Vec<u8>,
    /// Number of bytes of the blocks that were output.
    sent: u64,
    sum: GzipSum,
}

impl Default for GzipFragment {
    fn default() -> GzipFragment {
        GzipFragment {
            part: Part::Fixed(0),
            flags: 0,
            field: [0; 8],
            header_crc: crc32fast::Hasher::new(),
            walk: Walk::default(),
            bits: Bits::default(),
            held: Vec::with_capacity(8),
            sent: 0,
            sum: GzipSum::default(),
        }
    }
}

/// Maximum output of a step besides its input: the held bytes, and the end of the last block.
const STEP_EXTRA_BYTES: usize = 16;

impl Machine for GzipFragment {
    /// # Errors
    /// The fragment is neither empty nor one complete gzip member, or damaged. Compat: bytes after
    /// the member are junk, even a second one.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let Some(bytes) = input else {
            let progress = Progress { has_ended: true, ..Progress::default() };
            let is_whole = matches!(self.part, Part::Fixed(0) | Part::Whole);
            return if is_whole { Ok(progress) } else { Err(TRUNCATED) };
        };
        let bytes = &bytes[..bytes.len().min(out.spare().len() - STEP_EXTRA_BYTES)];
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken) {
            taken += match self.part {
                Part::Whole => return Err(JUNK_AFTER_END),
                Part::Trailer(at) => {
                    self.trailer(*byte, at)?;
                    1
                }
                Part::Blocks => {
                    let (count, pause) = self.blocks(&bytes[taken..], out)?;
                    if pause == Pause::Turn {
                        return Ok(Progress { taken: taken + count, ..Progress::default() });
                    }
                    count
                }
                _ => {
                    self.header(*byte)?;
                    1
                }
            };
        }
        Ok(Progress { taken, ..Progress::default() })
    }

    fn state_bytes(&self) -> usize {
        Walk::MEMORY_BYTES
    }

    fn gzip_sum(&self) -> Option<GzipSum> {
        Some(self.sum)
    }
}

impl GzipFragment {
    /// The next byte of the header.
    fn header(&mut self, byte: u8) -> Result<(), FilterError> {
        if !matches!(self.part, Part::HeaderCrc(_)) {
            self.header_crc.update(&[byte]);
        }
        self.part = match self.part {
            Part::Fixed(at) => {
                match (at, byte) {
                    (0, 0x1f) | (1, 0x8b) | (2, 8) | (4.., _) => {}
                    (0 | 1, _) => return Err(NO_GZIP),
                    (2, _) => return Err(BAD_METHOD),
                    (_, flags) if flags & 0xe0 != 0 => return Err(BAD_FLAGS),
                    (_, flags) => self.flags = flags,
                }
                if at < 9 { Part::Fixed(at + 1) } else { self.after(0) }
            }
            Part::ExtraLength(0) => {
                self.field[0] = byte;
                Part::ExtraLength(1)
            }
            Part::ExtraLength(_) => match u16::from_le_bytes([self.field[0], byte]) {
                0 => self.after(HAS_EXTRA),
                length => Part::Extra(length),
            },
            Part::Extra(1) => self.after(HAS_EXTRA),
            Part::Extra(left) => Part::Extra(left - 1),
            Part::Name if byte == 0 => self.after(HAS_NAME),
            Part::Comment if byte == 0 => self.after(HAS_COMMENT),
            part @ (Part::Name | Part::Comment) => part,
            Part::HeaderCrc(0) => {
                self.field[0] = byte;
                Part::HeaderCrc(1)
            }
            Part::HeaderCrc(_) => {
                let crc = std::mem::take(&mut self.header_crc).finalize();
                if u16::from_le_bytes([self.field[0], byte]) != crc as u16 {
                    return Err(BAD_HEADER);
                }
                Part::Blocks
            }
            part @ (Part::Blocks | Part::Trailer(_) | Part::Whole) => part,
        };
        Ok(())
    }

    /// The part that comes after the optional one of this flag (0 = after the fixed fields).
    fn after(&self, flag: u8) -> Part {
        let next = |part: u8| flag < part && self.flags & part != 0;
        if next(HAS_EXTRA) {
            Part::ExtraLength(0)
        } else if next(HAS_NAME) {
            Part::Name
        } else if next(HAS_COMMENT) {
            Part::Comment
        } else if self.flags & HAS_HEADER_CRC != 0 {
            Part::HeaderCrc(0)
        } else {
            Part::Blocks
        }
    }

    /// Walks through the blocks; the bytes used become output. Returns the number of bytes taken.
    fn blocks(&mut self, bytes: &[u8], out: &mut Staging) -> Result<(usize, Pause), FilterError> {
        let (taken, pause) = self.walk.go_on(&mut self.bits, bytes)?;
        let whole = (self.bits.used() / 8 - self.sent) as usize;
        let from_held = whole.min(self.held.len());
        let room = out.spare();
        room[..from_held].copy_from_slice(&self.held[..from_held]);
        self.held.drain(..from_held);
        let from_bytes = whole - from_held;
        room[from_held..whole].copy_from_slice(&bytes[..from_bytes]);
        self.held.extend_from_slice(&bytes[from_bytes..taken]);
        self.unmark(&mut room[..whole]);
        out.wrote(whole);
        self.sent += whole as u64;
        if pause == Pause::Ended {
            self.end_blocks(out);
            self.end_of_bits()?;
        }
        Ok((taken, pause))
    }

    /// Clears the mark of the last block, if it is in these bytes.
    fn unmark(&self, bytes: &mut [u8]) {
        let Some(mark) = self.walk.last_mark() else { return };
        let at = (mark / 8).checked_sub(self.sent).and_then(|at| usize::try_from(at).ok());
        if let Some(byte) = at.and_then(|at| bytes.get_mut(at)) {
            *byte &= !(1 << (mark & 7));
        }
    }

    /// Fills up the last byte with the beginning of an empty stored block, which is continued by
    /// the next byte.
    fn end_blocks(&mut self, out: &mut Staging) {
        let used = (self.bits.used() & 7) as u32;
        if used > 0 {
            let mut last = [self.held.first().copied().unwrap_or_default() & ((1 << used) - 1)];
            self.unmark(&mut last);
            let header_bytes = if used + 3 > 8 { &[last[0], 0][..] } else { &last[..] };
            out.copy_from(header_bytes);
            out.copy_from(&[0, 0, 0xff, 0xff]);
        }
        self.held.clear();
    }

    /// The bits read beyond the blocks are the beginning of the trailer.
    fn end_of_bits(&mut self) -> Result<(), FilterError> {
        self.bits.align();
        self.sum.plain_bytes = self.walk.plain_bytes();
        self.part = Part::Trailer(0);
        while let Some(byte) = self.bits.byte() {
            let Part::Trailer(at) = self.part else { return Err(JUNK_AFTER_END) };
            self.trailer(byte, at)?;
        }
        Ok(())
    }

    fn trailer(&mut self, byte: u8, at: usize) -> Result<(), FilterError> {
        self.field[at] = byte;
        self.part = Part::Trailer(at + 1);
        if at + 1 == self.field.len() {
            let [crc32, length] = [0, 4].map(|at| {
                let field = self.field[at..].first_chunk().copied().unwrap_or_default();
                u32::from_le_bytes(field)
            });
            if length != self.sum.plain_bytes as u32 {
                return Err(BAD_LENGTH);
            }
            self.sum.crc32 = crc32;
            self.part = Part::Whole;
        }
        Ok(())
    }
}

/// Longest stored block of deflate, in bytes.
const STORED_BYTES_MAX: usize = 0xffff;
/// Length of the header of such a block.
const STORED_HEADER_BYTES: usize = 5;

/// Makes a plain fragment a part of a joined stream, in stored blocks. [`Machine::gzip_sum`] has
/// its sum.
#[derive(Debug, Default)]
pub struct PlainFragment {
    sum: GzipSum,
}

impl Machine for PlainFragment {
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let bytes = input.unwrap_or_default();
        let room = out.spare();
        let taken = bytes.len().min(STORED_BYTES_MAX).min(room.len().saturating_sub(STORED_HEADER_BYTES));
        if taken > 0 {
            let length = taken as u16;
            room[0] = 0;
            room[1..3].copy_from_slice(&length.to_le_bytes());
            room[3..5].copy_from_slice(&(!length).to_le_bytes());
            room[STORED_HEADER_BYTES..][..taken].copy_from_slice(&bytes[..taken]);
            out.wrote(STORED_HEADER_BYTES + taken);
            self.sum.append(GzipSum { crc32: crc32fast::hash(&bytes[..taken]), plain_bytes: taken as u64 });
        }
        Ok(Progress { taken, has_ended: input.is_none(), ..Progress::default() })
    }

    fn gzip_sum(&self) -> Option<GzipSum> {
        Some(self.sum)
    }
}
