//! The output buffer of a filter: of a fixed size, so that a step cannot yield more than that.
//!
//! *Invariant:* `start <= end <= room.len() <= FILTER_STEP_BYTES_MAX`; the bytes between `start`
//! and `end` were output and not taken yet.

use surface::limits::{FILTER_STEP_BYTES_MAX, FILTER_STEP_BYTES_MIN};

/// The output of a filter that was not taken yet.
#[derive(Debug, Default)]
pub struct Staging {
    room: Box<[u8]>,
    start: usize,
    end: usize,
    /// The size of `room` once it is allocated.
    wanted_bytes: usize,
}

impl Staging {
    /// Room for an output of that length, or for as much of it as one step may yield. It is
    /// allocated when first needed.
    pub(crate) fn for_output(bytes: Option<u64>) -> Staging {
        let most = FILTER_STEP_BYTES_MAX;
        let wanted = bytes.map_or(most, |bytes| usize::try_from(bytes).unwrap_or(most));
        Staging { wanted_bytes: wanted.clamp(FILTER_STEP_BYTES_MIN, most), ..Staging::default() }
    }

    /// Maximum memory that this uses, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.wanted_bytes
    }

    /// The bytes that were output and not taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.end]
    }

    /// The bytes that were output and not taken, for a filter that changes them in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.end]
    }

    /// True if all bytes were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// True if there is no more room after the present bytes.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.room.is_empty() && self.end == self.room.len()
    }

    /// Drops all bytes.
    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Marks bytes as taken; returns their position, for [`Staging::part`].
    pub(crate) fn take(&mut self, count: usize) -> usize {
        let start = self.start;
        self.start = (start + count).min(self.end);
        start
    }

    /// Bytes that were taken; valid until the filter runs again.
    pub(crate) fn part(&self, from: usize, to: usize) -> &[u8] {
        &self.room[from..to]
    }

    /// Room to write to; call [`Staging::wrote`] with the number of bytes written.
    pub fn spare(&mut self) -> &mut [u8] {
        if self.room.is_empty() {
            self.room = vec![0; self.wanted_bytes].into_boxed_slice();
        }
        &mut self.room[self.end..]
    }

    /// Records that `count` bytes were written to the spare room.
    pub fn wrote(&mut self, count: usize) {
        self.end = (self.end + count).min(self.room.len());
    }

    /// Copies as many bytes as fit; returns their number.
    pub fn copy_from(&mut self, bytes: &[u8]) -> usize {
        let spare = self.spare();
        let count = spare.len().min(bytes.len());
        spare[..count].copy_from_slice(&bytes[..count]);
        self.wrote(count);
        count
    }
}
