//! Eviction policies other than LRU, in the cache: the objects they keep, and the limit and
//! counters under them.

use super::*;
use surface::eviction::EvictionPolicy;

const KEEPING_QUEUES: [EvictionPolicy; 3] = [EvictionPolicy::S3Fifo, EvictionPolicy::Sieve, EvictionPolicy::TinyLfu];

fn bench(limit: u64, policy: EvictionPolicy) -> Bench {
    let bench = Bench::with(Cache::in_memory(limit, START).unwrap());
    bench.set(|parameters| parameters.eviction_policy = policy.name().to_owned());
    bench
}

/// A shard has room for three or four of these: the demands on a policy depend on how they fit.
fn page() -> Made {
    Made { body: vec![1; 1024], ..fresh(1e6) }
}

/// Looks an object up and stores it if it is missing; returns true if it was stored already.
fn ask_or_store(bench: &mut Bench, number: u32, made: &Made) -> bool {
    match bench.look(number) {
        Lookup::Hit(_) => true,
        Lookup::Miss { busy, .. } => {
            let object = bench.make(number, made);
            busy.publish(&object);
            false
        }
        other => panic!("{other:?}"),
    }
}

/// Requests 300 hot pages round after round while other pages are requested once; returns the hit
/// share of the hot pages in the later rounds.
fn hot_share_during_a_traversal(bench: &mut Bench) -> f64 {
    let (mut hits, mut asked, mut once) = (0, 0, 1_000_000);
    for round in 0..16 {
        for number in 0..300 {
            bench.now += 0.01;
            let was_hit = ask_or_store(bench, number, &page());
            if round >= 8 {
                (hits, asked) = (hits + u32::from(was_hit), asked + 1);
            }
            for _ in 0..if round < 3 { 0 } else { 5 } {
                once += 1;
                ask_or_store(bench, once, &page());
            }
        }
    }
    f64::from(hits) / f64::from(asked)
}

#[test]
fn hot_objects_survive_one_traversal_of_the_site() {
    // Three objects in a shard are few: the bound allows for SIEVE with its one queue and for a
    // window of less than an object.
    for (policy, least) in KEEPING_QUEUES.into_iter().zip([0.97, 0.3, 0.3]) {
        let mut bench = bench(1 << 20, policy);
        let share = hot_share_during_a_traversal(&mut bench);
        println!("{policy:?} {share:.3}");
        assert!(share > least, "{policy:?} {share}");
        assert!(bench.cache.store().held_bytes() <= 1 << 20);
        assert!(bench.total(Main::NLruNuked) > 15_000, "{}", bench.total(Main::NLruNuked));
        assert_eq!(bench.total(Main::NObject), bench.cache.object_count() as u64);
    }
    assert!(hot_share_during_a_traversal(&mut bench(1 << 20, EvictionPolicy::Lru)) < 0.1);
}

#[test]
fn a_policy_can_be_changed_while_the_cache_is_full() {
    let mut bench = bench(1 << 20, EvictionPolicy::Lru);
    for number in 0..2000 {
        ask_or_store(&mut bench, number, &page());
    }
    let held = bench.cache.store().held_bytes();
    for policy in KEEPING_QUEUES.into_iter().chain([EvictionPolicy::Lru, EvictionPolicy::S3Fifo]) {
        bench.set(|parameters| parameters.eviction_policy = policy.name().to_owned());
        let with_it = bench.cache.store().held_bytes();
        assert_eq!(with_it > held, policy != EvictionPolicy::Lru, "{policy:?}: what it keeps is charged");
        assert!(with_it < held + 80_000, "{policy:?} {held} {with_it}");
    }
    assert!(hot_share_during_a_traversal(&mut bench) > 0.97);
    // Everything expires, and only the memory of the removal history stays charged.
    bench.now += 2e6;
    bench.cache.tick(bench.now);
    assert_eq!((bench.total(Main::NObject), bench.cache.store().usage().g_bytes), (0, 0));
}

#[test]
fn objects_being_read_or_written_are_skipped() {
    for policy in KEEPING_QUEUES {
        let mut bench = bench(1 << 20, policy);
        let held: Vec<_> = (0..300).map(|number| bench.put(number, &page())).collect();
        for number in 1000..5000 {
            ask_or_store(&mut bench, number, &page());
        }
        for object in &held {
            assert!(!object.is_removed(), "{policy:?}");
        }
        drop(held);
        for number in 5000..15_000 {
            ask_or_store(&mut bench, number, &page());
        }
        let left = (0..300).filter(|number| matches!(bench.look(*number), Lookup::Hit(_))).count();
        assert!(left < 150, "{policy:?}: {left} of what nobody asks for are still there");
    }
}

#[test]
fn each_storage_follows_its_own_policy_and_evicts_its_own_objects() {
    let limits = [1 << 20, 1 << 20];
    let mut bench = Bench::with(Cache::in_memory_of(&limits, START).unwrap());
    bench.cache.set_policies(&[None, Some(EvictionPolicy::S3Fifo)]);
    bench.set(|_| {});
    // The same traffic to both; only the second one gets the traversal.
    let (mut hits, mut once) = ([0; 2], 1_000_000);
    for round in 0..16 {
        for number in 0..300 {
            bench.now += 0.01;
            for store in [0, 1] {
                let made = Made { store, ..page() };
                let was_hit = ask_or_store(&mut bench, number + 10_000 * store as u32, &made);
                hits[store] += u32::from(was_hit && round >= 8);
                for _ in 0..if round < 3 { 0 } else { 5 } {
                    once += 1;
                    ask_or_store(&mut bench, once, &made);
                }
            }
        }
    }
    assert!(hits[0] < 600 && hits[1] > 2300, "{hits:?} of 2400");
    for store in bench.cache.stores() {
        assert!(store.held_bytes() <= 1 << 20);
    }
}

#[test]
fn transient_objects_with_a_limit_of_their_own_make_room_for_each_other_under_every_policy() {
    for policy in KEEPING_QUEUES {
        let mut bench = bench(4 << 20, policy);
        bench.cache.store().set_transient_limit(Some(100_000));
        for number in 0..600 {
            bench.put(number, &fresh(1e6));
        }
        let transient = Made { flags: ObjectFlags::TRANSIENT, body: vec![1; 9000], ..fresh(1e6) };
        for number in 1000..1100 {
            bench.now += 1.0;
            bench.put(number, &transient);
        }
        assert!(bench.cache.store().transient_usage().g_bytes <= 100_000);
        for number in 0..600 {
            bench.hit(number);
        }
    }
}

#[test]
fn hits_from_before_a_restart_count() {
    for policy in KEEPING_QUEUES {
        let mut bench = bench(4 << 20, EvictionPolicy::Lru);
        let objects: Vec<_> = (0..2400).map(|number| bench.put(number, &page())).collect();
        for number in 0..1200 {
            for _ in 0..2 {
                bench.hit(number);
            }
        }
        assert_eq!(bench.total(Main::NLruNuked), 0);
        // The start of another worker with these objects: they are ranked anew.
        bench.set(|parameters| parameters.eviction_policy = policy.name().to_owned());
        drop(objects);
        for number in 10_000..13_200 {
            ask_or_store(&mut bench, number, &page());
        }
        let kept = |bench: &mut Bench, range: std::ops::Range<u32>| {
            range.filter(|number| matches!(bench.look(*number), Lookup::Hit(_))).count()
        };
        let (used, unused) = (kept(&mut bench, 0..1200), kept(&mut bench, 1200..2400));
        assert!(used > 1080 && used > unused + 50, "{policy:?}: {used} of the used, {unused} of the others");
    }
}

#[test]
fn policy_memory_per_object_is_small() {
    for (policy, bytes_max) in KEEPING_QUEUES.into_iter().zip([16.0, 16.0, 40.0]) {
        let charged = |policy| {
            let mut bench = bench(64 << 20, policy);
            for number in 0..30_000 {
                bench.put(number, &fresh(1e6));
            }
            bench.cache.store().private_bytes() as f64
        };
        let each = (charged(policy) - charged(EvictionPolicy::Lru)) / 30_000.0;
        println!("{policy:?}: {each:.1} bytes an object");
        assert!(each > 8.0 && each < bytes_max, "{policy:?} {each}");
    }
}

#[test]
fn small_object_has_little_overhead() {
    const OBJECTS: u32 = 30_000;
    let headers = vec![
        ("Content-Length", "100"),
        ("Content-Type", "text/html"),
        ("Cache-Control", "max-age=3600"),
        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("ETag", "\"5f3a-64\""),
    ];
    let lines: usize = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let own = ("HTTP/1.1 200 OK\r\n\r\n".len() + lines + 100) as f64;
    let made = Made { ttl: 3600.0, grace: 10.0, body: vec![b'b'; 100], headers, ..Made::default() };
    let mut bench = bench(64 << 20, EvictionPolicy::Lru);
    for number in 0..OBJECTS {
        bench.put(number, &made);
    }
    let each = bench.cache.store().held_bytes() as f64 / f64::from(OBJECTS);
    println!("{each:.1} bytes an object, {own} of them as it is sent");
    assert!(each <= 300.0 && each - own <= 60.0, "{each} bytes, {own} as it is sent");
}

#[test]
fn many_threads_evicting_under_a_policy_keep_the_limit_and_the_count() {
    for policy in KEEPING_QUEUES {
        let limit = 1 << 20;
        let cache = bench(limit, policy).cache;
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let mut bench = Bench::with(cache.clone());
                scope.spawn(move || {
                    for step in 0..1500u32 {
                        bench.now += 0.01;
                        let number = (step * 7 + thread * 13) % 1200;
                        match bench.look(number) {
                            Lookup::Miss { busy, .. } => busy.publish(&bench.make(number, &page())),
                            Lookup::Hit(_) | Lookup::Wait(_) => {}
                            other => panic!("{other:?}"),
                        }
                        match step % 300 {
                            100 => bench.ban(&format!("req.url == /{number}")),
                            200 => drop(bench.cache.purge(&key(number), cache::Purge::Hard, bench.now)),
                            250 => bench.set(|parameters| parameters.eviction_policy = policy.name().to_owned()),
                            _ => {}
                        }
                    }
                });
            }
        });
        let bench = Bench::with(cache);
        assert!(bench.cache.store().held_bytes() <= limit);
        assert!(bench.total(Main::NLruNuked) > 100, "{policy:?} {}", bench.total(Main::NLruNuked));
        bench.cache.tick(START + 2e6);
        assert_eq!((bench.total(Main::NObject), bench.cache.store().usage().g_bytes), (0, 0), "{policy:?}");
    }
}
