//! Attempts of one fetch of an old dialect: when a backend gives no connection, another member is
//! tried.
//!
//! Each director decides its next offer: round robin makes one round, fallback proceeds down its
//! list, random chooses again, up to `.retries` times in all (by default one for each member); hash
//! and client do the same, with a share computed from the previous one. When a director has nothing
//! more to offer, the director above it continues. VCL 4 does not do this: a fetch fails with its
//! backend, and VCL may retry. *Limit:* [`DIRECTOR_TRIES_MAX`] steps per fetch. Compat: Varnish
//! 2.0.6, 2.1.5 and 3.0.7.

use crate::director::choice::ResolveContext;
use crate::director::interface::Progress;
use crate::director::kind::DirectorKind;
use crate::director::table::Directors;
use crate::director::table::resolve::NoBackend;
use crate::dns_names::attempts::Resolved;
use surface::limits::{DIRECTOR_DEPTH_MAX, DIRECTOR_TRIES_MAX};
use vcl_run::value::DirectorId;

/// The position of a fetch. A new one starts at the director that VCL named.
#[derive(Debug, Default)]
pub struct Trail {
    named: Option<DirectorId>,
    /// The directors from the one that VCL named to the one that continues.
    way: Vec<TrailStep>,
    steps: usize,
}

/// A director on the path.
#[derive(Debug)]
struct TrailStep {
    director: DirectorId,
    /// Number of further members it may choose.
    left: usize,
    progress: Progress,
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
    ) -> Result<Resolved, NoBackend> {
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

    fn go_on(&mut self, directors: &Directors, context: &ResolveContext<'_>) -> Option<Resolved> {
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

    /// Descends to the chosen member: returns its backend, unless it is a director that can offer
    /// several.
    fn enter(&mut self, id: DirectorId, directors: &Directors, context: &ResolveContext<'_>) -> Option<Resolved> {
        let station = directors.director(id).and_then(|kind| TrailStep::at(id, kind, directors, context));
        match station.filter(|_| self.way.len() <= DIRECTOR_DEPTH_MAX) {
            Some(station) => {
                self.way.push(station);
                None
            }
            None => directors.choose(id, context),
        }
    }
}

impl TrailStep {
    /// `None` for a director that offers only one backend.
    fn at(
        director: DirectorId,
        kind: &DirectorKind,
        directors: &Directors,
        context: &ResolveContext<'_>,
    ) -> Option<TrailStep> {
        let left = kind.tries(directors, context, directors.generation())?;
        Some(TrailStep { director, left, progress: Progress::default() })
    }

    /// The next member.
    fn choose(&mut self, directors: &Directors, context: &ResolveContext<'_>) -> Option<DirectorId> {
        let kind = directors.director(self.director)?;
        self.left = self.left.checked_sub(1)?;
        kind.choose_next(self.director, &mut self.progress, directors, context, directors.generation())
    }
}
