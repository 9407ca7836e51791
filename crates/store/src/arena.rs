//! What all handles of one storage point to: one arena, one limit, and who makes room.
//!
//! These count against the limit: all blocks of the arena (including Transient objects), the private memory of every
//! object's handle, what the index charges, and what is held elsewhere in the storage's name. The arena's file is a
//! quarter longer than the limit, so that room can be found without moving anything; the pages that the kernel holds are
//! bounded too ([`RESIDENT_SLACK`]), by giving free ones back. *Locks*: the heap's mutex is never held while the evictor
//! runs, since that takes index locks and comes back to free blocks. Next files: `place.rs`, `object.rs`.

use crate::attributes::ObjectFlags;
use crate::filed::{Sweeper, Tier};
use crate::heap::{Block, Geometry, Heap};
use crate::layout::Head;
use crate::memory::Memory;
use crate::unsized_bodies::{UnsizedBodies, floor_bytes};
use crate::usage::UsageCells;
use parking_lot::{Mutex, RwLock};
use shm::locks::CountedMutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use surface::counter::LockClass;

/// Nothing could be evicted to make room, or the object is larger than the storage or the format allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFull;

impl std::fmt::Display for StoreFull {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no room in the storage")
    }
}

impl std::error::Error for StoreFull {}

/// What may be evicted to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evictable {
    /// Any object: the storage's limit is reached.
    Any,
    /// Transient objects only: their own limit is reached.
    Transient,
}

/// Called to make room for a number of bytes; returns `false` if nothing is evictable.
pub(crate) type Evictor = dyn Fn(u64, Evictable) -> bool + Send + Sync;

/// Objects are evicted for what is held elsewhere until that has one part in this many of the limit.
const RESERVED_SHARE: u64 = 4;

/// The part of a store that handles point to.
pub(crate) struct Inner {
    pub(crate) memory: Memory,
    pub(crate) geometry: Geometry,
    pub(crate) name: String,
    /// The number that the index gave it.
    pub(crate) number: AtomicU8,
    /// It can change while the store is in use: [`Inner::set_limit`].
    limit_bytes: AtomicU64,
    pub(crate) heap: CountedMutex<Heap>,
    private_bytes: AtomicI64,
    /// Of these, what [`Inner::reserve`] has given.
    reserved_bytes: AtomicU64,
    pub(crate) usage: UsageCells,
    pub(crate) transient: UsageCells,
    /// How much of the limit Transient objects may take, in bytes.
    pub(crate) transient_limit_bytes: AtomicU64,
    /// The operator has set no limit.
    pub(crate) shows_unlimited: AtomicBool,
    /// The percentage of the limit, or of the file, that each body of unknown length may have, and more or less all together.
    pub(crate) unsized_share_percent: AtomicU64,
    pub(crate) unsized_bodies: UnsizedBodies,
    pub(crate) evictor: RwLock<Option<Arc<Evictor>>>,
    /// The file in which bodies lie, if they do.
    pub(crate) tier: Option<Arc<Tier>>,
    pub(crate) sweeper: RwLock<Option<Arc<Sweeper>>>,
    /// The thread that writes to the file.
    pub(crate) writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// How much an allocation must, should and may get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Anything less is useless.
    pub(crate) least_bytes: u64,
    /// Room is made for this much, as long as anything can be evicted.
    pub(crate) fair_bytes: u64,
    /// Taken only if it is free anyway.
    pub(crate) wanted_bytes: u64,
}

impl Inner {
    pub(crate) fn new(memory: Memory, name: &str, limit_bytes: u64, heap: Heap, tier: Option<Arc<Tier>>) -> Inner {
        let private = i64::try_from(heap.private_bytes()).unwrap_or(i64::MAX);
        Inner {
            memory,
            geometry: heap.geometry,
            name: name.to_owned(),
            number: AtomicU8::new(0),
            limit_bytes: AtomicU64::new(limit_bytes),
            heap: CountedMutex::new(LockClass::Sma, heap),
            private_bytes: AtomicI64::new(private),
            reserved_bytes: AtomicU64::new(0),
            usage: UsageCells::default(),
            transient: UsageCells::default(),
            transient_limit_bytes: AtomicU64::new(u64::MAX),
            shows_unlimited: AtomicBool::new(false),
            unsized_share_percent: AtomicU64::new(100),
            unsized_bodies: UnsizedBodies::default(),
            evictor: RwLock::new(None),
            tier,
            sweeper: RwLock::new(None),
            writer: Mutex::new(None),
        }
    }

    fn cells(&self, head: Head) -> &UsageCells {
        if ObjectFlags(head.object_flags()).has(ObjectFlags::TRANSIENT) { &self.transient } else { &self.usage }
    }

    /// Private memory that counts against the limit.
    pub(crate) fn private_bytes(&self, heap: &Heap) -> u64 {
        let charged = self.private_bytes.load(Relaxed).max(0) as u64;
        (charged + heap.warm_bytes()).saturating_sub(PRIVATE_FREE_BYTES)
    }

    /// Everything that counts against the limit.
    pub(crate) fn held_bytes(&self, heap: &Heap) -> u64 {
        heap.used_bytes() + self.private_bytes(heap)
    }

    pub(crate) fn number(&self) -> u8 {
        self.number.load(Relaxed)
    }

    pub(crate) fn charge(&self, bytes: i64) {
        self.private_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Relaxed)
    }

    /// Changes the limit, evicts what is beyond it, and gives free pages back. What is in use stays as long as it is.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Relaxed);
        loop {
            let held = self.held_bytes(&self.heap.lock());
            if held <= bytes || !self.evict(held - bytes, Fault::Limit(held - bytes)) {
                break;
            }
        }
        let mut heap = self.heap.lock();
        let resident = (bytes + bytes / RESIDENT_SLACK).saturating_sub(self.private_bytes(&heap));
        heap.give_back(&self.memory, resident);
    }

    /// Counts a block that recovery kept.
    pub(crate) fn count_recovered(&self, head: Head) {
        self.cells(head).allocated(self.geometry.byte(head.units()));
    }

    /// Finds room, evicting as needed. `head` supplies kind and object flags.
    pub(crate) fn allocate(&self, demand: Demand, head: Head) -> Result<Block, StoreFull> {
        let cells = self.cells(head);
        cells.requested();
        let fair = demand.fair_bytes.max(demand.least_bytes);
        // In one piece if possible; each failure halves the size that is accepted.
        let mut piece = fair;
        let (mut room_needed, mut resident_bound) = (fair, true);
        loop {
            let fault = match self.try_allocate(piece, room_needed, demand.wanted_bytes, resident_bound, head) {
                Ok(block) => {
                    cells.allocated(self.geometry.byte(block.units));
                    return Ok(block);
                }
                Err(fault) => fault,
            };
            if fault == Fault::Fragmented && piece > demand.least_bytes {
                piece = (piece / 2).max(demand.least_bytes);
            } else if !self.evict(room_needed, fault) {
                // Last resorts: first only what is indispensable, then regardless of what the kernel holds.
                if room_needed > demand.least_bytes {
                    (piece, room_needed) = (demand.least_bytes, demand.least_bytes);
                } else if resident_bound {
                    resident_bound = false;
                } else {
                    cells.refused();
                    return Err(StoreFull);
                }
            }
        }
    }

    fn try_allocate(
        &self,
        piece_bytes: u64,
        room_needed: u64,
        wanted_bytes: u64,
        resident_bound: bool,
        head: Head,
    ) -> Result<Block, Fault> {
        let mut heap = self.heap.lock();
        let is_transient = ObjectFlags(head.object_flags()).has(ObjectFlags::TRANSIENT);
        let transient_short = room_needed.max(piece_bytes).saturating_sub(self.transient_space());
        if is_transient && transient_short > 0 {
            return Err(Fault::TransientLimit(transient_short));
        }
        let private = self.private_bytes(&heap);
        let room = self.limit_bytes().saturating_sub(private).saturating_sub(heap.used_bytes());
        let piece = self.geometry.units(piece_bytes);
        let short = room_needed.max(self.geometry.byte(piece)).saturating_sub(room);
        if short > 0 {
            return Err(Fault::Limit(short));
        }
        let most = if is_transient { room.min(self.transient_space()) } else { room };
        let wanted = self.geometry.units(wanted_bytes.min(most));
        let (block, untouched) = heap.offer(&self.memory, piece, wanted).ok_or(Fault::Fragmented)?;
        if untouched > 0 {
            let bound = self.limit_bytes() + self.limit_bytes() / RESIDENT_SLACK;
            let over = (heap.resident_bytes() + private + untouched).saturating_sub(bound);
            if over > 0 && heap.reclaim(&self.memory, over, block) < over && resident_bound {
                return Err(Fault::Fragmented);
            }
        }
        Ok(heap.take(&self.memory, block, head))
    }

    /// Makes room for memory outside the arena, and counts it. Objects are evicted for a share of the limit only: what clients send
    /// must not empty the cache. An operator who gives Transient a limit of its own has said how much that may be.
    pub(crate) fn reserve(&self, bytes: u64, is_transient: bool) -> Result<(), StoreFull> {
        let cells = if is_transient { &self.transient } else { &self.usage };
        cells.requested();
        loop {
            let fault = {
                // Under the lock, so that nothing else takes the room between check and count.
                let heap = self.heap.lock();
                let transient_short = if is_transient { bytes.saturating_sub(self.transient_space()) } else { 0 };
                let room = self.limit_bytes().saturating_sub(self.held_bytes(&heap));
                if transient_short > 0 {
                    Fault::TransientLimit(transient_short)
                } else if bytes > room {
                    Fault::Limit(bytes - room)
                } else {
                    self.charge(i64::try_from(bytes).unwrap_or(i64::MAX));
                    self.reserved_bytes.fetch_add(bytes, Relaxed);
                    cells.allocated(bytes);
                    return Ok(());
                }
            };
            let share = match self.transient_limit_bytes.load(Relaxed) {
                limit if is_transient && limit != u64::MAX => limit,
                _ => self.limit_bytes() / RESERVED_SHARE,
            };
            let is_beyond = self.reserved_bytes.load(Relaxed).saturating_add(bytes) > share;
            if is_beyond || !self.evict(bytes, fault) {
                cells.refused();
                return Err(StoreFull);
            }
        }
    }

    /// Gives back what was reserved.
    pub(crate) fn release(&self, bytes: u64, is_transient: bool) {
        self.charge(-i64::try_from(bytes).unwrap_or(i64::MAX));
        self.reserved_bytes.fetch_sub(bytes, Relaxed);
        let cells = if is_transient { &self.transient } else { &self.usage };
        cells.freed(bytes);
    }

    /// Has the missing bytes evicted; with fragmentation that number is unknown, so about as many as are wanted.
    fn evict(&self, wanted_bytes: u64, fault: Fault) -> bool {
        let (bytes, evictable) = match fault {
            Fault::Limit(short) => (short, Evictable::Any),
            Fault::TransientLimit(short) => (short, Evictable::Transient),
            Fault::Fragmented => (wanted_bytes, Evictable::Any),
        };
        let evictor = self.evictor.read().clone();
        evictor.is_some_and(|evictor| evictor(bytes, evictable))
    }

    fn unsized_share_bytes(&self) -> u64 {
        self.unsized_share_in(self.limit_bytes())
    }

    /// As much of a file of `bytes` as a body of unknown length may have.
    pub(crate) fn unsized_share_in(&self, bytes: u64) -> u64 {
        let percent = self.unsized_share_percent.load(Relaxed).min(100);
        (u128::from(bytes) * u128::from(percent) / 100) as u64
    }

    /// How much any body of unknown length may have, in bytes.
    pub(crate) fn unsized_floor_bytes(&self) -> u64 {
        floor_bytes(self.unsized_share_bytes())
    }

    /// As [`UnsizedBodies::room`], in the arena.
    pub(crate) fn growth_room(&self, held_bytes: u64) -> u64 {
        self.unsized_bodies.room(self.unsized_share_bytes(), held_bytes)
    }

    /// What is left of the limit of Transient.
    pub(crate) fn transient_space(&self) -> u64 {
        self.transient_limit_bytes.load(Relaxed).saturating_sub(self.transient.live_bytes())
    }

    /// Frees a block.
    pub(crate) fn free(&self, at: u32, flags: Head) {
        let units = self.heap.lock().free(&self.memory, at);
        self.cells(flags).freed(self.geometry.byte(units));
    }

    /// Shortens a block.
    pub(crate) fn trim(&self, at: u32, bytes: u64, flags: Head) {
        let units = self.heap.lock().trim(&self.memory, at, self.geometry.units(bytes));
        self.cells(flags).shortened(self.geometry.byte(units));
    }
}

impl Inner {
    /// Everything that is to be in the file is written; afterwards nothing more is.
    pub(crate) fn end_writer(&self) {
        let Some(tier) = &self.tier else { return };
        tier.queue().end();
        let thread = self.writer.lock().take();
        // The last handle may have been the writer's own.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end_writer();
    }
}

/// Private memory that a storage is not charged for: the allocator's own state and the beginnings of an index belong to
/// the process, like its code, so that a storage of N bytes can hold an object of nearly N bytes.
pub(crate) const PRIVATE_FREE_BYTES: u64 = 4096;

/// The kernel may hold one part in this many of the limit more than is in use: whole pages that are partly free.
pub(crate) const RESIDENT_SLACK: u64 = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The limit is reached; this many bytes are missing.
    Limit(u64),
    /// The limit of Transient is reached; this many bytes are missing.
    TransientLimit(u64),
    /// There is room, but not in one piece, or only in pages that the kernel would have to add.
    Fragmented,
}
