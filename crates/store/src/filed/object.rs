//! What of an object concerns the file: its body goes there, its map says where, the log knows of it.

use super::log::{Entry, Record};
use super::map::{CHUNK_BYTES, Map, encode};
use super::{Extent, Filing};
use crate::annex::annex_of;
use crate::arena::{Inner, StoreFull};
use crate::attributes::{AppendError, ObjectFlags};
use crate::layout::{
    BODY_BYTES_MAX, COMPLETE, FAILED, IDENTITY, INDEXED, KEEP_BAN, KEY, KEY_BYTES, KIND_FILED, LENGTHS, LIFETIME,
    ORIGIN, REMOVED, USE, body_length, lengths, low, pair,
};
use crate::object::{Body, Object, Words};
use crate::place::Place;
use crate::streaming::Streaming;
use crate::writer::put_all;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

impl Object {
    /// Adds bytes to a body on its way into the file; waits while too much is unwritten.
    pub(crate) async fn append_filed(&self, place: &Place, bytes: &[u8]) -> Result<(), AppendError> {
        let Some(streaming) = self.streaming.load_full() else { return Err(AppendError::Abandoned) };
        let Some(filing) = streaming.filing.clone() else { return Err(AppendError::Abandoned) };
        for piece in bytes.chunks(CHUNK_BYTES as usize) {
            filing.writable().await;
            append_piece(place, &streaming, &filing, piece)?;
            streaming.changed.notify_waiters();
        }
        Ok(())
    }

    /// For a body that goes into a file: it is complete, and the map says where. Nothing for others.
    pub(crate) fn write_map(&self, place: &Place) -> Result<(), AppendError> {
        let streaming = self.streaming.load();
        let Some((streaming, filing)) = streaming.as_ref().and_then(|now| Some((now, now.filing.as_ref()?))) else {
            return Ok(());
        };
        let mut position = streaming.position.lock();
        if position.ended {
            return Ok(());
        }
        let (extents, checksums) = filing.end();
        put_all(place, &mut position, None, &encode(filing.tier.new_id(), &extents, &checksums))
    }

    /// Everything is in the file: the extents are the object's now. Returns where the body begins.
    pub(crate) fn settle_filed(&self) -> Option<u64> {
        let place = self.stored()?;
        if self.streaming.swap(None).is_some() {
            place.store.charge(-Streaming::PRIVATE_BYTES);
        }
        Map::of(place)?.extents().next().map(|extent| extent.at)
    }

    /// The payload that tells the log of it; `None` if the log is not to know of it.
    pub(crate) fn log_entry(&self) -> Option<Vec<u8>> {
        entry_of(self.stored()?)
    }

    /// It has entered the index; if it was in the file before that, the log does not know yet.
    pub(crate) fn log_late(&self, place: &Place) {
        if place.is_filed()
            && self.streaming.load().is_none()
            && let Some((tier, entry)) = place.store.tier.as_ref().zip(entry_of(place))
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

    /// Makes an object of what the log says; `None` if that is impossible.
    pub(crate) fn restored(store: &Arc<Inner>, record: &Record) -> Result<Option<Arc<Object>>, StoreFull> {
        let Some((fixed, map, annex)) = record.parts() else { return Ok(None) };
        let Some((vary, head)) = fixed.split_at_checked(crate::layout::vary_length(record.origin)) else {
            return Ok(None);
        };
        let flags = ObjectFlags(record.flags);
        if store.tier.is_none() || !annex.is_empty() && !flags.has(ObjectFlags::ESI) {
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
        let Some((place, streaming)) = object.stored().zip(object.streaming.load_full()) else { return Ok(None) };
        let mut position = streaming.position.lock();
        position.body_bytes = body_length(record.lengths);
        let mapped = put_all(place, &mut position, None, map);
        drop(position);
        mapped.and_then(|()| object.write_annex(place, annex)).map_err(|_| StoreFull)?;
        object.end_stored(place, COMPLETE, annex);
        // The log knows of it.
        place.set_bits(INDEXED);
        Ok(Some(object))
    }

    /// Sets the words of the lifetime as they were.
    pub(crate) fn restore_lifetime(&self, lifetime: u64, keep_ban: u64) {
        if let Some(place) = self.stored() {
            place.store.memory.store(place.at(LIFETIME), lifetime);
            place.store.memory.store(place.at(KEEP_BAN), keep_ban);
        }
    }

    /// Removes an object whose place in the file is not its own.
    pub(crate) fn disown(&self) {
        if let Some(place) = self.stored() {
            place.set_bits(FAILED | REMOVED);
        }
    }
}

pub(super) fn append_piece(
    place: &Place,
    streaming: &Streaming,
    filing: &Filing,
    bytes: &[u8],
) -> Result<(), AppendError> {
    let mut position = streaming.position.lock();
    if position.ended {
        return Err(AppendError::Abandoned);
    }
    let after = position.body_bytes.saturating_add(bytes.len() as u64);
    let share = place.store.unsized_share_in(filing.tier.capacity_bytes());
    match streaming.promised_bytes {
        Some(promised) if after > promised => return Err(AppendError::Full),
        None if after > share => return Err(AppendError::TooLarge),
        _ if after > BODY_BYTES_MAX || filing.has_failed() => return Err(AppendError::Full),
        _ => {}
    }
    loop {
        let missing = filing.missing(bytes.len() as u64);
        if missing == 0 {
            break;
        }
        let most = filing.unsized_room(share);
        if missing > most {
            return Err(AppendError::TooLarge);
        }
        let left = streaming.promised_bytes.map(|promised| filing.missing(promised - position.body_bytes));
        let asked = filing.worth_asking(missing, left, most);
        filing.add_room(place.store.take_in_file(asked).ok_or(AppendError::Full)?);
    }
    let is_worth_writing = filing.push(bytes);
    position.body_bytes = after;
    place.store.memory.store(place.at(LENGTHS), lengths(after, place.head_bytes()));
    drop(position);
    if is_worth_writing && let Some(filing) = &streaming.filing {
        filing.tier.queue().write(Arc::clone(filing));
    }
    Ok(())
}

/// File and id of a complete object that may be in the log.
fn logged(place: &Place) -> Option<(&super::Tier, u64)> {
    let (head, tier) = (place.head(), place.store.tier.as_deref()?);
    if head.kind() != KIND_FILED || !head.has(COMPLETE) || head.has(FAILED) {
        return None;
    }
    Map::of(place).map(|map| (tier, map.id))
}

fn entry_of(place: &Place) -> Option<Vec<u8>> {
    let head = place.head();
    let map = Some(place).filter(|_| head.is_committed() && head.kind() == KIND_FILED).and_then(Map::of)?;
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

/// The handle goes, and with it the room in the file.
pub(crate) fn give_back_in_file(place: &Place) {
    let head = place.head();
    if head.kind() != KIND_FILED || !head.has(COMPLETE) || head.has(FAILED) {
        return;
    }
    if let Some((tier, map)) = place.store.tier.as_ref().zip(Map::of(place)) {
        let extents: Vec<Extent> = map.extents().collect();
        extents.into_iter().for_each(|extent| tier.give_back(extent));
    }
}

impl Inner {
    /// Begins to go through the arena from its first block on.
    pub(super) fn begin_walk(&self) {
        let mut heap = self.heap.lock();
        heap.walker = Some(self.geometry.first);
    }

    /// What the log has to know of the next blocks; `None` = all were seen.
    pub(super) fn next_living(self: &Arc<Inner>, blocks: usize) -> Option<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let mut heap = self.heap.lock();
        let mut at = heap.walker.filter(|at| *at < self.geometry.end)?;
        for _ in 0..blocks {
            if at >= self.geometry.end {
                break;
            }
            // Under the lock no block is given back, so what is committed stays as it is.
            let place = Place { store: Arc::clone(self), record: at, slot: AtomicU32::new(0) };
            found.extend(entry_of(&place));
            at += place.head().units().max(1);
        }
        heap.walker = Some(at);
        Some(found)
    }
}
