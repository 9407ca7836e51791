//! An append-only list of byte strings that survives the worker: the bans.
//!
//! ```text
//! file   magic, version | offset of the first entry | lowest sequence number to be used |
//!        identity | zeros up to 64 bytes
//! entry  length (32) | crc32 of the rest (32) | sequence (64) | bytes | zeros to a multiple of 8
//! ```
//!
//! Entries are written through the descriptor, with one `write` each. A last entry is torn if the
//! file ends within it; it is cut off when the file is opened. Any other error is damage. To drop
//! old entries, the first-entry offset (one aligned word) is moved and the file's blocks are given
//! back: the offsets only grow, memory use does not. *Lock*: one mutex, held during the write.
//!
//! *Invariant:* no storage is taken over without the journal with which it was filled. A ban leaves
//! a journal on a disk only after the removal of its objects is on that disk.

use crate::memory::{PAGE_BYTES, memory_file, punch_hole};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

const MAGIC: u64 = u64::from_le_bytes(*b"CopalJn1");
const START_AT: u64 = 8;
const FLOOR_AT: u64 = 16;
const IDENTITY_AT: u64 = 24;
const HEADER_BYTES: u64 = 64;
const ENTRY_HEADER_BYTES: u64 = 16;
/// Longest entry.
const ENTRY_BYTES_MAX: usize = 16 << 20;

struct State {
    /// Offsets and sequence numbers of the entries, oldest first.
    entries: VecDeque<(u64, u64)>,
    end: u64,
    next_sequence: u64,
}

/// An append-only list of byte strings in a memory file that survives the worker. Internally
/// locked.
pub struct Journal {
    file: File,
    identity: u64,
    state: Mutex<State>,
}

fn read_u64(file: &File, at: u64) -> io::Result<u64> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at)?;
    Ok(u64::from_le_bytes(word))
}

/// An unguessable number that no two journals, files or generations share; not 0.
pub(crate) fn new_identity() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish().max(1)
}

fn checksum(sequence: u64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&sequence.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// The entry at `at` and the offset after it; `None` where the file ends before the entry does, as
/// after a kill.
///
/// # Errors
/// Reading failed; `InvalidData` for bytes that no `append` wrote, completely or in part.
fn read_entry(file: &File, at: u64, file_bytes: u64) -> io::Result<Option<(u64, Vec<u8>, u64)>> {
    if file_bytes.saturating_sub(at) < ENTRY_HEADER_BYTES {
        return Ok(None);
    }
    let mut header = [0; ENTRY_HEADER_BYTES as usize];
    file.read_exact_at(&mut header, at)?;
    let [a, b, c, d, e, f, g, h, sequence @ ..] = header;
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    let sequence = u64::from_le_bytes(sequence);
    if header == [0; ENTRY_HEADER_BYTES as usize] && is_zero(file, at, file_bytes)? {
        // After a power failure the file may be longer than the data that reached it.
        return Ok(None);
    }
    if len > ENTRY_BYTES_MAX || sequence == 0 {
        return Err(damaged());
    }
    if file_bytes - at - ENTRY_HEADER_BYTES < len as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, at + ENTRY_HEADER_BYTES)?;
    let behind = at + ENTRY_HEADER_BYTES + (len as u64).next_multiple_of(8);
    if checksum(sequence, &bytes) != u32::from_le_bytes([e, f, g, h]) {
        // The last entry may be torn: it was not confirmed before all of it was on the disk.
        return if behind >= file_bytes { Ok(None) } else { Err(damaged()) };
    }
    Ok(Some((sequence, bytes, behind)))
}

fn is_zero(file: &File, mut at: u64, end: u64) -> io::Result<bool> {
    let mut piece = [0; 4096];
    while at < end {
        let length = piece.len().min((end - at) as usize);
        file.read_exact_at(&mut piece[..length], at)?;
        if piece[..length].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += length as u64;
    }
    Ok(true)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged ban journal")
}

impl Journal {
    /// A journal in a memory file of its own.
    ///
    /// # Errors
    /// The memory file could not be created.
    pub fn in_memory() -> io::Result<Journal> {
        Journal::open(memory_file(c"copal-journal")?.into())
    }

    /// Opens (or formats, when empty) a journal. A torn last entry is dropped.
    ///
    /// # Errors
    /// Reading or writing failed; `InvalidData` if the file holds something else, or an entry is
    /// damaged: the bans in that entry and those after it are lost, and continuing without them
    /// would bring banned objects back.
    pub fn open(file: OwnedFd) -> io::Result<Journal> {
        let file = File::from(file);
        let mut file_bytes = file.metadata()?.len();
        let magic = if file_bytes < HEADER_BYTES { 0 } else { read_u64(&file, 0)? };
        if magic == 0 {
            file.set_len(0)?;
            file.set_len(HEADER_BYTES)?;
            file.write_all_at(&HEADER_BYTES.to_le_bytes(), START_AT)?;
            file.write_all_at(&1u64.to_le_bytes(), FLOOR_AT)?;
            file.write_all_at(&new_identity().to_le_bytes(), IDENTITY_AT)?;
            file.sync_data()?;
            file.write_all_at(&MAGIC.to_le_bytes(), 0)?;
            file_bytes = HEADER_BYTES;
        } else if magic != MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ban journal"));
        }
        let mut end = read_u64(&file, START_AT)?;
        let mut next_sequence = read_u64(&file, FLOOR_AT)?.max(1);
        if !(HEADER_BYTES..=file_bytes).contains(&end) {
            return Err(damaged());
        }
        let (mut entries, mut previous) = (VecDeque::new(), 0);
        while let Some((sequence, _, behind)) = read_entry(&file, end, file_bytes)? {
            if sequence <= previous {
                return Err(damaged());
            }
            entries.push_back((sequence, end));
            previous = sequence;
            end = behind;
        }
        next_sequence = next_sequence.max(previous.saturating_add(1));
        if end < file_bytes {
            // Cut off the torn rest, so that nothing in it is ever taken for an entry. An intact
            // journal can be opened on a disk that refuses writes: then bans are refused, but a
            // worker can start.
            file.set_len(end)?;
        }
        let identity = read_u64(&file, IDENTITY_AT)?;
        Ok(Journal { file, identity, state: Mutex::new(State { entries, end, next_sequence }) })
    }

    /// Appends an entry and returns its sequence number; numbers start at 1, only grow, and are
    /// never used twice. Durable on return.
    ///
    /// # Errors
    /// Writing failed, or the entry is longer than 16 MiB.
    pub fn append(&self, entry: &[u8]) -> io::Result<u64> {
        if entry.len() > ENTRY_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "entry too long"));
        }
        let mut state = self.state.lock();
        let sequence = state.next_sequence;
        // Only a damaged journal has such numbers; starting over would bring banned objects back.
        let next_sequence = sequence.checked_add(1).ok_or(io::ErrorKind::InvalidData)?;
        let padded = (entry.len() as u64).next_multiple_of(8);
        let mut image = Vec::with_capacity((ENTRY_HEADER_BYTES + padded) as usize);
        image.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        image.extend_from_slice(&checksum(sequence, entry).to_le_bytes());
        image.extend_from_slice(&sequence.to_le_bytes());
        image.extend_from_slice(entry);
        image.resize((ENTRY_HEADER_BYTES + padded) as usize, 0);
        if let Err(error) = self.file.write_all_at(&image, state.end) {
            // Remove the partial entry, since a shorter entry may later be written over it.
            let _ = self.file.set_len(state.end);
            return Err(error);
        }
        let at = state.end;
        state.entries.push_back((sequence, at));
        state.end += image.len() as u64;
        state.next_sequence = next_sequence;
        Ok(sequence)
    }

    /// The entries with their sequence numbers, oldest first.
    ///
    /// # Errors
    /// Reading failed.
    pub fn entries(&self) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let state = self.state.lock();
        let mut found = Vec::with_capacity(state.entries.len());
        for &(sequence, at) in &state.entries {
            let (_, bytes, _) = read_entry(&self.file, at, state.end)?.ok_or_else(damaged)?;
            found.push((sequence, bytes));
        }
        Ok(found)
    }

    /// A number that no other journal has; 0 = the journal was made before such numbers existed.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Waits until all appended entries are on the disk, for a journal in a file on a disk. Blocks.
    ///
    /// # Errors
    /// Any error that the disk reports.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The number of the next entry.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.state.lock().next_sequence
    }

    /// Drops all entries with a smaller sequence number.
    ///
    /// # Errors
    /// Writing failed.
    pub fn drop_older_than(&self, sequence: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let gone = state.entries.partition_point(|entry| entry.0 < sequence);
        if gone == 0 {
            return Ok(());
        }
        let start = state.entries.get(gone).map_or(state.end, |entry| entry.1);
        // The floor first: a kill in between must not let a number be used twice.
        self.file.write_all_at(&state.next_sequence.to_le_bytes(), FLOOR_AT)?;
        self.file.write_all_at(&start.to_le_bytes(), START_AT)?;
        state.entries.drain(..gone);
        // Appends do not wait for the disk here. Bytes before the start are not read.
        drop(state);
        let whole_pages = start / PAGE_BYTES * PAGE_BYTES;
        if whole_pages > PAGE_BYTES {
            // After a power failure the start must not be in the hole.
            self.file.sync_data()?;
            punch_hole(&self.file, PAGE_BYTES, whole_pages - PAGE_BYTES);
        }
        Ok(())
    }

    /// Bytes from the first entry to the end of the last.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let state = self.state.lock();
        state.entries.front().map_or(0, |entry| state.end - entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopened(journal: &Journal) -> Journal {
        Journal::open(journal.file.try_clone().unwrap().into()).unwrap()
    }

    #[test]
    fn entries_come_back_in_order_after_a_restart() {
        let journal = Journal::in_memory().unwrap();
        assert_eq!(journal.append(b"one").unwrap(), 1);
        assert_eq!(journal.append(b"").unwrap(), 2);
        assert_eq!(journal.append(&[7; 5000]).unwrap(), 3);
        let again = reopened(&journal);
        assert_eq!(again.entries().unwrap(), [(1, b"one".to_vec()), (2, vec![]), (3, vec![7; 5000])]);
        assert_eq!(again.append(b"four").unwrap(), 4);
    }

    #[test]
    fn read_only_journal_is_opened_and_refuses_new_bans() {
        use std::os::fd::AsRawFd;
        let journal = Journal::in_memory().unwrap();
        journal.append(b"one").unwrap();
        let read_only = || File::open(format!("/proc/self/fd/{}", journal.file.as_raw_fd())).unwrap();
        let again = Journal::open(read_only().into()).unwrap();
        assert_eq!(again.entries().unwrap(), [(1, b"one".to_vec())]);
        assert!(again.append(b"two").is_err());
        assert_eq!(again.entries().unwrap().len(), 1, "what could not be written is no entry");
        // A journal that must be repaired before use is not opened.
        let end = journal.state.lock().end;
        journal.file.set_len(end + 4).unwrap();
        assert!(Journal::open(read_only().into()).is_err());
    }

    #[test]
    fn a_torn_last_entry_is_dropped_at_any_length_and_leaves_no_trace() {
        let journal = Journal::in_memory().unwrap();
        journal.append(b"whole").unwrap();
        let end = journal.state.lock().end;
        // The torn entry contains the image of a valid one, as a hostile ban text might.
        let mut hostile = vec![0; 8];
        hostile.extend_from_slice(&3u32.to_le_bytes());
        hostile.extend_from_slice(&checksum(3, b"bad").to_le_bytes());
        hostile.extend_from_slice(&3u64.to_le_bytes());
        hostile.extend_from_slice(b"bad\0\0\0\0\0");
        journal.append(&hostile).unwrap();
        let mut image = vec![0; (journal.state.lock().end - end) as usize];
        journal.file.read_exact_at(&mut image, end).unwrap();
        for torn in 0..image.len() - 1 {
            journal.file.set_len(end).unwrap();
            journal.file.write_all_at(&image[..torn], end).unwrap();
            let again = reopened(&journal);
            assert_eq!(again.entries().unwrap(), [(1, b"whole".to_vec())], "torn at {torn}");
            assert_eq!(again.append(b"12345678").unwrap(), 2);
            assert_eq!(reopened(&again).entries().unwrap().len(), 2, "torn at {torn}");
        }
    }

    #[test]
    fn dropped_entries_stay_away_and_their_numbers_are_not_used_again() {
        let journal = Journal::in_memory().unwrap();
        for _ in 0..100 {
            journal.append(&[1; 1000]).unwrap();
        }
        journal.drop_older_than(51).unwrap();
        assert_eq!(reopened(&journal).entries().unwrap()[0].0, 51);
        journal.drop_older_than(1000).unwrap();
        let again = reopened(&journal);
        assert!(again.entries().unwrap().is_empty());
        assert_eq!(again.append(b"x").unwrap(), 101);
        assert_eq!(reopened(&again).entries().unwrap(), [(101, b"x".to_vec())]);
        use std::os::unix::fs::MetadataExt;
        assert!(again.file.metadata().unwrap().blocks() * 512 <= 4 * PAGE_BYTES, "old blocks are given back");
    }

    #[test]
    fn numbers_that_ran_out_are_an_error_and_a_start_beyond_the_end_is_damage() {
        let journal = Journal::in_memory().unwrap();
        journal.file.write_all_at(&u64::MAX.to_le_bytes(), FLOOR_AT).unwrap();
        assert_eq!(reopened(&journal).append(b"x").unwrap_err().kind(), io::ErrorKind::InvalidData);
        journal.file.write_all_at(&(1u64 << 40).to_le_bytes(), START_AT).unwrap();
        let again = Journal::open(journal.file.try_clone().unwrap().into());
        assert_eq!(again.err().unwrap().kind(), io::ErrorKind::InvalidData);
        assert_eq!(journal.file.metadata().unwrap().len(), HEADER_BYTES, "the file is left alone");
    }

    #[test]
    fn damage_is_not_treated_as_a_torn_entry() {
        let journal = Journal::in_memory().unwrap();
        for text in [b"first", b"other", b"third"] {
            journal.append(text).unwrap();
        }
        let bytes = journal.file.metadata().unwrap().len();
        // The text, the length and the number of the second of three entries, which take 24 bytes
        // each.
        for (at, damage) in [(16, &b"X"[..]), (0, &[0xff; 4]), (8, &[0; 8]), (8, &[1])] {
            let at = HEADER_BYTES + 24 + at;
            let mut whole = vec![0; damage.len()];
            journal.file.read_exact_at(&mut whole, at).unwrap();
            journal.file.write_all_at(damage, at).unwrap();
            let again = Journal::open(journal.file.try_clone().unwrap().into());
            assert_eq!(again.err().unwrap().kind(), io::ErrorKind::InvalidData, "{at}");
            assert_eq!(journal.file.metadata().unwrap().len(), bytes, "the file is left alone");
            journal.file.write_all_at(&whole, at).unwrap();
        }
        assert_eq!(reopened(&journal).entries().unwrap().len(), 3);
    }

    #[test]
    fn a_foreign_file_is_refused() {
        let file = memory_file(c"other").unwrap();
        file.write_all_at(&[9; 100], 0).unwrap();
        assert_eq!(Journal::open(file.into()).err().unwrap().kind(), io::ErrorKind::InvalidData);
    }
}
