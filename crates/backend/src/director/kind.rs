//! The kinds of directors, one file each. A kind sees its members through [`Candidates`] and never the table they are in.
//!
//! Choosing never blocks: when VCL changes the members, the whole list is replaced, and a choice under way keeps its list.

pub mod dns;
pub mod dynamic;
pub mod fallback;
pub mod hash;
pub mod least_connections;
pub mod random;
pub mod round_robin;
pub mod saint;
pub mod shard;

use crate::director::choice::{Candidates, Member, ResolveContext};
use dns::Dns;
use dynamic::Dynamic;
use fallback::Fallback;
use hash::Hash;
use least_connections::LeastConnections;
use random::Random;
use round_robin::RoundRobin;
use saint::Saint;
use shard::Shard;
use std::sync::Arc;
use vcl_run::value::DirectorId;

/// A director of one kind.
#[derive(Debug)]
pub enum DirectorKind {
    /// directors.round_robin
    RoundRobin(RoundRobin),
    /// directors.fallback
    Fallback(Fallback),
    /// directors.random
    Random(Random),
    /// directors.hash
    Hash(Hash),
    /// directors.shard
    Shard(Shard),
    /// directors.least_conn
    LeastConnections(LeastConnections),
    /// saintmode.saintmode
    Saint(Saint),
    /// `director … dns` of the old dialects
    Dns(Dns),
    /// debug.dyn and debug.dyn_uds
    Dynamic(Dynamic),
    /// debug.director: every use fails.
    Failing,
}

impl DirectorKind {
    /// Its name in the JSON of `backend.list`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            DirectorKind::RoundRobin(_) => "round-robin",
            DirectorKind::Fallback(_) => "fallback",
            DirectorKind::Random(_) => "random",
            DirectorKind::Hash(_) => "hash",
            DirectorKind::Shard(_) => "shard",
            DirectorKind::LeastConnections(_) => "least-conn",
            DirectorKind::Saint(_) => "saintmode",
            DirectorKind::Dns(_) => "dns",
            DirectorKind::Dynamic(_) => "backend",
            DirectorKind::Failing => "debug.director",
        }
    }

    /// Its members.
    #[must_use]
    pub fn members(&self) -> Arc<[Member]> {
        match self {
            DirectorKind::RoundRobin(director) => director.members.list(),
            DirectorKind::Fallback(director) => director.members.list(),
            DirectorKind::Random(director) => director.members.list(),
            DirectorKind::Hash(director) => director.members.list(),
            DirectorKind::Shard(director) => director.members(),
            DirectorKind::LeastConnections(director) => director.members.list(),
            DirectorKind::Saint(director) => director.members(),
            DirectorKind::Dns(director) => director.members(),
            DirectorKind::Dynamic(_) | DirectorKind::Failing => Arc::from([]),
        }
    }

    /// The member for this fetch; `None` if none can be used.
    pub(crate) fn choose(
        &self,
        own: DirectorId,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
    ) -> Option<DirectorId> {
        match self {
            DirectorKind::RoundRobin(director) => director.choose(candidates, context),
            DirectorKind::Fallback(director) => director.choose(candidates, context),
            DirectorKind::Random(director) => director.choose(candidates, context),
            DirectorKind::Hash(director) => director.choose_when_used(candidates, context),
            DirectorKind::Shard(director) => director.resolve(own, candidates, context),
            DirectorKind::LeastConnections(director) => director.choose(candidates, context),
            DirectorKind::Saint(director) => director.choose(own, candidates, context),
            DirectorKind::Dns(director) => director.domain(context).map(|domain| domain.id()),
            // The first is replaced by its backend before it comes to this, the second has none.
            DirectorKind::Dynamic(_) | DirectorKind::Failing => None,
        }
    }

    /// Adds a member. The caller has checked that this makes no cycle of directors.
    pub(crate) fn add(&self, member: Member) {
        match self {
            DirectorKind::RoundRobin(director) => director.members.add(member),
            DirectorKind::Fallback(director) => director.members.add(member),
            DirectorKind::Random(director) => director.members.add(member),
            DirectorKind::Hash(director) => director.members.add(member),
            DirectorKind::LeastConnections(director) => director.members.add(member),
            // Shard members change only in Shard::reconfigure, those of the next two never, and the others have none.
            DirectorKind::Shard(_)
            | DirectorKind::Saint(_)
            | DirectorKind::Dns(_)
            | DirectorKind::Dynamic(_)
            | DirectorKind::Failing => {}
        }
    }

    /// Removes a member.
    pub(crate) fn remove(&self, member: DirectorId) {
        match self {
            DirectorKind::RoundRobin(director) => {
                director.members.remove(member);
            }
            DirectorKind::Fallback(director) => director.remove(member),
            DirectorKind::Random(director) => {
                director.members.remove(member);
            }
            DirectorKind::Hash(director) => {
                director.members.remove(member);
            }
            DirectorKind::LeastConnections(director) => {
                director.members.remove(member);
            }
            DirectorKind::Shard(_)
            | DirectorKind::Saint(_)
            | DirectorKind::Dns(_)
            | DirectorKind::Dynamic(_)
            | DirectorKind::Failing => {}
        }
    }
}
