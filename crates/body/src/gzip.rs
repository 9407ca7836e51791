//! Streaming gzip and gunzip.
//!
//! One gzip member is one body: what follows its end is junk, a second member too. (Compat: so it is for Varnish 7.1.1,
//! whose texts these are; RFC 1952 §2.2 knows files of several members, RFC 9110 §8.4.1.3 does not speak of them.)
//!
//! A little input can hold a lot of output (up to 1,030 times as much): a step stops when its [`Staging`] is full, and goes
//! on from there when it is called again. Bit positions of deflate blocks are not known to this library; they are 0 in the
//! totals. Next file: `chain.rs`.

use crate::staging::Staging;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The largest window, 32 KiB, as everybody else's.
const WINDOW_BITS: u8 = 15;
/// What a check unpacks at a time, bytes; nobody gets to see it.
const CHECKED_AT_ONCE_BYTES: u64 = 16 << 10;

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

/// What one step of a machine came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Bytes of the input that were taken in.
    pub(crate) taken: usize,
    /// More may come out without more going in.
    pub(crate) is_pending: bool,
    /// The input has ended, and all that comes of it is out.
    pub(crate) has_ended: bool,
}

/// Compresses.
#[derive(Debug)]
pub(crate) struct Gzip {
    stream: Compress,
}

impl Gzip {
    /// A compressor of that level, 0 to 9 (`gzip_level`).
    pub(crate) fn new(level: u32) -> Self {
        Gzip { stream: Compress::new_gzip(Compression::new(level.min(9)), WINDOW_BITS) }
    }

    /// Takes plain bytes in, or learns that there are no more (`None`), and adds what is ready to `out` as far as that has
    /// room.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub(crate) fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, GzipError> {
        let flush = if input.is_none() { FlushCompress::Finish } else { FlushCompress::None };
        let (taken, made) = (self.stream.total_in(), self.stream.total_out());
        let status =
            self.stream.compress(input.unwrap_or_default(), out.spare(), flush).map_err(|_| GzipError::Compress)?;
        let taken = (self.stream.total_in() - taken) as usize;
        let made = (self.stream.total_out() - made) as usize;
        out.wrote(made);
        let has_ended = status == Status::StreamEnd;
        if input.is_none() && !has_ended && made == 0 {
            return Err(GzipError::Compress);
        }
        Ok(Progress { taken, is_pending: !has_ended && out.is_full(), has_ended })
    }

    /// What went in and out so far.
    pub(crate) fn totals(&self) -> GzipTotals {
        totals(self.stream.total_in(), self.stream.total_out())
    }
}

/// Decompresses.
#[derive(Debug)]
pub(crate) struct Gunzip {
    stream: Decompress,
    /// The end of the gzip member was seen.
    is_whole: bool,
}

impl Gunzip {
    /// A fresh decompressor.
    pub(crate) fn new() -> Self {
        Gunzip { stream: Decompress::new_gzip(WINDOW_BITS), is_whole: false }
    }

    /// Takes gzipped bytes in, or learns that there are no more (`None`), and adds plain bytes to `out` as far as that has
    /// room.
    ///
    /// # Errors
    /// [`GzipError::Damaged`], [`GzipError::JunkAfterEnd`], [`GzipError::Truncated`].
    pub(crate) fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, GzipError> {
        let bytes = input.unwrap_or_default();
        if self.is_whole {
            let progress = Progress { taken: 0, is_pending: false, has_ended: input.is_none() };
            return if bytes.is_empty() { Ok(progress) } else { Err(GzipError::JunkAfterEnd) };
        }
        let (taken, made) = (self.stream.total_in(), self.stream.total_out());
        let status = self
            .stream
            .decompress(bytes, out.spare(), FlushDecompress::None)
            .map_err(|error| GzipError::Damaged(Damage::of(error.message())))?;
        let taken = (self.stream.total_in() - taken) as usize;
        let made = (self.stream.total_out() - made) as usize;
        out.wrote(made);
        self.is_whole = status == Status::StreamEnd;
        if input.is_none() && !self.is_whole && made == 0 {
            return Err(GzipError::Truncated);
        }
        Ok(Progress { taken, is_pending: !self.is_whole && out.is_full(), has_ended: input.is_none() && self.is_whole })
    }

    /// What went in and out so far.
    pub(crate) fn totals(&self) -> GzipTotals {
        totals(self.stream.total_in(), self.stream.total_out())
    }
}

/// Checks that a body is one sound gzip member; the bytes that a step takes in go on unchanged.
#[derive(Debug)]
pub(crate) struct TestGunzip {
    gunzip: Gunzip,
    plain: Staging,
}

impl TestGunzip {
    /// A fresh check.
    pub(crate) fn new() -> Self {
        TestGunzip { gunzip: Gunzip::new(), plain: Staging::for_output(Some(CHECKED_AT_ONCE_BYTES)) }
    }

    /// Takes gzipped bytes in, or learns that there are no more (`None`).
    ///
    /// # Errors
    /// [`GzipError::Damaged`], [`GzipError::JunkAfterEnd`], [`GzipError::TestTruncated`].
    pub(crate) fn step(&mut self, input: Option<&[u8]>) -> Result<Progress, GzipError> {
        self.plain.clear();
        self.gunzip.step(input, &mut self.plain).map_err(|error| match error {
            GzipError::Truncated => GzipError::TestTruncated,
            other => other,
        })
    }

    /// What went in, and what it would unpack to, so far.
    pub(crate) fn totals(&self) -> GzipTotals {
        self.gunzip.totals()
    }
}

fn totals(input_bytes: u64, output_bytes: u64) -> GzipTotals {
    GzipTotals { input_bytes, output_bytes, ..GzipTotals::default() }
}
