//! A body being written to the file: the received bytes that are not yet written.
//!
//! ```text
//! append ──▶ pieces in memory ──writer──▶ file       readers: from the pieces, then from the file
//! ```
//!
//! An append waits while too much is unwritten. *Invariant:* only for bytes that the writer has: an
//! append that has to wait has handed over everything that can be written. A piece leaves memory
//! when the 64 KiB that it belongs to are in the file, so that bytes read from there can be
//! checked. *Invariant:* as long as this exists it owns the extents, and the writer may be writing
//! to them; when everything is written they become the object's ([`DiskWrite::settle`]). Of an
//! overflowed body, the part that all readers have passed is given back. *Lock*: one mutex, held
//! for no system call.

use super::Tier;
use super::map::{CHUNK_BYTES, parts};
use super::runs::Extent;
use crc32fast::Hasher;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};

/// A body is written when this many bytes have been received, or all; a single piece, if much is
/// unwritten.
const WORTH_WRITING_BYTES: u64 = 256 << 10;
/// Unwritten bytes of one body beyond which its fetch has to wait.
const UNWRITTEN_BYTES_MAX: u64 = 1 << 20;
/// Unwritten bytes of all bodies of a storage, or this part of the file; beyond that each may have
/// one piece, and beyond twice that none while the writer has this much to do.
const UNWRITTEN_BYTES_TOTAL: u64 = 32 << 20;
const UNWRITTEN_PART: u64 = 8;
/// Small pieces are joined up to this.
const JOINED_BYTES_MAX: usize = 4 << 10;
/// Room is taken in pieces of at most this.
const ROOM_BYTES_MAX: u64 = 16 << 20;

/// The object whose body is written, as the writer sees it.
pub(crate) trait Owner: Send + Sync {
    /// All of the body is in the file, and its extents are the object's. Returns the payload of its
    /// log entry; `None` if it does not belong in the log.
    fn written(self: Arc<Self>) -> Option<Vec<u8>>;

    /// The body could not be written: the object leaves the index. Otherwise its body would stay in
    /// memory, outside every limit.
    fn unwritable(self: Arc<Self>);
}

/// A body being written; see the module header.
pub(crate) struct DiskWrite {
    pub(crate) tier: Arc<Tier>,
    pub(crate) owner: OnceLock<Weak<dyn Owner>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    extents: Vec<Extent>,
    /// Bytes of the extents together, with those that were given back.
    room_bytes: u64,
    /// Number of bytes from the beginning on that were given back.
    given_back: u64,
    /// Offset from which on readers of an overflowed body need it.
    needed_from: u64,
    /// It counts among the bodies of unknown length.
    is_unsized: bool,
    /// In order; the first one holds the first byte that is not in a whole written chunk, or later.
    pieces: VecDeque<(u64, Arc<[u8]>)>,
    total: u64,
    written: u64,
    checksums: Vec<u32>,
    hasher: Hasher,
    is_queued: bool,
    /// Bytes of it that are queued for the writer: a part of [`Tier::queued_bytes`].
    queued: u64,
    /// Nothing more will come.
    has_ended: bool,
    /// The object is complete, so the rest can be written.
    is_over: bool,
    has_failed: bool,
    is_settled: bool,
}

impl State {
    /// Bytes of room that it has in the file.
    fn held(&self) -> u64 {
        self.room_bytes - self.given_back
    }

    /// Stops counting it as a body of unknown length.
    fn uncount(&mut self, tier: &Tier) {
        if std::mem::take(&mut self.is_unsized) {
            tier.unsized_bodies.end(self.held());
        }
    }

    /// Bytes that can be written now: whole pieces, or all; none after a failure.
    fn writable(&self) -> u64 {
        if self.has_failed {
            return 0;
        }
        let upto = if self.is_over { self.total } else { self.total / CHUNK_BYTES * CHUNK_BYTES };
        upto.saturating_sub(self.written)
    }
}

/// A part of a body to be written.
pub(crate) struct Part {
    /// Offset in the file.
    pub(crate) at: u64,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) range: std::ops::Range<usize>,
    /// Zeros behind it, up to the end of its room.
    pub(crate) padding: usize,
}

impl Tier {
    /// Unwritten bytes of all bodies beyond which fetches have to wait.
    fn unwritten_bytes_most(&self) -> u64 {
        (self.capacity_bytes() / UNWRITTEN_PART).min(UNWRITTEN_BYTES_TOTAL)
    }

    /// True if so much is unwritten that only bodies being fetched should be added.
    pub(crate) fn is_busy(&self) -> bool {
        self.unwritten_bytes.load(Relaxed) > self.unwritten_bytes_most() / 2
    }
}

impl DiskWrite {
    /// The object; `None` once its last handle was dropped.
    pub(crate) fn owner(&self) -> Option<Arc<dyn Owner>> {
        self.owner.get().and_then(Weak::upgrade)
    }

    /// `is_unsized`: the length of the body is unknown.
    pub(crate) fn new(tier: &Arc<Tier>, is_unsized: bool) -> Arc<DiskWrite> {
        if is_unsized {
            tier.unsized_bodies.begin(0);
        }
        let state = State { is_unsized, ..State::default() };
        Arc::new(DiskWrite { tier: Arc::clone(tier), owner: OnceLock::new(), state: Mutex::new(state) })
    }

    /// Returns when the next bytes may be added. Cancel-safe.
    pub(crate) async fn writable(self: &Arc<DiskWrite>) {
        loop {
            let mut notified = std::pin::pin!(self.tier.written.notified());
            notified.as_mut().enable();
            if !self.is_crowded() {
                return;
            }
            self.queue_whole();
            notified.await;
        }
    }

    fn is_crowded(&self) -> bool {
        let state = self.state.lock();
        let own = state.total - state.written;
        let (all, most) = (self.tier.unwritten_bytes.load(Relaxed), self.tier.unwritten_bytes_most());
        let is_behind = || all > 2 * most && self.tier.queued_bytes.load(Relaxed) > most;
        !state.has_failed && (own > UNWRITTEN_BYTES_MAX || all > most && own > CHUNK_BYTES || is_behind())
    }

    /// Queues the complete pieces for the writer.
    pub(crate) fn queue_whole(self: &Arc<DiskWrite>) {
        let mut state = self.state.lock();
        if self.is_worth_queueing(&mut state, CHUNK_BYTES) {
            drop(state);
            self.tier.queue().write(Arc::clone(self));
        }
    }

    /// True if the caller has to queue it: enough of it can be written, and it is not queued.
    fn is_worth_queueing(&self, state: &mut State, bytes: u64) -> bool {
        let is_worth = state.writable() >= bytes && !state.is_queued;
        if is_worth {
            state.is_queued = true;
            let bytes = state.writable();
            self.count_queued(state, bytes);
        }
        is_worth
    }

    fn count_queued(&self, state: &mut State, bytes: u64) {
        self.tier.queued_bytes.fetch_add(bytes, Relaxed);
        self.tier.queued_bytes.fetch_sub(std::mem::replace(&mut state.queued, bytes), Relaxed);
    }

    /// True if a write has failed: nothing more can be added.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.lock().has_failed
    }

    /// Bytes of room that are missing for `bytes` more.
    pub(crate) fn missing(&self, bytes: u64) -> u64 {
        let state = self.state.lock();
        (state.total + bytes).saturating_sub(state.room_bytes)
    }

    /// Amount of room to ask for, if `missing` bytes are missing; `left` = the number of bytes
    /// still to come, if that is known. At most `most`.
    pub(crate) fn worth_asking(&self, missing: u64, left: Option<u64>, most: u64) -> u64 {
        let total = self.state.lock().total;
        let asked = left.unwrap_or_else(|| self.tier.room_of(total.max(CHUNK_BYTES).max(missing)));
        // Only whole rooms can be joined.
        let whole = most / self.tier.granularity * self.tier.granularity;
        asked.max(missing).min(ROOM_BYTES_MAX.max(missing)).min(if whole < missing { most } else { whole })
    }

    /// Number of further bytes that a body of unknown length may have; no limit for others.
    pub(crate) fn unsized_room(&self, share: u64) -> u64 {
        let state = self.state.lock();
        if state.is_unsized { self.tier.unsized_bodies.room(share, state.held()) } else { u64::MAX }
    }

    /// Gives back the part of an overflowed body before this offset; no reader needs it any more.
    pub(crate) fn give_back_below(&self, needed_from: u64) {
        let mut state = self.state.lock();
        state.needed_from = needed_from;
        self.give_back_passed(&mut state);
    }

    /// Only complete pieces, which are read at once, and only written ones, which the writer no
    /// longer touches.
    fn give_back_passed(&self, state: &mut State) {
        let upto = state.needed_from.min(state.written) / CHUNK_BYTES * CHUNK_BYTES;
        let before = state.given_back;
        while let Some(first) = state.extents.first().copied() {
            let passed = upto.saturating_sub(state.given_back);
            if passed >= first.bytes {
                state.extents.remove(0);
                state.given_back += first.bytes;
                self.tier.give_back(first);
                continue;
            }
            let cut = passed / self.tier.granularity * self.tier.granularity;
            if cut > 0 {
                state.extents[0] = Extent { at: first.at + cut, bytes: first.bytes - cut };
                state.given_back += cut;
                self.tier.shorten(Extent { at: first.at, bytes: cut });
            }
            break;
        }
        if state.is_unsized {
            self.tier.unsized_bodies.shrink(state.given_back - before);
        }
    }

    pub(crate) fn add_room(&self, extent: Extent) {
        let mut state = self.state.lock();
        state.room_bytes += extent.bytes;
        if state.is_unsized {
            self.tier.unsized_bodies.grow(extent.bytes);
        }
        match state.extents.last_mut() {
            // Only whole rooms can be joined.
            Some(last)
                if last.at + self.tier.room_of(last.bytes) == extent.at
                    && last.bytes == self.tier.room_of(last.bytes) =>
            {
                last.bytes += extent.bytes;
                self.tier.joined();
            }
            _ => state.extents.push(extent),
        }
    }

    /// Adds bytes, for which there is room; returns true if the caller has to queue it.
    pub(crate) fn push(&self, bytes: &[u8]) -> bool {
        let mut state = self.state.lock();
        // Small pieces are joined, so that many of them take no more memory than their bytes.
        match state.pieces.back_mut() {
            Some((_, last)) if last.len() + bytes.len() <= JOINED_BYTES_MAX => *last = [&**last, bytes].concat().into(),
            _ => {
                let offset = state.total;
                state.pieces.push_back((offset, Arc::from(bytes)));
            }
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = (CHUNK_BYTES - state.total % CHUNK_BYTES) as usize;
            let (now, later) = rest.split_at(room.min(rest.len()));
            state.hasher.update(now);
            state.total += now.len() as u64;
            if state.total.is_multiple_of(CHUNK_BYTES) {
                let sum = std::mem::take(&mut state.hasher).finalize();
                state.checksums.push(sum);
            }
            rest = later;
        }
        if !state.has_failed {
            self.tier.unwritten_bytes.fetch_add(bytes.len() as u64, Relaxed);
        }
        self.is_worth_queueing(&mut state, if self.tier.is_busy() { CHUNK_BYTES } else { WORTH_WRITING_BYTES })
    }

    /// Ends the body: gives back the room that is not needed, and returns extents and checksums.
    pub(crate) fn end(&self) -> (Vec<Extent>, Vec<u32>) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.has_ended, true) {
            state.uncount(&self.tier);
            if !state.total.is_multiple_of(CHUNK_BYTES) {
                let sum = std::mem::take(&mut state.hasher).finalize();
                state.checksums.push(sum);
            }
            let mut spare = state.room_bytes - state.total;
            while let Some(last) = state.extents.last_mut().filter(|_| spare > 0) {
                let cut = spare.min(last.bytes);
                let (old, kept) = (*last, last.bytes - cut);
                last.bytes = kept;
                let from = old.at + self.tier.room_of(kept);
                let end = Extent { at: from, bytes: (old.at + self.tier.room_of(old.bytes)) - from };
                if kept == 0 {
                    state.extents.pop();
                    self.tier.give_back(end);
                } else if end.bytes > 0 {
                    self.tier.shorten(end);
                }
                spare -= cut;
            }
            state.room_bytes = state.total;
        }
        (state.extents.clone(), state.checksums.clone())
    }

    /// The body is complete: the writer writes the rest.
    pub(crate) fn queue_end(self: &Arc<DiskWrite>) {
        let mut state = self.state.lock();
        state.is_over = true;
        let writable = state.writable();
        self.count_queued(&mut state, writable);
        if !std::mem::replace(&mut state.is_queued, true) {
            drop(state);
            self.tier.queue().write(Arc::clone(self));
        }
    }

    /// The parts that can be written now, in order. The writer calls this, and then
    /// [`DiskWrite::wrote`].
    pub(crate) fn parts(&self) -> (Vec<Part>, u64) {
        let mut state = self.state.lock();
        state.is_queued = false;
        if state.has_failed {
            return (Vec::new(), state.written);
        }
        let writable = state.writable();
        let upto = state.written + writable;
        self.count_queued(&mut state, writable);
        let mut found = Vec::new();
        for (offset, bytes) in &state.pieces {
            let end = offset + bytes.len() as u64;
            let (from, to) = ((*offset).max(state.written), end.min(upto));
            let mut at = from;
            while at < to {
                let at_in_room = at - state.given_back;
                let part = parts(state.extents.iter().copied(), at_in_room, to - at).first().copied();
                let Some(part) = part else { break };
                let range = (at - offset) as usize..(at - offset + part.bytes) as usize;
                at += part.bytes;
                let is_end = state.is_over && at == state.total;
                let padding =
                    if is_end { (self.tier.room_of(part.at + part.bytes) - part.at - part.bytes) as usize } else { 0 };
                found.push(Part { at: part.at, bytes: Arc::clone(bytes), range, padding });
            }
        }
        (found, upto)
    }

    /// Notes that the parts returned by [`DiskWrite::parts`] were written, or could not be. Returns
    /// true if everything is in the file.
    pub(crate) fn wrote(&self, upto: u64, succeeded: bool) -> bool {
        let mut state = self.state.lock();
        if succeeded {
            self.tier.unwritten_bytes.fetch_sub(upto - state.written, Relaxed);
            let still_queued = state.queued.saturating_sub(upto - state.written);
            self.count_queued(&mut state, still_queued);
            state.written = upto;
            let kept_from = upto / CHUNK_BYTES * CHUNK_BYTES;
            while state.pieces.front().is_some_and(|(offset, bytes)| offset + bytes.len() as u64 <= kept_from) {
                state.pieces.pop_front();
            }
            self.give_back_passed(&mut state);
        } else if !std::mem::replace(&mut state.has_failed, true) {
            // No append waits for these.
            self.tier.unwritten_bytes.fetch_sub(state.total - state.written, Relaxed);
            self.count_queued(&mut state, 0);
        }
        let is_done = succeeded && state.is_over && state.written == state.total;
        drop(state);
        self.tier.written.notify_waiters();
        is_done
    }

    /// From now on the extents are the object's.
    pub(crate) fn settle(&self) {
        self.state.lock().is_settled = true;
    }

    /// The piece that holds a byte of the body, and its offset, if it is in memory.
    pub(crate) fn piece(&self, offset: u64) -> Option<(u64, Arc<[u8]>)> {
        let state = self.state.lock();
        let index = state.pieces.partition_point(|(begin, _)| *begin <= offset).checked_sub(1)?;
        let (begin, bytes) = state.pieces.get(index)?;
        (offset - begin < bytes.len() as u64).then(|| (*begin, Arc::clone(bytes)))
    }

    /// Location of a chunk that is in the file, and its checksum.
    pub(crate) fn chunk(&self, chunk: u64) -> Option<(Vec<Extent>, u32)> {
        let state = self.state.lock();
        let sum = *state.checksums.get(usize::try_from(chunk).ok()?)?;
        let offset = chunk * CHUNK_BYTES;
        let bytes = CHUNK_BYTES.min(state.total.checked_sub(offset)?);
        let in_room = offset.checked_sub(state.given_back).filter(|_| offset + bytes <= state.written)?;
        Some((parts(state.extents.iter().copied(), in_room, bytes), sum))
    }
}

impl Drop for DiskWrite {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.uncount(&self.tier);
        if !state.has_failed {
            self.tier.unwritten_bytes.fetch_sub(state.total - state.written, Relaxed);
        }
        self.tier.queued_bytes.fetch_sub(state.queued, Relaxed);
        self.tier.written.notify_waiters();
        if !state.is_settled {
            for extent in &state.extents {
                self.tier.give_back(*extent);
            }
        }
    }
}
