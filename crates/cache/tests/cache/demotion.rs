//! Demotion: objects that memory has no room for are moved to a file, unchanged.

use super::*;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use store::{BodyState, FileOptions, Journal, Store};
use surface::closed_set::Advice;

/// A cache with memory and a file of these sizes.
fn tiers(memory_bytes: u64, file_bytes: u64) -> Cache {
    let journal = Journal::in_memory().unwrap();
    let options = FileOptions {
        bytes: file_bytes,
        metadata_bytes: 4 << 20,
        granularity_bytes: 4096,
        advice: Advice::Random,
        journal: journal.identity(),
    };
    let (metadata, bodies) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let (on_disk, _) = Store::open_disk_tier(metadata.into(), bodies.into(), "file", &options).unwrap();
    let stores = vec![Store::in_memory_as("s0", memory_bytes).unwrap(), on_disk];
    let cache = Cache::new(stores, journal, START).unwrap();
    cache.configure(&Parameters { storage_placement: "tiers".to_owned(), ..Parameters::default() });
    cache
}

fn made(body: Vec<u8>, ttl: f64) -> Made {
    Made { body, headers: vec![("Content-Type", "text/html"), ("xkey", "all some")], ..fresh(ttl) }
}

/// The body, in memory or on disk; `None` if it cannot be read.
fn read(object: &Arc<Object>) -> Option<Vec<u8>> {
    block_on(async {
        let (mut reader, mut body) = (object.reader()?, Vec::new());
        while (body.len() as u64) < object.available_bytes() {
            if let Some(bytes) = reader.chunk_at(body.len() as u64) {
                body.extend_from_slice(bytes);
            } else if reader.wants_load() {
                reader.load().await;
            } else {
                return None;
            }
        }
        Some(body)
    })
}

/// Waits until the disk has the moved objects, so that it keeps up.
fn settle(cache: &Cache) {
    assert!(block_on(cache.stores()[1].settle()));
}

#[test]
fn demoted_object_is_unchanged_for_all_readers() {
    let mut bench = Bench::with(tiers(1 << 20, 64 << 20));
    // Older and newer under one key: the newer one is found, in whichever storage each is.
    let (old, new) = (made(vec![1; 30_000], 1e6), made(vec![2; 30_000], 1e6));
    bench.put(7, &old);
    bench.now += 1.0;
    let before = bench.put(7, &new);
    bench.now += 1.0;
    let (xid, origin, head) = (before.xid(), before.origin(), before.head().to_vec());
    bench.hit(7);
    bench.cache.set_lifetime(&before, 5000.5, 10.0, 20.0);
    let lifetime = (before.ttl(), before.grace(), before.keep());
    drop(before);
    for number in 100..160 {
        bench.now += 1.0;
        bench.put(number, &made(vec![3; 30_000], 1e6));
        settle(&bench.cache);
    }
    let object = bench.hit(7);
    assert_eq!(object.store_number(), Some(1));
    assert_eq!((object.xid(), object.origin(), object.head()), (xid, origin, &head[..]));
    assert_eq!((object.ttl(), object.grace(), object.keep()), lifetime);
    assert_eq!((object.hits(), read(&object)), (2, Some(vec![2; 30_000])));
    assert_eq!((bench.total(Main::NLruNuked), bench.total(Main::NObject)), (0, 62));
    let usage = bench.cache.tag_usage();
    assert_eq!((usage.tags, usage.entries), (2, 124));
    let mut purge = bench.cache.purge_tags(b"some", cache::Purge::Hard, bench.now);
    while !purge.step(10) {}
    assert_eq!((purge.objects(), bench.total(Main::NObject)), (62, 0));
    drop(object);
    // The cost of the index was charged to the storages that hold the objects, to the last byte.
    for store in bench.cache.stores() {
        assert_eq!((store.usage().g_bytes, store.usage().g_alloc), (0, 0));
    }
    assert_eq!(bench.cache.store().private_bytes(), tiers(1 << 20, 64 << 20).store().private_bytes());
}

#[test]
fn short_lived_objects_and_copies_are_not_demoted() {
    for (headers, ttl) in [(vec![], 1e6), (vec![("Content-Encoding", "br")], 1e6), (vec![("Server", "s")], 9.0)] {
        let mut bench = Bench::with(tiers(1 << 20, 64 << 20));
        for number in 0..60 {
            bench.put(number, &Made { headers: headers.clone(), ..made(vec![3; 30_000], ttl) });
            settle(&bench.cache);
        }
        assert_eq!(bench.total(Main::Demoted), 0, "{headers:?} {ttl}");
        assert!(bench.total(Main::NLruNuked) > 20);
    }
}

#[test]
fn a_disk_that_does_not_keep_up_costs_objects_and_no_memory() {
    let mut bench = Bench::with(tiers(1 << 20, 16 << 20));
    for number in 0..600 {
        bench.put(number, &made(vec![3; 60_000], 1e6));
    }
    let (moved, evicted) = (bench.total(Main::Demoted), bench.total(Main::NLruNuked));
    // Each was either moved or evicted, at any speed of the disk.
    assert_eq!(bench.total(Main::NObject) + evicted, 600, "{moved} {evicted}");
    settle(&bench.cache);
    bench.cache.stores().iter().for_each(Store::check);
}

#[test]
fn many_threads_moving_reading_and_removing_see_nothing_old() {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    const KEYS: u32 = 300;
    let cache = tiers(1 << 20, 8 << 20);
    // Objects older than this number were purged from their key.
    let floors: Vec<AtomicU32> = (0..KEYS).map(|_| AtomicU32::new(0)).collect();
    let next = AtomicU32::new(1);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (mut bench, floors, next) = (Bench::with(cache.clone()), &floors, &next);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(u64::from(thread));
                for step in 0..2000 {
                    let number = random.random_range(0..KEYS);
                    bench.now += 0.01;
                    let floor = floors[number as usize].load(SeqCst);
                    match bench.look(number) {
                        Lookup::Hit(object) if !object.is_unchecked() => {
                            assert!(object.xid() >= floor, "{} came back as {}", floor, object.xid());
                            assert_eq!(object.state(), BodyState::Complete);
                            if let Some(body) = read(&object) {
                                assert!(body.iter().all(|byte| *byte == number as u8), "object {number}");
                            }
                        }
                        Lookup::Miss { busy, .. } => {
                            let body = vec![number as u8; random.random_range(0..20_000)];
                            let xid = next.fetch_add(1, SeqCst);
                            let object = bench.make(number, &Made { xid, ..made(body, 50.0) });
                            busy.publish(&object);
                        }
                        _ => {}
                    }
                    match step % 20 {
                        7 => {
                            let Lookup::Hit(object) = bench.look(number) else { continue };
                            let seen = object.xid();
                            bench.cache.purge(&key(number), cache::Purge::Hard, bench.now);
                            drop(object);
                            floors[number as usize].fetch_max(seen + 1, SeqCst);
                        }
                        11 => bench.ban(&format!("req.url == /{number}")),
                        _ if thread == 0 && step % 50 == 0 => drop(bench.cache.tick(bench.now)),
                        _ => {}
                    }
                }
            });
        }
    });
    let mut bench = Bench::with(cache);
    assert!(bench.total(Main::Demoted) > 100, "{}", bench.total(Main::Demoted));
    bench.cache.stores().iter().for_each(Store::check);
    bench.now = START + 1000.0;
    bench.cache.tick(bench.now);
    settle(&bench.cache);
    assert_eq!(bench.total(Main::NObject), 0);
    for store in bench.cache.stores() {
        assert_eq!(store.usage().g_bytes, 0);
        assert_eq!(store.file_usage().map_or(0, |file| file.usage.g_bytes), 0);
    }
}
