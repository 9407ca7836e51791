//! Policies against naive models, and their promises about scans, loops and frequencies.

use super::*;
use crate::replay::{Request, Simulation, optimum};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;

const KEEPING_QUEUES: [EvictionPolicy; 3] = [EvictionPolicy::S3Fifo, EvictionPolicy::Sieve, EvictionPolicy::TinyLfu];

/// Objects by slot.
#[derive(Default)]
struct World {
    held: BTreeMap<u32, Thing>,
}

#[derive(Clone, Copy)]
struct Thing {
    hash: u64,
    uses: u32,
    is_free: bool,
}

impl Objects for World {
    fn uses(&self, slot: u32) -> u32 {
        self.held[&slot].uses
    }

    fn is_free(&self, slot: u32) -> bool {
        self.held[&slot].is_free
    }

    fn hash(&self, slot: u32) -> u64 {
        self.held[&slot].hash
    }
}

impl World {
    fn insert(&mut self, policy: &mut impl Policy, slot: u32, hash: u64, bytes: u64) {
        self.held.insert(slot, Thing { hash, uses: 0, is_free: true });
        policy.inserted(Arrival { slot, hash, bytes, uses: 0 });
    }

    fn remove(&mut self, policy: &mut impl Policy, slot: u32) {
        policy.removed(slot, self);
        self.held.remove(&slot);
    }
}

#[test]
fn victim_is_held_and_free_after_random_operations() {
    for policy in KEEPING_QUEUES {
        let mut random = SmallRng::seed_from_u64(7);
        let mut tried = Queued::new(policy).unwrap();
        let mut world = World::default();
        let mut evicted = 0;
        for _ in 0..60_000 {
            let slot = random.random_range(0..300);
            match random.random_range(0..8) {
                0..=2 if !world.held.contains_key(&slot) => {
                    let bytes = 1 << random.random_range(0..40);
                    world.insert(&mut tried, slot, mix(random.random_range(0..1000)), bytes);
                }
                3 if world.held.contains_key(&slot) => world.remove(&mut tried, slot),
                4 => tried.resized(slot, random.random_range(0..1 << 20)),
                5 => {
                    if let Some(thing) = world.held.get_mut(&slot) {
                        thing.is_free = !thing.is_free;
                    }
                }
                6 => {
                    if let Some(thing) = world.held.get_mut(&slot) {
                        thing.uses = thing.uses.wrapping_add(random.random_range(0..4));
                    }
                }
                _ => {
                    if let Some(victim) = tried.victim(&world) {
                        assert!(world.held[&victim].is_free, "{policy:?}");
                        world.remove(&mut tried, victim);
                        evicted += 1;
                    }
                }
            }
        }
        assert!(evicted > 3000, "{policy:?} {evicted}");
        for thing in world.held.values_mut() {
            thing.is_free = true;
        }
        // All stored objects can be evicted, in the end.
        for _ in 0..10_000 {
            if let Some(victim) = tried.victim(&world) {
                world.remove(&mut tried, victim);
            }
        }
        assert_eq!((world.held.len(), tried.victim(&world)), (0, None), "{policy:?}");
    }
}

/// SIEVE as in the paper, over a list that is searched.
#[derive(Default)]
struct NaiveSieve {
    /// Oldest first: slot, and true if it was visited.
    queue: Vec<(u32, bool)>,
    hand: usize,
}

impl NaiveSieve {
    fn victim(&mut self) -> Option<u32> {
        if self.queue.is_empty() {
            return None;
        }
        loop {
            self.hand %= self.queue.len();
            if !self.queue[self.hand].1 {
                return Some(self.queue[self.hand].0);
            }
            self.queue[self.hand].1 = false;
            self.hand += 1;
        }
    }

    fn remove(&mut self, slot: u32) {
        let at = self.queue.iter().position(|(held, _)| *held == slot).unwrap();
        self.queue.remove(at);
        if at < self.hand {
            self.hand -= 1;
        }
    }
}

#[test]
fn sieve_matches_the_paper() {
    let mut random = SmallRng::seed_from_u64(1);
    let (mut tried, mut world, mut model) = (Sieve::default(), World::default(), NaiveSieve::default());
    let mut compared = 0;
    for step in 0..20_000 {
        let slot = random.random_range(0..50);
        match random.random_range(0..10) {
            0..=3 if !world.held.contains_key(&slot) => {
                // Arrivals go behind the hand's end of the queue, or the hand would be at the new
                // one.
                if model.hand == model.queue.len() {
                    model.hand = 0;
                }
                model.queue.push((slot, false));
                world.insert(&mut tried, slot, mix(step), 1);
            }
            4..=6 => {
                if let Some(thing) = world.held.get_mut(&slot) {
                    thing.uses += 1;
                    model.queue.iter_mut().find(|(held, _)| *held == slot).unwrap().1 = true;
                }
            }
            7 if world.held.contains_key(&slot) => {
                world.remove(&mut tried, slot);
                model.remove(slot);
                if model.hand == model.queue.len() {
                    model.hand = 0;
                }
            }
            8 if world.held.len() > 25 => {
                let victim = tried.victim(&world);
                assert_eq!(victim, model.victim(), "step {step}");
                compared += 1;
                world.remove(&mut tried, victim.unwrap());
                model.remove(victim.unwrap());
            }
            _ => {}
        }
    }
    assert!(compared > 1000);
}

/// S3-FIFO over two plain lists, oldest first, without a memory of keys: each object has a key of
/// its own.
#[derive(Default)]
struct NaiveS3Fifo {
    small: Vec<(u32, u32)>,
    main: Vec<(u32, u32)>,
}

impl NaiveS3Fifo {
    fn victim(&mut self) -> Option<u32> {
        loop {
            let all = self.small.len() + self.main.len();
            if !self.small.is_empty() && (self.small.len() * 10 >= all || self.main.is_empty()) {
                if self.small[0].1 < 2 {
                    return Some(self.small[0].0);
                }
                let (slot, _) = self.small.remove(0);
                self.main.push((slot, 0));
            } else if self.main.is_empty() {
                return None;
            } else {
                if self.main[0].1 == 0 {
                    return Some(self.main[0].0);
                }
                let (slot, uses) = self.main.remove(0);
                self.main.push((slot, uses.min(3) - 1));
            }
        }
    }
}

#[test]
fn s3_fifo_matches_the_paper() {
    let mut random = SmallRng::seed_from_u64(2);
    let (mut tried, mut world, mut model) = (S3Fifo::default(), World::default(), NaiveS3Fifo::default());
    let mut compared = 0;
    for step in 0..40_000 {
        let slot = random.random_range(0..60);
        match random.random_range(0..10) {
            0..=4 if !world.held.contains_key(&slot) => {
                model.small.push((slot, 0));
                // The upper bits are the fingerprint in the memory of keys: none is taken for
                // another.
                world.insert(&mut tried, slot, step << 50 | mix(step) >> 14, 1);
            }
            5..=7 => {
                if let Some(thing) = world.held.get_mut(&slot) {
                    thing.uses += 1;
                    let mut both = model.small.iter_mut().chain(&mut model.main);
                    both.find(|(held, _)| *held == slot).unwrap().1 += 1;
                }
            }
            8 if world.held.len() > 15 => {
                // One call examines a bounded number of objects.
                let victim = (0..9).find_map(|_| tried.victim(&world));
                assert_eq!(victim, model.victim(), "step {step}");
                compared += 1;
                world.remove(&mut tried, victim.unwrap());
                model.small.retain(|(held, _)| Some(*held) != victim);
                model.main.retain(|(held, _)| Some(*held) != victim);
            }
            _ => {}
        }
    }
    assert!(compared > 2000, "{compared}");
}

#[test]
fn a_key_that_comes_back_need_not_prove_itself_again() {
    let (mut tried, mut world) = (S3Fifo::default(), World::default());
    for slot in 0..20 {
        world.insert(&mut tried, slot, mix(u64::from(slot)), 10);
    }
    assert_eq!(tried.victim(&world), Some(0));
    world.remove(&mut tried, 0);
    world.insert(&mut tried, 0, mix(0), 10);
    // All others are evicted before it, since they are in the small queue.
    for slot in 1..18 {
        assert_eq!(tried.victim(&world), Some(slot));
        world.remove(&mut tried, slot);
    }
}

/// Ranks under a Zipf law, by bisection of the cumulated weights.
fn zipf(random: &mut SmallRng, weights: &[f64]) -> u64 {
    let drawn = random.random_range(0.0..*weights.last().unwrap());
    weights.partition_point(|sum| *sum <= drawn) as u64
}

fn weights(count: u32, skew: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |rank| {
        sum += f64::from(rank).powf(-skew);
        sum
    };
    (1..=count).map(add).collect()
}

#[test]
fn traversal_of_the_site_does_not_evict_hot_objects() {
    let weights = weights(5000, 0.9);
    for policy in [EvictionPolicy::Lru].into_iter().chain(KEEPING_QUEUES) {
        let mut random = SmallRng::seed_from_u64(3);
        let mut simulation = Simulation::new(policy, 2000 * 1000);
        let mut hot = |simulation: &mut Simulation, requests: u64, scan: u64| {
            let mut hits = 0;
            for number in 0..requests {
                hits += u64::from(simulation.request(Request { key: mix(zipf(&mut random, &weights)), bytes: 1000 }));
                for step in 0..scan {
                    simulation.request(Request { key: mix(1 << 40 | (number * scan + step)), bytes: 1000 });
                }
            }
            hits as f64 / requests as f64
        };
        hot(&mut simulation, 100_000, 0);
        let calm = hot(&mut simulation, 50_000, 0);
        let scanned = hot(&mut simulation, 50_000, 2);
        let lost = calm - scanned;
        println!("{policy:?}: {calm:.3} without, {scanned:.3} with");
        assert_eq!(lost > 0.05, policy == EvictionPolicy::Lru, "{policy:?} lost {lost}");
    }
}

#[test]
fn no_policy_exceeds_the_bounds_and_all_beat_chance() {
    let weights = weights(3000, 0.8);
    let mut random = SmallRng::seed_from_u64(4);
    let requests: Vec<Request> = (0..60_000)
        .map(|_| {
            let rank = zipf(&mut random, &weights);
            Request { key: mix(rank), bytes: 100 + mix(rank ^ 99) % 2000 }
        })
        .collect();
    let capacity = 300_000;
    let (bound, byte_bound) = optimum::bound(&requests, capacity, 0);
    let best = optimum::belady(&requests, capacity, 0).hit_ratio();
    assert!(best <= bound);
    for policy in [EvictionPolicy::Lru].into_iter().chain(KEEPING_QUEUES) {
        let mut simulation = Simulation::new(policy, capacity);
        for request in &requests {
            simulation.request(*request);
            assert!(simulation.held_bytes() <= capacity);
        }
        let counts = simulation.counts();
        assert_eq!(counts.requests, 60_000);
        assert!(counts.hit_ratio() <= bound && counts.byte_hit_ratio() <= byte_bound, "{policy:?} {counts:?}");
        assert!(counts.hit_ratio() > 0.3 && simulation.objects() > 200, "{policy:?} {}", counts.hit_ratio());
        assert!(simulation.policy_bytes_per_object() < 40.0, "{}", simulation.policy_bytes_per_object());
    }
}

#[test]
fn forgetting_keys_leaves_the_others_as_they_are() {
    let mut simulation = Simulation::sharded(EvictionPolicy::S3Fifo, 10_000, 4);
    for key in 0..80 {
        simulation.request(Request { key: mix(key), bytes: 100 });
    }
    assert!(!simulation.has_evicted());
    simulation.retain(|key| key.is_multiple_of(2));
    let even = (0..80).filter(|key| mix(*key).is_multiple_of(2)).count();
    assert_eq!((simulation.objects(), simulation.held_bytes()), (even, even as u64 * 100));
    simulation.resize(1000);
    assert_eq!(simulation.objects(), 10);
    assert!(simulation.has_evicted());
}
