//! The promises of a store to the cache and to the readers and writers of bodies.

use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use store::{AppendError, BodyState, Object, ObjectAttributes, ObjectFlags, Store, StoreFull};

fn attributes(number: u32, body_bytes: Option<u64>) -> ObjectAttributes {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&number.to_le_bytes());
    ObjectAttributes {
        key,
        xid: number.into(),
        origin: 1_700_000_000.25,
        ttl: 120.0,
        grace: 10.0,
        keep: 5.5,
        vary: b"vary".to_vec(),
        body_bytes,
        ..ObjectAttributes::default()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn body_of(object: &Object) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(chunk) = object.chunk_at(body.len() as u64) {
        body.extend_from_slice(chunk);
    }
    body
}

fn stored(store: &Store, number: u32, known: bool, body: &[u8]) -> Result<Arc<Object>, AppendError> {
    let wanted = attributes(number, known.then_some(body.len() as u64));
    let object = store.create(&wanted, b"the head").map_err(|_| AppendError::Full)?;
    let written = body.chunks(16 << 10).try_for_each(|part| block_on(object.append(part)));
    if written.is_err() {
        object.fail();
        return Err(AppendError::Full);
    }
    object.finish();
    object.enter_index();
    Ok(object)
}

fn memory_file() -> OwnedFd {
    // SAFETY: a system call with a NUL-terminated name; the descriptor is new and has no other
    // owner.
    unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC)) }
}

#[test]
fn an_object_keeps_what_it_was_made_with() {
    let store = Store::in_memory(1 << 20).unwrap();
    let object = store.create(&attributes(7, Some(5)), b"the head").unwrap();
    assert_eq!(object.state(), BodyState::Writing);
    let mut reader = object.reader().unwrap();
    assert_eq!(reader.chunk_at(0), None);
    assert_eq!(object.promised_bytes(), Some(5));
    block_on(object.append(b"hel")).unwrap();
    assert_eq!(reader.chunk_at(0), Some(&b"hel"[..]));
    assert_eq!(reader.chunk_at(2), Some(&b"l"[..]));
    assert_eq!(object.chunk_at(0), None, "what is not whole yet is for those who are counted");
    block_on(object.append(b"lo")).unwrap();
    object.finish();
    assert_eq!((object.state(), object.available_bytes()), (BodyState::Complete, 5));
    assert_eq!(body_of(&object), b"hello");
    assert_eq!(object.key()[..5], [7, 0, 0, 0, 0]);
    assert_eq!((object.xid(), object.origin(), object.ttl()), (7, 1_700_000_000.25, 120.0));
    assert_eq!((object.grace(), object.keep()), (10.0, 5.5));
    assert_eq!((object.vary(), object.head()), (&b"vary"[..], &b"the head"[..]));
    object.set_ban(77);
    object.set_lifetime(1.0, 2.0, 3.0);
    assert_eq!((object.ttl(), object.grace(), object.keep(), object.ban()), (1.0, 2.0, 3.0, 77));
    assert!(object.touch(500, 1, 10));
    assert!(!object.touch(509, 1, 10));
    assert_eq!((object.hits(), object.last_use()), (2, 500));
}

#[test]
fn bodies_of_every_length_read_back_whatever_was_known_of_them() {
    let store = Store::in_memory(32 << 20).unwrap();
    let mut random = SmallRng::seed_from_u64(1);
    for length in [0, 1, 7, 255, 256, 4095, 4096, 70_000, 1 << 20, (1 << 20) + 1, 5_000_000] {
        let mut body = vec![0; length];
        random.fill_bytes(&mut body);
        for known in [false, true] {
            let object = stored(&store, 1, known, &body).unwrap();
            assert!(body_of(&object) == body, "{length} bytes, known: {known}");
            let (mut reader, mut read) = (object.reader().unwrap(), Vec::new());
            while let Some(chunk) = reader.chunk_at(read.len() as u64) {
                let part = &chunk[..chunk.len().min(100_000)];
                read.extend_from_slice(part);
            }
            assert!(read == body);
            let back = random.random_range(0..=length as u64);
            assert_eq!(reader.chunk_at(back), object.chunk_at(back));
            object.remove();
        }
    }
    assert_eq!(store.usage().g_bytes, 0);
}

#[test]
fn more_than_promised_is_refused_and_less_gives_the_rest_back() {
    let store = Store::in_memory(1 << 20).unwrap();
    let object = store.create(&attributes(1, Some(3)), b"").unwrap();
    assert_eq!(block_on(object.append(b"abcd")), Err(AppendError::Full));
    object.fail();
    assert_eq!(block_on(object.append(b"x")), Err(AppendError::Abandoned));
    let object = store.create(&attributes(1, Some(10_000)), b"").unwrap();
    block_on(object.append(b"abc")).unwrap();
    object.finish();
    assert!(store.usage().g_bytes < 10_000);
    assert_eq!(object.promised_bytes(), Some(3));
}

#[test]
fn memory_is_freed_with_the_last_handle_of_what_is_not_kept() {
    let store = Store::in_memory(1 << 20).unwrap();
    let empty = store.held_bytes();
    let removed = stored(&store, 1, false, &[1; 50_000]).unwrap();
    let second = Arc::clone(&removed);
    removed.remove();
    drop(removed);
    assert_eq!(body_of(&second).len(), 50_000, "a reader keeps what was removed");
    drop(second);
    drop(store.create(&attributes(2, None), b"never finished").unwrap());
    let failed = store.create(&attributes(3, Some(100)), b"").unwrap();
    failed.enter_index();
    failed.fail();
    drop(failed);
    assert_eq!(store.held_bytes(), empty);
    let usage = store.usage();
    assert_eq!((usage.g_alloc, usage.g_bytes, usage.c_bytes), (0, 0, usage.c_freed));
}

#[test]
fn external_reservations_count_against_the_limit_until_dropped() {
    let store = Store::in_memory(1 << 20).unwrap();
    let empty = store.held_bytes();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    store.set_evictor(Box::new(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    }));
    let mut room = store.reserve(500_000, false).unwrap();
    room.grow(100_000).unwrap();
    let usage = store.usage();
    assert_eq!((usage.c_bytes, usage.g_bytes, usage.g_alloc), (600_000, 600_000, 1));
    assert!(store.held_bytes() >= empty.max(595_000));
    assert_eq!(room.grow(500_000), Err(StoreFull));
    assert_eq!((store.usage().c_fail, asked.load(Ordering::Relaxed)), (1, 0), "it has more than its share");
    store.set_transient_limit(Some(1000));
    assert!(store.reserve(1001, true).is_err());
    let small = store.reserve(1000, true).unwrap();
    assert_eq!(store.transient_usage().g_space, 0);
    drop((room, small));
    assert_eq!((store.usage().g_bytes, store.usage().g_alloc), (0, 0));
    assert_eq!((store.transient_usage().g_space, store.held_bytes()), (1000, empty));
}

#[test]
fn objects_go_for_what_is_held_elsewhere_up_to_a_share() {
    for limit in [None, Some(700_000)] {
        let store = Store::in_memory(1 << 20).unwrap();
        store.set_transient_limit(limit);
        let mut objects = VecDeque::new();
        while let Ok(object) = stored(&store, 1, true, &[1; 10_000]) {
            objects.push_back(object);
        }
        let all = objects.len();
        assert!(all > 80, "{all}");
        let (queue, evictions) = with_oldest_evicted(&store);
        *queue.lock() = objects;
        let kept: Vec<_> = std::iter::from_fn(|| store.reserve(5000, true).ok()).collect();
        let (bytes, share) = (kept.len() * 5000, limit.map_or(1 << 18, |limit| limit as usize));
        // Everything else that the object occupied is free.
        assert!(bytes < share + 10_000 && bytes > share - 5000, "{bytes} of {share}");
        let evictions = evictions.load(Ordering::Relaxed);
        assert!(evictions <= share / 10_000 + 1, "{evictions} of {all}");
        drop(kept);
        assert!(store.reserve(5000, true).is_ok());
    }
}

#[test]
fn transient_objects_are_counted_apart_within_the_one_limit() {
    let store = Store::in_memory(1 << 20).unwrap();
    let free = store.usage().g_space;
    let mut wanted = attributes(1, Some(1000));
    wanted.transient = true;
    let object = store.create(&wanted, b"").unwrap();
    assert!(object.flags().has(ObjectFlags::TRANSIENT));
    assert_eq!((store.usage().g_bytes, store.transient_usage().g_alloc), (0, 1));
    assert!(store.transient_usage().g_bytes >= 1000);
    assert!(store.usage().g_space + 1000 < free);
}

#[test]
fn only_committed_entries_survive_a_restart() {
    let file = memory_file();
    let (store, recovered) = Store::open(file.try_clone().unwrap(), "s0", 8 << 20).unwrap();
    assert!(recovered.objects.is_empty());
    let body = vec![9; 2_500_000];
    let kept = stored(&store, 1, false, &body).unwrap();
    kept.set_ban(5);
    kept.set_lifetime(60.0, 1.0, 0.0);
    let banned = stored(&store, 2, true, b"gone").unwrap();
    banned.remove();
    let unfinished = store.create(&attributes(3, None), b"").unwrap();
    unfinished.enter_index();
    let unwanted = store.create(&attributes(4, None), b"").unwrap();
    unwanted.finish();
    // The worker is killed: no destructor runs.
    for object in [kept, banned, unfinished, unwanted] {
        std::mem::forget(object);
    }
    let (store, recovered) = Store::open(file.try_clone().unwrap(), "s0", 8 << 20).unwrap();
    assert_eq!((recovered.objects.len(), recovered.torn), (1, 2));
    let object = &recovered.objects[0];
    assert!(object.is_usable() && object.is_unchecked(), "a long body is not read at once");
    assert!(object.check() && !object.is_unchecked());
    assert!(body_of(object) == body);
    assert_eq!((object.xid(), object.ban(), object.ttl(), object.hits()), (1, 5, 60.0, 0));
    assert!(store.usage().g_bytes < 3_000_000);
    object.remove();
    drop(recovered);
    assert_eq!(store.usage().g_bytes, 0);
    let (_, recovered) = Store::open(file, "s0", 8 << 20).unwrap();
    assert!(recovered.objects.is_empty());
}

#[test]
fn a_file_of_something_else_is_refused() {
    use std::io::Write;
    let file = memory_file();
    File::from(file.try_clone().unwrap()).write_all(&[b'x'; 100_000]).unwrap();
    assert_eq!(Store::open(file, "s0", 1 << 20).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}

type Queue = Arc<parking_lot::Mutex<VecDeque<Arc<Object>>>>;

/// A cache that evicts its oldest object.
fn with_oldest_evicted(store: &Store) -> (Queue, Arc<AtomicUsize>) {
    let (kept, evictions) = (Queue::default(), Arc::default());
    let (queue, count): (_, Arc<AtomicUsize>) = (Arc::clone(&kept), Arc::clone(&evictions));
    store.set_evictor(Box::new(move |_, _| {
        let Some(victim) = queue.lock().pop_front() else { return false };
        count.fetch_add(1, Ordering::Relaxed);
        victim.remove();
        true
    }));
    (kept, evictions)
}

#[test]
fn storing_never_fails_while_something_can_be_evicted_and_the_limit_always_holds() {
    for (seed, limit, largest) in [(1, 256u64 << 10, 60_000), (2, 4 << 20, 1_500_000), (3, 300_000, 3_000)] {
        let store = Store::in_memory(limit).unwrap();
        let (kept, evictions) = with_oldest_evicted(&store);
        let mut random = SmallRng::seed_from_u64(seed);
        for number in 0..3000u32 {
            // Small objects first, then large ones among them: fragmentation.
            let most = if number < 1000 || random.random_bool(0.9) { 600 } else { largest };
            let length = random.random_range(0..most);
            let object = stored(&store, number, random.random_bool(0.5), &vec![number as u8; length]);
            let object = object.unwrap_or_else(|_| panic!("object {number} of {length} bytes, limit {limit}"));
            assert!(store.held_bytes() <= limit, "{} of {limit}", store.held_bytes());
            assert!(store.resident_bytes() <= limit + limit / 32 + 32_768, "{} of {limit}", store.resident_bytes());
            if number % 100 == 0 {
                assert!(body_of(&object) == vec![number as u8; length]);
            }
            kept.lock().push_back(object);
        }
        assert!(evictions.load(Ordering::Relaxed) > 100);
        let held: u64 = store.held_bytes();
        assert!(held * 10 > limit * 6, "only {held} of {limit} bytes are used after churn");
        while let Some(object) = kept.lock().pop_front() {
            object.remove();
        }
        assert_eq!(store.usage().g_alloc, 0);
    }
}

#[test]
fn object_larger_than_the_storage_evicts_nothing() {
    let store = Store::in_memory(1 << 20).unwrap();
    let (kept, evictions) = with_oldest_evicted(&store);
    kept.lock().push_back(stored(&store, 1, true, b"small").unwrap());
    assert_eq!(store.create(&attributes(2, Some(2 << 20)), b"").unwrap_err(), StoreFull);
    assert_eq!(evictions.load(Ordering::Relaxed), 0);
    assert_eq!(store.usage().c_fail, 0);
}

#[test]
fn freed_memory_goes_back_to_the_kernel() {
    use std::os::unix::fs::MetadataExt;
    let file = memory_file();
    let (store, _) = Store::open(file.try_clone().unwrap(), "s0", 32 << 20).unwrap();
    let objects: Vec<_> = (0..24).map(|number| stored(&store, number, true, &vec![1; 1 << 20]).unwrap()).collect();
    let blocks = || File::from(file.try_clone().unwrap()).metadata().unwrap().blocks() * 512;
    assert!(blocks() >= 24 << 20);
    for object in &objects {
        object.remove();
    }
    drop(objects);
    assert!(blocks() <= 6 << 20, "{} bytes are still held", blocks());
    assert!(store.resident_bytes() + 8192 >= blocks());
}

#[test]
fn readers_see_a_growing_body_and_its_end() {
    let store = Store::in_memory(4 << 20).unwrap();
    let object = store.create(&attributes(1, None), b"").unwrap();
    let body: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                block_on(async {
                    let (mut reader, mut read) = (object.reader().unwrap(), Vec::new());
                    loop {
                        while let Some(chunk) = reader.chunk_at(read.len() as u64) {
                            read.extend_from_slice(chunk);
                        }
                        if object.state() != BodyState::Writing && read.len() as u64 == object.available_bytes() {
                            break;
                        }
                        object.changed(read.len() as u64).await;
                    }
                    assert!(read == body);
                });
            });
        }
        for part in body.chunks(977) {
            block_on(object.append(part)).unwrap();
        }
        object.finish();
    });
}

#[test]
fn a_passing_body_waits_for_its_reader_and_never_piles_up() {
    let object = Object::passing(attributes(1, None), b"pass".to_vec(), surface::limits::PASS_IN_FLIGHT_BYTES_MAX);
    assert!(object.is_passing() && object.head() == b"pass" && object.chunk_at(0).is_none());
    let most = surface::limits::PASS_IN_FLIGHT_BYTES_MAX;
    block_on(async {
        let writer = async {
            for number in 0..40u8 {
                object.append(&vec![number; 50_000]).await.unwrap();
            }
            object.finish();
        };
        let reader = async {
            let (mut taken, mut chunks) = (0u64, 0);
            loop {
                assert!(object.available_bytes() - taken <= most as u64);
                let mut took = VecDeque::new();
                let bytes = object.take_chunks(&mut took, 3, 100_000);
                assert_eq!(took.iter().map(Vec::len).sum::<usize>(), bytes);
                assert!(took.len() <= 1 || took.len() <= 3 && bytes <= 100_000);
                for chunk in took {
                    assert_eq!(chunk[0], (taken / 50_000) as u8);
                    taken += chunk.len() as u64;
                    chunks += 1;
                }
                if bytes > 0 {
                    tokio::task::yield_now().await;
                } else if object.state() == BodyState::Complete {
                    break;
                } else {
                    object.changed(taken).await;
                }
            }
            (taken, chunks)
        };
        let ((), (taken, chunks)) = tokio::join!(writer, reader);
        assert_eq!(taken, 2_000_000);
        assert!(chunks >= 40);
    });
}

#[test]
fn bytes_handed_over_count_as_appended_ones_do() {
    let object = Object::passing(attributes(1, None), b"pass".to_vec(), 100);
    block_on(object.append(b"one")).unwrap();
    object.hand_over(vec![2; 97]).unwrap();
    assert_eq!((object.available_bytes(), object.under_way_bytes()), (100, 100));
    assert_eq!(object.hand_over(b"three".to_vec()), Err(b"three".to_vec()), "no room");
    let mut chunks = VecDeque::new();
    assert_eq!(object.take_chunks(&mut chunks, 2, 1000), 100);
    assert_eq!(chunks, [b"one".to_vec(), vec![2; 97]]);
    assert!(object.hand_over(vec![3]).is_err(), "they are still held");
    assert_eq!(object.take_chunks(&mut chunks, 4, 1000), 0);
    object.hand_over(b"three".to_vec()).unwrap();
    object.finish();
    assert!(object.hand_over(vec![4]).is_err(), "it is over");
}

#[test]
fn many_small_pieces_of_a_passing_body_are_bounded_too() {
    let object = Object::passing(attributes(1, None), b"pass".to_vec(), 64 << 10);
    let appended = std::cell::Cell::new(0);
    let mut write = std::pin::pin!(async {
        loop {
            object.append(b"x").await.unwrap();
            appended.set(appended.get() + 1);
        }
    });
    let waker = std::task::Waker::noop();
    let polled: std::task::Poll<()> = write.as_mut().poll(&mut std::task::Context::from_waker(waker));
    assert!(polled.is_pending());
    // They are joined, so the overhead of a chunk is not paid for each byte.
    let mut chunks = VecDeque::new();
    assert_eq!(object.take_chunks(&mut chunks, usize::MAX, usize::MAX), 64 << 10);
    assert_eq!(appended.get(), 64 << 10);
    assert!(chunks.len() <= 32, "{} chunks of {} bytes", chunks.len(), appended.get());
}

#[test]
fn writer_of_a_passing_body_is_notified_without_readers() {
    let object = Object::passing(attributes(1, None), b"".to_vec(), 1 << 10);
    block_on(async {
        let writer = object.append(&[0; 1_000_000]);
        let reader = async { object.abandon() };
        let (written, ()) = tokio::join!(writer, reader);
        assert_eq!(written, Err(AppendError::Abandoned));
    });
}

#[test]
fn a_smaller_limit_drops_what_is_beyond_it_and_gives_its_memory_back() {
    use std::os::unix::fs::MetadataExt;
    for body_bytes in [100, 3000, 200_000] {
        let file = File::from(memory_file());
        let body: Vec<u8> = (0..body_bytes).map(|number| number as u8).collect();
        let open = |limit: u64| Store::open(file.try_clone().unwrap().into(), "s0", limit).unwrap();
        let (store, _) = open(8 << 20);
        let mut kept = Vec::new();
        while let Ok(object) = stored(&store, kept.len() as u32, true, &body) {
            kept.push(object);
        }
        let made = kept.len();
        drop((kept, store));
        assert!(file.metadata().unwrap().blocks() * 512 > 5 << 20);
        let limit = 2 << 20;
        let (store, recovered) = open(limit);
        assert_eq!(recovered.objects.len() + recovered.evicted, made);
        assert_eq!(recovered.torn, 0);
        assert!(recovered.objects.len() > made / 8, "{} of {made}", recovered.objects.len());
        assert!(recovered.objects.iter().all(|object| body_of(object) == body));
        assert!(store.held_bytes() <= limit, "{}", store.held_bytes());
        let resident = file.metadata().unwrap().blocks() * 512;
        assert!(resident <= limit + limit / 16, "{resident} after {body_bytes}");
        let objects = recovered.objects.len();
        drop((recovered, store));
        // If the limit stays the same nothing more is dropped, and there is room again when it
        // grows.
        let (store, recovered) = open(limit);
        assert_eq!((recovered.objects.len(), recovered.evicted), (objects, 0));
        drop((recovered, store));
        let (store, recovered) = open(8 << 20);
        assert_eq!(recovered.objects.len(), objects);
        assert!(stored(&store, 1, true, &vec![1; 4 << 20]).is_ok());
    }
}

#[test]
fn limit_changes_while_the_store_is_in_use() {
    let memory = memory_file();
    let (store, _) = Store::open_to_grow(memory, "s0", 1 << 20, 8 << 20).unwrap();
    assert_eq!(store.limit_bytes(), 1 << 20);
    assert_eq!(store.set_limit(6 << 20), 6 << 20);
    assert_eq!(store.limit_bytes(), 6 << 20);
    let kept = store.reserve(5 << 20, false).unwrap();
    assert_eq!(store.set_limit(2 << 20), 2 << 20);
    assert_eq!(store.free_bytes(false), 0, "what is in use stays");
    assert!(store.reserve(4096, false).is_err());
    drop(kept);
    assert!(store.reserve(1 << 20, false).is_ok());
    // An arena keeps its length.
    let most = store.set_limit(1 << 40);
    assert!((8 << 20..=9 << 20).contains(&most), "{most}");
}

#[test]
fn free_block_bookkeeping_counts_against_the_limit() {
    const LIMIT: u64 = 32 << 20;
    let store = Store::in_memory(LIMIT).unwrap();
    // Small objects between large ones; then only the small ones are left: as many free blocks as
    // possible.
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for number in 0..1900 {
        large.push(stored(&store, number, true, &vec![1; 9000]).unwrap());
        small.push(stored(&store, 10_000 + number, true, b"").unwrap());
    }
    let charged = |store: &Store| store.held_bytes() - store.usage().g_bytes;
    let before = charged(&store);
    for object in large {
        object.remove();
    }
    // The handles are dropped, and each free block is recorded.
    let handles = 1900 * 48;
    let remembered = charged(&store) + handles - before;
    assert!((1900 * 20..1900 * 40).contains(&remembered), "{remembered}");
    drop(small);
}
