//! One body, pulled: out of where it comes from, through its filters, by whoever gets rid of the bytes.
//!
//! ```text
//! Supply ─▶ Filters (perhaps none) ─▶ Next::Bytes ─▶ a client, an origin, a store
//! ```
//!
//! Every step yields a bounded number of bytes, and the one after it comes when those are gone: so nothing piles up, and a
//! slow client costs no more than a fast one. Without filters bytes stay where they lie. Nothing waits here: who pulls is told
//! that there is nothing yet, and knows what to do until there is. Next files: `source.rs`, `filters.rs`.

use super::filters::Filters;
use body::{FilterError, Flow};

/// Most bytes that are handed on at once without filters: what one client takes at a time before others have their turn.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Where a body comes from. It shows what it has and is told how much of that was used.
pub(crate) trait Supply {
    /// What comes next, at most so many bytes.
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_>;

    /// So many bytes of the last piece were used.
    fn consume(&mut self, count: usize);
}

/// What a supply has.
pub(crate) enum Pulled<'a> {
    /// Bytes, at least one; the last ones say so where that is known in time.
    Piece { bytes: &'a [u8], is_last: bool },
    /// There is nothing yet.
    Waits,
    /// There will be nothing more.
    Ended,
    /// What should have come will not.
    Failed,
}

/// What a step of a body came to.
pub(crate) enum Next<'a> {
    /// Bytes to get rid of before the next step, at least one. Behind the last ones nothing comes; that they are the last is not
    /// always known in time.
    Bytes { bytes: &'a [u8], is_last: bool },
    /// Filters have worked, and yielded nothing: go on.
    Nothing,
    /// Go on when the supply has more.
    Waits,
    /// That was the whole body.
    Ended,
    /// The rest will not come.
    Failed(Failure),
}

/// Why a body did not come whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// It broke off where it comes from.
    Supply,
    /// A filter refused it.
    Filter(FilterError),
    /// It ended, or broke off, before all was there that a filter had promised.
    Short,
}

/// How far a body has been pulled. The supply and the filters are the caller's, and the same in every step.
#[derive(Default)]
pub(crate) struct Pull {
    /// Bytes of the last piece that were used: they may be what was yielded, so they go when that has gone.
    used: usize,
    /// The filters may have more without taking anything in.
    is_pending: bool,
}

impl Pull {
    /// The next step.
    pub(crate) fn next<'a>(&mut self, supply: &'a mut impl Supply, filters: &'a mut Filters) -> Next<'a> {
        supply.consume(std::mem::take(&mut self.used));
        if !filters.is_empty() {
            return self.next_of_filters(supply, filters);
        }
        match supply.pull(PIECE_BYTES_MAX) {
            Pulled::Piece { bytes, is_last } => {
                self.used = bytes.len();
                Next::Bytes { bytes, is_last }
            }
            Pulled::Waits => Next::Waits,
            Pulled::Ended => Next::Ended,
            Pulled::Failed => Next::Failed(Failure::Supply),
        }
    }

    #[cold]
    fn next_of_filters<'a>(&mut self, supply: &'a mut impl Supply, filters: &'a mut Filters) -> Next<'a> {
        let is_short = filters.missing_bytes() > 0;
        if filters.has_ended() {
            return if is_short { Next::Failed(Failure::Short) } else { Next::Ended };
        }
        let input = match supply.pull(PIECE_BYTES_MAX) {
            Pulled::Piece { bytes, .. } => Some(bytes),
            Pulled::Ended => None,
            Pulled::Waits | Pulled::Failed if self.is_pending => Some(&[][..]),
            Pulled::Waits => return Next::Waits,
            Pulled::Failed => return Next::Failed(if is_short { Failure::Short } else { Failure::Supply }),
        };
        match filters.step(input) {
            Ok(step) => {
                self.used = step.taken;
                self.is_pending = step.flow == Flow::More;
                if step.bytes.is_empty() { Next::Nothing } else { Next::Bytes { bytes: step.bytes, is_last: false } }
            }
            Err(error) => Next::Failed(Failure::Filter(error)),
        }
    }
}
