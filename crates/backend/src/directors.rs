//! Every backend and director of one loaded VCL, by [`DirectorId`]: the static backends first, in order of definition,
//! then the director objects in order of `new`.
//!
//! Made when the VCL is loaded; `new` in vcl_init fills in the objects; from then on shared by all event loops. Only
//! members, health and the state of choosing change, each behind its own atomic or short lock.
//!
//! *Invariant:* no director can reach itself: [`Directors::add_member`] refuses. What makes chains longer than
//! [`DIRECTOR_DEPTH_MAX`] is refused as well; should one come about from below, it resolves to nothing and is sick.

use crate::backend::Backend;
use crate::director::{DirectorKind, Member, ResolveContext};
use crate::health::Health;
use std::fmt;
use std::sync::{Arc, OnceLock};
use surface::limits::DIRECTOR_DEPTH_MAX;
use vcl_run::program::{Endpoint, Program};
use vcl_run::value::DirectorId;

/// A director object.
struct Entry {
    name: String,
    health: Health,
    kind: OnceLock<DirectorKind>,
}

/// Why a fetch has no backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoBackend {
    /// None was named.
    None,
    /// The director of that name had none to use.
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

/// Why a member was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberError {
    /// No such member (a null BACKEND), or the director was never made.
    Unknown,
    /// The member leads back to the director, or is itself a chain of more than [`DIRECTOR_DEPTH_MAX`] directors.
    Ring,
}

/// The backends and directors of one loaded VCL.
pub struct Directors {
    vcl_name: String,
    backends: Vec<Arc<Backend>>,
    entries: Vec<Entry>,
    default: Option<DirectorId>,
}

impl Directors {
    /// The table of a program loaded under the name `vcl`.
    #[must_use]
    pub fn new(vcl: &str, program: &Program, now: f64) -> Directors {
        let backends = program
            .backends
            .iter()
            .map(|definition| {
                let probe = definition.probe.and_then(|index| program.probes.get(index as usize));
                Backend::new(vcl, definition.clone(), probe, now)
            })
            .collect();
        let mut objects: Vec<_> = program
            .instances
            .iter()
            .filter_map(|instance| instance.director.map(|index| (index, instance.name.clone())))
            .collect();
        objects.sort_by_key(|(index, _)| *index);
        let entries = objects
            .into_iter()
            .map(|(_, name)| Entry { name, health: Health::new(now), kind: OnceLock::new() })
            .collect();
        Directors { vcl_name: vcl.to_owned(), backends, entries, default: program.default_backend.map(DirectorId) }
    }

    /// Name of the VCL.
    #[must_use]
    pub fn vcl_name(&self) -> &str {
        &self.vcl_name
    }

    /// The static backends in order of definition, those without an address included.
    #[must_use]
    pub fn backends(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// The default backend; `None` when it has no address.
    #[must_use]
    pub fn default_director(&self) -> Option<DirectorId> {
        self.default.filter(|id| self.exists(*id))
    }

    /// The ids of everything that exists: backends with an address and directors that were made.
    pub fn ids(&self) -> impl Iterator<Item = DirectorId> + '_ {
        (0..(self.backends.len() + self.entries.len()) as u32).map(DirectorId).filter(|id| self.exists(*id))
    }

    /// The static backend of that id; `None` for directors and for backends without an address.
    #[must_use]
    pub fn backend(&self, id: DirectorId) -> Option<&Arc<Backend>> {
        self.backends.get(id.0 as usize).filter(|backend| backend.definition().endpoint != Endpoint::None)
    }

    fn entry(&self, id: DirectorId) -> Option<&Entry> {
        self.entries.get((id.0 as usize).checked_sub(self.backends.len())?)
    }

    /// The director of that id; `None` for backends, and before it was made.
    #[must_use]
    pub fn director(&self, id: DirectorId) -> Option<&DirectorKind> {
        self.entry(id)?.kind.get()
    }

    /// Whether there is a backend or director of that id. `backend x none;` counts as no backend.
    #[must_use]
    pub fn exists(&self, id: DirectorId) -> bool {
        self.backend(id).is_some() || self.director(id).is_some()
    }

    /// The VCL name; empty when there is none of that id.
    #[must_use]
    pub fn name(&self, id: DirectorId) -> &str {
        match (self.backend(id), self.entry(id)) {
            (Some(backend), _) => backend.name(),
            (None, Some(entry)) => &entry.name,
            (None, None) => "",
        }
    }

    /// What is of that VCL name.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<DirectorId> {
        self.ids().find(|id| self.name(*id) == name)
    }

    /// The id of the director object with that index among director objects (`InstanceDefinition::director`).
    #[must_use]
    pub fn object_id(&self, index: u32) -> DirectorId {
        DirectorId((self.backends.len() as u32).saturating_add(index))
    }

    /// Makes the director object of that id; false when there is no such object or it was made before.
    pub fn create(&self, id: DirectorId, kind: DirectorKind) -> bool {
        self.entry(id).is_some_and(|entry| entry.kind.set(kind).is_ok())
    }

    /// Adds a member to a director.
    ///
    /// # Errors
    /// When the member does not exist or leads back to the director.
    pub fn add_member(&self, director: DirectorId, member: Member) -> Result<(), MemberError> {
        let kind = self.director(director).ok_or(MemberError::Unknown)?;
        if !self.exists(member.director) {
            return Err(MemberError::Unknown);
        }
        if self.reaches(member.director, director, 0) {
            return Err(MemberError::Ring);
        }
        kind.add(member);
        Ok(())
    }

    /// Removes a member from a director, once; nothing happens when it is none.
    pub fn remove_member(&self, director: DirectorId, member: DirectorId) {
        if let Some(kind) = self.director(director) {
            kind.remove(member);
        }
    }

    fn reaches(&self, from: DirectorId, to: DirectorId, depth: usize) -> bool {
        from == to
            || depth > DIRECTOR_DEPTH_MAX
            || self
                .director(from)
                .is_some_and(|kind| kind.members().iter().any(|member| self.reaches(member.director, to, depth + 1)))
    }

    /// Follows directors to the backend for this fetch.
    ///
    /// # Errors
    /// When none was named or none is to be used.
    pub fn resolve(&self, id: Option<DirectorId>, context: &ResolveContext<'_>) -> Result<Arc<Backend>, NoBackend> {
        let named = id.filter(|id| self.exists(*id)).ok_or(NoBackend::None)?;
        self.choose(named, context).ok_or_else(|| NoBackend::Exhausted(self.name(named).to_owned()))
    }

    fn choose(&self, named: DirectorId, context: &ResolveContext<'_>) -> Option<Arc<Backend>> {
        let mut id = named;
        for _ in 0..=DIRECTOR_DEPTH_MAX + 1 {
            if let Some(backend) = self.backend(id) {
                return Some(Arc::clone(backend));
            }
            id = self.director(id)?.choose(self, context)?;
        }
        None
    }

    /// Follows directors to a backend, and names that by its id (`.resolve()` in VCL).
    #[must_use]
    pub fn resolve_id(&self, id: DirectorId, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let backend = self.choose(id, context)?;
        let index = self.backends.iter().position(|other| Arc::ptr_eq(other, &backend))?;
        Some(DirectorId(index as u32))
    }

    /// Whether a backend or director can be used; false for what does not exist.
    #[must_use]
    pub fn is_healthy(&self, id: DirectorId) -> bool {
        self.state(id, 0).0
    }

    /// Whether it can be used, and since when (seconds since 1970).
    #[must_use]
    pub fn health(&self, id: DirectorId) -> (bool, f64) {
        self.state(id, 0)
    }

    /// The operator's view of a backend or director.
    #[must_use]
    pub fn own_health(&self, id: DirectorId) -> Option<&Health> {
        self.backend(id).map(|backend| backend.health()).or_else(|| self.entry(id).map(|entry| &entry.health))
    }

    fn state(&self, id: DirectorId, depth: usize) -> (bool, f64) {
        if let Some(backend) = self.backend(id) {
            return (backend.is_healthy(), backend.health().changed());
        }
        let Some(entry) = self.entry(id) else { return (false, 0.0) };
        let Some(kind) = entry.kind.get() else { return (false, 0.0) };
        let (healthy, changed) = self.members_state(kind, entry.health.changed(), depth);
        (entry.health.overridden().unwrap_or(healthy), changed)
    }

    /// Whether any member is healthy, and the latest change among the director and the members asked for that.
    fn members_state(&self, kind: &DirectorKind, own_change: f64, depth: usize) -> (bool, f64) {
        if let DirectorKind::Hash(_) = kind {
            return (true, own_change);
        }
        if depth > DIRECTOR_DEPTH_MAX {
            return (false, own_change);
        }
        let mut changed = own_change;
        for member in kind.members().iter() {
            let (healthy, since) = self.state(member.director, depth + 1);
            changed = changed.max(since);
            if healthy {
                return (true, changed);
            }
        }
        (false, changed)
    }

    /// As [`Directors::health`], without the operator's word about the director itself: what `backend.list` shows.
    #[must_use]
    pub fn unforced_health(&self, id: DirectorId) -> (bool, f64) {
        if let Some(backend) = self.backend(id) {
            return (backend.health().probed(), backend.health().changed());
        }
        match self.entry(id).and_then(|entry| Some((entry, entry.kind.get()?))) {
            Some((entry, kind)) => self.members_state(kind, entry.health.changed(), 0),
            None => (false, 0.0),
        }
    }
}

impl fmt::Debug for Directors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directors").field("vcl", &self.vcl_name).finish_non_exhaustive()
    }
}
