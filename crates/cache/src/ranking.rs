//! The order in which the objects of a shard are evicted: the state of the policy of each storage
//! (crate `eviction`), by slot.
//!
//! A hit does not come here: a policy reads the count of hits, which is in the object anyway.
//! Storages whose policy is LRU have no state here: the times of last use suffice. The size of a
//! body that is still being written is unknown; such objects are examined again, a few with each
//! change. *Lock*: the shard's. Next file: `shard.rs`.

use crate::digest::Digest;
use crate::slots::Slots;
use eviction::{Arrival, EvictionPolicy, Objects, Policy, Pressure, Queued, mix};
use std::collections::VecDeque;
use std::sync::Arc;
use store::{BodyState, Object};

/// Number of objects of unknown size that are examined with each change.
const RESIZED_AT_ONCE: usize = 4;

/// Approximate number of bytes freed when an object is removed.
pub(crate) fn weight(object: &Object) -> u64 {
    object.available_bytes() + (object.head().len() + object.vary().len()) as u64 + 128
}

/// The slots as a policy sees them.
struct View<'a> {
    slots: &'a Slots,
    seed: &'a [u64; 2],
}

impl Objects for View<'_> {
    fn uses(&self, slot: u32) -> u32 {
        let Some(object) = self.slots.get(slot) else { return 0 };
        // The count saturates; the time of last use continues.
        Some(object.hits()).filter(|hits| *hits < u32::MAX).unwrap_or_else(|| object.last_use())
    }

    fn is_free(&self, slot: u32) -> bool {
        self.slots.get(slot).is_some_and(|object| Arc::strong_count(object) == 1)
    }

    fn hash(&self, slot: u32) -> u64 {
        // All keys of a shard have some bits of the table's hash in common.
        self.slots.get(slot).map_or(0, |object| mix(Digest::new(object.key(), self.seed).hash))
    }
}

/// An object that will be ranked when all objects of an earlier process have entered: by the time
/// of its last use, not in order of arrival.
struct Expected {
    last_use: u32,
    slot: u32,
    hash: u64,
    bytes: u64,
}

/// The ranking; see the module header.
pub(crate) struct Ranking {
    /// By storage.
    policies: Box<[Option<Box<Queued>>]>,
    /// Slots whose objects were being written on arrival; the slot may have another object by now.
    growing: VecDeque<u32>,
    /// Objects of an earlier process, by storage, until all have entered.
    expected: Option<Box<[Vec<Expected>]>>,
}

impl Ranking {
    pub(crate) fn new(stores: usize) -> Ranking {
        Ranking { policies: vec![None; stores].into(), growing: VecDeque::new(), expected: None }
    }

    /// From now on objects of an earlier process arrive, until [`Ranking::rank_expected`].
    pub(crate) fn expect(&mut self) {
        self.expected = Some(self.policies.iter().map(|_| Vec::new()).collect());
    }

    /// Ranks the objects that have arrived since [`Ranking::expect`]. The values needed were
    /// recorded on arrival: by now the object is no longer in the CPU cache.
    pub(crate) fn rank_expected(&mut self) {
        let expected = self.expected.take().unwrap_or_default();
        for (policy, mut expected) in self.policies.iter_mut().zip(expected) {
            let Some(policy) = policy else { continue };
            expected.sort_unstable_by_key(|object| (object.last_use, object.slot));
            for Expected { slot, hash, bytes, .. } in expected {
                // Hits from before count as if they were new.
                policy.inserted(Arrival { slot, hash, bytes, uses: 0 });
            }
        }
    }

    fn policy_of(&mut self, slot: u32, slots: &Slots) -> Option<&mut Queued> {
        let store = slots.get(slot)?.store_number().unwrap_or(0);
        self.policies.get_mut(usize::from(store))?.as_deref_mut()
    }

    /// Changes the policy of a storage; its objects are ranked anew, by the time of their last use
    /// and their hits.
    pub(crate) fn choose(&mut self, store: u8, policy: EvictionPolicy, slots: &Slots, seed: &[u64; 2]) {
        self.policies[usize::from(store)] = Queued::new(policy).map(Box::new);
        if self.policies[usize::from(store)].is_none() {
            return;
        }
        let is_its = |slot: &u32| slots.get(*slot).is_some_and(|object| object.store_number().unwrap_or(0) == store);
        let mut known: Vec<u32> = (0..slots.len()).filter(is_its).collect();
        known.sort_by_cached_key(|slot| slots.get(*slot).map(|object| object.last_use()));
        for slot in known {
            self.inserted(slot, slots, seed);
        }
    }

    /// Notes that an object was put into a slot.
    pub(crate) fn inserted(&mut self, slot: u32, slots: &Slots, seed: &[u64; 2]) {
        self.resize(slots);
        let Some(object) = slots.get(slot) else { return };
        let store = usize::from(object.store_number().unwrap_or(0));
        let Some(Some(policy)) = self.policies.get_mut(store) else { return };
        let (hash, bytes) = (View { slots, seed }.hash(slot), weight(object));
        if let Some(expected) = self.expected.as_mut().and_then(|expected| expected.get_mut(store)) {
            return expected.push(Expected { last_use: object.last_use(), slot, hash, bytes });
        }
        policy.inserted(Arrival { slot, hash, bytes, uses: 0 });
        if object.state() == BodyState::Writing {
            self.growing.push_back(slot);
        }
    }

    /// Notes that an object leaves its slot; it is still there.
    pub(crate) fn removed(&mut self, slot: u32, slots: &Slots, seed: &[u64; 2]) {
        if let Some(policy) = self.policy_of(slot, slots) {
            policy.removed(slot, &View { slots, seed });
        }
    }

    /// Gives policies the sizes of bodies that have been completed since.
    fn resize(&mut self, slots: &Slots) {
        for _ in 0..RESIZED_AT_ONCE.min(self.growing.len()) {
            let Some(slot) = self.growing.pop_front() else { return };
            let Some(object) = slots.get(slot) else { continue };
            if let Some(policy) = self.policy_of(slot, slots) {
                policy.resized(slot, weight(object));
                if object.state() == BodyState::Writing {
                    self.growing.push_back(slot);
                }
            }
        }
    }

    /// The object to evict next; `None` if the storage has no policy here, or it names none for
    /// now.
    pub(crate) fn victim(&mut self, store: u8, slots: &Slots, seed: &[u64; 2]) -> Option<u32> {
        self.resize(slots);
        self.policies.get_mut(usize::from(store))?.as_mut()?.victim(&View { slots, seed })
    }

    /// Urgency with which a storage's objects in this shard should give one; `None` if it has no
    /// policy here.
    pub(crate) fn pressure(&self, store: u8) -> Option<Pressure> {
        self.policies.get(usize::from(store))?.as_ref().map(|policy| policy.pressure())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let policies = self.policies.iter().flatten().map(|policy| policy.memory_bytes()).sum::<usize>();
        policies + self.growing.capacity() * size_of::<u32>()
    }
}
