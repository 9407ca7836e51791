//! Exhaustion of file descriptors: [`Complaints`] logs one line at most once per interval, and
//! [`Reserve`] keeps the last descriptors back from clients, so that their requests can still be
//! answered.
//!
//! The complaints are shared by all event loops of a worker. The line goes to standard error, which
//! the manager reports.
//!
//! *Invariant:* clients never take the last descriptors.

use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::limits::{DESCRIPTOR_WARNING_SECONDS, DESCRIPTORS_RESERVED_MAX, DESCRIPTORS_RESERVED_PART};

/// Time of the last line, in seconds of the worker's clock; 0 = never.
#[derive(Debug, Default)]
pub struct Complaints(AtomicU64);

impl Complaints {
    /// Reports a failure if its cause is a lack of descriptors and nothing was reported for a
    /// while.
    pub fn hear(&self, error: &io::Error, now: f64) {
        if let Some(line) = self.line(error, now) {
            eprintln!("{line}");
        }
    }

    fn line(&self, error: &io::Error, now: f64) -> Option<String> {
        let line = match error.raw_os_error() {
            Some(libc::EMFILE) => {
                let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
                format!(
                    "Out of file descriptors: this process may have {limit} (RLIMIT_NOFILE). Idle connections are closed, others \
                     wait or fail; raise LimitNOFILE= of the unit, or `ulimit -n`, and start again"
                )
            }
            Some(libc::ENFILE) => {
                "Out of file descriptors: the system has no more (sysctl fs.file-max). Connections wait \
                                   or fail"
                    .to_owned()
            }
            _ => return None,
        };
        let (now, last) = ((now as u64).max(1), self.0.load(Relaxed));
        let is_due = last == 0 || now.saturating_sub(last) >= DESCRIPTOR_WARNING_SECONDS;
        (is_due && self.0.compare_exchange(last, now, Relaxed, Relaxed).is_ok()).then_some(line)
    }
}

/// The descriptors that clients do not get.
///
/// The system gives the lowest free number. A connection with one of the last numbers therefore
/// means that all lower ones are taken, and as long as no client is accepted with one of them, the
/// last numbers remain for all other uses.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// The lowest number kept back.
    first: u64,
}

impl Reserve {
    /// Under the limit that this process has now.
    pub(crate) fn new() -> Reserve {
        Reserve { first: first_reserved(limit()) }
    }

    /// Reads the limit again: `prlimit` changes that of a process that runs.
    pub(crate) fn read_limit(&mut self) {
        self.first = first_reserved(limit());
    }

    /// True if the number of a new connection implies that all lower ones are taken.
    pub(crate) fn is_reached(&self, newest: RawFd) -> bool {
        u64::try_from(newest).is_ok_and(|newest| newest >= self.first)
    }

    /// True if a client would get a number that is not reserved. Costs three system calls.
    pub(crate) fn has_room(&mut self, any: impl AsFd) -> bool {
        self.read_limit();
        any.as_fd().try_clone_to_owned().is_ok_and(|next| !self.is_reached(next.as_raw_fd()))
    }
}

/// True if this failure means that descriptors have run out, here or in the whole system.
pub(crate) fn is_lack(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft)
}

fn first_reserved(limit: u64) -> u64 {
    limit - (limit / DESCRIPTORS_RESERVED_PART).min(DESCRIPTORS_RESERVED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_descriptors_are_kept_back() {
        let mut reserve = Reserve { first: first_reserved(64) };
        assert!(!reserve.is_reached(55) && reserve.is_reached(56) && reserve.is_reached(63));
        assert_eq!(first_reserved(1 << 20), (1 << 20) - DESCRIPTORS_RESERVED_MAX);
        assert_eq!((first_reserved(7), first_reserved(u64::MAX)), (7, u64::MAX - DESCRIPTORS_RESERVED_MAX));
        assert!(reserve.has_room(io::stdin()), "the limit is read again");
        assert_eq!(reserve.first, Reserve::new().first);
    }

    #[test]
    fn descriptor_exhaustion_is_logged_at_most_once_per_interval() {
        let complaints = Complaints::default();
        let error = |number| io::Error::from_raw_os_error(number);
        assert_eq!(complaints.line(&error(libc::ECONNABORTED), 1000.0), None);
        let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        let said = complaints.line(&error(libc::EMFILE), 1000.0).unwrap();
        assert!(said.contains(&format!("may have {limit} ")) && !said.contains('\n'), "{said}");
        assert_eq!(complaints.line(&error(libc::EMFILE), 1000.5), None);
        assert_eq!(complaints.line(&error(libc::ENFILE), 999.0 + DESCRIPTOR_WARNING_SECONDS as f64), None);
        let later = 1000.0 + DESCRIPTOR_WARNING_SECONDS as f64;
        assert!(complaints.line(&error(libc::ENFILE), later).unwrap().contains("fs.file-max"));
    }
}
