//! Eviction policies: the values of the parameter `eviction_policy`, of an option of `-s` and of
//! `copal policy`.

use serde::{Deserialize, Serialize};

/// Choice of the object to evict when a storage is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum EvictionPolicy {
    /// Evicts the least recently used object.
    Lru,
    /// A small queue for new objects, a main queue for objects used again, and a history of evicted
    /// keys.
    S3Fifo,
    /// One queue and a hand that evicts objects not used since its last turn.
    Sieve,
    /// Admission by frequency.
    TinyLfu,
}

/// Names of a policy.
pub struct PolicyRow {
    /// The policy.
    pub policy: EvictionPolicy,
    /// Name in options and parameters.
    pub name: &'static str,
    /// Description in one line.
    pub text: &'static str,
}

/// All policies.
pub const POLICIES: [PolicyRow; 4] = [
    PolicyRow {
        policy: EvictionPolicy::Lru,
        name: "lru",
        text: "evicts the least recently used object, as in Varnish",
    },
    PolicyRow {
        policy: EvictionPolicy::S3Fifo,
        name: "s3fifo",
        text: "what is asked for once passes through a small part of the storage",
    },
    PolicyRow {
        policy: EvictionPolicy::Sieve,
        name: "sieve",
        text: "evicts objects that were not used since the last round, oldest first",
    },
    PolicyRow {
        policy: EvictionPolicy::TinyLfu,
        name: "tinylfu",
        text: "what is new stays only if it is asked for more often than what would go",
    },
];

impl EvictionPolicy {
    /// Policy with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<EvictionPolicy> {
        POLICIES.iter().find(|row| row.name == name).map(|row| row.policy)
    }

    /// Name of the policy.
    #[must_use]
    pub fn name(self) -> &'static str {
        POLICIES.iter().find(|row| row.policy == self).map_or("", |row| row.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_row_and_is_found_by_its_name() {
        for policy in [EvictionPolicy::Lru, EvictionPolicy::S3Fifo, EvictionPolicy::Sieve, EvictionPolicy::TinyLfu] {
            assert_eq!(EvictionPolicy::named(policy.name()), Some(policy));
        }
        assert_eq!(EvictionPolicy::named("LRU"), None);
    }
}
