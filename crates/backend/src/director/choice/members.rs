//! The members of a director, and the choice among them by weight, shared by several kinds.

use super::candidates::Candidates;
use super::context::ResolveContext;
use shm::locks::ClassRwLock;
use std::sync::Arc;
use surface::counter::LockClass;
use vcl_run::value::DirectorId;

/// A member of a director.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// The backend or director.
    pub director: DirectorId,
    /// Its share of the load, for kinds that use weights.
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
    /// The present members.
    #[must_use]
    pub fn list(&self) -> Arc<[Member]> {
        Arc::clone(&self.0.read())
    }

    /// Adds a member at the end; the same member may be added twice.
    pub fn add(&self, member: Member) {
        let mut list = self.0.write();
        *list = list.iter().copied().chain([member]).collect();
    }

    /// Removes the first entry of a member; returns its position.
    pub fn remove(&self, director: DirectorId) -> Option<usize> {
        let mut list = self.0.write();
        let place = list.iter().position(|member| member.director == director)?;
        *list = list.iter().enumerate().filter(|(index, _)| *index != place).map(|(_, member)| *member).collect();
        Some(place)
    }

    /// The first healthy member at which the sum of the healthy members' weights so far exceeds
    /// `share` of their total. `share` is in [0, 1).
    pub(crate) fn choose_by_weight(
        &self,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        share: f64,
    ) -> Option<DirectorId> {
        let list = self.list();
        let healthy = || list.iter().filter(|member| candidates.is_healthy_for(member.director, context));
        at_share(|| healthy().map(|member| (member.director, member.weight)), share)
    }

    /// The same, with smaller weights for members that start slowly.
    pub(crate) fn choose_by_warmth(
        &self,
        candidates: &dyn Candidates,
        context: &ResolveContext<'_>,
        share: f64,
    ) -> Option<DirectorId> {
        let list = self.list();
        let healthy = || list.iter().filter(|member| candidates.is_healthy_for(member.director, context));
        let weight = |member: &Member| member.weight * candidates.warmth(member.director, context.now);
        at_share(|| healthy().map(|member| (member.director, weight(member))), share)
    }

    /// The same choice among all members, regardless of their health.
    pub(crate) fn choose_among_all(&self, share: f64) -> Option<DirectorId> {
        let list = self.list();
        at_share(|| list.iter().map(|member| (member.director, member.weight)), share)
    }
}

/// The first member at which the sum of the weights so far exceeds `share` of their total.
fn at_share<I: Iterator<Item = (DirectorId, f64)>>(members: impl Fn() -> I, share: f64) -> Option<DirectorId> {
    let total: f64 = members().map(|(_, weight)| weight).sum();
    let mut rest = share * total;
    let mut chosen = None;
    for (director, weight) in members() {
        if weight <= 0.0 {
            continue;
        }
        chosen = Some(director);
        rest -= weight;
        if rest < 0.0 {
            break;
        }
    }
    chosen
}
