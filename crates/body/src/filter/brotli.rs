//! `brotli`: compresses a body that has no coding. Source: RFC 7932.
//!
//! The window is half a megabyte at most, at any level: this is the memory that a client needs to
//! read the body. A short body is gathered first: `gathered.rs`. Next file: `unbrotli.rs`.

use super::gathered::{Gathered, Kind};
use super::{Effect, Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use surface::encoding::Encoding;
use surface::limits::{BROTLI_FILTER_LEVEL_MAX, BROTLI_STATE_BYTES_MAX, BROTLI_WINDOW_BITS, BROTLI_WINDOW_BITS_MIN};

/// Memory next to the tables for each byte of a short body: window, commands, literals.
const BYTES_PER_BODY_BYTE: usize = 40;

const FAILED: FilterError = FilterError::new("Brotli failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let level = opening.parameters.brotli_level.min(BROTLI_FILTER_LEVEL_MAX);
    let length = opening.length;
    opening.pack(Encoding::Brotli).then(|| Opened {
        machine: Box::new(Gathered::new(&KIND, level, length)),
        effect: Effect::of_packed(Encoding::Brotli),
    })
}

static KIND: Kind = Kind { open: |level, length| Box::new(Brotli::new(level, length)), state_bytes, frugal_level: 1 };

/// Window for a body of that length: no larger than the body, since a reader allocates it too. With
/// smaller ones than [`BROTLI_WINDOW_BITS_MIN`] the library takes tables of 32 MB.
fn window_bits(body_bytes: Option<u64>) -> u32 {
    let bits = body_bytes.map_or(BROTLI_WINDOW_BITS, |bytes| bytes.max(1).ilog2() + 1);
    bits.clamp(BROTLI_WINDOW_BITS_MIN, BROTLI_WINDOW_BITS)
}

/// Most memory of a compressor of this level, for a body of that length if it is known, in bytes.
fn state_bytes(level: u64, body_bytes: Option<u64>) -> usize {
    // Measured; the hash tables of each level differ, and the rest grows with the body.
    let (tables, most) = match level {
        0..=1 => (256 << 10, 256 << 10),
        2..=3 => (512 << 10, 4 << 20),
        4 => (1 << 20, 8 << 20),
        5..=6 => (3 << 20, 9 << 20),
        7..=8 => (9 << 20, 24 << 20),
        9 => (36 << 20, BROTLI_STATE_BYTES_MAX),
        _ => (16 << 20, 16 << 20),
    };
    let of_body =
        body_bytes.map_or(most, |bytes| tables + BYTES_PER_BODY_BYTE * (bytes.min(1 << 20) as usize + (16 << 10)));
    most.min(of_body)
}

/// The compressor.
pub struct Brotli {
    level: u64,
    body_bytes: Option<u64>,
    stream: Box<BrotliEncoderStateStruct<StandardAlloc>>,
    holds_back: bool,
}

impl Brotli {
    /// A compressor with this level, 0 to 11 (`brotli_level`), for a body of that length if it is
    /// known.
    #[must_use]
    pub fn new(level: u64, body_bytes: Option<u64>) -> Brotli {
        let mut stream = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
        let hint = body_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        for (name, value) in [
            (BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level.min(11) as u32),
            (BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window_bits(body_bytes)),
            (BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, hint),
        ] {
            stream.set_parameter(name, value);
        }
        Brotli { level, body_bytes, stream, holds_back: false }
    }
}

impl Brotli {
    /// Runs the library on these bytes; returns the number of bytes consumed and produced.
    ///
    /// # Errors
    /// The library failed.
    fn run(
        &mut self,
        operation: BrotliEncoderOperation,
        bytes: &[u8],
        out: &mut Staging,
    ) -> Result<(usize, usize), FilterError> {
        let room = out.spare();
        let (mut left, mut taken) = (bytes.len(), 0);
        let (mut free, mut made) = (room.len(), 0);
        let is_fine = self.stream.compress_stream(
            operation,
            &mut left,
            bytes,
            &mut taken,
            &mut free,
            room,
            &mut made,
            &mut None,
            &mut |_, _, _, _| {},
        );
        out.wrote(made);
        if is_fine { Ok((taken, made)) } else { Err(FAILED) }
    }
}

impl Machine for Brotli {
    /// # Errors
    /// The library failed.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let operation = match input {
            Some(_) => BrotliEncoderOperation::BROTLI_OPERATION_PROCESS,
            None => BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
        };
        let (taken, made) = self.run(operation, input.unwrap_or_default(), out)?;
        self.holds_back |= taken > 0;
        let has_ended = self.stream.is_finished();
        if input.is_none() && made == 0 && !has_ended {
            return Err(FAILED);
        }
        Ok(Progress { taken, is_pending: self.stream.has_more_output(), has_ended, passed: None })
    }

    fn flush(&mut self, out: &mut Staging) -> Result<(), FilterError> {
        self.run(BrotliEncoderOperation::BROTLI_OPERATION_FLUSH, b"", out)?;
        self.holds_back = out.is_full() || self.stream.has_more_output();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_no_larger_than_a_short_body() {
        let bits = [None, Some(0), Some(60_000), Some(200_000), Some(1 << 30)].map(window_bits);
        assert_eq!(bits, [19, 17, 17, 18, 19]);
    }
}
