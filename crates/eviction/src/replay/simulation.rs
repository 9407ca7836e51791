//! A cache without contents.

use super::lru::Rule;
use super::{ReplayCounts, Request};
use crate::hash::mix;
use crate::{Arrival, Objects, parts_to_draw};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use surface::eviction::EvictionPolicy;

/// Keys are hashes already.
#[derive(Clone, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[derive(Clone, Copy, Default)]
struct Held {
    key: u64,
    bytes: u64,
    uses: u32,
}

/// The objects of a shard; slots without a key in the table are empty.
#[derive(Clone, Default)]
struct Slots(Vec<Held>);

impl Objects for Slots {
    fn uses(&self, slot: u32) -> u32 {
        self.0[slot as usize].uses
    }

    fn is_free(&self, _: u32) -> bool {
        true
    }

    fn hash(&self, slot: u32) -> u64 {
        mix(self.0[slot as usize].key)
    }
}

#[derive(Clone)]
struct Shard {
    table: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    slots: Slots,
    empty: Vec<u32>,
    rule: Rule,
}

impl Shard {
    fn new(policy: EvictionPolicy) -> Shard {
        let (table, slots, empty) = (HashMap::default(), Slots::default(), Vec::new());
        Shard { table, slots, empty, rule: Rule::new(policy) }
    }

    fn insert(&mut self, request: Request) {
        let slot = self.empty.pop().unwrap_or_else(|| {
            self.slots.0.push(Held::default());
            self.slots.0.len() as u32 - 1
        });
        self.slots.0[slot as usize] = Held { key: request.key, bytes: request.bytes, uses: 0 };
        self.table.insert(request.key, slot);
        self.rule.inserted(Arrival { slot, hash: self.slots.hash(slot), bytes: request.bytes, uses: 0 });
    }

    fn remove(&mut self, slot: u32) -> u64 {
        let Held { key, bytes, .. } = self.slots.0[slot as usize];
        assert_eq!(self.table.remove(&key), Some(slot), "what goes was held");
        self.rule.removed(slot, &self.slots);
        self.empty.push(slot);
        bytes
    }
}

/// A simulated cache; see the module header.
#[derive(Clone)]
pub struct Simulation {
    shards: Vec<Shard>,
    capacity_bytes: u64,
    /// Bytes that each object takes beyond its own.
    overhead_bytes: u64,
    held_bytes: u64,
    held_objects: u64,
    /// Evictions so far; they choose the shards.
    evictions: u64,
    counts: ReplayCounts,
}

impl Simulation {
    /// An empty cache of one part.
    #[must_use]
    pub fn new(policy: EvictionPolicy, capacity_bytes: u64) -> Simulation {
        Simulation::sharded(policy, capacity_bytes, 1)
    }

    /// An empty cache of several parts, as Copal's: of the parts drawn, the one under most pressure
    /// gives an object.
    #[must_use]
    pub fn sharded(policy: EvictionPolicy, capacity_bytes: u64, shards: usize) -> Simulation {
        let shards = vec![Shard::new(policy); shards.max(1)];
        Simulation {
            shards,
            capacity_bytes,
            overhead_bytes: 0,
            held_bytes: 0,
            held_objects: 0,
            evictions: 0,
            counts: ReplayCounts::default(),
        }
    }

    /// The same cache, in which each object takes that much beyond its bytes.
    #[must_use]
    pub fn with_overhead(self, overhead_bytes: u64) -> Simulation {
        Simulation { overhead_bytes, ..self }
    }

    /// Processes a request and stores the response, unless it is larger than the cache; returns
    /// true if it was a hit.
    pub fn request(&mut self, request: Request) -> bool {
        let at = mix(request.key ^ 0x5bd1_e995) as usize % self.shards.len();
        let shard = &mut self.shards[at];
        let is_hit = if let Some(slot) = shard.table.get(&request.key).copied() {
            let held = &mut shard.slots.0[slot as usize];
            held.uses = held.uses.wrapping_add(1);
            shard.rule.used(slot);
            true
        } else {
            let bytes = request.bytes.saturating_add(self.overhead_bytes);
            if bytes <= self.capacity_bytes {
                while self.held_bytes + bytes > self.capacity_bytes {
                    self.evict();
                }
                self.shards[at].insert(Request { bytes, ..request });
                self.held_bytes += bytes;
                self.held_objects += 1;
            }
            false
        };
        self.counts.count(request, is_hit);
        is_hit
    }

    fn evict(&mut self) {
        loop {
            let parts = self.shards.len() as u64;
            let draws = if parts == 1 { 1 } else { parts_to_draw(self.held_objects, parts) };
            let drawn = (0..draws).map(|draw| (mix(self.evictions << 3 | draw) % parts) as usize);
            let at = drawn.max_by_key(|at| self.shards[*at].rule.pressure()).unwrap_or(0);
            self.evictions += 1;
            let shard = &mut self.shards[at];
            if let Some(slot) = shard.rule.victim(&shard.slots) {
                self.held_bytes -= shard.remove(slot);
                self.held_objects -= 1;
                return;
            }
        }
    }

    /// The results of the requests so far.
    #[must_use]
    pub fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// The capacity of the cache in bytes.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Bytes of the stored objects, with the overhead.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Number of stored objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.held_objects as usize
    }

    /// True if anything was evicted so far: until then the cache behaves like a larger one.
    #[must_use]
    pub fn has_evicted(&self) -> bool {
        self.evictions > 0
    }

    /// Memory of the policy for each object held, in bytes.
    #[must_use]
    pub fn policy_bytes_per_object(&self) -> f64 {
        let bytes: usize = self.shards.iter().map(|shard| shard.rule.memory_bytes()).sum();
        bytes as f64 / self.objects().max(1) as f64
    }

    /// Changes the size; when it shrinks, objects are evicted.
    pub fn resize(&mut self, capacity_bytes: u64) {
        self.capacity_bytes = capacity_bytes;
        while self.held_bytes > self.capacity_bytes {
            self.evict();
        }
    }

    /// Drops the objects whose keys are not wanted any more; the counts stay.
    pub fn retain(&mut self, is_wanted: impl Fn(u64) -> bool) {
        for shard in &mut self.shards {
            let unwanted: Vec<u32> =
                shard.table.iter().filter(|(key, _)| !is_wanted(**key)).map(|(_, slot)| *slot).collect();
            for slot in unwanted {
                self.held_bytes -= shard.remove(slot);
                self.held_objects -= 1;
            }
        }
    }
}
