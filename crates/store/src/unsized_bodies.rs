//! Bodies of unknown length under way, in an arena or in a file: the share that each may have.
//!
//! Room has to be made for them without knowing how long they will be. Overflowed bodies count as
//! long as a slow reader keeps part of them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A body of unknown length that has no more than one part in this many of the share of all of them
/// is never limited, however many there are: pages of usual size must not be dropped because a few
/// large bodies are under way.
const FLOOR: u64 = 64;

/// The bodies; see the module header.
#[derive(Default)]
pub(crate) struct UnsizedBodies {
    count: AtomicU64,
    /// Bytes that they have taken.
    bytes: AtomicU64,
}

/// Bytes that any body of unknown length may have of a share.
pub(crate) fn floor_bytes(share: u64) -> u64 {
    share / FLOOR
}

impl UnsizedBodies {
    /// Number of bytes by which a body of unknown length that has `held_bytes` may grow: up to the
    /// share; if several bodies together already have the share, up to a fair part of it; and if
    /// they have twice that, only up to the floor.
    pub(crate) fn room(&self, share: u64, held_bytes: u64) -> u64 {
        let (count, total) = (self.count.load(Relaxed), self.bytes.load(Relaxed));
        let fair = if total < 2 * share { share / count.max(1) } else { 0 };
        let fair = fair.max(floor_bytes(share)).saturating_sub(held_bytes);
        share.saturating_sub(held_bytes).min(share.saturating_sub(total).max(fair))
    }

    /// Counts a body that begins with `bytes`.
    pub(crate) fn begin(&self, bytes: u64) {
        self.count.fetch_add(1, Relaxed);
        self.grow(bytes);
    }

    pub(crate) fn grow(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// A body has given `bytes` back.
    pub(crate) fn shrink(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// A body has ended or is dropped, with `bytes` still counted.
    pub(crate) fn end(&self, bytes: u64) {
        self.shrink(bytes);
        self.count.fetch_sub(1, Relaxed);
    }
}
