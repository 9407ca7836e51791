//! The layouts of log records: that of Varnish up to 7.2, and that of 7.3 and later.
//!
//! ```text
//!             7.1                                       7.3
//! ring        VSLHEAD1                                  VSLHEAD2
//! file        V S L NUL                                 V S L 2
//! record      tag (8) | 0 (8) | length (16)             tag (8) | 0 (6) | 1 (2) | length (16)
//!             backend | client | vxid (30)              lower half of the vxid
//!                                                       backend | client | 0 (11) | vxid (19)
//! batch       255 (8) | 0 (24), bytes                   255 (8) | 0 (24), bytes, unused
//! tags        all of them                               without three, so that later ones have
//!                                                       smaller numbers
//! ```
//!
//! A ring has one layout, chosen at its creation, which readers learn from its first eight bytes.
//! Readers turn records into the *plain form*: the head of 7.3 without its version, and with the
//! tag numbers of [`surface::tag`]. *Invariant:* only this module knows the differences. Source:
//! compared with the programs of 7.1 and 7.7 in `tests/stock_tools.rs`.

use serde::{Deserialize, Serialize};
use surface::tag::{TAGS, Tag};

/// Words before the payload of a record in the plain form.
pub const PLAIN_HEAD_WORDS: usize = 3;
/// Bits 16 and 17 of the first word in the layout of 7.3.
const VERSION_3: u32 = 1 << 16;
/// Tags that the layout of 7.3 does not have.
const GONE: [Tag; 3] = [Tag::BackendReuse, Tag::Backend, Tag::BackendStart];
/// Largest number that is a tag and not a marker.
const NUMBER_MAX: u8 = 253;
/// Sides in the second word of a record in the layout of 7.1: they are the upper bits there too.
const SIDES: u32 = 3 << 30;

/// Bits of a log id that hold the vxid.
pub const VXID_BITS: u64 = (1 << 51) - 1;
const CLIENT_BIT: u64 = 1 << 62;
const BACKEND_BIT: u64 = 1 << 63;

/// Writer of a record: a vxid, and the side (client or backend) that it belongs to. The ring's
/// [`Layout`] decides how many bits of the vxid are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct LogId(
    /// Bit 62 client, bit 63 backend, the lower 51 bits are the vxid.
    pub u64,
);

impl LogId {
    /// Records outside any transaction.
    pub const NONE: LogId = LogId(0);

    /// The id in the second and third word of a record in the plain form.
    #[must_use]
    pub fn of_words(low: u32, high: u32) -> LogId {
        LogId(u64::from(low) | u64::from(high) << 32)
    }

    /// A session or a client request.
    #[must_use]
    pub fn client(vxid: u64) -> LogId {
        LogId(vxid & VXID_BITS | CLIENT_BIT)
    }

    /// A backend request.
    #[must_use]
    pub fn backend(vxid: u64) -> LogId {
        LogId(vxid & VXID_BITS | BACKEND_BIT)
    }

    /// The number without the marker bits; 0 outside any transaction.
    #[must_use]
    pub fn vxid(self) -> u64 {
        self.0 & VXID_BITS
    }

    /// True for sessions and client requests.
    #[must_use]
    pub fn is_client(self) -> bool {
        self.0 & CLIENT_BIT != 0
    }

    /// True for backend requests.
    #[must_use]
    pub fn is_backend(self) -> bool {
        self.0 & BACKEND_BIT != 0
    }
}

/// Layout of the records of a ring or a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Layout {
    /// Varnish 4.1 to 7.2.
    #[default]
    V71,
    /// Varnish 7.3 and later.
    V73,
}

/// First word of a record without its length, by the number of its tag.
pub(crate) type FirstWords = [u32; 128];

static FIRST_WORDS_71: FirstWords = first_words(Layout::V71);
static FIRST_WORDS_73: FirstWords = first_words(Layout::V73);

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 2] = [Layout::V71, Layout::V73];

    /// The layout of a ring that starts with this marker.
    #[must_use]
    pub fn of_ring(marker: [u8; 8]) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| *layout.ring_marker() == marker)
    }

    /// The layout of a file that starts with this head.
    #[must_use]
    pub fn of_file(head: [u8; 4]) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| *layout.file_head() == head)
    }

    /// The layout with this name in options: the first version of Varnish that is known to have it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// The name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Layout::V71 => "7.1",
            Layout::V73 => "7.3",
        }
    }

    /// First bytes of a ring.
    #[must_use]
    pub const fn ring_marker(self) -> &'static [u8; 8] {
        match self {
            Layout::V71 => b"VSLHEAD1",
            Layout::V73 => b"VSLHEAD2",
        }
    }

    /// First bytes of a file.
    #[must_use]
    pub const fn file_head(self) -> &'static [u8; 4] {
        match self {
            Layout::V71 => b"VSL\0",
            Layout::V73 => b"VSL2",
        }
    }

    /// Words of a record, and of a batch, before its content.
    #[must_use]
    pub const fn head_words(self) -> usize {
        match self {
            Layout::V71 => 2,
            Layout::V73 => 3,
        }
    }

    /// Number of bits that a vxid has.
    #[must_use]
    pub const fn vxid_bits(self) -> u32 {
        match self {
            Layout::V71 => 30,
            Layout::V73 => 51,
        }
    }

    /// True if `Begin` and `Link` of a fragment state its depth.
    #[must_use]
    pub const fn states_depth(self) -> bool {
        match self {
            Layout::V71 => false,
            Layout::V73 => true,
        }
    }

    /// True if records can have this tag.
    #[must_use]
    pub const fn has(self, tag: Tag) -> bool {
        match self {
            Layout::V71 => true,
            Layout::V73 => !is_gone(tag as u8),
        }
    }

    /// Words of a record with this first word.
    #[must_use]
    pub const fn record_words(self, first: u32) -> usize {
        self.head_words() + payload_bytes(first).div_ceil(4)
    }

    /// Converts records of this layout and appends them to `plain`. One that runs past the end of
    /// `records` is appended as it is, and ends the conversion.
    pub fn read(self, mut records: &[u32], plain: &mut Vec<u32>) {
        while let [first, low, rest @ ..] = records {
            let (high, payload) = match (self, rest) {
                (Layout::V71, _) => (low & SIDES, rest),
                (Layout::V73, [high, payload @ ..]) => (*high, payload),
                (Layout::V73, []) => return,
            };
            let low = if self == Layout::V71 { low & !SIDES } else { *low };
            let number = self.plain_number((first >> 24) as u8);
            let words = payload_bytes(*first).div_ceil(4).min(payload.len());
            plain.extend([u32::from(number) << 24 | first & 0xFFFF, low, high]);
            plain.extend_from_slice(&payload[..words]);
            records = &payload[words..];
        }
    }

    /// Converts whole records from the plain form and appends them to `records`. Those whose tag
    /// this layout does not have are left out.
    pub fn write(self, mut plain: &[u32], records: &mut Vec<u32>) {
        while let [first, low, high, rest @ ..] = plain {
            let words = payload_bytes(*first).div_ceil(4).min(rest.len());
            let (payload, next) = rest.split_at(words);
            plain = next;
            let Some(number) = self.own_number((first >> 24) as u8) else { continue };
            let id = self.id_words(LogId::of_words(*low, *high));
            records.push(u32::from(number) << 24 | self.version() | first & 0xFFFF);
            records.extend_from_slice(&id[..self.head_words() - 1]);
            records.extend_from_slice(payload);
        }
    }

    /// First words of records without their length.
    pub(crate) fn first_words(self) -> &'static FirstWords {
        match self {
            Layout::V71 => &FIRST_WORDS_71,
            Layout::V73 => &FIRST_WORDS_73,
        }
    }

    /// The words after the first one. In the layout of 7.1 the second of them is 0, and not part of
    /// the record's head.
    #[inline]
    pub(crate) const fn id_words(self, id: LogId) -> [u32; 2] {
        let (low, high) = (id.0 as u32, (id.0 >> 32) as u32);
        match self {
            Layout::V71 => [low & !SIDES | high & SIDES, 0],
            Layout::V73 => [low, high],
        }
    }

    const fn version(self) -> u32 {
        match self {
            Layout::V71 => 0,
            Layout::V73 => VERSION_3,
        }
    }

    /// The number in the plain form of a tag that has the number `own` here. Numbers of tags that
    /// are unknown stay unknown.
    fn plain_number(self, own: u8) -> u8 {
        match self {
            Layout::V71 => own,
            Layout::V73 => {
                // Each tag that is gone moved those after it down by one.
                GONE.iter()
                    .fold(own, |number, gone| if number >= *gone as u8 { number.saturating_add(1) } else { number })
                    .min(NUMBER_MAX)
            }
        }
    }

    /// The number here of a tag with the number `plain`; `None` if the tag is gone.
    const fn own_number(self, plain: u8) -> Option<u8> {
        match self {
            Layout::V71 => Some(plain),
            Layout::V73 if is_gone(plain) => None,
            Layout::V73 => {
                let mut own = plain;
                let mut index = 0;
                while index < GONE.len() {
                    if plain > GONE[index] as u8 {
                        own -= 1;
                    }
                    index += 1;
                }
                Some(own)
            }
        }
    }
}

const fn is_gone(number: u8) -> bool {
    let mut index = 0;
    while index < GONE.len() {
        if GONE[index] as u8 == number {
            return true;
        }
        index += 1;
    }
    false
}

const fn first_words(layout: Layout) -> FirstWords {
    let mut words = [0; 128];
    let mut number = 1;
    while number <= TAGS.len() {
        // The ring's mask drops tags that are gone.
        let own = match layout.own_number(number as u8) {
            Some(own) => own,
            None => Tag::Debug as u8,
        };
        words[number] = (own as u32) << 24 | layout.version();
        number += 1;
    }
    words
}

/// Payload length in bytes that a record's first word states.
#[must_use]
pub const fn payload_bytes(first: u32) -> usize {
    (first & 0xFFFF) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_7_3_are_those_of_its_tools() {
        let own = |tag: Tag| Layout::V73.own_number(tag as u8);
        let tags =
            [Tag::BackendOpen, Tag::BackendClose, Tag::Length, Tag::ReqURL, Tag::Witness, Tag::H2RxHdr, Tag::VdpAcct];
        assert_eq!(tags.map(own), [6, 7, 11, 14, 83, 84, 93].map(Some));
        assert_eq!(GONE.map(own), [None; 3]);
        for row in TAGS.iter().filter(|row| Layout::V73.has(row.tag)) {
            let there = own(row.tag).unwrap();
            assert_eq!(Layout::V73.plain_number(there), row.tag as u8, "{}", row.name);
            assert_eq!(Layout::V73.first_words()[row.tag as usize] >> 24, u32::from(there));
            assert_eq!(Layout::V71.first_words()[row.tag as usize], (row.tag as u32) << 24);
        }
        for unknown in TAGS.len() as u8 - 2..=NUMBER_MAX {
            let plain = Layout::V73.plain_number(unknown);
            assert!(Tag::from_number(plain).is_none() && plain <= NUMBER_MAX, "{unknown} {plain}");
        }
    }

    #[test]
    fn markers_and_heads_tell_the_layouts_apart() {
        for layout in Layout::ALL {
            assert_eq!(Layout::of_ring(*layout.ring_marker()), Some(layout));
            assert_eq!(Layout::of_file(*layout.file_head()), Some(layout));
            assert_eq!(Layout::from_name(layout.name()), Some(layout));
        }
        assert_eq!((Layout::of_ring(*b"VSLHEAD3"), Layout::of_file(*b"VSL3")), (None, None));
    }
}
