//! The files that outlive a reboot: one for each storage that was given a file, and the journal of
//! bans next to the first of them.
//!
//! They are opened, sized and locked here, and passed to each worker; only the worker reads and
//! writes them. The lock belongs to the open file, so it goes over with the descriptor: to a
//! successor, to systemd, and to a worker, which holds it until it is dead. *Invariant:* no two
//! storages have one file, nor two daemons: the second one is refused. *Invariant:* a path is
//! followed with the rights of the jail's user or of the worker, so that a user who may write in
//! the directory cannot redirect root; only in a directory that is writable for root alone is a
//! file made by root, and given away. Compat: `STV_GetFile` and `STV_FileSize` of Varnish 7.1,
//! whose messages these are as far as it has them. Next files: `storage_files/locked.rs`,
//! `opening.rs`, `length.rs`, `watching.rs`.

mod length;
mod locked;
mod opening;
mod watching;

#[cfg(test)]
mod tests;

pub use locked::{CutFile, LockedFile};
pub use watching::watch;

use crate::arguments::jail::Jail;
use crate::arguments::storage::Storages;
use crate::arguments::storage::file::FileArgument;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Configured file of a storage.
#[derive(Clone, Debug)]
pub struct FileWanted {
    /// The storage's name.
    pub storage: String,
    /// The file itself, also if a directory was given.
    pub path: PathBuf,
    /// Arguments of `-s file`.
    pub argument: FileArgument,
}

/// The configured files of the command line's storages, in their order.
#[must_use]
pub fn wanted(storages: &Storages) -> Vec<Option<FileWanted>> {
    let of = |storage: &crate::arguments::storage::StorageArgument| {
        let argument = storage.file.clone()?;
        let is_directory = argument.path.is_dir();
        let path =
            if is_directory { argument.path.join(format!("copal.{}", storage.name)) } else { argument.path.clone() };
        Some(FileWanted { storage: storage.name.clone(), path, argument })
    };
    storages.cache.iter().map(of).collect()
}

/// Path of the journal of bans: next to the first file, if there is any.
#[must_use]
pub fn journal_path(wanted: &[Option<FileWanted>]) -> Option<PathBuf> {
    let mut path = wanted.iter().flatten().next()?.path.clone().into_os_string();
    path.push(".bans");
    Some(path.into())
}

/// All of them.
#[derive(Debug)]
pub struct StorageFiles {
    /// One slot for each storage.
    pub of_storages: Vec<Option<LockedFile>>,
    /// The journal of bans, if any storage has a file.
    pub journal: Option<LockedFile>,
}

impl StorageFiles {
    /// No files, for `storages` storages in memory.
    #[must_use]
    pub fn none(storages: usize) -> StorageFiles {
        StorageFiles { of_storages: (0..storages).map(|_| None).collect(), journal: None }
    }

    /// Opens the files that are `wanted`, except those that are there already. Remarks for the
    /// operator go to `remark`. Waits at most `patience` for a lock that another process holds. If
    /// it fails, no file is left that was not there before.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn open(
        &mut self,
        wanted: &[Option<FileWanted>],
        jail: &Jail,
        patience: Duration,
        remark: &mut dyn FnMut(String),
    ) -> Result<(), String> {
        let opened = self.open_all(wanted, jail, patience, remark);
        for file in self.of_storages.iter_mut().chain([&mut self.journal]).flatten() {
            match opened {
                Ok(()) => file.stay(),
                Err(_) => file.unmake(),
            }
        }
        opened
    }

    fn open_all(
        &mut self,
        wanted: &[Option<FileWanted>],
        jail: &Jail,
        patience: Duration,
        remark: &mut dyn FnMut(String),
    ) -> Result<(), String> {
        let mut owners = Vec::new();
        for (slot, wanted) in self.of_storages.iter_mut().zip(wanted) {
            let Some(wanted) = wanted else { continue };
            let taken = |other: &str| format!("(-sfile) {:?}: the storage '{other}' has that file", wanted.path);
            let file = own(slot, &wanted.path, &wanted.storage, &mut owners, jail, taken)?;
            file.lock(patience)?;
            length::fit(file, &wanted.argument, remark)?;
        }
        if let Some(path) = journal_path(wanted) {
            let taken = |other: &str| format!("(-sfile) {path:?} is for the bans, and the storage '{other}' has it");
            own(&mut self.journal, &path, "", &mut owners, jail, taken)?.lock(patience)?;
        }
        Ok(())
    }

    /// The length that each file was given, in bytes; 0 without a file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u64> {
        self.of_storages.iter().map(|file| file.as_ref().map_or(0, LockedFile::bytes)).collect()
    }

    /// The files that were truncated although they are in use.
    #[must_use]
    pub fn cut(&self) -> Vec<CutFile> {
        self.of_storages.iter().flatten().filter_map(LockedFile::cut).collect()
    }

    /// True if the storage at that index has a file.
    #[must_use]
    pub fn has(&self, place: usize) -> bool {
        self.of_storages.get(place).is_some_and(Option::is_some)
    }
}

/// Device and inode of a file, and the storage that has it.
type Owner<'a> = ((u64, u64), &'a str);

/// The file of a slot, which is opened if necessary; `taken` makes the message if one of the owners
/// has it.
fn own<'a, 'b>(
    slot: &'a mut Option<LockedFile>,
    path: &Path,
    storage: &'b str,
    owners: &mut Vec<Owner<'b>>,
    jail: &Jail,
    taken: impl Fn(&str) -> String,
) -> Result<&'a mut LockedFile, String> {
    let mut file = match slot.take() {
        Some(file) => file,
        None => opening::open(path, jail)?,
    };
    let number = file.number().map_err(|error| file.failed(&error))?;
    if let Some((_, other)) = owners.iter().find(|(one, _)| *one == number) {
        file.stay();
        return Err(taken(other));
    }
    owners.push((number, storage));
    Ok(slot.insert(file))
}
