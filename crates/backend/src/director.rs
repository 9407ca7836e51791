//! Directors: sets of backends and other directors that choose a member for each fetch.
//!
//! One file a kind. A director knows its members by [`DirectorId`] and asks [`Directors`] about their health, so directors
//! nest. Choosing never blocks: the list of members is replaced whole when VCL changes it, and a chooser works on the list
//! it got. Next file: `directors.rs`, the table of a loaded VCL.

pub mod fallback;
pub mod hash;
pub mod random;
pub mod round_robin;

use crate::directors::Directors;
use crate::random::TestableRandom;
use fallback::Fallback;
use hash::Hash;
use parking_lot::RwLock;
use random::Random;
use round_robin::RoundRobin;
use std::sync::Arc;
use vcl_run::value::DirectorId;

/// What a choice may depend on.
#[derive(Clone, Copy)]
pub struct ResolveContext<'a> {
    /// Seconds since 1970.
    pub now: f64,
    /// The process's generator.
    pub random: &'a TestableRandom,
    /// The request's URL.
    pub url: &'a [u8],
    /// The request's hash, once it is known.
    pub digest: Option<&'a [u8; 32]>,
}

/// A member of a director.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// Which backend or director.
    pub director: DirectorId,
    /// Share of the load, for the kinds that weigh.
    pub weight: f64,
}

/// The members of a director, in order of addition.
#[derive(Debug)]
pub struct Members(RwLock<Arc<[Member]>>);

impl Default for Members {
    fn default() -> Self {
        Members(RwLock::new(Arc::from([])))
    }
}

impl Members {
    /// The members at this moment.
    #[must_use]
    pub fn list(&self) -> Arc<[Member]> {
        Arc::clone(&self.0.read())
    }

    /// Adds a member at the end; the same one may be added twice.
    pub fn add(&self, member: Member) {
        let mut list = self.0.write();
        *list = list.iter().copied().chain([member]).collect();
    }

    /// Removes the first entry of a member; returns where it stood.
    pub fn remove(&self, director: DirectorId) -> Option<usize> {
        let mut list = self.0.write();
        let place = list.iter().position(|member| member.director == director)?;
        *list = list.iter().enumerate().filter(|(index, _)| *index != place).map(|(_, member)| *member).collect();
        Some(place)
    }

    /// The first healthy member behind which the weights of the healthy ones add up to more than `share` of their total.
    /// `share` is in [0, 1).
    fn choose_by_weight(&self, directors: &Directors, share: f64) -> Option<DirectorId> {
        let list = self.list();
        let healthy = || list.iter().filter(|member| directors.is_healthy(member.director));
        let total: f64 = healthy().map(|member| member.weight).sum();
        let mut rest = share * total;
        let mut chosen = None;
        for member in healthy() {
            if member.weight <= 0.0 {
                continue;
            }
            chosen = Some(member.director);
            rest -= member.weight;
            if rest < 0.0 {
                break;
            }
        }
        chosen
    }
}

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
}

impl DirectorKind {
    /// The word in the JSON of `backend.list`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            DirectorKind::RoundRobin(_) => "round-robin",
            DirectorKind::Fallback(_) => "fallback",
            DirectorKind::Random(_) => "random",
            DirectorKind::Hash(_) => "hash",
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
        }
    }

    /// The member for this fetch; `None` when there is none to use.
    pub(crate) fn choose(&self, directors: &Directors, context: &ResolveContext<'_>) -> Option<DirectorId> {
        match self {
            DirectorKind::RoundRobin(director) => director.choose(directors),
            DirectorKind::Fallback(director) => director.choose(directors),
            DirectorKind::Random(director) => director.choose(directors, context.random),
            // A hash director chooses when its method is called, with the text to hash; it is never a hint itself.
            DirectorKind::Hash(_) => None,
        }
    }

    /// Adds a member. The caller has checked that this makes no ring of directors.
    pub(crate) fn add(&self, member: Member) {
        match self {
            DirectorKind::RoundRobin(director) => director.members.add(member),
            DirectorKind::Fallback(director) => director.members.add(member),
            DirectorKind::Random(director) => director.members.add(member),
            DirectorKind::Hash(director) => director.members.add(member),
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
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
