//! Memory files that systemd keeps while the unit is restarted (`FileDescriptorStoreMax=`): the
//! stored objects survive into the next daemon.
//!
//! The name of each file says its kind: `copal-journal`, `copal-seat`, `copal-panic`, and
//! `copal-arena-NAME` for each storage; with them go the files on disks, `copal-file-NAME` and
//! again the journal, so that their locks hold and the files that come back are certain to belong
//! together. At a start those that come back are checked, the others are made anew, and the
//! difference is sent to systemd. *Invariant:* without the journal no arena comes back, since the
//! bans are unknown; nor without its file, if it is to have one. *Invariant:* systemd never has a
//! file that no daemon of this command line would take. Source: sd_notify(3), FDSTORE,
//! FDSTOREREMOVE, FDNAME; the same files go to a successor by `handover.rs`.

use crate::arguments::storage::Storages;
use crate::memory_files::{ARENA, DIRECTORY_LOCK, FIXED, JOURNAL, MemoryFiles, PANIC, check};
use crate::storage_files::{FileWanted, LockedFile, StorageFiles, journal_path, wanted};
use crate::systemd;
use nix::sys::stat::fstat;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Prefix of the name of a storage's file.
const FILE: &str = "copal-file";

/// Result of taking the files back.
#[derive(Debug)]
pub struct TakenBack {
    /// All files that the daemon needs.
    pub memory: MemoryFiles,
    /// Files that came back and are not used: name and reason.
    pub refused: Vec<(String, String)>,
    /// Number of storages that come back.
    pub storages: usize,
    /// Names to be removed from systemd's store.
    removed: Vec<String>,
    /// Indices of the files that systemd does not have.
    missing: Vec<usize>,
}

/// The names of all files, in the order of [`MemoryFiles::handles`].
fn names(storages: &Storages) -> Vec<String> {
    let fixed = [JOURNAL, PANIC, DIRECTORY_LOCK].map(|name| name.to_string_lossy().into_owned());
    let arenas = storages.cache.iter().map(|storage| format!("{}-{}", ARENA.to_string_lossy(), storage.name));
    let on_disk = storages.cache.iter().filter(|storage| storage.file.is_some());
    let files = on_disk.map(|storage| format!("{FILE}-{}", storage.name));
    fixed.into_iter().chain(arenas).chain(files).collect()
}

/// Files that came back, by their index in the order of handles.
struct Kept {
    names: Vec<String>,
    found: Vec<Option<OwnedFd>>,
    refused: Vec<(String, String)>,
    removed: Vec<String>,
}

impl Kept {
    /// Sorts the files that came back. Two files of the same name cannot be distinguished: both are
    /// dropped.
    fn sorted(kept: Vec<(String, OwnedFd)>, storages: &Storages) -> Kept {
        let names = names(storages);
        let found = names.iter().map(|_| None).collect();
        let mut sorted = Kept { names, found, refused: Vec::new(), removed: Vec::new() };
        let mut twice = Vec::new();
        for (name, file) in kept {
            match sorted.names.iter().position(|known| *known == name) {
                None => sorted.note(name, "no -s has that name"),
                Some(at) if sorted.found[at].is_some() => twice.push(at),
                Some(at) => sorted.found[at] = Some(file),
            }
        }
        twice.iter().for_each(|at| sorted.refuse(*at, "it is there twice"));
        sorted
    }

    fn note(&mut self, name: String, why: impl Into<String>) {
        if !self.removed.contains(&name) {
            self.removed.push(name.clone());
        }
        self.refused.push((name, why.into()));
    }

    fn refuse(&mut self, at: usize, why: impl Into<String>) {
        if self.found[at].take().is_some() {
            self.note(self.names[at].clone(), why);
        }
    }

    /// Takes the file at that index of the store out, if it is the one at a path.
    fn file(&mut self, at: usize, path: &std::path::Path) -> Option<LockedFile> {
        let adopted = LockedFile::adopt(self.found[at].take()?, path.to_owned());
        let why = match adopted {
            Ok(file) if file.is_at(path) => return Some(file),
            Ok(file) => {
                // Systemd drops it only later, and it may be a path of its own again by then.
                file.release();
                format!("it is not the file {} any more", path.display())
            }
            Err(why) => why,
        };
        self.note(self.names[at].clone(), why);
        None
    }
}

/// Takes back the usable files of `kept`, and makes the others anew. `open` opens the files on
/// disks that are missing, gives all of them the length that they should have, and returns the
/// limit of each storage's memory.
///
/// # Errors
/// The message for the operator.
pub fn take_back(
    kept: Vec<(String, OwnedFd)>,
    storages: &Storages,
    open: impl FnOnce(&mut StorageFiles, &[Option<FileWanted>]) -> Result<Vec<u64>, String>,
) -> Result<TakenBack, String> {
    let (wanted, count) = (wanted(storages), storages.cache.len());
    let mut kept = Kept::sorted(kept, storages);
    let mut files = StorageFiles::none(count);
    let has_journal = match journal_path(&wanted) {
        Some(path) => {
            files.journal = kept.file(0, &path);
            files.journal.is_some()
        }
        None => kept.found[0].as_ref().is_some_and(|file| check(file, JOURNAL).is_ok()),
    };
    for (at, kind) in (0..).zip([JOURNAL, PANIC, DIRECTORY_LOCK].into_iter().chain(std::iter::repeat_n(ARENA, count))) {
        let wrong = kept.found[at].as_ref().and_then(|file| check(file, kind).err());
        if let Some(why) = wrong {
            kept.refuse(at, why);
        }
    }
    let mut at_file = FIXED + count;
    for (place, wanted) in wanted.iter().enumerate() {
        let Some(wanted) = wanted else { continue };
        files.of_storages[place] = kept.file(at_file, &wanted.path);
        at_file += 1;
        if !files.has(place) {
            kept.refuse(FIXED + place, "its file did not come with it");
        }
    }
    if !has_journal {
        (FIXED..FIXED + count).for_each(|at| kept.refuse(at, "there is no journal of bans with it"));
    }
    let has_files: Vec<bool> = (0..count).map(|place| files.has(place)).collect();
    let (has_kept_journal, bytes) = (files.journal.is_some(), files.bytes());
    let limits = open(&mut files, &wanted)?;
    for (place, (before, after)) in bytes.into_iter().zip(files.bytes()).enumerate() {
        // An arena keeps its length. In a much smaller one the storage could never reach its
        // configured size.
        let length =
            kept.found[FIXED + place].as_ref().and_then(|arena| fstat(arena).ok()).map_or(0, |found| found.st_size);
        if has_files[place] {
            if before != after {
                kept.refuse(FIXED + place, "its file has another length now");
            }
        } else if length != 0 && u64::try_from(length).unwrap_or(0) < limits.get(place).copied().unwrap_or(0) {
            kept.refuse(FIXED + place, "it was made for a smaller storage");
        }
    }
    let Kept { names, found, mut refused, removed } = kept;
    let is_there = |at: usize| match at.checked_sub(FIXED + count) {
        _ if at == 0 && has_kept_journal => true,
        Some(nth) => {
            has_files.iter().zip(&wanted).filter(|(_, wanted)| wanted.is_some()).nth(nth).is_some_and(|(has, _)| *has)
        }
        None => found[at].is_some(),
    };
    let missing: Vec<usize> = (0..names.len()).filter(|at| !is_there(*at)).collect();
    let back = found[FIXED..FIXED + count].iter().flatten().count();
    let memory = |error: io::Error| format!("Cannot set up shared memory: {}", crate::arguments::reason(&error));
    let fresh = MemoryFiles::create(count).map_err(memory)?.with_files(files);
    let handles = found.into_iter().zip(fresh.handles().map_err(memory)?);
    match MemoryFiles::take_over(handles.map(|(found, fresh)| found.unwrap_or(fresh)).collect(), &wanted) {
        Ok(memory) => Ok(TakenBack { memory, refused, storages: back, removed, missing }),
        Err(why) => {
            refused.push(("all".to_owned(), why));
            let (removed, missing) = (names.clone(), (0..names.len()).collect());
            Ok(TakenBack { memory: fresh, refused, storages: 0, removed, missing })
        }
    }
}

impl TakenBack {
    /// Sends systemd the files to remove and the files to keep. Does nothing without systemd.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn settle(&self, storages: &Storages) -> io::Result<()> {
        self.removed.iter().try_for_each(|name| systemd::forget(name))?;
        let names = names(storages);
        let handles = self.memory.handles()?;
        self.missing.iter().try_for_each(|at| systemd::keep(&names[*at], handles[*at].as_fd()))
    }
}

/// Replaces the files that systemd has by the present ones: some were made anew. Does nothing
/// without systemd.
///
/// # Errors
/// Errors of the system.
pub fn renew(memory: &MemoryFiles, storages: &Storages) -> io::Result<()> {
    renew_by(memory, storages, &mut systemd::forget, &mut systemd::keep)
}

/// The journal is removed first and stored last: at no time does systemd have one next to arenas
/// that it does not cover.
fn renew_by(
    memory: &MemoryFiles,
    storages: &Storages,
    forget: &mut dyn FnMut(&str) -> io::Result<()>,
    keep: &mut dyn FnMut(&str, BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let names = names(storages);
    names.iter().try_for_each(|name| forget(name))?;
    names.iter().zip(&memory.handles()?).rev().try_for_each(|(name, handle)| keep(name, handle.as_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::jail::Jail;
    use crate::arguments::storage::parse;
    use std::cell::{Cell, RefCell};
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::time::Duration;

    fn storages(arguments: &[&str]) -> Storages {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        parse(&arguments).unwrap()
    }

    fn take_back(kept: Vec<(String, OwnedFd)>, storages: &Storages) -> Result<TakenBack, String> {
        let jail = Jail::None { asked: true };
        super::take_back(kept, storages, |files, wanted| {
            files.open(wanted, &jail, Duration::ZERO, &mut |_| {})?;
            let sizes = storages.cache.iter().map(|storage| storage.size).zip(files.bytes());
            Ok(sizes.map(|(size, bytes)| size.bytes_of(1 << 40, bytes).unwrap_or(0)).collect())
        })
    }

    fn kept(memory: &MemoryFiles, storages: &Storages) -> Vec<(String, OwnedFd)> {
        names(storages).into_iter().zip(memory.handles().unwrap()).collect()
    }

    fn numbers(memory: &MemoryFiles) -> Vec<u64> {
        memory.handles().unwrap().into_iter().map(|file| File::from(file).metadata().unwrap().ino()).collect()
    }

    #[test]
    fn all_stored_descriptors_are_taken_back() {
        let storages = storages(&["malloc,4k", "large=malloc,8k"]);
        let memory = MemoryFiles::create(2).unwrap();
        let mut kept = kept(&memory, &storages);
        kept.reverse();
        let back = take_back(kept, &storages).unwrap();
        assert_eq!(numbers(&back.memory), numbers(&memory));
        assert_eq!((back.storages, back.missing.len(), back.removed.len()), (2, 0, 0));
    }

    #[test]
    fn nothing_comes_back_at_the_first_start() {
        let back = take_back(Vec::new(), &storages(&["malloc,4k"])).unwrap();
        assert_eq!((back.storages, back.missing, back.removed.len()), (0, vec![0, 1, 2, 3], 0));
    }

    #[test]
    fn only_storages_that_differ_from_the_command_line_are_dropped() {
        let both = storages(&["a=malloc,4k", "b=malloc,4k"]);
        let memory = MemoryFiles::create(2).unwrap();
        let before = numbers(&memory);
        File::from(memory.handles().unwrap().pop().unwrap()).write_all_at(&[1; 5000], 0).unwrap();
        let refusal =
            |back: &TakenBack| back.refused.iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>();

        let other = take_back(kept(&memory, &both), &storages(&["b=malloc,4k", "c=malloc,4k"])).unwrap();
        assert_eq!(refusal(&other), ["copal-arena-a: no -s has that name"]);
        assert_eq!((numbers(&other.memory)[3], other.storages), (before[4], 1));
        assert_eq!((other.missing.clone(), other.removed.clone()), (vec![4], vec!["copal-arena-a".to_owned()]));

        let larger = take_back(kept(&memory, &both), &storages(&["a=malloc,1g", "b=malloc,6000"])).unwrap();
        assert_eq!(refusal(&larger), ["copal-arena-b: it was made for a smaller storage"]);
        assert_eq!(numbers(&larger.memory)[3], before[3], "an arena that no worker has sized yet");

        let mut twice = kept(&memory, &both);
        twice.push(("copal-arena-a".to_owned(), MemoryFiles::create(1).unwrap().handles().unwrap().pop().unwrap()));
        let twice = take_back(twice, &both).unwrap();
        assert_eq!(refusal(&twice), ["copal-arena-a: it is there twice"]);
        assert!(!numbers(&twice.memory).contains(&before[3]));
    }

    #[test]
    fn wherever_a_renewal_is_cut_short_the_journal_is_that_of_the_arenas() {
        let storages = storages(&["a=malloc,4k", "b=malloc,4k"]);
        let (old, new) = (MemoryFiles::create(2).unwrap(), MemoryFiles::create(2).unwrap());
        for messages in 0..=2 * names(&storages).len() {
            let store = RefCell::new(kept(&old, &storages));
            let sent = Cell::new(0);
            let send = || if sent.replace(sent.get() + 1) < messages { Ok(()) } else { Err(io::Error::other("gone")) };
            let done = renew_by(
                &new,
                &storages,
                &mut |name| send().map(|()| store.borrow_mut().retain(|(known, _)| known != name)),
                &mut |name, file| {
                    send()?;
                    store.borrow_mut().push((name.to_owned(), file.try_clone_to_owned()?));
                    Ok(())
                },
            );
            assert_eq!(done.is_ok(), messages == 2 * names(&storages).len());
            let back = take_back(store.into_inner(), &storages).unwrap();
            let those = if messages == 0 { &old } else { &new };
            let expected = if messages == 0 || done.is_ok() { 2 } else { 0 };
            assert_eq!(back.storages, expected, "after {messages} messages");
            assert!(expected == 0 || numbers(&back.memory) == numbers(those));
        }
    }

    #[test]
    fn without_the_bans_nothing_that_is_stored_comes_back() {
        let storages = storages(&["malloc,4k"]);
        let memory = MemoryFiles::create(1).unwrap();
        let all = || kept(&memory, &storages);
        let back = take_back(all().split_off(1), &storages).unwrap();
        assert_eq!(back.refused[0].1, "there is no journal of bans with it");
        assert_eq!((back.storages, back.missing), (0, vec![0, 3]));
        let mut foreign = all();
        foreign[0].1 = File::open("/dev/null").unwrap().into();
        let back = take_back(foreign, &storages).unwrap();
        assert_eq!(
            back.refused[0],
            ("copal-journal".to_owned(), "/dev/null is not the memory file copal-journal".to_owned())
        );
        assert_eq!(back.removed, ["copal-journal", "copal-arena-s0"]);
        assert!(numbers(&back.memory).iter().all(|number| !numbers(&memory)[3..].contains(number)));
    }

    #[test]
    fn file_and_its_memory_are_taken_back_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bodies");
        let storages = storages(&["malloc,4k", &format!("f=file,{},1m", path.display())]);
        let first = take_back(Vec::new(), &storages).unwrap();
        assert_eq!(first.missing, [0, 1, 2, 3, 4, 5]);
        let before = numbers(&first.memory);
        let back = take_back(kept(&first.memory, &storages), &storages).unwrap();
        assert_eq!((numbers(&back.memory), back.storages, back.missing.len()), (before.clone(), 2, 0));
        drop(back);

        let alone =
            |name: &str| kept(&first.memory, &storages).into_iter().filter(|one| one.0 != name).collect::<Vec<_>>();
        assert!(take_back(alone("copal-file-f"), &storages).unwrap_err().contains("is used by another process"));
        let bans = take_back(alone("copal-journal"), &storages).unwrap_err();
        assert!(bans.contains("bodies.bans\" is used by"), "{bans}");

        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        let other = take_back(kept(&first.memory, &storages), &storages).unwrap();
        let whys: Vec<_> = other.refused.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((whys, other.storages), (vec!["copal-file-f", "copal-arena-f"], 1));
        assert!(!numbers(&other.memory).contains(&before[4]) && !numbers(&other.memory).contains(&before[5]));
        assert_eq!(other.missing, [4, 5]);
    }
}
