//! Every backend and director of one loaded VCL, by [`DirectorId`]: the static backends first, in order of definition,
//! then the director objects in order of `new`; ids with the highest bit are those of [`Names`].
//!
//! Made when the VCL is loaded; `new` in vcl_init fills in the objects; from then on shared by all event loops. Only
//! members, health and the state of choosing change, each behind its own atomic or short lock.
//!
//! *Invariant:* no director can reach itself: [`Directors::add_member`] refuses. What makes chains longer than
//! [`DIRECTOR_DEPTH_MAX`] is refused as well; should one come about from below, it resolves to nothing and is sick.

use crate::backend::Backend;
use crate::director::dns::Dns;
use crate::director::dynamic::{Dynamic, GENERATION_MAX};
use crate::director::shard::Change;
use crate::director::{DirectorKind, Member, Notes, ResolveContext};
use crate::health::Health;
use crate::names::{self, Item, Names};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use surface::limits::{DIRECTOR_DEPTH_MAX, SAINTMODE_THRESHOLD};
use surface::vcl::Generation;
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

/// For what somebody wants to know whether a backend can be used.
#[derive(Clone, Copy)]
struct Purpose<'a> {
    /// Seconds since 1970.
    now: f64,
    /// The digest that the backend itself must not be in trouble over (`beresp.saintmode`).
    saint: Option<&'a [u8; 32]>,
    /// The digest of the fetch, for saintmode directors.
    digest: Option<&'a [u8; 32]>,
    /// Where to say why not.
    notes: Option<&'a Notes>,
}

/// The bits of an id that say which backend or object it is; those above say which generation of a backend made at run
/// time ([`Dynamic`]), and are zero for all others.
const GENERATION_SHIFT: u32 = 20;
const INDEX_MASK: u32 = (1 << GENERATION_SHIFT) - 1;
const _: () = assert!(GENERATION_MAX < names::FIRST_ID >> GENERATION_SHIFT);

/// The backends and directors of one loaded VCL.
pub struct Directors {
    vcl_name: String,
    backends: Vec<Arc<Backend>>,
    entries: Vec<Entry>,
    default: Option<DirectorId>,
    generation: Generation,
    names: Arc<Names>,
}

/// The operator's view of a backend or director.
pub enum OwnHealth<'a> {
    /// Of one of the VCL's own.
    Own(&'a Health),
    /// Of one that is looked up.
    Named(Item),
}

impl Deref for OwnHealth<'_> {
    type Target = Health;

    fn deref(&self) -> &Health {
        match self {
            OwnHealth::Own(health) => health,
            OwnHealth::Named(item) => item.health(),
        }
    }
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
            names: Arc::new(Names::new(vcl)),
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

    /// The generation of the VCL. Of the old ones `beresp.saintmode` is heeded.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
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

    /// Hosts that are looked up, and the backends that they are at the time.
    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// The ids of everything that exists: backends with an address, directors that were made, names that are looked up.
    pub fn ids(&self) -> impl Iterator<Item = DirectorId> + '_ {
        let all = (0..(self.backends.len() + self.entries.len()) as u32).map(DirectorId);
        all.map(|id| self.current_id(id)).filter(|id| self.exists(*id)).chain(self.names.ids())
    }

    /// The id that an object has now: that of a backend made at run time carries its generation.
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

    /// Whether backends may be made at run time.
    #[must_use]
    pub fn has_run_time_backends(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.kind.get(), Some(DirectorKind::Dynamic(_))))
    }

    /// The backend of that id, static, made at run time or looked up.
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

    /// The id of a backend; `None` when it is no longer the VCL's.
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

    /// The static backend of that id; `None` for directors and for backends without an address.
    #[must_use]
    pub fn backend(&self, id: DirectorId) -> Option<&Arc<Backend>> {
        self.backends.get(id.0 as usize).filter(|backend| backend.definition().endpoint != Endpoint::None)
    }

    fn entry(&self, id: DirectorId) -> Option<&Entry> {
        if id.0 >= names::FIRST_ID {
            return None;
        }
        self.entries.get(((id.0 & INDEX_MASK) as usize).checked_sub(self.backends.len())?)
    }

    /// The director of that id; `None` for backends, before it was made, and for a backend made at run time that was
    /// replaced since.
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

    /// The object that makes backends at run time, whatever the generation of the id.
    #[must_use]
    pub fn dynamic(&self, id: DirectorId) -> Option<&Dynamic> {
        match self.entry(id)?.kind.get()? {
            DirectorKind::Dynamic(dynamic) => Some(dynamic),
            _ => None,
        }
    }

    /// Whether there is a backend or director of that id. `backend x none;` counts as no backend.
    #[must_use]
    pub fn exists(&self, id: DirectorId) -> bool {
        self.backend(id).is_some() || self.director(id).is_some() || self.names.get(id).is_some()
    }

    /// The VCL name; empty when there is none of that id.
    #[must_use]
    pub fn name(&self, id: DirectorId) -> Cow<'_, str> {
        match (self.backend(id), self.entry(id)) {
            (Some(backend), _) => Cow::Borrowed(backend.name()),
            (None, Some(entry)) => Cow::Borrowed(&entry.name),
            (None, None) => Cow::Owned(self.names.get(id).map_or(String::new(), |item| item.name().to_owned())),
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

    /// Whether a director is to be found from another, or is the same.
    pub(crate) fn leads_to(&self, from: DirectorId, to: DirectorId) -> bool {
        self.reaches(from, to, 0)
    }

    /// Applies changes of members to a shard director and makes its ring anew; nothing happens when there are none.
    /// Returns false when it has no members then, or is no shard director.
    pub fn reconfigure_shard(&self, director: DirectorId, changes: &[Change], replicas: u32, notes: &Notes) -> bool {
        match self.director(director) {
            Some(DirectorKind::Shard(shard)) => shard.reconfigure(director, self, changes, replicas, notes),
            _ => false,
        }
    }

    /// Connections in use of a backend, or of all backends that a director leads to.
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

    /// Follows directors to the backend for this fetch.
    ///
    /// # Errors
    /// When none was named or none is to be used.
    pub fn resolve(&self, id: Option<DirectorId>, context: &ResolveContext<'_>) -> Result<Arc<Backend>, NoBackend> {
        let named = id.filter(|id| self.exists(*id)).ok_or(NoBackend::None)?;
        self.choose(named, context).ok_or_else(|| NoBackend::Exhausted(self.name(named).into_owned()))
    }

    pub(crate) fn choose(&self, named: DirectorId, context: &ResolveContext<'_>) -> Option<Arc<Backend>> {
        let mut id = named;
        for _ in 0..=DIRECTOR_DEPTH_MAX + 1 {
            if let Some(backend) = self.any_backend(id) {
                return Some(backend);
            }
            id = match self.names.get(id) {
                None => self.director(id)?.choose(id, self, context)?,
                Some(Item::Backend(backend)) => return Some(backend),
                Some(Item::Domain(domain)) => return domain.choose(|backend| self.is_usable(backend, context)),
                Some(Item::Service(service)) => {
                    let domain = service.choose(context.random.next_fraction())?;
                    return domain.choose(|backend| self.is_usable(backend, context));
                }
            };
        }
        None
    }

    /// The names that a director may lead to this request and whose first lookup is still to come: a fetch waits for each
    /// ([`Item::ready`]) before it resolves the director. Empty where nothing is looked up.
    #[must_use]
    pub fn first_lookups(&self, id: DirectorId, context: &ResolveContext<'_>) -> Vec<Item> {
        let mut unknown = Vec::new();
        if self.names.has_makers() {
            self.collect_new(id, context, 0, &mut unknown);
        }
        unknown
    }

    /// Every name that a director leads to and whose first lookup is still to come.
    fn collect_new(&self, id: DirectorId, context: &ResolveContext<'_>, depth: usize, into: &mut Vec<Item>) {
        if let Some(item) = self.names.get(id).filter(Item::is_new) {
            into.push(item);
            return;
        }
        match self.director(id).filter(|_| depth <= DIRECTOR_DEPTH_MAX) {
            Some(DirectorKind::Dns(dns)) => {
                let domain = dns.domain(&self.names, context).filter(|domain| domain.is_new());
                into.extend(domain.map(Item::Domain));
            }
            Some(kind) => {
                for member in kind.members().iter() {
                    self.collect_new(member.director, context, depth + 1, into);
                }
            }
            None => {}
        }
    }

    /// Whether a backend that was looked up can be used for this request.
    fn is_usable(&self, backend: &Backend, context: &ResolveContext<'_>) -> bool {
        backend.is_healthy() && !is_troubled(backend, self.digest_of_saints(context), context.now)
    }

    /// The digest that backends must not be in trouble over, where the VCL has saint mode.
    fn digest_of_saints<'a>(&self, context: &ResolveContext<'a>) -> Option<&'a [u8; 32]> {
        context.digest.filter(|_| self.generation.is_legacy() && context.is_for_cache)
    }

    /// Follows directors to a backend, and names that by its id (`.resolve()` in VCL).
    #[must_use]
    pub fn resolve_id(&self, id: DirectorId, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.id_of(&self.choose(id, context)?)
    }

    /// Whether a backend or director can be used; false for what does not exist.
    #[must_use]
    pub fn is_healthy(&self, id: DirectorId) -> bool {
        self.state(id, None, 0).0
    }

    /// Whether a backend or director can be used for this request: saint mode counts, where the VCL has it.
    #[must_use]
    pub fn is_healthy_for(&self, id: DirectorId, context: &ResolveContext<'_>) -> bool {
        let purpose = Purpose {
            now: context.now,
            saint: self.digest_of_saints(context),
            digest: context.fetched_digest(),
            notes: Some(context.notes),
        };
        self.state(id, Some(purpose), 0).0
    }

    /// Whether it can be used, and since when (seconds since 1970).
    #[must_use]
    pub fn health(&self, id: DirectorId) -> (bool, f64) {
        self.state(id, None, 0)
    }

    /// The operator's view of a backend or director.
    #[must_use]
    pub fn own_health(&self, id: DirectorId) -> Option<OwnHealth<'_>> {
        match (self.backend(id), self.entry(id)) {
            (Some(backend), _) => Some(OwnHealth::Own(backend.health())),
            (None, Some(entry)) => Some(OwnHealth::Own(&entry.health)),
            (None, None) => self.names.get(id).map(OwnHealth::Named),
        }
    }

    /// Whether it can be used and since when. Without a purpose no saint mode counts.
    fn state(&self, id: DirectorId, purpose: Option<Purpose<'_>>, depth: usize) -> (bool, f64) {
        if let Some(backend) = self.backend(id) {
            let is_troubled = purpose.is_some_and(|purpose| is_troubled(backend, purpose.saint, purpose.now));
            return (backend.is_healthy() && !is_troubled, backend.health().changed());
        }
        if let Some(item) = self.names.get(id) {
            let (healthy, changed) = item.state();
            return (item.health().overridden().unwrap_or(healthy), changed);
        }
        let Some((entry, kind)) = self.entry(id).zip(self.director(id)) else { return (false, 0.0) };
        let (healthy, changed) = self.members_state(kind, entry.health.changed(), purpose, depth);
        (entry.health.overridden().unwrap_or(healthy), changed)
    }

    /// Whether any member is healthy, and the latest change among the director and the members asked for that.
    fn members_state(
        &self,
        kind: &DirectorKind,
        own_change: f64,
        purpose: Option<Purpose<'_>>,
        depth: usize,
    ) -> (bool, f64) {
        match kind {
            // Where a text falls is not known before it is given, nor which host will be asked for.
            DirectorKind::Hash(hash) if !hash.hashes_by_itself() => return (true, own_change),
            DirectorKind::Dns(_) | DirectorKind::Failing => return (true, own_change),
            DirectorKind::Dynamic(dynamic) => {
                return dynamic.backend().map_or((false, own_change), |backend| {
                    (backend.is_healthy(), own_change.max(backend.health().changed()))
                });
            }
            _ => {}
        }
        if let (DirectorKind::Saint(saint), Some(purpose)) = (kind, purpose)
            && saint.speaks_against(purpose.digest, purpose.now, &self.name(saint.backend()), purpose.notes)
        {
            return (false, own_change);
        }
        if depth > DIRECTOR_DEPTH_MAX {
            return (false, own_change);
        }
        let mut changed = own_change;
        for member in kind.members().iter() {
            let (healthy, since) = self.state(member.director, purpose, depth + 1);
            changed = changed.max(since);
            if healthy {
                return (true, changed);
            }
        }
        (false, changed)
    }

    /// As [`Directors::health`], without the operator's word about the director itself: what `backend.list` shows. `now`: seconds since
    /// 1970.
    #[must_use]
    pub fn unforced_health(&self, id: DirectorId, now: f64) -> (bool, f64) {
        if let Some(backend) = self.backend(id) {
            return (backend.health().probed(), backend.health().changed());
        }
        match self.entry(id).zip(self.director(id)) {
            Some((entry, kind)) => {
                let purpose = Purpose { now, saint: None, digest: None, notes: None };
                self.members_state(kind, entry.health.changed(), Some(purpose), 0)
            }
            None => self.names.get(id).map_or((false, 0.0), |item| item.unforced_state()),
        }
    }
}

/// Whether a backend is in trouble over a digest. What the operator calls healthy is no matter for saints.
fn is_troubled(backend: &Backend, saint: Option<&[u8; 32]>, now: f64) -> bool {
    saint.is_some()
        && backend.health().overridden() != Some(true)
        && backend.troubles().concern(saint, now, SAINTMODE_THRESHOLD).is_some()
}

impl fmt::Debug for Directors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directors").field("vcl", &self.vcl_name).finish_non_exhaustive()
    }
}
