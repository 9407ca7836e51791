//! Expiry, and the objects that survive a restart.

use super::*;
use cache::Purge;
use std::os::fd::{AsFd, OwnedFd};
use store::{Journal, Store};

#[test]
fn objects_leave_when_their_lives_end_and_not_before() {
    let mut bench = Bench::new();
    for number in 0..50u32 {
        bench.put(number, &Made { grace: 1.0, keep: 1.0, ..fresh(f64::from(number) + 0.5) });
    }
    assert_eq!((bench.total(Main::ExpMailed), bench.total(Main::ExpReceived)), (50, 50));
    for second in 0..60 {
        bench.wait(1.0);
        // number + 0.5 + 2 seconds
        let expired = (second as u64).saturating_sub(1).min(50);
        assert_eq!(bench.total(Main::NExpired), expired, "after {} seconds", second + 1);
        assert_eq!(bench.total(Main::NObject), 50 - expired);
    }
    assert_eq!((bench.cache.store().usage().g_alloc, bench.total(Main::Bans)), (0, 1));
}

#[test]
fn tick_returns_the_time_of_the_next_call() {
    let mut bench = Bench::new();
    bench.put(1, &fresh(0.2));
    let next = bench.cache.tick(bench.now);
    assert!(next > bench.now && next <= bench.now + 0.4, "{}", next - bench.now);
    bench.wait(0.4);
    assert_eq!(bench.total(Main::NExpired), 1);
    assert!(bench.cache.tick(bench.now) <= bench.now + 1.0);
}

#[test]
fn expiry_is_logged() {
    let mut bench = Bench::new();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    bench.cache.set_log_sink(Box::new(move |tag, payload| {
        log.lock().push((tag, String::from_utf8_lossy(payload).into_owned()));
    }));
    bench.put(1, &Made { grace: 3.0, xid: 77, ..fresh(1.0) });
    bench.wait(6.0);
    assert!(seen.lock().is_empty(), "it is masked unless somebody asks for it");
    bench.set(|parameters| parameters.vsl_mask = [0; 32]);
    // Pointers cannot be predicted.
    let taken = || -> Vec<String> {
        let mut seen = seen.lock();
        let lines = seen.drain(..).map(|(tag, line): (Tag, String)| {
            assert_eq!(tag, Tag::ExpKill);
            line.split(' ').filter(|word| !word.starts_with("p=")).collect::<Vec<_>>().join(" ")
        });
        lines.collect()
    };
    let now = bench.now;
    bench.put(1, &Made { grace: 3.0, xid: 77, ..fresh(1.0) });
    let dies_at = format!("{:.6}", now + 4.0);
    let arrival = |dies_at: &str, left: &str| {
        [
            "EXP_Inbox flg=1e e=0.000000 f=0x0".to_owned(),
            format!("EXP_When e={dies_at} f=0x1e"),
            format!("EXP_expire e={left} f=0x0"),
        ]
    };
    assert_eq!(taken(), arrival(&dies_at, "4.000000"));
    bench.wait(6.0);
    let expired = taken();
    assert!(expired[0].starts_with("EXP_expire e=-0.") && expired[0].ends_with(" f=0x0"), "{expired:?}");
    assert_eq!(expired[1..], ["EXP_Expired x=77 t=-3"]);
    bench.put(2, &Made { xid: 78, ..fresh(1.0) });
    taken();
    let (old, new) = (format!("{:.6}", bench.now + 1.0), format!("{:.6}", bench.now));
    assert_eq!(bench.cache.purge(&key(2), Purge::Hard, bench.now), 1);
    let purge = [
        format!("EXP_Rearm E={old} e={new} f=0x0"),
        "EXP_expire e=1.000000 f=0x0".to_owned(),
        format!("EXP_Inbox flg=e e={old} f=0x0"),
        format!("EXP_When e={new} f=0xe"),
        "EXP_expire e=-0.000001 f=0x0".to_owned(),
        "EXP_Expired x=78 t=-0".to_owned(),
    ];
    assert_eq!(taken(), purge);
    // A soft purge is a change, a ban a removal.
    bench.put(3, &Made { xid: 79, headers: vec![("X", "a")], ..fresh(100.0) });
    taken();
    bench.cache.purge(&key(3), Purge::Soft { ttl: 50.0, grace: -1.0, keep: -1.0 }, bench.now);
    let (old, new) = (format!("{:.6}", bench.now + 100.0), format!("{:.6}", bench.now + 50.0));
    let change = [
        format!("EXP_Rearm E={old} e={new} f=0x0"),
        "EXP_expire e=100.000000 f=0x0".to_owned(),
        format!("EXP_Inbox flg=e e={old} f=0x0"),
        format!("EXP_When e={new} f=0xe"),
        "EXP_expire e=50.000000 f=0x0".to_owned(),
    ];
    assert_eq!(taken(), change);
    bench.ban("obj.http.x == a");
    bench.look(3);
    assert_eq!(taken(), ["EXP_expire e=50.000000 f=0x80".to_owned(), format!("EXP_Inbox flg=26 e={new} f=0x80")]);
    // The records of the next object that expires surround those of each other one. Markers have
    // flags.
    bench.put(4, &Made { xid: 80, ..fresh(10.0) });
    taken();
    let flags = ObjectFlags::TRANSIENT | ObjectFlags::HIT_FOR_MISS;
    bench.put(5, &Made { xid: 81, flags, ttl: 5.0, ..Made::default() });
    let dies_at = format!("{:.6}", bench.now + 5.0);
    let marker = [
        "EXP_expire e=10.000000 f=0x0".to_owned(),
        "EXP_Inbox flg=1e e=0.000000 f=0x4".to_owned(),
        format!("EXP_When e={dies_at} f=0x1e"),
        "EXP_expire e=5.000000 f=0x4".to_owned(),
    ];
    assert_eq!(taken(), marker);
    bench.put(
        6,
        &Made { xid: 82, flags: ObjectFlags::TRANSIENT | ObjectFlags::HIT_FOR_PASS, ttl: 20.0, ..Made::default() },
    );
    let dies_at = format!("{:.6}", bench.now + 20.0);
    let marker = [
        "EXP_expire e=5.000000 f=0x14".to_owned(),
        "EXP_Inbox flg=1e e=0.000000 f=0xc".to_owned(),
        format!("EXP_When e={dies_at} f=0x1e"),
        "EXP_expire e=5.000000 f=0x14".to_owned(),
    ];
    assert_eq!(taken(), marker);
    bench.wait(30.0);
    let (expired, is_due) =
        (taken(), |line: &String, flags: &str| line.starts_with("EXP_expire e=-0.") && line.ends_with(flags));
    assert!(is_due(&expired[0], " f=0x14") && expired[1] == "EXP_Expired x=81 t=-0", "{expired:?}");
    assert!(expired[2].starts_with("EXP_expire e=4.9") || expired[2].starts_with("EXP_expire e=5.0"), "{expired:?}");
    assert!(is_due(&expired[3], " f=0x0") && expired[4] == "EXP_Expired x=80 t=-0", "{expired:?}");
    assert!(is_due(&expired[6], " f=0x1c") && expired[7] == "EXP_Expired x=82 t=-0", "{expired:?}");
    assert_eq!(expired.len(), 8, "{expired:?}");
}

#[test]
fn evictions_are_logged_as_removals() {
    let mut bench = Bench::with(Cache::in_memory(1 << 20, START).unwrap());
    bench.set(|parameters| parameters.vsl_mask = [0; 32]);
    let body = vec![1; 200_000];
    for number in 1..=4 {
        bench.now += 1.0;
        bench.put(number, &Made { body: body.clone(), xid: number, ..fresh(100.0) });
    }
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    bench.cache.set_log_sink(Box::new(move |_, payload| {
        let words = String::from_utf8_lossy(payload).into_owned();
        log.lock().push(words.split(' ').filter(|word| !word.starts_with("p=")).collect::<Vec<_>>().join(" "));
    }));
    bench.now += 1.0;
    let new = bench.make(5, &Made { body: vec![1; 400_000], xid: 5, ..fresh(100.0) });
    let (left, dies_at) = (format!("{:.6}", 97.0), format!("{:.6}", START + 101.0));
    let eviction = [
        "LRU_Cand f=0x0 r=1".to_owned(),
        "LRU x=1".to_owned(),
        format!("EXP_expire e={left} f=0x80"),
        format!("EXP_Inbox flg=26 e={dies_at} f=0x80"),
        format!("EXP_expire e={:.6} f=0x0", 98.0),
    ];
    assert_eq!(seen.lock()[..5], eviction);
    seen.lock().clear();
    drop(new);
    let held: Vec<_> = [3, 4].into_iter().map(|number| bench.hit(number)).collect();
    let wanted = ObjectAttributes { key: key(9), body_bytes: Some(900_000), ..ObjectAttributes::default() };
    let object = bench.cache.store().create(&wanted, &head(&[]));
    assert!(object.is_err() || block_on(object.unwrap().append(&vec![1; 900_000])).is_err());
    assert!(seen.lock().contains(&"LRU_Fail".to_owned()), "{:?}", seen.lock());
    drop(held);
}

/// The files that outlive the workers: the arena of each storage, and the journal.
pub(crate) struct Files {
    arenas: Vec<OwnedFd>,
    journal: OwnedFd,
}

fn memory_file() -> OwnedFd {
    tempfile::tempfile().unwrap().into()
}

impl Files {
    pub(crate) fn new() -> Files {
        Files::of(1)
    }

    pub(crate) fn of(storages: usize) -> Files {
        Files { arenas: (0..storages).map(|_| memory_file()).collect(), journal: memory_file() }
    }

    pub(crate) fn worker(&self, now: f64) -> (Bench, usize) {
        let clone = |file: &OwnedFd| file.as_fd().try_clone_to_owned().unwrap();
        let (mut stores, mut objects) = (Vec::new(), Vec::new());
        for (number, arena) in self.arenas.iter().enumerate() {
            let (store, recovered) = Store::open(clone(arena), &format!("s{number}"), 4 << 20).unwrap();
            stores.push(store);
            objects.extend(recovered.objects);
        }
        let cache = Cache::new(stores, Journal::open(clone(&self.journal)).unwrap(), now).unwrap();
        let kept = cache.adopt(objects, now, 2);
        let mut bench = Bench::with(cache);
        bench.now = now;
        (bench, kept)
    }
}

/// The worker dies: no destructor runs.
pub(crate) fn kill(bench: Bench) {
    std::mem::forget(bench);
}

#[test]
fn removed_purged_and_banned_objects_never_return() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    bench.set(|parameters| parameters.ban_lurker_sleep = 0.0);
    for number in 0..6 {
        bench.put(number, &Made { headers: vec![("X", if number == 3 { "bad" } else { "good" })], ..fresh(100.0) });
    }
    let removed = bench.hit(1);
    bench.cache.remove(&removed);
    bench.cache.purge(&key(2), Purge::Hard, bench.now);
    bench.ban("obj.http.x == bad");
    bench.ban("req.url == /4");
    bench.hit(0);
    bench.put(5, &fresh(1.0));
    kill(bench);

    let (bench, kept) = files.worker(START + 50.0);
    assert_eq!(kept, 4, "0, 3, 4 and the older 5; the newer 5 has expired");
    bench.hit(0);
    bench.hit(5);
    for number in 1..5 {
        assert!(matches!(bench.look(number), Lookup::Miss { .. }), "{number} came back");
    }
    assert_eq!(bench.total(Main::BansObjKilled), 2);
    kill(bench);
    let (bench, kept) = files.worker(START + 60.0);
    assert_eq!(kept, 2);
    assert_eq!(bench.total(Main::NObject), 2);
}

#[test]
fn adoption_by_several_threads_is_complete() {
    const OBJECTS: u32 = 20_000;
    let files = Files::of(3);
    let (mut bench, _) = files.worker(START);
    for number in 0..OBJECTS {
        let (store, ttl) = (number as usize % 3, if number % 4 == 0 { 10.0 } else { 100.0 });
        if number == OBJECTS / 2 {
            bench.ban("req.url == /nothing");
        }
        bench.put(number, &Made { store, ..fresh(ttl) });
    }
    kill(bench);
    let (bench, kept) = files.worker(START + 50.0);
    assert_eq!(kept as u32, OBJECTS / 4 * 3);
    assert_eq!(bench.total(Main::NObject), u64::from(OBJECTS / 4 * 3));
    let references: Vec<u64> = bench.cache.list_bans().iter().map(|ban| ban.references).collect();
    assert_eq!(references, [u64::from(OBJECTS / 8 * 3); 2]);
    for number in 0..OBJECTS {
        let found = bench.look(number);
        assert_eq!(matches!(found, Lookup::Hit { .. }), number % 4 != 0, "{number}");
    }
}

#[test]
fn a_ban_with_the_number_of_one_that_was_lost_hits_what_was_tested_against_that() {
    let mut files = Files::new();
    let (mut bench, _) = files.worker(START);
    bench.ban("req.url == /nothing");
    bench.put(0, &fresh(100.0));
    bench.hit(0);
    kill(bench);
    // The power failed before the ban was on the disk, but after the object was.
    files.journal = memory_file();
    let (bench, kept) = files.worker(START + 1.0);
    assert_eq!(kept, 1);
    bench.hit(0);
    bench.ban("req.url == /0");
    assert!(matches!(bench.look(0), Lookup::Miss { .. }), "the ban has the number of the lost one");
}

#[test]
fn that_holds_for_every_storage() {
    let files = Files::of(3);
    let (mut bench, _) = files.worker(START);
    bench.set(|parameters| parameters.ban_lurker_sleep = 0.0);
    for number in 0..12 {
        let headers = vec![("X", if number / 3 == 3 { "bad" } else { "good" }), ("xkey", "all")];
        bench.put(number, &Made { store: number as usize % 3, headers, ..fresh(100.0) });
    }
    for number in 0..3 {
        let removed = bench.hit(number);
        bench.cache.remove(&removed);
        bench.cache.purge(&key(3 + number), Purge::Hard, bench.now);
    }
    bench.ban("obj.http.x == bad");
    bench.now += 1.0;
    // A newer response to the same request, in another storage.
    bench.put(6, &Made { store: 1, xid: 66, ..fresh(100.0) });
    kill(bench);

    let (bench, kept) = files.worker(START + 50.0);
    assert_eq!(kept, 7, "6, 7 and 8, the newer 6, and three that a ban awaits");
    assert_eq!((bench.hit(6).xid(), bench.hit(6).store_number()), (66, Some(1)));
    assert_eq!((bench.hit(7).store_number(), bench.hit(8).store_number()), (Some(1), Some(2)));
    for number in (0..6).chain(9..12) {
        assert!(matches!(bench.look(number), Lookup::Miss { .. }), "{number} came back");
    }
    let held: Vec<u64> = bench.cache.stores().iter().map(|store| store.usage().g_alloc).collect();
    assert_eq!(held, [1, 2, 1]);
    assert_eq!(bench.cache.tag_usage().entries, 3, "the tags of recovered objects");
}

/// A copy of an object, under a key that only its maker can derive.
fn copy(bench: &Bench, key: [u8; 32], ttl: f64, body: &[u8]) -> Arc<Object> {
    let attributes = ObjectAttributes {
        key,
        xid: 7,
        origin: bench.now,
        ttl,
        body_bytes: Some(body.len() as u64),
        ..ObjectAttributes::default()
    };
    let copy = bench.cache.store().create(&attributes, b"head").unwrap();
    block_on(copy.append(body)).unwrap();
    copy.finish();
    bench.cache.keep_copy(&copy);
    copy
}

#[test]
fn bans_are_not_kept_for_copies_as_for_fetches_under_way() {
    let mut bench = Bench::new();
    bench.set(|parameters| (parameters.ban_lurker_age, parameters.ban_lurker_batch) = (0.1, 100));
    bench.put(1, &fresh(1000.0));
    // The lurker cannot test this one, so the list does not end here.
    bench.ban("req.url == /never");
    copy(&bench, [9; 32], 1000.0, b"copy");
    for number in 0..3000 {
        bench.ban(&format!("obj.http.x == {number}"));
    }
    bench.wait(10.0);
    // A list of usual length is left alone.
    assert!(bench.total(Main::Bans) < 1100, "{} bans", bench.total(Main::Bans));
}

#[test]
fn a_copy_is_an_object_under_a_key_of_its_own_and_outlives_the_worker() {
    let files = Files::new();
    let (bench, _) = files.worker(START);
    let secret = [9; 32];
    copy(&bench, secret, 100.0, b"first");
    copy(&bench, secret, 100.0, b"second");
    assert_eq!(bench.total(Main::NObject), 1, "one takes the place of the other");
    // A ban of everything does not hit it: only its original's lookup decides whether it may be
    // used.
    bench.ban("obj.status != 0");
    let found = bench.cache.copy(&secret, START + 1.0).unwrap();
    assert_eq!(found.chunk_at(0), Some(&b"second"[..]));
    assert!(bench.cache.copy(&[8; 32], START + 1.0).is_none());
    assert!(bench.cache.copy(&secret, START + 101.0).is_none(), "its time is over");
    drop(found);
    kill(bench);
    let (bench, kept) = files.worker(START + 50.0);
    assert_eq!((kept, bench.cache.copy(&secret, START + 51.0).is_some()), (1, true));
    kill(bench);
    let (bench, kept) = files.worker(START + 150.0);
    assert_eq!((kept, bench.cache.copy(&secret, START + 151.0).is_some()), (0, false));
}

#[test]
fn an_object_tested_before_the_restart_is_not_tested_again() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    bench.ban("req.url == /0");
    bench.put(0, &fresh(100.0));
    bench.hit(0);
    kill(bench);
    let (bench, _) = files.worker(START + 1.0);
    bench.hit(0);
    assert_eq!(bench.total(Main::BansTested), 0);
    let list = bench.cache.list_bans();
    let is_it = |ban: &ListedBan| ban.references == 1 && !ban.is_completed && ban.specification == "req.url == /0";
    assert!(list.iter().any(is_it), "{list:?}");
}

#[test]
fn a_soft_purge_survives_too() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    bench.put(0, &Made { grace: 100.0, ..fresh(100.0) });
    bench.now += 1.0;
    bench.cache.purge(&key(0), Purge::Soft { ttl: 0.0, grace: -1.0, keep: -1.0 }, bench.now);
    kill(bench);
    let (bench, _) = files.worker(START + 1.0);
    assert!(matches!(bench.look(0), Lookup::Grace { .. }));
}

#[test]
fn the_newest_variant_is_the_newest_after_a_restart() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    let _ = bench.put(0, &Made { xid: 1, ..fresh(100.0) });
    bench.now += 1.0;
    let _ = bench.put(0, &Made { xid: 2, ..fresh(100.0) });
    kill(bench);
    let (bench, kept) = files.worker(START + 2.0);
    assert_eq!((kept, bench.hit(0).xid()), (2, 2));
}

/// Flips a bit at the position of these bytes in the arena.
fn damage(files: &Files, storage: usize, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(files.arenas[storage].try_clone().unwrap());
    let mut arena = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut arena, 0).unwrap();
    let at = arena.windows(bytes.len()).position(|window| window == bytes).expect("it is in the arena");
    file.write_all_at(&[arena[at] ^ 1], at as u64).unwrap();
}

#[test]
fn only_the_damaged_object_is_removed_at_its_lookup() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    let long = |byte: u8| [vec![byte; 50_000], b"the end of it".to_vec(), vec![byte; 50_000]].concat();
    bench.put(0, &Made { body: b"a short sound one".to_vec(), ..fresh(100.0) });
    bench.put(1, &Made { body: b"a short damaged one".to_vec(), ..fresh(100.0) });
    bench.put(2, &Made { body: long(2), ..fresh(100.0) });
    bench.put(3, &Made { body: long(3), ..fresh(100.0) });
    kill(bench);
    damage(&files, 0, b"a short damaged one");
    damage(&files, 0, &long(3)[40_000..60_100]);
    let (bench, kept) = files.worker(START + 1.0);
    assert_eq!(kept, 4, "a start reads no bodies");
    assert!(!bench.hit(0).is_unchecked());
    assert!(matches!(bench.look(1), Lookup::Miss { .. }));
    assert!(bench.log.borrow().iter().any(|(tag, text)| *tag == Tag::Error && text.contains("is damaged")));
    let found = bench.look(2);
    let object = found.unchecked().expect("it is long");
    assert!(object.check() && !object.is_unchecked() && found.unchecked().is_none());
    let found = bench.look(3);
    assert!(!found.unchecked().expect("it is long").check());
    drop(found);
    assert!(matches!(bench.look(3), Lookup::Miss { .. }));
    assert_eq!(bench.total(Main::NObject), 2);
}

#[test]
fn order_of_use_survives_a_restart() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    let made = || Made { body: vec![5; 100_000], ..fresh(1000.0) };
    for number in 0..20 {
        bench.put(number, &made());
    }
    bench.now += 10.0;
    for number in 0..5 {
        bench.hit(number);
    }
    kill(bench);
    let (mut bench, kept) = files.worker(START + 20.0);
    assert_eq!(kept, 20);
    let mut added = 100;
    while bench.total(Main::NLruNuked) < 10 {
        bench.put(added, &made());
        added += 1;
    }
    for number in 0..5 {
        assert_eq!(bench.hit(number).hits(), 2, "{number}");
    }
}
