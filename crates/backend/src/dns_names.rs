//! Backends by name: hosts that are looked up repeatedly, and the backends at their present
//! addresses.
//!
//! ```text
//! Maker (one `dynamic.director` object) ─┬▶ Domain (host:port) ─▶ backends, one for each address
//!                                        └▶ Service (SRV name) ─▶ domains, by priority and weight
//! ```
//!
//! [`DnsNames`] is the table of a loaded VCL: it gives domains, services and backends ids above
//! those of the VCL's own, and never uses an id twice, so an id that a request holds leads to the
//! same item or to nothing. VCL makes domains and services on any event loop; [`run`] looks them
//! up, in one task of the main thread while the VCL is warm, and drops those that are no longer
//! used. A request that needs a domain before its first lookup is done waits ([`Domain::ready`]).
//!
//! *Locks*: a maker's state → a domain's state → the table, each for a few instructions. *Limits*:
//! [`DYNAMIC_DOMAINS_MAX`] domains and services per VCL (the least recently used one makes room),
//! [`DYNAMIC_ADDRESSES_MAX`] addresses per domain. Reading order: `resolve`, `settings`, `domain`,
//! `attempts`, `service`, `item`, `table`, `maker`, `run`. Compat: libvmod-dynamic.

pub mod attempts;
pub mod domain;
pub mod item;
pub mod maker;
pub mod resolve;
pub mod run;
pub mod service;
pub mod settings;
pub(crate) mod table;

use crate::backend::Backend;
use domain::Domain;
use item::Item;
use maker::Maker;
use parking_lot::RwLock;
use resolve::Target;
use service::{Service, ServiceTarget};
use settings::MakerSettings;
use std::collections::BTreeMap;
use std::sync::Arc;
use surface::limits::{DYNAMIC_ADDRESSES_MAX, DYNAMIC_DOMAINS_MAX};
use table::Table;
use tokio::sync::Notify;
use vcl_run::value::DirectorId;

/// All names that one loaded VCL looks up.
#[derive(Debug)]
pub struct DnsNames {
    table: Table,
    /// The objects, by instance number.
    makers: RwLock<BTreeMap<u32, Arc<Maker>>>,
}

impl DnsNames {
    /// An empty table for the VCL with this name.
    #[must_use]
    pub fn new(vcl: &str) -> DnsNames {
        DnsNames { table: Table::new(vcl), makers: RwLock::default() }
    }

    /// Name of the VCL.
    #[must_use]
    pub fn vcl_name(&self) -> &str {
        self.table.vcl_name()
    }

    /// The table from ids to items, for code that changes a maker.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Notified when there is work for [`run`].
    pub(crate) fn work(&self) -> &Notify {
        &self.table.work
    }

    /// Makes the object of that instance; false if it is already made.
    pub fn make(&self, instance: u32, settings: MakerSettings) -> bool {
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

    /// True if the VCL has any such object, so that [`run`] has work.
    #[must_use]
    pub fn has_makers(&self) -> bool {
        !self.makers.read().is_empty()
    }

    /// The item with that id.
    #[must_use]
    pub fn get(&self, id: DirectorId) -> Option<Item> {
        self.table.get(id)
    }

    /// All ids in order.
    #[must_use]
    pub fn ids(&self) -> Vec<DirectorId> {
        self.table.ids()
    }

    /// The id of a backend.
    #[must_use]
    pub fn id_of(&self, wanted: &Arc<Backend>) -> Option<DirectorId> {
        self.table.id_of(wanted)
    }

    /// All present backends.
    #[must_use]
    pub fn backends(&self) -> Vec<Arc<Backend>> {
        self.table.backends()
    }

    /// The domain of a host, made by `maker` if there is none; `port` and `authority` default to
    /// the maker's. `None` if the host or port is empty or too long. `now`: seconds since 1970.
    #[must_use]
    pub fn domain(
        &self,
        maker: &Maker,
        host: &str,
        port: Option<&str>,
        authority: Option<&str>,
        now: f64,
    ) -> Option<Arc<Domain>> {
        let wanted = maker.wanted_domain(host, port, authority)?;
        if let Some(domain) = maker.known_domain(&wanted, now) {
            return Some(domain);
        }
        self.make_room();
        maker.make_domain(&self.table, wanted, now)
    }

    /// The service with that name, made by `maker` if there is none. `None` if the name is empty or
    /// too long.
    #[must_use]
    pub fn service(&self, maker: &Maker, name: &str, now: f64) -> Option<Arc<Service>> {
        if !maker::is_bounded(name) {
            return None;
        }
        if let Some(service) = maker.known_service(name, now) {
            return Some(service);
        }
        self.make_room();
        maker.make_service(&self.table, name, now)
    }

    /// Sets the targets of a service: each gets a domain, which counts as used whenever the service
    /// is.
    pub(crate) fn set_targets(&self, maker: &Maker, service: &Service, found: &[Target]) {
        let mut targets = Vec::new();
        for target in found.iter().take(DYNAMIC_ADDRESSES_MAX) {
            let port = target.port.to_string();
            if let Some(domain) = self.domain(maker, &target.host, Some(&port), None, service.last_used()) {
                targets.push(ServiceTarget { domain, priority: target.priority, weight: target.weight });
            }
        }
        service.set_targets(targets);
    }

    /// Drops the least recently used name if there are too many.
    fn make_room(&self) {
        match self.table.longest_unused(DYNAMIC_DOMAINS_MAX) {
            Some(Item::Domain(domain)) => {
                if let Some(maker) = self.makers().iter().find(|maker| maker.owns(&domain.settings)) {
                    maker.give_up(&self.table, &domain);
                }
            }
            Some(Item::Service(service)) => {
                if let Some(maker) = self.makers().iter().find(|maker| maker.owns(&service.settings)) {
                    maker.give_up_service(&self.table, &service);
                }
            }
            Some(Item::Backend(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests;
