//! Least connections: the healthy member with the fewest connections in use for its weight. Members that are level take
//! turns. Of a member that is a director itself the connections of all its members count.

use crate::director::{Member, Members, ResolveContext};
use crate::directors::Directors;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vcl_run::value::DirectorId;

/// The director.
#[derive(Debug, Default)]
pub struct LeastConnections {
    pub(crate) members: Members,
    turn: AtomicUsize,
}

impl LeastConnections {
    pub(crate) fn choose(&self, directors: &Directors, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let list = self.members.list();
        let start = self.turn.fetch_add(1, Relaxed);
        let load = |member: &Member| f64::from(directors.connections(member.director)) / member.weight;
        (0..list.len())
            .map(|step| &list[start.wrapping_add(step) % list.len()])
            .filter(|member| member.weight > 0.0 && directors.is_healthy_for(member.director, context))
            .min_by(|one, other| load(one).total_cmp(&load(other)))
            .map(|member| member.director)
    }
}
