//! An arena, a file of bodies and a journal with altered bytes, opened as after a crash.

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use store::{FileOptions, Journal, Object, ObjectAttributes, Store};
use surface::closed_set::Advice;

/// Size of the arena, in bytes; its limit is the same.
const ARENA_BYTES: usize = 32 << 10;
/// Range in which an arena records its length and the length of its units.
const MEASURES: Range<usize> = 8..24;
/// Bytes of a change: the position (two bytes, counted in words of eight), and the mask that is
/// XORed with the word there.
const CHANGE_BYTES: usize = 10;

/// Fills an arena with objects whose sizes are the first eight bytes and removes every third of
/// them; changes the arena according to the remaining bytes; and recovers the rest.
///
/// # Panics
/// When recovery panics, when the recovered heap contradicts itself, when a recovered object can't
/// be read to its end, when the arena can't be used, or when it can't be recovered a second time.
pub fn arena(bytes: &[u8]) {
    let Some((sizes, changes)) = bytes.split_first_chunk::<8>() else { return };
    let whole = filled(sizes);
    let mut damaged = whole.clone();
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let [low, high, mask @ ..] = change else { continue };
        let at = usize::from(u16::from_le_bytes([*low, *high])) * 8 % ARENA_BYTES;
        damaged[at..].iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    let is_as_long = damaged[MEASURES] == whole[MEASURES];
    let open = || Store::open(memory_file(&damaged), "s0", ARENA_BYTES as u64);
    let Ok((store, recovered)) = open() else { return };
    store.check();
    let bodies: Vec<(u32, usize)> = recovered.objects.iter().map(|object| (object.xid(), body_bytes(object))).collect();
    // Recovery must work a second time with the same result, and the free room must be usable.
    let Ok((again, twice)) = open() else { panic!("recovery is no matter of luck") };
    assert_eq!(bodies, twice.objects.iter().map(|object| (object.xid(), body_bytes(object))).collect::<Vec<_>>());
    drop((again, twice));
    let mut objects = recovered.objects;
    for xid in 1000..1010 {
        objects.extend(stored(&store, xid, 700));
        store.check();
    }
    for object in objects.drain(..) {
        object.remove();
        drop(object);
        store.check();
    }
    assert!(!is_as_long || stored(&store, 2000, 4000).is_some(), "an empty arena has room");
}

/// An arena with objects, some of them in several pieces.
fn filled(sizes: &[u8; 8]) -> Vec<u8> {
    let file = memory_file(&[0; ARENA_BYTES]);
    let mut seen = File::from(file.try_clone().expect("a descriptor"));
    let (store, _) = Store::open(file, "s0", ARENA_BYTES as u64).expect("a new arena");
    let mut objects = Vec::new();
    for (xid, &size) in (1..).zip(sizes) {
        objects.extend(stored(&store, xid, usize::from(size) * 16));
        if xid % 3 == 0
            && let Some(object) = objects.first()
        {
            object.remove();
            objects.remove(0);
        }
    }
    // The objects are still there, as after a kill.
    let mut bytes = Vec::with_capacity(ARENA_BYTES);
    seen.rewind().and_then(|()| seen.read_to_end(&mut bytes)).expect("a file that can be read");
    bytes
}

/// Adds to the body of an object; false if there is no room.
fn appended(object: &Object, part: &[u8]) -> bool {
    match pin!(object.append(part)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.is_ok(),
        Poll::Pending => panic!("a stored object takes bytes at once"),
    }
}

/// A file in memory with these bytes, as the manager holds it.
fn memory_file(bytes: &[u8]) -> OwnedFd {
    let descriptor = memfd_create(c"copal-exercise", MFdFlags::MFD_CLOEXEC).expect("a memory file");
    let mut file = File::from(descriptor);
    file.write_all(bytes).and_then(|()| file.rewind()).expect("room for it");
    file.into()
}

fn stored(store: &Store, xid: u32, body_bytes: usize) -> Option<Arc<Object>> {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&xid.to_le_bytes());
    let attributes = ObjectAttributes { key, xid: xid.into(), origin: 1e9, ttl: 10.0, ..ObjectAttributes::default() };
    let object = store.create(&attributes, b"head").ok()?;
    let body = vec![xid as u8; body_bytes];
    if body.chunks(300).any(|part| !appended(&object, part)) {
        object.fail();
        return None;
    }
    object.finish();
    object.enter_index();
    Some(object)
}

/// Reads an object to its end.
fn body_bytes(object: &Object) -> usize {
    let mut read = 0;
    while let Some(chunk) = object.chunk_at(read) {
        assert!(!chunk.is_empty());
        read += chunk.len() as u64;
    }
    assert_eq!(read, object.available_bytes(), "a recovered object is whole");
    let _ = (object.key().len(), object.vary().len(), object.head().len(), object.ttl(), object.grace(), object.keep());
    read as usize
}

/// Length of the file of bodies.
const FILE_BYTES: u64 = 512 << 10;

/// Makes a storage with a file and closes it; changes the file according to the bytes, as [`arena`]
/// does with an arena; opens it as after a reboot, and reads the contents of the page cache.
///
/// # Panics
/// When it cannot be opened or used, or a body has changed.
pub fn bodies(bytes: &[u8]) {
    let options = FileOptions {
        bytes: FILE_BYTES,
        metadata_bytes: 64 << 10,
        granularity_bytes: 512,
        advice: Advice::Normal,
        journal: 7,
    };
    let file = tempfile::tempfile().expect("a file");
    let open = |file: &File| {
        let handle = file.try_clone().expect("a descriptor").into();
        Store::open_disk_tier(memory_file(&[]), handle, "s0", &options).expect("a storage")
    };
    let (store, _) = open(&file);
    let mut objects: Vec<Arc<Object>> = (1..20).filter_map(|xid| stored(&store, xid, xid as usize * 200)).collect();
    objects.swap_remove(3).remove();
    store.close();
    drop((objects, store));
    for change in bytes.chunks_exact(CHANGE_BYTES) {
        let [low, high, mask @ ..] = change else { continue };
        let at = u64::from(u16::from_le_bytes([*low, *high])) * 8 % FILE_BYTES;
        let mut word = [0; CHANGE_BYTES - 2];
        let end = (FILE_BYTES - at).min(word.len() as u64) as usize;
        file.read_exact_at(&mut word[..end], at).expect("a file of that length");
        word.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        file.write_all_at(&word[..end], at).expect("room");
    }
    let (again, recovered) = open(&file);
    for object in &recovered.objects {
        if !object.is_on_disk() || !object.check() {
            continue;
        }
        let Some(mut reader) = object.reader() else { continue };
        let mut read = 0;
        while let Some(chunk) = reader.chunk_at(read) {
            let first = chunk[0];
            assert!(chunk.iter().all(|byte| *byte == first), "one body, not two");
            read += chunk.len() as u64;
        }
        assert!(reader.wants_load() || reader.has_failed() || read == object.available_bytes());
    }
    drop(recovered);
    again.check();
    assert!(stored(&again, 100, 5000).is_some(), "there is room");
}

/// Opens a file that holds these bytes as a journal.
///
/// # Panics
/// When its entries can't be read, or have changed after another one was added.
pub fn journal(bytes: &[u8]) {
    let file = memory_file(bytes);
    let same = file.try_clone().expect("a descriptor");
    let Ok(journal) = Journal::open(file) else { return };
    let mut entries = journal.entries().expect("what was opened can be read");
    if let Ok(sequence) = journal.append(b"one more") {
        assert!(entries.last().is_none_or(|(last, _)| *last < sequence), "numbers grow");
        entries.push((sequence, b"one more".to_vec()));
    }
    let again = Journal::open(same).expect("a journal stays one");
    assert_eq!(again.entries().expect("entries"), entries);
    let middle = entries.get(entries.len() / 2).map_or(1, |(sequence, _)| *sequence);
    if again.drop_older_than(middle).is_ok() {
        entries.retain(|(sequence, _)| *sequence >= middle);
        assert_eq!(again.entries().expect("entries"), entries);
    }
}
