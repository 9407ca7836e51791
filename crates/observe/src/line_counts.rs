//! Counts of one access log, which are served with the metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::metric::LineDrop;

/// Counts of one access log.
#[derive(Debug)]
pub(crate) struct LineCounts {
    /// Its destination, as a label shows it.
    pub destination: String,
    written: AtomicU64,
    skipped: AtomicU64,
    dropped: [AtomicU64; LineDrop::ALL.len()],
}

impl LineCounts {
    pub fn new(destination: String) -> LineCounts {
        LineCounts { destination, written: AtomicU64::new(0), skipped: AtomicU64::new(0), dropped: Default::default() }
    }

    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    pub fn skipped(&self) -> u64 {
        self.skipped.load(Relaxed)
    }

    pub fn dropped(&self, why: LineDrop) -> u64 {
        self.dropped[why as usize].load(Relaxed)
    }

    /// Lines were written.
    pub fn write(&self, lines: u64) {
        self.written.fetch_add(lines, Relaxed);
    }

    /// A transaction has no line.
    pub fn skip(&self) {
        self.skipped.fetch_add(1, Relaxed);
    }

    pub fn drop_lines(&self, why: LineDrop, lines: u64) {
        self.dropped[why as usize].fetch_add(lines, Relaxed);
    }
}
