//! What is evicted from a full storage: the policies that the parameter `eviction_policy`, an option of `-s` and
//! `copal policy` know.

use serde::{Deserialize, Serialize};

/// Which object goes when a storage is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
pub enum EvictionPolicy {
    /// The one that was used longest ago.
    Lru,
    /// A small queue for what is new, a main queue for what was used again, a memory of what left.
    S3Fifo,
    /// One queue and a hand that takes what was not used since it last passed.
    Sieve,
    /// Admission by frequency.
    TinyLfu,
}

/// A policy and its words.
pub struct PolicyRow {
    /// Which.
    pub policy: EvictionPolicy,
    /// What users call it.
    pub name: &'static str,
    /// What it does, in a line.
    pub text: &'static str,
}

/// All policies.
pub const POLICIES: [PolicyRow; 4] = [
    PolicyRow { policy: EvictionPolicy::Lru, name: "lru", text: "the least recently used goes, as in Varnish" },
    PolicyRow {
        policy: EvictionPolicy::S3Fifo,
        name: "s3fifo",
        text: "what is asked for once passes through a small part of the storage",
    },
    PolicyRow {
        policy: EvictionPolicy::Sieve,
        name: "sieve",
        text: "what was not used since the last round goes, the oldest first",
    },
    PolicyRow {
        policy: EvictionPolicy::TinyLfu,
        name: "tinylfu",
        text: "what is new stays only if it is asked for more often than what would go",
    },
];

impl EvictionPolicy {
    /// The policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<EvictionPolicy> {
        POLICIES.iter().find(|row| row.name == name).map(|row| row.policy)
    }

    /// Its name.
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
