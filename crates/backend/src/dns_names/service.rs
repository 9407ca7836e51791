//! A service: a name of SRV records, and the domains of their targets. It uses the lowest priority
//! that has a healthy target, and chooses among those targets by weight. If none is healthy, the
//! last target of the lowest priority is used.

use crate::dns_names::domain::{Domain, Life, Stage};
use crate::dns_names::settings::MakerSettings;
use crate::health::Health;
use parking_lot::RwLock;
use std::sync::Arc;
use vcl_run::value::DirectorId;

/// A target: its domain, and the priority and weight of its record.
#[derive(Clone, Debug)]
pub(crate) struct ServiceTarget {
    pub(crate) domain: Arc<Domain>,
    pub(crate) priority: u16,
    pub(crate) weight: u16,
}

/// A service: a name of SRV records.
#[derive(Debug)]
pub struct Service {
    id: DirectorId,
    name: String,
    pub(crate) service: String,
    pub(crate) settings: Arc<MakerSettings>,
    health: Health,
    pub(crate) life: Life,
    /// By priority.
    targets: RwLock<Arc<[ServiceTarget]>>,
}

impl Service {
    pub(crate) fn new(id: DirectorId, settings: &Arc<MakerSettings>, service: &str, now: f64) -> Service {
        Service {
            id,
            name: format!("{}({service})", settings.name),
            service: service.to_owned(),
            settings: Arc::clone(settings),
            health: Health::new(now),
            life: Life::new(settings, now),
            targets: RwLock::new(Arc::from([])),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> DirectorId {
        self.id
    }

    /// `object(service)`
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings of its object.
    #[must_use]
    pub fn settings(&self) -> &MakerSettings {
        &self.settings
    }

    /// Its health, which the operator may set.
    #[must_use]
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Time of its last use, seconds since 1970.
    #[must_use]
    pub fn last_used(&self) -> f64 {
        self.life.last_used()
    }

    /// True if it or one of its targets has never been looked up.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.life.stage() == Stage::New || self.targets().iter().any(|target| target.domain.is_new())
    }

    /// Returns when the first lookups of the name and of its targets are done, or have taken too
    /// long.
    pub async fn ready(&self) {
        self.life.ready().await;
        for target in self.targets().iter() {
            target.domain.ready().await;
        }
    }

    pub(crate) fn targets(&self) -> Arc<[ServiceTarget]> {
        Arc::clone(&self.targets.read())
    }

    pub(crate) fn set_targets(&self, mut targets: Vec<ServiceTarget>) {
        targets.sort_by_key(|target| target.priority);
        *self.targets.write() = targets.into();
    }

    /// The domains of its targets.
    #[must_use]
    pub fn domains(&self) -> Vec<Arc<Domain>> {
        self.targets().iter().map(|target| Arc::clone(&target.domain)).collect()
    }

    /// The domain for this fetch; `share` is a random number in [0, 1).
    pub(crate) fn choose(&self, share: f64) -> Option<Arc<Domain>> {
        if self.life.stage() == Stage::GivenUp {
            return None;
        }
        let targets = self.targets();
        for group in targets.chunk_by(|one, other| one.priority == other.priority) {
            let healthy: Vec<&ServiceTarget> = group.iter().filter(|target| target.domain.state().0).collect();
            // Targets of weight 0 get a small share, as RFC 2782 requires.
            let weight = |target: &ServiceTarget| f64::from(target.weight).max(0.01);
            let mut rest = share * healthy.iter().map(|target| weight(target)).sum::<f64>();
            for target in &healthy {
                rest -= weight(target);
                if rest < 0.0 {
                    return Some(Arc::clone(&target.domain));
                }
            }
            if let Some(last) = healthy.last() {
                return Some(Arc::clone(&last.domain));
            }
        }
        let lowest = targets.chunk_by(|one, other| one.priority == other.priority).next()?;
        lowest.last().map(|target| Arc::clone(&target.domain))
    }

    /// True if any target is healthy, and the latest change among those that were checked.
    pub(crate) fn state(&self) -> (bool, f64) {
        let mut changed = self.health.changed();
        for target in self.targets().iter() {
            let (healthy, since) = target.domain.state();
            changed = changed.max(since);
            if healthy {
                return (true, changed);
            }
        }
        (false, changed)
    }
}
