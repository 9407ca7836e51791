//! Starts that must not fail for ever: storages that no worker can take over, and failures for which no storage is to
//! blame.

use crate::daemon::{Daemon, Origin, eventually, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    ok("Cache-Control: max-age=600\r\n", &format!("this is {path}\n"))
}

/// The memory files with that name that the manager holds, in the order of their creation.
fn memory_files(daemon: &Daemon, name: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(format!("/proc/{}/fd", daemon.process.pid()));
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
    let arenas = memory_files(&daemon, "copal-arena");
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
    damage(&memory_files(&daemon, "copal-journal")[0]);
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
