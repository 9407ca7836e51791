//! A file in exclusive use: its handle, its lock, and the holder of that lock.

use crate::arguments::jail::Reader;
use crate::arguments::reason;
use crate::rights;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{major, minor};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno as Held;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between attempts to take a lock.
const RETRY: Duration = Duration::from_millis(10);
/// Number of bytes at the beginning of a file that describe its content: without them it is empty.
const HEADER_BYTES: usize = 64 << 10;

/// A file in exclusive use.
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    path: PathBuf,
    /// The length that it was given; `None` = not yet.
    given_bytes: Option<u64>,
    /// Rights with which it was made (`Some(None)`: our own), as long as a failed start would
    /// remove it.
    made_by: Option<Option<Reader>>,
}

/// A file that was truncated although it is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutFile {
    /// Path at which it was opened.
    pub path: PathBuf,
    /// The length that it was given, in bytes.
    pub given_bytes: u64,
    /// The length that it has.
    pub bytes: u64,
}

impl LockedFile {
    /// A file that another process passed, with its lock.
    ///
    /// # Errors
    /// It is not a regular file, or cannot be written.
    pub fn adopt(handle: OwnedFd, path: PathBuf) -> Result<LockedFile, String> {
        let flags = fcntl(&handle, FcntlArg::F_GETFL).map(OFlag::from_bits_truncate);
        let file = File::from(handle);
        let is_regular = file.metadata().is_ok_and(|found| found.is_file());
        if !is_regular || !flags.is_ok_and(|flags| flags & OFlag::O_ACCMODE == OFlag::O_RDWR) {
            return Err(format!("what is handed over as {} is no such file", path.display()));
        }
        let adopted = LockedFile { file, path, given_bytes: None, made_by: None };
        // Its own lock stays unchanged; no other process may have one.
        adopted.lock(Duration::ZERO)?;
        Ok(adopted)
    }

    /// Device and inode.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn number(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|found| (found.dev(), found.ino()))
    }

    /// True if the path leads to this file now.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        let there = fs::metadata(path).map(|found| (found.dev(), found.ino()));
        matches!((there, self.number()), (Ok(there), Ok(ours)) if there == ours)
    }

    /// The length that it was given, even if it was truncated since; before that, its present
    /// length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.given_bytes.unwrap_or_else(|| self.present_bytes())
    }

    /// The present length if it is shorter than it was made.
    #[must_use]
    pub fn cut(&self) -> Option<CutFile> {
        let (given_bytes, bytes) = (self.given_bytes?, self.present_bytes());
        (bytes < given_bytes).then(|| CutFile { path: self.path.clone(), given_bytes, bytes })
    }

    fn present_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |found| found.len())
    }

    /// A further handle, which shares the lock.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// Makes the next worker find nothing in a storage's file.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn erase(&self) -> io::Result<()> {
        let bytes = HEADER_BYTES.min(usize::try_from(self.present_bytes()).unwrap_or(HEADER_BYTES));
        self.file.write_all_at(&vec![0; bytes], 0)?;
        self.file.sync_data()
    }

    /// Makes the file empty.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.sync_data()
    }

    /// Gives up the lock, even if other processes share it.
    pub fn release(self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }

    /// The message for a failure of the system.
    pub(super) fn failed(&self, error: &io::Error) -> String {
        format!("(-sfile) {:?}: {}", self.path, reason(error))
    }

    /// A file that was just opened, or made with the rights of `made_by`, and is not locked yet.
    pub(super) fn unlocked(file: File, path: &Path, made_by: Option<Option<Reader>>) -> LockedFile {
        LockedFile { file, path: path.to_owned(), given_bytes: None, made_by }
    }

    /// Records the length that it was given.
    pub fn is_given(&mut self, bytes: u64) {
        self.given_bytes = Some(bytes);
    }

    /// It stays, even if it was made just now.
    pub(super) fn stay(&mut self) {
        self.made_by = None;
    }

    /// Removes it if it was made just now, with the rights of its maker: a failed start leaves
    /// nothing behind.
    pub(super) fn unmake(&mut self) {
        if let Some(reader) = self.made_by.take()
            && self.is_at(&self.path)
        {
            let _ = rights::with(reader.as_ref(), || fs::remove_file(&self.path));
        }
    }

    /// The open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Path at which it was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Locks it; waits at most `patience` for a lock that another process holds.
    ///
    /// # Errors
    /// The message for the operator.
    pub(super) fn lock(&self, patience: Duration) -> Result<(), String> {
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

    /// The process that has locked the file, if the kernel reports it. Source: proc_locks(5).
    fn holder(&self) -> Option<u32> {
        let (device, number) = self.number().ok()?;
        let file = format!("{:02x}:{:02x}:{number}", major(device), minor(device));
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let mut fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = fields.find(|fields| fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&file.as_str()))?;
        found.get(4)?.parse().ok().filter(|pid| *pid > 0)
    }
}
