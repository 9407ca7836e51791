//! The store.
use crate::object::{Object, ObjectAttributes};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What a scan of a used arena found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Complete objects, unharmed.
    pub objects: Vec<Arc<Object>>,
    /// Objects that were dropped: not finished, damaged.
    pub torn: usize,
}

/// Nothing could be evicted to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreFull;

/// The counters of section `SMA`, for the arena or for its Transient part.
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
    /// Bytes still free.
    pub g_space: u64,
}

/// The arena. Clones share it.
#[derive(Clone)]
pub struct Store(());

impl Store {
    /// A store in a memory file of its own.
    ///
    /// # Errors
    /// The memory file could not be made or mapped.
    pub fn in_memory(_limit_bytes: u64) -> io::Result<Store> {
        todo!()
    }

    /// Opens the arena in `file` (a memfd that the manager holds); formats it when it is new, else recovers its objects.
    ///
    /// # Errors
    /// The file cannot be sized or mapped, or holds something else.
    pub fn open(_file: OwnedFd, _name: &str, _limit_bytes: u64) -> io::Result<(Store, Recovered)> {
        todo!()
    }

    /// The storage's name, e.g. `s0`.
    #[must_use]
    pub fn name(&self) -> &str {
        todo!()
    }

    /// Sets who makes room (the cache does): called with a number of bytes; `false` = nothing evictable.
    pub fn set_evictor(&self, _evictor: Box<dyn Fn(u64) -> bool + Send + Sync>) {
        todo!()
    }

    /// Makes room for an object and writes its head. The object is visible to recovery only once it is both finished
    /// ([`Object::finish`]) and in the index (the cache calls [`Object::keep`]).
    ///
    /// # Errors
    /// [`StoreFull`].
    pub fn create(&self, _attributes: &ObjectAttributes, _head: &[u8]) -> Result<Arc<Object>, StoreFull> {
        todo!()
    }

    /// Counts memory outside the arena (index, metadata) against the limit; negative to give back.
    pub fn charge(&self, _bytes: i64) {
        todo!()
    }

    /// Counters of the storage itself (without Transient).
    #[must_use]
    pub fn usage(&self) -> Usage {
        todo!()
    }

    /// Counters of the objects marked transient.
    #[must_use]
    pub fn transient_usage(&self) -> Usage {
        todo!()
    }

    /// The one limit, in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        todo!()
    }

    /// Bytes counted against the limit: arena, Transient and private metadata.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        todo!()
    }
}
