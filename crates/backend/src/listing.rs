//! What operators can learn about backends and directors, and which of them a pattern selects. Facts only: the code that
//! answers the CLI words them.

use crate::backend::Backend;
use crate::director::choice::Member;
use crate::director::kind::DirectorKind;
use crate::director::kind::shard::{ListedMember, Shard};
use crate::director::table::Directors;
use crate::dns_names::item;
use crate::dns_names::settings::MakerSettings;
use crate::health::AdminHealth;
use crate::probe::window::Window;
use crate::trust::{Trust, TrustFacts};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use vcl_run::value::DirectorId;

/// A backend, director or name that is looked up.
#[derive(Clone, Debug)]
pub struct Listed {
    /// `vcl.name`
    pub name: String,
    /// The word for its kind.
    pub kind: &'static str,
    /// The operator's setting; `Healthy` instead of `Auto` if neither a probe nor members decide.
    pub admin: AdminHealth,
    /// Good checks in the probe's window, or healthy members.
    pub good: usize,
    /// All checks in the window, or all members.
    pub all: usize,
    /// Whether it is healthy; ignores what the operator has set for it.
    pub is_healthy: bool,
    /// When that changed last, seconds since 1970.
    pub changed: f64,
    /// How a backend is treated, if more was asked for and its VCL says anything about that.
    pub care: Option<CareFacts>,
    /// More, if it was asked for.
    pub details: Option<Details>,
}

/// How a backend is treated that fails, starts slowly, is waited for or moves.
#[derive(Clone, PartialEq, Debug)]
pub struct CareFacts {
    /// What its fetches say about it; `None` if they never set it aside.
    pub trust: Option<TrustFacts>,
    /// The share of its load that it gets; `None` if it does not start slowly.
    pub warmth: Option<f64>,
    /// The name that is followed, and the addresses in use.
    pub follows: Option<(String, Vec<SocketAddr>)>,
}

impl CareFacts {
    fn of(backend: &Backend, now: f64) -> Option<CareFacts> {
        let definition = backend.definition();
        let facts = CareFacts {
            trust: backend.trust().map(Trust::facts),
            warmth: (definition.slow_start > 0.0).then(|| backend.warmth(now)),
            follows: definition.follows.as_ref().map(|name| (name.host.clone(), backend.addresses())),
        };
        let is_any = facts.trust.is_some() || facts.warmth.is_some() || facts.follows.is_some();
        is_any.then_some(facts)
    }
}

/// More facts about one of them.
#[derive(Clone, Debug)]
pub enum Details {
    /// Nothing.
    Nothing,
    /// A hash director: which member is used depends on what is hashed.
    Hash,
    /// A backend with a probe.
    Probe(Window),
    /// A name that is looked up.
    Name {
        /// The settings of its object.
        settings: Arc<MakerSettings>,
        /// Its backends.
        backends: Vec<MemberFacts>,
    },
    /// A director whose members take turns.
    RoundRobin(Vec<MemberFacts>),
    /// A fallback director.
    Fallback {
        /// It keeps its choice.
        is_sticky: bool,
        /// The position of the member that was chosen last.
        current: usize,
        /// Its members.
        members: Vec<MemberFacts>,
    },
    /// A director with weights.
    Weighted {
        /// Total weight of the healthy members.
        total: f64,
        /// Its members.
        members: Vec<MemberFacts>,
    },
    /// A shard director.
    Shard {
        /// How often the next member is used instead of the chosen one.
        warmup: f64,
        /// Seconds of ramp-up for members that set none.
        rampup: f64,
        /// Its members.
        members: Vec<ShardMemberFacts>,
    },
}

/// A member of a director, or a backend of a name.
#[derive(Clone, PartialEq, Debug)]
pub struct MemberFacts {
    /// The VCL name.
    pub name: String,
    /// Whether it can be used.
    pub is_healthy: bool,
    /// Its weight; 0 while it is sick.
    pub weight: f64,
}

/// A member of a shard director.
#[derive(Clone, PartialEq, Debug)]
pub struct ShardMemberFacts {
    /// The VCL name.
    pub name: String,
    /// The text from which its points are made.
    pub ident: String,
    /// Whether it can be used.
    pub is_healthy: bool,
    /// The completed part of its ramp-up, 0 to 1; 0 while it is sick.
    pub ramped: f64,
    /// Seconds of ramp-up that remain.
    pub remaining: f64,
}

/// A backend or director of one VCL.
#[derive(Clone, Copy)]
struct Item<'a> {
    directors: &'a Directors,
    id: DirectorId,
}

impl<'a> Item<'a> {
    fn name(&self) -> Cow<'a, str> {
        self.directors.name(self.id)
    }

    fn display_name(&self) -> String {
        format!("{}.{}", self.directors.vcl_name(), self.name())
    }

    fn backend(&self) -> Option<Arc<Backend>> {
        self.directors.any_backend(self.id)
    }

    fn window(&self) -> Option<Window> {
        self.backend().and_then(|backend| backend.probe().map(|probe| probe.window()))
    }

    /// The name that is looked up; `None` for backends themselves.
    fn named(&self) -> Option<item::Item> {
        self.directors.dns_names().get(self.id).filter(|item| item.backends().is_some())
    }

    fn director(&self) -> Option<&'a DirectorKind> {
        self.directors.director(self.id)
    }

    fn facts(&self, with_details: bool, now: f64) -> Listed {
        let (good, all) = self.counts();
        let (is_healthy, changed) = self.directors.unforced_health(self.id, now);
        Listed {
            name: self.display_name(),
            kind: self.kind(),
            admin: self.admin(),
            good,
            all,
            is_healthy,
            changed,
            care: self.backend().filter(|_| with_details).and_then(|backend| CareFacts::of(&backend, now)),
            details: with_details.then(|| self.details(now)),
        }
    }

    /// Whether a probe or members decide: backends without a probe and hash directors are always healthy.
    fn is_judged(&self) -> bool {
        match (self.backend(), self.director()) {
            (Some(backend), _) => backend.probe().is_some() || backend.trust().is_some(),
            (None, Some(DirectorKind::Hash(_) | DirectorKind::Dns(_))) => false,
            (None, Some(_)) => true,
            (None, None) => self.named().is_some(),
        }
    }

    fn admin(&self) -> AdminHealth {
        match self.directors.own_health(self.id).map_or(AdminHealth::Auto, |health| health.admin()) {
            AdminHealth::Auto if !self.is_judged() => AdminHealth::Healthy,
            admin => admin,
        }
    }

    /// The numbers of good and of all checks in the probe's window, or members of a director.
    fn counts(&self) -> (usize, usize) {
        if !self.is_judged() || matches!(self.director(), Some(DirectorKind::Saint(_))) {
            return (0, 0);
        }
        if let Some(window) = self.window() {
            return (window.good() as usize, window.size() as usize);
        }
        if let Some(backends) = self.named().and_then(|item| item.backends()) {
            return (backends.iter().filter(|backend| backend.is_healthy()).count(), backends.len());
        }
        let members = self.director().map_or_else(|| Arc::from([]), |director| director.members());
        let good = members.iter().filter(|member| self.directors.is_healthy(member.director)).count();
        (good, members.len())
    }

    fn kind(&self) -> &'static str {
        match (self.director(), self.named()) {
            (Some(director), _) => director.type_name(),
            (None, Some(_)) => "dynamic",
            (None, None) => "backend",
        }
    }

    fn details(&self, now: f64) -> Details {
        if let Some(window) = self.window() {
            return Details::Probe(window);
        }
        if let Some((settings, backends)) = self.named().and_then(|item| item.settings().zip(item.backends())) {
            let facts = |backend: &Arc<Backend>| {
                let is_healthy = backend.is_healthy();
                MemberFacts { name: backend.name().to_owned(), is_healthy, weight: f64::from(is_healthy) }
            };
            return Details::Name { settings, backends: backends.iter().map(facts).collect() };
        }
        match self.director() {
            Some(DirectorKind::Hash(_)) => Details::Hash,
            Some(DirectorKind::RoundRobin(director)) => Details::RoundRobin(self.members(&director.members.list())),
            Some(DirectorKind::Fallback(director)) => Details::Fallback {
                is_sticky: director.is_sticky(),
                current: director.current(),
                members: self.members(&director.members.list()),
            },
            Some(kind @ (DirectorKind::Random(_) | DirectorKind::LeastConnections(_))) => {
                let members = self.members(&kind.members());
                Details::Weighted { total: members.iter().fold(0.0, |total, member| total + member.weight), members }
            }
            Some(DirectorKind::Shard(shard)) => Details::Shard {
                warmup: shard.warmup(),
                rampup: shard.rampup(),
                members: self.shard_members(shard, now),
            },
            Some(DirectorKind::Saint(_) | DirectorKind::Dns(_) | DirectorKind::Dynamic(_) | DirectorKind::Failing)
            | None => Details::Nothing,
        }
    }

    fn members(&self, members: &[Member]) -> Vec<MemberFacts> {
        let facts = |member: &Member| {
            let is_healthy = self.directors.is_healthy(member.director);
            let name = self.directors.name(member.director).into_owned();
            MemberFacts { name, is_healthy, weight: if is_healthy { member.weight } else { 0.0 } }
        };
        members.iter().map(facts).collect()
    }

    fn shard_members(&self, shard: &Shard, now: f64) -> Vec<ShardMemberFacts> {
        let facts = |member: &ListedMember| {
            let (is_healthy, changed) = self.directors.health(member.director);
            let since = now - changed;
            let (ramped, remaining) = match is_healthy {
                false => (0.0, 0.0),
                true if since < member.rampup => (since / member.rampup, member.rampup - since),
                true => (1.0, 0.0),
            };
            let name = self.directors.name(member.director).into_owned();
            let ident = member.ident.clone().unwrap_or_else(|| name.clone());
            ShardMemberFacts { name, ident, is_healthy, ramped, remaining }
        };
        shard.listed().iter().map(facts).collect()
    }
}

fn items<'a>(vcls: &[&'a Directors]) -> impl Iterator<Item = Item<'a>> {
    vcls.iter().flat_map(|&directors| directors.ids().map(move |id| Item { directors, id }))
}

/// The items that a pattern selects: no pattern = all of the active VCL; without a dot = of the active VCL; else of any VCL.
fn matching<'a>(wanted: Option<&str>, vcls: &[&'a Directors], active: Option<&str>) -> Vec<Item<'a>> {
    let full = match wanted {
        Some(wanted) if wanted.contains('.') => wanted.to_owned(),
        other => format!("{}.{}", active.unwrap_or(""), other.filter(|name| !name.is_empty()).unwrap_or("*")),
    };
    items(vcls)
        .filter(|item| pattern::matches(full.as_bytes(), item.display_name().as_bytes(), pattern::Flags::default()))
        .collect()
}

/// All items that a pattern selects; `None` = all of the active VCL. `vcls` are the loaded VCLs, `active` is the name of the
/// active one, `now` is in seconds since 1970.
#[must_use]
pub fn list(
    wanted: Option<&str>,
    vcls: &[&Directors],
    active: Option<&str>,
    with_details: bool,
    now: f64,
) -> Vec<Listed> {
    matching(wanted, vcls, active).iter().map(|item| item.facts(with_details, now)).collect()
}

/// What the operator has set, by the names `vcl.name`.
#[must_use]
pub fn admins(vcls: &[&Directors]) -> Vec<(String, AdminHealth)> {
    let admin = |item: &Item<'_>| item.directors.own_health(item.id).map_or(AdminHealth::Auto, |health| health.admin());
    items(vcls)
        .map(|item| (admin(&item), item))
        .filter(|(admin, _)| *admin != AdminHealth::Auto)
        .map(|(admin, item)| (item.display_name().to_string(), admin))
        .collect()
}

/// Stores the operator's setting for all items that a pattern selects; returns their number. An empty pattern selects
/// nothing here, because this changes something and a script's variable may be unset.
pub fn set_health(pattern: &str, admin: AdminHealth, vcls: &[&Directors], active: Option<&str>, now: f64) -> usize {
    let items = if pattern.is_empty() { Vec::new() } else { matching(Some(pattern), vcls, active) };
    for item in &items {
        if let Some(health) = item.directors.own_health(item.id) {
            health.set_admin(admin, now);
        }
    }
    items.len()
}

#[cfg(test)]
mod tests;
