//! The readers of a body that is still being written, and the handling of a body that cannot be
//! kept.
//!
//! ```text
//! in the arena ──overflow──▶ stored extents are freed one by one, new bytes pass through a queue
//! ```
//!
//! While a body is written each of its readers reports the first byte that it still needs. Once the
//! body has overflowed, the part that all readers have passed is given back, and the writer waits
//! while the slowest reader is further behind than the length of the queue. A reader that came
//! after that would miss the beginning, and is refused. The record's own block, which holds the
//! head, stays as long as the handle. *Lock*: one mutex, taken when a reader starts, ends, or
//! reaches the end of a block; the heap's, or that of a body being written to the file, is taken
//! inside it. *Invariants*: a block is given back only when no reader is in it or before it; an
//! overflowed object is first marked as removed, so a kill at any instant leaves nothing of it.

use crate::attributes::AppendError;
use crate::disk_tier::DiskWrite;
use crate::layout::{EXTENT_HEADER_BYTES, HAS_NEXT, Head, LINK_BYTES, OVERFLOWED, REMOVED};
use crate::place::Place;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::Notify;

/// Counted for each piece in the queue in addition to its bytes, so that many small pieces are
/// bounded too.
const PIECE_OVERHEAD_BYTES: usize = 64;

/// The readers; see the module header.
#[derive(Default)]
pub(crate) struct Readership {
    inner: Mutex<Readers>,
    /// Notified when the queue has room, or the last reader ends.
    writable: Notify,
}

#[derive(Default)]
struct Readers {
    /// The first byte that each reader needs, with the number of readers at each.
    positions: BTreeMap<u64, u32>,
    overflow: Option<Overflow>,
}

/// The part of a body that is in the arena when it overflows.
pub(crate) struct Stored {
    /// Bytes of the body.
    pub(crate) bytes: u64,
    /// Number of them in the record's own block.
    pub(crate) in_record: u64,
    /// Bytes with which a body of unknown length has been counted, blocks included.
    pub(crate) unsized_bytes: Option<u64>,
    /// The bytes are in a file, or being written to one.
    pub(crate) disk_write: Option<Arc<DiskWrite>>,
}

/// A body that has overflowed and passes through.
struct Overflow {
    /// Bytes of the body that were stored before it overflowed.
    stored_bytes: u64,
    /// Bytes with which a body of unknown length is still counted.
    unsized_bytes: Option<u64>,
    /// Location of the stored bytes, if not in the arena.
    disk_write: Option<Arc<DiskWrite>>,
    /// Body offset at which the first extent begins that has not been given back.
    extent_from: u64,
    /// Later bytes that some reader still needs: the offset of each piece, and the piece.
    pieces: VecDeque<(u64, Arc<[u8]>)>,
    queued_bytes: usize,
    in_flight_bytes: usize,
    total_bytes: u64,
}

impl Readers {
    fn enter(&mut self, from: u64) {
        *self.positions.entry(from).or_default() += 1;
    }

    fn leave(&mut self, from: u64) {
        if let Some(count) = self.positions.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.positions.remove(&from);
            }
        }
    }

    /// Gives back the part that all readers have passed.
    fn give_back(&mut self, place: &Place) {
        let Some(overflow) = &mut self.overflow else { return };
        let needed_from = self.positions.keys().next().copied().unwrap_or(u64::MAX);
        if let Some(disk_write) = &overflow.disk_write {
            disk_write.give_back_below(needed_from);
        }
        let (memory, geometry) = (&place.store.memory, place.store.geometry);
        loop {
            let record = place.head();
            if !record.has(HAS_NEXT) {
                break;
            }
            let link = geometry.byte(place.record + record.units()) - LINK_BYTES;
            let extent = memory.load(link) as u32;
            let head = Head(memory.load(geometry.byte(extent)));
            let extent_end = geometry.byte(extent + head.units());
            let end = if head.has(HAS_NEXT) {
                overflow.extent_from + (extent_end - geometry.byte(extent) - EXTENT_HEADER_BYTES - LINK_BYTES)
            } else {
                overflow.stored_bytes
            };
            if end > needed_from {
                break;
            }
            // Unlinked before it is freed: the code that frees the rest follows the links.
            if head.has(HAS_NEXT) {
                memory.store(link, memory.load(extent_end - LINK_BYTES));
            } else {
                memory.update(place.at(0), |head| head & !HAS_NEXT);
            }
            place.store.free(extent, record);
            if let Some(counted) = &mut overflow.unsized_bytes {
                let freed = geometry.byte(head.units()).min(*counted);
                *counted -= freed;
                place.store.unsized_bodies.shrink(freed);
            }
            overflow.extent_from = end;
        }
        while let Some((from, piece)) = overflow.pieces.front() {
            if from + piece.len() as u64 > needed_from {
                break;
            }
            overflow.queued_bytes -= piece.len() + PIECE_OVERHEAD_BYTES;
            overflow.pieces.pop_front();
        }
    }
}

impl Readership {
    /// Adds a reader that needs the body from its beginning; returns `false` if the beginning may
    /// be gone already.
    pub(crate) fn join(&self) -> bool {
        let mut readers = self.inner.lock();
        let may_join = readers.overflow.is_none();
        if may_join {
            readers.enter(0);
        }
        may_join
    }

    /// The number of readers.
    pub(crate) fn count(&self) -> usize {
        self.inner.lock().positions.values().map(|count| *count as usize).sum()
    }

    /// Notes that a reader that needed the body from `from` on now needs it from `to` on; `None` =
    /// no longer at all.
    pub(crate) fn advance(&self, place: &Place, from: u64, to: Option<u64>) {
        let mut readers = self.inner.lock();
        if let Some(to) = to {
            readers.enter(to);
        }
        readers.leave(from);
        readers.give_back(place);
        drop(readers);
        self.writable.notify_one();
    }

    /// Marks the body as overflowed: from now on it passes through. Returns the number of readers.
    pub(crate) fn overflow(&self, place: &Place, stored: Stored, in_flight_bytes: usize) -> usize {
        let mut readers = self.inner.lock();
        // Before anything is given back, so that a kill leaves nothing of the object.
        place.set_bits(REMOVED | OVERFLOWED);
        readers.overflow = Some(Overflow {
            stored_bytes: stored.bytes,
            unsized_bytes: stored.unsized_bytes,
            disk_write: stored.disk_write,
            extent_from: stored.in_record,
            pieces: VecDeque::new(),
            queued_bytes: 0,
            in_flight_bytes: in_flight_bytes.max(1),
            total_bytes: stored.bytes,
        });
        readers.give_back(place);
        readers.positions.values().map(|count| *count as usize).sum()
    }

    /// Takes the bytes with which an overflowed body of unknown length is still counted; `None` the
    /// second time.
    pub(crate) fn take_unsized(&self) -> Option<u64> {
        self.inner.lock().overflow.as_mut()?.unsized_bytes.take()
    }

    /// Bytes of the body so far.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.inner.lock().overflow.as_ref().map_or(0, |overflow| overflow.total_bytes)
    }

    /// Adds as many bytes as there is room for; returns their number.
    ///
    /// # Errors
    /// `Abandoned` if no reader is left.
    fn push(&self, bytes: &[u8]) -> Result<usize, AppendError> {
        let mut readers = self.inner.lock();
        if readers.positions.is_empty() {
            return Err(AppendError::Abandoned);
        }
        let Some(overflow) = &mut readers.overflow else { return Err(AppendError::Abandoned) };
        // An empty queue always has room for something, however small its limit.
        let taken = if overflow.pieces.is_empty() { 0 } else { overflow.queued_bytes + PIECE_OVERHEAD_BYTES };
        let len = bytes.len().min(overflow.in_flight_bytes.saturating_sub(taken));
        if len > 0 {
            overflow.pieces.push_back((overflow.total_bytes, Arc::from(&bytes[..len])));
            overflow.queued_bytes += len + PIECE_OVERHEAD_BYTES;
            overflow.total_bytes += len as u64;
        }
        Ok(len)
    }

    /// Adds bytes, waiting while the slowest reader is too far behind. One writer at a time. Every
    /// piece notifies `changed`.
    ///
    /// # Errors
    /// `Abandoned` if no reader is left.
    pub(crate) async fn append(&self, mut bytes: &[u8], changed: &Notify) -> Result<(), AppendError> {
        loop {
            let len = self.push(bytes)?;
            if len > 0 {
                changed.notify_waiters();
            }
            bytes = &bytes[len..];
            if bytes.is_empty() {
                return Ok(());
            }
            // There is only one writer, so a permit left by a reader before this await is not lost.
            self.writable.notified().await;
        }
    }

    /// The piece that holds the byte `offset`, and the offset of its beginning. The reader needed
    /// the body from `from` on; from now on it needs it from the end of this piece on. `None` if
    /// the byte has not arrived yet.
    pub(crate) fn take(&self, place: &Place, from: u64, offset: u64) -> Option<(u64, Arc<[u8]>)> {
        let mut readers = self.inner.lock();
        let pieces = &readers.overflow.as_ref()?.pieces;
        let at = pieces.partition_point(|(begin, _)| *begin <= offset).checked_sub(1)?;
        let (begin, piece) = pieces.get(at)?;
        let end = begin + piece.len() as u64;
        if offset >= end {
            return None;
        }
        let found = (*begin, Arc::clone(piece));
        readers.enter(end);
        readers.leave(from);
        readers.give_back(place);
        drop(readers);
        self.writable.notify_one();
        Some(found)
    }
}
