//! Directors: sets of backends and other directors that choose a member for each fetch.
//!
//! One file a kind. A director knows its members by [`DirectorId`] and asks [`Directors`] about their health, so directors
//! nest. Choosing never blocks: the list of members is replaced whole when VCL changes it, and a chooser works on the list
//! it got. Next file: `directors.rs`, the table of a loaded VCL.

pub mod dns;
pub mod dynamic;
pub mod fallback;
pub mod hash;
pub mod least_connections;
pub mod random;
pub mod round_robin;
pub mod saint;
pub mod shard;
pub mod trail;

use crate::directors::Directors;
use crate::random::TestableRandom;
use dns::Dns;
use dynamic::Dynamic;
use fallback::Fallback;
use hash::Hash;
use least_connections::LeastConnections;
use random::Random;
use round_robin::RoundRobin;
use saint::Saint;
use shard::Shard;
use shard::parameters::TaskParameters;
use shm::locks::ClassRwLock;
use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use surface::counter::LockClass;
use surface::tag::Tag;
use vcl_run::value::DirectorId;

/// Who asked: what the `client` directors of the old dialects choose by.
#[derive(Clone, Copy, Default, Debug)]
pub struct ClientName<'a> {
    /// `client.identity`, where VCL has set it.
    pub identity: Option<&'a [u8]>,
    /// The client's address; `None` = there is no client.
    pub address: Option<IpAddr>,
}

/// What a choice may depend on.
#[derive(Clone, Copy)]
pub struct ResolveContext<'a> {
    /// Seconds since 1970.
    pub now: f64,
    /// The process's generator.
    pub random: &'a TestableRandom,
    /// The request's URL.
    pub url: &'a [u8],
    /// Its `Host`; `None` = it has none.
    pub host: Option<&'a [u8]>,
    /// The client.
    pub client: ClientName<'a>,
    /// The request's hash, once it is known.
    pub digest: Option<&'a [u8; 32]>,
    /// The response is wanted for the cache. In a VCL with saint mode, backends in trouble over the digest are sick then.
    pub is_for_cache: bool,
    /// What the task has set for shard directors; `None` on the client side, vcl_pipe excepted. Without it the request's
    /// hash is no key for them.
    pub shard: Option<&'a TaskParameters>,
    /// Takes what directors have to say.
    pub notes: &'a Notes,
}

impl ResolveContext<'_> {
    /// The hash of the request that is being fetched; `None` on the client side.
    pub(crate) fn fetched_digest(&self) -> Option<&[u8; 32]> {
        self.digest.filter(|_| self.shard.is_some())
    }
}

/// One thing a director has to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The record's tag.
    pub tag: Tag,
    /// The record's text.
    pub text: String,
    /// It belongs to the running task; others are records of no transaction.
    pub of_task: bool,
}

/// What directors have to say while they choose or change, for the log. Empty and without allocation mostly.
#[derive(Debug, Default)]
pub struct Notes(RefCell<Vec<Note>>);

impl Notes {
    /// Nothing said yet.
    #[must_use]
    pub fn new() -> Notes {
        Notes::default()
    }

    /// All that was said, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        self.0.take()
    }

    /// A record of the running task.
    pub(crate) fn say(&self, tag: Tag, text: String) {
        self.0.borrow_mut().push(Note { tag, text, of_task: true });
    }

    fn of_task(&self, tag: Tag, name: &str, text: fmt::Arguments<'_>) {
        let text = format!("vmod_directors: shard {name}: {text}");
        self.0.borrow_mut().push(Note { tag, text, of_task: true });
    }

    /// A mistake.
    pub(crate) fn error(&self, name: &str, text: fmt::Arguments<'_>) {
        self.of_task(Tag::Error, name, text);
    }

    /// Something worth knowing.
    pub(crate) fn notice(&self, name: &str, text: fmt::Arguments<'_>) {
        self.of_task(Tag::Notice, name, text);
    }

    /// A Debug record of the task.
    pub fn task_debug(&self, text: String) {
        self.0.borrow_mut().push(Note { tag: Tag::Debug, text, of_task: true });
    }

    /// What `.debug()` asked for.
    pub(crate) fn debug(&self, text: fmt::Arguments<'_>) {
        let text = format!("vmod_directors: shard: {text}");
        self.0.borrow_mut().push(Note { tag: Tag::Debug, text, of_task: false });
    }
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
pub struct Members(ClassRwLock<Arc<[Member]>>);

impl Default for Members {
    fn default() -> Self {
        Members(ClassRwLock::new(LockClass::Director, Arc::from([])))
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
    fn choose_by_weight(&self, directors: &Directors, context: &ResolveContext<'_>, share: f64) -> Option<DirectorId> {
        let list = self.list();
        let healthy = || list.iter().filter(|member| directors.is_healthy_for(member.director, context));
        at_share(healthy, share)
    }

    /// The same among all members, whatever their health.
    fn choose_among_all(&self, share: f64) -> Option<DirectorId> {
        let list = self.list();
        at_share(|| list.iter(), share)
    }
}

/// The first of some members behind which their weights add up to more than `share` of the total.
fn at_share<'a, I: Iterator<Item = &'a Member>>(members: impl Fn() -> I, share: f64) -> Option<DirectorId> {
    let total: f64 = members().map(|member| member.weight).sum();
    let mut rest = share * total;
    let mut chosen = None;
    for member in members() {
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
    /// debug.director: fails whoever asks it.
    Failing,
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

    /// The member for this fetch; `None` when there is none to use.
    pub(crate) fn choose(
        &self,
        own: DirectorId,
        directors: &Directors,
        context: &ResolveContext<'_>,
    ) -> Option<DirectorId> {
        match self {
            DirectorKind::RoundRobin(director) => director.choose(directors, context),
            DirectorKind::Fallback(director) => director.choose(directors, context),
            DirectorKind::Random(director) => director.choose(directors, context),
            DirectorKind::Hash(director) => director.choose_when_used(directors, context),
            DirectorKind::Shard(director) => director.resolve(own, directors, context),
            DirectorKind::LeastConnections(director) => director.choose(directors, context),
            DirectorKind::Saint(director) => director.choose(own, directors, context),
            DirectorKind::Dns(director) => director.domain(directors.names(), context).map(|domain| domain.id()),
            // The one is taken for its backend before, the other has none.
            DirectorKind::Dynamic(_) | DirectorKind::Failing => None,
        }
    }

    /// Adds a member. The caller has checked that this makes no ring of directors.
    pub(crate) fn add(&self, member: Member) {
        match self {
            DirectorKind::RoundRobin(director) => director.members.add(member),
            DirectorKind::Fallback(director) => director.members.add(member),
            DirectorKind::Random(director) => director.members.add(member),
            DirectorKind::Hash(director) => director.members.add(member),
            DirectorKind::LeastConnections(director) => director.members.add(member),
            // The members of the first change by Directors::reconfigure_shard, those of the next two never; the others
            // have none.
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

#[cfg(test)]
pub(crate) mod tests;
