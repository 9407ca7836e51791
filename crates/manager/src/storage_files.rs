//! The files that outlive a reboot: one for each storage that was given a file, and the journal of bans beside the first of them.
//!
//! They are opened, sized and locked here, and handed to each worker; what is in them concerns only the worker. The lock belongs to
//! the open file, so it goes over with the descriptor: to a successor, to systemd, and to a worker, which holds it until it is dead.
//! *Invariant:* no two storages have one file, nor two daemons: the second one is refused. *Invariant:* a path is followed with the
//! rights of the jail's user or of the worker, so that whoever writes in a directory of theirs leads root nowhere; only in a directory
//! that nobody but root may write is a file made by root, and given away. Compat: `STV_GetFile` and `STV_FileSize` of Varnish 7.1, whose
//! messages these are as far as it has them.

use crate::arguments::jail::{Jail, Reader};
use crate::arguments::reason;
use crate::arguments::storage::Storages;
use crate::arguments::storage::file::{FileArgument, FileSize, too_small};
use crate::memory::Size as Shown;
use crate::rights;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, OFlag, fallocate, fcntl};
use nix::libc;
use nix::sys::stat::{major, minor};
use nix::sys::statvfs::fstatvfs;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno as Held;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often to look whether a lock has become free.
const RETRY: Duration = Duration::from_millis(10);
/// So much of the beginning of a file says what is in it: without that it is empty.
const HEADER_BYTES: usize = 64 << 10;

/// The file that a storage is meant to have.
#[derive(Clone, Debug)]
pub struct FileWanted {
    /// The storage's name.
    pub storage: String,
    /// The file itself, also where a directory was given.
    pub path: PathBuf,
    /// What the command line says.
    pub argument: FileArgument,
}

/// The files that the storages of the command line are meant to have, in their order.
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

/// Where the journal of bans lies: beside the first file, if there is any.
#[must_use]
pub fn journal_path(wanted: &[Option<FileWanted>]) -> Option<PathBuf> {
    let mut path = wanted.iter().flatten().next()?.path.clone().into_os_string();
    path.push(".bans");
    Some(path.into())
}

/// A file that nobody else has.
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    path: PathBuf,
}

/// All of them.
#[derive(Debug)]
pub struct StorageFiles {
    /// One place for each storage.
    pub of_storages: Vec<Option<LockedFile>>,
    /// The journal of bans, if any storage has a file.
    pub journal: Option<LockedFile>,
}

impl StorageFiles {
    /// None, for so many storages in memory.
    #[must_use]
    pub fn none(storages: usize) -> StorageFiles {
        StorageFiles { of_storages: (0..storages).map(|_| None).collect(), journal: None }
    }

    /// Opens the files that are `wanted`, except those that are there already. What an operator should know goes to `remark`. A lock
    /// that another process holds is waited for as long as `patience`.
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
        let mut seen: Vec<((u64, u64), &str)> = Vec::new();
        for (slot, wanted) in self.of_storages.iter_mut().zip(wanted) {
            let Some(wanted) = wanted else { continue };
            let file = match slot.take() {
                Some(file) => file,
                None => LockedFile::opened(&wanted.path, jail)?,
            };
            let number = file.number().map_err(|error| file.failed(&error))?;
            if let Some((_, other)) = seen.iter().find(|(one, _)| *one == number) {
                return Err(format!("(-sfile) {:?}: the storage '{other}' has that file", wanted.path));
            }
            seen.push((number, &wanted.storage));
            let file = slot.insert(file);
            file.lock(patience)?;
            file.fit(&wanted.argument, remark)?;
        }
        if let Some(path) = journal_path(wanted).filter(|_| self.journal.is_none()) {
            let journal = LockedFile::opened(&path, jail)?;
            let number = journal.number().map_err(|error| journal.failed(&error))?;
            if let Some((_, other)) = seen.iter().find(|(one, _)| *one == number) {
                return Err(format!("(-sfile) {path:?} is for the bans, and the storage '{other}' has it"));
            }
            journal.lock(patience)?;
            self.journal = Some(journal);
        }
        Ok(())
    }

    /// The length of each file in bytes; 0 where there is none.
    #[must_use]
    pub fn bytes(&self) -> Vec<u64> {
        self.of_storages.iter().map(|file| file.as_ref().map_or(0, LockedFile::bytes)).collect()
    }

    /// Whether the storage at that index has a file.
    #[must_use]
    pub fn has(&self, place: usize) -> bool {
        self.of_storages.get(place).is_some_and(Option::is_some)
    }
}

impl LockedFile {
    /// A file that was handed over, with its lock.
    ///
    /// # Errors
    /// It is no regular file, or cannot be written.
    pub fn adopt(handle: OwnedFd, path: PathBuf) -> Result<LockedFile, String> {
        let flags = fcntl(&handle, FcntlArg::F_GETFL).map(OFlag::from_bits_truncate);
        let file = File::from(handle);
        let is_regular = file.metadata().is_ok_and(|found| found.is_file());
        if !is_regular || !flags.is_ok_and(|flags| flags & OFlag::O_ACCMODE == OFlag::O_RDWR) {
            return Err(format!("what is handed over as {} is no such file", path.display()));
        }
        let adopted = LockedFile { file, path };
        // Its own lock stays as it is; nobody else may have one.
        adopted.lock(Duration::ZERO)?;
        Ok(adopted)
    }

    /// Device and number.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn number(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|found| (found.dev(), found.ino()))
    }

    /// Whether it is the file that a path leads to now.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        let there = fs::metadata(path).map(|found| (found.dev(), found.ino()));
        matches!((there, self.number()), (Ok(there), Ok(ours)) if there == ours)
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |found| found.len())
    }

    /// A further handle, which shares the lock.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// Makes the next worker find nothing in a storage's file.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn erase(&self) -> io::Result<()> {
        let bytes = HEADER_BYTES.min(usize::try_from(self.bytes()).unwrap_or(HEADER_BYTES));
        self.file.write_all_at(&vec![0; bytes], 0)?;
        self.file.sync_data()
    }

    /// Makes the file empty.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.sync_data()
    }

    /// Gives up the lock, whoever shares it.
    pub fn release(self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("(-sfile) {:?}: {}", self.path, reason(error))
    }

    /// Opens a file, or makes it; it is not locked yet.
    fn opened(path: &Path, jail: &Jail) -> Result<LockedFile, String> {
        let file = open_as(path, jail)?;
        let found = file.metadata().map_err(|error| format!("(-sfile) {path:?}: {}", reason(&error)))?;
        if !found.is_file() {
            return Err(neither(path));
        }
        Ok(LockedFile { file, path: path.to_owned() })
    }

    fn lock(&self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Held::WOULDBLOCK | Held::INTR) if Instant::now() < deadline => std::thread::sleep(RETRY),
                Err(Held::WOULDBLOCK) => {
                    let who = self.holder().map_or(String::new(), |pid| format!(" ({pid})"));
                    return Err(format!("(-sfile) {:?} is used by another process{who}", self.path));
                }
                Err(error) => {
                    return Err(format!("(-sfile) {:?} could not be locked ({})", self.path, reason(&error.into())));
                }
            }
        }
    }

    /// The process that has locked the file, as far as the kernel tells. Source: proc_locks(5).
    fn holder(&self) -> Option<u32> {
        let (device, number) = self.number().ok()?;
        let file = format!("{:02x}:{:02x}:{number}", major(device), minor(device));
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let mut fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = fields.find(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&file.as_str()))?;
        found.get(4)?.parse().ok().filter(|pid| *pid > 0)
    }

    /// Gives a storage's file its length, and takes the room on the disk.
    fn fit(&self, argument: &FileArgument, remark: &mut dyn FnMut(String)) -> Result<(), String> {
        let failed = |error: &io::Error| self.failed(error);
        let found = self.file.metadata().map_err(|error| failed(&error))?;
        let disk = fstatvfs(&self.file).map_err(|error| failed(&error.into()))?;
        let unit = disk.fragment_size();
        let (free, all) = (disk.blocks_available() * unit, disk.blocks() * unit);
        let (length, has) = (found.len(), found.blocks() * 512);
        let size = &argument.size_text;
        let wanted = match argument.size {
            FileSize::Bytes(bytes) => bytes,
            FileSize::Percent(_) if length >= argument.bytes_min() => length,
            FileSize::Percent(percent) => free.saturating_add(has) / 100 * percent,
        };
        let wanted = wanted - wanted % argument.granularity_bytes;
        if wanted < argument.bytes_min() {
            return Err(too_small(size));
        }
        if wanted > all {
            return Err(format!("(-sfile) size \"{size}\": larger than file system"));
        }
        let full = || {
            let (missing, free) = (Shown(wanted.saturating_sub(has)), Shown(free));
            format!(
                "(-sfile) size \"{size}\": {missing} more are needed on the disk of {:?}, which has {free}",
                self.path
            )
        };
        if wanted.saturating_sub(has) > free {
            return Err(full());
        }
        if length > wanted {
            self.file.set_len(wanted).map_err(|error| failed(&error))?;
        }
        let bytes = libc::off_t::try_from(wanted).map_err(|_| too_small(size))?;
        match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            Err(Errno::ENOSPC | Errno::EDQUOT) => {
                // What it was given of the rest is of no use.
                let _ = self.file.set_len(length.min(wanted));
                Err(full())
            }
            Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                self.file.set_len(wanted).map_err(|error| failed(&error))?;
                let what = "no room can be reserved on its file system, which may be full before the storage is";
                remark(format!("{}: {what}", self.path.display()));
                Ok(())
            }
            Err(error) => Err(failed(&error.into())),
        }
    }
}

fn neither(path: &Path) -> String {
    format!("(-sfile) {path:?} is neither file nor directory")
}

/// Opens or makes a file, as whoever may: the jail's user, or the worker's.
fn open_as(path: &Path, jail: &Jail) -> Result<File, String> {
    let users: Vec<Option<Reader>> = match jail {
        Jail::None { .. } => vec![None],
        Jail::Unix { reader, worker: (user, group), .. } => {
            vec![Some(reader.clone()), Some(Reader { user: *user, group: *group, groups: Vec::new() })]
        }
    };
    let mut first = None;
    for user in &users {
        match rights::with(user.as_ref(), || open(path)).and_then(|opened| opened) {
            Ok(file) => return Ok(file),
            Err(error) => first = first.or(Some(error)),
        }
    }
    let error = first.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(neither(path)),
        Ok(_) => Err(format!("(-sfile) {path:?} could not open ({})", reason(&error))),
        Err(_) => match jail {
            Jail::Unix { reader, .. } if is_of_root_alone(path) => make_for(path, reader),
            Jail::Unix { .. } | Jail::None { .. } => Err(error),
        }
        .map_err(|error| format!("(-sfile) {path:?} does not exist and could not be created: {}", reason(&error))),
    }
}

fn open(path: &Path) -> io::Result<File> {
    // What is no file must not keep us waiting.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

/// Whether nobody but root may write in the directory of a file, and others may look into it.
fn is_of_root_alone(path: &Path) -> bool {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::metadata(directory).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o023 == 0o001)
}

/// Makes a file of a user where only root may.
fn make_for(path: &Path, reader: &Reader) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    fchown(&file, Some(reader.user), Some(reader.group))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::storage::parse;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    const HERE: Jail = Jail::None { asked: true };

    /// Opens the files of these `-s file`; `@` stands for the folder.
    fn open_all(folder: &TempDir, arguments: &[&str], jail: &Jail) -> Result<StorageFiles, String> {
        let at = folder.path().display().to_string();
        let arguments: Vec<String> = arguments.iter().map(|text| format!("file,{}", text.replace('@', &at))).collect();
        let wanted = wanted(&parse(&arguments).unwrap());
        let mut files = StorageFiles::none(wanted.len());
        files.open(&wanted, jail, Duration::ZERO, &mut |_| {})?;
        Ok(files)
    }

    fn refused(folder: &TempDir, arguments: &[&str]) -> String {
        let at = folder.path().display().to_string();
        open_all(folder, arguments, &HERE).unwrap_err().replace(&at, "@")
    }

    #[test]
    fn a_file_has_its_length_and_room_on_the_disk_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let files = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
        let found = fs::metadata(folder.path().join("bodies")).unwrap();
        assert_eq!((found.len(), found.permissions().mode() & 0o777), (1 << 20, 0o600));
        assert!(found.blocks() * 512 >= 1 << 20, "{}", found.blocks());
        assert!(folder.path().join("bodies.bans").is_file());
        assert_eq!((files.bytes(), files.has(0), files.has(1)), (vec![1 << 20], true, false));
        let pid = std::process::id();
        let message = refused(&folder, &["@/bodies,1m"]);
        assert_eq!(message, format!("(-sfile) \"@/bodies\" is used by another process ({pid})"));
        // A handle keeps the lock.
        let handle = files.of_storages[0].as_ref().unwrap().handle().unwrap();
        drop(files);
        assert!(refused(&folder, &["@/bodies,1m"]).contains("is used by"));
        drop(handle);
        open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
    }

    #[test]
    fn a_lock_that_is_about_to_go_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let first = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
        let other = LockedFile::opened(&folder.path().join("bodies"), &HERE).unwrap();
        let waiting = std::thread::spawn(move || other.lock(Duration::from_secs(60)));
        drop(first);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn what_is_in_a_file_stays_unless_its_length_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bodies");
        drop(open_all(&folder, &["@/bodies,2m"], &HERE).unwrap());
        fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(b"body", 1 << 20).unwrap();
        let has = |size: &str| {
            let files = open_all(&folder, &[&format!("@/bodies,{size}")], &HERE).unwrap();
            let mut found = [0; 4];
            let file = File::open(&path).unwrap();
            let _ = file.read_exact_at(&mut found, 1 << 20);
            (files.bytes()[0], &found == b"body")
        };
        assert_eq!(has("2m"), (2 << 20, true));
        assert_eq!(has("1%"), (2 << 20, true), "a file that is there keeps its length");
        assert_eq!(has("3m"), (3 << 20, true));
        assert_eq!(has("1000k"), (1000 << 10, false));
        assert_eq!(has("1000001"), (999_424, false), "whole pages");
    }

    #[test]
    fn a_directory_gets_a_file_for_each_storage() {
        let folder = tempfile::tempdir().unwrap();
        let files = open_all(&folder, &["@,1m", "@,2m"], &HERE).unwrap();
        assert_eq!(files.bytes(), [1 << 20, 2 << 20]);
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["copal.s0", "copal.s0.bans", "copal.s1"]);
    }

    #[test]
    fn what_cannot_be_a_storage_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(refused(&folder, &["@/fifo,1m"]), "(-sfile) \"@/fifo\" is neither file nor directory");
        assert_eq!(refused(&folder, &["/dev/null,1m"]), "(-sfile) \"/dev/null\" is neither file nor directory");
        let missing = "(-sfile) \"@/no/x\" does not exist and could not be created: No such file or directory";
        assert_eq!(refused(&folder, &["@/no/x,1m"]), missing);
        assert_eq!(refused(&folder, &["@/x,1000P"]), "(-sfile) size \"1000P\": larger than file system");
    }

    #[test]
    fn no_two_storages_have_one_file_by_whatever_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one"), "").unwrap();
        fs::hard_link(folder.path().join("one"), folder.path().join("two")).unwrap();
        let twice = refused(&folder, &["@/one,1m", "@/two,1m"]);
        assert_eq!(twice, "(-sfile) \"@/two\": the storage 's0' has that file");
        let bans = refused(&folder, &["@/x,1m", "@/x.bans,1m"]);
        assert_eq!(bans, "(-sfile) \"@/x.bans\" is for the bans, and the storage 's1' has it");
    }

    #[test]
    fn only_its_own_kind_of_file_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "1").unwrap();
        let read_only = File::open(&path).unwrap();
        let why = LockedFile::adopt(read_only.into(), path.clone()).unwrap_err();
        assert!(why.ends_with("/x is no such file"), "{why}");
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        assert!(LockedFile::adopt(null.into(), path.clone()).is_err());
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let adopted = LockedFile::adopt(file.into(), path.clone()).unwrap();
        assert!(adopted.is_at(&path));
        fs::remove_file(&path).unwrap();
        assert!(!adopted.is_at(&path));
    }

    #[test]
    fn erased_means_that_nothing_is_at_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let files = open_all(&folder, &["@/bodies,1m"], &HERE).unwrap();
        let file = files.of_storages[0].as_ref().unwrap();
        file.file.write_all_at(b"header", 0).unwrap();
        file.erase().unwrap();
        let mut found = [1; 6];
        file.file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!((found, file.bytes()), ([0; 6], 1 << 20));
        let journal = files.journal.as_ref().unwrap();
        journal.file.write_all_at(b"bans", 0).unwrap();
        journal.clear().unwrap();
        assert_eq!(journal.bytes(), 0);
    }

    #[test]
    fn a_path_is_followed_with_the_rights_of_the_jails_user() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let jail = Jail::Unix {
            reader: Reader { user: 65_534, group: 65_534, groups: Vec::new() },
            worker: (65_533, 65_533),
            administrators: None,
        };
        let mode = |mode: u32| fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
        mode(0o755);
        // Only root writes here: it makes the file, and gives it away.
        drop(open_all(&folder, &["@/given,1m"], &jail).unwrap());
        assert_eq!(fs::metadata(folder.path().join("given")).unwrap().uid(), 65_534);
        drop(open_all(&folder, &["@/given,1m"], &jail).unwrap());
        // A file of root's is nobody's storage, by whatever name.
        fs::write(folder.path().join("root"), "secret").unwrap();
        fs::set_permissions(folder.path().join("root"), PermissionsExt::from_mode(0o600)).unwrap();
        let message = open_all(&folder, &["@/root,1m"], &jail).unwrap_err();
        assert!(message.ends_with("/root\" could not open (Permission denied)"), "{message}");
        mode(0o777);
        std::os::unix::fs::symlink(folder.path().join("root"), folder.path().join("led")).unwrap();
        assert!(open_all(&folder, &["@/led,1m"], &jail).unwrap_err().contains("could not open"));
        assert_eq!(fs::read(folder.path().join("root")).unwrap(), b"secret");
        // What the worker's user has, stock programs have left behind.
        fs::write(folder.path().join("stock"), "").unwrap();
        fchown(File::open(folder.path().join("stock")).unwrap(), Some(65_533), Some(65_533)).unwrap();
        fs::set_permissions(folder.path().join("stock"), PermissionsExt::from_mode(0o600)).unwrap();
        drop(open_all(&folder, &["@/stock,1m"], &jail).unwrap());
        mode(0o700);
        let message = open_all(&folder, &["@/new,1m"], &jail).unwrap_err();
        assert!(message.ends_with("does not exist and could not be created: Permission denied"), "{message}");
    }
}
