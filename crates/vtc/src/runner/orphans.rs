//! Processes that outlive their test: found by a variable in their environment, and because they
//! become children of the runner.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// The variable that names the test's folder in all its processes.
pub(super) const MARK: &str = "COPAL_TEST_FOLDER";
/// Number of searches before giving up.
const LOOKS: u32 = 100;
/// Time between two searches.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Makes the runner the parent of every descendant whose parent dies.
pub(super) fn adopt() {
    // If this fails, such processes are found only by their mark.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Reaps adopted processes that have ended: a script may be waiting for that. `known` are the
/// tests' own.
pub(super) fn bury(known: &[u32]) {
    for pid in children().into_iter().filter(|pid| !known.contains(pid)) {
        let _ = waitpid(Pid::from_raw(pid as i32), Some(WaitPidFlag::WNOHANG));
    }
}

/// Ends every process of the test with this folder.
pub(super) fn end_marked(folder: &Path) {
    let mark = [MARK.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    end(|| processes().into_iter().filter(|pid| has_in_environment(*pid, &mark)).collect());
}

/// Ends every adopted process that is not `known`.
pub(super) fn end_all(known: &[u32]) {
    end(|| children().into_iter().filter(|pid| !known.contains(pid)).collect());
}

/// Kills and reaps all processes that `find` returns, until it returns none.
fn end(find: impl Fn() -> Vec<u32>) {
    for _ in 0..LOOKS {
        let found = find();
        if found.is_empty() {
            return;
        }
        for pid in found {
            let pid = Pid::from_raw(pid as i32);
            let _ = kill(pid, Signal::SIGKILL);
            let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    let pid = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    entries.filter_map(pid).filter(|pid| *pid != own).collect()
}

fn has_in_environment(pid: u32, mark: &[u8]) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark)
}

/// The runner's children, according to the kernel, for each of its threads.
fn children() -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let of_thread =
        |thread: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(thread.ok()?.path().join("children")).ok();
    let lists: Vec<String> = threads.filter_map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}
