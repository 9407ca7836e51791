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
            let turn = self.next.fetch_add(1, Relaxed) % list.len();
            if takes_load(candidates, list[turn].director, context) {
                return Some(list[turn].director);
            }
        }
        // Better one that has only just recovered than none.
        list.iter().map(|member| member.director).find(|id| candidates.is_healthy_for(*id, context))
    }
}
