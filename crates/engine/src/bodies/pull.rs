//! The pull of one body from its source, through its filters, to its sender or storer.
//!
//! ```text
//! Supply ─▶ Filters (perhaps none) ─▶ Next::Bytes ─▶ a client, an origin, a store
//! ```
//!
//! Every step yields a bounded number of bytes, and the next step runs when those have been used.
//! So nothing accumulates, and a slow client costs no more memory than a fast one. Without filters
//! the bytes are not copied. Nothing waits here: the result says that there is nothing yet, and the
//! callerdecides how to wait. Next files: `source.rs`, `filters.rs`.

use super::filters::Filters;
use body::{FilterError, Flow};

/// Most bytes passed on at a time without filters: the share of one client before others have their
/// turn.
pub(crate) const PIECE_BYTES_MAX: usize = 1 << 20;

/// Source of a body. A supply shows its next bytes and is then given the number of them that were
/// used.
pub(crate) trait Supply {
    /// Returns the next bytes, at most `bytes_max`.
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_>;

    /// Marks `count` bytes of the last piece as used.
    fn consume(&mut self, count: usize);

    /// True if unneeded bytes can be skipped unseen, by marking them as used, because showing them
    /// has a cost.
    fn can_skip(&self) -> bool {
        false
    }
}

/// State of a supply, with its current bytes.
pub(crate) enum Pulled<'a> {
    /// Bytes, at least one. `is_last` is set if it is already known that they are the last.
    Piece { bytes: &'a [u8], is_last: bool },
    /// Nothing yet.
    Waits,
    /// Nothing more will follow.
    Ended,
    /// The rest of the body is missing.
    Failed,
}

/// The result of one step.
pub(crate) enum Next<'a> {
    /// Bytes to use before the next step, at least one. Nothing follows the last ones, but
    /// `is_last` is only set if that is already known.
    Bytes { bytes: &'a [u8], is_last: bool },
    /// The filters have run without output: call again.
    Nothing,
    /// Call again when the supply has more.
    Waits,
    /// The body is complete.
    Ended,
    /// The rest of the body is missing.
    Failed(Failure),
}

/// Reason why a body is incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The source broke off.
    Supply,
    /// A filter rejected the body.
    Filter(FilterError),
    /// The body ended, or broke off, before a filter had received all the bytes that it had
    /// announced.
    Short,
}

/// Progress of pulling a body. The supply and the filters belong to the caller and must be the same
/// in every step.
#[derive(Default)]
pub(crate) struct Pull {
    /// Bytes of the last piece that were used. The yielded bytes may be among them, so the supply
    /// is notified only in the next step.
    used: usize,
    /// The filters may have more output without further input.
    is_pending: bool,
}

impl Pull {
    /// Notifies the supply now of the used bytes of its last piece: no caller reads that piece any
    /// more.
    pub(crate) fn settle(&mut self, supply: &mut impl Supply) {
        supply.consume(std::mem::take(&mut self.used));
    }

    /// Nothing of the last piece was used: the next step yields it again.
    pub(crate) fn take_back(&mut self) {
        self.used = 0;
    }

    /// Runs the next step.
    pub(crate) fn next<'a>(&mut self, supply: &'a mut impl Supply, filters: &'a mut Filters) -> Next<'a> {
        self.settle(supply);
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
        if supply.can_skip() {
            let bytes = usize::try_from(filters.unwanted_bytes()).unwrap_or(usize::MAX);
            filters.skip(bytes as u64);
            supply.consume(bytes);
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
    use std::rc::Rc;
    use surface::limits::FILTER_STEP_BYTES_MAX;
    use surface::parameter::Parameters;

    /// The filters of a list for a response of `length` bytes to a client that requests a range.
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

    /// Pulls until there is nothing more, or nothing yet. Returns the pulled bytes and the final
    /// result.
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

    /// A body whose bytes have a cost to show; records the bytes that were shown.
    struct Dear(Handed, usize, std::collections::BTreeSet<usize>);

    impl Supply for Dear {
        fn pull(&mut self, _: usize) -> Pulled<'_> {
            self.2.insert(self.1);
            self.0.pull(10)
        }

        fn consume(&mut self, count: usize) {
            self.0.consume(count);
            self.1 += count;
        }

        fn can_skip(&self) -> bool {
            true
        }
    }

    #[test]
    fn bytes_before_a_range_are_not_requested() {
        let body: Vec<u8> = (0..100).collect();
        let mut dear = Dear(Handed::whole(Rc::new(body)), 0, Default::default());
        let (mut pull, mut filters, mut all) = (Pull::default(), opened("range", "bytes=35-54", 100), Vec::new());
        loop {
            match pull.next(&mut dear, &mut filters) {
                Next::Bytes { bytes, .. } => all.extend_from_slice(bytes),
                Next::Nothing => {}
                Next::Ended => break,
                Next::Waits | Next::Failed(_) => panic!("broken off"),
            }
        }
        assert_eq!(all, (35..55).collect::<Vec<u8>>());
        assert_eq!(dear.2.into_iter().collect::<Vec<_>>(), [35, 45]);
    }

    #[test]
    fn filter_error_is_not_the_end_of_the_body() {
        let (mut pull, mut handed) = (Pull::default(), Handed::default());
        let mut filters = opened("gunzip", "", 11);
        handed.give(Some(b"hello world".to_vec()));
        let (_, how) = drained(&mut pull, &mut handed, &mut filters);
        assert_eq!(how, "Invalid Gzip data: incorrect header check");
    }
}
