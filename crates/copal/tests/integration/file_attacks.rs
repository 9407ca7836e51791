//! Faults of a storage in a file that are caused by an operator, a disk or an attacker: each is
//! reported in one line, and nothing is lost by it.

use crate::daemon::{Daemon, HANG, Origin, copal, eventually, needs, ok};
use crate::file_storage::{Disk, end, is_hit, kill_everything, message, origin, settle};
use nix::sys::signal::Signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

fn refused(path: &std::path::Path, size: &str) -> String {
    message(&["-s", &format!("file,{},{size}", path.display())])
}

#[test]
fn storage_paths_that_are_not_files_are_refused_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::create_dir(at("copal.s0")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink(at("fifo"), at("to-fifo")).unwrap();
    symlink(at("circle"), at("circle")).unwrap();
    for name in ["fifo", "socket", "to-fifo"] {
        let said = refused(&at(name), "1m");
        assert!(said.contains("is neither file nor directory"), "{name}: {said}");
    }
    for device in ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"] {
        let said = refused(device.as_ref(), "1m");
        assert!(said.contains("is neither file nor directory"), "{device}: {said}");
    }
    let said = refused(folder.path(), "1m");
    assert!(said.contains("copal.s0\" is neither file nor directory"), "{said}");
    let said = refused(&at("circle"), "1m");
    assert!(said.contains("Too many symbolic links"), "{said}");
    let said = refused(&at("no/directory/x"), "1m");
    assert!(said.contains("does not exist and could not be created: No such file or directory"), "{said}");
    drop(socket);
}

#[test]
fn a_symbolic_link_leads_to_the_file_and_the_lock_is_the_files() {
    let (origin, disk) = (origin(), Disk::new());
    let link = disk.path().with_file_name("link");
    symlink(disk.path(), &link).unwrap();
    let storage = format!("file,{},64m", link.display());
    let first = Daemon::in_front_of(origin.port, &["-s", &storage]);
    assert!(!is_hit(&first, "/a/5000"));
    assert!(disk.path().is_file() && message(&["-s", &disk.argument()]).contains("is used by another process"));
    end(first, Signal::SIGTERM);
    assert!(is_hit(&Daemon::in_front_of(origin.port, &["-s", &storage]), "/a/5000"));
}

#[test]
fn a_directory_that_vanishes_costs_a_running_daemon_nothing() {
    let (origin, disk) = (origin(), Disk::new());
    let daemon = disk.start(&origin);
    assert!(!is_hit(&daemon, "/a/100000"));
    settle(&daemon);
    let moved = tempfile::tempdir().unwrap();
    for name in ["bodies", "bodies.bans"] {
        std::fs::rename(disk.path().with_file_name(name), moved.path().join(name)).unwrap();
    }
    std::fs::remove_dir(disk.path().parent().unwrap()).unwrap();
    let worker = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("the next worker runs", || (daemon.worker() != worker).then_some(()));
    assert!(is_hit(&daemon, "/a/100000") && !is_hit(&daemon, "/b/100000"));
    assert!(daemon.cli(&["ban", "req.url == /nothing"]).0);
    settle(&daemon);
    kill_everything(daemon);
    assert!(message(&["-s", &disk.argument()]).contains("could not be created: No such file or directory"));
    // At the new path they are whole.
    let elsewhere = format!("file,{},64m", moved.path().join("bodies").display());
    let next = Daemon::in_front_of(origin.port, &["-s", &elsewhere]);
    assert!(is_hit(&next, "/a/100000") && is_hit(&next, "/b/100000"), "{}", next.said());
    // The folder is deleted by its owner.
    std::fs::create_dir(disk.path().parent().unwrap()).unwrap();
}

/// Runs a daemon over file systems of its own: `script` mounts, and runs `"$@"`. `None` without the
/// right to mount.
fn in_namespace(script: &str, arguments: &[&str]) -> Option<std::process::Output> {
    let mut command = Command::new(needs("unshare")?);
    command.args(["-m", "sh", "-c", script, "sh"]).arg(copal()).args(arguments);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("mount:") {
        println!("skipped: needs the right to mount");
        return None;
    }
    Some(output)
}

#[test]
fn read_only_file_system_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let run = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    for made in ["true", "truncate -s 1m bodies"] {
        let mount = format!(
            "mount -t tmpfs -o size=8m copal {at} && cd {at} && {made} && mount -o remount,ro {at} && exec \"$@\""
        );
        let storage = format!("file,{at}/bodies,1m");
        let run = run.path().display().to_string();
        let arguments = ["daemon", "-F", "-j", "none", "-b", "none", "-a", "127.0.0.1:0", "-n", &run, "-s", &storage];
        let Some(output) = in_namespace(&mount, &arguments) else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("(-sfile)") && said.contains("Read-only file system"), "{said}");
    }
}

#[test]
fn a_disk_that_is_full_refuses_bans_aloud_and_loses_none() {
    let Some(unshare) = needs("unshare") else { return };
    let (origin, folder) = (origin(), tempfile::tempdir().unwrap());
    let at = folder.path().display().to_string();
    let vcl = folder.path().join("with.vcl");
    let text = "vcl 4.1; import std; backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
        sub vcl_recv { if (req.method == \"BAN\") {
            if (std.ban(\"req.url == \" + req.url)) { return (synth(200)); } else { return (synth(500, std.ban_error())); } } }";
    std::fs::write(&vcl, text.replace("@PORT@", &origin.port.to_string())).unwrap();
    // Next to the file of 6 MiB there is hardly room for bans; the work directory is elsewhere.
    let disk = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=6200k copal {} && exec \"$@\"", disk.path().display());
    let mut command = Command::new(unshare);
    command.args(["-m", "sh", "-c", &mount, "sh"]).arg(copal()).arg("daemon");
    let storage = format!("file,{}/bodies,6m", disk.path().display());
    let arguments = ["-f", vcl.to_str().unwrap(), "-s", &storage];
    let probe = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "copal", &at]).output().unwrap();
    if !probe.status.success() {
        println!("skipped: needs the right to mount");
        return;
    }
    let daemon = Daemon::start_by(command, &arguments);
    let ask = |method: &str, path: &str| {
        daemon.request(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    };
    assert!(!is_hit(&daemon, "/kept/3000") && !is_hit(&daemon, "/banned/3000"));
    assert_eq!(ask("BAN", "/banned/3000").status, 200);
    // Long bans fill the rest of the disk, until one is refused.
    let long = format!("/{}", "x".repeat(4000));
    let mut answers = (0..200).map(|number| ask("BAN", &format!("{long}{number}")));
    let refused = answers.find(|answer| answer.status != 200).expect("the disk is full");
    assert_eq!(refused.status, 500, "{}", refused.head);
    assert!(refused.head.contains("No space left"), "{}", refused.head);
    let (is_done, text) = daemon.cli(&["ban", &format!("req.url == {long}cli")]);
    assert!(!is_done && text.contains("No space left on device"), "{text}");
    // Responses continue, also from the file.
    assert!(is_hit(&daemon, "/kept/3000") && !is_hit(&daemon, "/new/3000") && is_hit(&daemon, "/new/3000"));
    let worker = daemon.worker();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(worker), Signal::SIGKILL).unwrap();
    eventually("the next worker runs", || (daemon.worker() != worker).then_some(()));
    assert!(is_hit(&daemon, "/kept/3000") && !is_hit(&daemon, "/banned/3000"), "{}", daemon.said());
}

/// A persistent connection.
struct Line(BufReader<TcpStream>);

impl Line {
    fn open(port: u16) -> Line {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        Line(BufReader::new(stream))
    }

    fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Reads an answer to its end; returns its status.
    fn answer(&mut self) -> u16 {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &String| line != "\r\n") {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0);
            lines.push(line);
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: ")?.trim().parse().ok());
        let mut body = vec![0; length.expect("a length")];
        self.0.read_exact(&mut body).unwrap();
        lines[0][9..12].parse().unwrap()
    }
}

#[test]
fn many_tiny_objects_keep_to_the_memory_that_they_were_given() {
    let (origin, folder) =
        (Origin::start(|_| ok("Cache-Control: max-age=6000\r\n", "x")), tempfile::tempdir().unwrap());
    let storage = format!("file,{},256m,512,meta=1m", folder.path().join("bodies").display());
    let daemon = Daemon::in_front_of(origin.port, &["-s", &storage]);
    let mut line = Line::open(daemon.port);
    let (requests, at_a_time) = (8_000, 50);
    for first in (0..requests).step_by(at_a_time) {
        let numbers = first..first + at_a_time;
        line.send(
            &numbers.clone().map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect::<String>(),
        );
        numbers.for_each(|_| assert_eq!(line.answer(), 200));
    }
    daemon.counter_reaching("MAIN.n_lru_nuked", 1);
    let counters = ["g_meta_bytes", "g_bytes", "g_alloc"].map(|name| daemon.counter(&format!("SMF.s0.{name}")));
    assert!(counters[0] <= 1 << 20 && counters[2] > 1000, "{counters:?}");
    settle(&daemon);
    // The gauge is as old as the last sum: one that is written after all removals were.
    daemon.counter_reaching("MAIN.summs", daemon.counter("MAIN.summs") + 2);
    let objects = daemon.counter("MAIN.n_object");
    kill_everything(daemon);
    let next = Daemon::in_front_of(origin.port, &["-s", &storage]);
    assert_eq!(next.get("/once-more").status, 200);
    let found = next.counter_reaching("MAIN.n_object", objects / 2);
    assert!(found <= objects + 1, "{found} of {objects}: {}", next.said());
}

#[test]
fn many_purges_wait_for_few_writes() {
    let (origin, disk) = (origin(), Disk::new());
    let vcl = "vcl 4.1; backend default { .host = \"127.0.0.1\"; .port = \"@PORT@\"; }
        sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }";
    let daemon = Daemon::with_vcl(vcl, origin.port, &["-s", &disk.argument()]);
    let purges = 1500;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..30 {
            let port = daemon.port;
            scope.spawn(move || {
                let mut line = Line::open(port);
                for number in 0..purges / 30 {
                    for method in ["GET", "PURGE"] {
                        line.send(&format!("{method} /{client}-{number}/100 HTTP/1.1\r\nHost: example.com\r\n\r\n"));
                        assert_eq!(line.answer(), 200);
                    }
                }
            });
        }
    });
    println!("{purges} purges in {:.1} s", begin.elapsed().as_secs_f64());
    kill_everything(daemon);
    let next = Daemon::with_vcl(vcl, origin.port, &["-s", &disk.argument()]);
    for client in 0..30 {
        assert!(!is_hit(&next, &format!("/{client}-{}/100", purges / 30 - 1)));
    }
}
