//! What has been learnt of `No-Vary-Search`: for each resource, the rule of the newest stored response to it.
//!
//! A resource is a host and a path, as VCL left them. All event loops read the table without a lock, and an empty one costs a
//! look at a flag; changes replace it as a whole, so it is small ([`NO_VARY_SEARCH_RULES_MAX`]). A response without the field makes a
//! rule forgotten. *Invariant:* what was stored under a rule is never found under another, nor under the same one learnt again
//! after it was forgotten: the key has the rule and when it was learnt. So what was purged or invalidated meanwhile, when other
//! keys were in force, cannot come back. Used by `request/query_rule.rs` and `fetch/query_rule.rs`.
//! Source: draft-ietf-httpbis-no-vary-search §6.

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
    /// What a request is for.
    pub(crate) fn of(request: &Message) -> Resource {
        let host = request.get("Host").unwrap_or_default();
        let hasher = Sha256::new().chain_update((host.len() as u64).to_le_bytes());
        Resource(hasher.chain_update(host).chain_update(path_of(request.target())).finalize().into())
    }
}

/// A rule that holds for a resource.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct KnownRule {
    rule: Rule,
    /// When it was learnt, seconds since 1970.
    since: f64,
}

impl KnownRule {
    /// The form of a target that all targets have which are the same under the rule; `None` when the rule is not applied to it.
    pub(crate) fn normalised(&self, target: &[u8]) -> Option<Vec<u8>> {
        self.rule.normalised(target)
    }

    /// The key of a response stored under this rule, of the one that vcl_hash made for the normalised target.
    pub(crate) fn key(&self, digest: [u8; 32]) -> [u8; 32] {
        let hasher = Sha256::new().chain_update(b"No-Vary-Search").chain_update(digest);
        hasher.chain_update(self.since.to_bits().to_le_bytes()).chain_update(self.rule.key()).finalize().into()
    }

    /// A rule, for tests of what is reset.
    #[cfg(test)]
    pub(crate) fn foreign() -> Option<KnownRule> {
        let mut response = Message::new();
        response.append(b"No-Vary-Search", b"params");
        Some(KnownRule { rule: Rule::of(&response)?, since: 1.0 })
    }

    /// Whether a response states this rule.
    pub(crate) fn is_of(&self, response: &Message) -> bool {
        Rule::of(response).as_ref() == Some(&self.rule)
    }
}

/// What a fetch needs to know of the rules for what it asks.
#[derive(Clone, Debug)]
pub(crate) struct QueryOrder {
    /// What the request is for.
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
    /// Whether there was ever a rule.
    #[inline]
    pub(crate) fn are_used(&self) -> bool {
        self.is_used.load(Relaxed)
    }

    /// The rule for what a request is for.
    pub(crate) fn get(&self, request: &Message) -> Option<Arc<KnownRule>> {
        if self.are_used() { self.known.load().get(&Resource::of(request)).cloned() } else { None }
    }

    /// Learns what a stored response says about its resource, at `now` (seconds since 1970).
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
        // Never taken back: an empty table that is looked at does no harm.
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
    fn rule_holds_for_its_host_and_path_until_another_response_says_otherwise() {
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
