//! `-P`: a file with the process id, locked while the process lives, so that a second one is not
//! started.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::reason;

/// An open pid file; removed when this is dropped.
pub(super) struct PidFile {
    path: PathBuf,
    file: Flock<File>,
}

impl PidFile {
    /// Opens and locks the file; the error is a message. A daemon's child keeps the lock.
    pub fn open(path: &Path) -> Result<PidFile, String> {
        let failed = |error: &std::io::Error| format!("{}: {}", path.display(), reason(error));
        let opened = OpenOptions::new().create(true).write(true).truncate(false).open(path);
        let file = opened.map_err(|error| failed(&error))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Err(format!("{}: Already running", path.display())),
            Err((_, error)) => return Err(failed(&error.into())),
        };
        file.set_len(0).map_err(|error| failed(&error))?;
        Ok(PidFile { path: path.to_owned(), file })
    }

    /// Writes the process id; the error is a message.
    pub fn write(&mut self) -> Result<(), String> {
        let written = write!(self.file, "{}", std::process::id());
        written.map_err(|error| format!("{}: Cannot write: {}", self.path.display(), reason(&error)))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
