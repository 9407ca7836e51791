//! Least connections: the healthy member with the fewest connections in use relative to its weight.
//! Members that tie take turns. For a member that is itself a director, the connections of all its
//! members count.

use crate::details::Details;
use crate::director::choice::{Candidates, Member, Members, ResolveContext, takes_load};
use crate::director::interface::Director;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct LeastConnections {
    pub(crate) members: Members,
    turn: AtomicUsize,
}

impl Director for LeastConnections {
    fn type_name(&self) -> &'static str {
        "least-conn"
    }

    fn changeable(&self) -> Option<&Members> {
        Some(&self.members)
    }

    fn choose(&self, _: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let list = self.members.list();
        let start = self.turn.fetch_add(1, Relaxed);
        let load = |member: &Member| f64::from(candidates.connections(member.director)) / member.weight;
        let members = || {
            (0..list.len())
                .map(|step| &list[start.wrapping_add(step) % list.len()])
                .filter(|member| member.weight > 0.0)
        };
        let warm = members()
            .filter(|member| takes_load(candidates, member.director, context))
            .min_by(|one, other| load(one).total_cmp(&load(other)));
        let usable = || members().filter(|member| candidates.is_healthy_for(member.director, context));
        warm.or_else(|| usable().min_by(|one, other| load(one).total_cmp(&load(other)))).map(|member| member.director)
    }

    fn details(&self, candidates: &dyn Candidates, _: f64) -> Details {
        Details::weighted(&self.members.list(), candidates)
    }
}
