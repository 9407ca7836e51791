//! Round robin: the healthy members take turns.

use crate::details::{Details, MemberFacts};
use crate::director::choice::{Candidates, Members, ResolveContext, takes_load};
use crate::director::interface::Director;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use surface::vcl::Generation;
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct RoundRobin {
    pub(crate) members: Members,
    next: AtomicUsize,
}

impl RoundRobin {
    /// The turn as an index among `count` members, above 0. It is kept as an index and not as a
    /// running number, so that a change of the members moves the turn as little as possible.
    /// Compat: Varnish 7.1.
    fn turn(&self, count: usize) -> usize {
        let after = |place: usize| Some((place % count + 1) % count);
        let (Ok(place) | Err(place)) = self.next.fetch_update(Relaxed, Relaxed, after);
        place % count
    }
}

impl Director for RoundRobin {
    fn type_name(&self) -> &'static str {
        "round-robin"
    }

    fn changeable(&self) -> Option<&Members> {
        Some(&self.members)
    }

    fn choose(&self, _: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let list = self.members.list();
        for _ in 0..list.len() {
            let turn = self.turn(list.len());
            if takes_load(candidates, list[turn].director, context) {
                return Some(list[turn].director);
            }
        }
        // A member that has just recovered is better than none.
        list.iter().map(|member| member.director).find(|id| candidates.is_healthy_for(*id, context))
    }

    fn details(&self, candidates: &dyn Candidates, _: f64) -> Details {
        Details::RoundRobin(MemberFacts::of(&self.members.list(), candidates))
    }

    fn tries(&self, candidates: &dyn Candidates, context: &ResolveContext<'_>, _: Generation) -> Option<usize> {
        Some(self.members.list().iter().filter(|member| candidates.is_healthy_for(member.director, context)).count())
    }
}
