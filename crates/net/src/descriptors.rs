//! When file descriptors run out, tells the operator with one line now and then, instead of none or thousands.
//!
//! Shared by all event loops of a worker. The line goes to standard error, which the manager reports.

use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use surface::limits::DESCRIPTOR_WARNING_SECONDS;

/// When the last line was written, in seconds of the worker's clock; 0 = never.
#[derive(Debug, Default)]
pub struct Complaints(AtomicU64);

impl Complaints {
    /// Reports a failure if its cause is a lack of descriptors and nothing was reported for a while.
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
                    "Out of file descriptors: this process may have {limit} (RLIMIT_NOFILE). Connections wait or fail; \
                     raise LimitNOFILE= of the unit, or `ulimit -n`, and start again"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_descriptors_is_said_once_in_a_while_with_the_limit() {
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
