//! Work directory lock of the worker: at most one worker at a time uses the memory that outlives
//! workers.
//!
//! Two workers could otherwise use it at once: a manager starts the next one after the death of the
//! last, but in an upgrade (and after the death of a manager) the last one belonged to another
//! manager. So every worker locks a file that only it has open, before it reads an arena, and the
//! kernel releases the lock when the process is dead. *Invariant:* the process has a single
//! descriptor of that file, since closing any would give the lock up. Source: fcntl(2), F_SETLK; a
//! lock of the open file description (F_OFD_SETLK) would be shared with every other holder of the
//! descriptor. The file contains the backend health record for the next holder
//! ([`crate::health_record`]).
//!
//! *Invariant:* two workers never use one arena, whatever started them: each first takes this lock.

use crate::health_record::Place;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Time limit for a dying worker to free its memory, which comes before its files.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between attempts to lock.
const RETRY: Duration = Duration::from_millis(2);

/// The right to use the memory that outlives this worker, for as long as the process lives.
#[derive(Debug)]
pub struct DirectoryLock(File);

impl DirectoryLock {
    /// Waits until the last worker is dead.
    ///
    /// # Errors
    /// The other worker does not end, or the file cannot be locked.
    pub fn take(file: OwnedFd) -> Result<DirectoryLock, String> {
        DirectoryLock::take_within(file, TIMEOUT)
    }

    fn take_within(file: OwnedFd, timeout: Duration) -> Result<DirectoryLock, String> {
        let whence = libc::SEEK_SET as i16;
        let lock = libc::flock { l_type: libc::F_WRLCK as i16, l_whence: whence, l_start: 0, l_len: 0, l_pid: 0 };
        let deadline = Instant::now() + timeout;
        loop {
            match fcntl(&file, FcntlArg::F_SETLK(&lock)) {
                Ok(_) => return Ok(DirectoryLock(file.into())),
                Err(Errno::EAGAIN | Errno::EACCES | Errno::EINTR) if Instant::now() < deadline => {
                    std::thread::sleep(RETRY);
                }
                Err(Errno::EAGAIN | Errno::EACCES) => return Err("another worker has the storages".to_owned()),
                Err(error) => return Err(format!("the lock of the storages: {error}")),
            }
        }
    }
}

impl Place for DirectoryLock {
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, at)
    }

    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// A process that holds the lock, until its standard input ends.
    fn holder(path: &std::path::Path) -> std::process::Child {
        let script = "import fcntl,sys; f=open(sys.argv[1],'r+b'); fcntl.lockf(f,fcntl.LOCK_EX); print('held',flush=True); sys.stdin.read()";
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
        assert_eq!(line, "held\n");
        child
    }

    #[test]
    fn worker_waits_until_the_previous_one_has_released_the_lock() {
        if Command::new("python3").arg("-V").output().is_err() {
            println!("skipped: needs python3");
            return;
        }
        let folder = std::env::temp_dir().join(format!("copal-directory-lock-{}", std::process::id()));
        let open = || std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&folder);
        let file = open().unwrap();
        let mut last = holder(&folder);
        let refused = DirectoryLock::take_within(open().unwrap().into(), Duration::from_millis(20)).unwrap_err();
        assert_eq!(refused, "another worker has the storages");
        last.kill().unwrap();
        last.wait().unwrap();
        assert!(DirectoryLock::take(file.into()).is_ok());
        std::fs::remove_file(&folder).unwrap();
    }
}
