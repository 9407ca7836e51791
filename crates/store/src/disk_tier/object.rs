//! The parts of an object that concern the file: writing the body to it, the map, and the log.

use super::DiskWrite;
use super::disk_write::Owner;
use super::log::{Entry, Record};
use super::map::{CHUNK_BYTES, Map, encode};
use crate::annex::annex_of;
use crate::arena::{Inner, StoreFull};
use crate::attributes::{AppendError, ObjectFlags};
use crate::layout::{
    BODY_BYTES_MAX, COMPLETE, FAILED, IDENTITY, INDEXED, KEEP_BAN, KEY, KEY_BYTES, KIND_ON_DISK, LENGTHS, LIFETIME,
    ORIGIN, REMOVED, USE, body_length, lengths, low, pair,
};
use crate::object::{Body, Object, Words};
use crate::place::Place;
use crate::streaming::Streaming;
use crate::writer::put_all;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

impl Object {
    /// Adds bytes to a body being written to the file; waits while too much is unwritten.
    pub(crate) async fn append_on_disk(&self, place: &Place, bytes: &[u8]) -> Result<(), AppendError> {
        let Some(streaming) = self.streaming.get() else { return Err(AppendError::Abandoned) };
        let Some(disk_write) = streaming.disk_write.clone() else { return Err(AppendError::Abandoned) };
        for piece in bytes.chunks(CHUNK_BYTES as usize) {
            disk_write.writable().await;
            append_piece(place, &streaming, &disk_write, piece)?;
            streaming.changed.notify_waiters();
        }
        Ok(())
    }

    /// For a body in a file: it is complete, so the map of its extents is written. Does nothing for
    /// others.
    pub(crate) fn write_map(&self, place: &Place) -> Result<(), AppendError> {
        let streaming = self.streaming.get();
        let Some((streaming, disk_write)) = streaming.as_ref().and_then(|now| Some((now, now.disk_write.as_ref()?)))
        else {
            return Ok(());
        };
        let mut position = streaming.position.lock();
        if position.ended {
            return Ok(());
        }
        let (extents, checksums) = disk_write.end();
        put_all(place, &mut position, None, &encode(disk_write.tier.new_id(), &extents, &checksums))
    }

    /// Everything is in the file: the extents are the object's now. Returns the offset of the body.
    fn settle_on_disk(&self) -> Option<u64> {
        let place = self.stored()?;
        if self.streaming.take().is_some() {
            place.store.charge(-Streaming::PRIVATE_BYTES);
        }
        Map::of(place)?.extents().next().map(|extent| extent.at)
    }

    /// It has entered the index; if it was in the file before that, it is not in the log yet.
    pub(crate) fn log_late(&self, place: &Place) {
        if place.is_on_disk()
            && self.streaming.is_empty()
            && let Some((tier, entry)) = place.store.disk_tier().zip(entry_of(place))
        {
            tier.queue().log(entry);
        }
    }

    pub(crate) fn log_removal(&self, place: &Place) {
        if let Some((tier, id)) = logged(place) {
            tier.log_removal(id);
        }
    }

    pub(crate) fn log_lifetime(&self, place: &Place) {
        if let Some((tier, id)) = logged(place) {
            tier.log_lifetime(id, place.word(LIFETIME), place.word(KEEP_BAN));
        }
    }

    /// Creates an object from a log record; `None` if that is impossible.
    pub(crate) fn restored(store: &Arc<Inner>, record: &Record) -> Result<Option<Arc<Object>>, StoreFull> {
        let Some((fixed, map, annex)) = record.parts() else { return Ok(None) };
        let Some((vary, head)) = fixed.split_at_checked(crate::layout::vary_length(record.origin)) else {
            return Ok(None);
        };
        let flags = ObjectFlags(record.flags);
        if store.lower_tier.is_none() || !annex.is_empty() && !flags.has(ObjectFlags::ESI) {
            return Ok(None);
        }
        let words = Words {
            identity: pair(record.xid, 0),
            lengths: record.lengths,
            origin: record.origin,
            lifetime: record.lifetime,
            keep_ban: record.keep_ban,
            used: record.used,
        };
        let promised = Some(body_length(record.lengths));
        let object =
            Object::write_record(store, &words, [&record.key, vary, head], flags, promised, Body::InFile(None))?;
        let Some((place, streaming)) = object.stored().zip(object.streaming.get()) else { return Ok(None) };
        let mut position = streaming.position.lock();
        position.body_bytes = body_length(record.lengths);
        let mapped = put_all(place, &mut position, None, map);
        drop(position);
        mapped.and_then(|()| object.write_annex(place, annex)).map_err(|_| StoreFull)?;
        object.end_stored(place, COMPLETE, annex);
        // It is in the log.
        place.set_bits(INDEXED);
        Ok(Some(object))
    }

    /// Sets the words of the lifetime to their earlier values.
    pub(crate) fn restore_lifetime(&self, lifetime: u64, keep_ban: u64) {
        if let Some(place) = self.stored() {
            place.store.memory.store(place.at(LIFETIME), lifetime);
            place.store.memory.store(place.at(KEEP_BAN), keep_ban);
        }
    }

    /// Removes an object whose extents in the file are not its own.
    pub(crate) fn disown(&self) {
        if let Some(place) = self.stored() {
            place.set_bits(FAILED | REMOVED);
        }
    }
}

impl Owner for Object {
    fn written(self: Arc<Object>) -> Option<Vec<u8>> {
        let first = self.settle_on_disk();
        let place = self.stored()?;
        if let Some((first, tier)) = first.zip(place.store.disk_tier()) {
            tier.space.lock().segments.enter(first, &self);
        }
        entry_of(place)
    }

    fn unwritable(self: Arc<Object>) {
        self.remove();
        if let Some(tier) = self.stored().and_then(|place| place.store.disk_tier()) {
            tier.reclaim(std::slice::from_ref(&self));
        }
    }
}

pub(super) fn append_piece(
    place: &Place,
    streaming: &Streaming,
    disk_write: &DiskWrite,
    bytes: &[u8],
) -> Result<(), AppendError> {
    let mut position = streaming.position.lock();
    if position.ended {
        return Err(AppendError::Abandoned);
    }
    let after = position.body_bytes.saturating_add(bytes.len() as u64);
    let share = place.store.unsized_share_in(disk_write.tier.capacity_bytes());
    match streaming.promised_bytes {
        Some(promised) if after > promised => return Err(AppendError::Full),
        None if after > share => return Err(AppendError::TooLarge),
        _ if after > BODY_BYTES_MAX || disk_write.has_failed() => return Err(AppendError::Full),
        _ => {}
    }
    loop {
        let missing = disk_write.missing(bytes.len() as u64);
        if missing == 0 {
            break;
        }
        let most = disk_write.unsized_room(share);
        if missing > most {
            return Err(AppendError::TooLarge);
        }
        let left = streaming.promised_bytes.map(|promised| disk_write.missing(promised - position.body_bytes));
        let asked = disk_write.worth_asking(missing, left, most);
        disk_write.add_room(disk_write.tier.make_room(asked).ok_or(AppendError::Full)?);
    }
    let is_worth_writing = disk_write.push(bytes);
    position.body_bytes = after;
    place.store.memory.store(place.at(LENGTHS), lengths(after, place.head_bytes()));
    drop(position);
    if is_worth_writing && let Some(disk_write) = &streaming.disk_write {
        disk_write.tier.queue().write(Arc::clone(disk_write));
    }
    Ok(())
}

/// File and id of a complete object that may be in the log.
fn logged(place: &Place) -> Option<(&super::Tier, u64)> {
    let (head, tier) = (place.head(), place.store.disk_tier()?);
    if head.kind() != KIND_ON_DISK || !head.has(COMPLETE) || head.has(FAILED) {
        return None;
    }
    Map::of(place).map(|map| (tier, map.id))
}

fn entry_of(place: &Place) -> Option<Vec<u8>> {
    let head = place.head();
    let map = Some(place).filter(|_| head.is_committed() && head.kind() == KIND_ON_DISK).and_then(Map::of)?;
    let encoded = map.encoded()?;
    let annex_bytes = place.annex_bytes();
    let mut rest = place.fixed(crate::layout::RECORD_HEADER_BYTES, place.vary_bytes() + place.head_bytes()).to_vec();
    rest.extend_from_slice(&encoded);
    rest.extend(annex_of(place, annex_bytes)?);
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(place.fixed(KEY, KEY_BYTES));
    let record = Record {
        flags: head.object_flags(),
        id: map.id,
        xid: low(place.word(IDENTITY)),
        lengths: place.word(LENGTHS),
        origin: place.word(ORIGIN),
        lifetime: place.word(LIFETIME),
        keep_ban: place.word(KEEP_BAN),
        used: place.word(USE),
        key,
        rest,
        annex_bytes,
    };
    Some(Entry::Inserted(Box::new(record)).encode())
}

impl Inner {
    /// Begins a walk through the arena at its first block.
    pub(super) fn begin_walk(&self) {
        let mut heap = self.heap.lock();
        heap.walker = Some(self.geometry.first);
    }

    /// The log records of the next blocks; `None` = all blocks were visited.
    pub(super) fn next_living(self: &Arc<Inner>, blocks: usize) -> Option<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let mut heap = self.heap.lock();
        let mut at = heap.walker.filter(|at| *at < self.geometry.end)?;
        for _ in 0..blocks {
            if at >= self.geometry.end {
                break;
            }
            // Under the lock no block is given back, so committed records do not change.
            let place = Place { store: Arc::clone(self), record: at, slot: AtomicU32::new(0) };
            found.extend(entry_of(&place));
            at += place.head().units().max(1);
        }
        heap.walker = Some(at);
        Some(found)
    }
}
