//! Every backend and director of one loaded VCL, by [`DirectorId`]: first the static backends in
//! order of definition, then the director objects in order of `new`; ids with the highest bit set
//! belong to [`DnsNames`].
//!
//! The table is made when the VCL is loaded; `new` in vcl_init fills in the objects; from then on
//! all event loops share it. Only members, health and the state of choices change, each behind its
//! own atomic or short lock.
//!
//! *Invariant:* no director can reach itself: [`Directors::add_member`] refuses that. It also
//! refuses members that are chains of more than [`DIRECTOR_DEPTH_MAX`] directors; if a chain grows
//! longer further down, it resolves to nothing and is sick. Next files: `table/resolve.rs`,
//! `table/health.rs`.

pub mod health;
pub mod resolve;

use crate::backend::Backend;
use crate::director::choice::{Candidates, Member, Notes, ResolveContext};
use crate::director::kind::DirectorKind;
use crate::director::kind::dns::Dns;
use crate::director::kind::dynamic::{Dynamic, GENERATION_MAX};
use crate::director::kind::shard::Change;
use crate::dns_names::DnsNames;
use crate::dns_names::item::Item;
use crate::dns_names::table::FIRST_ID;
use crate::health::Health;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use surface::limits::DIRECTOR_DEPTH_MAX;
use surface::vcl::Generation;
use vcl_run::program::{Endpoint, Program};
use vcl_run::value::DirectorId;

/// A director object.
struct Entry {
    name: String,
    health: Health,
    kind: OnceLock<DirectorKind>,
}

/// The reason why a member was not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberError {
    /// The member does not exist (a null BACKEND), or the director was never made.
    Unknown,
    /// The member leads back to the director, or is itself a chain of more than
    /// [`DIRECTOR_DEPTH_MAX`] directors.
    Ring,
}

/// An id's bits below this position identify the backend or object; those from here on are the
/// generation of a backend made at run time ([`Dynamic`]), and zero for all others.
const GENERATION_SHIFT: u32 = 20;
const INDEX_MASK: u32 = (1 << GENERATION_SHIFT) - 1;
const _: () = assert!(GENERATION_MAX < FIRST_ID >> GENERATION_SHIFT);

/// The backends and directors of one loaded VCL.
pub struct Directors {
    vcl_name: String,
    backends: Vec<Arc<Backend>>,
    entries: Vec<Entry>,
    default: Option<DirectorId>,
    generation: Generation,
    names: Arc<DnsNames>,
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
        let directors = Directors {
            vcl_name: vcl.to_owned(),
            backends,
            entries,
            default: program.default_backend.map(DirectorId),
            generation: program.generation(),
            names: Arc::new(DnsNames::new(vcl)),
        };
        for block in &program.blocks {
            let definition = program.instances.get(block.instance as usize);
            let Some((definition, names)) = definition.zip(block.names.as_ref()) else { continue };
            let dns = Dns::new(&directors.names, block.instance, &definition.name, names, &directors.backends);
            if let Some((index, dns)) = definition.director.zip(dns) {
                directors.create(directors.object_id(index), DirectorKind::Dns(dns));
            }
        }
        directors
    }

    /// The generation of the VCL dialect. `beresp.saintmode` counts only in the old ones.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Name of the VCL.
    #[must_use]
    pub fn vcl_name(&self) -> &str {
        &self.vcl_name
    }

    /// The static backends in order of definition, including those without an address.
    #[must_use]
    pub fn backends(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// The default backend; `None` if it has no address.
    #[must_use]
    pub fn default_director(&self) -> Option<DirectorId> {
        self.default.filter(|id| self.exists(*id))
    }

    /// Names that are looked up, and the backends at their present addresses.
    #[must_use]
    pub fn dns_names(&self) -> &Arc<DnsNames> {
        &self.names
    }

    /// The ids of everything that exists: backends with an address, directors that were made, names
    /// that are looked up.
    pub fn ids(&self) -> impl Iterator<Item = DirectorId> + '_ {
        let all = (0..(self.backends.len() + self.entries.len()) as u32).map(DirectorId);
        all.map(|id| self.current_id(id)).filter(|id| self.exists(*id)).chain(self.names.ids())
    }

    /// The present id of an object: that of a backend made at run time includes its generation.
    #[must_use]
    pub fn current_id(&self, id: DirectorId) -> DirectorId {
        match self.entry(id).and_then(|entry| entry.kind.get()) {
            Some(DirectorKind::Dynamic(dynamic)) => {
                DirectorId(id.0 & INDEX_MASK | dynamic.generation() << GENERATION_SHIFT)
            }
            _ => id,
        }
    }

    /// The backends that were made at run time.
    #[must_use]
    pub fn run_time_backends(&self) -> Vec<Arc<Backend>> {
        let kinds = self.entries.iter().filter_map(|entry| entry.kind.get());
        kinds
            .filter_map(|kind| match kind {
                DirectorKind::Dynamic(dynamic) => dynamic.backend(),
                _ => None,
            })
            .collect()
    }

    /// True if backends can be made at run time.
    #[must_use]
    pub fn has_run_time_backends(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.kind.get(), Some(DirectorKind::Dynamic(_))))
    }

    /// The backend with that id, whether static, made at run time or looked up.
    #[must_use]
    pub fn any_backend(&self, id: DirectorId) -> Option<Arc<Backend>> {
        if let Some(Item::Backend(backend)) = self.names.get(id) {
            return Some(backend);
        }
        match (self.backend(id), self.director(id)) {
            (Some(backend), _) => Some(Arc::clone(backend)),
            (None, Some(DirectorKind::Dynamic(dynamic))) => dynamic.backend(),
            (None, _) => None,
        }
    }

    /// The id of a backend; `None` if it no longer belongs to the VCL.
    #[must_use]
    pub fn id_of(&self, backend: &Arc<Backend>) -> Option<DirectorId> {
        if let Some(index) = self.backends.iter().position(|other| Arc::ptr_eq(other, backend)) {
            return Some(DirectorId(index as u32));
        }
        let is_it = |entry: &Entry| match entry.kind.get() {
            Some(DirectorKind::Dynamic(dynamic)) => {
                dynamic.backend().is_some_and(|current| Arc::ptr_eq(&current, backend))
            }
            _ => false,
        };
        match self.entries.iter().position(is_it) {
            Some(index) => Some(self.current_id(self.object_id(index as u32))),
            None => self.names.id_of(backend),
        }
    }

    /// The static backend with that id; `None` for directors and for backends without an address.
    #[must_use]
    pub fn backend(&self, id: DirectorId) -> Option<&Arc<Backend>> {
        self.backends.get(id.0 as usize).filter(|backend| backend.definition().endpoint != Endpoint::None)
    }

    fn entry(&self, id: DirectorId) -> Option<&Entry> {
        if id.0 >= FIRST_ID {
            return None;
        }
        self.entries.get(((id.0 & INDEX_MASK) as usize).checked_sub(self.backends.len())?)
    }

    /// The director with that id; `None` for backends, for a director that is not made yet, and for
    /// a backend made at run time that has been replaced since.
    #[must_use]
    pub fn director(&self, id: DirectorId) -> Option<&DirectorKind> {
        let kind = self.entry(id)?.kind.get()?;
        match kind {
            DirectorKind::Dynamic(dynamic) => {
                let generation = dynamic.generation();
                (generation != 0 && generation == id.0 >> GENERATION_SHIFT).then_some(kind)
            }
            _ => Some(kind),
        }
    }

    /// The object that makes backends at run time, for any generation in the id.
    #[must_use]
    pub fn dynamic(&self, id: DirectorId) -> Option<&Dynamic> {
        match self.entry(id)?.kind.get()? {
            DirectorKind::Dynamic(dynamic) => Some(dynamic),
            _ => None,
        }
    }

    /// True if a backend or director has that id. A backend without an address (`backend x none;`)
    /// does not count.
    #[must_use]
    pub fn exists(&self, id: DirectorId) -> bool {
        self.backend(id).is_some() || self.director(id).is_some() || self.names.get(id).is_some()
    }

    /// The VCL name; empty if the id is unknown.
    #[must_use]
    pub fn name(&self, id: DirectorId) -> Cow<'_, str> {
        match (self.backend(id), self.entry(id)) {
            (Some(backend), _) => Cow::Borrowed(backend.name()),
            (None, Some(entry)) => Cow::Borrowed(&entry.name),
            (None, None) => Cow::Owned(self.names.get(id).map_or(String::new(), |item| item.name().to_owned())),
        }
    }

    /// The id of the backend or director with that VCL name.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<DirectorId> {
        self.ids().find(|id| self.name(*id) == name)
    }

    /// The id of the director object with that index (`InstanceDefinition::director`).
    #[must_use]
    pub fn object_id(&self, index: u32) -> DirectorId {
        DirectorId((self.backends.len() as u32).saturating_add(index))
    }

    /// Makes the director object with that id; false if there is no such object or it is already
    /// made.
    pub fn create(&self, id: DirectorId, kind: DirectorKind) -> bool {
        self.entry(id).is_some_and(|entry| entry.kind.set(kind).is_ok())
    }

    /// Adds a member to a director.
    ///
    /// # Errors
    /// The member does not exist or leads back to the director.
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

    /// Removes one entry of a member from a director; does nothing if there is none.
    pub fn remove_member(&self, director: DirectorId, member: DirectorId) {
        if let Some(kind) = self.director(director) {
            kind.remove(member);
        }
    }

    /// Applies member changes to a shard director and makes its ring anew; does nothing if there
    /// are no changes. Returns false if the director then has no members, or is not a shard
    /// director.
    pub fn reconfigure_shard(&self, director: DirectorId, changes: &[Change], replicas: u32, notes: &Notes) -> bool {
        match self.director(director) {
            Some(DirectorKind::Shard(shard)) => shard.reconfigure(director, self, changes, replicas, notes),
            _ => false,
        }
    }

    /// Connections in use, of a backend or of all backends below a director.
    #[must_use]
    pub fn connections(&self, id: DirectorId) -> u32 {
        self.count_connections(id, 0)
    }

    fn count_connections(&self, id: DirectorId, depth: usize) -> u32 {
        if let Some(backend) = self.any_backend(id) {
            return backend.connections();
        }
        match self.director(id) {
            Some(kind) if depth <= DIRECTOR_DEPTH_MAX => kind
                .members()
                .iter()
                .map(|member| self.count_connections(member.director, depth + 1))
                .fold(0, u32::saturating_add),
            _ => 0,
        }
    }

    fn reaches(&self, from: DirectorId, to: DirectorId, depth: usize) -> bool {
        from == to
            || depth > DIRECTOR_DEPTH_MAX
            || self
                .director(from)
                .is_some_and(|kind| kind.members().iter().any(|member| self.reaches(member.director, to, depth + 1)))
    }
}

impl fmt::Debug for Directors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directors").field("vcl", &self.vcl_name).finish_non_exhaustive()
    }
}

impl Candidates for Directors {
    fn name(&self, id: DirectorId) -> Cow<'_, str> {
        Directors::name(self, id)
    }

    fn health(&self, id: DirectorId) -> (bool, f64) {
        Directors::health(self, id)
    }

    fn is_healthy_for(&self, id: DirectorId, context: &ResolveContext<'_>) -> bool {
        Directors::is_healthy_for(self, id, context)
    }

    fn warmth(&self, id: DirectorId, now: f64) -> f64 {
        self.any_backend(id).map_or(1.0, |backend| backend.warmth(now))
    }

    fn connections(&self, id: DirectorId) -> u32 {
        Directors::connections(self, id)
    }

    fn leads_to(&self, from: DirectorId, to: DirectorId) -> bool {
        self.reaches(from, to, 0)
    }
}
