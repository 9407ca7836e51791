//! A body that is stored in slices: a supply of the whole, which shows one slice after the other.
//!
//! It fetches nothing: the caller gets the number of the next slice that is needed, and inserts the
//! slice. Bytes that no filter needs, even whole slices, are skipped without being read. Next file:
//! `request/slices.rs`.

use super::pull::{Pulled, Supply};
use super::source::Source;
use crate::slicing::Slicing;

/// The body.
pub(crate) struct SlicedBody {
    slicing: Slicing,
    /// Bytes of the whole that were used or skipped.
    offset: u64,
    open: Option<Open>,
}

/// A slice that is being read.
struct Open {
    number: u64,
    source: Source,
    /// Position in the whole of the next byte of its source; before `offset` if some of its bytes
    /// are to be skipped.
    at: u64,
}

impl SlicedBody {
    pub(crate) fn new(slicing: Slicing) -> SlicedBody {
        SlicedBody { slicing, offset: 0, open: None }
    }

    /// Skips bytes.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes).min(self.slicing.total);
    }

    /// The slice that has to be inserted; `None` = none.
    pub(crate) fn lacks(&self) -> Option<u64> {
        let number = self.slicing.number_at(self.offset);
        let is_open = self.open.as_ref().is_some_and(|open| open.number == number);
        (self.offset < self.slicing.total && !is_open).then_some(number)
    }

    /// Inserts a slice.
    pub(crate) fn put(&mut self, number: u64, source: Source) {
        let at = number.saturating_mul(self.slicing.slice_bytes);
        self.open = Some(Open { number, source, at });
    }

    /// The slice after the one that is being read, if `wanted` bytes from here on reach into it.
    pub(crate) fn follows(&self, wanted: u64) -> Option<u64> {
        let number = self.open.as_ref()?.number;
        let next = self.slicing.span(number + 1)?;
        (self.offset.saturating_add(wanted) > next.first).then_some(number + 1)
    }

    /// Waits until the slice that is being read shows more.
    pub(crate) async fn changed(&self) {
        if let Some(open) = &self.open {
            open.source.changed().await;
        }
    }
}

impl Supply for SlicedBody {
    fn pull(&mut self, bytes_max: usize) -> Pulled<'_> {
        let SlicedBody { slicing, offset, open } = self;
        let number = slicing.number_at(*offset);
        let Some(span) = slicing.span(number).filter(|_| *offset < slicing.total) else { return Pulled::Ended };
        let Some(open) = open.as_mut().filter(|open| open.number == number) else { return Pulled::Waits };
        while open.at < *offset {
            let behind = *offset - open.at;
            let skipped = match open.source.skip(behind) {
                0 => match open.source.pull(usize::try_from(behind).unwrap_or(usize::MAX)) {
                    // Not all sources respect the limit.
                    Pulled::Piece { bytes, .. } => (bytes.len() as u64).min(behind) as usize,
                    Pulled::Waits => return Pulled::Waits,
                    Pulled::Ended | Pulled::Failed => return Pulled::Failed,
                },
                skipped => {
                    open.at += skipped;
                    continue;
                }
            };
            open.source.consume(skipped);
            open.at += skipped as u64;
        }
        let left = usize::try_from(span.last + 1 - *offset).unwrap_or(usize::MAX);
        match open.source.pull(bytes_max.min(left)) {
            Pulled::Piece { bytes, .. } => {
                let bytes = &bytes[..bytes.len().min(bytes_max).min(left)];
                Pulled::Piece { bytes, is_last: *offset + bytes.len() as u64 == slicing.total }
            }
            Pulled::Waits => Pulled::Waits,
            // A slice that ends too soon counts as missing.
            Pulled::Ended | Pulled::Failed => Pulled::Failed,
        }
    }

    fn consume(&mut self, count: usize) {
        self.offset += count as u64;
        if let Some(open) = &mut self.open {
            open.source.consume(count);
            open.at += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a body of that length.
    fn whole(total: u64) -> Vec<u8> {
        (0..total).map(|at| (at % 251) as u8).collect()
    }

    fn slice(slicing: &Slicing, number: u64) -> Source {
        let span = slicing.span(number).unwrap();
        Source::of_synthetic(whole(slicing.total)[span.first as usize..=span.last as usize].to_vec())
    }

    /// Pulls to the end, skipping `skips` (position, bytes); returns the bytes, and the slices that
    /// were inserted.
    fn pulled(total: u64, piece: usize, skips: &[(u64, u64)]) -> (Vec<u8>, Vec<u64>) {
        let slicing = Slicing::begin(total, 65_536, &[0; 32], 1, 1.0);
        let mut body = SlicedBody::new(slicing);
        let (mut out, mut put) = (Vec::new(), Vec::new());
        loop {
            if let Some((_, bytes)) = skips.iter().find(|(place, _)| *place == body.offset) {
                body.skip(*bytes);
            }
            if let Some(number) = body.lacks() {
                assert!(matches!(body.pull(1), Pulled::Waits));
                body.put(number, slice(&slicing, number));
                put.push(number);
            }
            let (body_offset, body_end) = (body.offset, total);
            let count = match body.pull(piece) {
                Pulled::Piece { bytes, is_last } => {
                    out.extend_from_slice(bytes);
                    assert_eq!(is_last, body_end == body_offset + bytes.len() as u64);
                    bytes.len()
                }
                Pulled::Ended => return (out, put),
                Pulled::Waits | Pulled::Failed => panic!("at {}", body.offset),
            };
            body.consume(count);
        }
    }

    #[test]
    fn slices_make_the_whole_however_it_is_pulled() {
        for (total, piece) in [(200_000, 1000), (131_072, 65_536), (65_537, 1 << 20), (70_000, 7)] {
            let (out, put) = pulled(total, piece, &[]);
            assert!(out == whole(total), "{total} by {piece}");
            assert_eq!(put.len() as u64, total.div_ceil(65_536));
        }
    }

    #[test]
    fn skipped_slices_are_not_requested() {
        let (out, put) = pulled(400_000, 500, &[(0, 140_000), (150_000, 200_000)]);
        assert_eq!(put, [2, 5, 6]);
        let whole = whole(400_000);
        assert!(out == [&whole[140_000..150_000], &whole[350_000..]].concat());
    }

    #[test]
    fn a_slice_that_is_too_short_is_a_failure() {
        let slicing = Slicing::begin(100_000, 65_536, &[0; 32], 1, 1.0);
        let mut body = SlicedBody::new(slicing);
        body.put(0, Source::of_synthetic(vec![1; 10]));
        body.consume(10);
        assert!(matches!(body.pull(10), Pulled::Failed));
        body.skip(65_526 + 20);
        body.put(1, Source::of_synthetic(vec![1; 10]));
        assert!(matches!(body.pull(10), Pulled::Failed));
    }

    #[test]
    fn the_next_slice_is_read_ahead_only_if_it_is_wanted() {
        let slicing = Slicing::begin(100_000, 65_536, &[0; 32], 1, 1.0);
        let mut body = SlicedBody::new(slicing);
        assert_eq!(body.follows(u64::MAX), None);
        body.put(0, slice(&slicing, 0));
        assert_eq!((body.follows(65_536), body.follows(65_537)), (None, Some(1)));
        body.skip(70_000);
        body.put(1, slice(&slicing, 1));
        assert_eq!(body.follows(u64::MAX), None);
    }
}
