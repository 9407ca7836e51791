//! The index of stored responses: lookup, waiting lists, expiry, eviction, bans and purges.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod ban;
mod lookup;

pub use ban::BanSpecification;
pub use lookup::{Busy, Lookup, LookupRequest, Purge, Waiter};

use std::io;
use std::sync::Arc;
use store::{Journal, Object, Store};
use surface::counter::Main;
use surface::parameter::Parameters;
use surface::tag::Tag;

/// Takes log records that belong to no transaction (`ExpKill`, bans by the lurker, evictions).
pub type LogSink = Box<dyn Fn(Tag, &[u8]) + Send + Sync>;

/// The index. Clones share it.
#[derive(Clone)]
pub struct Cache(());

impl Cache {
    /// An empty index over `store`, with the bans of `journal`. Becomes the store's evictor. `now`: seconds since 1970.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn new(_store: Store, _journal: Journal, _now: f64) -> io::Result<Cache> {
        todo!()
    }
    /// A cache in memory of its own, for tests and simulation.
    ///
    /// # Errors
    /// The memory files could not be made.
    pub fn in_memory(_limit_bytes: u64, _now: f64) -> io::Result<Cache> {
        todo!()
    }
    /// Takes over recovered objects; returns how many were still worth keeping.
    pub fn adopt(&self, _objects: Vec<Arc<Object>>, _now: f64) -> usize {
        todo!()
    }
    /// The store underneath.
    #[must_use]
    pub fn store(&self) -> &Store {
        todo!()
    }
    /// Sets who gets records without a transaction.
    pub fn set_log_sink(&self, _sink: LogSink) {
        todo!()
    }
    /// Takes over parameter values (rush_exponent, lru_interval, ban_*). Call at the start and at every change.
    pub fn configure(&self, _parameters: &Parameters) {
        todo!()
    }
    /// Removes every variant under a key, or shortens their lives. Returns how many objects; the caller counts
    /// `n_obj_purged`.
    pub fn purge(&self, _key: &[u8; 32], _purge: Purge, _now: f64) -> usize {
        todo!()
    }
    /// Takes an object out of the index, durably.
    pub fn remove(&self, _object: &Arc<Object>) {
        todo!()
    }
    /// Adds a ban. Durable on return.
    ///
    /// # Errors
    /// The journal cannot be written; the text is for the CLI.
    pub fn ban(&self, _specification: BanSpecification, _now: f64) -> Result<(), String> {
        todo!()
    }
    /// The reply to `ban.list`.
    #[must_use]
    pub fn ban_list(&self) -> String {
        todo!()
    }
    /// The elements of the reply to `ban.list -j`, without the enclosing list.
    #[must_use]
    pub fn ban_list_json(&self) -> String {
        todo!()
    }
    /// Does what is due: expiry, ban lurker, housekeeping. Returns when to call again, seconds since 1970. Any one thread.
    pub fn tick(&self, _now: f64) -> f64 {
        todo!()
    }
    /// Objects in the index.
    #[must_use]
    pub fn object_count(&self) -> usize {
        todo!()
    }
    /// Calls `add` with the amounts of the MAIN counters and gauges that the cache keeps for all event loops together
    /// (n_object, n_objectcore, n_objecthead, n_expired, n_lru_*, exp_*, busy_wakeup, bans*). Whoever publishes adds them
    /// to the sums over the loops.
    pub fn counters(&self, _add: &mut dyn FnMut(Main, u64)) {
        todo!()
    }
}
