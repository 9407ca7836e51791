//! Bans: at lookup, by the lurker, in the list.

use super::*;

fn made(header: &'static str) -> Made {
    Made { headers: vec![("X", header)], grace: 10.0, ..fresh(100.0) }
}

/// The list without times: reference count, state and text of each ban.
fn listed(bench: &Bench) -> Vec<String> {
    let line = |ban: &ListedBan| match ban.is_completed {
        true => format!("{} C", ban.references),
        false => format!("{} -  {}", ban.references, ban.specification),
    };
    bench.cache.list_bans().iter().map(line).collect()
}

#[test]
fn lookup_removes_banned_objects_and_records_tested_bans() {
    let mut bench = Bench::new();
    bench.put(1, &Made { xid: 501, ..made("a") });
    bench.put(2, &made("b"));
    bench.ban("obj.http.x == a");
    bench.ban("req.url == /7 && obj.http.x == b");
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    assert_eq!(bench.log.take(), [(Tag::ExpBan, "501 banned lookup".to_owned())]);
    bench.hit(2);
    bench.hit(2);
    assert_eq!((bench.total(Main::BansTested), bench.total(Main::BansObjKilled)), (2, 1));
    assert_eq!(bench.total(Main::BansTestsTested), 4);
    assert_eq!((bench.total(Main::Bans), bench.total(Main::BansAdded)), (3, 3));
    assert_eq!((bench.total(Main::BansObj), bench.total(Main::BansReq)), (2, 1));
}

#[test]
fn every_field_and_operator_has_its_documented_meaning() {
    let cases = [
        ("req.url ~ ^/1$", true),
        ("req.url == /2", false),
        ("req.url !~ 2", true),
        ("req.http.cookie == c", true),
        ("req.http.cookie ~ d", false),
        ("req.http.none == x", false),
        ("req.http.none != x", true),
        ("req.http.none ~ .", false),
        ("req.http.none !~ .", false),
        ("obj.http.X == a", true),
        ("obj.http.X !~ b", true),
        ("obj.http.none != a", true),
        ("obj.http.none !~ a", false),
        ("obj.status == 200", true),
        ("obj.status ~ ^2", true),
        ("obj.status != 200", false),
        ("obj.age > 4s", true),
        ("obj.age > 6s", false),
        ("obj.ttl < 96s", true),
        ("obj.ttl < 94s", false),
        ("obj.grace == 10s", true),
        ("obj.grace != 10s", false),
        ("obj.keep >= 0s", true),
        ("obj.keep > 0s", false),
        ("obj.keep <= 0s", true),
        ("req.url == /1 && obj.status == 404", false),
        ("req.url == /1 && obj.http.x == a && obj.age < 1m", true),
    ];
    for (text, bans) in cases {
        let mut bench = Bench::new();
        bench.put(1, &made("a"));
        bench.now += 5.0;
        bench.ban(text);
        let answer = bench.ask(&key(1), &request("/1", &[("Cookie", "c")]), |_| {});
        assert_eq!(matches!(answer, Lookup::Miss { .. }), bans, "{text}");
    }
}

#[test]
fn ages_and_lives_count_as_of_the_time_of_the_ban() {
    let mut bench = Bench::new();
    bench.put(1, &made("a"));
    bench.now += 5.0;
    bench.ban("obj.age > 10s");
    bench.ban("obj.ttl < 90s");
    // By now the object is older and nearer its end than it was when it was banned.
    bench.now += 30.0;
    bench.hit(1);
    bench.ban("obj.ttl > 60s");
    bench.now += 30.0;
    assert!(matches!(bench.look(1), Lookup::Miss { .. }), "it had 65 seconds left then");
}

#[test]
fn objects_unused_for_a_time_can_be_banned() {
    let mut bench = Bench::new();
    bench.put(1, &made("a"));
    bench.put(2, &made("a"));
    bench.now += 20.0;
    bench.hit(1);
    bench.now += 5.0;
    bench.ban("obj.last_hit > 10s");
    bench.hit(1);
    assert!(matches!(bench.look(2), Lookup::Miss { .. }), "nobody had it for 25 seconds");
}

#[test]
fn the_list_shows_references_and_forgets_what_is_older_than_all_objects() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.ban_lurker_sleep = 0.0);
    assert_eq!(listed(&bench), ["0 C"]);
    bench.put(1, &made("a"));
    bench.put(2, &made("a"));
    assert_eq!(listed(&bench), ["2 C"]);
    bench.ban("obj.http.c == d");
    bench.ban("req.url == foo");
    bench.hit(2);
    assert_eq!(listed(&bench), ["1 -  req.url == foo", "0 -  obj.http.c == d", "1 C"]);
    bench.hit(1);
    bench.ban("req.url == bar");
    assert_eq!(listed(&bench), ["0 -  req.url == bar", "2 -  req.url == foo"]);
    assert_eq!(bench.total(Main::BansDeleted), 2);
    bench.ban("req.url == foo");
    assert_eq!(listed(&bench), ["0 -  req.url == foo", "0 -  req.url == bar", "2 C"]);
    assert_eq!((bench.total(Main::BansDups), bench.total(Main::BansCompleted)), (1, 1));
    let bans = bench.cache.list_bans();
    assert_eq!((bans[0].time, bans[0].references, bans[0].is_completed), (1_700_000_000.0, 0, false));
    assert_eq!((bans[2].references, bans[2].is_completed), (2, true));
}

#[test]
fn without_a_lurker_bans_that_every_object_has_passed_go_as_time_passes() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.ban_lurker_sleep = 0.0);
    bench.put(1, &made("a"));
    bench.ban("obj.http.c == d");
    bench.ban("req.url == foo");
    assert_eq!(listed(&bench).len(), 3);
    bench.hit(1);
    bench.cache.tick(bench.now);
    assert_eq!(listed(&bench), ["1 -  req.url == foo"], "no further ban is needed for that");
}

#[test]
fn equal_bans_are_kept_when_ban_dups_is_off() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.ban_dups = false);
    bench.put(1, &made("a"));
    bench.ban("req.url == foo");
    bench.ban("req.url == foo");
    assert_eq!((bench.total(Main::BansDups), bench.total(Main::Bans)), (0, 3));
}

fn eager(bench: &Bench) {
    bench.set(|parameters| (parameters.ban_lurker_age, parameters.ban_lurker_batch) = (0.1, 3));
}

#[test]
fn the_lurker_kills_and_completes_bans_on_objects() {
    let mut bench = Bench::new();
    eager(&bench);
    for number in 0..20 {
        bench.put(number, &made(if number % 2 == 0 { "even" } else { "odd" }));
    }
    bench.ban("obj.http.x == odd");
    bench.wait(0.09);
    assert_eq!(bench.total(Main::BansLurkerTested), 0, "too young");
    bench.wait(2.0);
    assert_eq!((bench.total(Main::NObject), bench.total(Main::BansLurkerObjKilled)), (10, 10));
    assert_eq!((bench.total(Main::BansLurkerTested), bench.total(Main::BansLurkerTestsTested)), (20, 20));
    assert_eq!(listed(&bench), ["10 C"]);
    bench.hit(2);
    assert_eq!(bench.total(Main::BansTested), 0);
}

#[test]
fn the_lurker_leaves_bans_on_requests_to_lookups() {
    let mut bench = Bench::new();
    eager(&bench);
    bench.put(1, &made("a"));
    bench.put(2, &made("a"));
    bench.ban("obj.http.a == b");
    bench.ban("req.url == /1");
    bench.ban("obj.http.c == d");
    bench.wait(2.0);
    assert_eq!(listed(&bench), ["0 C", "0 -  req.url == /1", "2 C"]);
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    bench.hit(2);
    bench.wait(2.0);
    assert_eq!(listed(&bench), ["1 C"]);
}

#[test]
fn ban_cutoff_removes_objects_older_than_the_nth_ban() {
    let mut bench = Bench::new();
    bench.set(|parameters| (parameters.ban_lurker_age, parameters.ban_cutoff) = (0.0, 2));
    bench.put(1, &made("a"));
    bench.ban("req.url == /x");
    bench.put(2, &made("a"));
    bench.ban("req.url == /y");
    bench.put(3, &made("a"));
    bench.wait(1.0);
    assert_eq!(bench.total(Main::BansLurkerObjKilledCutoff), 1);
    bench.hit(2);
    bench.hit(3);
    assert_eq!(bench.total(Main::Bans), 2);
}

#[test]
fn ban_any_variant_limits_the_other_variants_that_a_lookup_tests() {
    for (most, tested) in [(10_000, 3), (1, 2), (0, 1)] {
        let mut bench = Bench::new();
        bench.set(|parameters| parameters.ban_any_variant = most);
        for value in ["1", "2", "3"] {
            bench.put(1, &Made { vary: vary("Foo", value), ..made("a") });
        }
        bench.ban("obj.http.x == other");
        bench.ask(&key(1), &request("/", &[("Foo", "1")]), |_| {});
        assert_eq!(bench.total(Main::BansTested), tested, "{most}");
    }
}

#[test]
fn a_response_fetched_before_a_ban_and_published_after_it_is_banned() {
    let mut bench = Bench::new();
    eager(&bench);
    let busy = [bench.miss(1), bench.miss(2), bench.miss(3)];
    bench.ban("obj.http.x == bad");
    bench.wait(1.0);
    bench.ban("req.url == /2");
    for (number, (busy, header)) in busy.iter().zip(["bad", "good", "good"]).enumerate() {
        let object = bench.make(number as u32 + 1, &made(header));
        busy.publish(&object);
    }
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    assert!(matches!(bench.look(2), Lookup::Miss { .. }));
    bench.hit(3);
}

#[test]
fn with_debug_lurker_the_list_shows_the_objects() {
    let mut bench = Bench::new();
    bench.set(|parameters| parameters.debug = 1 << 6);
    let object = bench.put(1, &made("a"));
    bench.ban("req.url == foo && obj.status == 200");
    let [new, old] = <[ListedBan; 2]>::try_from(bench.cache.list_bans()).unwrap();
    assert_eq!(
        (new.references, new.is_completed, new.specification.as_str()),
        (0, false, "req.url == foo && obj.status == 200")
    );
    assert!(new.tests_requests && new.tests_objects);
    assert!(new.addresses.is_some_and(|addresses| addresses.ban != 0 && addresses.objects.is_empty()));
    assert_eq!(old.addresses.map(|addresses| addresses.objects), Some(vec![Arc::as_ptr(&object) as usize]));
}
