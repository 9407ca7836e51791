//! One `dynamic.director` object: makes domains, services and backends, and takes in what lookups find.

use crate::backend::Backend;
use crate::names::domain::{Domain, Reference, Stage};
use crate::names::resolve::Target;
use crate::names::service::{Service, ServiceTarget};
use crate::names::settings::Settings;
use crate::names::{Item, Names};
use crate::proxy_header;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use surface::limits::{DYNAMIC_ADDRESSES_MAX, DYNAMIC_NAME_BYTES_MAX};
use tokio::sync::{Semaphore, SemaphorePermit};
use vcl_run::program::Endpoint;
use vcl_run::value::DirectorId;

/// What tells backends of an object apart: the host when they are not shared among hosts, the address, and the name in
/// the PROXY header.
type BackendKey = (Option<String>, SocketAddr, String);

#[derive(Debug)]
struct Made {
    id: DirectorId,
    backend: Arc<Backend>,
    /// How many domains refer to it.
    references: usize,
}

#[derive(Debug, Default)]
struct State {
    /// By host, port and authority.
    domains: BTreeMap<(String, String, String), Arc<Domain>>,
    services: BTreeMap<String, Arc<Service>>,
    backends: BTreeMap<BackendKey, Made>,
}

/// What a lookup changed.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Addresses that may not be used.
    pub(crate) refused: Vec<SocketAddr>,
    /// What `.debug(true)` shows.
    pub(crate) events: Vec<String>,
}

/// One `dynamic.director` object.
#[derive(Debug)]
pub struct Maker {
    settings: Arc<Settings>,
    is_debugged: AtomicBool,
    state: Mutex<State>,
    /// Turns to look something up, when there are not as many as one likes.
    turns: Option<Semaphore>,
}

impl Maker {
    pub(crate) fn new(settings: Settings) -> Maker {
        Maker {
            turns: settings.parallel.map(|turns| Semaphore::new(turns.clamp(1, Semaphore::MAX_PERMITS))),
            settings: Arc::new(settings),
            is_debugged: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Waits for a turn to look something up; the turn ends when the result is dropped.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.as_ref()?.acquire().await.ok()
    }

    /// Whether it made that domain.
    pub(crate) fn owns(&self, settings: &Arc<Settings>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether to log every change of backends.
    pub fn set_debugged(&self, is_debugged: bool) {
        self.is_debugged.store(is_debugged, Relaxed);
    }

    pub(crate) fn is_debugged(&self) -> bool {
        self.is_debugged.load(Relaxed)
    }

    /// The domain of a host, made if there is none; `port` and `authority` unless given are the object's. `None` for a
    /// host or port that is empty or too long. `now`: seconds since 1970.
    #[must_use]
    pub fn domain(
        &self,
        names: &Names,
        host: &str,
        port: Option<&str>,
        authority: Option<&str>,
        now: f64,
    ) -> Option<Arc<Domain>> {
        let port = port.unwrap_or(&self.settings.port);
        let is_bounded = |name: &str| (1..=DYNAMIC_NAME_BYTES_MAX).contains(&name.len());
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
        let key = (host.to_owned(), port.to_owned(), authority.to_owned());
        if let Some(domain) = self.state.lock().domains.get(&key) {
            domain.life.use_at(now);
            return Some(Arc::clone(domain));
        }
        names.make_room();
        let mut state = self.state.lock();
        // Somebody else may have made it meanwhile.
        if let Some(domain) = state.domains.get(&key) {
            domain.life.use_at(now);
            return Some(Arc::clone(domain));
        }
        let domain = names.add(|id| {
            let domain = Arc::new(Domain::new(id, &self.settings, host, port, authority, now));
            (Arc::clone(&domain), Item::Domain(domain))
        })?;
        state.domains.insert(key, Arc::clone(&domain));
        drop(state);
        names.work.notify_one();
        Some(domain)
    }

    /// The service of that name, made if there is none. `None` for a name that is empty or too long.
    #[must_use]
    pub fn service(&self, names: &Names, name: &str, now: f64) -> Option<Arc<Service>> {
        if !(1..=DYNAMIC_NAME_BYTES_MAX).contains(&name.len()) {
            return None;
        }
        if let Some(service) = self.state.lock().services.get(name) {
            service.life.use_at(now);
            return Some(Arc::clone(service));
        }
        names.make_room();
        let mut state = self.state.lock();
        if let Some(service) = state.services.get(name) {
            service.life.use_at(now);
            return Some(Arc::clone(service));
        }
        let service = names.add(|id| {
            let service = Arc::new(Service::new(id, &self.settings, name, now));
            (Arc::clone(&service), Item::Service(service))
        })?;
        state.services.insert(name.to_owned(), Arc::clone(&service));
        drop(state);
        names.work.notify_one();
        Some(service)
    }

    pub(crate) fn domains(&self) -> Vec<Arc<Domain>> {
        self.state.lock().domains.values().map(Arc::clone).collect()
    }

    pub(crate) fn services(&self) -> Vec<Arc<Service>> {
        self.state.lock().services.values().map(Arc::clone).collect()
    }

    /// Gives a service up; the domains of its targets are on their own.
    pub(crate) fn give_up_service(&self, names: &Names, service: &Arc<Service>) {
        let mut state = self.state.lock();
        service.life.give_up();
        names.remove(service.id());
        state.services.retain(|_, other| !Arc::ptr_eq(other, service));
    }

    /// Takes in the addresses of a domain: new ones get backends, those that are gone for too long lose them.
    pub(crate) fn update(&self, names: &Names, domain: &Arc<Domain>, addresses: &[SocketAddr]) -> Changes {
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
                let Some(id) = self.backend_at(names, &mut state, domain, *address, &mut changes) else { continue };
                match references.iter_mut().find(|reference| reference.id == id) {
                    Some(reference) => reference.missing = 0,
                    None => self.refer(&mut state, references, id, &mut changes),
                }
            }
            references.retain(|reference| {
                let is_kept = reference.missing <= self.settings.keep;
                if !is_kept {
                    self.release_one(names, &mut state, reference, &mut changes);
                }
                is_kept
            });
        });
        changes
    }

    /// Takes in the backends of their own that are at an address; says whether there are any.
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

    /// Gives a domain up, and all its backends.
    pub(crate) fn give_up(&self, names: &Names, domain: &Arc<Domain>) -> Changes {
        let mut changes = Changes::default();
        let mut state = self.state.lock();
        domain.life.give_up();
        names.remove(domain.id());
        state.domains.retain(|_, other| !Arc::ptr_eq(other, domain));
        for reference in domain.with_references(std::mem::take) {
            self.release_one(names, &mut state, &reference, &mut changes);
        }
        changes
    }

    /// The backend at an address, made if there is none.
    fn backend_at(
        &self,
        names: &Names,
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
            proxy_header::write_version_2(address, address, authority, &mut definition.preamble);
        }
        let made = names.add(|id| {
            let backend = Backend::new(names.vcl_name(), definition, settings.probe.as_ref(), domain.last_used());
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

    fn release_one(&self, names: &Names, state: &mut State, reference: &Reference, changes: &mut Changes) {
        let mut is_unused = false;
        if let Some(made) = state.backends.values_mut().find(|made| made.id == reference.id) {
            made.references = made.references.saturating_sub(1);
            is_unused = made.references == 0;
            let name = made.backend.name();
            changes.events.push(format!("unref-backend {name} ({} remaining)", made.references));
        }
        if is_unused {
            state.backends.retain(|_, made| made.id != reference.id);
            names.remove(reference.id);
            changes.events.push(format!("delete-backend {}", reference.backend.name()));
        }
    }

    /// Takes in the targets of a service: each gets its domain, which is used as the service is.
    pub(crate) fn set_targets(&self, names: &Names, service: &Service, found: &[Target]) {
        let mut targets = Vec::new();
        for target in found.iter().take(DYNAMIC_ADDRESSES_MAX) {
            let port = target.port.to_string();
            if let Some(domain) = self.domain(names, &target.host, Some(&port), None, service.last_used()) {
                targets.push(ServiceTarget { domain, priority: target.priority, weight: target.weight });
            }
        }
        service.set_targets(targets);
    }
}
