//! `zstd`: compresses a body that has no coding. Source: RFC 8878.
//!
//! The window is a megabyte, whatever the level; RFC 9659 allows eight at most. Next file: `unzstd.rs`.

use super::{Effect, Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use surface::encoding::Encoding;
use surface::limits::{ZSTD_FILTER_LEVEL_MAX, ZSTD_STATE_BYTES_MAX, ZSTD_WINDOW_BITS};
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

const FAILED: FilterError = FilterError::new("Zstandard failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let level = opening.parameters.zstd_level.min(ZSTD_FILTER_LEVEL_MAX);
    let length = opening.length;
    opening
        .pack(Encoding::Zstd)
        .then(|| Opened { machine: Box::new(Zstd::new(level, length)), effect: Effect::of_packed(Encoding::Zstd) })
}

/// The compressor.
pub struct Zstd {
    level: u64,
    /// `None` when the library could not set it up.
    stream: Option<Encoder<'static>>,
    has_ended: bool,
}

impl Zstd {
    /// A compressor with this level, 1 to 19 (`zstd_level`), for a body of exactly that length if it is known.
    #[must_use]
    pub fn new(level: u64, body_bytes: Option<u64>) -> Zstd {
        let open = || {
            let mut stream = Encoder::new(level.clamp(1, 19) as i32)?;
            stream.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_BITS))?;
            stream.set_parameter(CParameter::ChecksumFlag(false))?;
            stream.set_pledged_src_size(body_bytes)?;
            std::io::Result::Ok(stream)
        };
        Zstd { level, stream: open().ok(), has_ended: false }
    }
}

impl Machine for Zstd {
    /// # Errors
    /// The library failed.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        if self.has_ended {
            return Ok(Progress { has_ended: true, ..Progress::default() });
        }
        let stream = self.stream.as_mut().ok_or(FAILED)?;
        let mut room = OutBuffer::around(out.spare());
        let mut bytes = InBuffer::around(input.unwrap_or_default());
        let left = match input {
            Some(_) => stream.run(&mut bytes, &mut room),
            None => stream.finish(&mut room, true),
        };
        let left = left.map_err(|_| FAILED)?;
        let (taken, made) = (bytes.pos(), room.pos());
        out.wrote(made);
        self.has_ended = input.is_none() && left == 0;
        if input.is_none() && made == 0 && !self.has_ended {
            return Err(FAILED);
        }
        let is_pending = !self.has_ended && out.is_full();
        Ok(Progress { taken, is_pending, has_ended: self.has_ended, passed: None })
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> usize {
        // Measured for bodies of unknown length; a short one of known length takes less.
        match self.level {
            0..=6 => 4 << 20,
            7..=9 => 16 << 20,
            10..=12 => 48 << 20,
            _ => ZSTD_STATE_BYTES_MAX,
        }
    }
}
