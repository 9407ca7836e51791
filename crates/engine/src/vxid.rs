//! Transaction ids, which connect the records of a session, a request and a fetch in the log.

use std::sync::atomic::{AtomicU32, Ordering};

/// The only source of transaction ids for sessions, requests and fetches.
#[derive(Debug)]
pub struct VxidSource {
    next: AtomicU32,
}

impl VxidSource {
    /// A source that begins with 1.
    #[must_use]
    pub fn new() -> Self {
        VxidSource { next: AtomicU32::new(1) }
    }

    /// The next id: below 2^30 and never 0.
    #[must_use]
    pub fn next(&self) -> u32 {
        loop {
            let id = self.next.fetch_add(1, Ordering::Relaxed) & 0x3fff_ffff;
            if id != 0 {
                return id;
            }
        }
    }

    /// The last id handed out, for `debug.xid`.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.next.load(Ordering::Relaxed).wrapping_sub(1) & 0x3fff_ffff
    }

    /// Makes `last + 1` the next id (`debug.xid`).
    pub fn set_last(&self, last: u32) {
        self.next.store(last.wrapping_add(1) & 0x3fff_ffff, Ordering::Relaxed);
    }
}

impl Default for VxidSource {
    fn default() -> Self {
        Self::new()
    }
}
