//! What VMODs keep for the whole process: it outlives requests and the VCLs that made it, and is gone with the worker.
//!
//! The engine holds one [`SharedState`], so that tests have one each. Every part has a lock of its own and a bound.

use crate::uuid::Clock;
use crate::var::Globals;
use crate::vsthrottle::Buckets;

/// State of all VMODs that is shared by all VCLs and event loops.
#[derive(Debug, Default)]
pub struct SharedState {
    /// What `var.global_set()` keeps.
    pub(crate) globals: Globals,
    /// The token buckets of `vsthrottle`.
    pub(crate) buckets: Buckets,
    /// The clock and node of `uuid_v1()`.
    pub(crate) uuid_clock: Clock,
}

impl SharedState {
    /// Before any VMOD has run.
    #[must_use]
    pub fn new() -> SharedState {
        SharedState::default()
    }
}
