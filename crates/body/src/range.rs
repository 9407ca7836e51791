//! Cutting a range out of a stream.

/// Lets only the bytes from `first` to `last` of a stream pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeCut {
    skip: u64,
    take: u64,
}

impl RangeCut {
    /// Both ends are inclusive. A range whose end lies before its start lets nothing pass.
    #[must_use]
    pub fn new(first: u64, last: u64) -> Self {
        RangeCut { skip: first, take: if last < first { 0 } else { (last - first).saturating_add(1) } }
    }

    /// The part of the next `input` of the stream that lies in the range.
    pub fn cut<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let (from, to) = self.part(input.len());
        &input[from..to]
    }

    /// Where that part begins and ends, of an input of that length.
    pub(crate) fn part(&mut self, input_bytes: usize) -> (usize, usize) {
        let before = usize::try_from(self.skip).unwrap_or(usize::MAX).min(input_bytes);
        self.skip -= before as u64;
        let len = usize::try_from(self.take).unwrap_or(usize::MAX).min(input_bytes - before);
        self.take -= len as u64;
        (before, before + len)
    }

    /// Bytes of the range that have not passed yet: when the stream has ended and this is not 0, it was too short.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.take
    }

    /// Whether the whole range has passed, so that the rest of the stream does not matter.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.take == 0
    }
}
