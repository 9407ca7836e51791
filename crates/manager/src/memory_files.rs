//! The memory files that outlive a worker: the arena of each storage, the journal of bans, the panic text, and the file that
//! the worker locks as long as it uses them.
//!
//! The manager only keeps them open. What is in the arenas and the journal concerns only the worker. They outlive the manager
//! too, if it hands them to the next one (`handover.rs`) or to systemd (`fd_store.rs`); what comes back is checked here: each
//! is a memory file with the right name, and none is there twice.

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Size of the file for the panic text, in bytes.
pub const PANIC_BYTES: u64 = 64 << 10;

/// The name of an arena, as a memory file.
pub const ARENA: &CStr = c"copal-arena";
/// That of the journal of bans.
pub const JOURNAL: &CStr = c"copal-journal";
/// That of the panic text.
pub const PANIC: &CStr = c"copal-panic";
/// That of the file that a worker locks.
pub const SEAT: &CStr = c"copal-seat";

/// The files, open for the life of the manager.
#[derive(Debug)]
pub struct MemoryFiles {
    arenas: Vec<OwnedFd>,
    journal: OwnedFd,
    panic: File,
    seat: OwnedFd,
}

impl MemoryFiles {
    /// Creates empty files for `storages` storages.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn create(storages: usize) -> io::Result<MemoryFiles> {
        let panic = File::from(empty(PANIC)?);
        panic.set_len(PANIC_BYTES)?;
        Ok(MemoryFiles { arenas: empty_arenas(storages)?, journal: empty(JOURNAL)?, panic, seat: empty(SEAT)? })
    }

    /// How many handles there are with so many storages.
    #[must_use]
    pub fn handle_count(storages: usize) -> usize {
        storages + 3
    }

    /// The files that [`MemoryFiles::handles`] gave to somebody, who gives them back; for `storages` storages.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub fn take_over(handles: Vec<OwnedFd>, storages: usize) -> Result<MemoryFiles, String> {
        let names = [JOURNAL, PANIC, SEAT].into_iter().chain(std::iter::repeat_n(ARENA, storages));
        let names: Vec<&CStr> = names.collect();
        if handles.len() != names.len() {
            return Err(format!("{} memory files instead of {}", handles.len(), names.len()));
        }
        let mut seen = BTreeSet::new();
        for (handle, name) in handles.iter().zip(names) {
            let number = check(handle, name)?;
            if !seen.insert(number) {
                return Err(format!("a memory file {} is there twice", name.to_string_lossy()));
            }
        }
        let mut handles = handles.into_iter();
        let (Some(journal), Some(panic), Some(seat)) = (handles.next(), handles.next(), handles.next()) else {
            return Err("no memory files".to_owned());
        };
        let panic = File::from(panic);
        panic.set_len(PANIC_BYTES).map_err(|error| format!("the memory file of the panic text: {error}"))?;
        Ok(MemoryFiles { arenas: handles.collect(), journal, panic, seat })
    }

    /// Discards the cache: the next worker gets empty arenas, and with them an empty journal.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn renew_storage(&mut self) -> io::Result<()> {
        self.arenas = empty_arenas(self.arenas.len())?;
        self.journal = empty(JOURNAL)?;
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
        *arena = empty(ARENA)?;
        Ok(())
    }

    /// How much memory the kernel holds for the arena of each storage, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> Vec<u64> {
        self.arenas.iter().map(|arena| fstat(arena).map_or(0, |found| found.st_blocks.max(0) as u64 * 512)).collect()
    }

    /// Handles for a worker or for a successor: journal, panic text, seat, and the arena of each storage.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn handles(&self) -> io::Result<Vec<OwnedFd>> {
        let mut handles = vec![self.journal.try_clone()?, self.panic.try_clone()?.into(), self.seat.try_clone()?];
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

/// Checks that a descriptor is a memory file of that name; returns what tells it from others.
///
/// # Errors
/// It is not.
pub fn check(handle: &OwnedFd, name: &CStr) -> Result<(u64, u64), String> {
    let name = name.to_string_lossy();
    let found = fstat(handle).map_err(|error| format!("the memory file {name}: {error}"))?;
    let link = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap_or_default();
    if link.to_string_lossy() != format!("/memfd:{name} (deleted)") {
        return Err(format!("{} is not the memory file {name}", link.display()));
    }
    Ok((found.st_dev, found.st_ino))
}

fn empty(name: &CStr) -> io::Result<OwnedFd> {
    Ok(memfd_create(name, MFdFlags::MFD_CLOEXEC)?)
}

fn empty_arenas(count: usize) -> io::Result<Vec<OwnedFd>> {
    (0..count).map(|_| empty(ARENA)).collect()
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
        for arena in files.handles().unwrap().split_off(3) {
            File::from(arena).write_all_at(b"object", 0).unwrap();
        }
        let lengths = |files: &MemoryFiles| -> Vec<u64> {
            let arenas = files.handles().unwrap().split_off(3).into_iter();
            arenas.map(|arena| File::from(arena).metadata().unwrap().len()).collect()
        };
        assert!(files.held_bytes().iter().all(|bytes| (1..=1 << 20).contains(bytes)), "{:?}", files.held_bytes());
        files.renew_arena(1).unwrap();
        assert_eq!(lengths(&files), [6, 0]);
        files.renew_arena(2).unwrap();
        assert_eq!(lengths(&files), [0, 0]);
    }

    #[test]
    fn only_what_was_given_away_is_taken_back() {
        let files = MemoryFiles::create(2).unwrap();
        let refused = |handles: Vec<OwnedFd>| MemoryFiles::take_over(handles, 2).unwrap_err();
        let all = || files.handles().unwrap();
        assert!(MemoryFiles::take_over(all(), 2).is_ok());
        assert_eq!(MemoryFiles::take_over(all(), 3).unwrap_err(), "5 memory files instead of 6");
        assert_eq!(refused(Vec::new()), "0 memory files instead of 5");
        let mut swapped = all();
        swapped.swap(0, 3);
        assert!(refused(swapped).contains("is not the memory file copal-journal"));
        let mut foreign = all();
        foreign[4] = File::open("/dev/null").unwrap().into();
        assert_eq!(refused(foreign), "/dev/null is not the memory file copal-arena");
        let mut twice = all();
        twice[4] = twice[3].try_clone().unwrap();
        assert_eq!(refused(twice), "a memory file copal-arena is there twice");
    }
}
