//! Exact LRU, for comparison: a list in which every use moves an object.

use crate::entry::{NONE, Queues};
use crate::{Arrival, Objects, Policy, Pressure, Queued};
use surface::eviction::EvictionPolicy;

/// Evicts the least recently used object.
#[derive(Clone, Debug, Default)]
pub(super) struct Lru(Queues);

impl Policy for Lru {
    fn inserted(&mut self, arrival: Arrival) {
        self.0.enter(0, arrival.slot, arrival.bytes, arrival.uses);
    }

    fn resized(&mut self, slot: u32, bytes: u64) {
        self.0.resize(slot, bytes);
    }

    fn removed(&mut self, slot: u32, _: &impl Objects) {
        self.0.leave(slot);
    }

    fn victim(&mut self, _: &impl Objects) -> Option<u32> {
        Some(self.0.queue(0).oldest).filter(|slot| *slot != NONE)
    }

    fn pressure(&self) -> Pressure {
        Pressure { is_beyond_share: false, bytes: self.0.bytes() }
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// Any policy of the cache.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Lru(Lru),
    Queued(Queued),
}

impl Rule {
    pub(super) fn new(policy: EvictionPolicy) -> Rule {
        Queued::new(policy).map_or_else(|| Rule::Lru(Lru::default()), Rule::Queued)
    }

    /// An object was used.
    pub(super) fn used(&mut self, slot: u32) {
        if let Rule::Lru(lru) = self {
            lru.0.renew(0, slot);
        }
    }

    pub(super) fn inserted(&mut self, arrival: Arrival) {
        match self {
            Rule::Lru(lru) => lru.inserted(arrival),
            Rule::Queued(queued) => queued.inserted(arrival),
        }
    }

    pub(super) fn removed(&mut self, slot: u32, objects: &impl Objects) {
        match self {
            Rule::Lru(lru) => lru.removed(slot, objects),
            Rule::Queued(queued) => queued.removed(slot, objects),
        }
    }

    pub(super) fn victim(&mut self, objects: &impl Objects) -> Option<u32> {
        match self {
            Rule::Lru(lru) => lru.victim(objects),
            Rule::Queued(queued) => queued.victim(objects),
        }
    }

    pub(super) fn pressure(&self) -> Pressure {
        match self {
            Rule::Lru(lru) => lru.pressure(),
            Rule::Queued(queued) => queued.pressure(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Rule::Lru(lru) => lru.memory_bytes(),
            Rule::Queued(queued) => queued.memory_bytes(),
        }
    }
}
