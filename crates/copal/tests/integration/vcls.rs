//! VCLs that come and go: reloading under load, hundreds of them, and their leftovers.

use crate::daemon::{Answer, Daemon, Origin, copal, eventually, ok};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn page(head: &str) -> Vec<u8> {
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    // Some responses are not cached, so that origins are always in use.
    let life = if path.contains("fresh") { "no-store" } else { "max-age=600" };
    ok(&format!("Cache-Control: {life}\r\n"), &format!("this is {path}\n"))
}

/// Sends a script to the CLI on one connection.
fn script(daemon: &Daemon, commands: &str) {
    let mut child = Command::new(copal())
        .args(["adm", "-n", &daemon.run()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Sends GETs on one connection after the other until `stop` is set; returns the number of good
/// responses.
fn visit(port: u16, stop: &AtomicBool) -> usize {
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for path in ["/a", "/fresh", "/b"] {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: example.com\r\n\r\n").unwrap();
            let body = format!("this is {path}\n");
            let mut received = Vec::new();
            let mut room = [0; 4096];
            while !received.ends_with(body.as_bytes()) {
                let count = stream.read(&mut room).unwrap();
                assert!(count > 0, "{}", String::from_utf8_lossy(&received));
                received.extend_from_slice(&room[..count]);
            }
            let answer = Answer::parse(&received);
            assert_eq!(answer.status, 200, "{}", answer.head);
            assert!(answer.header("x-vcl").is_some_and(|name| name.starts_with("number-")), "{}", answer.head);
            answered += 1;
        }
    }
    answered
}

#[test]
fn reloading_under_load_fails_no_request() {
    let origin = Origin::start(page);
    let vcl = |number: usize| {
        format!(
            "vcl 4.1; backend b {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} \
             sub vcl_deliver {{ set resp.http.X-VCL = \"number-{number}\"; }}",
            origin.port
        )
    };
    let daemon = Daemon::with_vcl(&vcl(0), origin.port, &[]);
    let stop = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| answered.fetch_add(visit(daemon.port, &stop), Ordering::Relaxed));
        }
        let mut before = "boot".to_owned();
        for number in 1..=40 {
            let text = vcl(number).replace('"', "\\\"");
            script(&daemon, &format!("vcl.inline v{number} \"{text}\"\nvcl.use v{number}\nvcl.discard {before}\n"));
            before = format!("v{number}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(answered.into_inner() > 0);
    assert_eq!(daemon.get("/a").header("x-vcl"), Some("number-40"));
    let list = eventually("what was discarded is gone", || {
        let (_, list) = daemon.cli(&["vcl.list"]);
        (list.lines().filter(|line| !line.trim().is_empty()).count() == 1).then_some(list)
    });
    assert!(list.contains("v40"), "{list}");
}

/// Resident memory of a process, KiB.
fn resident_kibibytes(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn hundreds_of_vcls_are_loaded_at_once_and_leave_nothing_behind() {
    let origin = Origin::start(page);
    let daemon = Daemon::in_front_of(origin.port, &[]);
    let mut text =
        format!("vcl 4.1; backend b {{ .host = \"127.0.0.1\"; .port = \"{}\"; }} sub vcl_recv {{\n", origin.port);
    for number in 0..300 {
        let _ =
            writeln!(text, "if (req.url ~ \"^/{number}/[a-z]+\") {{ set req.http.X-{number} = \"found {number}\"; }}");
    }
    text.push_str("}\n");
    let path = daemon.folder.path().join("many.vcl");
    std::fs::write(&path, text).unwrap();
    let cycle = || {
        let (mut load, mut discard) = (String::new(), String::new());
        for number in 0..200 {
            let _ = writeln!(load, "vcl.load many{number} {}", path.display());
            let _ = writeln!(discard, "vcl.discard many{number}");
        }
        script(&daemon, &load);
        let (_, list) = daemon.cli(&["vcl.list"]);
        assert_eq!(list.matches("many").count(), 200, "{list}");
        assert_eq!(daemon.get("/a").status, 200);
        script(&daemon, &discard);
        eventually("what was discarded is gone", || (!daemon.cli(&["vcl.list"]).1.contains("many")).then_some(()));
        [daemon.process.pid(), daemon.worker()].map(resident_kibibytes)
    };
    cycle();
    let early = cycle();
    cycle();
    cycle();
    // The allocator's reserves come and go; memory that was leaked only grows.
    let late = [cycle(), cycle(), cycle()];
    for process in 0..early.len() {
        let (early, late) = (early[process], late.map(|one| one[process]).into_iter().min().unwrap());
        // Three cycles of 200 programs of about 100 KiB: a leak of one in four would show.
        assert!(late < early + (16 << 10), "{early} KiB after two cycles, never less than {late} KiB after five");
    }
}
