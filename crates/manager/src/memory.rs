//! How much memory the process may use: what the machine has, or what its control groups leave of it.

use std::fs;
use std::path::{Path, PathBuf};

/// A storage that was given no limit has at least that fraction of the memory, however much the others were given.
const STORAGE_SHARE_MIN: u64 = 16;

/// The limit of each storage, in bytes: what it was given, else an equal share of what the others leave of three quarters
/// of the memory that this process may use.
#[must_use]
pub fn storage_limits(given: &[Option<u64>]) -> Vec<u64> {
    let unlimited = given.iter().filter(|limit| limit.is_none()).count().max(1) as u64;
    let usable = usable_bytes();
    let left = (usable / 4 * 3).saturating_sub(given.iter().flatten().fold(0, |sum, limit| limit.saturating_add(sum)));
    let share = (left / unlimited).max(usable / STORAGE_SHARE_MIN / unlimited);
    given.iter().map(|limit| limit.unwrap_or(share)).collect()
}

/// The memory that this process may use, in bytes.
fn usable_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = total_bytes(&meminfo).unwrap_or(1 << 30);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_files(&groups, Path::new("/sys/fs/cgroup"))
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .filter_map(|text| text.trim().parse::<u64>().ok())
        .min();
    limit.map_or(machine, |limit| limit.min(machine))
}

/// `MemTotal` of /proc/meminfo, in bytes.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// The files with the limits of every group that this process is in, from /proc/self/cgroup, its own and those above.
fn group_files(groups: &str, mount: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let (root, name) = match controllers {
            "" => (mount.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (mount.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        // Inside a container the path may be one of the host; the group's own files are at the root then.
        for above in Path::new(path.trim_start_matches('/')).ancestors() {
            files.push(root.join(above).join(name));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_and_its_groups_are_read() {
        assert_eq!(total_bytes("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(total_bytes("nothing"), None);
        let files = group_files("0::/a/b\n3:cpu,memory:/x\n4:pids:/y\n", Path::new("/g"));
        let expected = ["/g/a/b/memory.max", "/g/a/memory.max", "/g/memory.max"];
        let expected_old = ["/g/memory/x/memory.limit_in_bytes", "/g/memory/memory.limit_in_bytes"];
        let expected: Vec<PathBuf> = expected.iter().chain(&expected_old).map(PathBuf::from).collect();
        assert_eq!(files, expected);
        assert!(usable_bytes() > 1 << 20);
    }

    #[test]
    fn storages_without_a_limit_share_what_the_others_leave() {
        let usable = usable_bytes();
        assert_eq!(storage_limits(&[None]), [usable / 4 * 3]);
        assert_eq!(storage_limits(&[Some(5), Some(7)]), [5, 7]);
        let share = (usable / 4 * 3 - 4096) / 2;
        assert_eq!(storage_limits(&[None, Some(4096), None]), [share, 4096, share]);
        assert_eq!(storage_limits(&[Some(u64::MAX), Some(1), None])[2], usable / 16);
    }
}
