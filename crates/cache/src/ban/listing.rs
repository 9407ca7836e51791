//! Facts about the bans for operators. Wording is left to the code that answers the CLI.

use super::Ban;
use crate::Cache;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A ban in the list.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedBan {
    /// Time at which it was added, seconds since 1970.
    pub time: f64,
    /// Objects and fetches whose newest tested ban is this one.
    pub references: u64,
    /// All objects have been tested, or an equal newer ban replaces it.
    pub is_completed: bool,
    /// The expression of the ban.
    pub specification: String,
    /// It tests requests.
    pub tests_requests: bool,
    /// It tests objects.
    pub tests_objects: bool,
    /// Memory addresses; only with debug bit `lurker`.
    pub addresses: Option<BanAddresses>,
}

/// The addresses of a ban and its objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BanAddresses {
    /// The ban.
    pub ban: usize,
    /// The objects that refer to it.
    pub objects: Vec<usize>,
}

impl Cache {
    /// The bans, newest first; with debug bit `lurker` also the addresses of the objects that refer
    /// to each.
    #[must_use]
    pub fn list_bans(&self) -> Vec<ListedBan> {
        let inner = &*self.inner;
        let bans: Vec<Arc<Ban>> = inner.bans.list.read().after(0).rev().cloned().collect();
        let mut objects = inner.parameters.debug_lurker.load(Ordering::Relaxed).then(|| {
            let mut objects = BTreeMap::<u64, Vec<usize>>::new();
            for shard in &inner.shards {
                let shard = shard.lock();
                for object in (0..shard.slots.len()).filter_map(|slot| shard.slots.get(slot)) {
                    objects.entry(object.ban()).or_default().push(Arc::as_ptr(object) as usize);
                }
            }
            objects
        });
        let facts = |ban: &Arc<Ban>| ListedBan {
            time: ban.time,
            references: ban.references.load(Ordering::Relaxed),
            is_completed: ban.is_completed(),
            specification: ban.specification.text().to_owned(),
            tests_requests: ban.specification.has_request_tests(),
            tests_objects: ban.specification.has_object_tests(),
            addresses: objects.as_mut().map(|objects| BanAddresses {
                ban: Arc::as_ptr(ban) as usize,
                objects: objects.remove(&ban.sequence).unwrap_or_default(),
            }),
        };
        bans.iter().map(facts).collect()
    }
}
