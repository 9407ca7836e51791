//! The frame of the decompressors: what `gunzip`, `unbrotli` and `unzstd` have in common.
//!
//! A small input can have a large output, so a step stops when its [`Staging`] is full, and the
//! next call continues from there. An empty body stays empty: many origins declare the coding of a
//! body that turns out to be empty. Next files: `gunzip.rs`, `unbrotli.rs`, `unzstd.rs`.

use crate::machine::{FilterError, GzipTotals, MEMORY_SHORT, Machine, Progress};
use crate::staging::Staging;
use surface::limits::SHORT_MEMORY_WINDOW_BYTES_MAX;

/// The result of a call of the library.
pub struct Unpacked {
    /// Bytes consumed.
    pub taken: usize,
    /// Bytes written.
    pub made: usize,
    /// The end of the compressed data was reached.
    pub is_end: bool,
}

/// A decompressor of one coding.
pub trait Unpack {
    /// The body ends before the compressed data.
    const TRUNCATED: FilterError;
    /// Bytes follow the end of the compressed data; `None` if further data may follow.
    const JUNK_AFTER_END: Option<FilterError>;

    /// Decompresses `bytes` into `room`.
    ///
    /// # Errors
    /// The data are damaged.
    fn unpack(&mut self, bytes: &[u8], room: &mut [u8]) -> Result<Unpacked, FilterError>;

    /// Reads the window that the data require from their first bytes; returns it in bytes, 0 if all
    /// have the same small one.
    fn begin(&mut self, start: &[u8]) -> usize {
        _ = start;
        0
    }

    /// As [`Machine::state_bytes`].
    fn state_bytes(&self) -> usize;

    /// Memory that it holds before the first byte.
    fn idle_bytes(&self) -> usize {
        self.state_bytes()
    }

    /// As [`Machine::output_bytes`].
    fn output_bytes(&self) -> Option<u64> {
        None
    }

    /// As [`Machine::totals`].
    fn totals(&self) -> Option<GzipTotals> {
        None
    }
}

/// A decompressor as a filter.
#[derive(Debug)]
pub struct Unpacking<U> {
    coding: U,
    has_begun: bool,
    /// The first bytes of the body were known when it was set up.
    is_window_known: bool,
    is_memory_short: bool,
    /// The end of the compressed data was reached.
    is_whole: bool,
}

impl<U: Unpack> Unpacking<U> {
    pub(super) fn of(coding: U) -> Unpacking<U> {
        Unpacking { coding, has_begun: false, is_window_known: false, is_memory_short: false, is_whole: false }
    }
}

impl<U> Unpacking<U> {
    /// The same, with a window that is certain or not: a certain one counts from the start.
    pub(super) fn with_known_window(self, is_window_known: bool) -> Unpacking<U> {
        Unpacking { is_window_known, ..self }
    }
}

impl<U: Unpack> Machine for Unpacking<U> {
    /// # Errors
    /// The input is not in this coding, or damaged; it ends too early, or something follows its
    /// end. Memory is short, and the window is not small.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let bytes = input.unwrap_or_default();
        if !self.has_begun && !bytes.is_empty() {
            if self.coding.begin(bytes) > SHORT_MEMORY_WINDOW_BYTES_MAX && self.is_memory_short {
                return Err(MEMORY_SHORT);
            }
            self.has_begun = true;
        }
        if bytes.is_empty() && (self.is_whole || input.is_none() && !self.has_begun) {
            return Ok(Progress { has_ended: input.is_none(), ..Progress::default() });
        }
        if let (true, Some(junk)) = (self.is_whole, U::JUNK_AFTER_END) {
            return Err(junk);
        }
        let Unpacked { taken, made, is_end } = self.coding.unpack(bytes, out.spare())?;
        out.wrote(made);
        self.is_whole = is_end;
        if input.is_none() && !self.is_whole && made == 0 {
            return Err(U::TRUNCATED);
        }
        let is_pending = !self.is_whole && out.is_full();
        Ok(Progress { taken, is_pending, has_ended: input.is_none() && self.is_whole, passed: None })
    }

    fn output_bytes(&self) -> Option<u64> {
        self.coding.output_bytes()
    }

    fn state_bytes(&self) -> usize {
        self.coding.state_bytes()
    }

    fn held_bytes(&self) -> usize {
        if self.has_begun || self.is_window_known { self.coding.state_bytes() } else { self.coding.idle_bytes() }
    }

    fn spare_memory(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    fn totals(&self) -> Option<GzipTotals> {
        self.coding.totals()
    }
}
