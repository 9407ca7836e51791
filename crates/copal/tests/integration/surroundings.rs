//! The environment of the processes: systemd, the users of the system, the sandbox of the worker.

use crate::daemon::{Daemon, Notifications, Origin, Process, copal, eventually, exchange, ok};
use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\n", "a page\n")
}

#[test]
fn systemd_is_notified_of_readiness_watchdog_and_stop() {
    let origin = Origin::start(page);
    let notifications = Notifications::new();
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_with(&["-b", &backend], |command| notifications.set(command, 100_000));
    notifications.wait_for("READY=1");
    notifications.wait_for("WATCHDOG=1");
    notifications.wait_for("WATCHDOG=1");
    daemon.process.signal(Signal::SIGTERM);
    notifications.wait_for("STOPPING=1");
}

/// A daemon that gets this socket from systemd, under the name `web`.
fn given_a_socket(listener: TcpListener, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    // The process id that the sockets are meant for exists only once the process does.
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"]).arg(copal());
    command.args(["daemon", "-j", "none", "-n"]).arg(folder).args(arguments);
    command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "web").stdin(Stdio::null());
    command.fd_mappings(vec![FdMapping { parent_fd: listener.into(), child_fd: 3 }]).unwrap();
    command
}

#[test]
fn socket_passed_by_systemd_that_is_not_served_is_an_error_that_names_it() {
    for (arguments, said) in [
        (&["-F", "-a", "127.0.0.1:0"][..], "which no -a names: add -a 127.0.0.1:PORT, or give no -a"),
        (&["-a", "127.0.0.1:PORT"], "which is served with -F only"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|text| text.replace("PORT", &port)).collect();
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.extend(["-b", "127.0.0.1:1"]);
        let output = given_a_socket(listener, folder.path(), &arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("systemd passed the socket 'web' (127.0.0.1:{port}), ")), "{text}");
        assert!(text.contains(&said.replace("PORT", &port)), "{text}");
    }
}

#[test]
fn root_without_capabilities_serves_and_says_what_is_missing() {
    if !nix::unistd::geteuid().is_root() || crate::daemon::needs("setpriv").is_none() {
        println!("skipped: needs root");
        return;
    }
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let (log, port) = (folder.path().join("log"), crate::daemon::free_port());
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]).arg(copal()).args(["daemon", "-F"]);
    command.arg("-n").arg(folder.path().join("run")).args(["-a", &format!("127.0.0.1:{port}")]);
    command.args(["-b", &format!("127.0.0.1:{}", origin.port)]).stdin(Stdio::null()).stdout(Stdio::null());
    let _daemon = Process(command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
    let said = || std::fs::read_to_string(&log).unwrap();
    let worker_after = |before: &str| {
        eventually("a worker serves", || {
            let text = said();
            let later = text.strip_prefix(before)?.to_owned();
            let started = later.lines().find(|line| line.ends_with(" Started"))?;
            let process = started.split_once("Child (")?.1.split_once(')')?.0.parse::<i32>().unwrap();
            later.contains("launched OK").then_some(process)
        })
    };
    let serves = || {
        let answer = exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(answer.ends_with(b"a page\n"), "{}", String::from_utf8_lossy(&answer));
    };
    let first = worker_after("");
    serves();
    assert_eq!(said().matches("root without CAP_SETUID and CAP_SETGID: no jail").count(), 1, "{}", said());
    assert_eq!(status_line(first, "Uid:")[0], "0");
    assert_eq!(status_line(first, "CapEff:"), ["0000000000000000"]);
    assert_eq!(status_line(first, "NoNewPrivs:"), ["1"]);
    assert_eq!(status_line(first, "Seccomp:"), ["2"]);
    // The next worker needs no more.
    let before = said();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), Signal::SIGKILL).unwrap();
    assert_ne!(worker_after(&before), first);
    serves();
}

#[test]
fn socket_for_both_families_is_what_an_a_without_a_host_names() {
    let Ok(listener) = TcpListener::bind("[::]:0") else {
        println!("skipped: needs IPv6");
        return;
    };
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let port = listener.local_addr().unwrap().port();
    let (backend, address) = (format!("127.0.0.1:{}", origin.port), format!("site=:{port}"));
    let mut command = given_a_socket(listener, folder.path(), &["-F", "-b", &backend, "-a", &address]);
    let _daemon = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let answer = exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with(b"a page\n"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn descriptor_exhaustion_is_logged_once_with_the_limit_and_ends() {
    let origin = Origin::start(page);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"]).arg(copal()).arg("daemon");
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_by(command, &["-b", &backend, "-p", "event_loops=1", "-p", "timeout_idle=600"]);
    let clients: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(("127.0.0.1", daemon.port)).unwrap()).collect();
    eventually("it is said", || daemon.said().contains("Out of file descriptors").then_some(()));
    // Checks the queue of connections, and the messages about it, a second time.
    eventually("more failures are counted", || (failures(&daemon) > 3).then_some(()));
    let said = daemon.said();
    assert_eq!(said.matches("Out of file descriptors: this process may have 64 (RLIMIT_NOFILE)").count(), 1, "{said}");
    assert_eq!(said.matches("LimitNOFILE=").count(), 1, "{said}");
    drop(clients);
    assert_eq!(daemon.get("/").status, 200);
}

#[test]
fn idle_clients_that_take_all_descriptors_make_room_for_others_and_leave_some_to_origins() {
    let origin = Origin::start(page);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64 && exec \"$@\"", "sh"]).arg(copal()).arg("daemon");
    let vcl = format!(
        "vcl 4.1; backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} sub vcl_recv {{ return (pass); }}",
        origin.port
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &vcl).unwrap();
    let name = file.path().to_str().unwrap();
    let daemon = Daemon::start_by(command, &["-f", name, "-p", "event_loops=1", "-p", "timeout_idle=600"]);
    // Over HTTP/1, some of them after a request, and over HTTP/2.
    let connect = || TcpStream::connect(("127.0.0.1", daemon.port)).unwrap();
    let mut kept = connect();
    kept.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    kept.read_exact(&mut [0; 12]).unwrap();
    let mut framed = connect();
    framed.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    framed.read_exact(&mut [0; 9]).unwrap();
    let silent: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
    for _ in 0..3 {
        assert_eq!(daemon.get("/").status, 200, "a new client, whose answer needs a connection to the origin");
    }
    let (is_loaded, said) = daemon.cli(&["vcl.load", "second", name]);
    assert!(is_loaded, "{said}");
    // The oldest had to be closed, and received a message.
    let mut rest = Vec::new();
    kept.read_to_end(&mut rest).unwrap();
    rest.clear();
    framed.read_to_end(&mut rest).unwrap();
    let goaway = [7, 0, 0, 0, 0, 0];
    assert!(rest.windows(6).any(|window| window == goaway), "{rest:?}");
    eventually("it is counted", || (daemon.counter("MAIN.sc_overload") >= 200).then_some(()));
    drop(silent);
    assert_eq!(daemon.said().matches("Idle connections are closed").count(), 1, "{}", daemon.said());
}

fn failures(daemon: &Daemon) -> u64 {
    daemon.counter("MAIN.sess_fail_emfile")
}

#[test]
fn a_soft_limit_of_descriptors_is_raised() {
    let origin = Origin::start(page);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 64 && exec \"$@\"", "sh"]).arg(copal()).arg("daemon");
    let daemon = Daemon::start_by(command, &["-b", &format!("127.0.0.1:{}", origin.port)]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.worker())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{line}");
}

#[test]
fn messages_have_the_time_or_are_json_or_leave_the_time_to_the_journal() {
    let origin = Origin::start(page);
    let backend = format!("127.0.0.1:{}", origin.port);
    let all = |daemon: &Daemon| {
        eventually("it has said all", || daemon.said().contains("Child launched OK").then(|| daemon.said()))
    };
    let said = all(&Daemon::start(&["-b", &backend]));
    let stamped = |line: &str| line.get(..25).is_some_and(|start| start.starts_with("20") && start.ends_with("Z "));
    assert!(said.lines().count() > 3 && said.lines().all(stamped), "{said}");
    assert!(said.contains("Z Info: Child (") && said.contains("Z Child launched OK"), "{said}");

    let said = all(&Daemon::start(&["-b", &backend, "--log-format=json"]));
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 3 && lines.iter().all(|line| line["time"].as_str().is_some_and(|time| time.len() == 24)));
    let is = |level: &str, text: &str| {
        lines.iter().any(|line| line["level"] == level && line["message"].as_str().unwrap().contains(text))
    };
    assert!(is("info", "said Child starts") && is("info", "Child launched OK") && is("debug", "Version: "), "{said}");

    let journal = Daemon::start_with(&["-b", &backend], |command| {
        let directory = command.get_args().skip_while(|argument| *argument != "-n").nth(1).unwrap();
        let log = std::fs::metadata(Path::new(directory).parent().unwrap().join("log")).unwrap();
        let stream = format!("{}:{}", log.dev(), log.ino());
        command.env("JOURNAL_STREAM", stream);
    });
    let said = all(&journal);
    assert!(said.contains("Info: Child (") && !said.lines().any(stamped), "{said}");
}

#[test]
fn an_ordinary_user_needs_no_work_directory_of_a_name() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root, to become somebody else");
        return;
    }
    const USER: u32 = 64_999;
    let origin = Origin::start(page);
    // The program may be in a directory that this user cannot access.
    let folder = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let program = folder.path().join("copal");
    std::fs::copy(copal(), &program).unwrap();
    let runtime = folder.path().join("runtime");
    std::fs::create_dir(&runtime).unwrap();
    std::os::unix::fs::chown(&runtime, Some(USER), Some(USER)).unwrap();
    let command = |part: &str| {
        let mut command = Command::new(&program);
        command.arg(part).uid(USER).gid(USER).env("XDG_RUNTIME_DIR", &runtime).current_dir("/").stdin(Stdio::null());
        command
    };
    let (port, backend) = (crate::daemon::free_port(), format!("127.0.0.1:{}", origin.port));
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut daemon = command("daemon");
    daemon.args(["-F", "-a", &format!("127.0.0.1:{port}"), "-b", &backend]).stdout(Stdio::null()).stderr(log);
    let mut daemon = Process(daemon.spawn().unwrap());
    let said = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    eventually("it serves", || {
        assert!(daemon.0.try_wait().unwrap().is_none(), "{}", said());
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let answer = exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with(b"a page\n"), "{}", String::from_utf8_lossy(&answer));
    let directory = format!("\n  directory   {}\n", runtime.join("copal/varnishd").display());
    eventually("its report", || said().contains(&directory).then_some(()));
    let ping = command("adm").arg("ping").output().unwrap();
    assert!(String::from_utf8_lossy(&ping.stdout).starts_with("PONG"), "{ping:?}");
    let counter = command("stat").args(["-1", "-f", "MAIN.client_req"]).output().unwrap();
    assert!(String::from_utf8_lossy(&counter.stdout).contains("MAIN.client_req "), "{counter:?}");
    // If the user names something that is not theirs, the message gives the reason and the remedy.
    let refused = command("daemon").args(["-F", "-a", "127.0.0.1:0", "-b", "none", "-n"]).arg(folder.path()).output();
    let text = String::from_utf8_lossy(&refused.unwrap().stderr).into_owned();
    assert!(text.contains("Permission denied; name a work directory of your own with -n"), "{text}");
}

#[test]
fn socket_passed_by_systemd_is_served_without_any_a_option() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let backend = format!("127.0.0.1:{}", origin.port);
    let mut command = given_a_socket(listener, folder.path(), &["-F", "-b", &backend]);
    let daemon = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // The socket accepted connections before the daemon existed: this one waits for it.
    let answer = exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with(b"a page\n"), "{}", String::from_utf8_lossy(&answer));
    // The worker may answer before the manager has heard that it runs.
    eventually("the manager knows its worker", || {
        let listed = Command::new(copal()).args(["adm", "-n"]).arg(folder.path()).arg("debug.listen_address").output();
        String::from_utf8_lossy(&listed.unwrap().stdout).starts_with(&format!("web 127.0.0.1 {port}")).then_some(())
    });
    drop(daemon);
}

/// A line of the worker's `/proc/PID/status`.
fn status_line(pid: i32, name: &str) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {status}"));
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn worker_started_by_root_drops_all_rights_and_enters_the_sandbox() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let origin = Origin::start(page);
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "for root alone").unwrap();
    let vcl = format!(
        "vcl 4.1; import std; backend b {{ .host = \"127.0.0.1\"; .port = \"@PORT@\"; }}
         sub vcl_deliver {{ set resp.http.X-File = \"<\" + std.fileread(\"{}\") + \">\"; }}",
        secret.path().display()
    );
    let daemon = Daemon::with_vcl(&vcl, origin.port, &["-j", "unix"]);
    // A worker that serves has dropped its rights.
    let answer = daemon.get("/");
    let worker = daemon.worker();
    assert!(status_line(worker, "Uid:").iter().all(|id| id != "0"), "{:?}", status_line(worker, "Uid:"));
    assert!(status_line(worker, "Gid:").iter().all(|id| id != "0"));
    assert!(status_line(worker, "Groups:").iter().all(|id| id != "0"));
    for capabilities in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(status_line(worker, capabilities), ["0000000000000000"], "{capabilities}");
    }
    assert_eq!(status_line(worker, "NoNewPrivs:"), ["1"]);
    assert_eq!(status_line(worker, "Seccomp:"), ["2"]);
    // The file is root's: VCL cannot read it, and reports that.
    assert!(!answer.head.contains("for root alone"), "{}", answer.head);
    // Serving continues in the sandbox, even across the death of a worker.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("another worker serves", || (daemon.worker() != worker).then_some(()));
    assert!(daemon.get("/").status >= 200);
}
