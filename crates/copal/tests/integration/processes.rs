//! The two processes: start, stop, death, restart, wrong arguments.

use crate::daemon::{Barrier, Daemon, Origin, Process, copal, eventually, free_port, ok};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Command, Stdio};

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    ok("Cache-Control: max-age=600\r\n", &format!("this is {path}\n"))
}

#[test]
fn a_page_is_fetched_once_and_then_served_from_the_cache() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let first = daemon.get("/a");
    assert_eq!((first.status, first.text().as_str(), first.is_hit()), (200, "this is /a\n", false));
    let second = daemon.get("/a");
    assert_eq!((second.status, second.text().as_str(), second.is_hit()), (200, "this is /a\n", true));
    assert!(second.header("age").is_some() && second.header("via").is_some(), "{}", second.head);
    assert_eq!(origin.count(), 1);
}

#[test]
fn killing_the_worker_keeps_the_cache_and_refuses_no_client() {
    outlives_its_workers(&["-s", "malloc,64m"]);
}

#[test]
fn stop_and_start_by_an_operator_keep_the_cache() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-s", "malloc,64m"]);
    for number in 0..20 {
        assert!(!daemon.get(&format!("/{number}")).is_hit());
    }
    assert!(daemon.cli(&["ban", "req.url", "==", "/7"]).0);
    for _ in 0..3 {
        let worker = daemon.worker();
        assert!(daemon.cli(&["stop"]).0);
        assert!(
            std::net::TcpStream::connect(("127.0.0.1", daemon.port)).is_err(),
            "a stopped daemon turns clients away"
        );
        assert!(daemon.cli(&["start"]).0);
        assert_ne!(daemon.worker(), worker);
        for number in (0..20).filter(|number| *number != 7) {
            let answer = daemon.get(&format!("/{number}"));
            assert_eq!((answer.is_hit(), answer.text()), (true, format!("this is /{number}\n")), "{}", answer.head);
        }
    }
    assert_eq!(origin.count(), 20);
    assert!(!daemon.get("/7").is_hit());
}

#[test]
fn objects_in_several_storages_survive_a_worker() {
    outlives_its_workers(&["-s", "malloc,64m", "-s", "large=malloc,128m", "-s", "malloc,64m"]);
}

fn outlives_its_workers(storages: &[&str]) {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, storages);
    for number in 0..50 {
        assert_eq!(daemon.get(&format!("/{number}")).status, 200);
    }
    for _ in 0..3 {
        let worker = daemon.worker();
        kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
        // Connections wait for the next worker: none is refused, none sees an empty cache.
        for number in 0..50 {
            let answer = daemon.get(&format!("/{number}"));
            assert_eq!((answer.status, answer.is_hit()), (200, true), "{number}: {}", answer.head);
            assert_eq!(answer.text(), format!("this is /{number}\n"));
        }
        assert_ne!(daemon.worker(), worker);
    }
    assert_eq!(origin.count(), 50);
}

/// The manager's descriptor of the first storage's arena.
fn arena_of(daemon: &Daemon) -> std::fs::File {
    let descriptors = format!("/proc/{}/fd", daemon.process.pid());
    let names_arena = |path: &std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:copal-arena"))
    };
    let path = std::fs::read_dir(descriptors).unwrap().flatten().map(|entry| entry.path()).find(names_arena);
    std::fs::File::options().read(true).write(true).open(path.expect("the manager holds it")).unwrap()
}

#[test]
fn objects_damaged_between_two_workers_are_refetched_and_never_delivered() {
    use std::os::unix::fs::FileExt as _;
    let long = |path: &str| format!("begin of {path}") + &"x".repeat(300_000) + "end of " + path;
    let origin = Origin::start(move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        ok(
            "Cache-Control: max-age=600\r\n",
            &if path.starts_with("/long") { long(&path) } else { format!("short {path}") },
        )
    });
    let daemon = Daemon::in_front_of(origin.port, &["-s", "malloc,64m"]);
    let paths = ["/short/sound", "/short/bad", "/long/sound", "/long/bad"];
    let wanted: Vec<String> = paths.iter().map(|path| daemon.get(path).text()).collect();
    let arena = arena_of(&daemon);
    assert!(daemon.cli(&["stop"]).0);
    let mut bytes = vec![0; arena.metadata().unwrap().len() as usize];
    arena.read_exact_at(&mut bytes, 0).unwrap();
    for text in [&b"short /short/bad"[..], b"end of /long/bad"] {
        let at = bytes.windows(text.len()).position(|window| window == text).expect("it is stored");
        arena.write_all_at(b"X", at as u64).unwrap();
    }
    assert!(daemon.cli(&["start"]).0);
    for (path, wanted) in paths.iter().zip(&wanted) {
        let answer = daemon.get(path);
        assert_eq!((answer.status, answer.is_hit()), (200, path.ends_with("sound")), "{path}");
        assert!(answer.text() == *wanted, "{path}");
        assert!(daemon.get(path).is_hit(), "{path}");
    }
    assert_eq!(origin.count(), 6);
}

#[test]
fn purged_and_banned_objects_do_not_return_with_the_next_worker() {
    let origin = Origin::start(page);
    let vcl = "vcl 4.1; backend b { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
               sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }";
    let daemon = Daemon::with_vcl(vcl, origin.port, &["-s", "malloc,64m", "-s", "malloc,64m"]);
    // They go to the storages in turn, so that each holds one of each kind.
    for path in ["/kept/0", "/kept/1", "/purged/0", "/purged/1", "/banned/0", "/banned/1"] {
        daemon.get(path);
    }
    for number in 0..2 {
        let purge = format!("PURGE /purged/{number} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n");
        assert_eq!(daemon.request(&purge).status, 200);
    }
    assert!(daemon.cli(&["ban", "req.url", "~", "^/banned/"]).0);
    kill(Pid::from_raw(daemon.worker()), Signal::SIGKILL).unwrap();
    for number in 0..2 {
        assert!(daemon.get(&format!("/kept/{number}")).is_hit());
        assert!(!daemon.get(&format!("/purged/{number}")).is_hit());
        assert!(!daemon.get(&format!("/banned/{number}")).is_hit());
    }
}

#[test]
fn sigterm_ends_everything_and_removes_the_pid_file() {
    let origin = Origin::start(page);
    let mut daemon = Daemon::in_front_of(origin.port, &[]);
    let worker = daemon.worker();
    let pid_file = daemon.folder.path().join("pid");
    let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    assert_eq!(daemon.process.wait().code(), Some(0), "{}", daemon.said());
    assert!(!pid_file.exists());
    eventually("the worker is gone", || kill(Pid::from_raw(worker), None).is_err().then_some(()));
}

/// Suspends a process, with all its threads.
fn freeze(process: i32) {
    kill(Pid::from_raw(process), Signal::SIGSTOP).unwrap();
    eventually("every thread stands still", || {
        let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
        let mut states = threads.map(|thread| std::fs::read_to_string(thread.path().join("status")).unwrap());
        states.all(|state| state.contains("State:\tT")).then_some(())
    });
}

#[test]
fn killed_manager_takes_its_worker_with_it_and_the_next_one_listens_at_once() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    assert_eq!(daemon.get("/a").status, 200);
    let worker = daemon.worker();
    // Its main thread is blocked here, and does not notice that its control connection closes.
    let place = daemon.folder.path().join("barrier");
    let barrier = Barrier::at(&place);
    let stuck = daemon.folder.path().join("stuck.vcl");
    let text = "vcl 4.1; import vtc; backend default none; sub vcl_init { vtc.barrier_sync(\"@\"); }";
    std::fs::write(&stuck, text.replace('@', place.to_str().unwrap())).unwrap();
    let mut load = Command::new(copal());
    load.args(["adm", "-n", &daemon.run(), "vcl.load", "stuck"])
        .arg(&stuck)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _load = Process(load.spawn().unwrap());
    let _held = barrier.held();
    daemon.process.signal(Signal::SIGKILL);
    let mut command = Command::new(copal());
    command.args(["daemon", "-F", "-j", "none", "-b", &format!("127.0.0.1:{}", origin.port), "-a"]);
    command.arg(format!("127.0.0.1:{}", daemon.port)).arg("-n").arg(daemon.run());
    let log = daemon.folder.path().join("second");
    let output = std::fs::File::create(&log).unwrap();
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let mut next = Process(command.spawn().unwrap());
    eventually("the next daemon serves", || {
        let said = std::fs::read_to_string(&log).unwrap();
        if let Some(status) = next.0.try_wait().unwrap() {
            panic!("it ended with {status}: {said}");
        }
        said.contains("Child launched OK").then_some(())
    });
    assert_eq!(daemon.get("/b").text(), "this is /b\n");
    // It may be a zombie until its new parent reaps it.
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap_or_default();
    assert!(!status.contains("State:") || status.contains("State:\tZ"), "the first worker is still there: {status}");
}

#[test]
fn worker_that_is_killed_during_the_first_start_is_replaced_by_another() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("barrier");
    let barrier = Barrier::at(&place);
    let vcl = format!(
        "vcl 4.1; import vtc; backend b {{ .host = \"127.0.0.1\"; .port = \"@PORT@\"; }}
         sub vcl_init {{ vtc.barrier_sync(\"{}\"); }}",
        place.display()
    );
    let starting = std::thread::spawn(move || Daemon::with_vcl(&vcl, origin.port, &[]));
    // Both hang in vcl_init; the third may go on.
    for _ in 0..2 {
        let held = barrier.held();
        let worker = nix::sys::socket::getsockopt(&held, nix::sys::socket::sockopt::PeerCredentials).unwrap().pid();
        kill(Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    }
    drop(barrier.held());
    let daemon = starting.join().unwrap();
    assert_eq!(daemon.get("/a").text(), "this is /a\n");
    assert_eq!(daemon.said().matches("died signal=9").count(), 2, "{}", daemon.said());
}

#[test]
fn worker_that_hangs_is_replaced_after_cli_timeout() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &["-p", "cli_timeout=10", "-p", "ping_interval=1"]);
    // A busy machine may need seconds for an answer. This worker serves; one that hangs during its
    // start is a different case.
    assert_eq!(daemon.get("/a").status, 200);
    let worker = daemon.worker();
    freeze(worker);
    assert_eq!(daemon.get("/b").text(), "this is /b\n");
    assert_ne!(daemon.worker(), worker);
    let said = daemon.said();
    // A suspended process cannot end by itself.
    for line in ["not responding to CLI, killed it.", "not dying, killing", "died signal=9"] {
        assert!(said.contains(&format!("Child ({worker}) {line}\n")), "{line}: {said}");
    }
}

#[test]
fn a_daemon_in_the_background_is_running_when_the_command_returns() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let pid_file = folder.path().join("pid");
    let status = Command::new(copal())
        .args(["daemon", "-j", "none", "-n"])
        .arg(folder.path().join("run"))
        .args(["-a", &format!("127.0.0.1:{port}"), "-b", &format!("127.0.0.1:{}", origin.port), "-P"])
        .arg(&pid_file)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    let answer = crate::daemon::exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    eventually("the daemon is gone", || kill(Pid::from_raw(pid), None).is_err().then_some(()));
}

#[test]
fn a_link_named_as_a_varnish_program_is_that_program() {
    let folder = tempfile::tempdir().unwrap();
    for (name, said) in [("varnishd", "varnish-7.1.1"), ("varnishlog", "varnish"), ("varnishstat", "varnish")] {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(copal(), &link).unwrap();
        let output = Command::new(&link).arg("-V").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains(said), "{name}: {text}");
    }
}

#[test]
fn a_wrong_argument_gets_one_clear_line_and_a_non_zero_exit() {
    for (arguments, said) in [
        (vec!["-b", "127.0.0.1:1", "-f", "/nonexistent.vcl"], "Cannot read -f file '/nonexistent.vcl'"),
        (vec!["-b", "127.0.0.1:1", "-f", ""], "Only one of -b or -f can be specified"),
        (vec!["-f", "/nonexistent.vcl"], "/nonexistent.vcl"),
        (vec!["-b", "127.0.0.1:1", "-a", "no-such-host.invalid:80"], "no-such-host.invalid"),
        (vec!["-b", "127.0.0.1:1", "-p", "no_such_parameter=1"], "no_such_parameter"),
        (vec!["-b", "127.0.0.1:1", "-p", "default_ttl=-1"], "Must be greater or equal to 0.000"),
        (vec!["-b", "127.0.0.1:1", "-s", "nonsense,1m"], "nonsense"),
        (vec!["-b", "127.0.0.1:1", "-Z"], "Z"),
        (vec![], "Neither -b nor -f given. (use -f '' to override)"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(copal())
            .args(["daemon", "-F", "-j", "none", "-a", "127.0.0.1:0", "-n"])
            .arg(folder.path().join("run"))
            .args(&arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
}

#[test]
fn a_port_in_use_and_a_work_directory_in_use_are_named() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let folder = tempfile::tempdir().unwrap();
    let other = |directory: &str, address: &str| {
        let output = Command::new(copal())
            .args(["daemon", "-F", "-j", "none", "-n", directory, "-a", address, "-b", "127.0.0.1:1"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let used = format!("127.0.0.1:{}", daemon.port);
    let text = other(&folder.path().join("run").display().to_string(), &used);
    assert!(text.contains(&used), "{text}");
    let text = other(&daemon.run(), "127.0.0.1:0");
    assert!(text.contains("already running"), "{text}");
    assert_eq!(daemon.get("/still").status, 200);
}

#[test]
fn a_vcl_that_does_not_compile_leaves_the_old_one_serving() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let bad = daemon.folder.path().join("bad.vcl");
    std::fs::write(&bad, "vcl 4.1;\nbackend b { .host = \"127.0.0.1\"; }\nsub vcl_recv { set req.htp.x = \"1\"; }\n")
        .unwrap();
    let (good, text) = daemon.cli(&["vcl.load", "bad", bad.to_str().unwrap()]);
    assert!(!good);
    assert!(text.contains("Line 3") && text.contains("req.htp.x") && text.contains("##"), "{text}");
    assert_eq!(daemon.get("/still").status, 200);
    let good_file = daemon.folder.path().join("good.vcl");
    let vcl = format!(
        "vcl 4.1; backend b {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} sub vcl_deliver {{ set resp.http.X-New = \"yes\"; }}",
        origin.port
    );
    std::fs::write(&good_file, vcl).unwrap();
    assert!(daemon.cli(&["vcl.load", "good", good_file.to_str().unwrap()]).0);
    assert!(daemon.cli(&["vcl.use", "good"]).0);
    assert_eq!(daemon.get("/still").header("x-new"), Some("yes"));
    let (_, list) = daemon.cli(&["vcl.list"]);
    assert!(list.contains("good") && list.contains("boot"), "{list}");
}

#[test]
fn an_interrupted_foreground_daemon_ends_cleanly() {
    let origin = Origin::start(page);
    let mut daemon = Daemon::in_front_of(origin.port, &[]);
    let process: &Process = &daemon.process;
    process.signal(Signal::SIGINT);
    assert_eq!(daemon.process.wait().code(), Some(0), "{}", daemon.said());
}

/// A daemon with a request to which the origin never responds.
fn with_a_request_in_flight(drain: &str) -> (Origin, Daemon, std::net::TcpStream) {
    use std::io::Write as _;
    let origin = Origin::start(|_| {
        std::thread::park();
        Vec::new()
    });
    let daemon = Daemon::in_front_of(origin.port, &["-p", drain, "-p", "first_byte_timeout=600"]);
    let mut client = std::net::TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    eventually("the origin is asked", || (origin.count() == 1).then_some(()));
    (origin, daemon, client)
}

#[test]
fn requests_in_flight_have_the_time_that_a_parameter_gives_them_and_what_is_cut_is_said() {
    let (_origin, mut daemon, _client) = with_a_request_in_flight("drain_timeout=0.3");
    daemon.process.signal(Signal::SIGTERM);
    assert_eq!(daemon.process.wait().code(), Some(0), "{}", daemon.said());
    let said = daemon.said();
    // The time is measured.
    assert!(said.contains("cuts 2 requests and fetches that are in flight after "), "{said}");
    assert!(said.contains(" s (parameter drain_timeout)"), "{said}");
}

#[test]
fn requests_in_flight_come_to_their_end_when_a_supervisor_signals_every_process() {
    // As systemd does by default (KillMode=control-group), the worker first.
    let (over, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let origin = Origin::start(move |head| {
        let _ = gate.lock().unwrap().recv();
        page(head)
    });
    let mut daemon = Daemon::in_front_of(origin.port, &[]);
    let client = std::thread::scope(|scope| {
        let client = scope.spawn(|| daemon.get("/a"));
        eventually("the origin is asked", || (origin.count() == 1).then_some(()));
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            kill(Pid::from_raw(daemon.worker()), signal).unwrap();
        }
        daemon.process.signal(Signal::SIGTERM);
        eventually("the end begins", || daemon.said().contains("Stopping Child\n").then_some(()));
        over.send(()).unwrap();
        client.join().unwrap()
    });
    assert_eq!(client.status, 200, "{}", client.head);
    assert_eq!(daemon.process.wait().code(), Some(0), "{}", daemon.said());
    let said = daemon.said();
    assert!(!said.contains("died") && !said.contains("cuts "), "{said}");
}

#[test]
fn an_operators_stop_gives_requests_the_same_time() {
    let (_origin, daemon, _client) = with_a_request_in_flight("drain_timeout=0.3");
    assert!(daemon.cli(&["stop"]).0);
    let said = daemon.said();
    // The time is measured.
    assert!(said.contains("cuts 2 requests and fetches that are in flight after "), "{said}");
    assert!(said.contains(" s (parameter drain_timeout)"), "{said}");
}

#[test]
fn a_second_sigterm_waits_no_longer() {
    let (_origin, mut daemon, _client) = with_a_request_in_flight("drain_timeout=3600");
    daemon.process.signal(Signal::SIGTERM);
    eventually("the end begins", || daemon.said().contains("Manager got SIGTERM\n").then_some(()));
    assert!(daemon.process.0.try_wait().unwrap().is_none());
    daemon.process.signal(Signal::SIGTERM);
    assert_eq!(daemon.process.wait().code(), Some(0), "{}", daemon.said());
    let said = daemon.said();
    assert!(said.contains("Manager got SIGTERM again: requests in flight are cut"), "{said}");
    assert!(said.contains("cuts 2 requests and fetches"), "{said}");
}

#[test]
fn every_part_prints_its_help() {
    for part in ["daemon", "adm", "log", "ncsa", "stat", "top", "hist", "why", "policy", "vcl", "test", "demo"] {
        let said = |arguments: &[&str]| {
            let output = Command::new(copal()).args(arguments).stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let help = said(&["help", part]);
        assert!(help.to_lowercase().starts_with("usage: "), "{part}: {help}");
        assert_eq!(said(&[part, "--help"]), help);
    }
    for (name, version) in [("daemon", "copal "), ("varnishd", "varnishd (varnish-7.1.1")] {
        let output = Command::new(copal()).args([name, "--version"]).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(version), "{output:?}");
    }
}

#[test]
fn a_demo_that_is_ended_by_a_signal_leaves_nothing_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(copal());
        command.arg("demo").env("TMPDIR", folder.path());
        let mut demo =
            Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let daemon = eventually("its Copal runs", || {
            let demo = std::fs::read_dir(folder.path()).unwrap().next()?.unwrap().path();
            let pid = std::fs::read_to_string(demo.join("run/_.pid")).ok()?;
            demo.join("run/_.vsm_child").exists().then_some(())?;
            pid.parse::<i32>().ok()
        });
        demo.signal(signal);
        let status = demo.wait();
        assert_eq!(status.code(), Some(128 + signal as i32), "{signal}: {status}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{signal}");
        eventually("its Copal is gone", || kill(Pid::from_raw(daemon), None).is_err().then_some(()));
    }
}
