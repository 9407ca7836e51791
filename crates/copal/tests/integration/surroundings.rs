//! What stands around the processes: systemd, the users of the system, the fence of the worker.

use crate::daemon::{Daemon, Origin, Process, copal, eventually, exchange, ok};
use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::Signal;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

fn page(_: &str) -> Vec<u8> {
    ok("Cache-Control: max-age=600\r\n", "a page\n")
}

#[test]
fn systemd_hears_of_readiness_of_life_and_of_the_end() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let backend = format!("127.0.0.1:{}", origin.port);
    let daemon = Daemon::start_with(&["-b", &backend], |command| {
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
    });
    let mut heard = String::new();
    let mut hear = |what: &str| {
        while !heard.lines().any(|line| line == what) {
            let mut room = [0; 4096];
            let count = socket.recv(&mut room).unwrap_or_else(|error| panic!("{what}: {error}; heard: {heard}"));
            heard.push_str(&String::from_utf8_lossy(&room[..count]));
            heard.push('\n');
        }
        heard.drain(..);
    };
    hear("READY=1");
    hear("WATCHDOG=1");
    hear("WATCHDOG=1");
    daemon.process.signal(Signal::SIGTERM);
    hear("STOPPING=1");
}

#[test]
fn socket_passed_by_systemd_is_served_without_any_a_option() {
    let origin = Origin::start(page);
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut command = Command::new("sh");
    // The process id that the sockets are meant for is known only once the process is there.
    command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"]).arg(copal());
    command.args(["daemon", "-F", "-j", "none", "-b", &format!("127.0.0.1:{}", origin.port), "-n"]).arg(folder.path());
    command.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "web");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.fd_mappings(vec![FdMapping { parent_fd: listener.into(), child_fd: 3 }]).unwrap();
    let daemon = Process(command.spawn().unwrap());
    // The socket took connections before the daemon was there: this one waits for it.
    let answer = exchange(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with(b"a page\n"), "{}", String::from_utf8_lossy(&answer));
    let listed = Command::new(copal()).args(["adm", "-n"]).arg(folder.path()).arg("debug.listen_address").output();
    let listed = String::from_utf8_lossy(&listed.unwrap().stdout).into_owned();
    assert!(listed.starts_with(&format!("web 127.0.0.1 {port}")), "{listed}");
    drop(daemon);
}

/// A line of the worker's `/proc/PID/status`.
fn status_line(pid: i32, name: &str) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {status}"));
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn worker_started_by_root_has_no_rights_left_and_is_fenced_in() {
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
    let worker = daemon.worker();
    assert!(status_line(worker, "Uid:").iter().all(|id| id != "0"), "{:?}", status_line(worker, "Uid:"));
    assert!(status_line(worker, "Gid:").iter().all(|id| id != "0"));
    assert!(status_line(worker, "Groups:").iter().all(|id| id != "0"));
    for capabilities in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(status_line(worker, capabilities), ["0000000000000000"], "{capabilities}");
    }
    assert_eq!(status_line(worker, "NoNewPrivs:"), ["1"]);
    assert_eq!(status_line(worker, "Seccomp:"), ["2"]);
    // The file is root's: VCL cannot read it, and says so.
    let answer = daemon.get("/");
    assert!(!answer.head.contains("for root alone"), "{}", answer.head);
    // Serving goes on behind the fence, through the death of a worker too.
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("another worker serves", || (daemon.worker() != worker).then_some(()));
    assert!(daemon.get("/").status >= 200);
}
