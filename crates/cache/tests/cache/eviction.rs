//! The limit, and the objects evicted when it is reached.

use super::*;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

#[test]
fn with_few_objects_exactly_the_least_recently_used_is_evicted() {
    let mut bench = Bench::with(Cache::in_memory(1 << 20, START).unwrap());
    let body = vec![1; 100_000];
    for number in 0..9 {
        bench.now += 1.0;
        bench.put(number, &Made { body: body.clone(), ..fresh(1e6) });
    }
    bench.now += 10.0;
    drop(bench.hit(0));
    bench.now += 1.0;
    bench.put(9, &Made { body: body.clone(), ..fresh(1e6) });
    bench.put(10, &Made { body, ..fresh(1e6) });
    assert!(bench.total(Main::NLruNuked) >= 1);
    drop(bench.hit(0));
    assert!(matches!(bench.look(1), Lookup::Miss { .. }), "1 was used longest ago");
}

#[test]
fn transient_objects_with_a_limit_of_their_own_make_room_for_each_other_only() {
    let mut bench = Bench::new();
    bench.cache.store().set_transient_limit(Some(100_000));
    for number in 0..600 {
        bench.put(number, &fresh(1e6));
    }
    let transient = Made { flags: ObjectFlags::TRANSIENT, body: vec![1; 9000], ..fresh(1e6) };
    for number in 1000..1100 {
        bench.now += 1.0;
        bench.put(number, &transient);
        assert!(bench.cache.store().transient_usage().g_bytes <= 100_000);
    }
    assert!(bench.total(Main::NLruNuked) >= 89);
    for number in 0..600 {
        bench.hit(number);
    }
    bench.hit(1099);
}

#[test]
fn hits_within_lru_interval_are_not_moves() {
    let mut bench = Bench::new();
    bench.put(1, &fresh(1e6));
    bench.now += 1.9;
    bench.hit(1);
    assert_eq!(bench.total(Main::NLruMoved), 0);
    bench.now += 0.2;
    bench.hit(1);
    bench.hit(1);
    assert_eq!(bench.total(Main::NLruMoved), 1);
}

#[test]
fn objects_with_a_reader_are_not_evicted() {
    let mut bench = Bench::with(Cache::in_memory(1 << 20, START).unwrap());
    let held: Vec<_> = (0..8).map(|number| bench.put(number, &Made { body: vec![1; 100_000], ..fresh(1e6) })).collect();
    let attributes = ObjectAttributes { key: key(9), body_bytes: Some(500_000), ..ObjectAttributes::default() };
    let body = vec![2; 500_000];
    let object = bench.cache.store().create(&attributes, b"").unwrap();
    assert_eq!(block_on(object.append(&body)), Err(store::AppendError::Full), "nothing can go");
    object.fail();
    drop(held);
    let object = bench.cache.store().create(&attributes, b"").unwrap();
    assert_eq!(block_on(object.append(&body)), Ok(()));
    assert_eq!(bench.cache.store().usage().c_fail, 1);
}

#[test]
fn under_churn_the_limit_holds_and_what_is_used_stays() {
    let limit = 2 << 20;
    let mut bench = Bench::with(Cache::in_memory(limit, START).unwrap());
    let mut random = SmallRng::seed_from_u64(5);
    for number in 0..8000u32 {
        bench.now += 0.1;
        let size = random.random_range(0..1500);
        bench.put(number, &Made { body: vec![1; size], ..fresh(1e6) });
        assert!(bench.cache.store().held_bytes() <= limit, "{}", bench.cache.store().held_bytes());
        if number >= 20 {
            // Twenty objects are used again and again.
            let popular = number % 20;
            if let Lookup::Miss { busy, .. } = bench.look(popular) {
                drop(busy);
                panic!("popular object {popular} was evicted at {number}");
            }
        }
    }
    assert!(bench.total(Main::NLruNuked) > 4000);
    assert!(bench.total(Main::NObject) > 1000);
    assert_eq!(bench.total(Main::NObject), bench.cache.object_count() as u64);
}

#[test]
fn many_threads_storing_reading_banning_and_evicting_see_only_whole_objects() {
    let limit = 1 << 20;
    let cache = Cache::in_memory(limit, START).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let mut bench = Bench::with(cache.clone());
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(u64::from(thread));
                for step in 0..3000 {
                    let number = random.random_range(0..300);
                    bench.now += 0.01;
                    match bench.look(number) {
                        Lookup::Hit(object) => {
                            let mut length = 0;
                            while let Some(chunk) = object.chunk_at(length) {
                                assert!(chunk.iter().all(|byte| *byte == number as u8), "object {number}");
                                length += chunk.len() as u64;
                            }
                            assert_eq!(object.state(), store::BodyState::Complete);
                            assert_eq!(length, object.available_bytes());
                        }
                        Lookup::Miss { busy, .. } => {
                            let body = vec![number as u8; random.random_range(0..20_000)];
                            let object = bench.make(number, &Made { body, ..fresh(5.0) });
                            busy.publish(&object);
                        }
                        Lookup::Wait(_) => {}
                        other => panic!("{other:?}"),
                    }
                    match step % 500 {
                        100 => bench.ban(&format!("req.url == /{number}")),
                        300 => drop(bench.cache.purge(&key(number), cache::Purge::Hard, bench.now)),
                        _ if thread == 0 && step % 50 == 0 => drop(bench.cache.tick(bench.now)),
                        _ => {}
                    }
                }
            });
        }
    });
    let mut bench = Bench::with(cache);
    assert!(bench.cache.store().held_bytes() <= limit);
    assert!(bench.total(Main::NLruNuked) > 100);
    bench.now = START + 1000.0;
    bench.cache.tick(bench.now);
    assert_eq!((bench.total(Main::NObject), bench.total(Main::NObjectcore), bench.total(Main::NObjecthead)), (0, 0, 0));
    assert_eq!(bench.cache.store().usage().g_bytes, 0);
}

#[test]
fn a_full_storage_evicts_its_own_objects_and_no_others() {
    let limits = [512 << 10, 1 << 20, 4 << 20];
    // A few large objects, which are all examined, and many small ones, of which a sample is.
    for (body_bytes, churn) in [(20_000, 500u32), (500, 20_000)] {
        let mut bench = Bench::with(Cache::in_memory_of(&limits, START).unwrap());
        let made = |store| Made { body: vec![1; body_bytes], store, ..fresh(1e6) };
        // The first and the third storage are filled without ever reaching their limits; their
        // objects are the oldest.
        let (mut stay, mut number) = (Vec::new(), 0);
        for store in [0, 2] {
            let usage = |bench: &Bench| bench.cache.stores()[store].held_bytes();
            while usage(&bench) + 2 * body_bytes as u64 + 8192 < limits[store] {
                bench.put(number, &made(store));
                stay.push(number);
                number += 1;
            }
        }
        assert_eq!(bench.total(Main::NLruNuked), 0);
        for popular in 1_000_000..1_000_010 {
            bench.put(popular, &made(1));
        }
        for number in 2_000_000..2_000_000 + churn {
            bench.now += 0.1;
            bench.put(number, &made(1));
            assert!(bench.cache.stores()[1].held_bytes() <= limits[1]);
            bench.hit(1_000_000 + number % 10);
        }
        assert!(bench.total(Main::NLruNuked) > 100);
        for number in stay {
            assert_ne!(bench.hit(number).store_number(), Some(1));
        }
        // The cost of the index is charged to the last byte.
        bench.now += 2e6;
        bench.cache.tick(bench.now);
        for store in bench.cache.stores() {
            assert_eq!((store.usage().g_bytes, store.usage().g_alloc), (0, 0));
        }
    }
}

#[test]
fn the_index_is_charged_to_the_storages_by_their_objects() {
    let charged = |limits: &[u64], share: fn(u32) -> usize| {
        let mut bench = Bench::with(Cache::in_memory_of(limits, START).unwrap());
        let empty: Vec<u64> = bench.cache.stores().iter().map(store::Store::private_bytes).collect();
        for number in 0..30_000 {
            bench.put(number, &Made { store: share(number), ..fresh(1e6) });
        }
        let stores = bench.cache.stores().iter().zip(empty);
        stores.map(|(store, empty)| (store.private_bytes() - empty) as f64).collect::<Vec<_>>()
    };
    let one = charged(&[64 << 20], |_| 0)[0];
    let two = charged(&[64 << 20, 64 << 20], |number| usize::from(number % 3 == 0));
    // With two storages each object costs one byte more: the number of its storage.
    let both = two[0] + two[1];
    assert!(both >= one && both < one + 40_000.0, "{one} {two:?}");
    assert!((two[0] / two[1] - 2.0).abs() < 0.1, "{two:?}");
}

#[test]
fn an_object_costs_no_more_than_160_bytes_beyond_head_and_body() {
    let count = 100_000u64;
    let mut bench = Bench::with(Cache::in_memory(256 << 20, START).unwrap());
    let empty = bench.cache.store().held_bytes();
    let headers = vec![("Content-Type", "text/html"), ("Last-Modified", "Fri, 20 Nov 2026 19:21:25 GMT")];
    let made = Made { body: vec![7; 100], headers, grace: 10.0, ..fresh(1e6) };
    let payload = (head(&made.headers).len() + made.body.len()) as u64;
    for number in 0..count as u32 {
        let mut digest = key(number);
        digest[20..24].copy_from_slice(&number.wrapping_mul(2_654_435_769).to_le_bytes());
        let lookup_request = request("/", &[]);
        let Lookup::Miss { busy, .. } = bench.ask(&digest, &lookup_request, |_| {}) else { panic!("every key is new") };
        let attributes = ObjectAttributes {
            key: digest,
            origin: bench.now,
            ttl: made.ttl,
            body_bytes: Some(100),
            ..ObjectAttributes::default()
        };
        let object = bench.cache.store().create(&attributes, &head(&made.headers)).unwrap();
        block_on_once(object.append(&made.body));
        object.finish();
        busy.publish(&object);
    }
    bench.now += 1.0;
    let held = bench.cache.store().held_bytes() - empty;
    let beyond = held as f64 / count as f64 - payload as f64;
    println!("{beyond:.1} bytes an object, beyond {payload} of head and body");
    assert_eq!(bench.total(Main::NObject), count);
    assert!(beyond <= 160.0, "{beyond:.1}");
}

/// Polls only once: appending to stored objects never has to wait.
fn block_on_once(future: impl Future<Output = Result<(), store::AppendError>>) {
    let polled = std::pin::pin!(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(matches!(polled, std::task::Poll::Ready(Ok(()))));
}
