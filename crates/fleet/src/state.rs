//! The state of a node in a file: the last applied entry of each publisher, members, its own run.
//!
//! ```text
//! state       records (frame.rs): a snapshot, then the changes since
//! state.new   the next snapshot, until it is renamed
//! ```
//!
//! A state that is older than the truth costs repetitions or removals, never a lost invalidation:
//! entries are applied again, or what can no longer be applied removes everything.

use crate::folder::Folder;
use crate::frame::{self, End};
use crate::identity::{COUNTER_MAX, Position};
use crate::record::{KeptState, Record};
use serde::{Deserialize, Serialize};
use std::io;
use surface::limits::{FLEET_FORGOTTEN_MAX, FLEET_NODES_MAX, FLEET_STATE_BYTES_MAX};

const FILE: &str = "state";
const NEXT_FILE: &str = "state.new";

#[derive(Serialize, Deserialize)]
enum Line {
    Snapshot(KeptState),
    Change(Record),
}

/// The file with a node's state.
pub(crate) struct State {
    kept: KeptState,
    length: u64,
    is_changed: bool,
    /// After a failure to write, the content of the file is unknown until it is written anew.
    is_broken: bool,
}

impl KeptState {
    /// True if all numbers are in range.
    fn is_valid(&self) -> bool {
        let members = self.members.values().map(|member| member.applied);
        let forgotten = self.forgotten.iter().map(|forgotten| forgotten.applied);
        let mut all = members.chain(forgotten).chain([self.applied, self.floor]);
        all.all(|position| position.counter <= COUNTER_MAX)
    }

    /// The state after a change.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Entry(_) => {}
            Record::Floor(floor) => self.floor = *floor,
            Record::Applied { node, applied, cache } => {
                self.cache = *cache;
                match node {
                    Some(node) => {
                        if let Some(member) = self.members.get_mut(node) {
                            member.applied = *applied;
                        }
                    }
                    None => self.applied = *applied,
                }
            }
            Record::Member { node, member } => {
                self.forgotten.retain(|forgotten| forgotten.node != *node);
                if self.members.len() < FLEET_NODES_MAX || self.members.contains_key(node) {
                    self.members.insert(node.clone(), *member);
                }
            }
            Record::Forgotten(forgotten) => {
                self.members.remove(&forgotten.node);
                self.forgotten.retain(|other| other.node != forgotten.node);
                self.forgotten.push_back(forgotten.clone());
                if self.forgotten.len() > FLEET_FORGOTTEN_MAX {
                    self.forgotten.pop_front();
                }
            }
            Record::Stream(mark) => self.stream = *mark,
            Record::Own { incarnation, is_established } => {
                self.incarnation = *incarnation;
                self.is_established = *is_established;
            }
        }
    }
}

/// True if the numbers of a change are in range.
fn is_valid(record: &Record) -> bool {
    let position = match record {
        Record::Entry(entry) => entry.position,
        Record::Floor(position) | Record::Applied { applied: position, .. } => *position,
        Record::Member { member, .. } => member.applied,
        Record::Forgotten(forgotten) => forgotten.applied,
        Record::Stream(_) | Record::Own { .. } => Position::default(),
    };
    position.counter <= COUNTER_MAX
}

impl State {
    /// Opens the state in a folder; true if bytes were found that are not records.
    ///
    /// # Errors
    /// Reading or writing failed.
    pub(crate) fn open(folder: &mut impl Folder) -> io::Result<(State, bool)> {
        let bytes = match folder.read(FILE, 0, usize::MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut kept = KeptState::default();
        let (records, _, end) = frame::records(&bytes);
        let mut is_damaged = end == End::Damaged;
        for (_, record) in records {
            match postcard::take_from_bytes(record) {
                Ok((Line::Snapshot(snapshot), [])) if snapshot.is_valid() => kept = snapshot,
                Ok((Line::Change(record), [])) if is_valid(&record) => kept.apply(&record),
                Ok(_) | Err(_) => {
                    is_damaged = true;
                    break;
                }
            }
        }
        let mut state = State { kept, length: 0, is_changed: false, is_broken: false };
        state.write_anew(folder)?;
        Ok((state, is_damaged))
    }

    /// The state as it will be after the next start.
    pub(crate) fn kept(&self) -> &KeptState {
        &self.kept
    }

    fn write_anew(&mut self, folder: &mut impl Folder) -> io::Result<()> {
        let mut image = Vec::new();
        let line = Line::Snapshot(self.kept.clone());
        frame::push(&mut image, &postcard::to_stdvec(&line).map_err(io::Error::other)?);
        match folder.cut(NEXT_FILE, 0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        folder.append(NEXT_FILE, &image)?;
        folder.sync(NEXT_FILE)?;
        folder.rename(NEXT_FILE, FILE)?;
        (self.length, self.is_changed, self.is_broken) = (image.len() as u64, false, false);
        Ok(())
    }

    /// Appends a change, which is durable after [`State::sync`].
    ///
    /// # Errors
    /// Writing failed. The change may be found at the next start or not.
    pub(crate) fn append(&mut self, folder: &mut impl Folder, record: &Record) -> io::Result<()> {
        if self.is_broken || self.length >= FLEET_STATE_BYTES_MAX {
            self.write_anew(folder)?;
        }
        let mut image = Vec::new();
        let line = Line::Change(record.clone());
        frame::push(&mut image, &postcard::to_stdvec(&line).map_err(io::Error::other)?);
        folder.append(FILE, &image).inspect_err(|_| self.is_broken = true)?;
        self.kept.apply(record);
        self.length += image.len() as u64;
        self.is_changed = true;
        Ok(())
    }

    /// Waits until all changes are on the disk.
    ///
    /// # Errors
    /// The disk reported an error: the changes since the last call may be lost or not.
    pub(crate) fn sync(&mut self, folder: &mut impl Folder) -> io::Result<()> {
        if self.is_changed {
            folder.sync(FILE).inspect_err(|_| self.is_broken = true)?;
            self.is_changed = false;
        }
        Ok(())
    }
}
