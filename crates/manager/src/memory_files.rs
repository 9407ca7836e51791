//! The memory files that outlive a worker: the arena of each storage, the journal of bans, the
//! panic text, and the file that the worker locks as long as it uses them. With them go the files
//! of storages on disks (`storage_files.rs`); the journal is one of those then.
//!
//! The manager only keeps them open. Only the worker reads and writes the arenas and the journal.
//! They outlive the manager too, if it passes them to the next one (`handover.rs`) or to systemd
//! (`fd_store.rs`); files that come back are checked here: each is a memory file with the right
//! name, or a regular file with its lock, and no file occurs twice.

use crate::storage_files::{FileWanted, LockedFile, StorageFiles, journal_path};
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
/// Name of the journal of bans.
pub const JOURNAL: &CStr = c"copal-journal";
/// Name of the panic text.
pub const PANIC: &CStr = c"copal-panic";
/// Name of the file that a worker locks.
pub const DIRECTORY_LOCK: &CStr = c"copal-seat";

/// Number of handles before those of the arenas: journal, panic text, work directory lock.
pub const FIXED: usize = 3;

/// The files, open for the life of the manager.
#[derive(Debug)]
pub struct MemoryFiles {
    arenas: Vec<OwnedFd>,
    /// The journal in memory; unused if there is one on a disk.
    journal: OwnedFd,
    panic: File,
    directory_lock: OwnedFd,
    files: StorageFiles,
}

impl MemoryFiles {
    /// Creates empty files for `storages` storages in memory.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn create(storages: usize) -> io::Result<MemoryFiles> {
        let panic = File::from(empty(PANIC)?);
        panic.set_len(PANIC_BYTES)?;
        let (arenas, files) = (empty_arenas(storages)?, StorageFiles::none(storages));
        Ok(MemoryFiles { arenas, journal: empty(JOURNAL)?, panic, directory_lock: empty(DIRECTORY_LOCK)?, files })
    }

    /// The same, with files for those that are on disks.
    #[must_use]
    pub fn with_files(self, files: StorageFiles) -> MemoryFiles {
        MemoryFiles { files, ..self }
    }

    /// The files on disks.
    #[must_use]
    pub fn files(&self) -> &StorageFiles {
        &self.files
    }

    /// Number of handles for these storages.
    #[must_use]
    pub fn handle_count(wanted: &[Option<FileWanted>]) -> usize {
        FIXED + wanted.len() + wanted.iter().flatten().count()
    }

    /// Takes over the files that [`MemoryFiles::handles`] gave to another process, which returns
    /// them; for these storages.
    ///
    /// # Errors
    /// The reason why they cannot be used.
    pub fn take_over(handles: Vec<OwnedFd>, wanted: &[Option<FileWanted>]) -> Result<MemoryFiles, String> {
        let count = MemoryFiles::handle_count(wanted);
        if handles.len() != count {
            return Err(format!("{} memory files instead of {count}", handles.len()));
        }
        let mut seen = BTreeSet::new();
        let mut handles = handles.into_iter();
        let mut files = StorageFiles::none(wanted.len());
        let mut next = |name: Option<&CStr>| -> Result<OwnedFd, String> {
            let handle = handles.next().ok_or("no memory files")?;
            let (number, what) = match name {
                Some(name) => (check(&handle, name)?, format!("memory file {}", name.to_string_lossy())),
                None => (number(&handle)?, "file of a storage".to_owned()),
            };
            match seen.insert(number) {
                true => Ok(handle),
                false => Err(format!("a {what} is there twice")),
            }
        };
        let journal = match journal_path(wanted) {
            None => next(Some(JOURNAL))?,
            Some(path) => {
                files.journal = Some(LockedFile::adopt(next(None)?, path)?);
                empty(JOURNAL).map_err(|error| error.to_string())?
            }
        };
        let (panic, directory_lock) = (File::from(next(Some(PANIC))?), next(Some(DIRECTORY_LOCK))?);
        let arenas = wanted.iter().map(|_| next(Some(ARENA))).collect::<Result<_, _>>()?;
        for (file, wanted) in files.of_storages.iter_mut().zip(wanted) {
            let Some(wanted) = wanted else { continue };
            let mut adopted = LockedFile::adopt(next(None)?, wanted.path.clone())?;
            adopted.is_given(adopted.bytes());
            *file = Some(adopted);
        }
        panic.set_len(PANIC_BYTES).map_err(|error| format!("the memory file of the panic text: {error}"))?;
        Ok(MemoryFiles { arenas, journal, panic, directory_lock, files })
    }

    /// Discards the cache: the next worker gets empty arenas and files, and with them an empty
    /// journal.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn renew_storage(&mut self) -> io::Result<()> {
        self.arenas = empty_arenas(self.arenas.len())?;
        self.journal = empty(JOURNAL)?;
        // The bans are emptied last: without them nothing else may remain.
        self.files.of_storages.iter().flatten().try_for_each(LockedFile::erase)?;
        self.files.journal.iter().try_for_each(LockedFile::clear)
    }

    /// Gives the next worker an empty arena for the storage at that index, and if it has a file
    /// nothing in that. The bans stay: the other arenas need them, and they do no harm to an empty
    /// one.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn renew_arena(&mut self, place: usize) -> io::Result<()> {
        let Some(arena) = self.arenas.get_mut(place) else {
            // A worker that names a storage that does not exist cannot be trusted at all.
            return self.renew_storage();
        };
        *arena = empty(ARENA)?;
        match self.files.of_storages.get(place) {
            Some(Some(file)) => file.erase(),
            Some(None) | None => Ok(()),
        }
    }

    /// Makes the next worker read the stored content of the storage at that index from its file
    /// alone.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn renew_metadata(&mut self, place: usize) -> io::Result<()> {
        match self.arenas.get_mut(place) {
            Some(arena) => *arena = empty(ARENA)?,
            None => return self.renew_storage(),
        }
        Ok(())
    }

    /// Memory that the kernel holds for the arena of each storage, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> Vec<u64> {
        self.arenas.iter().map(|arena| fstat(arena).map_or(0, |found| found.st_blocks.max(0) as u64 * 512)).collect()
    }

    /// Handles for a worker or for a successor: journal, panic text, work directory lock, the arena
    /// of each storage, and the file of each that has one.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn handles(&self) -> io::Result<Vec<OwnedFd>> {
        let journal = self.files.journal.as_ref().map_or_else(|| self.journal.try_clone(), LockedFile::handle)?;
        let mut handles = vec![journal, self.panic.try_clone()?.into(), self.directory_lock.try_clone()?];
        for arena in &self.arenas {
            handles.push(arena.try_clone()?);
        }
        for file in self.files.of_storages.iter().flatten() {
            handles.push(file.handle()?);
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

/// Checks that a descriptor is a memory file of that name; returns its device and inode.
///
/// # Errors
/// It is another kind of descriptor.
pub fn check(handle: &OwnedFd, name: &CStr) -> Result<(u64, u64), String> {
    let name = name.to_string_lossy();
    let number = number(handle).map_err(|error| format!("the memory file {name}: {error}"))?;
    let link = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap_or_default();
    if link.to_string_lossy() != format!("/memfd:{name} (deleted)") {
        return Err(format!("{} is not the memory file {name}", link.display()));
    }
    Ok(number)
}

/// Device and inode of a file.
fn number(handle: &OwnedFd) -> Result<(u64, u64), String> {
    let found = fstat(handle).map_err(|error| error.to_string())?;
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
        let refused = |handles: Vec<OwnedFd>| MemoryFiles::take_over(handles, &[None, None]).unwrap_err();
        let all = || files.handles().unwrap();
        assert!(MemoryFiles::take_over(all(), &[None, None]).is_ok());
        assert_eq!(MemoryFiles::take_over(all(), &[None, None, None]).unwrap_err(), "5 memory files instead of 6");
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
