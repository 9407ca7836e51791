//! Failing: every use fails (debug.director).

use crate::director::choice::{Candidates, ResolveContext};
use crate::director::interface::Director;
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug)]
pub struct Failing;

impl Director for Failing {
    fn type_name(&self) -> &'static str {
        "debug.director"
    }

    fn choose(&self, _: DirectorId, _: &dyn Candidates, _: &ResolveContext<'_>) -> Option<DirectorId> {
        None
    }

    fn own_health(&self, changed: f64) -> Option<(bool, f64)> {
        Some((true, changed))
    }
}
