//! The counters of a storage, or of a part of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of section `SMA`, for a storage or for its Transient part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Allocation requests.
    pub c_req: u64,
    /// Allocations refused.
    pub c_fail: u64,
    /// Cumulative bytes handed out.
    pub c_bytes: u64,
    /// Cumulative bytes returned.
    pub c_freed: u64,
    /// Live allocations.
    pub g_alloc: u64,
    /// Bytes in use.
    pub g_bytes: u64,
    /// Bytes left of the limit; 0 for Transient without a limit of its own.
    pub g_space: u64,
}

#[derive(Default)]
pub(crate) struct UsageCells {
    c_req: AtomicU64,
    c_fail: AtomicU64,
    c_bytes: AtomicU64,
    c_freed: AtomicU64,
    g_alloc: AtomicU64,
}

impl UsageCells {
    pub(crate) fn allocated(&self, bytes: u64) {
        self.c_bytes.fetch_add(bytes, Relaxed);
        self.g_alloc.fetch_add(1, Relaxed);
    }

    pub(crate) fn requested(&self) {
        self.c_req.fetch_add(1, Relaxed);
    }

    /// Counts an allocation of which a part was given back.
    pub(crate) fn shortened(&self, bytes: u64) {
        self.c_freed.fetch_add(bytes, Relaxed);
    }

    /// Counts two adjacent allocations as one from now on.
    pub(crate) fn joined(&self) {
        self.g_alloc.fetch_sub(1, Relaxed);
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.c_bytes.load(Relaxed).saturating_sub(self.c_freed.load(Relaxed))
    }

    pub(crate) fn live_count(&self) -> u64 {
        self.g_alloc.load(Relaxed)
    }

    pub(crate) fn refused(&self) {
        self.c_fail.fetch_add(1, Relaxed);
    }

    pub(crate) fn freed(&self, bytes: u64) {
        self.c_freed.fetch_add(bytes, Relaxed);
        self.g_alloc.fetch_sub(1, Relaxed);
    }

    pub(crate) fn read(&self, g_space: u64) -> Usage {
        let (c_bytes, c_freed) = (self.c_bytes.load(Relaxed), self.c_freed.load(Relaxed));
        Usage {
            c_req: self.c_req.load(Relaxed),
            c_fail: self.c_fail.load(Relaxed),
            c_bytes,
            c_freed,
            g_alloc: self.g_alloc.load(Relaxed),
            g_bytes: c_bytes.saturating_sub(c_freed),
            g_space,
        }
    }
}
