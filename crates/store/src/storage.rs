//! [`Store`]: the interface of a storage. There is one for each `-s`; they are independent of each
//! other.
//!
//! Its limits and the way it makes room are in `arena.rs`; memory held outside the arena in its
//! name is a [`Reservation`]; bodies in a file are in `disk_tier.rs`.

use crate::arena::{Inner, LowerTier, StoreFull};
use crate::attributes::ObjectAttributes;
use crate::disk_tier::{FileUsage, Reclaimer};
use crate::heap::{Geometry, Heap};
use crate::layout::{ARENA_MAGIC, ARENA_MAGIC_2, LENGTH_AT, MAGIC_AT, SHIFT_AT};
use crate::memory::{Memory, PAGE_BYTES, memory_file};
use crate::object::Object;
use crate::recovery::{Recovered, recover};
use crate::shares::{Class, Evictable};
use crate::usage::Usage;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use surface::counter::LCK;

/// Memory outside the arena that is held in the name of a storage and counts against its limit,
/// e.g. a kept request body. Given back when dropped.
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
        self.store.inner.release(self.bytes, self.is_transient);
    }
}

/// The arena of one storage. Clones share it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Store")
            .field("name", &self.inner.name)
            .field("limit", &self.inner.limit_bytes())
            .finish()
    }
}

/// Length of the arena for this limit.
pub(crate) fn arena_bytes(limit_bytes: u64) -> io::Result<u64> {
    limit_bytes
        .checked_add(limit_bytes / 4 + (64 << 10))
        .and_then(|bytes| bytes.checked_next_multiple_of(PAGE_BYTES))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "storage limit too large"))
}

impl Store {
    /// A store named `s0` in a memory file of its own. Under Miri the memory is on the heap.
    ///
    /// # Errors
    /// The memory file could not be created or mapped.
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

    /// Opens the arena in `file` (a memfd that the manager holds); formats it when it is new,
    /// otherwise recovers its objects: all complete ones whose checksum holds. A used arena keeps
    /// its length whatever the limit; objects beyond a smaller limit are dropped, and their memory
    /// given back.
    ///
    /// # Errors
    /// The file cannot be sized or mapped; `InvalidData` when it holds something else.
    pub fn open(file: OwnedFd, name: &str, limit_bytes: u64) -> io::Result<(Store, Recovered)> {
        Store::open_to_grow(file, name, limit_bytes, limit_bytes)
    }

    /// Like [`Store::open`], but a new arena is made for a limit of `grows_to_bytes`:
    /// [`Store::set_limit`] can raise the limit that far. The file is sparse.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_to_grow(
        file: OwnedFd,
        name: &str,
        limit_bytes: u64,
        grows_to_bytes: u64,
    ) -> io::Result<(Store, Recovered)> {
        let file = File::from(file);
        let mut bytes = file.metadata()?.len() / PAGE_BYTES * PAGE_BYTES;
        if bytes == 0 {
            bytes = arena_bytes(limit_bytes.max(grows_to_bytes))?;
            file.set_len(bytes)?;
        }
        Store::on(Memory::map(file, bytes)?, name, limit_bytes)
    }

    /// True if bodies are in a file.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.inner.lower_tier.is_some()
    }

    /// Counters of the file; `None` = there is no file. With a file, [`Store::usage`] is about the
    /// metadata.
    #[must_use]
    pub fn file_usage(&self) -> Option<FileUsage> {
        self.inner.disk_tier().map(|tier| tier.usage())
    }

    /// Sets the function that takes objects out of the index, so that there is room in the file
    /// (the cache sets it). It is called with no lock of the store held.
    pub fn set_reclaimer(&self, reclaimer: Box<Reclaimer>) {
        if let Some(tier) = self.inner.disk_tier() {
            tier.set_reclaimer(reclaimer);
        }
    }

    /// Waits until the removals made before the call are on the disk: the objects cannot come back
    /// even after a power failure. Returns at once for memory. `false` = the file could not be
    /// written.
    pub async fn settle(&self) -> bool {
        let Some(tier) = self.inner.disk_tier() else { return true };
        let settled = tier.queue().settle();
        settled.await.unwrap_or(false)
    }

    /// At the orderly end of a worker: writes out everything that is to be kept. Takes as long as
    /// the disk needs; blocks. Objects stored afterwards stay in memory.
    pub fn close(&self) {
        self.inner.end_writer();
    }

    /// Formats or recovers an arena.
    pub(crate) fn on(memory: Memory, name: &str, limit_bytes: u64) -> io::Result<(Store, Recovered)> {
        Store::on_with(memory, name, limit_bytes, None)
    }

    /// The same, for an arena whose bodies may be in a file.
    pub(crate) fn on_with(
        memory: Memory,
        name: &str,
        limit_bytes: u64,
        lower_tier: Option<Arc<dyn LowerTier>>,
    ) -> io::Result<(Store, Recovered)> {
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
            ARENA_MAGIC | ARENA_MAGIC_2 => {
                let bytes = memory.load(LENGTH_AT);
                let shift = u32::try_from(memory.load(SHIFT_AT)).map_err(|_| damaged())?;
                let geometry = Geometry::new(bytes, shift).filter(|_| bytes <= memory.len()).ok_or_else(damaged)?;
                // An earlier release must not read objects stored from now on.
                memory.store(MAGIC_AT, ARENA_MAGIC);
                let (inner, recovered) = recover(memory, geometry, limit_bytes, |memory, heap| {
                    Arc::new(Inner::new(memory, name, limit_bytes, heap, lower_tier.clone()))
                });
                return Ok((Store { inner }, recovered));
            }
            _ => return Err(damaged()),
        };
        let inner = Arc::new(Inner::new(memory, name, limit_bytes, heap, lower_tier));
        Ok((Store { inner }, Recovered::default()))
    }

    /// Walks the whole arena under its lock, and checks that its state is consistent.
    ///
    /// # Panics
    /// If the heap is inconsistent.
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

    /// Sets the function that makes room (the cache sets it). It is called with a number of bytes
    /// and with no lock of the store held; it evicts about that much, and returns `false` if
    /// nothing is evictable.
    pub fn set_evictor(&self, evictor: Box<dyn Fn(u64, Evictable) -> bool + Send + Sync>) {
        *self.inner.evictor.write() = Some(Arc::from(evictor));
    }

    /// Sets a limit for Transient objects within that of the storage; `None` = no limit of their
    /// own. With one, transient objects evict transient objects only.
    pub fn set_transient_limit(&self, bytes: Option<u64>) {
        self.inner.transient_limit_bytes.store(bytes.unwrap_or(u64::MAX), Relaxed);
    }

    /// Keeps a part of the limit free for markers, or for Transient objects if those have a limit
    /// of their own: `surface::limits::MARKERS_RESERVE_SHARE` and `TRANSIENT_RESERVE_SHARE`.
    /// Without this, a storage full of objects has no room for them.
    pub fn keep_room_for_markers(&self) {
        self.inner.keeps_room.store(true, Relaxed);
    }

    /// Sets the percentage of the limit that a body of unknown length may have
    /// ([`crate::AppendError::TooLarge`]); several under way share it fairly. Initially 100.
    pub fn set_unsized_share(&self, percent: u64) {
        self.inner.unsized_share_percent.store(percent, Relaxed);
    }

    /// Makes room for an object and writes its head. Recovery accepts the object only once it is
    /// both finished ([`Object::finish`]) and in the index ([`Object::enter_index`]); until then
    /// its memory is freed with its last handle.
    ///
    /// # Errors
    /// [`StoreFull`].
    pub fn create(&self, attributes: &ObjectAttributes, head: &[u8]) -> Result<Arc<Object>, StoreFull> {
        Object::create(&self.inner, attributes, head)
    }

    /// Reserves room for bytes outside the arena; `transient` as for objects. Objects are evicted
    /// for a quarter of the limit, all reservations together, or for a limit of Transient's own;
    /// free room can be had beyond that.
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

    /// Counters of the storage itself, without Transient; `g_space` is the remainder of the one
    /// limit.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.inner.usage.read(self.free_bytes(false))
    }

    /// The counts of the heap's lock, in the order of section `LCK`.
    #[must_use]
    pub fn lock_counts(&self) -> [u64; LCK.counters.len()] {
        self.inner.heap.counts()
    }

    /// Counters of the transient objects.
    #[must_use]
    pub fn transient_usage(&self) -> Usage {
        let space = self.inner.shares().transient_space();
        let is_bounded = self.inner.transient_limit_bytes.load(Relaxed) != u64::MAX;
        self.inner.transient.read(if is_bounded { space } else { 0 })
    }

    /// The limit of the storage, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.inner.limit_bytes()
    }

    /// Changes the limit, as far as the arena's length allows; returns the new one. Objects beyond
    /// a smaller one are evicted now, except those in use, and their memory is given back.
    pub fn set_limit(&self, bytes: u64) -> u64 {
        // The same ratio as at creation: room for fragmentation.
        let most = self.inner.memory.len() / 5 * 4;
        let bytes = bytes.min(most.max(self.limit_bytes()));
        self.inner.set_limit(bytes);
        bytes
    }

    /// Bytes left of the limit; for transient objects no more than the remainder of a limit of
    /// their own.
    #[must_use]
    pub fn free_bytes(&self, transient: bool) -> u64 {
        let class = if transient { Class::Transient } else { Class::Stored };
        let held = self.held_bytes() + self.inner.shares().kept_free(class);
        let free = self.inner.limit_bytes().saturating_sub(held);
        if transient { free.min(self.inner.shares().transient_space()) } else { free }
    }

    /// True if the operator set no limit, see [`Store::show_unlimited`]; with `transient`, true if
    /// Transient has none of its own.
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

    /// Bytes that count against the limit: arena blocks (including Transient) and private memory
    /// beyond its first page.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.inner.held_bytes(&self.inner.heap.lock())
    }

    /// The part of [`Store::held_bytes`] that is private memory: handles, index, reservations, the
    /// allocator's own.
    #[must_use]
    pub fn private_bytes(&self) -> u64 {
        self.inner.private_bytes(&self.inner.heap.lock())
    }

    /// Bytes of the arena that are presumably resident; at most 1/32 of the limit above the limit.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.inner.heap.lock().resident_bytes()
    }
}
