//! Counters of the sessions and fetches of one event loop, as in section MEMPOOL.
//!
//! Their memory is allocated directly, so only the counters `live`, `allocs`, `frees` and the sizes
//! of the section are used. Requests do have a pool, which counts by itself (`request/pool.rs`).

use shm::counters::SharedCounters;
use std::sync::Arc;
use surface::counter::{MEMPOOL, Mempool};

/// The counters of one MEMPOOL section.
pub type PoolCounters = SharedCounters<{ MEMPOOL.counters.len() }>;

/// Item that is counted as long as it exists. It belongs to the event loop, the only one to write
/// the counters.
pub struct Counted(Arc<PoolCounters>);

impl Counted {
    /// Counts one more; dropping the result counts one less.
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

/// Sets the size of one item.
pub(crate) fn set_size(counters: &PoolCounters, bytes: usize) {
    counters.set(Mempool::SzWanted as usize, bytes as u64);
    counters.set(Mempool::SzActual as usize, bytes as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_count_is_allocations_minus_frees() {
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
