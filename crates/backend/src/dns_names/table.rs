//! The table from ids to items. No id is used twice.

use crate::backend::Backend;
use crate::dns_names::item::Item;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::Notify;
use vcl_run::value::DirectorId;

/// The lowest id of this table; lower ids belong to the VCL's own backends and directors.
pub(crate) const FIRST_ID: u32 = 1 << 31;

#[derive(Debug)]
struct Rows {
    /// The next id; `None` if all have been used.
    next: Option<u32>,
    items: BTreeMap<u32, Item>,
}

/// The names of one VCL, and their present backends.
#[derive(Debug)]
pub(crate) struct Table {
    vcl: String,
    /// True if an entry was ever added: a VCL without names never takes the lock.
    is_used: AtomicBool,
    rows: RwLock<Rows>,
    /// Notified when a name must be looked up, or no longer.
    pub(crate) work: Notify,
}

impl Table {
    /// An empty table for the VCL with this name.
    pub(crate) fn new(vcl: &str) -> Table {
        Table {
            vcl: vcl.to_owned(),
            is_used: AtomicBool::new(false),
            rows: RwLock::new(Rows { next: Some(FIRST_ID), items: BTreeMap::new() }),
            work: Notify::new(),
        }
    }

    /// Name of the VCL.
    pub(crate) fn vcl_name(&self) -> &str {
        &self.vcl
    }

    /// The item with that id.
    pub(crate) fn get(&self, id: DirectorId) -> Option<Item> {
        if id.0 < FIRST_ID || !self.is_used.load(Relaxed) {
            return None;
        }
        self.rows.read().items.get(&id.0).cloned()
    }

    /// All ids in order.
    pub(crate) fn ids(&self) -> Vec<DirectorId> {
        if !self.is_used.load(Relaxed) {
            return Vec::new();
        }
        self.rows.read().items.keys().copied().map(DirectorId).collect()
    }

    /// The id of a backend.
    pub(crate) fn id_of(&self, wanted: &Arc<Backend>) -> Option<DirectorId> {
        if !self.is_used.load(Relaxed) {
            return None;
        }
        let rows = self.rows.read();
        let found = rows.items.iter().find(|(_, item)| match item {
            Item::Backend(backend) => Arc::ptr_eq(backend, wanted),
            Item::Domain(_) | Item::Service(_) => false,
        });
        found.map(|(id, _)| DirectorId(*id))
    }

    /// All present backends.
    pub(crate) fn backends(&self) -> Vec<Arc<Backend>> {
        let rows = self.rows.read();
        let backends = rows.items.values().filter_map(|item| match item {
            Item::Backend(backend) => Some(Arc::clone(backend)),
            Item::Domain(_) | Item::Service(_) => None,
        });
        backends.collect()
    }

    /// Adds an item that contains its own id. `None` if no ids are left.
    pub(crate) fn add<T>(&self, make: impl FnOnce(DirectorId) -> (T, Item)) -> Option<T> {
        let mut rows = self.rows.write();
        let id = rows.next?;
        let (made, item) = make(DirectorId(id));
        rows.items.insert(id, item);
        rows.next = id.checked_add(1);
        self.is_used.store(true, Relaxed);
        Some(made)
    }

    /// Removes an item.
    pub(crate) fn remove(&self, id: DirectorId) {
        self.rows.write().items.remove(&id.0);
    }

    /// The least recently used name, if there are `most` names or more.
    pub(crate) fn longest_unused(&self, most: usize) -> Option<Item> {
        let rows = self.rows.read();
        let is_name = |item: &&Item| !matches!(item, Item::Backend(_));
        if rows.items.len() < most || rows.items.values().filter(is_name).count() < most {
            return None;
        }
        let candidates = rows.items.values().filter_map(|item| match item {
            Item::Backend(_) => None,
            Item::Domain(domain) => Some((domain.last_used(), item)),
            Item::Service(service) => Some((service.last_used(), item)),
        });
        candidates.min_by(|one, two| one.0.total_cmp(&two.0)).map(|(_, item)| item.clone())
    }
}
