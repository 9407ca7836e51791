//! How many of a thing there are: sessions and fetches of one event loop, in the terms of section MEMPOOL.
//!
//! Their memory comes from the allocator and goes back to it, so of the section's counters only `live`, `allocs`, `frees`
//! and the sizes move. Requests do have a pool, which counts itself (`request/pool.rs`).

use shm::counters::SharedCounters;
use std::sync::Arc;
use surface::counter::{MEMPOOL, Mempool};

/// Counters of one section MEMPOOL.
pub type PoolCounters = SharedCounters<{ MEMPOOL.counters.len() }>;

/// Something that is counted for as long as it lives. Belongs to the loop that alone writes the counters.
pub struct Counted(Arc<PoolCounters>);

impl Counted {
    /// Counts one more.
    #[must_use]
    pub fn new(counters: &Arc<PoolCounters>) -> Counted {
        counters.change_alone(Mempool::Live as usize, 1);
        counters.change_alone(Mempool::Allocs as usize, 1);
        Counted(Arc::clone(counters))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.change_alone(Mempool::Live as usize, -1);
        self.0.change_alone(Mempool::Frees as usize, 1);
    }
}

/// Notes how large one of them is.
pub(crate) fn set_size(counters: &PoolCounters, bytes: usize) {
    counters.set(Mempool::SzWanted as usize, bytes as u64);
    counters.set(Mempool::SzActual as usize, bytes as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_is_what_was_made_less_what_is_gone() {
        let counters = Arc::new(PoolCounters::new());
        let get = |counter: Mempool| counters.get(counter as usize);
        let (first, second) = (Counted::new(&counters), Counted::new(&counters));
        assert_eq!((get(Mempool::Live), get(Mempool::Allocs), get(Mempool::Frees)), (2, 2, 0));
        drop(first);
        assert_eq!((get(Mempool::Live), get(Mempool::Allocs), get(Mempool::Frees)), (1, 2, 1));
        drop(second);
        assert_eq!(get(Mempool::Live), 0);
    }
}
