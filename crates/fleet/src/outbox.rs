//! The entries of a node that not all members have confirmed, in files.
//!
//! ```text
//! outbox-<number of the first entry>   records (frame.rs), each an encoded Entry, by number
//! ```
//!
//! Entries are appended to the last file; a file that is full is followed by another one. A file is
//! removed when its last entry is confirmed, but never the last file: it holds the last number.
//! Only an index is in memory, 24 bytes an entry.
//!
//! *Invariant:* an entry that was ever durable keeps its number, and no other entry of the same run
//! gets it. Entries are numbered without gaps, except before one that replaces all earlier ones.

use crate::folder::Folder;
use crate::frame::{self, End};
use crate::identity::COUNTER_MAX;
use crate::invalidation::is_everything;
use crate::record::{Entry, EntryMark};
use std::collections::VecDeque;
use std::io;
use surface::limits::{FLEET_OUTBOX_SEGMENT_BYTES, FLEET_WINDOW_MAX};

const PREFIX: &str = "outbox-";

/// A place of an entry.
#[derive(Clone, Copy)]
struct Place {
    /// Number of the first entry of its file.
    file: u64,
    offset: u32,
    bytes: u32,
}

/// The outbox of a node.
pub struct Outbox {
    /// Number of the first entry in `places`.
    first: u64,
    places: VecDeque<Place>,
    /// The number after the last entry, also of an empty outbox.
    next: u64,
    /// The last file, its length, and true if it has changed since it was made durable.
    last_file: Option<(u64, u64, bool)>,
    /// All files, by the number of their first entry.
    files: VecDeque<u64>,
    /// After a failure to write, the content of the last file is unknown.
    is_broken: bool,
}

/// The entries found.
pub(crate) struct Found {
    /// The number of the first one; 0 = none.
    pub(crate) first: u64,
    /// The entries.
    pub(crate) marks: VecDeque<EntryMark>,
    /// Those that are not applied here yet.
    pub(crate) unapplied: Vec<Entry>,
    /// True if bytes were found that are not entries, or numbers are missing.
    pub(crate) is_damaged: bool,
}

fn name(file: u64) -> String {
    format!("{PREFIX}{file:020}")
}

fn broken() -> io::Error {
    io::Error::other("the outbox is not written to after an earlier failure")
}

impl Outbox {
    /// Opens the outbox in a folder. An unfinished last entry is cut off. Where numbers are
    /// missing, the entries before them are dropped. `applied` is the last entry applied here.
    ///
    /// # Errors
    /// Reading or writing failed.
    pub(crate) fn open(folder: &mut impl Folder, applied: u64) -> io::Result<(Outbox, Found)> {
        let mut files: Vec<u64> =
            folder.names()?.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
        files.sort_unstable();
        let mut outbox = Outbox {
            first: 0,
            places: VecDeque::new(),
            next: 1,
            last_file: None,
            files: files.iter().copied().collect(),
            is_broken: false,
        };
        let mut found = Found { first: 0, marks: VecDeque::new(), unapplied: Vec::new(), is_damaged: false };
        for file in &files {
            let bytes = folder.read(&name(*file), 0, usize::MAX)?;
            let (records, whole, end) = frame::records(&bytes);
            let is_last = files.last() == Some(file);
            let mut length = whole;
            let mut is_damaged = end == End::Damaged || end == End::Torn && !is_last;
            for (offset, record) in records {
                let entry = match postcard::take_from_bytes::<Entry>(record) {
                    Ok((entry, [])) if (outbox.next..=COUNTER_MAX).contains(&entry.position.counter) => entry,
                    Ok(_) | Err(_) => {
                        is_damaged = true;
                        length = offset;
                        break;
                    }
                };
                let bytes = (frame::HEADER_BYTES + record.len()) as u32;
                let place = Place { file: *file, offset: offset as u32, bytes };
                let is_next = entry.position.counter == outbox.next;
                let replaces = is_everything(&entry.invalidation);
                outbox.add(entry.position.counter, place);
                if !is_next && !found.marks.is_empty() {
                    found.marks.clear();
                    found.unapplied.clear();
                    found.is_damaged |= !replaces;
                }
                found.marks.push_back(EntryMark {
                    incarnation: entry.position.incarnation,
                    wall_ms: entry.wall_ms,
                    bytes,
                    replaces,
                });
                if entry.position.counter > applied && found.unapplied.len() <= FLEET_WINDOW_MAX {
                    found.unapplied.push(entry);
                }
            }
            found.is_damaged |= is_damaged;
            if is_last {
                if length < bytes.len() as u64 {
                    // So that nothing in the rest is ever taken for an entry.
                    folder.cut(&name(*file), length)?;
                    folder.sync(&name(*file))?;
                }
                outbox.last_file = Some((*file, length, false));
            }
        }
        if found.marks.is_empty() {
            outbox.first = 0;
        }
        found.first = outbox.first;
        Ok((outbox, found))
    }

    /// Adds an entry at the end of the index; those before a gap are dropped from it.
    fn add(&mut self, counter: u64, place: Place) {
        if counter != self.next || self.places.is_empty() {
            self.places.clear();
            self.first = counter;
        }
        self.places.push_back(place);
        self.next = counter + 1;
    }

    /// Appends an entry, which is durable after [`Outbox::sync`].
    ///
    /// # Errors
    /// Writing failed, and left no trace; or an earlier failure may have left one.
    pub(crate) fn append(&mut self, folder: &mut impl Folder, entry: &Entry) -> io::Result<()> {
        let counter = entry.position.counter;
        let is_next = counter == self.next;
        if self.is_broken {
            return Err(broken());
        }
        let replaces = counter > self.next && is_everything(&entry.invalidation);
        if !is_next && !replaces {
            // The entry before it was not written.
            return Err(io::Error::other("an earlier entry is missing"));
        }
        let is_full = |length: u64| length >= FLEET_OUTBOX_SEGMENT_BYTES;
        let (file, length) = match self.last_file {
            Some((file, length, _)) if !is_full(length) => (file, length),
            full => {
                if let Some((file, _, true)) = full {
                    folder.sync(&name(file)).inspect_err(|_| self.is_broken = true)?;
                }
                (counter, 0)
            }
        };
        let mut image = Vec::new();
        frame::push(&mut image, &postcard::to_stdvec(entry).map_err(io::Error::other)?);
        if let Err(error) = folder.append(&name(file), &image) {
            self.is_broken = folder.cut(&name(file), length).is_err();
            return Err(error);
        }
        if self.files.back() != Some(&file) {
            self.files.push_back(file);
        }
        self.last_file = Some((file, length + image.len() as u64, true));
        self.add(counter, Place { file, offset: length as u32, bytes: image.len() as u32 });
        Ok(())
    }

    /// Waits until all entries are on the disk.
    ///
    /// # Errors
    /// The disk reported an error: entries since the last call may be lost or not, and nothing
    /// more is written.
    pub(crate) fn sync(&mut self, folder: &mut impl Folder) -> io::Result<()> {
        if self.is_broken {
            return Err(broken());
        }
        if let Some((file, _, is_changed @ true)) = &mut self.last_file {
            folder.sync(&name(*file)).inspect_err(|_| self.is_broken = true)?;
            *is_changed = false;
        }
        Ok(())
    }

    /// Drops all entries up to this number. Files are removed as far as possible.
    pub(crate) fn drop_through(&mut self, folder: &mut impl Folder, counter: u64) {
        while self.first <= counter && self.places.pop_front().is_some() {
            self.first += 1;
        }
        self.next = self.next.max(counter + 1);
        while self.files.get(1).is_some_and(|next| *next <= counter + 1) {
            // A file that could not be removed is removed at the next start.
            let Some(file) = self.files.pop_front() else { break };
            _ = folder.remove(&name(file));
        }
    }

    /// The entry with this number.
    ///
    /// # Errors
    /// It does not exist, or cannot be read.
    pub fn read(&self, folder: &impl Folder, counter: u64) -> io::Result<Entry> {
        let index = counter.checked_sub(self.first).ok_or(io::ErrorKind::NotFound)?;
        let place = self.places.get(index as usize).ok_or(io::ErrorKind::NotFound)?;
        let bytes = folder.read(&name(place.file), u64::from(place.offset), place.bytes as usize)?;
        let (record, _) = frame::split(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        let entry: Entry = postcard::from_bytes(record).map_err(io::Error::other)?;
        if entry.position.counter == counter { Ok(entry) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}
