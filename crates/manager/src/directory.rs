//! The work directory: pid files, the secret, and the two directories of shared memory.
//!
//! Owner: this manager alone, by the lock on `_.pid`. What is made here is removed here, save what the tests of Varnish
//! want to read after the end (debug bit `vtc_mode`).

use crate::arguments::jail::Jail;
use crate::arguments::{ArgumentError, reason};
use cli_proto::auth::SECRET_BYTES;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::{Gid, Uid, chown};
use rand::RngCore;
use shm::vsm::{INDEX_NAME, MANAGER_DIRECTORY, WORKER_DIRECTORY, recreate_directory, remove_directory};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use surface::version::STATE_DIR;

/// The work directory of a running daemon.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
    jail: Jail,
    /// Open for their locks.
    pid_files: Vec<(PathBuf, File)>,
    secret_made: bool,
}

impl WorkDirectory {
    /// Makes the directory if needed, makes it the current one, and locks it and the other pid files.
    ///
    /// # Errors
    /// The message for the operator: no directory, no pid file, or somebody else holds one of them.
    pub fn open(path: &Path, jail: &Jail, pid_files: &[PathBuf]) -> Result<WorkDirectory, ArgumentError> {
        if path.parent() == Some(Path::new(STATE_DIR)) && !Path::new(STATE_DIR).exists() {
            let _ = fs::create_dir_all(STATE_DIR);
        }
        let refused = |error: &io::Error| {
            ArgumentError::new(format!("Cannot create working directory '{}': {}", path.display(), reason(error)))
        };
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
        if let Jail::Unix { worker: (user, group), .. } = *jail
            && !may_enter(&path, user, group)
        {
            let shown = path.display();
            return Err(format!("Working directory ({shown}) is closed to the user of the worker (uid {user})").into());
        }
        std::env::set_current_dir(&path).map_err(|error| refused(&error))?;
        let mut directory = WorkDirectory { path, jail: jail.clone(), pid_files: Vec::new(), secret_made: false };
        let own = directory.path.join("_.pid");
        for file in std::iter::once(&own).chain(pid_files) {
            directory.lock(file)?;
        }
        Ok(directory)
    }

    /// Moves the directory to a new owner; what stays behind has nothing to clean.
    pub fn take(&mut self) -> WorkDirectory {
        let (path, jail) = (self.path.clone(), self.jail.clone());
        std::mem::replace(self, WorkDirectory { path, jail, pid_files: Vec::new(), secret_made: false })
    }

    /// The path, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for the worker: absolute, or `.`, in which it is started, when its user may not pass all the way to it.
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

    fn lock(&mut self, path: &Path) -> Result<(), ArgumentError> {
        let shown = path.display();
        let failed =
            |error: &io::Error| ArgumentError::new(format!("Could not open pid-file ({shown}): {}", reason(error)));
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o644)
            .open(path)
            .map_err(|error| failed(&error))?;
        let lock = libc::flock {
            l_type: libc::F_WRLCK as i16,
            l_whence: libc::SEEK_SET as i16,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        match fcntl(file.as_raw_fd(), FcntlArg::F_SETLK(&lock)) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => {
                let mut holder = String::new();
                let _ = file.take(32).read_to_string(&mut holder);
                let holder = holder.trim();
                return Err(format!("Varnishd is already running (pid={holder}) (pidfile={shown})").into());
            }
            Err(error) => return Err(failed(&error.into())),
        }
        let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        written.map_err(|error| failed(&error))?;
        self.pid_files.push((path.to_owned(), file));
        Ok(())
    }

    /// Makes `_.secret` and returns its path.
    ///
    /// # Errors
    /// The message for the operator.
    pub fn make_secret(&mut self) -> Result<PathBuf, ArgumentError> {
        let path = self.path.join("_.secret");
        let mut secret = [0; SECRET_BYTES];
        rand::thread_rng().fill_bytes(&mut secret);
        let _ = fs::remove_file(&path);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&path)
            .and_then(|mut file| file.write_all(&secret))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o640)));
        written.map_err(|error| {
            // An entry of that name which can't be removed is a directory.
            let error =
                if path.is_dir() { io::Error::from_raw_os_error(nix::errno::Errno::EISDIR as i32) } else { error };
            format!("Cannot create secret-file in {} ({})", self.path.display(), reason(&error))
        })?;
        give(&path, None, readers(&self.jail));
        self.secret_made = true;
        Ok(path)
    }

    /// Makes both directories of shared memory anew and returns the manager's.
    ///
    /// # Errors
    /// Whatever the file system reports.
    pub fn make_manager_directory(&self) -> io::Result<PathBuf> {
        remove_directory(&self.path.join(WORKER_DIRECTORY))?;
        let path = self.path.join(MANAGER_DIRECTORY);
        recreate_directory(&path, self.directory_mode())?;
        give(&path, None, readers(&self.jail));
        Ok(path)
    }

    /// Lets the group of readers read what the manager published.
    pub fn share_manager_files(&self) {
        let files = fs::read_dir(self.path.join(MANAGER_DIRECTORY)).into_iter().flatten().flatten();
        files.for_each(|file| give(&file.path(), None, readers(&self.jail)));
    }

    /// Makes the worker's directory anew, for the worker to write in.
    ///
    /// # Errors
    /// Whatever the file system reports.
    pub fn make_worker_directory(&self) -> io::Result<()> {
        let path = self.path.join(WORKER_DIRECTORY);
        recreate_directory(&path, self.directory_mode())?;
        if let Jail::Unix { worker: (user, group), readers } = self.jail {
            give(&path, Some(user), Some(readers.unwrap_or(group)));
        }
        Ok(())
    }

    /// Removes the worker's directory, so that readers see it gone.
    pub fn remove_worker_directory(&self) {
        let _ = remove_directory(&self.path.join(WORKER_DIRECTORY));
    }

    /// Removes what was made here. `keep_memory` leaves the worker's shared memory, and of ours the empty directory:
    /// readers take the missing index for our end, and have the log of the worker until then.
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

    fn directory_mode(&self) -> u32 {
        if matches!(self.jail, Jail::None { .. }) { 0o755 } else { 0o750 }
    }
}

fn readers(jail: &Jail) -> Option<u32> {
    match jail {
        Jail::None { .. } => None,
        Jail::Unix { readers, .. } => *readers,
    }
}

/// Whether a user may go through a directory, by its permission bits.
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

/// Changes owner and group where they are given; a file system that can't is no reason not to start.
fn give(path: &Path, user: Option<u32>, group: Option<u32>) {
    let _ = chown(path, user.map(Uid::from_raw), group.map(Gid::from_raw));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_removed() {
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
    fn directories_are_open_to_whom_their_bits_say() {
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
    fn a_directory_that_cannot_be_made_is_named() {
        let error = WorkDirectory::open(Path::new("/nonexistent/x/y"), &Jail::None { asked: true }, &[]).unwrap_err();
        let expected = "Cannot create working directory '/nonexistent/x/y': No such file or directory";
        assert_eq!(error, ArgumentError::new(expected));
    }
}
