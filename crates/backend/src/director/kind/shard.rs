//! Shard: chooses a member by consistent hashing, so that the same key leads to the same member,
//! and few keys move when members are added or removed.
//!
//! ```text
//! add, remove, clear ──(pending, per task)──▶ reconfigure ──▶ Configuration: members and ring
//! arguments ▷ task's parameters ▷ associated set ▷ defaults ──▶ Parameters ──▶ choose
//! ```
//!
//! A choice uses the configuration that it started with; a reconfiguration makes a new one. Log
//! records go to [`Notes`], since directors have no access to the log. Next files: `shard/ring.rs`,
//! `shard/choose.rs`. Compat: points, order and texts as in Varnish 7.1.1, except that a ring of
//! just two points is searched like any other.

mod choose;
mod ring;

pub use ring::Change;

use crate::details::{Details, ShardMemberFacts};
use crate::director::choice::shard_parameters::{ParameterSet, Parameters, TaskParameters};
use crate::director::choice::{Candidates, Member, Notes, ResolveContext};
use crate::director::interface::Director;
use ring::Configuration;
use shm::locks::ClassRwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use surface::counter::LockClass;
use vcl_run::value::DirectorId;

/// Replicas of a member on the ring, unless VCL sets another number.
pub const DEFAULT_REPLICAS: i64 = 67;

/// `.debug()`: log each lookup.
const DEBUG_LOOKUP: u32 = 1;
/// `.debug()`: log the ring when it is made.
const DEBUG_RING: u32 = 2;
/// `.debug()`: log the effect of ramp-up and warm-up.
const DEBUG_RAMP: u32 = 4;

/// The director.
#[derive(Debug)]
pub struct Shard {
    name: String,
    configuration: ClassRwLock<Arc<Configuration>>,
    associated: ClassRwLock<Option<Arc<ParameterSet>>>,
    debug: AtomicU32,
}

impl Shard {
    /// A director without members. `name` is its VCL name.
    #[must_use]
    pub fn new(name: &str) -> Shard {
        Shard {
            name: name.to_owned(),
            configuration: ClassRwLock::new(LockClass::Director, Arc::default()),
            associated: ClassRwLock::new(LockClass::Director, None),
            debug: AtomicU32::new(0),
        }
    }

    /// The VCL name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn configuration(&self) -> Arc<Configuration> {
        Arc::clone(&self.configuration.read())
    }

    fn debugs(&self, what: u32) -> bool {
        self.debug.load(Relaxed) & what != 0
    }

    /// `.debug()`: selects the debug records to write.
    pub fn set_debug(&self, flags: i64) {
        self.debug.store(flags as u32, Relaxed);
    }

    /// `.associate()`: sets the parameters for calls that give none; `None` = the defaults.
    pub fn associate(&self, set: Option<Arc<ParameterSet>>) {
        *self.associated.write() = set;
    }

    /// `.set_warmup()`: sets the probability that the next member is used instead of the chosen
    /// one; in [0, 1).
    pub fn set_warmup(&self, probability: f64) {
        let mut held = self.configuration.write();
        *held = Arc::new(Configuration { warmup: probability, ..Configuration::clone(&held) });
    }

    /// `.set_rampup()`: sets the time, in seconds, during which a member that became healthy gets
    /// fewer requests.
    pub fn set_rampup(&self, seconds: f64) {
        let mut held = self.configuration.write();
        *held = Arc::new(Configuration { rampup: seconds.max(0.0), ..Configuration::clone(&held) });
    }

    /// Applies changes in order and makes a new ring; does nothing if there are no changes. A
    /// member that leads back to this director (`own`) is left out. Returns false if the director
    /// has no members afterwards.
    pub(crate) fn reconfigure(
        &self,
        own: DirectorId,
        candidates: &dyn Candidates,
        changes: &[Change],
        replicas: u32,
        notes: &Notes,
    ) -> bool {
        if changes.is_empty() {
            return true;
        }
        let mut held = self.configuration.write();
        let mut hosts = held.hosts.clone();
        ring::apply(&mut hosts, changes, replicas, candidates, |text| notes.notice(&self.name, text));
        hosts.retain(|host| {
            let leads_back = candidates.leads_to(host.director, own);
            if leads_back {
                let name = candidates.name(host.director);
                notes.error(&self.name, format_args!("backend {name} leads back to it and cannot be added"));
            }
            !leads_back
        });
        let points = match ring::points(&hosts, candidates) {
            Ok(points) => points,
            Err(count) => {
                notes.error(&self.name, format_args!(".reconfigure() {count} points are too many"));
                return false;
            }
        };
        *held = Arc::new(Configuration { hosts, points, warmup: held.warmup, rampup: held.rampup });
        if held.hosts.is_empty() {
            notes.error(&self.name, format_args!(".reconfigure() no backends"));
            return false;
        }
        if self.debugs(DEBUG_RING) {
            for (index, point) in held.points.iter().enumerate() {
                notes.debug(format_args!(
                    "hashcircle[{index:5}] = {{point = {:8x}, host = {:2}}}\n",
                    point.point, point.host
                ));
            }
        }
        true
    }

    /// The parameters of a choice: those of the task, else of the associated set, else the
    /// defaults.
    #[must_use]
    pub fn parameters(&self, own: DirectorId, task: Option<&TaskParameters>) -> Parameters {
        self.layered(own, task).completed()
    }

    /// As [`Shard::parameters`], overridden by the arguments of a call; `set` replaces the set that
    /// would apply otherwise.
    #[must_use]
    pub fn parameters_below(
        &self,
        arguments: &Parameters,
        set: Option<&ParameterSet>,
        own: DirectorId,
        task: Option<&TaskParameters>,
    ) -> Parameters {
        let below = set.map_or_else(|| self.layered(own, task), ParameterSet::values);
        arguments.over(&below).completed()
    }

    fn layered(&self, own: DirectorId, task: Option<&TaskParameters>) -> Parameters {
        let associated = self.associated.read().clone();
        if let Some(layer) = task.and_then(|task| task.of_director(own)) {
            return match &layer.set {
                Some(set) => layer.values.over(&set.values()),
                None => match &associated {
                    Some(set) => layer.values.over(&set.values_in(task)),
                    None => layer.values.clone(),
                },
            };
        }
        associated.map_or_else(Parameters::default, |set| set.values_in(task))
    }
}

impl Director for Shard {
    fn type_name(&self) -> &'static str {
        "shard"
    }

    /// In the order of the hosts on the ring.
    fn members(&self) -> Arc<[Member]> {
        let configuration = self.configuration();
        configuration.hosts.iter().map(|host| Member { director: host.director, weight: 1.0 }).collect()
    }

    /// Uses the parameters of the task.
    fn choose(&self, own: DirectorId, candidates: &dyn Candidates, context: &ResolveContext<'_>) -> Option<DirectorId> {
        self.choose(candidates, &self.parameters(own, context.shard), context)
    }

    fn details(&self, candidates: &dyn Candidates, now: f64) -> Details {
        let configuration = self.configuration();
        let facts = |(place, host): (usize, &ring::Host)| {
            let rampup = configuration.rampup_of(place);
            let (is_healthy, changed) = candidates.health(host.director);
            let since = now - changed;
            let (ramped, remaining) = match is_healthy {
                false => (0.0, 0.0),
                true if since < rampup => (since / rampup, rampup - since),
                true => (1.0, 0.0),
            };
            let name = candidates.name(host.director).into_owned();
            let ident = host.ident.as_deref().map_or_else(|| name.clone(), str::to_owned);
            ShardMemberFacts { name, ident, is_healthy, ramped, remaining }
        };
        Details::Shard {
            warmup: configuration.warmup,
            rampup: configuration.rampup,
            members: configuration.hosts.iter().enumerate().map(facts).collect(),
        }
    }
}
