//! Bodies that turn out too large to be kept: every reader gets all the bytes, and nothing of them
//! stays in the store.

use crate::attributes::{AppendError, BodyState, ObjectAttributes};
use crate::object::Object;
use crate::reader::BodyReader;
use crate::storage::Store;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

const QUEUE_BYTES: usize = 3000;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn object_in(store: &Store, body_bytes: Option<u64>) -> Arc<Object> {
    let attributes = ObjectAttributes { xid: 7, origin: 1e9, ttl: 10.0, body_bytes, ..ObjectAttributes::default() };
    store.create(&attributes, b"head of 7").unwrap()
}

/// The byte at an offset of a long body, so that a wrong offset is noticed.
fn byte_at(place: u64) -> u8 {
    (place ^ place >> 8 ^ place >> 16) as u8
}

/// Reads to the end of the body, at most `step` bytes at a time; checks every byte.
async fn read_all(mut reader: BodyReader, step: usize, pauses: u32) -> u64 {
    let mut at = 0u64;
    loop {
        let state = reader.object().state();
        if let Some(chunk) = reader.chunk_at(at) {
            let chunk = &chunk[..chunk.len().min(step)];
            assert!(chunk.iter().zip(at..).all(|(byte, place)| *byte == byte_at(place)), "wrong bytes near {at}");
            at += chunk.len() as u64;
            for _ in 0..pauses {
                tokio::task::yield_now().await;
            }
            continue;
        }
        match state {
            BodyState::Writing => reader.object().changed(at).await,
            BodyState::Complete if at == reader.object().available_bytes() => return at,
            BodyState::Complete => {}
            BodyState::Failed => panic!("failed at {at}"),
        }
    }
}

/// Appends a body in pieces of random length, and lets it overflow when necessary.
async fn write_all(object: &Arc<Object>, bytes: u64, random: &mut SmallRng) {
    let body: Vec<u8> = (0..bytes).map(byte_at).collect();
    let mut rest = body.as_slice();
    while !rest.is_empty() {
        let (mut piece, later) = rest.split_at(rest.len().min(random.random_range(1..5000)));
        let before = object.available_bytes();
        match object.append(piece).await {
            Ok(()) => {}
            Err(AppendError::TooLarge) => {
                assert!(!object.has_overflowed());
                piece = &piece[(object.available_bytes() - before) as usize..];
                assert!(object.overflow(QUEUE_BYTES) > 0);
                object.append(piece).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        rest = later;
        tokio::task::yield_now().await;
    }
    object.finish();
}

#[test]
fn readers_at_any_speed_get_all_of_a_body_that_cannot_be_kept() {
    for seed in 0..if cfg!(miri) { 1 } else { 30 } {
        let mut random = SmallRng::seed_from_u64(seed);
        let store = Store::in_memory(256 << 10).unwrap();
        store.set_unsized_share(25);
        let empty = store.held_bytes();
        let object = object_in(&store, None);
        let bytes = random.random_range(100_000..600_000);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let readers: Vec<_> = (0..random.random_range(1..6))
                .map(|_| {
                    let reader = object.reader().unwrap();
                    tokio::task::spawn_local(read_all(reader, random.random_range(1..9000), random.random_range(0..4)))
                })
                .collect();
            write_all(&object, bytes, &mut random).await;
            for reader in readers {
                assert_eq!(reader.await.unwrap(), bytes);
            }
        });
        assert!(object.has_overflowed() && object.is_removed());
        assert!(object.reader().is_none() && object.chunk_at(0).is_none(), "too late to begin");
        assert!(store.held_bytes() <= empty + 8192, "{} bytes are held of what all have read", store.held_bytes());
        drop(object);
        store.check();
        assert_eq!(store.held_bytes(), empty);
        assert_eq!(store.inner.growth_room(0), (256 << 10) / 4, "it counts no more among those under way");
    }
}

#[test]
fn slowest_reader_blocks_the_writer() {
    let store = Store::in_memory(256 << 10).unwrap();
    store.set_unsized_share(25);
    let object = object_in(&store, None);
    let (mut slow, mut fast) = (object.reader().unwrap(), object.reader().unwrap());
    let body: Vec<u8> = (0..200_000).map(byte_at).collect();
    let mut stored = 0;
    while block_on(object.append(&body[stored..stored + 1000])).is_ok() {
        stored += 1000;
    }
    let available = object.available_bytes() as usize;
    assert!((48 << 10..=64 << 10).contains(&available), "{available} bytes in a quarter of the storage");
    assert_eq!(object.overflow(QUEUE_BYTES), 2);
    let held = store.held_bytes();
    let mut task = std::pin::pin!(object.append(&body[available..]));
    let mut poll = || {
        let waker = std::task::Waker::noop();
        task.as_mut().poll(&mut std::task::Context::from_waker(waker))
    };
    assert!(poll().is_pending());
    assert!(object.available_bytes() as usize <= available + QUEUE_BYTES, "no further ahead than the queue is long");
    let read = |reader: &mut BodyReader, at: &mut usize| {
        while let Some(chunk) = reader.chunk_at(*at as u64) {
            assert_eq!(chunk, &body[*at..*at + chunk.len()]);
            *at += chunk.len();
        }
    };
    let (mut fast_at, mut slow_at) = (0, 0);
    read(&mut fast, &mut fast_at);
    assert_eq!(fast_at as u64, object.available_bytes());
    assert!(poll().is_pending(), "the fast one waits for the slow one");
    assert_eq!(store.held_bytes(), held, "nothing is given back that somebody still wants");
    read(&mut slow, &mut slow_at);
    assert!(store.held_bytes() < held - (40 << 10), "{} of {held} bytes are still held", store.held_bytes());
    assert!(poll().is_pending());
    // A reader that is dropped in the middle does not hold up others.
    drop(slow);
    while poll().is_pending() {
        read(&mut fast, &mut fast_at);
    }
    object.finish();
    read(&mut fast, &mut fast_at);
    assert_eq!(fast_at, body.len());
}

#[test]
fn without_readers_there_is_nothing_to_go_on_for() {
    let store = Store::in_memory(256 << 10).unwrap();
    let object = object_in(&store, None);
    let reader = object.reader().unwrap();
    block_on(object.append(&[1; 20_000])).unwrap();
    assert_eq!(object.overflow(QUEUE_BYTES), 1);
    block_on(object.append(&[1; 2000])).unwrap();
    drop(reader);
    assert_eq!(block_on(object.append(&[1; 2000])), Err(AppendError::Abandoned));
    object.fail();
    assert_eq!(object.state(), BodyState::Failed);
    let other = object_in(&store, None);
    assert_eq!(other.overflow(QUEUE_BYTES), 0);
    assert_eq!(block_on(other.append(&[1; 2000])), Err(AppendError::Abandoned));
}

#[test]
fn a_body_of_known_length_can_overflow_too() {
    let store = Store::in_memory(256 << 10).unwrap();
    let object = object_in(&store, Some(40_000));
    let reader = object.reader().unwrap();
    let body: Vec<u8> = (0..40_000).map(byte_at).collect();
    block_on(object.append(&body[..30_000])).unwrap();
    object.overflow(QUEUE_BYTES);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let reading = tokio::task::spawn_local(read_all(reader, 777, 1));
        object.append(&body[30_000..]).await.unwrap();
        object.finish();
        assert_eq!(reading.await.unwrap(), 40_000);
    });
    assert_eq!(object.promised_bytes(), Some(40_000));
    drop(object);
    store.check();
}

#[test]
fn several_bodies_of_unknown_length_share_what_one_may_have() {
    let store = Store::in_memory(1 << 20).unwrap();
    store.set_unsized_share(25);
    let share = (1 << 20) / 4;
    let objects: Vec<_> = (0..8).map(|_| object_in(&store, None)).collect();
    let mut largest = vec![0; objects.len()];
    // All of them grow in turn, until none may.
    let mut growing: Vec<usize> = (0..objects.len()).collect();
    while !growing.is_empty() {
        growing.retain(|&index| match block_on(objects[index].append(&[1; 1000])) {
            Ok(()) => {
                largest[index] += 1000;
                true
            }
            Err(error) => {
                assert_eq!(error, AppendError::TooLarge);
                false
            }
        });
    }
    let total: u64 = largest.iter().sum();
    assert!(total <= 2 * share, "{total} bytes together");
    assert!(largest.iter().all(|bytes| *bytes >= share / 8 - (8 << 10)), "each has about its part: {largest:?}");
    // However much is taken, a late request gets room for a small page.
    let late = object_in(&store, None);
    assert!(store.inner.growth_room(0) >= share / 64);
    block_on(late.append(&[1; 2000])).unwrap();
    late.finish();
}

#[test]
fn bytes_kept_for_slow_readers_count_until_freed() {
    let store = Store::in_memory(1 << 20).unwrap();
    store.set_unsized_share(25);
    let share = (1 << 20) / 4;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let object = object_in(&store, None);
        slow.push(object.reader().unwrap());
        while block_on(object.append(&[1; 1000])).is_ok() {}
        object.overflow(QUEUE_BYTES);
        object.fail();
    }
    let held = store.held_bytes();
    assert!(held < 2 * share + share / 2, "{held} bytes are held by those who do not read");
    for reader in &mut slow {
        let mut at = 0;
        while let Some(chunk) = reader.chunk_at(at) {
            at += chunk.len() as u64;
        }
    }
    drop(slow);
    assert_eq!(store.inner.growth_room(0), share);
    store.check();
}

#[test]
fn threads_that_read_and_one_that_writes_agree() {
    let store = Store::in_memory(512 << 10).unwrap();
    store.set_unsized_share(25);
    for seed in 0..if cfg!(miri) { 1 } else { 5 } {
        let object = object_in(&store, None);
        let readers: Vec<_> = (0..3).map(|_| object.reader().unwrap()).collect();
        std::thread::scope(|scope| {
            for (reader, step) in readers.into_iter().zip([100_000, 5000, 700]) {
                scope.spawn(move || assert_eq!(block_on(read_all(reader, step, 0)), 400_000));
            }
            block_on(write_all(&object, 400_000, &mut SmallRng::seed_from_u64(seed)));
        });
        assert!(object.has_overflowed());
    }
    store.check();
}
