//! `gzip`: compresses a body that has no coding.

use super::{Coding, Effect, Opened, Opening};
use crate::machine::{FilterError, GzipTotals, Machine, Progress};
use crate::staging::Staging;
use flate2::{Compress, Compression, FlushCompress, Status};
use surface::counter::Main;
use surface::encoding::Encoding;
use surface::limits::GZIP_STATE_BYTES;

/// The largest window, 32 KiB, which is in general use.
pub(crate) const WINDOW_BITS: u8 = 15;

const FAILED: FilterError = FilterError::new("Gzip failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    if !opening.pack(Encoding::Gzip) {
        return None;
    }
    let level = u32::try_from(opening.parameters.gzip_level).unwrap_or(6);
    let effect = Effect { length: None, coding: Coding::Packed, counter: Some(Main::NGzip) };
    Some(Opened { machine: Box::new(Gzip::new(level)), effect })
}

/// The compressor.
#[derive(Debug)]
pub struct Gzip {
    stream: Compress,
    holds_back: bool,
}

impl Gzip {
    /// A compressor with this level, 0 to 9 (`gzip_level`).
    #[must_use]
    pub fn new(level: u32) -> Gzip {
        Gzip { stream: Compress::new_gzip(Compression::new(level.min(9)), WINDOW_BITS), holds_back: false }
    }
}

impl Machine for Gzip {
    /// # Errors
    /// The library failed.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let flush = if input.is_none() { FlushCompress::Finish } else { FlushCompress::None };
        let (taken, made) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.compress(input.unwrap_or_default(), out.spare(), flush).map_err(|_| FAILED)?;
        let taken = (self.stream.total_in() - taken) as usize;
        let made = (self.stream.total_out() - made) as usize;
        out.wrote(made);
        self.holds_back |= taken > 0;
        let has_ended = status == Status::StreamEnd;
        if input.is_none() && !has_ended && made == 0 {
            return Err(FAILED);
        }
        Ok(Progress { taken, is_pending: !has_ended && out.is_full(), has_ended, passed: None })
    }

    fn flush(&mut self, out: &mut Staging) -> Result<(), FilterError> {
        let made = self.stream.total_out();
        self.stream.compress(b"", out.spare(), FlushCompress::Sync).map_err(|_| FAILED)?;
        out.wrote((self.stream.total_out() - made) as usize);
        self.holds_back = out.is_full();
        Ok(())
    }

    fn holds_back(&self) -> bool {
        self.holds_back
    }

    fn state_bytes(&self) -> usize {
        GZIP_STATE_BYTES
    }

    fn totals(&self) -> Option<GzipTotals> {
        Some(GzipTotals::of_bytes('G', self.stream.total_in(), self.stream.total_out()))
    }
}
