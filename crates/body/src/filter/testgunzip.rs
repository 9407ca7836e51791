//! `testgunzip`: checks that a body is one valid gzip member, and leaves it unchanged.

use super::gunzip::{Gunzip, TRUNCATED};
use super::{Coding, Effect, Opened, Opening};
use crate::machine::{FilterError, GzipTotals, Machine, Progress};
use crate::staging::Staging;
use surface::counter::Main;
use surface::limits::{FILTER_STEP_BYTES_MAX, GUNZIP_STATE_BYTES};

/// Bytes that the check decompresses at a time; they are discarded.
const CHECKED_AT_ONCE_BYTES: u64 = 16 << 10;

/// The checked stream ended before the gzip member did.
const TEST_TRUNCATED: FilterError = FilterError::new("tGunzip failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    if !opening.is_gzipped() {
        return None;
    }
    opening.vary_on_encoding();
    let effect = Effect { length: opening.length, coding: Coding::StillGzip, counter: Some(Main::NTestGunzip) };
    Some(Opened { machine: Box::new(TestGunzip::new()), effect })
}

/// The check; the bytes that a step takes pass unchanged.
#[derive(Debug)]
pub struct TestGunzip {
    gunzip: Gunzip,
    plain: Staging,
}

impl TestGunzip {
    /// A new check.
    #[must_use]
    pub fn new() -> TestGunzip {
        TestGunzip { gunzip: Gunzip::new(None), plain: Staging::for_output(Some(CHECKED_AT_ONCE_BYTES)) }
    }
}

impl Default for TestGunzip {
    fn default() -> TestGunzip {
        TestGunzip::new()
    }
}

impl Machine for TestGunzip {
    /// # Errors
    /// As [`Gunzip`], but with its own text for a stream that ends too early.
    fn step(&mut self, input: Option<&[u8]>, _out: &mut Staging) -> Result<Progress, FilterError> {
        self.plain.clear();
        let bounded = input.map(|bytes| &bytes[..bytes.len().min(FILTER_STEP_BYTES_MAX)]);
        let progress = self
            .gunzip
            .step(bounded, &mut self.plain)
            .map_err(|error| if error == TRUNCATED { TEST_TRUNCATED } else { error })?;
        Ok(Progress { passed: Some((0, progress.taken)), ..progress })
    }

    fn state_bytes(&self) -> usize {
        GUNZIP_STATE_BYTES
    }

    fn passes_parts(&self) -> bool {
        true
    }

    fn totals(&self) -> Option<GzipTotals> {
        self.gunzip.totals().map(|totals| GzipTotals { work: 'u', ..totals })
    }
}
