//! The disk tier: bodies in a file, `-s file`.
//!
//! ```text
//! arena (memory)   record: words, head, variant key, map of the body ──▶ file
//! file             header · log · log · bodies
//! ```
//!
//! The record of an object is in an arena in memory, like every other, with a map instead of its
//! body; the body is in a file that is read and written through its descriptor, never mapped. So a
//! lookup never waits for a disk, and a reader either finds a piece in the page cache at once or
//! has to wait for it ([`crate::BodyReader::load`]). Received bytes are held in memory until one
//! thread has written them, in the order of the file. Short-lived objects stay in the arena.
//!
//! The worker's death loses the bytes not yet written; then the records in the arena count. After a
//! reboot the log counts (`log.rs`). In both cases a body is unchanged or is not delivered: each 64
//! KiB has a checksum in the map.
//!
//! *Locks*: `space` and the queue's mutex are held for no system call and while no other lock is
//! taken.
//!
//! Reading order: `device` (operations on a file) → `runs` (free room) → `map` (location of a body)
//! → `disk_write` (a body being written) → `object` (the parts of an object that concern the file)
//! → `demotion` → `reclaimer` (making room) → `log` → `queue`, `writer` (the thread) → `reading` →
//! `opening`.

mod demotion;
mod device;
mod disk_write;
mod log;
mod map;
mod object;
mod opening;
mod queue;
mod reading;
mod reclaimer;
mod runs;
mod writer;

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod tests;

pub(crate) use disk_write::DiskWrite;
pub(crate) use map::{chain_bytes, give_back_in_file, map_bytes};
pub(crate) use reading::OnDiskReader;
pub use reclaimer::Reclaimer;
pub(crate) use runs::Extent;

use crate::arena::{Inner, LowerTier};
use crate::unsized_bodies::UnsizedBodies;
use crate::usage::{Usage, UsageCells};
use device::Device;
use parking_lot::{Mutex, RwLock};
use queue::Queue;
use reclaimer::Segments;
use runs::Runs;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::closed_set::Advice;
use tokio::sync::Notify;

/// Layout of a storage with a file. See [`crate::Store::open_disk_tier`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileOptions {
    /// Length of the file in bytes; it contains bodies and the log of the metadata. At least 256
    /// KiB.
    pub bytes: u64,
    /// Limit of the memory for metadata: heads, variant keys, maps, handles, and the share of the
    /// index.
    pub metadata_bytes: u64,
    /// Bodies begin at multiples of this many bytes, a power of two from 512 to 1 MiB.
    pub granularity_bytes: u64,
    /// The access pattern of reads.
    pub advice: Advice,
    /// [`crate::Journal::identity`] of the journal of bans: objects that were kept with another
    /// journal are not taken over.
    pub journal: u64,
}

/// Counters of the file of a storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileUsage {
    /// As for memory, for the bytes of bodies in the file.
    pub usage: Usage,
    /// Pieces in use and free runs together.
    pub pieces: u64,
    /// Free runs of less than 64 KiB.
    pub small_runs: u64,
    /// Free runs of 64 KiB and more.
    pub large_runs: u64,
    /// Bytes written to the file, with padding and log.
    pub written_bytes: u64,
    /// Bytes of bodies that were written.
    pub stored_bytes: u64,
    /// Pieces that were in the page cache when they were read.
    pub warm_reads: u64,
    /// Pieces that had to be read from the disk.
    pub cold_reads: u64,
    /// Reads that failed, and pieces whose checksum was wrong.
    pub read_errors: u64,
    /// Writes that failed.
    pub write_errors: u64,
}

#[derive(Default)]
struct Counts {
    usage: UsageCells,
    written_bytes: AtomicU64,
    stored_bytes: AtomicU64,
    warm_reads: AtomicU64,
    cold_reads: AtomicU64,
    read_errors: AtomicU64,
    write_errors: AtomicU64,
}

struct Space {
    runs: Runs,
    segments: Segments,
}

/// The file of a storage.
pub(crate) struct Tier {
    device: Box<dyn Device>,
    /// Range of the file that may contain bodies.
    bodies: std::ops::Range<u64>,
    granularity: u64,
    advice: Advice,
    space: Mutex<Space>,
    /// Takes objects out of the index; set by the cache.
    reclaimer: RwLock<Option<Arc<Reclaimer>>>,
    queue: Queue,
    /// Bytes of bodies that are in memory because they are not yet written.
    pub(crate) unwritten_bytes: AtomicU64,
    /// Of these, the bytes that the writer has been given to write.
    pub(crate) queued_bytes: AtomicU64,
    /// Notified when fewer are.
    pub(crate) written: Notify,
    /// The bodies of unknown length that are written to the file.
    unsized_bodies: UnsizedBodies,
    next_id: AtomicU64,
    counts: Counts,
}

impl LowerTier for Tier {
    fn end(&self) {
        self.queue.end();
    }
}

impl Inner {
    /// The file of the storage, if it has one.
    pub(crate) fn disk_tier(&self) -> Option<&Tier> {
        let lower: &dyn Any = &**self.lower_tier.as_ref()?;
        lower.downcast_ref()
    }

    /// As [`Inner::disk_tier`], for a holder that keeps it.
    pub(crate) fn shared_disk_tier(&self) -> Option<Arc<Tier>> {
        let lower: Arc<dyn Any + Send + Sync> = Arc::clone(self.lower_tier.as_ref()?) as _;
        lower.downcast().ok()
    }
}

impl Tier {
    /// Room taken by a body of `bytes`.
    pub(crate) fn room_of(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.granularity)
    }

    /// Bytes that bodies may take.
    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.bodies.end - self.bodies.start
    }

    /// An id that no object of this file has had.
    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Records an id that an earlier process has given: the clock may have been set back since.
    pub(crate) fn has_seen(&self, id: u64) {
        self.next_id.fetch_max(id.saturating_add(1), Relaxed);
    }

    pub(crate) fn take(&self, bytes: u64) -> Option<Extent> {
        let extent = self.space.lock().runs.take(bytes)?;
        self.counts.usage.allocated(self.room_of(extent.bytes));
        Some(extent)
    }

    pub(crate) fn give_back(&self, extent: Extent) {
        if extent.bytes > 0 {
            self.counts.usage.freed(self.room_of(extent.bytes));
            self.space.lock().runs.give_back(extent);
        }
    }

    /// Gives back the end of an extent that stays; a multiple of the granularity.
    pub(crate) fn shorten(&self, end: Extent) {
        self.counts.usage.shortened(end.bytes);
        self.space.lock().runs.give_back(end);
    }

    /// An extent has been joined with the one before it.
    pub(crate) fn joined(&self) {
        self.counts.usage.joined();
    }

    /// Queues a log entry; see [`log::Entry`].
    pub(crate) fn log_removal(&self, id: u64) {
        self.queue.log(log::Entry::Removed(id).encode());
    }

    pub(crate) fn log_lifetime(&self, id: u64, lifetime: u64, keep_ban: u64) {
        self.queue.log(log::Entry::Lifetime(id, lifetime, keep_ban).encode());
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn usage(&self) -> FileUsage {
        let space = self.space.lock();
        let (free, (small_runs, large_runs)) = (space.runs.free_bytes(), space.runs.counts());
        drop(space);
        let counts = &self.counts;
        let usage = counts.usage.read(free);
        FileUsage {
            usage,
            pieces: usage.g_alloc + small_runs + large_runs,
            small_runs,
            large_runs,
            written_bytes: counts.written_bytes.load(Relaxed),
            stored_bytes: counts.stored_bytes.load(Relaxed),
            warm_reads: counts.warm_reads.load(Relaxed),
            cold_reads: counts.cold_reads.load(Relaxed),
            read_errors: counts.read_errors.load(Relaxed),
            write_errors: counts.write_errors.load(Relaxed),
        }
    }
}
