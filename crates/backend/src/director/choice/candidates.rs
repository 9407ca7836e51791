//! What a director can learn about its candidates.

use super::context::ResolveContext;
use std::borrow::Cow;
use vcl_run::value::DirectorId;

/// The backends and directors of a VCL as a director sees its members: by id, and only as much as a choice needs. The
/// VCL's table implements this; a kind of director never sees the table itself.
pub trait Candidates {
    /// The VCL name; empty if the id is unknown.
    fn name(&self, id: DirectorId) -> Cow<'_, str>;
    /// Whether a backend or director can be used, and since when its health has been so (seconds since 1970).
    fn health(&self, id: DirectorId) -> (bool, f64);
    /// Whether a backend or director can be used for this request; includes saint mode, if the VCL has it.
    fn is_healthy_for(&self, id: DirectorId, context: &ResolveContext<'_>) -> bool;
    /// Connections in use, of a backend or of all backends below a director.
    fn connections(&self, id: DirectorId) -> u32;
    /// Whether `to` is `from` or can be reached from it.
    fn leads_to(&self, from: DirectorId, to: DirectorId) -> bool;
}
