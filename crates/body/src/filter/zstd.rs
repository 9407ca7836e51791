//! `zstd`: compresses a body that has no coding. Source: RFC 8878.
//!
//! The window is a megabyte at any level; RFC 9659 allows eight at most. A short
//! body is gathered first: `gathered.rs`. Next file: `unzstd.rs`.

use super::gathered::{Gathered, Kind};
use super::{Effect, Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use surface::encoding::Encoding;
use surface::limits::{ZSTD_FILTER_LEVEL_MAX, ZSTD_STATE_BYTES_MAX, ZSTD_WINDOW_BITS};
use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

/// Memory for each byte of a short body, rounded up to a power of two: tables and window.
const BYTES_PER_BODY_BYTE: usize = 32;

const FAILED: FilterError = FilterError::new("Zstandard failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let level = opening.parameters.zstd_level.min(ZSTD_FILTER_LEVEL_MAX);
    let length = opening.length;
    opening.pack(Encoding::Zstd).then(|| Opened {
        machine: Box::new(Gathered::new(&KIND, level, length)),
        effect: Effect::of_packed(Encoding::Zstd),
    })
}

static KIND: Kind = Kind { open: |level, length| Box::new(Zstd::new(level, length)), state_bytes, frugal_level: 1 };

/// Most memory of a compressor of this level, for a body of that length if it is known, in bytes.
fn state_bytes(level: u64, body_bytes: Option<u64>) -> usize {
    // Measured for bodies of unknown length; the library shrinks its tables for a short one of
    // known length.
    let most = match level {
        0..=1 => 2 << 20,
        2..=6 => 5 << 20,
        7..=9 => 16 << 20,
        10..=12 => 48 << 20,
        _ => ZSTD_STATE_BYTES_MAX,
    };
    let of_body = |bytes: u64| (256 << 10) + BYTES_PER_BODY_BYTE * bytes.min(1 << 20).next_power_of_two() as usize;
    body_bytes.map_or(most, |bytes| most.min(of_body(bytes)))
}

/// The compressor.
pub struct Zstd {
    level: u64,
    body_bytes: Option<u64>,
    /// `None` if the library could not set it up.
    stream: Option<Encoder<'static>>,
    holds_back: bool,
    has_ended: bool,
}

impl Zstd {
    /// A compressor with this level, 1 to 19 (`zstd_level`), for a body of exactly that length if
    /// it is known.
    #[must_use]
    pub fn new(level: u64, body_bytes: Option<u64>) -> Zstd {
        let open = || {
            let mut stream = Encoder::new(level.clamp(1, 19) as i32)?;
            stream.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_BITS))?;
            stream.set_parameter(CParameter::ChecksumFlag(false))?;
            stream.set_pledged_src_size(body_bytes)?;
            std::io::Result::Ok(stream)
        };
        Zstd { level, body_bytes, stream: open().ok(), holds_back: false, has_ended: false }
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
        self.holds_back |= taken > 0;
        self.has_ended = input.is_none() && left == 0;
        if input.is_none() && made == 0 && !self.has_ended {
            return Err(FAILED);
        }
        let is_pending = !self.has_ended && out.is_full();
        Ok(Progress { taken, is_pending, has_ended: self.has_ended, passed: None })
    }

    fn flush(&mut self, out: &mut Staging) -> Result<(), FilterError> {
        let stream = self.stream.as_mut().ok_or(FAILED)?;
        let mut room = OutBuffer::around(out.spare());
        stream.flush(&mut room).map_err(|_| FAILED)?;
        let made = room.pos();
        out.wrote(made);
        self.holds_back = out.is_full();
        Ok(())
    }

    fn holds_back(&self) -> bool {
        self.holds_back
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> usize {
        state_bytes(self.level, self.body_bytes)
    }
}
