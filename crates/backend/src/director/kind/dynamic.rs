//! A backend that VCL makes and replaces while it runs.
//!
//! Every replacement is of a new generation, which is part of the id that VCL holds: an id of an older one is that of a
//! backend which is gone. Fetches on the old backend go on; it ends with the last of them.

use crate::backend::Backend;
use parking_lot::RwLock;
use std::sync::Arc;

/// Generations are counted up to this and begin again with 1.
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

    /// Puts another backend in the place of the present one.
    pub fn replace(&self, backend: Arc<Backend>) {
        let mut current = self.current.write();
        *current = (current.0 % GENERATION_MAX + 1, Some(backend));
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> Option<Arc<Backend>> {
        self.current.read().1.clone()
    }

    /// The generation of the backend; 0 when there is none yet.
    pub(crate) fn generation(&self) -> u32 {
        self.current.read().0
    }
}
