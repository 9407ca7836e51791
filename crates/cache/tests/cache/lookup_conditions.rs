//! Lookups under the conditions of RFC 9111.

use super::*;
use cache::{LookupConditions, MissCause, Purge, RemovalRecord, Waiter};
use surface::limits::VARIANTS_MAX;
use surface::reason::RemovalReason;

/// Looks up with conditions.
fn lookup_with(
    bench: &Bench,
    number: u32,
    change: impl FnOnce(&mut LookupRequest<'_>, &mut LookupConditions),
) -> Lookup {
    bench.ask(&key(number), &request("/", &[]), |lookup_request| {
        let mut conditions = LookupConditions::default();
        change(lookup_request, &mut conditions);
        lookup_request.conditions = Some(conditions);
    })
}

fn look(bench: &Bench, number: u32) -> Lookup {
    lookup_with(bench, number, |_, _| {})
}

fn wait(bench: &Bench, number: u32) -> Waiter {
    let Lookup::Wait(waiter) = look(bench, number) else { panic!("it is being fetched") };
    waiter
}

fn kept(ttl: f64) -> Made {
    Made { keep: 100.0, ..fresh(ttl) }
}

#[test]
fn object_without_a_time_to_live_can_still_be_validated() {
    let mut bench = Bench::new();
    let object = bench.put(1, &kept(0.0));
    bench.now += 1.0;
    assert!(matches!(bench.look(1), Lookup::Miss { stale: None, .. }), "not in the other policies");
    let Lookup::Miss { stale: Some(stale), cause: MissCause::Expired(_), .. } = look(&bench, 1) else { panic!() };
    assert!(Arc::ptr_eq(&stale, &object));
}

#[test]
fn object_that_must_be_validated_is_never_an_answer_by_itself() {
    let mut bench = Bench::new();
    bench.put(1, &Made { flags: ObjectFlags::REVALIDATE, grace: 50.0, ..kept(10.0) });
    let miss = look(&bench, 1);
    assert!(matches!(miss, Lookup::Miss { stale: Some(_), cause: MissCause::MustValidate, .. }), "{miss:?}");
    drop(miss);
    bench.now += 20.0;
    assert!(matches!(look(&bench, 1), Lookup::Miss { stale: Some(_), .. }), "not even in its grace");
    let welcome = lookup_with(&bench, 1, |_, conditions| conditions.max_stale = f64::INFINITY);
    assert!(matches!(welcome, Lookup::Miss { .. }), "nor by a client's wish");
}

#[test]
fn one_validation_serves_its_waiters_only() {
    let mut bench = Bench::new();
    bench.put(1, &Made { flags: ObjectFlags::REVALIDATE, ..kept(0.0) });
    let Lookup::Miss { busy, .. } = look(&bench, 1) else { panic!("the first validates") };
    let waiters: Vec<Waiter> = (0..10).map(|_| wait(&bench, 1)).collect();
    let object = bench.make(1, &Made { flags: ObjectFlags::REVALIDATE, ..kept(0.0) });
    busy.publish(&object);
    for waiter in waiters {
        block_on(waiter.wait());
        let granted = waiter.granted();
        let answer = lookup_with(&bench, 1, |_, conditions| conditions.granted = granted);
        let Lookup::Hit(hit) = answer else { panic!("{answer:?}") };
        assert!(Arc::ptr_eq(&hit, &object));
    }
    assert!(matches!(look(&bench, 1), Lookup::Miss { .. }), "who comes later validates again");
}

#[test]
fn stale_object_can_be_granted_after_a_failed_wait() {
    let mut bench = Bench::new();
    let object = bench.put(1, &kept(1.0));
    bench.now += 5.0;
    let Lookup::Miss { busy, .. } = look(&bench, 1) else { panic!("stale") };
    let waiter = wait(&bench, 1);
    busy.grant(&object);
    drop(busy);
    block_on(waiter.wait());
    let granted = waiter.granted();
    assert!(matches!(lookup_with(&bench, 1, |_, conditions| conditions.granted = granted), Lookup::Hit(_)));
    drop(waiter);
    let Lookup::Miss { busy, .. } = look(&bench, 1) else { panic!("still stale for all others") };
    let waiter = wait(&bench, 1);
    drop(busy);
    block_on(waiter.wait());
    assert_eq!(waiter.granted(), 0, "a fetch that just fails grants nothing");
}

#[test]
fn object_of_an_earlier_worker_with_the_same_number_is_not_granted() {
    let mut bench = Bench::new();
    bench.put(1, &Made { xid: 3, ..kept(1.0) });
    bench.now += 5.0;
    let Lookup::Miss { busy, .. } = look(&bench, 1) else { panic!("stale") };
    let waiter = wait(&bench, 1);
    let object = bench.make(1, &Made { xid: 3, ..kept(1.0) });
    busy.publish(&object);
    bench.cache.remove(&object);
    block_on(waiter.wait());
    let granted = waiter.granted();
    let answer = lookup_with(&bench, 1, |_, conditions| conditions.granted = granted);
    assert!(matches!(answer, Lookup::Miss { stale: Some(_), .. }), "{answer:?}");
}

#[test]
fn clients_may_want_more_or_less_than_fresh() {
    let mut bench = Bench::new();
    bench.put(1, &Made { grace: 5.0, ..kept(10.0) });
    bench.now += 4.0;
    let max_age = |age: f64| lookup_with(&bench, 1, |lookup_request, _| lookup_request.ttl_cap = Some(age));
    assert!(matches!(max_age(5.0), Lookup::Hit(_)));
    for age in [0.0, 3.0] {
        let answer = max_age(age);
        assert!(matches!(answer, Lookup::Miss { stale: Some(_), cause: MissCause::Unwelcome, .. }), "{age} {answer:?}");
    }
    let min_fresh = |seconds: f64| lookup_with(&bench, 1, |_, conditions| conditions.min_fresh = seconds);
    assert!(matches!(min_fresh(6.0), Lookup::Hit(_)));
    assert!(matches!(min_fresh(7.0), Lookup::Miss { cause: MissCause::Unwelcome, .. }));
    bench.now += 8.0;
    let max_age = lookup_with(&bench, 1, |lookup_request, _| lookup_request.ttl_cap = Some(11.0));
    assert!(matches!(max_age, Lookup::Miss { .. }), "who limits the age does not get a stale one in its grace");
    drop(max_age);
    let welcome = lookup_with(&bench, 1, |_, conditions| conditions.max_stale = 2.0);
    assert!(matches!(welcome, Lookup::Hit(_)), "a client that accepts it starts no fetch");
    assert!(matches!(
        lookup_with(&bench, 1, |_, conditions| conditions.max_stale = 1.0),
        Lookup::Grace { fetch: Some(_), .. }
    ));
}

#[test]
fn object_that_must_not_be_stale_is_used_by_no_request_when_it_is() {
    let mut bench = Bench::new();
    bench.put(1, &Made { flags: ObjectFlags::NEVER_STALE, ..kept(1.0) });
    assert!(matches!(look(&bench, 1), Lookup::Hit(_)));
    bench.now += 2.0;
    let welcome = lookup_with(&bench, 1, |_, conditions| conditions.max_stale = f64::INFINITY);
    assert!(matches!(welcome, Lookup::Miss { stale: Some(_), .. }));
}

#[test]
fn grace_ends_with_the_second_it_names() {
    let mut bench = Bench::new();
    bench.put(1, &Made { grace: 4.0, ..kept(1.0) });
    bench.now += 4.9;
    assert!(matches!(look(&bench, 1), Lookup::Grace { .. }));
    bench.now += 0.2;
    assert!(matches!(look(&bench, 1), Lookup::Miss { stale: Some(_), .. }));
}

#[test]
fn variants_beyond_the_limit_replace_the_oldest() {
    let mut bench = Bench::new();
    bench.cache = Cache::in_memory(64 << 20, START).unwrap();
    for number in 0..VARIANTS_MAX + 5 {
        let value = number.to_string();
        let message = request("/", &[("Foo", &value)]);
        let answer = bench
            .ask(&key(1), &message, |lookup_request| lookup_request.conditions = Some(LookupConditions::default()));
        let Lookup::Miss { busy, .. } = answer else { panic!("{number}: {answer:?}") };
        let object = bench.make(1, &Made { vary: vary("Foo", &value), ..kept(100.0) });
        busy.publish(&object);
    }
    assert_eq!(bench.cache.object_count(), VARIANTS_MAX);
    let has = |value: &str| matches!(bench.ask(&key(1), &request("/", &[("Foo", value)]), |_| {}), Lookup::Hit(_));
    assert!(!has("4") && has("5") && has(&(VARIANTS_MAX + 4).to_string()));
}

#[test]
fn invalidation_takes_all_variants_but_its_own_and_what_is_being_fetched() {
    let mut bench = Bench::new();
    let own = bench.put(1, &Made { vary: vary("Foo", "1"), ..kept(10.0) });
    bench.put(1, &Made { vary: vary("Foo", "2"), ..kept(10.0) });
    bench.put(2, &kept(10.0));
    let asked = request("/", &[("Foo", "3")]);
    let Lookup::Miss { busy, .. } = bench.ask(&key(1), &asked, |_| {}) else { panic!("a third variant") };
    assert_eq!(bench.cache.invalidate(&key(1), Some(&own), bench.now), 1);
    let outdated = bench.make(1, &Made { vary: vary("Foo", "3"), ..kept(10.0) });
    busy.publish(&outdated);
    drop(busy);
    assert!(outdated.is_removed(), "the fetch began before");
    assert_eq!(bench.cache.object_count(), 2);
    assert!(matches!(look(&bench, 2), Lookup::Hit(_)));
    assert_eq!(bench.cache.invalidate(&key(1), None, bench.now), 1);
    assert_eq!(bench.cache.purge(&key(1), Purge::Hard, bench.now), 0);
    let Lookup::Miss { cause: MissCause::Absent(absence), .. } = look(&bench, 1) else { panic!("nothing is left") };
    assert!(
        matches!(absence.last_removal, Some(RemovalRecord { reason: RemovalReason::Invalidated, .. })),
        "{absence:?}"
    );
}

#[test]
fn language_that_the_client_prefers_is_found_among_other_variants_when_wanted() {
    let mut bench = Bench::new();
    let german =
        Made { vary: vary("Accept-Language", "en, de"), headers: vec![("Content-Language", "de")], ..kept(10.0) };
    bench.put(1, &german);
    let ask = |language: &str, selects_language: bool| {
        let message = request("/", &[("Accept-Language", language)]);
        let conditions = LookupConditions { selects_language, ..LookupConditions::default() };
        matches!(
            bench.ask(&key(1), &message, |lookup_request| lookup_request.conditions = Some(conditions)),
            Lookup::Hit(_)
        )
    };
    assert!(!ask("fr;q=0.5, de;q=1.0", false));
    assert!(ask("fr;q=0.5, de;q=1.0", true));
    assert!(!ask("fr, de;q=0.5", true));
}

#[test]
fn response_behind_a_marker_can_still_be_validated() {
    let mut bench = Bench::new();
    let object = bench.put(1, &kept(1.0));
    bench.now += 2.0;
    bench.put(1, &Made { flags: ObjectFlags::HIT_FOR_MISS, ..fresh(10.0) });
    let Lookup::HitForMiss { stale: Some(stale), .. } = look(&bench, 1) else { panic!("the newer one is a marker") };
    assert!(Arc::ptr_eq(&stale, &object));
    bench.now += 20.0;
    let Lookup::Miss { stale: Some(stale), .. } = look(&bench, 1) else { panic!("a marker has its time") };
    assert!(Arc::ptr_eq(&stale, &object));
    bench.put(1, &Made { flags: ObjectFlags::HIT_FOR_PASS, ..fresh(10.0) });
    assert!(matches!(look(&bench, 1), Lookup::HitForPass(_)));
}
