//! A log record in ring format, and the walk over a run of them.

use crate::log::{LogId, VXID_BITS};
use surface::tag::Tag;

/// Largest tag number that names a tag.
pub const TAG_MAX: u8 = surface::tag::TAGS.len() as u8;

/// One record, borrowed from a chunk or a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The tag's number; may be one that 7.1 does not know.
    pub number: u8,
    /// Its transaction.
    pub id: LogId,
    /// The payload as written, with its NUL if it is text.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The tag, if it is a known one.
    #[must_use]
    pub fn tag(&self) -> Option<Tag> {
        Tag::from_number(self.number)
    }

    /// The payload as text: up to its first NUL.
    #[must_use]
    pub fn text(&self) -> &'a [u8] {
        let end = self.payload.iter().position(|byte| *byte == 0).unwrap_or(self.payload.len());
        &self.payload[..end]
    }

    /// The payload without the final NUL that its length counts.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.payload.split_last().map_or(self.payload, |(_, data)| data)
    }
}

/// Iterates over whole records; a record whose length runs past the end ends the walk.
#[derive(Clone)]
pub struct Records<'a> {
    words: &'a [u32],
}

impl<'a> Records<'a> {
    /// A walk over `words`.
    #[must_use]
    pub fn new(words: &'a [u32]) -> Records<'a> {
        Records { words }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let [first, id, rest @ ..] = self.words else { return None };
        let length = payload_bytes(*first);
        let payload = rest.get(..length.div_ceil(4))?;
        self.words = &rest[payload.len()..];
        let payload = &crate::log::words_as_bytes(payload)[..length];
        Some(Record { number: (first >> 24) as u8, id: LogId(*id), payload })
    }
}

/// Payload length in bytes that a record's first word states.
#[must_use]
pub fn payload_bytes(first: u32) -> usize {
    (first & 0xFFFF) as usize
}

/// Words that a record with this first word occupies.
#[must_use]
pub fn record_words(first: u32) -> usize {
    2 + payload_bytes(first).div_ceil(4)
}

/// True when a first word may start a record: its tag is neither 0 nor one of the markers.
#[must_use]
pub fn is_record(first: u32) -> bool {
    !matches!(first >> 24, 0 | 254 | 255)
}

/// Appends a text record in ring format.
pub fn append_text(words: &mut Vec<u32>, tag: Tag, id: LogId, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u16::MAX) - 1)];
    words.push((tag as u32) << 24 | (text.len() + 1) as u32);
    words.push(id.0);
    let mut padded = text.to_vec();
    padded.resize((text.len() + 1).next_multiple_of(4), 0);
    for word in padded.chunks_exact(4) {
        words.push(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
}

/// The vxid of the first record in `words`; 0 when there is none.
#[must_use]
pub fn first_vxid(words: &[u32]) -> u32 {
    words.get(1).map_or(0, |id| id & VXID_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_runs_past_the_end_ends_the_walk() {
        let mut words = Vec::new();
        append_text(&mut words, Tag::ReqURL, LogId::client(4), b"/a");
        append_text(&mut words, Tag::End, LogId::client(4), b"");
        words.extend([(Tag::Error as u32) << 24 | 9, 4, 0]);
        let seen: Vec<_> = Records::new(&words).map(|record| (record.tag(), record.text().to_vec())).collect();
        assert_eq!(seen, [(Some(Tag::ReqURL), b"/a".to_vec()), (Some(Tag::End), Vec::new())]);
    }

    #[test]
    fn text_ends_at_its_first_nul() {
        let record = Record { number: 16, id: LogId::NONE, payload: b"a\0b\0" };
        assert_eq!((record.text(), record.data()), (&b"a"[..], &b"a\0b"[..]));
        let bare = Record { number: 16, id: LogId::NONE, payload: b"" };
        assert_eq!((bare.text(), bare.data()), (&b""[..], &b""[..]));
    }
}
