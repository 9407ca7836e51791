//! A domain: a host and port, and the backends at its present addresses, which are used in turn.
//!
//! ```text
//! made ─first lookup (or failure)─▶ looked up ⟲ lookups ─unused for too long, or no room─▶ dropped
//! ```

use crate::backend::Backend;
use crate::dns_names::settings::{MakerSettings, Speaker};
use crate::health::Health;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::watch;
use vcl_run::program::Endpoint;
use vcl_run::value::DirectorId;

/// Longest wait for a first lookup, seconds.
const FIRST_LOOKUP_SECONDS_MAX: f64 = 86_400.0;

/// The stages in the life of a domain or service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Never looked up.
    New,
    /// Looked up at least once, with or without success.
    LookedUp,
    /// No longer in use.
    GivenUp,
}

/// The common state of domains and services: the time of last use, and the wait for the first
/// lookup.
#[derive(Debug)]
pub(crate) struct Life {
    stage: watch::Sender<Stage>,
    /// Seconds since 1970, as bits.
    last_used: AtomicU64,
    first_lookup: Duration,
}

impl Life {
    pub(crate) fn new(settings: &MakerSettings, now: f64) -> Life {
        let seconds = settings.first_lookup_timeout.clamp(0.0, FIRST_LOOKUP_SECONDS_MAX);
        Life {
            stage: watch::Sender::new(Stage::New),
            last_used: AtomicU64::new(now.to_bits()),
            first_lookup: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        }
    }

    pub(crate) fn use_at(&self, now: f64) {
        if now > self.last_used() {
            self.last_used.store(now.to_bits(), Relaxed);
        }
    }

    pub(crate) fn last_used(&self) -> f64 {
        f64::from_bits(self.last_used.load(Relaxed))
    }

    pub(crate) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    pub(crate) fn looked_up(&self) {
        self.stage.send_if_modified(|stage| {
            let is_first = *stage == Stage::New;
            if is_first {
                *stage = Stage::LookedUp;
            }
            is_first
        });
    }

    pub(crate) fn give_up(&self) {
        self.stage.send_replace(Stage::GivenUp);
    }

    /// Returns when the first lookup is done, or has taken too long.
    pub(crate) async fn ready(&self) {
        let mut watched = self.stage.subscribe();
        let _ = tokio::time::timeout(self.first_lookup, watched.wait_for(|stage| *stage != Stage::New)).await;
    }

    /// Returns when the name is dropped.
    pub(crate) async fn given_up(&self) {
        let mut watched = self.stage.subscribe();
        let _ = watched.wait_for(|stage| *stage == Stage::GivenUp).await;
    }
}

/// A domain's reference to a backend.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) id: DirectorId,
    pub(crate) backend: Arc<Backend>,
    /// Number of consecutive lookups that have not returned its address.
    pub(crate) missing: u32,
}

#[derive(Debug, Default)]
struct State {
    references: Vec<Reference>,
    /// The index of the backend that was used last.
    turn: usize,
}

/// A host and port.
#[derive(Debug)]
pub struct Domain {
    id: DirectorId,
    name: String,
    pub(crate) host: String,
    pub(crate) port: String,
    /// The name in the PROXY header for `via`; empty = none.
    pub(crate) authority: String,
    pub(crate) settings: Arc<MakerSettings>,
    health: Health,
    pub(crate) life: Life,
    state: Mutex<State>,
}

impl Domain {
    pub(crate) fn new(
        id: DirectorId,
        settings: &Arc<MakerSettings>,
        host: &str,
        port: &str,
        authority: &str,
        now: f64,
    ) -> Domain {
        Domain {
            id,
            name: format!("{}({host}:{port})", settings.name),
            host: host.to_owned(),
            port: port.to_owned(),
            authority: authority.to_owned(),
            settings: Arc::clone(settings),
            health: Health::new(now),
            life: Life::new(settings, now),
            state: Mutex::default(),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> DirectorId {
        self.id
    }

    /// `object(host:port)`
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

    /// True if it has never been looked up.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.life.stage() == Stage::New
    }

    /// Returns when the first lookup is done, or has taken longer than `first_lookup_timeout`.
    pub async fn ready(&self) {
        self.life.ready().await;
    }

    /// The backends of the last answer.
    #[must_use]
    pub fn backends(&self) -> Vec<Arc<Backend>> {
        let state = self.state.lock();
        let current = state.references.iter().filter(|reference| reference.missing == 0);
        current.map(|reference| Arc::clone(&reference.backend)).collect()
    }

    /// The addresses of the last answer.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let at = |reference: &Reference| match reference.backend.definition().endpoint {
            Endpoint::Ip { v4, v6 } => v4.or(v6),
            Endpoint::None | Endpoint::Unix(_) => None,
        };
        self.with_references(|references| {
            references.iter().filter(|reference| reference.missing == 0).filter_map(at).collect()
        })
    }

    /// Runs `with` on all references, including those whose address is no longer in the answer.
    pub(crate) fn with_references<R>(&self, with: impl FnOnce(&mut Vec<Reference>) -> R) -> R {
        with(&mut self.state.lock().references)
    }

    /// The next backend in turn for which `is_healthy` holds, preferably one whose last connect did
    /// not fail ([`Backend::is_unreachable`]). If there is none, the next in turn;
    /// none in a `dns` director.
    pub(crate) fn choose(&self, is_healthy: impl Fn(&Arc<Backend>) -> bool) -> Option<Arc<Backend>> {
        if self.life.stage() == Stage::GivenUp {
            return None;
        }
        let mut state = self.state.lock();
        let current: Vec<Reference> =
            state.references.iter().filter(|reference| reference.missing == 0).cloned().collect();
        if current.is_empty() {
            return None;
        }
        let turns = (1..=current.len()).map(|step| (state.turn + step) % current.len());
        let whose_turn = || match self.settings.speaker {
            Speaker::Vmod => turns.clone().next(),
            Speaker::Block => None,
        };
        let healthy = || turns.clone().filter(|turn| is_healthy(&current[*turn].backend));
        let reached = healthy().find(|turn| !current[*turn].backend.is_unreachable());
        let turn = reached.or_else(|| healthy().next()).or_else(whose_turn)?;
        state.turn = turn;
        Some(Arc::clone(&current[turn].backend))
    }

    /// A healthy backend of the last answer that is not among those `tried`, preferably one whose
    /// last connect did not fail. The turn does not change.
    pub(crate) fn another(
        &self,
        tried: &[Arc<Backend>],
        is_healthy: impl Fn(&Arc<Backend>) -> bool,
    ) -> Option<Arc<Backend>> {
        let mut others = self.backends();
        others.retain(|backend| !tried.iter().any(|tried| Arc::ptr_eq(tried, backend)) && is_healthy(backend));
        let reachable = others.iter().position(|backend| !backend.is_unreachable());
        (!others.is_empty()).then(|| others.swap_remove(reachable.unwrap_or(0)))
    }

    /// True if any backend is healthy, and the latest change among those that were checked.
    pub(crate) fn state(&self) -> (bool, f64) {
        let mut changed = self.health.changed();
        for backend in self.backends() {
            changed = changed.max(backend.health().changed());
            if backend.is_healthy() {
                return (true, changed);
            }
        }
        (false, changed)
    }
}
