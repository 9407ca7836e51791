//! Simulates a kill between any two stores: after every store the arena is copied and the copy
//! recovered.
//!
//! The copy must hold exactly the objects that were committed and not removed, complete; the object
//! of the current operation may be in its state before or after.

use crate::attributes::{ObjectAttributes, ObjectFlags};
use crate::layout::{ARENA_MAGIC, ARENA_MAGIC_2, Head, KIND_RECORD, MAGIC_AT};
use crate::memory::Memory;
use crate::object::Object;
use crate::storage::Store;
use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Number of objects in a run: few under Miri, which is a thousand times slower.
const fn objects(usual: u32) -> u32 {
    if cfg!(miri) { usual / 20 + 1 } else { usual }
}

/// Least number of stores in such a run.
const fn points_at_least(usual: usize) -> usize {
    if cfg!(miri) { usual / 100 } else { usual }
}

type Hook = Box<dyn FnMut(&Memory)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Called by [`Memory`] after every store that a later process could see.
pub(crate) fn crash_point(memory: &Memory) {
    let Some(mut hook) = HOOK.with_borrow_mut(Option::take) else { return };
    hook(memory);
    HOOK.with_borrow_mut(|slot| *slot = Some(hook));
}

fn copy(memory: &Memory) -> Memory {
    let copied = Memory::on_heap(memory.len()).unwrap();
    // SAFETY: single-threaded test; the copy is unshared.
    unsafe { copied.write(0, memory.bytes(0, memory.len() as usize)) };
    copied
}

/// The expected result of recovery, by xid, and the object that may be in either state.
#[derive(Default)]
struct Expected {
    bodies: BTreeMap<u32, Vec<u8>>,
    in_doubt: Option<(u32, Vec<u8>)>,
    points: usize,
}

/// The body, and the annex behind it.
fn body_of(object: &Object) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(chunk) = object.chunk_at(body.len() as u64) {
        body.extend_from_slice(chunk);
    }
    body.extend(object.annex().unwrap_or_default());
    body
}

fn recover_copy(memory: &Memory) -> BTreeMap<u32, Vec<u8>> {
    let (store, recovered) = Store::on(copy(memory), "copy", 1 << 20).expect("the arena can be walked");
    store.check();
    recovered
        .objects
        .iter()
        .filter(|object| object.check())
        .map(|object| {
            assert_eq!(object.head(), format!("head of {}", object.xid()).as_bytes());
            (object.xid(), body_of(object))
        })
        .collect()
}

fn check(expected: &Expected, memory: &Memory) {
    let mut found = recover_copy(memory);
    if let Some((xid, body)) = &expected.in_doubt {
        if let Some(recovered) = found.remove(xid) {
            assert!(recovered == *body, "object {xid} came back changed");
        }
        let mut others = expected.bodies.clone();
        others.remove(xid);
        assert!(found == others, "the others of {xid}: {:?} {:?}", found.keys(), others.keys());
    } else {
        assert!(found == expected.bodies, "{:?} {:?}", found.keys(), expected.bodies.keys());
    }
}

fn small_store(bytes: u64) -> Store {
    // The arena is larger than the limit; both small, so that many crash points fit a test.
    Store::on(Memory::on_heap(bytes).unwrap(), "s0", bytes).unwrap().0
}

fn attributes(xid: u32, body_bytes: Option<u64>) -> ObjectAttributes {
    ObjectAttributes {
        key: [xid as u8; 32],
        xid: xid.into(),
        origin: 1e9,
        ttl: 10.0,
        body_bytes,
        ..ObjectAttributes::default()
    }
}

#[test]
fn a_kill_at_any_store_loses_nothing_committed_and_brings_nothing_back() {
    for seed in 0..if cfg!(miri) { 1 } else { 4 } {
        let store = small_store(24 << 10);
        let expected = Rc::new(RefCell::new(Expected::default()));
        let hook = Rc::clone(&expected);
        HOOK.set(Some(Box::new(move |memory| {
            let mut expected = hook.borrow_mut();
            expected.points += 1;
            check(&expected, memory);
        })));
        let mut random = SmallRng::seed_from_u64(seed);
        let mut live: Vec<Arc<Object>> = Vec::new();
        for xid in 1..objects(150) {
            if live.len() > 8 || (!live.is_empty() && random.random_bool(0.4)) {
                let victim = live.swap_remove(random.random_range(0..live.len()));
                let body = body_of(&victim);
                expected.borrow_mut().in_doubt = Some((victim.xid(), body));
                victim.remove();
                expected.borrow_mut().bodies.remove(&victim.xid());
                expected.borrow_mut().in_doubt = None;
                drop(victim);
                continue;
            }
            let mut body = vec![0; random.random_range(0..2500)];
            random.fill_bytes(&mut body);
            let known = random.random_bool(0.5).then_some(body.len() as u64);
            let mut annex = vec![0; random.random_range(0..1500)];
            random.fill_bytes(&mut annex);
            let mut attributes = attributes(xid, known);
            if random.random_bool(0.5) {
                annex.clear();
            } else {
                attributes.flags = ObjectFlags::ESI;
            }
            let Ok(object) = store.create(&attributes, format!("head of {xid}").as_bytes()) else {
                continue;
            };
            let early = random.random_bool(0.5);
            if early {
                object.enter_index();
            }
            let failed = random.random_bool(0.2);
            let place = object.stored().unwrap();
            if body.chunks(random.random_range(1..900)).any(|part| object.append_stored(place, part).is_err()) || failed
            {
                object.fail();
                continue;
            }
            body.extend_from_slice(&annex);
            expected.borrow_mut().in_doubt = Some((xid, body.clone()));
            if object.finish_with(&annex).is_err() {
                object.fail();
                expected.borrow_mut().in_doubt = None;
                continue;
            }
            object.enter_index();
            expected.borrow_mut().bodies.insert(xid, body);
            expected.borrow_mut().in_doubt = None;
            live.push(object);
        }
        HOOK.set(None);
        store.check();
        assert!(expected.borrow().points > points_at_least(1000), "{} crash points", expected.borrow().points);
    }
}

#[test]
fn a_kill_while_a_body_that_cannot_be_kept_passes_leaves_nothing_of_it() {
    let store = small_store(64 << 10);
    store.set_unsized_share(50);
    let expected = Rc::new(RefCell::new(Expected::default()));
    for xid in 1..4u32 {
        let object = store.create(&attributes(xid, None), format!("head of {xid}").as_bytes()).unwrap();
        object.append_stored(object.stored().unwrap(), &[xid as u8; 1200]).unwrap();
        object.finish();
        object.enter_index();
        expected.borrow_mut().bodies.insert(xid, vec![xid as u8; 1200]);
    }
    let hook = Rc::clone(&expected);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    HOOK.set(Some(Box::new(move |memory| {
        let mut expected = hook.borrow_mut();
        expected.points += 1;
        check(&expected, memory);
    })));
    for round in 0..3 {
        let object = store.create(&attributes(9, None), b"head of 9").unwrap();
        object.enter_index();
        let (mut fast, mut slow) = (object.reader().unwrap(), object.reader().unwrap());
        let (mut fast_at, mut slow_at, mut written) = (0u64, 0u64, 0u64);
        let step = |reader: &mut crate::reader::BodyReader, at: &mut u64, most: usize| {
            if let Some(chunk) = reader.chunk_at(*at) {
                *at += chunk.len().min(most) as u64;
            }
        };
        while written < 60_000 {
            let before = object.available_bytes();
            if runtime.block_on(object.append(&[9; 500])).is_err() {
                written += object.available_bytes() - before;
                object.overflow(8000);
                continue;
            }
            written += 500;
            for _ in 0..4 {
                step(&mut fast, &mut fast_at, 9000);
                step(&mut slow, &mut slow_at, if written > 45_000 { 9000 } else { 500 });
            }
        }
        match round {
            0 => object.finish(),
            1 => object.fail(),
            _ => {}
        }
        assert!(object.has_overflowed());
        drop(slow);
        step(&mut fast, &mut fast_at, 9000);
    }
    HOOK.set(None);
    store.check();
    assert!(expected.borrow().points > points_at_least(300), "{} crash points", expected.borrow().points);
}

#[test]
fn a_kill_while_one_arena_changes_leaves_the_others_as_they_are() {
    let stores = [small_store(16 << 10), small_store(24 << 10)];
    let arenas = stores.each_ref().map(|store| Arc::clone(&store.inner));
    let expected = Rc::new(RefCell::new([Expected::default(), Expected::default()]));
    let hook = Rc::clone(&expected);
    HOOK.set(Some(Box::new(move |_| {
        let mut expected = hook.borrow_mut();
        for (expected, arena) in expected.iter_mut().zip(&arenas) {
            expected.points += 1;
            check(expected, &arena.memory);
        }
    })));
    let mut random = SmallRng::seed_from_u64(11);
    let mut live: Vec<(usize, Arc<Object>)> = Vec::new();
    for xid in 1..objects(80) {
        let doubt = |place: usize, doubt| expected.borrow_mut()[place].in_doubt = doubt;
        if live.len() > 6 || (!live.is_empty() && random.random_bool(0.4)) {
            let (place, victim) = live.swap_remove(random.random_range(0..live.len()));
            doubt(place, Some((victim.xid(), body_of(&victim))));
            victim.remove();
            expected.borrow_mut()[place].bodies.remove(&victim.xid());
            doubt(place, None);
            continue;
        }
        let place = random.random_range(0..stores.len());
        let body = vec![xid as u8; random.random_range(0..2000)];
        let Ok(object) = stores[place].create(&attributes(xid, None), format!("head of {xid}").as_bytes()) else {
            continue;
        };
        if object.append_stored(object.stored().unwrap(), &body).is_err() {
            continue;
        }
        doubt(place, Some((xid, body.clone())));
        object.finish();
        object.enter_index();
        expected.borrow_mut()[place].bodies.insert(xid, body);
        doubt(place, None);
        live.push((place, object));
    }
    HOOK.set(None);
    assert!(expected.borrow()[0].points > points_at_least(500), "{} crash points", expected.borrow()[0].points);
    assert!(live.iter().any(|(place, _)| *place == 0) && live.iter().any(|(place, _)| *place == 1));
}

#[test]
fn a_kill_during_recovery_leaves_what_the_next_recovery_needs() {
    let store = small_store(32 << 10);
    let mut objects = Vec::new();
    for xid in 1..if cfg!(miri) { 4 } else { 40u32 } {
        let Ok(object) = store.create(&attributes(xid, None), format!("head of {xid}").as_bytes()) else { break };
        if object.append_stored(object.stored().unwrap(), &[xid as u8; 1200]).is_err() {
            break;
        }
        object.finish();
        object.enter_index();
        if xid % 3 == 0 {
            object.remove();
        }
        objects.push(object);
    }
    let want = recover_copy(&store.inner.memory);
    assert!(want.len() > 5);
    let points = Rc::new(RefCell::new(0));
    let (count, expected) = (Rc::clone(&points), want.clone());
    HOOK.set(Some(Box::new(move |memory| {
        *count.borrow_mut() += 1;
        assert!(recover_copy(memory) == expected);
    })));
    let (recovering, _) = Store::on(copy(&store.inner.memory), "again", 1 << 20).unwrap();
    HOOK.set(None);
    recovering.check();
    assert!(*points.borrow() > 20);
}

#[test]
fn damage_costs_the_damaged_objects_and_no_others() {
    let store = small_store(64 << 10);
    let mut objects = Vec::new();
    for xid in 1..20u32 {
        let known = (xid % 2 == 0).then_some(900);
        let object = store.create(&attributes(xid, known), format!("head of {xid}").as_bytes()).unwrap();
        object.append_stored(object.stored().unwrap(), &[xid as u8; 900]).unwrap();
        object.finish();
        object.enter_index();
        objects.push(object);
    }
    let whole = recover_copy(&store.inner.memory);
    assert_eq!(whole.len(), 19);
    let mut random = SmallRng::seed_from_u64(7);
    for _ in 0..if cfg!(miri) { 10 } else { 300 } {
        let damaged = copy(&store.inner.memory);
        let at = random.random_range(64..damaged.len());
        // SAFETY: single-threaded test on an unshared copy.
        unsafe {
            let byte = damaged.bytes(at, 1)[0];
            damaged.write(at, &[byte ^ 1 << random.random_range(0..8)]);
        }
        let found = recover_copy(&damaged);
        for (xid, body) in &found {
            assert!(whole[xid] == *body, "object {xid} came back changed by damage at {at}");
        }
    }
    // A garbage head word ends the walk, but everything before it stays.
    let damaged = copy(&store.inner.memory);
    let middle = objects[9].stored().unwrap().at(0);
    damaged.store(middle, u64::MAX);
    let found = recover_copy(&damaged);
    assert!(found.len() >= 5 && found.len() < 19, "{} objects", found.len());
}

#[test]
fn two_records_cannot_claim_one_extent() {
    let store = small_store(64 << 10);
    let make = |xid| {
        let object = store.create(&attributes(xid, None), format!("head of {xid}").as_bytes()).unwrap();
        for _ in 0..4 {
            object.append_stored(object.stored().unwrap(), &[5; 2000]).unwrap();
        }
        object.finish();
        object.enter_index();
        object
    };
    let (one, two) = (make(1), make(2));
    let memory = &store.inner.memory;
    let link_of = |object: &Object| {
        let place = object.stored().unwrap();
        place.at(0) + store.inner.geometry.byte(place.head().units()) - 8
    };
    memory.store(link_of(&two), memory.load(link_of(&one)));
    let found = recover_copy(memory);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1]);
    memory.store(link_of(&two), u64::MAX);
    assert_eq!(recover_copy(memory).len(), 1);
}

#[test]
fn flags_survive_and_are_covered_by_the_checksum() {
    let store = small_store(64 << 10);
    let mut wanted = attributes(1, Some(0));
    wanted.flags = ObjectFlags::GZIPPED | ObjectFlags::CAN_REVALIDATE;
    wanted.transient = true;
    let object = store.create(&wanted, b"head of 1").unwrap();
    object.finish();
    object.enter_index();
    let (_, recovered) = Store::on(copy(&store.inner.memory), "copy", 1 << 20).unwrap();
    assert_eq!(recovered.objects[0].flags(), wanted.flags | ObjectFlags::TRANSIENT);
    let place = object.stored().unwrap();
    store.inner.memory.update(place.at(0), |head| head ^ 1 << 48);
    assert_eq!(Head(store.inner.memory.load(place.at(0))).kind(), KIND_RECORD);
    assert!(recover_copy(&store.inner.memory).is_empty());
}

#[test]
fn the_layout_is_that_of_the_documented_version() {
    let store = small_store(64 << 10);
    let mut objects = Vec::new();
    for (xid, flags, body_bytes) in
        [(1, ObjectFlags::NONE, Some(700)), (2, ObjectFlags::ESI, None), (3, ObjectFlags::GZIPPED, Some(0))]
    {
        let wanted =
            ObjectAttributes { vary: b"vary".to_vec(), grace: 1.5, keep: 2.5, flags, ..attributes(xid, body_bytes) };
        let object = store.create(&wanted, b"head").unwrap();
        if body_bytes != Some(0) {
            object.append_stored(object.stored().unwrap(), &[xid as u8; 700]).unwrap();
        }
        object.finish_with(b"annex").unwrap();
        object.enter_index();
        object.touch(77, 1, 0);
        object.set_ban(5);
        objects.push(object);
    }
    objects[0].remove();
    let memory = &store.inner.memory;
    assert_eq!(ARENA_MAGIC.to_le_bytes(), *b"CopalAr3");
    // Except for its first word it is an arena of version 2.
    memory.store(MAGIC_AT, ARENA_MAGIC_2);
    // SAFETY: single-threaded test; no other thread writes.
    let checksum = crc32fast::hash(unsafe { memory.bytes(0, memory.len() as usize) });
    // With another number, an arena of an earlier build would be misread. Then ARENA_MAGIC and
    // docs/internals/store.md must change too.
    assert_eq!(checksum, 2_192_284_147);
}

#[test]
fn an_arena_of_each_release_is_taken_over_or_refused() {
    let store = small_store(64 << 10);
    let object = store.create(&attributes(1, Some(3)), b"head").unwrap();
    object.append_stored(object.stored().unwrap(), b"abc").unwrap();
    object.finish();
    object.enter_index();
    for (magic, is_read) in
        [(b"CopalAr1", false), (b"CopalAr2", true), (b"CopalAr3", true), (b"CopalAr4", false), (b"Unknown.", false)]
    {
        let memory = copy(&store.inner.memory);
        memory.store(MAGIC_AT, u64::from_le_bytes(*magic));
        match Store::on(memory, "copy", 64 << 10) {
            Ok((taken, recovered)) => {
                assert!(is_read, "{magic:?}");
                assert_eq!(recovered.objects[0].chunk_at(0), Some(&b"abc"[..]));
                assert!(recovered.objects[0].check());
                assert_eq!(taken.inner.memory.load(MAGIC_AT), ARENA_MAGIC);
            }
            Err(error) => {
                assert!(!is_read && error.kind() == std::io::ErrorKind::InvalidData, "{magic:?}: {error}");
            }
        }
    }
}
