//! The descriptors that this process was started with, beyond the standard ones.
//!
//! A number does not identify the owner of the descriptor. But a descriptor that came through
//! exec(2) cannot have the flag `FD_CLOEXEC`, and everything that this process opens for itself has
//! it: so the open descriptors without the flag are the inherited ones, and have no other owner.
//! They are taken over once, all together, and each number can be claimed once. Like the arguments
//! they belong to the whole process, so they are in a static.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The last standard descriptor; those belong to the standard library.
const STANDARD_LAST: RawFd = 2;

static INHERITED: LazyLock<Mutex<BTreeMap<RawFd, OwnedFd>>> = LazyLock::new(|| Mutex::new(collect()));

fn unclaimed() -> MutexGuard<'static, BTreeMap<RawFd, OwnedFd>> {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over the inherited descriptors, unless that has been done. Call it first in a process
/// where other code may set `FD_CLOEXEC` on inherited descriptors.
pub fn take_over() {
    LazyLock::force(&INHERITED);
}

/// Claims the inherited descriptor with this number. It is not inherited any further.
///
/// # Errors
/// EBADF if no such number was inherited, or it has already been claimed.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    unclaimed().remove(&number).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
}

/// Closes the inherited descriptors that were not claimed, so that neither this process nor its
/// children hold them.
pub fn close_unclaimed() {
    unclaimed().clear();
}

/// Returns nothing without `/proc`.
fn collect() -> BTreeMap<RawFd, OwnedFd> {
    let names = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<RawFd> = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    open.into_iter().filter_map(|number| Some((number, own(number)?))).collect()
}

fn own(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: system calls on a number, which may not be an open descriptor any more; no memory is
    // passed.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 || number <= STANDARD_LAST || flags & libc::FD_CLOEXEC != 0 {
        return None;
    }
    // SAFETY: as above.
    if unsafe { libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) } < 0 {
        return None;
    }
    // SAFETY: the descriptor is open and had no `FD_CLOEXEC`, so this process did not open it: the
    // standard library, tokio and all our code open with that flag. Nor is it taken twice: this
    // runs once in a process.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, IntoRawFd};

    /// No other test of this program may claim inherited descriptors.
    #[test]
    fn inherited_descriptors_are_taken_once_and_owned_ones_never() {
        let own = File::open("/proc/self/stat").unwrap();
        let handed = File::open("/proc/self/status").unwrap();
        // In its state after exec.
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
