//! Search for a server, with a timeout for its start.

use std::ffi::OsStr;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use shm::read::vsm::{Vsm, work_directory};
use shm::vsm::{INDEX_NAME, MANAGER_DIRECTORY};
use surface::legible;
use surface::program::Called;

/// Polling interval for a server that is not there.
const RETRY: Duration = Duration::from_millis(500);

/// Message where no server was found. Under our own name it says where, and how to start one.
pub(crate) fn not_running(name: Option<&OsStr>, called: Called) -> String {
    if called == Called::Stock {
        return "Could not get hold of varnishd, is it running?".to_owned();
    }
    let directory = work_directory(name);
    if let Some(text) = unreadable(&directory) {
        return text;
    }
    let directory = legible::line(directory.as_os_str().as_encoded_bytes());
    match name {
        Some(name) => {
            let name = legible::line(name.as_encoded_bytes());
            format!("No server runs in {directory}. To start one: copal daemon -n {name} -a :6080 -b 127.0.0.1:8080")
        }
        None => format!(
            "No server runs in {directory}; -n DIRECTORY names another place. To start one: copal daemon -a :6080 -b 127.0.0.1:8080"
        ),
    }
}

/// Message if the user may not read the memory of the server in this directory; `None` otherwise.
pub(crate) fn unreadable(directory: &Path) -> Option<String> {
    let index = std::fs::File::open(directory.join(MANAGER_DIRECTORY).join(INDEX_NAME));
    let is_denied = index.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    let directory = legible::line(directory.as_os_str().as_encoded_bytes());
    is_denied
        .then(|| format!("This user may not read the memory of the server in {directory}: use sudo, or join its group"))
}

/// `-t`: seconds to wait; `None` waits forever.
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
