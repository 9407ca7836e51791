//! Upgrades: a new program takes over from a running one, and nothing is lost, with any failure on
//! the way.

use crate::daemon::{Answer, Barrier, Daemon, HANG, Notifications, Origin, copal, eventually, exchange, free_port, ok};
use crate::starts::memory_files;
use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    ok("Cache-Control: max-age=600\r\n", &format!("this is {path}\n"))
}

/// More than the kernel holds for a client that does not read.
const LARGE_BYTES: usize = 24 << 20;

/// The byte at an offset of the large page.
fn byte(at: usize) -> u8 {
    (at / 7 % 251) as u8
}

fn page_or_large(head: &str) -> Vec<u8> {
    if !head.starts_with("GET /large ") {
        return page(head);
    }
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {LARGE_BYTES}\r\n\r\n").into_bytes();
    answer.extend((0..LARGE_BYTES).map(byte));
    answer
}

/// A daemon whose program can be replaced, and whose successors die with this value.
struct Upgradable {
    daemon: Daemon,
    program: PathBuf,
    /// The program, and files of a test.
    folder: tempfile::TempDir,
}

impl Upgradable {
    fn start(folder: tempfile::TempDir, arguments: &[&str], change: impl FnOnce(&mut Command)) -> Upgradable {
        let program = folder.path().join("copal");
        std::os::unix::fs::symlink(copal(), &program).unwrap();
        let mut command = Command::new(&program);
        command.arg("daemon");
        change(&mut command);
        Upgradable { daemon: Daemon::start_by(command, arguments), program, folder }
    }

    fn in_front_of(origin: &Origin, arguments: &[&str]) -> Upgradable {
        let backend = format!("127.0.0.1:{}", origin.port);
        Upgradable::start(tempfile::tempdir().unwrap(), &[&["-b", &backend], arguments].concat(), |_| {})
    }

    /// With a VCL in which `@` is replaced by the folder.
    fn with_vcl(origin: &Origin, vcl: &str) -> Upgradable {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.vcl").display().to_string();
        let text = vcl.replace("@PORT@", &origin.port.to_string()).replace('@', &folder.path().display().to_string());
        std::fs::write(&file, text).unwrap();
        Upgradable::start(folder, &["-f", &file], |_| {})
    }

    fn in_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the program by a script.
    fn replace(&self, script: &str) {
        std::fs::remove_file(&self.program).unwrap();
        std::fs::write(&self.program, script).unwrap();
        std::fs::set_permissions(&self.program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn upgrade(&self) -> (bool, String) {
        let output = self.daemon.applet("upgrade", &[]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }

    fn begin_upgrade(&self) {
        kill(Pid::from_raw(self.manager()), Signal::SIGUSR2).unwrap();
    }

    /// The manager's process number, from the pid file.
    fn manager(&self) -> i32 {
        std::fs::read_to_string(self.daemon.folder.path().join("pid")).unwrap().trim().parse().unwrap()
    }

    /// The successor that has been started and does not serve yet.
    fn successor(&self) -> i32 {
        let manager = self.manager();
        eventually("a successor is started", || {
            let children = children(manager).into_iter();
            let mut names =
                children.map(|pid| (pid, std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()));
            names.find(|(_, line)| line.windows(11).any(|word| word == b"--take-over")).map(|(pid, _)| pid)
        })
    }

    /// The managers, successors included: all are started by the path of the program.
    fn processes(&self) -> Vec<i32> {
        let program = self.program.as_os_str().as_encoded_bytes();
        let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_ours = |process: &i32| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            line.windows(program.len()).any(|part| part == program)
        };
        numbers.filter(is_ours).collect()
    }

    fn said(&self, what: &str) {
        eventually(what, || self.daemon.said().contains(what).then_some(()));
    }

    fn is_hit(&self, path: &str) -> bool {
        let answer = self.daemon.get(path);
        assert_eq!((answer.status, answer.text()), (200, format!("this is {path}\n")), "{}", answer.head);
        answer.is_hit()
    }
}

impl Drop for Upgradable {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.daemon.said());
        }
        // A successor that waits takes the death of its predecessor as its signal to go.
        let deadline = Instant::now() + HANG;
        while let (false, processes @ [_, ..]) = (Instant::now() > deadline, self.processes().as_slice()) {
            for process in processes {
                let _ = kill(Pid::from_raw(*process), Signal::SIGKILL);
            }
            std::thread::yield_now();
        }
    }
}

fn children(process: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

fn is_alive(process: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

/// True if a process can access an arena; false for one that is dying.
fn has_arena(process: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/maps")).is_ok_and(|maps| maps.contains("copal-arena"))
}

#[test]
fn a_canary_and_the_history_go_on_in_the_next_manager() {
    let origin = Origin::start(page);
    let vcl = |name: &str| {
        format!(
            "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} \
             sub vcl_deliver {{ set resp.http.X-VCL = \"{name}\"; }}",
            origin.port
        )
    };
    let up = Upgradable::with_vcl(&origin, &vcl("boot"));
    let text = format!("\"{}\"", vcl("new").replace('"', "\\\""));
    assert!(up.daemon.cli(&["vcl.inline", "new", &text]).0);
    let begin = ["vcl.use", "new", "--percent", "50", "--for", "1h", "--stick", "header:X-User"];
    assert!(up.daemon.cli(&begin).0);
    let served = || -> Vec<String> {
        let request = |user: usize| format!("GET / HTTP/1.1\r\nHost: x\r\nX-User: {user}\r\nConnection: close\r\n\r\n");
        let vcl = |user| up.daemon.request(&request(user)).header("x-vcl").unwrap_or_default().to_owned();
        (0..24).map(vcl).collect()
    };
    let history = || up.daemon.cli(&["vcl.history"]).1;
    let before = (served(), history());
    assert!(before.0.iter().any(|name| name == "new") && before.0.iter().any(|name| name == "boot"));
    let fetched = origin.count();
    let (done, text) = up.upgrade();
    assert!(done, "{text}");
    assert_eq!((served(), history()), before);
    assert_eq!(origin.count(), fetched, "each group finds its objects");
    let (done, text) = up.daemon.cli(&["vcl.rollback"]);
    assert!(done && text.contains("The canary of VCL 'new' has ended"), "{text}");
    assert!(served().iter().all(|name| name == "boot"));
}

#[test]
fn successor_has_the_cache_the_sockets_the_vcls_and_the_parameters() {
    let origin = Origin::start(page);
    let unix = tempfile::tempdir().unwrap();
    let socket = format!("u={}", unix.path().join("http").display());
    let cli = unix.path().join("cli").display().to_string();
    let up = Upgradable::in_front_of(&origin, &["-s", "malloc,64m", "-a", &socket, "-T", &cli, "-T", "127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let vcl = folder.path().join("other.vcl");
    std::fs::write(&vcl, "vcl 4.1; backend default none; sub vcl_recv { return (synth(700)); }").unwrap();
    assert!(!up.is_hit("/a") && !up.is_hit("/banned"));
    for words in [
        &["ban", "req.url", "==", "/banned"][..],
        &["param.set", "default_grace", "4711.5"],
        &["vcl.load", "other", vcl.to_str().unwrap(), "warm"],
        &["vcl.label", "way", "other"],
        &["vcl.inline", "third", "\"vcl 4.1; backend default none; sub vcl_recv { return (vcl(way)); }\"", "cold"],
    ] {
        let (done, text) = up.daemon.cli(words);
        assert!(done, "{words:?}: {text}");
    }
    std::fs::remove_file(&vcl).unwrap();
    let show = |words: &[&str]| up.daemon.cli(words).1;
    let table = || -> Vec<String> {
        show(&["vcl.list"])
            .lines()
            .map(|line| line.split_whitespace().filter(|word| word.parse::<u32>().is_err()).collect())
            .collect()
    };
    let before = (table(), show(&["vcl.show", "third"]), show(&["param.show", "changed"]), show(&["vcl.deps"]));
    let (first, worker) = (up.manager(), up.daemon.worker());
    let (done, text) = up.upgrade();
    assert!(done && text.contains(&format!("the manager is now process {}", up.manager())), "{text}");
    eventually("the old manager is gone", || (!is_alive(first)).then_some(()));
    assert_ne!(up.manager(), first);
    assert_ne!(up.daemon.worker(), worker);
    assert_eq!((table(), show(&["vcl.show", "third"]), show(&["param.show", "changed"]), show(&["vcl.deps"])), before);
    assert!(up.is_hit("/a") && !up.is_hit("/banned"));
    let mut stream = UnixStream::connect(unix.path().join("http")).unwrap();
    stream.write_all(b"GET /a HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(Answer::parse(&answer).is_hit());
    assert_eq!(origin.count(), 3, "only what was banned is fetched again");
    // The next worker, after a death and after an operator's stop, finds the same.
    kill(Pid::from_raw(up.daemon.worker()), Signal::SIGKILL).unwrap();
    assert!(up.is_hit("/a"));
    assert!(up.daemon.cli(&["stop"]).0 && up.daemon.cli(&["start"]).0);
    assert!(up.is_hit("/a"));
    // Readers find the counters of the present processes.
    assert!(up.daemon.counter("MGT.child_start") >= 1);
    up.daemon.counter_reaching("MAIN.cache_hit", 1);
    let end = up.manager();
    kill(Pid::from_raw(end), Signal::SIGTERM).unwrap();
    eventually("it ends", || (!is_alive(end)).then_some(()));
    let left: Vec<_> =
        std::fs::read_dir(unix.path()).unwrap().chain(std::fs::read_dir(up.daemon.run()).unwrap()).collect();
    assert!(left.is_empty(), "{left:?}");
    std::fs::write(up.daemon.folder.path().join("pid"), end.to_string()).unwrap();
}

#[test]
fn backend_health_survives_restarts_and_vcl_changes() {
    // Each probe after the first is never answered.
    let checks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&checks);
    let origin = Origin::start(move |head| {
        if !head.starts_with("GET /check ") {
            return page(head);
        }
        while count.fetch_add(1, SeqCst) > 0 {
            std::thread::park();
        }
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec()
    });
    let vcl = "vcl 4.1;
        probe check { .url = \"/check\"; .interval = 1h; .timeout = 1h; .threshold = 1; .window = 1; .initial = 0; }
        backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; .probe = check; }
        backend other { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
        sub vcl_recv { if (req.url == \"/other\") { set req.backend_hint = other; } return (pass); }";
    let up = Upgradable::with_vcl(&origin, vcl);
    eventually("the first check", || up.daemon.cli(&["backend.list"]).1.contains("1/1").then_some(()));
    assert!(up.daemon.cli(&["backend.set_health", "other", "sick"]).0);
    let is_as_before = |when: &str| {
        assert_eq!(up.daemon.get("/").status, 200, "{when}: {}", up.daemon.said());
        assert_eq!(up.daemon.get("/other").status, 503, "{when}: an operator's word is kept");
        // A new worker must have written its own backend health record, which it does every second.
        let noted = || std::fs::read(&memory_files(up.manager(), "copal-seat")[0]).unwrap();
        let before = noted();
        eventually("notes are written", || {
            let now = noted();
            (now != before && now.windows(10).any(|text| text == b"boot.other")).then_some(())
        });
    };
    is_as_before("first");
    kill(Pid::from_raw(up.daemon.worker()), Signal::SIGKILL).unwrap();
    is_as_before("after a death");
    let (done, text) = up.upgrade();
    assert!(done, "{text}");
    is_as_before("after an upgrade");
    let (done, text) = up.daemon.cli(&["vcl.load", "again", up.in_folder("test.vcl").to_str().unwrap()]);
    assert!(done, "{text}");
    assert!(up.daemon.cli(&["vcl.use", "again"]).0);
    assert_eq!(up.daemon.get("/").status, 200, "the check is the same");
    assert_eq!(up.daemon.get("/other").status, 200, "a new VCL, and nothing was said of it");
}

#[test]
fn a_stopped_worker_stays_stopped_and_its_cache_stays() {
    let origin = Origin::start(page);
    let up = Upgradable::in_front_of(&origin, &[]);
    assert!(!up.is_hit("/a"));
    assert!(up.daemon.cli(&["stop"]).0);
    let first = up.manager();
    assert!(up.upgrade().0);
    assert_ne!(up.manager(), first);
    assert!(up.daemon.cli(&["status"]).1.contains("stopped"));
    assert!(TcpStream::connect(("127.0.0.1", up.daemon.port)).is_err());
    assert!(up.daemon.cli(&["start"]).0);
    assert!(up.is_hit("/a"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn the_files_of_vcls_and_commands_may_be_gone() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let (vcl, commands) = (folder.path().join("test.vcl"), folder.path().join("commands"));
    let text = format!("vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }}", origin.port);
    std::fs::write(&vcl, text).unwrap();
    std::fs::write(&commands, "ping\n").unwrap();
    let (file, script) = (vcl.display().to_string(), commands.display().to_string());
    let up = Upgradable::start(folder, &["-f", &file, "-I", &script], |_| {});
    assert!(!up.is_hit("/x"));
    std::fs::remove_file(&vcl).unwrap();
    std::fs::remove_file(&commands).unwrap();
    // Twice: a successor may have one of its own.
    for _ in 0..2 {
        let (done, said) = up.upgrade();
        assert!(done, "{said}");
        assert!(up.is_hit("/x"));
    }
}

#[test]
fn commands_that_wait_for_an_upgrade_do_no_harm_to_it() {
    let origin = Origin::start(page_or_large);
    let up = Upgradable::in_front_of(&origin, &["-s", "malloc,200m", "-p", "drain_timeout=600"]);
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    let reader = Reader::begin(up.daemon.port);
    let first = up.manager();
    up.begin_upgrade();
    up.said("Stopping Child");
    // It would turn clients away from sockets that belong to the successor by then.
    let mut stop = Command::new(copal());
    stop.args(["adm", "-n", &up.daemon.run(), "stop"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut stop = stop.spawn().unwrap();
    kill(Pid::from_raw(first), Signal::SIGUSR2).unwrap();
    eventually("its connection is there", || {
        let link = |entry: std::io::Result<std::fs::DirEntry>| std::fs::read_link(entry.unwrap().path()).ok();
        let mut links = std::fs::read_dir(format!("/proc/{}/fd", stop.id())).unwrap().filter_map(link);
        links.find(|link| link.to_string_lossy().starts_with("socket:"))
    });
    assert!(is_whole(&reader.finish()));
    eventually("the old manager is gone", || (!is_alive(first)).then_some(()));
    stop.wait().unwrap();
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_daemon_in_the_background_stays_there() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("varnishd");
    std::os::unix::fs::symlink(copal(), &program).unwrap();
    let (run, port) = (folder.path().join("run").display().to_string(), free_port());
    let (backend, address) = (format!("127.0.0.1:{}", origin.port), format!("127.0.0.1:{port}"));
    let mut command = Command::new(&program);
    command.args(["-j", "none", "-n", &run, "-b", &backend, "-a", &address]).stdin(Stdio::null());
    assert!(command.status().unwrap().success());
    let pid = || std::fs::read_to_string(folder.path().join("run/_.pid")).unwrap().parse::<i32>().unwrap();
    let get = || Answer::parse(&exchange(port, b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert!(!get().is_hit());
    let first = pid();
    let upgrade = || Command::new(copal()).args(["upgrade", "-n", &run]).output().unwrap();
    let output = upgrade();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(get().is_hit() && pid() != first);
    // This output of a new program is not read; the reason is sent to the command.
    std::fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("/bin/false", &program).unwrap();
    let output = upgrade();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && text.contains("ended before it was ready (exit status: 1)"), "{text}");
    assert!(get().is_hit());
    let last = pid();
    kill(Pid::from_raw(last), Signal::SIGTERM).unwrap();
    eventually("it ends", || (!is_alive(last)).then_some(()));
}

#[test]
fn upgrades_under_load_refuse_no_client_and_mix_no_responses() {
    const UPGRADES: usize = 5;
    const PAGES: usize = 50;
    let origin = Origin::start(page);
    let up = Upgradable::in_front_of(&origin, &["-s", "malloc,64m"]);
    for number in 0..PAGES {
        assert!(!up.is_hit(&format!("/{number}")));
    }
    let (over, served, longest) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (up, over, served, longest) = (&up, &over, &served, &longest);
            scope.spawn(move || {
                for number in (client..).step_by(4) {
                    if over.load(SeqCst) {
                        return;
                    }
                    let begun = Instant::now();
                    assert!(up.is_hit(&format!("/{}", number % PAGES)), "{number}");
                    longest.fetch_max(begun.elapsed().as_millis() as usize, SeqCst);
                    served.fetch_add(1, SeqCst);
                }
            });
        }
        for number in 0..UPGRADES {
            let before = served.load(SeqCst);
            let (done, text) = up.upgrade();
            over.store(!done, SeqCst);
            assert!(done, "{number}: {text}");
            eventually("clients are served", || (served.load(SeqCst) > before + 20).then_some(()));
        }
        over.store(true, SeqCst);
    });
    assert_eq!(origin.count(), PAGES);
    println!("{UPGRADES} upgrades, {} requests, the longest took {longest:?} ms", served.load(SeqCst));
}

#[test]
fn a_client_that_asks_too_late_finds_its_connection_closed_and_gets_no_error() {
    const VCL: &str = r#"vcl 4.1; import std; import vtc; backend default { .host = "127.0.0.1"; .port = "@PORT@"; }
        sub vcl_fini { std.log("late"); vtc.barrier_sync("@/barrier"); }"#;
    let origin = Origin::start(page);
    let up = Upgradable::with_vcl(&origin, VCL);
    assert!(!up.is_hit("/a"));
    let mut kept = TcpStream::connect(("127.0.0.1", up.daemon.port)).unwrap();
    kept.set_read_timeout(Some(HANG)).unwrap();
    kept.write_all(b"GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n").unwrap();
    let mut received = [0; 4096];
    assert!(kept.read(&mut received).unwrap() > 0);
    let barrier = Barrier::at(&up.in_folder("barrier"));
    up.begin_upgrade();
    // The worker is in vcl_fini.
    let held = barrier.held();
    let _ = kept.write_all(b"GET /a HTTP/1.1\r\nHost: example.com\r\n\r\n");
    drop(held);
    let late = kept.read(&mut received).unwrap_or(0);
    assert_eq!(String::from_utf8_lossy(&received[..late]), "");
    assert!(up.is_hit("/a"));
}

/// A client that has the head and the first bytes of a large body, and more to read than the kernel
/// holds.
struct Reader(TcpStream, Vec<u8>);

impl Reader {
    fn begin(port: u16) -> Reader {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        stream.write_all(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut begun = vec![0; 4096];
        stream.read_exact(&mut begun).unwrap();
        Reader(stream, begun)
    }

    fn finish(mut self) -> Vec<u8> {
        let _ = self.0.read_to_end(&mut self.1);
        Answer::parse(&self.1).body
    }
}

fn is_whole(body: &[u8]) -> bool {
    body.len() == LARGE_BYTES && body.iter().enumerate().all(|(at, found)| *found == byte(at))
}

#[test]
fn requests_in_flight_finish_before_an_upgrade_and_others_wait() {
    let origin = Origin::start(page_or_large);
    let up = Upgradable::in_front_of(&origin, &["-s", "malloc,200m", "-p", "drain_timeout=600"]);
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    assert!(!up.is_hit("/a"));
    let reader = Reader::begin(up.daemon.port);
    let first = up.manager();
    up.begin_upgrade();
    up.said("Stopping Child");
    // No worker accepts it yet, and it is not refused.
    let waiting = std::thread::spawn({
        let port = up.daemon.port;
        move || Answer::parse(&exchange(port, b"GET /a HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"))
    });
    assert!(is_whole(&reader.finish()));
    assert!(waiting.join().unwrap().is_hit());
    assert_ne!(up.manager(), first);
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_program_that_does_not_come_up_leaves_the_old_one_serving() {
    let origin = Origin::start(page);
    let up = Upgradable::in_front_of(&origin, &["-p", "cli_timeout=10"]);
    assert!(!up.is_hit("/a"));
    let (manager, worker) = (up.manager(), up.daemon.worker());
    for (script, said) in [
        ("#!/bin/sh\nexit 1\n", "the new program ended before it was ready (exit status: 1)"),
        ("#!/bin/sh\nexec sleep 600\n", "it did not answer within 10 s"),
        ("#!/bin/sh\nprintf 'GET / HTTP/1.1' >&3\nexec sleep 600\n", "it answers in another language"),
        ("#!/bin/sh\nkill -9 $$\n", "the new program ended before it was ready (signal: 9"),
        ("no program", "the new program ended before it was ready (exit status: 127)"),
    ] {
        up.replace(script);
        let (done, text) = up.upgrade();
        assert!(!done && text.contains("Not upgraded, the old program goes on: ") && text.contains(said), "{text}");
        up.said(said);
        assert!(up.is_hit("/a"));
    }
    std::fs::set_permissions(&up.program, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(up.upgrade().1.contains("Permission denied"));
    std::fs::remove_file(&up.program).unwrap();
    assert!(up.upgrade().1.contains("No such file or directory"));
    assert_eq!((up.manager(), up.daemon.worker()), (manager, worker), "its worker was never touched");
    std::os::unix::fs::symlink(copal(), &up.program).unwrap();
    assert!(up.daemon.cli(&["param.set", "cli_timeout", "60"]).0);
    assert!(up.upgrade().0);
    assert!(up.is_hit("/a"));
    assert_eq!(origin.count(), 1);
}

/// A VCL whose vcl_init fails if one file exists, and waits at a barrier if another does.
const OBSTACLES: &str = "vcl 4.1; import std; import vtc; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
    sub vcl_init {
        if (std.file_exists(\"@/obstacle\")) { return (fail(\"not now\")); }
        if (std.file_exists(\"@/wait\")) { vtc.barrier_sync(\"@/barrier\"); }
    }";

#[test]
fn a_successor_whose_worker_does_not_come_up_gives_way_to_the_old_one() {
    let origin = Origin::start(page);
    let up = Upgradable::with_vcl(&origin, OBSTACLES);
    assert!(!up.is_hit("/a"));
    let (manager, worker) = (up.manager(), up.daemon.worker());
    std::fs::write(up.in_folder("obstacle"), "").unwrap();
    // A client that connects while neither has a worker waits.
    let over = AtomicBool::new(false);
    let (done, text) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                drop(TcpStream::connect(("127.0.0.1", up.daemon.port)).unwrap());
                // Fewer than the limit of waiting connections.
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        let result = up.upgrade();
        over.store(true, SeqCst);
        result
    });
    assert!(!done && text.contains("Pushing vcls failed"), "{text}");
    // The old one's worker does not start either while the obstacle exists; the manager keeps
    // trying.
    std::fs::remove_file(up.in_folder("obstacle")).unwrap();
    assert!(up.is_hit("/a"));
    assert_eq!(up.manager(), manager);
    assert_ne!(up.daemon.worker(), worker);
    assert!(up.upgrade().0);
    assert!(up.is_hit("/a"));
    assert_eq!(origin.count(), 1);
}

/// Begins an upgrade, and returns the successor when its worker hangs in vcl_init, and the stream
/// that holds it.
fn hanging_successor(up: &Upgradable) -> (i32, UnixStream) {
    let barrier = Barrier::at(&up.in_folder("barrier"));
    std::fs::write(up.in_folder("wait"), "").unwrap();
    up.begin_upgrade();
    let successor = up.successor();
    let held = barrier.held();
    std::fs::remove_file(up.in_folder("wait")).unwrap();
    (successor, held)
}

#[test]
fn old_manager_continues_when_its_successor_is_killed() {
    let origin = Origin::start(page);
    let up = Upgradable::with_vcl(&origin, OBSTACLES);
    assert!(!up.is_hit("/a"));
    let manager = up.manager();
    let _barrier = Barrier::at(&up.in_folder("barrier"));
    std::fs::write(up.in_folder("wait"), "").unwrap();
    up.begin_upgrade();
    let successor = up.successor();
    let worker = eventually("its worker is there", || children(successor).first().copied());
    std::fs::remove_file(up.in_folder("wait")).unwrap();
    kill(Pid::from_raw(successor), Signal::SIGKILL).unwrap();
    assert!(up.is_hit("/a"));
    assert!(!has_arena(worker), "two workers");
    assert_eq!(up.manager(), manager);
    up.said("Upgrade failed, and this process goes on: the new program ended before it served (signal: 9");
    assert!(up.upgrade().0 && up.is_hit("/a"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn successor_continues_when_the_old_manager_is_killed() {
    let origin = Origin::start(page_or_large);
    let up = Upgradable::in_front_of(&origin, &["-s", "malloc,200m", "-p", "drain_timeout=600"]);
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    assert!(!up.is_hit("/a"));
    // It waits for its turn until every client has received its whole response.
    let reader = Reader::begin(up.daemon.port);
    let worker = up.daemon.worker();
    assert!(has_arena(worker));
    let manager = up.manager();
    up.begin_upgrade();
    up.said("Stopping Child");
    let successor = up.successor();
    kill(Pid::from_raw(manager), Signal::SIGKILL).unwrap();
    assert!(up.is_hit("/a"));
    assert!(!has_arena(worker), "two workers");
    eventually("it is the manager", || (up.manager() == successor).then_some(()));
    assert!(!is_whole(&reader.finish()), "its worker died");
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_successor_whose_worker_hangs_gives_way_to_the_old_one() {
    let origin = Origin::start(page);
    let up = Upgradable::with_vcl(&origin, OBSTACLES);
    assert!(!up.is_hit("/a"));
    // The successor received it from us.
    assert!(up.daemon.cli(&["param.set", "cli_timeout", "10"]).0);
    let _barrier = Barrier::at(&up.in_folder("barrier"));
    std::fs::write(up.in_folder("wait"), "").unwrap();
    let manager = up.manager();
    up.begin_upgrade();
    up.successor();
    up.said("CLI communication error (timeout)");
    std::fs::remove_file(up.in_folder("wait")).unwrap();
    assert!(up.is_hit("/a"));
    assert_eq!((up.manager(), origin.count()), (manager, 1));
}

#[test]
fn successor_whose_worker_is_on_its_way_goes_on_without_the_old_manager() {
    let origin = Origin::start(page);
    let up = Upgradable::with_vcl(&origin, OBSTACLES);
    assert!(!up.is_hit("/a"));
    let manager = up.manager();
    let (successor, held) = hanging_successor(&up);
    drop(held);
    kill(Pid::from_raw(manager), Signal::SIGKILL).unwrap();
    assert!(up.is_hit("/a"));
    eventually("it is the manager", || (up.manager() == successor).then_some(()));
    assert!(up.upgrade().0 && up.is_hit("/a"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_worker_that_is_killed_while_it_comes_to_its_end_holds_nothing_up() {
    let origin = Origin::start(page_or_large);
    let up = Upgradable::in_front_of(&origin, &["-s", "malloc,200m", "-p", "drain_timeout=600"]);
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    let _reader = Reader::begin(up.daemon.port);
    let (manager, worker) = (up.manager(), up.daemon.worker());
    up.begin_upgrade();
    up.said("Stopping Child");
    kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    eventually("the successor is the manager", || (up.manager() != manager).then_some(()));
    assert_eq!(origin.count(), 1);
}

#[test]
fn an_end_in_the_middle_of_an_upgrade_is_an_end() {
    let origin = Origin::start(page_or_large);
    let mut up = Upgradable::in_front_of(&origin, &["-s", "malloc,200m", "-p", "drain_timeout=600"]);
    assert!(is_whole(&Reader::begin(up.daemon.port).finish()));
    let _reader = Reader::begin(up.daemon.port);
    let manager = up.manager();
    up.begin_upgrade();
    up.said("Stopping Child");
    let successor = up.successor();
    up.daemon.process.signal(Signal::SIGTERM);
    up.said("Manager got SIGTERM");
    up.daemon.process.signal(Signal::SIGTERM);
    up.daemon.process.wait();
    assert!(!is_alive(successor));
    assert!(TcpStream::connect(("127.0.0.1", up.daemon.port)).is_err());
    assert!(std::fs::read_dir(up.daemon.run()).unwrap().next().is_none());
    std::fs::write(up.daemon.folder.path().join("pid"), manager.to_string()).unwrap();
}

#[test]
fn systemd_is_notified_of_the_new_main_process() {
    let origin = Origin::start(page);
    let notifications = Notifications::new();
    let backend = format!("127.0.0.1:{}", origin.port);
    let up = Upgradable::start(tempfile::tempdir().unwrap(), &["-b", &backend], |command| {
        notifications.set(command, 200_000);
    });
    notifications.wait_for("READY=1");
    up.begin_upgrade();
    let message = notifications.wait_for("RELOADING=1");
    assert!(message.contains("MONOTONIC_USEC="), "{message}");
    let message = notifications.wait_for("READY=1");
    eventually("the successor is the manager", || (up.manager() != up.daemon.process.pid()).then_some(()));
    assert!(message.contains(&format!("MAINPID={}\n", up.manager())), "{message}");
    notifications.wait_for("WATCHDOG=1");
    kill(Pid::from_raw(up.manager()), Signal::SIGTERM).unwrap();
    notifications.wait_for("STOPPING=1");
    std::fs::write(up.daemon.folder.path().join("pid"), up.daemon.process.pid().to_string()).unwrap();
}

#[test]
fn handed_over_data_is_validated() {
    let document = |text: &str| {
        let head = [&b"CopalHo1"[..], &(text.len() as u32).to_le_bytes(), &0_u32.to_le_bytes()].concat();
        [head, text.as_bytes().to_vec()].concat()
    };
    let folder = tempfile::tempdir().unwrap();
    for (bytes, said) in [
        (b"nonsense, and more of it".to_vec(), "nothing was handed over: what came is no handover"),
        (b"CopalHo1\xff\xff\xff\xff\0\0\0\0".to_vec(), "nothing was handed over: a handover of 4294967295 bytes"),
        (Vec::new(), "nothing was handed over: failed to fill whole buffer"),
        (document("{"), "what is handed over cannot be read: EOF"),
        (document("{\"format\":1,\"version\":\"x\"}"), "what is handed over cannot be read: missing field"),
        (
            document("{\"format\":99,\"version\":\"9\\u001b[1m\"}"),
            "Copal 9%1b[1m hands over in format 99, and this Copal",
        ),
    ] {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&bytes).unwrap();
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        let mut command = Command::new(copal());
        command
            .args(["daemon", "--take-over", "-F", "-j", "none", "-b", "none", "-a", "127.0.0.1:0", "-n"])
            .arg(folder.path());
        command.fd_mappings(vec![FdMapping { parent_fd: theirs.into(), child_fd: 3 }]).unwrap();
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(said) && !text.contains("panic"), "{text}");
        assert_eq!(output.status.code(), Some(2));
        drop(command);
        let mut answer = Vec::new();
        ours.set_read_timeout(Some(HANG)).unwrap();
        let _ = ours.read_to_end(&mut answer);
        assert!(String::from_utf8_lossy(&answer).contains(said), "the predecessor hears it too");
    }
    let output = Command::new(copal()).args(["daemon", "--take-over", "-F", "-b", "none"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("only a daemon starts its successor"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
