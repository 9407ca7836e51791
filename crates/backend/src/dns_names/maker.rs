//! One `dynamic.director` object: makes domains, services and backends, and applies the results of
//! lookups.

use crate::backend::Backend;
use crate::dns_names::domain::{Domain, Reference, Stage};
use crate::dns_names::item::Item;
use crate::dns_names::service::Service;
use crate::dns_names::settings::MakerSettings;
use crate::dns_names::table::Table;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use surface::limits::{DYNAMIC_ADDRESSES_MAX, DYNAMIC_NAME_BYTES_MAX};
use tokio::sync::{Semaphore, SemaphorePermit};
use vcl_run::program::Endpoint;
use vcl_run::value::DirectorId;

/// The identity of a domain within its object: host, port and authority.
pub(crate) type DomainKey = (String, String, String);

/// The identity of a backend within its object: the host (if backends belong to one host), the
/// address, and the name in the PROXY header.
type BackendKey = (Option<String>, SocketAddr, String);

#[derive(Debug)]
struct Made {
    id: DirectorId,
    backend: Arc<Backend>,
    /// Number of domains that refer to it.
    references: usize,
}

#[derive(Debug, Default)]
struct State {
    domains: BTreeMap<DomainKey, Arc<Domain>>,
    services: BTreeMap<String, Arc<Service>>,
    backends: BTreeMap<BackendKey, Made>,
}

impl State {
    fn known_domain(&self, key: &DomainKey, now: f64) -> Option<Arc<Domain>> {
        let domain = self.domains.get(key)?;
        domain.life.use_at(now);
        Some(Arc::clone(domain))
    }

    fn known_service(&self, name: &str, now: f64) -> Option<Arc<Service>> {
        let service = self.services.get(name)?;
        service.life.use_at(now);
        Some(Arc::clone(service))
    }
}

/// True if a name is neither empty nor too long to be looked up.
pub(crate) fn is_bounded(name: &str) -> bool {
    (1..=DYNAMIC_NAME_BYTES_MAX).contains(&name.len())
}

/// The changes from one lookup.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Addresses that must not be used.
    pub(crate) refused: Vec<SocketAddr>,
    /// Log texts for `.debug(true)`.
    pub(crate) events: Vec<String>,
}

/// One `dynamic.director` object.
#[derive(Debug)]
pub struct Maker {
    settings: Arc<MakerSettings>,
    is_debugged: AtomicBool,
    state: Mutex<State>,
    /// Permits for lookups, if their number is limited.
    turns: Option<Semaphore>,
}

impl Maker {
    pub(crate) fn new(settings: MakerSettings) -> Maker {
        Maker {
            turns: settings.parallel.map(|turns| Semaphore::new(turns.clamp(1, Semaphore::MAX_PERMITS))),
            settings: Arc::new(settings),
            is_debugged: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Waits for a permit for a lookup; the permit ends when the result is dropped.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.as_ref()?.acquire().await.ok()
    }

    /// True if this object made the domain with these settings.
    pub(crate) fn owns(&self, settings: &Arc<MakerSettings>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &MakerSettings {
        &self.settings
    }

    /// Enables or disables logging of every change of backends.
    pub fn set_debugged(&self, is_debugged: bool) {
        self.is_debugged.store(is_debugged, Relaxed);
    }

    pub(crate) fn is_debugged(&self) -> bool {
        self.is_debugged.load(Relaxed)
    }

    /// The identity of a domain within this object; `None` if the host or port is empty or too
    /// long.
    pub(crate) fn wanted_domain(&self, host: &str, port: Option<&str>, authority: Option<&str>) -> Option<DomainKey> {
        let port = port.unwrap_or(&self.settings.port);
        if !is_bounded(host) || !is_bounded(port) {
            return None;
        }
        let authority = match self.settings.via {
            None => "",
            Some(_) => authority
                .or(self.settings.authority.as_deref())
                .or(self.settings.host_header.as_deref())
                .unwrap_or(host),
        };
        Some((host.to_owned(), port.to_owned(), authority.to_owned()))
    }

    /// An existing domain; marks it as used at `now`.
    pub(crate) fn known_domain(&self, key: &DomainKey, now: f64) -> Option<Arc<Domain>> {
        self.state.lock().known_domain(key, now)
    }

    /// Makes a domain, unless another event loop has just made it. `None` if no ids are left.
    pub(crate) fn make_domain(&self, table: &Table, key: DomainKey, now: f64) -> Option<Arc<Domain>> {
        let mut state = self.state.lock();
        if let Some(domain) = state.known_domain(&key, now) {
            return Some(domain);
        }
        let domain = table.add(|id| {
            let (host, port, authority) = &key;
            let domain = Arc::new(Domain::new(id, &self.settings, host, port, authority, now));
            (Arc::clone(&domain), Item::Domain(domain))
        })?;
        state.domains.insert(key, Arc::clone(&domain));
        drop(state);
        table.work.notify_one();
        Some(domain)
    }

    /// An existing service; marks it as used at `now`.
    pub(crate) fn known_service(&self, name: &str, now: f64) -> Option<Arc<Service>> {
        self.state.lock().known_service(name, now)
    }

    /// Makes a service, unless another event loop has just made it. `None` if no ids are left.
    pub(crate) fn make_service(&self, table: &Table, name: &str, now: f64) -> Option<Arc<Service>> {
        let mut state = self.state.lock();
        if let Some(service) = state.known_service(name, now) {
            return Some(service);
        }
        let service = table.add(|id| {
            let service = Arc::new(Service::new(id, &self.settings, name, now));
            (Arc::clone(&service), Item::Service(service))
        })?;
        state.services.insert(name.to_owned(), Arc::clone(&service));
        drop(state);
        table.work.notify_one();
        Some(service)
    }

    pub(crate) fn domains(&self) -> Vec<Arc<Domain>> {
        self.state.lock().domains.values().map(Arc::clone).collect()
    }

    pub(crate) fn services(&self) -> Vec<Arc<Service>> {
        self.state.lock().services.values().map(Arc::clone).collect()
    }

    /// Drops a service; the domains of its targets no longer depend on it.
    pub(crate) fn give_up_service(&self, table: &Table, service: &Arc<Service>) {
        let mut state = self.state.lock();
        service.life.give_up();
        table.remove(service.id());
        state.services.retain(|_, other| !Arc::ptr_eq(other, service));
    }

    /// Applies the addresses of a domain: new ones get backends, those that have been missing for
    /// too long lose them.
    pub(crate) fn update(&self, table: &Table, domain: &Arc<Domain>, addresses: &[SocketAddr]) -> Changes {
        let mut changes = Changes::default();
        let mut state = self.state.lock();
        domain.with_references(|references| {
            if domain.life.stage() == Stage::GivenUp {
                return;
            }
            references.iter_mut().for_each(|reference| reference.missing = reference.missing.saturating_add(1));
            for address in addresses.iter().take(DYNAMIC_ADDRESSES_MAX) {
                if self.refer_to_fixed(references, address.ip()) {
                    continue;
                }
                if !self.settings.allows(address.ip()) {
                    changes.refused.push(*address);
                    continue;
                }
                let Some(id) = self.backend_at(table, &mut state, domain, *address, &mut changes) else { continue };
                match references.iter_mut().find(|reference| reference.id == id) {
                    Some(reference) => reference.missing = 0,
                    None => self.refer(&mut state, references, id, &mut changes),
                }
            }
            references.retain(|reference| {
                let is_kept = reference.missing <= self.settings.keep;
                if !is_kept {
                    self.release_one(table, &mut state, reference, &mut changes);
                }
                is_kept
            });
        });
        changes
    }

    /// Adds references to the fixed backends at an address; returns true if there are any.
    fn refer_to_fixed(&self, references: &mut Vec<Reference>, address: IpAddr) -> bool {
        let mut is_any = false;
        for fixed in self.settings.fixed.iter().filter(|fixed| fixed.is_at(address)) {
            is_any = true;
            match references.iter_mut().find(|reference| reference.id == fixed.id) {
                Some(reference) => reference.missing = 0,
                None => {
                    references.push(Reference { id: fixed.id, backend: Arc::clone(&fixed.backend), missing: 0 });
                }
            }
        }
        is_any
    }

    /// Drops a domain and all its backends.
    pub(crate) fn give_up(&self, table: &Table, domain: &Arc<Domain>) -> Changes {
        let mut changes = Changes::default();
        let mut state = self.state.lock();
        domain.life.give_up();
        table.remove(domain.id());
        state.domains.retain(|_, other| !Arc::ptr_eq(other, domain));
        for reference in domain.with_references(std::mem::take) {
            self.release_one(table, &mut state, &reference, &mut changes);
        }
        changes
    }

    /// The backend at an address; made if there is none.
    fn backend_at(
        &self,
        table: &Table,
        state: &mut State,
        domain: &Domain,
        address: SocketAddr,
        changes: &mut Changes,
    ) -> Option<DirectorId> {
        let settings = &self.settings;
        let host = settings.is_shared_by_host.then(|| domain.host.clone());
        let key = (host, address, domain.authority.clone());
        if let Some(made) = state.backends.get(&key) {
            return Some(made.id);
        }
        let shown = match settings.is_shared_by_host {
            false => format!("{}({}:{}", settings.name, address.ip(), domain.port),
            true => format!("{}({}.{}:{}", settings.name, domain.host, address.ip(), domain.port),
        };
        let fallback = if settings.is_shared_by_host { domain.host.clone() } else { address.ip().to_string() };
        let mut definition = settings.definition(settings.host_header.clone().unwrap_or(fallback));
        definition.name =
            if domain.authority.is_empty() { format!("{shown})") } else { format!("{shown}/{})", domain.authority) };
        definition.endpoint = match address {
            SocketAddr::V4(_) => Endpoint::Ip { v4: Some(address), v6: None },
            SocketAddr::V6(_) => Endpoint::Ip { v4: None, v6: Some(address) },
        };
        if let Some(via) = &settings.via {
            definition.endpoint = via.endpoint.clone();
            let authority = domain.authority.as_bytes();
            proxy_protocol::write_version_2(address, address, authority, &mut definition.preamble);
        }
        let made = table.add(|id| {
            let backend = Backend::new(table.vcl_name(), definition, settings.probe.as_ref(), domain.last_used());
            (Made { id, backend: Arc::clone(&backend), references: 0 }, Item::Backend(backend))
        })?;
        changes.events.push(format!("add-backend {}", made.backend.name()));
        let id = made.id;
        state.backends.insert(key, made);
        Some(id)
    }

    fn refer(&self, state: &mut State, references: &mut Vec<Reference>, id: DirectorId, changes: &mut Changes) {
        let Some(made) = state.backends.values_mut().find(|made| made.id == id) else { return };
        made.references += 1;
        changes.events.push(format!("ref-backend {} ({} in total)", made.backend.name(), made.references));
        references.push(Reference { id, backend: Arc::clone(&made.backend), missing: 0 });
    }

    fn release_one(&self, table: &Table, state: &mut State, reference: &Reference, changes: &mut Changes) {
        let mut is_unused = false;
        if let Some(made) = state.backends.values_mut().find(|made| made.id == reference.id) {
            made.references = made.references.saturating_sub(1);
            is_unused = made.references == 0;
            let name = made.backend.name();
            changes.events.push(format!("unref-backend {name} ({} remaining)", made.references));
        }
        if is_unused {
            state.backends.retain(|_, made| made.id != reference.id);
            table.remove(reference.id);
            changes.events.push(format!("delete-backend {}", reference.backend.name()));
        }
    }
}
