//! Slices are stored and removed with the head that leads to them.

use super::lives::{Files, kill};
use super::{Bench, START, fresh, head, key, request};
use cache::{Lookup, Purge, SliceLookup};
use std::sync::Arc;
use store::{Object, ObjectAttributes, ObjectFlags};

/// A head with a note, in the index under a key.
fn put_head(bench: &mut Bench, number: u32, note: u8, ttl: f64) -> Arc<Object> {
    let asked = bench.ask(&key(number), &request("/", &[]), |lookup_request| lookup_request.always_miss = true);
    let Lookup::Miss { busy, .. } = asked else { panic!("{number}: {asked:?}") };
    bench.xid += 1;
    let attributes = ObjectAttributes {
        key: key(number),
        xid: bench.xid.into(),
        origin: bench.now,
        ttl,
        flags: ObjectFlags::TOO_LARGE,
        body_bytes: Some(0),
        ..ObjectAttributes::default()
    };
    let mut bytes = head(&[("X-Name", "head")]);
    message::encode_note(&mut bytes, &[note; message::NOTE_BYTES - 1]);
    let object = bench.cache.store().create(&attributes, &bytes).unwrap();
    object.finish();
    busy.publish(&object);
    object
}

/// Fetches a slice of the head with a note.
fn put_slice(bench: &mut Bench, number: u32, note: u8, ttl: f64) -> Arc<Object> {
    let SliceLookup::Miss(busy) = slice(bench, number) else { panic!("{number} is there") };
    let attributes = ObjectAttributes {
        key: key(number),
        xid: 1,
        origin: bench.now,
        ttl,
        flags: ObjectFlags::PARTIAL,
        body_bytes: Some(4),
        ..ObjectAttributes::default()
    };
    let mut bytes = head(&[("Content-Range", "bytes 0-3/100")]);
    message::encode_note(&mut bytes, &[note; message::NOTE_BYTES - 1]);
    let object = bench.cache.store().create(&attributes, &bytes).unwrap();
    busy.publish(&object);
    super::block_on(object.append(b"body")).unwrap();
    object.finish();
    object
}

fn slice(bench: &Bench, number: u32) -> SliceLookup {
    bench.cache.slice(&key(number), bench.now, 0.0)
}

fn is_there(bench: &Bench, number: u32) -> bool {
    matches!(slice(bench, number), SliceLookup::Found(_))
}

#[test]
fn one_fetches_a_slice_and_the_others_wait() {
    let mut bench = Bench::new();
    let SliceLookup::Miss(busy) = slice(&bench, 100) else { panic!() };
    let SliceLookup::Wait(waiter) = slice(&bench, 100) else { panic!("a second fetch") };
    drop(busy);
    super::block_on(waiter.wait());
    // The fetch has failed, so one of the waiting requests replaces it.
    assert!(matches!(slice(&bench, 100), SliceLookup::Miss(_)));
    drop(waiter);
    put_slice(&mut bench, 100, 1, 60.0);
    assert!(is_there(&bench, 100) && !is_there(&bench, 101));
}

#[test]
fn a_slice_lives_as_long_as_the_head_that_leads_to_it() {
    let mut bench = Bench::new();
    let object = put_slice(&mut bench, 100, 1, 10.0);
    bench.wait(5.0);
    assert!(matches!(bench.cache.slice(&key(100), bench.now, START + 100.0), SliceLookup::Found(_)));
    bench.wait(60.0);
    assert!(is_there(&bench, 100) && !object.is_removed());
    bench.wait(60.0);
    assert!(object.is_removed() && !is_there(&bench, 100));
}

#[test]
fn whatever_removes_the_head_takes_its_slices_and_no_others() {
    type Way = fn(&mut Bench, &Arc<Object>);
    let ways: [(&str, Way); 5] = [
        ("purge", |bench, _| _ = bench.cache.purge(&key(1), Purge::Hard, bench.now)),
        ("removal", |bench, head| bench.cache.remove(head)),
        ("expiry", |bench, _| bench.wait(51.0)),
        ("invalidation", |bench, _| _ = bench.cache.invalidate(&key(1), None, bench.now)),
        ("ban", |bench, _| {
            bench.ban("obj.http.X-Name == head");
            _ = bench.look(1);
        }),
    ];
    for (name, way) in ways {
        let mut bench = Bench::new();
        let head = put_head(&mut bench, 1, 1, 50.0);
        let slices: Vec<_> = (100..300).map(|number| put_slice(&mut bench, number, 1, 900.0)).collect();
        bench.put(2, &fresh(900.0));
        put_slice(&mut bench, 400, 2, 900.0);
        bench.wait(1.0);
        assert!(slices.iter().all(|slice| !slice.is_removed()), "{name}");
        way(&mut bench, &head);
        bench.wait(1.0);
        assert!(head.is_removed() && slices.iter().all(|slice| !slice.is_removed()), "{name}: somebody reads it");
        drop(head);
        bench.wait(1.0);
        assert!(slices.iter().all(|slice| slice.is_removed()), "{name}");
        bench.hit(2);
        assert!(is_there(&bench, 400), "{name}");
        assert_eq!(bench.cache.object_count(), 2, "{name}");
    }
}

#[test]
fn a_head_that_was_validated_keeps_the_slices_of_the_one_before() {
    let mut bench = Bench::new();
    let old = put_head(&mut bench, 1, 1, 50.0);
    let slice = put_slice(&mut bench, 100, 1, 900.0);
    let new = put_head(&mut bench, 1, 1, 500.0);
    bench.cache.remove(&old);
    drop(old);
    bench.wait(1.0);
    assert!(!slice.is_removed());
    bench.cache.remove(&new);
    drop(new);
    bench.wait(1.0);
    assert!(slice.is_removed());
}

#[test]
fn marker_of_a_too_large_response_is_not_a_slice_head() {
    let marker = ObjectFlags::TOO_LARGE | ObjectFlags::HIT_FOR_MISS;
    assert!(ObjectFlags::TOO_LARGE.is_sliced() && !marker.is_sliced() && !ObjectFlags::NONE.is_sliced());
}

#[test]
fn slices_whose_head_has_gone_are_not_taken_over_from_an_earlier_process() {
    let files = Files::new();
    let (mut bench, _) = files.worker(START);
    for (note, life) in [(1, 100.0), (2, 100.0), (3, 5.0)] {
        put_head(&mut bench, u32::from(note), note, life);
        for slice in 0..3 {
            put_slice(&mut bench, u32::from(note) * 100 + slice, note, 100.0);
        }
    }
    // It still has a reader, so its slices stay.
    let read = bench.hit(2);
    bench.cache.purge(&key(2), Purge::Hard, bench.now);
    bench.cache.tick(bench.now);
    assert!(is_there(&bench, 200));
    // A part of another kind, with the note of a group.
    let SliceLookup::Miss(busy) = slice(&bench, 900) else { panic!() };
    let attributes = ObjectAttributes {
        key: key(900),
        origin: bench.now,
        ttl: 100.0,
        flags: ObjectFlags::PARTIAL,
        ..ObjectAttributes::default()
    };
    let mut bytes = head(&[("Content-Range", "bytes 0-3/100"), ("Cache-Groups", "\"a\"")]);
    message::encode_note(&mut bytes, &[2; message::NOTE_BYTES - 1]);
    let part = bench.cache.store().create(&attributes, &bytes).unwrap();
    busy.publish(&part);
    part.finish();
    std::mem::forget((read, part));
    kill(bench);

    let (bench, kept) = files.worker(START + 10.0);
    assert_eq!(kept, 5, "a head with three slices, and the part");
    for slice in 0..3 {
        assert_eq!([100, 200, 300].map(|first| is_there(&bench, first + slice)), [true, false, false]);
    }
    assert!(is_there(&bench, 900));
}
