//! Finds a server, and limits how long a tool waits for it to appear.

use std::ffi::OsStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use shm::read::vsm::{Vsm, work_directory};

/// How often to look for a server that is not there.
const RETRY: Duration = Duration::from_millis(500);

/// `-t`: seconds to wait; `None` waits for ever.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct AttachTimeout(pub Option<f64>);

impl Default for AttachTimeout {
    fn default() -> Self {
        AttachTimeout(Some(5.0))
    }
}

impl AttachTimeout {
    /// Seconds, or `off`.
    pub fn parse(text: &OsStr) -> Option<AttachTimeout> {
        let text = text.to_str()?;
        if text == "off" {
            return Some(AttachTimeout(None));
        }
        let seconds: f64 = text.parse().ok()?;
        (seconds.is_finite() && seconds >= 0.0).then_some(AttachTimeout(Some(seconds)))
    }

    /// Waits until the server `name` has published its index, or the time is up.
    pub fn attach(self, name: Option<&OsStr>) -> Option<Vsm> {
        let mut vsm = Vsm::new(&work_directory(name));
        self.wait_for(|| vsm.poll().manager_running).then_some(vsm)
    }

    /// Retries until `condition` holds, or the time is up.
    pub fn wait_for(self, mut condition: impl FnMut() -> bool) -> bool {
        let started = Instant::now();
        loop {
            if condition() {
                return true;
            }
            let passed = started.elapsed();
            let left = match self.0 {
                None => RETRY,
                Some(limit) => Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX).saturating_sub(passed),
            };
            if left.is_zero() {
                return false;
            }
            sleep(left.min(RETRY));
        }
    }
}
