//! A backend that VCL creates and replaces at run time.
//!
//! Every replacement has a new generation, which is part of the id that VCL holds: an id with an
//! older generation refers to a backend that is gone. Fetches that use the old backend continue; it
//! is dropped after the last of them.

use crate::backend::Backend;
use crate::director::choice::{Candidates, ResolveContext};
use crate::director::interface::Director;
use parking_lot::RwLock;
use std::sync::Arc;
use vcl_run::value::DirectorId;

/// The highest generation; after it comes 1 again.
pub(crate) const GENERATION_MAX: u32 = (1 << 11) - 1;

/// The director.
#[derive(Debug, Default)]
pub struct Dynamic {
    current: RwLock<(u32, Option<Arc<Backend>>)>,
}

impl Dynamic {
    /// A director without a backend.
    #[must_use]
    pub fn new() -> Dynamic {
        Dynamic::default()
    }

    /// Replaces the present backend.
    pub fn replace(&self, backend: Arc<Backend>) {
        let mut current = self.current.write();
        *current = (current.0 % GENERATION_MAX + 1, Some(backend));
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> Option<Arc<Backend>> {
        self.current.read().1.clone()
    }

    /// The generation of the backend; 0 if there is none yet.
    pub(crate) fn generation(&self) -> u32 {
        self.current.read().0
    }
}

impl Director for Dynamic {
    fn type_name(&self) -> &'static str {
        "backend"
    }

    /// The table replaces it by its backend before.
    fn choose(&self, _: DirectorId, _: &dyn Candidates, _: &ResolveContext<'_>) -> Option<DirectorId> {
        None
    }

    fn own_health(&self, changed: f64) -> Option<(bool, f64)> {
        let health = |backend: Arc<Backend>| (backend.is_healthy(), changed.max(backend.health().changed()));
        Some(self.backend().map_or((false, changed), health))
    }
}
