//! A long seeded random run of all operations, checked against a simple model.

use super::*;
use cache::{Purge, Waiter};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;

/// The model's record of each object: the time until which it is fresh.
type Model = BTreeMap<u32, f64>;

#[test]
fn cache_agrees_with_a_simple_model_on_random_operations() {
    for seed in 0..6 {
        let mut bench = Bench::with(Cache::in_memory(16 << 20, START).unwrap());
        bench.set(|parameters| parameters.ban_lurker_age = 1.0);
        let mut random = SmallRng::seed_from_u64(seed);
        let mut model = Model::new();
        let mut fetches: BTreeMap<u32, Busy> = BTreeMap::new();
        let mut waiters: Vec<(u32, Waiter)> = Vec::new();
        for step in 0..4000 {
            let number = random.random_range(0..30);
            let fresh_until = model.get(&number).copied().unwrap_or(0.0);
            match random.random_range(0..100) {
                0..=59 => match bench.look(number) {
                    Lookup::Hit(_) => assert!(fresh_until > bench.now, "seed {seed} step {step}: {number} is gone"),
                    Lookup::Miss { busy, .. } => {
                        assert!(fresh_until <= bench.now, "seed {seed} step {step}: {number} is fresh");
                        assert!(fetches.insert(number, busy).is_none(), "two fetches of {number}");
                    }
                    Lookup::Wait(waiter) => {
                        assert!(fetches.contains_key(&number), "{number} waits for nobody");
                        waiters.push((number, waiter));
                    }
                    other => panic!("{other:?}"),
                },
                60..=79 => {
                    // Every fifth fetch fails.
                    if let Some(busy) = fetches.remove(&number).filter(|_| random.random_bool(0.8)) {
                        let ttl = random.random_range(0.5..30.0);
                        let header = if number % 3 == 0 { "three" } else { "other" };
                        let object = bench.make(number, &Made { headers: vec![("X", header)], ..fresh(ttl) });
                        busy.publish(&object);
                        model.insert(number, object.origin() + object.ttl());
                    }
                }
                80..=84 => {
                    let count = bench.cache.purge(&key(number), Purge::Hard, bench.now);
                    assert!(count > 0 || fresh_until <= bench.now);
                    model.remove(&number);
                }
                85 => {
                    bench.ban("obj.http.x == three");
                    model.retain(|number, _| number % 3 != 0);
                    // A fetch that began before the ban is caught by it too.
                    fetches.retain(|number, _| number % 3 != 0);
                }
                86 => {
                    bench.ban(&format!("req.url == /{number}"));
                    model.remove(&number);
                    fetches.remove(&number);
                }
                87..=93 => {
                    if !waiters.is_empty() {
                        let index = random.random_range(0..waiters.len());
                        waiters.swap_remove(index);
                    }
                }
                _ => bench.wait(random.random_range(0.0..3.0)),
            }
        }
        drop(fetches);
        drop(waiters);
        bench.wait(100.0);
        for gauge in [Main::NObject, Main::NObjectcore, Main::NObjecthead] {
            assert_eq!(bench.total(gauge), 0, "seed {seed}: something is left in {gauge:?}");
        }
        assert_eq!(bench.total(Main::Bans), 1);
        let usage = bench.cache.store().usage();
        assert_eq!((usage.g_alloc, usage.g_bytes), (0, 0));
    }
}
