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
