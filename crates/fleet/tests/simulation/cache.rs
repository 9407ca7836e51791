//! A cache by content: the body of a key is the version that the origin had when it was fetched.

use fleet::Invalidation;
use fleet::record::CacheMark;
use std::collections::BTreeMap;

/// Number of keys; their URLs are `/0` to `/7`, their tags `even` and `odd`.
pub const KEYS: usize = 8;

/// A fetch that has read a body and has not stored it yet.
#[derive(Clone, Copy)]
pub struct Fetch {
    pub key: usize,
    pub version: u64,
    /// Number of invalidations that were applied when it began.
    pub began: u64,
    /// Number of restarts of the cache when it began.
    restarts: u64,
}

#[derive(Clone, Default)]
pub struct Cache {
    bodies: BTreeMap<usize, u64>,
    /// The number of the last invalidation of each key.
    invalidated: [u64; KEYS],
    pub mark: CacheMark,
    /// Number of restarts: fetches do not survive them.
    pub restarts: u64,
}

/// The keys that an invalidation removes.
pub fn keys_of(invalidation: &Invalidation) -> Vec<usize> {
    let all = 0..KEYS;
    match invalidation {
        Invalidation::Url { url, .. } => all.filter(|key| *url == format!("/{key}")).collect(),
        Invalidation::Tags { tags, .. } => all.filter(|key| tags[0] == ["even", "odd"][key % 2]).collect(),
        Invalidation::Ban { expression } => all.filter(|key| expression.ends_with(&key.to_string())).collect(),
        Invalidation::Prefix { .. } | Invalidation::Everything => all.collect(),
        Invalidation::Key { .. } | Invalidation::Leave | Invalidation::Forget { .. } => unreachable!(),
    }
}

impl Cache {
    pub fn new(identity: u64) -> Cache {
        Cache { mark: CacheMark { identity, sequence: 0 }, ..Cache::default() }
    }

    /// Applies an invalidation durably; the number of objects removed.
    pub fn apply(&mut self, invalidation: &Invalidation) -> u64 {
        self.mark.sequence += 1;
        let keys = keys_of(invalidation);
        keys.iter().for_each(|key| self.invalidated[*key] = self.mark.sequence);
        keys.iter().filter(|key| self.bodies.remove(key).is_some()).count() as u64
    }

    pub fn get(&self, key: usize) -> Option<u64> {
        self.bodies.get(&key).copied()
    }

    pub fn fetch(&self, key: usize, version: u64) -> Fetch {
        Fetch { key, version, began: self.mark.sequence, restarts: self.restarts }
    }

    /// Stores a body, unless it was invalidated since its fetch began.
    pub fn store(&mut self, fetch: Fetch) {
        if self.restarts == fetch.restarts && self.invalidated[fetch.key] <= fetch.began {
            self.bodies.insert(fetch.key, fetch.version);
        }
    }
}
