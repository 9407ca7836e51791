//! Access logs that `copal observe` writes: every request has a line or is counted as dropped, and
//! neither the end of the process nor a destination that takes nothing harms a request.

use crate::daemon::{Answer, Daemon, Origin, eventually, exchange, ok};
use nix::sys::signal::Signal;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const REQUESTS: usize = 300;

/// The value of a series in the metrics of a daemon.
fn metric(daemon: &Daemon, series: &str) -> Option<u64> {
    let said = daemon.said();
    let port = said.split("http://127.0.0.1:").nth(1)?.split('/').next()?.parse().ok()?;
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    let body = String::from_utf8(Answer::parse(&exchange(port, request)).body).ok()?;
    body.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// The number of lines written to, dropped from and skipped in an access log.
fn counts(daemon: &Daemon, destination: &str) -> Option<[u64; 3]> {
    let of = |name: &str, more: &str| {
        metric(daemon, &format!("copal_access_log_{name}_total{{destination=\"{destination}\"{more}}}"))
    };
    let dropped: Option<u64> =
        ["queue", "write", "overrun"].map(|why| of("dropped", &format!(",why=\"{why}\""))).iter().copied().sum();
    Some([of("lines", "")?, dropped?, of("skipped", "")?])
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn every_request_has_a_line_or_is_counted_as_dropped() {
    let origin = Origin::start(|_| ok("Cache-Control: max-age=60\r\n", "hello"));
    let folder = tempfile::tempdir().unwrap();
    let (json, errors) = (folder.path().join("json"), folder.path().join("errors"));
    let options = [
        format!("access-log={},format=json", json.display()),
        format!("access-log={},query=RespStatus >= 400,format=%m %U%q %s", errors.display()),
        // A destination that takes nothing.
        "access-log=/dev/full".to_owned(),
    ];
    let [first, second, third] = &options;
    let daemon =
        Daemon::in_front_of(origin.port, &["-o", "metrics=127.0.0.1:0", "-o", first, "-o", second, "-o", third]);
    eventually("the metrics are served", || metric(&daemon, "copal_worker_up"));
    for number in 0..REQUESTS {
        daemon.get(&format!("/{}", number % 7));
    }
    exchange(daemon.port, b"BREW /pot HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n");
    let all = REQUESTS as u64 + 1;
    for path in [&json, &errors, Path::new("/dev/full")] {
        let destination = path.display().to_string();
        eventually("all requests are counted", || {
            let counts = counts(&daemon, &destination)?;
            assert!(counts.iter().sum::<u64>() <= all, "{counts:?}");
            (counts.iter().sum::<u64>() == all).then_some(())
        });
        let [written, dropped, skipped] = counts(&daemon, &destination).unwrap();
        if path == Path::new("/dev/full") {
            assert_eq!((written, dropped > 0), (0, true), "{skipped}");
        } else {
            assert_eq!(lines(path).len() as u64, written, "{dropped} {skipped}");
        }
    }
    for line in lines(&json) {
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["method"], "GET", "{line}");
    }
}

#[test]
fn end_of_the_writer_harms_no_request_and_lines_follow_again() {
    let origin = Origin::start(|_| ok("", "hello"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let option = format!("access-log={}", path.display());
    let mut daemon = Daemon::in_front_of(origin.port, &["-o", &option]);
    let daemon_pid = daemon.process.pid();
    let writer = || {
        let children = std::fs::read_to_string(format!("/proc/{daemon_pid}/task/{daemon_pid}/children")).ok()?;
        let mut pids = children.split_whitespace().map(|pid| pid.parse::<i32>().unwrap());
        pids.find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim() == "copal-observe"
        })
    };
    let mut number = 0;
    let mut has_line = |daemon: &Daemon| {
        eventually("a line", || {
            number += 1;
            let target = format!("/{number}");
            assert_eq!(daemon.get(&target).status, 200);
            lines(&path).iter().any(|line| line.contains(&format!("{target} HTTP/1.1\" 200 5"))).then_some(())
        });
    };
    has_line(&daemon);
    let first = eventually("a writer", writer);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(first), Signal::SIGKILL).unwrap();
    assert_eq!(daemon.get("/a").status, 200);
    has_line(&daemon);
    // At the end of the daemon nothing that was logged is lost.
    daemon.get("/the-last-one");
    daemon.process.signal(Signal::SIGTERM);
    daemon.process.wait();
    eventually("the last line", || lines(&path).iter().any(|line| line.contains("/the-last-one")).then_some(()));
}

#[test]
fn sandboxed_writer_writes_to_the_directory_of_its_file() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root");
        return;
    }
    let origin = Origin::start(|_| ok("", "hello"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let path = folder.path().join("log");
    let option = format!("access-log={},rotate=1kx3", path.display());
    let daemon = Daemon::in_front_of(origin.port, &["-j", "unix", "-o", &option]);
    eventually("a second file", || {
        daemon.get("/markup/<script>alert(1)</script>%22%0a\"");
        folder.path().join("log.1").exists().then_some(())
    });
    assert!(lines(&folder.path().join("log.1")).iter().all(|line| line.contains("/markup/")));
}
