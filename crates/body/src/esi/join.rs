//! One gzip stream made of pieces: those of a page, and its fragments, which are not unpacked for that.
//!
//! ```text
//! JOINED_HEADER · pieces of the page, each a number of whole bytes · deflate blocks of fragments, made to end with a byte · trailer
//! ```
//!
//! A gzipped page is stored so that its verbatim pieces can be sent as they lie. Fragments go through [`GzipFragment`] or
//! [`PlainFragment`], machines whose output takes its place among those pieces. The checksum of all is combined from those of
//! the pieces ([`GzipSum`]). Source: RFC 1951, RFC 1952.

use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;

/// How a joined stream begins.
pub const JOINED_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];

/// Checksum and length of plain bytes, as the trailer of a gzip stream has them. The default is that of no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GzipSum {
    /// CRC-32.
    pub crc32: u32,
    /// How many bytes.
    pub plain_bytes: u64,
}

impl GzipSum {
    /// Adds what follows.
    pub fn append(&mut self, next: GzipSum) {
        let mut sum = crc32fast::Hasher::new_with_initial_len(self.crc32, self.plain_bytes);
        sum.combine(&crc32fast::Hasher::new_with_initial_len(next.crc32, next.plain_bytes));
        self.crc32 = sum.finalize();
        self.plain_bytes = self.plain_bytes.wrapping_add(next.plain_bytes);
    }

    /// What ends a joined stream: an empty last block, the checksum, and the length modulo 2^32.
    #[must_use]
    pub fn trailer(self) -> [u8; 13] {
        let mut trailer = [1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
        trailer[5..9].copy_from_slice(&self.crc32.to_le_bytes());
        trailer[9..].copy_from_slice(&(self.plain_bytes as u32).to_le_bytes());
        trailer
    }
}

/// Makes a gzipped fragment a part of a joined stream. At its end, [`Machine::gzip_sum`] has its sum.
#[derive(Debug, Default)]
pub struct GzipFragment {
    sum: GzipSum,
}

impl Machine for GzipFragment {
    /// # Errors
    /// The fragment is not one whole gzip member, or damaged.
    fn step(&mut self, _input: Option<&[u8]>, _out: &mut Staging) -> Result<Progress, FilterError> {
        Err(FilterError::new("Not yet"))
    }

    fn gzip_sum(&self) -> Option<GzipSum> {
        Some(self.sum)
    }
}

/// Longest stored block of deflate, in bytes.
const STORED_BYTES_MAX: usize = 0xffff;
/// What comes before the bytes of such a block.
const STORED_HEADER_BYTES: usize = 5;

/// Makes a plain fragment a part of a joined stream, in stored blocks. [`Machine::gzip_sum`] has its sum.
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
