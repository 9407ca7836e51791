//! The choice of a shard director: it walks around the ring, from the point of the key, over hosts
//! that it has not visited.
//!
//! A choice may go to the next healthy host instead: while the chosen host ramps up after it became
//! healthy or, at random, to keep the next host warm.

use super::ring::Configuration;
use super::{DEBUG_LOOKUP, DEBUG_RAMP, Shard};
use crate::director::choice::shard_parameters::{Parameters, Wanted};
use crate::director::choice::{Candidates, ResolveContext};
use vcl_run::value::DirectorId;

/// A visited host, and the time since which its health is unchanged.
#[derive(Clone, Copy)]
struct Seen {
    host: usize,
    changed: f64,
}

/// A walk around the ring.
struct Walk<'a> {
    configuration: &'a Configuration,
    candidates: &'a dyn Candidates,
    context: &'a ResolveContext<'a>,
    place: usize,
    picked: Vec<bool>,
    picked_count: usize,
    previous: Option<Seen>,
    last: Option<Seen>,
}

impl Walk<'_> {
    /// Moves to the next host after `skip` others; with `healthy`, only healthy hosts count. `None`
    /// if none is left.
    fn next(&mut self, mut skip: usize, healthy: bool) -> Option<Seen> {
        while self.picked_count < self.configuration.hosts.len() {
            let host = self.configuration.points[self.place].host as usize;
            if !std::mem::replace(&mut self.picked[host], true) {
                self.picked_count += 1;
                let director = self.configuration.hosts[host].director;
                let changed = self.candidates.health(director).1;
                let is_healthy = self.candidates.is_healthy_for(director, self.context);
                let seen = Seen { host, changed };
                if is_healthy || !healthy {
                    if skip == 0 {
                        if self.last.is_some() {
                            self.previous = self.last;
                        }
                        self.last = Some(seen);
                        return Some(seen);
                    }
                    skip -= 1;
                    if is_healthy {
                        self.previous = Some(seen);
                    }
                }
            }
            self.place = (self.place + 1) % self.configuration.points.len();
        }
        None
    }
}

impl Shard {
    /// The member for these parameters, which must be complete ([`Parameters::completed`]); `None`
    /// if none can be used.
    #[must_use]
    pub fn choose(
        &self,
        candidates: &dyn Candidates,
        parameters: &Parameters,
        context: &ResolveContext<'_>,
    ) -> Option<DirectorId> {
        let configuration = self.configuration();
        if configuration.hosts.is_empty() || configuration.points.is_empty() {
            context.notes.error(&self.name, format_args!("no backends"));
            return None;
        }
        let key = parameters.by.map_or(0, |by| context.shard_key(by));
        let chosen = self.walk(&configuration, candidates, parameters, key, context)?;
        configuration.hosts.get(chosen).map(|host| host.director)
    }

    fn walk(
        &self,
        configuration: &Configuration,
        candidates: &dyn Candidates,
        parameters: &Parameters,
        key: u32,
        context: &ResolveContext<'_>,
    ) -> Option<usize> {
        let most = configuration.hosts.len() - 1;
        let asked = usize::try_from(parameters.alt.unwrap_or(0)).unwrap_or(usize::MAX);
        if asked > most {
            context.notes.error(&self.name, format_args!("parameter alt={asked} limited to {most}"));
        }
        let alternatives = asked.min(most);
        let healthy = parameters.healthy.unwrap_or(Wanted::Chosen);
        let rampup = parameters.rampup.unwrap_or(true);
        let place = configuration.lookup(key);
        if self.debugs(DEBUG_LOOKUP) {
            let host = configuration.points[place].host;
            context.notes.debug(format_args!("lookup key {key:x} idx {place} host {host}"));
        }
        let mut walk = Walk {
            configuration,
            candidates,
            context,
            place,
            picked: vec![false; configuration.hosts.len()],
            picked_count: 0,
            previous: None,
            last: None,
        };
        if alternatives > 0 && walk.next(alternatives - 1, healthy == Wanted::All).is_none() {
            return walk.previous.map(|seen| seen.host);
        }
        let Some(chosen) = walk.next(0, healthy != Wanted::Ignore) else {
            return walk.previous.map(|seen| seen.host);
        };
        let warmup = parameters.warmup.filter(|asked| *asked != -1.0).unwrap_or(configuration.warmup);
        if alternatives > 0 || healthy == Wanted::Ignore || (!rampup && warmup == 0.0) {
            return Some(chosen.host);
        }
        let Some(alternative) = walk.next(0, true) else { return Some(chosen.host) };
        let since = |seen: Seen| context.now - seen.changed;
        let ramp = |seen: Seen| configuration.rampup_of(seen.host);
        if self.debugs(DEBUG_RAMP) {
            for (word, seen) in [("chosen", chosen), ("alt", alternative)] {
                let (host, rampup, changed) = (seen.host, ramp(seen), since(seen));
                context.notes.debug(format_args!("{word} host {host} rampup {rampup:.6} changed {changed:.6}"));
            }
        }
        let stays = if since(chosen) < ramp(chosen) {
            !rampup
                || since(alternative) < ramp(alternative)
                || context.random.next_real() * ramp(chosen) < since(chosen)
        } else {
            warmup == 0.0 || context.random.next_real() > warmup
        };
        Some(if stays { chosen.host } else { alternative.host })
    }
}
