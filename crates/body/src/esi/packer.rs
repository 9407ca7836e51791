//! Compresses a page so that its runs can be separated: each ends on a byte boundary, and has a
//! checksum of its own.
//!
//! Output waits in a queue until it is taken; it grows by the output of one call, so the caller
//! passes a bounded number of bytes and takes the previous output before the next call.

use super::sum::{GzipSum, JOINED_HEADER};
use flate2::{Compress, Compression, FlushCompress, Status};

/// Room that the library is given at a time, in bytes.
const ROOM_BYTES: usize = 4 << 10;

/// The compressed page.
#[derive(Debug)]
pub(crate) struct Packer {
    stream: Compress,
    /// The sum of the runs that have ended.
    sum: GzipSum,
    run: crc32fast::Hasher,
    run_bytes: u64,
    made: Vec<u8>,
    /// Number of bytes of `made` that were taken.
    taken: usize,
    made_bytes: u64,
    has_failed: bool,
}

impl Packer {
    /// A compressed page without content, with this level, 0 to 9. Compat: an empty block comes
    /// first, so that positions in the body equal those that Varnish 7.1 would report.
    pub(crate) fn new(level: u32) -> Packer {
        let mut packer = Packer {
            stream: Compress::new(Compression::new(level.min(9)), false),
            sum: GzipSum::default(),
            run: crc32fast::Hasher::new(),
            run_bytes: 0,
            made: JOINED_HEADER.to_vec(),
            taken: 0,
            made_bytes: JOINED_HEADER.len() as u64,
            has_failed: false,
        };
        packer.compress(&[], FlushCompress::Full);
        packer
    }

    /// Number of output bytes since the beginning; the complete page so far once a run has ended.
    pub(crate) fn made_bytes(&self) -> u64 {
        self.made_bytes
    }

    /// True if the library failed; the output is useless then.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Adds bytes of the page.
    pub(crate) fn pack(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.run.update(bytes);
            self.run_bytes += bytes.len() as u64;
            self.compress(bytes, FlushCompress::None);
        }
    }

    /// Ends a run on a byte boundary; returns its checksum. If the next run is one that is sent, it
    /// does not refer back.
    pub(crate) fn end_run(&mut self, before_verbatim: bool) -> u32 {
        self.compress(&[], if before_verbatim { FlushCompress::Full } else { FlushCompress::Sync });
        let crc32 = std::mem::take(&mut self.run).finalize();
        self.sum.append(GzipSum { crc32, plain_bytes: std::mem::take(&mut self.run_bytes) });
        crc32
    }

    /// Ends the page; the last run has ended.
    pub(crate) fn finish(&mut self) {
        self.compress(&[], FlushCompress::Finish);
        let trailer = self.sum.trailer();
        self.made.extend_from_slice(&trailer[5..]);
        self.made_bytes += 8;
    }

    fn compress(&mut self, mut bytes: &[u8], flush: FlushCompress) {
        loop {
            let (taken, made, start) = (self.stream.total_in(), self.stream.total_out(), self.made.len());
            self.made.resize(start + ROOM_BYTES, 0);
            let status = self.stream.compress(bytes, &mut self.made[start..], flush);
            let taken = (self.stream.total_in() - taken) as usize;
            let made = (self.stream.total_out() - made) as usize;
            self.made.truncate(start + made);
            self.made_bytes += made as u64;
            bytes = &bytes[taken..];
            // If a step fills its room there may be more output; otherwise there is none.
            match status {
                Ok(Status::StreamEnd) => return,
                Ok(Status::Ok | Status::BufError) if made == ROOM_BYTES || (!bytes.is_empty() && taken > 0) => {}
                Ok(_) if bytes.is_empty() => return,
                _ => {
                    self.has_failed = true;
                    return;
                }
            }
        }
    }

    /// Output that was not taken yet.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.made[self.taken..]
    }

    /// Marks some of it as taken.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken >= self.made.len() {
            self.made.clear();
            self.taken = 0;
        }
    }
}
