//! The sizes of sessions and fetches, for section MEMPOOL. This file is above both, so that a loop
//! is independent of the types that it counts.

use crate::context::LoopPools;
use crate::fetch::Fetch;
use crate::mempool_counts::set_size;
use crate::session::{Session, SessionFacts};

/// Stores the sizes in a loop's counters.
pub fn note(pools: &LoopPools) {
    set_size(&pools.sessions, size_of::<Session>() + size_of::<SessionFacts>());
    set_size(&pools.fetches, size_of::<Fetch>());
}
