//! Storages whose bodies are in files, together with others in memory: placement of responses, and
//! durability of removals.
//!
//! Using each in turn, as in Varnish, is of little use if one is a disk: under
//! `storage_placement=tiers` small bodies are stored in memory and all others in a file. VCL's
//! choice takes precedence over all that. *Invariant:* an object whose purge was reported as done
//! never reappears, not even after a loss of power.

use super::Storages;
use std::sync::atomic::Ordering::Relaxed;
use store::Store;
use surface::parameter::Parameters;

impl Storages {
    /// The storage for the next response for which VCL chooses none, as long as its length is
    /// unknown.
    #[must_use]
    pub fn draw(&self, parameters: &Parameters) -> u32 {
        if self.has_tiers(parameters) { self.next_of(true) } else { self.next() }
    }

    /// The storage for a body of at most the given number of bytes (`None` = unknown), if VCL has
    /// left the one that was drawn.
    #[must_use]
    pub fn place(&self, drawn: u32, bytes_max: Option<u64>, parameters: &Parameters) -> u32 {
        if drawn == self.transient() || !self.has_tiers(parameters) {
            return drawn;
        }
        let is_for_file = bytes_max.is_none_or(|bytes| bytes > parameters.storage_small_bytes);
        if self.store(drawn).is_on_disk() == is_for_file { drawn } else { self.next_of(is_for_file) }
    }

    /// True if bodies in a file may have copies in memory.
    #[must_use]
    pub fn promote(&self, parameters: &Parameters) -> bool {
        parameters.storage_promote_hits > 0 && self.has_tiers(parameters)
    }

    /// The storage for such a copy.
    #[must_use]
    pub fn next_in_memory(&self) -> &Store {
        self.store(self.next_of(false))
    }

    /// The storages that must be waited for after a purge: see [`settle`].
    #[must_use]
    pub fn on_disk(&self) -> Vec<Store> {
        self.stores.iter().filter(|store| store.is_on_disk()).cloned().collect()
    }

    /// True if bodies may be stored in files: then VCL's choice of one matters.
    #[must_use]
    pub fn have_files(&self) -> bool {
        self.stores.iter().any(Store::is_on_disk)
    }

    /// True if some storages are in memory and others in files, and that makes a difference.
    fn has_tiers(&self, parameters: &Parameters) -> bool {
        let is_on_disk = |store: &Store| store.is_on_disk();
        parameters.storage_placement == "tiers"
            && self.stores.iter().any(is_on_disk)
            && !self.stores.iter().all(is_on_disk)
    }

    /// The next storage of one kind, of which there must be one: each in turn.
    fn next_of(&self, on_disk: bool) -> u32 {
        let of_kind = || self.stores.iter().enumerate().filter(move |(_, store)| store.is_on_disk() == on_disk);
        let turn = self.turns.fetch_add(1, Relaxed) as usize % of_kind().count().max(1);
        of_kind().nth(turn).map_or(0, |(index, _)| index as u32)
    }
}

/// The record for a purge that the disk did not record.
pub(crate) const NOT_SETTLED: &str = "Removed, but the disk failed: it may come back after a loss of power";

/// Waits until removals from these storages are durable even after a loss of power. False if a disk
/// failed.
pub async fn settle(stores: Vec<Store>) -> bool {
    let mut is_settled = true;
    for store in stores {
        is_settled &= store.settle().await;
    }
    is_settled
}
