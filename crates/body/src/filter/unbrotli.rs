//! `unbrotli`: unpacks a body in brotli. Source: RFC 7932.
//!
//! A small input can hold a large output, so a step stops when its [`Staging`] is full. The window, up to 16 MiB, is told
//! by the first byte; streams with a "large window", which RFC 7932 does not have, are refused. Next file: `zstd.rs`.

use super::{Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use surface::encoding::Encoding;
use surface::limits::{UNBROTLI_STATE_BYTES, UNBROTLI_WINDOW_BYTES_MAX};

const DAMAGED: FilterError = FilterError::new("Invalid brotli data");
const JUNK_AFTER_END: FilterError = FilterError::new("Junk after brotli data");
const TRUNCATED: FilterError = FilterError::new("Brotli data ends too early");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let window_bytes = window_bytes(opening.head.body_start());
    let effect = opening.unpack(Encoding::Brotli)?;
    Some(Opened { machine: Box::new(Unbrotli::new(window_bytes)), effect })
}

/// The window that a stream which begins like this asks for, in bytes; the largest if that is not known.
/// Source: RFC 7932 §9.1.
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
pub struct Unbrotli {
    stream: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    window_bytes: usize,
    is_whole: bool,
}

impl Unbrotli {
    /// A new decompressor, for a window of that many bytes; this only tells how much memory it will take.
    #[must_use]
    pub fn new(window_bytes: usize) -> Unbrotli {
        let memory = StandardAlloc::default;
        let stream = Box::new(BrotliState::new_strict(memory(), memory(), memory()));
        Unbrotli { stream, window_bytes, is_whole: false }
    }
}

impl Default for Unbrotli {
    fn default() -> Unbrotli {
        Unbrotli::new(UNBROTLI_WINDOW_BYTES_MAX)
    }
}

impl Machine for Unbrotli {
    /// # Errors
    /// The input is not brotli, asks for a large window, or is damaged; it ends too early, or something follows its end.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let bytes = input.unwrap_or_default();
        if self.is_whole {
            let progress = Progress { has_ended: input.is_none(), ..Progress::default() };
            return if bytes.is_empty() { Ok(progress) } else { Err(JUNK_AFTER_END) };
        }
        let room = out.spare();
        let (mut left, mut taken) = (bytes.len(), 0);
        let (mut free, mut made) = (room.len(), 0);
        let result =
            BrotliDecompressStream(&mut left, &mut taken, bytes, &mut free, &mut made, room, &mut 0, &mut self.stream);
        out.wrote(made);
        let is_pending = match result {
            BrotliResult::ResultFailure => return Err(DAMAGED),
            BrotliResult::NeedsMoreInput if input.is_none() && made == 0 => return Err(TRUNCATED),
            BrotliResult::NeedsMoreInput => false,
            BrotliResult::NeedsMoreOutput => true,
            BrotliResult::ResultSuccess => {
                self.is_whole = true;
                false
            }
        };
        Ok(Progress { taken, is_pending, has_ended: input.is_none() && self.is_whole, passed: None })
    }

    fn state_bytes(&self) -> usize {
        self.window_bytes + UNBROTLI_STATE_BYTES
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
