//! Saint mode as a director: one backend, and the objects for which it temporarily counts as sick.
//!
//! The list belongs to the director, so other uses of the backend ignore it (`beresp.saintmode` of
//! the old dialects uses the backend's own list). With `threshold` objects on the list the backend
//! is sick for all objects; 0 turns the list off. Compat: vmod_saintmode of the varnish-modules
//! collection; an object counts once, even if it is listed several times.

use crate::director::choice::{Candidates, Member, Notes, ResolveContext};
use crate::director::interface::Director;
use crate::saint_mode::{AvoidReason, TroubleList};
use std::sync::Arc;
use surface::limits::BACKEND_TROUBLES_MAX;
use surface::tag::Tag;
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug)]
pub struct Saint {
    members: Arc<[Member]>,
    backend: DirectorId,
    threshold: usize,
    troubles: TroubleList,
}

impl Saint {
    /// A director in front of that backend. A negative threshold is never reached; one above
    /// [`BACKEND_TROUBLES_MAX`], the capacity of the list, is lowered to that.
    #[must_use]
    pub fn new(backend: DirectorId, threshold: i64) -> Saint {
        let threshold = match usize::try_from(threshold) {
            Ok(threshold) => threshold.min(BACKEND_TROUBLES_MAX),
            Err(_) => usize::MAX,
        };
        let members = Arc::from([Member { director: backend, weight: 1.0 }]);
        Saint { members, backend, threshold, troubles: TroubleList::default() }
    }

    /// The backend it represents.
    #[must_use]
    pub fn backend(&self) -> DirectorId {
        self.backend
    }

    /// Number of objects that make the backend sick for all, as shown to operators: as given, but
    /// at most the list's capacity.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The list.
    #[must_use]
    pub fn troubles(&self) -> &TroubleList {
        &self.troubles
    }

    /// True if the list forbids a use for that object (`None` = any); if so, adds a note. `name` is
    /// the backend's.
    #[must_use]
    pub fn speaks_against(&self, digest: Option<&[u8; 32]>, now: f64, name: &str, notes: Option<&Notes>) -> bool {
        let Some(concern) = self.troubles.concern(digest, now, self.threshold) else { return false };
        if let Some(notes) = notes {
            let why = match concern {
                AvoidReason::Digest => "object blacklisted",
                AvoidReason::Threshold => "hit threshold",
            };
            notes.say(Tag::VCLLog, format!("saintmode: unhealthy: {why} for backend {name}"));
        }
        true
    }
}

impl Director for Saint {
    fn type_name(&self) -> &'static str {
        "saintmode"
    }

    fn members(&self) -> Arc<[Member]> {
        Arc::clone(&self.members)
    }

    fn choose(&self, own: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        candidates.is_healthy_for(own, context).then_some(self.backend)
    }

    fn refuses(&self, candidates: &dyn Candidates, digest: Option<&[u8; 32]>, now: f64, notes: Option<&Notes>) -> bool {
        self.speaks_against(digest, now, &candidates.name(self.backend), notes)
    }

    fn counts_members(&self) -> bool {
        false
    }
}
