//! `unbrotli`: decompresses a body in brotli. Source: RFC 7932.
//!
//! The window, up to 16 MiB, is declared in the first byte; streams with a "large window", which
//! RFC 7932 does not have, are refused. Next files: `unpacking.rs`, the frame; `zstd.rs`.

use super::unpacking::{Unpack, Unpacked, Unpacking};
use super::{Opened, Opening};
use crate::machine::FilterError;
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use surface::encoding::Encoding;
use surface::limits::{UNBROTLI_STATE_BYTES, UNBROTLI_WINDOW_BYTES_MAX};

const DAMAGED: FilterError = FilterError::new("Invalid brotli data");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let start = opening.head.body_start();
    let (window_bytes, is_window_known) = (window_bytes(start), !start.is_empty());
    let effect = opening.unpack(Encoding::Brotli)?;
    Some(Opened { machine: Box::new(Unbrotli::new(window_bytes).with_known_window(is_window_known)), effect })
}

/// The window that a stream with these first bytes requires, in bytes; the largest if that is not
/// known. Source: RFC 7932 §9.1.
fn window_bytes(start: &[u8]) -> usize {
    let bits = match start.first().map(|first| (first & 1, first >> 1 & 7, first >> 4 & 7)) {
        None => return UNBROTLI_WINDOW_BYTES_MAX,
        Some((0, _, _)) => 16,
        Some((_, 0, 0)) => 17,
        Some((_, 0, bits)) => 8 + bits,
        Some((_, bits, _)) => 17 + bits,
    };
    1 << bits
}

/// The decompressor.
pub type Unbrotli = Unpacking<Brotli>;

/// The library's decompressor.
pub struct Brotli {
    stream: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    window_bytes: usize,
}

impl Unbrotli {
    /// A new decompressor, for a window of that many bytes; the value is only an estimate of its
    /// memory.
    #[must_use]
    pub fn new(window_bytes: usize) -> Unbrotli {
        let memory = StandardAlloc::default;
        let stream = Box::new(BrotliState::new_strict(memory(), memory(), memory()));
        Unpacking::of(Brotli { stream, window_bytes })
    }
}

impl Default for Unbrotli {
    fn default() -> Unbrotli {
        Unbrotli::new(UNBROTLI_WINDOW_BYTES_MAX)
    }
}

impl Unpack for Brotli {
    const TRUNCATED: FilterError = FilterError::new("Brotli data ends too early");
    const JUNK_AFTER_END: Option<FilterError> = Some(FilterError::new("Junk after brotli data"));

    /// # Errors
    /// Damaged, or asks for a large window.
    fn unpack(&mut self, bytes: &[u8], room: &mut [u8]) -> Result<Unpacked, FilterError> {
        let (mut left, mut taken) = (bytes.len(), 0);
        let (mut free, mut made) = (room.len(), 0);
        let result =
            BrotliDecompressStream(&mut left, &mut taken, bytes, &mut free, &mut made, room, &mut 0, &mut self.stream);
        match result {
            BrotliResult::ResultFailure => Err(DAMAGED),
            // The first is also returned if the output does not fit.
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(Unpacked { taken, made, is_end: false }),
            BrotliResult::ResultSuccess => Ok(Unpacked { taken, made, is_end: true }),
        }
    }

    fn begin(&mut self, start: &[u8]) -> usize {
        self.window_bytes = window_bytes(start);
        self.window_bytes
    }

    fn state_bytes(&self) -> usize {
        self.window_bytes + UNBROTLI_STATE_BYTES
    }

    /// Nothing is allocated before the first byte.
    fn idle_bytes(&self) -> usize {
        UNBROTLI_STATE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_window() {
        for (first, bits) in [(0x0b, 22), (0x06, 16), (0x00, 16), (0x01, 17), (0x0f, 24), (0x21, 10), (0x71, 15)] {
            assert_eq!(window_bytes(&[first, 0x7f]), 1 << bits, "{first:#x}");
        }
        assert_eq!(window_bytes(&[]), UNBROTLI_WINDOW_BYTES_MAX);
    }
}
