//! Resolution of a director to the backend of one fetch, and the names that must be looked up
//! before.

use crate::backend::Backend;
use crate::director::choice::ResolveContext;
use crate::director::table::Directors;
use crate::dns_names::attempts::{Attempts, Resolved};
use crate::dns_names::domain::Domain;
use crate::dns_names::item::Item;
use std::fmt;
use std::sync::Arc;
use surface::limits::DIRECTOR_DEPTH_MAX;
use vcl_run::value::DirectorId;

/// The reason why a fetch has no backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoBackend {
    /// VCL named none.
    None,
    /// The director with that name had none that can be used.
    Exhausted(String),
}

impl NoBackend {
    /// The text of the `FetchError` record.
    #[must_use]
    pub fn text(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for NoBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoBackend::None => f.write_str("No backend"),
            NoBackend::Exhausted(name) => write!(f, "Director {name} returned no backend"),
        }
    }
}

impl Directors {
    /// Follows directors to the backend for this fetch.
    ///
    /// # Errors
    /// No backend was named, or none can be used.
    pub fn resolve(&self, id: Option<DirectorId>, context: &ResolveContext<'_>) -> Result<Resolved, NoBackend> {
        let named = id.filter(|id| self.exists(*id)).ok_or(NoBackend::None)?;
        self.choose(named, context).ok_or_else(|| NoBackend::Exhausted(self.name(named).into_owned()))
    }

    /// The backend at another address of the same name, after a failed connect.
    pub fn next_address(&self, attempts: &mut Attempts, context: &ResolveContext<'_>) -> Option<Arc<Backend>> {
        attempts.next(|backend| self.is_usable(backend, context))
    }

    pub(crate) fn choose(&self, named: DirectorId, context: &ResolveContext<'_>) -> Option<Resolved> {
        let at_address = |domain: Arc<Domain>| {
            let backend = domain.choose(|backend| self.is_usable(backend, context))?;
            Some(Resolved { backend, name: Some(domain) })
        };
        let mut id = named;
        for _ in 0..=DIRECTOR_DEPTH_MAX + 1 {
            if let Some(backend) = self.any_backend(id) {
                return Some(backend.into());
            }
            id = match self.names.get(id) {
                None => self.director(id)?.choose(id, self, context)?,
                Some(Item::Backend(backend)) => return Some(backend.into()),
                Some(Item::Domain(domain)) => return at_address(domain),
                Some(Item::Service(service)) => return at_address(service.choose(context.random.next_fraction())?),
            };
        }
        None
    }

    /// The names that a director may use for this request and that have never been looked up: a
    /// fetch waits for each of them ([`Item::ready`]) before it resolves the director. Empty if the
    /// VCL looks up no names.
    #[must_use]
    pub fn first_lookups(&self, id: DirectorId, context: &ResolveContext<'_>) -> Vec<Item> {
        let mut unknown = Vec::new();
        if self.names.has_makers() {
            self.collect_new(id, context, 0, &mut unknown);
        }
        unknown
    }

    /// Collects every name below a director that has never been looked up.
    fn collect_new(&self, id: DirectorId, context: &ResolveContext<'_>, depth: usize, into: &mut Vec<Item>) {
        if let Some(item) = self.names.get(id).filter(Item::is_new) {
            into.push(item);
            return;
        }
        if let Some(kind) = self.director(id).filter(|_| depth <= DIRECTOR_DEPTH_MAX) {
            into.extend(kind.first_lookup(context).map(Item::Domain));
            for member in kind.members().iter() {
                self.collect_new(member.director, context, depth + 1, into);
            }
        }
    }

    /// Follows directors to a backend and returns its id (`.resolve()` in VCL).
    #[must_use]
    pub fn resolve_id(&self, id: DirectorId, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.id_of(&self.choose(id, context)?.backend)
    }
}
