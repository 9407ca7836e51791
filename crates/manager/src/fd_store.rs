//! Memory files that systemd keeps while the unit is restarted (`FileDescriptorStoreMax=`): what is stored lives on in the next daemon.
//!
//! Each file has a name there, which says what it is: `copal-journal`, `copal-seat`, `copal-panic`, and `copal-arena-NAME` for each storage.
//! At a start those that come back are checked, the others are made anew, and systemd is told of the difference. *Invariant:* without the
//! journal no arena comes back: nobody would know what must no longer be served. *Invariant:* systemd never has a file that no daemon of this
//! command line would take. Source: sd_notify(3), FDSTORE, FDSTOREREMOVE, FDNAME; the same files go to a successor by `handover.rs`.

use crate::memory_files::{ARENA, JOURNAL, MemoryFiles, PANIC, SEAT, check};
use crate::systemd;
use nix::sys::stat::fstat;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A storage, as the command line has it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Name.
    pub name: String,
    /// Limit in bytes.
    pub limit_bytes: u64,
}

/// What comes of the files that came back.
#[derive(Debug)]
pub struct TakenBack {
    /// All files that the daemon needs.
    pub memory: MemoryFiles,
    /// What came back and is not used, by its name, and why.
    pub refused: Vec<(String, String)>,
    /// How many storages come back.
    pub storages: usize,
    /// Names to be removed from systemd's store.
    removed: Vec<String>,
    /// Places of the files that it has not got, among all.
    missing: Vec<usize>,
}

/// The names of all files, in the order of [`MemoryFiles::handles`].
fn names(storages: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    let fixed = [JOURNAL, PANIC, SEAT].map(|name| name.to_string_lossy().into_owned());
    let arenas = storages.map(|name| format!("{}-{}", ARENA.to_string_lossy(), name.as_ref()));
    fixed.into_iter().chain(arenas).collect()
}

/// Takes back what can be used of `kept`, and makes the rest anew.
///
/// # Errors
/// Files cannot be made.
pub fn take_back(kept: Vec<(String, OwnedFd)>, storages: &[Wanted]) -> io::Result<TakenBack> {
    let names = names(storages.iter().map(|storage| &storage.name));
    let mut refused = Vec::new();
    let mut found: Vec<Option<OwnedFd>> = names.iter().map(|_| None).collect();
    let mut removed = Vec::new();
    for (name, file) in kept {
        let why = match names.iter().position(|known| *known == name) {
            None => Some("no -s has that name".to_owned()),
            Some(at) if found[at].is_some() => Some("it is there twice".to_owned()),
            Some(at) => match fits(&file, at, storages) {
                Ok(()) => {
                    found[at] = Some(file);
                    None
                }
                Err(why) => Some(why),
            },
        };
        if let Some(why) = why {
            removed.push(name.clone());
            refused.push((name, why));
        }
    }
    // The store cannot tell two of the same name apart: both go.
    for (name, found) in names.iter().zip(&mut found) {
        if removed.contains(name) {
            *found = None;
        }
    }
    if found[0].is_none() {
        for (name, found) in names.iter().zip(&mut found).skip(MemoryFiles::handle_count(0)) {
            if found.take().is_some() {
                removed.push(name.clone());
                refused.push((name.clone(), "there is no journal of bans with it".to_owned()));
            }
        }
    }
    removed.dedup();
    let missing: Vec<usize> = (0..names.len()).filter(|at| found[*at].is_none()).collect();
    let storages_back = found.iter().skip(MemoryFiles::handle_count(0)).flatten().count();
    let fresh = MemoryFiles::create(storages.len())?.handles()?;
    let handles = found.into_iter().zip(fresh).map(|(found, fresh)| found.unwrap_or(fresh)).collect();
    match MemoryFiles::take_over(handles, storages.len()) {
        Ok(memory) => Ok(TakenBack { memory, refused, storages: storages_back, removed, missing }),
        Err(why) => {
            refused.push(("all".to_owned(), why));
            let (removed, missing) = (names.clone(), (0..names.len()).collect());
            Ok(TakenBack { memory: MemoryFiles::create(storages.len())?, refused, storages: 0, removed, missing })
        }
    }
}

/// Whether a file is what belongs at that place.
fn fits(file: &OwnedFd, at: usize, storages: &[Wanted]) -> Result<(), String> {
    let kind = [JOURNAL, PANIC, SEAT].get(at).copied().unwrap_or(ARENA);
    check(file, kind)?;
    let Some(storage) = at.checked_sub(MemoryFiles::handle_count(0)).and_then(|at| storages.get(at)) else {
        return Ok(());
    };
    let length = fstat(file).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0));
    // An arena keeps its length. In a much smaller one the storage could never become what it is meant to be.
    match length == 0 || length >= storage.limit_bytes {
        true => Ok(()),
        false => Err("it was made for a smaller storage".to_owned()),
    }
}

impl TakenBack {
    /// Tells systemd what to forget and what to keep. Does nothing without systemd.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn settle(&self, storages: &[Wanted]) -> io::Result<()> {
        self.removed.iter().try_for_each(|name| systemd::forget(name))?;
        let names = names(storages.iter().map(|storage| &storage.name));
        let handles = self.memory.handles()?;
        self.missing.iter().try_for_each(|at| systemd::keep(&names[*at], handles[*at].as_fd()))
    }
}

/// Gives systemd the present files in place of those that it has: some were made anew. Does nothing without systemd.
///
/// # Errors
/// Whatever the system reports.
pub fn renew<'a>(memory: &MemoryFiles, storages: impl Iterator<Item = &'a str>) -> io::Result<()> {
    for (name, handle) in names(storages).iter().zip(memory.handles()?) {
        systemd::forget(name)?;
        systemd::keep(name, handle.as_fd())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};

    fn wanted(storages: &[(&str, u64)]) -> Vec<Wanted> {
        storages
            .iter()
            .map(|(name, limit_bytes)| Wanted { name: (*name).to_owned(), limit_bytes: *limit_bytes })
            .collect()
    }

    fn kept(memory: &MemoryFiles, storages: &[Wanted]) -> Vec<(String, OwnedFd)> {
        let names = names(storages.iter().map(|storage| &storage.name));
        names.into_iter().zip(memory.handles().unwrap()).collect()
    }

    fn numbers(memory: &MemoryFiles) -> Vec<u64> {
        memory.handles().unwrap().into_iter().map(|file| File::from(file).metadata().unwrap().ino()).collect()
    }

    #[test]
    fn everything_comes_back_and_systemd_need_not_be_told() {
        let storages = wanted(&[("s0", 4096), ("large", 8192)]);
        let memory = MemoryFiles::create(2).unwrap();
        let mut kept = kept(&memory, &storages);
        kept.reverse();
        let back = take_back(kept, &storages).unwrap();
        assert_eq!(numbers(&back.memory), numbers(&memory));
        assert_eq!((back.storages, back.missing.len(), back.removed.len()), (2, 0, 0));
    }

    #[test]
    fn nothing_comes_back_at_the_first_start() {
        let back = take_back(Vec::new(), &wanted(&[("s0", 4096)])).unwrap();
        assert_eq!((back.storages, back.missing, back.removed.len()), (0, vec![0, 1, 2, 3], 0));
    }

    #[test]
    fn what_does_not_fit_the_command_line_goes_alone() {
        let storages = wanted(&[("a", 4096), ("b", 4096)]);
        let memory = MemoryFiles::create(2).unwrap();
        let before = numbers(&memory);
        File::from(memory.handles().unwrap().pop().unwrap()).write_all_at(&[1; 5000], 0).unwrap();
        let refusal =
            |back: &TakenBack| back.refused.iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>();

        let other = take_back(kept(&memory, &storages), &wanted(&[("b", 4096), ("c", 4096)])).unwrap();
        assert_eq!(refusal(&other), ["copal-arena-a: no -s has that name"]);
        assert_eq!((numbers(&other.memory)[3], other.storages), (before[4], 1));
        assert_eq!((other.missing.clone(), other.removed.clone()), (vec![4], vec!["copal-arena-a".to_owned()]));

        let larger = take_back(kept(&memory, &storages), &wanted(&[("a", 1 << 30), ("b", 6000)])).unwrap();
        assert_eq!(refusal(&larger), ["copal-arena-b: it was made for a smaller storage"]);
        assert_eq!(numbers(&larger.memory)[3], before[3], "an arena that no worker has sized yet");

        let mut twice = kept(&memory, &storages);
        twice.push(("copal-arena-a".to_owned(), MemoryFiles::create(1).unwrap().handles().unwrap().pop().unwrap()));
        let twice = take_back(twice, &storages).unwrap();
        assert_eq!(refusal(&twice), ["copal-arena-a: it is there twice"]);
        assert!(!numbers(&twice.memory).contains(&before[3]));
    }

    #[test]
    fn without_the_bans_nothing_that_is_stored_comes_back() {
        let storages = wanted(&[("s0", 4096)]);
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
}
