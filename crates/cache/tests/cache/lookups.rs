//! Results of a lookup.

use super::*;
use cache::Purge;

#[test]
fn a_fresh_object_is_a_hit_and_its_hits_are_counted() {
    let mut bench = Bench::new();
    drop(bench.miss(1));
    let object = bench.put(1, &fresh(10.0));
    assert!(Arc::ptr_eq(&bench.hit(1), &object));
    bench.now += 9.9;
    assert_eq!(bench.hit(1).hits(), 2);
    bench.now += 0.2;
    let Lookup::Miss { stale: None, .. } = bench.look(1) else { panic!("no grace, no keep") };
    assert_eq!((bench.total(Main::NObject), bench.total(Main::NObjecthead)), (1, 1));
}

#[test]
fn a_stale_object_is_served_while_one_request_fetches() {
    let mut bench = Bench::new();
    let old = bench.put(1, &Made { grace: 10.0, keep: 10.0, ..fresh(1.0) });
    bench.now += 5.0;
    let Lookup::Grace { object, fetch: Some(busy) } = bench.look(1) else { panic!("the first fetches") };
    assert!(Arc::ptr_eq(&object, &old));
    for _ in 0..3 {
        let Lookup::Grace { fetch: None, .. } = bench.look(1) else { panic!("the others are served") };
    }
    assert_eq!(old.hits(), 4);
    let new = bench.make(1, &fresh(10.0));
    busy.publish(&new);
    bench.cache.remove(&old);
    assert!(Arc::ptr_eq(&bench.hit(1), &new));
    assert_eq!(bench.total(Main::NObject), 1);
}

#[test]
fn req_grace_and_req_ttl_can_only_shorten() {
    let mut bench = Bench::new();
    bench.put(1, &Made { grace: 10.0, ..fresh(10.0) });
    bench.now += 5.0;
    let message = request("/", &[]);
    let ask = |bench: &Bench, ttl: Option<f64>, grace: Option<f64>| {
        bench.ask(&key(1), &message, |lookup_request| (lookup_request.ttl_cap, lookup_request.grace_cap) = (ttl, grace))
    };
    assert!(matches!(ask(&bench, Some(20.0), None), Lookup::Hit(_)));
    assert!(matches!(ask(&bench, Some(1.0), None), Lookup::Miss { stale: None, .. }), "young, only not for this one");
    bench.now += 10.0;
    assert!(matches!(ask(&bench, None, Some(1.0)), Lookup::Miss { stale: Some(_), .. }));
    assert!(matches!(ask(&bench, None, Some(100.0)), Lookup::Grace { .. }));
    assert!(matches!(ask(&bench, Some(6.0), None), Lookup::Grace { .. }));
    assert!(matches!(ask(&bench, Some(4.0), None), Lookup::Miss { .. }), "grace begins where req.ttl ends");
    bench.now += 10.0;
    assert!(matches!(ask(&bench, None, Some(100.0)), Lookup::Miss { .. }));
}

#[test]
fn within_keep_a_stale_object_is_offered_for_revalidation() {
    let mut bench = Bench::new();
    let old = bench.put(1, &Made { grace: 1.0, keep: 10.0, ..fresh(1.0) });
    bench.now += 5.0;
    let Lookup::Miss { stale: Some(stale), .. } = bench.look(1) else { panic!("kept") };
    assert!(Arc::ptr_eq(&stale, &old));
    bench.now += 8.0;
    assert!(matches!(bench.look(1), Lookup::Miss { stale: None, .. }));
}

#[test]
fn markers_pass_or_fetch_without_waiting() {
    let mut bench = Bench::new();
    bench.put(1, &Made { flags: ObjectFlags::HIT_FOR_PASS, ..fresh(10.0) });
    bench.put(2, &Made { flags: ObjectFlags::HIT_FOR_MISS, grace: 10.0, ..fresh(10.0) });
    assert!(matches!(bench.look(1), Lookup::HitForPass(_)));
    let mut fetches = Vec::new();
    for _ in 0..2 {
        let Lookup::HitForMiss { busy, .. } = bench.look(2) else { panic!("never waits") };
        fetches.push(busy);
    }
    bench.now += 11.0;
    let Lookup::HitForMiss { .. } = bench.look(2) else { panic!("in grace it still marks") };
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    assert_eq!((bench.total(Main::CacheHitpass), bench.total(Main::CacheHitmiss)), (1, 3));
}

#[test]
fn variants_are_chosen_by_vary_and_many_are_noticed() {
    let mut bench = Bench::new();
    for value in ["a", "b", "c"] {
        bench.put(1, &Made { vary: vary("Foo", value), ..fresh(10.0) });
    }
    let ask = |bench: &Bench, value: &str, ignore: bool, notice: u64| {
        bench.ask(&key(1), &request("/", &[("Foo", value)]), |lookup_request| {
            (lookup_request.ignore_vary, lookup_request.vary_notice) = (ignore, notice);
        })
    };
    for value in ["a", "b", "c"] {
        let Lookup::Hit(object) = ask(&bench, value, false, 10) else { panic!("{value}") };
        assert_eq!(object.vary(), vary("Foo", value));
    }
    assert!(matches!(ask(&bench, "d", false, 10), Lookup::Miss { .. }));
    assert!(bench.log.borrow().is_empty());
    assert!(matches!(ask(&bench, "d", false, 3), Lookup::Miss { .. }));
    assert_eq!(bench.log.take(), [(Tag::Notice, "vsl: High number of variants (3)".to_owned())]);
    let Lookup::Hit(newest) = ask(&bench, "d", true, 10) else { panic!("Vary is ignored") };
    assert_eq!(newest.vary(), vary("Foo", "c"));
    assert_eq!((bench.total(Main::NObject), bench.total(Main::NObjecthead)), (3, 1));
}

#[test]
fn of_several_that_fit_the_newest_is_served() {
    let mut bench = Bench::new();
    bench.put(1, &fresh(10.0));
    let second = bench.put(1, &fresh(10.0));
    assert!(Arc::ptr_eq(&bench.hit(1), &second));
    bench.cache.remove(&second);
    assert!(!Arc::ptr_eq(&bench.hit(1), &second));
}

#[test]
fn an_object_that_failed_while_streaming_is_not_served_again() {
    let mut bench = Bench::new();
    let busy = bench.miss(1);
    let attributes = ObjectAttributes { key: key(1), origin: START, ttl: 10.0, ..ObjectAttributes::default() };
    let object = bench.cache.store().create(&attributes, &head(&[])).unwrap();
    busy.publish(&object);
    assert!(matches!(bench.look(1), Lookup::Hit(_)), "others may stream along");
    object.fail();
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    let second = bench.miss(1);
    let streamed = bench.cache.store().create(&attributes, &head(&[])).unwrap();
    second.publish(&streamed);
    streamed.fail();
    drop(second);
    assert_eq!(bench.total(Main::NObject), 0);
    drop((object, streamed, busy));
    assert_eq!(bench.cache.store().usage().g_alloc, 0);
    bench.now += 1.0;
}

#[test]
fn unshareable_response_only_ends_the_waiting() {
    let mut bench = Bench::new();
    let busy = bench.miss(1);
    busy.publish(&Object::passing(
        ObjectAttributes { key: key(1), ..ObjectAttributes::default() },
        Vec::new(),
        1 << 10,
    ));
    let other = bench.make(2, &fresh(10.0));
    let busy = bench.miss(1);
    busy.publish(&other);
    busy.publish(&other);
    assert_eq!((bench.total(Main::NObject), bench.total(Main::NObjectcore), bench.total(Main::NObjecthead)), (0, 0, 0));
    drop(bench.miss(1));
    drop(bench.miss(2));
}

#[test]
fn a_purge_takes_all_variants_at_once_and_for_good() {
    let mut bench = Bench::new();
    for value in ["a", "b"] {
        bench.put(1, &Made { vary: vary("Foo", value), ..fresh(10.0) });
    }
    bench.put(2, &fresh(10.0));
    assert_eq!(bench.cache.purge(&key(1), Purge::Hard, bench.now), 2);
    assert_eq!(bench.cache.purge(&key(1), Purge::Hard, bench.now), 0);
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    bench.hit(2);
    assert_eq!((bench.total(Main::NObject), bench.cache.store().usage().g_alloc), (1, 1));
}

#[test]
fn a_soft_purge_gives_the_life_that_is_asked_for() {
    let mut bench = Bench::new();
    let object = bench.put(1, &Made { grace: 10.0, keep: 3.0, ..fresh(100.0) });
    bench.now += 7.123_456;
    let soft = |ttl, grace, keep| Purge::Soft { ttl, grace, keep };
    assert_eq!(bench.cache.purge(&key(1), soft(500.0, 20.0, -1.0), bench.now), 1);
    assert_eq!((object.grace(), object.keep()), (20.0, 3.0));
    assert!((object.ttl() - 507.123_456).abs() < 1e-3, "{}", object.ttl());
    bench.cache.purge(&key(1), soft(0.0, 5.0, -1.0), bench.now);
    assert_eq!((object.grace(), object.keep()), (5.0, 3.0));
    assert!(matches!(bench.look(1), Lookup::Grace { .. }));
    drop(object);
    bench.wait(8.3);
    assert_eq!((bench.total(Main::NExpired), bench.total(Main::NObject)), (1, 0));
}
