//! The items to which the ids of names and of their backends refer.

use crate::backend::Backend;
use crate::dns_names::domain::Domain;
use crate::dns_names::service::Service;
use crate::dns_names::settings::MakerSettings;
use crate::health::Health;
use std::sync::Arc;

/// The item to which an id of the table refers.
#[derive(Clone, Debug)]
pub enum Item {
    /// A backend at an address of a domain.
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

    /// True if it has never been looked up.
    pub(crate) fn is_new(&self) -> bool {
        match self {
            Item::Backend(_) => false,
            Item::Domain(domain) => domain.is_new(),
            Item::Service(service) => service.is_new(),
        }
    }

    /// The backends below it; `None` for a backend itself.
    pub(crate) fn backends(&self) -> Option<Vec<Arc<Backend>>> {
        match self {
            Item::Backend(_) => None,
            Item::Domain(domain) => Some(domain.backends()),
            Item::Service(service) => Some(service.domains().iter().flat_map(|domain| domain.backends()).collect()),
        }
    }

    /// The settings of the object that made a name; `None` for a backend.
    pub(crate) fn settings(&self) -> Option<Arc<MakerSettings>> {
        match self {
            Item::Backend(_) => None,
            Item::Domain(domain) => Some(Arc::clone(&domain.settings)),
            Item::Service(service) => Some(Arc::clone(&service.settings)),
        }
    }

    /// Waits for the first lookup, but no longer than `first_lookup_timeout`.
    pub async fn ready(&self) {
        match self {
            Item::Backend(_) => {}
            Item::Domain(domain) => domain.ready().await,
            Item::Service(service) => service.ready().await,
        }
    }

    /// As [`Item::state`], but ignores the operator's setting for a backend itself.
    pub(crate) fn unforced_state(&self) -> (bool, f64) {
        match self {
            Item::Backend(backend) => (backend.is_good(), backend.health().changed()),
            Item::Domain(_) | Item::Service(_) => self.state(),
        }
    }

    /// True if it can be used, and the time since which that is so; ignores the operator's setting
    /// for names.
    pub(crate) fn state(&self) -> (bool, f64) {
        match self {
            Item::Backend(backend) => (backend.is_healthy(), backend.health().changed()),
            Item::Domain(domain) => domain.state(),
            Item::Service(service) => service.state(),
        }
    }

    /// Its health, which the operator may set.
    pub(crate) fn health(&self) -> &Health {
        match self {
            Item::Backend(backend) => backend.health(),
            Item::Domain(domain) => domain.health(),
            Item::Service(service) => service.health(),
        }
    }
}
