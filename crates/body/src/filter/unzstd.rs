//! `unzstd`: unpacks a body in Zstandard. Source: RFC 8878, RFC 9659.
//!
//! A body is one frame or several. A small input can hold a large output, so a step stops when its [`Staging`] is full.
//! Frames that want a window of more than 8 MiB are refused, as RFC 9659 has it, and so are those with a dictionary.

use super::{Opened, Opening};
use crate::machine::{FilterError, Machine, Progress};
use crate::staging::Staging;
use surface::encoding::Encoding;
use surface::limits::{UNZSTD_STATE_BYTES, UNZSTD_WINDOW_BYTES_MAX};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

const DAMAGED: FilterError = FilterError::new("Invalid Zstandard data");
const TRUNCATED: FilterError = FilterError::new("Zstandard data ends too early");

/// The first bytes of a frame. Source: RFC 8878 §3.1.1.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let window_bytes = window_bytes(opening.head.body_start());
    let effect = opening.unpack(Encoding::Zstd)?;
    Some(Opened { machine: Box::new(Unzstd::new(window_bytes)), effect })
}

/// The window that a stream which begins like this asks for, in bytes; the largest if that is not known. (Further frames
/// may want more; such streams are rare.) Source: RFC 8878 §3.1.1.1.
fn window_bytes(start: &[u8]) -> usize {
    let told = || {
        let (descriptor, rest) = start.strip_prefix(&MAGIC)?.split_first()?;
        let is_single_segment = descriptor & 0x20 != 0;
        if !is_single_segment {
            let window = *rest.first()?;
            let base = 1_u64 << (10 + (window >> 3));
            return Some(base + base / 8 * u64::from(window & 7));
        }
        let rest = rest.get([0, 1, 2, 4][usize::from(descriptor & 3)]..)?;
        let length = |count: usize| -> Option<u64> {
            Some(rest.get(..count)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        match descriptor >> 6 {
            0 => length(1),
            1 => length(2).map(|bytes| bytes + 256),
            2 => length(4),
            _ => length(8),
        }
    };
    told().map_or(UNZSTD_WINDOW_BYTES_MAX, |bytes| bytes.min(UNZSTD_WINDOW_BYTES_MAX as u64) as usize)
}

/// The decompressor.
pub struct Unzstd {
    /// `None` when the library could not set it up.
    stream: Option<Decoder<'static>>,
    window_bytes: usize,
    /// A frame has ended, and no other has begun.
    is_whole: bool,
}

impl Unzstd {
    /// A new decompressor, for a window of that many bytes; this only tells how much memory it will take.
    #[must_use]
    pub fn new(window_bytes: usize) -> Unzstd {
        let open = || {
            let mut stream = Decoder::new()?;
            stream.set_parameter(DParameter::WindowLogMax(UNZSTD_WINDOW_BYTES_MAX.ilog2()))?;
            std::io::Result::Ok(stream)
        };
        Unzstd { stream: open().ok(), window_bytes, is_whole: false }
    }
}

impl Default for Unzstd {
    fn default() -> Unzstd {
        Unzstd::new(UNZSTD_WINDOW_BYTES_MAX)
    }
}

impl Machine for Unzstd {
    /// # Errors
    /// The input is not Zstandard, wants too large a window, or is damaged; it ends too early.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        if input.is_none() && self.is_whole {
            return Ok(Progress { has_ended: true, ..Progress::default() });
        }
        let stream = self.stream.as_mut().ok_or(DAMAGED)?;
        let mut room = OutBuffer::around(out.spare());
        let mut bytes = InBuffer::around(input.unwrap_or_default());
        let wanted = stream.run(&mut bytes, &mut room).map_err(|_| DAMAGED)?;
        let (taken, made) = (bytes.pos(), room.pos());
        out.wrote(made);
        // 0 also comes before anything of a frame was read: only what was read or made can have ended one.
        if taken + made > 0 {
            self.is_whole = wanted == 0;
        }
        if input.is_none() && made == 0 && !self.is_whole {
            return Err(TRUNCATED);
        }
        let is_pending = !self.is_whole && out.is_full();
        Ok(Progress { taken, is_pending, has_ended: input.is_none() && self.is_whole, passed: None })
    }

    fn state_bytes(&self) -> usize {
        self.window_bytes + UNZSTD_STATE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_frame_tells_the_window() {
        let header = |rest: &[u8]| window_bytes(&[&MAGIC, rest].concat());
        assert_eq!(header(&[0x00, 0x50]), 1 << 20);
        assert_eq!(header(&[0x00, 0x01]), 1024 + 128);
        assert_eq!(header(&[0x20, 200]), 200);
        assert_eq!(header(&[0x60, 1, 2]), 256 + 0x201);
        assert_eq!(header(&[0xa1, 9, 1, 2, 3, 0]), 0x30201, "behind the dictionary's number");
        for huge_or_none in [&[0xe0, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0x00, 0xff], &[0xa0, 1], &[]] {
            assert_eq!(header(huge_or_none), UNZSTD_WINDOW_BYTES_MAX);
        }
        assert_eq!(window_bytes(b"no frame"), UNZSTD_WINDOW_BYTES_MAX);
    }
}
