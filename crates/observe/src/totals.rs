//! Counts of this process, which it serves with the server's.

use crate::line_counts::LineCounts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use surface::metric::{Abort, SpanDrop};

/// Counts since the start.
#[derive(Default)]
pub(crate) struct Totals {
    scrapes: AtomicU64,
    aborts: [AtomicU64; Abort::ALL.len()],
    overruns: AtomicU64,
    lost_requests: AtomicU64,
    spans: AtomicU64,
    dropped_spans: [AtomicU64; SpanDrop::ALL.len()],
    access_logs: Mutex<Vec<Arc<LineCounts>>>,
}

impl Totals {
    pub fn count_scrape(&self) {
        self.scrapes.fetch_add(1, Relaxed);
    }

    pub fn count_abort(&self, abort: Abort) {
        self.aborts[abort as usize].fetch_add(1, Relaxed);
    }

    /// The log reader has lost its place in the log.
    pub fn count_overrun(&self) {
        self.overruns.fetch_add(1, Relaxed);
    }

    /// So many requests were not found in the log.
    pub fn count_lost(&self, requests: u64) {
        self.lost_requests.fetch_add(requests, Relaxed);
    }

    /// The collector has taken spans.
    pub fn count_spans(&self, spans: u64) {
        self.spans.fetch_add(spans, Relaxed);
    }

    pub fn drop_spans(&self, why: SpanDrop, spans: u64) {
        self.dropped_spans[why as usize].fetch_add(spans, Relaxed);
    }

    pub fn spans(&self) -> u64 {
        self.spans.load(Relaxed)
    }

    pub fn dropped_spans(&self, why: SpanDrop) -> u64 {
        self.dropped_spans[why as usize].load(Relaxed)
    }

    pub fn add_access_log(&self, counts: Arc<LineCounts>) {
        self.access_logs.lock().unwrap_or_else(PoisonError::into_inner).push(counts);
    }

    pub fn scrapes(&self) -> u64 {
        self.scrapes.load(Relaxed)
    }

    pub fn aborts(&self, abort: Abort) -> u64 {
        self.aborts[abort as usize].load(Relaxed)
    }

    pub fn overruns(&self) -> u64 {
        self.overruns.load(Relaxed)
    }

    pub fn lost_requests(&self) -> u64 {
        self.lost_requests.load(Relaxed)
    }

    pub fn access_logs(&self) -> Vec<Arc<LineCounts>> {
        self.access_logs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
