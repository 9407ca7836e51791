//! The removal history of the latest keys.

use super::*;
use cache::{Absence, MissCause, Purge};
use surface::limits::{REMOVED_KEYS_MAX, WHY_TEXT_BYTES_MAX};
use surface::reason::RemovalReason;

fn absence(bench: &Bench, number: u32) -> Absence {
    match bench.look(number) {
        Lookup::Miss { cause: MissCause::Absent(absence), .. } => absence,
        other => panic!("{number}: {other:?}"),
    }
}

#[test]
fn each_way_out_is_told_with_its_time() {
    let mut bench = Bench::with(Cache::in_memory(1 << 20, START).unwrap());
    assert_eq!(absence(&bench, 1), Absence { last_removal: None, known_since: START });
    bench.put(1, &fresh(1e6));
    bench.now += 5.0;
    bench.cache.purge(&key(1), Purge::Hard, bench.now);
    bench.now += 5.0;
    let removal = absence(&bench, 1).last_removal.expect("it was purged");
    assert_eq!((removal.reason, removal.at), (RemovalReason::Purged, START + 5.0));
    bench.put(2, &fresh(1.0));
    bench.wait(3.0);
    assert_eq!(absence(&bench, 2).last_removal.unwrap().reason, RemovalReason::Expired);
    let body = vec![1; 100_000];
    for number in 10..25 {
        bench.now += 1.0;
        bench.put(number, &Made { body: body.clone(), ..fresh(1e6) });
    }
    assert_eq!(absence(&bench, 10).last_removal.unwrap().reason, RemovalReason::Evicted);
    // The latest removal counts.
    bench.put(1, &fresh(1.0));
    bench.wait(3.0);
    assert_eq!(absence(&bench, 1).last_removal.unwrap().reason, RemovalReason::Expired);
}

#[test]
fn ban_is_reported_as_the_cause_of_a_miss_at_the_lookup_and_after_the_lurker() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.ban_lurker_age = 1.0);
    let long = "x".repeat(1000);
    bench.put(1, &Made { headers: vec![("a", "b")], ..fresh(1e6) });
    bench.ban("obj.http.a == b");
    match bench.look(1) {
        Lookup::Miss { cause: MissCause::Banned { objects: 1, ban }, .. } => {
            assert_eq!((ban.time, ban.text.as_str()), (START, "obj.http.a == b"));
        }
        other => panic!("{other:?}"),
    }
    bench.put(1, &Made { headers: vec![("a", "b")], ..fresh(1e6) });
    bench.now += 1.0;
    bench.ban(&format!("obj.http.a != {long}"));
    bench.wait(10.0);
    let removal = absence(&bench, 1).last_removal.unwrap();
    let ban = removal.ban.expect("the lurker's ban");
    assert_eq!((removal.reason, ban.time, ban.text.len()), (RemovalReason::Banned, START + 1.0, WHY_TEXT_BYTES_MAX));
}

#[test]
fn history_is_bounded_and_reports_its_start() {
    let mut bench = Bench::new();
    let number_max = 4 * REMOVED_KEYS_MAX as u32;
    for number in 0..number_max {
        bench.now += 0.001;
        bench.put(number, &fresh(1e6));
        bench.cache.purge(&key(number), Purge::Hard, bench.now);
    }
    let first = absence(&bench, 0);
    assert!(first.last_removal.is_none() && first.known_since > START + 1.0, "{first:?}");
    let last = absence(&bench, number_max - 1);
    assert_eq!(last.last_removal.unwrap().reason, RemovalReason::Purged);
    let known = (0..number_max).filter(|number| absence(&bench, *number).last_removal.is_some()).count();
    assert!((REMOVED_KEYS_MAX / 2..=REMOVED_KEYS_MAX).contains(&known), "{known}");
}
