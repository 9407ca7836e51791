//! Writing a body: into the record's own block first, then into extents that grow with it.
//!
//! A body of known length gets a block that fits it exactly, up to [`BLOCK_BYTES_MAX`]. All others
//! reserve the last word of each block for a link and double the size from extent to extent; the
//! last one is trimmed at the end. A block with a link is always full. The checksum is computed as
//! bytes arrive, and written before the commit bit. A body of unknown length gets no more than its
//! share of the storage (`Inner::growth_room`); then its writer has to decide: after
//! [`Object::overflow`] the rest passes through (`readership.rs`).

use crate::arena::Demand;
use crate::attributes::{AppendError, BodyState};
use crate::layout::{
    BODY_BYTES_MAX, COMPLETE, EXTENT_HEADER_BYTES, HAS_NEXT, Head, IDENTITY, KIND_EXTENT, LENGTHS, LINK_BYTES,
    OVERFLOWED, lengths, low, pair,
};
use crate::object::Object;
use crate::place::Place;
use crate::readership::Stored;
use crate::streaming::{
    BLOCK_BYTES_MAX, FAIR_BYTES_MAX, GUESS_BYTES, PIECE_BYTES_MIN, Position, Streaming, final_checksum,
};

impl Object {
    pub(crate) fn append_stored(&self, place: &Place, mut bytes: &[u8]) -> Result<(), AppendError> {
        let Some(streaming) = self.streaming.get() else { return Err(AppendError::Abandoned) };
        let memory = &place.store.memory;
        let mut position = streaming.position.lock();
        if position.ended {
            return Err(AppendError::Abandoned);
        }
        if position.body_bytes.saturating_add(bytes.len() as u64) > BODY_BYTES_MAX {
            return Err(AppendError::Full);
        }
        while !bytes.is_empty() {
            let now = put(place, &mut position, streaming.promised_bytes, bytes)?;
            position.body_bytes += now as u64;
            memory.store(place.at(LENGTHS), lengths(position.body_bytes, place.head_bytes()));
            bytes = &bytes[now..];
        }
        drop(position);
        streaming.changed.notify_waiters();
        Ok(())
    }

    /// For a body that cannot be kept: from now on it passes through. The object never comes back,
    /// as after [`Object::remove`]. The part that all its readers have passed is given back.
    /// [`Object::append`] waits while the slowest reader is more than `in_flight_bytes` behind in
    /// the bytes that were not stored. [`Object::reader`] refuses new readers. Returns the number
    /// of readers. Does nothing to a body that has already ended or overflowed.
    pub fn overflow(&self, in_flight_bytes: usize) -> usize {
        let Some((place, streaming)) = self.stored().zip(self.streaming.get()) else { return 0 };
        let mut position = streaming.position.lock();
        if std::mem::replace(&mut position.ended, true) {
            return streaming.readership.count();
        }
        let store = &place.store;
        store.trim(position.block, position.at - store.geometry.byte(position.block), place.head());
        let unsized_bytes = position.unsized_bytes.take();
        let record_end = store.geometry.byte(place.record + place.head().units()) - LINK_BYTES;
        if let Some(disk_write) = streaming.disk_write.clone() {
            // The bytes received so far are in the file, or will be, until all readers have read
            // them.
            disk_write.queue_whole();
            let (bytes, disk_write) = (position.body_bytes, Some(disk_write));
            let stored = Stored { bytes, in_record: bytes, unsized_bytes, disk_write };
            return streaming.readership.overflow(place, stored, in_flight_bytes);
        }
        let in_record = if position.block == place.record { position.body_bytes } else { record_end - place.body_at() };
        let stored = Stored { bytes: position.body_bytes, in_record, unsized_bytes, disk_write: None };
        streaming.readership.overflow(place, stored, in_flight_bytes)
    }

    /// The number of counted readers; 0 for a complete body, which needs no count.
    #[must_use]
    pub fn reader_count(&self) -> usize {
        self.streaming.get().map_or(0, |streaming| streaming.readership.count())
    }

    pub(crate) async fn append_passing_on(&self, bytes: &[u8]) -> Result<(), AppendError> {
        let Some(streaming) = self.streaming.get() else { return Err(AppendError::Abandoned) };
        if self.state() != BodyState::Writing {
            return Err(AppendError::Abandoned);
        }
        streaming.readership.append(bytes, &streaming.changed).await
    }

    /// Body bytes of an overflowed object.
    pub(crate) fn passed_on_bytes(&self) -> u64 {
        self.streaming.get().map_or(0, |streaming| streaming.readership.total_bytes())
    }

    /// Ends the body, complete or failed. The annex has been written already.
    pub(crate) fn end_stored(&self, place: &Place, how: u64, annex: &[u8]) {
        let Some(streaming) = self.streaming.get() else { return };
        let mut position = streaming.position.lock();
        let has_ended = std::mem::replace(&mut position.ended, true);
        if place.head().has(OVERFLOWED) && self.state() == BodyState::Writing {
            // Readers still need the rest, so the streaming state stays.
            place.set_bits(how);
            drop(position);
            streaming.changed.notify_waiters();
            return;
        }
        if has_ended {
            return;
        }
        let store = &place.store;
        let begin = store.geometry.byte(position.block);
        store.trim(position.block, position.at - begin, place.head());
        if let Some(bytes) = position.unsized_bytes.take() {
            store.unsized_bodies.end(bytes);
        }
        if how == COMPLETE {
            let flags = place.head().object_flags();
            let checksum = position.checksum.clone();
            let checksum = final_checksum(checksum, flags, position.body_bytes, annex.len() as u64);
            store.memory.update(place.at(IDENTITY), |word| pair(low(word), checksum));
        }
        place.set_bits(how);
        match &streaming.disk_write {
            // The rest has to be written; then `Object::settle_on_disk`.
            Some(disk_write) if how == COMPLETE => disk_write.queue_end(),
            _ => {
                drop(self.streaming.take());
                store.charge(-Streaming::PRIVATE_BYTES);
            }
        }
        drop(position);
        streaming.changed.notify_waiters();
    }
}

/// Writes as many bytes behind the last ones as fit into one block, which may have to be allocated.
/// Returns their number.
pub(crate) fn put(
    place: &Place,
    position: &mut Position,
    promised: Option<u64>,
    bytes: &[u8],
) -> Result<usize, AppendError> {
    if position.at == position.end {
        grow(place, position, promised, bytes.len() as u64)?;
    }
    let room = (position.end - position.at) as usize;
    let now = &bytes[..room.min(bytes.len())];
    // SAFETY: behind everything published (`available_bytes`) and inside the block being filled,
    // which has one writer: the holder of the position's lock.
    unsafe { place.store.memory.write(position.at, now) };
    position.checksum.update(now);
    position.at += now.len() as u64;
    Ok(now.len())
}

/// Writes all of `bytes` behind the last ones.
pub(crate) fn put_all(
    place: &Place,
    position: &mut Position,
    promised: Option<u64>,
    mut bytes: &[u8],
) -> Result<(), AppendError> {
    while !bytes.is_empty() {
        let now = put(place, position, promised, bytes)?;
        bytes = &bytes[now..];
    }
    Ok(())
}

/// Links a new extent behind the block being filled.
fn grow(place: &Place, position: &mut Position, promised: Option<u64>, now_bytes: u64) -> Result<(), AppendError> {
    if !position.growing {
        return Err(AppendError::Full);
    }
    let store = &place.store;
    let overhead = EXTENT_HEADER_BYTES + LINK_BYTES;
    let is_on_disk = place.is_on_disk();
    // For a body in a file only the map is written here, all at once.
    let to_come =
        if is_on_disk { Some(now_bytes) } else { promised.map(|bytes| bytes.saturating_sub(position.body_bytes)) };
    let to_come = to_come.filter(|bytes| *bytes > 0);
    let wanted = overhead + to_come.unwrap_or(position.body_bytes.max(now_bytes).max(GUESS_BYTES));
    let wanted = wanted.min(BLOCK_BYTES_MAX);
    let fair = if to_come.is_some() { wanted } else { wanted.min(FAIR_BYTES_MAX) };
    let least = overhead + now_bytes.min(PIECE_BYTES_MIN);
    let room = position.unsized_bytes.map_or(u64::MAX, |held| store.growth_room(held));
    if room < least {
        return Err(AppendError::TooLarge);
    }
    if !is_on_disk && position.body_bytes.saturating_add(least) > store.limit_bytes() {
        return Err(AppendError::Full);
    }
    let (wanted, fair) = (wanted.min(room), fair.min(room));
    let flags = place.head();
    let head = Head::new(0, KIND_EXTENT).with_object_flags(flags.object_flags());
    let demand = Demand { least_bytes: least, fair_bytes: fair, wanted_bytes: wanted };
    let block = store.allocate(demand, head).map_err(|_| {
        let is_large = position.unsized_bytes.is_some_and(|held| held >= store.unsized_floor_bytes());
        if is_large { AppendError::TooLarge } else { AppendError::Full }
    })?;
    if let Some(held) = &mut position.unsized_bytes {
        let bytes = store.geometry.byte(block.units);
        *held += bytes;
        store.unsized_bodies.grow(bytes);
    }
    // First the link, then the bit that announces it; both before any byte in the new block is
    // published.
    store.memory.store(position.end, u64::from(block.at));
    store.memory.update(store.geometry.byte(position.block), |head| head | HAS_NEXT);
    position.block = block.at;
    position.at = store.geometry.byte(block.at) + EXTENT_HEADER_BYTES;
    position.end = store.geometry.byte(block.at + block.units) - LINK_BYTES;
    Ok(())
}
