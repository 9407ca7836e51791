//! Environment of measurements: folders, ports, cores, and the program under measurement.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// A folder for the servers' files, in memory if there is such a file system: on a disk, the log
/// that Copal and varnishd write through a mapping causes page faults that an installation (with
/// its state directory on tmpfs) does not have.
pub fn folder() -> Result<tempfile::TempDir, String> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.map_err(|error| error.to_string())
}

/// A free port on loopback.
pub fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// The core of the servers and that of the load; the same one on a machine with one core.
pub fn cores() -> (usize, usize) {
    let cores = std::thread::available_parallelism().map(usize::from).unwrap_or(1);
    if cores > 1 { (0, 1) } else { (0, 0) }
}

/// Pins this thread to one core.
pub fn pin(core: usize) -> Result<(), String> {
    let mut set = nix::sched::CpuSet::new();
    set.set(core).map_err(|error| error.to_string())?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).map_err(|error| error.to_string())
}

/// Builds Copal with the profile `dist`, into the folder of this program.
pub fn build() -> Result<(), String> {
    let status = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--profile", "dist", "--package", "copal"])
        .status()
        .map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err("building copal failed".into()) }
}

/// Connections that one server can hold: each takes two descriptors in a proxy, and no process gets
/// more than its limit.
pub fn connections_max() -> usize {
    use nix::sys::resource::{Resource, getrlimit};
    let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    usize::try_from(descriptors / 2).unwrap_or(usize::MAX).saturating_sub(500).clamp(100, 60_000)
}

/// The time since 1970.
pub fn since_1970() -> Duration {
    UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The value that this share of all does not exceed; NaN without any. They must be sorted.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted.get((sorted.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// The value in the middle; `None` without any.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
