//! A log record in the plain form (`crate::layout`), and the walk over a run of them.

use crate::layout::{PLAIN_HEAD_WORDS, payload_bytes};
use crate::log::{LogId, VXID_BITS};
use surface::tag::Tag;

/// Largest tag number that names a tag.
pub const TAG_MAX: u8 = surface::tag::TAGS.len() as u8;

/// One record, borrowed from a chunk or a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The tag's number in [`surface::tag`]; may be one that is unknown there.
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
        let [first, low, high, rest @ ..] = self.words else { return None };
        let length = payload_bytes(*first);
        let payload = rest.get(..length.div_ceil(4))?;
        self.words = &rest[payload.len()..];
        let payload = &crate::log::words_as_bytes(payload)[..length];
        Some(Record { number: (first >> 24) as u8, id: LogId::of_words(*low, *high), payload })
    }
}

/// Words that a record with this first word occupies in the plain form.
#[must_use]
pub fn record_words(first: u32) -> usize {
    PLAIN_HEAD_WORDS + payload_bytes(first).div_ceil(4)
}

/// True when a first word may start a record: its tag is neither 0 nor one of the markers.
#[must_use]
pub fn is_record(first: u32) -> bool {
    !matches!(first >> 24, 0 | 254 | 255)
}

/// Appends a text record in the plain form.
pub fn append_text(words: &mut Vec<u32>, tag: Tag, id: LogId, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u16::MAX) - 1)];
    append(words, tag as u8, id, &[text, b"\0"].concat());
}

/// Appends a record with this payload in the plain form.
pub(super) fn append(words: &mut Vec<u32>, number: u8, id: LogId, payload: &[u8]) {
    words.extend([u32::from(number) << 24 | payload.len() as u32, id.0 as u32, (id.0 >> 32) as u32]);
    words.extend(payload.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_ne_bytes(word)
    }));
}

/// The vxid of the first record in `words`; 0 if there is none.
#[must_use]
pub fn first_vxid(words: &[u32]) -> u64 {
    let [_, low, high, ..] = words else { return 0 };
    LogId::of_words(*low, *high).0 & VXID_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    #[test]
    fn a_record_that_runs_past_the_end_ends_the_walk() {
        let mut words = Vec::new();
        append_text(&mut words, Tag::ReqURL, LogId::client(4), b"/a");
        append_text(&mut words, Tag::End, LogId::client(4), b"");
        words.extend([(Tag::Error as u32) << 24 | 9, 4, 0, 0]);
        let seen: Vec<_> = Records::new(&words).map(|record| (record.tag(), record.text().to_vec())).collect();
        assert_eq!(seen, [(Some(Tag::ReqURL), b"/a".to_vec()), (Some(Tag::End), Vec::new())]);
    }

    #[test]
    fn records_survive_both_layouts_and_lose_only_what_the_older_cannot_hold() {
        let mut plain = Vec::new();
        append_text(&mut plain, Tag::ReqURL, LogId::client(7), b"/url");
        append_text(&mut plain, Tag::End, LogId::backend(1 << 29), b"");
        append_text(&mut plain, Tag::Backend, LogId::client(8), b"17 boot.default");
        append_text(&mut plain, Tag::CLI, LogId::NONE, b"Rd ping");
        append_text(&mut plain, Tag::Error, LogId::client(1 << 50 | 5), b"far");
        let shown = |plain: &[u32]| -> Vec<String> {
            let line = |record: Record| {
                let side = (record.id.is_client(), record.id.is_backend());
                format!("{} {} {side:?} {}", record.number, record.id.vxid(), String::from_utf8_lossy(record.text()))
            };
            Records::new(plain).map(line).collect()
        };
        for layout in Layout::ALL {
            let (mut written, mut read) = (Vec::new(), Vec::new());
            layout.write(&plain, &mut written);
            layout.read(&written, &mut read);
            let mut expected = shown(&plain);
            match layout {
                Layout::V71 => expected[4] = expected[4].replace(&(1u64 << 50 | 5).to_string(), "5"),
                Layout::V73 => drop(expected.remove(2)),
            }
            assert_eq!(shown(&read), expected, "{layout:?}");
        }
    }

    #[test]
    fn text_ends_at_its_first_nul() {
        let record = Record { number: 16, id: LogId::NONE, payload: b"a\0b\0" };
        assert_eq!((record.text(), record.data()), (&b"a"[..], &b"a\0b"[..]));
        let bare = Record { number: 16, id: LogId::NONE, payload: b"" };
        assert_eq!((bare.text(), bare.data()), (&b""[..], &b""[..]));
    }
}
