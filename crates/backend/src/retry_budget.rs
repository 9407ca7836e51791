//! Budget of repeated fetches from a backend: a share of all fetches, so that an origin in trouble
//! does not get more requests for it.
//!
//! Each fetch adds its share to a balance, a repeated one costs one; the balance is bounded, so
//! that a long period without retries does not permit a burst. It begins full. *Limit:*
//! [`RETRY_RESERVE`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::limits::RETRY_RESERVE;

/// Cost of a repeated fetch: with a share in percent, a fetch adds that percentage.
const COST: u64 = 100;
const BALANCE_MAX: u64 = RETRY_RESERVE * COST;

/// The balance of one backend.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    percent: u64,
    balance: AtomicU64,
}

impl RetryBudget {
    pub(crate) fn new(percent: u32) -> RetryBudget {
        RetryBudget { percent: percent.into(), balance: AtomicU64::new(BALANCE_MAX) }
    }

    /// Adds the share of a fetch that begins.
    pub(crate) fn earn(&self) {
        let add = |balance: u64| Some((balance + self.percent).min(BALANCE_MAX));
        let _ = self.balance.fetch_update(Relaxed, Relaxed, add);
    }

    /// Returns true if a fetch may be repeated, and deducts its cost.
    pub(crate) fn spend(&self) -> bool {
        self.balance.fetch_update(Relaxed, Relaxed, |balance| balance.checked_sub(COST)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_may_be_repeated_as_their_share_of_all_and_a_few_at_once() {
        let budget = RetryBudget::new(20);
        for _ in 0..RETRY_RESERVE {
            assert!(budget.spend());
        }
        assert!(!budget.spend());
        let repeated = (0..100).filter(|_| {
            budget.earn();
            budget.spend()
        });
        assert_eq!(repeated.count(), 20);
        for _ in 0..10_000 {
            budget.earn();
        }
        assert_eq!((0..1000).filter(|_| budget.spend()).count() as u64, RETRY_RESERVE, "no more for a long calm");
    }
}
