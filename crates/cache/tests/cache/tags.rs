//! Purges by tag: the objects that they hit, their cost, and that removed objects stay removed.

use super::lives::{Files, kill};
use super::*;
use cache::Purge;

const SOFT: Purge = Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 };

fn tagged(ttl: f64, tags: &'static str) -> Made {
    Made { headers: vec![("xkey", tags)], ..fresh(ttl) }
}

impl Bench {
    fn purge_tags(&self, list: &str, purge: Purge) -> usize {
        let mut purge = self.cache.purge_tags(list.as_bytes(), purge, self.now);
        assert!(purge.step(usize::MAX));
        purge.count()
    }

    fn is_gone(&self, number: u32) -> bool {
        matches!(self.look(number), Lookup::Miss { stale: None, .. })
    }
}

#[test]
fn all_objects_of_a_tag_go_and_no_others() {
    let mut bench = Bench::new();
    for number in 0..3000u32 {
        bench.put(number, &tagged(100.0, if number % 3 == 0 { "three" } else { "other more" }));
    }
    assert_eq!(bench.cache.tag_usage().tags, 3);
    assert_eq!(bench.cache.tag_usage().entries, 5000);
    assert_eq!(bench.purge_tags("thre three, nothing", Purge::Hard), 1000);
    assert_eq!((bench.total(Main::NObject), bench.total(Main::NExpired)), (2000, 1000));
    for number in 0..30 {
        assert_eq!(bench.is_gone(number), number % 3 == 0, "{number}");
    }
    assert_eq!(bench.purge_tags("three", Purge::Hard), 0);
    assert_eq!(bench.purge_tags("THREE Other", Purge::Hard), 0, "case counts");
    assert_eq!(bench.purge_tags(" ,\t,", Purge::Hard), 0);
}

#[test]
fn tags_stand_in_the_headers_of_publishing_systems_too() {
    let mut bench = Bench::new();
    let headers =
        vec![("surrogate-key", "page/1 shop"), ("Cache-Tag", "p1,p2"), ("Cache-Tags", "p3"), ("xkey", "shop")];
    for (tag, expected) in [("page/1", 1), ("p1", 1), ("p2", 1), ("p3", 0), ("shop", 1)] {
        bench.put(1, &Made { headers: headers.clone(), ..fresh(100.0) });
        assert_eq!(bench.purge_tags(tag, Purge::Hard), expected, "{tag}");
        bench.cache.purge(&key(1), Purge::Hard, bench.now);
    }
    assert_eq!(bench.cache.tag_usage().entries, 0);
}

#[test]
fn an_object_counts_once_whatever_its_tags() {
    let mut bench = Bench::new();
    for number in 0..3 {
        bench.put(number, &tagged(100.0, ["a", "a b", "a b c"][number as usize]));
    }
    let mut purge = bench.cache.purge_tags(b"c a b", SOFT, bench.now + 1.0);
    assert!(purge.step(usize::MAX));
    assert_eq!(purge.objects(), 3);
    let mut purge = bench.cache.purge_tags(b"c a b", Purge::Hard, bench.now + 1.0);
    assert!(purge.step(usize::MAX));
    assert_eq!((purge.objects(), purge.count()), (3, 6));
}

#[test]
fn tags_stand_in_two_headers_between_blanks_and_commas() {
    let mut bench = Bench::new();
    let headers = vec![("XKEY", "a  b,c\t d,"), ("xkey", ""), ("X-HashTwo", "e"), ("X-Key", "f"), ("xkey", "a g")];
    for (tag, expected) in
        [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1), ("f", 0), ("g", 1), ("a b", 2), ("a a", 2), ("f,a", 1)]
    {
        bench.put(1, &Made { headers: headers.clone(), ..fresh(100.0) });
        assert_eq!(bench.purge_tags(tag, Purge::Hard), expected, "{tag}: once for each tag in the list");
        assert_eq!(bench.purge_tags("a", Purge::Hard), 1 - expected.min(1));
    }
}

#[test]
fn a_soft_purge_leaves_grace_and_counts_what_was_fresh() {
    let mut bench = Bench::new();
    bench.put(1, &Made { grace: 100.0, ..tagged(10.0, "a b") });
    bench.put(2, &Made { grace: 100.0, ..tagged(1.0, "a") });
    bench.now += 2.0;
    assert_eq!(bench.purge_tags("a b", SOFT), 1, "2 was stale already");
    assert!(matches!(bench.look(1), Lookup::Grace { fetch: Some(_), .. }));
    assert_eq!(bench.purge_tags("a b", SOFT), 0);
    assert_eq!(bench.purge_tags("a", Purge::Hard), 2, "a hard one takes the stale ones too");
    assert!(bench.is_gone(1) && bench.is_gone(2));
}

#[test]
fn every_variant_and_marker_has_its_tags() {
    let mut bench = Bench::new();
    for language in ["en", "de"] {
        bench.put(1, &Made { vary: vary("Accept-Language", language), ..tagged(100.0, "a") });
    }
    bench.put(2, &Made { flags: ObjectFlags::HIT_FOR_MISS, ..tagged(100.0, "a") });
    assert_eq!(bench.purge_tags("a", Purge::Hard), 3);
    assert_eq!(bench.total(Main::NObject), 0);
}

#[test]
fn tags_leave_with_their_objects_and_give_their_memory_back() {
    let mut bench = Bench::new();
    let before = bench.cache.store().held_bytes();
    for number in 0..100u32 {
        bench.put(number, &tagged(f64::from(number % 4) + 1.0, "a b c"));
    }
    let usage = bench.cache.tag_usage();
    assert_eq!((usage.tags, usage.entries), (3, 300));
    assert!(usage.bytes >= 300 * 12 && bench.cache.store().held_bytes() > before + usage.bytes);
    let removed = bench.hit(0);
    bench.cache.remove(&removed);
    drop(removed);
    bench.cache.purge(&key(1), Purge::Hard, bench.now);
    assert_eq!(bench.cache.tag_usage().entries, 294);
    bench.wait(10.0);
    assert_eq!(bench.cache.tag_usage(), cache::TagUsage::default());
    assert_eq!(bench.cache.store().held_bytes(), before);
}

#[test]
fn tags_count_against_the_one_limit() {
    let mut bench = Bench::with(Cache::in_memory(1 << 20, START).unwrap());
    let many: &'static str = (0..500).map(|tag| format!("tag{tag} ")).collect::<String>().leak();
    for number in 0..400 {
        bench.put(number, &tagged(100.0, many));
        let store = bench.cache.store();
        assert!(store.held_bytes() <= store.limit_bytes(), "{}", store.held_bytes());
    }
    let usage = bench.cache.tag_usage();
    assert!(bench.total(Main::NLruNuked) > 300, "{}", bench.total(Main::NLruNuked));
    assert_eq!(usage.entries, 500 * bench.total(Main::NObject), "those of the evicted are gone");
}

#[test]
fn a_long_purge_goes_in_steps_and_misses_nothing() {
    let mut bench = Bench::new();
    for number in 0..1000u32 {
        bench.put(number, &tagged(100.0, if number % 2 == 0 { "even all" } else { "all" }));
    }
    let mut purge = bench.cache.purge_tags(b"even all", Purge::Hard, bench.now);
    let mut steps = 0;
    while !purge.step(100) {
        steps += 1;
        bench.put(5000 + steps, &tagged(100.0, "else"));
    }
    assert_eq!(purge.count(), 1500, "the even ones carry both");
    assert!((9..=12).contains(&steps), "{steps}");
    assert_eq!(bench.total(Main::NObject), u64::from(steps));
    let mut soft = bench.cache.purge_tags(b"else", SOFT, bench.now + 1.0);
    while !soft.step(1) {}
    assert_eq!(soft.count(), steps as usize);
}

#[test]
fn a_streaming_object_leaves_the_index_and_its_reader_goes_on() {
    let mut bench = Bench::new();
    let busy = bench.miss(1);
    let attributes = ObjectAttributes { key: key(1), xid: 7, origin: bench.now, ttl: 100.0, ..Default::default() };
    let object = bench.cache.store().create(&attributes, &head(&[("xkey", "a")])).unwrap();
    block_on(object.append(b"first")).unwrap();
    busy.publish(&object);
    assert_eq!(bench.purge_tags("a", Purge::Hard), 1);
    assert!(bench.is_gone(1));
    block_on(object.append(b" and last")).unwrap();
    object.finish();
    assert_eq!(object.available_bytes(), 14);
    drop(busy);
    assert!(bench.is_gone(1));
    bench.now += 1.0;
    let _ = bench.purge_tags("a", Purge::Hard);
}

#[test]
fn objects_purged_by_tag_never_return_and_tags_are_recovered() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    for number in 0..8u32 {
        let tags = ["a", "b", "a b", "c"][number as usize % 4];
        bench.put(number, &Made { grace: 100.0, ..tagged(100.0, tags) });
    }
    bench.now += 1.0;
    assert_eq!(bench.purge_tags("a", Purge::Hard), 4);
    assert_eq!(bench.purge_tags("c", SOFT), 2);
    kill(bench);

    let (bench, kept) = files.worker(START + 2.0);
    assert_eq!(kept, 4);
    assert!([0, 2, 4, 6].into_iter().all(|number| bench.is_gone(number)));
    assert!(matches!(bench.look(3), Lookup::Grace { .. }), "a soft purge is durable too");
    assert_eq!(bench.cache.tag_usage().entries, 4);
    assert_eq!(bench.purge_tags("b", Purge::Hard), 2);
    kill(bench);
    let (bench, kept) = files.worker(START + 3.0);
    assert_eq!(kept, 2);
    assert!(bench.is_gone(1));
}

fn note(byte: u8) -> Vec<u8> {
    let mut note = Vec::new();
    message::encode_note(&mut note, &[byte; 16]);
    note
}

impl Bench {
    /// Puts an object with the tag `a` that is in these groups.
    fn put_grouped(&mut self, number: u32, groups: &[u8]) -> Arc<Object> {
        let busy = self.miss(number);
        let mut head = head(&[("xkey", "a")]);
        groups.iter().for_each(|group| head.extend_from_slice(&note(*group)));
        let attributes = ObjectAttributes {
            key: key(number),
            xid: number.into(),
            origin: self.now,
            ttl: 100.0,
            body_bytes: Some(0),
            ..Default::default()
        };
        let object = self.cache.store().create(&attributes, &head).unwrap();
        object.finish();
        busy.publish(&object);
        object
    }

    fn invalidate_groups(&self, groups: &[u8], except: Option<&Arc<Object>>) -> usize {
        let list: Vec<u8> = groups.iter().flat_map(|group| note(*group)).collect();
        let mut purge = self.cache.invalidate_groups(&list, except, self.now);
        while !purge.step(1) {}
        purge.objects()
    }
}

#[test]
fn groups_come_back_after_a_crash_and_what_was_in_a_removed_one_does_not() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    let put =
        [(1, &b"x"[..]), (2, b"xy"), (3, b"y"), (4, b"")].map(|(number, groups)| bench.put_grouped(number, groups));
    assert_eq!(bench.cache.tag_usage().entries, 8);
    bench.now += 1.0;
    assert_eq!(bench.invalidate_groups(b"x", Some(&put[1])), 1, "the answer itself stays");
    drop(put);
    kill(bench);
    let (bench, kept) = files.worker(START + 2.0);
    assert_eq!(kept, 3);
    assert_eq!(bench.invalidate_groups(b"zx", None), 1);
    assert_eq!(bench.invalidate_groups(b"xy", None), 1);
    assert_eq!(bench.total(Main::NExpired), 0);
    assert_eq!((bench.is_gone(3), bench.is_gone(4)), (true, false));
    assert_eq!(bench.cache.tag_usage().entries, 1);
}

#[test]
fn object_of_an_earlier_worker_with_the_number_of_the_answer_is_no_answer() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    bench.put_grouped(3, b"x");
    bench.put(4, &Made { xid: 3, ..fresh(100.0) });
    kill(bench);
    let (mut bench, kept) = files.worker(START + 1.0);
    assert_eq!(kept, 2);
    let answer = bench.make(5, &Made { xid: 3, ..fresh(100.0) });
    assert_eq!(bench.invalidate_groups(b"x", Some(&answer)), 1);
    assert_eq!(bench.cache.invalidate(&key(4), Some(&answer), bench.now), 1);
}

#[test]
fn no_list_of_tags_names_a_group() {
    let mut bench = Bench::new();
    bench.put_grouped(1, b"x");
    for list in ["xxxxxxxxxxxxxxxx", " xxxxxxxxxxxxxxxx", ", xxxxxxxxxxxxxxxx"] {
        assert_eq!(bench.purge_tags(list, Purge::Hard), 0, "{list}");
    }
    assert_eq!(bench.invalidate_groups(b"x", None), 1);
}

#[test]
fn order_of_a_fleet_by_tag_hits_fetches_under_way_and_only_those() {
    let mut bench = Bench::new();
    bench.put(1, &tagged(100.0, "a"));
    let (hit, other) = (bench.miss(2), bench.miss(3));
    let before = bench.cache.mark();
    let mut purge = bench.cache.purge_tags_and_fetches(b"x a", Purge::Hard, bench.now).unwrap();
    assert!(purge.step(usize::MAX));
    assert_eq!(purge.objects(), 1);
    let after = bench.cache.mark();
    assert!(after.0 == before.0 && after.1 > before.1, "{before:?} {after:?}");
    let later = bench.miss(4);
    for (number, busy, tags) in [(2, &hit, "b a"), (3, &other, "b"), (4, &later, "a")] {
        let object = bench.make(number, &tagged(100.0, tags));
        busy.publish(&object);
    }
    drop((hit, other, later));
    assert!(bench.is_gone(1) && bench.is_gone(2));
    bench.hit(3);
    bench.hit(4);
    // A soft one too, and everything.
    let busy = bench.miss(5);
    assert!(bench.cache.purge_tags_and_fetches(b"b", SOFT, bench.now).unwrap().step(usize::MAX));
    let object = bench.make(5, &tagged(100.0, "b"));
    busy.publish(&object);
    drop(busy);
    assert!(bench.is_gone(5));
    let busy = bench.miss(6);
    assert_eq!(bench.cache.ban_everything(bench.now), Ok(2));
    let object = bench.make(6, &fresh(100.0));
    busy.publish(&object);
    drop(busy);
    assert!(!matches!(bench.look(4), Lookup::Hit(_)) && !matches!(bench.look(6), Lookup::Hit(_)));
}

#[test]
fn purge_with_fetches_hits_those_of_its_key() {
    let mut bench = Bench::new();
    let (hit, other) = (bench.miss(1), bench.miss(2));
    assert_eq!(bench.cache.purge_with_fetches(&key(1), SOFT, bench.now), 0);
    for (number, busy) in [(1, &hit), (2, &other)] {
        let object = bench.make(number, &fresh(100.0));
        busy.publish(&object);
    }
    drop((hit, other));
    assert!(bench.is_gone(1));
    bench.hit(2);
}
