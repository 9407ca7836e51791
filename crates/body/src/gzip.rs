//! Streaming gzip and gunzip.

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

/// Why a gzip stream could not be processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GzipError {
    /// Bytes follow the end of the gzip member.
    JunkAfterEnd,
    /// The stream ended before the gzip member did.
    Truncated,
    /// Not gzip, or damaged.
    Damaged,
    /// The compressor failed.
    Compress,
}

impl GzipError {
    /// The payload of the `FetchError` record.
    #[must_use]
    pub fn text(self) -> &'static str {
        ""
    }
}

/// Compresses.
#[derive(Debug)]
pub struct Gzip {}

impl Gzip {
    /// A compressor of that level, 0 to 9 (`gzip_level`).
    #[must_use]
    pub fn new(_level: u32) -> Self {
        Gzip {}
    }

    /// Takes plain bytes in, appends what is ready to `out`.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub fn push(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), GzipError> {
        Ok(())
    }

    /// Appends all that was taken in so far to `out`, so that a reader can have it now.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub fn flush(&mut self, _out: &mut Vec<u8>) -> Result<(), GzipError> {
        Ok(())
    }

    /// Appends the rest.
    ///
    /// # Errors
    /// [`GzipError::Compress`].
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<GzipTotals, GzipError> {
        Ok(GzipTotals::default())
    }
}

/// Decompresses.
#[derive(Debug, Default)]
pub struct Gunzip {}

impl Gunzip {
    /// A fresh decompressor.
    #[must_use]
    pub fn new() -> Self {
        Gunzip {}
    }

    /// Takes gzipped bytes in, appends plain bytes to `out`.
    ///
    /// # Errors
    /// [`GzipError::Damaged`], [`GzipError::JunkAfterEnd`].
    pub fn push(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), GzipError> {
        Ok(())
    }

    /// The input is complete.
    ///
    /// # Errors
    /// [`GzipError::Truncated`].
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<GzipTotals, GzipError> {
        Ok(GzipTotals::default())
    }
}

/// Checks that a body is one sound gzip member; the bytes themselves go on unchanged.
#[derive(Debug, Default)]
pub struct TestGunzip {}

impl TestGunzip {
    /// A fresh check.
    #[must_use]
    pub fn new() -> Self {
        TestGunzip {}
    }

    /// Takes gzipped bytes in and appends the same bytes to `out`.
    ///
    /// # Errors
    /// [`GzipError::Damaged`], [`GzipError::JunkAfterEnd`].
    pub fn push(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), GzipError> {
        Ok(())
    }

    /// The input is complete.
    ///
    /// # Errors
    /// [`GzipError::Truncated`].
    pub fn finish(&mut self, _out: &mut Vec<u8>) -> Result<GzipTotals, GzipError> {
        Ok(GzipTotals::default())
    }
}
