//! Several parts of a response (206) under one key.

use crate::{Bench, key, request};
use cache::{Busy, Lookup, MissCause};
use message::Message;
use std::sync::Arc;
use store::{Object, ObjectAttributes, ObjectFlags};
use surface::limits::PARTS_MAX;

fn ask(bench: &Bench, range: &str) -> Lookup {
    let lines: &[(&str, &str)] = if range.is_empty() { &[] } else { &[("Range", range)] };
    let mut message = request("/1", lines);
    message.set_method(b"GET");
    bench.ask(&key(1), &message, |lookup_request| lookup_request.parts = true)
}

/// Publishes bytes `first` to `last` of 1,000.
fn put(bench: &Bench, busy: &Busy, first: u64, last: u64) -> Arc<Object> {
    let mut head = Message::new();
    head.set_protocol(b"HTTP/1.1");
    head.set_status(206);
    head.set_reason(b"Partial Content");
    head.append(b"ETag", b"\"a\"");
    head.append(b"Content-Range", format!("bytes {first}-{last}/1000").as_bytes());
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    let length = last - first + 1;
    let attributes = ObjectAttributes {
        key: key(1),
        origin: bench.now,
        ttl: 10.0,
        flags: ObjectFlags::PARTIAL,
        body_bytes: Some(length),
        ..ObjectAttributes::default()
    };
    let object = bench.cache.stores()[0].create(&attributes, &bytes).unwrap();
    crate::block_on(object.append(&vec![b'x'; usize::try_from(length).unwrap()])).unwrap();
    object.finish();
    busy.publish(&object);
    object
}

fn fetch(bench: &Bench, range: &str) -> (MissCause, Busy, Option<Arc<Object>>) {
    match ask(bench, range) {
        Lookup::Miss { cause, busy, part, .. } => (cause, busy, part),
        other => panic!("{range}: {other:?}"),
    }
}

#[test]
fn a_part_is_a_hit_for_what_it_holds_and_helps_the_fetch_of_what_touches_it() {
    let bench = Bench::new();
    let (_, busy, part) = fetch(&bench, "bytes=0-99");
    assert!(part.is_none());
    put(&bench, &busy, 0, 99);
    assert!(matches!(ask(&bench, "bytes=0-99"), Lookup::Hit(_)));
    assert!(matches!(ask(&bench, "bytes=10-19"), Lookup::Hit(_)));
    assert!(matches!(ask(&bench, "bytes=1000-"), Lookup::Hit(_)), "a 416");
    for (range, helps) in [("bytes=100-199", true), ("bytes=50-199", true), ("bytes=500-599", false), ("", true)] {
        let (cause, _, part) = fetch(&bench, range);
        assert!(matches!(cause, MissCause::OtherParts), "{range}: {cause:?}");
        assert_eq!(part.is_some(), helps, "{range}");
    }
}

#[test]
fn requests_that_must_not_get_parts_see_none() {
    let bench = Bench::new();
    put(&bench, &fetch(&bench, "bytes=0-99").1, 0, 99);
    let message = request("/1", &[("Range", "bytes=0-9")]);
    let Lookup::Miss { part: None, .. } = bench.ask(&key(1), &message, |_| {}) else { panic!("a part for Varnish") };
}

#[test]
fn requests_for_the_same_part_wait_for_one_another_and_others_do_not() {
    let bench = Bench::new();
    let (_, busy, _) = fetch(&bench, "bytes=0-99");
    assert!(matches!(ask(&bench, "bytes=0-99"), Lookup::Wait(_)));
    let (_, other, _) = fetch(&bench, "bytes=100-199");
    let (_, whole, _) = fetch(&bench, "");
    assert!(matches!(ask(&bench, "bytes=200-299"), Lookup::Wait(_)), "the whole is on its way");
    drop((busy, other, whole));
}

#[test]
fn expired_part_is_not_used() {
    let mut bench = Bench::new();
    put(&bench, &fetch(&bench, "bytes=0-99").1, 0, 99);
    bench.now += 11.0;
    assert!(fetch(&bench, "").2.is_none());
    assert!(fetch(&bench, "bytes=0-9").2.is_none());
}

#[test]
fn so_many_parts_are_kept_and_the_oldest_go() {
    let bench = Bench::new();
    for index in 0..=PARTS_MAX as u64 {
        put(&bench, &fetch(&bench, &format!("bytes={}-{}", index * 10, index * 10 + 1)).1, index * 10, index * 10 + 1);
    }
    let _ = fetch(&bench, "");
    assert!(matches!(ask(&bench, "bytes=10-11"), Lookup::Hit(_)));
    assert!(!matches!(ask(&bench, "bytes=0-1"), Lookup::Hit(_)), "it was the oldest");
}
