//! The memory files that outlive a worker: the arena of each storage, the journal of bans, the panic text.
//!
//! The manager only keeps them open. What is in the arenas and the journal concerns only the worker.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Size of the file for the panic text, in bytes.
pub const PANIC_BYTES: u64 = 64 << 10;

/// The files, open for the life of the manager.
#[derive(Debug)]
pub struct MemoryFiles {
    arenas: Vec<OwnedFd>,
    journal: OwnedFd,
    panic: File,
}

impl MemoryFiles {
    /// Creates empty files for `storages` storages.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn create(storages: usize) -> io::Result<MemoryFiles> {
        let panic = File::from(empty(c"copal-panic")?);
        panic.set_len(PANIC_BYTES)?;
        Ok(MemoryFiles { arenas: empty_arenas(storages)?, journal: empty(c"copal-journal")?, panic })
    }

    /// Discards the cache: the next worker gets empty arenas, and with them an empty journal.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn renew_storage(&mut self) -> io::Result<()> {
        self.arenas = empty_arenas(self.arenas.len())?;
        self.journal = empty(c"copal-journal")?;
        Ok(())
    }

    /// Gives the next worker an empty arena for the storage at that index. The bans stay: the other arenas need them,
    /// and they do no harm to an empty one.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn renew_arena(&mut self, place: usize) -> io::Result<()> {
        let Some(arena) = self.arenas.get_mut(place) else {
            // A worker that names a storage that does not exist can't be believed in anything.
            return self.renew_storage();
        };
        *arena = empty(c"copal-arena")?;
        Ok(())
    }

    /// How much memory the kernel holds for the arena of each storage, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> Vec<u64> {
        self.arenas.iter().map(|arena| fstat(arena).map_or(0, |found| found.st_blocks.max(0) as u64 * 512)).collect()
    }

    /// Handles for a worker: journal, panic text, and the arena of each storage.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn handles(&self) -> io::Result<Vec<OwnedFd>> {
        let mut handles = vec![self.journal.try_clone()?, self.panic.try_clone()?.into()];
        for arena in &self.arenas {
            handles.push(arena.try_clone()?);
        }
        Ok(handles)
    }

    /// Takes the text that a panicking worker left behind.
    #[must_use]
    pub fn take_panic(&self) -> Option<String> {
        let mut first = [0];
        if self.panic.read_at(&mut first, 0).ok()? == 0 || first == [0] {
            return None;
        }
        let mut bytes = vec![0; PANIC_BYTES as usize];
        let length = self.panic.read_at(&mut bytes, 0).ok()?;
        bytes.truncate(length);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        let _ = self.panic.write_all_at(&vec![0; end], 0);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn empty(name: &CStr) -> io::Result<OwnedFd> {
    Ok(memfd_create(name, MFdFlags::MFD_CLOEXEC)?)
}

fn empty_arenas(count: usize) -> io::Result<Vec<OwnedFd>> {
    (0..count).map(|_| empty(c"copal-arena")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_taken_once() {
        let files = MemoryFiles::create(1).unwrap();
        assert_eq!(files.take_panic(), None);
        let panic = files.handles().unwrap().swap_remove(1);
        File::from(panic).write_all_at(b"Assert error\n", 0).unwrap();
        assert_eq!(files.take_panic().as_deref(), Some("Assert error\n"));
        assert_eq!(files.take_panic(), None);
    }

    #[test]
    fn renewed_storage_is_empty() {
        let mut files = MemoryFiles::create(2).unwrap();
        for arena in files.handles().unwrap().split_off(2) {
            File::from(arena).write_all_at(b"object", 0).unwrap();
        }
        let lengths = |files: &MemoryFiles| -> Vec<u64> {
            let arenas = files.handles().unwrap().split_off(2).into_iter();
            arenas.map(|arena| File::from(arena).metadata().unwrap().len()).collect()
        };
        assert!(files.held_bytes().iter().all(|bytes| (1..=1 << 20).contains(bytes)), "{:?}", files.held_bytes());
        files.renew_arena(1).unwrap();
        assert_eq!(lengths(&files), [6, 0]);
        files.renew_arena(2).unwrap();
        assert_eq!(lengths(&files), [0, 0]);
    }
}
