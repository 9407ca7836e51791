//! The file of a recording.
//!
//! ```text
//! "COPALREC" version:u16
//! frame: compressed length:u32 crc32 of it:u32 zstd(items in postcard, one after the other)
//! frame: …
//! ```
//!
//! Numbers are little endian. The first item is [`Notes`].

use crate::exchange::Exchange;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use surface::limits::{RECORDING_EXCHANGE_BYTES_MAX, RECORDING_FRAME_BYTES_MAX};

const MAGIC: &[u8; 8] = b"COPALREC";
const VERSION: u16 = 1;
/// Bytes of items after which a frame ends.
const FRAME_BYTES: usize = 256 << 10;
/// Compression level of zstd.
const LEVEL: i32 = 3;

/// An item of a recording. Variants are encoded by their place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Item {
    /// About the recording; the first item.
    Notes(Notes),
    /// A request, in the order of their ends.
    Exchange(Box<Exchange>),
    /// Requests that the log lost before this place.
    Lost,
}

/// About a recording.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Notes {
    /// Version of the program that wrote it.
    pub program: String,
    /// Secrets and addresses are masked.
    pub is_masked: bool,
    /// Only a part of the clients or of the requests is in it.
    pub is_sample: bool,
}

/// Writes a recording.
pub struct Writer<W: Write> {
    file: W,
    items: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// Writing failed.
    pub fn begin(mut file: W, notes: &Notes) -> io::Result<Writer<W>> {
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Writer { file, items: Vec::new() };
        writer.add(&Item::Notes(notes.clone()))?;
        Ok(writer)
    }

    /// Adds an item; one that is too large becomes a request that is marked as cut.
    ///
    /// # Errors
    /// Writing failed.
    pub fn add(&mut self, item: &Item) -> io::Result<()> {
        let mut bytes = postcard::to_stdvec(item).map_err(io::Error::other)?;
        if bytes.len() > RECORDING_EXCHANGE_BYTES_MAX {
            let Item::Exchange(exchange) = item else { return Ok(()) };
            let mut exchange = exchange.clone();
            exchange.is_cut = true;
            exchange.request.fields.clear();
            exchange.request.line[1].truncate(1000);
            (exchange.lookup, exchange.response) = (None, None);
            exchange.fetches.clear();
            bytes = postcard::to_stdvec(&Item::Exchange(exchange)).map_err(io::Error::other)?;
        }
        if self.items.len() + bytes.len() > FRAME_BYTES {
            self.flush()?;
        }
        self.items.extend_from_slice(&bytes);
        Ok(())
    }

    /// The bytes of a recording whose only frame has these items, which may be invalid: for tests
    /// of the reader.
    #[must_use]
    pub fn frame(items: &[u8]) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        append(&mut bytes, items).expect("memory takes what is written");
        bytes
    }

    /// Writes what is held.
    ///
    /// # Errors
    /// Writing failed.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.items.is_empty() {
            let items = std::mem::take(&mut self.items);
            append(&mut self.file, &items)?;
        }
        self.file.flush()
    }
}

/// Writes a frame.
fn append(to: &mut impl Write, items: &[u8]) -> io::Result<()> {
    let packed = zstd::bulk::compress(items, LEVEL)?;
    to.write_all(&(packed.len() as u32).to_le_bytes())?;
    to.write_all(&crc32fast::hash(&packed).to_le_bytes())?;
    to.write_all(&packed)
}

/// Reads a recording.
pub struct Reader<R: Read> {
    file: R,
    notes: Notes,
    items: Vec<u8>,
    at: usize,
    damage: Option<&'static str>,
}

impl<R: Read> Reader<R> {
    /// Opens a recording.
    ///
    /// # Errors
    /// Reading failed, or this is not a recording that this version can read; in words.
    pub fn open(mut file: R) -> Result<Reader<R>, String> {
        let mut head = [0; MAGIC.len() + 2];
        file.read_exact(&mut head).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "not a recording: it is too short".to_owned(),
            _ => error.to_string(),
        })?;
        let (magic, version) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err("not a recording of copal record".to_owned());
        }
        let version = u16::from_le_bytes([version[0], version[1]]);
        if version != VERSION {
            return Err(format!("a recording of version {version}; this program reads version {VERSION}"));
        }
        let mut reader = Reader { file, notes: Notes::default(), items: Vec::new(), at: 0, damage: None };
        match reader.next() {
            Some(Item::Notes(notes)) => reader.notes = notes,
            _ => return Err("its first part is damaged".to_owned()),
        }
        Ok(reader)
    }

    /// About the recording.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The reason why reading ended early, after the last item; `None` = the file was whole.
    #[must_use]
    pub fn damage(&self) -> Option<&'static str> {
        self.damage
    }

    /// Reads the next frame. False at the end.
    fn fill(&mut self) -> Result<bool, &'static str> {
        let mut head = [0; 8];
        let mut filled = 0;
        while filled < head.len() {
            match self.file.read(&mut head[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err("it ends within a frame"),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err("it cannot be read"),
            }
        }
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, sum) = (number(0) as usize, number(4));
        if length > RECORDING_FRAME_BYTES_MAX {
            return Err("a frame is longer than allowed");
        }
        let mut packed = vec![0; length];
        self.file.read_exact(&mut packed).map_err(|_| "it ends within a frame")?;
        if crc32fast::hash(&packed) != sum {
            return Err("a frame is damaged");
        }
        self.items = zstd::bulk::decompress(&packed, RECORDING_FRAME_BYTES_MAX).map_err(|_| "a frame is damaged")?;
        self.at = 0;
        Ok(true)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        while self.damage.is_none() && self.at == self.items.len() {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(damage) => self.damage = Some(damage),
            }
        }
        if self.damage.is_some() {
            return None;
        }
        match postcard::take_from_bytes::<Item>(&self.items[self.at..]) {
            Ok((item, rest)) => {
                self.at = self.items.len() - rest.len();
                Some(item)
            }
            Err(_) => {
                self.damage = Some("a frame holds something else than requests");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::{Line, gather};
    use surface::tag::Tag;

    fn exchange(number: u32) -> Item {
        let url = format!("/{number}");
        let line = |tag, text| Line { vxid: 2, tag, text };
        let lines = [
            line(Tag::Begin, b"req 1 rxreq" as &[u8]),
            line(Tag::Timestamp, b"Start: 100.5 0 0"),
            line(Tag::ReqMethod, b"GET"),
            line(Tag::ReqURL, url.as_bytes()),
            line(Tag::VCLCall, b"RECV"),
        ];
        Item::Exchange(Box::new(gather(&lines, 255).unwrap()))
    }

    fn written(count: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(&mut bytes, &Notes { is_masked: true, ..Notes::default() }).unwrap();
        for number in 0..count {
            writer.add(&exchange(number)).unwrap();
            if number % 10 == 9 {
                writer.flush().unwrap();
            }
        }
        writer.flush().unwrap();
        bytes
    }

    #[test]
    fn everything_comes_back() {
        let bytes = written(25);
        let mut reader = Reader::open(&bytes[..]).unwrap();
        assert!(reader.notes().is_masked);
        let items: Vec<Item> = reader.by_ref().collect();
        assert_eq!(items, (0..25).map(exchange).collect::<Vec<_>>());
        assert_eq!(reader.damage(), None);
    }

    #[test]
    fn file_that_is_cut_or_altered_anywhere_yields_what_comes_before() {
        let bytes = written(30);
        for end in 0..bytes.len() {
            let Ok(mut reader) = Reader::open(&bytes[..end]) else { continue };
            let items: Vec<Item> = reader.by_ref().collect();
            assert!(items.len().is_multiple_of(10) && items.len() < 30, "{end}: {}", items.len());
            assert!(items.iter().enumerate().all(|(number, item)| *item == exchange(number as u32)));
        }
        for place in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[place] ^= 1;
            let Ok(reader) = Reader::open(&bytes[..]) else { continue };
            let items: Vec<Item> = reader.collect();
            assert!(items.iter().enumerate().all(|(number, item)| *item == exchange(number as u32)), "{place}");
        }
    }

    #[test]
    fn bombs_are_refused() {
        let mut bytes = written(0);
        let packed = zstd::bulk::compress(&vec![0; RECORDING_FRAME_BYTES_MAX + 1], 19).unwrap();
        bytes.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&packed).to_le_bytes());
        bytes.extend_from_slice(&packed);
        let mut reader = Reader::open(&bytes[..]).unwrap();
        assert_eq!((reader.next(), reader.damage()), (None, Some("a frame is damaged")));
        let Err(error) = Reader::open(&b"COPALREC\x02\x00"[..]) else { panic!("another version") };
        assert!(error.contains("version 2"), "{error}");
        assert!(Reader::open(&b"VSL"[..]).is_err());
    }

    #[test]
    fn giant_request_is_marked_as_cut() {
        let Item::Exchange(mut giant) = exchange(1) else { unreachable!() };
        giant.request.fields.push((b"a".to_vec(), vec![b'x'; RECORDING_EXCHANGE_BYTES_MAX]));
        let mut bytes = Vec::new();
        let mut writer = Writer::begin(&mut bytes, &Notes::default()).unwrap();
        writer.add(&Item::Exchange(giant)).unwrap();
        writer.flush().unwrap();
        let Some(Item::Exchange(read)) = Reader::open(&bytes[..]).unwrap().next() else { panic!("an exchange") };
        assert!(read.is_cut && read.request.fields.is_empty());
    }
}
