//! What a director can learn of those it may choose from.

use super::context::ResolveContext;
use std::borrow::Cow;
use vcl_run::value::DirectorId;

/// The backends and directors of a VCL, as a director sees its members: by id, and no more of them than a choice needs.
/// The table of the VCL is one; a kind of director never sees the table itself.
pub trait Candidates {
    /// The VCL name; empty when there is none of that id.
    fn name(&self, id: DirectorId) -> Cow<'_, str>;
    /// Whether a backend or director can be used, and since when its health is what it is (seconds since 1970).
    fn health(&self, id: DirectorId) -> (bool, f64);
    /// Whether a backend or director can be used for this request: saint mode counts, where the VCL has it.
    fn is_healthy_for(&self, id: DirectorId, context: &ResolveContext<'_>) -> bool;
    /// Connections in use of a backend, or of all backends that a director leads to.
    fn connections(&self, id: DirectorId) -> u32;
    /// Whether a director is to be found from another, or is the same.
    fn leads_to(&self, from: DirectorId, to: DirectorId) -> bool;
}
