//! How one fetch of an old dialect tries backends: when one gives no connection, another member is tried.
//!
//! Each director decides what it offers next: round robin goes round once, fallback goes down its list, random chooses
//! again, up to `.retries` times in all (by default as often as it has members); hash and client do the same, with a share
//! computed from the previous one. When a director has nothing more to offer, the director above it goes on.
//! VCL 4 does not do this: a fetch fails with its backend, and VCL may retry.
//! *Limit:* [`DIRECTOR_TRIES_MAX`] steps per fetch. Compat: Varnish 2.0.6, 2.1.5 and 3.0.7.

use crate::backend::Backend;
use crate::director::choice::ResolveContext;
use crate::director::kind::DirectorKind;
use crate::director::table::Directors;
use crate::director::table::resolve::NoBackend;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use surface::limits::{DIRECTOR_DEPTH_MAX, DIRECTOR_TRIES_MAX};
use surface::vcl::Generation;
use vcl_run::value::DirectorId;

/// The position of a fetch. A new one starts at the director that VCL named.
#[derive(Debug, Default)]
pub struct Trail {
    named: Option<DirectorId>,
    /// The directors from the one that VCL named to the one that goes on.
    way: Vec<Station>,
    steps: usize,
}

/// A director on the way.
#[derive(Debug)]
struct Station {
    director: DirectorId,
    /// How many more members it may choose.
    left: usize,
    /// Where a fallback director goes on.
    place: usize,
    /// The share for the next choice by weight, after the first choice.
    share: Option<f64>,
}

impl Trail {
    /// The next backend to try. `named` is used only in the first call.
    ///
    /// # Errors
    /// VCL named no backend, or none is left.
    pub fn next(
        &mut self,
        directors: &Directors,
        named: Option<DirectorId>,
        context: &ResolveContext<'_>,
    ) -> Result<Arc<Backend>, NoBackend> {
        let known = match self.named {
            Some(known) => known,
            None => {
                let named = named.filter(|id| directors.exists(*id)).ok_or(NoBackend::None)?;
                self.named = Some(named);
                if let Some(backend) = self.enter(named, directors, context) {
                    return Ok(backend);
                }
                named
            }
        };
        self.go_on(directors, context).ok_or_else(|| NoBackend::Exhausted(directors.name(known).into_owned()))
    }

    fn go_on(&mut self, directors: &Directors, context: &ResolveContext<'_>) -> Option<Arc<Backend>> {
        while let Some(station) = self.way.last_mut() {
            if self.steps >= DIRECTOR_TRIES_MAX {
                return None;
            }
            self.steps += 1;
            match station.choose(directors, context) {
                None => {
                    self.way.pop();
                }
                Some(member) => {
                    if let Some(backend) = self.enter(member, directors, context) {
                        return Some(backend);
                    }
                }
            }
        }
        None
    }

    /// Goes to the chosen member: returns its backend, unless it is a director that can offer several.
    fn enter(&mut self, id: DirectorId, directors: &Directors, context: &ResolveContext<'_>) -> Option<Arc<Backend>> {
        let station = directors.director(id).and_then(|kind| Station::at(id, kind, directors, context));
        match station.filter(|_| self.way.len() <= DIRECTOR_DEPTH_MAX) {
            Some(station) => {
                self.way.push(station);
                None
            }
            None => directors.choose(id, context),
        }
    }
}

impl Station {
    /// `None` for a director that offers only one backend.
    fn at(
        director: DirectorId,
        kind: &DirectorKind,
        directors: &Directors,
        context: &ResolveContext<'_>,
    ) -> Option<Station> {
        let members = kind.members();
        let left = match kind {
            DirectorKind::RoundRobin(_) => {
                members.iter().filter(|member| directors.is_healthy_for(member.director, context)).count()
            }
            DirectorKind::Fallback(_) => members.len(),
            DirectorKind::Random(random) => random.retries().unwrap_or(members.len()),
            // Before 3.0, the first choice is made among all members, healthy or not; the others among the healthy ones.
            DirectorKind::Hash(hash) => {
                hash.retries().unwrap_or(members.len()) + usize::from(directors.generation() < Generation::V3)
            }
            DirectorKind::Shard(_)
            | DirectorKind::LeastConnections(_)
            | DirectorKind::Saint(_)
            | DirectorKind::Dns(_)
            | DirectorKind::Dynamic(_)
            | DirectorKind::Failing => return None,
        };
        Some(Station { director, left, place: 0, share: None })
    }

    /// The next member.
    fn choose(&mut self, directors: &Directors, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let kind = directors.director(self.director)?;
        self.left = self.left.checked_sub(1)?;
        match kind {
            DirectorKind::Fallback(fallback) => {
                let list = fallback.members.list();
                let healthy = |place: &usize| directors.is_healthy_for(list[*place].director, context);
                let place = (self.place..list.len()).find(healthy)?;
                self.place = place + 1;
                Some(list[place].director)
            }
            DirectorKind::Random(random) => {
                let share = self.share.map_or_else(|| context.random.next_fraction(), share_after);
                self.share = Some(share);
                random.members.choose_by_warmth(directors, context, share)
            }
            DirectorKind::Hash(hash) => {
                let is_first = self.share.is_none();
                let share = match self.share {
                    Some(share) if directors.generation() >= Generation::V3 => share_after(share),
                    Some(share) => share,
                    None => hash.share(context)?,
                };
                self.share = Some(share);
                if is_first && directors.generation() < Generation::V3 {
                    let first = hash.members.choose_among_all(share)?;
                    if directors.is_healthy_for(first, context) {
                        return Some(first);
                    }
                }
                hash.members.choose_by_weight(directors, context, share)
            }
            _ => kind.choose(self.director, directors, context),
        }
    }
}

/// The share for the next try, from four bytes of the digest of the previous share.
fn share_after(share: f64) -> f64 {
    let digest = Sha256::digest(share.to_le_bytes());
    f64::from(u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])) / 4_294_967_296.0
}
