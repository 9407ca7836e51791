//! Ids to what they stand for. No id is given twice.

use crate::backend::Backend;
use crate::dns_names::item::Item;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::sync::Notify;
use vcl_run::value::DirectorId;

/// Ids from here on are of this table; those below are of the VCL's own backends and directors.
pub(crate) const FIRST_ID: u32 = 1 << 31;

#[derive(Debug)]
struct Rows {
    /// The next id; `None` when all have been given.
    next: Option<u32>,
    items: BTreeMap<u32, Item>,
}

/// The names of one VCL, and the backends that they are at the time.
#[derive(Debug)]
pub(crate) struct Table {
    vcl: String,
    /// There is anything in the table: for VCLs without, nobody takes the lock.
    is_used: AtomicBool,
    rows: RwLock<Rows>,
    /// Something is to be looked up, or no longer.
    pub(crate) work: Notify,
}

impl Table {
    /// An empty table of the VCL of that name.
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

    /// What an id stands for.
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

    /// All backends that there are.
    pub(crate) fn backends(&self) -> Vec<Arc<Backend>> {
        let rows = self.rows.read();
        let backends = rows.items.values().filter_map(|item| match item {
            Item::Backend(backend) => Some(Arc::clone(backend)),
            Item::Domain(_) | Item::Service(_) => None,
        });
        backends.collect()
    }

    /// Puts something in that knows its id. `None` when there are no more ids.
    pub(crate) fn add<T>(&self, make: impl FnOnce(DirectorId) -> (T, Item)) -> Option<T> {
        let mut rows = self.rows.write();
        let id = rows.next?;
        let (made, item) = make(DirectorId(id));
        rows.items.insert(id, item);
        rows.next = id.checked_add(1);
        self.is_used.store(true, Relaxed);
        Some(made)
    }

    /// Takes something out.
    pub(crate) fn remove(&self, id: DirectorId) {
        self.rows.write().items.remove(&id.0);
    }

    /// The name that was unused for longest, when there are `most` names or more.
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
