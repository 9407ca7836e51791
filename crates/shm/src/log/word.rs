//! Short texts that are logged often, kept in the form of a record.

/// Room for a text with its NUL, in bytes.
pub(super) const WORD_BYTES: usize = 20;

/// A text of at most 19 bytes, followed by NULs: storing all of it takes less time than computing
/// its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    bytes: [u8; WORD_BYTES],
    len: u8,
}

impl Word {
    /// The word for a text.
    ///
    /// # Panics
    /// The text is longer than 19 bytes.
    #[must_use]
    pub const fn new(text: &[u8]) -> Word {
        assert!(text.len() < WORD_BYTES);
        let mut bytes = [0; WORD_BYTES];
        let mut at = 0;
        while at < text.len() {
            bytes[at] = text[at];
            at += 1;
        }
        Word { bytes, len: text.len() as u8 }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The text with the NULs after it.
    #[inline]
    pub(super) fn whole(&self) -> &[u8; WORD_BYTES] {
        &self.bytes
    }
}
