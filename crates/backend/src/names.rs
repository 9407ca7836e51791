//! Backends by name: a host that is looked up again and again, and the backends that its addresses are at the time.
//!
//! ```text
//! Maker (one `dynamic.director` object) ─┬▶ Domain (host:port) ─▶ backends, one an address
//!                                        └▶ Service (SRV name) ─▶ domains, by priority and weight
//! ```
//!
//! [`Names`] is the table of a loaded VCL: it gives domains, services and backends ids beyond those of the VCL's own, and
//! never gives an id twice, so that one that a request holds leads to what it was or to nothing. VCL makes domains and
//! services on any event loop; [`run`] looks them up, in one task of the main thread while the VCL is warm, and forgets
//! those that nobody asks for. Who wants a domain before its first lookup is done waits ([`Domain::ready`]).
//!
//! *Locks*: a maker's state → a domain's state → the table, each for a few instructions.
//! *Limits*: [`DYNAMIC_DOMAINS_MAX`] domains and services a VCL (the one unused for longest makes room),
//! [`DYNAMIC_ADDRESSES_MAX`] addresses a domain. Reading order: `resolve`, `settings`, `domain`, `service`, `maker`, `run`.
//! Compat: libvmod-dynamic.

pub mod domain;
pub mod maker;
pub mod resolve;
pub mod run;
pub mod service;
pub mod settings;

use crate::backend::Backend;
use domain::Domain;
use maker::Maker;
use parking_lot::RwLock;
use service::Service;
use settings::Settings;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use surface::limits::DYNAMIC_DOMAINS_MAX;
use tokio::sync::Notify;
use vcl_run::value::DirectorId;

/// Ids from here on are of this table; those below are of the VCL's own backends and directors.
pub(crate) const FIRST_ID: u32 = 1 << 31;

/// What an id of this table stands for.
#[derive(Clone, Debug)]
pub enum Item {
    /// An address of a domain.
    Backend(Arc<Backend>),
    /// A host and port.
    Domain(Arc<Domain>),
    /// A name of SRV records.
    Service(Arc<Service>),
}

impl Item {
    /// The VCL name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Item::Backend(backend) => backend.name(),
            Item::Domain(domain) => domain.name(),
            Item::Service(service) => service.name(),
        }
    }

    /// Whether its first lookup is still to come.
    pub(crate) fn is_new(&self) -> bool {
        match self {
            Item::Backend(_) => false,
            Item::Domain(domain) => domain.is_new(),
            Item::Service(service) => service.is_new(),
        }
    }

    /// The backends that it stands for; `None` for a backend itself.
    pub(crate) fn backends(&self) -> Option<Vec<Arc<Backend>>> {
        match self {
            Item::Backend(_) => None,
            Item::Domain(domain) => Some(domain.backends()),
            Item::Service(service) => Some(service.domains().iter().flat_map(|domain| domain.backends()).collect()),
        }
    }

    /// What the object that made a name was made with; `None` for a backend.
    pub(crate) fn settings(&self) -> Option<&Settings> {
        match self {
            Item::Backend(_) => None,
            Item::Domain(domain) => Some(domain.settings()),
            Item::Service(service) => Some(service.settings()),
        }
    }

    /// Waits for the first lookup, `first_lookup_timeout` at most.
    pub async fn ready(&self) {
        match self {
            Item::Backend(_) => {}
            Item::Domain(domain) => domain.ready().await,
            Item::Service(service) => service.ready().await,
        }
    }

    /// As [`Item::state`], without the operator's word about a backend itself.
    pub(crate) fn unforced_state(&self) -> (bool, f64) {
        match self {
            Item::Backend(backend) => (backend.health().probed(), backend.health().changed()),
            Item::Domain(_) | Item::Service(_) => self.state(),
        }
    }

    /// Whether it can be used, and since when, the operator's word about names left out.
    pub(crate) fn state(&self) -> (bool, f64) {
        match self {
            Item::Backend(backend) => (backend.is_healthy(), backend.health().changed()),
            Item::Domain(domain) => domain.state(),
            Item::Service(service) => service.state(),
        }
    }

    /// The operator's view.
    pub(crate) fn health(&self) -> &crate::health::Health {
        match self {
            Item::Backend(backend) => backend.health(),
            Item::Domain(domain) => domain.health(),
            Item::Service(service) => service.health(),
        }
    }
}

#[derive(Debug)]
struct Table {
    /// The next id; `None` when all have been given.
    next: Option<u32>,
    items: BTreeMap<u32, Item>,
}

/// Everything dynamic of one loaded VCL.
#[derive(Debug)]
pub struct Names {
    vcl: String,
    /// There is anything in the table: for VCLs without, nobody takes the lock.
    is_used: AtomicBool,
    table: RwLock<Table>,
    /// By number of the instance.
    makers: RwLock<BTreeMap<u32, Arc<Maker>>>,
    /// Something is to be done by [`run`].
    pub(crate) work: Notify,
}

impl Names {
    /// An empty table of the VCL of that name.
    #[must_use]
    pub fn new(vcl: &str) -> Names {
        Names {
            vcl: vcl.to_owned(),
            is_used: AtomicBool::new(false),
            table: RwLock::new(Table { next: Some(FIRST_ID), items: BTreeMap::new() }),
            makers: RwLock::default(),
            work: Notify::new(),
        }
    }

    /// Name of the VCL.
    #[must_use]
    pub fn vcl_name(&self) -> &str {
        &self.vcl
    }

    /// Makes the object of that instance; false when it was made before.
    pub fn make(&self, instance: u32, settings: Settings) -> bool {
        let mut makers = self.makers.write();
        let is_new = !makers.contains_key(&instance);
        if is_new {
            makers.insert(instance, Arc::new(Maker::new(settings)));
        }
        is_new
    }

    /// The object of that instance.
    #[must_use]
    pub fn maker(&self, instance: u32) -> Option<Arc<Maker>> {
        self.makers.read().get(&instance).map(Arc::clone)
    }

    /// All objects.
    #[must_use]
    pub fn makers(&self) -> Vec<Arc<Maker>> {
        self.makers.read().values().map(Arc::clone).collect()
    }

    /// Whether the VCL has any such object, so that [`run`] has something to do.
    #[must_use]
    pub fn has_makers(&self) -> bool {
        !self.makers.read().is_empty()
    }

    /// What an id stands for.
    #[must_use]
    pub fn get(&self, id: DirectorId) -> Option<Item> {
        if id.0 < FIRST_ID || !self.is_used.load(Relaxed) {
            return None;
        }
        self.table.read().items.get(&id.0).cloned()
    }

    /// All ids in order.
    #[must_use]
    pub fn ids(&self) -> Vec<DirectorId> {
        if !self.is_used.load(Relaxed) {
            return Vec::new();
        }
        self.table.read().items.keys().copied().map(DirectorId).collect()
    }

    /// The id of a backend.
    #[must_use]
    pub fn id_of(&self, wanted: &Arc<Backend>) -> Option<DirectorId> {
        if !self.is_used.load(Relaxed) {
            return None;
        }
        let table = self.table.read();
        let found = table.items.iter().find(|(_, item)| match item {
            Item::Backend(backend) => Arc::ptr_eq(backend, wanted),
            Item::Domain(_) | Item::Service(_) => false,
        });
        found.map(|(id, _)| DirectorId(*id))
    }

    /// All backends that there are.
    #[must_use]
    pub fn backends(&self) -> Vec<Arc<Backend>> {
        let table = self.table.read();
        let backends = table.items.values().filter_map(|item| match item {
            Item::Backend(backend) => Some(Arc::clone(backend)),
            Item::Domain(_) | Item::Service(_) => None,
        });
        backends.collect()
    }

    /// Puts something into the table that knows its id. `None` when there are no more ids.
    fn add<T>(&self, make: impl FnOnce(DirectorId) -> (T, Item)) -> Option<T> {
        let mut table = self.table.write();
        let id = table.next?;
        let (made, item) = make(DirectorId(id));
        table.items.insert(id, item);
        table.next = id.checked_add(1);
        self.is_used.store(true, Relaxed);
        Some(made)
    }

    fn remove(&self, id: DirectorId) {
        self.table.write().items.remove(&id.0);
    }

    /// Makes room for one more name, when there are too many, by giving up the one that was unused for longest.
    fn make_room(&self) {
        let oldest = {
            let table = self.table.read();
            let is_name = |item: &&Item| !matches!(item, Item::Backend(_));
            if table.items.len() < DYNAMIC_DOMAINS_MAX
                || table.items.values().filter(is_name).count() < DYNAMIC_DOMAINS_MAX
            {
                return;
            }
            let candidates = table.items.values().filter_map(|item| match item {
                Item::Backend(_) => None,
                Item::Domain(domain) => Some((domain.last_used(), item)),
                Item::Service(service) => Some((service.last_used(), item)),
            });
            candidates.min_by(|one, two| one.0.total_cmp(&two.0)).map(|(_, item)| item.clone())
        };
        match oldest {
            Some(Item::Domain(domain)) => {
                if let Some(maker) = self.makers().iter().find(|maker| maker.owns(&domain.settings)) {
                    maker.give_up(self, &domain);
                }
            }
            Some(Item::Service(service)) => {
                if let Some(maker) = self.makers().iter().find(|maker| maker.owns(&service.settings)) {
                    maker.give_up_service(self, &service);
                }
            }
            Some(Item::Backend(_)) | None => {}
        }
    }
}
#[cfg(test)]
mod tests;
