//! `testgunzip`: checks that a body is one sound gzip member, and leaves it as it is.

use super::gunzip::{Gunzip, TRUNCATED};
use super::{Coding, Effect, Opened, Opening};
use crate::machine::{FilterError, GzipTotals, Machine, Progress};
use crate::staging::Staging;
use surface::counter::Main;
use surface::limits::{FILTER_STEP_BYTES_MAX, GUNZIP_STATE_BYTES};

/// What a check unpacks at a time, bytes; nobody gets to see it.
const CHECKED_AT_ONCE_BYTES: u64 = 16 << 10;

/// The stream to check ended before the gzip member did.
const TEST_TRUNCATED: FilterError = FilterError::new("tGunzip failed");

pub(super) fn open(opening: &mut Opening<'_>) -> Option<Opened> {
    if !opening.is_gzipped() {
        return None;
    }
    opening.vary_on_encoding();
    let effect = Effect { length: opening.length, coding: Coding::StillGzip, counter: Some(Main::NTestGunzip) };
    Some(Opened { machine: Box::new(TestGunzip::new()), effect })
}

/// Checks; the bytes that a step takes in go on unchanged.
#[derive(Debug)]
pub struct TestGunzip {
    gunzip: Gunzip,
    plain: Staging,
}

impl TestGunzip {
    /// A fresh check.
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
    /// As [`Gunzip`], with a text of its own for a stream that ends too early.
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
