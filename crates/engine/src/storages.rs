//! The storages as VCL, the log and the counters know them: those of `-s` in order, and Transient behind them.
//!
//! Transient has no arena of its own: its objects lie in the first storage, count against that one's limit, and may be
//! bounded within it. A response for which VCL chooses nothing goes to the next storage in turn. Shared by all loops;
//! nothing here is touched on a hit.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use store::{Object, ObjectFlags, Store, Usage};
use surface::limits::UNLIMITED_FREE_SPACE_BYTES;

/// A storage as VCL and the log name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageName {
    /// Name, e.g. `s0` or `Transient`.
    pub name: String,
    /// Kind, e.g. `malloc`.
    pub kind: String,
}

/// All storages. They are told apart by index, as in `Value::Stevedore`: the cache's number of the storage, or
/// [`Storages::transient`].
#[derive(Debug)]
pub struct Storages {
    names: Vec<StorageName>,
    stores: Vec<Store>,
    /// How many responses have had a turn.
    turns: AtomicU32,
}

impl Storages {
    /// Of the stores of a cache, in its order. Kind of all, Transient too: `malloc`.
    #[must_use]
    pub fn of(stores: &[Store]) -> Storages {
        let name = |name: &str| StorageName { name: name.to_owned(), kind: "malloc".to_owned() };
        let names = stores.iter().map(|store| name(store.name())).chain([name("Transient")]).collect();
        Storages { names, stores: stores.to_vec(), turns: AtomicU32::new(0) }
    }

    /// The storage of the next response for which VCL chooses none: each in turn, the first one first.
    pub fn next(&self) -> u32 {
        self.turns.fetch_add(1, Relaxed) % self.transient().max(1)
    }

    /// The index of Transient: what is short-lived or private is counted there.
    #[must_use]
    pub fn transient(&self) -> u32 {
        self.stores.len() as u32
    }

    /// Name and kind.
    #[must_use]
    pub fn name(&self, storage: u32) -> Option<&StorageName> {
        self.names.get(storage as usize)
    }

    /// The index of the storage of that name.
    #[must_use]
    pub fn by_name(&self, name: &[u8]) -> Option<u32> {
        self.names.iter().position(|storage| storage.name.as_bytes() == name).map(|index| index as u32)
    }

    /// The arena behind an index: Transient's is the first one.
    #[must_use]
    pub fn store(&self, storage: u32) -> &Store {
        self.stores.get(storage as usize).unwrap_or(&self.stores[0])
    }

    /// The storage that an object is counted under; what passes by counts as transient, though it takes nothing there.
    #[must_use]
    pub fn of_object(&self, object: &Object) -> u32 {
        match object.store_number() {
            Some(number) if !object.flags().has(ObjectFlags::TRANSIENT) => u32::from(number),
            _ => self.transient(),
        }
    }

    /// Counters and gauges; `None` when there is no such storage.
    #[must_use]
    pub fn usage(&self, storage: u32) -> Option<Usage> {
        if storage == self.transient() {
            return Some(self.store(storage).transient_usage());
        }
        self.stores.get(storage as usize).map(Store::usage)
    }

    /// What a storage has left, in bytes; without a limit of its own, so much that no VCL asks for more.
    #[must_use]
    pub fn free_bytes(&self, storage: u32) -> u64 {
        let (store, is_transient) = (self.store(storage), storage == self.transient());
        if store.is_shown_unlimited(is_transient) {
            return UNLIMITED_FREE_SPACE_BYTES;
        }
        store.free_bytes(is_transient)
    }

    /// All indices, Transient last.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<> {
        0..=self.transient()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_storage_has_its_turn_in_the_order_given() {
        let stores = [Store::in_memory(1 << 20).unwrap(), Store::in_memory(1 << 20).unwrap()];
        let storages = Storages::of(&stores);
        assert_eq!([storages.next(), storages.next(), storages.next()], [0, 1, 0]);
        assert_eq!(storages.transient(), 2);
        assert_eq!(storages.name(2).unwrap().name, "Transient");
        assert_eq!((storages.by_name(b"Transient"), storages.by_name(b"s9")), (Some(2), None));
        assert!(storages.usage(3).is_none());
        assert_eq!(storages.all().count(), 3);
    }
}
