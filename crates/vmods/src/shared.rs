//! State that VMODs keep for the whole process: it outlives requests and VCLs and ends with the
//! worker.
//!
//! The engine holds one [`SharedState`], so that each test has its own. Every part has its own lock
//! and bound.

use crate::debug::counter::DebugCounter;
use crate::lookups::Lookups;
use crate::uuid::Clock;
use crate::var::Globals;
use crate::vsthrottle::Buckets;

/// State of all VMODs that is shared by all VCLs and event loops.
#[derive(Debug, Default)]
pub struct SharedState {
    /// The variables of `var.global_set()`.
    pub(crate) globals: Globals,
    /// The token buckets of `vsthrottle`.
    pub(crate) buckets: Buckets,
    /// The clock and node of `uuid_v1()`.
    pub(crate) uuid_clock: Clock,
    /// The names that are being looked up.
    pub(crate) lookups: Lookups,
    /// The counter of debug.
    pub(crate) debug_counter: DebugCounter,
}

impl SharedState {
    /// The state before any VMOD has run.
    #[must_use]
    pub fn new() -> SharedState {
        SharedState::default()
    }

    /// The value of `DEBUG.count`, while there is that counter.
    #[must_use]
    pub fn debug_count(&self) -> Option<u64> {
        self.debug_counter.shown()
    }
}
