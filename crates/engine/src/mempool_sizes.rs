//! How large sessions and fetches are, for section MEMPOOL. It stands above both, so that a loop need not know what it counts.

use crate::context::LoopPools;
use crate::fetch::Fetch;
use crate::mempool_counts::set_size;
use crate::session::{Session, SessionFacts};

/// Notes it where a loop counts them.
pub fn note(pools: &LoopPools) {
    set_size(&pools.sessions, size_of::<Session>() + size_of::<SessionFacts>());
    set_size(&pools.fetches, size_of::<Fetch>());
}
