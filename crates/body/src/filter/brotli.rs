//! `brotli`: compresses a body that has no coding. Source: RFC 7932.
//!
//! The window is half a megabyte, whatever the level: what a client must hold to read the body. Next file: `unbrotli.rs`.

use super::{Effect, Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use surface::encoding::Encoding;
use surface::limits::{BROTLI_FILTER_LEVEL_MAX, BROTLI_STATE_BYTES_MAX, BROTLI_WINDOW_BITS};

const FAILED: FilterError = FilterError::new("Brotli failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let level = opening.parameters.brotli_level.min(BROTLI_FILTER_LEVEL_MAX);
    let length = opening.length;
    opening
        .pack(Encoding::Brotli)
        .then(|| Opened { machine: Box::new(Brotli::new(level, length)), effect: Effect::of_packed(Encoding::Brotli) })
}

/// The compressor.
pub struct Brotli {
    level: u64,
    stream: Box<BrotliEncoderStateStruct<StandardAlloc>>,
}

impl Brotli {
    /// A compressor with this level, 0 to 11 (`brotli_level`), for a body of that length if it is known.
    #[must_use]
    pub fn new(level: u64, body_bytes: Option<u64>) -> Brotli {
        let mut stream = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
        let hint = body_bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        for (name, value) in [
            (BrotliEncoderParameter::BROTLI_PARAM_QUALITY, level.min(11) as u32),
            (BrotliEncoderParameter::BROTLI_PARAM_LGWIN, BROTLI_WINDOW_BITS),
            (BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, hint),
        ] {
            stream.set_parameter(name, value);
        }
        Brotli { level, stream }
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
        let bytes = input.unwrap_or_default();
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
        let has_ended = self.stream.is_finished();
        if !is_fine || (input.is_none() && made == 0 && !has_ended) {
            return Err(FAILED);
        }
        Ok(Progress { taken, is_pending: self.stream.has_more_output(), has_ended, passed: None })
    }

    fn is_slow(&self) -> bool {
        true
    }

    fn state_bytes(&self) -> usize {
        // Measured; the hash tables of each level differ.
        match self.level {
            0..=4 => 4 << 20,
            5..=6 => 8 << 20,
            7..=8 => 24 << 20,
            9 => BROTLI_STATE_BYTES_MAX,
            _ => 16 << 20,
        }
    }
}
