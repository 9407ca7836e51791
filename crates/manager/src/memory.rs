//! Memory available to this process (that of the machine, or the rest within its control groups),
//! the amount that it is going to hold, and the number of processes of its group that the kernel
//! has killed for lack of memory.
//!
//! The memory is held by the storages, whose limits bound objects, metadata and index; by the log,
//! if its directory is in memory; by requests; and by the two processes themselves. A control group
//! counts all of them, so a storage without a given size gets the rest. Source: Linux cgroup-v2
//! ("memory.max", "memory.events") and cgroup-v1 ("memory.limit_in_bytes", "memory.oom_control").

use crate::arguments::storage::Size as StorageSize;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use std::fs;
use std::path::{Path, PathBuf};

/// A storage without a given limit has at least one part in this many of the memory, regardless of
/// the other limits.
const STORAGE_SHARE_MIN: u64 = 16;
/// Manager and worker with an empty cache, including stacks and page tables.
const PROCESSES_BYTES: u64 = 40 << 20;
/// Reserved for requests, their connections and fetches.
const REQUESTS_BYTES: u64 = 32 << 20;
/// Factor by which a storage may grow beyond its first size: each gibibyte of an arena costs 32 KiB
/// to administer, used or not.
const GROWTH: u64 = 16;
/// A storage may exceed its limit by one part in this many: pages that are partly free.
const STORAGE_SLACK: u64 = 32;

/// The kernel's files with this information: those of this process, or others in tests.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `/proc`.
    proc: PathBuf,
    /// `/sys/fs/cgroup`.
    groups: PathBuf,
}

/// Amount of memory, and its source: a control group or the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usable {
    /// Bytes.
    pub bytes: u64,
    /// A control group allows less than the machine has.
    pub is_of_group: bool,
}

/// Memory held besides the storages, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// The log; 0 if it is on a disk, since the kernel writes it there when memory runs short.
    pub log_bytes: u64,
}

impl Overhead {
    /// The overhead with a log of that size in that work directory.
    #[must_use]
    pub fn of(work_directory: &Path, log_bytes: u64) -> Overhead {
        let Some(found) = statfs(work_directory).ok().filter(|found| found.filesystem_type() == TMPFS_MAGIC) else {
            return Overhead { log_bytes: 0 };
        };
        // The worker makes the log as small as necessary. Without a limit, a tmpfs has no blocks.
        let most = match found.blocks() {
            0 => u64::MAX,
            blocks => blocks.saturating_mul(found.block_size() as u64),
        };
        Overhead { log_bytes: log_bytes.min(most) }
    }

    fn bytes(self) -> u64 {
        self.log_bytes.saturating_add(PROCESSES_BYTES + REQUESTS_BYTES)
    }

    /// Largest total size of the storages such that everything fits.
    #[must_use]
    pub fn leaves(self, usable: Usable) -> u64 {
        usable.bytes.saturating_sub(self.bytes()) / (STORAGE_SLACK + 1) * STORAGE_SLACK
    }

    /// Largest total size of the storages after a worker has run out of memory. The reserve for
    /// requests and processes is a conservative estimate: if it leaves nothing, a quarter of the
    /// memory without the log is tried.
    #[must_use]
    pub fn leaves_at_least(self, usable: Usable) -> u64 {
        self.leaves(usable).max(usable.bytes.saturating_sub(self.log_bytes) / 4)
    }

    /// One line if storages with these limits and everything else do not fit: the need, the
    /// available memory, the remedy.
    #[must_use]
    pub fn complaint(self, limits: &[u64], usable: Usable) -> Option<String> {
        let storages = limits.iter().fold(0u64, |sum, limit| sum.saturating_add(*limit));
        let needed = storages.saturating_add(storages / STORAGE_SLACK).saturating_add(self.bytes());
        if needed <= usable.bytes {
            return None;
        }
        let who = if usable.is_of_group { "the control group allows" } else { "the machine has" };
        let log = if self.log_bytes > 0 { format!(", log {}", Size(self.log_bytes)) } else { String::new() };
        let advice = match self.leaves(usable) {
            0 => "give it more, or -l less".to_owned(),
            most => format!("give -s {} in all, or less with a larger -l, or give it more", Size(most)),
        };
        Some(format!(
            "Memory can run out: up to {} are needed (storages {}{log}, requests {}, processes {}), {who} {}; {advice}",
            Size(needed),
            Size(storages),
            Size(REQUESTS_BYTES),
            Size(PROCESSES_BYTES),
            Size(usable.bytes),
        ))
    }
}

/// A size in the form used after `-s`, rounded down.
pub struct Size(pub u64);

impl std::fmt::Display for Size {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            bytes if bytes >= 10 << 30 => write!(formatter, "{}G", bytes >> 30),
            bytes if bytes >= 1 << 20 => write!(formatter, "{}M", bytes >> 20),
            bytes => write!(formatter, "{}k", bytes >> 10),
        }
    }
}

/// The limit of each storage, in bytes: the given one, else an equal share of the rest of three
/// quarters of the memory, or of the memory without the log and everything else if that is less.
#[must_use]
pub fn storage_limits(given: &[Option<u64>], usable: Usable, overhead: Overhead) -> Vec<u64> {
    let unlimited = given.iter().filter(|limit| limit.is_none()).count().max(1) as u64;
    let most = (usable.bytes / 4 * 3).min(overhead.leaves(usable));
    let left = most.saturating_sub(given.iter().flatten().fold(0, |sum, limit| limit.saturating_add(sum)));
    let share = (left / unlimited).max(usable.bytes / STORAGE_SHARE_MIN / unlimited);
    given.iter().map(|limit| limit.unwrap_or(share)).collect()
}

/// Largest limit of a storage that needs no new arena, in bytes.
#[must_use]
pub fn grows_to(size: StorageSize, limit_bytes: u64, machine_bytes: u64) -> u64 {
    match size {
        StorageSize::Bytes(_) | StorageSize::OfFile => limit_bytes,
        StorageSize::Percent(_) | StorageSize::Rest => {
            limit_bytes.saturating_mul(GROWTH).min(machine_bytes).max(limit_bytes)
        }
    }
}

impl Kernel {
    /// The files of this machine.
    #[must_use]
    pub fn here() -> Kernel {
        Kernel { proc: PathBuf::from("/proc"), groups: PathBuf::from("/sys/fs/cgroup") }
    }

    /// The same, with a bound of the operator's.
    #[must_use]
    pub fn usable_within(&self, bound_bytes: Option<u64>) -> Usable {
        let usable = self.usable();
        match bound_bytes {
            Some(bytes) if bytes < usable.bytes => Usable { bytes, is_of_group: usable.is_of_group },
            _ => usable,
        }
    }

    /// The memory of the machine, even if we may use less.
    #[must_use]
    pub fn machine_bytes(&self) -> u64 {
        let meminfo = fs::read_to_string(self.proc.join("meminfo")).unwrap_or_default();
        total_bytes(&meminfo).unwrap_or(1 << 30)
    }

    /// The memory that this process may use.
    #[must_use]
    pub fn usable(&self) -> Usable {
        let machine = self.machine_bytes();
        // Beyond "memory.high" a group is slowed down until it is useless. Version 1 has no such
        // limit.
        let limits = self.group_files(("memory.max", "memory.limit_in_bytes"));
        let slow = self.group_files(("memory.high", "memory.limit_in_bytes"));
        let limits =
            limits.iter().chain(&slow).filter_map(|file| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
        match limits.min() {
            Some(limit) if limit < machine => Usable { bytes: limit, is_of_group: true },
            _ => Usable { bytes: machine, is_of_group: false },
        }
    }

    /// Number of processes of our own group that were killed for lack of memory; `None` if the
    /// kernel does not report it.
    #[must_use]
    pub fn kills(&self) -> Option<u64> {
        let files = self.group_files(("memory.events", "memory.oom_control"));
        files.iter().find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
        })
    }

    /// The paths of a file, by its names in version 2 and in version 1, in every group that this
    /// process is in: its own group first, then those above it.
    fn group_files(&self, (name, old_name): (&str, &str)) -> Vec<PathBuf> {
        let groups = fs::read_to_string(self.proc.join("self/cgroup")).unwrap_or_default();
        let mut files = Vec::new();
        for line in groups.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let (root, name) = match controllers {
                "" => (self.groups.clone(), name),
                _ if controllers.split(',').any(|name| name == "memory") => (self.groups.join("memory"), old_name),
                _ => continue,
            };
            // Inside a container this may be a path of the host; the group's own files are then at
            // the root.
            for above in Path::new(path.trim_start_matches('/')).ancestors() {
                files.push(root.join(above).join(name));
            }
        }
        files
    }
}

/// `MemTotal` of /proc/meminfo, in bytes.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of 8 GB with these groups, and files below `/sys/fs/cgroup`.
    fn kernel(groups: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Kernel) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(folder.path().join("proc/meminfo"), "MemFree: 1 kB\nMemTotal:       8388608 kB\n");
        write(folder.path().join("proc/self/cgroup"), groups);
        for (path, text) in files {
            write(folder.path().join("groups").join(path), text);
        }
        let kernel = Kernel { proc: folder.path().join("proc"), groups: folder.path().join("groups") };
        (folder, kernel)
    }

    fn group(megabytes: u64) -> Usable {
        Usable { bytes: megabytes << 20, is_of_group: true }
    }

    #[test]
    fn memory_high_and_the_operator_limit_count_as_limits() {
        let files = [("a/memory.max", "400000000\n"), ("a/memory.high", "209715200\n")];
        let (_folder, kernel) = kernel("0::/a\n", &files);
        assert_eq!(kernel.usable(), group(200));
        assert_eq!(kernel.usable_within(Some(100 << 20)), group(100));
        assert_eq!(kernel.usable_within(Some(1 << 40)), group(200));
        assert_eq!(kernel.machine_bytes(), 8 << 30);
    }

    #[test]
    fn the_smallest_limit_on_the_path_counts() {
        let files = [("a/b/memory.max", "max\n"), ("a/memory.max", "209715200\n"), ("memory.max", "400000000\n")];
        let (_folder, two) = kernel("0::/a/b\n", &files);
        assert_eq!(two.usable(), group(200));
        let files = [
            ("memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.limit_in_bytes", "104857600\n"),
            ("x/memory.max", "1\n"),
        ];
        let (_folder, one) = kernel("4:pids:/y\n3:cpu,memory:/x\n", &files);
        assert_eq!(one.usable(), group(100));
        // A path of the host, as seen in a container without a namespace of its own.
        let (_folder, container) = kernel("0::/docker/0123\n", &[("memory.max", "104857600\n")]);
        assert_eq!(container.usable(), group(100));
        for (groups, files) in [("0::/a\n", &[("a/memory.max", "max\n")][..]), ("", &[]), ("nonsense\n0:\n", &[])] {
            let (_folder, free) = kernel(groups, files);
            assert_eq!(free.usable(), Usable { bytes: 8 << 30, is_of_group: false }, "{groups}");
        }
        assert!(Kernel::here().usable().bytes > 1 << 20);
        assert_eq!(total_bytes("nothing"), None);
    }

    #[test]
    fn kills_are_those_of_our_own_group() {
        let events = "low 0\nhigh 0\nmax 900\noom 8\noom_kill 7\noom_group_kill 0\n";
        let files = [("a/memory.events", events), ("memory.events", "oom_kill 99\n")];
        let (_folder, two) = kernel("0::/a\n", &files);
        assert_eq!(two.kills(), Some(7));
        let control = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        let (_folder, one) = kernel("4:memory:/x\n0::/\n", &[("memory/x/memory.oom_control", control)]);
        assert_eq!(one.kills(), Some(3));
        let (_folder, none) = kernel("0::/a\n", &[("a/memory.events", "low 0\n")]);
        assert_eq!(none.kills(), None);
    }

    #[test]
    fn storages_without_a_limit_share_what_the_others_leave() {
        let (usable, overhead) = (group(8192), Overhead { log_bytes: 0 });
        let limits = |given: &[Option<u64>]| storage_limits(given, usable, overhead);
        assert_eq!(limits(&[None]), [6 << 30]);
        assert_eq!(limits(&[Some(5), Some(7)]), [5, 7]);
        let share = ((6 << 30) - 4096) / 2;
        assert_eq!(limits(&[None, Some(4096), None]), [share, 4096, share]);
        assert_eq!(limits(&[Some(u64::MAX), Some(1), None])[2], 512 << 20);
    }

    #[test]
    fn a_storage_without_a_limit_leaves_room_for_the_log_and_all_else() {
        for (megabytes, log) in [(200, 80), (256, 80), (512, 80), (1024, 80), (4096, 80), (200, 0)] {
            let overhead = Overhead { log_bytes: log << 20 };
            let limits = storage_limits(&[None], group(megabytes), overhead);
            assert_eq!(overhead.complaint(&limits, group(megabytes)), None, "{megabytes}: {limits:?}");
            assert!(limits[0] >= (megabytes << 20) / 16, "{megabytes}: {limits:?}");
        }
    }

    #[test]
    fn memory_shortage_is_reported_in_one_line() {
        let overhead = Overhead { log_bytes: 80 << 20 };
        let expected = "Memory can run out: up to 306M are needed (storages 150M, log 80M, requests 32M, processes 40M), \
                        the control group allows 200M; give -s 46M in all, or less with a larger -l, or give it more";
        assert_eq!(overhead.complaint(&[100 << 20, 50 << 20], group(200)).as_deref(), Some(expected));
        let hopeless = overhead.complaint(&[1 << 20], group(100)).unwrap();
        assert!(hopeless.ends_with("the control group allows 100M; give it more, or -l less"), "{hopeless}");
        let machine = Usable { bytes: 1 << 30, is_of_group: false };
        assert!(overhead.complaint(&[u64::MAX, 1], machine).unwrap().contains("the machine has 1024M"));
        assert_eq!(overhead.complaint(&[256 << 20], machine), None);
    }

    #[test]
    fn estimates_leave_a_little_for_the_storages() {
        let overhead = Overhead { log_bytes: 80 << 20 };
        assert_eq!(overhead.leaves(group(115)), 0);
        assert_eq!(overhead.leaves_at_least(group(115)), (35 << 20) / 4);
        assert_eq!(overhead.leaves_at_least(group(4096)), overhead.leaves(group(4096)));
        assert_eq!(overhead.leaves_at_least(group(50)), 0);
    }

    #[test]
    fn arenas_are_made_to_grow_where_their_limit_may() {
        assert_eq!(grows_to(StorageSize::Bytes(1 << 20), 1 << 20, 1 << 40), 1 << 20);
        assert_eq!(grows_to(StorageSize::Percent(75), 1 << 20, 1 << 40), 16 << 20);
        assert_eq!(grows_to(StorageSize::Rest, 6 << 30, 8 << 30), 8 << 30);
        assert_eq!(grows_to(StorageSize::Rest, 6 << 30, 1 << 30), 6 << 30, "never less than now");
    }

    #[test]
    fn a_log_on_a_disk_is_not_counted() {
        assert_eq!(Overhead::of(Path::new("/proc"), 80 << 20), Overhead { log_bytes: 0 });
        if statfs("/dev/shm").is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC) {
            assert_eq!(Overhead::of(Path::new("/dev/shm"), 1 << 20), Overhead { log_bytes: 1 << 20 });
        }
    }
}
