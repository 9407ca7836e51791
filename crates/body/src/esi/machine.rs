//! The filters: a page passes through, and its plan is available at the end.

use super::note::Note;
use super::packer::Packer;
use super::parser::{Leniency, Parser};
use super::runs::Runs;
use crate::machine::{FilterError, GzipTotals, Machine, Progress};
use crate::staging::Staging;
use surface::limits::{ESI_GZIP_QUEUE_BYTES, FILTER_STEP_BYTES_MAX, GZIP_STATE_BYTES};

/// Bytes of a page that are compressed in one step: their output, and bytes that the library held
/// back, wait in a queue.
const PACKED_AT_ONCE_BYTES: usize = 16 << 10;

const PACKING_FAILED: FilterError = FilterError::new("ESI+Gzip Failed at the very end");

/// The parser's parameters for a page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The target of the request for it: addresses are relative to it.
    pub target: Vec<u8>,
    /// The permitted deviations.
    pub leniency: Leniency,
    /// Parse it in small pieces (`esi_chop`).
    pub is_chopped: bool,
}

/// Parses a page, which passes unchanged.
#[derive(Debug)]
pub struct Esi {
    parser: Parser,
    runs: Runs,
    is_chopped: bool,
    /// Chooses the next small piece.
    piece: usize,
    has_ended: bool,
}

impl Esi {
    /// A parser of this page.
    #[must_use]
    pub fn new(page: &Page) -> Esi {
        Esi::with(page, None)
    }

    fn with(page: &Page, packer: Option<Packer>) -> Esi {
        Esi {
            parser: Parser::new(page.leniency, &page.target),
            runs: Runs::new(packer),
            is_chopped: page.is_chopped,
            piece: 0,
            has_ended: false,
        }
    }

    /// Parses at most `bytes_max` of these bytes; returns the number parsed.
    fn parse(&mut self, bytes: &[u8], bytes_max: usize) -> usize {
        let chopped_max = if self.is_chopped { 1 + self.piece % 4 } else { bytes_max };
        self.piece = self.piece.wrapping_mul(5).wrapping_add(3);
        let bytes = &bytes[..bytes.len().min(bytes_max).min(chopped_max)];
        self.runs.begin_step();
        if bytes.is_empty() { 0 } else { self.parser.parse(bytes, &mut self.runs) }
    }

    fn finish(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            self.parser.finish(&mut self.runs);
            self.runs.finish();
        }
    }
}

impl Machine for Esi {
    fn step(&mut self, input: Option<&[u8]>, _out: &mut Staging) -> Result<Progress, FilterError> {
        let taken = self.parse(input.unwrap_or_default(), FILTER_STEP_BYTES_MAX);
        if input.is_none() {
            self.finish();
        }
        Ok(Progress { taken, is_pending: false, has_ended: input.is_none(), passed: Some((0, taken)) })
    }

    fn state_bytes(&self) -> usize {
        self.parser.memory_bytes() + self.runs.memory_bytes()
    }

    fn passes_parts(&self) -> bool {
        true
    }

    fn note(&mut self) -> Option<Note> {
        self.runs.take_note()
    }

    fn annex(&mut self) -> Option<Vec<u8>> {
        if self.has_ended { self.runs.take_plan() } else { None }
    }
}

/// Parses a page and compresses it, so that its pieces can be put into one gzip stream with
/// fragments.
#[derive(Debug)]
pub struct EsiGzip {
    esi: Esi,
    taken_bytes: u64,
    made_bytes: u64,
}

impl EsiGzip {
    /// A parser of this page, and a compressor with this level, 0 to 9 (`gzip_level`).
    #[must_use]
    pub fn new(page: &Page, level: u32) -> EsiGzip {
        EsiGzip { esi: Esi::with(page, Some(Packer::new(level))), taken_bytes: 0, made_bytes: 0 }
    }
}

impl Machine for EsiGzip {
    /// # Errors
    /// The library failed.
    fn step(&mut self, input: Option<&[u8]>, out: &mut Staging) -> Result<Progress, FilterError> {
        let is_idle = self.esi.runs.packer().is_none_or(|packer| packer.waiting().is_empty());
        let taken = if is_idle { self.esi.parse(input.unwrap_or_default(), PACKED_AT_ONCE_BYTES) } else { 0 };
        if input.is_none() {
            self.esi.finish();
        }
        self.taken_bytes += taken as u64;
        let Some(packer) = self.esi.runs.packer() else { return Err(PACKING_FAILED) };
        if packer.has_failed() {
            return Err(PACKING_FAILED);
        }
        let made = out.copy_from(packer.waiting());
        packer.take(made);
        self.made_bytes += made as u64;
        let is_pending = !packer.waiting().is_empty();
        Ok(Progress { taken, is_pending, has_ended: input.is_none() && !is_pending, passed: None })
    }

    fn state_bytes(&self) -> usize {
        GZIP_STATE_BYTES + ESI_GZIP_QUEUE_BYTES + self.esi.state_bytes()
    }

    fn totals(&self) -> Option<GzipTotals> {
        Some(GzipTotals { is_esi: true, ..GzipTotals::of_bytes('G', self.taken_bytes, self.made_bytes) })
    }

    fn note(&mut self) -> Option<Note> {
        self.esi.note()
    }

    fn annex(&mut self) -> Option<Vec<u8>> {
        self.esi.annex()
    }
}
