//! The work directory: pid files, the secret, and the two directories of shared memory.
//!
//! Owner: this manager alone, by the lock on `_.pid`. Files created here are removed here, except
//! those that the tests of Varnish read after the end (debug bit `vtc_mode`).
//!
//! In an upgrade a successor inherits the directory. The locks belong to the open files, not to the
//! process, and go over with their descriptors, so a third manager cannot come in between at any
//! time. Until its worker serves, the successor changes nothing that readers see: it builds its
//! index in a directory of another name, which then changes places with the present one
//! ([`WorkDirectory::come_forward`]); a predecessor that continues after a failed upgrade undoes
//! that ([`WorkDirectory::step_back`]).

use crate::arguments::jail::Jail;
use crate::arguments::{ArgumentError, reason};
use cli_proto::auth::SECRET_BYTES;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, FcntlArg, RenameFlags, fcntl, renameat2};
use nix::libc;
use nix::unistd::{Gid, Uid, chown};
use rand::Rng;
use shm::vsm::{INDEX_NAME, MANAGER_DIRECTORY, WORKER_DIRECTORY, recreate_directory, remove_directory};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time to keep trying to lock a pid file that is held: a killed daemon needs that long to die.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// Interval between these attempts.
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// The directory in which a successor makes its index, and in which that of its predecessor is kept
/// until it is gone.
const OTHER_MANAGER_DIRECTORY: &str = "_.vsm_mgt.other";

/// Message for the operator about a directory with files that no worker creates.
#[must_use]
pub fn quarantine_text(quarantined: &Path) -> String {
    let shown = quarantined.display();
    format!("A worker left behind what none makes: find out who could do that; it is set aside as {shown}, remove it")
}

/// The work directory of a running daemon.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
    jail: Jail,
    /// Kept open for their locks.
    pid_files: Vec<(PathBuf, File)>,
    secret_made: bool,
    has_dead_predecessor: bool,
    /// The index is in [`OTHER_MANAGER_DIRECTORY`] until a worker serves.
    is_heir: bool,
}

impl WorkDirectory {
    /// Creates the directory if needed, makes it the current one, and locks it and the other pid
    /// files.
    ///
    /// # Errors
    /// The message for the operator: no directory, no pid file, or another process holds one of
    /// them.
    pub fn open(path: &Path, jail: &Jail, pid_files: &[PathBuf]) -> Result<WorkDirectory, ArgumentError> {
        let refused = |error: &io::Error| {
            ArgumentError::of_system(format!("Cannot create working directory '{}': {}", path.display(), reason(error)))
        };
        shm::place::prepare(path).map_err(|error| refused(&error))?;
        match DirBuilder::new().mode(0o755).create(path) {
            Ok(()) => give(path, None, readers(jail)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let shown = path.display();
                return Err(format!("Cannot change to working directory '{shown}': Not a directory").into());
            }
            Err(error) => return Err(refused(&error)),
        }
        let path = path.canonicalize().map_err(|error| refused(&error))?;
        if let Some((user, group)) = jail.worker() {
            if !may_enter(&path, user, group) {
                let shown = path.display();
                let text = format!("Working directory ({shown}) is closed to the user of the worker (uid {user})");
                return Err(text.into());
            }
            close_to_worker(&path, user, group).map_err(|error| {
                let (shown, error) = (path.display(), reason(&error));
                ArgumentError::of_system(format!("Working directory ({shown}) cannot be closed to the worker: {error}"))
            })?;
        }
        std::env::set_current_dir(&path).map_err(|error| refused(&error))?;
        let mut directory = WorkDirectory::new(path, jail.clone());
        let own = directory.path.join("_.pid");
        for file in std::iter::once(&own).chain(pid_files) {
            // Only we may create files in the work directory: a link there was made to make us
            // write elsewhere.
            directory.lock(file, if *file == own { libc::O_NOFOLLOW } else { 0 })?;
        }
        Ok(directory)
    }

    fn new(path: PathBuf, jail: Jail) -> WorkDirectory {
        WorkDirectory {
            path,
            jail,
            pid_files: Vec::new(),
            secret_made: false,
            has_dead_predecessor: false,
            is_heir: false,
        }
    }

    /// The directory of a predecessor, with its pid files, which are locked, and makes it the
    /// current one. Nothing in it is changed.
    ///
    /// # Errors
    /// The reason why it cannot be taken over.
    pub fn inherit(
        path: PathBuf,
        jail: &Jail,
        pid_files: Vec<(PathBuf, OwnedFd)>,
        secret_made: bool,
    ) -> Result<WorkDirectory, String> {
        std::env::set_current_dir(&path).map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
        let mut directory = WorkDirectory { is_heir: true, secret_made, ..WorkDirectory::new(path, jail.clone()) };
        for (path, file) in pid_files {
            let file = File::from(file);
            // Our own file has the lock already; any other would be refused.
            if !is_at(&file, &path) || lock_in_time(&file).is_err() {
                return Err(format!("the pid file {} is not the one that is held", path.display()));
            }
            directory.pid_files.push((path, file));
        }
        Ok(directory)
    }

    /// Duplicates the pid files' descriptors, for a successor.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn bequeath(&self) -> io::Result<Vec<(PathBuf, OwnedFd)>> {
        self.pid_files.iter().map(|(path, file)| Ok((path.clone(), file.try_clone()?.into()))).collect()
    }

    /// True if `_.secret` was created here.
    #[must_use]
    pub fn has_made_secret(&self) -> bool {
        self.secret_made
    }

    /// Makes this manager visible to readers instead of its predecessor: index and pid files. Does
    /// nothing in a manager without a predecessor.
    ///
    /// # Errors
    /// Errors of the file system; then readers see the predecessor.
    pub fn come_forward(&mut self) -> io::Result<()> {
        if !self.is_heir {
            return Ok(());
        }
        self.change_places()?;
        self.is_heir = false;
        self.write_pids()
    }

    /// Makes this manager visible to readers again, after a successor failed.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn step_back(&self) -> io::Result<()> {
        let ours = format!("# {} ", std::process::id());
        let is_ours = |name: &str| {
            fs::read_to_string(self.path.join(name).join(INDEX_NAME)).is_ok_and(|text| text.starts_with(&ours))
        };
        if !is_ours(MANAGER_DIRECTORY) && is_ours(OTHER_MANAGER_DIRECTORY) {
            self.change_places()?;
        }
        self.forget_other();
        self.write_pids()
    }

    /// Removes the index of a manager that is gone.
    pub fn forget_other(&self) {
        let _ = remove_directory(&self.path.join(OTHER_MANAGER_DIRECTORY));
    }

    fn change_places(&self) -> io::Result<()> {
        let (one, other) = (self.path.join(MANAGER_DIRECTORY), self.path.join(OTHER_MANAGER_DIRECTORY));
        Ok(renameat2(AT_FDCWD, &one, AT_FDCWD, &other, RenameFlags::RENAME_EXCHANGE)?)
    }

    /// Writes our number into the pid files; at no time is one empty.
    fn write_pids(&self) -> io::Result<()> {
        let text = std::process::id().to_string();
        self.pid_files.iter().try_for_each(|(_, file)| {
            file.write_all_at(text.as_bytes(), 0)?;
            file.set_len(text.len() as u64)
        })
    }

    /// True if the previous daemon of this directory died without cleaning up: its worker may still
    /// be dying, and until then holds the listening sockets.
    #[must_use]
    pub fn has_dead_predecessor(&self) -> bool {
        self.has_dead_predecessor
    }

    /// Moves the directory to a new owner; the value that stays behind cleans up nothing.
    pub fn take(&mut self) -> WorkDirectory {
        let (path, jail) = (self.path.clone(), self.jail.clone());
        std::mem::replace(self, WorkDirectory::new(path, jail))
    }

    /// The path, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for the worker: absolute, or `.` if its user may not traverse all of it; the worker
    /// is started there.
    #[must_use]
    pub fn path_for_worker(&self) -> PathBuf {
        match self.jail {
            Jail::Unix { worker: (user, group), .. }
                if !self.path.ancestors().all(|above| may_enter(above, user, group)) =>
            {
                PathBuf::from(".")
            }
            _ => self.path.clone(),
        }
    }

    fn lock(&mut self, path: &Path, flags: i32) -> Result<(), ArgumentError> {
        let shown = path.display();
        let failed = |error: &io::Error| {
            ArgumentError::of_system(format!("Could not open pid-file ({shown}): {}{}", reason(error), hint(error)))
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o644).custom_flags(flags);
        let file = loop {
            let file = options.open(path).map_err(|error| failed(&error))?;
            match lock_in_time(&file) {
                // The previous holder removed it at its end: a lock on a file that no process can
                // open any more excludes no process.
                Ok(_) if !is_at(&file, path) => {}
                Ok(_) => break file,
                Err(Errno::EAGAIN | Errno::EACCES) => {
                    let mut holder = String::new();
                    let _ = file.take(32).read_to_string(&mut holder);
                    let holder = holder.trim();
                    let stock = format!("Varnishd is already running (pid={holder}) (pidfile={shown})");
                    let own = format!("Copal is already running: process {holder}, by its file {shown}");
                    let directory = self.path.display();
                    let detail = format!("copal stop -n {directory} stops it; -n DIRECTORY is for another one");
                    return Err(ArgumentError::new(stock).with_own_text(own).with_detail(Some(detail)));
                }
                Err(error) => return Err(failed(&error.into())),
            }
        };
        self.has_dead_predecessor |= file.metadata().is_ok_and(|found| found.len() > 0);
        self.pid_files.push((path.to_owned(), file));
        self.write_pids().map_err(|error| failed(&error))
    }

    /// The path of `_.secret`, which is made unless a predecessor has made it.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn secret(&mut self) -> Result<PathBuf, ArgumentError> {
        if self.secret_made { Ok(self.path.join("_.secret")) } else { self.make_secret() }
    }

    /// Creates `_.secret`, for us and the administrators alone, and returns its path.
    ///
    /// # Errors
    /// The message for the operator.
    fn make_secret(&mut self) -> Result<PathBuf, ArgumentError> {
        let path = self.path.join("_.secret");
        let mut secret = [0; SECRET_BYTES];
        rand::rng().fill_bytes(&mut secret);
        let _ = fs::remove_file(&path);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(&secret));
        written.map_err(|error| {
            // If an entry of that name can't be removed, it is a directory.
            let error =
                if path.is_dir() { io::Error::from_raw_os_error(nix::errno::Errno::EISDIR as i32) } else { error };
            format!("Cannot create secret-file in {} ({})", self.path.display(), reason(&error))
        })?;
        self.secret_made = true;
        // Not readable by the group until it is the right one.
        if chown(&path, None, self.jail.administrators().map(Gid::from_raw)).is_ok() {
            let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o640));
        }
        Ok(path)
    }

    /// Removes the files of a dead manager's worker; those of a predecessor stay. Returns the path
    /// of the directory if it held files that no worker creates.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn forget_worker(&self) -> io::Result<Option<PathBuf>> {
        if self.is_heir { Ok(None) } else { remove_directory(&self.path.join(WORKER_DIRECTORY)) }
    }

    /// Creates the manager's directory of shared memory anew and returns it; that of a predecessor
    /// stays.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn make_manager_directory(&self) -> io::Result<PathBuf> {
        if !self.is_heir {
            self.forget_other();
        }
        let path = self.manager_directory();
        recreate_directory(&path, self.directory_mode())?;
        give(&path, None, readers(&self.jail));
        Ok(path)
    }

    /// Lets the group of readers read the manager's published files.
    pub fn share_manager_files(&self) {
        let files = fs::read_dir(self.manager_directory()).into_iter().flatten().flatten();
        files.for_each(|file| give(&file.path(), None, readers(&self.jail)));
    }

    /// Creates the worker's directory anew, so that the worker can write in it. Returns the path of
    /// the former one if it held files that no worker creates.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn make_worker_directory(&self) -> io::Result<Option<PathBuf>> {
        let path = self.path.join(WORKER_DIRECTORY);
        let quarantined = recreate_directory(&path, self.directory_mode())?;
        if let Some((user, group)) = self.jail.worker() {
            give(&path, Some(user), Some(group));
        }
        Ok(quarantined)
    }

    /// Removes the worker's directory, so that readers see that the worker is gone. Returns its
    /// path if it held files that no worker creates.
    pub fn remove_worker_directory(&self) -> Option<PathBuf> {
        remove_directory(&self.path.join(WORKER_DIRECTORY)).ok().flatten()
    }

    /// Removes everything that was created here. With `keep_memory` the worker's shared memory
    /// stays, and of ours the empty directory: readers take the missing index for our end, and can
    /// read the worker's log until then.
    pub fn clean(&mut self, keep_memory: bool) {
        let ours = self.path.join(MANAGER_DIRECTORY);
        if keep_memory {
            let _ = fs::remove_file(ours.join(INDEX_NAME));
            let rest = fs::read_dir(&ours).into_iter().flatten().flatten();
            rest.for_each(|file| drop(fs::remove_file(file.path())));
        } else {
            let _ = remove_directory(&self.path.join(WORKER_DIRECTORY));
            let _ = remove_directory(&ours);
        }
        if self.secret_made {
            let _ = fs::remove_file(self.path.join("_.secret"));
        }
        for (path, _) in self.pid_files.drain(..) {
            let _ = fs::remove_file(path);
        }
    }

    fn manager_directory(&self) -> PathBuf {
        self.path.join(if self.is_heir { OTHER_MANAGER_DIRECTORY } else { MANAGER_DIRECTORY })
    }

    fn directory_mode(&self) -> u32 {
        if matches!(self.jail, Jail::None { .. }) { 0o755 } else { 0o750 }
    }
}

/// Locks a pid file. A killed daemon keeps its lock until it is dead, and the next one may be
/// started before that. The lock is one of the open file, which can be handed over; it also
/// conflicts with Varnish's, which belong to the process.
fn lock_in_time(file: &File) -> nix::Result<i32> {
    let lock =
        libc::flock { l_type: libc::F_WRLCK as i16, l_whence: libc::SEEK_SET as i16, l_start: 0, l_len: 0, l_pid: 0 };
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
            Err(Errno::EAGAIN | Errno::EACCES) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
            result => return result,
        }
    }
}

/// True if the open file is still the one at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: fs::Metadata| (found.dev(), found.ino());
    let (there, ours) = (fs::metadata(path).map(number), file.metadata().map(number));
    matches!((there, ours), (Ok(there), Ok(ours)) if there == ours)
}

/// The group that may read the log and the counters.
fn readers(jail: &Jail) -> Option<u32> {
    jail.worker().map(|(_, group)| group)
}

/// Takes away the worker's right to write in a directory, where it could replace our files with its
/// own. In directories that are writable for all users (`/tmp`) the sticky bit protects ours.
fn close_to_worker(path: &Path, user: u32, group: u32) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if found.uid() == user {
        chown(path, Some(Uid::from_raw(0)), None)?;
    }
    let of_group = if found.gid() == group { 0o020 } else { 0 };
    let of_all = if found.mode() & libc::S_ISVTX == 0 { 0o002 } else { 0 };
    let mode = found.mode() & 0o7777;
    match mode & !(of_group | of_all) {
        closed if closed == mode => Ok(()),
        closed => fs::set_permissions(path, fs::Permissions::from_mode(closed)),
    }
}

/// Advice for the case that we may not write in a directory.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; name a work directory of your own with -n, and pid files with -P",
        _ => "",
    }
}

/// True if a user may enter a directory, by its permission bits.
fn may_enter(path: &Path, user: u32, group: u32) -> bool {
    let Ok(found) = fs::metadata(path) else { return false };
    let shift = match () {
        () if user == 0 => return true,
        () if found.uid() == user => 6,
        () if found.gid() == group => 3,
        () => 0,
    };
    found.mode() >> shift & 1 == 1
}

/// Changes owner and group if they are given; a file system that can't do this does not prevent the
/// start.
fn give(path: &Path, user: Option<u32>, group: Option<u32>) {
    let _ = chown(path, user.map(Uid::from_raw), group.map(Gid::from_raw));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::jail::Reader;

    #[test]
    fn created_files_are_removed() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("v");
        let other = base.path().join("other.pid");
        let mut directory =
            WorkDirectory::open(&path, &Jail::None { asked: true }, std::slice::from_ref(&other)).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), std::process::id().to_string());
        let secret = directory.make_secret().unwrap();
        assert_eq!(fs::metadata(&secret).unwrap().len(), 256);
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o640);
        directory.make_manager_directory().unwrap();
        directory.make_worker_directory().unwrap();
        fs::write(path.join(MANAGER_DIRECTORY).join(INDEX_NAME), "# 1 1\n").unwrap();
        directory.clean(true);
        assert_eq!(fs::read_dir(path.join(MANAGER_DIRECTORY)).unwrap().count(), 0);
        assert!(path.join(WORKER_DIRECTORY).exists());
        directory.clean(false);
        assert!(!other.exists());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn heir_is_seen_only_when_it_comes_forward_and_gives_way_again() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap();
        let jail = Jail::None { asked: true };
        let mut first = WorkDirectory::open(&path, &jail, &[]).unwrap();
        let of_process = |directory: &Path, process: u32| {
            fs::write(directory.join(INDEX_NAME), format!("# {process} 1\n")).unwrap();
        };
        of_process(&first.make_manager_directory().unwrap(), std::process::id());
        let seen = || fs::read_to_string(path.join(MANAGER_DIRECTORY).join(INDEX_NAME)).unwrap();
        let pid = || fs::read_to_string(path.join("_.pid")).unwrap();
        let before = (seen(), pid());
        // Both are this process here: the heir's index contains the number of another process.
        let mut heir = WorkDirectory::inherit(path.clone(), &jail, first.bequeath().unwrap(), true).unwrap();
        of_process(&heir.make_manager_directory().unwrap(), 1);
        assert_eq!((seen(), pid()), before, "nobody sees it yet");
        fs::write(path.join("_.pid"), "123456789012").unwrap();
        heir.come_forward().unwrap();
        assert_eq!((seen(), pid()), ("# 1 1\n".to_owned(), std::process::id().to_string()));
        first.step_back().unwrap();
        assert_eq!((seen(), pid()), before);
        assert!(!path.join(OTHER_MANAGER_DIRECTORY).exists());
        // As long as one of the two has the files open, no other process gets in.
        first.pid_files.clear();
        let error = WorkDirectory::open(&path, &jail, &[]).unwrap_err();
        assert!(error.text.contains("already running"), "{}", error.text);
        heir.pid_files.clear();
        assert!(WorkDirectory::open(&path, &jail, &[]).is_ok());
    }

    #[test]
    fn pid_file_excludes_other_daemons_while_waiting_for_one_to_end() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap();
        let jail = Jail::None { asked: true };
        let mut first = WorkDirectory::open(&path, &jail, &[]).unwrap();
        let opened = || {
            let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
            links.filter(|link| fs::read_link(link.path()).is_ok_and(|target| target == path.join("_.pid"))).count()
        };
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| WorkDirectory::open(&path, &jail, &[]));
            while opened() < 2 && !second.is_finished() {
                std::thread::yield_now();
            }
            first.clean(false);
            second.join().unwrap().unwrap()
        });
        assert_eq!(fs::read_to_string(path.join("_.pid")).unwrap(), std::process::id().to_string());
        let error = WorkDirectory::open(&path, &jail, &[]).unwrap_err();
        assert!(error.text.contains("already running"), "{}", error.text);
        drop(second);
    }

    #[test]
    fn only_the_pid_files_that_are_held_are_inherited() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap();
        let jail = Jail::None { asked: true };
        let first = WorkDirectory::open(&path, &jail, &[]).unwrap();
        let other = File::create(path.join("other")).unwrap();
        let files = vec![(path.join("_.pid"), OwnedFd::from(other))];
        let error = WorkDirectory::inherit(path.clone(), &jail, files, false).unwrap_err();
        assert!(error.ends_with("_.pid is not the one that is held"), "{error}");
        // The same file, opened anew: another process has its lock.
        let anew = OpenOptions::new().read(true).write(true).open(path.join("_.pid")).unwrap();
        let files = vec![(path.join("_.pid"), OwnedFd::from(anew))];
        assert!(WorkDirectory::inherit(path.clone(), &jail, files, false).is_err());
        drop(first);
    }

    #[test]
    fn directory_access_follows_the_permission_bits() {
        let directory = tempfile::tempdir().unwrap();
        let metadata = fs::metadata(directory.path()).unwrap();
        let (user, group) = (metadata.uid(), metadata.gid());
        let check = |mode: u32, user: u32, group: u32, expected: bool| {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(may_enter(directory.path(), user, group), expected, "{mode:o}");
        };
        check(0o700, user + 1, group, false);
        check(0o710, user + 1, group, true);
        check(0o710, user + 1, group + 1, false);
        check(0o701, user + 1, group + 1, true);
        check(0o700, user, group + 1, true);
        check(0o000, 0, 0, true);
    }

    #[test]
    fn directory_that_the_worker_could_write_in_is_taken_from_it() {
        let directory = tempfile::tempdir().unwrap();
        let group = fs::metadata(directory.path()).unwrap().gid();
        let check = |mode: u32, group: u32, expected: u32| {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            close_to_worker(directory.path(), 65_534, group).unwrap();
            let found = fs::metadata(directory.path()).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found, expected, "{mode:o}");
        };
        check(0o775, group, 0o755);
        check(0o775, group + 1, 0o775);
        check(0o777, group + 1, 0o775);
        check(0o1777, group + 1, 0o1777);
        if nix::unistd::geteuid().is_root() {
            give(directory.path(), Some(65_534), None);
            check(0o755, group, 0o755);
            assert_eq!(fs::metadata(directory.path()).unwrap().uid(), 0);
        }
    }

    #[test]
    fn pid_file_that_leads_elsewhere_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let victim = base.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, base.path().join("_.pid")).unwrap();
        let error = WorkDirectory::open(base.path(), &Jail::None { asked: true }, &[]).unwrap_err();
        assert!(error.text.contains("Could not open pid-file"), "{}", error.text);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn secret_is_roots_and_the_administrators_and_never_the_workers() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: needs root");
            return;
        }
        for (administrators, expected) in [(None, 0), (Some(4), 4)] {
            let base = tempfile::tempdir().unwrap();
            fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let reader = Reader { user: 65_534, group: 65_534, groups: Vec::new() };
            let jail = Jail::Unix { reader: reader.clone(), worker: (65_533, 65_534), administrators };
            let mut directory = WorkDirectory::open(base.path(), &jail, &[]).unwrap();
            let secret = directory.make_secret().unwrap();
            let found = fs::metadata(&secret).unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (0, expected, 0o640));
            assert!(!crate::rights::may_read(&reader, &secret));
            directory.clean(false);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let error = WorkDirectory::open(Path::new("/nonexistent/x/y"), &Jail::None { asked: true }, &[]).unwrap_err();
        let expected = "Cannot create working directory '/nonexistent/x/y': No such file or directory";
        assert_eq!(error, ArgumentError::of_system(expected));
    }
}
