//! Header compression under full control of the script, which selects the representation of each
//! header.
//!
//! A library would choose indexing and Huffman coding itself, and could not send anything invalid.
//! *Invariants:* a table never exceeds its size; the decoded form of a block is bounded by
//! [`HEADERS_MAX`] and [`LIST_BYTES_MAX`], whatever the block contains. Source: RFC 7541.

use field_coding::huffman::{self, NoText};
use field_coding::integer::{self, Unreadable};
use std::collections::VecDeque;

use super::static_table::STATIC_TABLE;

/// Most headers of one block.
pub const HEADERS_MAX: usize = 1024;
/// Most bytes of the names and values of one block.
pub const LIST_BYTES_MAX: usize = 16 << 20;
/// The largest table that a peer may request, in bytes.
const PEER_TABLE_BYTES_MAX: usize = 16 << 20;
/// Most bytes of a number after the first: enough for 32 bits.
const MORE_BYTES_MAX: u32 = 5;
/// Size of an entry besides its name and value, in bytes.
const ENTRY_BYTES: usize = 32;

/// A name and a value.
pub type Header = (Vec<u8>, Vec<u8>);

/// Effect of a header on the table of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The header is added.
    Added,
    /// The header is not added.
    Not,
    /// The header is not added, nor by any proxy that passes it on.
    Never,
}

/// A text of a header, and its coding (Huffman or not).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub bytes: Vec<u8>,
    /// True if it is sent Huffman-coded.
    pub is_packed: bool,
}

/// The name of a header in its sent form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// The name of an entry of the table.
    Index(u32),
    /// Written out.
    Text(Text),
}

/// A header in its sent form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// An entry of the table.
    Indexed(u32),
    /// Name and value.
    Literal(Indexing, Name, Text),
}

impl Field {
    /// A header written out plainly.
    #[must_use]
    pub fn plain(name: &[u8], value: &[u8]) -> Field {
        let text = |bytes: &[u8]| Text { bytes: bytes.to_vec(), is_packed: false };
        Field::Literal(Indexing::Not, Name::Text(text(name)), text(value))
    }
}

/// The table of one direction.
pub struct Table {
    /// The newest first.
    entries: VecDeque<Header>,
    bytes: usize,
    bytes_max: usize,
}

impl Table {
    /// An empty table of this size, in bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Table {
        Table { entries: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Bytes of its entries.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Most bytes of its entries.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Number of its entries.
    #[must_use]
    pub fn length(&self) -> usize {
        self.entries.len()
    }

    /// The entry of this index: from 1 those of every table, from 62 those of this table.
    #[must_use]
    pub fn entry(&self, index: u32) -> Option<(&[u8], &[u8])> {
        let index = (index as usize).checked_sub(1)?;
        match STATIC_TABLE.get(index) {
            Some((name, value)) => Some((name.as_bytes(), value.as_bytes())),
            None => self.entries.get(index - STATIC_TABLE.len()).map(|(name, value)| (&name[..], &value[..])),
        }
    }

    /// Changes the size; the oldest entries are evicted.
    pub fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.shrink_to(bytes_max);
    }

    fn shrink_to(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some((name, value)) = self.entries.pop_back()
        {
            self.bytes -= name.len() + value.len() + ENTRY_BYTES;
        }
    }

    fn add(&mut self, header: Header) {
        let bytes = header.0.len() + header.1.len() + ENTRY_BYTES;
        self.shrink_to(self.bytes_max.saturating_sub(bytes));
        // One that is larger than the table leaves it empty.
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.entries.push_front(header);
        }
    }

    /// Appends a header to a block.
    pub fn encode(&mut self, field: &Field, block: &mut Vec<u8>) {
        let (indexing, name, value) = match field {
            Field::Indexed(index) => return integer::write(u64::from(*index), 7, 0x80, block),
            Field::Literal(indexing, name, value) => (*indexing, name, value),
        };
        let (first, prefix) = match indexing {
            Indexing::Added => (0x40, 6),
            Indexing::Not => (0, 4),
            Indexing::Never => (0x10, 4),
        };
        let name = match name {
            Name::Index(index) => {
                integer::write(u64::from(*index), prefix, first, block);
                self.entry(*index).map(|(name, _)| name.to_vec())
            }
            Name::Text(text) => {
                block.push(first);
                push_text(block, text);
                Some(text.bytes.clone())
            }
        };
        push_text(block, value);
        // A wrong index can be sent, but then there is no name to store.
        if let Some(name) = name.filter(|_| indexing == Indexing::Added) {
            self.add((name, value.bytes.clone()));
        }
    }

    /// Reads a block.
    ///
    /// # Errors
    /// The error in the block; the table contains the headers before it.
    pub fn decode(&mut self, block: &[u8]) -> Result<Vec<Header>, &'static str> {
        let mut reader = Reader { rest: block };
        let mut headers = Vec::new();
        let mut bytes = 0;
        while let Some(first) = reader.rest.first().copied() {
            let Some(header) = self.decode_one(&mut reader, first)? else { continue };
            bytes += header.0.len() + header.1.len();
            if headers.len() == HEADERS_MAX || bytes > LIST_BYTES_MAX {
                return Err("too many headers");
            }
            headers.push(header);
        }
        Ok(headers)
    }

    /// One header; `None` for a change of the table's size.
    fn decode_one(&mut self, reader: &mut Reader, first: u8) -> Result<Option<Header>, &'static str> {
        const NO_ENTRY: &str = "an index without an entry";
        if first & 0x80 != 0 {
            let (name, value) = self.entry(reader.number(7)?).ok_or(NO_ENTRY)?;
            return Ok(Some((name.to_vec(), value.to_vec())));
        }
        if first & 0xe0 == 0x20 {
            let bytes_max = reader.number(5)? as usize;
            if bytes_max > self.bytes_max.max(PEER_TABLE_BYTES_MAX) {
                return Err("a table that is too large");
            }
            self.resize(bytes_max);
            return Ok(None);
        }
        let is_added = first & 0x40 != 0;
        let name = match reader.number(if is_added { 6 } else { 4 })? {
            0 => reader.text()?,
            index => self.entry(index).ok_or(NO_ENTRY)?.0.to_vec(),
        };
        let header = (name, reader.text()?);
        if is_added {
            self.add(header.clone());
        }
        Ok(Some(header))
    }
}

fn push_text(block: &mut Vec<u8>, text: &Text) {
    let packed;
    let (flag, bytes) = if text.is_packed {
        packed = huffman::encode(&text.bytes);
        (0x80, &packed)
    } else {
        (0, &text.bytes)
    };
    integer::write(bytes.len() as u64, 7, flag, block);
    block.extend_from_slice(bytes);
}

/// The unread rest of a block.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn number(&mut self, prefix: u32) -> Result<u32, &'static str> {
        let number = integer::read(&mut self.rest, prefix, MORE_BYTES_MAX).map_err(|why| match why {
            Unreadable::Ended => "the block ends too early",
            Unreadable::TooLong => "a number that is too long",
        })?;
        u32::try_from(number).map_err(|_| "a number that is too large")
    }

    fn text(&mut self) -> Result<Vec<u8>, &'static str> {
        let is_packed = self.rest.first().is_some_and(|first| first & 0x80 != 0);
        let length = self.number(7)? as usize;
        let (text, rest) = self.rest.split_at_checked(length).ok_or("a text that is longer than its block")?;
        self.rest = rest;
        if !is_packed {
            return Ok(text.to_vec());
        }
        let mut unpacked = Vec::new();
        huffman::decode(text, &mut unpacked).map_err(|NoText| "no Huffman code")?;
        Ok(unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &str, is_packed: bool) -> Text {
        Text { bytes: bytes.as_bytes().to_vec(), is_packed }
    }

    #[test]
    fn encoded_fields_are_decoded() {
        let (mut encoder, mut decoder) = (Table::new(4096), Table::new(4096));
        let mut block = Vec::new();
        let long = "x".repeat(1000);
        for field in [
            Field::Indexed(2),
            Field::plain(b"a", b"b"),
            Field::Literal(Indexing::Added, Name::Text(text("foo", true)), text("bar", false)),
            Field::Literal(Indexing::Added, Name::Index(58), text("agent", true)),
            Field::Literal(Indexing::Never, Name::Index(63), text(&long, false)),
            Field::Indexed(62),
        ] {
            encoder.encode(&field, &mut block);
        }
        let headers = decoder.decode(&block).unwrap();
        let shown: Vec<_> = headers
            .iter()
            .map(|(name, value)| (str::from_utf8(name).unwrap(), str::from_utf8(value).unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                (":method", "GET"),
                ("a", "b"),
                ("foo", "bar"),
                ("user-agent", "agent"),
                ("foo", &long),
                ("user-agent", "agent")
            ]
        );
        assert_eq!((decoder.length(), decoder.bytes()), (2, 38 + 47));
        assert_eq!(decoder.entry(62), Some((&b"user-agent"[..], &b"agent"[..])));
        assert_eq!(decoder.bytes(), encoder.bytes());
    }

    #[test]
    fn the_oldest_entries_leave_a_small_table() {
        let mut table = Table::new(80);
        let mut block = Vec::new();
        for name in ["a", "b", "c"] {
            table.encode(&Field::Literal(Indexing::Added, Name::Text(text(name, false)), text("1", false)), &mut block);
        }
        assert_eq!((table.length(), table.bytes()), (2, 68));
        assert_eq!(table.entry(63), Some((&b"b"[..], &b"1"[..])));
        assert_eq!(table.entry(64), None);
        table.resize(40);
        assert_eq!(table.length(), 1);
        let large = Field::Literal(Indexing::Added, Name::Text(text("large", false)), text("value", false));
        table.encode(&large, &mut block);
        assert_eq!((table.length(), table.bytes()), (0, 0));
    }

    #[test]
    fn broken_blocks_are_refused() {
        for block in
            [&b"\x80"[..], b"\xbe", b"\x40", b"\x40\x05a", b"\x00\x81\xff\x00", b"\xff\xff\xff\xff\xff\xff\x01"]
        {
            assert!(Table::new(4096).decode(block).is_err(), "{block:?}");
        }
    }

    #[test]
    fn a_small_block_cannot_become_a_large_list() {
        let mut table = Table::new(4096);
        assert_eq!(table.decode(&vec![0x82; HEADERS_MAX + 1]), Err("too many headers"));
        let mut table = Table::new(1 << 20);
        let mut block = Vec::new();
        let large = Text { bytes: vec![b'x'; 1 << 19], is_packed: false };
        Table::new(1 << 20).encode(&Field::Literal(Indexing::Added, Name::Index(1), large), &mut block);
        block.extend([0xbe; 100]);
        assert_eq!(table.decode(&block), Err("too many headers"));
    }
}
