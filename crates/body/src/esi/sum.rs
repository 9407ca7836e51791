//! Header, trailer and checksum of a gzip stream that is made of pieces. Source: RFC 1952 §2.3.

/// Header of a joined stream.
pub const JOINED_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];

/// Checksum and length of plain bytes, as the trailer of a gzip stream has them. The default is
/// that of no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GzipSum {
    /// CRC-32.
    pub crc32: u32,
    /// Number of bytes.
    pub plain_bytes: u64,
}

impl GzipSum {
    /// Appends the sum of the following bytes.
    pub fn append(&mut self, next: GzipSum) {
        let mut sum = crc32fast::Hasher::new_with_initial_len(self.crc32, self.plain_bytes);
        sum.combine(&crc32fast::Hasher::new_with_initial_len(next.crc32, next.plain_bytes));
        self.crc32 = sum.finalize();
        self.plain_bytes = self.plain_bytes.wrapping_add(next.plain_bytes);
    }

    /// The end of a joined stream: an empty last block, the checksum, and the length modulo 2^32.
    #[must_use]
    pub fn trailer(self) -> [u8; 13] {
        let mut trailer = [1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];
        trailer[5..9].copy_from_slice(&self.crc32.to_le_bytes());
        trailer[9..].copy_from_slice(&(self.plain_bytes as u32).to_le_bytes());
        trailer
    }
}
