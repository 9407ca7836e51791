//! Starts that must not fail for ever: storages that no worker can take over, and failures that no
//! storage causes.

use crate::daemon::{Daemon, Origin, copal, eventually, needs, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    ok("Cache-Control: max-age=600\r\n", &format!("this is {path}\n"))
}

/// The memory files with that name that a manager holds, in the order of their creation.
pub fn memory_files(manager: i32, name: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(format!("/proc/{manager}/fd"));
    let mut found: Vec<u32> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number: &u32| {
            let target = std::fs::read_link(folder.join(number.to_string())).unwrap_or_default();
            target.to_string_lossy().starts_with(&format!("/memfd:{name}"))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|number| folder.join(number.to_string())).collect()
}

fn damage(path: &PathBuf) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"nonsense", 0).unwrap();
}

fn lines(daemon: &Daemon, text: &str) -> usize {
    daemon.said().lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_storage_that_cannot_be_taken_over_begins_empty_and_the_others_are_kept() {
    let origin = Origin::start(page);
    let vcl = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
               sub vcl_backend_response {
                   set beresp.storage = storage.s0;
                   if (bereq.url ~ \"^/large\") { set beresp.storage = storage.large; }
               }";
    let daemon = Daemon::with_vcl(vcl, origin.port, &["-s", "malloc,64m", "-s", "large=malloc,64m"]);
    for path in ["/small", "/large", "/banned"] {
        assert_eq!(daemon.get(path).status, 200);
    }
    assert!(daemon.cli(&["ban", "req.url", "==", "/banned"]).0);
    let arenas = memory_files(daemon.process.pid(), "copal-arena");
    assert_eq!(arenas.len(), 2);
    damage(&arenas[1]);
    kill(Pid::from_raw(daemon.worker()), Signal::SIGKILL).unwrap();
    assert!(daemon.get("/small").is_hit(), "{}", daemon.said());
    assert!(!daemon.get("/large").is_hit());
    assert!(daemon.get("/large").is_hit());
    assert!(!daemon.get("/banned").is_hit(), "the bans are kept");
    let said = daemon.said();
    assert_eq!(lines(&daemon, "Storage large could not be taken over 3 times: it begins empty"), 1, "{said}");
    assert_eq!(lines(&daemon, "begins empty") + lines(&daemon, "begin empty"), 1, "{said}");
}

#[test]
fn without_its_bans_the_cache_begins_empty() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-s", "malloc,64m", "-s", "malloc,64m"]);
    for path in ["/a", "/b"] {
        assert_eq!(daemon.get(path).status, 200);
    }
    damage(&memory_files(daemon.process.pid(), "copal-journal")[0]);
    // Even if an operator starts the next worker.
    assert!(daemon.cli(&["stop"]).0);
    let (started, text) = daemon.cli(&["start"]);
    assert!(started, "{text}");
    for path in ["/a", "/b"] {
        assert!(!daemon.get(path).is_hit());
        assert!(daemon.get(path).is_hit());
    }
    let line = "The bans could not be read 3 times: all storages begin empty";
    assert_eq!(lines(&daemon, line), 1, "{}", daemon.said());
}

#[test]
fn a_start_that_fails_for_another_reason_costs_no_cache() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let obstacle = folder.path().join("obstacle");
    let vcl = format!(
        "vcl 4.1; import std; backend b {{ .host = \"127.0.0.1\"; .port = \"@PORT@\"; }}
         sub vcl_init {{ if (std.file_exists(\"{}\")) {{ return (fail(\"not now\")); }} }}",
        obstacle.display()
    );
    let daemon = Daemon::with_vcl(&vcl, origin.port, &[]);
    assert_eq!(daemon.get("/a").status, 200);
    let worker = daemon.worker();
    std::fs::write(&obstacle, "").unwrap();
    kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    // More often than a storage would be tried.
    eventually("several starts fail", || (lines(&daemon, "Pushing vcls failed") > 3).then_some(()));
    std::fs::remove_file(&obstacle).unwrap();
    assert!(daemon.get("/a").is_hit(), "{}", daemon.said());
    assert_eq!(origin.count(), 1);
}

/// A command that runs the daemon with a tmpfs of that size as its work directory; `None` without
/// the right to mount.
fn on_tmpfs(size: &str) -> Option<Command> {
    let (unshare, folder) = (needs("unshare")?, tempfile::tempdir().unwrap());
    let probe = Command::new(&unshare).args(["-m", "mount", "-t", "tmpfs", "copal"]).arg(folder.path()).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: needs the right to mount");
        return None;
    }
    let script = format!(
        "for one; do [ \"$before\" = -n ] && directory=$one; before=$one; done
         mkdir -p \"$directory\" && mount -t tmpfs -o size={size} copal \"$directory\" && exec \"$@\""
    );
    let mut command = Command::new(unshare);
    command.args(["-m", "sh", "-c", &script, "sh"]).arg(copal()).arg("daemon");
    Some(command)
}

#[test]
fn small_tmpfs_as_work_directory_gets_a_smaller_log() {
    let (Some(command), Some(nsenter)) = (on_tmpfs("64m"), needs("nsenter")) else { return };
    let origin = Origin::start(page);
    let daemon = Daemon::start_by(command, &["-b", &format!("127.0.0.1:{}", origin.port)]);
    assert_eq!(daemon.get("/one").status, 200);
    let reports = || lines(&daemon, "Log of 55M instead of 80M (vsl_space) in ");
    eventually("it is reported", || (reports() == 1).then_some(()));
    let pid = daemon.process.pid().to_string();
    let worker = || {
        // Only the daemon sees the mount.
        let enter = ["-t", &pid, "-m"];
        let output = Command::new(&nsenter).args(enter).arg(copal()).args(["adm", "-n", &daemon.run(), "pid"]).output();
        let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
        text.lines().find_map(|line| line.strip_prefix("Worker:")?.trim().parse::<i32>().ok())
    };
    let first = eventually("a worker runs", worker);
    kill(Pid::from_raw(first), Signal::SIGKILL).unwrap();
    eventually("the next worker runs", || worker().filter(|next| *next != first));
    assert!(daemon.get("/one").is_hit(), "{}", daemon.said());
    eventually("it is reported again", || (reports() == 2).then_some(()));
}

#[test]
fn tmpfs_without_space_for_any_log_is_refused_with_a_remedy() {
    let (Some(mut command), folder) = (on_tmpfs("700k"), tempfile::tempdir().unwrap()) else { return };
    command.args(["-F", "-j", "none", "-b", "none", "-a", "127.0.0.1:0", "-n"]).arg(folder.path().join("run"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no space for the log in ") && said.contains("k free, 1M needed: enlarge"), "{said}");
}

#[test]
fn transient_with_a_file_is_accepted_and_stays_in_memory() {
    let (origin, folder) = (Origin::start(page), tempfile::tempdir().unwrap());
    let file = folder.path().join("transient");
    let storage = format!("Transient=file,{},10m", file.display());
    let daemon = Daemon::in_front_of(origin.port, &["-s", "debug,20m", "-s", &storage]);
    assert_eq!(daemon.get("/one").status, 200);
    let said = daemon.said();
    assert_eq!(said.matches("Transient is kept in memory, in the first storage").count(), 1, "{said}");
    assert!(!file.exists());
    assert!(daemon.cli(&["storage.list"]).1.contains("storage.Transient = malloc"));
    assert_eq!(daemon.counter("SMA.Transient.g_space"), 10 << 20);
}
