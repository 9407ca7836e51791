//! Carries out the writes that a node orders, and finds them again at the next start.
//!
//! Writes are collected, and one [`Keeper::sync`] makes all of them durable: the owner calls it
//! when it has carried out all orders that are ready. It blocks for the disk.

use crate::exchange::{Input, Ticket};
use crate::folder::Folder;
use crate::outbox::Outbox;
use crate::record::{Entry, Kept, Record};
use crate::state::State;
use std::io;

/// The files of a node, in a folder of their own.
pub struct Keeper<F> {
    folder: F,
    outbox: Outbox,
    state: State,
    /// The last ticket that was written and is not durable, and those that failed.
    last: Option<Ticket>,
    failed: Vec<(Ticket, String)>,
    entries: Vec<Ticket>,
    changes: Vec<Ticket>,
}

impl<F: Folder> Keeper<F> {
    /// Opens the files of a folder, which may be empty: then the node is a new one.
    ///
    /// # Errors
    /// Reading or writing failed.
    pub fn open(mut folder: F) -> io::Result<(Keeper<F>, Kept)> {
        let (state, is_state_damaged) = State::open(&mut folder)?;
        let (mut outbox, found) = Outbox::open(&mut folder, state.kept().applied.counter)?;
        let floor = state.kept().floor.counter;
        let mut kept = Kept {
            state: state.kept().clone(),
            first: found.first,
            entries: found.marks,
            unapplied: found.unapplied,
            is_outbox_damaged: found.is_damaged,
            is_state_damaged,
        };
        while kept.first <= floor && kept.entries.pop_front().is_some() {
            kept.first += 1;
        }
        outbox.drop_through(&mut folder, floor);
        let keeper =
            Keeper { folder, outbox, state, last: None, failed: Vec::new(), entries: Vec::new(), changes: Vec::new() };
        Ok((keeper, kept))
    }

    /// Writes a record, which is durable after [`Keeper::sync`].
    pub fn write(&mut self, ticket: Ticket, record: &Record) {
        self.last = Some(ticket);
        let (result, tickets) = match record {
            Record::Entry(entry) => (self.outbox.append(&mut self.folder, entry), &mut self.entries),
            Record::Floor(_)
            | Record::Applied { .. }
            | Record::Member { .. }
            | Record::Forgotten(_)
            | Record::Stream(_)
            | Record::Own { .. } => (self.state.append(&mut self.folder, record), &mut self.changes),
        };
        match result {
            Ok(()) => tickets.push(ticket),
            Err(error) => self.failed.push((ticket, error.to_string())),
        }
    }

    /// True if there are writes to make durable.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.last.is_some()
    }

    /// Waits until all writes are durable, and returns the events for the node.
    pub fn sync(&mut self) -> Vec<Input> {
        let Some(through) = self.last.take() else { return Vec::new() };
        if let Err(error) = self.outbox.sync(&mut self.folder) {
            self.failed.extend(self.entries.drain(..).map(|ticket| (ticket, error.to_string())));
        }
        match self.state.sync(&mut self.folder) {
            Ok(()) => {
                // Only after that is recorded, so that the last number is not forgotten.
                let floor = self.state.kept().floor.counter;
                self.outbox.drop_through(&mut self.folder, floor);
            }
            Err(error) => self.failed.extend(self.changes.drain(..).map(|ticket| (ticket, error.to_string()))),
        }
        self.entries.clear();
        self.changes.clear();
        self.failed.sort_by_key(|failed| failed.0);
        let failed = self.failed.drain(..).map(|(ticket, error)| Input::NotWritten { ticket, error });
        failed.chain([Input::Written { through }]).collect()
    }

    /// An entry of the outbox.
    ///
    /// # Errors
    /// It does not exist, or cannot be read.
    pub fn read(&self, counter: u64) -> io::Result<Entry> {
        self.outbox.read(&self.folder, counter)
    }

    /// The folder.
    pub fn into_folder(self) -> F {
        self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::DiskFolder;
    use crate::identity::{Incarnation, Position};
    use crate::record::KeptMember;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn at(counter: u64) -> Position {
        Position { counter, incarnation: Incarnation(1 << 32) }
    }

    fn entry(counter: u64) -> Record {
        Record::Entry(Entry {
            position: at(counter),
            after: at(0).incarnation,
            wall_ms: 5,
            invalidation: vec![7; 10_000],
        })
    }

    fn opened(path: &Path) -> (Keeper<DiskFolder>, Kept) {
        Keeper::open(DiskFolder::new(path.to_owned())).unwrap()
    }

    fn names(path: &Path) -> Vec<String> {
        let mut names = DiskFolder::new(path.to_owned()).names().unwrap();
        names.sort();
        names
    }

    #[test]
    fn entries_and_state_are_found_again_on_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, kept) = opened(folder.path());
        assert_eq!((kept.first, kept.entries.len()), (0, 0));
        let node = crate::NodeId::new("b").unwrap();
        let member = KeptMember { incarnation: Incarnation(4), ..KeptMember::default() };
        keeper.write(1, &Record::Member { node: node.clone(), member });
        (1..=1000).for_each(|counter| keeper.write(1 + counter, &entry(counter)));
        assert!(keeper.is_pending());
        assert!(matches!(&keeper.sync()[..], [Input::Written { through: 1001 }]));
        assert!(names(folder.path()).len() > 3, "several files");
        for name in names(folder.path()) {
            let mode = std::fs::metadata(folder.path().join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        let (keeper, kept) = opened(folder.path());
        assert_eq!((kept.first, kept.entries.len(), kept.unapplied.len()), (1, 1000, 1000));
        assert!(!kept.is_outbox_damaged && !kept.is_state_damaged);
        assert_eq!(kept.state.members[&node], member);
        assert_eq!(Record::Entry(keeper.read(777).unwrap()), entry(777));
        assert!(keeper.read(1001).is_err() && keeper.read(0).is_err());
    }

    #[test]
    fn files_of_confirmed_entries_are_removed_and_no_number_is_given_twice() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, _) = opened(folder.path());
        (1..=1000).for_each(|counter| keeper.write(counter, &entry(counter)));
        keeper.write(1001, &Record::Floor(at(1000)));
        keeper.sync();
        assert_eq!(names(folder.path()).len(), 2, "the last one and the state");
        assert!(keeper.read(1000).is_err());
        let (mut keeper, kept) = opened(folder.path());
        assert_eq!((kept.entries.len(), kept.state.floor), (0, at(1000)));
        keeper.write(1, &entry(1000));
        keeper.write(2, &entry(1002));
        assert_eq!(keeper.sync().len(), 3, "a number that was given, and one with a gap before it");
        keeper.write(3, &entry(1001));
        assert_eq!(keeper.sync().len(), 1);
        assert_eq!(opened(folder.path()).1.first, 1001);
    }

    #[test]
    fn state_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, _) = opened(folder.path());
        for counter in 0..60_000 {
            keeper.write(counter, &Record::Floor(at(counter)));
        }
        keeper.sync();
        let bytes = std::fs::metadata(folder.path().join("state")).unwrap().len();
        assert!(bytes <= surface::limits::FLEET_STATE_BYTES_MAX + 100, "{bytes}");
        assert_eq!(opened(folder.path()).1.state.floor, at(59_999));
    }

    #[test]
    fn missing_file_in_the_middle_is_damage_and_later_entries_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, _) = opened(folder.path());
        (1..=1000).for_each(|counter| keeper.write(counter, &entry(counter)));
        keeper.sync();
        let middle = &names(folder.path())[1];
        std::fs::remove_file(folder.path().join(middle)).unwrap();
        let (_, kept) = opened(folder.path());
        assert!(kept.is_outbox_damaged);
        assert_eq!(kept.first + kept.entries.len() as u64, 1001);
    }
}
