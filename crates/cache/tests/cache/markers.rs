//! Room for markers of hit-for-miss and hit-for-pass: their share, and what makes room for them.

use super::*;
use surface::eviction::EvictionPolicy;
use surface::limits::{MARKERS_RESERVE_SHARE, MARKERS_SHARE};

const LIMIT: u64 = 4 << 20;
/// Markers have numbers from here on.
const MARKED: u32 = 1_000_000;

fn marker(flag: ObjectFlags) -> Made {
    Made {
        flags: ObjectFlags::TRANSIENT | flag,
        headers: vec![("X-Url", "/some/page")],
        ..Made { ttl: 1e6, ..Made::default() }
    }
}

fn short_lived() -> Made {
    Made { flags: ObjectFlags::TRANSIENT, body: vec![1; 3000], ..fresh(1e6) }
}

/// A cache like that of a worker.
fn bench(policy: EvictionPolicy, transient: Option<u64>) -> Bench {
    let bench = Bench::with(Cache::in_memory(LIMIT, START).unwrap());
    bench.set(|parameters| parameters.eviction_policy = policy.name().to_owned());
    bench.cache.store().set_transient_limit(transient);
    bench.cache.store().keep_room_for_markers();
    bench
}

/// Stores objects until some had to be evicted; returns the numbers of those that are stored.
fn fill(bench: &mut Bench) -> Vec<u32> {
    let mut number = 0;
    while bench.total(Main::NLruNuked) < 20 {
        bench.now += 0.01;
        bench.put(number, &Made { body: vec![1; 2000], ..fresh(1e6) });
        number += 1;
    }
    (0..number).filter(|number| matches!(bench.look(*number), Lookup::Hit(_))).collect()
}

fn all_are_stored(bench: &Bench, numbers: &[u32]) -> bool {
    numbers.iter().all(|number| matches!(bench.look(*number), Lookup::Hit(_)))
}

fn is_marked(bench: &Bench, number: u32) -> bool {
    matches!(bench.look(number), Lookup::HitForMiss { .. } | Lookup::HitForPass(_))
}

#[test]
fn markers_beyond_their_share_evict_the_oldest_markers_and_nothing_else() {
    for flag in [ObjectFlags::HIT_FOR_MISS, ObjectFlags::HIT_FOR_PASS] {
        let mut bench = bench(EvictionPolicy::Lru, None);
        (0..200).for_each(|number| _ = bench.put(number, &fresh(1e6)));
        for number in MARKED..MARKED + 10_000 {
            bench.now += 0.01;
            bench.put(number, &marker(flag));
            assert!(bench.cache.store().transient_usage().g_bytes <= LIMIT / MARKERS_SHARE);
        }
        assert!(all_are_stored(&bench, &(0..200).collect::<Vec<_>>()));
        let usage = bench.cache.store().transient_usage();
        assert_eq!(bench.total(Main::NLruNuked), 10_000 - usage.g_alloc);
        assert!(usage.g_alloc > 1000, "{usage:?}");
        let kept: Vec<_> = (MARKED..MARKED + 10_000).filter(|number| is_marked(&bench, *number)).collect();
        // Shards are drawn, so the order is not exact.
        let old = kept.iter().filter(|number| **number < MARKED + 10_000 - 2 * usage.g_alloc as u32).count();
        assert!(old < kept.len() / 20, "{old} of {}", kept.len());
        bench.cache.store().check();
    }
}

#[test]
fn few_markers_leave_exactly_in_order() {
    let mut bench = bench(EvictionPolicy::Lru, Some(10_000));
    for number in MARKED..MARKED + 200 {
        bench.now += 1.0;
        bench.put(number, &marker(ObjectFlags::HIT_FOR_MISS));
    }
    let kept: Vec<_> = (MARKED..MARKED + 200).filter(|number| is_marked(&bench, *number)).collect();
    assert!(kept.len() > 20, "{kept:?}");
    assert_eq!(kept, (MARKED + 200 - kept.len() as u32..MARKED + 200).collect::<Vec<_>>());
}

#[test]
fn a_storage_full_of_objects_has_room_for_markers_and_loses_none() {
    for policy in [EvictionPolicy::Lru, EvictionPolicy::S3Fifo, EvictionPolicy::Sieve, EvictionPolicy::TinyLfu] {
        let mut bench = bench(policy, None);
        let stored = fill(&mut bench);
        for number in MARKED..MARKED + 3000 {
            bench.now += 0.01;
            bench.put(number, &marker(ObjectFlags::HIT_FOR_MISS));
            assert!(bench.cache.store().held_bytes() <= LIMIT, "{policy:?}");
            assert!(is_marked(&bench, number), "{policy:?}");
        }
        assert!(all_are_stored(&bench, &stored), "{policy:?}");
        let markers = bench.cache.store().transient_usage().g_bytes;
        assert!(markers > LIMIT / MARKERS_RESERVE_SHARE / 3, "{policy:?}: {markers}");
    }
}

#[test]
fn transient_objects_and_markers_with_a_limit_of_their_own_evict_nothing_else() {
    for policy in [EvictionPolicy::Lru, EvictionPolicy::S3Fifo] {
        let mut bench = bench(policy, Some(LIMIT / 2));
        let stored = fill(&mut bench);
        for number in MARKED..MARKED + 3000 {
            bench.now += 0.01;
            bench.put(number, &if number % 2 == 0 { short_lived() } else { marker(ObjectFlags::HIT_FOR_MISS) });
            assert!(bench.cache.store().held_bytes() <= LIMIT, "{policy:?}");
        }
        assert!(all_are_stored(&bench, &stored), "{policy:?}");
        let usage = bench.cache.store().transient_usage();
        assert!(usage.g_bytes > LIMIT / 16, "{usage:?}");
    }
}

#[test]
fn markers_find_room_in_a_transient_storage_that_is_full_of_objects() {
    let mut bench = bench(EvictionPolicy::Lru, Some(200_000));
    for number in 0..200 {
        bench.put(number, &short_lived());
    }
    let before = (0..200).filter(|number| matches!(bench.look(*number), Lookup::Hit(_))).count();
    for number in MARKED..MARKED + 1000 {
        bench.now += 0.01;
        bench.put(number, &marker(ObjectFlags::HIT_FOR_MISS));
    }
    let marked = (MARKED..MARKED + 1000).filter(|number| is_marked(&bench, *number)).count();
    let after = (0..200).filter(|number| matches!(bench.look(*number), Lookup::Hit(_))).count();
    assert!(marked > 50, "{marked}");
    assert!(after * 10 >= before * 8, "{after} of {before} objects");
}

#[test]
fn a_marker_in_use_outlives_a_flood_of_others() {
    let mut bench = bench(EvictionPolicy::Lru, None);
    bench.put(MARKED, &marker(ObjectFlags::HIT_FOR_PASS));
    for number in MARKED + 1..MARKED + 10_000 {
        bench.now += 0.01;
        bench.put(number, &marker(ObjectFlags::HIT_FOR_PASS));
        if number % 300 == 0 {
            assert!(is_marked(&bench, MARKED), "{number}");
        }
    }
    assert!(!is_marked(&bench, MARKED + 1));
}

#[test]
fn free_space_leaves_out_what_is_kept_free_for_markers() {
    let mut bench = bench(EvictionPolicy::Lru, None);
    let store = bench.cache.store().clone();
    let unkept = Cache::in_memory(LIMIT, START).unwrap().store().free_bytes(false);
    assert_eq!(store.free_bytes(false), unkept - LIMIT / MARKERS_RESERVE_SHARE);
    assert_eq!(store.usage().g_space, store.free_bytes(false));
    let before = (store.held_bytes(), store.free_bytes(false));
    (0..50).for_each(|number| _ = bench.put(number, &marker(ObjectFlags::HIT_FOR_MISS)));
    let (taken, lost) = (store.held_bytes() - before.0, before.1 - store.free_bytes(false));
    let markers = store.transient_usage().g_bytes;
    assert!(markers > 4000 && lost + markers <= taken, "objects lost {lost} bytes for {markers}, of {taken} taken");
}
