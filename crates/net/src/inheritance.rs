//! The descriptors that this process was started with, beyond the standard ones.
//!
//! A number says nothing about who owns the descriptor. What came through exec(2) has not the flag `FD_CLOEXEC`, or it would
//! not have come, and whatever this process opens for itself has it: so the open descriptors without it are those inherited,
//! and nobody's. They are taken over once, all together, and each is had by its number once. They belong to the process as
//! its arguments do, which is why they lie in a static.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The last of the standard descriptors, which belong to the standard library.
const STANDARD_LAST: RawFd = 2;

static INHERITED: LazyLock<Mutex<BTreeMap<RawFd, OwnedFd>>> = LazyLock::new(|| Mutex::new(collect()));

fn unclaimed() -> MutexGuard<'static, BTreeMap<RawFd, OwnedFd>> {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over what was inherited, unless that was done: first thing in a process in which something else may mark a descriptor
/// as its own.
pub fn take_over() {
    LazyLock::force(&INHERITED);
}

/// The inherited descriptor of that number. It is not inherited any further.
///
/// # Errors
/// EBADF when none of that number was inherited, or somebody had it already.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    unclaimed().remove(&number).ok_or_else(|| io::Error::from_raw_os_error(nix::libc::EBADF))
}

/// Closes what was inherited and nobody wanted, so that neither this process nor its children hold it.
pub fn close_unclaimed() {
    unclaimed().clear();
}

/// Without `/proc` nothing is found.
fn collect() -> BTreeMap<RawFd, OwnedFd> {
    let names = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<RawFd> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    open.into_iter().filter_map(|number| Some((number, own(number)?))).collect()
}

fn own(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: system calls about a number, which may be that of nothing any more; no memory is passed.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 || number <= STANDARD_LAST || flags & libc::FD_CLOEXEC != 0 {
        return None;
    }
    // SAFETY: as above.
    if unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) } < 0 {
        return None;
    }
    // SAFETY: the descriptor is open and had no `FD_CLOEXEC`: it is none that this process made for itself, since the standard
    // library, tokio and all of ours open with that flag. Nor is it taken twice: this runs once in a process.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, IntoRawFd};

    /// The only test of this program that may ask for inherited descriptors.
    #[test]
    fn what_was_inherited_is_had_once_and_what_is_somebodys_never() {
        let own = File::open("/proc/self/stat").unwrap();
        let handed = File::open("/proc/self/status").unwrap();
        // As it comes through exec.
        fcntl(&handed, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        let handed = handed.into_raw_fd();
        take_over();
        assert!(inherited(own.as_raw_fd()).is_err(), "it is ours already");
        assert!(inherited(1).is_err() && inherited(-1).is_err());
        let claimed = inherited(handed).unwrap();
        assert_eq!(claimed.as_raw_fd(), handed);
        let flags = fcntl(&claimed, FcntlArg::F_GETFD).unwrap();
        assert!(FdFlag::from_bits_truncate(flags).contains(FdFlag::FD_CLOEXEC));
        let mut text = String::new();
        File::from(claimed).read_to_string(&mut text).unwrap();
        assert!(text.contains("Pid:"), "{text}");
        assert!(inherited(handed).is_err(), "somebody had it");
        close_unclaimed();
        assert!(own.metadata().is_ok());
    }
}
