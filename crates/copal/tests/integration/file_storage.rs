//! `-s file`: bodies on a disk, which outlive the whole daemon, together with the bans.

use crate::daemon::{Daemon, Origin, copal, eventually, needs, ok};
use nix::sys::signal::Signal;
use std::fmt::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lengths of bodies, of all kinds: none, within a piece, exactly one, several.
const LENGTHS: &[usize] = &[0, 1, 100, 4096, 65_535, 65_536, 65_537, 300_000, 1 << 20];

/// A text of that length that is unique to the path.
pub fn text_of(path: &str, length: usize) -> String {
    let mut text = String::with_capacity(length + 40);
    for line in 0.. {
        if text.len() >= length {
            break;
        }
        let _ = writeln!(text, "line {line} of {path}");
    }
    text.truncate(length);
    text
}

pub fn length_of(path: &str) -> usize {
    path.rsplit('/').next().and_then(|length| length.parse().ok()).unwrap_or(20)
}

pub fn origin() -> Origin {
    Origin::start(|head| {
        let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
        ok("Cache-Control: max-age=6000\r\nETag: \"tag\"\r\n", &text_of(&path, length_of(&path)))
    })
}

/// True if it is a hit; its content is correct in any case.
pub fn is_hit(daemon: &Daemon, path: &str) -> bool {
    let answer = daemon.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.head);
    assert!(answer.text() == text_of(path, length_of(path)), "{path}: {} bytes", answer.body.len());
    answer.is_hit()
}

fn paths(name: &str) -> Vec<String> {
    LENGTHS.iter().map(|length| format!("/{name}/{length}")).collect()
}

fn hits(daemon: &Daemon, paths: &[String]) -> usize {
    let missed: Vec<&String> = paths.iter().filter(|path| !is_hit(daemon, path)).collect();
    println!("missed: {missed:?}");
    paths.len() - missed.len()
}

/// A folder with a file for a storage, and `-s` for it.
pub struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    pub fn new() -> Disk {
        Disk { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("bodies")
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("bodies.bans")
    }

    pub fn argument(&self) -> String {
        format!("file,{},64m", self.path().display())
    }

    pub fn start(&self, origin: &Origin) -> Daemon {
        Daemon::in_front_of(origin.port, &["-s", &self.argument()])
    }
}

pub fn end(mut daemon: Daemon, signal: Signal) -> String {
    daemon.process.signal(signal);
    daemon.process.wait();
    daemon.said()
}

/// Waits until a loss of power would lose nothing that was stored before.
pub fn settle(daemon: &Daemon) {
    let (is_done, text) = daemon.cli(&["tag.purge", "nothing-has-this-tag"]);
    assert!(is_done, "{text}");
}

/// Kills the manager and its worker, to simulate a loss of power.
pub fn kill_everything(mut daemon: Daemon) {
    let worker = daemon.worker();
    daemon.process.signal(Signal::SIGKILL);
    daemon.process.wait();
    eventually("the worker is gone", || std::fs::metadata(format!("/proc/{worker}")).is_err().then_some(()));
}

#[test]
fn objects_in_a_file_survive_the_daemon() {
    let (origin, disk) = (origin(), Disk::new());
    let first = disk.start(&origin);
    let all = paths("kept");
    assert_eq!(hits(&first, &all), 0);
    assert_eq!(hits(&first, &all), all.len());
    let said = end(first, Signal::SIGTERM);
    assert!(said.contains("Child dies"), "{said}");
    let asked = origin.count();

    let second = disk.start(&origin);
    assert_eq!(hits(&second, &all), all.len(), "{}", second.said());
    assert_eq!(origin.count(), asked);
    assert!(second.said().contains(&format!("Storage: {} objects kept", all.len())), "{}", second.said());
    // And again, with the later objects.
    assert!(!is_hit(&second, "/later"));
    end(second, Signal::SIGTERM);
    let third = disk.start(&origin);
    assert_eq!((hits(&third, &all), is_hit(&third, "/later")), (all.len(), true));
    let found = std::fs::metadata(disk.path()).unwrap();
    assert_eq!((found.len(), found.mode() & 0o777), (64 << 20, 0o600));
}

#[test]
fn kill_of_all_processes_costs_only_unwritten_objects() {
    let (origin, disk) = (origin(), Disk::new());
    let all = paths("killed");
    let first = disk.start(&origin);
    assert_eq!(hits(&first, &all), 0);
    let bytes: u64 = LENGTHS.iter().map(|length| *length as u64).sum();
    first.counter_reaching("SMF.s0.stored_bytes", bytes);
    settle(&first);
    kill_everything(first);
    let second = disk.start(&origin);
    assert_eq!(hits(&second, &all), all.len(), "{}", second.said());
    kill_everything(second);
    // At arbitrary times: every stored object is correct.
    for round in 0..3 {
        let daemon = disk.start(&origin);
        assert_eq!(hits(&daemon, &all), all.len(), "{}", daemon.said());
        hits(&daemon, &paths(&format!("round{round}")));
        hits(&daemon, &paths(&format!("round{}", 2 - round)));
        kill_everything(daemon);
    }
}

#[test]
fn objects_without_a_body_survive_the_daemon() {
    let origin = Origin::start(|head| {
        let path = head.split(' ').nth(1).unwrap_or("/");
        let kind = match path {
            "/redirect" => "301 Moved Permanently\r\nLocation: /new\r\nContent-Length: 0",
            "/nothing" => "204 No Content",
            "/missing" => "404 Not Found\r\nContent-Length: 0",
            _ => "200 OK\r\nContent-Length: 0",
        };
        format!("HTTP/1.1 {kind}\r\nCache-Control: max-age=6000\r\nX-Path: {path}\r\n\r\n").into_bytes()
    });
    let (disk, paths) = (Disk::new(), ["/redirect", "/nothing", "/missing", "/empty"]);
    let look = |daemon: &Daemon| {
        paths.map(|path| {
            let answer = daemon.get(path);
            assert_eq!((answer.header("x-path"), answer.body.len()), (Some(path), 0), "{}", answer.head);
            (answer.status, answer.is_hit())
        })
    };
    let first = disk.start(&origin);
    look(&first);
    settle(&first);
    kill_everything(first);
    let second = disk.start(&origin);
    assert_eq!(look(&second), [(301, true), (204, true), (404, true), (200, true)], "{}", second.said());
    assert!(second.cli(&["ban", "req.url == /empty"]).0);
    kill_everything(second);
    let third = disk.start(&origin);
    assert_eq!(look(&third), [(301, true), (204, true), (404, true), (200, false)], "{}", third.said());
}

#[test]
fn a_killed_worker_costs_nothing() {
    let (origin, disk) = (origin(), Disk::new());
    let daemon = disk.start(&origin);
    let all = paths("worker");
    assert_eq!(hits(&daemon, &all), 0);
    let bytes: u64 = LENGTHS.iter().map(|length| *length as u64).sum();
    daemon.counter_reaching("SMF.s0.stored_bytes", bytes);
    let worker = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("the next worker runs", || (daemon.worker() != worker).then_some(()));
    assert_eq!(hits(&daemon, &all), all.len(), "{}", daemon.said());
}

#[test]
fn bans_survive_a_kill_of_all_processes() {
    let (origin, disk) = (origin(), Disk::new());
    let vcl = r#"vcl 4.1; backend default { .host = "127.0.0.1"; .port = "@PORT@"; } import std;
        sub vcl_recv { if (req.method == "BAN") { std.ban("req.url == " + req.url); return (synth(200)); } }"#;
    let start = || Daemon::with_vcl(vcl, origin.port, &["-s", &disk.argument()]);
    let first = start();
    for path in ["/by-cli", "/by-vcl", "/kept"] {
        assert!(!is_hit(&first, path));
    }
    first.counter_reaching("SMF.s0.stored_bytes", 60);
    settle(&first);
    assert!(first.cli(&["ban", "req.url == /by-cli"]).0);
    assert_eq!(first.request("BAN /by-vcl HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").status, 200);
    kill_everything(first);
    let second = start();
    assert_eq!(["/by-cli", "/by-vcl", "/kept"].map(|path| is_hit(&second, path)), [false, false, true]);
    assert!(second.cli(&["ban.list"]).1.contains("req.url == /by-cli"));
}

#[test]
fn without_its_bans_a_storage_begins_empty() {
    let (origin, disk) = (origin(), Disk::new());
    let first = disk.start(&origin);
    assert!(!is_hit(&first, "/a"));
    end(first, Signal::SIGTERM);
    std::fs::remove_file(disk.journal()).unwrap();
    let second = disk.start(&origin);
    assert!(!is_hit(&second, "/a"), "nobody knows what must no longer be served");
    assert!(second.said().contains("Storage s0 begins empty: "), "{}", second.said());
    end(second, Signal::SIGTERM);

    std::fs::OpenOptions::new().write(true).open(disk.journal()).unwrap().write_all_at(b"no journal", 0).unwrap();
    let third = disk.start(&origin);
    assert!(!is_hit(&third, "/a"));
    assert!(third.said().contains("The bans could not be read 3 times: all storages begin empty"), "{}", third.said());
}

#[test]
fn a_file_of_another_length_keeps_what_has_room_and_one_of_another_content_begins_empty() {
    let (origin, disk) = (origin(), Disk::new());
    std::fs::write(disk.path(), "what somebody else has left here\n".repeat(10_000)).unwrap();
    let first = disk.start(&origin);
    assert!(!is_hit(&first, "/a") && is_hit(&first, "/a"));
    end(first, Signal::SIGTERM);
    for size in ["80m", "64m", "64m,512", "300m", "400m"] {
        let changed = format!("file,{},{size}", disk.path().display());
        let next = Daemon::in_front_of(origin.port, &["-s", &changed]);
        assert!(is_hit(&next, "/a"), "{size}: {}", next.said());
        end(next, Signal::SIGTERM);
    }
    let asked = origin.count();
    let small = format!("file,{},1m", disk.path().display());
    let last = Daemon::in_front_of(origin.port, &["-s", &small]);
    assert!(!is_hit(&last, "/a") && is_hit(&last, "/a"));
    assert!(
        last.said().contains("Storage s0 begins empty: its log was made for a much larger file"),
        "{}",
        last.said()
    );
    assert_eq!(origin.count(), asked + 1);
}

/// The output of a daemon that does not start.
fn refused(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(copal());
    command.args(["daemon", "-F", "-j", "none", "-b", "none", "-a", "127.0.0.1:0", "-n"]).arg(folder.path());
    let output = command.args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    output
}

pub fn message(arguments: &[&str]) -> String {
    String::from_utf8_lossy(&refused(arguments).stderr).into_owned()
}

#[test]
fn a_file_belongs_to_one_daemon() {
    let (origin, disk) = (origin(), Disk::new());
    let daemon = disk.start(&origin);
    let said = message(&["-s", &disk.argument()]);
    let expected = format!("(-sfile) {:?} is used by another process ({})", disk.path(), daemon.process.pid());
    assert!(said.contains(&expected), "{said}");
    assert!(!is_hit(&daemon, "/a") && is_hit(&daemon, "/a"), "the first one does not mind");
    end(daemon, Signal::SIGTERM);
    assert!(is_hit(&disk.start(&origin), "/a"));
}

#[test]
fn wrong_files_get_the_messages_of_varnish() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let of = |rest: &str| message(&["-s", &format!("file,{rest}")]);
    assert!(of("/dev/null,1m").contains("Error: (-sfile) \"/dev/null\" is neither file nor directory"));
    let missing = of(&format!("{},1m", at("no/file")));
    assert!(missing.contains("no/file\" does not exist and could not be created: No such file"), "{missing}");
    assert!(of(&format!("{},1000P", at("x"))).contains("Error: (-sfile) size \"1000P\": larger than file system"));
    assert!(of(&at("x")).contains("Error: (-sfile) no size specified"));
}

#[test]
fn full_disk_is_reported_at_the_start() {
    let Some(unshare) = needs("unshare") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=8m copal {0} && exec \"$@\"", folder.path().display());
    let mut command = Command::new(unshare);
    command.args(["-m", "sh", "-c", &mount, "sh"]).arg(copal());
    let run = folder.path().join("run").display().to_string();
    command.args(["daemon", "-F", "-j", "none", "-b", "none", "-a", "127.0.0.1:0", "-n", &run]);
    for name in ["one", "two"] {
        command.args(["-s", &format!("{name}=file,{},6m", folder.path().join(name).display())]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("mount:") {
        println!("skipped: needs the right to mount");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("(-sfile) size \"6m\": 6M more are needed on the disk of"), "{said}");
}

#[test]
fn an_upgrade_takes_the_file_and_its_lock_along() {
    let (origin, disk) = (origin(), Disk::new());
    let mut daemon = disk.start(&origin);
    let all = paths("upgraded");
    assert_eq!(hits(&daemon, &all), 0);
    let first = daemon.process.pid();
    assert!(daemon.applet("upgrade", &[]).status.success(), "{}", daemon.said());
    daemon.process.wait();
    assert_eq!(hits(&daemon, &all), all.len(), "{}", daemon.said());
    assert!(message(&["-s", &disk.argument()]).contains("is used by another process"));
    let pid = std::fs::read_to_string(daemon.folder.path().join("pid")).unwrap().trim().parse().unwrap();
    assert_ne!(pid, first);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    eventually("the successor is gone", || std::fs::metadata(format!("/proc/{pid}")).is_err().then_some(()));
    let last = disk.start(&origin);
    assert_eq!(hits(&last, &all), all.len(), "{}", last.said());
}

#[test]
fn counters_and_lists_know_of_the_file() {
    let (origin, disk) = (origin(), Disk::new());
    let vcl = r#"vcl 4.1; backend default { .host = "127.0.0.1"; .port = "@PORT@"; }
        sub vcl_backend_response { if (bereq.url ~ "^/small") { set beresp.storage = storage.memory; } else { set beresp.storage = storage.disk; } }
        sub vcl_deliver { set resp.http.Free = storage.disk.free_space; set resp.http.Used = storage.disk.used_space;
            set resp.http.Happy = storage.disk.happy; set resp.http.Where = obj.storage; }"#;
    let argument = format!("disk={}", disk.argument());
    let daemon = Daemon::with_vcl(vcl, origin.port, &["-s", "memory=malloc,8m", "-s", &argument]);
    assert!(!is_hit(&daemon, "/large/300000") && !is_hit(&daemon, "/small/100"));
    daemon.counter_reaching("SMF.disk.stored_bytes", 300_000);
    assert!(daemon.counter("SMF.disk.g_bytes") >= 300_000 && daemon.counter("SMF.disk.g_space") > 40 << 20);
    assert!(daemon.counter("SMF.disk.g_meta_bytes") > 0 && daemon.counter("SMA.memory.g_alloc") > 0);
    let answer = daemon.get("/large/300000");
    assert_eq!(answer.header("where"), Some("storage.disk"), "{}", answer.head);
    assert_eq!(answer.header("happy"), Some("true"));
    let number = |name: &str| answer.header(name).unwrap().parse::<f64>().unwrap();
    assert!(number("used") >= 300_000.0 && number("free") > (40 << 20) as f64, "{}", answer.head);
    let (_, list) = daemon.cli(&["storage.list"]);
    assert!(list.contains("storage.memory = malloc\n") && list.contains("storage.disk = file\n"), "{list}");
    let log = daemon.applet("log", &["-d", "-g", "raw", "-i", "Storage"]);
    let log = String::from_utf8_lossy(&log.stdout);
    assert!(log.contains("file disk") && log.contains("malloc memory"), "{log}");
    if let Some(varnishstat) = needs("varnishstat") {
        let output = Command::new(varnishstat).args(["-n", &daemon.run(), "-1", "-f", "SMF.*"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        for name in ["c_req", "g_space", "g_smf_large", "stored_bytes", "g_meta_space"] {
            assert!(text.contains(&format!("SMF.disk.{name} ")), "{name}: {text}");
        }
    }
}

#[test]
fn a_damaged_body_is_never_delivered() {
    let (origin, disk) = (origin(), Disk::new());
    let first = disk.start(&origin);
    assert!(!is_hit(&first, "/a/300000"));
    end(first, Signal::SIGTERM);
    flip(&disk.path(), b"line 5 of /a/300000");
    let second = disk.start(&origin);
    let asked = origin.count();
    let answer = second.get("/a/300000");
    let whole = text_of("/a/300000", 300_000);
    assert!(answer.text() == whole || answer.body.len() < whole.len() && whole.as_bytes().starts_with(&answer.body));
    assert!(is_hit(&second, "/a/300000") || is_hit(&second, "/a/300000"), "it was fetched anew");
    assert_eq!(origin.count(), asked + 1);
}

/// Changes a byte of a text in a file.
pub fn flip(path: &Path, text: &[u8]) {
    let bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text).expect("the body is in the file");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(b"L", at as u64).unwrap();
}
