//! The health of backends and directors, for a purpose, and the time since which it is unchanged.

use crate::backend::Backend;
use crate::director::choice::{Notes, ResolveContext};
use crate::director::kind::DirectorKind;
use crate::director::table::Directors;
use crate::dns_names::item::Item;
use crate::health::Health;
use std::ops::Deref;
use surface::limits::{DIRECTOR_DEPTH_MAX, SAINTMODE_THRESHOLD};
use vcl_run::value::DirectorId;

/// The purpose for which a backend is wanted.
#[derive(Clone, Copy)]
struct Purpose<'a> {
    /// Seconds since 1970.
    now: f64,
    /// The backend must not be in trouble over this digest (`beresp.saintmode`).
    saint: Option<&'a [u8; 32]>,
    /// The digest of the fetch, for saintmode directors.
    digest: Option<&'a [u8; 32]>,
    /// Receives the reason if it can't be used.
    notes: Option<&'a Notes>,
}

/// The operator's setting for a backend or director.
pub enum OwnHealth<'a> {
    /// For a backend or director of the VCL.
    Own(&'a Health),
    /// For a name that is looked up, or one of its backends.
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
    /// True if a backend that was looked up can be used for this request.
    pub(super) fn is_usable(&self, backend: &Backend, context: &ResolveContext<'_>) -> bool {
        backend.is_healthy() && !is_troubled(backend, self.digest_of_saints(context), context.now)
    }

    /// The digest that backends must not be in trouble over, if the VCL has saint mode.
    fn digest_of_saints<'a>(&self, context: &ResolveContext<'a>) -> Option<&'a [u8; 32]> {
        context.digest.filter(|_| self.generation.is_legacy() && context.is_for_cache)
    }

    /// True if a backend or director can be used; false if it does not exist.
    #[must_use]
    pub fn is_healthy(&self, id: DirectorId) -> bool {
        self.state(id, None, 0).0
    }

    /// True if a backend or director can be used for this request; includes saint mode, if the VCL
    /// has it.
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

    /// True if it can be used, and the time since which that is so (seconds since 1970).
    #[must_use]
    pub fn health(&self, id: DirectorId) -> (bool, f64) {
        self.state(id, None, 0)
    }

    /// The operator's setting for a backend or director.
    #[must_use]
    pub fn own_health(&self, id: DirectorId) -> Option<OwnHealth<'_>> {
        match (self.backend(id), self.entry(id)) {
            (Some(backend), _) => Some(OwnHealth::Own(backend.health())),
            (None, Some(entry)) => Some(OwnHealth::Own(&entry.health)),
            (None, None) => self.names.get(id).map(OwnHealth::Named),
        }
    }

    /// True if it can be used, and the time since which that is so. Without a purpose, saint mode
    /// is ignored.
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

    /// True if any member is healthy, and the latest change among the director and the members that
    /// were checked.
    fn members_state(
        &self,
        kind: &DirectorKind,
        own_change: f64,
        purpose: Option<Purpose<'_>>,
        depth: usize,
    ) -> (bool, f64) {
        if let Some(own) = kind.own_health(own_change) {
            return own;
        }
        if let Some(purpose) = purpose
            && kind.refuses(self, purpose.digest, purpose.now, purpose.notes)
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

    /// As [`Directors::health`], but ignores the operator's setting for the director itself;
    /// `backend.list` shows this. `now`: seconds since 1970.
    #[must_use]
    pub fn unforced_health(&self, id: DirectorId, now: f64) -> (bool, f64) {
        if let Some(backend) = self.backend(id) {
            return (backend.is_good(), backend.health().changed());
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

/// True if a backend is in trouble over a digest, even if the operator has set it healthy.
fn is_troubled(backend: &Backend, saint: Option<&[u8; 32]>, now: f64) -> bool {
    saint.is_some()
        && backend.health().overridden() != Some(true)
        && backend.troubles().concern(saint, now, SAINTMODE_THRESHOLD).is_some()
}
