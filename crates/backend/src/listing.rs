//! Facts about backends and directors for operators, and their selection by a pattern. Wording is
//! left to the code that answers the CLI.

pub use crate::details::{Details, MemberFacts, ShardMemberFacts};

use crate::backend::Backend;
use crate::breaker::{Breaker, BreakerFacts};
use crate::director::kind::DirectorKind;
use crate::director::table::Directors;
use crate::dns_names::item;
use crate::health::AdminHealth;
use crate::probe::window::Window;
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
    /// True if it is healthy; ignores the operator's setting for it.
    pub is_healthy: bool,
    /// Time of the last change of that, seconds since 1970.
    pub changed: f64,
    /// Resilience settings of a backend, if details were requested and its VCL has any.
    pub care: Option<CareFacts>,
    /// Details, if requested.
    pub details: Option<Details>,
}

/// The circuit breaker, slow start, wait queue and name of a backend.
#[derive(Clone, PartialEq, Debug)]
pub struct CareFacts {
    /// Its circuit breaker; `None` if it has none.
    pub breaker: Option<BreakerFacts>,
    /// The share of its load that it gets; `None` if it does not start slowly.
    pub warmth: Option<f64>,
    /// The name that is looked up repeatedly, and the addresses in use.
    pub follows: Option<(String, Vec<SocketAddr>)>,
}

impl CareFacts {
    fn of(backend: &Backend, now: f64) -> Option<CareFacts> {
        let definition = backend.definition();
        let facts = CareFacts {
            breaker: backend.breaker().map(Breaker::facts),
            warmth: (definition.slow_start > 0.0).then(|| backend.warmth(now)),
            follows: definition.follows.as_ref().map(|name| (name.host.clone(), backend.addresses())),
        };
        let is_any = facts.breaker.is_some() || facts.warmth.is_some() || facts.follows.is_some();
        is_any.then_some(facts)
    }
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

    /// True if a probe or members decide: backends without a probe and hash directors are always
    /// healthy.
    fn is_judged(&self) -> bool {
        match (self.backend(), self.director()) {
            (Some(backend), _) => backend.probe().is_some() || backend.breaker().is_some(),
            (None, Some(director)) => director.is_judged(),
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
        if !self.is_judged() || self.director().is_some_and(|director| !director.counts_members()) {
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
        self.director().map_or(Details::Nothing, |director| director.details(self.directors, now))
    }
}

fn items<'a>(vcls: &[&'a Directors]) -> impl Iterator<Item = Item<'a>> {
    vcls.iter().flat_map(|&directors| directors.ids().map(move |id| Item { directors, id }))
}

/// The items that a pattern selects: no pattern = all of the active VCL; without a dot = of the
/// active VCL; else of any VCL.
fn matching<'a>(wanted: Option<&str>, vcls: &[&'a Directors], active: Option<&str>) -> Vec<Item<'a>> {
    let full = match wanted {
        Some(wanted) if wanted.contains('.') => wanted.to_owned(),
        other => format!("{}.{}", active.unwrap_or(""), other.filter(|name| !name.is_empty()).unwrap_or("*")),
    };
    items(vcls)
        .filter(|item| pattern::matches(full.as_bytes(), item.display_name().as_bytes(), pattern::Flags::default()))
        .collect()
}

/// All items that a pattern selects; `None` = all of the active VCL. `vcls` are the loaded VCLs,
/// `active` is the name of the active one, `now` is in seconds since 1970.
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

/// The operator's settings, by the names `vcl.name`.
#[must_use]
pub fn admins(vcls: &[&Directors]) -> Vec<(String, AdminHealth)> {
    let admin = |item: &Item<'_>| item.directors.own_health(item.id).map_or(AdminHealth::Auto, |health| health.admin());
    items(vcls)
        .map(|item| (admin(&item), item))
        .filter(|(admin, _)| *admin != AdminHealth::Auto)
        .map(|(admin, item)| (item.display_name().to_string(), admin))
        .collect()
}

/// Stores the operator's setting for all items that a pattern selects; returns their number. An
/// empty pattern selects nothing here, because this is a change and a script's variable may be
/// unset.
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
