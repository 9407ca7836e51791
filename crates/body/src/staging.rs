//! Where a filter puts what it makes: a buffer of a fixed size, so that a step cannot yield more than that.
//!
//! *Invariant:* `start <= end <= room.len() <= FILTER_STEP_BYTES_MAX`; bytes between them were made and not taken yet.

use surface::limits::{FILTER_STEP_BYTES_MAX, FILTER_STEP_BYTES_MIN};

/// Bytes that a filter made and nobody took yet.
#[derive(Debug, Default)]
pub struct Staging {
    room: Box<[u8]>,
    start: usize,
    end: usize,
    /// The size that `room` gets when it is first needed.
    wanted_bytes: usize,
}

impl Staging {
    /// Room for the whole of an output of that length as far as one step may yield it. It is taken when first needed.
    pub(crate) fn for_output(bytes: Option<u64>) -> Staging {
        let most = FILTER_STEP_BYTES_MAX;
        let wanted = bytes.map_or(most, |bytes| usize::try_from(bytes).unwrap_or(most));
        Staging { wanted_bytes: wanted.clamp(FILTER_STEP_BYTES_MIN, most), ..Staging::default() }
    }

    /// Bytes of memory that this takes at most.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.wanted_bytes
    }

    /// What was made and not taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[self.start..self.end]
    }

    /// What was made and not taken, for a filter that changes it in its place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.end]
    }

    /// Whether all was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether nothing more fits behind what is there.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.room.is_empty() && self.end == self.room.len()
    }

    /// Forgets what is there.
    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Marks bytes as taken; returns where they lie, for [`Staging::part`].
    pub(crate) fn take(&mut self, count: usize) -> usize {
        let start = self.start;
        self.start = (start + count).min(self.end);
        start
    }

    /// Bytes that were taken, as long as nothing new was made.
    pub(crate) fn part(&self, from: usize, to: usize) -> &[u8] {
        &self.room[from..to]
    }

    /// Room to write to; say with [`Staging::wrote`] how much of it was used.
    pub fn spare(&mut self) -> &mut [u8] {
        if self.room.is_empty() {
            self.room = vec![0; self.wanted_bytes].into_boxed_slice();
        }
        &mut self.room[self.end..]
    }

    /// That many bytes were written to the spare room.
    pub fn wrote(&mut self, count: usize) {
        self.end = (self.end + count).min(self.room.len());
    }

    /// Copies as much as there is room for; returns how much that is.
    pub fn copy_from(&mut self, bytes: &[u8]) -> usize {
        let spare = self.spare();
        let count = spare.len().min(bytes.len());
        spare[..count].copy_from_slice(&bytes[..count]);
        self.wrote(count);
        count
    }
}
