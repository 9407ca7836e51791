//! Storages whose bodies lie in files, beside others in memory: where a response goes, and when what was removed stays away.
//!
//! Each in turn, as in Varnish, is of little use where one is a disk: under `storage_placement=tiers` small bodies go to memory
//! and all others to a file. What VCL chooses comes before all that. *Invariant:* whoever was told that something was purged
//! never sees it again, not even after a loss of power.

use super::Storages;
use std::sync::atomic::Ordering::Relaxed;
use store::Store;
use surface::parameter::Parameters;

impl Storages {
    /// The storage for the next response for which VCL chooses none, as long as its length is not known.
    #[must_use]
    pub fn draw(&self, parameters: &Parameters) -> u32 {
        if self.has_tiers(parameters) { self.next_of(true) } else { self.next() }
    }

    /// The storage for a body of at most so many bytes (`None` = nobody knows), if VCL has left the one that was drawn.
    #[must_use]
    pub fn place(&self, drawn: u32, bytes_max: Option<u64>, parameters: &Parameters) -> u32 {
        if drawn == self.transient() || !self.has_tiers(parameters) {
            return drawn;
        }
        let is_for_file = bytes_max.is_none_or(|bytes| bytes > parameters.storage_small_bytes);
        if self.store(drawn).is_filed() == is_for_file { drawn } else { self.next_of(is_for_file) }
    }

    /// Whether bodies that lie in a file may have copies in memory.
    #[must_use]
    pub fn promote(&self, parameters: &Parameters) -> bool {
        parameters.storage_promote_hits > 0 && self.has_tiers(parameters)
    }

    /// The storage for such a copy.
    #[must_use]
    pub fn next_in_memory(&self) -> &Store {
        self.store(self.next_of(false))
    }

    /// The storages for which somebody has to wait after a purge: see [`settle`].
    #[must_use]
    pub fn filed(&self) -> Vec<Store> {
        self.stores.iter().filter(|store| store.is_filed()).cloned().collect()
    }

    /// Whether bodies may lie in files: then it matters where VCL wants one.
    #[must_use]
    pub fn have_files(&self) -> bool {
        self.stores.iter().any(Store::is_filed)
    }

    /// Whether some storages are in memory and others in files, and that makes a difference.
    fn has_tiers(&self, parameters: &Parameters) -> bool {
        let is_filed = |store: &Store| store.is_filed();
        parameters.storage_placement == "tiers" && self.stores.iter().any(is_filed) && !self.stores.iter().all(is_filed)
    }

    /// The next storage of one kind, of which there must be one: each in turn.
    fn next_of(&self, filed: bool) -> u32 {
        let of_kind = || self.stores.iter().enumerate().filter(move |(_, store)| store.is_filed() == filed);
        let turn = self.turns.fetch_add(1, Relaxed) as usize % of_kind().count().max(1);
        of_kind().nth(turn).map_or(0, |(index, _)| index as u32)
    }
}

/// The record for a purge that the disk did not take.
pub(crate) const NOT_SETTLED: &str = "Removed, but the disk failed: it may come back after a loss of power";

/// Waits until what these storages have removed cannot come back, even after a loss of power. False when a disk failed.
pub async fn settle(stores: Vec<Store>) -> bool {
    let mut is_settled = true;
    for store in stores {
        is_settled &= store.settle().await;
    }
    is_settled
}
