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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bodies::filters::Subject;
    use crate::bodies::source::Handed;
    use body::Side;
    use message::Message;
    use shm::counters::MainCounters;
    use shm::log::{LogBuffer, LogRing};
    use surface::limits::FILTER_STEP_BYTES_MAX;
    use surface::parameter::Parameters;

    /// The filters of a list for a response to a client that wants a range, `length` bytes long.
    fn opened(list: &str, range: &str, length: u64) -> Filters {
        let mut log = LogBuffer::new(&LogRing::in_memory(1 << 16));
        let (mut request, mut response) = (Message::new(), Message::new());
        request.append(b"Range", range.as_bytes());
        response.set_status(200);
        let mut subject =
            Subject { request: Some(&request), ..Subject::new(Side::Resp, &mut response, &mut log, Some(length)) };
        Filters::open(list.as_bytes(), &mut subject, &Parameters::default(), &MainCounters::new())
            .unwrap_or_else(|text| panic!("{text}"))
    }

    /// Pulls until there is nothing more, or nothing yet. Gives what came and how that ended.
    fn drained(pull: &mut Pull, handed: &mut Handed, filters: &mut Filters) -> (Vec<u8>, &'static str) {
        let mut all = Vec::new();
        loop {
            match pull.next(handed, filters) {
                Next::Bytes { bytes, .. } => {
                    assert!(!bytes.is_empty() && bytes.len() <= FILTER_STEP_BYTES_MAX);
                    all.extend_from_slice(bytes);
                }
                Next::Nothing => {}
                Next::Waits => return (all, "waits"),
                Next::Ended => return (all, "ended"),
                Next::Failed(Failure::Filter(error)) => return (all, error.text()),
                Next::Failed(Failure::Short) => return (all, "short"),
                Next::Failed(Failure::Supply) => return (all, "broken off"),
            }
        }
    }

    #[test]
    fn without_filters_a_body_goes_on_as_it_comes() {
        let (mut pull, mut handed, mut filters) = (Pull::default(), Handed::default(), Filters::default());
        assert_eq!(drained(&mut pull, &mut handed, &mut filters), (Vec::new(), "waits"));
        for piece in [b"ab", b"cd"] {
            handed.give(Some(piece.to_vec()));
            assert_eq!(drained(&mut pull, &mut handed, &mut filters), (piece.to_vec(), "waits"));
        }
        handed.give(None);
        assert_eq!(drained(&mut pull, &mut handed, &mut filters), (Vec::new(), "ended"));
    }

    #[test]
    fn nothing_more_is_asked_for_while_filters_have_something() {
        let plain = vec![7; 1_000_000];
        let mut zipped = Vec::new();
        assert_eq!(body::whole(body::Gzip::new(9), &plain, usize::MAX, &mut zipped), Ok(()));
        let (mut pull, mut handed) = (Pull::default(), Handed::default());
        let mut filters = opened("gunzip", "", zipped.len() as u64);
        let (most, rest) = zipped.split_at(zipped.len() - 8);
        handed.give(Some(most.to_vec()));
        let (mut got, how) = drained(&mut pull, &mut handed, &mut filters);
        assert!(how == "waits" && got.len() > 900_000, "{} bytes", got.len());
        handed.give(Some(rest.to_vec()));
        got.extend(drained(&mut pull, &mut handed, &mut filters).0);
        assert!(got == plain);
        handed.give(None);
        assert_eq!(drained(&mut pull, &mut handed, &mut filters), (Vec::new(), "ended"));
    }

    #[test]
    fn a_body_that_ends_before_its_range_is_short() {
        for (body, got, how) in [("0123456789", "345", "ended"), ("01234", "34", "short"), ("", "", "short")] {
            let (mut pull, mut handed) = (Pull::default(), Handed::default());
            let mut filters = opened("range", "bytes=3-5", 10);
            handed.give((!body.is_empty()).then(|| body.as_bytes().to_vec()));
            let (mut all, mut ended) = drained(&mut pull, &mut handed, &mut filters);
            if ended == "waits" {
                handed.give(None);
                let (more, how) = drained(&mut pull, &mut handed, &mut filters);
                all.extend(more);
                ended = how;
            }
            assert_eq!((all, ended), (got.as_bytes().to_vec(), how), "{body}");
        }
    }

    #[test]
    fn what_a_filter_refuses_is_no_end() {
        let (mut pull, mut handed) = (Pull::default(), Handed::default());
        let mut filters = opened("gunzip", "", 11);
        handed.give(Some(b"hello world".to_vec()));
        let (_, how) = drained(&mut pull, &mut handed, &mut filters);
        assert_eq!(how, "Invalid Gzip data: incorrect header check");
    }
}
