//! Rules learned from `No-Vary-Search`: for each resource, the rule of its newest stored response.
//!
//! A resource is a host and a path, as VCL left them. All event loops read the table without a
//! lock, and an empty one costs the check of a flag; changes replace it as a whole, so it is small
//! ([`NO_VARY_SEARCH_RULES_MAX`]). A response without the field removes a rule. *Invariant:* an
//! object stored under a rule is never found under another, nor under the same one learned again
//! after its removal: the key contains the rule and the time when it was learned. So an object that
//! was purged or invalidated in between, while other keys were in use, cannot reappear. Used by
//! `request/query_rule.rs` and `fetch/query_rule.rs`. Source: draft-ietf-httpbis-no-vary-search §6.

use arc_swap::ArcSwap;
use message::Message;
use semantics::no_vary_search::{Rule, path_of};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use surface::limits::NO_VARY_SEARCH_RULES_MAX;

/// A host and a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Resource([u8; 32]);

impl Resource {
    /// The resource of a request.
    pub(crate) fn of(request: &Message) -> Resource {
        let host = request.get("Host").unwrap_or_default();
        let hasher = Sha256::new().chain_update((host.len() as u64).to_le_bytes());
        Resource(hasher.chain_update(host).chain_update(path_of(request.target())).finalize().into())
    }
}

/// A rule of a resource.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KnownRule {
    rule: Rule,
    /// Time when it was learned, seconds since 1970.
    since: f64,
}

impl KnownRule {
    /// The common form of all targets that are equivalent under the rule; `None` if the rule does
    /// not apply to the target.
    pub(crate) fn normalised(&self, target: &[u8]) -> Option<Vec<u8>> {
        self.rule.normalised(target)
    }

    /// The key of a response stored under this rule, derived from the key that vcl_hash made for
    /// the normalised target.
    pub(crate) fn key(&self, digest: [u8; 32]) -> [u8; 32] {
        let hasher = Sha256::new().chain_update(b"No-Vary-Search").chain_update(digest);
        hasher.chain_update(self.since.to_bits().to_le_bytes()).chain_update(self.rule.key()).finalize().into()
    }

    /// A rule, for tests of resets.
    #[cfg(test)]
    pub(crate) fn foreign() -> Option<KnownRule> {
        let mut response = Message::new();
        response.append(b"No-Vary-Search", b"params");
        Some(KnownRule { rule: Rule::of(&response)?, since: 1.0 })
    }

    /// True if a response states this rule.
    pub(crate) fn is_of(&self, response: &Message) -> bool {
        Rule::of(response).as_ref() == Some(&self.rule)
    }
}

/// Rules that a fetch needs for its request.
#[derive(Clone, Debug)]
pub(crate) struct QueryOrder {
    /// The resource of the request.
    pub(crate) resource: Resource,
    /// The rule under which it was looked up, if there is one.
    pub(crate) rule: Option<Arc<KnownRule>>,
}

/// The rules of all resources.
#[derive(Default)]
pub struct QueryRules {
    is_used: AtomicBool,
    known: ArcSwap<HashMap<Resource, Arc<KnownRule>>>,
}

impl QueryRules {
    /// True if there was ever a rule.
    #[inline]
    pub(crate) fn are_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }

    /// The rule for the resource of a request.
    pub(crate) fn get(&self, request: &Message) -> Option<Arc<KnownRule>> {
        if self.are_used() { self.known.load().get(&Resource::of(request)).cloned() } else { None }
    }

    /// Learns the rule of a stored response about its resource, at `now` (seconds since 1970).
    pub(crate) fn learn(&self, resource: Resource, response: &Message, now: f64) {
        let rule = Rule::of(response);
        let known = self.known.load().get(&resource).cloned();
        if known.as_ref().map(|known| &known.rule) == rule.as_ref() {
            return;
        }
        let rule = rule.map(|rule| Arc::new(KnownRule { rule, since: now }));
        self.known.rcu(|all| {
            let mut all = HashMap::clone(all);
            match &rule {
                Some(rule) => {
                    if all.len() >= NO_VARY_SEARCH_RULES_MAX && !all.contains_key(&resource) {
                        drop_oldest(&mut all);
                    }
                    all.insert(resource, Arc::clone(rule));
                }
                None => _ = all.remove(&resource),
            }
            all
        });
        // Never reset: reading an empty table is harmless.
        self.is_used.store(true, Relaxed);
    }
}

fn drop_oldest(all: &mut HashMap<Resource, Arc<KnownRule>>) {
    let oldest = all.iter().min_by(|(_, one), (_, other)| one.since.total_cmp(&other.since)).map(|(key, _)| *key);
    if let Some(oldest) = oldest {
        all.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(host: &str, target: &str) -> Message {
        let mut request = Message::new();
        request.set_target(target.as_bytes());
        request.append(b"Host", host.as_bytes());
        request
    }

    fn response(value: &str) -> Message {
        let mut response = Message::new();
        response.append(b"No-Vary-Search", value.as_bytes());
        response
    }

    #[test]
    fn rule_holds_for_its_host_and_path_until_another_response_changes_it() {
        let rules = QueryRules::default();
        let asked = request("a", "/x?1");
        assert!(rules.get(&asked).is_none());
        rules.learn(Resource::of(&asked), &response("params"), 1.0);
        let first = rules.get(&request("a", "/x")).unwrap();
        for (host, target) in [("b", "/x?1"), ("a", "/y?1"), ("a", "/x/"), ("a/", "x"), ("", "a/x")] {
            assert!(rules.get(&request(host, target)).is_none(), "{host} {target}");
        }
        rules.learn(Resource::of(&asked), &response("params=?1"), 2.0);
        assert_eq!(rules.get(&asked).unwrap().key([0; 32]), first.key([0; 32]), "it is the same rule");
        rules.learn(Resource::of(&asked), &response("key-order"), 3.0);
        assert_ne!(rules.get(&asked).unwrap().key([0; 32]), first.key([0; 32]));
        rules.learn(Resource::of(&asked), &Message::new(), 4.0);
        assert!(rules.get(&asked).is_none());
        rules.learn(Resource::of(&asked), &response("params"), 5.0);
        assert_ne!(rules.get(&asked).unwrap().key([0; 32]), first.key([0; 32]), "what was stored before stays unknown");
    }

    #[test]
    fn rules_are_bounded_and_the_oldest_makes_room() {
        let rules = QueryRules::default();
        let asked = |number: usize| request("a", &format!("/{number}?x"));
        for number in 0..=NO_VARY_SEARCH_RULES_MAX {
            rules.learn(Resource::of(&asked(number)), &response("params"), number as f64);
        }
        assert_eq!(rules.known.load().len(), NO_VARY_SEARCH_RULES_MAX);
        assert!(rules.get(&asked(0)).is_none() && rules.get(&asked(1)).is_some());
        assert!(rules.get(&asked(NO_VARY_SEARCH_RULES_MAX)).is_some());
    }
}
