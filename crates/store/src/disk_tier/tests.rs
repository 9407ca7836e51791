//! Storages with a file, over a disk that fails, tears writes and loses unsynced data, and over a
//! real one.

use super::FileOptions;
use super::disk::Disk;
use crate::attributes::{AppendError, BodyState, ObjectAttributes, ObjectFlags};
use crate::memory::memory_file;
use crate::object::Object;
use crate::recovery::Recovered;
use crate::storage::Store;
use parking_lot::Mutex;
use rand::{Rng, RngExt, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use surface::closed_set::Advice;
use surface::limits::TEST_HANG_SECONDS;

pub(super) const FILE_BYTES: usize = 4 << 20;

pub(super) fn options() -> FileOptions {
    FileOptions {
        bytes: FILE_BYTES as u64,
        metadata_bytes: 512 << 10,
        granularity_bytes: 4096,
        advice: Advice::Random,
        journal: 5,
    }
}

/// The index: its objects can be evicted, the oldest first.
pub(super) type Index = Arc<Mutex<Vec<Arc<Object>>>>;

pub(super) struct Kept {
    pub(super) store: Store,
    pub(super) index: Index,
    pub(super) disk: Disk,
    pub(super) metadata: File,
}

pub(super) fn opened(disk: &Disk, metadata: &File, options: &FileOptions) -> (Kept, Recovered) {
    let handle = metadata.try_clone().unwrap().into();
    let (store, mut recovered) = Store::open_file_on(handle, Box::new(disk.clone()), "s0", options).unwrap();
    let index: Index = Arc::new(Mutex::new(std::mem::take(&mut recovered.objects)));
    let of_evictor = Arc::clone(&index);
    store.set_evictor(Box::new(move |_, _| {
        let mut index = of_evictor.lock();
        let gone = (!index.is_empty()).then(|| index.remove(0));
        drop(index);
        gone.inspect(|object| object.remove()).is_some()
    }));
    let of_reclaimer = Arc::clone(&index);
    store.set_reclaimer(Box::new(move |going| {
        let mut gone = Vec::new();
        of_reclaimer.lock().retain(|object| {
            let goes = going.iter().any(|other| Arc::ptr_eq(other, object));
            gone.extend(goes.then(|| Arc::clone(object)));
            !goes
        });
        gone.iter().for_each(|object| object.remove());
    }));
    (Kept { store, index, disk: disk.clone(), metadata: metadata.try_clone().unwrap() }, recovered)
}

pub(super) fn new_memory() -> File {
    memory_file(c"test").unwrap()
}

pub(super) fn made() -> Kept {
    opened(&Disk::new(FILE_BYTES), &new_memory(), &options()).0
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

/// Every body differs from every other, at every position.
pub(super) fn body(xid: u32, bytes: usize) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(u64::from(xid));
    let mut body = vec![0; bytes];
    random.fill_bytes(&mut body);
    body
}

impl Kept {
    pub(super) async fn store(&self, xid: u32, bytes: usize, is_known: bool) -> Result<Arc<Object>, AppendError> {
        let body = body(xid, bytes);
        let promised = is_known.then_some(bytes as u64);
        let object = self.store.create(&attributes(xid, promised), b"the head").map_err(|_| AppendError::Full)?;
        object.enter_index();
        for piece in body.chunks(30_000) {
            object.append(piece).await?;
        }
        object.finish();
        self.index.lock().push(Arc::clone(&object));
        Ok(object)
    }

    pub(super) fn remove(&self, xid: u32) {
        let mut index = self.index.lock();
        let at = index.iter().position(|object| object.xid() == xid).unwrap();
        let object = index.remove(at);
        drop(index);
        object.remove();
    }

    /// The next process, which finds the memory file.
    pub(super) fn killed(&self, disk: Disk) -> (Kept, Recovered) {
        opened(&disk, &self.copy_of_memory(), &options())
    }

    /// The memory file as the next process finds it.
    pub(super) fn copy_of_memory(&self) -> File {
        let copy = new_memory();
        let mut from = self.metadata.try_clone().unwrap();
        std::io::Seek::rewind(&mut from).unwrap();
        std::io::copy(&mut from, &mut copy.try_clone().unwrap()).unwrap();
        copy
    }

    /// The stored objects, by xid, with their bytes; those that cannot be read are left out.
    pub(super) async fn content(&self) -> BTreeMap<u32, Vec<u8>> {
        let objects = self.index.lock().clone();
        let mut found = BTreeMap::new();
        for object in objects {
            if object.is_usable()
                && object.check()
                && let Some(body) = read(&object).await
            {
                found.insert(object.xid(), body);
            }
        }
        found
    }
}

async fn read(object: &Arc<Object>) -> Option<Vec<u8>> {
    let (mut reader, mut body) = (object.reader()?, Vec::new());
    while (body.len() as u64) < object.available_bytes() || object.state() == BodyState::Writing {
        if let Some(bytes) = reader.chunk_at(body.len() as u64) {
            body.extend_from_slice(bytes);
        } else if reader.wants_load() {
            reader.load().await;
        } else if reader.has_failed() {
            return None;
        } else {
            object.changed(body.len() as u64).await;
        }
    }
    Some(body)
}

#[tokio::test]
async fn bodies_of_every_length_are_read_back_from_memory_from_the_page_cache_and_from_the_disk() {
    let kept = made();
    for (index, bytes) in [1, 100, 4096, 65_535, 65_536, 65_537, 200_000, 1_300_000].into_iter().enumerate() {
        for is_known in [true, false] {
            let xid = index as u32 * 2 + u32::from(is_known) + 1;
            let object = kept.store(xid, bytes, is_known).await.unwrap();
            assert!(object.is_on_disk() && object.chunk_at(0).is_none() && object.is_whole());
            let expected = body(xid, bytes);
            assert!(read(&object).await.unwrap() == expected, "from memory: {bytes}");
            assert!(kept.store.settle().await);
            assert!(read(&object).await.unwrap() == expected, "from the cache: {bytes}");
            kept.disk.be_cold(true);
            assert!(read(&object).await.unwrap() == expected, "from the disk: {bytes}");
            let mut reader = object.reader().unwrap();
            let middle = bytes as u64 / 2;
            assert!(reader.chunk_at(middle).is_none() && reader.wants_load());
            reader.load().await;
            assert_eq!(reader.chunk_at(middle).unwrap()[0], expected[bytes / 2]);
            kept.disk.be_cold(false);
            kept.remove(xid);
        }
    }
    let usage = kept.store.file_usage().unwrap();
    assert_eq!((usage.usage.g_bytes, usage.usage.g_alloc), (0, 0), "everything was given back");
    kept.store.check();
}

#[tokio::test]
async fn a_body_is_read_while_it_comes_in() {
    let kept = made();
    let object = kept.store.create(&attributes(1, None), b"head").unwrap();
    let expected = body(1, 900_000);
    let reading = tokio::spawn({
        let object = Arc::clone(&object);
        async move { read(&object).await }
    });
    for piece in expected.chunks(7_777) {
        object.append(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    object.finish();
    assert!(reading.await.unwrap().unwrap() == expected);
}

#[tokio::test]
async fn broken_off_body_is_readable_up_to_the_break() {
    for is_cold in [false, true] {
        let kept = made();
        // The next record in the block has its own map there.
        let gone = kept.store(1, 200_000, true).await.unwrap();
        assert!(kept.store.settle().await);
        kept.remove(1);
        drop(gone);
        let object = kept.store.create(&attributes(2, Some(200_000)), b"the head").unwrap();
        let mut reader = object.reader().unwrap();
        object.append(&body(2, 150_000)).await.unwrap();
        if is_cold {
            object.streaming.get().unwrap().disk_write.as_ref().unwrap().queue_whole();
            assert!(kept.store.settle().await);
            kept.disk.be_cold(true);
        }
        object.fail();
        let mut found = Vec::new();
        while (found.len() as u64) < object.available_bytes() {
            if let Some(bytes) = reader.chunk_at(found.len() as u64) {
                found.extend_from_slice(bytes);
            } else if reader.wants_load() {
                reader.load().await;
            } else {
                break;
            }
        }
        assert!(found == body(2, 150_000) && !reader.has_failed(), "{} bytes", found.len());
        assert_eq!(kept.store.file_usage().unwrap().read_errors, 0);
        // A later reader gets nothing.
        let mut late = object.reader().unwrap();
        assert!(late.chunk_at(0).is_none() && !late.wants_load());
        drop((reader, late, object));
        assert_eq!(kept.store.file_usage().unwrap().usage.g_bytes, 0);
    }
}

#[tokio::test]
async fn annex_is_stored_behind_the_map_and_survives_a_reboot() {
    let kept = made();
    let mut with_annex = attributes(1, None);
    with_annex.flags = ObjectFlags::ESI;
    let object = kept.store.create(&with_annex, b"head").unwrap();
    object.enter_index();
    object.append(&body(1, 150_000)).await.unwrap();
    let annex = body(99, 70_000);
    object.finish_with(&annex).unwrap();
    assert!(object.annex().unwrap() == annex && read(&object).await.unwrap() == body(1, 150_000));
    kept.store.close();
    let (again, _) = opened(&kept.disk.after_kill(), &new_memory(), &options());
    let object = again.index.lock()[0].clone();
    assert!(object.annex().unwrap() == annex && read(&object).await.unwrap() == body(1, 150_000));
}

#[tokio::test]
async fn the_next_worker_and_the_next_boot_find_everything_but_what_was_removed() {
    let kept = made();
    for xid in 1..60 {
        kept.store(xid, xid as usize * 1000, xid % 2 == 0).await.unwrap();
    }
    for xid in (3..60).step_by(3) {
        kept.remove(xid);
    }
    let changed = kept.index.lock()[0].clone();
    changed.set_lifetime(99.0, 3.0, 2.0);
    assert!(kept.store.settle().await);
    let expected = kept.content().await;
    assert_eq!(expected.len(), 40);
    let (after_kill, recovered) = kept.killed(kept.disk.after_kill());
    assert_eq!((recovered.torn, recovered.evicted, recovered.anew), (0, 0, None));
    assert!(after_kill.content().await == expected);
    let (after_boot, recovered) = opened(&kept.disk.after_kill(), &new_memory(), &options());
    assert_eq!((recovered.torn, recovered.evicted, recovered.anew), (0, 0, None));
    assert!(after_boot.content().await == expected);
    let object = after_boot.index.lock()[0].clone();
    assert_eq!((object.ttl(), object.grace(), object.keep(), object.head()), (99.0, 3.0, 2.0, &b"the head"[..]));
    // It continues where it stopped, and the next boot finds the entries of both.
    after_boot.store(100, 5000, true).await.unwrap();
    after_boot.remove(1);
    after_boot.store.close();
    let (third, _) = opened(&after_boot.disk, &new_memory(), &options());
    let mut found = third.content().await;
    assert!(found.remove(&100).unwrap() == body(100, 5000) && !found.contains_key(&1));
    assert_eq!(found.len(), 39);
}

#[tokio::test]
async fn objects_dropped_at_a_boot_do_not_return_with_more_room() {
    let kept = made();
    for xid in 1..=100 {
        kept.store(xid, 2000, true).await.unwrap();
    }
    kept.store.close();
    let narrow = FileOptions { metadata_bytes: 16 << 10, ..options() };
    let (small, recovered) = opened(&kept.disk, &new_memory(), &narrow);
    assert!(recovered.evicted > 0 && recovered.torn == 0, "{recovered:?}");
    let stayed = small.content().await;
    assert!(small.store.settle().await);
    let (again, _) = opened(&small.disk.after_kill(), &new_memory(), &options());
    assert!(again.content().await == stayed);
}

#[tokio::test]
async fn file_of_another_ban_journal_starts_empty() {
    let kept = made();
    kept.store(1, 5000, true).await.unwrap();
    kept.store.close();
    let other = FileOptions { journal: 6, ..options() };
    let (anew, recovered) = opened(&kept.disk.after_kill(), &kept.metadata, &other);
    assert_eq!((recovered.anew, anew.index.lock().len()), (Some("its bans are in another journal"), 0));
    anew.store(2, 5000, true).await.unwrap();
    anew.store.close();
    let (again, _) = opened(&anew.disk, &new_memory(), &other);
    assert_eq!(again.content().await.keys().copied().collect::<Vec<_>>(), [2]);
    // Something else altogether.
    let noise = Disk::new(FILE_BYTES);
    super::device::Device::write(&noise, &mut [std::io::IoSlice::new(&body(1, FILE_BYTES))], 0, true).unwrap();
    let (anew, _) = opened(&noise, &kept.metadata, &options());
    assert_eq!(anew.index.lock().len(), 0);
}

#[tokio::test]
async fn full_file_is_reclaimed_in_order_and_hit_objects_get_a_second_chance() {
    let kept = made();
    let hot = kept.store(1, 40_000, true).await.unwrap();
    drop(hot);
    for xid in 2..400 {
        kept.store(xid, 40_000, xid % 2 == 0).await.unwrap();
        kept.store.settle().await;
        let hot = kept.index.lock().iter().find(|object| object.xid() == 1).cloned();
        hot.expect("it is hit all the time").touch(xid * 10, 1, 1);
    }
    let content = kept.content().await;
    assert!(content.len() > 60, "{}", content.len());
    assert!(content.iter().all(|(xid, bytes)| *bytes == body(*xid, 40_000)));
    assert!(content.contains_key(&399) && !content.contains_key(&2));
    let usage = kept.store.file_usage().unwrap();
    assert!(usage.usage.g_bytes + usage.usage.g_space <= FILE_BYTES as u64);
    // Wear: the padding of each body, and the log.
    assert!(usage.written_bytes < usage.stored_bytes + usage.stored_bytes / 5, "{usage:?}");
}

#[tokio::test]
async fn many_sizes_at_a_full_file_never_overlap_and_never_fail() {
    for seed in 0..3 {
        let (kept, mut random) = (made(), SmallRng::seed_from_u64(seed));
        for xid in 1..600 {
            let bytes = match random.random_range(0..10) {
                0 => random.random_range(1..700_000),
                1..4 => random.random_range(1..60_000),
                _ => random.random_range(1..3_000),
            };
            kept.store(xid, bytes, random.random_bool(0.5)).await.unwrap();
            if random.random_bool(0.1) {
                kept.content().await.iter().for_each(|(xid, bytes)| assert!(*bytes == body(*xid, bytes.len())));
            }
        }
        assert!(kept.store.settle().await);
        let before = kept.content().await;
        assert!(before.iter().all(|(xid, bytes)| *bytes == body(*xid, bytes.len())));
        let (again, recovered) = kept.killed(kept.disk.after_kill());
        assert_eq!(recovered.torn, 0);
        assert!(again.content().await == before);
        let (boot, recovered) = opened(&kept.disk.after_kill(), &new_memory(), &options());
        assert_eq!((recovered.torn, recovered.evicted), (0, 0));
        assert!(boot.content().await == before);
    }
}

#[tokio::test]
async fn a_loss_of_power_leaves_nothing_wrong_and_brings_nothing_back_that_was_settled() {
    for seed in 0..40 {
        let (kept, mut random) = (made(), SmallRng::seed_from_u64(seed));
        let mut gone: Vec<u32> = Vec::new();
        let mut settled: Vec<u32> = Vec::new();
        for xid in 1..random.random_range(10..120) {
            kept.store(xid, random.random_range(1..90_000), random.random_bool(0.5)).await.unwrap();
            if random.random_bool(0.3) {
                let index = kept.index.lock();
                let Some(victim) = index.get(random.random_range(0..index.len())).map(|object| object.xid()) else {
                    continue;
                };
                drop(index);
                kept.remove(victim);
                gone.push(victim);
            }
            if random.random_bool(0.1) {
                assert!(kept.store.settle().await);
                settled.clone_from(&gone);
            }
        }
        let (again, recovered) = opened(&kept.disk.after_power_loss(&mut random), &new_memory(), &options());
        assert_eq!(recovered.anew, None);
        let content = again.content().await;
        assert!(content.iter().all(|(xid, bytes)| *bytes == body(*xid, bytes.len())), "seed {seed}");
        assert!(settled.iter().all(|xid| !content.contains_key(xid)), "seed {seed}: {settled:?} {:?}", content.keys());
        // It is usable.
        again.store(1000, 10_000, true).await.unwrap();
        assert!(again.content().await[&1000] == body(1000, 10_000));
    }
}

#[tokio::test]
async fn the_log_changes_areas_for_ever_and_a_kill_in_between_costs_nothing() {
    let (mut kept, mut random) = (made(), SmallRng::seed_from_u64(1));
    let mut xid = 0;
    for round in 0..30 {
        for _ in 0..120 {
            xid += 1;
            kept.store(xid, random.random_range(1..2000), true).await.unwrap();
            if kept.index.lock().len() > 40 {
                let oldest = kept.index.lock()[random.random_range(0..20)].xid();
                kept.remove(oldest);
            }
        }
        let is_kill = round % 3 == 0;
        assert!(kept.store.settle().await);
        let expected = kept.content().await;
        let next = if is_kill {
            kept.killed(kept.disk.after_kill()).0
        } else if round % 3 == 1 {
            opened(&kept.disk.after_kill(), &new_memory(), &options()).0
        } else {
            continue;
        };
        assert!(next.content().await == expected, "round {round}, {is_kill}");
        kept = next;
    }
}

#[tokio::test]
async fn a_piece_that_cannot_be_read_or_is_another_is_never_delivered() {
    let kept = made();
    let sound = kept.store(1, 300_000, true).await.unwrap();
    let damaged = kept.store(2, 300_000, true).await.unwrap();
    assert!(kept.store.settle().await);
    assert_eq!(kept.disk.damage(&body(2, 300_000)[200_000..200_100]), 1);
    let mut reader = damaged.reader().unwrap();
    assert!(reader.chunk_at(0).is_some(), "the others are what they were");
    assert!(reader.chunk_at(200_000).is_none() && reader.has_failed() && damaged.is_removed());
    assert_eq!(read(&damaged).await, None);
    kept.disk.fail_reads(true);
    assert_eq!(read(&sound).await, None);
    assert!(sound.is_removed() && kept.store.file_usage().unwrap().read_errors >= 2);
    kept.disk.fail_reads(false);
    let short = kept.store(3, 300_000, true).await.unwrap();
    assert!(kept.store.settle().await);
    kept.disk.shrink(FILE_BYTES / 4);
    kept.disk.be_cold(true);
    assert!(read(&short).await.is_none() && short.is_removed());
}

#[tokio::test]
async fn a_full_disk_costs_the_objects_that_come_and_none_that_are_there() {
    let kept = made();
    let before = kept.store(1, 50_000, true).await.unwrap();
    assert!(kept.store.settle().await);
    kept.disk.fail_writes(true);
    let lost = kept.store(2, 50_000, true).await.unwrap();
    kept.store.settle().await;
    assert!(!kept.store.settle().await, "nobody is told that its removal is on the disk");
    assert!(read(&lost).await.unwrap() == body(2, 50_000), "whoever has it can read it");
    assert!(lost.is_removed() && kept.store.file_usage().unwrap().write_errors > 0);
    // One that is too long to wait in memory is passed on.
    let long = kept.store.create(&attributes(3, None), b"head").unwrap();
    let mut reader = long.reader().unwrap();
    let mut result = Ok(());
    for piece in body(3, 3 << 20).chunks(60_000) {
        result = long.append(piece).await;
        if result.is_err() {
            break;
        }
    }
    assert_eq!(result, Err(AppendError::Full));
    assert_eq!(long.overflow(1 << 20), 1);
    long.append(b"the rest").await.unwrap();
    long.finish();
    let stored = long.available_bytes() - 8;
    let mut at = 0;
    while at < stored {
        let bytes = reader.chunk_at(at).unwrap().to_vec();
        assert!(bytes == body(3, 3 << 20)[at as usize..at as usize + bytes.len()]);
        at += bytes.len() as u64;
    }
    assert_eq!(reader.chunk_at(at).unwrap(), b"the rest");
    kept.disk.fail_writes(false);
    assert!(read(&before).await.unwrap() == body(1, 50_000));
    drop((lost, long, reader));
    kept.store(4, 50_000, true).await.unwrap();
    assert!(kept.store.settle().await);
    let (again, _) = opened(&kept.disk.after_kill(), &new_memory(), &options());
    assert_eq!(again.content().await.keys().copied().collect::<Vec<_>>(), [1, 4]);
}

#[tokio::test]
async fn objects_whose_write_fails_are_removed_from_index_and_memory() {
    let kept = made();
    kept.disk.fail_writes(true);
    let mut gone = Vec::new();
    for xid in 1..=20 {
        let object = kept.store.create(&attributes(xid, Some(50_000)), b"the head").unwrap();
        object.enter_index();
        kept.index.lock().push(Arc::clone(&object));
        object.append(&body(xid, 50_000)).await.unwrap();
        object.finish();
        gone.push(Arc::downgrade(&object));
    }
    kept.store.settle().await;
    assert!(kept.index.lock().is_empty());
    let alive = gone.iter().filter(|object| object.strong_count() > 0).count();
    assert_eq!((alive, kept.store.file_usage().unwrap().usage.g_bytes), (0, 0));
}

#[tokio::test]
async fn whatever_is_damaged_in_the_file_nothing_wrong_is_read_and_the_storage_can_be_used() {
    let kept = made();
    for xid in 1..40 {
        kept.store(xid, xid as usize * 2000, true).await.unwrap();
    }
    (1..40).step_by(4).for_each(|xid| kept.remove(xid));
    kept.store.close();
    for seed in 0..150 {
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = kept.disk.after_kill();
        // Most of it in the log.
        let changes = random.random_range(1..40);
        disk.change(|bytes| {
            for _ in 0..changes {
                let within = if random.random_bool(0.8) { 24 << 10 } else { bytes.len() };
                let at = random.random_range(0..within);
                bytes[at] = random.random();
            }
        });
        let (again, _) = opened(&disk, &new_memory(), &options());
        let content = again.content().await;
        assert!(content.iter().all(|(xid, bytes)| *bytes == body(*xid, bytes.len())), "seed {seed}");
        again.store(100, 300_000, true).await.unwrap();
        assert!(again.content().await[&100] == body(100, 300_000));
        again.store.check();
    }
}

#[tokio::test]
async fn invalid_entries_with_a_valid_checksum_are_harmless() {
    use super::log::{Entry, Header, frame, replay};
    let kept = made();
    for xid in 1..12 {
        kept.store(xid, 70_000, true).await.unwrap();
    }
    kept.store.close();
    let header = Header::read(&kept.disk).unwrap().unwrap();
    let mut entries = Vec::new();
    replay(&kept.disk, &header, |entry| entries.push(entry)).unwrap();
    assert_eq!(entries.len(), 11);
    for seed in 0..200 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut log = Vec::new();
        for entry in &entries {
            let mut payload = entry.encode();
            for _ in 0..random.random_range(0..4) {
                // The kind stays, so that it is read at all.
                let at = random.random_range(8..payload.len());
                payload[at] = if random.random_bool(0.5) {
                    random.random()
                } else {
                    payload[at] ^ 1 << random.random_range(0..8)
                };
            }
            frame(&mut log, header.generation, &payload);
        }
        frame(&mut log, header.generation, &Entry::Removed(random.random()).encode());
        let disk = kept.disk.after_kill();
        let at = header.area_at(header.area);
        super::device::Device::write(&disk, &mut [std::io::IoSlice::new(&log)], at, true).unwrap();
        let (again, _) = opened(&disk, &new_memory(), &options());
        // Changed heads and attributes cannot be detected; a body equals that of some object, or is
        // not read.
        let _ = again.content().await;
        again.store(100, 300_000, true).await.unwrap();
        again.store.check();
        again.index.lock().drain(..).for_each(|object| object.remove());
        again.store.check();
    }
}

#[tokio::test]
async fn unwritten_bytes_are_bounded_and_small_bodies_are_written_together() {
    let kept = made();
    let before = kept.disk.writes();
    for xid in 1..200 {
        kept.store(xid, 3000, true).await.unwrap();
        assert!(
            kept.store.inner.disk_tier().unwrap().unwritten_bytes.load(std::sync::atomic::Ordering::Relaxed) <= 2 << 20
        );
    }
    assert!(kept.store.settle().await);
    assert!(kept.disk.writes() - before < 200, "{} writes", kept.disk.writes() - before);
}

#[tokio::test]
async fn many_bodies_that_come_side_by_side_do_not_wait_for_each_other() {
    // Bodies of several pieces, and of less than one.
    for (count, bytes) in [(12, 60_000), (200, 15_000)] {
        let kept = made();
        let mut objects = Vec::new();
        for xid in 1..=count {
            objects.push(kept.store.create(&attributes(xid, None), b"head").unwrap());
        }
        for round in 0..4 {
            for object in &objects {
                let piece = &body(object.xid(), bytes * 4)[round * bytes..][..bytes];
                let append = tokio::time::timeout(Duration::from_secs(TEST_HANG_SECONDS), object.append(piece));
                match append.await.expect("it need not wait for ever") {
                    Ok(()) => {}
                    Err(error) => assert_eq!((error, count), (AppendError::Full, 200)),
                }
            }
        }
        objects.iter().filter(|_| count == 12).for_each(|object| object.finish());
        assert!(kept.store.settle().await);
        for object in objects.iter().filter(|_| count == 12) {
            assert!(read(object).await.unwrap() == body(object.xid(), bytes * 4));
        }
        drop(objects);
        let tier = kept.store.inner.disk_tier().unwrap();
        for bytes in [&tier.unwritten_bytes, &tier.queued_bytes] {
            assert_eq!(bytes.load(std::sync::atomic::Ordering::Relaxed), 0);
        }
    }
}

/// Appends to a body until no more of it may be kept; returns the number of bytes kept.
async fn fill(object: &Object, piece: usize) -> u64 {
    let mut kept = 0;
    loop {
        match object.append(&body(object.xid(), 1 << 20)[kept as usize..][..piece]).await {
            Ok(()) => kept += piece as u64,
            Err(error) => {
                assert_eq!(error, AppendError::TooLarge);
                return kept;
            }
        }
    }
}

#[tokio::test]
async fn several_bodies_of_unknown_length_share_what_one_may_have_of_the_file() {
    let kept = made();
    kept.store.set_unsized_share(25);
    let share = kept.store.inner.disk_tier().unwrap().capacity_bytes() / 4;
    let objects: Vec<_> = (1..=8).map(|xid| kept.store.create(&attributes(xid, None), b"head").unwrap()).collect();
    let mut largest = vec![0; objects.len()];
    let mut growing: Vec<usize> = (0..objects.len()).collect();
    while !growing.is_empty() {
        let mut still = Vec::new();
        for index in growing {
            match objects[index].append(&[1; 4000]).await {
                Ok(()) => {
                    largest[index] += 4000;
                    still.push(index);
                }
                Err(error) => assert_eq!(error, AppendError::TooLarge),
            }
        }
        growing = still;
    }
    let total: u64 = largest.iter().sum();
    assert!(total <= 2 * share, "{total} bytes together, of {share}");
    assert!(largest.iter().all(|bytes| *bytes >= share / 8 - (8 << 10)), "each has about its part: {largest:?}");
    // However much is taken, a late request gets room for a small page.
    let late = kept.store.create(&attributes(9, None), b"head").unwrap();
    late.append(&[1; 2000]).await.unwrap();
    late.finish();
    drop((objects, late));
    assert!(kept.store.settle().await);
    let tier = kept.store.inner.disk_tier().unwrap();
    assert_eq!((tier.unsized_bodies.room(share, 0), kept.store.file_usage().unwrap().usage.g_bytes), (share, 0));
}

#[tokio::test]
async fn overflowed_body_is_freed_as_readers_advance_and_the_rest_counts() {
    let kept = made();
    kept.store.set_unsized_share(25);
    let tier = kept.store.inner.shared_disk_tier().unwrap();
    let share = tier.capacity_bytes() / 4;
    let held = || kept.store.file_usage().unwrap().usage.g_bytes;
    let mut slow = Vec::new();
    for xid in 1..=20 {
        let object = kept.store.create(&attributes(xid, None), b"head").unwrap();
        let reader = object.reader().unwrap();
        let stored = fill(&object, 4000).await;
        assert_eq!(object.overflow(1 << 20), 1);
        object.append(b"the rest").await.unwrap();
        object.finish();
        slow.push((reader, stored));
    }
    assert!(held() < 2 * share + share / 2, "{} bytes are held by those who do not read", held());
    for (reader, stored) in &mut slow {
        let (before, xid) = (held(), reader.object().xid());
        let expected = body(xid, *stored as usize);
        let mut found = Vec::new();
        while (found.len() as u64) < *stored {
            if let Some(bytes) = reader.chunk_at(found.len() as u64) {
                found.extend_from_slice(bytes);
            } else if reader.wants_load() {
                reader.load().await;
            } else {
                panic!("{xid}: {} of {stored} bytes", found.len());
            }
            // Written parts are given back while the reader advances.
            kept.store.settle().await;
        }
        assert!(found == expected, "{xid}");
        assert_eq!(reader.chunk_at(*stored).unwrap(), b"the rest");
        assert!(held() + stored.saturating_sub(128 << 10) <= before, "{xid}: {} of {before}", held());
    }
    assert_eq!(kept.store.file_usage().unwrap().read_errors, 0);
    drop(slow);
    assert!(kept.store.settle().await);
    let usage = kept.store.file_usage().unwrap().usage;
    assert_eq!((tier.unsized_bodies.room(share, 0), usage.g_bytes, usage.g_alloc), (share, 0, 0));
}

#[tokio::test]
async fn a_real_file_does_the_same() {
    let path = std::env::temp_dir().join(format!("copal-disk-tier-{}", std::process::id()));
    let file = || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
    let handle = file();
    let (store, _) = Store::open_disk_tier(new_memory().into(), handle.into(), "s0", &options()).unwrap();
    let mut objects = Vec::new();
    for xid in 1..30 {
        let object = store.create(&attributes(xid, None), b"head").unwrap();
        object.enter_index();
        object.append(&body(xid, xid as usize * 3000)).await.unwrap();
        object.finish();
        objects.push(object);
    }
    objects[3].remove();
    assert!(store.settle().await);
    store.close();
    let (again, recovered) = Store::open_disk_tier(new_memory().into(), file().into(), "s0", &options()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(recovered.objects.len(), 28);
    for object in &recovered.objects {
        assert!(read(object).await.unwrap() == body(object.xid(), object.xid() as usize * 3000));
    }
    let usage = again.file_usage().unwrap();
    assert!(usage.warm_reads + usage.cold_reads > 0 && usage.read_errors == 0, "{usage:?}");
}
