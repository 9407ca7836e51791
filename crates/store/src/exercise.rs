//! The entries of the fuzz targets: an arena and a journal whose bytes somebody changed, opened as after a crash.
//!
//! A violated promise panics, which is what a fuzzer looks for; nothing else calls this.

use crate::attributes::ObjectAttributes;
use crate::journal::Journal;
use crate::layout::{LENGTH_AT, SHIFT_AT};
use crate::memory::{Memory, memory_file};
use crate::object::Object;
use crate::storage::Store;
use std::io::Write;
use std::sync::Arc;

/// Size of the arena, in bytes.
const ARENA_BYTES: u64 = 32 << 10;
/// Bytes of a change: where (two bytes, in words of eight), and what is to be xored to the word there.
const CHANGE_BYTES: usize = 10;

/// Fills an arena with objects whose sizes are the first eight bytes, of which every third is removed; changes its bytes as the
/// rest says; and recovers what is left.
///
/// # Panics
/// When recovery does, when the heap it makes contradicts itself, when an object that it found cannot be read whole, or when
/// the arena cannot be used, or not be recovered once more.
pub fn arena(bytes: &[u8]) {
    let Some((sizes, changes)) = bytes.split_first_chunk::<8>() else { return };
    let memory = filled(sizes);
    for change in changes.chunks_exact(CHANGE_BYTES) {
        let [low, high, mask @ ..] = change else { continue };
        let at = u64::from(u16::from_le_bytes([*low, *high])) * 8 % ARENA_BYTES;
        let mask = mask.iter().rev().fold(0, |mask, &byte| mask << 8 | u64::from(byte));
        memory.update(at, |word| word ^ mask);
    }
    let is_as_long = memory.load(LENGTH_AT) == ARENA_BYTES && memory.load(SHIFT_AT) == 3;
    let copied = copy(&memory);
    let Ok((store, recovered)) = Store::on(memory, "s0", ARENA_BYTES) else { return };
    store.inner.check();
    let bodies: Vec<(u32, usize)> = recovered.objects.iter().map(|object| (object.xid(), body_bytes(object))).collect();
    // What was recovered is recovered again, and as much can be stored as there is room.
    let Ok((again, twice)) = Store::on(copied, "s0", ARENA_BYTES) else { panic!("recovery is no matter of luck") };
    assert_eq!(bodies, twice.objects.iter().map(|object| (object.xid(), body_bytes(object))).collect::<Vec<_>>());
    drop((again, twice));
    let mut objects = recovered.objects;
    for xid in 1000..1010 {
        objects.extend(stored(&store, xid, 700));
        store.inner.check();
    }
    for object in objects.drain(..) {
        object.remove();
        drop(object);
        store.inner.check();
    }
    assert!(!is_as_long || stored(&store, 2000, 4000).is_some(), "an empty arena has room");
}

/// An arena with objects in it, some of them in several pieces.
fn filled(sizes: &[u8; 8]) -> Memory {
    let memory = Memory::on_heap(ARENA_BYTES).expect("memory");
    let (store, _) = Store::on(memory, "s0", ARENA_BYTES).expect("a new arena");
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
    copy(&store.inner.memory)
}

fn stored(store: &Store, xid: u32, body_bytes: usize) -> Option<Arc<Object>> {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&xid.to_le_bytes());
    let attributes = ObjectAttributes { key, xid, origin: 1e9, ttl: 10.0, ..ObjectAttributes::default() };
    let object = store.create(&attributes, b"head").ok()?;
    let body = vec![xid as u8; body_bytes];
    let place = object.stored()?;
    if body.chunks(300).any(|part| object.append_stored(place, part).is_err()) {
        object.fail();
        return None;
    }
    object.finish();
    object.enter_index();
    Some(object)
}

fn copy(memory: &Memory) -> Memory {
    let copied = Memory::on_heap(memory.len()).expect("memory");
    for at in (0..memory.len()).step_by(8) {
        copied.store(at, memory.load(at));
    }
    copied
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

/// Opens a file that holds these bytes as a journal.
///
/// # Panics
/// When its entries cannot be read, or are others after one was added.
pub fn journal(bytes: &[u8]) {
    let mut file = memory_file(c"copal-journal").expect("a memory file");
    file.write_all(bytes).expect("room for it");
    let same = file.try_clone().expect("a descriptor");
    let Ok(journal) = Journal::open(file.into()) else { return };
    let mut entries = journal.entries().expect("what was opened can be read");
    if let Ok(sequence) = journal.append(b"one more") {
        assert!(entries.last().is_none_or(|(last, _)| *last < sequence), "numbers grow");
        entries.push((sequence, b"one more".to_vec()));
    }
    let again = Journal::open(same.into()).expect("a journal stays one");
    assert_eq!(again.entries().expect("entries"), entries);
    let middle = entries.get(entries.len() / 2).map_or(1, |(sequence, _)| *sequence);
    if again.drop_older_than(middle).is_ok() {
        entries.retain(|(sequence, _)| *sequence >= middle);
        assert_eq!(again.entries().expect("entries"), entries);
    }
}
