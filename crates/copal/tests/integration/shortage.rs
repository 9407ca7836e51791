//! Shortage of memory: the cache shrinks, the daemon continues to serve.

use crate::daemon::{Daemon, Origin, copal, eventually, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

const PAGE_BYTES: usize = 1 << 20;

/// A page of one mebibyte that contains its own name.
fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/");
    ok("Cache-Control: max-age=600\r\n", &format!("{path}{}", " ".repeat(PAGE_BYTES - path.len())))
}

/// Memory that the kernel holds for the arenas of a daemon, in bytes.
fn arena_bytes(daemon: &Daemon) -> u64 {
    let folder = PathBuf::from(format!("/proc/{}/fd", daemon.process.pid()));
    let descriptors = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let is_arena = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:copal-arena"))
    };
    descriptors.filter(is_arena).map(|path| std::fs::metadata(path).unwrap().blocks() * 512).sum()
}

fn is_right(daemon: &Daemon, number: usize) -> bool {
    let path = format!("/{number}");
    let answer = daemon.get(&path);
    assert_eq!((answer.status, answer.body.len()), (200, PAGE_BYTES), "{}", answer.head);
    assert!(answer.text().starts_with(&format!("{path} ")));
    answer.is_hit()
}

#[test]
fn workers_killed_repeatedly_get_smaller_storages_and_keep_objects_that_fit() {
    const PAGES: usize = 40;
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-s", "malloc,64m"]);
    for number in 0..PAGES {
        is_right(&daemon, number);
    }
    let full = arena_bytes(&daemon);
    assert!(full > 40 << 20, "{full}");
    let mut kills = 0;
    // Three within a minute are enough. A busy machine may need more of them.
    eventually("storages shrink", || {
        let worker = daemon.worker();
        kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
        kills += 1;
        eventually("another worker serves", || (daemon.worker() != worker).then_some(()));
        daemon.said().contains("as happens when memory runs out").then_some(())
    });
    let hits = (0..PAGES).filter(|number| is_right(&daemon, *number)).count();
    let said = daemon.said();
    assert!(
        said.contains("killed within 60 s, as happens when memory runs out: storages shrink from 64M to 3"),
        "{said}"
    );
    assert!(kills >= 3, "after {kills}: {said}");
    assert!(hits > 0, "{said}");
    let left = arena_bytes(&daemon);
    assert!(left < full * 4 / 5, "{left} of {full}");
    // After an operator's stop and start it has its full size again, with the kept objects.
    assert!(daemon.cli(&["stop"]).0 && daemon.cli(&["start"]).0);
    for number in 0..PAGES {
        is_right(&daemon, number);
    }
    assert!((0..PAGES).all(|number| is_right(&daemon, number)));
}

/// A control group with a memory limit, below our own group.
struct Group(PathBuf, &'static str);

impl Group {
    fn of(name: &str, bytes: u64) -> Option<Group> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        let path = |line: &str| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let (root, file) = match controllers {
                "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                "" => ("/sys/fs/cgroup", "memory.max"),
                _ => return None,
            };
            let group =
                PathBuf::from(format!("{root}{path}")).join(format!("copal-test-{name}-{}", std::process::id()));
            std::fs::create_dir(&group).ok()?;
            let group = Group(group, file);
            std::fs::metadata(group.0.join(file)).ok()?;
            std::fs::write(group.0.join(file), bytes.to_string()).ok()?;
            Some(group)
        };
        own.lines().find_map(path)
    }

    fn set(&self, bytes: u64) {
        eventually("the limit is changed", || std::fs::write(self.0.join(self.1), bytes.to_string()).ok());
    }

    /// A command that starts the daemon in this group.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        let procs = self.0.join("cgroup.procs");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(procs).arg(copal()).arg("daemon");
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        eventually("the group is empty", || std::fs::remove_dir(&self.0).ok());
    }
}

#[test]
fn small_control_group_is_reported_and_the_daemon_serves() {
    const PAGES: usize = 200;
    let Some(group) = Group::of("small", 128 << 20) else {
        println!("skipped: needs a writable cgroup");
        return;
    };
    let origin = Origin::start(page);
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_by(group.command(), &["-b", &backend, "-s", "malloc,160m"]);
    assert!(daemon.said().contains("Memory can run out: up to 237M are needed"), "{}", daemon.said());
    let killed = || daemon.said().matches("was killed by the kernel for lack of memory").count();
    let ask = |number: usize| {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        crate::daemon::exchange(daemon.port, request.as_bytes()).len() > PAGE_BYTES
    };
    for number in 0..PAGES {
        // A request that kills its worker is repeated.
        eventually("a page is served", || ask(number).then_some(()));
    }
    let said = daemon.said();
    assert!((1..=3).contains(&killed()), "{said}");
    assert!(said.contains("beyond a smaller limit dropped"), "{said}");
    let before = killed();
    assert!((0..PAGES).all(ask), "{}", daemon.said());
    assert_eq!(killed(), before, "{}", daemon.said());
    drop(daemon);
    drop(group);
}

#[test]
fn storages_follow_the_limit_of_the_control_group_while_they_serve() {
    let Some(group) = Group::of("followed", 600 << 20) else {
        println!("skipped: needs a writable cgroup");
        return;
    };
    let origin = Origin::start(page);
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_by(group.command(), &["-b", &backend, "-s", "malloc,30%", "-l", "4m"]);
    let worker = daemon.worker();
    let fill = |pages: usize| (0..pages).filter(|number| is_right(&daemon, *number)).count();
    fill(150);
    assert_eq!(fill(150), 150, "180 MB hold them");
    // A later limit below the present amount must be possible.
    group.set(400 << 20);
    eventually("they shrink", || {
        daemon.said().contains("There are 400M of memory now: storages shrink from 180M to 120M").then_some(())
    });
    let held = arena_bytes(&daemon);
    assert!(held <= (120 << 20) / 32 * 33, "{held}");
    let kept = fill(150);
    assert!(arena_bytes(&daemon) <= (120 << 20) / 32 * 33 && kept < 150, "{kept}");
    // Stored objects are served correctly, from a storage that is smaller now.
    assert!(fill(60) + fill(60) >= 60);
    group.set(1200 << 20);
    eventually("they grow", || daemon.said().contains("storages grow from 120M to 360M").then_some(()));
    fill(300);
    assert_eq!(fill(300), 300);
    assert_eq!(daemon.worker(), worker, "without a new worker");
    // The next worker has the same limit.
    kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    assert_eq!(fill(300), 300);
    drop(daemon);
    drop(group);
}

#[test]
fn memory_size_can_be_set_by_the_operator() {
    let origin = Origin::start(page);
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start(&["-b", &backend, "-s", "malloc,50%", "--memory", "300m", "-l", "4m"]);
    for number in 0..200 {
        is_right(&daemon, number);
    }
    let held = arena_bytes(&daemon);
    assert!((140 << 20..=(150 << 20) / 32 * 33).contains(&held), "{held}");
    let output = Command::new(copal()).args(["daemon", "--memory", "much", "-b", "none"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("--memory much: Invalid number"), "{text}");
}
