//! An append-only durable list.
use std::io;
use std::os::fd::OwnedFd;

/// An append-only list of byte strings in a memfd that outlives the worker. Send + Sync; internally locked.
pub struct Journal(());

impl Journal {
    /// A journal in a memory file of its own.
    ///
    /// # Errors
    /// The memory file could not be made.
    pub fn in_memory() -> io::Result<Journal> {
        todo!()
    }

    /// Opens (or formats, when empty) a journal. A torn last entry is dropped.
    ///
    /// # Errors
    /// Reading or writing failed, or the file holds something else.
    pub fn open(_file: OwnedFd) -> io::Result<Journal> {
        todo!()
    }

    /// Appends an entry and returns its sequence number; numbers begin with 1 and only grow. Durable on return.
    ///
    /// # Errors
    /// Writing failed.
    pub fn append(&self, _entry: &[u8]) -> io::Result<u64> {
        todo!()
    }

    /// The entries with their sequence numbers, oldest first.
    ///
    /// # Errors
    /// Reading failed.
    pub fn entries(&self) -> io::Result<Vec<(u64, Vec<u8>)>> {
        todo!()
    }

    /// Drops all entries with a smaller sequence number.
    ///
    /// # Errors
    /// Writing failed.
    pub fn drop_older_than(&self, _sequence: u64) -> io::Result<()> {
        todo!()
    }

    /// Bytes between the first and the last entry kept.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        todo!()
    }
}
