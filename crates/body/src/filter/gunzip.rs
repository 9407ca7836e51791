//! `gunzip`: unpacks a gzipped body.
//!
//! A body is exactly one gzip member: anything after its end is junk, even a second member. (Compat: as in Varnish 7.1.1,
//! whose texts these are. RFC 1952 §2.2 allows files of several members; RFC 9110 §8.4.1.3 says nothing about them.)
//!
//! A small input can hold a large output (up to 1,030 times its size): a step stops when its [`Staging`] is full, and the
//! next call goes on from there. The library does not tell the bit positions of deflate blocks; they are 0 in the totals.
//! Next file: `testgunzip.rs`.

use super::gzip::WINDOW_BITS;
use super::{Coding, Effect, Opened, Opening, Side};
use crate::machine::{FilterError, GzipTotals, Machine, Progress};
use crate::staging::Staging;
use flate2::{Decompress, FlushDecompress, Status};
use surface::counter::Main;
use surface::limits::GUNZIP_STATE_BYTES;

/// A gzipped body of at most this length can't inflate to more bytes than the 32-bit length in its trailer can express:
/// deflate's best ratio is below 1,040.
const TRAILER_TRUSTED_BYTES_MAX: u64 = 4 << 20;
/// Length of the header and trailer of a gzip member.
const MEMBER_BYTES_MIN: u64 = 18;

/// Bytes follow the end of the gzip member.
pub const JUNK_AFTER_END: FilterError =
    FilterError::new("Junk after gzip data").with_delivery_detail("G(un)zip error: 1 (junk after VGZ_END)");

/// The stream ended before the gzip member did.
pub const TRUNCATED: FilterError = FilterError::new("Gunzip error at the very end");

/// Compat: on the client's side VCL decides, whatever the headers say.
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
    if !(MEMBER_BYTES_MIN..=TRAILER_TRUSTED_BYTES_MAX).contains(&length) {
        return None;
    }
    Some(u64::from(u32::from_le_bytes(opening.head.body_tail()?)))
}

/// The decompressor.
#[derive(Debug)]
pub struct Gunzip {
    stream: Decompress,
    plain_bytes: Option<u64>,
    /// The end of the gzip member was reached.
    is_whole: bool,
}

impl Gunzip {
    /// A new decompressor. `plain_bytes` is the length of its output, if known.
    #[must_use]
    pub fn new(plain_bytes: Option<u64>) -> Gunzip {
        Gunzip { stream: Decompress::new_gzip(WINDOW_BITS), plain_bytes, is_whole: false }
    }
}

impl Machine for Gunzip {
    /// # Errors
    /// The input is not gzip, or damaged; [`JUNK_AFTER_END`], [`TRUNCATED`].
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let bytes = input.unwrap_or_default();
        if self.is_whole {
            let progress = Progress { has_ended: input.is_none(), ..Progress::default() };
            return if bytes.is_empty() { Ok(progress) } else { Err(JUNK_AFTER_END) };
        }
        let (taken, made) = (self.stream.total_in(), self.stream.total_out());
        let status = self
            .stream
            .decompress(bytes, out.spare(), FlushDecompress::None)
            .map_err(|error| damage(error.message()))?;
        let taken = (self.stream.total_in() - taken) as usize;
        let made = (self.stream.total_out() - made) as usize;
        out.wrote(made);
        self.is_whole = status == Status::StreamEnd;
        if input.is_none() && !self.is_whole && made == 0 {
            return Err(TRUNCATED);
        }
        let is_pending = !self.is_whole && out.is_full();
        Ok(Progress { taken, is_pending, has_ended: input.is_none() && self.is_whole, passed: None })
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
        /// The library's message for a damaged stream, and our error for it. The last row stands for all other messages.
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
