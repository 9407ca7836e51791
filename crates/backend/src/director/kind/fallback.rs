//! Fallback: the first healthy member. A sticky one keeps its choice until that is sick, then goes on from there.

use crate::director::choice::{Candidates, Members, ResolveContext, first_that_takes_load};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct Fallback {
    pub(crate) members: Members,
    sticky: bool,
    current: AtomicUsize,
}

impl Fallback {
    /// A director without members.
    #[must_use]
    pub fn new(sticky: bool) -> Fallback {
        Fallback { sticky, ..Fallback::default() }
    }

    /// Whether it keeps its choice.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.sticky
    }

    /// The position of the member that was chosen last.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current.load(Relaxed)
    }

    pub(crate) fn choose(&self, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let list = self.members.list();
        let start = if self.sticky { self.current() } else { 0 };
        let places = (0..list.len()).map(|step| (start + step) % list.len());
        let place = first_that_takes_load(places, |place| list[place].director, candidates, context)?;
        self.current.store(place, Relaxed);
        Some(list[place].director)
    }

    /// Removes a member; if another member is the current choice, it stays so.
    pub(crate) fn remove(&self, member: DirectorId) {
        let Some(place) = self.members.remove(member) else { return };
        let current = self.current();
        if place < current {
            self.current.store(current - 1, Relaxed);
        } else if place == current && current >= self.members.list().len() {
            self.current.store(0, Relaxed);
        }
    }
}
