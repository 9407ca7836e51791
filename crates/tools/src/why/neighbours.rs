//! Near misses: objects that the cache had, according to the log, under almost the same address.
//!
//! The cache itself stores keys, not addresses, so this is based on the log alone, and reaches back
//! as far as the log does. The number of paths, and of addresses for each path, is limited
//! (`surface::limits`).

use std::collections::{HashMap, VecDeque};

use surface::limits::{WHY_NEIGHBOURS_MAX, WHY_PATHS_MAX};
use surface::reason::Reason;

use super::account::Account;
use super::near_miss::{Difference, Stored};

/// Contents of the cache, by path.
#[derive(Default)]
pub(super) struct Neighbours {
    paths: HashMap<String, VecDeque<Stored>>,
}

/// Most near misses that are reported.
const TOLD_MAX: usize = 3;

impl Neighbours {
    /// Records a request that was served from the cache, or whose response was stored.
    pub(super) fn note(&mut self, account: &Account) {
        let is_stored = |reason| reason == Reason::Stored;
        let was_stored = account.steps.iter().flat_map(|step| &step.decisions).any(|made| is_stored(made.reason));
        if !was_stored && account.steps.iter().all(|step| step.hit.is_none()) {
            return;
        }
        let path = path_of(&account.url);
        if !self.paths.contains_key(path) && self.paths.len() >= WHY_PATHS_MAX {
            return;
        }
        let known = self.paths.entry(path.to_owned()).or_default();
        known.retain(|stored| stored.host != account.host || stored.url != account.url);
        if known.len() >= WHY_NEIGHBOURS_MAX {
            known.pop_front();
        }
        let xid = account.steps.first().map_or(0, |step| step.xid);
        known.push_back(Stored { host: account.host.clone(), url: account.url.clone(), xid, start: account.start });
    }

    /// The near misses of a request that found nothing although nothing had been removed.
    pub(super) fn of(&self, account: &Account) -> Vec<(Difference, Stored)> {
        let is_new = |made: &super::account::Decision| {
            made.reason == Reason::MissAbsent && made.detail("gone").is_none_or(|gone| gone == surface::reason::NEVER)
        };
        if !account.steps.iter().flat_map(|step| &step.decisions).any(is_new) {
            return Vec::new();
        }
        let Some(known) = self.paths.get(path_of(&account.url)) else { return Vec::new() };
        let before = known.iter().rev().filter(|stored| stored.start < account.start);
        let near = before.filter_map(|stored| Some((difference(account, stored)?, stored.clone())));
        near.take(TOLD_MAX).collect()
    }
}

fn path_of(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

fn difference(account: &Account, stored: &Stored) -> Option<Difference> {
    let same_host = stored.host.eq_ignore_ascii_case(&account.host);
    match (same_host, stored.url == account.url) {
        (false, true) => Some(Difference::Host),
        (true, false) if sorted(&stored.url) == sorted(&account.url) => Some(Difference::Order),
        (true, false) => Some(Difference::Query),
        (true, true) | (false, false) => None,
    }
}

fn sorted(url: &str) -> Vec<&str> {
    let mut parameters: Vec<&str> = url.split_once('?').map_or("", |(_, query)| query).split('&').collect();
    parameters.sort_unstable();
    parameters
}

#[cfg(test)]
mod tests {
    use super::super::account::{Decision, Step};
    use super::*;

    fn account(host: &str, url: &str, start: f64, reason: Option<Reason>) -> Account {
        let hit = reason.is_none().then(Default::default);
        let mut step = Step { xid: start as u64, hit, ..Step::default() };
        step.decisions.extend(reason.map(|reason| Decision { reason, details: Vec::new() }));
        Account { host: host.to_owned(), url: url.to_owned(), start, steps: vec![step], ..Account::default() }
    }

    #[test]
    fn similar_address_is_reported_with_the_difference() {
        let mut known = Neighbours::default();
        known.note(&account("a.example", "/x?a=1&b=2", 1.0, Some(Reason::Stored)));
        known.note(&account("b.example", "/x?b=2&a=1", 2.0, None));
        known.note(&account("b.example", "/x", 3.0, Some(Reason::NotStoredPass)));
        let of = |host: &str, url: &str, start: f64| {
            let near = known.of(&account(host, url, start, Some(Reason::MissAbsent)));
            near.iter().map(|(difference, stored)| (difference.word(), stored.xid)).collect::<Vec<_>>()
        };
        assert_eq!(of("b.example", "/x?a=1&b=2", 9.0), [("order", 2), ("host", 1)]);
        assert_eq!(of("A.example", "/x", 9.0), [("query", 1)]);
        assert_eq!(of("a.example", "/y", 9.0), []);
        assert_eq!(of("b.example", "/x?a=1&b=2", 1.5), [("host", 1)], "what came later was not there");
        assert!(known.of(&account("b.example", "/x?a=1&b=2", 9.0, Some(Reason::MissExpired))).is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut known = Neighbours::default();
        for number in 0..2 * WHY_NEIGHBOURS_MAX {
            known.note(&account(&format!("{number}.example"), "/x", number as f64, None));
        }
        assert_eq!(known.paths["/x"].len(), WHY_NEIGHBOURS_MAX);
        for number in 0..WHY_PATHS_MAX + 10 {
            known.note(&account("a", &format!("/{number}"), 1.0, None));
        }
        assert_eq!(known.paths.len(), WHY_PATHS_MAX);
    }
}
