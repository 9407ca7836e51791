//! The storages as VCL, the log and the counters name them: those of `-s` in order, followed by
//! Transient.
//!
//! Transient has no arena of its own: its objects are in the first storage, count against that
//! storage's limit, and may have a smaller limit within it. Responses for which VCL chooses no
//! storage are spread over the storages in turn. Shared by all loops; a hit uses nothing here.

pub mod files;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use store::{FileUsage, Object, ObjectFlags, Store, Usage};
use surface::limits::UNLIMITED_FREE_SPACE_BYTES;

/// A storage as VCL and the log name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageName {
    /// Name, e.g. `s0` or `Transient`.
    pub name: String,
    /// Kind: `malloc` or `file`.
    pub kind: String,
}

/// All storages. Each has an index, as in `Value::Stevedore`: the cache's number of the storage, or
/// [`Storages::transient`].
#[derive(Debug)]
pub struct Storages {
    names: Vec<StorageName>,
    stores: Vec<Store>,
    /// Number of responses that were assigned in turn.
    turns: AtomicU32,
}

impl Storages {
    /// The storages for the stores of a cache, in its order. Transient has the kind `malloc`, since
    /// it is in memory wherever the bodies of the first storage are.
    #[must_use]
    pub fn of(stores: &[Store]) -> Storages {
        let name = |name: &str, kind: &str| StorageName { name: name.to_owned(), kind: kind.to_owned() };
        let kind = |store: &Store| if store.is_on_disk() { "file" } else { "malloc" };
        let of_stores = stores.iter().map(|store| name(store.name(), kind(store)));
        let names = of_stores.chain([name("Transient", "malloc")]).collect();
        Storages { names, stores: stores.to_vec(), turns: AtomicU32::new(0) }
    }

    /// The storage for the next response for which VCL chooses none: each in turn, beginning with
    /// the first.
    pub fn next(&self) -> u32 {
        self.turns.fetch_add(1, Relaxed) % self.transient().max(1)
    }

    /// The index of Transient, which counts short-lived or private objects.
    #[must_use]
    pub fn transient(&self) -> u32 {
        self.stores.len() as u32
    }

    /// Name and kind of a storage.
    #[must_use]
    pub fn name(&self, storage: u32) -> Option<&StorageName> {
        self.names.get(storage as usize)
    }

    /// The index of the storage with that name.
    #[must_use]
    pub fn by_name(&self, name: &[u8]) -> Option<u32> {
        self.names.iter().position(|storage| storage.name.as_bytes() == name).map(|index| index as u32)
    }

    /// The arena of a storage; Transient uses the first one.
    #[must_use]
    pub fn store(&self, storage: u32) -> &Store {
        self.stores.get(storage as usize).unwrap_or(&self.stores[0])
    }

    /// The storage that an object counts under. A body that is only passed on counts as transient,
    /// although it takes no room there.
    #[must_use]
    pub fn of_object(&self, object: &Object) -> u32 {
        match object.store_number() {
            Some(number) if !object.flags().has(ObjectFlags::TRANSIENT) => u32::from(number),
            _ => self.transient(),
        }
    }

    /// Counters and gauges of a storage, of its file if it has one; `None` if it does not exist.
    #[must_use]
    pub fn usage(&self, storage: u32) -> Option<Usage> {
        if storage == self.transient() {
            return Some(self.store(storage).transient_usage());
        }
        let of_file = self.file_usage(storage).map(|file| file.usage);
        of_file.or_else(|| self.stores.get(storage as usize).map(Store::usage))
    }

    /// Counters and gauges of the file of a storage; `None` if it has none.
    #[must_use]
    pub fn file_usage(&self, storage: u32) -> Option<FileUsage> {
        self.stores.get(storage as usize)?.file_usage()
    }

    /// The free space of a storage in bytes; if it has no limit, a number larger than any that VCL
    /// compares with.
    #[must_use]
    pub fn free_bytes(&self, storage: u32) -> u64 {
        if let Some(file) = self.file_usage(storage) {
            return file.usage.g_space;
        }
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
