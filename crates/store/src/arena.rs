//! The state shared by all handles of one storage: the arena, the limit, and the evictor.
//!
//! These count against the limit: all blocks of the arena (including Transient objects), the
//! private memory of every object's handle, the memory that the index charges, and memory held
//! outside the arena in the storage's name. The arena's file is a quarter longer than the limit, so
//! that room can be found without moving anything; the pages that the kernel holds are bounded too
//! ([`RESIDENT_SLACK`]), by giving free ones back. *Locks*: the heap's mutex is never held while
//! the evictor runs, since that takes index locks and comes back to free blocks. Next files:
//! `place.rs`, `object.rs`.

use crate::attributes::ObjectFlags;
use crate::heap::{Block, Geometry, Heap};
use crate::layout::Head;
use crate::memory::Memory;
use crate::shares::{Class, Evictable, Fault, Shares};
use crate::unsized_bodies::{UnsizedBodies, floor_bytes};
use crate::usage::UsageCells;
use parking_lot::{Mutex, RwLock};
use shm::locks::CountedMutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use surface::counter::LockClass;

/// Nothing could be evicted to make room, or the object is larger than the storage or the format
/// allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFull;

impl std::fmt::Display for StoreFull {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no room in the storage")
    }
}

impl std::error::Error for StoreFull {}

/// Called to make room for a number of bytes; returns `false` if nothing is evictable.
pub(crate) type Evictor = dyn Fn(u64, Evictable) -> bool + Send + Sync;

/// Objects are evicted for memory outside the arena until that has one part in this many of the
/// limit.
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
    /// Of these, the bytes that [`Inner::reserve`] has given.
    reserved_bytes: AtomicU64,
    pub(crate) usage: UsageCells,
    pub(crate) transient: UsageCells,
    /// The markers among the transient objects.
    markers: UsageCells,
    /// Part of the limit that Transient objects may take, in bytes.
    pub(crate) transient_limit_bytes: AtomicU64,
    /// True if room is kept free for markers, or for Transient if that has a limit of its own.
    pub(crate) keeps_room: AtomicBool,
    /// True if the operator has set no limit.
    pub(crate) shows_unlimited: AtomicBool,
    /// The percentage of the limit, or of the file, that each body of unknown length may have;
    /// approximately also all of them together.
    pub(crate) unsized_share_percent: AtomicU64,
    pub(crate) unsized_bodies: UnsizedBodies,
    pub(crate) evictor: RwLock<Option<Arc<Evictor>>>,
    /// The storage of the bodies, if that is not the arena.
    pub(crate) lower_tier: Option<Arc<dyn LowerTier>>,
    /// At least the largest vxid of an object created by this process.
    pub(crate) newest_vxid: AtomicU64,
    /// The thread that writes to the file.
    pub(crate) writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// Vxids that share a value of [`Inner::newest_vxid`]. Power of two.
const VXIDS_NOTED: u64 = 1 << 20;

/// A storage of bodies below the arena, which only keeps it and announces the end. `disk_tier.rs`
/// implements it, and gets its own type back from [`Inner::lower_tier`].
pub(crate) trait LowerTier: Any + Send + Sync {
    /// Nothing more will be written after the pending work.
    fn end(&self);
}

/// The least, fair and greatest size of an allocation.
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
    /// Learns the vxid of a new object. What is stored is rounded up, so that few objects change
    /// it.
    pub(crate) fn note_vxid(&self, vxid: u64) {
        if vxid > self.newest_vxid.load(Relaxed) {
            self.newest_vxid.fetch_max(vxid | (VXIDS_NOTED - 1), Relaxed);
        }
    }

    pub(crate) fn new(
        memory: Memory,
        name: &str,
        limit_bytes: u64,
        heap: Heap,
        lower_tier: Option<Arc<dyn LowerTier>>,
    ) -> Inner {
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
            markers: UsageCells::default(),
            transient_limit_bytes: AtomicU64::new(u64::MAX),
            keeps_room: AtomicBool::new(false),
            shows_unlimited: AtomicBool::new(false),
            unsized_share_percent: AtomicU64::new(100),
            unsized_bodies: UnsizedBodies::default(),
            evictor: RwLock::new(None),
            lower_tier,
            newest_vxid: AtomicU64::new(0),
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

    /// Changes the limit, evicts objects beyond it, and gives free pages back. Memory in use stays
    /// while it is in use.
    pub(crate) fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Relaxed);
        loop {
            let short = self.held_bytes(&self.heap.lock()).saturating_sub(bytes);
            if short == 0 || !self.evict(short, Fault::Limit(short), Class::Stored) {
                break;
            }
        }
        let mut heap = self.heap.lock();
        let resident = (bytes + bytes / RESIDENT_SLACK).saturating_sub(self.private_bytes(&heap));
        heap.give_back(&self.memory, resident);
    }

    /// Counts a block that recovery kept.
    pub(crate) fn count_recovered(&self, head: Head) {
        self.count(head, |cells| cells.allocated(self.geometry.byte(head.units())));
    }

    /// Counts in all counters that a block belongs to.
    fn count(&self, head: Head, count: impl Fn(&UsageCells)) {
        count(self.cells(head));
        if Class::of(head) == Class::Marker {
            count(&self.markers);
        }
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
                    self.count(head, |cells| cells.allocated(self.geometry.byte(block.units)));
                    return Ok(block);
                }
                Err(fault) => fault,
            };
            if fault == Fault::Fragmented && piece > demand.least_bytes {
                piece = (piece / 2).max(demand.least_bytes);
            } else if !self.evict(room_needed, fault, Class::of(head)) {
                // Last resorts: first only the indispensable bytes, then regardless of the pages
                // that the kernel holds.
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
        let class = Class::of(head);
        let is_transient = class.is_transient();
        let shares = self.shares();
        let marker_short = shares.marker_excess(class, room_needed.max(piece_bytes) + HANDLE_BYTES as u64);
        if marker_short > 0 {
            return Err(Fault::MarkerLimit(marker_short));
        }
        let transient_short = room_needed.max(piece_bytes).saturating_sub(shares.transient_space());
        if is_transient && transient_short > 0 {
            return Err(Fault::TransientLimit(transient_short));
        }
        let private = self.private_bytes(&heap);
        let held = private + heap.used_bytes() + shares.kept_free(class);
        let room = self.limit_bytes().saturating_sub(held);
        let piece = self.geometry.units(piece_bytes);
        let short = room_needed.max(self.geometry.byte(piece)).saturating_sub(room);
        if short > 0 {
            return Err(Fault::Limit(short));
        }
        let most = if is_transient { room.min(shares.transient_space()) } else { room };
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

    /// Makes room for memory outside the arena, and counts it. Objects are evicted for a share of
    /// the limit only: requests must not empty the cache. If the operator gives Transient a limit
    /// of its own, that limit is the bound.
    pub(crate) fn reserve(&self, bytes: u64, is_transient: bool) -> Result<(), StoreFull> {
        let cells = if is_transient { &self.transient } else { &self.usage };
        cells.requested();
        loop {
            let fault = {
                // Under the lock, so that nothing else takes the room between check and count.
                let heap = self.heap.lock();
                let transient_short =
                    if is_transient { bytes.saturating_sub(self.shares().transient_space()) } else { 0 };
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
            if is_beyond || !self.evict(bytes, fault, Class::Stored) {
                cells.refused();
                return Err(StoreFull);
            }
        }
    }

    /// Gives reserved bytes back.
    pub(crate) fn release(&self, bytes: u64, is_transient: bool) {
        self.charge(-i64::try_from(bytes).unwrap_or(i64::MAX));
        self.reserved_bytes.fetch_sub(bytes, Relaxed);
        let cells = if is_transient { &self.transient } else { &self.usage };
        cells.freed(bytes);
    }

    /// Evicts to free the missing bytes; with fragmentation that number is unknown, so about as
    /// many as are wanted.
    fn evict(&self, wanted_bytes: u64, fault: Fault, class: Class) -> bool {
        let bytes = match fault {
            Fault::Limit(short) | Fault::TransientLimit(short) | Fault::MarkerLimit(short) => short,
            Fault::Fragmented => wanted_bytes,
        };
        let Some(evictor) = self.evictor.read().clone() else { return false };
        self.shares().displaced(class, fault).iter().any(|evictable| evictor(bytes, *evictable))
    }

    fn unsized_share_bytes(&self) -> u64 {
        self.unsized_share_in(self.limit_bytes())
    }

    /// Share of a file of `bytes` that a body of unknown length may have.
    pub(crate) fn unsized_share_in(&self, bytes: u64) -> u64 {
        let percent = self.unsized_share_percent.load(Relaxed).min(100);
        (u128::from(bytes) * u128::from(percent) / 100) as u64
    }

    /// Bytes that any body of unknown length may have.
    pub(crate) fn unsized_floor_bytes(&self) -> u64 {
        floor_bytes(self.unsized_share_bytes())
    }

    /// As [`UnsizedBodies::room`], in the arena.
    pub(crate) fn growth_room(&self, held_bytes: u64) -> u64 {
        self.unsized_bodies.room(self.unsized_share_bytes(), held_bytes)
    }

    /// The limits and the use of the storage now.
    pub(crate) fn shares(&self) -> Shares {
        Shares {
            limit_bytes: self.limit_bytes(),
            transient_limit_bytes: Some(self.transient_limit_bytes.load(Relaxed)).filter(|limit| *limit != u64::MAX),
            transient_bytes: self.transient.live_bytes(),
            marker_bytes: self.markers.live_bytes() + self.markers.live_count() * HANDLE_BYTES as u64,
            keeps_room: self.keeps_room.load(Relaxed),
        }
    }

    /// Frees a block.
    pub(crate) fn free(&self, at: u32, flags: Head) {
        let units = self.heap.lock().free(&self.memory, at);
        self.count(flags, |cells| cells.freed(self.geometry.byte(units)));
    }

    /// Shortens a block.
    pub(crate) fn trim(&self, at: u32, bytes: u64, flags: Head) {
        let units = self.heap.lock().trim(&self.memory, at, self.geometry.units(bytes));
        self.count(flags, |cells| cells.shortened(self.geometry.byte(units)));
    }
}

impl Inner {
    /// Writes everything that is to be in the file; afterwards nothing more is written.
    pub(crate) fn end_writer(&self) {
        let Some(tier) = &self.lower_tier else { return };
        tier.end();
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

/// Private memory of an object's handle: its size, the two counts of its `Arc`, and the overhead of
/// a heap allocation. `object.rs` checks the size.
pub(crate) const HANDLE_BYTES: i64 = 24 + 16 + 8;

/// Private memory that a storage is not charged for: the allocator's own state and the beginnings
/// of an index belong to the process, like its code, so that a storage of N bytes can hold an
/// object of nearly N bytes.
pub(crate) const PRIVATE_FREE_BYTES: u64 = 4096;

/// The kernel may hold one part in this many of the limit more than is in use: pages that are
/// partly free.
pub(crate) const RESIDENT_SLACK: u64 = 32;
