//! [`Store`]: one arena, one limit, and who makes room. There is one for each storage; they know nothing of each other.
//!
//! These count against the limit: all blocks of the arena (including Transient objects), the private memory of every
//! object's handle, what the index charges, and what is held elsewhere in the storage's name ([`Reservation`]). The
//! arena's file is a quarter longer than the limit, so that room can be found without moving anything; the pages that
//! the kernel holds are bounded too (`RESIDENT_SLACK`), by giving free ones back. *Locks*: the heap's mutex is never
//! held while the evictor runs, since that takes index locks and comes back to free blocks. Other kinds of storage (a
//! file read through its descriptor) will be other implementations behind [`Store`]'s methods.

use crate::attributes::{ObjectAttributes, ObjectFlags};
use crate::heap::{Block, Geometry, Heap};
use crate::layout::{ARENA_MAGIC, Head, LENGTH_AT, MAGIC_AT, SHIFT_AT};
use crate::memory::{Memory, PAGE_BYTES, memory_file};
use crate::object::Object;
use parking_lot::RwLock;
use shm::locks::CountedMutex;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use surface::counter::{LCK, LockClass};

/// What a scan of a used arena found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Complete, undamaged objects. The index takes them over, and removes those that it does not want.
    pub objects: Vec<Arc<Object>>,
    /// Number of objects dropped because they were unfinished or damaged.
    pub torn: usize,
    /// Number of objects dropped because the limit has become smaller.
    pub evicted: usize,
}

/// Nothing could be evicted to make room, or the object is larger than the storage or the format allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFull;

impl std::fmt::Display for StoreFull {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("no room in the storage")
    }
}

impl std::error::Error for StoreFull {}

/// The counters of section `SMA`, for a storage or for its Transient part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Allocation requests.
    pub c_req: u64,
    /// Allocations refused.
    pub c_fail: u64,
    /// Cumulative bytes handed out.
    pub c_bytes: u64,
    /// Cumulative bytes returned.
    pub c_freed: u64,
    /// Live allocations.
    pub g_alloc: u64,
    /// Bytes in use.
    pub g_bytes: u64,
    /// Bytes left of the limit; 0 for Transient without a limit of its own.
    pub g_space: u64,
}

#[derive(Default)]
struct UsageCells {
    c_req: AtomicU64,
    c_fail: AtomicU64,
    c_bytes: AtomicU64,
    c_freed: AtomicU64,
    g_alloc: AtomicU64,
}

impl UsageCells {
    fn allocated(&self, bytes: u64) {
        self.c_bytes.fetch_add(bytes, Relaxed);
        self.g_alloc.fetch_add(1, Relaxed);
    }

    fn freed(&self, bytes: u64) {
        self.c_freed.fetch_add(bytes, Relaxed);
        self.g_alloc.fetch_sub(1, Relaxed);
    }

    fn read(&self, g_space: u64) -> Usage {
        let (c_bytes, c_freed) = (self.c_bytes.load(Relaxed), self.c_freed.load(Relaxed));
        Usage {
            c_req: self.c_req.load(Relaxed),
            c_fail: self.c_fail.load(Relaxed),
            c_bytes,
            c_freed,
            g_alloc: self.g_alloc.load(Relaxed),
            g_bytes: c_bytes.saturating_sub(c_freed),
            g_space,
        }
    }
}

/// What may be evicted to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evictable {
    /// Any object: the storage's limit is reached.
    Any,
    /// Transient objects only: their own limit is reached.
    Transient,
}

/// Called to make room for a number of bytes; returns `false` if nothing is evictable.
type Evictor = dyn Fn(u64, Evictable) -> bool + Send + Sync;

/// A body of unknown length that has no more than one part in this many of what all of them may have is left alone,
/// however many there are: pages of usual size must not be given up because a few large bodies are under way.
const UNSIZED_FLOOR: u64 = 64;

/// Bodies of unknown length under way; room has to be made for them without knowing how long they will be. Overflowed
/// bodies count as long as a slow reader keeps part of them here.
#[derive(Default)]
struct Unsized {
    /// The percentage of the limit that each may have, and more or less all together.
    share_percent: AtomicU64,
    count: AtomicU64,
    /// Bytes that they have taken.
    bytes: AtomicU64,
}

/// The part of a store that handles point to.
pub(crate) struct Inner {
    pub(crate) memory: Memory,
    pub(crate) geometry: Geometry,
    name: String,
    /// The number that the index gave it.
    number: AtomicU8,
    limit_bytes: u64,
    heap: CountedMutex<Heap>,
    private_bytes: AtomicI64,
    usage: UsageCells,
    transient: UsageCells,
    /// How much of the limit Transient objects may take, in bytes.
    transient_limit_bytes: AtomicU64,
    /// The operator has set no limit.
    shows_unlimited: AtomicBool,
    unsized_bodies: Unsized,
    evictor: RwLock<Option<Arc<Evictor>>>,
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
    fn new(memory: Memory, name: &str, limit_bytes: u64, heap: Heap) -> Inner {
        let private = i64::try_from(heap.private_bytes()).unwrap_or(i64::MAX);
        Inner {
            memory,
            geometry: heap.geometry,
            name: name.to_owned(),
            number: AtomicU8::new(0),
            limit_bytes,
            heap: CountedMutex::new(LockClass::Sma, heap),
            private_bytes: AtomicI64::new(private),
            usage: UsageCells::default(),
            transient: UsageCells::default(),
            transient_limit_bytes: AtomicU64::new(u64::MAX),
            shows_unlimited: AtomicBool::new(false),
            unsized_bodies: Unsized { share_percent: AtomicU64::new(100), ..Unsized::default() },
            evictor: RwLock::new(None),
        }
    }

    fn cells(&self, head: Head) -> &UsageCells {
        if ObjectFlags(head.object_flags()).has(ObjectFlags::TRANSIENT) { &self.transient } else { &self.usage }
    }

    /// Private memory that counts against the limit.
    fn private_bytes(&self) -> u64 {
        (self.private_bytes.load(Relaxed).max(0) as u64).saturating_sub(PRIVATE_FREE_BYTES)
    }

    pub(crate) fn number(&self) -> u8 {
        self.number.load(Relaxed)
    }

    pub(crate) fn charge(&self, bytes: i64) {
        self.private_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Counts a block that recovery kept.
    pub(crate) fn count_recovered(&self, head: Head) {
        self.cells(head).allocated(self.geometry.byte(head.units()));
    }

    /// Finds room, evicting as needed. `head` supplies kind and object flags.
    pub(crate) fn allocate(&self, demand: Demand, head: Head) -> Result<Block, StoreFull> {
        let cells = self.cells(head);
        cells.c_req.fetch_add(1, Relaxed);
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
                    cells.c_fail.fetch_add(1, Relaxed);
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
        let private = self.private_bytes();
        let room = self.limit_bytes.saturating_sub(private).saturating_sub(heap.used_bytes());
        let piece = self.geometry.units(piece_bytes);
        let short = room_needed.max(self.geometry.byte(piece)).saturating_sub(room);
        if short > 0 {
            return Err(Fault::Limit(short));
        }
        let most = if is_transient { room.min(self.transient_space()) } else { room };
        let wanted = self.geometry.units(wanted_bytes.min(most));
        let (block, untouched) = heap.offer(&self.memory, piece, wanted).ok_or(Fault::Fragmented)?;
        if untouched > 0 {
            let bound = self.limit_bytes + self.limit_bytes / RESIDENT_SLACK;
            let over = (heap.resident_bytes() + private + untouched).saturating_sub(bound);
            if over > 0 && heap.reclaim(&self.memory, over, block) < over && resident_bound {
                return Err(Fault::Fragmented);
            }
        }
        Ok(heap.take(&self.memory, block, head))
    }

    /// Makes room for memory outside the arena, evicting as needed, and counts it.
    fn reserve(&self, bytes: u64, is_transient: bool) -> Result<(), StoreFull> {
        let cells = if is_transient { &self.transient } else { &self.usage };
        cells.c_req.fetch_add(1, Relaxed);
        loop {
            let fault = {
                // Under the lock, so that nothing else takes the room between check and count.
                let heap = self.heap.lock();
                let transient_short = if is_transient { bytes.saturating_sub(self.transient_space()) } else { 0 };
                let room = self.limit_bytes.saturating_sub(self.private_bytes() + heap.used_bytes());
                if transient_short > 0 {
                    Fault::TransientLimit(transient_short)
                } else if bytes > room {
                    Fault::Limit(bytes - room)
                } else {
                    self.charge(i64::try_from(bytes).unwrap_or(i64::MAX));
                    cells.allocated(bytes);
                    return Ok(());
                }
            };
            if bytes > self.limit_bytes || !self.evict(bytes, fault) {
                cells.c_fail.fetch_add(1, Relaxed);
                return Err(StoreFull);
            }
        }
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
        let percent = self.unsized_bodies.share_percent.load(Relaxed).min(100);
        (u128::from(self.limit_bytes) * u128::from(percent) / 100) as u64
    }

    /// How much any body of unknown length may have, in bytes.
    pub(crate) fn unsized_floor_bytes(&self) -> u64 {
        self.unsized_share_bytes() / UNSIZED_FLOOR
    }

    /// By how many bytes a body of unknown length that has `held_bytes` may grow: up to the share; if several bodies
    /// together already have the share, up to a fair part of it; and if they have twice that, only up to the floor.
    pub(crate) fn growth_room(&self, held_bytes: u64) -> u64 {
        let share = self.unsized_share_bytes();
        let (count, total) = (self.unsized_bodies.count.load(Relaxed), self.unsized_bodies.bytes.load(Relaxed));
        let fair = if total < 2 * share { share / count.max(1) } else { 0 };
        let fair = fair.max(self.unsized_floor_bytes()).saturating_sub(held_bytes);
        share.saturating_sub(held_bytes).min(share.saturating_sub(total).max(fair))
    }

    /// Counts a body of unknown length that begins with a block of `bytes`.
    pub(crate) fn begin_unsized(&self, bytes: u64) {
        self.unsized_bodies.count.fetch_add(1, Relaxed);
        self.grow_unsized(bytes);
    }

    pub(crate) fn grow_unsized(&self, bytes: u64) {
        self.unsized_bodies.bytes.fetch_add(bytes, Relaxed);
    }

    /// A body of unknown length has given `bytes` back.
    pub(crate) fn shrink_unsized(&self, bytes: u64) {
        self.unsized_bodies.bytes.fetch_sub(bytes, Relaxed);
    }

    /// A body of unknown length has ended or is dropped, with `bytes` still counted.
    pub(crate) fn end_unsized(&self, bytes: u64) {
        self.shrink_unsized(bytes);
        self.unsized_bodies.count.fetch_sub(1, Relaxed);
    }

    /// What is left of the limit of Transient.
    fn transient_space(&self) -> u64 {
        let held = self.transient.c_bytes.load(Relaxed).saturating_sub(self.transient.c_freed.load(Relaxed));
        self.transient_limit_bytes.load(Relaxed).saturating_sub(held)
    }

    /// Frees a block.
    pub(crate) fn free(&self, at: u32, flags: Head) {
        let units = self.heap.lock().free(&self.memory, at);
        self.cells(flags).freed(self.geometry.byte(units));
    }

    /// Shortens a block.
    pub(crate) fn trim(&self, at: u32, bytes: u64, flags: Head) {
        let units = self.heap.lock().trim(&self.memory, at, self.geometry.units(bytes));
        self.cells(flags).c_freed.fetch_add(self.geometry.byte(units), Relaxed);
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

/// Memory outside the arena that is held in the name of a storage and counts against its limit, e.g. a kept request
/// body. Given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    store: Store,
    bytes: u64,
    is_transient: bool,
}

impl Reservation {
    /// Enlarges the reservation by `bytes`.
    ///
    /// # Errors
    /// [`StoreFull`]; the reservation is unchanged.
    pub fn grow(&mut self, bytes: u64) -> Result<(), StoreFull> {
        let mut more = self.store.reserve(bytes, self.is_transient)?;
        // From now on this is a single allocation.
        self.bytes += std::mem::take(&mut more.bytes);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let inner = &self.store.inner;
        inner.charge(-i64::try_from(self.bytes).unwrap_or(i64::MAX));
        let cells = if self.is_transient { &inner.transient } else { &inner.usage };
        cells.freed(self.bytes);
    }
}

/// The arena of one storage. Clones share it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("name", &self.inner.name).field("limit", &self.inner.limit_bytes).finish()
    }
}

/// Length of the arena for this limit.
fn arena_bytes(limit_bytes: u64) -> io::Result<u64> {
    limit_bytes
        .checked_add(limit_bytes / 4 + (64 << 10))
        .and_then(|bytes| bytes.checked_next_multiple_of(PAGE_BYTES))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "storage limit too large"))
}

impl Store {
    /// A store named `s0` in a memory file of its own. Under Miri the memory is on the heap.
    ///
    /// # Errors
    /// The memory file could not be made or mapped.
    pub fn in_memory(limit_bytes: u64) -> io::Result<Store> {
        Store::in_memory_as("s0", limit_bytes)
    }

    /// Like [`Store::in_memory`], with another name.
    ///
    /// # Errors
    /// As [`Store::in_memory`].
    pub fn in_memory_as(name: &str, limit_bytes: u64) -> io::Result<Store> {
        if cfg!(miri) {
            let memory = Memory::on_heap(arena_bytes(limit_bytes)?)?;
            return Ok(Store::on(memory, name, limit_bytes)?.0);
        }
        Ok(Store::open(memory_file(c"copal-arena")?.into(), name, limit_bytes)?.0)
    }

    /// Opens the arena in `file` (a memfd that the manager holds); formats it when it is new, otherwise recovers its
    /// objects: all complete ones whose checksum holds. A used arena keeps its length whatever the limit; what exceeds a
    /// smaller limit is dropped, and its memory given back.
    ///
    /// # Errors
    /// The file cannot be sized or mapped; `InvalidData` when it holds something else.
    pub fn open(file: OwnedFd, name: &str, limit_bytes: u64) -> io::Result<(Store, Recovered)> {
        let file = File::from(file);
        let mut bytes = file.metadata()?.len() / PAGE_BYTES * PAGE_BYTES;
        if bytes == 0 {
            bytes = arena_bytes(limit_bytes)?;
            file.set_len(bytes)?;
        }
        Store::on(Memory::map(file, bytes)?, name, limit_bytes)
    }

    /// Formats or recovers an arena.
    pub(crate) fn on(memory: Memory, name: &str, limit_bytes: u64) -> io::Result<(Store, Recovered)> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not an arena of this program");
        let heap = match memory.load(MAGIC_AT) {
            0 => {
                let bytes = memory.len();
                let geometry = Geometry::new(bytes, Geometry::shift_for(bytes)).ok_or_else(damaged)?;
                let heap = Heap::format(&memory, geometry);
                memory.store(LENGTH_AT, bytes);
                memory.store(SHIFT_AT, u64::from(geometry.shift));
                memory.store(MAGIC_AT, ARENA_MAGIC);
                heap
            }
            ARENA_MAGIC => {
                let bytes = memory.load(LENGTH_AT);
                let shift = u32::try_from(memory.load(SHIFT_AT)).map_err(|_| damaged())?;
                let geometry = Geometry::new(bytes, shift).filter(|_| bytes <= memory.len()).ok_or_else(damaged)?;
                return Ok(crate::recovery::recover(memory, geometry, limit_bytes, |memory, heap| {
                    Arc::new(Inner::new(memory, name, limit_bytes, heap))
                }));
            }
            _ => return Err(damaged()),
        };
        let inner = Arc::new(Inner::new(memory, name, limit_bytes, heap));
        Ok((Store { inner }, Recovered::default()))
    }

    /// Walks the whole arena under its lock, and checks that everything known about it is consistent.
    ///
    /// # Panics
    /// When the heap contradicts itself.
    pub fn check(&self) {
        self.inner.heap.lock().check(&self.inner.memory);
    }

    /// The storage's name, e.g. `s0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// For the index: its number for this storage; 0 until set. See [`Object::store_number`].
    #[must_use]
    pub fn number(&self) -> u8 {
        self.inner.number()
    }

    /// Sets [`Store::number`].
    pub fn set_number(&self, number: u8) {
        self.inner.number.store(number, Relaxed);
    }

    /// Sets who makes room (the cache does). It is called with a number of bytes and with no lock of the store held; it
    /// evicts about that much, and returns `false` when nothing is evictable.
    pub fn set_evictor(&self, evictor: Box<dyn Fn(u64, Evictable) -> bool + Send + Sync>) {
        *self.inner.evictor.write() = Some(Arc::from(evictor));
    }

    /// Sets a limit for Transient objects within that of the storage; `None` = no limit of their own.
    pub fn set_transient_limit(&self, bytes: Option<u64>) {
        self.inner.transient_limit_bytes.store(bytes.unwrap_or(u64::MAX), Relaxed);
    }

    /// Sets what percentage of the limit a body of unknown length may have ([`crate::AppendError::TooLarge`]); several
    /// under way share it fairly. Initially 100.
    pub fn set_unsized_share(&self, percent: u64) {
        self.inner.unsized_bodies.share_percent.store(percent, Relaxed);
    }

    /// Makes room for an object and writes its head. Recovery accepts the object only once it is both finished
    /// ([`Object::finish`]) and in the index ([`Object::enter_index`]); until then its memory is freed with its last
    /// handle.
    ///
    /// # Errors
    /// [`StoreFull`].
    pub fn create(&self, attributes: &ObjectAttributes, head: &[u8]) -> Result<Arc<Object>, StoreFull> {
        Object::create(&self.inner, attributes, head)
    }

    /// Reserves room for bytes that lie elsewhere; `transient` as for objects.
    ///
    /// # Errors
    /// [`StoreFull`].
    pub fn reserve(&self, bytes: u64, transient: bool) -> Result<Reservation, StoreFull> {
        self.inner.reserve(bytes, transient)?;
        Ok(Reservation { store: self.clone(), bytes, is_transient: transient })
    }

    /// Counts memory outside the arena (index, metadata) against the limit; negative to give back.
    pub fn charge(&self, bytes: i64) {
        self.inner.charge(bytes);
    }

    /// Counters of the storage itself, without Transient; `g_space` is what is left of the one limit.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.inner.usage.read(self.free_bytes(false))
    }

    /// What the lock of the heap has counted, in the order of section `LCK`.
    #[must_use]
    pub fn lock_counts(&self) -> [u64; LCK.counters.len()] {
        self.inner.heap.counts()
    }

    /// Counters of the transient objects.
    #[must_use]
    pub fn transient_usage(&self) -> Usage {
        let space = self.inner.transient_space();
        let is_bounded = self.inner.transient_limit_bytes.load(Relaxed) != u64::MAX;
        self.inner.transient.read(if is_bounded { space } else { 0 })
    }

    /// The limit of the storage, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.inner.limit_bytes
    }

    /// Bytes left of the limit; for transient objects no more than is left of a limit of their own.
    #[must_use]
    pub fn free_bytes(&self, transient: bool) -> u64 {
        let free = self.inner.limit_bytes.saturating_sub(self.held_bytes());
        if transient { free.min(self.inner.transient_space()) } else { free }
    }

    /// Whether the operator set no limit, see [`Store::show_unlimited`]; with `transient`, whether Transient has none of
    /// its own.
    #[must_use]
    pub fn is_shown_unlimited(&self, transient: bool) -> bool {
        if transient {
            self.inner.transient_limit_bytes.load(Relaxed) == u64::MAX
        } else {
            self.inner.shows_unlimited.load(Relaxed)
        }
    }

    /// Marks the limit as one that no operator has set.
    pub fn show_unlimited(&self, is_unlimited: bool) {
        self.inner.shows_unlimited.store(is_unlimited, Relaxed);
    }

    /// Bytes that count against the limit: arena blocks (including Transient) and private memory beyond its first page.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.inner.heap.lock().used_bytes() + self.inner.private_bytes()
    }

    /// The part of [`Store::held_bytes`] that is private memory: handles, index, reservations, the allocator's own.
    #[must_use]
    pub fn private_bytes(&self) -> u64 {
        self.inner.private_bytes()
    }

    /// Bytes of the arena that are presumably resident; at most 1/32 of the limit above the limit.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.inner.heap.lock().resident_bytes()
    }
}
