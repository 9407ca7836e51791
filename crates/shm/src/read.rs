//! The readers of shared memory: ours or a stock server's.
//!
//! ```text
//! vsm::Vsm ──map──► ring::RingCursor ──chunks──► group::Grouper ──groups──► query::Query ──► tool
//!     │             file::FileCursor ─┘
//!     └──────map──► counters::CounterReader, histograms::HistogramReader
//! ```
//!
//! *Invariant:* every number found in shared memory or in a file is checked before it is used;
//! nothing here panics, and every loop over foreign data either consumes input or ends.

pub mod counters;
pub mod cut_off;
pub mod file;
pub mod group;
pub mod histograms;
pub mod query;
pub mod record;
pub mod ring;
pub mod select;
pub mod tags;
pub mod transaction;
pub mod vsm;

/// Next item of a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A chunk: one record, or the records of one batch.
    Chunk,
    /// Nothing yet; try again later.
    Wait,
    /// The end of a file.
    End,
    /// The writer has overtaken the reader, which has lost its place.
    Overrun,
    /// The log is invalid at this place.
    Damaged,
}

/// A source of log records.
pub trait Cursor {
    /// Puts the next chunk into `words` (cleared first) as whole records in the plain form
    /// (`crate::layout`), all of one transaction.
    fn next(&mut self, words: &mut Vec<u32>) -> Next;
}
