//! The interface of a kind of director: one implementation in each file of `kind`, one row in
//! `kind.rs`.
//!
//! Most methods have defaults, so a kind that only chooses among its members defines a name, its
//! members and the choice.

use crate::details::Details;
use crate::director::choice::{Candidates, Member, Members, Notes, ResolveContext};
use crate::dns_names::domain::Domain;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use surface::vcl::Generation;
use vcl_run::value::DirectorId;

/// A kind of director.
pub(crate) trait Director {
    /// Its name in the JSON of `backend.list`.
    fn type_name(&self) -> &'static str;

    /// The member for this fetch; `None` if none can be used. `own` is the director's id.
    fn choose(&self, own: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId>;

    /// The members that VCL adds and removes one by one; `None` if it cannot.
    fn changeable(&self) -> Option<&Members> {
        None
    }

    /// All members.
    fn members(&self) -> Arc<[Member]> {
        self.changeable().map_or_else(|| Arc::from([]), Members::list)
    }

    /// Removes a member.
    fn remove(&self, member: DirectorId) {
        self.changeable().and_then(|members| members.remove(member));
    }

    /// Its health, if members do not decide it: true if it can be used, and the time since which
    /// that is so. `changed` is the time of the operator's last change.
    fn own_health(&self, changed: f64) -> Option<(bool, f64)> {
        _ = changed;
        None
    }

    /// True if it cannot be used for a fetch of that object (`None` = any), whatever the health of
    /// its members; if so, adds a note.
    fn refuses(&self, candidates: &dyn Candidates, digest: Option<&[u8; 32]>, now: f64, notes: Option<&Notes>) -> bool {
        _ = (candidates, digest, now, notes);
        false
    }

    /// False if `backend.list` shows it as always healthy.
    fn is_judged(&self) -> bool {
        true
    }

    /// True if `backend.list` counts its members.
    fn counts_members(&self) -> bool {
        self.is_judged()
    }

    /// Details for `backend.list -p`.
    fn details(&self, candidates: &dyn Candidates, now: f64) -> Details {
        _ = (candidates, now);
        Details::Nothing
    }

    /// A name that must be looked up before a choice for this request.
    fn first_lookup(&self, context: &ResolveContext<'_>) -> Option<Arc<Domain>> {
        _ = context;
        None
    }

    /// Number of members that one fetch of an old dialect may try; `None` if it offers only one
    /// backend.
    fn tries(
        &self,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        generation: Generation,
    ) -> Option<usize> {
        _ = (candidates, context, generation);
        None
    }

    /// The next member for a fetch of an old dialect.
    fn choose_next(
        &self,
        own: DirectorId,
        progress: &mut Progress,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        generation: Generation,
    ) -> Option<DirectorId> {
        _ = (progress, generation);
        self.choose(own, candidates, context)
    }
}

/// The state of the choices that a director has made for one fetch of an old dialect.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The position at which a fallback director continues.
    pub(crate) place: usize,
    /// The share of the previous choice by weight; `None` before the first one.
    pub(crate) share: Option<f64>,
}

/// The share for the next try, from the digest of the previous share.
pub(crate) fn share_after(share: f64) -> f64 {
    share_of(&Sha256::digest(share.to_le_bytes()).into())
}

/// The first four bytes of a digest as a fraction in [0, 1).
pub(crate) fn share_of(digest: &[u8; 32]) -> f64 {
    fraction(u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

/// A number as a fraction in [0, 1) of the range of 32 bits.
pub(crate) fn fraction(number: u32) -> f64 {
    f64::from(number) / 4_294_967_296.0
}
