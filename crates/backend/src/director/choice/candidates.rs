//! The properties of candidates that a director can query.

use super::context::ResolveContext;
use std::borrow::Cow;
use vcl_run::value::DirectorId;

/// The backends and directors of a VCL as a director sees its members: by id, and limited to the
/// properties that a choice needs. The VCL's table implements this; a kind of director never sees
/// the table itself.
pub trait Candidates {
    /// The VCL name; empty if the id is unknown.
    fn name(&self, id: DirectorId) -> Cow<'_, str>;
    /// True if a backend or director can be used, and the time since which its health is unchanged
    /// (seconds since 1970).
    fn health(&self, id: DirectorId) -> (bool, f64);
    /// True if a backend or director can be used for this request; includes saint mode, if the VCL
    /// has it.
    fn is_healthy_for(&self, id: DirectorId, context: &ResolveContext<'_>) -> bool;
    /// The share of its load that a backend gets, at most 1: less while it starts slowly. 1 for
    /// directors. `now`: seconds since 1970.
    fn warmth(&self, id: DirectorId, now: f64) -> f64;
    /// Connections in use, of a backend or of all backends below a director.
    fn connections(&self, id: DirectorId) -> u32;
    /// True if `to` is `from` or can be reached from it.
    fn leads_to(&self, from: DirectorId, to: DirectorId) -> bool;
}

/// True if a backend or director can be used for this request, taking slow start into account: a
/// recently recovered one accepts only its share of the choices, at random.
pub(crate) fn takes_load(candidates: &dyn Candidates, id: DirectorId, context: &ResolveContext<'_>) -> bool {
    if !candidates.is_healthy_for(id, context) {
        return false;
    }
    let warmth = candidates.warmth(id, context.now);
    warmth >= 1.0 || context.random.next_fraction() < warmth
}

/// The first of these that takes load; if there is none, the first that can be used at all.
pub(crate) fn first_that_takes_load<T: Copy>(
    places: impl Iterator<Item = T> + Clone,
    id_of: impl Fn(T) -> DirectorId,
    candidates: &dyn Candidates,
    context: &ResolveContext<'_>,
) -> Option<T> {
    places
        .clone()
        .find(|place| takes_load(candidates, id_of(*place), context))
        .or_else(|| places.clone().find(|place| candidates.is_healthy_for(id_of(*place), context)))
}
