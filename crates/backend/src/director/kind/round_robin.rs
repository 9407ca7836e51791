//! Round robin: the healthy members take turns.

use crate::director::choice::{Candidates, Members, ResolveContext, takes_load};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct RoundRobin {
    pub(crate) members: Members,
    next: AtomicUsize,
}

impl RoundRobin {
    pub(crate) fn choose(&self, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let list = self.members.list();
        for _ in 0..list.len() {
            let turn = self.turn(list.len());
            if takes_load(candidates, list[turn].director, context) {
                return Some(list[turn].director);
            }
        }
        // Better one that has only just recovered than none.
        list.iter().map(|member| member.director).find(|id| candidates.is_healthy_for(*id, context))
    }

    /// Whose turn it is, as a place among `count` members, above 0. The turns are kept as a place and not as a running number, so
    /// that a change of the members moves the turn no further than it must. Compat: Varnish 7.1.
    fn turn(&self, count: usize) -> usize {
        let after = |place: usize| Some((place % count + 1) % count);
        let (Ok(place) | Err(place)) = self.next.fetch_update(Relaxed, Relaxed, after);
        place % count
    }
}
