//! The log of the metadata in the file: the knowledge of the bodies at a start after a reboot.
//!
//! ```text
//! file     header, header (2048 bytes each; the valid one with the higher sequence counts), area,
//!          area, bodies
//! header   magic | sequence | generation | area in use | length of the file | length of an area |
//!          granularity | journal | pairing | areas at | crc
//! area     entries of one generation, without gaps; bytes after the last one have a wrong checksum
//! entry    length of the payload (32) | CRC-32 of generation and payload (32) | payload, to a
//!          multiple of 8
//! payload  1: an object with everything but its body · 2: id, removed · 3: id, new lifetime
//! ```
//!
//! Entries are written in the order of the events, and each write waits for the disk, so that after
//! a power failure a prefix of that order is on the disk: an object whose removal was waited for
//! never comes back. When an area is nearly full, the live entries are written to the other one,
//! and the header switches to it when all of them are on the disk. The order of a body and its
//! entry on the disk is undefined: a piece that does not match its entry is never delivered.

use super::device::Device;
use super::map::map_bytes;
use crate::layout::{KEY_BYTES, body_length, head_length, vary_length};
use crc32fast::Hasher;
use std::io::{self, IoSlice};

const MAGIC: u64 = u64::from_le_bytes(*b"CopalFl1");
const HEADER_BYTES: usize = 88;
const SLOT_BYTES: u64 = 2048;
/// Offset of the first area.
pub(crate) const AREAS_AT: u64 = 4096;
const ENTRY_HEADER_BYTES: usize = 8;
/// Longest entry: a head, a variant key, the map of a long body and an annex.
const ENTRY_BYTES_MAX: usize = 1 << 30;
const INSERTED: u8 = 1;
const REMOVED: u8 = 2;
const LIFETIME: u8 = 3;
const FIXED_WORDS: usize = 9;

/// The header of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    /// Of the area in use; 0 = none is.
    pub(crate) generation: u64,
    /// 0 or 1.
    pub(crate) area: u64,
    pub(crate) file_bytes: u64,
    pub(crate) area_bytes: u64,
    pub(crate) granularity: u64,
    pub(crate) journal: u64,
    /// The pairing value that the memory file must contain too.
    pub(crate) pairing: u64,
    /// Offset of the areas in the file; 0 = behind the headers.
    pub(crate) areas_at: u64,
}

impl Header {
    /// Offset of an area in the file.
    pub(crate) fn area_at(&self, area: u64) -> u64 {
        self.areas_at.max(AREAS_AT) + area * self.area_bytes
    }

    /// Both areas.
    pub(crate) fn areas(&self) -> std::ops::Range<u64> {
        self.area_at(0)..self.area_at(2)
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let words = [
            MAGIC,
            self.sequence,
            self.generation,
            self.area,
            self.file_bytes,
            self.area_bytes,
            self.granularity,
            self.journal,
            self.pairing,
            self.areas_at,
        ];
        let mut bytes = [0; HEADER_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = u64::from(crc32fast::hash(&bytes[..HEADER_BYTES - 8]));
        bytes[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Header> {
        let word = |index: usize| bytes[index * 8..][..8].try_into().map_or(0, u64::from_le_bytes);
        let sum = u64::from(crc32fast::hash(&bytes[..HEADER_BYTES - 8]));
        (word(0) == MAGIC && word(10) == sum && word(3) < 2 && word(5) <= 1 << 48 && word(9) <= 1 << 56).then(|| {
            Header {
                sequence: word(1),
                generation: word(2),
                area: word(3),
                file_bytes: word(4),
                area_bytes: word(5),
                granularity: word(6),
                journal: word(7),
                pairing: word(8),
                areas_at: word(9),
            }
        })
    }

    /// The header of a file; `None` if it has none.
    ///
    /// # Errors
    /// Any error that the disk reports.
    pub(crate) fn read(device: &dyn Device) -> io::Result<Option<Header>> {
        let mut found: Option<Header> = None;
        for slot in 0..2 {
            let mut bytes = [0; HEADER_BYTES];
            match device.read(&mut bytes, slot * SLOT_BYTES) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(found),
                Err(error) => return Err(error),
            }
            let header = Header::decode(&bytes);
            if header.is_some_and(|new| found.is_none_or(|old| new.sequence > old.sequence)) {
                found = header;
            }
        }
        Ok(found)
    }

    /// Writes it over the older of the two, and waits for the disk.
    ///
    /// # Errors
    /// Any error that the disk reports; the previous header is still valid then.
    pub(crate) fn write(&mut self, device: &dyn Device) -> io::Result<()> {
        let next = Header { sequence: self.sequence + 1, ..*self };
        let bytes = next.encode();
        device.write(&mut [IoSlice::new(&bytes)], next.sequence % 2 * SLOT_BYTES, true)?;
        *self = next;
        Ok(())
    }
}

/// The words of a record as the log keeps them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Record {
    pub(crate) flags: u16,
    pub(crate) id: u64,
    pub(crate) xid: u32,
    pub(crate) lengths: u64,
    pub(crate) origin: u64,
    pub(crate) lifetime: u64,
    pub(crate) keep_ban: u64,
    pub(crate) used: u64,
    pub(crate) key: [u8; KEY_BYTES],
    /// Vary, head, map and annex.
    pub(crate) rest: Vec<u8>,
    pub(crate) annex_bytes: u64,
}

impl Record {
    /// Vary and head together, the map, the annex; `None` if the lengths are impossible.
    pub(crate) fn parts(&self) -> Option<(&[u8], &[u8], &[u8])> {
        let fixed = vary_length(self.origin) + head_length(self.lengths);
        let annex = usize::try_from(self.annex_bytes).ok()?;
        let (fixed, rest) = self.rest.split_at_checked(fixed)?;
        let (map, annex) = rest.split_at_checked(rest.len().checked_sub(annex)?)?;
        let extents = u64::from_le_bytes(map.get(8..16)?.try_into().ok()?);
        let whole = extents < 1 << 24 && map.len() as u64 == map_bytes(body_length(self.lengths), extents);
        whole.then_some((fixed, map, annex))
    }
}

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// An object was inserted.
    Inserted(Box<Record>),
    /// An object was removed.
    Removed(u64),
    /// The lifetime of an object has changed: id, the words LIFETIME and KEEP_BAN.
    Lifetime(u64, u64, u64),
}

impl Entry {
    /// The payload.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let words = |kind: u8, words: &[u64]| {
            let mut bytes = u64::from(kind).to_le_bytes().to_vec();
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            bytes
        };
        match self {
            Entry::Removed(id) => words(REMOVED, &[*id]),
            Entry::Lifetime(id, lifetime, keep_ban) => words(LIFETIME, &[*id, *lifetime, *keep_ban]),
            Entry::Inserted(record) => {
                let mut bytes = words(
                    INSERTED,
                    &[
                        u64::from(record.flags),
                        record.id,
                        u64::from(record.xid),
                        record.lengths,
                        record.origin,
                        record.lifetime,
                        record.keep_ban,
                        record.used,
                        record.annex_bytes,
                    ],
                );
                bytes.extend_from_slice(&record.key);
                bytes.extend_from_slice(&record.rest);
                bytes
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Entry> {
        let word = |index: usize| Some(u64::from_le_bytes(bytes.get(index * 8..index * 8 + 8)?.try_into().ok()?));
        match u8::try_from(word(0)?).ok()? {
            REMOVED => Some(Entry::Removed(word(1)?)),
            LIFETIME => Some(Entry::Lifetime(word(1)?, word(2)?, word(3)?)),
            INSERTED => {
                let (key, rest) = bytes.get((FIXED_WORDS + 1) * 8..)?.split_first_chunk::<KEY_BYTES>()?;
                Some(Entry::Inserted(Box::new(Record {
                    flags: u16::try_from(word(1)?).ok()?,
                    id: word(2)?,
                    xid: u32::try_from(word(3)?).ok()?,
                    lengths: word(4)?,
                    origin: word(5)?,
                    lifetime: word(6)?,
                    keep_ban: word(7)?,
                    used: word(8)?,
                    key: *key,
                    annex_bytes: word(9)?,
                    rest: rest.to_vec(),
                })))
            }
            _ => None,
        }
    }
}

fn checksum(generation: u64, payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&generation.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// Appends an entry with this payload to the bytes that are going to be written.
pub(crate) fn frame(into: &mut Vec<u8>, generation: u64, payload: &[u8]) {
    into.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    into.extend_from_slice(&checksum(generation, payload).to_le_bytes());
    into.extend_from_slice(payload);
    into.resize(into.len().next_multiple_of(8), 0);
}

/// Bytes that an entry with such a payload takes.
pub(crate) fn framed_bytes(payload_bytes: usize) -> u64 {
    (ENTRY_HEADER_BYTES + payload_bytes).next_multiple_of(8) as u64
}

/// Reads the entries of an area in order, up to the first invalid one; returns the number of bytes
/// they take.
///
/// # Errors
/// Any error that the disk reports.
pub(crate) fn replay(device: &dyn Device, header: &Header, mut visit: impl FnMut(Entry)) -> io::Result<u64> {
    const STEP: usize = 1 << 20;
    let (begin, length) = (header.area_at(header.area), header.area_bytes);
    let (mut buffer, mut used, mut read, mut position) = (Vec::<u8>::new(), 0, 0, 0);
    // Makes sure that the wanted number of bytes from `used` on are in the buffer, as far as the
    // area extends.
    let mut fill = |buffer: &mut Vec<u8>, used: &mut usize, wanted: usize| -> io::Result<bool> {
        while buffer.len() - *used < wanted {
            if read >= length {
                return Ok(false);
            }
            buffer.drain(..std::mem::take(used));
            let step = (STEP as u64).min(length - read) as usize;
            let from = buffer.len();
            buffer.resize(from + step, 0);
            device.read(&mut buffer[from..], begin + read)?;
            read += step as u64;
        }
        Ok(true)
    };
    loop {
        if !fill(&mut buffer, &mut used, ENTRY_HEADER_BYTES)? {
            return Ok(position);
        }
        let number = |at: usize| buffer[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (payload_bytes, sum) = (number(used) as usize, number(used + 4));
        let whole = framed_bytes(payload_bytes);
        let possible = (8..=ENTRY_BYTES_MAX).contains(&payload_bytes) && whole <= length - position;
        if !possible || !fill(&mut buffer, &mut used, whole as usize)? {
            return Ok(position);
        }
        let payload = &buffer[used + ENTRY_HEADER_BYTES..][..payload_bytes];
        let Some(entry) =
            Some(payload).filter(|bytes| checksum(header.generation, bytes) == sum).and_then(Entry::decode)
        else {
            return Ok(position);
        };
        visit(entry);
        used += whole as usize;
        position += whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> std::fs::File {
        let file = crate::memory::memory_file(c"test").unwrap();
        file.set_len(1 << 20).unwrap();
        file
    }

    fn header() -> Header {
        Header { generation: 7, area_bytes: 64 << 10, file_bytes: 1 << 20, granularity: 4096, ..Header::default() }
    }

    fn entries() -> Vec<Entry> {
        let record = Record {
            flags: 4,
            id: 1 << 40,
            xid: 9,
            lengths: 100 << 24 | 4,
            origin: 77 << 16 | 3,
            rest: b"varhead".iter().copied().chain(super::super::map::encode(1 << 40, &[], &[5, 6, 7])).collect(),
            ..Record::default()
        };
        vec![Entry::Inserted(Box::new(record)), Entry::Removed(3), Entry::Lifetime(4, 5, 6)]
    }

    #[test]
    fn a_log_is_read_up_to_where_it_was_torn_and_no_other_generation_is_taken_for_it() {
        let (file, header) = (file(), header());
        let mut bytes = Vec::new();
        let mut ends = vec![0];
        for entry in entries() {
            frame(&mut bytes, 7, &entry.encode());
            ends.push(bytes.len());
        }
        // Left behind by an earlier generation.
        frame(&mut bytes, 6, &Entry::Removed(99).encode());
        for cut in 0..bytes.len() {
            let mut torn = bytes.clone();
            torn[cut] ^= 0x40;
            file.write(&mut [IoSlice::new(&torn)], header.area_at(0), false).unwrap();
            let mut found = Vec::new();
            let end = replay(&file, &header, |entry| found.push(entry)).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            // Padding may be damaged without harm.
            assert!(found.len() >= whole && found[..] == entries()[..found.len()], "{cut}");
            assert!(ends.contains(&(end as usize)), "{cut}");
        }
    }

    #[test]
    fn a_header_is_replaced_without_ever_being_lost() {
        let file = file();
        assert_eq!(Header::read(&file).unwrap(), None);
        let mut header = header();
        header.write(&file).unwrap();
        let before = header;
        header.generation = 8;
        header.write(&file).unwrap();
        assert_eq!(Header::read(&file).unwrap(), Some(header));
        // The newer one is torn.
        file.write(&mut [IoSlice::new(&[1])], header.sequence % 2 * SLOT_BYTES + 20, false).unwrap();
        assert_eq!(Header::read(&file).unwrap(), Some(before));
    }

    #[test]
    fn impossible_lengths_are_refused() {
        let Entry::Inserted(record) = entries().remove(0) else { panic!() };
        assert!(record.parts().is_none(), "100 bytes of body are one piece, not three");
        let right = Record { lengths: 140_000 << 24 | 4, ..*record.clone() };
        assert_eq!(right.parts().unwrap().0, b"varhead");
        assert!(Record { lengths: 140_000 << 24 | 4000, ..*record.clone() }.parts().is_none());
        assert!(Record { annex_bytes: u64::MAX, ..*record }.parts().is_none());
    }
}
