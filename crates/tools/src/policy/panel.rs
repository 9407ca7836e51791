//! A model of a cache for each policy and size, all fed with the same requests.
//!
//! *Automatic sizes* are added as needed: the largest model is copied to one of twice its size just
//! before it would evict for the first time; until then both are the same. *Memory is bounded*:
//! when the number of keys exceeds the limit, those in the upper half of all hashes are dropped and
//! ignored from then on, in caches of half the size. Source: Waldspurger et al., "Efficient MRC
//! Construction with SHARDS", 2015.

use eviction::EvictionPolicy;
use eviction::replay::{ReplayCounts, Request, Simulation};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use surface::eviction::POLICIES;

/// Memory of an object besides its body: its head, its record and its place in the index.
const OVERHEAD_BYTES: u64 = 600;
/// The smallest automatic size.
const SMALLEST_BYTES: u64 = 16 << 20;
/// Most automatic sizes: each model may hold every key.
const SIZES_MAX: usize = 16;
/// Fewest objects of a model, in a sample, for a reliable result.
const RELIABLE_OBJECTS: usize = 1000;

/// Hits as shares of requests and of bytes.
pub(super) type Ratios = (f64, f64);

/// Result for one size.
pub(super) struct Row {
    pub(super) capacity_bytes: u64,
    /// The sample is too small.
    pub(super) is_vague: bool,
    /// Hit ratios in the order of [`POLICIES`].
    pub(super) ratios: Vec<Ratios>,
}

/// Statistics of the requests.
pub(super) struct Seen {
    pub(super) urls: u64,
    /// The share of URLs that were requested once.
    pub(super) once_share: f64,
    pub(super) bytes: u64,
}

/// Counts over times of different samples.
#[derive(Clone, Copy, Default)]
struct Sum {
    requests: f64,
    hits: f64,
    bytes: f64,
    hit_bytes: f64,
}

impl Sum {
    fn add(self, counts: ReplayCounts, weight: f64) -> Sum {
        Sum {
            requests: self.requests + counts.requests as f64 * weight,
            hits: self.hits + counts.hits as f64 * weight,
            bytes: self.bytes + counts.bytes as f64 * weight,
            hit_bytes: self.hit_bytes + counts.hit_bytes as f64 * weight,
        }
    }
}

#[derive(Clone)]
struct Model {
    simulation: Simulation,
    /// Counts from before the last halving of the sample.
    before: Sum,
    counted: ReplayCounts,
}

/// The models of a size.
#[derive(Clone)]
struct Size {
    /// Capacity without sampling.
    capacity_bytes: u64,
    models: Vec<Model>,
}

impl Size {
    fn new(capacity_bytes: u64) -> Size {
        let model = |policy: EvictionPolicy| Model {
            simulation: Simulation::new(policy, capacity_bytes).with_overhead(OVERHEAD_BYTES),
            before: Sum::default(),
            counted: ReplayCounts::default(),
        };
        Size { capacity_bytes, models: POLICIES.iter().map(|row| model(row.policy)).collect() }
    }
}

/// Record of a key.
#[derive(Clone, Copy)]
struct Key {
    bytes: u64,
    is_repeated: bool,
}

/// See the module header.
pub(super) struct Panel {
    sizes: Vec<Size>,
    /// Larger sizes are added as needed.
    grows: bool,
    keys: HashMap<u64, Key>,
    keys_max: usize,
    /// Bytes of all keys, with the overhead.
    bytes: u64,
    /// Number of times that the sample was halved.
    halvings: u32,
}

impl Panel {
    /// Models of those sizes, or automatic ones.
    pub(super) fn new(sizes: &[u64], keys_max: usize) -> Panel {
        let grows = sizes.is_empty();
        let sizes = if grows { &[SMALLEST_BYTES][..] } else { sizes };
        let sizes = sizes.iter().map(|bytes| Size::new(*bytes)).collect();
        Panel { sizes, grows, keys: HashMap::new(), keys_max, bytes: 0, halvings: 0 }
    }

    fn is_sampled(&self, key: u64) -> bool {
        key <= u64::MAX >> self.halvings
    }

    /// Replays a request.
    pub(super) fn request(&mut self, request: Request) {
        if !self.is_sampled(request.key) {
            return;
        }
        let bytes = request.bytes.saturating_add(OVERHEAD_BYTES);
        let mut key = Key { bytes, is_repeated: false };
        match self.keys.entry(request.key) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().is_repeated = true;
                key = *entry.get();
            }
            Entry::Vacant(entry) => {
                entry.insert(key);
                self.bytes = self.bytes.saturating_add(bytes);
                self.grow();
            }
        }
        // A response of another size is counted as the one that was stored first.
        let request = Request { bytes: key.bytes - OVERHEAD_BYTES, ..request };
        for size in &mut self.sizes {
            for model in &mut size.models {
                model.simulation.request(request);
            }
        }
        while self.keys.len() > self.keys_max {
            self.halve();
        }
    }

    /// Makes larger models until everything fits.
    fn grow(&mut self) {
        while self.grows && self.sizes.len() < SIZES_MAX {
            let Some(last) = self.sizes.last() else { return };
            let capacity_bytes = last.capacity_bytes;
            if self.bytes <= capacity_bytes >> self.halvings {
                return;
            }
            let mut larger = last.clone();
            larger.capacity_bytes = capacity_bytes * 2;
            for model in &mut larger.models {
                model.simulation.resize(larger.capacity_bytes >> self.halvings);
            }
            self.sizes.push(larger);
        }
    }

    /// Halves the sample.
    fn halve(&mut self) {
        let weight = self.one_in() as f64;
        self.halvings += 1;
        let limit = u64::MAX >> self.halvings;
        self.keys.retain(|key, _| *key <= limit);
        self.bytes = self.keys.values().fold(0, |sum, key| sum.saturating_add(key.bytes));
        for size in &mut self.sizes {
            for model in &mut size.models {
                let counts = model.simulation.counts();
                model.before = model.before.add(counts.since(&model.counted), weight);
                model.counted = counts;
                model.simulation.retain(|key| key <= limit);
                model.simulation.resize(size.capacity_bytes >> self.halvings);
            }
        }
    }

    /// Divisor of the sample: one URL in this many is replayed.
    pub(super) fn one_in(&self) -> u64 {
        1 << self.halvings
    }

    pub(super) fn seen(&self) -> Seen {
        let once = self.keys.values().filter(|key| !key.is_repeated).count();
        Seen {
            urls: self.keys.len() as u64 * self.one_in(),
            once_share: once as f64 / self.keys.len().max(1) as f64,
            bytes: self.bytes.saturating_mul(self.one_in()),
        }
    }

    /// One row for each size, the smallest first.
    pub(super) fn rows(&self) -> Vec<Row> {
        let weight = self.one_in() as f64;
        let row = |size: &Size| Row {
            capacity_bytes: size.capacity_bytes,
            is_vague: self.halvings > 0
                && size
                    .models
                    .iter()
                    .any(|model| model.simulation.has_evicted() && model.simulation.objects() < RELIABLE_OBJECTS),
            ratios: size
                .models
                .iter()
                .map(|model| {
                    let sum = model.before.add(model.simulation.counts().since(&model.counted), weight);
                    (sum.hits / sum.requests.max(1.0), sum.hit_bytes / sum.bytes.max(1.0))
                })
                .collect(),
        };
        self.sizes.iter().map(row).collect()
    }
}
