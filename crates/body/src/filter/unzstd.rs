//! `unzstd`: decompresses a body in Zstandard. Source: RFC 8878, RFC 9659.
//!
//! A body is one frame, several, or none. Frames that require a window of more than 8 MiB are
//! refused, according to RFC 9659, and so are those with a dictionary. Next file: `unpacking.rs`,
//! the frame of the decompressors.

use super::unpacking::{Unpack, Unpacked, Unpacking};
use super::{Opened, Opening};
use crate::machine::FilterError;
use surface::encoding::Encoding;
use surface::limits::{UNZSTD_STATE_BYTES, UNZSTD_WINDOW_BYTES_MAX};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

const DAMAGED: FilterError = FilterError::new("Invalid Zstandard data");

/// The first bytes of a frame. Source: RFC 8878 §3.1.1.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let start = opening.head.body_start();
    let (window_bytes, is_window_known) = (window_bytes(start), !start.is_empty());
    let effect = opening.unpack(Encoding::Zstd)?;
    Some(Opened { machine: Box::new(Unzstd::new(window_bytes).with_known_window(is_window_known)), effect })
}

/// The window that a stream with these first bytes requires, in bytes; the largest if that is not
/// known. (Further frames may require more; such streams are rare.) Source: RFC 8878 §3.1.1.1.
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
pub type Unzstd = Unpacking<Zstandard>;

/// The library's decompressor.
pub struct Zstandard {
    /// `None` if the library could not set it up.
    stream: Option<Decoder<'static>>,
    window_bytes: usize,
}

impl Unzstd {
    /// A new decompressor, for a window of that many bytes; the value is only an estimate of its
    /// memory.
    #[must_use]
    pub fn new(window_bytes: usize) -> Unzstd {
        let open = || {
            let mut stream = Decoder::new()?;
            stream.set_parameter(DParameter::WindowLogMax(UNZSTD_WINDOW_BYTES_MAX.ilog2()))?;
            std::io::Result::Ok(stream)
        };
        Unpacking::of(Zstandard { stream: open().ok(), window_bytes })
    }
}

impl Default for Unzstd {
    fn default() -> Unzstd {
        Unzstd::new(UNZSTD_WINDOW_BYTES_MAX)
    }
}

impl Unpack for Zstandard {
    const TRUNCATED: FilterError = FilterError::new("Zstandard data ends too early");
    /// Another frame may follow.
    const JUNK_AFTER_END: Option<FilterError> = None;

    /// # Errors
    /// Damaged, or requires too large a window.
    fn unpack(&mut self, bytes: &[u8], room: &mut [u8]) -> Result<Unpacked, FilterError> {
        let stream = self.stream.as_mut().ok_or(DAMAGED)?;
        let mut room = OutBuffer::around(room);
        let mut bytes = InBuffer::around(bytes);
        let wanted = stream.run(&mut bytes, &mut room).map_err(|_| DAMAGED)?;
        let (taken, made) = (bytes.pos(), room.pos());
        // 0 is also returned before anything of a frame was read: only if bytes were read or output
        // can a frame have ended.
        Ok(Unpacked { taken, made, is_end: wanted == 0 && taken + made > 0 })
    }

    fn begin(&mut self, start: &[u8]) -> usize {
        self.window_bytes = window_bytes(start);
        self.window_bytes
    }

    fn state_bytes(&self) -> usize {
        self.window_bytes + UNZSTD_STATE_BYTES
    }

    /// The window is allocated with the head of the frame.
    fn idle_bytes(&self) -> usize {
        UNZSTD_STATE_BYTES
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
