//! The kinds of directors, one file each, and one row each in [`directors`]. A kind sees its
//! members through [`Candidates`] and never the table they are in.
//!
//! Choosing never blocks: when VCL changes the members, the whole list is replaced, and a choice
//! under way keeps its list. Next file: `interface.rs`, the methods of a kind.

pub mod dns;
pub mod dynamic;
pub mod failing;
pub mod fallback;
pub mod hash;
pub mod least_connections;
pub mod random;
pub mod round_robin;
pub mod saint;
pub mod shard;

use crate::details::Details;
use crate::director::choice::{Candidates, Member, Notes, ResolveContext};
use crate::director::interface::{Director, Progress};
use crate::dns_names::domain::Domain;
use dns::Dns;
use dynamic::Dynamic;
use failing::Failing;
use fallback::Fallback;
use hash::Hash;
use least_connections::LeastConnections;
use random::Random;
use round_robin::RoundRobin;
use saint::Saint;
use shard::Shard;
use std::sync::Arc;
use surface::vcl::Generation;
use vcl_run::value::DirectorId;

/// Declares the enum of all kinds, and `each!`, which evaluates an expression for the director of
/// whatever kind, without dynamic dispatch.
macro_rules! directors {
    ($($(#[$about:meta])* $kind:ident,)*) => {
        /// A director of one kind.
        #[derive(Debug)]
        pub enum DirectorKind {
            $($(#[$about])* $kind($kind),)*
        }

        macro_rules! each {
            ($any:expr, $director:ident => $result:expr) => {
                match $any {
                    $(DirectorKind::$kind($director) => $result,)*
                }
            };
        }
    };
}

directors! {
    /// directors.round_robin
    RoundRobin,
    /// directors.fallback
    Fallback,
    /// directors.random
    Random,
    /// directors.hash
    Hash,
    /// directors.shard
    Shard,
    /// directors.least_conn
    LeastConnections,
    /// saintmode.saintmode
    Saint,
    /// `director … dns` of the old dialects
    Dns,
    /// debug.dyn and debug.dyn_uds
    Dynamic,
    /// debug.director: every use fails.
    Failing,
}

/// The methods of [`Director`], for a director of any kind.
impl DirectorKind {
    /// Its name in the JSON of `backend.list`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        each!(self, director => Director::type_name(director))
    }

    /// Its members.
    #[must_use]
    pub fn members(&self) -> Arc<[Member]> {
        each!(self, director => Director::members(director))
    }

    pub(crate) fn choose(
        &self,
        own: DirectorId,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
    ) -> Option<DirectorId> {
        each!(self, director => Director::choose(director, own, candidates, context))
    }

    /// Adds a member, if VCL can do that for this kind. The caller has checked that this makes no
    /// cycle of directors.
    pub(crate) fn add(&self, member: Member) {
        if let Some(members) = each!(self, director => director.changeable()) {
            members.add(member);
        }
    }

    pub(crate) fn remove(&self, member: DirectorId) {
        each!(self, director => Director::remove(director, member));
    }

    pub(crate) fn own_health(&self, changed: f64) -> Option<(bool, f64)> {
        each!(self, director => director.own_health(changed))
    }

    pub(crate) fn refuses(
        &self,
        candidates: &dyn Candidates,
        digest: Option<&[u8; 32]>,
        now: f64,
        notes: Option<&Notes>,
    ) -> bool {
        each!(self, director => director.refuses(candidates, digest, now, notes))
    }

    pub(crate) fn is_judged(&self) -> bool {
        each!(self, director => director.is_judged())
    }

    pub(crate) fn counts_members(&self) -> bool {
        each!(self, director => director.counts_members())
    }

    pub(crate) fn details(&self, candidates: &dyn Candidates, now: f64) -> Details {
        each!(self, director => director.details(candidates, now))
    }

    pub(crate) fn first_lookup(&self, context: &ResolveContext<'_>) -> Option<Arc<Domain>> {
        each!(self, director => director.first_lookup(context))
    }

    pub(crate) fn tries(
        &self,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        generation: Generation,
    ) -> Option<usize> {
        each!(self, director => director.tries(candidates, context, generation))
    }

    pub(crate) fn choose_next(
        &self,
        own: DirectorId,
        progress: &mut Progress,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        generation: Generation,
    ) -> Option<DirectorId> {
        each!(self, director => director.choose_next(own, progress, candidates, context, generation))
    }
}
