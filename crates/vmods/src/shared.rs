//! State that VMODs keep for the whole process: it outlives requests and VCLs and ends with the
//! worker.
//!
//! The engine holds one [`SharedState`], so that each test has its own. Every part has its own lock
//! and bound.

use crate::basicauth::{Checks, Passwords};
use crate::debug::counter::DebugCounter;
use crate::geo::Database;
use crate::jwt::KeySet;
use crate::lookups::Lookups;
use crate::uuid::Clock;
use crate::var::Globals;
use crate::vsthrottle::Buckets;
use crate::watched::Watched;
use std::sync::Arc;
use surface::limits::{VMOD_LOOKUPS_WAITING_MAX, WATCHED_FILE_READS_MAX};

/// State of all VMODs that is shared by all VCLs and event loops.
#[derive(Debug)]
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
    /// Checks of files that may have been replaced.
    pub(crate) file_reads: Arc<Lookups>,
    /// Password files of basicauth.
    pub(crate) passwords: Arc<Watched<Passwords>>,
    /// Files of JSON Web Keys of jwt.
    pub(crate) key_sets: Arc<Watched<KeySet>>,
    /// Databases of addresses.
    pub(crate) databases: Arc<Watched<Database>>,
    /// Verification of passwords.
    pub(crate) password_checks: Arc<Checks>,
}

impl Default for SharedState {
    fn default() -> Self {
        SharedState {
            globals: Globals::default(),
            buckets: Buckets::default(),
            uuid_clock: Clock::default(),
            lookups: Lookups::default(),
            debug_counter: DebugCounter::default(),
            file_reads: Arc::new(Lookups::new(WATCHED_FILE_READS_MAX, VMOD_LOOKUPS_WAITING_MAX)),
            passwords: Arc::default(),
            key_sets: Arc::default(),
            databases: Arc::default(),
            password_checks: Arc::default(),
        }
    }
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
