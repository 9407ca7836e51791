//! Streaming gzip and gunzip.
//!
//! One gzip member is one body: what follows its end is junk, a second member too. (Compat: so it is for Varnish 7.1.1,
//! whose texts these are; RFC 1952 §2.2 knows files of several members, RFC 9110 §8.4.1.3 does not speak of them.)
//!
//! A little input can hold a lot of output: [`Gunzip::push_bounded`] stops at a bound, for those who write to a client as
//! fast as it reads. Bit positions of deflate blocks are not known to this library; they are 0 in the totals.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The largest window, 32 KiB, as everybody else's.
const WINDOW_BITS: u8 = 15;
/// Room made for output at a time, bytes.
const OUTPUT_STEP_BYTES: usize = 16 << 10;

/// What went in and out, for the `Gzip` record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GzipTotals {
    /// Bytes in.
    pub input_bytes: u64,
    /// Bytes out.
    pub output_bytes: u64,
    /// Bit where the first deflate block starts; 0 when not known.
    pub start_bit: u64,
    /// Bit where the last deflate block starts; 0 when not known.
    pub last_bit: u64,
    /// Bit behind the last deflate block; 0 when not known.
    pub stop_bit: u64,
}

/// Why a gzip stream could not be processed. The sender's fault, but for [`GzipError::Compress`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GzipError {
    /// Bytes follow the end of the gzip member.
    JunkAfterEnd,
    /// The stream to unpack ended before the gzip member did.
    Truncated,
    /// The stream to check ended before the gzip member did.
    TestTruncated,
    /// Not gzip, or damaged.
    Damaged(Damage),
    /// The compressor failed.
    Compress,
}

/// What is wrong with a damaged stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage(usize);

/// What the library says, and the `FetchError` that comes of it. The last row stands for what is not listed.
static DAMAGES: &[(&str, &str)] = &[
    ("incorrect header check", "Invalid Gzip data: incorrect header check"),
    ("unknown compression method", "Invalid Gzip data: unknown compression method"),
    ("invalid window size", "Invalid Gzip data: invalid window size"),
    ("unknown header flags set", "Invalid Gzip data: unknown header flags set"),
    ("header crc mismatch", "Invalid Gzip data: header crc mismatch"),
    ("invalid block type", "Invalid Gzip data: invalid block type"),
    ("invalid stored block lengths", "Invalid Gzip data: invalid stored block lengths"),
    ("too many length or distance symbols", "Invalid Gzip data: too many length or distance symbols"),
    ("invalid code lengths set", "Invalid Gzip data: invalid code lengths set"),
    ("invalid bit length repeat", "Invalid Gzip data: invalid bit length repeat"),
    ("invalid code -- missing end-of-block", "Invalid Gzip data: invalid code -- missing end-of-block"),
    ("invalid literal/lengths set", "Invalid Gzip data: invalid literal/lengths set"),
    ("invalid distances set", "Invalid Gzip data: invalid distances set"),
    ("invalid literal/length code", "Invalid Gzip data: invalid literal/length code"),
    ("invalid distance code", "Invalid Gzip data: invalid distance code"),
    ("invalid distance too far back", "Invalid Gzip data: invalid distance too far back"),
    ("incorrect data check", "Invalid Gzip data: incorrect data check"),
    ("incorrect length check", "Invalid Gzip data: incorrect length check"),
    ("data error", "Invalid Gzip data: data error"),
];

impl Damage {
    fn of(message: Option<&str>) -> Self {
        let listed = DAMAGES.iter().position(|(text, _)| message == Some(text));
        Damage(listed.unwrap_or(DAMAGES.len() - 1))
    }
}

impl GzipError {
    /// The payload of the `FetchError` record.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            GzipError::JunkAfterEnd => "Junk after gzip data",
            GzipError::Truncated => "Gunzip error at the very end",
            GzipError::TestTruncated => "tGunzip failed",
            GzipError::Damaged(Damage(index)) => DAMAGES[index].1,
            GzipError::Compress => "Gzip failed",
        }
    }

    /// The payload of the `Gzip` record that comes before it; `None` when there is none.
    #[must_use]
    pub fn gzip_record(self) -> Option<String> {
        match self {
            GzipError::Damaged(Damage(index)) => Some(format!("Gunzip error: -3 ({})", DAMAGES[index].0)),
            GzipError::JunkAfterEnd | GzipError::Truncated | GzipError::TestTruncated | GzipError::Compress => None,
        }
    }
}

/// Compresses.
#[derive(Debug)]
pub struct Gzip {
    stream: Compress,
}

impl Gzip {
    /// A compressor of that level, 0 to 9 (`gzip_level`).
    #[must_use]
    pub fn new(level: u32) -> Self {
        Gzip { stream: Compress::new_gzip(Compression::new(level.min(9)), WINDOW_BITS) }
    }

    /// Takes plain bytes in, appends what is ready to `out`.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), GzipError> {
        if input.is_empty() {
            return Ok(());
        }
        self.run(input, out, FlushCompress::None)
    }

    /// Appends all that was taken in so far to `out`, so that a reader can have it now. Costs a few bytes each time.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), GzipError> {
        self.run(&[], out, FlushCompress::Sync)
    }

    /// Appends the rest.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<GzipTotals, GzipError> {
        self.run(&[], out, FlushCompress::Finish)?;
        Ok(self.totals())
    }

    /// What went in and out so far.
    #[must_use]
    pub fn totals(&self) -> GzipTotals {
        totals(self.stream.total_in(), self.stream.total_out())
    }

    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> Result<(), GzipError> {
        let start = self.stream.total_in();
        loop {
            make_room(out);
            let used = (self.stream.total_in() - start) as usize;
            let written = out.len();
            let status = self.stream.compress_vec(&input[used..], out, flush).map_err(|_| GzipError::Compress)?;
            let is_all_in = (self.stream.total_in() - start) as usize == input.len();
            match (status, flush) {
                (Status::StreamEnd, _) => return Ok(()),
                // Full output means that there may be more of it.
                (_, FlushCompress::Finish) if out.len() == written && is_all_in && out.capacity() > written => {
                    return Err(GzipError::Compress);
                }
                (_, FlushCompress::Finish) => {}
                _ if is_all_in && out.len() < out.capacity() => return Ok(()),
                _ => {}
            }
        }
    }
}

/// Decompresses.
#[derive(Debug)]
pub struct Gunzip {
    stream: Decompress,
    has_ended: bool,
}

impl Default for Gunzip {
    fn default() -> Self {
        Gunzip::new()
    }
}

impl Gunzip {
    /// A fresh decompressor.
    #[must_use]
    pub fn new() -> Self {
        Gunzip { stream: Decompress::new_gzip(WINDOW_BITS), has_ended: false }
    }

    /// Takes gzipped bytes in, appends plain bytes to `out`.
    ///
    /// # Errors
    /// [`GzipError::Damaged`], [`GzipError::JunkAfterEnd`].
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), GzipError> {
        self.push_bounded(input, out, usize::MAX).map(drop)
    }

    /// As [`Gunzip::push`], but stops when `out` has grown by `output_bytes_max` or a little more. Returns how much of the
    /// input was taken in; call again with the rest, or, when all was taken, with nothing until `out` does not grow.
    ///
    /// # Errors
    /// As `push`.
    pub fn push_bounded(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        output_bytes_max: usize,
    ) -> Result<usize, GzipError> {
        let written = out.len();
        let start = self.stream.total_in();
        loop {
            let used = (self.stream.total_in() - start) as usize;
            if self.has_ended {
                return if used < input.len() { Err(GzipError::JunkAfterEnd) } else { Ok(used) };
            }
            if out.len() - written >= output_bytes_max {
                return Ok(used);
            }
            make_room(out);
            let status = self
                .stream
                .decompress_vec(&input[used..], out, FlushDecompress::None)
                .map_err(|error| GzipError::Damaged(Damage::of(error.message())))?;
            self.has_ended = status == Status::StreamEnd;
            let is_all_in = (self.stream.total_in() - start) as usize == input.len();
            // Full output means that there may be more of it.
            if !self.has_ended && is_all_in && out.len() < out.capacity() {
                return Ok(input.len());
            }
        }
    }

    /// The input is complete.
    ///
    /// # Errors
    /// [`GzipError::Truncated`].
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<GzipTotals, GzipError> {
        if self.has_ended { Ok(self.totals()) } else { Err(GzipError::Truncated) }
    }

    /// What went in and out so far.
    #[must_use]
    pub fn totals(&self) -> GzipTotals {
        totals(self.stream.total_in(), self.stream.total_out())
    }
}

/// Checks that a body is one sound gzip member; the bytes themselves go on unchanged.
#[derive(Debug, Default)]
pub struct TestGunzip {
    gunzip: Gunzip,
    plain: Vec<u8>,
}

impl TestGunzip {
    /// A fresh check.
    #[must_use]
    pub fn new() -> Self {
        TestGunzip::default()
    }

    /// Takes gzipped bytes in and appends the same bytes to `out`, unless they are found to be bad.
    ///
    /// # Errors
    /// [`GzipError::Damaged`], [`GzipError::JunkAfterEnd`].
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), GzipError> {
        let mut rest = input;
        loop {
            self.plain.clear();
            let used = self.gunzip.push_bounded(rest, &mut self.plain, OUTPUT_STEP_BYTES)?;
            rest = &rest[used..];
            if rest.is_empty() && self.plain.len() < OUTPUT_STEP_BYTES {
                break;
            }
        }
        out.extend_from_slice(input);
        Ok(())
    }

    /// The input is complete.
    ///
    /// # Errors
    /// [`GzipError::TestTruncated`].
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<GzipTotals, GzipError> {
        self.gunzip.finish(out).map_err(|_| GzipError::TestTruncated)
    }

    /// What went in, and what it would unpack to, so far.
    #[must_use]
    pub fn totals(&self) -> GzipTotals {
        self.gunzip.totals()
    }
}

fn totals(input_bytes: u64, output_bytes: u64) -> GzipTotals {
    GzipTotals { input_bytes, output_bytes, ..GzipTotals::default() }
}

/// The library writes into what room there is, and no further.
fn make_room(out: &mut Vec<u8>) {
    if out.capacity() - out.len() < OUTPUT_STEP_BYTES / 4 {
        out.reserve(OUTPUT_STEP_BYTES);
    }
}
