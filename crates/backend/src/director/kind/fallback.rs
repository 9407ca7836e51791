//! Fallback: the first healthy member. A sticky one keeps its choice until that is sick, then
//! continues from there.

use crate::details::{Details, MemberFacts};
use crate::director::choice::{Candidates, Members, ResolveContext, first_that_takes_load};
use crate::director::interface::{Director, Progress};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use surface::vcl::Generation;
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

    /// True if it keeps its choice.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.sticky
    }

    /// The position of the member that was chosen last.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current.load(Relaxed)
    }
}

impl Director for Fallback {
    fn type_name(&self) -> &'static str {
        "fallback"
    }

    fn changeable(&self) -> Option<&Members> {
        Some(&self.members)
    }

    fn choose(&self, _: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let list = self.members.list();
        let start = if self.sticky { self.current() } else { 0 };
        let places = (0..list.len()).map(|step| (start + step) % list.len());
        let place = first_that_takes_load(places, |place| list[place].director, candidates, context)?;
        self.current.store(place, Relaxed);
        Some(list[place].director)
    }

    /// If another member is the current choice, it remains so.
    fn remove(&self, member: DirectorId) {
        let Some(place) = self.members.remove(member) else { return };
        let current = self.current();
        if place < current {
            self.current.store(current - 1, Relaxed);
        } else if place == current && current >= self.members.list().len() {
            self.current.store(0, Relaxed);
        }
    }

    fn details(&self, candidates: &dyn Candidates, _: f64) -> Details {
        Details::Fallback {
            is_sticky: self.is_sticky(),
            current: self.current(),
            members: MemberFacts::of(&self.members.list(), candidates),
        }
    }

    fn tries(&self, _: &dyn Candidates, _: &ResolveContext<'_>, _: Generation) -> Option<usize> {
        Some(self.members.list().len())
    }

    fn choose_next(
        &self,
        _: DirectorId,
        progress: &mut Progress,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        _: Generation,
    ) -> Option<DirectorId> {
        let list = self.members.list();
        let healthy = |place: &usize| candidates.is_healthy_for(list[*place].director, context);
        let place = (progress.place..list.len()).find(healthy)?;
        progress.place = place + 1;
        Some(list[place].director)
    }
}
