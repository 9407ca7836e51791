//! `gunzip`: decompresses a gzipped body.
//!
//! A body is exactly one gzip member, or empty: anything after its end is junk, even a second
//! member. (Compat: as in Varnish 7.1.1, including the texts. RFC 1952 §2.2 allows files of several
//! members; RFC 9110 §8.4.1.3 says nothing about them.)
//!
//! The output has at most 1,030 times the size of the input. The library does not report the bit
//! positions of deflate blocks; they are 0 in the totals. Next files: `unpacking.rs`, the frame;
//! `testgunzip.rs`.

use super::gzip::WINDOW_BITS;
use super::unpacking::{Unpack, Unpacked, Unpacking};
use super::{Coding, Effect, Opened, Opening, Side};
use crate::machine::{FilterError, GzipTotals};
use flate2::{Decompress, FlushDecompress, Status};
use surface::counter::Main;
use surface::limits::GUNZIP_STATE_BYTES;

/// A gzipped body of at most this length can't inflate to more bytes than the 32-bit length in its
/// trailer can express: deflate's best ratio is below 1,040.
const TRAILER_TRUSTED_BYTES_MAX: u64 = 4 << 20;
/// Length of the header and trailer of a gzip member.
const MEMBER_BYTES_MIN: u64 = 18;

/// Bytes follow the end of the gzip member.
pub const JUNK_AFTER_END: FilterError =
    FilterError::new("Junk after gzip data").with_delivery_detail("G(un)zip error: 1 (junk after VGZ_END)");

/// The stream ended before the gzip member did.
pub const TRUNCATED: FilterError = FilterError::new("Gunzip error at the very end");

/// Compat: on the client's side VCL decides, regardless of the headers.
pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    let is_delivery = opening.side == Side::Resp;
    if !is_delivery && !opening.is_gzipped() {
        return None;
    }
    let length = if is_delivery { plain_length(opening) } else { None };
    opening.head.unset("Content-Encoding");
    if !is_delivery {
        opening.head.unset("Content-Length");
        opening.weaken_etag();
    }
    let effect = Effect { length, coding: Coding::Unpacked, counter: Some(Main::NGunzip) };
    Some(Opened { machine: Box::new(Gunzip::new(length)), effect })
}

/// Length of the inflated body of a complete, small object, read from its last four bytes.
fn plain_length(opening: &Opening<'_>) -> Option<u64> {
    let length = opening.length?;
    if length == 0 {
        return Some(0);
    }
    if !(MEMBER_BYTES_MIN..=TRAILER_TRUSTED_BYTES_MAX).contains(&length) {
        return None;
    }
    Some(u64::from(u32::from_le_bytes(opening.head.body_tail()?)))
}

/// The decompressor.
pub type Gunzip = Unpacking<Inflate>;

/// The library's decompressor.
#[derive(Debug)]
pub struct Inflate {
    stream: Decompress,
    plain_bytes: Option<u64>,
}

impl Gunzip {
    /// A new decompressor. `plain_bytes` is the length of its output, if known.
    #[must_use]
    pub fn new(plain_bytes: Option<u64>) -> Gunzip {
        Unpacking::of(Inflate { stream: Decompress::new_gzip(WINDOW_BITS), plain_bytes })
    }
}

impl Unpack for Inflate {
    const TRUNCATED: FilterError = TRUNCATED;
    const JUNK_AFTER_END: Option<FilterError> = Some(JUNK_AFTER_END);

    fn unpack(&mut self, bytes: &[u8], room: &mut [u8]) -> Result<Unpacked, FilterError> {
        let (taken, made) = (self.stream.total_in(), self.stream.total_out());
        let status =
            self.stream.decompress(bytes, room, FlushDecompress::None).map_err(|error| damage(error.message()))?;
        Ok(Unpacked {
            taken: (self.stream.total_in() - taken) as usize,
            made: (self.stream.total_out() - made) as usize,
            is_end: status == Status::StreamEnd,
        })
    }

    fn output_bytes(&self) -> Option<u64> {
        self.plain_bytes
    }

    fn state_bytes(&self) -> usize {
        GUNZIP_STATE_BYTES
    }

    fn totals(&self) -> Option<GzipTotals> {
        Some(GzipTotals::of_bytes('U', self.stream.total_in(), self.stream.total_out()))
    }
}

macro_rules! damages {
    ($($message:literal)*) => {
        /// The library's message for a damaged stream, and Copal's error for it. The last row
        /// represents all other messages.
        static DAMAGES: &[(&str, FilterError)] = &[$((
            $message,
            FilterError::new(concat!("Invalid Gzip data: ", $message))
                .with_fetch_detail(concat!("Gunzip error: -3 (", $message, ")")),
        )),*];
    };
}

damages! {
    "incorrect header check"
    "unknown compression method"
    "invalid window size"
    "unknown header flags set"
    "header crc mismatch"
    "invalid block type"
    "invalid stored block lengths"
    "too many length or distance symbols"
    "invalid code lengths set"
    "invalid bit length repeat"
    "invalid code -- missing end-of-block"
    "invalid literal/lengths set"
    "invalid distances set"
    "invalid literal/length code"
    "invalid distance code"
    "invalid distance too far back"
    "incorrect data check"
    "incorrect length check"
    "data error"
}

fn damage(message: Option<&str>) -> FilterError {
    let listed = DAMAGES.iter().position(|(text, _)| message == Some(text));
    DAMAGES[listed.unwrap_or(DAMAGES.len() - 1)].1
}
